"""Far rows added up: the same function nearby, the same minimum, and a full search where a far row changed its side."""

import numpy as np
import pytest

import zil
from zil import losses
from zil.estimation.solvers import collapse as module
from zil.estimation.solvers import minimise


def design(loss, n=25_000):
    rng = np.random.default_rng(5)
    x = rng.uniform(-1.0, 1.0, (n, 3))
    eta = 0.5 + x @ np.array([1.0, -0.5, 0.2])
    y = (rng.random(n) < 1 / (1 + np.exp(-4 * eta))) * 1.0 if loss.classifier else eta + rng.normal(size=n)
    z = (rng.random((n, 1)) >= 0.3) * np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=x.shape) * 0.5
    return x + z, y, rng.uniform(0.0, 2.0, n)


LOSSES = [losses.Quantile(0.3), losses.Hinge()]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("method", ["naive", "rb", "dr"])
def test_the_same_function_nearby(loss, method):
    x, y, w = design(loss)
    objective = zil.CorrectedLoss(loss, x, y, noise=zil.Noise(0.3, 0.5), method=method, weights=w)._objective
    theta = np.array([0.5, 1.0, -0.5, 0.2])
    few, holds = module.collapse(objective, theta)
    kinked = [part for part in few.parts if part.a != 0.0]
    assert all(part.rows.features.shape[1] < 0.1 * len(y) for part in kinked)
    near, far = theta + 1e-4, theta + 1.0
    assert holds(near)
    assert few.value_gradient(near)[0] == pytest.approx(objective.value_gradient(near)[0], rel=1e-11)
    assert few.value_gradient(near)[1] == pytest.approx(objective.value_gradient(near)[1], abs=1e-11)
    assert not holds(far)
    assert few.value_gradient(far)[0] != pytest.approx(objective.value_gradient(far)[0], rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("method", ["naive", "rb", "dr"])
def test_the_same_minimum(monkeypatch, loss, method):
    """With and without: the same vertex (equal up to rounding), for differences of convex functions too."""
    x, y, _ = design(loss)
    arguments = {"y": y, "noise": zil.Noise(0.3, 0.5), "method": method}
    few = zil.fit(loss, x, **arguments)
    monkeypatch.setattr(minimise, "collapse", lambda *arguments: None)
    full = zil.fit(loss, x, **arguments)
    assert few.params == pytest.approx(full.params, abs=1e-9)
    assert few.objective_value == pytest.approx(full.objective_value, rel=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 1e-3])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_from_some_rows_to_all(monkeypatch, loss, ridge):
    """A convex objective of many rows: the same minimum as by the long way, which no row count leaves to chance."""
    x, y, _ = design(loss, 45_000)
    told = []
    short = minimise._preprocessed

    def spy(*arguments):
        found = short(*arguments)
        told.append(found is not None)
        return found

    monkeypatch.setattr(minimise, "_preprocessed", spy)
    few = zil.fit(loss, x, y=y, ridge=ridge)
    assert any(told)
    monkeypatch.setattr(minimise, "_preprocessed", lambda *arguments: None)
    full = zil.fit(loss, x, y=y, ridge=ridge)
    assert few.params == pytest.approx(full.params, abs=1e-8)
    assert few.objective_value == pytest.approx(full.objective_value, rel=1e-12)
    assert few.bse == pytest.approx(full.bse, rel=1e-6)


def test_a_side_that_changed_means_a_full_search(monkeypatch):
    x, y, _ = design(losses.Quantile(0.5))
    full = zil.fit("quantile:0.5", x, y=y)
    told = []

    def never(*arguments):
        found = module.collapse(*arguments)
        told.append(found is not None)
        return None if found is None else (found[0], lambda at: False)

    monkeypatch.setattr(minimise, "collapse", never)
    assert zil.fit("quantile:0.5", x, y=y).params == pytest.approx(full.params, abs=1e-9)
    assert any(told)


def test_small_samples_and_mixed_signs_are_left_alone():
    x, y, w = design(losses.Quantile(0.5))
    theta = np.zeros(4)
    small = zil.CorrectedLoss(losses.Quantile(0.5), x[:1000], y[:1000])._objective
    assert module.collapse(small, theta) is None
    mixed = zil.CorrectedLoss(losses.Quantile(0.5), x, y, weights=w)._objective
    mixed.parts[0].rows.weights[0] = -1.0
    assert module.collapse(mixed, theta) is None
