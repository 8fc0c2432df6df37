"""Density of the symmetric Laplace law by radius: one kernel for all orders against scipy.special.kve."""

import math

import numpy as np
import pytest
from scipy import special

from zil.privacy.density import log_density

N = 100_000


def with_kve(dim, r):
    """What a user would write: generic Bessel K, scaled."""
    order = 1 - dim / 2
    x = math.sqrt(2) * r
    constant = math.log(2) - dim / 2 * math.log(2 * math.pi)
    return constant + order * np.log(r / math.sqrt(2)) + np.log(special.kve(abs(order), x)) - x


@pytest.mark.parametrize(("dim", "goal"), [(2, 5.0), (3, 5.0), (6, 12.0), (7, 5.0), (51, 5.0)])
def test_log_density(race, dim, goal):
    r = np.random.default_rng(1).uniform(0.3, 8.0, N) * math.sqrt(dim / 3)
    np.testing.assert_allclose(log_density(dim, r), with_kve(dim, r), rtol=1e-11)
    race(
        lambda: log_density(dim, r, 1), lambda: with_kve(dim, r), baseline_name="scipy.special.kve",
        units=N, unit="points", goal=goal,
    )  # fmt: skip
