"""Density of the symmetric Laplace law as public calls, one thread, against what a user would write with scipy.

The baseline forms the norms of the rows and calls the generic Bessel function; the goal at 6 columns is 12x, then 20x.
"""

import math

import numpy as np
import pytest
from scipy import linalg, special

import zil

N = 200_000


@pytest.fixture(scope="module")
def rows(large):
    return 1_000_000 if large else N


def with_kve(dim, r):
    order = 1 - dim / 2
    x = math.sqrt(2) * r
    constant = math.log(2) - dim / 2 * math.log(2 * math.pi)
    return constant + order * np.log(r / math.sqrt(2)) + np.log(special.kve(abs(order), x)) - x


def points(rows, dim):
    return zil.SymmetricLaplace(dim).rvs(rows, rng=1)


@pytest.mark.parametrize(("dim", "goal"), [(1, 5.0), (2, 12.0), (3, 12.0), (6, 20.0), (7, 12.0), (50, 12.0)])
def test_logpdf(race, rows, dim, goal):
    x, scale = points(rows, dim) * 2.0, np.full(dim, 2.0)
    law = zil.SymmetricLaplace(scale=scale)

    def baseline():
        return with_kve(dim, np.sqrt(np.square(x / scale).sum(axis=1))) - np.log(scale).sum()

    np.testing.assert_allclose(law.logpdf(x), baseline(), rtol=1e-11)
    race(
        lambda: law.logpdf(x, n_threads=1), baseline, baseline_name="numpy norm + scipy.special.kve", units=rows,
        goal=goal, rounds=5,
    )  # fmt: skip


@pytest.mark.parametrize(("dim", "goal"), [(2, 12.0), (6, 12.0), (20, 8.0)])
def test_logpdf_with_a_covariance(race, rows, dim, goal):
    x = points(rows, dim)
    covariance = np.eye(dim) + 0.2
    law, lower = zil.SymmetricLaplace(cov=covariance), np.linalg.cholesky(covariance)

    def baseline():
        solved = linalg.solve_triangular(lower, x.T, lower=True)
        return with_kve(dim, np.sqrt(np.square(solved).sum(axis=0))) - np.log(np.diag(lower)).sum()

    np.testing.assert_allclose(law.logpdf(x), baseline(), rtol=1e-11)
    race(
        lambda: law.logpdf(x, n_threads=1), baseline, baseline_name="scipy solve_triangular + kve", units=rows,
        goal=goal, rounds=5,
    )  # fmt: skip


@pytest.mark.parametrize(("dim", "goal"), [(2, 12.0), (6, 12.0)])
def test_log_likelihood_ratio(race, rows, dim, goal):
    x, c = points(rows, dim), 1.0

    def baseline():
        moved = x.copy()
        moved[:, 0] -= c
        return with_kve(dim, np.sqrt(np.square(moved).sum(axis=1))) - with_kve(dim, np.sqrt(np.square(x).sum(axis=1)))

    np.testing.assert_allclose(zil.log_likelihood_ratio(x, c), baseline(), rtol=1e-8, atol=1e-10)
    race(
        lambda: zil.log_likelihood_ratio(x, c, n_threads=1), baseline, baseline_name="twice numpy norm + kve",
        units=rows, goal=goal, rounds=5,
    )  # fmt: skip
