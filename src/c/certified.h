/* Integer Laplace noise with a proved error bound: docs/certified_sampler.md is the argument.
 *
 * Row i of a table with d columns owns words i * w .. i * w + w - 1 of level 0 of the key stream,
 * w = 2 + 2 ceil(d/2): the zero word, U0, then (U1, U2) of each pair of columns.  With
 *     W = -ln U0,  E = -ln U1,  T = R_j sqrt(2 W E) cos(2 pi U2)   (sin for the second of a pair)
 * the row is rint(T) in every column, or 0 everywhere if its zero word is below the threshold.
 */
#ifndef ZIL_CERTIFIED_H
#define ZIL_CERTIFIED_H

#include <stdint.h>

#include "isa.h"

/* Scales above this would need more than the 2^51 ticks that the rounding of the fast path can hold. */
#define ZIL_CERTIFIED_MAX_SCALE 17592186044416.0 /* 2^44 */

/* Level 0 holds the first 64 bits of every uniform; level 1, 2, ... hold further bits at the same places.
 * The tag is the version of the stream: "ZILT". */
#define ZIL_CERTIFIED_NONCE(level) ((uint64_t)0x544c495a << 32 | (uint64_t)(level))

static inline long zil_certified_words(long d) { return 2 + 2 * ((d + 1) / 2); }

/* Bytes of workspace that zil_certified_fill needs for d columns. */
ZIL_DECLARE(unsigned long, zil_certified_workspace, (long d))

static inline unsigned long zil_certified_workspace(int isa, long d) {
    return ZIL_DISPATCH(isa, zil_certified_workspace)(d);
}

/* Ticks of rows first_row .. first_row + n - 1 into out (n, d).
 *
 * The numbers (counted from 0) of the rows that the error bound cannot decide go to redo_out (room
 * for n), their count is returned; their ticks are to be overwritten by the exact slow path.
 * Rows are computed alike whether zero or not; all_zero makes every row zero (probability one). */
ZIL_DECLARE(long, zil_certified_fill,
            (const uint8_t *key, uint64_t first_row, uint64_t zero_threshold, int all_zero, long n, long d,
             const double *scale_over_tick, int64_t *out, int64_t *redo_out, void *workspace))

static inline long zil_certified_fill(int isa, const uint8_t *key, uint64_t first_row, uint64_t zero_threshold,
                                      int all_zero, long n, long d, const double *scale_over_tick, int64_t *out,
                                      int64_t *redo_out, void *workspace) {
    return ZIL_DISPATCH(isa, zil_certified_fill)(key, first_row, zero_threshold, all_zero, n, d, scale_over_tick, out,
                                                 redo_out, workspace);
}

/* The same arithmetic on n rows of words (n, w) of the caller: what the tests of the bound look at.
 * ticks_out, value_out, bound_out: (n, d), rint(T), T and the bound on its error; redo_out: (n,), 1 if the
 * row must be redone, whatever the zero word says.  Answers their number. */
ZIL_DECLARE(long, zil_certified_rows,
            (const uint64_t *words, long n, long d, const double *scale_over_tick, int64_t *ticks_out,
             double *value_out, double *bound_out, uint8_t *redo_out))

static inline long zil_certified_rows(int isa, const uint64_t *words, long n, long d, const double *scale_over_tick,
                                      int64_t *ticks_out, double *value_out, double *bound_out, uint8_t *redo_out) {
    return ZIL_DISPATCH(isa, zil_certified_rows)(words, n, d, scale_over_tick, ticks_out, value_out, bound_out,
                                                 redo_out);
}

#endif
