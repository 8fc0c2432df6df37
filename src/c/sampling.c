/* Compiled once per instruction set; see isa.h.
 *
 * Design: a block of rows is drawn column by column, so that every loop runs over rows and
 * vectorises, and is turned into rows at the end while x is added.  A block is always drawn
 * whole, even where the table ends in it: rows never depend on how many follow.
 */
#include "sampling.h"

#include <stdlib.h>
#include <string.h>

#include "draws.h"
#include "status.h"
#include "streams.h"

/* Rows of a block: the scratch of a block of few columns stays in the first-level cache. */
static inline long block_rows(long d) { return d <= 16 ? 128 : 32; }

typedef double zil_pair __attribute__((vector_size(16)));

/* Rows first .. last - 1 of the block, columns in planes of `rows` values (an even number of planes), to row-major
 * out, x added.  Two columns move at a time: half the stores. */
static inline __attribute__((always_inline)) void write_rows(long d, long rows, long first, long last,
                                                             const double *plane, const double *x, double *out) {
    for (long i = first; i < last; i++) {
        const long at = (i - first) * d;
        for (long j = 0; j + 1 < d; j += 2) {
            zil_pair pair = {plane[j * rows + i], plane[(j + 1) * rows + i]};
            if (x) {
                zil_pair own;
                memcpy(&own, x + at + j, sizeof own);
                pair = own + pair;
            }
            memcpy(out + at + j, &pair, sizeof pair);
        }
        if (d % 2)
            out[at + d - 1] = x ? x[at + d - 1] + plane[(d - 1) * rows + i] : plane[(d - 1) * rows + i];
    }
}

/* The same with d known to the compiler for small d. */
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

/* n numbers of x (may be null) and of out that the next block needs, `done` of them asked for. */
typedef struct {
    const double *x, *out;
    long n, done;
} ahead;

/* Ask memory for the next share of the lines.  Spread over the drawing of the block they are there when its noise
 * is added; asked for all at once they wait for each other, which gained nothing (measured on a table of 48 MB, per
 * row: 19 ns without, 15 ns spread). */
static inline void fetch(ahead *lines, long shares) {
    const long end = lines->done + lines->n / shares + ZIL_LINE / 8;
    for (; lines->done < lines->n && lines->done < end; lines->done += ZIL_LINE / 8) {
        if (lines->x)
            __builtin_prefetch(lines->x + lines->done, 0);
        __builtin_prefetch(lines->out + lines->done, 1);
    }
}

/* One block of noise, times its column's scale, into d planes (room for 2 pairs planes). */
static void draw_block(zil_stream *stream, long rows, long d, int all_zero, uint64_t zero_below, const double *scale,
                       uint64_t *words, double *exponentials, double *planes, ahead lines) {
    const long pairs = (d + 1) / 2, shares = 3 + pairs;
    fetch(&lines, shares);
    zil_stream_words(stream, ZIL_EXPONENTIAL_WORDS((1 + pairs) * rows), words);
    fetch(&lines, shares);
    zil_draw_exponential((1 + pairs) * rows, words, exponentials);
    fetch(&lines, shares);
    zil_stream_words(stream, (1 + pairs) * rows, words);
    double *w = exponentials;
    for (long i = 0; i < rows; i++)
        w[i] = words[i] < zero_below || all_zero ? 0.0 : w[i];
    for (long p = 0; p < pairs; p++) {
        double *restrict e = exponentials + (1 + p) * rows;
        for (long i = 0; i < rows; i++)
            e[i] *= w[i];
        fetch(&lines, shares);
        zil_draw_scaled_pairs(rows, e, words + (1 + p) * rows, scale[2 * p], 2 * p + 1 < d ? scale[2 * p + 1] : 0.0,
                              planes + 2 * p * rows, planes + (2 * p + 1) * rows);
    }
}

int ZIL_NAME(zil_sampling_add)(const uint64_t *key, uint32_t domain, double zero_prob, long d, const double *scale,
                               const double *factor, const zil_lattice *lattice, long first_row, long n,
                               long first_chunk, long last_chunk, const double *x, double *out) {
    const long rows = block_rows(d), pairs = (d + 1) / 2;
    const int all_zero = zero_prob >= 1.0;
    const uint64_t zero_below = all_zero ? 0 : (uint64_t)(zero_prob * 18446744073709551616.0);
    const size_t n_words = ZIL_EXPONENTIAL_WORDS((1 + pairs) * rows), n_exponentials = (1 + pairs) * rows,
                 n_planes = 2 * pairs * rows, n_noise = lattice ? d * rows : 0,
                 n_tiles = lattice ? zil_tiles_size(d) : 0;
    void *memory = malloc((n_words + n_exponentials + n_planes + n_noise + n_tiles) * sizeof(double) + ZIL_LINE);
    if (!memory)
        return ZIL_NO_MEMORY;
    /* all sizes are multiples of 8 numbers: every part begins on a cache line */
    double *exponentials = zil_align(memory), *planes = exponentials + n_exponentials, *noise = planes + n_planes;
    uint64_t *words = (uint64_t *)(noise + n_noise);
    zil_tiles tiles;
    if (lattice)
        tiles = zil_tiles_of(lattice, d, (double *)(words + n_words));
    int finite = 1;
    for (long chunk = first_chunk; chunk < last_chunk; chunk++) {
        zil_stream stream;
        zil_stream_open(&stream, key, domain, (uint64_t)chunk);
        const long end =
            first_row + n < (chunk + 1) * ZIL_SAMPLING_CHUNK ? first_row + n : (chunk + 1) * ZIL_SAMPLING_CHUNK;
        for (long start = chunk * ZIL_SAMPLING_CHUNK; start < end; start += rows) {
            const long first = first_row > start ? first_row - start : 0;
            const long last = end - start < rows ? end - start : rows;
            const long at = (start + first - first_row) * d;
            const ahead lines = {x ? x + at : 0, out + at, first < last ? (last - first) * d : 0, 0};
            draw_block(&stream, rows, d, all_zero, zero_below, scale, words, exponentials, planes, lines);
            if (first >= last)
                continue;
            if (factor)
                mix_planes(d, rows, factor, planes);
            if (lattice) {
                write_block(d, rows, first, last, planes, 0, noise);
                finite &= zil_lattice_run((last - first) * d, &tiles, x + at, noise, 0, out + at);
            } else
                write_block(d, rows, first, last, planes, x ? x + at : 0, out + at);
        }
    }
    free(memory);
    return finite ? ZIL_OK : ZIL_NOT_FINITE;
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
