"""Every correction of every loss has the gradient of the original rows as its mean, and a wrong scale has not."""

import numpy as np
import pytest

import zil
from zil import losses
from zil.estimation.objective import corrections

DRAWS, ROWS, ZERO_PROB = 200, 250, 0.4
SCALE = np.array([0.5, 0.8])
THETA = np.array([0.2, 0.6, -0.5])
CASES = sorted(name for name, kind in losses.REGISTRY.items() if not kind.location)


def rows(rng, loss):
    x = rng.uniform(-1.0, 1.0, (ROWS, 2))
    eta = x @ [1.0, -0.7]
    if loss.classifier:
        return x, np.where(rng.random(ROWS) < 1 / (1 + np.exp(-eta)), 1.0, -1.0)
    if loss.name == "Poisson":
        return x, rng.poisson(np.exp(eta)).astype(float)
    return x, eta + rng.normal(size=ROWS)


def published(rng, x):
    z = np.sqrt(rng.exponential(size=(ROWS, 1))) * rng.normal(size=x.shape) * SCALE
    return x + (rng.random((ROWS, 1)) >= ZERO_PROB) * z


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    """Mean of 200 draws of the noise, each with its own second noise, on fixed rows.

    t with 199 degrees of freedom, 3 numbers in at most 5 methods: |t| < 6.5 has a false-alarm rate of 1e-8.
    Power: naive, and RB with twice the scale, fail.
    """
    rng = np.random.default_rng()
    loss = losses.resolve(name)
    x, y = rows(rng, loss)
    truth = zil.CorrectedLoss(loss, x, y).gradient(THETA)
    noise, false = zil.Noise(ZERO_PROB, SCALE), zil.Noise(ZERO_PROB, 2.0 * SCALE)
    methods = [m for m in ("dr", "rb", "sl", "sdr") if loss.smooth or m not in corrections.NEED_SMOOTH]
    gaps = {}
    for _ in range(DRAWS):
        x1 = published(rng, x)
        for method, assumed in [*((m, noise) for m in ("naive", *methods)), ("rb", false)]:
            obj = zil.CorrectedLoss(loss, x1, y, noise=assumed, method=method, rng=rng)
            gaps.setdefault((method, assumed is false), []).append(obj.gradient(THETA) - truth)
    t = {
        key: np.abs(np.mean(v, axis=0)) / np.maximum(np.std(v, axis=0, ddof=1), 1e-12) * np.sqrt(DRAWS)
        for key, v in gaps.items()
    }
    for method in methods:
        assert t[method, False].max() < 6.5, method
    assert t["naive", False].max() > 6.5
    assert t["rb", True].max() > 6.5


@pytest.mark.parametrize("name", CASES)
def test_rb_is_the_mean_of_dr(name):
    """At every row: the score of DR averaged over 400 second noises; 6 standard errors of the mean gradient."""
    rng = np.random.default_rng()
    loss = losses.resolve(name)
    x, y = rows(rng, loss)
    x1 = published(rng, x)
    noise = zil.Noise(ZERO_PROB, SCALE)
    rb = zil.CorrectedLoss(loss, x1, y, noise=noise).gradient(THETA)
    dr = np.array(
        [zil.CorrectedLoss(loss, x1, y, noise=noise, method="dr", rng=rng).gradient(THETA) for _ in range(400)]
    )
    error = np.maximum(dr.std(axis=0, ddof=1) / 20.0, 1e-12)
    assert (np.abs(dr.mean(axis=0) - rb) < 6.5 * error).all()
    wrong = zil.CorrectedLoss(loss, x1, y, noise=zil.Noise(ZERO_PROB, 2.0 * SCALE)).gradient(THETA)
    assert (np.abs(dr.mean(axis=0) - wrong) > 6.5 * error).any()
