#include "isa.h"

int zil_isa_best(void) {
#ifdef ZIL_HAVE_X86_ISA
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        return ZIL_ISA_AVX512;
    if (__builtin_cpu_supports("avx2"))
        return ZIL_ISA_AVX2;
#endif
    return ZIL_ISA_BASE;
}

int zil_isa_resolve(int level) {
    int best = zil_isa_best();
    return level < 0 || level > best ? best : level;
}
