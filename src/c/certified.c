/* Compiled once per instruction set; see isa.h and certified.h.
 *
 * Every numbered step is a line of the proof in docs/certified_sampler.md; constants and bounds are
 * derived again by tools/certify_sampler.py.  Only + - * / sqrt and bit moves of IEEE 754 are used, each
 * rounded once (-ffp-contract=off), so every build computes the same bits.
 *
 * Design: plain double arithmetic, not double-double.  With scale/tick near 2^20 the bound is about
 * 2^-28 of a tick and 5e-8 of the rows go to the slow path, which costs less than one extra
 * operation per row would.
 */
#include "certified.h"

#include <math.h>
#include <string.h>

#include "certified_tables.h"
#include "chacha.h"
#include "vmath.h"

enum {
    ROWS = 16,                                  /* rows computed together: the blocks of one key-stream group */
    SPAN = ZIL_CHACHA_GROUP * ZIL_CHACHA_WORDS, /* 128 rows use a whole number of groups, whatever w is */
};

/* [C1] the double nearest to word * 2^-64: exact halves, one rounded sum, exact scaling. */
VM_INLINE double uniform(uint64_t word) {
    double high = vm_from_bits(0x4530000000000000ULL | word >> 32) - 19342813118337666422669312.0; /* 2^84 + 2^52 */
    double low = vm_from_bits(0x4330000000000000ULL | (word & 0xffffffffULL));                     /* 2^52 + low half */
    return (high + low) * 5.421010862427522170037e-20;                                             /* 2^-64 */
}

/* [C2] -log(x) for 2^-64 <= x <= 1, relative error at most CERT_LOG_ERROR; finite rubbish at x = 0. */
VM_INLINE double minus_log(double x) {
    uint64_t bits = vm_bits(x);
    uint64_t k = (bits + 0x00095f6200000000ULL) >> 52; /* exponent + 1023, mantissa moved to [sqrt(1/2), sqrt(2)) */
    double minus_exponent = 4503599627371519.0 - vm_from_bits(0x4330000000000000ULL | k); /* 2^52 + 1023 */
    double f = vm_from_bits(bits - ((k - 1023) << 52)) - 1.0;
    double s = f / (2.0 + f);
    double z = s * s;
    double q = CERT_ATANH[8];
    q = q * z + CERT_ATANH[7];
    q = q * z + CERT_ATANH[6];
    q = q * z + CERT_ATANH[5];
    q = q * z + CERT_ATANH[4];
    q = q * z + CERT_ATANH[3];
    q = q * z + CERT_ATANH[2];
    q = q * z + CERT_ATANH[1];
    q = q * z + CERT_ATANH[0];
    return minus_exponent * CERT_LN2 - (2.0 * s + (s * z) * q);
}

/* [C3] cosine and sine of 2 pi U for the U whose first 64 bits are word; absolute error at most
 * CERT_ANGLE_ERROR, the bits of U beyond 2^-54 included. */
VM_INLINE void turn(uint64_t word, double *cosine, double *sine) {
    uint64_t v = word + 0x2000000000000200ULL; /* 1/8 turn, and half of 2^-54 to round to nearest */
    uint64_t quadrant = v >> 62;
    uint64_t y = (v & 0x3fffffffffffffffULL) >> 10;
    double centred = vm_from_bits(0x4330000000000000ULL | y) - 6755399441055744.0; /* 2^52 + 2^51 */
    double r = centred * 5.551115123125782702e-17;                                 /* 2^-54 */
    double z = r * r;
    double s = CERT_SIN[7];
    s = s * z + CERT_SIN[6];
    s = s * z + CERT_SIN[5];
    s = s * z + CERT_SIN[4];
    s = s * z + CERT_SIN[3];
    s = s * z + CERT_SIN[2];
    s = s * z + CERT_SIN[1];
    s = s * z + CERT_SIN[0];
    s = s * r;
    double c = CERT_COS[7];
    c = c * z + CERT_COS[6];
    c = c * z + CERT_COS[5];
    c = c * z + CERT_COS[4];
    c = c * z + CERT_COS[3];
    c = c * z + CERT_COS[2];
    c = c * z + CERT_COS[1];
    c = c * z + CERT_COS[0];
    c = c * z + 1.0;
    uint64_t odd = 0ULL - (quadrant & 1);
    uint64_t sb = vm_bits(s), cb = vm_bits(c), exchange = (sb ^ cb) & odd;
    *sine = vm_from_bits((sb ^ exchange) ^ (quadrant & 2) << 62);
    *cosine = vm_from_bits((cb ^ exchange) ^ ((quadrant + 1) & 2) << 62);
}

/* What truncation of U to 64 bits and its rounding to double may change in E = -ln U, as a share of E:
 * [C4] (2^-53 x + 2^-64) / (x E); infinite or nan where the ratio has no meaning. */
VM_INLINE double truncation(double x, double e) {
    return (1.1102230246251565404e-16 * x + 5.421010862427522170037e-20) / (x * e);
}

typedef struct {
    double w[ROWS], share[ROWS]; /* W and [C4] of U0 */
    uint64_t bad[ROWS];          /* 1: the row must be redone */
} row_state;

VM_INLINE void begin_rows(const uint64_t *u0, row_state *state) {
    for (int r = 0; r < ROWS; r++) {
        double x = uniform(u0[r]);
        double w = minus_log(x);
        double share = truncation(x, w);
        state->w[r] = w;
        state->share[r] = share;
        state->bad[r] = !(share <= CERT_SHARE_LIMIT); /* nan is bad */
    }
}

typedef struct {
    int64_t tick[ROWS];
    double value[ROWS], bound[ROWS];
} column;

/* [C5] T = R sqrt(2 W E) times cosine or sine, [C6] its bound, [C7] the decision. */
VM_INLINE void pair_of_columns(const uint64_t *u1, const uint64_t *u2, double scale0, double scale1, row_state *state,
                               column *c0, column *c1) {
    for (int r = 0; r < ROWS; r++) {
        double x = uniform(u1[r]);
        double e = minus_log(x);
        double share = truncation(x, e);
        double radius = sqrt((2.0 * state->w[r]) * e);
        double cosine, sine;
        turn(u2[r], &cosine, &sine);
        double relative = CERT_RELATIVE + CERT_HALF * (state->share[r] + share);
        double reach0 = scale0 * radius, reach1 = scale1 * radius;
        double t0 = reach0 * cosine, t1 = reach1 * sine;
        double bound0 = reach0 * relative, bound1 = reach1 * relative;
        double m0 = t0 + VM_MAGIC, m1 = t1 + VM_MAGIC;
        double margin0 = 0.5 - vm_abs(t0 - (m0 - VM_MAGIC)), margin1 = 0.5 - vm_abs(t1 - (m1 - VM_MAGIC));
        c0->tick[r] = (int64_t)(vm_bits(m0) - vm_bits(VM_MAGIC));
        c1->tick[r] = (int64_t)(vm_bits(m1) - vm_bits(VM_MAGIC));
        c0->value[r] = t0;
        c1->value[r] = t1;
        c0->bound[r] = bound0;
        c1->bound[r] = bound1;
        uint64_t good =
            (uint64_t)(share <= CERT_SHARE_LIMIT) & (uint64_t)(margin0 > bound0) & (uint64_t)(margin1 > bound1);
        state->bad[r] |= good ^ 1;
    }
}

static unsigned long groups_of(long d) { return (unsigned long)zil_certified_words(d) + 1; }

/* planes, scratch, the words of 16 rows by column (absent when w is 8: a row is a block then), ticks by column */
unsigned long ZIL_NAME(zil_certified_workspace)(long d) {
    unsigned long w = (unsigned long)zil_certified_words(d);
    return sizeof(uint64_t) * (groups_of(d) * ZIL_CHACHA_PLANES + ROWS * w) + sizeof(uint32_t) * ZIL_CHACHA_SCRATCH +
           sizeof(column) * (w - 2);
}

long ZIL_NAME(zil_certified_fill)(const uint8_t *key, uint64_t first_row, uint64_t zero_threshold, int all_zero, long n,
                                  long d, const double *scale_over_tick, int64_t *out, int64_t *redo_out,
                                  void *workspace) {
    const long w = zil_certified_words(d), pairs = w / 2 - 1;
    uint64_t *planes = workspace;
    uint64_t *gathered = planes + groups_of(d) * ZIL_CHACHA_PLANES;
    column *columns = (column *)(gathered + ROWS * w);
    uint32_t *scratch = (uint32_t *)(columns + 2 * pairs);
    row_state state;
    long redo = 0;
    memset(planes, 0, sizeof(uint64_t) * groups_of(d) * ZIL_CHACHA_PLANES); /* a short span leaves some unused */
    for (long top = 0; top < n; top += SPAN) {
        long span = n - top < SPAN ? n - top : SPAN;
        uint64_t word = (first_row + (uint64_t)top) * (uint64_t)w;
        uint64_t block = word / ZIL_CHACHA_WORDS, shift = word % ZIL_CHACHA_WORDS;
        uint64_t blocks = (shift + (uint64_t)(span * w) + ZIL_CHACHA_WORDS - 1) / ZIL_CHACHA_WORDS;
        for (uint64_t g = 0; g * ZIL_CHACHA_GROUP < blocks; g++)
            ZIL_NAME(zil_chacha_group)(key, ZIL_CERTIFIED_NONCE(0), block + g * ZIL_CHACHA_GROUP,
                                       planes + g * ZIL_CHACHA_PLANES, scratch);
        for (long row = 0; row < span; row += ROWS) {
            long rows = span - row < ROWS ? span - row : ROWS;
            const uint64_t *words = planes + row / ZIL_CHACHA_GROUP * ZIL_CHACHA_PLANES;
            if (w != ZIL_CHACHA_WORDS) {
                for (long k = 0; k < w; k++)
                    for (long r = 0; r < ROWS; r++) { /* rows beyond the span read what is there, and are dropped */
                        uint64_t i = shift + (uint64_t)((row + r) * w + k);
                        gathered[ROWS * k + r] =
                            planes[(i & ~(uint64_t)(ZIL_CHACHA_PLANES - 1)) |
                                   (i % ZIL_CHACHA_WORDS) * ZIL_CHACHA_GROUP | i / ZIL_CHACHA_WORDS % ZIL_CHACHA_GROUP];
                    }
                words = gathered;
            }
            begin_rows(words + ROWS, &state);
            for (long p = 0; p < pairs; p++)
                pair_of_columns(words + ROWS * (2 + 2 * p), words + ROWS * (3 + 2 * p), scale_over_tick[2 * p],
                                2 * p + 1 < d ? scale_over_tick[2 * p + 1] : 0.0, &state, &columns[2 * p],
                                &columns[2 * p + 1]);
            for (long r = 0; r < rows; r++) {
                int64_t keep = (int64_t)((uint64_t)((words[r] < zero_threshold) | all_zero) - 1); /* 0 or all bits */
                int64_t *out_row = out + (top + row + r) * d;
                for (long j = 0; j < d; j++)
                    out_row[j] = columns[j].tick[r] & keep;
                redo_out[redo] = top + row + r;
                redo += (long)state.bad[r];
            }
        }
    }
    zil_wipe(&state, sizeof state);
    zil_wipe(workspace, ZIL_NAME(zil_certified_workspace)(d));
    return redo;
}

long ZIL_NAME(zil_certified_rows)(const uint64_t *words, long n, long d, const double *scale_over_tick,
                                  int64_t *ticks_out, double *value_out, double *bound_out, uint8_t *redo_out) {
    const long w = zil_certified_words(d);
    uint64_t u0[ROWS], u1[ROWS], u2[ROWS];
    row_state state;
    column c[2];
    long redo = 0;
    for (long top = 0; top < n; top += ROWS) {
        long rows = n - top < ROWS ? n - top : ROWS;
        for (long r = 0; r < ROWS; r++)
            u0[r] = words[(top + (r < rows ? r : 0)) * w + 1];
        begin_rows(u0, &state);
        for (long j = 0; j < d; j += 2) {
            for (long r = 0; r < ROWS; r++) {
                const uint64_t *row = words + (top + (r < rows ? r : 0)) * w;
                u1[r] = row[2 + j];
                u2[r] = row[3 + j];
            }
            pair_of_columns(u1, u2, scale_over_tick[j], j + 1 < d ? scale_over_tick[j + 1] : 0.0, &state, &c[0], &c[1]);
            for (long r = 0; r < rows; r++)
                for (long i = j; i < d && i < j + 2; i++) {
                    ticks_out[(top + r) * d + i] = c[i - j].tick[r];
                    value_out[(top + r) * d + i] = c[i - j].value[r];
                    bound_out[(top + r) * d + i] = c[i - j].bound[r];
                }
        }
        for (long r = 0; r < rows; r++) {
            redo_out[top + r] = (uint8_t)state.bad[r];
            redo += (long)state.bad[r];
        }
    }
    return redo;
}
