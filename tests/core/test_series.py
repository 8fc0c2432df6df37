"""Piecewise Legendre series against numpy's."""

import numpy as np
import pytest
from numpy.polynomial import legendre

from zil._core import series


def panels(rng, n, count=7, columns=3, functions=4):
    edges = np.cumsum(rng.uniform(0.1, 2.0, count + 1)) - 3.0
    t = rng.uniform(edges[0] - 0.1, edges[-1] + 0.1, n)
    panel = np.clip(np.searchsorted(edges, t, "right") - 1, 0, count - 1)
    return t, edges, panel, rng.integers(0, columns, n), rng.normal(size=(count, columns, functions, 16))


def test_against_numpy():
    """Points a little outside the panels included.  Deterministic up to rounding."""
    rng = np.random.default_rng()
    t, edges, panel, column, coefficients = panels(rng, 200)
    out = np.empty((4, 200))
    series.evaluate(t, edges, panel, column, coefficients, out)
    for i in range(200):
        k = panel[i]
        x = 2.0 * (t[i] - edges[k]) / (edges[k + 1] - edges[k]) - 1.0
        expected = legendre.legval(x, coefficients[k, column[i]].T)
        size = np.abs(legendre.legvander(x, 15)) @ np.abs(coefficients[k, column[i]]).T
        assert (np.abs(out[:, i] - expected) <= 1e-14 * size).all()


def test_points_do_not_depend_on_their_company():
    rng = np.random.default_rng()
    t, edges, panel, column, coefficients = panels(rng, 50)
    whole, part = np.empty((4, 50)), np.empty((4, 13))
    series.evaluate(t, edges, panel, column, coefficients, whole)
    series.evaluate(t[20:33].copy(), edges, panel[20:33].copy(), column[20:33].copy(), coefficients, part)
    assert (whole[:, 20:33] == part).all()
    series.evaluate(t[:0], edges, panel[:0], column[:0], coefficients, np.empty((4, 0)))


@pytest.mark.parametrize("wrong", ["panel", "column", "short", "edges", "degree", "out"])
def test_nothing_outside_the_arrays_is_read(wrong):
    t, edges, panel, column, coefficients = panels(np.random.default_rng(0), 5)
    out = np.empty((4, 5))
    if wrong == "panel":
        panel[4] = 7
    elif wrong == "column":
        column[0] = -1
    elif wrong == "short":
        panel = panel[:4].copy()
    elif wrong == "edges":
        edges = edges[:7].copy()
    elif wrong == "degree":
        coefficients = coefficients[..., :15].copy()
    else:
        out = np.empty((3, 5))
    with pytest.raises(ValueError, match=r"wrong|range"):
        series.evaluate(t, edges, panel, column, coefficients, out)
