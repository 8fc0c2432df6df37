"""Density kernel against 30 digits, over dimensions, radii and instruction sets."""

import mpmath as mp
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
    terms = 0.5 * dim * np.log(2 * np.pi)  # where the log density is near 0 it is a difference of terms of this size
    return max(float(abs(g - t) / max(1, terms, abs(t))) for g, t in zip(got.tolist(), truth, strict=True))


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


def rows_log_density(x, scale=None, lower=None, half_log_det=0.0, isa=-1):
    out = np.empty(len(x))
    density.logpdf(x, np.ones(x.shape[1]) if scale is None else scale, lower, half_log_det, out, isa)
    return out


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 6, 8, 9, 16, 23])
def test_rows_same_bits_for_every_instruction_set_and_split(dim):
    """Standardised by scales or by a factor; a row alone is what it is among others."""
    rng = np.random.default_rng()
    x = rng.normal(size=(201, dim)) * 10 ** rng.uniform(-3, 3, (201, 1))
    x[::17] *= 1e-160  # squares out of range
    x[5, 0], x[6, -1] = np.inf, np.nan
    x[7] = 0.0
    scale, lower = 10 ** rng.uniform(-2, 2, dim), np.tril(rng.normal(size=(dim, dim))) + 5 * np.eye(dim)
    for arguments in ((scale, None), (scale, lower)):
        base = rows_log_density(x, *arguments, 1.5, isa=0)
        assert np.isnan(base[6])
        assert (base[5], base[7]) == (-np.inf, -1.5 - 0.5 * np.log(2) if dim == 1 else np.inf)
        for isa in range(1, probe.best_isa() + 1):
            assert rows_log_density(x, *arguments, 1.5, isa=isa).tobytes() == base.tobytes()
        alone = np.concatenate([rows_log_density(x[i : i + 1], *arguments, 1.5) for i in range(len(x))])
        assert alone.tobytes() == base.tobytes()


@pytest.mark.parametrize("dim", [1, 2, 3, 6, 9, 20])
def test_rows_against_mpmath(dim):
    """Any size of row and of scale, squares out of the range of a double included."""
    rng = np.random.default_rng()
    scale = 10 ** rng.uniform(-200, 200, dim)
    x = rng.normal(size=(24, dim)) * scale * 10 ** rng.uniform(-90, 8, (24, 1))
    got = rows_log_density(x, scale)
    with mp.workdps(40):
        for row, value in zip(x.tolist(), got.tolist(), strict=True):
            radius = mp.sqrt(mp.fsum((mp.mpf(v) / mp.mpf(s)) ** 2 for v, s in zip(row, scale.tolist(), strict=True)))
            right = reference.sl_log_density(dim, radius, 40)
            assert abs(value - right) <= 1e-13 * max(1, abs(right))


@pytest.mark.parametrize("dim", [2, 3, 6, 9, 20])
def test_rows_with_a_factor_against_mpmath(dim):
    rng = np.random.default_rng()
    lower = np.tril(rng.normal(size=(dim, dim)), -1) * 0.3 + np.diag(rng.uniform(0.5, 2.0, dim))
    x = rng.normal(size=(24, dim)) * 10 ** rng.uniform(-200, 8, (24, 1))
    got = rows_log_density(x, lower=lower)
    with mp.workdps(40):
        factor = mp.matrix(lower.tolist())
        for row, value in zip(x.tolist(), got.tolist(), strict=True):
            right = reference.sl_log_density(dim, mp.norm(mp.lu_solve(factor, mp.matrix(row))), 40)
            assert abs(value - right) <= 1e-12 * max(1, abs(right))


def test_scales_without_a_normal_reciprocal():
    for scale in (5e-324, 1e-310, 1.7e308):
        x = np.array([[scale, 0.0], [0.5, 1.0]])
        got = rows_log_density(x, np.array([scale, 1.0]))
        assert got[0] == pytest.approx(float(reference.sl_log_density(2, 1.0)), rel=1e-13)
        assert not np.isnan(got[1])


def test_ratio_tells_of_entries_that_are_not_finite():
    for bad in (np.nan, np.inf, -np.inf):
        for column in range(3):
            s = np.ones((70, 3))
            s[66, column] = bad
            assert not density.log_likelihood_ratio(s, 0.5, np.empty(70))
    assert density.log_likelihood_ratio(np.full((70, 3), 1e300), 0.5, np.empty(70))


def test_wrong_lengths():
    for arguments in (
        (np.ones((3, 2)), np.ones(3), None, 0.0, np.ones(3)),
        (np.ones((3, 2)), np.ones(2), None, 0.0, np.ones(2)),
        (np.ones((3, 2)), np.ones(2), np.eye(3), 0.0, np.ones(3)),
        (np.ones((3, 0)), np.ones(0), None, 0.0, np.ones(3)),
    ):
        with pytest.raises(ValueError, match=r"differ in|must be square"):
            density.logpdf(*arguments)
    with pytest.raises(ValueError, match="length"):
        density.log_density(2, np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="length"):
        density.log_likelihood_ratio(np.ones((3, 2)), 1.0, np.ones(2))
