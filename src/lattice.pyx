"""Values to the ticks of a public lattice, noise in ticks added, and back to values: one pass."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "status.h" nogil:
    int ZIL_NO_MEMORY
    int ZIL_NOT_FINITE

cdef extern from "streams.h" nogil:
    int ZIL_DOMAIN_NOISE

cdef extern from "lattice.h" nogil:
    ctypedef struct zil_lattice:
        const double *low
        const double *high
        const double *tick
        const double *shift
    int zil_lattice_publish(int isa, long n, long d, const zil_lattice *lattice, const double *x,
                            const int64_t *noise, double *out)

cdef extern from "sampling.h" nogil:
    int zil_sampling_add(int isa, const uint64_t *key, uint32_t domain, double zero_prob, long d, const double *scale,
                         const double *factor, const zil_lattice *lattice, long first_row, long n, long first_chunk,
                         long last_chunk, const double *x, double *out)


cdef zil_lattice lattice_of(const double[::1] low, const double[::1] high, const double[::1] tick,
                            const double[::1] shift, long d) except *:
    cdef zil_lattice lattice
    if d < 1 or low.shape[0] != d or high.shape[0] != d or tick.shape[0] != d:
        raise ValueError("low, high and tick must hold one value per column")
    lattice.low = &low[0]
    lattice.high = &high[0]
    lattice.tick = &tick[0]
    lattice.shift = NULL
    if shift is not None:
        if shift.shape[0] != d:
            raise ValueError("shift must hold one value per column")
        lattice.shift = &shift[0]
    return lattice


def publish(const double[::1] low, const double[::1] high, const double[::1] tick, const double[::1] shift,
            const double[:, ::1] x, const int64_t[:, ::1] noise, double[:, ::1] values_out, int isa=-1):
    """Clip ``x``, move it to the lattice and add ``noise``, in ticks; ``values_out`` is none of them.

    ``low``, ``high``, ``tick`` and ``shift`` (may be None) hold one value per column.
    """
    cdef long n = x.shape[0]
    cdef long d = x.shape[1]
    cdef zil_lattice lattice = lattice_of(low, high, tick, shift, d)
    cdef int status
    if n != values_out.shape[0] or d != values_out.shape[1] or n != noise.shape[0] or d != noise.shape[1]:
        raise ValueError("x, noise and values_out differ in shape")
    if n == 0:
        return
    with nogil:
        status = zil_lattice_publish(isa, n, d, &lattice, &x[0, 0], &noise[0, 0], &values_out[0, 0])
    if status == ZIL_NO_MEMORY:
        raise MemoryError


def simulate(const double[::1] low, const double[::1] high, const double[::1] tick, const double[::1] shift,
             const double[:, ::1] x, const uint64_t[::1] key, double zero_prob, const double[::1] scale,
             double[:, ::1] values_out, long first_chunk, long last_chunk, int isa=-1):
    """The same over a range of chunks with the noise of a stream, ``scale`` in ticks, rounded to ticks.

    Answers whether all entries of ``x`` in these chunks are finite.
    """
    cdef long n = x.shape[0]
    cdef long d = x.shape[1]
    cdef zil_lattice lattice = lattice_of(low, high, tick, shift, d)
    cdef int status
    if key.shape[0] != 4 or scale.shape[0] != d:
        raise ValueError("key must have 4 words and scale one value per column")
    if n != values_out.shape[0] or d != values_out.shape[1]:
        raise ValueError("x and values_out differ in shape")
    if first_chunk < 0:
        raise ValueError("first_chunk must not be negative")
    if n == 0:
        return True
    with nogil:
        status = zil_sampling_add(isa, &key[0], ZIL_DOMAIN_NOISE, zero_prob, d, &scale[0], NULL, &lattice, 0, n,
                                  first_chunk, last_chunk, &x[0, 0], &values_out[0, 0])
    if status == ZIL_NO_MEMORY:
        raise MemoryError
    return status != ZIL_NOT_FINITE
