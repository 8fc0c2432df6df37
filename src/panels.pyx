"""Piecewise Chebyshev series: read, solved, and the exact trade-off curve made of them."""

cdef extern from "panels.h" nogil:
    int ZIL_PANEL_NODES
    ctypedef struct zil_panels:
        long panels
        const double *edges
        const double *node_x
    ctypedef struct zil_series:
        const double *series
        const double *slopes
        const double *node_value
    void zil_panels_at(const zil_panels *on, const zil_series *what, long n, const double *x, double *value_out)
    void zil_panels_solve(const zil_panels *on, const zil_series *what, long n, const double *value, double *x_out)
    void zil_panels_beta(const zil_panels *on, const zil_series *u, const zil_series *v, const zil_series *w,
                         double middle, long n, const double *alpha, const double *rest, double *beta_out)

NODES = ZIL_PANEL_NODES


cdef bint fits(const double[::1] edges, const double[::1] node_x, const double[:, :, :, ::1] table):
    """Whether a table of several series, (series, 3, panels, NODES) as in `at`, belongs to the panels."""
    cdef Py_ssize_t panels = edges.shape[0] - 1
    return (
        panels >= 1 and node_x.shape[0] == panels * ZIL_PANEL_NODES and table.shape[1] == 3
        and table.shape[2] == panels and table.shape[3] == ZIL_PANEL_NODES
    )


def at(const double[::1] edges, const double[::1] node_x, const double[:, :, :, ::1] table, Py_ssize_t which,
       const double[::1] x, double[::1] values_out):
    """Write series ``which`` at every x into ``values_out``.

    ``table[k]`` holds the coefficients of series k, those of its derivative, and its values at ``node_x``.
    """
    if not fits(edges, node_x, table) or not 0 <= which < table.shape[0] or x.shape[0] != values_out.shape[0]:
        raise ValueError("the table does not fit its panels, or x and values_out differ in length")
    if x.shape[0] == 0:
        return
    cdef zil_panels on = zil_panels(edges.shape[0] - 1, &edges[0], &node_x[0])
    cdef zil_series what = zil_series(&table[which, 0, 0, 0], &table[which, 1, 0, 0], &table[which, 2, 0, 0])
    with nogil:
        zil_panels_at(&on, &what, x.shape[0], &x[0], &values_out[0])


def solve(const double[::1] edges, const double[::1] node_x, const double[:, :, :, ::1] table, Py_ssize_t which,
          const double[::1] values, double[::1] x_out):
    """Write into ``x_out`` where series ``which`` takes each of the values; the table as in `at`."""
    if not fits(edges, node_x, table) or not 0 <= which < table.shape[0] or values.shape[0] != x_out.shape[0]:
        raise ValueError("the table does not fit its panels, or values and x_out differ in length")
    if values.shape[0] == 0:
        return
    cdef zil_panels on = zil_panels(edges.shape[0] - 1, &edges[0], &node_x[0])
    cdef zil_series what = zil_series(&table[which, 0, 0, 0], &table[which, 1, 0, 0], &table[which, 2, 0, 0])
    with nogil:
        zil_panels_solve(&on, &what, values.shape[0], &values[0], &x_out[0])


def beta(const double[::1] edges, const double[::1] node_x, const double[:, :, :, ::1] table, double middle,
         const double[::1] alpha, const double[::1] rest, double[::1] beta_out):
    """Write the curve at every alpha into ``beta_out``; ``table`` as in `at`, its first series U, V and W."""
    if not fits(edges, node_x, table) or table.shape[0] < 3:
        raise ValueError("the table does not fit its panels")
    if alpha.shape[0] != rest.shape[0] or alpha.shape[0] != beta_out.shape[0]:
        raise ValueError("alpha, rest and beta_out differ in length")
    if alpha.shape[0] == 0:
        return
    cdef zil_panels on = zil_panels(edges.shape[0] - 1, &edges[0], &node_x[0])
    cdef zil_series u = zil_series(&table[0, 0, 0, 0], &table[0, 1, 0, 0], &table[0, 2, 0, 0])
    cdef zil_series v = zil_series(&table[1, 0, 0, 0], &table[1, 1, 0, 0], &table[1, 2, 0, 0])
    cdef zil_series w = zil_series(&table[2, 0, 0, 0], &table[2, 1, 0, 0], &table[2, 2, 0, 0])
    with nogil:
        zil_panels_beta(&on, &u, &v, &w, middle, alpha.shape[0], &alpha[0], &rest[0], &beta_out[0])
