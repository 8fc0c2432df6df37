/* Scaled modified Bessel functions of the second kind, orders 0, 1/2, 1, 3/2, ..., in blocks.
 *
 * Design: only integer and half-integer orders occur (order |d/2 - 1|), so one forward
 * recurrence serves all, started from K_0, K_1 (rational functions, series) or from
 * K_{1/2}, K_{3/2} (elementary).  Forward is the stable direction, all terms are positive.
 * Two scalings keep every number in range for any order and argument:
 *
 *   x >= 1:  p_v = exp(x) sqrt(2x/pi) K_v(x)            p_{v+1} = p_{v-1} + (2v/x) p_v
 *   x < 1:   p_v = x^v K_v(x)/(2^{v-1} Gamma(v))        p_{v+1} = p_v + x^2/(4v(v-1)) p_{v-1}
 *            (times exp(x) for half-integer v; p_0 = K_0(x))
 *
 * written as one recurrence a p_v + b p_{v-1} with per-lane a and b, so that a loop over
 * lanes vectorises whatever mixture of arguments it holds.  Against the complex AMOS routine
 * behind scipy.special.kve: see benchmarks/bench_density.py.
 * Constants: bessel_tables.h, made by tools/make_bessel.py.
 */
#ifndef ZIL_BESSEL_H
#define ZIL_BESSEL_H

#include "bessel_tables.h"
#include "vmath.h"

#define BESSEL_BLOCK 64
#define BESSEL_RESCALE 32 /* steps between rescalings: less than 1e290 of growth for orders up to 1e8 */

/* log(x), also for subnormal x > 0. */
VM_INLINE double bessel_log(double x) {
    int tiny = x < 1e-290;
    double scaled = tiny ? x * 0x1p200 : x;
    double shift = tiny ? 200.0 * 0.69314718055994530942 : 0.0;
    return vm_log(scaled) - shift;
}

VM_INLINE double bessel_poly9(const double *a, double z) {
    double p = a[8];
    for (int k = 7; k >= 0; k--)
        p = p * z + a[k];
    return p;
}

VM_INLINE double bessel_poly11(const double *a, double z) {
    double p = a[10];
    for (int k = 9; k >= 0; k--)
        p = p * z + a[k];
    return p;
}

/* p_0 and p_1; log_x = log(x). */
VM_INLINE void bessel_start_integer(double x, double log_x, double *p0, double *p1) {
    double y = 1.0 / vm_max(x, 1.0);
    double large0 = bessel_poly11(BESSEL_P0, y) / bessel_poly11(BESSEL_Q0, y);
    double large1 = bessel_poly11(BESSEL_P1, y) / bessel_poly11(BESSEL_Q1, y);
    double xs = vm_min(x, 1.0);
    double z = 0.25 * xs * xs;
    double half_log = vm_min(log_x, 0.0) - 0.69314718055994530942;
    double small0 = bessel_poly9(BESSEL_K0, z) - half_log * bessel_poly9(BESSEL_I0, z);
    double small1 = 1.0 + 2.0 * z * (half_log * bessel_poly9(BESSEL_I1, z) - bessel_poly9(BESSEL_K1, z));
    *p0 = x < 1.0 ? small0 : large0;
    *p1 = x < 1.0 ? small1 : large1;
}

/* p_{1/2} and p_{3/2}. */
VM_INLINE void bessel_start_half(double x, double *p0, double *p1) {
    *p0 = 1.0;
    *p1 = 1.0 + (x < 1.0 ? x : 1.0 / x);
}

/* Advance (previous, current) from orders (first, first + 1) by ``steps`` orders.  exponent
 * counts factors of two taken out of both. */
VM_INLINE void bessel_advance(double first, long steps, const double *restrict x, double *restrict previous,
                              double *restrict current, double *restrict exponent) {
    double a0[BESSEL_BLOCK], a1[BESSEL_BLOCK], b0[BESSEL_BLOCK], b1[BESSEL_BLOCK];
    for (int i = 0; i < BESSEL_BLOCK; i++) {
        int small = x[i] < 1.0;
        a0[i] = small ? 1.0 : 0.0;
        a1[i] = small ? 0.0 : 2.0 / x[i];
        b0[i] = small ? 0.0 : 1.0;
        b1[i] = small ? x[i] * x[i] : 0.0;
    }
    for (long k = 0; k < steps; k++) {
        double v = first + 1.0 + (double)k;
        double kappa = v > 1.0 ? 0.25 / (v * (v - 1.0)) : 0.5;
        for (int i = 0; i < BESSEL_BLOCK; i++) {
            double next = (a0[i] + a1[i] * v) * current[i] + (b0[i] + b1[i] * kappa) * previous[i];
            previous[i] = current[i];
            current[i] = next;
        }
        if (k % BESSEL_RESCALE == BESSEL_RESCALE - 1)
            for (int i = 0; i < BESSEL_BLOCK; i++) {
                /* the power of two in the current value, taken out exactly */
                uint64_t field = vm_bits(current[i]) >> 52;
                double down = vm_from_bits((2046 - field) << 52);
                double power = vm_from_bits(vm_bits(VM_MAGIC) + field) - VM_MAGIC;
                previous[i] *= down;
                current[i] *= down;
                exponent[i] += power - 1023.0;
            }
    }
}

#endif
