#include "panels.h"

#include <math.h>

#define SETTLED 1e-9

enum { NODES = ZIL_PANEL_NODES, MOST_STEPS = 6 };

/* The last k in 0 .. n - 2 with sign x[k] <= sign value, or 0; x times the sign ascends.  `hint` is tried first, with
 * the one after it: questions often come in order. */
static long interval(const double *x, long n, double sign, double value, long *hint) {
    const double wanted = sign * value;
    for (long k = *hint; k < *hint + 2 && k < n - 1; k++)
        if (sign * x[k] <= wanted && wanted < sign * x[k + 1])
            return *hint = k;
    long low = 0, high = n - 1;
    while (high - low > 1) {
        const long middle = (low + high) / 2;
        if (sign * x[middle] <= wanted)
            low = middle;
        else
            high = middle;
    }
    return *hint = low;
}

/* Clenshaw's sum. */
static double chebyshev(const double *a, double x) {
    const double two_x = 2.0 * x;
    double b0 = a[NODES - 1], b1 = 0.0;
    for (int k = NODES - 2; k > 0; k--) {
        const double next = two_x * b0 - b1 + a[k];
        b1 = b0;
        b0 = next;
    }
    return x * b0 - b1 + a[0];
}

/* Where the last question was answered. */
typedef struct {
    long panel, node;
} hints;

/* The panel of a place, and the place on [-1, 1] within it. */
static long place(const zil_panels *on, double x, double *inside, hints *last) {
    const long k = interval(on->edges, on->panels + 1, 1.0, x, &last->panel);
    const double left = on->edges[k], right = on->edges[k + 1];
    *inside = (2.0 * x - left - right) / (right - left);
    return k;
}

static double at(const zil_panels *on, const zil_series *what, double x, hints *last) {
    double inside;
    const long k = place(on, x, &inside, last);
    return chebyshev(what->series + k * NODES, inside);
}

/* Between the two nodes around the value, linearly. */
static double between_nodes(const zil_panels *on, const zil_series *what, double value, hints *last) {
    const long n = on->panels * NODES;
    const double *node = what->node_value, *x = on->node_x;
    const double sign = node[0] < node[n - 1] ? 1.0 : -1.0;
    if (sign * value <= sign * node[0])
        return x[0];
    if (sign * value >= sign * node[n - 1])
        return x[n - 1];
    const long k = interval(node, n, sign, value, &last->node);
    const double step = node[k + 1] - node[k];
    return step == 0.0 ? x[k] : x[k] + (x[k + 1] - x[k]) * ((value - node[k]) / step);
}

/* From there by Newton's method within the table: a step below SETTLED leaves its square, far below rounding. */
static double solve(const zil_panels *on, const zil_series *what, double value, hints *last) {
    const double least = on->edges[0], most = on->edges[on->panels];
    double x = between_nodes(on, what, value, last);
    for (int step = 0; step < MOST_STEPS; step++) {
        double inside;
        const long k = place(on, x, &inside, last);
        const double gap = chebyshev(what->series + k * NODES, inside) - value;
        const double slope = chebyshev(what->slopes + k * NODES, inside);
        double next = slope != 0.0 ? x - gap / slope : x;
        next = next < least ? least : next > most ? most : next;
        const double moved = fabs(next - x);
        x = next;
        if (moved <= SETTLED * (1.0 + x))
            break;
    }
    return x;
}

void zil_panels_at(const zil_panels *on, const zil_series *what, long n, const double *x, double *value_out) {
    hints last = {0, 0};
    for (long i = 0; i < n; i++)
        value_out[i] = at(on, what, x[i], &last);
}

void zil_panels_solve(const zil_panels *on, const zil_series *what, long n, const double *value, double *x_out) {
    hints last = {0, 0};
    for (long i = 0; i < n; i++)
        x_out[i] = solve(on, what, value[i], &last);
}

void zil_panels_beta(const zil_panels *on, const zil_series *u, const zil_series *v, const zil_series *w, double middle,
                     long n, const double *alpha, const double *rest, double *beta_out) {
    hints last = {0, 0};
    for (long i = 0; i < n; i++) {
        const double a = alpha[i], r = rest[i];
        if (!(a > 0.0 && r > 0.0)) {
            beta_out[i] = a <= 0.0 ? 1.0 : 0.0;
        } else if (a <= middle) {
            const double x = solve(on, u, log(a), &last), log_beta = at(on, w, x, &last);
            /* near 1 the complement has more digits */
            beta_out[i] = log_beta < -0.5 ? exp(log_beta) : -expm1(at(on, v, x, &last));
        } else {
            const double x = a < 0.5 ? solve(on, w, log(a), &last) : solve(on, v, log(r), &last);
            beta_out[i] = exp(at(on, u, x, &last));
        }
    }
}
