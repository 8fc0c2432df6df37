/* The elementary functions of vmath.h over an array, for the accuracy tests. */
#ifndef ZIL_PROBE_H
#define ZIL_PROBE_H

#include "isa.h"

enum { ZIL_PROBE_EXP, ZIL_PROBE_LOG, ZIL_PROBE_LOG1P, ZIL_PROBE_SIN2PI, ZIL_PROBE_COS2PI, ZIL_PROBE_NORMAL_CDF };

ZIL_DECLARE(void, zil_probe, (int function, long n, const double *x, double *out))

static inline void zil_probe(int isa, int function, long n, const double *x, double *out) {
    ZIL_DISPATCH(isa, zil_probe)(function, n, x, out);
}

#endif
