"""Symmetric Laplace density, by radius and of whole rows, and the log-likelihood ratio of a shift."""

cdef extern from "status.h" nogil:
    int ZIL_OK
    int ZIL_NO_MEMORY

cdef extern from "sl_density.h" nogil:
    void zil_sl_log_density(int isa, long dim, long n, const double *r, double *log_g_out)
    int zil_sl_logpdf(int isa, long dim, long n, const double *x, const double *scale, const double *lower,
                      double half_log_det, double *log_out)
    int zil_sl_llr(int isa, long dim, long n, const double *s, double c, double *llr_out)


def log_density(long dim, const double[::1] r, double[::1] log_g_out, int isa=-1):
    """Write log g_dim of every radius (identity covariance) into ``log_g_out``."""
    if dim < 1 or r.shape[0] != log_g_out.shape[0]:
        raise ValueError("dim below 1, or r and log_g_out differ in length")
    if r.shape[0] > 0:
        with nogil:
            zil_sl_log_density(isa, dim, r.shape[0], &r[0], &log_g_out[0])


def logpdf(const double[:, ::1] x, const double[::1] scale, const double[:, ::1] lower, double half_log_det,
           double[::1] log_out, int isa=-1):
    """Write the log-density of every row of ``x`` into ``log_out``.

    Rows are divided by ``scale`` > 0, or solved with the Cholesky factor ``lower`` if that is not None;
    ``half_log_det`` is the log of the determinant of what was divided by.
    """
    cdef long d = x.shape[1]
    if d < 1 or scale.shape[0] != d or x.shape[0] != log_out.shape[0]:
        raise ValueError("x and scale differ in columns, or x and log_out in length")
    cdef const double *lower_data = NULL
    if lower is not None:
        if lower.shape[0] != d or lower.shape[1] != d:
            raise ValueError("lower must be square, one row per column")
        lower_data = &lower[0, 0]
    cdef int status = ZIL_OK
    if x.shape[0] > 0:
        with nogil:
            status = zil_sl_logpdf(isa, d, x.shape[0], &x[0, 0], &scale[0], lower_data, half_log_det, &log_out[0])
    if status == ZIL_NO_MEMORY:
        raise MemoryError


def log_likelihood_ratio(const double[:, ::1] s, double c, double[::1] llr_out, int isa=-1):
    """Write log g(|s - c e1|) - log g(|s|) of every row of ``s`` into ``llr_out``; whether all of ``s`` is finite."""
    if s.shape[1] < 1 or s.shape[0] != llr_out.shape[0]:
        raise ValueError("s has no column, or s and llr_out differ in length")
    cdef int status = ZIL_OK
    if s.shape[0] > 0:
        with nogil:
            status = zil_sl_llr(isa, s.shape[1], s.shape[0], &s[0, 0], c, &llr_out[0])
    return status == ZIL_OK
