/* The softplus log(1 + e^t) smoothed by Laplace noise: u(t, q) = E softplus(t + L), L of scale s, q = s^2.
 *
 * There is no elementary form.  For one s the function, its q-derivative v = u_q and v's
 * q-derivative w = u_qq are tabulated as Taylor polynomials around the nodes of a fixed grid,
 * so that a row costs two or three short polynomials and no exp.
 *
 * Design: u, u_t, u_q keep *relative* accuracy (about 1e-13) everywhere, also far left where
 * u is tiny, because only sums of positive numbers are formed.
 *   s < 1/16:  the series u = sum_i q^i phi^(2i) (asymptotic, smallest term far below 1 ulp);
 *   s >= 1/16: one-sided integrals F+-(t) = Int_0^inf phi(t +- s x) e^-x dx by a recursion over the
 *              grid with exact incomplete-gamma weights, then u^(m+2) = (u^(m) - phi^(m))/q.
 * The grid covers -T <= t <= 0; softplus(t) = t + softplus(-t) gives the rest, and beyond T closed forms.
 * Against quadrature per row (64 nodes for 1e-10 at s = 1.5) this is some fifty times less work.
 * Derivation: docs/proof_rao_blackwell.md.
 */
#ifndef ZIL_SOFTPLUS_SMOOTH_H
#define ZIL_SOFTPLUS_SMOOTH_H

#include "vmath.h"

#define ZIL_SP_T 40.0
#define ZIL_SP_PER_UNIT 4 /* nodes per unit of t */
#define ZIL_SP_NODES (40 * ZIL_SP_PER_UNIT + 1)
#define ZIL_SP_ORDER 28 /* softplus derivatives kept per node: orders 0 .. 28 */
#define ZIL_SP_DEGREE 8 /* degree of the local polynomials of u, v and w */
#define ZIL_SP_ROW (ZIL_SP_DEGREE + 1)
#define ZIL_SP_HEAD 16
#define ZIL_SP_TAYLOR_SIZE (ZIL_SP_NODES * (ZIL_SP_ORDER + 1))
#define ZIL_SP_TABLE_SIZE (ZIL_SP_HEAD + 3 * ZIL_SP_NODES * ZIL_SP_ROW)

/* Derivatives 0..ORDER of softplus at every node -T + k/4; depends on nothing, made once. */
void zil_softplus_taylor(double *taylor_out);
/* The table for one q > 0; with_w also fills w = u_qq (needed by Hessians only). */
void zil_softplus_table(const double *taylor, double q, int with_w, double *table_out);
/* u and its derivatives for |t| > T, where the grid ends. */
void zil_softplus_tail(const double *table, double t, double *u, double *ut, double *utt, double *uq, double *utq,
                       double *uqq);

VM_INLINE int zil_softplus_outside(double t) { return vm_abs(t) > ZIL_SP_T; }

/* Inside the grid (t is clamped to it): branch-free. */
VM_INLINE void zil_softplus_read(const double *table, double t, double *u, double *ut, double *utt, double *uq,
                                 double *utq, double *uqq) {
    double a = -vm_abs(t);
    a = a < -ZIL_SP_T ? -ZIL_SP_T : a;
    double kd = (a + ZIL_SP_T) * ZIL_SP_PER_UNIT + VM_MAGIC;
    int64_t k = (int64_t)(vm_bits(kd) & 0xff);
    double x = (a + ZIL_SP_T) - (kd - VM_MAGIC) * (1.0 / ZIL_SP_PER_UNIT);
    const double *c = table + ZIL_SP_HEAD + k * ZIL_SP_ROW;
    const double *d = c + ZIL_SP_NODES * ZIL_SP_ROW;
    const double *e = d + ZIL_SP_NODES * ZIL_SP_ROW;
    double f0 = c[8], f1 = 0.0, f2 = 0.0, g0 = d[8], g1 = 0.0, h0 = e[8];
#define ZIL_SP_STEP(j)  \
    f2 = f2 * x + f1;   \
    f1 = f1 * x + f0;   \
    f0 = f0 * x + c[j]; \
    g1 = g1 * x + g0;   \
    g0 = g0 * x + d[j]; \
    h0 = h0 * x + e[j];
    ZIL_SP_STEP(7)
    ZIL_SP_STEP(6)
    ZIL_SP_STEP(5)
    ZIL_SP_STEP(4)
    ZIL_SP_STEP(3)
    ZIL_SP_STEP(2)
    ZIL_SP_STEP(1)
    ZIL_SP_STEP(0)
#undef ZIL_SP_STEP
    double right = t > 0.0 ? 1.0 : 0.0;
    *u = f0 + (t > 0.0 ? t : 0.0);
    *ut = right + (t > 0.0 ? -f1 : f1);
    *utt = 2.0 * f2;
    *uq = g0;
    *utq = t > 0.0 ? -g1 : g1;
    *uqq = h0;
}

#endif
