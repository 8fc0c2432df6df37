"""Closed forms of calibration against arithmetic with 60 digits."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from zil.privacy import shifts
from zil.privacy.tradeoff import tradeoff

EPSILONS = (0.1, 0.5, 0.8, 1, 1.5, 2, 3, 5)
DELTAS = (0.02, 0.05, 0.1, 0.15, 0.17, 0.2, 0.25, 0.3)
ZERO_PROBS = (0.0, 0.01, 0.05, 0.1, 0.15)
EXTREME = [
    (0.0, 1e-300, 0.0),
    (1e8, 1e-12, 0.0),
    (1e308, 0.5, 0.1),
    (1e-300, 1e-300, 0.0),
    (1.0, np.nextafter(0.05, 1), 0.05),
    (1.0, np.nextafter(1.0, 0), 0.0),
    (0.0, 1e-305, 0.0),
    (1.0, 5e-324, 0.0),
    (30.0, 0.9999999, 0.999999),
]


def limit_delta(epsilon, c, zero_prob):
    epsilon, c, p = mp.mpf(epsilon), mp.mpf(c), mp.mpf(zero_prob)
    s = mp.sqrt(epsilon**2 + 2 * c**2)
    return p - (1 - p) * mp.expm1((epsilon - s) / 2)


def laplace_delta(epsilon, c, zero_prob):
    epsilon, c, p = mp.mpf(epsilon), mp.mpf(c), mp.mpf(zero_prob)
    return p - (1 - p) * min(mp.mpf(0), mp.expm1((epsilon - mp.sqrt(2) * c) / 2))


GRID = [t for t in itertools.product(EPSILONS, DELTAS, ZERO_PROBS) if t[2] < t[1]]


@pytest.mark.parametrize(
    ("shift", "truth"), [(shifts.limit_shift, limit_delta), (shifts.laplace_shift, laplace_delta)]
)
def test_never_overspends_and_wastes_nothing(shift, truth):
    with mp.workdps(400):
        for epsilon, delta, zero_prob in GRID + EXTREME:
            c = shift(epsilon, delta, zero_prob)
            assert 0 < c < np.inf
            assert truth(epsilon, c, zero_prob) <= mp.mpf(delta), (epsilon, delta, zero_prob)
            assert truth(epsilon, c * (1 + 1e-14), zero_prob) > mp.mpf(delta), (epsilon, delta, zero_prob)


def test_the_comparison_sees_plain_double_precision():
    """Without the margin a good part of the grid overspends."""
    with mp.workdps(60):
        over = [
            t
            for t in GRID
            if limit_delta(t[0], shifts.limit_shift(*t) / (1 - shifts.MARGIN) * (1 + 2**-50), t[2]) > mp.mpf(t[1])
        ]
    assert len(over) > len(GRID) // 2


def test_known_values():
    assert shifts.limit_shift(0.8, 0.17, 0.05) == pytest.approx(0.502521293054799, rel=1e-14)
    assert 1 / shifts.limit_shift(0.1, 0.05, 0.0) == pytest.approx(8.026844796765845, rel=1e-14)
    assert 1 / shifts.limit_shift(0.1, 0.05, 0.0) > 8.026844796765845


def test_advantage():
    with mp.workdps(400):
        for advantage, p in [(0.1, 0.0), (0.1, 0.05), (0.999, 0.1), (1e-12, 0.0), (0.05 + 1e-12, 0.05)]:
            c = shifts.advantage_shift(advantage, p)
            used, wasteful = (p - (1 - mp.mpf(p)) * mp.expm1(-mp.mpf(x) / mp.sqrt(2)) for x in (c, c * (1 + 1e-14)))
            assert used <= mp.mpf(advantage) < wasteful


@pytest.mark.parametrize("shift", [shifts.limit_shift, shifts.laplace_shift])
def test_domains(shift):
    for epsilon in (-1, float("nan"), float("inf"), -1e-300):
        with pytest.raises(ValueError, match=r"epsilon must be in \[0, inf\)"):
            shift(epsilon, 0.1, 0.05)
    for delta in (0.05, 0.01, 0.0, 1.0):
        with pytest.raises(ValueError, match="delta needs zero_prob < delta < 1, got"):
            shift(1.0, delta, 0.05)
    for delta in (1.2, -0.1, float("nan")):
        with pytest.raises(ValueError, match=r"delta must be in \[0, 1\], got"):
            shift(1.0, delta, 0.05)
    with pytest.raises(ValueError, match="delta needs"):
        shift(1.0, 0.0, 0.0)


positive = st.floats(1e-6, 1e6)


@settings(deadline=None)
@given(
    st.lists(positive, min_size=1, max_size=6),
    positive,
    st.sampled_from(["attribute", "record"]),
    st.sampled_from(["per-column", "common"]),
)
def test_scales_keep_the_shift(width, c, unit, scaling):
    width = np.array(width)
    scale = shifts.scales(width, c, unit, scaling)
    reported = shifts.shift(shifts.ratios(width, scale), unit)
    with mp.workdps(60):
        ratios = [mp.mpf(w) / mp.mpf(s) for w, s in zip(width.tolist(), scale.tolist(), strict=True)]
        used = max(ratios) if unit == "attribute" else mp.sqrt(sum(r**2 for r in ratios))
        assert used <= c * (1 + mp.mpf(2) ** -50)  # the margin in c is 2**-48
        assert used >= c * (1 - mp.mpf(2) ** -49)
        assert used <= reported <= used * (1 + mp.mpf(2) ** -50)
    if scaling == "common":
        assert len(set(scale.tolist())) == 1


def test_column_of_no_width():
    assert shifts.scales(np.array([0.0, 1.0]), 0.5, "attribute", "per-column").tolist() == pytest.approx([2, 2])
    assert shifts.scales(np.array([0.0, 1.0]), 0.5, "record", "per-column").tolist() == pytest.approx([2, 2])


def test_widths_are_rounded_up():
    assert shifts.widths(np.array([[18.0, 90.0], [0.0, 1.0]])).tolist() == [72.0, 1.0]
    got = shifts.widths(np.array([[-1e-30, 1.0], [0.1, 0.3]]))
    assert got[0] > 1.0
    with mp.workdps(60):
        assert mp.mpf(float(got[1])) >= mp.mpf(0.3) - mp.mpf(0.1)
    with pytest.raises(ValueError, match="wider than float64"):
        shifts.widths(np.array([[-1e308, 1e308]]))


def test_scale_out_of_range():
    with pytest.raises(ValueError, match="outside the range of float64"):
        shifts.scales(np.array([1e300]), 1e-300, "attribute", "per-column")


# finite dimensions


@pytest.mark.parametrize(("dim", "epsilon", "delta", "zero_prob"), [(3, 0.5, 0.2, 0.05), (6, 1.0, 0.06, 0.05)])
def test_exact_shift_by_quadrature(dim, epsilon, delta, zero_prob):
    """The guarantee recomputed from the definition, ``delta(epsilon) = Int exp(t) alpha(t) dt`` from epsilon on."""
    c = shifts.exact_shift(dim, epsilon, delta, zero_prob)
    edges = [epsilon, max(epsilon, math.sqrt(2) * c), *(epsilon + (dim - 2) * np.array([1.0, 4.0, 12.0]) + 2 * c)]
    nodes, weights = np.polynomial.legendre.leggauss(12)
    inner = 0.0
    for low, high in itertools.pairwise(edges):
        t = low + (high - low) * (nodes + 1) / 2
        values = [math.exp(s) * reference.sl_alpha_float(dim, c, s) for s in t]
        inner += (high - low) / 2 * float(weights @ values)
    assert zero_prob + (1 - zero_prob) * inner == pytest.approx(delta, rel=1e-5)


@pytest.mark.parametrize("dim", [2, 3, 6, 50])
def test_exact_shift_lies_between_the_closed_forms(dim):
    for epsilon, delta, zero_prob in [
        (0.0, 0.1, 0.0),
        (1e-6, 0.9, 0.1),
        (1, 0.1, 0.05),
        (5, 0.01, 0),
        (300, 1e-9, 0),
        (20, 1e-6, 0),
    ]:
        exact = shifts.exact_shift(dim, epsilon, delta, zero_prob)
        limit, laplace = (f(epsilon, delta, zero_prob) for f in (shifts.limit_shift, shifts.laplace_shift))
        assert limit <= exact <= laplace * (1 + 1e-15)
    assert shifts.exact_shift(dim, 5, 0.01, 0) > 1.01 * shifts.limit_shift(5, 0.01, 0)
    assert shifts.exact_shift(3, 300, 1e-9, 0) > 1e3 * shifts.limit_shift(300, 1e-9, 0)
    assert shifts.exact_shift(5000, 1, 0.1, 0) == shifts.limit_shift(1, 0.1, 0)


def test_gaussian_target():
    for mu in (1e-6, 0.1, 1.0, 5.0, 30.0):
        assert tradeoff(1, shifts.gaussian_shift(mu)).gaussian_mu == pytest.approx(mu, rel=1e-9)
        assert tradeoff(1, shifts.gaussian_shift(mu)).gaussian_mu <= mu
    c = shifts.exact_gaussian_shift(2, 1.0)
    assert tradeoff(2, c).gaussian_mu <= 1.0
    assert tradeoff(2, c * 1.001).gaussian_mu > 1.0
    with pytest.raises(ValueError, match="mu must lie between"):
        shifts.exact_gaussian_shift(2, 1e-9)
    with pytest.raises(ValueError, match="mu must be in"):
        shifts.gaussian_shift(0.0)


@pytest.mark.parametrize("dim", [1, 2, 6, math.inf])
def test_point_target(dim):
    for alpha, beta, zero_prob in [(0.05, 0.6, 0.05), (0.01, 0.9, 0.0), (0.4, 0.05, 0.2)]:
        c = shifts.point_shift(dim, alpha, beta, zero_prob)
        assert tradeoff(dim, c, zero_prob)(alpha) >= beta * (1 - 1e-15)
        assert tradeoff(dim, c * (1 + 1e-9), zero_prob)(alpha) < beta
    for wrong in [(0.5, 0.5, 0.0), (0.0, 0.5, 0.0), (0.5, 0.0, 0.0), (0.5, 0.48, 0.05)]:
        with pytest.raises(ValueError, match="a point needs alpha > 0, beta > 0"):
            shifts.point_shift(dim, *wrong)
