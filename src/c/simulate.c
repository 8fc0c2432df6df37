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

/* F(log r) = log g_d(r) + sqrt(2) r, which is nearly linear in log r at both ends, on a grid of log r.
 *
 * Design: two Bessel pairs were three quarters of a draw; two table look-ups are a sixth of that.  Polynomials of
 * degree 5 through six grid points are good to 1e-9, a histogram bin is 6e-5 wide.  Radii outside the grid (chance
 * below 1e-16) count as its ends. */
#define TABLE_LOW (-20.0)
#define TABLE_PER_UNIT 16
enum { TABLE_INTERVALS = 30 * TABLE_PER_UNIT, TABLE_TERMS = 6 };

typedef struct {
    double term[TABLE_TERMS][TABLE_INTERVALS];
} table;

static void make_table(const sl_law *law, table *made) {
    enum { POINTS = (TABLE_INTERVALS + TABLE_TERMS + B - 1) / B * B };
    double f[POINTS]; /* at TABLE_LOW + (j - 2)/TABLE_PER_UNIT */
    for (int start = 0; start < POINTS; start += B) {
        double x[B], log_x[B], log_p[B];
        for (int i = 0; i < B; i++)
            x[i] = VM_SQRT2 * vm_exp(TABLE_LOW + (start + i - 2) * (1.0 / TABLE_PER_UNIT));
        sl_pieces(law, x, log_x, log_p, NULL);
        for (int i = 0; i < B; i++)
            f[start + i] = sl_outer(law, x[i], log_x[i]) + x[i] + log_p[i];
    }
    for (int j = 0; j < TABLE_INTERVALS; j++) { /* Newton's divided differences at -2 .. 3, then powers of u */
        double c[TABLE_TERMS], power[TABLE_TERMS] = {0.0};
        for (int k = 0; k < TABLE_TERMS; k++)
            c[k] = f[j + k];
        for (int k = 1; k < TABLE_TERMS; k++)
            for (int i = TABLE_TERMS - 1; i >= k; i--)
                c[i] = (c[i] - c[i - 1]) / k;
        for (int k = TABLE_TERMS - 1; k >= 0; k--) { /* power <- power * (u - (k - 2)) + c[k] */
            for (int i = TABLE_TERMS - 1; i > 0; i--)
                power[i] = power[i - 1] - power[i] * (k - 2);
            power[0] = c[k] - power[0] * (k - 2);
        }
        for (int k = 0; k < TABLE_TERMS; k++)
            made->term[k][j] = power[k];
    }
}

/* F at half the logarithm of squared radii, one block.  The interval number is read off the low bits of a shifted
 * double and the six terms lie in arrays of their own, so that the loop becomes gathers. */
VM_INLINE void read_table(const table *made, const double *restrict square, double *restrict out) {
    double u[B];
    int64_t interval[B];
    for (int i = 0; i < B; i++) {
        double at = (0.5 * vm_log(vm_max(square[i], 1e-300)) - TABLE_LOW) * TABLE_PER_UNIT;
        at = vm_min(vm_max(at, 0.5), TABLE_INTERVALS - 0.5);
        double shifted = (at - 0.5) + VM_MAGIC; /* rounding either way: both neighbours fit at a grid point */
        interval[i] = (int64_t)(vm_bits(shifted) & 0xfffff);
        u[i] = at - (shifted - VM_MAGIC);
    }
    for (int i = 0; i < B; i++) {
        double f = made->term[5][interval[i]];
        f = f * u[i] + made->term[4][interval[i]];
        f = f * u[i] + made->term[3][interval[i]];
        f = f * u[i] + made->term[2][interval[i]];
        f = f * u[i] + made->term[1][interval[i]];
        out[i] = f * u[i] + made->term[0][interval[i]];
    }
}

/* log g(b) - log g(a) from squared radii; difference = b - a without cancellation. */
VM_INLINE void table_llr(const table *made, const double *restrict a2, const double *restrict b2,
                         const double *restrict difference, double *restrict llr) {
    double f[B];
    read_table(made, a2, f);
    read_table(made, b2, llr);
    for (int i = 0; i < B; i++)
        llr[i] = (llr[i] - f[i]) - VM_SQRT2 * difference[i];
}

void ZIL_NAME(zil_simulate)(const uint64_t *key, long dim, double c, int64_t n, int64_t first, int64_t last, long bins,
                            int64_t *count) {
    sl_law law = sl_law_make(dim);
    table made;
    if (dim > 1)
        make_table(&law, &made);
    const double unit = VM_SQRT2 * c;
    const long pairs = (dim - 1) / 2;
    for (int64_t chunk = first; chunk < last; chunk++) {
        zil_stream stream;
        zil_stream_open(&stream, key, ZIL_DOMAIN_TRADEOFF, (uint64_t)chunk);
        int64_t left = n - chunk * ZIL_SIMULATE_CHUNK;
        left = left < ZIL_SIMULATE_CHUNK ? left : ZIL_SIMULATE_CHUNK;
        for (int64_t done = 0; done < left; done += B) {
            double w[B], normal[B], other[B], rest[B], a2[B], b2[B], difference[B], llr[B], place[B];
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
                a2[i] = along * along + across;
                b2[i] = (along - c) * (along - c) + across;
                difference[i] = c * (((c - along) - along) / (sqrt(a2[i]) + sqrt(b2[i])));
            }
            if (dim == 1)
                for (int i = 0; i < B; i++)
                    llr[i] = -VM_SQRT2 * difference[i];
            else
                table_llr(&made, a2, b2, difference, llr);
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
