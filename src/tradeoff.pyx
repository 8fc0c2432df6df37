"""Exact type I errors of the likelihood-ratio test between shifted symmetric Laplace laws, and its Monte Carlo."""

from libc.stdint cimport int64_t, uint64_t

cdef extern from "status.h" nogil:
    int ZIL_OK

cdef extern from "tradeoff.h" nogil:
    int zil_tradeoff_tail(int isa, long dim, double c, long n, const double *t, double *log_alpha_out,
                          double *error_out)

cdef extern from "limit_curve.h" nogil:
    void zil_limit_beta(double m, long n, const double *alpha, const double *rest, double *beta_out)

cdef extern from "simulate.h" nogil:
    int ZIL_SIMULATE_CHUNK
    void zil_simulate(int isa, const uint64_t *key, long dim, double c, int64_t n, int64_t first, int64_t last,
                      long bins, int64_t *count)

CHUNK = ZIL_SIMULATE_CHUNK


def tail(long dim, double c, const double[::1] t, double[::1] log_alpha_out, double[::1] error_out, int isa=-1):
    """Write log alpha(t) of thresholds t > 0 and estimated relative errors; dim >= 2, c > 0."""
    cdef long n = t.shape[0]
    if dim < 2 or log_alpha_out.shape[0] != n or error_out.shape[0] != n:
        raise ValueError("dim below 2, or t, log_alpha_out and error_out differ in length")
    cdef int status = ZIL_OK
    if n > 0:
        with nogil:
            status = zil_tradeoff_tail(isa, dim, c, n, &t[0], &log_alpha_out[0], &error_out[0])
    if status != ZIL_OK:
        raise ArithmeticError(f"the boundary of the rejection region was not found (dim = {dim}, c = {c})")


def limit_beta(double m, const double[::1] alpha, const double[::1] rest, double[::1] beta_out):
    """Write the limit curve of shift ``sqrt(2) m`` at every alpha into ``beta_out``; ``rest`` is 1 - alpha."""
    if alpha.shape[0] != rest.shape[0] or alpha.shape[0] != beta_out.shape[0]:
        raise ValueError("alpha, rest and beta_out differ in length")
    if alpha.shape[0] > 0:
        with nogil:
            zil_limit_beta(m, alpha.shape[0], &alpha[0], &rest[0], &beta_out[0])


def simulate(const uint64_t[::1] key, long dim, double c, int64_t n, int64_t first, int64_t last, int64_t[::1] count,
             int isa=-1):
    """Add the log-likelihood ratios of the draws of a range of chunks to the histogram ``count``."""
    if key.shape[0] != 4 or dim < 1 or count.shape[0] < 1 or n < 0 or first < 0:
        raise ValueError("key must have 4 words, count at least one bin, dim at least 1")
    with nogil:
        zil_simulate(isa, &key[0], dim, c, n, first, last, count.shape[0], &count[0])
