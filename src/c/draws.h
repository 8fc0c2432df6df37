/* Uniforms, exponentials and normals in blocks, from blocks of stream words.
 *
 * Every function reads a number of words that depends on its arguments alone, and is finite for
 * every value of the words (all zero and all one bits included).  Uniforms have 52 bits; the
 * certified release does not use this file.
 *
 * Design: Box-Muller, because it has no branch.  Its cost is the logarithm, so exponentials come
 * in fours from one logarithm: G = -log(U1 U2 U3 U4) is Gamma(4), and G times the four spacings of
 * three sorted uniforms are four independent Exp(1).  Measured per exponential, AVX-512:
 * 0.9 ns (with its words 1.4) against 2.2 (2.5) for one logarithm each.
 */
#ifndef ZIL_DRAWS_H
#define ZIL_DRAWS_H

#include <math.h>
#include <stdint.h>

#include "vmath.h"

/* Words that zil_draw_exponential reads for n values. */
#define ZIL_EXPONENTIAL_WORDS(n) ((n) / 4 * 7)

/* 2^-52 k for k in 1 .. 2^52: uniform on (0, 1]. */
VM_INLINE double zil_unit(uint64_t word) { return 2.0 - vm_from_bits((word >> 12) | 0x3ff0000000000000ULL); }

/* n values of Exp(1), n a multiple of 4, from ZIL_EXPONENTIAL_WORDS(n) words.  Three short loops: with
 * the long chain of the logarithm apart the processor has more to do at once (0.8 of the time of one loop). */
VM_INLINE void zil_draw_exponential(long n, const uint64_t *restrict words, double *restrict out) {
    const long q = n / 4;
    for (long i = 0; i < q; i++)
        out[i] =
            (zil_unit(words[i]) * zil_unit(words[i + q])) * (zil_unit(words[i + 2 * q]) * zil_unit(words[i + 3 * q]));
    for (long i = 0; i < q; i++)
        out[i] = 0.0 - vm_log(out[i]);
    for (long i = 0; i < q; i++) {
        double gamma = out[i];
        double a = zil_unit(words[i + 4 * q]), b = zil_unit(words[i + 5 * q]), c = zil_unit(words[i + 6 * q]);
        double low = vm_min(a, b), high = vm_max(a, b);
        double first = vm_min(low, c), middle = vm_max(low, c);
        double second = vm_min(high, middle), third = vm_max(high, middle);
        out[i] = gamma * first;
        out[i + q] = gamma * (second - first);
        out[i + 2 * q] = gamma * (third - second);
        out[i + 3 * q] = gamma * (1.0 - third);
    }
}

/* n values of Gamma(shape) for an integer shape >= 1, from shape * n words: minus the logarithm of a
 * product of uniforms, one logarithm for every 16 of them.  (A chi-square with 2 shape degrees is twice this.) */
VM_INLINE void zil_draw_gamma(long n, long shape, const uint64_t *restrict words, double *restrict out) {
    for (long i = 0; i < n; i++)
        out[i] = 0.0;
    for (long first = 0; first < shape; first += 16) {
        const long last = first + 16 < shape ? first + 16 : shape;
        for (long i = 0; i < n; i++) {
            double product = 1.0;
            for (long k = first; k < last; k++)
                product *= zil_unit(words[k * n + i]);
            out[i] -= vm_log(product);
        }
    }
}

/* sin and cos of a uniform angle: 52 bits place it in the quarter turn around 0 (as a multiple of
 * 2^-54 turns), bit 0 exchanges sine and cosine and bit 1 turns the sign of the cosine before. */
VM_INLINE void zil_angle(uint64_t word, double *sin_out, double *cos_out) {
    double s, c;
    vm_sincos_octant(vm_from_bits((word >> 12) | 0x3fd0000000000000ULL) - 0.375, &s, &c);
    uint64_t sin_bits = vm_bits(s), cos_bits = vm_bits(c) ^ ((word & 2) << 62);
    uint64_t change = (sin_bits ^ cos_bits) & (0ULL - (word & 1));
    *sin_out = vm_from_bits(sin_bits ^ change);
    *cos_out = vm_from_bits(cos_bits ^ change);
}

/* n pairs of independent normals with variance 2 e[i] in place of 2 Exp(1): (sqrt(2 e) cos, sqrt(2 e) sin)
 * of n uniform angles from n words, each times its scale.  e = Exp(1) gives normals; e = W Exp(1) gives pairs of SL. */
VM_INLINE void zil_draw_scaled_pairs(long n, const double *restrict e, const uint64_t *restrict words, double cos_scale,
                                     double sin_scale, double *restrict cos_out, double *restrict sin_out) {
    for (long i = 0; i < n; i++) {
        double s, c, r = sqrt(2.0 * e[i]);
        zil_angle(words[i], &s, &c);
        cos_out[i] = r * c * cos_scale;
        sin_out[i] = r * s * sin_scale;
    }
}

VM_INLINE void zil_draw_pairs(long n, const double *restrict e, const uint64_t *restrict words,
                              double *restrict cos_out, double *restrict sin_out) {
    zil_draw_scaled_pairs(n, e, words, 1.0, 1.0, cos_out, sin_out);
}

#endif
