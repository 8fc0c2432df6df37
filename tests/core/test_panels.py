"""Piecewise Chebyshev series against numpy's polynomials, and what a curve made of them answers at its ends."""

import itertools

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from zil._core import panels, tradeoff

EDGES = np.array([0.0, 0.7, 1.0, 2.5])


def table_of(*functions):
    """Interpolants of functions on EDGES as `panels.at` wants them, and the places of their nodes."""
    x = -np.cos(np.pi * (np.arange(panels.NODES) + 0.5) / panels.NODES)
    node_x = np.concatenate([0.5 * (a + b) + 0.5 * (b - a) * x for a, b in itertools.pairwise(EDGES)])
    half = 0.5 * np.diff(EDGES)[:, None]
    values = [function(node_x).reshape(-1, panels.NODES) for function in functions]
    series = [chebyshev.chebfit(x, v.T, panels.NODES - 1).T for v in values]
    slopes = [np.pad(chebyshev.chebder(s, axis=1), ((0, 0), (0, 1))) / half for s in series]
    return node_x, np.array([np.stack(parts) for parts in zip(series, slopes, values, strict=True)])


def ask(function, which, questions, *functions):
    node_x, table = table_of(*functions)
    out = np.empty_like(questions)
    function(EDGES, node_x, table, which, questions, out)
    return out


def test_values():
    """In order, in disorder, on the edges, and of the series that was asked for."""
    x = np.concatenate([np.linspace(0, 2.5, 300), np.random.default_rng().uniform(0, 2.5, 300), EDGES])
    np.testing.assert_allclose(ask(panels.at, 0, x, np.exp, np.cos), np.exp(x), rtol=1e-14)
    np.testing.assert_allclose(ask(panels.at, 1, x, np.exp, np.cos), np.cos(x), atol=2e-14)


@pytest.mark.parametrize(
    ("function", "inverse"),
    [(np.exp, np.log), (lambda x: np.exp(-3 * x), lambda v: -np.log(v) / 3), (lambda x: x**3 + x, None)],
)
def test_solving(function, inverse):
    """Rising and falling functions; what is not taken gets the nearer end of the nodes."""
    x = np.concatenate([np.linspace(0.01, 2.49, 300), np.random.default_rng().uniform(0.01, 2.49, 300)])
    value = function(x)
    found = ask(panels.solve, 0, value, function)
    np.testing.assert_allclose(found, x if inverse is None else inverse(value), rtol=1e-12)
    beyond = ask(panels.solve, 0, np.array([function(-5.0), function(9.0)]), function)
    assert (beyond[0], beyond[1]) == (EDGES[0], EDGES[-1])


def test_a_question_alone_is_answered_as_among_others():
    value = np.random.default_rng().uniform(1.1, 12.0, 100)
    together = ask(panels.solve, 0, value, np.exp)
    alone = np.concatenate([ask(panels.solve, 0, value[k : k + 1], np.exp) for k in range(len(value))])
    assert alone.tobytes() == together.tobytes()


def test_curve_of_a_known_law():
    """U, V, W of the curve beta = (1 - sqrt alpha)^2, alpha = exp(-2 x)/4 on its upper half."""

    def u(x):
        return -2 * x - 2 * np.log(2)

    def w(x):
        return 2 * np.log1p(-0.5 * np.exp(-x))

    def v(x):
        return np.log(-np.expm1(w(x)))

    node_x, table = table_of(u, v, w)
    alpha = np.array([0.0, 1.0, *np.geomspace(2e-3, 0.249, 40), *np.linspace(0.26, 0.9, 40)])
    out = np.empty_like(alpha)
    panels.beta(EDGES, node_x, table, 0.25, alpha, 1 - alpha, out)
    np.testing.assert_allclose(out[2:], (1 - np.sqrt(alpha[2:])) ** 2, rtol=1e-11)
    assert out[:2].tolist() == [1.0, 0.0]


def test_wrong_shapes():
    node_x, table = table_of(np.exp)
    three = np.ones(3)
    for call in (panels.at, panels.solve):
        with pytest.raises(ValueError, match="differ in length"):
            call(EDGES, node_x, table, 0, three, np.ones(2))
        for wrong in (1, -1):
            with pytest.raises(ValueError, match="does not fit"):
                call(EDGES, node_x, table, wrong, three, three.copy())
        with pytest.raises(ValueError, match="does not fit"):
            call(EDGES[:-1], node_x, table, 0, three, three.copy())
    with pytest.raises(ValueError, match="does not fit"):
        panels.beta(EDGES, node_x, table, 0.25, three, three, three.copy())
    with pytest.raises(ValueError, match="differ in length"):
        tradeoff.limit_beta(1.0, three, np.ones(2), three.copy())
