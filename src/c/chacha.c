/* Compiled once per instruction set; see isa.h.
 *
 * Design: one lane per block, written with the compiler's vector types (GCC and Clang), so that
 * the sixteen state words of 4, 8 or 16 blocks stay in registers over the twenty rounds; plain
 * loops over lanes spill every step.
 */
#include "chacha.h"

#include <string.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif

typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));

#define ROTATE(x, n) (((x) << (n)) | ((x) >> (32 - (n))))
#define QUARTER(a, b, c, d)            \
    a += b, d ^= a, d = ROTATE(d, 16); \
    c += d, b ^= c, b = ROTATE(b, 12); \
    a += b, d ^= a, d = ROTATE(d, 8);  \
    c += d, b ^= c, b = ROTATE(b, 7)

static inline uint32_t load32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void ZIL_NAME(zil_chacha_group)(const uint8_t *key, uint64_t nonce, uint64_t block, uint64_t *planes,
                                uint32_t *scratch) {
    static const uint32_t sigma[4] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u};
    const lanes zero = {0};
    for (int first = 0; first < ZIL_CHACHA_GROUP; first += LANES) {
        lanes start[16], x[16];
        for (int i = 0; i < 4; i++)
            start[i] = zero + sigma[i];
        for (int i = 0; i < 8; i++)
            start[4 + i] = zero + load32(key + 4 * i);
        for (int l = 0; l < LANES; l++) {
            uint64_t counter = block + (uint64_t)(first + l);
            start[12][l] = (uint32_t)counter;
            start[13][l] = (uint32_t)(counter >> 32);
        }
        start[14] = zero + (uint32_t)nonce;
        start[15] = zero + (uint32_t)(nonce >> 32);
        for (int i = 0; i < 16; i++)
            x[i] = start[i];
        for (int round = 0; round < 10; round++) {
            QUARTER(x[0], x[4], x[8], x[12]);
            QUARTER(x[1], x[5], x[9], x[13]);
            QUARTER(x[2], x[6], x[10], x[14]);
            QUARTER(x[3], x[7], x[11], x[15]);
            QUARTER(x[0], x[5], x[10], x[15]);
            QUARTER(x[1], x[6], x[11], x[12]);
            QUARTER(x[2], x[7], x[8], x[13]);
            QUARTER(x[3], x[4], x[9], x[14]);
        }
        for (int i = 0; i < 16; i++) {
            x[i] += start[i];
            memcpy(scratch + LANES * i, &x[i], sizeof x[i]);
        }
        for (int j = 0; j < ZIL_CHACHA_WORDS; j++)
            for (int l = 0; l < LANES; l++)
                planes[ZIL_CHACHA_GROUP * j + first + l] =
                    (uint64_t)scratch[LANES * (2 * j) + l] | (uint64_t)scratch[LANES * (2 * j + 1) + l] << 32;
    }
}

void ZIL_NAME(zil_chacha_words)(const uint8_t *key, uint64_t nonce, uint64_t first, long count, uint64_t *words_out) {
    uint64_t planes[ZIL_CHACHA_PLANES];
    uint32_t scratch[ZIL_CHACHA_SCRATCH];
    uint64_t have = 0; /* number of the first block in planes; valid once a word was read */
    for (long i = 0; i < count; i++) {
        uint64_t word = first + (uint64_t)i, block = word / ZIL_CHACHA_WORDS;
        if (i == 0 || block - have >= ZIL_CHACHA_GROUP) {
            have = block;
            ZIL_NAME(zil_chacha_group)(key, nonce, block, planes, scratch);
        }
        words_out[i] = planes[ZIL_CHACHA_GROUP * (word % ZIL_CHACHA_WORDS) + (block - have)];
    }
    zil_wipe(planes, sizeof planes);
    zil_wipe(scratch, sizeof scratch);
}
