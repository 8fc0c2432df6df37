"""What was built: version, compiler, instruction sets, and the elementary functions of the kernels one by one."""

cdef extern from "isa.h" nogil:
    int zil_isa_best()

cdef extern from "probe.h" nogil:
    void zil_probe(int isa, int function, long n, const double *x, double *out)

cdef extern from "zil_build.h" nogil:
    const char *ZIL_BUILD_COMPILER
    const char *ZIL_BUILD_TYPE
    const char *ZIL_BUILD_ISA
    const char *ZIL_BUILD_NUMPY
    const char *ZIL_BUILD_VERSION

FUNCTIONS = {"exp": 0, "log": 1, "log1p": 2, "sin2pi": 3, "cos2pi": 4, "normal_cdf": 5}


def best_isa():
    """Highest instruction-set level this build can run here: 0 baseline, 1 AVX2, 2 AVX-512."""
    return zil_isa_best()


def build_facts():
    """What the build wrote down: version, compiler, build type, instruction sets, numpy."""
    return {
        "version": ZIL_BUILD_VERSION.decode(),
        "compiler": ZIL_BUILD_COMPILER.decode(),
        "buildtype": ZIL_BUILD_TYPE.decode(),
        "isa": ZIL_BUILD_ISA.decode().split(),
        "numpy": ZIL_BUILD_NUMPY.decode(),
    }


def evaluate(int function, const double[::1] x, double[::1] values_out, int isa=-1):
    """Write ``FUNCTIONS[function]`` of every x into ``values_out``."""
    if x.shape[0] != values_out.shape[0]:
        raise ValueError("x and values_out differ in length")
    if x.shape[0] > 0:
        with nogil:
            zil_probe(isa, function, x.shape[0], &x[0], &values_out[0])
