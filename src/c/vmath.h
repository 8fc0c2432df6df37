/* Elementary functions as branch-free polynomials, so that a loop over them vectorises.
 *
 * Design: libm calls one scalar function per element (about 10 ns for exp, 20 ns for
 * log1p) and its last digits differ between machines.  These use only + - * / and bit
 * moves, which IEEE 754 fixes: the same bits for SSE2, AVX2 and AVX-512, as long as no
 * contraction (-ffp-contract=off) and no reassociation (no -ffast-math) is allowed.
 * Errors against mpmath are measured in tests/core/test_vmath.py (about 1 ulp).
 * Constants: vmath_tables.h, made by tools/make_vmath.py.
 */
#ifndef ZIL_VMATH_H
#define ZIL_VMATH_H

#include <stdint.h>
#include <string.h>

#include "vmath_tables.h"

#define VM_INLINE static inline __attribute__((always_inline))
#define VM_MAGIC 6755399441055744.0 /* 1.5 * 2^52: adding it rounds to an integer held in the low bits */
#define VM_PI 3.14159265358979323846
#define VM_SQRT2 1.41421356237309504880
#define VM_INV_SQRT_2PI 0.39894228040143267794

VM_INLINE uint64_t vm_bits(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

VM_INLINE double vm_from_bits(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

VM_INLINE double vm_min(double a, double b) { return a < b ? a : b; }
VM_INLINE double vm_max(double a, double b) { return a > b ? a : b; }
VM_INLINE double vm_abs(double a) { return vm_from_bits(vm_bits(a) & 0x7fffffffffffffffULL); }

/* exp(x); 0 below -708 (no subnormals), saturates above 709; a nan stays nan. */
VM_INLINE double vm_exp(double x) {
    double xc = x > 709.0 ? 709.0 : x;
    xc = xc < -708.0 ? -708.0 : xc;
    double kd = xc * VM_LOG2E + VM_MAGIC;
    uint64_t ki = vm_bits(kd);
    kd -= VM_MAGIC;
    double r = (xc - kd * VM_LN2_HI) - kd * VM_LN2_LO;
    double p = VM_EXP[10];
    p = p * r + VM_EXP[9];
    p = p * r + VM_EXP[8];
    p = p * r + VM_EXP[7];
    p = p * r + VM_EXP[6];
    p = p * r + VM_EXP[5];
    p = p * r + VM_EXP[4];
    p = p * r + VM_EXP[3];
    p = p * r + VM_EXP[2];
    p = p * r + VM_EXP[1];
    p = p * r + VM_EXP[0];
    p = (p * r) * r + r;
    double scale = vm_from_bits((ki + 1023) << 52);
    double y = scale + scale * p;
    return x < -708.0 ? 0.0 : y;
}

/* 2 atanh(s) - 2 s = s^3 * (...), the tail of the logarithm series */
VM_INLINE double vm_log_tail(double s) {
    double z = s * s;
    double p = VM_LOG[7];
    p = p * z + VM_LOG[6];
    p = p * z + VM_LOG[5];
    p = p * z + VM_LOG[4];
    p = p * z + VM_LOG[3];
    p = p * z + VM_LOG[2];
    p = p * z + VM_LOG[1];
    p = p * z + VM_LOG[0];
    return p * z * s;
}

/* log(x) for normal x > 0 (caller's duty); 0, subnormals, negatives, inf and nan are not handled. */
VM_INLINE double vm_log(double x) {
    uint64_t u = vm_bits(x);
    /* shift so that the mantissa lies in [sqrt(1/2), sqrt(2)) */
    uint64_t t = u - 0x3fe6a09e00000000ULL;
    uint64_t k = (uint64_t)((int64_t)t >> 52);
    double kd = vm_from_bits(vm_bits(VM_MAGIC) + k) - VM_MAGIC;
    double m = vm_from_bits(u - (k << 52));
    double f = m - 1.0;
    double s = f / (2.0 + f);
    /* log(1+f) = f - s*(f - tail'), the form that keeps f exact */
    double half = 0.5 * f * f;
    double tail = vm_log_tail(s); /* log(1+f) = 2 s + tail;  2 s = f - s f */
    double low = s * half;        /* s f = f^2/2 - s f^2/2 */
    return kd * VM_LN2_HI - ((half - (low + (tail + kd * VM_LN2_LO))) - f);
}

/* log(1 + y) for 0 <= y <= 2^52, good relative accuracy near 0. */
VM_INLINE double vm_log1p(double y) {
    double w = 1.0 + y;
    double c = (y - (w - 1.0)) / w;
    return vm_log(w) + c;
}

/* Normal density at z. */
VM_INLINE double vm_normal_density(double z) { return VM_INV_SQRT_2PI * vm_exp(-0.5 * (z * z)); }

/* Normal distribution at z, `density` that of vm_normal_density(z): the density times the Mills ratio of |z|.  Below
 * -37.6 the density is 0 (vm_exp has no subnormals), and so is this. */
VM_INLINE double vm_normal_cdf(double z, double density) {
    double x = vm_min(vm_abs(z), 39.0), w = 1.0 / (x + 5.0);
    double u = (x - 5.0) * w;
    double p = VM_MILLS[21];
    p = p * u + VM_MILLS[20];
    p = p * u + VM_MILLS[19];
    p = p * u + VM_MILLS[18];
    p = p * u + VM_MILLS[17];
    p = p * u + VM_MILLS[16];
    p = p * u + VM_MILLS[15];
    p = p * u + VM_MILLS[14];
    p = p * u + VM_MILLS[13];
    p = p * u + VM_MILLS[12];
    p = p * u + VM_MILLS[11];
    p = p * u + VM_MILLS[10];
    p = p * u + VM_MILLS[9];
    p = p * u + VM_MILLS[8];
    p = p * u + VM_MILLS[7];
    p = p * u + VM_MILLS[6];
    p = p * u + VM_MILLS[5];
    p = p * u + VM_MILLS[4];
    p = p * u + VM_MILLS[3];
    p = p * u + VM_MILLS[2];
    p = p * u + VM_MILLS[1];
    p = p * u + VM_MILLS[0];
    double tail = density * (p * w);
    return z > 0.0 ? 1.0 - tail : tail;
}

/* sin and cos of 2 pi r, |r| <= 1/8. */
VM_INLINE void vm_sincos_octant(double r, double *sin_out, double *cos_out) {
    double z = r * r;
    double s = VM_SIN[7];
    s = s * z + VM_SIN[6];
    s = s * z + VM_SIN[5];
    s = s * z + VM_SIN[4];
    s = s * z + VM_SIN[3];
    s = s * z + VM_SIN[2];
    s = s * z + VM_SIN[1];
    s = s * z + VM_SIN[0];
    *sin_out = s * r;
    double c = VM_COS[7];
    c = c * z + VM_COS[6];
    c = c * z + VM_COS[5];
    c = c * z + VM_COS[4];
    c = c * z + VM_COS[3];
    c = c * z + VM_COS[2];
    c = c * z + VM_COS[1];
    c = c * z + VM_COS[0];
    *cos_out = c * z + 1.0;
}

/* sin and cos of 2 pi u, |u| <= 2^50. */
VM_INLINE void vm_sincos2pi(double u, double *sin_out, double *cos_out) {
    double kd = 4.0 * u + VM_MAGIC;
    uint64_t k = vm_bits(kd);
    double s, c;
    vm_sincos_octant(u - 0.25 * (kd - VM_MAGIC), &s, &c);
    uint64_t odd = 0ULL - (k & 1);
    uint64_t sb = vm_bits(s), cb = vm_bits(c);
    uint64_t ss = (sb & ~odd) | (cb & odd);
    uint64_t cc = (cb & ~odd) | (sb & odd);
    ss ^= (k & 2) << 62;
    cc ^= ((k + 1) & 2) << 62;
    *sin_out = vm_from_bits(ss);
    *cos_out = vm_from_bits(cc);
}

#endif
