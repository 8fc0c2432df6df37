"""Quadrature of the type I error against independent quadratures and instruction sets."""

import math

import numpy as np
import pytest
import reference

from zil._core import probe, tradeoff


def log_alpha(dim, c, t, isa=-1):
    t = np.atleast_1d(np.asarray(t, dtype=float))
    value, error = np.empty_like(t), np.empty_like(t)
    tradeoff.tail(dim, c, t, value, error, isa)
    assert (error < 1.01e-12).all()  # halving stops below 1e-6, whose square, and rounding, is the estimate
    return value


@pytest.mark.parametrize("dim", [2, 3, 4, 5, 6, 7, 10, 21, 50])
def test_against_scipy_quadrature(dim):
    rng = np.random.default_rng()
    for _ in range(3):
        c = 10 ** rng.uniform(-2.5, 1.5)
        t = min(c * 10 ** rng.uniform(-1.5, 1), 2.0 if dim == 2 else 8.0)
        right = reference.sl_alpha_float(dim, c, t)
        assert math.exp(log_alpha(dim, c, t)[0]) == pytest.approx(right, rel=1e-9, abs=1e-14)


def test_power_of_that_comparison():
    """A threshold off by 1e-7 would be seen."""
    right = reference.sl_alpha_float(6, 1.0, 0.7)
    assert math.exp(log_alpha(6, 1.0, 0.7 + 1e-7)[0]) != pytest.approx(right, rel=1e-9)


@pytest.mark.parametrize("dim", [2, 3, 6, 51, 1000])
def test_middle_of_the_curve(dim):
    """At threshold 0 the region is a half-space: alpha = exp(-c/sqrt 2)/2 in every dimension."""
    for c in (1e-5, 1e-3, 0.3, 2.0, 50.0):
        got = log_alpha(dim, c, 1e-13 * c)[0]
        assert got == pytest.approx(-c / math.sqrt(2) - math.log(2), abs=2e-12 * max(1.0, c))


@pytest.mark.parametrize("dim", [2, 3, 6, 40, 1000])
def test_smooth_and_decreasing_across_all_regimes(dim):
    """Half-space, paraboloid, bounded region, speck: no seam between them."""
    for c in (1e-3, 0.7, 20.0):
        limit = math.sqrt(2) * c
        t = np.concatenate(
            [limit * np.geomspace(1e-4, 0.4, 20), np.linspace(0.5 * limit, min(1.5 * limit, limit + 4), 81)]
        )
        value = log_alpha(dim, c, t)
        assert (np.diff(value) < 0).all()
        around = log_alpha(dim, c, limit * (1 + np.array([-2e-9, -1e-9, 1e-9, 2e-9])))
        steps = -np.diff(around)
        assert steps[1] == pytest.approx(2 * steps[0], abs=1e-12 * max(1.0, c) + 1e-3 * steps[0] + 1e-12)


def test_order_of_the_questions_does_not_matter():
    """Up to the error of the two answers; the largest of 3000 trials was 2.5e-12."""
    t = 10 ** np.random.default_rng().uniform(-2, 1.2, 300)
    np.testing.assert_allclose(
        log_alpha(6, 1.0, t), log_alpha(6, 1.0, np.sort(t))[np.argsort(np.argsort(t))], rtol=1e-11
    )


def test_far_beyond_a_double():
    assert log_alpha(2, 0.5, 20.0)[0] == -math.inf
    # around the shift g is nearly a power: the region is a ball, log alpha falls by dim/(dim - 2) per unit of t
    t = np.array([300.0, 301.0])
    assert np.diff(log_alpha(6, 0.5, t))[0] == pytest.approx(-1.5, rel=1e-9)


@pytest.mark.parametrize("dim", [2, 3, 6, 67])
def test_same_bits_for_every_instruction_set(dim):
    t = np.geomspace(1e-3, 5, 90)
    base = log_alpha(dim, 0.8, t, 0)
    for isa in range(1, probe.best_isa() + 1):
        assert log_alpha(dim, 0.8, t, isa).tobytes() == base.tobytes()


def test_wrong_shapes():
    with pytest.raises(ValueError, match="length"):
        tradeoff.tail(2, 1.0, np.ones(3), np.empty(2), np.empty(3))
    with pytest.raises(ValueError, match="dim"):
        tradeoff.tail(1, 1.0, np.ones(3), np.empty(3), np.empty(3))
