/* Monte Carlo of the likelihood-ratio test: a histogram of |log g(|S - c e1|) - log g(|S|)|, S ~ SL_d(I).
 *
 * One sample serves both hypotheses: S -> c e1 - S turns P into Q and the ratio into its inverse, so
 * given |L| the sign of L is a coin with known odds, and the histogram of |L| carries everything
 * (the sample's curve is symmetric and convex by construction).
 *
 * Per draw: W ~ Exp(1), a pair of normals (one for s_1) and a chi-square for the other coordinates,
 * whatever d; then two densities.  Bin of |L|: floor(v bins), v = |L|/(sqrt(2) c + |L|); counts are
 * integers, so chunks may be added in any order.
 */
#ifndef ZIL_SIMULATE_H
#define ZIL_SIMULATE_H

#include <stdint.h>

#include "isa.h"

enum { ZIL_SIMULATE_CHUNK = 1 << 14 };

/* Add the draws of chunks first .. last - 1 (the last chunk of all ends at draw n) to count[bins]. */
ZIL_DECLARE(void, zil_simulate,
            (const uint64_t *key, long dim, double c, int64_t n, int64_t first, int64_t last, long bins,
             int64_t *count))

static inline void zil_simulate(int isa, const uint64_t *key, long dim, double c, int64_t n, int64_t first,
                                int64_t last, long bins, int64_t *count) {
    ZIL_DISPATCH(isa, zil_simulate)(key, dim, c, n, first, last, bins, count);
}

#endif
