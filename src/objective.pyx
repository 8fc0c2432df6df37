"""Corrected losses over a range of row chunks (src/c/objective.h says what a term is)."""

from libc.stdlib cimport free, malloc

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
        Py_ssize_t n, d, step, stride
        int intercept
        const double *x
        const double *y
        const double *w
        const double *theta
        const double *noise
        double noise_y

    ctypedef struct zil_pass:
        int n_terms, want
        const zil_term *terms
        const zil_rows *rows
        const double *centre
        const double *offset
        const double *direction

    ctypedef struct zil_shells:
        zil_term term
        zil_rows rows
        const Py_ssize_t *starts
        const int *index
        const unsigned char *slot

    enum: ZIL_CHUNK
    enum: ZIL_MAX_FOLDS
    enum: ZIL_HESSIAN
    enum: ZIL_MEAT
    enum: ZIL_BEND
    Py_ssize_t scratch_size "ZIL_SCRATCH" (Py_ssize_t d)
    ctypedef Py_ssize_t (*width_of)(Py_ssize_t, int)
    ctypedef void (*row_pass)(const zil_pass *, Py_ssize_t, Py_ssize_t, double *, double *)
    ctypedef void (*moments_pass)(const zil_rows *, const double *, Py_ssize_t, Py_ssize_t, double *, double *)
    moments_pass pick_moments "ZIL_PICK_MOMENTS" (int isa)
    ctypedef void (*level_pass)(
        const zil_pass *, const zil_shells *, int, int, int, Py_ssize_t, Py_ssize_t, double *, double *
    )
    level_pass pick_levels "ZIL_PICK_LEVELS" (int isa)
    Py_ssize_t level_scratch "ZIL_LEVEL_SCRATCH" (Py_ssize_t d, Py_ssize_t k)
    width_of pick_width "ZIL_PICK_WIDTH" (int isa)
    row_pass pick_sums "ZIL_PICK_SUMS" (int isa)
    row_pass pick_scores "ZIL_PICK_SCORES" (int isa)

cdef extern from "softplus_smooth.h" nogil:
    enum: ZIL_SP_TAYLOR_SIZE
    enum: ZIL_SP_TABLE_SIZE
    void zil_softplus_taylor(double *taylor_out)
    void zil_softplus_table(const double *taylor, double q, int with_w, double *table_out)

CHUNK = ZIL_CHUNK
HESSIAN, MEAT, BEND = ZIL_HESSIAN, ZIL_MEAT, ZIL_BEND
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
    # any layout is read in place: a range of a larger table, or a table stored row by row
    if x.strides[1] % <Py_ssize_t>sizeof(double) != 0 or x.strides[0] % <Py_ssize_t>sizeof(double) != 0:
        raise ValueError("the strides of x must be whole numbers of values")
    out.step = x.strides[1] // <Py_ssize_t>sizeof(double)
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


cdef const double *optional(const double[::1] values, Py_ssize_t size) except? NULL:
    if values is None:
        return NULL
    if values.shape[0] != size:
        raise ValueError("centre, offset or direction has the wrong length")
    return &values[0]


def width(Py_ssize_t p, int want):
    """Numbers per chunk of ``sums``."""
    return pick_width(0)(p, want)


def sums(
    tuple parts,
    bint intercept,
    const double[::1] theta,
    const double[::1] noise,
    double noise_y,
    int want,
    Py_ssize_t first,
    Py_ssize_t last,
    double[:, ::1] sums_out,
    const double[::1] centre=None,
    const double[::1] offset=None,
    const double[::1] direction=None,
    bint scores=False,
    int isa=-1,
):
    """Value, gradient and what ``want`` says (``HESSIAN | MEAT | BEND``), one row of ``sums_out`` per chunk.

    ``parts`` holds ``(term, table, x, y, w)``; row i of each belongs to row i of the others.  With ``scores`` the joint
    scores of the rows of these chunks go to ``sums_out``, shape (n, p), instead; with ``BEND`` their second derivatives
    along the direction, shape (n, 1).
    """
    cdef Py_ssize_t n_terms = len(parts), k, p = theta.shape[0]
    cdef zil_term *terms = NULL
    cdef zil_rows *rows = NULL
    cdef double *scratch = NULL
    cdef zil_pass packed
    if n_terms == 0:
        raise ValueError("a pass needs a term")
    try:
        terms = <zil_term *>malloc(n_terms * sizeof(zil_term))
        rows = <zil_rows *>malloc(n_terms * sizeof(zil_rows))
        if terms == NULL or rows == NULL:
            raise MemoryError
        for k in range(n_terms):
            term, table, x, y, w = parts[k]
            pack_term(term, &terms[k], table)
            pack_rows(x, y, w, intercept, theta, noise, noise_y, &rows[k])
            if rows[k].n != rows[0].n or rows[k].d != rows[0].d:
                raise ValueError("data sets have different shapes")
        packed.n_terms, packed.want, packed.terms, packed.rows = <int>n_terms, want, terms, rows
        packed.centre = optional(centre, p)
        packed.offset = optional(offset, p)
        packed.direction = optional(direction, p)
        if (want & ZIL_BEND) and direction is None:
            raise ValueError("a bend needs its direction")
        if not 0 <= first <= last <= (rows[0].n + ZIL_CHUNK - 1) // ZIL_CHUNK:
            raise ValueError("chunk range does not fit")
        if sums_out.shape[0] != (rows[0].n if scores else last - first):
            raise ValueError("sums_out does not fit the chunk range")
        if sums_out.shape[1] != (pick_width(isa)(p, want) if not scores else 1 if want & ZIL_BEND else p):
            raise ValueError("sums_out has the wrong width")
        scratch = <double *>malloc(scratch_size(rows[0].d) * sizeof(double))
        if scratch == NULL:
            raise MemoryError
        if first < last:
            with nogil:
                if scores:
                    pick_scores(isa)(&packed, first, last, scratch, &sums_out[0, 0])
                else:
                    pick_sums(isa)(&packed, first, last, scratch, &sums_out[0, 0])
    finally:
        free(terms)
        free(rows)
        free(scratch)


def moments(
    const double[:, :] x,
    const double[::1] y,
    const double[::1] w,
    const double[::1] centre,
    Py_ssize_t first,
    Py_ssize_t last,
    double[:, ::1] sums_out,
    int isa=-1,
):
    """Sums of ``(1, x, y)`` times its transpose about ``centre``, lower triangle, one row per chunk."""
    cdef zil_rows rows
    cdef Py_ssize_t k = x.shape[0] + (1 if y is None else 2)
    cdef double *scratch = NULL
    pack_rows(x, y, w, True, centre[: x.shape[0] + 1], centre[: x.shape[0] + 1], 0.0, &rows)
    if centre.shape[0] != k or sums_out.shape[1] != k * (k + 1) // 2 or sums_out.shape[0] != last - first:
        raise ValueError("centre or sums_out has the wrong length")
    if not 0 <= first <= last <= (rows.n + ZIL_CHUNK - 1) // ZIL_CHUNK:
        raise ValueError("chunk range does not fit")
    if first == last:
        return
    scratch = <double *>malloc(scratch_size(x.shape[0] + 2) * sizeof(double))
    if scratch == NULL:
        raise MemoryError
    try:
        with nogil:
            pick_moments(isa)(&rows, &centre[0], first, last, scratch, &sums_out[0, 0])
    finally:
        free(scratch)


cdef int pack_shells(
    object entry, bint intercept, const double[::1] theta, const double[::1] noise, double noise_y, Py_ssize_t n,
    int n_slots, Py_ssize_t first, Py_ssize_t last, zil_shells *out,
) except -1:
    cdef const Py_ssize_t[::1] starts
    cdef const int[::1] index
    cdef const unsigned char[::1] slot
    cdef Py_ssize_t i, chunk, n_chunks = (n + ZIL_CHUNK - 1) // ZIL_CHUNK, m
    term, table, x, y, w, starts, index, slot = entry
    pack_term(term, &out.term, table)
    if out.term.c != 0.0 or out.term.e != 0.0 and out.term.kappa != 0.0:
        raise ValueError("rows in shells carry no noise terms")
    pack_rows(x, y, w, intercept, theta, noise, noise_y, &out.rows)
    m = out.rows.n
    if starts.shape[0] != n_chunks + 1 or index.shape[0] != m or slot.shape[0] != m:
        raise ValueError("starts, index or slot has the wrong length")
    if starts[0] != 0 or starts[n_chunks] != m:
        raise ValueError("starts must begin with 0 and end with the number of stored rows")
    for chunk in range(first, last):
        if not 0 <= starts[chunk] <= starts[chunk + 1] <= m:
            raise ValueError("starts must not fall")
        for i in range(starts[chunk], starts[chunk + 1]):
            if index[i] // ZIL_CHUNK != chunk or index[i] >= n or not 1 <= slot[i] < n_slots:
                raise ValueError("a stored row lies outside its chunk or has no slot")
    out.starts = &starts[0]
    out.index = &index[0] if m > 0 else NULL
    out.slot = &slot[0] if m > 0 else NULL
    return 0


def levels(
    tuple parts,
    tuple sets,
    bint intercept,
    const double[::1] theta,
    const double[::1] noise,
    double noise_y,
    int want,
    int n_slots,
    int n_folds,
    Py_ssize_t first,
    Py_ssize_t last,
    double[:, :, ::1] sums_out,
    int isa=-1,
):
    """Sums by chunk and fold of the joint scores in slots, and with ``MEAT`` of their outer products.

    ``parts`` as in ``sums``; ``sets`` holds ``(term, table, x, y, w, starts, index, slot)``.
    """
    cdef Py_ssize_t n_terms = len(parts), k, p = theta.shape[0], columns = n_slots * p + 1
    cdef int n_sets = <int>len(sets)
    cdef zil_term *terms = NULL
    cdef zil_rows *rows = NULL
    cdef zil_shells *shells = NULL
    cdef double *scratch = NULL
    cdef zil_pass packed
    if n_terms == 0 or not 1 <= n_folds <= ZIL_MAX_FOLDS or not 1 <= n_slots <= 100:
        raise ValueError("a pass needs a term, and a number of folds and slots that fits")
    try:
        terms = <zil_term *>malloc(n_terms * sizeof(zil_term))
        rows = <zil_rows *>malloc(n_terms * sizeof(zil_rows))
        shells = <zil_shells *>malloc((n_sets + 1) * sizeof(zil_shells))
        if terms == NULL or rows == NULL or shells == NULL:
            raise MemoryError
        for k in range(n_terms):
            term, table, x, y, w = parts[k]
            pack_term(term, &terms[k], table)
            pack_rows(x, y, w, intercept, theta, noise, noise_y, &rows[k])
            if rows[k].n != rows[0].n or rows[k].d != rows[0].d:
                raise ValueError("data sets have different shapes")
        if not 0 <= first <= last <= (rows[0].n + ZIL_CHUNK - 1) // ZIL_CHUNK:
            raise ValueError("chunk range does not fit")
        for k in range(n_sets):
            pack_shells(sets[k], intercept, theta, noise, noise_y, rows[0].n, n_slots, first, last, &shells[k])
            if shells[k].rows.d != rows[0].d:
                raise ValueError("data sets have different shapes")
        packed.n_terms, packed.want, packed.terms, packed.rows = <int>n_terms, want, terms, rows
        packed.centre = packed.offset = packed.direction = NULL
        if sums_out.shape[0] != last - first or sums_out.shape[1] != n_folds:
            raise ValueError("sums_out does not fit the chunk range")
        if sums_out.shape[2] != columns + (columns * (columns + 1) // 2 if want & ZIL_MEAT else 0):
            raise ValueError("sums_out has the wrong width")
        scratch = <double *>malloc(level_scratch(rows[0].d, columns) * sizeof(double))
        if scratch == NULL:
            raise MemoryError
        if first < last:
            with nogil:
                pick_levels(isa)(
                    &packed, shells, n_sets, n_slots, n_folds, first, last, scratch, &sums_out[0, 0, 0]
                )
    finally:
        free(terms)
        free(rows)
        free(shells)
        free(scratch)
