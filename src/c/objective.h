/* One term of a corrected loss, summed over rows: value, gradient, per-row scores, Hessian.
 *
 * Design: a correction is numbers, not code.  A term is one data set (features, response,
 * row weights) and the coefficients of
 *
 *     F(t, Q) = a phi(t) + c Q phi''(t) + e u(t, q0 + kappa Q),   Q = w_y^2 + sum_j w_j^2 theta_j^2,
 *
 * where u is the loss smoothed by Laplace noise (losses.h).  naive, DR, SL, SDR, RB, truncated and
 * smoothed versions are sums of such terms; this file has heard of none of them.  A row enters as
 *
 *     t = k[0] + k[1] y + (k[2] + k[3] y) eta,     eta = intercept + x'theta,     plus  k[4] (a + e) y eta.
 *
 * Features are stored one after the other (d rows of length n): eta, gradient and Hessian are then
 * straight loops over rows that vectorise for any d, and columns need no padding.
 * Sums run over fixed chunks of ZIL_CHUNK rows in 16 lanes each; the caller folds the chunks in order,
 * so the result does not depend on the number of threads or on the instruction set.
 */
#ifndef ZIL_OBJECTIVE_H
#define ZIL_OBJECTIVE_H

#include <stddef.h>

#include "isa.h"

#define ZIL_CHUNK 4096
#define ZIL_BLOCK 256

typedef struct {
    int loss;            /* number in ZIL_LOSSES */
    double p[2];         /* constants of the loss */
    double k[5];         /* how y and eta make t */
    const double *table; /* smoothed softplus, or NULL */
    double a, c, e, q0, kappa;
} zil_term;

typedef struct {
    ptrdiff_t n, d;     /* rows, features */
    ptrdiff_t stride;   /* from a feature to the next one: n, or more for a range of a larger table */
    int intercept;      /* theta[0] is the intercept when set */
    const double *x;    /* (d, n), feature j at x + j stride */
    const double *y;    /* (n,) or NULL for 0 */
    const double *w;    /* (n,) row weights or NULL for 1 */
    const double *theta;
    const double *noise; /* (p,) squared noise scale of each parameter's feature; 0 for intercept and clean columns */
    double noise_y;      /* squared noise scale of the response */
} zil_rows;

/* Chunks first..last-1.  sums_out, one row per chunk of this call: [value, gradient (p)].
 * scores_out (n, p), may be NULL: the row scores are added to it. */
ZIL_DECLARE(void, zil_gradient_pass,
            (const zil_term *term, const zil_rows *rows, ptrdiff_t first, ptrdiff_t last, double *sums_out,
             double *scores_out))
/* sums_out, one row per chunk of this call: the Hessian's p(p+1)/2 lower-triangle entries, row by row. */
ZIL_DECLARE(void, zil_hessian_pass,
            (const zil_term *term, const zil_rows *rows, ptrdiff_t first, ptrdiff_t last, double *sums_out))

#define ZIL_PICK_GRADIENT(isa) ZIL_DISPATCH(isa, zil_gradient_pass)
#define ZIL_PICK_HESSIAN(isa) ZIL_DISPATCH(isa, zil_hessian_pass)

#endif
