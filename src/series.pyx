"""Piecewise Legendre series, several functions at once, at many points."""

cdef enum:
    COUNT = 16  # coefficients of a panel


def evaluate(
    const double[::1] t,
    const double[::1] edges,
    const Py_ssize_t[::1] panel,
    const Py_ssize_t[::1] column,
    const double[:, :, :, ::1] coefficients,
    double[:, ::1] series_out,
):
    """``sum_j coefficients[panel, column, function, j] P_j(x)``, x the point's place in its panel on [-1, 1].

    Point by point, so results do not depend on how points are grouped.  ``coefficients`` (panels, columns, functions,
    16), ``series_out`` (functions, n).

    Raises
    ------
    ValueError
        Lengths or shapes that do not fit, a panel or column outside ``coefficients``.
    """
    cdef Py_ssize_t n = t.shape[0], panels = coefficients.shape[0], functions = coefficients.shape[2], i, f, j, k
    cdef double up[COUNT]
    cdef double down[COUNT]
    cdef double p[COUNT]
    cdef double lane[4]
    cdef double x
    cdef const double *own
    if panel.shape[0] != n or column.shape[0] != n or edges.shape[0] != panels + 1:
        raise ValueError("panel, column or edges has the wrong length")
    if coefficients.shape[3] != COUNT or series_out.shape[0] != functions or series_out.shape[1] != n:
        raise ValueError("coefficients or series_out has the wrong shape")
    for i in range(n):
        if not (0 <= panel[i] < panels and 0 <= column[i] < coefficients.shape[1]):
            raise ValueError("panel or column out of range")
    for j in range(1, COUNT):  # (j + 1) P_{j+1} = (2 j + 1) x P_j - j P_{j-1}
        up[j] = (2.0 * j + 1.0) / (j + 1.0)
        down[j] = j / (j + 1.0)
    with nogil:
        for i in range(n):
            k = panel[i]
            x = 2.0 * (t[i] - edges[k]) / (edges[k + 1] - edges[k]) - 1.0
            p[0] = 1.0
            p[1] = x
            for j in range(1, COUNT - 1):
                p[j + 1] = up[j] * x * p[j] - down[j] * p[j - 1]
            for f in range(functions):
                own = &coefficients[k, column[i], f, 0]
                for j in range(4):
                    lane[j] = 0.0
                for j in range(0, COUNT, 4):  # four sums: their additions overlap
                    lane[0] += own[j] * p[j]
                    lane[1] += own[j + 1] * p[j + 1]
                    lane[2] += own[j + 2] * p[j + 2]
                    lane[3] += own[j + 3] * p[j + 3]
                series_out[f, i] = (lane[0] + lane[2]) + (lane[1] + lane[3])
