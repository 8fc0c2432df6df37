"""Truncated versions of an objective: sums, scores and combinations against the plain formula."""

import numpy as np
import pytest

import zil
from zil.estimation import losses, optimal
from zil.estimation.objective import truncated
from zil.interfaces import simulation
from zil.privacy.doubling import double

P0, SCALE, COPIES = 0.3, 0.8, 3
LOSSES = [losses.Quantile(0.3), losses.Logistic(), losses.Huber(1.0), losses.Squared()]


def design(loss, n, *, weights=False, zero_prob=P0, scale=SCALE):
    rng = np.random.default_rng()
    x = rng.uniform(-1.0, 1.0, (n, 2))
    eta = 0.3 + x @ np.array([1.0, -0.7])
    y = (rng.random(n) < 1 / (1 + np.exp(-eta))) * 1.0 if loss.classifier else eta + rng.normal(size=n)
    noised = rng.random((n, 1)) >= zero_prob
    x1 = x + noised * scale * np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=x.shape)
    return x1, y, (rng.uniform(0.5, 2.0, n) if weights else None)


def make(monkeypatch, loss, n, *, weights=False, **options):
    """Versions as ``fit`` builds them, the released rows, and the fit."""
    x1, y, w = design(loss, n, weights=weights)
    kept = {}
    draw = truncated.draw

    def spy(*args):
        kept["versions"] = draw(*args)
        return kept["versions"]

    monkeypatch.setattr(truncated, "draw", spy)
    fitted = zil.fit(
        loss, x1, y=y, weights=w, noise=zil.Noise(P0, SCALE), method="optimal", bounds=[(-1, 1)] * 2, copies=COPIES,
        rng=7, **options,
    )  # fmt: skip
    return kept["versions"], (x1, y, w), fitted


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("weights", [False, True])
def test_levels_against_the_plain_formula(monkeypatch, loss, weights):
    """Level k is ``mean of a l(X1) 1{X1 in k box} + b sum over copies of l(X2) 1{X2 in k box}``, written out."""
    found, (x1, y, w), _ = make(monkeypatch, loss, 1500, weights=weights)
    w = np.ones(len(y)) if w is None else w
    theta = np.array([0.2, 0.9, -0.5])
    # the second noises are a function of (rows, seed): the same call as inside
    joined = np.column_stack([x1, y])
    seconds = [double(joined, P0, np.array([SCALE, SCALE, 0.0]), first_copy=k, rng=7)[0][:, :2] for k in range(COPIES)]
    a, b = 1 / P0, -(1 - P0) / (P0 * COPIES)
    for k, level in enumerate(truncated.LEVELS):
        if k == 0:
            continue
        total = np.zeros(4)
        for rows, coefficient in [(x1, a), *((x2, b) for x2 in seconds)]:
            inside = np.abs(rows).max(axis=1) <= level
            plain = zil.CorrectedLoss(loss, rows[inside], y[inside], weights=w[inside])
            value, gradient = plain(theta)
            total += coefficient * w[inside].sum() / w.sum() * np.r_[value, gradient]
        value, gradient = found.level(k).value_gradient(theta)
        assert np.r_[value, gradient] == pytest.approx(total, abs=1e-11)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("width", [0.0, 0.1])
def test_scores_gradients_and_mixtures_agree(monkeypatch, loss, width):
    found, _, _ = make(monkeypatch, loss, 1500, weights=True)
    theta = np.array([0.2, 0.9, -0.5])
    gradients = found.gradients(theta, width)
    scores = found.scores(theta, width)
    plain, sets = found._sets(width)
    columns = plain.level_columns(theta, sets, len(truncated.LEVELS)) @ found._turn(3).T
    n, levels, p = len(columns), len(truncated.LEVELS), 3
    assert columns.shape == (1500, levels * p + 1)
    for fold in range(truncated.FOLDS):  # the kernel's sums against those of the rows
        own = columns[fold :: truncated.FOLDS]
        assert scores.counts[fold] == len(own)
        assert scores.sums[fold] == pytest.approx(own.sum(axis=0), abs=1e-9)
        assert scores.grams[fold] == pytest.approx(own.T @ own, abs=1e-9 * np.abs(own.T @ own).max())
    share = columns[:, -1]
    columns = columns[:, :-1]
    means = columns.reshape(n, levels, p).mean(axis=0)
    assert means[0] == pytest.approx(gradients[0], abs=1e-12)
    assert means[1:] == pytest.approx(gradients[1:] - gradients[0], abs=1e-12)
    assert scores.means == pytest.approx(means.ravel(), abs=1e-12)
    weights = np.array([0.1, 0.4, -0.2, 0.3, 0.4])
    objective = found.combined(weights)
    objective = objective.smoothed(width) if width else objective
    mixed = columns @ scores.mixture(weights)[:-1]
    assert mixed == pytest.approx(objective.scores(theta), abs=1e-10)
    assert weights @ gradients == pytest.approx(objective.value_gradient(theta)[1], abs=1e-12)
    assert found.hessian(theta, weights, width) == pytest.approx(objective.hessian(theta), abs=1e-11)
    assert scores.covariance == pytest.approx(np.cov(columns.T, bias=True), abs=1e-10)
    penalised = mixed + np.multiply.outer(share, np.array([0.0, 0.3, -0.2]))
    both = scores.combine([scores.mixture(weights)], np.array([0.0, 0.3, -0.2]))
    assert both.meat == pytest.approx(penalised.T @ penalised / n, abs=1e-9)
    assert both.mean == pytest.approx(penalised.mean(axis=0), abs=1e-11)
    # the residual is uncorrelated with the differences, but for directions of little variance, and no wider than the
    # weighted score
    residual = columns @ scores.residual(weights)[:-1]
    blocks = columns.reshape(n, levels, p)
    natural = np.concatenate([block @ scores.natural for block in np.moveaxis(blocks[:, 1:], 1, 0)], axis=1)
    standard = (natural - natural.mean(axis=0)) / natural.std(axis=0)
    values, vectors = np.linalg.eigh(standard.T @ standard / n)
    used = values > truncated.CUTOFF * values[-1]
    assert used.any()
    both = np.corrcoef(np.column_stack([residual, standard @ vectors[:, used]]).T)
    assert np.abs(both[:p, p:]).max() < 1e-8
    assert (residual.var(axis=0) <= mixed.var(axis=0) * (1 + 1e-9)).all()
    # each tenth has coefficients from the other nine
    mixes = scores.held_out(weights)
    assert len(mixes) == truncated.FOLDS
    others = np.arange(truncated.FOLDS) != 3
    alone = truncated.Scores(scores.counts[others], scores.sums[others], scores.grams[others], scores.natural)
    assert mixes[3] == pytest.approx(alone.residual(weights), abs=1e-8)
    rows = found.rows(theta, width, mixes)
    assert rows[3] == pytest.approx(columns[3] @ mixes[3][:-1], abs=1e-12)
    combined = scores.combine(mixes)
    assert combined.meat == pytest.approx(rows.T @ rows / n, abs=1e-9)
    assert combined.sums[3] == pytest.approx(rows[3 :: truncated.FOLDS].sum(axis=0), abs=1e-9)


def test_level_weights_are_the_best(monkeypatch):
    """No mixture nearby has a smaller trace of the covariance, in units of the smallest standard errors."""
    found, _, fitted = make(monkeypatch, losses.Logistic(), 3000)
    scores = found.scores(fitted.params)
    hessian = found.level(0).hessian(fitted.params)
    inverse = np.linalg.inv(hessian) @ np.linalg.inv(scores.natural).T
    columns = found.plain.level_columns(fitted.params, found._sets(0.0)[1], 5) @ found._turn(3).T
    each = [columns @ scores.mixture(row) @ inverse for row in np.eye(5)]
    scale = np.min([s.var(axis=0) for s in each], axis=0)

    def trace(weights):
        return float((np.tensordot(weights, each, axes=1).var(axis=0) / scale).sum())

    best = scores.level_weights(hessian)
    assert best.sum() == pytest.approx(1.0)
    rng = np.random.default_rng()
    for _ in range(20):
        step = rng.normal(size=5) * 0.02
        assert trace(best) <= trace(best + step - step.mean()) * (1 + 1e-9)


def test_ridge_is_part_of_the_last_steps(monkeypatch):
    """The ridge moves the estimate by ``-V^-1 ridge theta`` to first order, also when the move is below one standard
    error; steps on the score alone would lose it."""
    found, (x1, y, _), plain = make(monkeypatch, losses.Logistic(), 8000)
    ridge = 1e-3
    moved = zil.fit(
        "logistic", x1, y=y, noise=zil.Noise(P0, SCALE), method="optimal", bounds=[(-1, 1)] * 2, copies=COPIES, rng=7,
        ridge=ridge,
    ).params - plain.params  # fmt: skip
    assert plain.converged
    hessian = found.level(len(truncated.LEVELS) - 1).hessian(plain.params)
    expected = -np.linalg.solve(hessian, ridge * np.r_[0.0, plain.params[1:]])
    assert moved[1:] == pytest.approx(expected[1:], rel=0.25)
    assert (np.abs(expected) < plain.bse).all()


@pytest.mark.parametrize(("repetition", "n"), [(251, 500), (1197, 500), (2220, 500), (2872, 1000)])
def test_a_mixture_of_levels_keeps_its_curvature(repetition, n):
    """Samples in which the best weights, of both signs, left a curvature of .05 where V is 2: errors of 1.4 to 5.7.

    Table 1 of the paper, mean of an indicator; fixed streams, no false alarms.
    """
    rng = simulation.stream(0, repetition)
    x, zero_prob, scale = rng.random(5000), 0.05, 1.4
    simulation.publish(x[:, None], 0.94, rng, zero_prob=0.1)
    released = simulation.publish(x[:, None], scale, rng, zero_prob=zero_prob)[:n, 0]
    fitted = zil.fit(
        losses.Mean(("indicator", 0.5, 1.0)), released, x=[], noise=zil.Noise(zero_prob, scale), method="optimal",
        bounds=[(0.0, 1.0)], rng=int(rng.integers(2**63)),
    )  # fmt: skip
    assert fitted.converged
    assert fitted.small_sample
    assert abs(fitted.params[0] - 0.5) < 4 * fitted.bse[0]
    assert fitted.bse[0] < 0.5


def test_steep():
    reference = np.diag([1.0, 1e-12])
    assert optimal.steep(0.6 * reference, reference)
    assert not optimal.steep(np.diag([0.6, 0.4e-12]), reference)
    assert not optimal.steep(np.full((2, 2), np.nan), reference)
