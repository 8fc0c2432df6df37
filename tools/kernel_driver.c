/* The tick sampler without Python: prints a digest of its integers; every buffer has exactly its size.
 *
 * For valgrind and for builds with other compiler flags (tools/valgrind.sh, tools/audit.py).  One copy of
 * the kernels is compiled, with ZIL_ISA=base and without the chooser.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "certified.h"
#include "chacha.h"

static uint64_t digest = 0xcbf29ce484222325u;

static void take(const void *memory, size_t bytes) { /* FNV-1a */
    const unsigned char *p = memory;
    while (bytes--)
        digest = (digest ^ *p++) * 0x100000001b3u;
}

static void *need(size_t bytes) {
    void *memory = malloc(bytes);
    if (memory == NULL)
        exit(2);
    return memory;
}

static void fill(uint64_t first_row, long n, long d) {
    uint8_t *key = need(ZIL_CHACHA_KEY_BYTES);
    double *scale = need(sizeof(double) * (size_t)d);
    int64_t *out = need(sizeof(int64_t) * (size_t)(n * d)), *redo = need(sizeof(int64_t) * (size_t)n);
    void *workspace = need(zil_certified_workspace(-1, d));
    for (int i = 0; i < ZIL_CHACHA_KEY_BYTES; i++)
        key[i] = (uint8_t)(7 * i + d);
    for (long j = 0; j < d; j++)
        scale[j] = (double)(1L << (4 * j % 44)) + 0.25;
    long count = zil_certified_fill(-1, key, first_row, (uint64_t)1 << 61, 0, n, d, scale, out, redo, workspace);
    take(out, sizeof(int64_t) * (size_t)(n * d));
    take(redo, sizeof(int64_t) * (size_t)count);
    free(key);
    free(scale);
    free(out);
    free(redo);
    free(workspace);
}

static void evaluate(long n, long d) {
    long w = zil_certified_words(d);
    uint64_t *words = need(sizeof(uint64_t) * (size_t)(n * w)), state = 88172645463325252u;
    double *scale = need(sizeof(double) * (size_t)d), *value = need(sizeof(double) * (size_t)(n * d)),
           *bound = need(sizeof(double) * (size_t)(n * d));
    int64_t *ticks = need(sizeof(int64_t) * (size_t)(n * d));
    uint8_t *redo = need((size_t)n);
    for (long i = 0; i < n * w; i++) { /* xorshift, shifted towards 0, and its complement */
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        words[i] = i % 3 ? state >> state % 64 : ~(state >> state % 64);
    }
    for (long j = 0; j < d; j++)
        scale[j] = 1000.5 * (double)(j + 1);
    zil_certified_rows(-1, words, n, d, scale, ticks, value, bound, redo);
    for (long i = 0; i < n; i++)
        if (!redo[i])
            take(ticks + i * d, sizeof(int64_t) * (size_t)d);
    take(redo, (size_t)n);
    free(words);
    free(scale);
    free(value);
    free(bound);
    free(ticks);
    free(redo);
}

int main(void) {
    static const long sizes[] = {1, 2, 7, 15, 16, 17, 127, 128, 129, 300};
    static const uint64_t starts[] = {0, 1, 5, 8, 127, ((uint64_t)1 << 40) + 3};
    uint8_t key[ZIL_CHACHA_KEY_BYTES] = {1};
    uint64_t stream[40];
    for (long d = 1; d <= 14; d++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t k = 0; k < sizeof starts / sizeof *starts; k++)
                fill(starts[k], sizes[i], d);
        evaluate(333, d);
    }
    for (uint64_t first = 0; first < 300; first += 37) {
        zil_chacha_words(-1, key, first, first, 40, stream);
        take(stream, sizeof stream);
    }
    printf("%016llx\n", (unsigned long long)digest);
    return 0;
}
