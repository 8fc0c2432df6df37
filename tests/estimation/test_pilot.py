"""The first estimate of the optimal method: where RB is far off, the version truncated to the box begins."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import zil
from zil.estimation import optimal
from zil.estimation.objective.truncated import LEVELS

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import pilot_study

RUNS = 20


def errors(design):
    found, covers, lost = pilot_study.study(
        *design[:5], repetitions=RUNS, seed=int(np.random.default_rng().integers(2**32))
    )
    assert lost == 0
    return float(np.sqrt((found**2).mean())), float(covers.mean())


@pytest.mark.parametrize("design", [pilot_study.DESIGNS[0], pilot_study.DESIGNS[1]], ids=["(1, .3)", "(2, .1)"])
def test_errors_of_slopes_are_near_the_asymptotic_ones(design, monkeypatch):
    """120 errors of slopes: their RMSE varies by 7 % of itself, so 1.45 of the asymptotic value is six such deviations
    (false alarm below 1e-8); coverage 95 % of 120 is above 80 % but for 1e-9.

    Power: with RB as the pilot the RMSE is three times as large.
    """
    rmse, covers = errors(design)
    assert rmse < 1.45 * design[5]
    assert covers > 0.8
    monkeypatch.setattr(optimal, "_log_variance", lambda objects, theta, weights: float(weights[-1]))  # RB always
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong, _, _ = pilot_study.study(*design[:5], repetitions=RUNS, seed=1)
    assert np.sqrt((wrong**2).mean()) > 1.45 * design[5]


def test_little_noise_begins_with_rb_and_much_with_the_box(monkeypatch):
    """Scale .3 against a box of width 2, and scale 4: the ratio of the two stated variances is far from 1 in both."""
    rng = np.random.default_rng()
    chosen = []
    real = optimal.pilot
    monkeypatch.setattr(optimal, "pilot", lambda *a: chosen.append(real(*a)) or chosen[-1])
    x = rng.uniform(-1, 1, (6000, 2))
    y = (rng.random(6000) < 1 / (1 + np.exp(-x.sum(axis=1)))).astype(float)
    for scale in (0.3, 4.0):
        mechanism = zil.Mechanism([(-1, 1)] * 2, zero_prob=0.2, scale=scale)
        published = mechanism.simulate(x, rng)
        zil.fit("logistic", published.data, y=y, noise=mechanism.noise, bounds=[(-1, 1)] * 2)
    assert [int(np.argmax(weights)) for _, weights in chosen] == [0, len(LEVELS) - 1]
