/* Piecewise Chebyshev series of one variable, read at a point or solved for one, and the trade-off curve made of them.
 *
 * A table has `panels` panels between `edges` (panels + 1, ascending) and on each the ZIL_PANEL_NODES coefficients of a
 * series and of its derivative; `node_x` and `node_value` are the places and values it was made from, panel by panel,
 * monotone.  zil/privacy/exact.py makes the tables and says what U, V and W are.
 *
 * Design: one point after the other, because every point has its own panel; the processor overlaps points.  The same
 * steps in numpy took 180 us for one point and 270 ns for one of many, most of it calls and gathers.
 */
#ifndef ZIL_PANELS_H
#define ZIL_PANELS_H

#define ZIL_PANEL_NODES 16

typedef struct {
    long panels;
    const double *edges, *node_x;
} zil_panels;

typedef struct {
    const double *series, *slopes, *node_value;
} zil_series;

/* The series at n places between the first and the last edge. */
void zil_panels_at(const zil_panels *on, const zil_series *what, long n, const double *x, double *value_out);

/* Where the series takes n values; the nearer end for a value that it does not take. */
void zil_panels_solve(const zil_panels *on, const zil_series *what, long n, const double *value, double *x_out);

/* Smallest type II errors at n type I errors alpha, rest = 1 - alpha.  U = log alpha, V = log(1 - beta) and W = log
 * beta as series of the threshold; `middle` is the alpha of threshold 0, beyond it the curve is its own mirror image.
 */
void zil_panels_beta(const zil_panels *on, const zil_series *u, const zil_series *v, const zil_series *w, double middle,
                     long n, const double *alpha, const double *rest, double *beta_out);

#endif
