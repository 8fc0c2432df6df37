/* Values to ticks of a public lattice and back. */
#ifndef ZIL_LATTICE_H
#define ZIL_LATTICE_H

#include "isa.h"

/* One run of rows: every pointer holds `len` parameters, one per number of the run, the table n numbers.
 *
 * to_ticks: out = round(clip(x, low, high) / tick); inverse holds 1/tick where that is exact (ticks
 * are powers of two), else it is null.  Quotients lie below 2^51 in size.  nan stays nan.
 * to_values: counts, rounded, times tick, in place; a negative zero becomes zero. */
ZIL_DECLARE(void, zil_lattice_to_ticks,
            (long n, long len, const double *low, const double *high, const double *tick, const double *inverse,
             const double *x, double *out))
ZIL_DECLARE(void, zil_lattice_to_values, (long n, long len, const double *tick, double *counts))

static inline void zil_lattice_to_ticks(int isa, long n, long len, const double *low, const double *high,
                                        const double *tick, const double *inverse, const double *x, double *out) {
    ZIL_DISPATCH(isa, zil_lattice_to_ticks)(n, len, low, high, tick, inverse, x, out);
}

static inline void zil_lattice_to_values(int isa, long n, long len, const double *tick, double *counts) {
    ZIL_DISPATCH(isa, zil_lattice_to_values)(n, len, tick, counts);
}

#endif
