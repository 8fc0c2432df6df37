#include "tradeoff.h"

#include "sl_density.h"

/* Compiled once per instruction set; see isa.h. */

#define B BESSEL_BLOCK
#define SHARE_TERMS 23
#define MAX_LOG 690.0 /* largest |log| of a ratio of radii; beyond, the region has no mass in a double */
#define DROP 37.0     /* exp(-DROP) of the peak is where an integral is cut off */
#define MAX_STEPS 40
#define NEAR 0.004   /* log(a/b) below which the Taylor series is used: truncation 2e-14 */
#define EMPTY -1e300 /* log of an integrand outside the region (rounding at its ends) */

typedef struct {
    sl_law law;
    double c;
    double log_sphere;         /* log of the area of the unit sphere */
    double share[SHARE_TERMS]; /* Chebyshev series of the sphere share, see share_make */
    double share_rate, share_low, share_log;
} curve;

/* ---- share of the sphere ------------------------------------------------------------------- */

/* 2F1(2p, 1; p + 1; z) for 0 <= z <= 1/2: the continued fraction of the incomplete beta function I_z(p, p). */
static double share_fraction(double p, double z) {
    double f = 1.0;
    for (long m = 200 + (long)(20.0 * sqrt(p)); m >= 0; m--) {
        double odd = -(p + m) * (2.0 * p + m) * z / ((p + 2.0 * m) * (p + 2.0 * m + 1.0));
        f = 1.0 + odd / f;
        if (m > 0)
            f = 1.0 + m * (p - m) * z / ((p + 2.0 * m - 1.0) * (p + 2.0 * m)) / f;
    }
    return 1.0 / f;
}

/* H(x) = I_z(p, p) = (z (1-z))^p F(z)/(p B(p,p)), z = (1-x)/2, p = (d-1)/2.  F behaves like a Mills
 * ratio in x sqrt(p): in w = 1/(1 + x sqrt(p)/2) the quotient F/w is smooth, and 23 Chebyshev terms
 * give it to 1e-14 for every dimension.  The constant comes from H(0) = 1/2. */
static void share_make(curve *q) {
    double p = 0.5 * (double)(q->law.dim - 1);
    double rate = 0.5 * sqrt(p), low = 1.0 / (1.0 + rate), value[SHARE_TERMS];
    for (int k = 0; k < SHARE_TERMS; k++) {
        double w = low + 0.5 * (1.0 - low) * (cos(VM_PI * (k + 0.5) / SHARE_TERMS) + 1.0);
        double x = (1.0 / w - 1.0) / rate;
        value[k] = share_fraction(p, 0.5 * (1.0 - vm_min(vm_max(x, 0.0), 1.0))) / w;
    }
    for (int j = 0; j < SHARE_TERMS; j++) {
        double sum = 0.0;
        for (int k = 0; k < SHARE_TERMS; k++)
            sum += value[k] * cos(VM_PI * j * (k + 0.5) / SHARE_TERMS);
        q->share[j] = sum * (j ? 2.0 : 1.0) / SHARE_TERMS;
    }
    q->share_rate = rate;
    q->share_low = low;
    q->share_log = -SL_LOG_2 + 2.0 * p * SL_LOG_2 - log(share_fraction(p, 0.5));
}

/* log H(1 - q) for one block, 0 < q <= 1; q itself may have underflowed, its logarithm not. */
static void share_log(const curve *cv, const double *restrict q, const double *restrict log_q, double *restrict out) {
    double w[B], two_u[B], b0[B], b1[B];
    for (int i = 0; i < B; i++) {
        w[i] = 1.0 / (1.0 + cv->share_rate * (1.0 - q[i]));
        two_u[i] = 4.0 * (w[i] - cv->share_low) / (1.0 - cv->share_low) - 2.0;
        b0[i] = cv->share[SHARE_TERMS - 1];
        b1[i] = 0.0;
    }
    for (int k = SHARE_TERMS - 2; k > 0; k--)
        for (int i = 0; i < B; i++) {
            double next = two_u[i] * b0[i] - b1[i] + cv->share[k];
            b1[i] = b0[i];
            b0[i] = next;
        }
    double p = 0.5 * (double)(cv->law.dim - 1);
    for (int i = 0; i < B; i++) {
        double series = 0.5 * two_u[i] * b0[i] - b1[i] + cv->share[0];
        out[i] = p * (log_q[i] + vm_log(0.25 * (2.0 - q[i]))) + vm_log(series * w[i]) + cv->share_log;
    }
}

static void curve_make(curve *cv, long dim, double c) {
    cv->law = sl_law_make(dim);
    cv->c = c;
    cv->log_sphere = SL_LOG_2 + 0.5 * (double)dim * (SL_LOG_2PI - SL_LOG_2) - lgamma(0.5 * (double)dim);
    share_make(cv);
}

/* ---- the boundary of the region ------------------------------------------------------------ */

/* exp(z) - 1 for z <= 0. */
VM_INLINE double minus_expm1(double z) {
    double p = 1.0 / 479001600.0;
    p = p * z + 1.0 / 39916800.0;
    p = p * z + 1.0 / 3628800.0;
    p = p * z + 1.0 / 362880.0;
    p = p * z + 1.0 / 40320.0;
    p = p * z + 1.0 / 5040.0;
    p = p * z + 1.0 / 720.0;
    p = p * z + 1.0 / 120.0;
    p = p * z + 1.0 / 24.0;
    p = p * z + 1.0 / 6.0;
    p = p * z + 0.5;
    p = p * z + 1.0;
    return z > -0.35 ? p * z : vm_exp(z) - 1.0;
}

/* log g of a radius given by its pieces, minus that of another; log_ratio and gap are log(xb/xa), xb - xa. */
VM_INLINE double difference(const sl_law *law, double xa, double log_xa, double log_pa, double xb, double log_xb,
                            double log_pb, double log_ratio, double gap) {
    int small = xa < 1.0;
    double slope = small ? law->slope_small : law->slope_large;
    double linear = small ? law->linear_small : 1.0;
    double together = log_pb - log_pa - slope * log_ratio - linear * gap;
    double apart = (sl_outer(law, xb, log_xb) + log_pb) - (sl_outer(law, xa, log_xa) + log_pa);
    return small == (xb < 1.0) ? together : apart;
}

/* v = log(a/b) with log g(b) = log g(a) + t, for one block of radii xa = sqrt(2) a.  In v the left side is
 * concave and increasing: t/slope(0) is a lower bound, and third-order steps from there settle in a few rounds.
 *
 * With l = log x and s = -d log g/dl the Bessel equation reads ds/dl = s^2 - 2 nu s - x^2; it gives the second
 * derivative of a step, and five terms of the Taylor series at a, which replace the difference of two
 * logarithms where that would cancel (t below 1: the terms carry rounding of size t^k/k!). */
static int boundary(const curve *cv, double t, const double *xa, const double *log_xa, const double *log_pa,
                    const double *ratio_a, double *v) {
    const sl_law *law = &cv->law;
    double lower[B], xb[B], log_xb[B], log_pb[B], ratio[B], step[B], s0[B], s1[B], s2[B], s3[B], s4[B];
    double two_nu = 2.0 * law->nu, noise = 1e-13 + 4e-15 * (double)law->dim;
    for (int i = 0; i < B; i++) {
        double square = xa[i] * xa[i], s = xa[i] * ratio_a[i], twice = 2.0 * s - two_nu;
        s0[i] = s;
        s1[i] = s * s - two_nu * s - square;
        s2[i] = twice * s1[i] - 2.0 * square;
        s3[i] = twice * s2[i] + 2.0 * s1[i] * s1[i] - 4.0 * square;
        s4[i] = twice * s3[i] + 6.0 * s1[i] * s2[i] - 8.0 * square;
        double bottom = s - 0.5 * t * s1[i] / s;
        lower[i] = t / s;
        v[i] = vm_min(bottom > 0.3 * s ? t / bottom : 2.0 * lower[i], MAX_LOG);
    }
    for (int round = 0; round < MAX_STEPS; round++) {
        for (int i = 0; i < B; i++)
            xb[i] = vm_max(xa[i] * vm_exp(-v[i]), 1e-305);
        sl_pieces(law, xb, log_xb, log_pb, ratio);
        double worst = 0.0;
        for (int i = 0; i < B; i++) {
            double u = v[i], gap = xa[i] * minus_expm1(-u);
            double f = difference(law, xa[i], log_xa[i], log_pa[i], xb[i], log_xa[i] - u, log_pb[i], -u, gap) - t;
            double series = s0[i] - u / 2.0 * (s1[i] - u / 3.0 * (s2[i] - u / 4.0 * (s3[i] - u / 5.0 * s4[i])));
            int near = u < NEAR && t < 1.0;
            f = near ? u * series - t : f;
            double s = xb[i] * ratio[i];
            double bend = s * s - two_nu * s - xb[i] * xb[i];
            double correction = vm_max(1.0 + 0.5 * f * bend / (s * s), 0.3);
            double next = u - f / (s * correction);
            next = vm_min(vm_max(next, lower[i]), MAX_LOG);
            /* a residual at rounding level is as good as settled; its step is taken all the same */
            step[i] = vm_abs(f) < (near ? 1e-14 * t : noise + 1e-15 * xa[i]) ? 0.0 : vm_abs(next - u) / next;
            v[i] = next;
        }
        for (int i = 0; i < B; i++)
            worst = vm_max(worst, step[i]);
        if (worst < 3e-6)
            return ZIL_OK;
    }
    return ZIL_NO_ROOT;
}

/* Root of a decreasing function of w = log b for one block of thresholds, by Newton steps in a bracket:
 * log g(b) - log g(c + side b) = t.  side = -1: towards the origin; +1: away from it. */
static int end_of_region(const curve *cv, const double *t, double side, double *low, double *high, double *w) {
    const sl_law *law = &cv->law;
    double b[B], far[B], log_b[B], log_far[B], score_b[B], score_far[B], step[B];
    for (int i = 0; i < B; i++)
        w[i] = high[i];
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < B; i++) {
            b[i] = vm_exp(w[i]);
            far[i] = cv->c + side * b[i];
        }
        sl_block(law, b, log_b, score_b);
        sl_block(law, far, log_far, score_far);
        for (int i = 0; i < B; i++) {
            double f = log_b[i] - log_far[i] - t[i];
            double slope = b[i] * (side * score_far[i] - score_b[i]);
            low[i] = f > 0.0 ? w[i] : low[i];
            high[i] = f > 0.0 ? high[i] : w[i];
            double next = w[i] - f / slope;
            next = next > low[i] && next < high[i] ? next : 0.5 * (low[i] + high[i]);
            step[i] = f == 0.0 ? 0.0 : vm_abs(next - w[i]);
            w[i] = f == 0.0 ? w[i] : next;
        }
        double worst = 0.0;
        for (int i = 0; i < B; i++)
            worst = vm_max(worst, step[i]);
        if (worst < 1e-14 * MAX_LOG)
            return ZIL_OK;
    }
    return ZIL_NO_ROOT;
}

/* ---- the integral -------------------------------------------------------------------------- */

typedef struct {
    double t, b_low, width, kappa;
} region;

/* Logarithm of the integrand in eta for one block. */
static int integrand(const curve *cv, const region *g, const double *eta, double *out) {
    const sl_law *law = &cv->law;
    double xa[B], log_xa[B], log_pa[B], ratio[B], v[B], offset[B], weight[B], q[B], log_q[B], inside[B];
    double c = cv->c;
    for (int i = 0; i < B; i++) {
        double y = vm_exp(eta[i]), room = 1.0 + g->kappa * y;
        offset[i] = g->width * y / room - g->b_low; /* a - c */
        xa[i] = VM_SQRT2 * (c + offset[i]);
        weight[i] = eta[i] - 2.0 * vm_log(room);
    }
    sl_pieces(law, xa, log_xa, log_pa, ratio);
    int status = boundary(cv, g->t, xa, log_xa, log_pa, ratio, v);
    for (int i = 0; i < B; i++) {
        double a = c + offset[i], b = a * vm_exp(-v[i]), inner = a * minus_expm1(-v[i]) + c; /* c - (a - b) */
        double first = b < 0.5 * a ? b - offset[i] : inner, second = b + offset[i];
        inside[i] = vm_min(first, second);
        double one = vm_max(first, 1e-305), two = vm_max(second, 1e-305), three = 2.0 * a * c;
        q[i] = vm_min(one / three * two, 1.0); /* 1 - x */
        log_q[i] = vm_min(vm_log(one) + vm_log(two) - vm_log(three), 0.0);
    }
    share_log(cv, q, log_q, out);
    double power = (double)(law->dim - 1), constant = cv->log_sphere - 0.5 * SL_LOG_2 * power + log(g->width);
    for (int i = 0; i < B; i++) {
        double radial = power * log_xa[i] + sl_outer(law, xa[i], log_xa[i]) + log_pa[i];
        out[i] = inside[i] > 0.0 ? radial + out[i] + weight[i] + constant : EMPTY;
    }
    return status;
}

typedef struct {
    double low, high; /* part of the axis that carries the integral, to start from */
} support;

/* Sums of exp(value - top) over the residues of i modulo 4. */
VM_INLINE void quarter_sums(const double *value, double top, double *sums) {
    double term[B];
    for (int i = 0; i < B; i++)
        term[i] = vm_exp(vm_min(value[i] - top, 700.0));
    for (int k = 0; k < 4; k++) {
        sums[k] = 0.0;
        for (int i = k; i < B; i += 4)
            sums[k] += term[i];
    }
}

/* log of the integral over the whole axis.
 *
 * One block of nodes is stretched or shrunk until it covers what lies above exp(-DROP) of the peak.
 * The trapezoid rule converges exponentially, so halving the step squares the error: a rule whose
 * every second node gives the same to 1e-6, and every fourth to 1e-2, is good to 1e-12.  Where one
 * block is not enough, nodes half-way between are added. */
static int integrate(const curve *cv, const region *g, support *where, double *log_out, double *error_out) {
    double eta[B], value[B], sums[4], low = where->low, high = where->high, top, h, sum, error;
    int status = ZIL_OK, first, last;
    for (int round = 0;; round++) {
        h = (high - low) / (B - 1);
        for (int i = 0; i < B; i++)
            eta[i] = low + h * i;
        status |= integrand(cv, g, eta, value);
        top = value[0];
        for (int i = 1; i < B; i++)
            top = vm_max(top, value[i]);
        if (top == EMPTY && round == 0) { /* the support of the last threshold does not fit at all */
            low = -60.0;
            high = 60.0;
            continue;
        }
        first = 0;
        last = B - 1;
        while (first < B - 1 && value[first] < top - DROP)
            first++;
        while (last > first && value[last] < top - DROP)
            last--;
        int open_low = first == 0 && low > -200.0, open_high = last == B - 1 && high < 200.0;
        if (round == 30 || !(open_low || open_high || last - first < B / 3))
            break;
        double left = open_low ? low - 0.5 * (high - low) - 1.0 : low + h * (first - 1);
        double right = open_high ? high + 0.5 * (high - low) + 1.0 : low + h * (last + 1);
        low = left;
        high = right;
    }
    where->low = low + h * (first - 3);
    where->high = low + h * (last + 3);
    quarter_sums(value, top, sums);
    sum = h * (sums[0] + sums[1] + sums[2] + sums[3]);
    error = vm_abs(2.0 * h * (sums[0] + sums[2]) - sum) / sum;
    double coarse = vm_abs(4.0 * h * sums[0] - sum) / sum;
    long n = B - 1; /* intervals */
    while (!(error < 1e-6 && coarse < 1e-2) && n < 64 * B) {
        double part = 0.0;
        for (long block = 0; block < n; block += B) {
            for (int i = 0; i < B; i++)
                eta[i] = low + h * ((double)(block + i) + 0.5);
            status |= integrand(cv, g, eta, value);
            for (long i = n - block; i < B; i++)
                value[i] = EMPTY;
            quarter_sums(value, top, sums);
            part += sums[0] + sums[1] + sums[2] + sums[3];
        }
        double next = 0.5 * (sum + h * part);
        coarse = error;
        error = vm_abs(next - sum) / next;
        sum = next;
        h *= 0.5;
        n *= 2;
    }
    *log_out = top == EMPTY ? -INFINITY : top + log(sum);
    *error_out = error * error + 1e-15;
    return status;
}

int ZIL_NAME(zil_tradeoff_tail)(long dim, double c, long n, const double *t, double *log_alpha_out, double *error_out) {
    curve cv;
    curve_make(&cv, dim, c);
    int status = ZIL_OK;
    support where = {-60.0, 60.0};
    for (long first = 0; first < n; first += B) {
        long count = n - first < B ? n - first : B;
        double level[B], low[B], high[B], near[B], away[B];
        for (int i = 0; i < B; i++) {
            level[i] = t[first + (i < count ? i : 0)];
            high[i] = log(0.5 * c);
            low[i] = high[i] - MAX_LOG;
        }
        status |= end_of_region(&cv, level, -1.0, low, high, near);
        /* beyond this radius there is no mass: the region may as well be infinite */
        double log_most = log(2000.0 + (double)dim);
        double asked[B];
        for (int i = 0; i < B; i++) {
            asked[i] = vm_max(level[i], VM_SQRT2 * c * (1.0 + 1e-12));
            low[i] = near[i];
            high[i] = vm_max(log_most, near[i]);
        }
        status |= end_of_region(&cv, asked, 1.0, low, high, away);
        for (long i = 0; i < count; i++) {
            region g;
            g.t = level[i];
            g.b_low = exp(near[i]);
            int bounded = level[i] > VM_SQRT2 * c && away[i] < log_most - 1e-6;
            double whole = g.b_low + exp(away[i]);
            g.width = bounded ? whole / (1.0 + whole) : 1.0;
            g.kappa = bounded ? g.width / whole : 0.0;
            if (near[i] < log(0.5 * c) - MAX_LOG + 1.0) {
                log_alpha_out[first + i] = -INFINITY;
                error_out[first + i] = 0.0;
            } else {
                status |= integrate(&cv, &g, &where, &log_alpha_out[first + i], &error_out[first + i]);
            }
        }
    }
    return status;
}
