/* One source, several instruction sets, the same bits.
 *
 * A kernel file is compiled once per instruction set (the table in src/meson.build), each
 * time with ZIL_ISA set to base, avx2 or avx512, and names its entry points ZIL_NAME(...).
 * zil_isa_resolve answers which copy to call.  Level -1 asks for the best; tests ask for
 * each in turn and compare bytes.  Only the baseline exists off x86-64.
 */
#ifndef ZIL_ISA_H
#define ZIL_ISA_H

#define ZIL_CONCAT_(a, b) a##_##b
#define ZIL_CONCAT(a, b) ZIL_CONCAT_(a, b)
#ifdef ZIL_ISA
#define ZIL_NAME(name) ZIL_CONCAT(name, ZIL_ISA)
#endif

enum { ZIL_ISA_BASE = 0, ZIL_ISA_AVX2 = 1, ZIL_ISA_AVX512 = 2 };

/* The highest level this machine and this build can run. */
int zil_isa_best(void);
/* level < 0: the best; otherwise min(level, best). */
int zil_isa_resolve(int level);

/* Call name_<isa>(args) for the resolved level. */
#ifdef ZIL_HAVE_X86_ISA
#define ZIL_DISPATCH(level, name)                             \
    (zil_isa_resolve(level) == ZIL_ISA_AVX512 ? name##_avx512 \
     : zil_isa_resolve(level) == ZIL_ISA_AVX2 ? name##_avx2   \
                                              : name##_base)
#define ZIL_DECLARE(returns, name, args) \
    returns name##_base args;            \
    returns name##_avx2 args;            \
    returns name##_avx512 args;
#else
#define ZIL_DISPATCH(level, name) ((void)(level), name##_base)
#define ZIL_DECLARE(returns, name, args) returns name##_base args;
#endif

#endif
