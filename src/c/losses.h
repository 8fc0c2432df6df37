/* Scalar losses phi(t), one block each, and the table the loops are stamped from.
 *
 * Design: every loss people use is a function of one number t (a residual or a minus-margin),
 * so a loss is a handful of scalar formulas and the row loop is written once (objective.c).
 * A block offers
 *
 *   NAME_plain(t, p)  -> { phi, phi', phi'', phi''', phi'''' }   derivatives exist where the
 *                        loss is smooth; at a kink phi' is the mean of both sides, phi'' is 0
 *   NAME_smooth(t, s, p) -> the loss smoothed by Laplace noise of scale s > 0,
 *                        u(t, q) = E phi(t + L), q = s^2, density of L exp(-|z|/s)/(2s),
 *                        which solves u - q u_tt = phi:  { u, u_t, u_tt, u_q, u_tq, u_qq }
 *
 * Absolute, quantile and hinge loss are one block: A max(t,0) + B max(-t,0).  The check loss of the comparator sCL has
 * no smoothed form: it is corrected by SL only.
 * Formulas: docs/proof_rao_blackwell.md.  Adding a loss: one block, one row in ZIL_LOSSES,
 * one class in zil/estimation/losses/compiled.py.
 */
#ifndef ZIL_LOSSES_H
#define ZIL_LOSSES_H

#include "softplus_smooth.h"
#include "vmath.h"

typedef struct {
    double f0, f1, f2, f3, f4;
} zil_plain;

typedef struct {
    double u, t, tt, q, tq, qq;
} zil_smooth;

/* p[0..1]: constants of the loss; table: the smoothed softplus on its grid (others ignore it). */
typedef struct {
    double p[2];
    const double *table;
} zil_loss_args;

/* X(number, name): losses that have both forms, and those that have the plain one only */
#define ZIL_LOSSES(X)                                                                              \
    X(0, square)                                                                                   \
    X(1, kink)                                                                                     \
    X(2, huber)                                                                                    \
    X(3, softplus)                                                                                 \
    X(4, square_plus)                                                                              \
    X(5, exponential)
#define ZIL_PLAIN_LOSSES(X) X(6, soft_check)

/* t^2 / 2 */
VM_INLINE zil_plain square_plain(double t, const zil_loss_args *g) {
    (void)g;
    zil_plain r = {0.5 * t * t, t, 1.0, 0.0, 0.0};
    return r;
}

VM_INLINE zil_smooth square_smooth(double t, double s, const zil_loss_args *g) {
    (void)g;
    zil_smooth r = {0.5 * t * t + s * s, t, 1.0, 1.0, 0.0, 0.0};
    return r;
}

/* A max(t, 0) + B max(-t, 0): p = {A, B} */
VM_INLINE zil_plain kink_plain(double t, const zil_loss_args *g) {
    double up = g->p[0], down = g->p[1];
    double slope = t > 0.0 ? up : -down;
    slope = t == 0.0 ? 0.5 * (up - down) : slope;
    zil_plain r = {slope * t, slope, 0.0, 0.0, 0.0};
    return r;
}

VM_INLINE zil_smooth kink_smooth(double t, double s, const zil_loss_args *g) {
    double up = g->p[0], down = g->p[1], jump = up + down;
    double x = vm_abs(t) / s, e = vm_exp(-x);
    double sign = t > 0.0 ? 1.0 : -1.0;
    sign = t == 0.0 ? 0.0 : sign;
    double slope = t > 0.0 ? up : -down;
    double plain_slope = t == 0.0 ? 0.5 * (up - down) : slope;
    double per = 0.25 * jump * e / s;
    zil_smooth r;
    r.u = slope * t + 0.5 * jump * s * e;
    r.t = plain_slope - 0.5 * jump * sign * e;
    r.tt = 2.0 * per;
    r.q = per * (1.0 + x);
    r.tq = -per * sign * x / s;
    r.qq = 0.5 * per * (x * x - x - 1.0) / (s * s);
    return r;
}

/* t^2/2 for |t| <= k, k|t| - k^2/2 beyond: p = {k} */
VM_INLINE zil_plain huber_plain(double t, const zil_loss_args *g) {
    double k = g->p[0];
    double c = t > k ? k : t;
    c = c < -k ? -k : c;
    zil_plain r = {c * (t - 0.5 * c), c, vm_abs(t) < k ? 1.0 : 0.0, 0.0, 0.0};
    return r;
}

VM_INLINE zil_smooth huber_smooth(double t, double s, const zil_loss_args *g) {
    double k = g->p[0], a = vm_abs(t);
    double x1 = vm_abs(a - k) / s, x2 = (a + k) / s;
    double e1 = vm_exp(-x1), e2 = vm_exp(-x2);
    double sign = t < 0.0 ? -1.0 : 1.0;
    double inside = a < k ? 1.0 : 0.0, toward = a < k ? -1.0 : 1.0;
    zil_plain f = huber_plain(t, g);
    double q = s * s;
    zil_smooth r;
    r.tt = inside + 0.5 * (toward * e1 - e2);
    r.u = f.f0 + q * r.tt;
    r.t = f.f1 - 0.5 * s * sign * (e1 - e2);
    r.q = inside + 0.5 * (toward * (1.0 + 0.5 * x1) * e1 - (1.0 + 0.5 * x2) * e2);
    r.tq = 0.25 * sign * ((1.0 + x2) * e2 - (1.0 + x1) * e1) / s;
    r.qq = 0.125 * (toward * x1 * (1.0 + x1) * e1 - x2 * (1.0 + x2) * e2) / q;
    return r;
}

/* log(1 + exp(t)) */
VM_INLINE zil_plain softplus_from_exp(double t, double e) { /* e = exp(-|t|) */
    double one = 1.0 + e;
    double r = 1.0 / one;
    double lower = e * r;
    double sigma = t >= 0.0 ? r : lower;
    double d2 = lower * r;
    zil_plain out;
    out.f0 = vm_max(t, 0.0) + (vm_log(one) + (e - (one - 1.0)) * r); /* log1p(e), its division shared */
    out.f1 = sigma;
    out.f2 = d2;
    out.f3 = d2 * (t >= 0.0 ? lower - r : r - lower);
    out.f4 = d2 * (1.0 - 6.0 * d2);
    return out;
}

VM_INLINE zil_plain softplus_plain(double t, const zil_loss_args *g) {
    (void)g;
    return softplus_from_exp(t, vm_exp(-vm_abs(t)));
}

VM_INLINE zil_smooth softplus_smooth(double t, double s, const zil_loss_args *g) {
    zil_smooth r;
    (void)s;
    zil_softplus_read(g->table, t, &r.u, &r.t, &r.tt, &r.q, &r.tq, &r.qq);
    return r;
}

/* max(t, 0)^2 / 2 */
VM_INLINE zil_plain square_plus_plain(double t, const zil_loss_args *g) {
    (void)g;
    double c = vm_max(t, 0.0);
    zil_plain r = {0.5 * c * c, c, t > 0.0 ? 1.0 : 0.0, 0.0, 0.0};
    return r;
}

VM_INLINE zil_smooth square_plus_smooth(double t, double s, const zil_loss_args *g) {
    (void)g;
    double x = vm_abs(t) / s, e = vm_exp(-x), c = vm_max(t, 0.0);
    double inside = t >= 0.0 ? 1.0 : 0.0, side = t >= 0.0 ? -0.5 : 0.5;
    zil_smooth r;
    r.tt = inside + side * e;
    r.u = 0.5 * c * c + s * s * r.tt;
    r.t = c + 0.5 * s * e;
    r.q = inside + side * (1.0 + 0.5 * x) * e;
    r.tq = 0.25 * (1.0 + x) * e / s;
    r.qq = 0.25 * side * x * (1.0 + x) * e / (s * s);
    return r;
}

/* exp(t); smoothed only for s < 1, which the caller checks */
VM_INLINE zil_plain exponential_plain(double t, const zil_loss_args *g) {
    (void)g;
    double e = vm_exp(t);
    zil_plain r = {e, e, e, e, e};
    return r;
}

VM_INLINE zil_smooth exponential_smooth(double t, double s, const zil_loss_args *g) {
    (void)g;
    double k = 1.0 / (1.0 - s * s), u = vm_exp(t) * k;
    zil_smooth r = {u, u, u, u * k, u * k, 2.0 * u * k * k};
    return r;
}

/* t (tau - 1 + Phi(t/h)), Phi the normal distribution: p = {tau, h} */
VM_INLINE zil_plain soft_check_plain(double t, const zil_loss_args *g) {
    double h = g->p[1], z = t / h;
    z = z > 40.0 ? 40.0 : z; /* the density is 0 beyond 38, and 0 times infinity must not be formed */
    z = z < -40.0 ? -40.0 : z;
    double square = z * z, density = vm_normal_density(z), per = density / h;
    double level = g->p[0] - 1.0 + vm_normal_cdf(z, density);
    zil_plain r;
    r.f0 = t * level;
    r.f1 = level + z * density;
    r.f2 = per * (2.0 - square);
    r.f3 = per * z * (square - 4.0) / h;
    r.f4 = per * (7.0 * square - square * square - 4.0) / (h * h);
    return r;
}

#endif
