#include "limit_curve.h"

#include <math.h>

/* y > 0 with m y + log1p(y^2) = goal > 0, finite; by Newton in log y inside a shrinking bracket. */
static double solve(double m, double goal) {
    /* one of the two terms is at least half of the goal, and neither exceeds it */
    const double half = 0.5 * goal;
    double low = log(fmin(half / m, sqrt(expm1(fmin(half, 700.0)))));
    double high = log(fmin(goal / m, exp(half) * sqrt(-expm1(-goal))));
    double x = high;
    for (int step = 0; step < 100; step++) {
        const double y = exp(x), gap = m * y + log1p(y * y) - goal;
        if (gap < 0.0)
            low = x;
        if (gap > 0.0)
            high = x;
        const double slope = m * y + 2.0 / (1.0 + 1.0 / (y * y));
        /* Newton on log(m y + log1p(y^2)) against log y: nearly straight, so a few steps suffice */
        double next = x - log1p(gap / goal) * (gap + goal) / slope;
        if (next < low || next > high)
            next = 0.5 * (low + high);
        const double moved = fabs(next - x);
        x = next;
        if (moved <= 1e-9 * fmax(1.0, fabs(x))) /* what is left is the square of it */
            break;
    }
    return exp(x);
}

void zil_limit_beta(double m, long n, const double *alpha, const double *rest, double *beta_out) {
    for (long i = 0; i < n; i++) {
        if (!(alpha[i] > 0.0 && rest[i] > 0.0)) {
            beta_out[i] = alpha[i] <= 0.0 ? 1.0 : 0.0;
            continue;
        }
        const double goal = alpha[i] < 0.5 ? -log(alpha[i]) : -log1p(-rest[i]);
        const double y = goal > 0.0 ? solve(m, goal) : 0.0;
        beta_out[i] = exp(-m / y) / (1.0 + 1.0 / (y * y));
    }
}
