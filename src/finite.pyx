"""A look at all numbers of an array."""

cdef extern from "finite.h" nogil:
    int zil_finite(int isa, long n, const double *x)


def all_finite(const double[::1] x, int isa=-1):
    """Whether no number is nan or infinite."""
    cdef int answer = 1
    if x.shape[0] > 0:
        with nogil:
            answer = zil_finite(isa, x.shape[0], &x[0])
    return answer != 0
