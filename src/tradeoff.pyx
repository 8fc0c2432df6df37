"""Exact type I errors of the likelihood-ratio test between shifted symmetric Laplace laws."""

cdef extern from "status.h" nogil:
    int ZIL_OK

cdef extern from "tradeoff.h" nogil:
    int zil_tradeoff_tail(int isa, long dim, double c, long n, const double *t, double *log_alpha_out,
                          double *error_out)


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
