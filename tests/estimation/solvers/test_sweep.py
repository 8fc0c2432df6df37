"""One parameter: the minimum is the lowest of all kinks, by direct evaluation of the objective at each of them."""

import numpy as np
import pytest

import zil
from zil import losses
from zil.estimation.fit import plan
from zil.estimation.solvers import sweep


def laplace(rng, n, scale):
    return scale * np.sqrt(rng.exponential(size=n)) * rng.normal(size=n) * (rng.random(n) > 0.2)


def location(seed, n=200):
    rng = np.random.default_rng(seed)
    return (rng.beta(1.0, 5.0, n) + laplace(rng, n, 1.0))[:, None], {"y": 0, "x": []}, zil.Noise(0.2, 1.0)


def slope(seed, n=200):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 1.0, n)
    rows = np.column_stack([x + laplace(rng, n, 0.7), 2.0 * x + 0.3 * rng.normal(size=n)])
    return rows, {"y": 1, "x": [0], "intercept": False}, zil.Noise(0.2, np.array([0.7, 0.0]))


def kinks(objective):
    """Places of all kinks of an objective of one parameter."""
    places = [
        -(objective.loss.affine[0] + objective.loss.affine[1] * part.rows.y)
        / ((objective.loss.affine[2] + objective.loss.affine[3] * part.rows.y) * objective.index(part, np.ones(1)))
        for part in objective.parts
    ]
    return np.concatenate(places)


@pytest.mark.filterwarnings("ignore::zil.ConvergenceWarning")
@pytest.mark.parametrize("method", ["dr", "rb"])
@pytest.mark.parametrize("loss", [losses.Absolute(), losses.Quantile(0.9), losses.Quantile(0.05)], ids=repr)
@pytest.mark.parametrize("design", [location, slope])
def test_nothing_is_lower(design, loss, method):
    """Descent alone ended higher in 5 to 12 % of such samples; so 12 samples would all pass with probability 0.4."""
    for seed in range(12):
        rows, columns, noise = design(seed)
        objective = plan(loss, rows, noise=noise, method=method, **columns).build(method)
        lowest = min(objective.value_gradient(np.array([place]))[0] for place in kinks(objective))
        found = sweep.one_parameter(objective)
        if found is None:  # falls without end
            assert objective.value_gradient(np.array([1e6]))[0] < lowest or (
                objective.value_gradient(np.array([-1e6]))[0] < lowest
            )
            continue
        assert found[1] == pytest.approx(lowest, rel=1e-12, abs=1e-13)
        fitted = zil.fit(loss, rows, noise=noise, method=method, **columns)
        assert not fitted.converged or fitted.objective_value == pytest.approx(lowest, rel=1e-12, abs=1e-13)


def test_weights_and_clean_rows():
    """A weighted median by its definition: the least value whose weights below it reach half."""
    rng = np.random.default_rng(5)
    values, weights = rng.normal(size=301), rng.uniform(0.5, 2.0, 301)
    order = np.argsort(values)
    half = np.searchsorted(np.cumsum(weights[order]), 0.5 * weights.sum())
    fitted = zil.fit("absolute", values[:, None], y=0, x=[], weights=weights)
    assert fitted.params[0] == pytest.approx(values[order][half], abs=1e-15)


def test_smooth_part_at_many_places():
    """Sums of exponentials over a range of a million scales, against the sum written out."""
    rng = np.random.default_rng(2)
    places = np.sort(np.concatenate([rng.normal(size=150), 1e6 + rng.normal(size=50), [-1e5]]))
    weights, at = rng.uniform(0.1, 1.0, 201), np.sort(rng.choice(places, 60))
    plain = [np.sum(weights * np.exp(-np.maximum(a - places, 0.0) / 0.3) * (places <= a)) for a in at]
    assert sweep._decayed(places, weights, at, 0.3) == pytest.approx(np.array(plain), rel=1e-12)


@pytest.mark.parametrize("method", ["dr", "rb"])
def test_lines_through_a_plane(method):
    """Values along a line of a regression, against the objective itself."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1.0, 1.0, (150, 2))
    rows = np.column_stack([x[:, 0] + laplace(rng, 150, 0.5), x[:, 1], x.sum(axis=1) + rng.normal(size=150)])
    noise = zil.Noise(0.2, np.array([0.5, 0.0, 0.0]))
    objective = plan(losses.Quantile(0.3), rows, y=2, noise=noise, method=method).build(method)
    theta, direction = np.array([0.1, 0.9, 1.1]), np.array([0.2, 1.0, -0.4])
    line = sweep.line(objective, theta, direction)
    assert line.exact
    plain = [objective.value_gradient(theta + place * direction)[0] for place in line.places[::10]]
    near = np.abs(line.places[::10]) < 1e3
    assert line.values[::10][near] == pytest.approx(np.array(plain)[near], rel=1e-9)
