/* Compiled once per instruction set; see isa.h. */
#include "finite.h"

int ZIL_NAME(zil_finite)(long n, const double *x) {
    uint64_t seen = 0;
    for (long i = 0; i < n; i++)
        seen |= zil_not_finite(x[i]);
    return seen == 0;
}
