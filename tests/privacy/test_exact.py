"""Exact curves of finite dimensions: values, identities, shape, order in c and d."""

import json
import math
import pathlib
import pickle

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

import zil
from zil.privacy.exact import LaplaceExact, exact_curve

DATA = pathlib.Path(__file__).parents[1] / "data"

dims = st.one_of(st.integers(2, 12), st.sampled_from([2, 3, 25, 64, 101, 400]))
shifts = st.floats(-3, math.log10(50)).map(lambda x: 10**x)
zeros = st.sampled_from([0.0, 0.05, 0.3])
few = settings(max_examples=20, deadline=None)

# (dim, c, zero_prob, alpha, beta), quadrature to 12 digits
GIVEN = [
    (2, 0.5, 0.05, 0.01, 0.9117657913670852),
    (2, 0.5, 0.05, 0.6, 0.14355433713340227),
    (3, 1.0, 0.05, 0.1, 0.44552532855801646),
    (4, 0.5, 0.05, 0.25, 0.4258711821504102),
    (6, 2.0, 0.05, 0.01, 0.4776168567645819),
    (6, 2.0, 0.05, 0.6, 0.003988244158658288),
]
GIVEN_DELTA = [
    (2, 0.5, 0.1, 0.26265047378149303),
    (2, 0.5, 2.0, 2.0371759279142582e-05),
    (3, 1.0, 1.0, 0.24612067559060152),
    (4, 0.5, 2.0, 0.013681768245999301),
    (6, 2.0, 0.5, 0.6914773202090906),
]


def grid():
    return np.concatenate(
        [np.geomspace(1e-12, 1e-3, 40), np.linspace(2e-3, 1 - 2e-3, 120), 1 - np.geomspace(1e-3, 1e-10, 20)]
    )


@pytest.mark.parametrize(("dim", "c", "z", "alpha", "beta"), GIVEN)
def test_given_values(dim, c, z, alpha, beta):
    f = zil.tradeoff(dim, c, z)
    assert f(alpha) == pytest.approx(beta, rel=1e-11)
    assert f.inverse(beta) == pytest.approx(alpha, rel=1e-10)


@pytest.mark.parametrize(("dim", "c", "epsilon", "delta"), GIVEN_DELTA)
def test_given_deltas(dim, c, epsilon, delta):
    f = zil.tradeoff(dim, c)
    assert f.delta(epsilon) == pytest.approx(delta, rel=1e-11, abs=3e-16)
    assert f.epsilon(delta) == pytest.approx(epsilon, rel=1e-9)
    assert f.delta(f.epsilon(delta)) <= delta * (1 + 1e-15)


def test_against_frozen_quadrature():
    for dim, c, t, alpha in json.loads((DATA / "tradeoff_alpha.json").read_text())["rows"]:
        curve = exact_curve(dim, c)
        tau = np.array([math.asinh(t / (math.sqrt(2) * c))])
        beta = 1 - zil.tradeoff(dim, c).delta(t) - math.exp(t) * alpha
        assert math.exp(curve._at("U", tau)[0]) == pytest.approx(alpha, rel=1e-11)
        assert zil.tradeoff(dim, c)(alpha) == pytest.approx(beta, abs=1e-11)


def test_a_point_of_the_curve_against_another_quadrature():
    """Both errors of one threshold: beta from its own integral, through the mirrored test at -t."""
    rng = np.random.default_rng()
    for dim in (2, 3, 6, 11):
        c = 10 ** rng.uniform(-1, 1)
        t1, t2 = np.sort(c * rng.uniform(0.1, 2, 2))
        f = zil.tradeoff(dim, c)
        a1, a2 = reference.sl_alpha_float(dim, c, t1), reference.sl_alpha_float(dim, c, t2)
        # slope -k between the two points: -exp(t2) (a1 - a2) <= f(a1) - f(a2) <= -exp(t1) (a1 - a2)
        drop = f(a2) - f(a1)
        assert math.exp(t1) * (a1 - a2) - 1e-10 <= drop <= math.exp(t2) * (a1 - a2) + 1e-10
        # f is its own inverse
        assert f(f(a1)) == pytest.approx(a1, rel=1e-9)


@few
@given(dim=dims, c=shifts, z=zeros)
def test_shape(dim, c, z):
    f = zil.tradeoff(dim, c, z)
    alpha = grid() * (1 - z)
    beta = f(alpha)
    assert f(0.0) == 1 - z
    assert f(1.0) == 0.0
    assert f(1 - z) == 0.0
    assert (np.diff(beta) <= 1e-13).all()
    assert (beta <= (1 - z) - alpha + 1e-15).all()
    assert (beta >= 0).all()
    slopes = np.diff(beta) / np.diff(alpha)
    rounding = 4e-13 * (beta[:-1] + 1e-3 * alpha[1:]) / np.diff(alpha)
    assert (np.diff(slopes) >= -rounding[1:] - rounding[:-1]).all()
    assert f.advantage == pytest.approx(z + (1 - z) * -math.expm1(-c / math.sqrt(2)), rel=1e-14)


@few
@given(dim=dims, c=shifts)
def test_own_inverse(dim, c):
    f = zil.tradeoff(dim, c)
    alpha = np.geomspace(1e-12, 0.49, 60)
    beta = f(alpha)
    seen = beta < 1 - 1e-3  # nearer to 1 the answer itself has too few digits to go back
    np.testing.assert_allclose(f(beta[seen]), alpha[seen], rtol=1e-8)


@few
@given(dim=dims, c=shifts)
def test_above_the_limit_and_decreasing_in_dim(dim, c):
    alpha = grid()
    f, wider, limit = zil.tradeoff(dim, c), zil.tradeoff(dim + 1, c), zil.tradeoff(math.inf, c)
    assert (f(alpha) >= wider(alpha) - 1e-12).all()
    assert (wider(alpha) >= limit(alpha) - 1e-12).all()
    assert (zil.tradeoff(1, c)(alpha) >= f(alpha) - 1e-12).all()
    epsilon = np.linspace(0, 4 * c + 3, 50)
    assert (f.delta(epsilon) <= wider.delta(epsilon) + 1e-12).all()
    assert (wider.delta(epsilon) <= limit.delta(epsilon) + 1e-12).all()


@few
@given(dim=dims, c=shifts, factor=st.floats(1.01, 3))
def test_decreasing_in_c(dim, c, factor):
    alpha = grid()
    assert (zil.tradeoff(dim, c)(alpha) >= zil.tradeoff(dim, factor * c)(alpha) - 1e-12).all()


@few
@given(dim=dims, c=shifts, z=zeros)
def test_delta_is_the_conjugate(dim, c, z):
    f = zil.tradeoff(dim, c, z)
    alpha = np.concatenate([[0.0], grid()]) * (1 - z)
    for epsilon in (0.0, 0.5 * c, 2 * c, 1.0):
        lines = 1 - f(alpha) - math.exp(epsilon) * alpha
        assert f.delta(epsilon) >= lines.max() - 1e-12
        # and some line reaches it
        best = optimize.minimize_scalar(
            lambda x, e=epsilon: f(math.exp(x)) + math.exp(x + e),
            bounds=(-40.0 - epsilon, 0.0),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert max(1 - best.fun, lines.max()) == pytest.approx(f.delta(epsilon), abs=2e-4)


@few
@given(dim=dims, c=shifts, z=zeros)
def test_epsilon_is_safe_and_tight(dim, c, z):
    f = zil.tradeoff(dim, c, z)
    for epsilon in (0.1 * c, c, 1.0):
        delta = f.delta(epsilon)
        if delta - z > 1e-12:
            back = f.epsilon(delta)
            assert f.delta(back) <= delta
            assert f.delta(back) >= delta * (1 - 1e-10)


@few
@given(dim=dims, c=shifts, z=zeros)
def test_bounds_enclose(dim, c, z):
    f = zil.tradeoff(dim, c, z)
    alpha = np.concatenate([[0.0], grid() * (1 - z), [1.0]])
    lower, upper = f.bounds(alpha)
    assert (lower <= f(alpha)).all()
    assert (f(alpha) <= upper).all()
    assert (upper - lower <= 1e-8).all()
    assert (lower >= 0).all()
    # a lower bound is below every supporting line's value, the upper one above the limit curve
    assert (upper >= zil.tradeoff(math.inf, c, z)(alpha) - 1e-12).all()


def test_bounds_contain_the_truth():
    for dim, c, z, alpha, beta in GIVEN:
        lower, upper = zil.tradeoff(dim, c, z).bounds(alpha)
        assert lower <= beta <= upper


@pytest.mark.parametrize("c", [1e-6, 1e-3, 0.5, 7.0, 50.0, 900.0])
@pytest.mark.parametrize("dim", [2, 3, 6, 1000])
def test_the_table_proves_itself(dim, c):
    """Two identities that are not built in hold to the stated error."""
    assert LaplaceExact(dim, c).error < (1e-11 if c <= 50 else 1e-9)


def test_relative_accuracy_of_tiny_answers():
    small = zil.tradeoff(6, 1e-5)
    # delta is homogeneous in c for small c at fixed eps/c: compare two scales
    for ratio in (0.3, 1.0, 1.4):
        assert small.delta(ratio * 1e-5) / 1e-5 == pytest.approx(
            zil.tradeoff(6, 1e-6).delta(ratio * 1e-6) / 1e-6, rel=1e-4
        )
    f = zil.tradeoff(3, 0.5)
    tiny = f(1 - 1e-9)
    assert 0 < tiny < 1e-9
    assert f(tiny) == pytest.approx(1 - 1e-9, rel=1e-12)
    far = f.delta(200.0)
    # the pole of g_3 is 1/r: delta falls by 2 per unit of epsilon
    assert math.log(far / f.delta(201.0)) == pytest.approx(2.0, rel=1e-6)
    assert f.delta(1e6) == 0.0
    assert zil.tradeoff(3, 1e-3, 0.1).delta([1e308, math.inf]).tolist() == [0.1, 0.1]
    assert f.epsilon(1e-300) == pytest.approx(f.epsilon(1e-299) + math.log(10) / 2, rel=1e-9)


def test_gaussian_mu():
    assert zil.tradeoff(3, 0.5).gaussian_mu == math.inf
    assert zil.tradeoff(2, 0.5, 1e-6).gaussian_mu == math.inf
    for c in (0.01, 0.5, 3.0):
        f = zil.tradeoff(2, c)
        mu = f.gaussian_mu
        alpha = np.concatenate([np.geomspace(1e-14, 1e-3, 300), np.linspace(1e-3, 1, 2000)])
        assert (f(alpha) >= zil.gaussian_tradeoff(mu)(alpha) - 1e-12).all()
        if c > 0.1:  # for small shifts the binding point has an alpha below 1e-14
            assert (f(alpha) < zil.gaussian_tradeoff(mu * 0.999)(alpha) - 1e-13).any()
        assert mu >= zil.tradeoff(1, c).gaussian_mu - 1e-12


def test_pickle_and_cache():
    f = zil.tradeoff(5, 0.8, 0.1)
    assert pickle.loads(pickle.dumps(f))(0.2) == f(0.2)
    assert exact_curve(5, 0.8) is exact_curve(5, 0.8)


def test_tiny_shift_takes_the_limit():
    f, one = zil.tradeoff(6, 1e-8), zil.tradeoff(1, 1e-8)
    alpha = np.linspace(0, 1, 50)
    assert (f(alpha) <= one(alpha) + 1e-16).all()
    assert (one(alpha) - f(alpha) <= 1e-8).all()


def test_large_shift_needs_no_overflow():
    for dim in (2, 5, 1000):
        f = zil.tradeoff(dim, 1e4)
        assert f.advantage == 1.0
        assert f(0.5) == 0.0
        assert 0 <= f.delta(1e6) <= zil.tradeoff(math.inf, 1e4).delta(1e6)
