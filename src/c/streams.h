/* Streams of random 64-bit words, one per (key, domain, chunk).
 *
 * Contract.  A key is 256 bits.  A domain is a 32-bit number that keeps two uses of one key
 * apart.  A chunk is a fixed range of rows or draws; its stream depends on key, domain and chunk
 * number alone, so it is the same for any number of threads, for any number of rows after it and
 * for every instruction set.  Changing anything here changes published test vectors
 * (tests/data/streams.json) and needs a note in the change log.
 *
 * Design: xoshiro256++ (Blackman and Vigna 2021) in eight interleaved lanes.  The 8 x 4 state
 * words of a chunk are the words 32 chunk .. 32 chunk + 31 of a ChaCha20 key stream (chacha.h) with
 * the domain in its nonce, so states of different lanes, chunks, domains and keys are unrelated:
 * some two of 2^40 lane streams of 2^30 words overlap with probability 2^-146.  Measured on one
 * core, ns per word: these lanes 0.30 (AVX2 0.49, SSE2 0.98) against 2.0 for numpy's PCG64; Philox
 * needs 64-bit high products, which do not vectorise, and ChaCha8 three times the operations.
 * xoshiro is not cryptographic: a trusted release has its own key stream.
 *
 * The functions are for files compiled once per instruction set (isa.h).
 */
#ifndef ZIL_STREAMS_H
#define ZIL_STREAMS_H

#include <stdint.h>
#include <string.h>

#include "chacha.h"

/* Who draws; one number per use, never reused with another meaning. */
enum { ZIL_DOMAIN_NOISE = 1, ZIL_DOMAIN_DOUBLE = 2, ZIL_DOMAIN_TRADEOFF = 3 };

#ifdef ZIL_ISA

#define ZIL_STREAM_TAG 0x314c495aULL /* "ZIL1", the high half of the nonce */

#if defined(__AVX512F__)
#define ZIL_STREAM_WIDTH 8
#elif defined(__AVX2__)
#define ZIL_STREAM_WIDTH 4
#else
#define ZIL_STREAM_WIDTH 2
#endif

enum { ZIL_LANES = 8, ZIL_STREAM_PARTS = ZIL_LANES / ZIL_STREAM_WIDTH, ZIL_KEY_WORDS = 4 };

typedef uint64_t zil_lanes __attribute__((vector_size(8 * ZIL_STREAM_WIDTH)));

typedef struct {
    zil_lanes s[4][ZIL_STREAM_PARTS];
} zil_stream;

/* Word k of the state of lane l is word 8 k + l of the chunk's 32 seed words. */
static inline void zil_stream_open(zil_stream *stream, const uint64_t *key, uint32_t domain, uint64_t chunk) {
    uint8_t bytes[8 * ZIL_KEY_WORDS];
    for (int i = 0; i < 8 * ZIL_KEY_WORDS; i++)
        bytes[i] = (uint8_t)(key[i / 8] >> 8 * (i % 8));
    uint64_t seed[4 * ZIL_LANES];
    ZIL_NAME(zil_chacha_words)
    (bytes, ZIL_STREAM_TAG << 32 | domain, 4 * ZIL_LANES * chunk, 4 * ZIL_LANES, seed);
    memcpy(stream->s, seed, sizeof seed);
}

/* The next n words, n a multiple of ZIL_LANES: word i comes from lane i % 8. */
static inline __attribute__((always_inline)) void zil_stream_words(zil_stream *stream, long n, uint64_t *out) {
    zil_lanes s[4][ZIL_STREAM_PARTS];
    memcpy(s, stream->s, sizeof s);
    for (long i = 0; i < n; i += ZIL_LANES)
        for (int p = 0; p < ZIL_STREAM_PARTS; p++) {
            zil_lanes sum = s[0][p] + s[3][p];
            zil_lanes word = ((sum << 23) | (sum >> 41)) + s[0][p];
            memcpy(out + i + ZIL_STREAM_WIDTH * p, &word, sizeof word);
            zil_lanes a = s[0][p], b = s[1][p], c = s[2][p], e = s[3][p] ^ b;
            s[0][p] = a ^ e;
            s[1][p] = b ^ c ^ a; /* sums of three are one instruction with AVX-512 */
            s[2][p] = (c ^ (b << 17)) ^ a;
            s[3][p] = (e << 45) | (e >> 19);
        }
    memcpy(stream->s, s, sizeof s);
}

#endif /* ZIL_ISA */

#endif
