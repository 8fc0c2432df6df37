#include "simulate.h"

#include "draws.h"
#include "sl_density.h"
#include "streams.h"

/* Compiled once per instruction set; see isa.h. */

#define B BESSEL_BLOCK
#define PRODUCT_SHAPES 16 /* largest integer shape drawn as a product of uniforms: one logarithm */

static void exponential_block(zil_stream *stream, double *out) {
    uint64_t words[ZIL_EXPONENTIAL_WORDS(B)];
    zil_stream_words(stream, ZIL_EXPONENTIAL_WORDS(B), words);
    zil_draw_exponential(B, words, out);
}

static void normal_block(zil_stream *stream, double *first, double *second) {
    double e[B];
    uint64_t words[B];
    exponential_block(stream, e);
    zil_stream_words(stream, B, words);
    zil_draw_pairs(B, e, words, first, second);
}

/* Gamma(shape), shape > PRODUCT_SHAPES: Marsaglia and Tsang (2000), candidates by the block; more than
 * 99 of 100 are taken, so two blocks of candidates nearly always fill one. */
static void large_gamma_block(zil_stream *stream, double shape, double *out) {
    const double d = shape - 1.0 / 3.0, step = 1.0 / sqrt(9.0 * d);
    long filled = 0;
    while (filled < B) {
        double x[2][B], candidate[B], keep[B];
        uint64_t words[B];
        normal_block(stream, x[0], x[1]);
        for (int half = 0; half < 2 && filled < B; half++) {
            zil_stream_words(stream, B, words);
            for (int i = 0; i < B; i++) {
                double z = x[half][i], root = 1.0 + step * z, v = vm_max(root * root * root, 1e-300);
                candidate[i] = d * v;
                keep[i] = root > 0.0 ? 0.5 * z * z + d - d * v + d * vm_log(v) - vm_log(zil_unit(words[i])) : -1.0;
            }
            for (int i = 0; i < B && filled < B; i++)
                if (keep[i] > 0.0)
                    out[filled++] = candidate[i];
        }
    }
}

void ZIL_NAME(zil_simulate)(const uint64_t *key, long dim, double c, int64_t n, int64_t first, int64_t last, long bins,
                            int64_t *count) {
    sl_law law = sl_law_make(dim);
    const double unit = VM_SQRT2 * c;
    const long pairs = (dim - 1) / 2;
    for (int64_t chunk = first; chunk < last; chunk++) {
        zil_stream stream;
        zil_stream_open(&stream, key, ZIL_DOMAIN_TRADEOFF, (uint64_t)chunk);
        int64_t left = n - chunk * ZIL_SIMULATE_CHUNK;
        left = left < ZIL_SIMULATE_CHUNK ? left : ZIL_SIMULATE_CHUNK;
        for (int64_t done = 0; done < left; done += B) {
            double w[B], normal[B], other[B], rest[B], a[B], b[B], difference[B], llr[B], place[B];
            exponential_block(&stream, w);
            normal_block(&stream, normal, other);
            if (pairs == 0) {
                for (int i = 0; i < B; i++)
                    rest[i] = 0.0;
            } else if (pairs <= PRODUCT_SHAPES) {
                uint64_t words[PRODUCT_SHAPES * B];
                zil_stream_words(&stream, pairs * B, words);
                zil_draw_gamma(B, pairs, words, rest);
            } else {
                large_gamma_block(&stream, (double)pairs, rest);
            }
            /* squares of the dim - 1 other coordinates: 2 Gamma(pairs), and one normal more if dim is even */
            const double odd = dim % 2 ? 0.0 : 1.0;
            for (int i = 0; i < B; i++) {
                double across = w[i] * (2.0 * rest[i] + odd * other[i] * other[i]);
                double along = sqrt(w[i]) * normal[i];
                a[i] = sqrt(along * along + across);
                b[i] = sqrt((along - c) * (along - c) + across);
                difference[i] = c * (((c - along) - along) / (a[i] + b[i]));
            }
            sl_llr_block(&law, a, b, difference, llr);
            for (int i = 0; i < B; i++) {
                double size = vm_abs(llr[i]), v = size / (unit + size);
                place[i] = v < 1.0 ? v * (double)bins : (double)bins - 1.0; /* an infinite ratio goes last */
            }
            long valid = left - done < B ? (long)(left - done) : B;
            for (long i = 0; i < valid; i++) {
                long bin = (long)place[i];
                count[bin < bins ? bin : bins - 1]++;
            }
        }
    }
}
