"""A fit is never higher than where it started, measured by the corrected objective itself."""

import dataclasses
import warnings

import numpy as np
import pytest
from scipy import optimize

import zil
from zil import losses
from zil.estimation.objective import corrections
from zil.estimation.solvers.minimise import minimise

CASES = [*sorted(name for name, kind in losses.REGISTRY.items() if not kind.location), "quantile:0.9"]
METHODS = ("naive", "dr", "rb", "sdr", "sl")
ROWS, ZERO_PROB, SCALE = 150, 0.3, 0.5


def release(rng, loss):
    x = rng.uniform(-1.0, 1.0, (ROWS, 2))
    eta = 0.3 + x @ [1.0, -0.7]
    if loss.classifier:
        y = np.where(rng.random(ROWS) < 1 / (1 + np.exp(-2 * eta)), 1.0, -1.0)
    elif loss.name == "Poisson":
        y = rng.poisson(np.exp(eta)).astype(float)
    else:
        y = eta + rng.normal(size=ROWS)
    z = np.sqrt(rng.exponential(size=(ROWS, 1))) * rng.normal(size=x.shape) * SCALE
    return x + (rng.random((ROWS, 1)) >= ZERO_PROB) * z, y


def quietly(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zil.ConvergenceWarning)
        warnings.filterwarnings("ignore", "column . varies less than its noise alone would")  # scales wrong on purpose
        return zil.fit(*args, **kwargs)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", METHODS)
def test_never_higher_than_the_start(name, method):
    """Starts: far points, a previous fit, and the lowest point of a long search with many descents.

    Value at the result against value at the start, both from ``CorrectedLoss`` (and the ridge by hand), equal up to
    rounding.  Deterministic: no false alarms.
    """
    loss = losses.resolve(name)
    if method in corrections.NEED_SMOOTH and not loss.smooth:
        pytest.skip("not twice differentiable")
    rng = np.random.default_rng()
    noise = zil.Noise(ZERO_PROB, SCALE)
    for ridge, weighted in ((0.0, False), (0.0, True), (0.05, True)):
        x1, y = release(rng, loss)
        weights = rng.integers(0, 3, ROWS).astype(float) if weighted else None
        obj = zil.CorrectedLoss(loss, x1, y, noise=noise, method=method, weights=weights)

        def value(theta, obj=obj, ridge=ridge):
            try:
                return obj.value(theta) + 0.5 * ridge * float(theta[1:] @ theta[1:])
            except ValueError:  # Poisson beyond its domain
                return np.inf

        def refit(start, x1=x1, y=y, ridge=ridge, weights=weights):
            return quietly(loss, x1, y=y, noise=noise, method=method, ridge=ridge, weights=weights, start=start)

        first = quietly(loss, x1, y=y, noise=noise, method=method, ridge=ridge, weights=weights)
        centre = first.params if first.converged else np.array([0.3, 1.0, -0.7])
        starts = [centre + size * rng.normal(size=3) for size in (0.01, 0.1, 0.3, 1.0, 30.0)]
        found = [first, *(refit(start) for start in starts)]
        best = min((fit for fit in found if fit.converged), key=lambda fit: fit.objective_value, default=first)
        lowest = best.params
        for _ in range(100):  # a long search
            trial = lowest + rng.normal(size=3) * 10.0 ** rng.uniform(-5, -0.5)
            lowest = min(lowest, trial, key=value)
        for start in [*starts, first.params, best.params, lowest]:
            result = refit(start)
            low = value(start)
            assert np.isinf(low) or value(result.params) <= low + 1e-12 * (1 + abs(low))
            assert result.objective_value == pytest.approx(value(result.params), rel=1e-9, abs=1e-12)
            if start is best.params and best.converged:
                assert result.converged
                assert result.objective_value <= best.objective_value + 1e-12 * (1 + abs(best.objective_value))


@pytest.mark.parametrize("name", ["quantile:0.5", "hinge"])
@pytest.mark.parametrize("method", ["dr", "rb"])
@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_the_smoothing_alone_would_leave_a_good_start(name, method, ridge):
    """Power: without the comparison a start in the lowest of many local minima ends higher in some sample."""
    rng = np.random.default_rng()
    loss = losses.resolve(name)
    for _ in range(200):
        x1, y = release(rng, loss)
        noise = zil.Noise(ZERO_PROB, SCALE)
        found = quietly(loss, x1, y=y, noise=noise, method=method, ridge=ridge)
        obj = zil.CorrectedLoss(loss, x1, y, noise=noise, method=method)._objective
        obj = dataclasses.replace(obj, ridge=ridge)
        smoothed = minimise(obj, start=found.params, exact=False)
        kept = minimise(obj, start=found.params)
        assert kept.value <= found.objective_value + 1e-12
        if smoothed.value > found.objective_value + 1e-9:
            return
    pytest.fail("the smoothed objective never ended higher")


def test_a_declared_box_is_kept():
    """Kinked losses too: the exact descent may not leave the box, and an edge is never a minimum."""
    rng = np.random.default_rng()
    noise = zil.Noise(ZERO_PROB, SCALE)
    for name in ("quantile:0.5", "hinge"):
        loss = losses.resolve(name)
        for ridge in (0.0, 0.02):
            x1, y = release(rng, loss)
            free = quietly(loss, x1, y=y, noise=noise, method="rb", ridge=ridge)
            if not free.converged:  # rare in samples of this size
                continue
            edges = (free.params - 0.5, free.params + 0.5)
            wide = zil.fit(loss, x1, y=y, noise=noise, method="rb", ridge=ridge, box=edges, start=free.params)
            assert wide.converged
            assert wide.objective_value <= free.objective_value + 1e-12
            low, high = free.params - 0.5, free.params - 0.2
            start = free.params - 0.3
            result = quietly(loss, x1, y=y, noise=noise, method="rb", ridge=ridge, box=(low, high), start=start)
            assert ((result.params >= low - 1e-12) & (result.params <= high + 1e-12)).all()
            inside = (result.params > low + 1e-9).all() and (result.params < high - 1e-9).all()
            assert result.converged <= inside
            obj = zil.CorrectedLoss(loss, x1, y, noise=noise)
            value = obj.value(start) + 0.5 * ridge * float(start[1:] @ start[1:])
            assert result.objective_value <= value + 1e-12


@pytest.mark.filterwarnings("ignore:column .* varies less than its noise")  # the noise is overstated on purpose
def test_a_start_far_outside_is_not_thrown_away():
    """A start beyond the default box of 50 units keeps its place: nothing higher comes back."""
    rng = np.random.default_rng()
    loss = losses.resolve("squared_hinge")
    x1, y = release(rng, loss)
    noise = zil.Noise(0.05, 3.0)
    obj = zil.CorrectedLoss(loss, x1, y, noise=noise, method="dr")
    for size in (1e2, 1e4):
        start = size * rng.normal(size=3)
        result = quietly(loss, x1, y=y, noise=noise, method="dr", start=start)
        assert obj.value(result.params) <= obj.value(start) + 1e-12 * abs(obj.value(start))


def test_an_objective_without_a_minimum_is_told():
    """150 rows of a median regression at scale 2: a local minimum, and in a tenth to a half of the samples a
    direction along which the objective falls for ever.

    The oracle follows the DR loss itself, ten million units out, from 60 random directions.  What it finds the fit must
    have found in two of three cases: it does in 19 of 20, so false alarms are below 1e-3.  Power: coordinate directions
    and steps from the worst of them find a quarter.
    """
    rng = np.random.default_rng()
    loss, noise, far = losses.Absolute(), zil.Noise(0.2, 2.0), 1e7
    told = cases = 0
    for _ in range(400):
        x = rng.uniform(-1.0, 1.0, (150, 6))
        y = 1.0 + x.sum(axis=1) + rng.normal(size=150)
        z = np.sqrt(rng.exponential(size=(150, 1))) * rng.normal(size=x.shape) * 2.0
        x1, second = x + (rng.random((150, 1)) >= 0.2) * z, int(rng.integers(2**62))
        objective = zil.CorrectedLoss(loss, x1, y, noise=noise, method="dr", rng=second)

        def slope(at, objective=objective):
            size = np.linalg.norm(at)
            value, gradient = objective(far * at / size)
            gradient = far * gradient
            return value / far, (gradient - (gradient @ at) * at / size**2) / (size * far)

        # what counts are objectives with a local minimum: the fit may stop on the way out for other reasons
        fitted = quietly(loss, x1, y=y, noise=noise, method="dr", rng=second)
        if not fitted.converged and "unbounded" not in fitted.message:
            continue
        lowest = min(
            optimize.minimize(slope, start, jac=True, method="L-BFGS-B").fun for start in rng.normal(size=(60, 7))
        )
        if lowest < -1e-3:
            cases += 1
            told += not fitted.converged
        if cases == 12:
            break
    assert cases >= 5
    assert told >= 2 * cases / 3
