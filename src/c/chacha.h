/* ChaCha20 key stream (the block function of RFC 8439), many blocks at a time.
 *
 * The counter has 64 bits, as in the cipher's first description: block number `block` of nonce `nonce`
 * is the RFC's block for counter = low 32 bits of block and nonce words (high 32 bits of block,
 * low 32 bits of nonce, high 32 bits of nonce).  Read as 64-bit little-endian words, word i of the
 * stream is word i % 8 of block i / 8.
 */
#ifndef ZIL_CHACHA_H
#define ZIL_CHACHA_H

#include <stdint.h>

#include "isa.h"

enum {
    ZIL_CHACHA_KEY_BYTES = 32,
    ZIL_CHACHA_WORDS = 8,  /* 64-bit words of a block */
    ZIL_CHACHA_GROUP = 16, /* blocks made together */
};

/* Blocks block .. block + 15 into planes: planes[16 * j + b] is 64-bit word j of block number block + b.
 * scratch: 256 words of the caller, who wipes them together with the planes. */
ZIL_DECLARE(void, zil_chacha_group,
            (const uint8_t *key, uint64_t nonce, uint64_t block, uint64_t *planes, uint32_t *scratch))

enum { ZIL_CHACHA_PLANES = ZIL_CHACHA_GROUP * ZIL_CHACHA_WORDS, ZIL_CHACHA_SCRATCH = 256 };

/* Words first .. first + count - 1 of the stream. */
ZIL_DECLARE(void, zil_chacha_words,
            (const uint8_t *key, uint64_t nonce, uint64_t first, long count, uint64_t *words_out))

static inline void zil_chacha_words(int isa, const uint8_t *key, uint64_t nonce, uint64_t first, long count,
                                    uint64_t *words_out) {
    ZIL_DISPATCH(isa, zil_chacha_words)(key, nonce, first, count, words_out);
}

/* Overwrite secrets in a way no optimiser may drop. */
static inline void zil_wipe(void *memory, unsigned long bytes) {
    volatile unsigned char *p = (volatile unsigned char *)memory;
    while (bytes--)
        *p++ = 0;
}

#endif
