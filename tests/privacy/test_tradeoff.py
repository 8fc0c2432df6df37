"""Closed-form trade-off curves: values, far tails, end points, input."""

import math
import pickle

import mpmath as mp
import numpy as np
import pytest

import zil

# delta of the limit curve, 40-digit arithmetic with mpmath: (epsilon, c, delta)
LIMIT_DELTA = [
    (0.0, 1.0, 0.5069313086047602),
    (1.0, 1e-6, 4.99999999999625e-13),
    (1.0, 1e-3, 4.99999625000396e-7),
    (1.0, 1e-9, 5.0e-19),
    (30.0, 1.0, 0.01651945002314055),
    (800.0, 1.0, 6.248042402083399e-4),
    (1e8, 1.0, 4.9999999875e-9),
    (1.0, 1e3, 1.0),
]
CLOSED = [
    zil.tradeoff(1, 0.5, 0.05),
    zil.tradeoff(math.inf, 0.5, 0.05),
    zil.tradeoff(math.inf, 7.0),
    zil.tradeoff(1, 0.0, 0.3),
    zil.gaussian_tradeoff(1.3),
    zil.gaussian_tradeoff(0.0),
    zil.eps_delta_tradeoff(0.8, 0.17),
]


def limit_delta(epsilon, c):
    with mp.workdps(60):
        eps, c = mp.mpf(epsilon), mp.mpf(c)
        return float(1 - mp.exp((eps - mp.sqrt(eps**2 + 2 * c**2)) / 2))


def limit_beta(alpha, c):
    """Root of the parametric form of the limit curve in 40 digits, by bisection in asinh(t)."""
    with mp.workdps(40):
        c = mp.mpf(c)

        def size(t):
            s = mp.sqrt(t * t + 2 * c * c)
            ratio = (1 - t / s) / 2 if t < 0 else c * c / (s * (s + t))
            return ratio * mp.exp(-(t + s) / 2)

        low, high = mp.mpf(-40), mp.mpf(40)
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if size(mp.sinh(middle)) > mp.mpf(alpha) else (low, middle)
        return float(size(-mp.sinh(low)))


def gaussian_delta(epsilon, mu):
    with mp.workdps(60):
        eps, mu = mp.mpf(epsilon), mp.mpf(mu)
        return float(mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu))


@pytest.mark.parametrize(("epsilon", "c", "delta"), LIMIT_DELTA)
def test_limit_delta_at_extremes(epsilon, c, delta):
    got = zil.tradeoff(math.inf, c).delta(epsilon)
    assert got == pytest.approx(delta, rel=1e-12)
    assert got <= 1.0


def test_limit_delta_and_its_inverse_anywhere():
    rng = np.random.default_rng()
    for _ in range(200):
        c, epsilon = 10 ** rng.uniform(-7, 2), 10 ** rng.uniform(-5, 2.5)
        f = zil.tradeoff(math.inf, c)
        delta = f.delta(epsilon)
        assert delta == pytest.approx(limit_delta(epsilon, c), rel=1e-12)
        if 0 < delta < 1 - 1e-6:
            # the answer's own conditioning: d log(delta)/d epsilon
            slope = abs(math.log(f.delta(epsilon * 1.0001) / delta)) / (1e-4 * epsilon)
            assert f.epsilon(delta) == pytest.approx(epsilon, rel=1e-11, abs=1e-14 / slope)


def test_limit_curve_against_60_digits():
    rng = np.random.default_rng()
    for _ in range(20):
        c, alpha = 10 ** rng.uniform(-3, 1.7), rng.choice([10 ** rng.uniform(-300, 0), rng.uniform()])
        assert zil.tradeoff(math.inf, c)(alpha) == pytest.approx(limit_beta(alpha, c), rel=1e-10, abs=1e-300)


def test_limit_curve_far_ends():
    f = zil.tradeoff(math.inf, 0.5)
    got = f(np.array([0.0, 1e-6, 0.1, 0.999, 1.0]))
    assert got[0] == 1.0
    assert got[4] == 0.0
    np.testing.assert_allclose(got[1:4], [0.981726476795, 0.668023869238, 1.607e-60], rtol=3e-4)
    np.testing.assert_allclose(got[1:3], [0.981726476795, 0.668023869238], rtol=1e-11)
    assert zil.tradeoff(math.inf, 0.5, 0.05)(0.1) == pytest.approx(0.626253731619, rel=1e-11)


def test_one_column_with_atom_at_end_points():
    f = zil.tradeoff(1, 0.5, 0.05)
    alpha = np.array([0, 1e-12, 0.1, 0.25, 0.5, 0.9, 0.95, 0.97, 1])
    right = [0.95, 0.949999999998, 0.747188501835, 0.444994493984, 0.221880911128, 0.0246534345698, 0, 0, 0]
    np.testing.assert_allclose(f(alpha), right, rtol=1e-11)
    assert f(alpha)[0] == 0.95
    assert not f(alpha)[6:].any()


def test_one_column_epsilon_at_the_atom_is_finite():
    # all loss beyond q has probability zero_prob
    assert zil.tradeoff(1, 1.5 / math.sqrt(2), 0.1).epsilon(0.1) == pytest.approx(1.5, rel=1e-14)
    assert zil.tradeoff(math.inf, 1.0, 0.1).epsilon(0.1) == math.inf
    assert zil.tradeoff(1, 1.0, 0.1).epsilon(0.09) == math.inf
    assert zil.tradeoff(1, 1.0, 0.1).epsilon(0.99) == 0.0


@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.3, 1.0, 4.0, 30.0])
def test_gaussian_delta_against_60_digits(mu):
    f = zil.gaussian_tradeoff(mu)
    epsilon = np.array([0.0, mu / 10, mu, 3 * mu, mu * mu / 2, mu * mu / 2 + 20 * mu])
    right = [gaussian_delta(e, mu) for e in epsilon]
    np.testing.assert_allclose(f.delta(epsilon), right, rtol=3e-10)
    if mu < 10:  # beyond, these deltas are 1 in double precision
        np.testing.assert_allclose(f.epsilon(np.array(right[1:4])), epsilon[1:4], rtol=1e-8)
    assert f.gaussian_mu == mu


@pytest.mark.parametrize("f", CLOSED, ids=repr)
class TestEveryClosedCurve:
    def test_shape_of_the_curve(self, f):
        alpha = np.concatenate([[0.0], np.geomspace(1e-12, 1e-3, 50), np.linspace(2e-3, 1, 400)])
        beta = f(alpha)
        assert beta[0] == 1 - f.zero_prob
        assert beta[-1] == 0
        assert (np.diff(beta) <= 0).all()
        assert (beta <= 1 - alpha + 1e-15).all()
        slopes = np.diff(beta) / np.diff(alpha)
        rounding = 4e-16 / np.diff(alpha)
        assert (np.diff(slopes) >= -rounding[1:] - rounding[:-1]).all()

    def test_own_inverse(self, f):
        alpha = np.linspace(0.01, 0.99 - f.zero_prob, 50)
        alpha = alpha[f(alpha) > 1e-250]
        assert alpha.size > 5
        np.testing.assert_allclose(f.inverse(f(alpha)), alpha, rtol=1e-8)

    def test_delta_is_the_conjugate(self, f):
        alpha = np.concatenate([[0.0, 0.5 * (1 - f.advantage)], np.geomspace(1e-9, 1, 200_001)])
        for epsilon in (0.0, 0.3, 1.0, 2.5):
            sup = (1 - f(alpha) - math.exp(epsilon) * alpha).max()
            assert f.delta(epsilon) == pytest.approx(sup, abs=2e-9)
            assert f.delta(epsilon) >= sup - 1e-14

    def test_advantage_and_bounds(self, f):
        alpha = np.linspace(0, 1, 101)
        assert f.advantage == f.delta(0.0)
        lower, upper = f.bounds(alpha)
        assert lower.tobytes() == upper.tobytes() == f(alpha).tobytes()

    def test_scalars_arrays_shapes(self, f):
        for question in (f, f.inverse, f.delta, f.epsilon):
            assert isinstance(question(0.25), float)
            assert question(np.float32(0.25)) == question(0.25)
            assert question([[0.25, 0.5]]).shape == (1, 2)
            assert question(np.empty(0)).shape == (0,)
            assert question(np.array([0.25, 0.5]))[0] == question(0.25)

    def test_ends_of_epsilon(self, f):
        assert f.delta(math.inf) == pytest.approx(f.zero_prob, abs=1e-300)
        assert f.epsilon(1.0) == 0.0
        assert f.epsilon(f.delta(0.0)) == 0.0

    def test_pickle(self, f):
        assert pickle.loads(pickle.dumps(f))(0.3) == f(0.3)

    @pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf])
    def test_alpha_outside(self, f, bad):
        for question in (f, f.inverse, f.bounds, f.epsilon):
            with pytest.raises(ValueError, match=r"\[0, 1\]"):
                question(bad)
            with pytest.raises(ValueError, match=r"\[0, 1\]"):
                question([0.5, bad])

    @pytest.mark.parametrize("bad", [-0.1, math.nan])
    def test_epsilon_outside(self, f, bad):
        with pytest.raises(ValueError, match="epsilon"):
            f.delta(bad)


def test_gaussian_mu_is_the_smallest():
    alpha = np.concatenate([np.geomspace(1e-12, 1e-3, 200), np.linspace(1e-3, 1, 2000)])
    for f in (zil.tradeoff(1, 0.5), zil.tradeoff(1, 1e-5), zil.tradeoff(1, 20.0), zil.eps_delta_tradeoff(0.8, 0)):
        mu = f.gaussian_mu
        assert (f(alpha) >= zil.gaussian_tradeoff(mu)(alpha) - 1e-15).all()
        centre = 0.5 * (1 - f.advantage)
        if centre > 1e-6:
            assert f(centre) < zil.gaussian_tradeoff(mu * (1 - 1e-6))(centre)
    assert zil.tradeoff(1, 0.5, 1e-9).gaussian_mu == math.inf
    assert zil.tradeoff(math.inf, 0.5).gaussian_mu == math.inf


def test_small_parameters_keep_their_digits():
    assert zil.eps_delta_tradeoff(1e-9, 0.0).advantage == pytest.approx(5e-10, rel=1e-14)
    assert zil.tradeoff(1, 1e-12).advantage == pytest.approx(1e-12 / math.sqrt(2), rel=1e-11)
    assert zil.gaussian_tradeoff(1e-12).advantage == pytest.approx(1e-12 / math.sqrt(2 * math.pi), rel=1e-14)
    assert zil.gaussian_tradeoff(1e-3).epsilon(0.0) == math.inf


def test_everything_given_away():
    f = zil.tradeoff(1, 0.5, 1.0)
    assert f(0.0) == 0.0
    assert f.advantage == 1.0
    assert f.epsilon(0.5) == math.inf
    assert f.epsilon(1.0) == 0.0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0, 0.5), ValueError),
        ((2.0, 0.5), TypeError),
        ((True, 0.5), TypeError),
        ((math.nan, 0.5), TypeError),
        ((1, -0.5), ValueError),
        ((1, math.nan), ValueError),
        ((1, math.inf), ValueError),
        ((1, "x"), TypeError),
        ((1, 0.5, -0.1), ValueError),
        ((1, 0.5, 1.1), ValueError),
        ((1, 0.5, math.nan), ValueError),
    ],
)
def test_bad_arguments(arguments, error):
    with pytest.raises(error):
        zil.tradeoff(*arguments)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_bad_mu_and_epsilon(bad):
    with pytest.raises(ValueError, match="mu"):
        zil.gaussian_tradeoff(bad)
    with pytest.raises(ValueError, match="epsilon"):
        zil.eps_delta_tradeoff(bad, 0.1)
    with pytest.raises(ValueError, match="delta"):
        zil.eps_delta_tradeoff(1.0, -0.1)


@pytest.mark.parametrize("c", [1e-9, 60.0, 1e3, 1e4, 1e5, 1e9, 1e100])
def test_extreme_shifts_stay_in_the_unit_interval(c):
    """C11 kind: never above 1, never nan, for any shift a mechanism can have."""
    for dim in (1, 2, 6, 1000, math.inf):
        f = zil.tradeoff(dim, c, 0.05)
        epsilons = np.array([0.0, 0.5, 30.0, 1e9])
        for values in (f(np.array([0.0, 1e-300, 0.1, 1.0])), f.delta(epsilons), f.inverse([0.0, 0.2]), f.advantage):
            assert np.all((np.asarray(values) >= 0.0) & (np.asarray(values) <= 1.0))
        assert np.all(np.diff(f.delta(epsilons)) <= 0.0)


def test_more_columns_than_the_exact_curve_is_for():
    """At once, and never above the exact curve of fewer columns."""
    alpha = np.linspace(0.0, 1.0, 21)
    many, fewer = zil.tradeoff(10**9, 1.0)(alpha), zil.tradeoff(1000, 1.0)(alpha)
    assert (many <= fewer + 1e-12).all()
    assert many == pytest.approx(fewer, abs=5e-4)


def test_errors_say_what_came():
    curve = zil.tradeoff(1, 1.0)
    for call, value in ((curve, 1.5), (curve.inverse, math.nan), (curve.delta, -1.0), (curve.epsilon, [0.5, 2.0])):
        came = f"{np.ravel(value)[-1]:g}"
        with pytest.raises(ValueError, match=f"got {came}"):
            call(value)
