"""Exact minima of kinked losses with curvature between the kinks (a ridge)."""

import numpy as np
import pytest
from reference import line_minima, subgradient_gap

import zil
from zil import losses


def noisy(rng, n, d, zero_prob=0.3, scale=0.5):
    x = rng.uniform(-1.0, 1.0, (n, d))
    z = np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=x.shape) * scale
    return x, x + (rng.random((n, 1)) >= zero_prob) * z, zil.Noise(zero_prob, scale)


@pytest.mark.parametrize("tau", [0.5, 0.2])
@pytest.mark.parametrize("ridge", [1e-4, 0.03, 1.0])
def test_ridge_quantile_on_clean_rows_is_the_convex_minimum(tau, ridge):
    """The subgradient of a convex objective contains 0 at the result and nowhere near it."""
    rng = np.random.default_rng()
    for d in (1, 3):
        x = rng.normal(size=(200, d)) * rng.uniform(0.1, 10.0, d)
        y = 1.0 + x @ np.full(d, 0.5) + rng.normal(size=200)
        result = zil.fit(losses.Quantile(tau), x, y=y, ridge=ridge)
        assert result.converged
        design = np.column_stack([np.ones(200), x])
        assert subgradient_gap(design, y, tau, ridge, result.params) < 1e-8
        assert subgradient_gap(design, y, tau, ridge, result.params * (1 + 1e-4)) > 1e-6


@pytest.mark.parametrize("method", ["naive", "dr", "rb"])
def test_one_slope_against_all_local_minima(method):
    """On a line every local minimum can be listed; the result is one of them, and naive is the only one."""
    rng = np.random.default_rng()
    ridge = 0.02
    for _ in range(5):
        x, x1, noise = noisy(rng, 120, 1)
        y = x[:, 0] + rng.normal(size=120)
        result = zil.fit(losses.Quantile(0.3), x1, y=y, noise=noise, method=method, ridge=ridge, intercept=False)
        obj = zil.CorrectedLoss(losses.Quantile(0.3), x1, y, noise=noise, method=method, intercept=False)

        def value(b, obj=obj):
            return obj.value(np.array([b])) + 0.5 * ridge * b * b

        rows = [x1[:, 0], *([part.rows.features[0] for part in obj._objective.parts[1:]])]
        minima = line_minima(value, np.concatenate([y / row for row in rows]), -3.0, 4.0)
        gaps = np.abs(minima - result.params[0])
        assert result.converged
        assert gaps.min() < 1e-7
        if method == "naive":
            assert len(minima) == 1


def test_repeated_rows_and_integers():
    """Kinks that meet: converged, and no direction of many descends."""
    rng = np.random.default_rng()
    for loss in ("quantile:0.3", "hinge"):
        for ridge in (0.01, 0.3):
            x = rng.integers(0, 4, (300, 2)).astype(float)
            y = (x @ [1, 2] + rng.integers(-3, 4, 300)).astype(float)
            y = np.where(y > np.median(y), 1, -1) if loss == "hinge" else y
            flip = rng.random(300) < 0.2
            y = np.where(flip, -y, y) if loss == "hinge" else y
            result = zil.fit(loss, x, y=y, ridge=ridge)
            assert result.converged
            obj = zil.CorrectedLoss(loss, x, y)
            for size in (1e-6, 1e-3, 0.1):
                for step in rng.normal(size=(50, 3)):
                    at = result.params + size * step
                    higher = obj.value(at) + 0.5 * ridge * float(at[1:] @ at[1:])
                    assert higher >= result.objective_value - 1e-11


def test_a_large_ridge_and_a_small_one():
    """As the ridge vanishes the estimate tends to the vertex without one; as it grows the slopes tend to 0.

    Naive, so that there is one minimum only.
    """
    rng = np.random.default_rng()
    x, x1, noise = noisy(rng, 401, 2)
    y = x.sum(axis=1) + rng.normal(size=401)
    fit = {r: zil.fit("absolute", x1, y=y, noise=noise, method="naive", ridge=r).params for r in (0.0, 1e-9, 1e3)}
    assert fit[1e-9] == pytest.approx(fit[0.0], abs=1e-6)
    assert np.abs(fit[1e3][1:]).max() < 1e-2
