/* Compiled once per instruction set; see isa.h.
 *
 * Design: a block of rows is drawn column by column, so that every loop runs over rows and
 * vectorises, and is turned into rows at the end while x is added.  A block is always drawn
 * whole, even where the table ends in it: rows never depend on how many follow.
 */
#include "sampling.h"

#include <stdlib.h>

#include "draws.h"
#include "status.h"
#include "streams.h"

/* Rows of a block: the scratch of a block of few columns stays in the first-level cache. */
static inline long block_rows(long d) { return d <= 16 ? 128 : 32; }

/* rows first .. last - 1 of the block, columns in planes of `rows` values, to row-major out, x added */
static inline __attribute__((always_inline)) void write_rows(long d, long rows, long first, long last, const double *plane,
                                                             const double *x, double *out) {
    if (x)
        for (long i = first; i < last; i++)
            for (long j = 0; j < d; j++)
                out[(i - first) * d + j] = x[(i - first) * d + j] + plane[j * rows + i];
    else
        for (long i = first; i < last; i++)
            for (long j = 0; j < d; j++)
                out[(i - first) * d + j] = plane[j * rows + i];
}

/* The same with d known to the compiler for small d, which then keeps a row in registers. */
static void write_block(long d, long rows, long first, long last, const double *plane, const double *x, double *out) {
    switch (d) {
    case 1: write_rows(1, rows, first, last, plane, x, out); break;
    case 2: write_rows(2, rows, first, last, plane, x, out); break;
    case 3: write_rows(3, rows, first, last, plane, x, out); break;
    case 4: write_rows(4, rows, first, last, plane, x, out); break;
    case 5: write_rows(5, rows, first, last, plane, x, out); break;
    case 6: write_rows(6, rows, first, last, plane, x, out); break;
    case 8: write_rows(8, rows, first, last, plane, x, out); break;
    default: write_rows(d, rows, first, last, plane, x, out);
    }
}

static inline void scale_plane(long rows, double factor, double *restrict plane) {
    for (long i = 0; i < rows; i++)
        plane[i] *= factor;
}

/* planes <- L planes, from the last row of L up, so that it works in place */
static void mix_planes(long d, long rows, const double *lower, double *planes) {
    for (long j = d - 1; j >= 0; j--) {
        double *restrict target = planes + j * rows;
        scale_plane(rows, lower[j * d + j], target);
        for (long k = 0; k < j; k++) {
            const double weight = lower[j * d + k];
            const double *restrict source = planes + k * rows;
            for (long i = 0; i < rows; i++)
                target[i] += weight * source[i];
        }
    }
}

/* One block of noise into d planes (room for 2 pairs planes). */
static void draw_block(zil_stream *stream, long rows, long pairs, int all_zero, uint64_t zero_below, uint64_t *words,
                       double *exponentials, double *planes) {
    zil_stream_words(stream, ZIL_EXPONENTIAL_WORDS((1 + pairs) * rows), words);
    zil_draw_exponential((1 + pairs) * rows, words, exponentials);
    zil_stream_words(stream, (1 + pairs) * rows, words);
    double *w = exponentials;
    for (long i = 0; i < rows; i++)
        w[i] = words[i] < zero_below || all_zero ? 0.0 : w[i];
    for (long p = 0; p < pairs; p++) {
        double *restrict e = exponentials + (1 + p) * rows;
        for (long i = 0; i < rows; i++)
            e[i] *= w[i];
        zil_draw_pairs(rows, e, words + (1 + p) * rows, planes + 2 * p * rows, planes + (2 * p + 1) * rows);
    }
}

int ZIL_NAME(zil_sampling_add)(const uint64_t *key, uint32_t domain, double zero_prob, long d, const double *scale,
                               const double *factor, long first_row, long n, long first_chunk, long last_chunk,
                               const double *x, double *out) {
    const long rows = block_rows(d), pairs = (d + 1) / 2;
    const int all_zero = zero_prob >= 1.0;
    const uint64_t zero_below = all_zero ? 0 : (uint64_t)(zero_prob * 18446744073709551616.0);
    uint64_t *words = malloc((size_t)ZIL_EXPONENTIAL_WORDS((1 + pairs) * rows) * sizeof *words);
    double *exponentials = malloc((size_t)((1 + pairs) * rows) * sizeof *exponentials);
    double *planes = malloc((size_t)(2 * pairs * rows) * sizeof *planes);
    int status = words && exponentials && planes ? ZIL_OK : ZIL_NO_MEMORY;
    for (long chunk = first_chunk; status == ZIL_OK && chunk < last_chunk; chunk++) {
        zil_stream stream;
        zil_stream_open(&stream, key, domain, (uint64_t)chunk);
        const long end = first_row + n < (chunk + 1) * ZIL_SAMPLING_CHUNK ? first_row + n : (chunk + 1) * ZIL_SAMPLING_CHUNK;
        for (long start = chunk * ZIL_SAMPLING_CHUNK; start < end; start += rows) {
            draw_block(&stream, rows, pairs, all_zero, zero_below, words, exponentials, planes);
            const long first = first_row > start ? first_row - start : 0;
            const long last = end - start < rows ? end - start : rows;
            if (first >= last)
                continue;
            for (long j = 0; j < d; j++)
                scale_plane(rows, scale[j], planes + j * rows);
            if (factor)
                mix_planes(d, rows, factor, planes);
            const long at = (start + first - first_row) * d;
            write_block(d, rows, first, last, planes, x ? x + at : 0, out + at);
        }
    }
    free(planes);
    free(exponentials);
    free(words);
    return status;
}

void ZIL_NAME(zil_sampling_words)(const uint64_t *key, uint32_t domain, uint64_t chunk, long n, uint64_t *out) {
    zil_stream stream;
    zil_stream_open(&stream, key, domain, chunk);
    zil_stream_words(&stream, n, out);
}

void ZIL_NAME(zil_sampling_exponential)(long n, const uint64_t *words, double *out) {
    zil_draw_exponential(n, words, out);
}

void ZIL_NAME(zil_sampling_gamma)(long n, long shape, const uint64_t *words, double *out) {
    zil_draw_gamma(n, shape, words, out);
}

void ZIL_NAME(zil_sampling_pairs)(long n, const double *e, const uint64_t *words, double *cos_out, double *sin_out) {
    zil_draw_pairs(n, e, words, cos_out, sin_out);
}
