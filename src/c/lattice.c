#include "lattice.h"

/* Round half to even without a library call: exact for |x| < 2^51. */
static inline double nearest(double x) {
    const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
    return (x + shift) - shift;
}

static inline double clip(double x, double low, double high) {
    x = x < low ? low : x;
    return x > high ? high : x;
}

void ZIL_NAME(zil_lattice_to_ticks)(long n, long len, const double *low, const double *high, const double *tick,
                                    const double *inverse, const double *x, double *out) {
    for (long start = 0; start < n; start += len) {
        const long size = n - start < len ? n - start : len;
        const double *restrict from = x + start;
        double *restrict to = out + start;
        if (inverse)
            for (long i = 0; i < size; i++)
                to[i] = nearest(clip(from[i], low[i], high[i]) * inverse[i]);
        else
            for (long i = 0; i < size; i++)
                to[i] = nearest(clip(from[i], low[i], high[i]) / tick[i]);
    }
}

void ZIL_NAME(zil_lattice_to_values)(long n, long len, const double *tick, double *counts) {
    for (long start = 0; start < n; start += len) {
        const long size = n - start < len ? n - start : len;
        double *restrict at = counts + start;
        for (long i = 0; i < size; i++)
            at[i] = nearest(at[i]) * tick[i] + 0.0;
    }
}
