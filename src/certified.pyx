"""Tick sampler with a proved error bound, and the key stream it reads (docs/certified_sampler.md)."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc

cdef extern from "chacha.h" nogil:
    int ZIL_CHACHA_KEY_BYTES
    void zil_chacha_words(int isa, const uint8_t *key, uint64_t nonce, uint64_t first, long count, uint64_t *words_out)

cdef extern from "certified.h" nogil:
    uint64_t ZIL_CERTIFIED_NONCE(uint64_t level)
    long zil_certified_words(long d)
    unsigned long zil_certified_workspace(int isa, long d)
    long zil_certified_fill(int isa, const uint8_t *key, uint64_t first_row, uint64_t zero_threshold, int all_zero,
                            long n, long d, const double *scale_over_tick, int64_t *out, int64_t *redo_out,
                            void *workspace)
    long zil_certified_rows(int isa, const uint64_t *words, long n, long d, const double *scale_over_tick,
                            int64_t *ticks_out, double *value_out, double *bound_out, uint8_t *redo_out)


def words_per_row(long d):
    """Words of the key stream that a row of d columns owns: 2 + 2 ceil(d/2)."""
    return zil_certified_words(d)


def level_nonce(uint64_t level):
    """Nonce of a level: 0 holds the first 64 bits of every uniform, 1, 2, ... further ones."""
    return ZIL_CERTIFIED_NONCE(level)


def stream(const uint8_t[::1] key, uint64_t nonce, uint64_t first, uint64_t[::1] words_out, int isa=-1):
    """Write words ``first ..`` of the ChaCha20 stream of this nonce into ``words_out``."""
    if key.shape[0] != ZIL_CHACHA_KEY_BYTES:
        raise ValueError("key must have 32 bytes")
    if words_out.shape[0] > 0:
        with nogil:
            zil_chacha_words(isa, &key[0], nonce, first, words_out.shape[0], &words_out[0])


def fill(
    const uint8_t[::1] key,
    uint64_t first_row,
    uint64_t zero_threshold,
    const double[::1] scale_over_tick,
    int64_t[:, ::1] out,
    int64_t[::1] redo_out,
    bint all_zero=False,
    int isa=-1,
):
    """Ticks of rows ``first_row ..`` into ``out`` (n, d); returns how many rows are left to the slow path.

    Their numbers within ``out`` are the first entries of ``redo_out``, which has room for n.
    """
    cdef Py_ssize_t n = out.shape[0], d = out.shape[1]
    cdef long redo = 0
    cdef void *workspace
    if key.shape[0] != ZIL_CHACHA_KEY_BYTES:
        raise ValueError("key must have 32 bytes")
    if scale_over_tick.shape[0] != d or redo_out.shape[0] < n:
        raise ValueError("scale_over_tick, out and redo_out differ in size")
    if n == 0 or d == 0:
        return 0
    workspace = malloc(zil_certified_workspace(isa, d))
    if workspace == NULL:
        raise MemoryError
    with nogil:
        redo = zil_certified_fill(
            isa, &key[0], first_row, zero_threshold, all_zero, n, d, &scale_over_tick[0], &out[0, 0], &redo_out[0],
            workspace,
        )
        free(workspace)
    return redo


def evaluate(
    const uint64_t[:, ::1] words,
    const double[::1] scale_over_tick,
    int64_t[:, ::1] ticks_out,
    double[:, ::1] value_out,
    double[:, ::1] bound_out,
    uint8_t[::1] redo_out,
    int isa=-1,
):
    """The fast path on given words (n, words_per_row(d)): rint(T), T, its error bound, 1 where it is undecided."""
    cdef Py_ssize_t n = ticks_out.shape[0], d = ticks_out.shape[1]
    cdef long redo = 0
    if (
        words.shape[0] != n or value_out.shape[0] != n or bound_out.shape[0] != n or redo_out.shape[0] != n
        or value_out.shape[1] != d or bound_out.shape[1] != d or scale_over_tick.shape[0] != d
        or words.shape[1] != zil_certified_words(d)
    ):
        raise ValueError("arguments differ in size")
    if n == 0 or d == 0:
        return 0
    with nogil:
        redo = zil_certified_rows(
            isa, &words[0, 0], n, d, &scale_over_tick[0], &ticks_out[0, 0], &value_out[0, 0], &bound_out[0, 0],
            &redo_out[0],
        )
    return redo
