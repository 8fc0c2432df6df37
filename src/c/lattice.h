/* Values to ticks of a public lattice, noise in ticks added, and back to values: one pass. */
#ifndef ZIL_LATTICE_H
#define ZIL_LATTICE_H

#include <stddef.h>
#include <stdint.h>

#include "finite.h"
#include "isa.h"

/* Parameters of d columns: bounds and step.  Where every tick is a power of two (from 2^-900 to 2^900),
 * shift holds 1.5 2^52 tick, else it is null.  Values and noise, in ticks, stay below 2^51 together. */
typedef struct {
    const double *low, *high, *tick, *shift;
} zil_lattice;

#ifdef ZIL_ISA

#include "vmath.h"

/* Round half to even without a library call: exact for |x| < 2^51 */
VM_INLINE double zil_nearest(double x) { return (x + VM_MAGIC) - VM_MAGIC; }

/* and, scaled by a power of two, to a multiple of the tick.  Neither answers a negative zero, which would tell a sign.
 */
VM_INLINE double zil_to_tick(double x, double shift) { return (x + shift) - shift; }

VM_INLINE double zil_clip(double x, double low, double high) {
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* An integer below 2^51 in size; unlike a conversion it vectorises in every instruction set. */
VM_INLINE double zil_whole(int64_t count) { return vm_from_bits((uint64_t)count + vm_bits(VM_MAGIC)) - VM_MAGIC; }

#define ZIL_LINE 64 /* bytes of a cache line */

static inline double *zil_align(void *memory) {
    return (double *)(((uintptr_t)memory + ZIL_LINE - 1) & ~(uintptr_t)(ZIL_LINE - 1));
}

/* The lattice repeated over a short run of rows.
 *
 * Design: the loop is then the same for every d and vectorises; the parameters stay in the first-level
 * cache and lie on cache lines (0.6 of the time of loads that straddle two). */
typedef struct {
    long len;
    const double *low, *high, *tick, *shift;
} zil_tiles;

static inline long zil_tiles_len(long d) { return d * (d <= 16 ? 128 / d / 8 * 8 + 8 : 8); }

/* Numbers of memory that zil_tiles_of needs, which begins on a cache line. */
static inline size_t zil_tiles_size(long d) { return 4 * (size_t)zil_tiles_len(d); }

static inline zil_tiles zil_tiles_of(const zil_lattice *lattice, long d, double *memory) {
    const double *source[4] = {lattice->low, lattice->high, lattice->tick, lattice->shift};
    const long len = zil_tiles_len(d);
    for (int k = 0; k < 4; k++)
        for (long i = 0; source[k] && i < len; i++)
            memory[k * len + i] = source[k][i % d];
    return (zil_tiles){len, memory, memory + len, memory + 2 * len, lattice->shift ? memory + 3 * len : 0};
}

/* n numbers of whole rows: out = round(round(clip(x, low, high) / tick) + noise) tick, with the noise in ticks
 * given in doubles or, where `whole` is not null, in integers.  nan stays nan; out is none of the inputs.
 * Answers whether all x are finite.
 *
 * Powers of two: everything is scaled by the tick, which changes no digit, and the two products go. */
VM_INLINE int zil_lattice_run(long n, const zil_tiles *tiles, const double *x, const double *noise,
                              const int64_t *whole, double *out) {
    const double *low = tiles->low, *high = tiles->high, *tick = tiles->tick, *shift = tiles->shift;
    uint64_t seen = 0;
    for (long start = 0; start < n; start += tiles->len) {
        const long size = n - start < tiles->len ? n - start : tiles->len;
        const double *from = x + start;
        double *restrict to = out + start;
        if (shift)
            for (long i = 0; i < size; i++) {
                seen |= zil_not_finite(from[i]);
                double z = whole ? zil_whole(whole[start + i]) : noise[start + i];
                to[i] = zil_to_tick(zil_to_tick(zil_clip(from[i], low[i], high[i]), shift[i]) + z * tick[i], shift[i]);
            }
        else
            for (long i = 0; i < size; i++) {
                seen |= zil_not_finite(from[i]);
                double z = whole ? zil_whole(whole[start + i]) : noise[start + i];
                to[i] = zil_nearest(zil_nearest(zil_clip(from[i], low[i], high[i]) / tick[i]) + z) * tick[i];
            }
    }
    return seen == 0;
}

#endif /* ZIL_ISA */

/* n rows of d columns, noise in whole ticks: out = (round(clip(x, low, high) / tick) + noise) tick; nan stays
 * nan; out is not x.  Answers ZIL_OK or ZIL_NO_MEMORY. */
ZIL_DECLARE(int, zil_lattice_publish,
            (long n, long d, const zil_lattice *lattice, const double *x, const int64_t *noise, double *out))

static inline int zil_lattice_publish(int isa, long n, long d, const zil_lattice *lattice, const double *x,
                                      const int64_t *noise, double *out) {
    return ZIL_DISPATCH(isa, zil_lattice_publish)(n, d, lattice, x, noise, out);
}

#endif
