"""Values to ticks of a public lattice and back."""

cdef extern from "lattice.h" nogil:
    void zil_lattice_to_ticks(int isa, long n, long len, const double *low, const double *high, const double *tick,
                              const double *inverse, const double *x, double *out)
    void zil_lattice_to_values(int isa, long n, long len, const double *tick, double *counts)


def to_ticks(const double[::1] low, const double[::1] high, const double[::1] tick, const double[::1] inverse,
             const double[:, ::1] x, double[:, ::1] counts_out, int isa=-1):
    """Clip, divide by the tick and round; parameters of a whole number of rows, ``inverse`` may be None."""
    cdef long n = x.shape[0]
    cdef long d = x.shape[1]
    cdef long size = tick.shape[0]
    if n != counts_out.shape[0] or d != counts_out.shape[1]:
        raise ValueError("x and counts_out differ in shape")
    if d < 1 or size < 1 or size % d or low.shape[0] != size or high.shape[0] != size:
        raise ValueError("low, high and tick must hold the parameters of a whole number of rows")
    if inverse is not None and inverse.shape[0] != size:
        raise ValueError("inverse and tick differ in length")
    if n == 0:
        return
    cdef const double *reciprocal = NULL
    if inverse is not None:
        reciprocal = &inverse[0]
    with nogil:
        zil_lattice_to_ticks(isa, n * d, size, &low[0], &high[0], &tick[0], reciprocal, &x[0, 0], &counts_out[0, 0])


def to_values(const double[::1] tick, double[:, ::1] counts, int isa=-1):
    """Round and multiply by the tick, in place."""
    cdef long n = counts.shape[0]
    cdef long d = counts.shape[1]
    if d < 1 or tick.shape[0] < 1 or tick.shape[0] % d:
        raise ValueError("tick must hold the parameters of a whole number of rows")
    if n == 0:
        return
    with nogil:
        zil_lattice_to_values(isa, n * d, tick.shape[0], &tick[0], &counts[0, 0])
