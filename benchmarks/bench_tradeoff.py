"""Trade-off curves as public calls: the exact curve against direct integration by scipy, Monte Carlo against numpy."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, special

import zil

ALPHA = np.linspace(0.001, 0.999, 1000)
FRESH = itertools.count(1)  # a shift that was not asked for before: the table is part of the call


def log_g(dim, r):
    """Log-density by radius, up to a constant."""
    x, order = math.sqrt(2) * r, dim / 2 - 1
    return -order * math.log(r) + math.log(special.kve(order, x)) - x


def errors(dim, c, t):
    """(alpha, beta) of the likelihood-ratio test with threshold t: the share of each sphere that rejects, integrated.

    What a user would write from the definition: the boundary by brentq, Student's incomplete beta for the share of a
    sphere beyond a plane, `scipy.integrate.quad` over the radius.
    """

    def share(x):
        x = min(1.0, max(-1.0, x))
        upper = 0.5 * special.betainc((dim - 1) / 2, 0.5, 1 - x * x)
        return upper if x >= 0 else 1 - upper

    norm = math.log(2) + (dim / 2) * math.log(math.pi) - math.lgamma(dim / 2)
    constant = math.log(2) - dim / 2 * math.log(2 * math.pi) + (dim / 2 - 1) * 0.5 * math.log(2)

    def alpha(t):
        def integrand(a):
            level = log_g(dim, a) + t
            low, high = math.log(1e-12), math.log(1e4)
            if log_g(dim, math.exp(low)) <= level:
                return 0.0
            b = math.exp(optimize.brentq(lambda s: log_g(dim, math.exp(s)) - level, low, high, xtol=1e-13))
            density = math.exp(norm + constant + log_g(dim, a) + (dim - 1) * math.log(a))
            return density * share((a * a + c * c - b * b) / (2 * a * c))

        return integrate.quad(integrand, 1e-9, 40.0 + c, epsabs=1e-9, epsrel=1e-8, limit=200, points=[c])[0]

    return alpha(t), alpha(-t)


@pytest.mark.parametrize("dim", [3, 6, 20])
def test_curve_with_its_table(race, dim):
    """A curve never asked for before at a thousand points, against two points by scipy; goal: no slower."""
    thresholds = (0.1, 0.8)

    def baseline():
        return [errors(dim, 1.0, t) for t in thresholds]

    curve = zil.tradeoff(dim, 1.0)
    for alpha, beta in baseline():
        assert curve(alpha) == pytest.approx(beta, rel=1e-5)
    race(
        lambda: zil.tradeoff(dim, 1.0 + 1e-9 * next(FRESH))(ALPHA), baseline,
        baseline_name="2 points by scipy quad + brentq", units=len(ALPHA), unit="points", goal=1.0, rounds=3,
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
