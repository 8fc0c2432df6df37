#include "sl_density.h"

#include <stdlib.h>

#include "status.h"

/* Compiled once per instruction set; see isa.h.
 *
 * Design: a block of rows goes from the table to its values in one pass: standardise, norm, density.  The norms are
 * sums of squares of rows times the reciprocal scales, checked once per row: a sum that is not well inside the range
 * of a double (tiny, huge, infinite, nan, or with a scale that has no normal reciprocal) is made again with care.
 */

#define SL_SQUARE_LOW 1e-280
#define SL_SQUARE_HIGH 1e300

void ZIL_NAME(zil_sl_log_density)(long dim, long n, const double *r, double *log_g_out) {
    sl_law law = sl_law_make(dim);
    double radius[BESSEL_BLOCK], log_g[BESSEL_BLOCK];
    for (long start = 0; start < n; start += BESSEL_BLOCK) {
        long count = n - start < BESSEL_BLOCK ? n - start : BESSEL_BLOCK;
        for (long i = 0; i < BESSEL_BLOCK; i++)
            radius[i] = i < count ? r[start + i] : 1.0;
        sl_block(&law, radius, log_g, NULL);
        memcpy(log_g_out + start, log_g, (size_t)count * sizeof *log_g);
    }
}

/* ---- norms of rows ---------------------------------------------------------------------------------------------- */

/* Sums of squares of the columns `from` .. d - 1 of row-major rows, each column times its weight (null: 1).  Wide rows
 * in eight fixed lanes: the same order of adding, so the same bits, for every instruction set. */
VM_INLINE void sum_squares(long d, long from, long rows, const double *restrict x, const double *restrict weight,
                           double *restrict sum) {
    if (d <= 8) {
        for (long i = 0; i < rows; i++) {
            double total = 0.0;
            for (long j = from; j < d; j++) {
                double y = weight ? x[i * d + j] * weight[j] : x[i * d + j];
                total += y * y;
            }
            sum[i] = total;
        }
        return;
    }
    for (long i = 0; i < rows; i++) {
        const double *row = x + i * d;
        double lane[8] = {0.0};
        long j = from;
        for (; j + 8 <= d; j += 8)
            for (long l = 0; l < 8; l++) {
                double y = weight ? row[j + l] * weight[j + l] : row[j + l];
                lane[l] += y * y;
            }
        for (long l = 0; j < d; j++, l++) {
            double y = weight ? row[j] * weight[j] : row[j];
            lane[l] += y * y;
        }
        sum[i] = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
    }
}

/* The same with d known to the compiler for small d. */
static void block_squares(long d, long from, long rows, const double *x, const double *weight, double *sum) {
    switch (d) {
    case 1: sum_squares(1, from, rows, x, weight, sum); break;
    case 2: sum_squares(2, from, rows, x, weight, sum); break;
    case 3: sum_squares(3, from, rows, x, weight, sum); break;
    case 4: sum_squares(4, from, rows, x, weight, sum); break;
    case 5: sum_squares(5, from, rows, x, weight, sum); break;
    case 6: sum_squares(6, from, rows, x, weight, sum); break;
    case 7: sum_squares(7, from, rows, x, weight, sum); break;
    case 8: sum_squares(8, from, rows, x, weight, sum); break;
    default: sum_squares(d, from, rows, x, weight, sum);
    }
}

VM_INLINE int in_range(double square) { return square > SL_SQUARE_LOW && square < SL_SQUARE_HIGH; }

static int all_in_range(const double *square, long rows) {
    int fine = 1;
    for (long i = 0; i < rows; i++)
        fine &= in_range(square[i]);
    return fine;
}

/* Largest absolute value of d entries; nan if one is nan. */
static double largest(long d, const double *x) {
    double most = 0.0, nan = 0.0;
    for (long j = 0; j < d; j++) {
        most = vm_max(fabs(x[j]), most);
        nan += x[j] != x[j] ? x[j] : 0.0;
    }
    return nan == nan ? most : nan;
}

/* Norm of d entries of any size. */
static double careful_norm(long d, const double *x) {
    double unit = largest(d, x), sum = 0.0;
    if (unit == 0.0 || !(unit <= 1.7976931348623157e308))
        return unit;
    for (long j = 0; j < d; j++)
        sum += (x[j] / unit) * (x[j] / unit);
    return unit * sqrt(sum);
}

/* ---- density of rows -------------------------------------------------------------------------------------------- */

/* What standardises a row: y_j = x_j/scale_j, or L y = x.  `weight`: reciprocals of the scales or of the diagonal. */
typedef struct {
    long d;
    const double *scale, *lower;
    double *weight;
    double *planes; /* d planes of BESSEL_BLOCK (lower only), then room for one row */
    double *row;
} sl_frame;

/* Squares of the solutions of L y = x of one block by forward substitution, all rows of a column at once. */
static void solve_squares(const sl_frame *frame, long rows, const double *x, double *restrict square) {
    const long d = frame->d;
    for (long i = 0; i < BESSEL_BLOCK; i++)
        square[i] = 0.0;
    for (long j = 0; j < d; j++) {
        const double *lower = frame->lower + j * d;
        double y[BESSEL_BLOCK], *restrict plane = frame->planes + j * BESSEL_BLOCK;
        for (long i = 0; i < BESSEL_BLOCK; i++)
            y[i] = i < rows ? x[i * d + j] : 1.0;
        long k = 0;
        for (; k + 4 <= j; k += 4) {
            const double *p = frame->planes + k * BESSEL_BLOCK;
            const double a = lower[k], b = lower[k + 1], c = lower[k + 2], e = lower[k + 3];
            for (long i = 0; i < BESSEL_BLOCK; i++)
                y[i] -=
                    (a * p[i] + b * p[BESSEL_BLOCK + i]) + (c * p[2 * BESSEL_BLOCK + i] + e * p[3 * BESSEL_BLOCK + i]);
        }
        for (; k < j; k++) {
            const double *p = frame->planes + k * BESSEL_BLOCK;
            for (long i = 0; i < BESSEL_BLOCK; i++)
                y[i] -= lower[k] * p[i];
        }
        for (long i = 0; i < BESSEL_BLOCK; i++) {
            double value = y[i] * frame->weight[j];
            plane[i] = value;
            square[i] += value * value;
        }
    }
}

/* Norm of one standardised row, of any size; inf for a row with an infinite entry, nan for one with a nan. */
static double careful_radius(const sl_frame *frame, const double *x) {
    const long d = frame->d;
    double *y = frame->row, unit = largest(d, x);
    if (unit == 0.0 || !(unit <= 1.7976931348623157e308))
        return unit;
    if (!frame->lower) {
        for (long j = 0; j < d; j++)
            y[j] = x[j] / frame->scale[j];
        return careful_norm(d, y);
    }
    for (long j = 0; j < d; j++) {
        double value = x[j] / unit;
        for (long k = 0; k < j; k++)
            value -= frame->lower[j * d + k] * y[k];
        y[j] = value / frame->lower[j * d + j];
    }
    return unit * careful_norm(d, y);
}

int ZIL_NAME(zil_sl_logpdf)(long dim, long n, const double *x, const double *scale, const double *lower,
                            double half_log_det, double *log_out) {
    const long d = dim;
    double *memory = malloc((size_t)(2 * d + (lower ? d * BESSEL_BLOCK : 0)) * sizeof(double));
    if (!memory)
        return ZIL_NO_MEMORY;
    sl_frame frame = {d, scale, lower, memory, memory + 2 * d, memory + d};
    for (long j = 0; j < d; j++) {
        double weight = 1.0 / (lower ? lower[j * d + j] : scale[j]);
        /* a nan sends every row to careful_radius */
        frame.weight[j] = weight > 2.3e-308 && weight < 1.7e308 ? weight : NAN;
    }
    sl_law law = sl_law_make(dim);
    double radius[BESSEL_BLOCK], log_g[BESSEL_BLOCK];
    for (long start = 0; start < n; start += BESSEL_BLOCK) {
        const long count = n - start < BESSEL_BLOCK ? n - start : BESSEL_BLOCK;
        const double *block = x + start * d;
        for (long i = count; i < BESSEL_BLOCK; i++)
            radius[i] = 1.0;
        if (lower)
            solve_squares(&frame, count, block, radius);
        else
            block_squares(d, 0, count, block, frame.weight, radius);
        const int fine = all_in_range(radius, count);
        double square[BESSEL_BLOCK];
        for (long i = 0; i < BESSEL_BLOCK; i++) {
            square[i] = radius[i];
            radius[i] = sqrt(square[i]);
        }
        if (!fine)
            for (long i = 0; i < count; i++)
                if (!in_range(square[i]))
                    radius[i] = careful_radius(&frame, block + i * d);
        sl_block(&law, radius, log_g, NULL);
        for (long i = 0; i < count; i++)
            log_out[start + i] = log_g[i] - half_log_det;
    }
    free(memory);
    return ZIL_OK;
}

/* ---- likelihood ratio of a shift -------------------------------------------------------------------------------- */

/* Norm of (first, s[1], ..., s[dim-1]) of any size. */
static double careful_with_first(long dim, double first, const double *s) {
    double rest = careful_norm(dim - 1, s + 1), two[2] = {first, rest};
    return careful_norm(2, two);
}

int ZIL_NAME(zil_sl_llr)(long dim, long n, const double *s, double c, double *llr_out) {
    sl_law law = sl_law_make(dim);
    double a[BESSEL_BLOCK], b[BESSEL_BLOCK], first[BESSEL_BLOCK], rest[BESSEL_BLOCK], difference[BESSEL_BLOCK],
        llr[BESSEL_BLOCK];
    int finite = 1;
    for (long start = 0; start < n; start += BESSEL_BLOCK) {
        const long count = n - start < BESSEL_BLOCK ? n - start : BESSEL_BLOCK;
        const double *block = s + start * dim;
        block_squares(dim, 1, count, block, NULL, rest);
        for (long i = 0; i < BESSEL_BLOCK; i++) {
            first[i] = i < count ? block[i * dim] : 1.0;
            rest[i] = i < count ? rest[i] : 1.0;
        }
        int fine = 1;
        for (long i = 0; i < BESSEL_BLOCK; i++) {
            const double other = first[i] - c;
            a[i] = first[i] * first[i] + rest[i];
            b[i] = other * other + rest[i];
            fine &= in_range(a[i]) & in_range(b[i]);
            a[i] = sqrt(a[i]);
            b[i] = sqrt(b[i]);
        }
        if (!fine)
            for (long i = 0; i < count; i++) {
                const double *row = block + i * dim;
                finite &= largest(dim, row) <= 1.7976931348623157e308;
                a[i] = careful_with_first(dim, first[i], row);
                b[i] = careful_with_first(dim, first[i] - c, row);
            }
        for (long i = 0; i < BESSEL_BLOCK;
             i++) /* |s - c e1| - |s|; (c - s_1) - s_1 keeps digits near the half-way plane */
            difference[i] = c > 0.0 ? c * (((c - first[i]) - first[i]) / (a[i] + b[i])) : 0.0;
        sl_llr_block(&law, a, b, difference, llr);
        memcpy(llr_out + start, llr, (size_t)count * sizeof *llr);
    }
    return finite ? ZIL_OK : ZIL_NOT_FINITE;
}
