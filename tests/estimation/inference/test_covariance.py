"""What standard errors are made of: effective rows, held-out curvature, the small-sample flag."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import zil
from zil.estimation import losses
from zil.estimation.inference import covariance
from zil.estimation.objective import truncated
from zil.interfaces import simulation

P0, SCALE = 0.3, 0.8


def by_fold(scores):
    """Sums of row scores as ``held_out_hessian`` wants them."""
    folds = [scores[k :: truncated.FOLDS] for k in range(truncated.FOLDS)]
    counts, sums = np.array([len(own) for own in folds]), np.stack([own.sum(axis=0) for own in folds])
    return truncated.Combined(counts, sums, scores.T @ scores / len(scores))


def design(loss, n, *, zero_prob=P0, scale=SCALE):
    rng = np.random.default_rng()
    x = rng.uniform(-1.0, 1.0, (n, 2))
    eta = 0.3 + x @ np.array([1.0, -0.7])
    y = (rng.random(n) < 1 / (1 + np.exp(-eta))) * 1.0 if loss.classifier else eta + rng.normal(size=n)
    noised = rng.random((n, 1)) >= zero_prob
    return x + noised * scale * np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=x.shape), y


def strong_signal(rng, n):
    """One column published with zero_prob .6 and scale .2; slope 3, residual noise .1."""
    x = rng.uniform(-1.0, 1.0, (n, 1))
    y = 3.0 * x[:, 0] + 0.1 * rng.normal(size=n)
    z = np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=x.shape)
    return x + (rng.random((n, 1)) >= 0.6) * 0.2 * z, y


def test_effective_rows():
    """About n without noise, far fewer with it (false alarm: the ratio has a standard deviation of 2 %)."""
    loss = losses.Quantile(0.5)
    x1, y = design(loss, 20_000)
    theta = np.array([0.3, 1.0, -0.7])
    naive = zil.CorrectedLoss(loss, x1, y, noise=zil.Noise(P0, SCALE), method="naive")._objective
    noisy = zil.CorrectedLoss(loss, x1, y, noise=zil.Noise(P0, SCALE), method="dr")._objective
    width = covariance.kernel_width(naive, theta)
    clean = covariance.effective_rows(naive, theta, width) / 20_000
    assert 0.8 < clean < 1.3
    assert covariance.effective_rows(noisy, theta, width) / 20_000 < 0.25 * clean


def test_held_out_hessian_of_a_square_is_the_hessian():
    """It does not depend on where it is taken, so that leaving rows out changes nothing; ridge and weights included."""
    rng = np.random.default_rng()
    loss = losses.Squared()
    x1, y = design(loss, 503)
    obj = zil.CorrectedLoss(loss, x1, y, weights=rng.uniform(0.5, 2.0, 503), method="naive")._objective
    for ridge in (0.0, 0.3):
        objective = replace(obj, ridge=ridge)
        theta = np.array([0.1, 0.4, -0.2])
        found = covariance.held_out_hessian(objective, theta, by_fold(objective.scores(theta)))
        assert found == pytest.approx(objective.hessian(theta), rel=1e-12)


def test_held_out_hessian_undoes_the_search_for_curvature():
    """Median regression through 40 samples of 2000 rows, no noise in x, kernel of a tenth of the spread.

    The curvature of the expected loss is ``phi(0) E x x'`` smoothed, known here.  The held-out estimate has its mean
    within 7 standard errors (and a per cent for the estimate's own error); that of the plain one is further up
    (paired, the difference has a t of 39 degrees of freedom above 7).
    """
    rng = np.random.default_rng()
    loss, width = losses.Quantile(0.5), 0.1
    # a normal error smoothed by a Laplace kernel of this scale has density g(0) at the kink
    grid = np.linspace(-8.0, 8.0, 160_001)
    truth = np.trapezoid(stats.norm.pdf(grid) * np.exp(-np.abs(grid) / width) / (2 * width), grid)
    plain, held = [], []
    for _ in range(40):
        x = rng.normal(size=(2000, 4))
        y = x.sum(axis=1) + rng.normal(size=2000)
        fitted = zil.fit(loss, x, y=y, intercept=False)
        obj = zil.CorrectedLoss(loss, x, y, intercept=False)._objective
        smooth = obj.smoothed(width)
        plain.append(np.trace(smooth.hessian(fitted.params)) / 4)
        held.append(
            np.trace(covariance.held_out_hessian(smooth, fitted.params, by_fold(obj.scores(fitted.params)))) / 4
        )
    gap = np.array(plain) - np.array(held)
    assert gap.mean() / gap.std(ddof=1) * np.sqrt(40) > 7
    assert abs(np.mean(held) - truth) < 7 * np.std(held, ddof=1) / np.sqrt(40) + 0.01 * truth


@pytest.mark.parametrize("name", ["logistic", "median"])
def test_small_samples_are_called_small(name):
    """300 rows at scale 2 against 40000 at scale .5: far on both sides of the limits."""
    plan = simulation.design(name)
    flags = {}
    for n, scale in ((300, 2.0), (40_000, 0.5)):
        rng = np.random.default_rng()
        for _ in range(20):
            x, y = plan.draw(rng, n)
            released = simulation.publish(x, scale, rng)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", zil.ConvergenceWarning)
                fitted = zil.fit(
                    plan.loss, released, y=y, noise=zil.Noise(0.2, scale), bounds=simulation.BOUNDS, rng=rng
                )
            if fitted.converged:
                break
        flags[n] = fitted.small_sample
        assert fitted.to_dict()["small_sample"] is fitted.small_sample
        assert ("SMALL SAMPLE" in str(fitted.summary())) is fitted.small_sample
    assert flags == {300: True, 40_000: False}


def test_clean_data_is_not_called_small():
    x1, y = design(losses.Logistic(), 60, scale=0.0)
    assert not zil.fit("logistic", x1, y=y).small_sample


@pytest.mark.parametrize("loss", ["quantile:0.5", "quantile:0.9", "huber", "logistic"])
@pytest.mark.parametrize("method", ["optimal", "rb", "dr"])
def test_where_a_column_has_its_zero_does_not_matter(loss, method):
    """The intercept takes it up: estimates of the slopes, their errors and the small-sample flag stay."""
    x1, y = design(losses.resolve(loss), 4000)

    def fit(shift):
        bounds = np.array([[-1.0, 1.0], [-1.0, 1.0]]) + shift
        return zil.fit(loss, x1 + shift, y=y, noise=zil.Noise(P0, SCALE), method=method, bounds=bounds)

    near, far = fit(0.0), fit(30.0)
    assert near.converged
    assert far.params[1:] == pytest.approx(near.params[1:], abs=0.02 * near.bse[1])
    assert far.bse[1:] == pytest.approx(near.bse[1:], rel=0.01)
    assert far.small_sample == near.small_sample


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["naive", "rb"])
def test_ridge_against_the_jackknife(method, weighted):
    """The score that has mean 0 is the penalised one; with the other errors are a fifth to a half too large."""
    rng = np.random.default_rng()
    n = 300
    x1, y = strong_signal(rng, n)
    weights = rng.uniform(0.5, 1.5, n) if weighted else np.ones(n)
    options = {"noise": zil.Noise(0.6, 0.2), "method": method, "ridge": 0.5}

    def fit(keep):
        return zil.fit("squared", x1, y=y, weights=weights * keep, **options)

    whole = fit(np.ones(n, bool))
    left_out = np.array([fit(np.arange(n) != i).params for i in range(n)])
    jackknife = np.sqrt((n - 1) * left_out.var(axis=0))
    assert whole.bse == pytest.approx(jackknife, rel=0.08)


def test_strong_signal_under_optimal():
    """Slope 3, residual noise .1, 2000 rows: coefficients that followed their own rows gave a bias of half an error.

    200 estimates: the mean has a standard deviation of .07, the ratio one of .05.  With coefficients from the rows they
    are used on the bias is .5 to .7 of a standard error.
    """
    rng = np.random.default_rng()
    found = []
    for _ in range(200):
        x1, y = strong_signal(rng, 2000)
        fit = zil.fit("squared", x1, y=y, noise=zil.Noise(0.6, 0.2), bounds=[[-1.0, 1.0]], rng=int(rng.integers(2**31)))
        found.append((fit.params[1] - 3.0, fit.bse[1]))
    errors, claimed = np.array(found).T
    assert abs(errors.mean()) < 0.6 * errors.std()
    assert 0.75 < claimed.mean() / errors.std() < 1.3


def test_ridge_of_optimal_against_its_spread():
    """Mean standard error over the standard deviation of 200 estimates: 1 within 5 % (one sigma), 1.4 without the
    penalty in the scores."""
    rng = np.random.default_rng()
    found = []
    for _ in range(200):
        x1, y = strong_signal(rng, 8000)
        fit = zil.fit(
            "squared", x1, y=y, noise=zil.Noise(0.6, 0.2), ridge=0.5, bounds=[[-1.0, 1.0]], rng=int(rng.integers(2**31))
        )
        found.append((fit.params[1], fit.bse[1]))
    estimates, errors = np.array(found).T
    assert 0.78 < errors.mean() / estimates.std() < 1.28


def test_a_row_of_weight_zero_is_no_row():
    rng = np.random.default_rng()
    rows, weights = rng.normal(size=(10, 2)), np.zeros(10)
    weights[:2] = 1.0
    with pytest.warns(zil.ConvergenceWarning, match=r"2 row\(s\) for 2"):
        perfect = zil.fit("squared", rows, y=1, weights=weights)
    assert perfect.nobs == 2
    assert np.isnan(perfect.bse).all()
    weights[2:6] = 1.0
    for cov in ("sandwich", "hc1"):
        some = zil.fit("squared", rows, y=1, weights=weights, cov=cov)
        alone = zil.fit("squared", rows[:6], y=1, cov=cov)
        assert some.params == pytest.approx(alone.params)
        assert some.bse == pytest.approx(alone.bse)
    with pytest.raises(ValueError, match=r"single class, 0, where the weights are positive"):
        zil.fit("logistic", rows[:, :1], y=[0] * 6 + [1] * 4, weights=weights)
    flat = np.column_stack([np.r_[np.ones(6), rows[6:, 0]], rows[:, 1]])
    with pytest.raises(ValueError, match="rank deficient"):
        zil.fit("squared", flat, y=1, weights=weights)


def test_wald_test_without_spread():
    """No statistic, instead of an error of the linear algebra."""
    zero = zil.fit(losses.Mean(), np.ones(5), x=[])
    assert np.isnan(zero.wald_test([1.0]).statistic)
