/* Whether all numbers of an array are finite: one pass at the speed of memory. */
#ifndef ZIL_FINITE_H
#define ZIL_FINITE_H

#include "isa.h"

#ifdef ZIL_ISA

#include "vmath.h"

/* All bits are zero if x is finite, not if it is nan or infinite; a difference and an "or" per number in a loop. */
VM_INLINE uint64_t zil_not_finite(double x) { return vm_bits(x - x); }

#endif

ZIL_DECLARE(int, zil_finite, (long n, const double *x))

static inline int zil_finite(int isa, long n, const double *x) { return ZIL_DISPATCH(isa, zil_finite)(n, x); }

#endif
