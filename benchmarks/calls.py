"""Whole public calls as cases: what a user runs, on data made from a seed, told apart by name and sizes.

A case is a function ``make(n, d, **more) -> (call, data_bytes)``: it makes the data and answers the call to
be timed and the size of what goes in.  Only public names are used, so a case runs on any version that has
them: ``worker.py`` times one, ``compare.py`` times all of `COMPARED` on two versions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import zil

ZERO_PROB = 0.2
SCALE = 1.0
LOSSES = ("squared", "logistic", "quantile:0.5", "huber", "poisson", "absolute", "hinge", "squared_hinge")
METHODS = ("naive", "dr", "sdr", "sl", "rb", "scl", "optimal")

Case = Callable[..., tuple[Callable[[], Any], int]]
CASES: dict[str, Case] = {}
FRESH = itertools.count(1)  # tables of curves are kept: what is to be made anew must differ from all before


def case(make: Case) -> Case:
    CASES[make.__name__] = make
    return make


def regression(n: int, d: int, loss: str, seed: int = 0) -> tuple[Any, Any]:
    """Features uniform on [-1, 1]^d and a response that suits the loss; one slope for all, so that d may grow."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, d))
    eta = x.sum(axis=1) * np.sqrt(5.0 / d)
    if loss in ("logistic", "hinge", "squared_hinge"):
        return x, (rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    if loss == "poisson":
        return x, rng.poisson(np.exp(0.3 * eta)).astype(float)
    return x, 1.0 + eta + rng.standard_normal(n)


def mechanism(d: int) -> Any:
    return zil.Mechanism([(-1.0, 1.0)] * d, zero_prob=ZERO_PROB, scale=SCALE)


@case
def fit(n: int, d: int, *, loss: str, method: str = "plain") -> tuple[Callable[[], Any], int]:
    """``zil.fit``: ``plain`` on the original rows, any other method on the published ones."""
    x, y = regression(n, d, loss)
    size = x.nbytes + y.nbytes
    if method == "plain":
        return lambda: zil.fit(loss, x, y=y, n_threads=1), size
    published = mechanism(d).simulate(x, rng=0)
    return lambda: zil.fit(loss, published, y=y, method=method, n_threads=1), size


def _points(n: int, d: int) -> Any:
    return zil.SymmetricLaplace(d).rvs(n, rng=1)


@case
def rvs(n: int, d: int) -> tuple[Callable[[], Any], int]:
    law = zil.ZeroInflatedLaplace(0.05, d)
    return lambda: law.rvs(n, rng=1, n_threads=1), 8 * n * d


@case
def logpdf(n: int, d: int) -> tuple[Callable[[], Any], int]:
    law, x = zil.SymmetricLaplace(d), _points(n, d)
    return lambda: law.logpdf(x), x.nbytes


@case
def logpdf_covariance(n: int, d: int) -> tuple[Callable[[], Any], int]:
    law, x = zil.SymmetricLaplace(cov=np.eye(d) + 0.2), _points(n, d)
    return lambda: law.logpdf(x), x.nbytes


@case
def log_likelihood_ratio(n: int, d: int) -> tuple[Callable[[], Any], int]:
    x = _points(n, d)
    return lambda: zil.log_likelihood_ratio(x, 1.0, n_threads=1), x.nbytes


@case
def simulate(n: int, d: int) -> tuple[Callable[[], Any], int]:
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (n, d))
    return lambda: mechanism(d).simulate(x, 1, n_threads=1), x.nbytes


@case
def simulate_pandas(n: int, d: int) -> tuple[Callable[[], Any], int]:
    import pandas as pd

    names = [f"x{j}" for j in range(d)]
    x = pd.DataFrame(np.random.default_rng(1).uniform(-1.0, 1.0, (n, d)), columns=names)
    law = zil.Mechanism(dict.fromkeys(names, (-1.0, 1.0)), zero_prob=ZERO_PROB, scale=SCALE)
    return lambda: law.simulate(x, 1, n_threads=1), 8 * n * d


@case
def release(n: int, d: int) -> tuple[Callable[[], Any], int]:
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (n, d))
    return lambda: mechanism(d).release(x, n_threads=1), x.nbytes


@case
def double(n: int, d: int) -> tuple[Callable[[], Any], int]:
    published = mechanism(d).simulate(np.random.default_rng(1).uniform(-1.0, 1.0, (n, d)), rng=1)
    return lambda: published.double(n_threads=1), 8 * n * d


@case
def tradeoff_table(n: int, d: int) -> tuple[Callable[[], Any], int]:
    """A curve that was not asked for before, and one point of it."""
    return lambda: zil.tradeoff(d, 1.0 + 1e-9 * next(FRESH), 0.05)(0.1), 8


@case
def tradeoff_point(n: int, d: int) -> tuple[Callable[[], Any], int]:
    curve = zil.tradeoff(d, 1.0, 0.05)
    return lambda: curve(0.1), 8


@case
def tradeoff_points(n: int, d: int) -> tuple[Callable[[], Any], int]:
    curve, alpha = zil.tradeoff(d, 1.0, 0.05), np.linspace(1e-4, 0.94, n)
    return lambda: curve(alpha), alpha.nbytes


@case
def tradeoff_epsilons(n: int, d: int) -> tuple[Callable[[], Any], int]:
    curve, delta = zil.tradeoff(d, 1.0, 0.05), np.linspace(0.06, 0.4, n)
    return lambda: curve.epsilon(delta), delta.nbytes


@case
def simulate_tradeoff(n: int, d: int) -> tuple[Callable[[], Any], int]:
    return lambda: zil.simulate_tradeoff(d, 1.0, 0.05, n, rng=1, n_threads=1), 8


@case
def calibrate(n: int, d: int) -> tuple[Callable[[], Any], int]:
    """A target that was not asked for before."""


    def call() -> Any:
        delta = 0.1 + 1e-9 * next(FRESH)
        return zil.calibrate([(0, 1)] * d, epsilon=1.0, delta=delta, zero_prob=0.05, unit="record")

    return call, 8


# What `do.py bench --compare` times on both versions: name, case, rows, columns, further arguments.
COMPARED: tuple[tuple[str, str, int, int, dict[str, str]], ...] = (
    ("rvs", "rvs", 200_000, 6, {}),
    ("logpdf", "logpdf", 200_000, 6, {}),
    ("logpdf, covariance", "logpdf_covariance", 200_000, 6, {}),
    ("log_likelihood_ratio", "log_likelihood_ratio", 200_000, 6, {}),
    ("simulate, array", "simulate", 200_000, 6, {}),
    ("simulate, pandas", "simulate_pandas", 200_000, 6, {}),
    ("release, array", "release", 100_000, 6, {}),
    ("Release.double", "double", 200_000, 6, {}),
    ("tradeoff, new curve", "tradeoff_table", 1, 6, {}),
    ("f(alpha), one point, d = 6", "tradeoff_point", 1, 6, {}),
    ("f(alpha), one point, limit", "tradeoff_point", 1, 20_000, {}),
    ("f(alpha), 1e4 points, d = 6", "tradeoff_points", 10_000, 6, {}),
    ("f.epsilon, 1e4 points, d = 6", "tradeoff_epsilons", 10_000, 6, {}),
    ("simulate_tradeoff", "simulate_tradeoff", 200_000, 6, {}),
    ("calibrate", "calibrate", 1, 6, {}),
    *(
        (f"fit {loss} {method}, n = {n}", "fit", n, 5, {"loss": loss, "method": method})
        for n in (1_000, 50_000)
        for loss in ("squared", "logistic", "quantile:0.5")
        for method in ("plain", "rb", "dr", "optimal")
    ),
)
