"""Simulated curves against the exact ones, their shape, their errors, and reproducibility."""

import math
import pickle

import numpy as np
import pytest

import zil
from zil._core import probe, tradeoff
from zil._random import resolve_key

LIMIT = 6.5  # standard errors; over about 500 nearly independent looks the chance of one beyond is below 1e-6


def worst(f, g, n):
    """Largest error in standard errors (1e-6 more for the bins), over vertices that at least 200 draws decide."""
    few = 200 / n
    decided = (f.alpha + (1 - f.zero_prob - f.beta) > few) & (f.beta + (1 - f.zero_prob - f.alpha) > few)
    decided[[0, -1]] = False
    return (np.abs(f.beta - g(f.alpha))[decided] / (f.std_error[decided] + 1e-6)).max()


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 6, 10, 33, 34, 35, 36, 50, 400])
def test_against_the_exact_curve(dim):
    n = 200_000
    for c in (0.3, 2.0):
        f = zil.simulate_tradeoff(dim, c, 0.05, n)
        assert worst(f, zil.tradeoff(dim, c, 0.05), n) < LIMIT


@pytest.mark.parametrize("dim", [1, 2, 6, 36])
def test_power_of_that_comparison(dim):
    """A shift wrong by two percent, or a dimension too small, is seen."""
    n = 1_000_000
    f = zil.simulate_tradeoff(dim, 1.0, 0.0, n)
    assert worst(f, zil.tradeoff(dim, 1.02, 0.0), n) > LIMIT
    if dim < 10:
        assert worst(f, zil.tradeoff(dim + 1, 1.0, 0.0), n) > LIMIT


def test_shape():
    for dim, c, z in ((1, 1.0, 0.2), (2, 0.1, 0.0), (6, 3.0, 0.05)):
        f = zil.simulate_tradeoff(dim, c, z, 50_000, rng=np.random.default_rng())
        assert f.n_samples == 50_000
        assert f.alpha[0] == 0
        assert f.beta[0] == f(0.0) == 1 - z
        assert f.beta[-1] == 0
        assert f.alpha.shape == f.beta.shape == f.std_error.shape
        assert (np.diff(f.alpha) > 0).all()
        assert (np.diff(f.beta) < 0).all()
        slopes = np.diff(f.beta) / np.diff(f.alpha)
        rounding = 4e-16 / np.diff(f.alpha) * (1 + np.abs(slopes))
        assert (np.diff(slopes) >= -rounding[1:] - rounding[:-1]).all()
        np.testing.assert_allclose(f(f.alpha), f.beta, atol=1e-15)
        assert f.advantage == pytest.approx(zil.tradeoff(dim, c, z).advantage, abs=0.02)


def test_randomised_test_at_the_atoms():
    """In one dimension the ratio has atoms: the first edge is a chord of slope exp(q), not a step."""
    c = 0.7
    f, g = zil.simulate_tradeoff(1, c, 0.0, 100_000), zil.tradeoff(1, c)
    q = math.sqrt(2) * c
    edge = math.exp(-q) / 2
    alpha = np.linspace(0, 0.9 * edge, 7)
    assert f.alpha[1] == pytest.approx(edge, rel=0.05)
    np.testing.assert_allclose((1 - f(alpha))[1:] / alpha[1:], math.exp(q), rtol=1e-3)
    np.testing.assert_allclose(f(alpha), g(alpha), rtol=1e-3)


def test_delta_and_epsilon_of_the_polygon():
    f, g = zil.simulate_tradeoff(4, 1.0, 0.05, 400_000), zil.tradeoff(4, 1.0, 0.05)
    epsilon = np.array([0.0, 0.3, 1.0, 2.0])
    lines = [(1 - f.beta - math.exp(e) * f.alpha).max() for e in epsilon]
    np.testing.assert_allclose(f.delta(epsilon), lines, atol=1e-14)
    np.testing.assert_allclose(f.delta(epsilon), g.delta(epsilon), atol=0.01)
    np.testing.assert_allclose(f.epsilon(f.delta(epsilon[1:])), epsilon[1:], rtol=1e-9)
    assert f.epsilon(0.04) == math.inf
    assert f.epsilon(1.0) == 0.0


def test_smaller_error_than_counting():
    """The stated error is real, and below that of counting rejections."""
    n, c, alpha = 20_000, 1.0, 0.05
    truth = zil.tradeoff(6, c)(alpha)
    runs = [zil.simulate_tradeoff(6, c, 0.0, n) for _ in range(60)]
    errors = np.array([f(alpha) - truth for f in runs])
    stated = np.array([np.interp(alpha, f.alpha, f.std_error) for f in runs])
    # a mean of 60 squares: within a factor 2.6 except with probability 1e-6
    assert 1 / 2.6 < np.mean(errors**2) / np.mean(stated**2) < 2.6
    assert np.mean(stated**2) < truth * (1 - truth) / n


def test_same_bytes_for_threads_and_instruction_sets():
    n = 3 * tradeoff.CHUNK + 1234
    base = zil.simulate_tradeoff(6, 0.5, 0.0, n, rng=1, n_threads=1)
    for threads in (2, 3, 7):
        again = zil.simulate_tradeoff(6, 0.5, 0.0, n, rng=1, n_threads=threads)
        assert again.beta.tobytes() == base.beta.tobytes()
    other = zil.simulate_tradeoff(6, 0.5, 0.0, n, rng=2)
    assert other.beta.tobytes() != base.beta.tobytes()
    for dim in (1, 2, 5, 60):
        counts = []
        for isa in range(probe.best_isa() + 1):
            count = np.zeros(1001, dtype=np.int64)
            tradeoff.simulate(resolve_key(5), dim, 0.5, n, 0, 4, count, isa)
            assert count.sum() == n
            counts.append(count.tobytes())
        assert len(set(counts)) == 1


def test_fresh_entropy_and_generators():
    assert zil.simulate_tradeoff(2, 1.0).beta.tobytes() != zil.simulate_tradeoff(2, 1.0).beta.tobytes()
    rng = np.random.default_rng(3)
    first, second = (zil.simulate_tradeoff(2, 1.0, rng=rng) for _ in range(2))
    assert first.beta.tobytes() != second.beta.tobytes()


def test_pickle():
    f = zil.simulate_tradeoff(3, 1.0, 0.1, 20_000)
    back = pickle.loads(pickle.dumps(f))
    assert back(0.2) == f(0.2)
    assert back.std_error.tobytes() == f.std_error.tobytes()


def test_ends():
    assert not zil.simulate_tradeoff(3, 0.0).std_error.any()
    assert zil.simulate_tradeoff(3, 0.0)(0.25) == 0.75
    assert zil.simulate_tradeoff(3, 1.0, n_samples=1)(0.0) == 1.0
    assert zil.simulate_tradeoff(3, 1.0, 1.0)(0.0) == 0.0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0, 1.0), ValueError),
        ((math.inf, 1.0), TypeError),
        ((2, -1.0), ValueError),
        ((2, math.nan), ValueError),
        ((2, 1.0, 1.5), ValueError),
        ((2, 1.0, 0.0, 0), ValueError),
        ((2, 1.0, 0.0, 10.5), TypeError),
    ],
)
def test_bad_input(arguments, error):
    with pytest.raises(error):
        zil.simulate_tradeoff(*arguments)
