#include "sl_density.h"

/* Compiled once per instruction set; see isa.h. */

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

/* Norm of (first, s[1], ..., s[dim-1]); squares that leave the range of a double are scaled first. */
static double norm_with_first(long dim, double first, const double *s, double rest) {
    double square = first * first + rest;
    if (square > 1e-280 && square < 1e300)
        return sqrt(square);
    double largest = fabs(first);
    for (long j = 1; j < dim; j++)
        largest = vm_max(largest, fabs(s[j]));
    if (largest == 0.0)
        return 0.0;
    double sum = (first / largest) * (first / largest);
    for (long j = 1; j < dim; j++)
        sum += (s[j] / largest) * (s[j] / largest);
    return largest * sqrt(sum);
}

void ZIL_NAME(zil_sl_llr)(long dim, long n, const double *s, double c, double *llr_out) {
    sl_law law = sl_law_make(dim);
    double a[BESSEL_BLOCK], b[BESSEL_BLOCK], difference[BESSEL_BLOCK], llr[BESSEL_BLOCK];
    for (long start = 0; start < n; start += BESSEL_BLOCK) {
        long count = n - start < BESSEL_BLOCK ? n - start : BESSEL_BLOCK;
        for (long i = 0; i < BESSEL_BLOCK; i++) {
            a[i] = b[i] = 1.0;
            difference[i] = 0.0;
        }
        for (long i = 0; i < count; i++) {
            const double *row = s + (start + i) * dim;
            double rest = 0.0;
            for (long j = 1; j < dim; j++)
                rest += row[j] * row[j];
            a[i] = norm_with_first(dim, row[0], row, rest);
            b[i] = norm_with_first(dim, row[0] - c, row, rest);
            double total = a[i] + b[i];
            /* |s - c e1| - |s|; (c - s_1) - s_1 keeps the digits near the half-way plane */
            difference[i] = c > 0.0 ? c * (((c - row[0]) - row[0]) / total) : 0.0;
        }
        sl_llr_block(&law, a, b, difference, llr);
        memcpy(llr_out + start, llr, (size_t)count * sizeof *llr);
    }
}
