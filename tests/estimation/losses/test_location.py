"""Means of a function of one column: closed forms, known errors, agreement of every method."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad

import zil
from zil import losses
from zil.estimation.objective import corrections

FUNCTIONS = ["identity", "relu", "abs_sin", ("indicator", 0.5, 1.0)]
# settings of table 1: zero_prob, scale, then root mean squared errors of DR at n = 500 and of RB over DR
TABLE = [
    (0.1, 0.94, "relu", 0.1053, 0.357),
    (0.1, 0.94, ("indicator", 0.5, 1.0), 0.1801, 0.638),
    (0.1, 0.94, "abs_sin", 0.1737, 0.706),
    (0.05, 1.4, "relu", 0.2190, 0.258),
    (0.05, 1.4, ("indicator", 0.5, 1.0), 0.3308, 0.607),
    (0.05, 1.4, "abs_sin", 0.3582, 0.688),
]


def plain(g, x):
    if g == "identity":
        return x
    if g == "relu":
        return np.maximum(x, 0.0)
    if g == "abs_sin":
        return np.abs(np.sin(2 * np.pi * x))
    return ((x >= g[1]) & (x <= g[2])).astype(float)


def noisy(rng, x, zero_prob, scale):
    w = np.sqrt(rng.exponential(size=len(x)))
    return x + (rng.random(len(x)) >= zero_prob) * w * rng.normal(size=len(x)) * scale


@pytest.mark.parametrize("g", FUNCTIONS, ids=str)
def test_smoothed_functions_against_quadrature(g):
    rng = np.random.default_rng()
    loss = losses.Mean(g)
    for s in (0.03, 0.3, 2.0, 30.0):
        x = float(rng.uniform(-2, 3))
        kinks = [x, 0.0, 0.5, 1.0]
        got = loss.smoothed(np.array([x]), s)
        for power, value in zip((1, 2), got, strict=True):

            def integrand(z, power=power, x=x, s=s):
                return float(plain(g, np.array([z]))[0]) ** power * np.exp(-abs(z - x) / s) / (2 * s)

            if g == "abs_sin":
                edges = np.arange(np.floor(2 * (x - 40 * s)) / 2, x + 40 * s, 0.5)
                if len(edges) > 400:
                    continue
            else:
                edges = np.array([x - 40 * s, *sorted(k for k in kinks if abs(k - x) < 40 * s), x + 40 * s])
            edges = np.unique(np.append(edges, x))
            truth = sum(quad(integrand, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(edges))
            assert value[0] == pytest.approx(truth, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize(("zero_prob", "scale", "g", "dr", "ratio"), TABLE, ids=str)
def test_errors_of_table_1(zero_prob, scale, g, dr, ratio):
    """Standard errors at n = 300 000 scaled to n = 500.

    A standard deviation from so many rows is off by less than 0.5 % (kurtosis below 20), so 3 % is beyond 6 sigma:
    false alarm below 1e-6.  Power: the two settings, and DR and RB, differ by far more.
    """
    rng = np.random.default_rng()
    n = 300_000
    x1 = noisy(rng, rng.random(n), zero_prob, scale)
    noise = zil.Noise(zero_prob, scale)
    error = {
        method: zil.fit(losses.Mean(g), x1, x=[], noise=noise, method=method, rng=rng).bse[0] * np.sqrt(n / 500)
        for method in ("dr", "rb")
    }
    assert error["dr"] == pytest.approx(dr, rel=0.03)
    assert error["rb"] / error["dr"] == pytest.approx(ratio, rel=0.03)


@pytest.mark.parametrize("g", [*FUNCTIONS, np.cos], ids=str)
def test_methods_are_unbiased_and_a_wrong_scale_is_not(g):
    """Each method within 5 standard errors of the mean of the original rows (false alarm 6e-7 per method).

    Standard errors contain the sampling of the rows too, so the distance is conservative.
    """
    rng = np.random.default_rng()
    n, zero_prob, scale = 100_000, 0.3, 1.5
    x = rng.uniform(0.0, 0.7, n)
    x1 = noisy(rng, x, zero_prob, scale)
    loss = losses.Mean(g)
    truth = (np.cos(x) if callable(g) else plain(g, x)).mean()
    for method in corrections.METHODS:
        if method in ("naive", "scl") or (method in corrections.NEED_SMOOTH and not loss.smooth):
            continue
        result = zil.fit(
            loss, x1, x=[], noise=zil.Noise(zero_prob, scale), method=method, rng=rng, bounds=[(0, 0.7)], copies=2
        )
        assert result.converged
        assert abs(result.params[0] - truth) < 5 * result.bse[0], method
    if g != "identity":
        # a scale of several periods is as good as any other for the sine: there the wrong zero_prob must show
        false = zil.Noise(0.6, scale) if g == "abs_sin" else zil.Noise(zero_prob, 2.5 * scale)
        with warnings.catch_warnings():  # zil sees that the scale cannot be that of these rows
            warnings.filterwarnings("ignore", "column 0 varies less than its noise alone would")
            wrong = zil.fit(loss, x1, x=[], noise=false, method="rb", rng=rng)
        naive = zil.fit(loss, x1, x=[], noise=zil.Noise(zero_prob, scale), method="naive")
        assert abs(naive.params[0] - truth) > 5 * naive.bse[0]
        assert abs(wrong.params[0] - truth) > 5 * wrong.bse[0]


@pytest.mark.parametrize("g", FUNCTIONS, ids=str)
def test_the_estimate_is_the_mean_of_the_corrected_function(g):
    rng = np.random.default_rng()
    x1 = noisy(rng, rng.random(50), 0.4, 0.7)
    weights = rng.uniform(0.5, 2.0, 50)
    loss = losses.Mean(g)
    result = zil.fit(loss, x1, x=[], noise=zil.Noise(0.4, 0.7), method="rb", weights=weights)
    corrected = plain(g, x1) / 0.4 - 0.6 / 0.4 * loss.smoothed(x1, np.sqrt(0.2) * 0.7)[0]
    assert result.params[0] == pytest.approx(np.average(corrected, weights=weights), abs=1e-10)
    assert result.converged


def test_optimal_is_more_precise():
    rng = np.random.default_rng()
    x1 = noisy(rng, rng.random(20_000), 0.1, 0.94)
    loss, noise = losses.Mean("abs_sin"), zil.Noise(0.1, 0.94)
    rb = zil.fit(loss, x1, x=[], noise=noise, method="rb")
    best = zil.fit(loss, x1, x=[], noise=noise, bounds={0: (0, 1)})
    assert best.method == "optimal"
    assert best.bse[0] < 0.9 * rb.bse[0]
    assert "truncation" in str(best.summary())


def test_corrected_loss_of_one_column():
    rng = np.random.default_rng()
    x1 = noisy(rng, rng.random(40), 0.4, 0.7)
    frame = pd.DataFrame({"a": x1})
    by_name = zil.CorrectedLoss(losses.Mean("relu"), frame, noise=zil.Noise(0.4, {"a": 0.7}))
    by_place = zil.CorrectedLoss("mean:relu", x1[:, None], noise=zil.Noise(0.4, [0.7]))
    theta = np.array([0.3])
    value, gradient = by_name(theta)
    assert (value, gradient[0]) == (by_place.value(theta), by_place.gradient(theta)[0])
    step = 1e-4
    assert gradient[0] == pytest.approx((by_name.value(theta + step) - by_name.value(theta - step)) / (2 * step))
    assert by_name.hessian(theta) == pytest.approx(np.array([[2.0]]), rel=1e-6)
    assert by_name.scores(theta).mean() == pytest.approx(gradient[0])
    pieces = [by_name.partial(theta, rows) for rows in (slice(0, 7), slice(7, None))]
    assert sum(p[0] for p in pieces) / 40 == pytest.approx(value)
    second = x1[:, None] + 0.1
    dr = zil.CorrectedLoss(losses.Mean("relu"), frame, noise=zil.Noise(0.4, {"a": 0.7}), method="dr", X2=second)
    expected = ((0.3 - plain("relu", x1)) ** 2 / 0.4 - 0.6 / 0.4 * (0.3 - plain("relu", x1 + 0.1)) ** 2).mean()
    assert dr.value(theta) == pytest.approx(expected)


def test_what_is_refused():
    with pytest.raises(ValueError, match="a < b"):
        losses.Mean(("indicator", 1.0, 0.5))
    with pytest.raises(ValueError, match="g must be"):
        losses.Mean("square")
    with pytest.raises(ValueError, match="x=\\[\\]"):
        zil.fit(losses.Mean(), np.ones((5, 2)), y=0)
    with pytest.raises(ValueError, match="twice"):
        zil.fit(losses.Mean("relu"), np.ones(5), x=[], noise=zil.Noise(0.1, 1.0), method="sl")
    with pytest.raises(ValueError, match="one number per row"):
        zil.fit(losses.Mean(lambda x: 1.0), np.ones(5), x=[])


@pytest.mark.parametrize("method", ["naive", "dr", "rb"])
@pytest.mark.parametrize("g", ["identity", "relu", ("indicator", 0.2, 0.7)], ids=str)
def test_curvature_is_two(g, method):
    """``(theta - g)^2`` has second derivative 2, and the terms of a correction weigh 1 together; by differences too."""
    rng = np.random.default_rng()
    weights = rng.uniform(0.5, 2.0, 40)
    obj = zil.CorrectedLoss(
        zil.losses.Mean(g), rng.random((40, 1)), noise=zil.Noise(0.4, 0.3), method=method, weights=weights
    )
    theta = np.array([0.3])
    assert obj.hessian(theta) == pytest.approx(np.array([[2.0]]), rel=1e-12)
    assert (obj.gradient(theta + 0.1) - obj.gradient(theta - 0.1)) / 0.2 == pytest.approx([2.0], rel=1e-9)
