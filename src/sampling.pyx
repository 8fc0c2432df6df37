"""Noise of the symmetric Laplace family; the key of a stream from a numpy bit generator."""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport uint32_t, uint64_t

cdef extern from "numpy/random/bitgen.h" nogil:
    ctypedef struct bitgen_t:
        void *state
        uint64_t (*next_uint64)(void *state) noexcept nogil

cdef extern from "status.h" nogil:
    int ZIL_NO_MEMORY

cdef extern from "streams.h" nogil:
    int ZIL_DOMAIN_NOISE
    int ZIL_DOMAIN_DOUBLE

cdef extern from "lattice.h" nogil:
    ctypedef struct zil_lattice:
        pass

cdef extern from "sampling.h" nogil:
    int ZIL_SAMPLING_CHUNK
    int zil_sampling_add(int isa, const uint64_t *key, uint32_t domain, double zero_prob, long d, const double *scale,
                         const double *factor, const zil_lattice *lattice, long first_row, long n, long first_chunk,
                         long last_chunk, const double *x, double *out)
    void zil_sampling_words(int isa, const uint64_t *key, uint32_t domain, uint64_t chunk, long n, uint64_t *out)
    void zil_sampling_exponential(int isa, long n, const uint64_t *words, double *out)
    void zil_sampling_gamma(int isa, long n, long shape, const uint64_t *words, double *out)
    void zil_sampling_pairs(int isa, long n, const double *e, const uint64_t *words, double *cos_out, double *sin_out)

CHUNK = ZIL_SAMPLING_CHUNK
NOISE = ZIL_DOMAIN_NOISE
DOUBLE = ZIL_DOMAIN_DOUBLE


def read_key(bit_generator, uint64_t[::1] key_out):
    """Fill ``key_out`` with the next 64-bit outputs of a bit generator, under its lock."""
    capsule = bit_generator.capsule
    if not PyCapsule_IsValid(capsule, "BitGenerator"):
        raise TypeError("the capsule of the bit generator is not a numpy BitGenerator")
    cdef bitgen_t *source = <bitgen_t *> PyCapsule_GetPointer(capsule, "BitGenerator")
    cdef Py_ssize_t i
    with bit_generator.lock:
        for i in range(key_out.shape[0]):
            key_out[i] = source.next_uint64(source.state)


def add_noise(const uint64_t[::1] key, uint32_t domain, double zero_prob, const double[::1] scale,
              const double[:, ::1] factor, const double[:, ::1] x, double[:, ::1] values_out,
              long first_row, long first_chunk, long last_chunk, int isa=-1):
    """``values_out = x + noise`` over a range of chunks; ``x`` and ``factor`` may be None."""
    cdef long n = values_out.shape[0]
    cdef long d = values_out.shape[1]
    if key.shape[0] != 4 or scale.shape[0] != d or d < 1:
        raise ValueError("key must have 4 words and scale one value per column")
    if factor is not None and (factor.shape[0] != d or factor.shape[1] != d):
        raise ValueError("factor must be square, one row per column")
    if x is not None and (x.shape[0] != n or x.shape[1] != d):
        raise ValueError("x and values_out differ in shape")
    if first_row < 0 or first_chunk < 0:
        raise ValueError("first_row and first_chunk must not be negative")
    if n == 0:
        return
    cdef const double *x_data = NULL
    cdef const double *factor_data = NULL
    if x is not None:
        x_data = &x[0, 0]
    if factor is not None:
        factor_data = &factor[0, 0]
    cdef int status
    with nogil:
        status = zil_sampling_add(isa, &key[0], domain, zero_prob, d, &scale[0], factor_data, NULL, first_row,
                                  n, first_chunk, last_chunk, x_data, &values_out[0, 0])
    if status == ZIL_NO_MEMORY:
        raise MemoryError


def stream_words(const uint64_t[::1] key, uint32_t domain, uint64_t chunk, uint64_t[::1] words_out, int isa=-1):
    """The first words of a stream, for tests; ``words_out`` holds a multiple of 8."""
    if key.shape[0] != 4 or words_out.shape[0] % 8 or words_out.shape[0] == 0:
        raise ValueError("key must have 4 words and words_out a positive multiple of 8")
    with nogil:
        zil_sampling_words(isa, &key[0], domain, chunk, words_out.shape[0], &words_out[0])


def exponential(const uint64_t[::1] words, double[::1] values_out, int isa=-1):
    """Exp(1) values from given words, for tests: 7 words for every 4 values."""
    cdef long n = values_out.shape[0]
    if n % 4 or n == 0 or words.shape[0] != n // 4 * 7:
        raise ValueError("values_out must have a multiple of 4 values and words 7 for every 4")
    with nogil:
        zil_sampling_exponential(isa, n, &words[0], &values_out[0])


def gamma(const uint64_t[::1] words, double[::1] values_out, int isa=-1):
    """Gamma values of integer shape ``len(words) // len(values_out)`` from given words, for tests."""
    cdef long n = values_out.shape[0]
    if n == 0 or words.shape[0] % n or words.shape[0] == 0:
        raise ValueError("words must be a positive multiple of values_out")
    with nogil:
        zil_sampling_gamma(isa, n, words.shape[0] // n, &words[0], &values_out[0])


def pairs(const double[::1] e, const uint64_t[::1] words, double[::1] cos_out, double[::1] sin_out, int isa=-1):
    """``sqrt(2 e)`` times cosine and sine of uniform angles from given words, for tests."""
    cdef long n = e.shape[0]
    if n == 0 or words.shape[0] != n or cos_out.shape[0] != n or sin_out.shape[0] != n:
        raise ValueError("e, words, cos_out and sin_out must have one length")
    with nogil:
        zil_sampling_pairs(isa, n, &e[0], &words[0], &cos_out[0], &sin_out[0])
