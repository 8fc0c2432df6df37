"""Composition against closed forms: Gaussian, randomised response, one Laplace column, atoms."""

import json
import math
import pathlib

import numpy as np
import pytest

import zil
from zil.privacy import composition, curves
from zil.privacy.tradeoff import TradeOff

DATA = pathlib.Path(__file__).parents[1] / "data"


def on_the_grid(curve, k):
    result, atom = composition.compose([(curve.delta, curve.epsilon, k)])
    return TradeOff(result, atom), result.error


@pytest.mark.parametrize(("mu", "k"), [(0.5, 4), (0.1, 100), (1.0, 2), (0.05, 400), (3.0, 2)])
def test_gaussian_through_the_grid(mu, k):
    got, error = on_the_grid(curves.Gaussian(mu), k)
    right = zil.gaussian_tradeoff(mu * math.sqrt(k))
    epsilon = np.linspace(0, 6, 25)
    excess = got.delta(epsilon) - right.delta(epsilon)
    assert (excess >= -1e-13).all()
    assert (excess <= error + 1e-13).all()
    assert error < 1e-5
    alpha = np.linspace(0, 1, 101)
    assert (got(alpha) <= right(alpha) + 1e-13).all()
    lower, upper = got.bounds(alpha)
    assert (lower <= right(alpha) + 1e-13).all()
    assert (upper >= right(alpha) - 1e-11).all()


def test_gaussian_closed_form():
    f = zil.gaussian_tradeoff(0.7).compose(9)
    assert f.gaussian_mu == pytest.approx(2.1)
    assert zil.gaussian_tradeoff(3.0).compose(zil.gaussian_tradeoff(4.0)).gaussian_mu == pytest.approx(5.0)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_randomised_response(k):
    """(epsilon, 0) privacy composes to a binomial, exactly on the grid."""
    step = 0.5
    p = math.exp(step) / (1 + math.exp(step))
    f = zil.eps_delta_tradeoff(step, 0.0).compose(k)
    for epsilon in (0.0, 0.3, 0.5, 1.0, step * k - 0.1):
        terms = [
            math.comb(k, j) * max(0.0, p ** (k - j) * (1 - p) ** j - math.exp(epsilon) * p**j * (1 - p) ** (k - j))
            for j in range(k + 1)
        ]
        assert f.delta(epsilon) == pytest.approx(sum(terms), rel=1e-9, abs=2e-8)


def test_one_laplace_column_by_summation():
    """Two releases of one column: the loss law in closed form, its square by brute force on a fine grid."""
    c = 0.8
    q, n = math.sqrt(2) * c, 2000
    f = zil.tradeoff(1, c).compose(2)
    # under Q the loss is q with probability 1/2, -q with e^-q/2, density e^((l - q)/2)/4 between
    edges = np.linspace(-q, q, n + 1)
    mass = np.concatenate([[math.exp(-q) / 2], np.diff(np.exp((edges - q) / 2) / 2), [0.5]])
    loss = np.concatenate([[-q], 0.5 * (edges[1:] + edges[:-1]), [q]])
    total = np.add.outer(loss, loss)
    joint = np.multiply.outer(mass, mass)
    for epsilon in (0.0, 0.5, 1.5):
        right = (joint * np.maximum(-np.expm1(epsilon - total), 0.0)).sum()
        assert f.delta(epsilon) == pytest.approx(right, abs=1e-5)
    assert f.delta(2 * q) == pytest.approx(0.0, abs=1e-13)


def test_against_dp_accounting():
    """Values of another implementation (upper bounds of its own grid), frozen."""
    for mechanism, c, k, epsilon, delta in json.loads((DATA / "composition_dp_accounting.json").read_text())["rows"]:
        f = zil.tradeoff(1, c) if mechanism == "laplace" else zil.gaussian_tradeoff(c)
        assert f.compose(k).delta(epsilon) == pytest.approx(delta, rel=2e-4, abs=1e-9)


def test_atoms():
    f = zil.tradeoff(1, 0.5, 0.01)
    h = f.compose(10)
    assert h.zero_prob == pytest.approx(1 - 0.99**10, rel=1e-9)
    assert h(0.0) == 1 - h.zero_prob
    assert zil.tradeoff(2, 0.0, 0.1).compose(2).zero_prob == pytest.approx(0.19)
    assert zil.tradeoff(2, 0.5, 1.0).compose(2).advantage == 1.0
    mixed = zil.tradeoff(2, 0.0, 0.1).compose(zil.tradeoff(1, 0.5, 0.0))
    assert mixed.delta(0.3) == pytest.approx(0.1 + 0.9 * zil.tradeoff(1, 0.5).delta(0.3), rel=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 6, math.inf])
def test_order_and_shape(dim):
    f = zil.tradeoff(dim, 0.6, 0.02)
    twice, thrice = f.compose(2), f.compose(3)
    alpha = np.linspace(0, 1, 201)
    assert (twice(alpha) <= f(alpha) + 1e-12).all()
    assert (thrice(alpha) <= twice(alpha) + 1e-12).all()
    slopes = np.diff(twice(alpha))
    assert (np.diff(slopes) >= -1e-12).all()
    epsilon = np.linspace(0, 3, 13)
    # never better than one release, never worse than basic composition
    assert (twice.delta(epsilon) >= f.delta(epsilon) - 1e-12).all()
    slack = twice.bounds(0.5)[1] - twice(0.5)
    assert (twice.delta(2 * epsilon) <= 2 * f.delta(epsilon) + slack + 1e-9).all()
    np.testing.assert_allclose(twice.inverse(twice(alpha[5:60])), alpha[5:60], atol=1e-9)
    assert f.compose(f).delta(1.0) == pytest.approx(twice.delta(1.0), abs=1e-12)
    assert f.compose(1) is f
    assert twice.compose(2).delta(1.0) == pytest.approx(f.compose(4).delta(1.0), abs=1e-3)


def test_against_the_limit_of_equal_parts():
    """Different curves: the order of composition does not matter."""
    f, g = zil.tradeoff(6, 0.5), zil.gaussian_tradeoff(0.7)
    epsilon = np.array([0.0, 0.5, 2.0])
    np.testing.assert_allclose(f.compose(g).delta(epsilon), g.compose(f).delta(epsilon), atol=1e-12)
    assert (f.compose(g).delta(epsilon) >= np.maximum(f.delta(epsilon), g.delta(epsilon))).all()


@pytest.mark.parametrize("bad", [0, -1, 1.5, "x", None, True])
def test_bad_input(bad):
    with pytest.raises((ValueError, TypeError)):
        zil.tradeoff(1, 1.0).compose(bad)
