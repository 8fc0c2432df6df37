#include "probe.h"

#include "vmath.h"

/* Compiled once per instruction set; see isa.h. */
void ZIL_NAME(zil_probe)(int function, long n, const double *x, double *out) {
    switch (function) {
    case ZIL_PROBE_EXP:
        for (long i = 0; i < n; i++)
            out[i] = vm_exp(x[i]);
        break;
    case ZIL_PROBE_LOG:
        for (long i = 0; i < n; i++)
            out[i] = vm_log(x[i]);
        break;
    case ZIL_PROBE_LOG1P:
        for (long i = 0; i < n; i++)
            out[i] = vm_log1p(x[i]);
        break;
    case ZIL_PROBE_SIN2PI:
        for (long i = 0; i < n; i++) {
            double c;
            vm_sincos2pi(x[i], &out[i], &c);
        }
        break;
    case ZIL_PROBE_NORMAL_CDF:
        for (long i = 0; i < n; i++)
            out[i] = vm_normal_cdf(x[i], vm_normal_density(x[i]));
        break;
    default:
        for (long i = 0; i < n; i++) {
            double s;
            vm_sincos2pi(x[i], &s, &out[i]);
        }
    }
}
