/* Log-density of the symmetric multivariate Laplace law with identity covariance, by radius.
 *
 *   log g_d(r) = log 2 - (d/2) log(2 pi) - nu log(r/sqrt 2) + log K_nu(x),  nu = d/2 - 1, x = sqrt(2) r
 *
 * In the scalings of bessel.h, with constants that depend on d only:
 *   x >= 1:  large - (nu + 1/2) log x - x + log p_nu
 *   x < 1:   small - 2 nu log x [- x for odd d] + log p_nu
 */
#ifndef ZIL_SL_DENSITY_H
#define ZIL_SL_DENSITY_H

#include <math.h>

#include "bessel.h"
#include "isa.h"

#define SL_LOG_2PI 1.83787706640934548356
#define SL_LOG_2 0.69314718055994530942

typedef struct {
    long dim;
    double nu;
    double first; /* order the recurrence starts from: 0 or 1/2 */
    long steps;   /* orders from there to nu */
    double small, large;
    double slope_small, slope_large; /* factors of -log x */
    double linear_small;             /* factor of -x below 1 */
} sl_law;

static inline sl_law sl_law_make(long dim) {
    sl_law law;
    law.dim = dim;
    law.nu = 0.5 * (double)dim - 1.0;
    law.first = dim % 2 ? 0.5 : 0.0;
    law.steps = dim >= 2 ? (dim - 2) / 2 : 0;
    double base = -0.5 * (double)dim * SL_LOG_2PI;
    law.large = base + SL_LOG_2 + law.nu * SL_LOG_2 + 0.5 * (SL_LOG_2PI - 2.0 * SL_LOG_2);
    law.small = dim >= 3 ? base + 2.0 * law.nu * SL_LOG_2 + lgamma(law.nu) : base + SL_LOG_2;
    law.slope_small = 2.0 * law.nu;
    law.slope_large = law.nu + 0.5;
    law.linear_small = dim % 2 ? 1.0 : 0.0;
    return law;
}

/* The pieces of one block: log x, log p_nu (both scalings) and, if asked for, K_{nu+1}/K_nu.  dim >= 2, x > 0. */
VM_INLINE void sl_pieces(const sl_law *law, const double *restrict x, double *restrict log_x, double *restrict log_p,
                         double *restrict ratio) {
    double previous[BESSEL_BLOCK], current[BESSEL_BLOCK], exponent[BESSEL_BLOCK];
    for (int i = 0; i < BESSEL_BLOCK; i++)
        log_x[i] = bessel_log(x[i]);
    if (law->dim % 2)
        for (int i = 0; i < BESSEL_BLOCK; i++)
            bessel_start_half(x[i], &previous[i], &current[i]);
    else
        for (int i = 0; i < BESSEL_BLOCK; i++)
            bessel_start_integer(x[i], log_x[i], &previous[i], &current[i]);
    for (int i = 0; i < BESSEL_BLOCK; i++)
        exponent[i] = 0.0;
    if (ratio) {
        bessel_advance(law->first, law->steps, x, previous, current, exponent);
        double factor = law->nu > 0.0 ? 2.0 * law->nu : 1.0;
        for (int i = 0; i < BESSEL_BLOCK; i++)
            ratio[i] = current[i] / previous[i] * (x[i] < 1.0 ? factor / x[i] : 1.0);
    } else if (law->steps > 0) {
        bessel_advance(law->first, law->steps - 1, x, previous, current, exponent);
        for (int i = 0; i < BESSEL_BLOCK; i++)
            previous[i] = current[i];
    }
    for (int i = 0; i < BESSEL_BLOCK; i++)
        log_p[i] = exponent[i] * SL_LOG_2 + vm_log(previous[i]);
}

/* The terms of the density apart from log p_nu. */
VM_INLINE double sl_outer(const sl_law *law, double x, double log_x) {
    return x < 1.0 ? law->small - law->slope_small * log_x - law->linear_small * x
                   : law->large - law->slope_large * log_x - x;
}

/* log g_d and (score not null) -d/dr log g_d for one block of radii r >= 0. */
VM_INLINE void sl_block(const sl_law *law, const double *restrict r, double *restrict log_g, double *restrict score) {
    if (law->dim == 1) {
        for (int i = 0; i < BESSEL_BLOCK; i++) {
            log_g[i] = -VM_SQRT2 * r[i] - 0.5 * SL_LOG_2;
            if (score)
                score[i] = VM_SQRT2;
        }
        return;
    }
    double x[BESSEL_BLOCK], log_x[BESSEL_BLOCK];
    for (int i = 0; i < BESSEL_BLOCK; i++)
        x[i] = VM_SQRT2 * r[i];
    sl_pieces(law, x, log_x, log_g, score);
    for (int i = 0; i < BESSEL_BLOCK; i++) {
        double value = sl_outer(law, x[i], log_x[i]) + log_g[i];
        log_g[i] = x[i] == 0.0 ? INFINITY : value;
        if (score)
            score[i] *= VM_SQRT2;
    }
}

/* log g(b) - log g(a) for one block; difference = b - a without cancellation.  A sample at
 * the centre of either law is decided: -inf where a = 0, +inf where b = 0, 0 where a = b. */
VM_INLINE void sl_llr_block(const sl_law *law, const double *restrict a, const double *restrict b,
                            const double *restrict difference, double *restrict llr) {
    if (law->dim == 1) {
        for (int i = 0; i < BESSEL_BLOCK; i++)
            llr[i] = -VM_SQRT2 * difference[i];
        return;
    }
    double xa[BESSEL_BLOCK], xb[BESSEL_BLOCK], log_xa[BESSEL_BLOCK], log_xb[BESSEL_BLOCK];
    double log_pa[BESSEL_BLOCK], log_pb[BESSEL_BLOCK];
    for (int i = 0; i < BESSEL_BLOCK; i++) {
        xa[i] = VM_SQRT2 * a[i];
        xb[i] = VM_SQRT2 * b[i];
    }
    sl_pieces(law, xa, log_xa, log_pa, NULL);
    sl_pieces(law, xb, log_xb, log_pb, NULL);
    for (int i = 0; i < BESSEL_BLOCK; i++) {
        double gap = VM_SQRT2 * difference[i];
        double step = vm_abs(gap) / vm_min(xa[i], xb[i]);
        double log_ratio = vm_log1p(vm_min(step, 1e300));
        log_ratio = step < 1e15 ? (gap < 0.0 ? -log_ratio : log_ratio) : log_xb[i] - log_xa[i];
        int small = xa[i] < 1.0;
        double slope = small ? law->slope_small : law->slope_large;
        double linear = small ? law->linear_small : 1.0;
        double together = log_pb[i] - log_pa[i] - slope * log_ratio - linear * gap;
        double apart = (sl_outer(law, xb[i], log_xb[i]) + log_pb[i]) - (sl_outer(law, xa[i], log_xa[i]) + log_pa[i]);
        double value = small == (xb[i] < 1.0) ? together : apart;
        value = xa[i] == 0.0 ? -INFINITY : value;
        value = xb[i] == 0.0 ? INFINITY : value;
        llr[i] = gap == 0.0 ? 0.0 : value;
    }
}

/* Entry points of sl_density.c; they answer a status where they can fail.
 *
 * zil_sl_logpdf: rows of x standardised by scale (d values > 0) or, if not null, by the Cholesky factor `lower` (d x
 * d); half_log_det is taken off.  zil_sl_llr: ZIL_NOT_FINITE if an entry of s is nan or infinite. */
ZIL_DECLARE(void, zil_sl_log_density, (long dim, long n, const double *r, double *log_g_out))
ZIL_DECLARE(int, zil_sl_logpdf,
            (long dim, long n, const double *x, const double *scale, const double *lower, double half_log_det,
             double *log_out))
ZIL_DECLARE(int, zil_sl_llr, (long dim, long n, const double *s, double c, double *llr_out))

static inline void zil_sl_log_density(int isa, long dim, long n, const double *r, double *log_g_out) {
    ZIL_DISPATCH(isa, zil_sl_log_density)(dim, n, r, log_g_out);
}

static inline int zil_sl_logpdf(int isa, long dim, long n, const double *x, const double *scale, const double *lower,
                                double half_log_det, double *log_out) {
    return ZIL_DISPATCH(isa, zil_sl_logpdf)(dim, n, x, scale, lower, half_log_det, log_out);
}

static inline int zil_sl_llr(int isa, long dim, long n, const double *s, double c, double *llr_out) {
    return ZIL_DISPATCH(isa, zil_sl_llr)(dim, n, s, c, llr_out);
}

#endif
