/* Streams of random 64-bit words, one per (key, domain, chunk).
 *
 * Contract.  A key is 256 bits.  A domain is a 32-bit number that keeps two uses of one key
 * apart.  A chunk is a fixed range of rows or draws; its stream depends on key, domain and chunk
 * number alone, so it is the same for any number of threads, for any number of rows after it and
 * for every instruction set.  Changing anything here changes published test vectors
 * (tests/data/streams.json) and needs a note in the change log.
 *
 * Design: xoshiro256++ (Blackman and Vigna 2021) in eight interleaved lanes.  The 8 x 4 state
 * words of a chunk are the words 32 chunk .. 32 chunk + 31 of the ChaCha20 key stream of
 * RFC 8439 with nonce (high half of the block number, domain, "ZIL1"), so states of different
 * lanes, chunks, domains and keys are unrelated; two of 2^40 lane streams of 2^30 words overlap with
 * probability 2^-146.  Measured on one AVX-512 core, ns per word: these lanes 0.30 (AVX2 0.49,
 * SSE2 0.98) against 2.0 for numpy's PCG64; Philox needs 64-bit high products, which do not
 * vectorise, and ChaCha8 three times the operations.  xoshiro is not cryptographic: a trusted
 * release has its own key stream.
 *
 * For files compiled once per instruction set (isa.h) only.
 */
#ifndef ZIL_STREAMS_H
#define ZIL_STREAMS_H

#include <stdint.h>
#include <string.h>

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

/* Who draws; one number per use, never reused with another meaning. */
enum { ZIL_DOMAIN_NOISE = 1, ZIL_DOMAIN_DOUBLE = 2, ZIL_DOMAIN_TRADEOFF = 3 };

#define ZIL_ROTATE32(x, n) (((x) << (n)) | ((x) >> (32 - (n))))
#define ZIL_QUARTER(a, b, c, d)                                                                    \
    (a += b, d ^= a, d = ZIL_ROTATE32(d, 16), c += d, b ^= c, b = ZIL_ROTATE32(b, 12), a += b,     \
     d ^= a, d = ZIL_ROTATE32(d, 8), c += d, b ^= c, b = ZIL_ROTATE32(b, 7))

/* One ChaCha20 block as eight little-endian 64-bit words. */
static inline void zil_seed_block(const uint64_t *key, uint32_t domain, uint64_t block, uint64_t *out) {
    uint32_t start[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u}, x[16];
    for (int i = 0; i < ZIL_KEY_WORDS; i++) {
        start[4 + 2 * i] = (uint32_t)key[i];
        start[5 + 2 * i] = (uint32_t)(key[i] >> 32);
    }
    start[12] = (uint32_t)block;
    start[13] = (uint32_t)(block >> 32);
    start[14] = domain;
    start[15] = 0x314c495au; /* "ZIL1" */
    memcpy(x, start, sizeof x);
    for (int round = 0; round < 10; round++) {
        ZIL_QUARTER(x[0], x[4], x[8], x[12]);
        ZIL_QUARTER(x[1], x[5], x[9], x[13]);
        ZIL_QUARTER(x[2], x[6], x[10], x[14]);
        ZIL_QUARTER(x[3], x[7], x[11], x[15]);
        ZIL_QUARTER(x[0], x[5], x[10], x[15]);
        ZIL_QUARTER(x[1], x[6], x[11], x[12]);
        ZIL_QUARTER(x[2], x[7], x[8], x[13]);
        ZIL_QUARTER(x[3], x[4], x[9], x[14]);
    }
    for (int i = 0; i < 8; i++)
        out[i] = (uint64_t)(x[2 * i] + start[2 * i]) | (uint64_t)(x[2 * i + 1] + start[2 * i + 1]) << 32;
}

/* Word k of the state of lane l is word 8 k + l of the chunk's 32 seed words. */
static inline void zil_stream_open(zil_stream *stream, const uint64_t *key, uint32_t domain, uint64_t chunk) {
    for (int k = 0; k < 4; k++) {
        uint64_t seed[ZIL_LANES];
        zil_seed_block(key, domain, 4 * chunk + (uint64_t)k, seed);
        memcpy(stream->s[k], seed, sizeof seed);
    }
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
            zil_lanes shifted = s[1][p] << 17;
            s[2][p] ^= s[0][p];
            s[3][p] ^= s[1][p];
            s[1][p] ^= s[2][p];
            s[0][p] ^= s[3][p];
            s[2][p] ^= shifted;
            s[3][p] = (s[3][p] << 45) | (s[3][p] >> 19);
        }
    memcpy(stream->s, s, sizeof s);
}

#endif
