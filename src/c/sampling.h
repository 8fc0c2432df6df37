/* Noise of the symmetric Laplace family, added to a table. */
#ifndef ZIL_SAMPLING_H
#define ZIL_SAMPLING_H

#include <stdint.h>

#include "isa.h"
#include "lattice.h"

/* Rows of a chunk: one stream each. */
enum { ZIL_SAMPLING_CHUNK = 4096 };

/* out = x + noise over the rows of chunks first_chunk .. last_chunk - 1 (numbered from row 0 of
 * the stream) that lie in rows first_row .. first_row + n - 1; x and out hold those n rows of d
 * columns, row by row.  x may be null (noise alone) or out (in place).
 *
 * Noise of a row: 0 with probability zero_prob, else sqrt(2 W E_p) (cos, sin)(angle_p) per pair p
 * of columns, times scale[j], then, if factor is not null, times the lower triangular d x d
 * factor (row major): one W and one zero draw per row.  Where lattice is not null, x is there, out
 * is not x, and the noise is in ticks: out = (x in ticks + noise, rounded) tick (lattice.h).
 * Answers ZIL_OK, ZIL_NO_MEMORY or, with a lattice alone, ZIL_NOT_FINITE if an entry of x is not (the rest is
 * computed). */
ZIL_DECLARE(int, zil_sampling_add,
            (const uint64_t *key, uint32_t domain, double zero_prob, long d, const double *scale, const double *factor,
             const zil_lattice *lattice, long first_row, long n, long first_chunk, long last_chunk, const double *x,
             double *out))

/* n words of a stream, n a multiple of 8; and draws from given words, for tests. */
ZIL_DECLARE(void, zil_sampling_words, (const uint64_t *key, uint32_t domain, uint64_t chunk, long n, uint64_t *out))
ZIL_DECLARE(void, zil_sampling_exponential, (long n, const uint64_t *words, double *out))
ZIL_DECLARE(void, zil_sampling_gamma, (long n, long shape, const uint64_t *words, double *out))
ZIL_DECLARE(void, zil_sampling_pairs,
            (long n, const double *e, const uint64_t *words, double *cos_out, double *sin_out))

static inline int zil_sampling_add(int isa, const uint64_t *key, uint32_t domain, double zero_prob, long d,
                                   const double *scale, const double *factor, const zil_lattice *lattice,
                                   long first_row, long n, long first_chunk, long last_chunk, const double *x,
                                   double *out) {
    return ZIL_DISPATCH(isa, zil_sampling_add)(key, domain, zero_prob, d, scale, factor, lattice, first_row, n,
                                               first_chunk, last_chunk, x, out);
}

static inline void zil_sampling_words(int isa, const uint64_t *key, uint32_t domain, uint64_t chunk, long n,
                                      uint64_t *out) {
    ZIL_DISPATCH(isa, zil_sampling_words)(key, domain, chunk, n, out);
}

static inline void zil_sampling_exponential(int isa, long n, const uint64_t *words, double *out) {
    ZIL_DISPATCH(isa, zil_sampling_exponential)(n, words, out);
}

static inline void zil_sampling_gamma(int isa, long n, long shape, const uint64_t *words, double *out) {
    ZIL_DISPATCH(isa, zil_sampling_gamma)(n, shape, words, out);
}

static inline void zil_sampling_pairs(int isa, long n, const double *e, const uint64_t *words, double *cos_out,
                                      double *sin_out) {
    ZIL_DISPATCH(isa, zil_sampling_pairs)(n, e, words, cos_out, sin_out);
}

#endif
