"""Exact curve: a thousand points from nothing, table included, against a clock of 20 ms; Monte Carlo against numpy."""

import math
import time

import numpy as np
import pytest
from scipy import special

import zil
from zil.privacy import exact
from zil.privacy.tradeoff import TradeOff

POINTS = np.linspace(0.001, 0.999, 1000)


@pytest.mark.parametrize("dim", [2, 3, 6, 7, 50])
def test_thousand_points(race, dim):
    race(
        lambda: TradeOff(exact.LaplaceExact(dim, 1.0))(POINTS), lambda: time.sleep(0.02), baseline_name="20 ms",
        units=1000, unit="points", goal=1.0,
    )  # fmt: skip


def paper_simulation(dim, c, n, rng):
    """The Monte Carlo a user would write: rows, two densities by scipy.special.kve, a sort."""
    rows = np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=(n, dim))
    order = dim / 2 - 1

    def log_density(x):
        r = np.sqrt(np.square(x).sum(axis=1)) * math.sqrt(2)
        return -order * np.log(r) + np.log(special.kve(order, r)) - r

    shifted = rows.copy()
    shifted[:, 0] -= c
    ratio = np.sort(log_density(shifted) - log_density(rows))
    alpha = 1 - np.arange(n) / n
    beta = 1 - np.searchsorted(ratio, -ratio) / n
    return alpha, beta


@pytest.mark.parametrize(("dim", "goal"), [(2, 10.0), (3, 10.0), (6, 25.0), (50, 25.0)])
def test_simulation(race, dim, goal):
    n, rng = 100_000, np.random.default_rng(1)
    race(
        lambda: zil.simulate_tradeoff(dim, 1.0, 0.0, n, rng=1, n_threads=1), lambda: paper_simulation(dim, 1.0, n, rng),
        baseline_name="numpy and scipy.special.kve", units=n, unit="draws", goal=goal, rounds=5,
    )  # fmt: skip
