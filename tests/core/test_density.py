"""Density kernel against 30 digits, over dimensions, radii and instruction sets."""

import numpy as np
import pytest
import reference

from zil._core import density, probe


def log_density(dim, r, isa=-1):
    r = np.atleast_1d(np.asarray(r, dtype=float))
    out = np.empty_like(r)
    density.log_density(dim, r, out, isa)
    return out


def relative_error(dim, r, got):
    """Largest error against the size of the value (or against 1 where the logarithm crosses zero)."""
    truth = [reference.sl_log_density(dim, float(v)) for v in r]
    return max(float(abs(g - t) / max(1, abs(t))) for g, t in zip(got.tolist(), truth, strict=True))


# 25 digits with mpmath: (dim, r, log g)
GIVEN = [
    (1, 0.5, -1.0536803714665202),
    (2, 0.5, -1.5707397160839218),
    (2, 1e-300, 5.3927510897005376),
    (2, 800.0, -1135.805491527306),
    (3, 1e-150, 343.54988688269751),
    (3, 800.0, -1139.8933386925533),
    (3, 1e9, -1414213584.934238),
    (5, 1e-120, 825.25487934503776),
    (6, 5000.0, -7096.4353619783253),
    (10, 1e-60, 1100.6158074965630),
    (10, 1e10, -14142135734.404719),
    (102, 1e-3, 776.26690047547515),
    (102, 1.0, 85.481169590136557),
    (1000, 1.0, 2025.8441501456722),
    (1000, 30.0, -1369.452627736721),
]


@pytest.mark.parametrize(("dim", "r", "value"), GIVEN)
def test_given_values(dim, r, value):
    assert log_density(dim, r)[0] == pytest.approx(value, rel=1e-13)


@pytest.mark.parametrize("dim", [2, 3, 4, 5, 6, 7, 10, 33, 64, 65, 66, 67, 68, 129, 500, 1000, 1001])
def test_against_mpmath(dim):
    rng = np.random.default_rng()
    r = np.concatenate([10 ** rng.uniform(-300, -1, 12), 10 ** rng.uniform(-2, 10, 20), [0.70710678, 0.70710679]])
    assert relative_error(dim, r, log_density(dim, r)) < 1e-13


def test_power_of_the_error_measure():
    r = np.array([0.5, 3.0])
    assert relative_error(6, r, log_density(6, r) * (1 + 3e-13)) > 1e-13


def test_large_dimension_rescales():
    for dim in (20_000, 20_001):
        r = [1e-3, 1.0, 100.0, 1e4]
        assert relative_error(dim, r, log_density(dim, r)) < 1e-12


def test_ends():
    assert log_density(1, 0.0)[0] == pytest.approx(np.log(np.sqrt(0.5)), rel=1e-15)
    for dim in (2, 3, 4, 10, 101, 1000):
        got = log_density(dim, [0.0, 5e-324, np.inf, 1.7e308])
        assert got[0] == np.inf
        assert np.isfinite(got[1])
        assert got[1] > log_density(dim, 1e-307)[0]
        assert got[2] == -np.inf
        assert got[3] < -1e308
        assert np.isnan(log_density(dim, np.nan)[0])


def test_decreasing_and_convex():
    r = np.linspace(0.01, 5, 3000)
    for dim in (2, 3, 6, 25):
        value = log_density(dim, r)
        assert (np.diff(value) < 0).all()
        assert (np.diff(value, 2) > -1e-11).all()


@pytest.mark.parametrize("dim", [1, 2, 3, 6, 7, 80])
def test_same_bits_for_every_instruction_set(dim):
    rng = np.random.default_rng()
    r = 10 ** rng.uniform(-5, 3, 1001)
    s = rng.normal(size=(501, dim))
    base, ratio = log_density(dim, r, 0), np.empty(501)
    density.log_likelihood_ratio(s, 0.7, ratio, 0)
    for isa in range(1, probe.best_isa() + 1):
        assert log_density(dim, r, isa).tobytes() == base.tobytes()
        other = np.empty(501)
        density.log_likelihood_ratio(s, 0.7, other, isa)
        assert other.tobytes() == ratio.tobytes()


def test_wrong_lengths():
    with pytest.raises(ValueError, match="length"):
        density.log_density(2, np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="length"):
        density.log_likelihood_ratio(np.ones((3, 2)), 1.0, np.ones(2))
