/* Exact type I error of the likelihood-ratio test between two symmetric Laplace laws at distance c.
 *
 * P = SL_d(I), Q = the same moved by c along the first axis, d >= 2.  With a = |s|, b = |s - c e1|
 * the test with threshold log k = t > 0 rejects where log g(b) - log g(a) > t, a region around the
 * shift, and (proof: docs/proof_exact_curve.md)
 *
 *   alpha(t) = Int p_R(a) H(x(a)) da,   x = (a^2 + c^2 - b(a)^2)/(2 a c),   log g(b(a)) = log g(a) + t
 *
 * over a from c - b_low to c + b_high (infinite for t <= sqrt(2) c); p_R is the density of |s|, H(x)
 * the share of the unit sphere whose first coordinate exceeds x.  Beyond the paper: mathematics 3.4.
 *
 * Design: everything in logarithms, relative to the region.  The variable of integration is
 * eta = log y with a - a_low = width y/(1 + kappa y): both ends become exponentially decaying
 * tails, so the trapezoid rule on the part of the axis that carries the integral converges
 * exponentially, whether the region is a half-space, a paraboloid or a speck of size 1e-300
 * around the shift.  Blocks of nodes go through the density kernel together; b(a) comes from a third
 * order iteration in log(a/b) that uses the Bessel equation for its second derivative.
 */
#ifndef ZIL_TRADEOFF_H
#define ZIL_TRADEOFF_H

#include "isa.h"
#include "status.h"

/* log alpha(t) for n thresholds t > 0 (ascending or not) and an estimate of the relative error of each. */
ZIL_DECLARE(int, zil_tradeoff_tail,
            (long dim, double c, long n, const double *t, double *log_alpha_out, double *error_out))

static inline int zil_tradeoff_tail(int isa, long dim, double c, long n, const double *t, double *log_alpha_out,
                                    double *error_out) {
    return ZIL_DISPATCH(isa, zil_tradeoff_tail)(dim, c, n, t, log_alpha_out, error_out);
}

#endif
