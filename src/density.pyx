"""Symmetric Laplace density by radius, and the log-likelihood ratio of a shift."""

cdef extern from "sl_density.h" nogil:
    void zil_sl_log_density(int isa, long dim, long n, const double *r, double *log_g_out)
    void zil_sl_llr(int isa, long dim, long n, const double *s, double c, double *llr_out)


def log_density(long dim, const double[::1] r, double[::1] log_g_out, int isa=-1):
    """Write log g_dim of every radius (identity covariance) into ``log_g_out``."""
    if dim < 1 or r.shape[0] != log_g_out.shape[0]:
        raise ValueError("dim below 1, or r and log_g_out differ in length")
    if r.shape[0] > 0:
        with nogil:
            zil_sl_log_density(isa, dim, r.shape[0], &r[0], &log_g_out[0])


def log_likelihood_ratio(const double[:, ::1] s, double c, double[::1] llr_out, int isa=-1):
    """Write log g(|s - c e1|) - log g(|s|) of every row of ``s`` into ``llr_out``."""
    if s.shape[1] < 1 or s.shape[0] != llr_out.shape[0]:
        raise ValueError("s has no column, or s and llr_out differ in length")
    if s.shape[0] > 0:
        with nogil:
            zil_sl_llr(isa, s.shape[1], s.shape[0], &s[0, 0], c, &llr_out[0])
