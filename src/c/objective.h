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
 * Within a block features lie one after the other: eta, gradient and Hessian are then straight loops over rows
 * that vectorise for any d, and columns need no padding.  A table stored row by row is turned block by block
 * (about a quarter of the cost of a gradient), so nobody has to copy it.
 * Sums run over fixed chunks of ZIL_CHUNK rows in 16 lanes each; the caller folds the chunks in order,
 * so the result does not depend on the number of threads or on the instruction set.
 */
#ifndef ZIL_OBJECTIVE_H
#define ZIL_OBJECTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "isa.h"

#define ZIL_CHUNK 4096
#define ZIL_BLOCK 256
/* From one feature of a turned block to the next: not a power of two, or they would share cache sets. */
#define ZIL_TURNED (ZIL_BLOCK + 8)

typedef struct {
    int loss;            /* number in ZIL_LOSSES */
    double p[2];         /* constants of the loss */
    double k[5];         /* how y and eta make t */
    const double *table; /* smoothed softplus, or NULL */
    double a, c, e, q0, kappa;
} zil_term;

typedef struct {
    ptrdiff_t n, d;     /* rows, features */
    ptrdiff_t step;     /* from a row to the next one; 1: the values of a feature lie side by side */
    ptrdiff_t stride;   /* from a feature to the next one */
    int intercept;      /* theta[0] is the intercept when set */
    const double *x;    /* row i of feature j at x + i step + j stride */
    const double *y;    /* (n,) or NULL for 0 */
    const double *w;    /* (n,) row weights or NULL for 1 */
    const double *theta;
    const double *noise; /* (p,) squared noise scale of each parameter's feature; 0 for intercept and clean columns */
    double noise_y;      /* squared noise scale of the response */
} zil_rows;

/* What a pass adds up beyond value and gradient. */
enum {
    ZIL_HESSIAN = 1,
    ZIL_MEAT = 2, /* outer products of the joint row scores (all terms of a row added first) */
    ZIL_BEND = 4, /* sum and sum of squares of the rows' second derivatives along a direction */
};

/* Terms of one sample, row i of every data set belonging to row i of the others. */
typedef struct {
    int n_terms, want;
    const zil_term *terms;
    const zil_rows *rows;    /* one per term; n, d, intercept, theta and noise are the same in all */
    const double *centre;    /* (p,) taken off each feature in scores, 0 for the intercept; or NULL */
    const double *offset;    /* (p,) added to each score, times the row weight; or NULL */
    const double *direction; /* (p,), ZIL_BEND only */
} zil_pass;

/* Doubles that a pass needs as scratch. */
#define ZIL_SCRATCH(d) ((2 * (d) + 1) * ZIL_TURNED)

/* Numbers per chunk: value, gradient (p), Hessian (lower triangle, row by row), meat (the same), bend (2). */
ZIL_DECLARE(ptrdiff_t, zil_sums_width, (ptrdiff_t p, int want))
/* Chunks first..last-1, one row of sums_out each. */
ZIL_DECLARE(void, zil_sums_pass,
            (const zil_pass *pass, ptrdiff_t first, ptrdiff_t last, double *scratch, double *sums_out))
/* The joint scores of the rows of these chunks, scores_out (n, p); or with ZIL_BEND their second derivatives along the
 * direction, (n, 1). */
ZIL_DECLARE(void, zil_scores_pass,
            (const zil_pass *pass, ptrdiff_t first, ptrdiff_t last, double *scratch, double *scores_out))

/* Second moments of (1, features, response if there is one) about centre (its first entry is not read), weighted: the
 * lower triangle row by row, one row of sums_out per chunk.  Scratch as above, with room for two columns more. */
ZIL_DECLARE(void, zil_moments_pass,
            (const zil_rows *rows, const double *centre, ptrdiff_t first, ptrdiff_t last, double *scratch,
             double *sums_out))

/* Rows of a further data set that lie in some shell of the public box, grouped by the chunk of their sample row. */
typedef struct {
    zil_term term; /* without noise terms */
    zil_rows rows;
    const ptrdiff_t *starts;    /* (chunks + 1,) first stored row of each chunk of the sample */
    const int32_t *index;       /* row of the sample */
    const unsigned char *slot;  /* which group of columns the score of the row is added to, 1 .. n_slots - 1 */
} zil_shells;

#define ZIL_MAX_FOLDS 16
#define ZIL_TALL (ZIL_CHUNK + 8)
/* Doubles that a level pass needs as scratch: k = n_slots p + 1. */
#define ZIL_LEVEL_SCRATCH(d, k) ((d) * ZIL_TURNED + (k) * ZIL_TALL)
/* Joint scores of each row, slot by slot: the terms of the pass in slot 0, the sets in theirs, the row weight as a last
 * column.  For each chunk and fold (row number mod n_folds) the k sums and, with ZIL_MEAT, their outer products. */
ZIL_DECLARE(void, zil_level_pass,
            (const zil_pass *pass, const zil_shells *sets, int n_sets, int n_slots, int n_folds, ptrdiff_t first,
             ptrdiff_t last, double *scratch, double *sums_out))

#define ZIL_PICK_LEVELS(isa) ZIL_DISPATCH(isa, zil_level_pass)
#define ZIL_PICK_MOMENTS(isa) ZIL_DISPATCH(isa, zil_moments_pass)
#define ZIL_PICK_WIDTH(isa) ZIL_DISPATCH(isa, zil_sums_width)
#define ZIL_PICK_SUMS(isa) ZIL_DISPATCH(isa, zil_sums_pass)
#define ZIL_PICK_SCORES(isa) ZIL_DISPATCH(isa, zil_scores_pass)

#endif
