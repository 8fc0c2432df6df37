"""One term of a corrected loss over a range of row chunks (src/c/objective.h says what a term is)."""

cdef extern from "isa.h" nogil:
    int zil_isa_resolve(int level)

cdef extern from "objective.h" nogil:
    ctypedef struct zil_term:
        int loss
        double p[2]
        double k[5]
        const double *table
        double a, c, e, q0, kappa

    ctypedef struct zil_rows:
        Py_ssize_t n, d, stride
        int intercept
        const double *x
        const double *y
        const double *w
        const double *theta
        const double *noise
        double noise_y

    enum: ZIL_CHUNK
    ctypedef void (*gradient_pass)(const zil_term *, const zil_rows *, Py_ssize_t, Py_ssize_t, double *, double *)
    ctypedef void (*hessian_pass)(const zil_term *, const zil_rows *, Py_ssize_t, Py_ssize_t, double *)
    gradient_pass pick_gradient "ZIL_PICK_GRADIENT" (int isa)
    hessian_pass pick_hessian "ZIL_PICK_HESSIAN" (int isa)

cdef extern from "softplus_smooth.h" nogil:
    enum: ZIL_SP_TAYLOR_SIZE
    enum: ZIL_SP_TABLE_SIZE
    void zil_softplus_taylor(double *taylor_out)
    void zil_softplus_table(const double *taylor, double q, int with_w, double *table_out)

CHUNK = ZIL_CHUNK
SOFTPLUS_TAYLOR_SIZE = ZIL_SP_TAYLOR_SIZE
SOFTPLUS_TABLE_SIZE = ZIL_SP_TABLE_SIZE

# Numbers of the losses in src/c/losses.h.
LOSSES = {"square": 0, "kink": 1, "huber": 2, "softplus": 3, "square_plus": 4, "exponential": 5, "soft_check": 6}
# Losses whose smoothed form is read from a table.
TABLED = frozenset({"softplus"})


def softplus_taylor(double[::1] taylor_out):
    """Fill the derivatives of softplus on the grid; constant, made once per process."""
    if taylor_out.shape[0] != ZIL_SP_TAYLOR_SIZE:
        raise ValueError("taylor_out has the wrong length")
    with nogil:
        zil_softplus_taylor(&taylor_out[0])


def softplus_table(const double[::1] taylor, double q, bint hessian, double[::1] table_out):
    """Fill the table of the softplus smoothed with squared Laplace scale ``q > 0``."""
    if taylor.shape[0] != ZIL_SP_TAYLOR_SIZE or table_out.shape[0] != ZIL_SP_TABLE_SIZE:
        raise ValueError("taylor or table_out has the wrong length")
    with nogil:
        zil_softplus_table(&taylor[0], q, hessian, &table_out[0])


cdef int pack_term(object term, zil_term *out, const double[::1] table) except -1:
    cdef int i
    loss, p, k, a, c, e, q0, kappa = term
    out.loss = loss
    if not 0 <= out.loss < len(LOSSES):
        raise ValueError("unknown loss number")
    for i in range(2):
        out.p[i] = p[i]
    for i in range(5):
        out.k[i] = k[i]
    out.a = a
    out.c = c
    out.e = e
    out.q0 = q0
    out.kappa = kappa
    out.table = NULL
    if table is not None:
        if table.shape[0] != ZIL_SP_TABLE_SIZE:
            raise ValueError("table has the wrong length")
        out.table = &table[0]
    elif out.loss == 3 and out.e != 0.0:
        raise ValueError("the smoothed softplus needs its table")
    if out.loss == 6 and out.e != 0.0:
        raise ValueError("the soft check loss has no smoothed form")
    return 0


cdef int pack_rows(
    const double[:, :] x, const double[::1] y, const double[::1] w, bint intercept, const double[::1] theta,
    const double[::1] noise, double noise_y, zil_rows *out,
) except -1:
    out.n = x.shape[1]
    out.d = x.shape[0]
    # a range of the rows of a larger table is read in place
    if (out.n > 1 and x.strides[1] != sizeof(double)) or x.strides[0] % <Py_ssize_t>sizeof(double) != 0:
        raise ValueError("the values of a feature must lie side by side")
    out.stride = x.strides[0] // <Py_ssize_t>sizeof(double)
    out.intercept = intercept
    if theta.shape[0] != out.d + intercept or noise.shape[0] != theta.shape[0] or theta.shape[0] == 0:
        raise ValueError("theta or noise has the wrong length")
    if (y is not None and y.shape[0] != out.n) or (w is not None and w.shape[0] != out.n):
        raise ValueError("y or w has the wrong length")
    out.x = &x[0, 0] if out.n > 0 and out.d > 0 else NULL
    out.y = &y[0] if y is not None and out.n > 0 else NULL
    out.w = &w[0] if w is not None and out.n > 0 else NULL
    out.theta = &theta[0]
    out.noise = &noise[0]
    out.noise_y = noise_y
    return 0


cdef int check_chunks(Py_ssize_t n, Py_ssize_t first, Py_ssize_t last, Py_ssize_t rows_of_sums) except -1:
    if not 0 <= first <= last <= (n + ZIL_CHUNK - 1) // ZIL_CHUNK or rows_of_sums != last - first:
        raise ValueError("chunk range does not fit")
    return 0


def gradient(
    object term,
    const double[::1] table,
    const double[:, :] x,
    const double[::1] y,
    const double[::1] w,
    bint intercept,
    const double[::1] theta,
    const double[::1] noise,
    double noise_y,
    Py_ssize_t first,
    Py_ssize_t last,
    double[:, ::1] sums_out,
    double[:, ::1] scores_out,
    int isa=-1,
):
    """Sums of value and gradient, one row per chunk; row scores are *added* to ``scores_out`` unless None."""
    cdef zil_term packed
    cdef zil_rows rows
    cdef double *scores = NULL
    pack_term(term, &packed, table)
    pack_rows(x, y, w, intercept, theta, noise, noise_y, &rows)
    check_chunks(rows.n, first, last, sums_out.shape[0])
    if sums_out.shape[1] != theta.shape[0] + 1:
        raise ValueError("sums_out has the wrong width")
    if scores_out is not None:
        if scores_out.shape[0] != rows.n or scores_out.shape[1] != theta.shape[0]:
            raise ValueError("scores_out has the wrong shape")
        scores = &scores_out[0, 0] if rows.n > 0 else NULL
    if first == last:
        return
    with nogil:
        pick_gradient(isa)(&packed, &rows, first, last, &sums_out[0, 0], scores)


def hessian(
    object term,
    const double[::1] table,
    const double[:, :] x,
    const double[::1] y,
    const double[::1] w,
    bint intercept,
    const double[::1] theta,
    const double[::1] noise,
    double noise_y,
    Py_ssize_t first,
    Py_ssize_t last,
    double[:, ::1] sums_out,
    int isa=-1,
):
    """Sums of the Hessian's lower triangle (row by row), one row per chunk."""
    cdef zil_term packed
    cdef zil_rows rows
    pack_term(term, &packed, table)
    pack_rows(x, y, w, intercept, theta, noise, noise_y, &rows)
    check_chunks(rows.n, first, last, sums_out.shape[0])
    if sums_out.shape[1] != theta.shape[0] * (theta.shape[0] + 1) // 2:
        raise ValueError("sums_out has the wrong width")
    if first == last:
        return
    with nogil:
        pick_hessian(isa)(&packed, &rows, first, last, &sums_out[0, 0])
