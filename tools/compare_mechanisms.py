#!/usr/bin/env python3
"""When is ZIL the better mechanism?  Equal (epsilon, delta), other noise.  Writes docs/comparison.md.

    python tools/compare_mechanisms.py --repetitions 30 --out docs/comparison.md

Three releases of the same rows (six columns on [-1, 1], protection of one entry of a row): ZIL, Gaussian noise and
independent Laplace noise in each column, all calibrated to the same (epsilon, delta).  Each is analysed with the best
correction that its noise allows:

* ZIL: RB and optimal, for every loss.
* Gaussian: least squares by moments; logistic regression by the conditional score of Stefanski and Carroll
  (1987); for the check loss there is no exact correction (its Gaussian deconvolution does not exist).
* Laplace per column: with characteristic function 1/(1 + b^2 t^2) the inverse is the operator
  prod_j (1 - b^2 d_j^2): twelve derivatives of the loss in six columns.  They exist for least squares and logistic
  regression, not for the check loss.

The competitors' equations are solved from the true parameters, so that no failure of a search counts against
them.  A run without a solution nearby is counted and left out.
"""

from __future__ import annotations

import argparse
import functools
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, special

import zil
from zil.interfaces import simulation

DIM = simulation.DIM
WIDTH = 2.0 * simulation.EDGE
# (epsilon, delta, share of delta spent on rows published unchanged)
BUDGETS = [(1.0, 0.3, 0.2), (2.0, 0.1, 0.05), (1.0, 0.01, 0.005), (4.0, 0.001, 0.0005)]
LOSSES = ("squared", "logistic", "median")
METHODS = ("oracle", "zil rb", "zil optimal", "gaussian", "laplace")


@functools.cache
def gaussian_sigma(epsilon: float, delta: float) -> float:
    """Smallest standard deviation of Gaussian noise that keeps (epsilon, delta) for one entry."""

    def excess(mu: float) -> float:
        return float(zil.gaussian_tradeoff(mu).delta(epsilon)) - delta

    return WIDTH / float(optimize.brentq(excess, 1e-6, 50.0, xtol=1e-12))


def laplace_scale(epsilon: float, delta: float) -> float:
    """Scale b of Laplace noise (density exp(-|z|/b)/(2b)): delta = 1 - exp((epsilon - width/b)/2)."""
    return WIDTH / (epsilon - 2.0 * math.log1p(-delta))


@functools.cache
def zil_scale(epsilon: float, delta: float, zero_prob: float) -> float:
    bounds = {f"x{k}": (-1.0, 1.0) for k in range(DIM)}
    return float(zil.calibrate(bounds, epsilon=epsilon, delta=delta, zero_prob=zero_prob, unit="attribute").scale[0])


def draw(loss: str, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Rows, response, true parameters, and whether the first one is an intercept."""
    if loss == "logistic":
        plan = simulation.design("logistic")
        return *plan.draw(rng, n), plan.truth, False
    return *simulation.design("median").draw(rng, n), np.ones(DIM + 1), True


def moments(x: np.ndarray, y: np.ndarray, variance: float) -> np.ndarray | None:
    """Least squares with the noise variance taken off the second moments."""
    design = np.column_stack([np.ones(len(x)), x])
    gram = design.T @ design / len(x)
    gram[range(1, DIM + 1), range(1, DIM + 1)] -= variance
    if np.linalg.eigvalsh(gram)[0] <= 0.0:
        return None
    return np.linalg.solve(gram, design.T @ y / len(x))


def _root(score: Any, start: np.ndarray) -> np.ndarray | None:
    found = optimize.root(score, start, method="hybr")
    near = found.success and np.abs(found.x).max() < 10.0
    return found.x if near else None


def conditional_score(x: np.ndarray, y: np.ndarray, sigma: float, truth: np.ndarray) -> np.ndarray | None:
    """Logistic regression under Gaussian noise: given ``x + y sigma^2 beta`` the law of y is free of the original x."""

    def score(beta: np.ndarray) -> np.ndarray:
        enough = x + y[:, None] * (sigma**2 * beta)
        chance = special.expit(enough @ beta - 0.5 * sigma**2 * beta @ beta)
        return enough.T @ (y - chance) / len(y)

    return _root(score, truth)


@functools.cache
def softplus_derivatives(order: int) -> list[np.polynomial.Polynomial]:
    """``d^k/dt^k log(1 + e^t)``, k = 1 ... order, as polynomials in ``p = expit(t)`` (``dp/dt = p - p^2``)."""
    p = np.polynomial.Polynomial([0.0, 1.0])
    out = [p]
    while len(out) < order:
        out.append(out[-1].deriv() * (p - p * p))
    return out


def laplace_logistic(x: np.ndarray, y: np.ndarray, b: float, truth: np.ndarray) -> np.ndarray | None:
    """Root of the gradient of ``prod_j (1 - b^2 d_j^2) log(1 + exp(-sign eta))``."""
    sign = 2.0 * y - 1.0
    table = softplus_derivatives(2 * DIM + 1)

    def score(beta: np.ndarray) -> np.ndarray:
        p = special.expit(-sign * (x @ beta))
        derivative = [None, *(poly(p) for poly in table)]
        squares = (b * beta) ** 2
        symmetric = np.poly(squares)  # prod (z - s_j) = sum (-1)^k e_k z^(d-k)
        pull = sum(symmetric[k] * derivative[2 * k + 1] for k in range(DIM + 1))
        gradient = x.T @ (-sign * pull) / len(y)
        for j in range(DIM):
            others = np.poly(np.delete(squares, j))
            # d/d s_j of prod (1 - s_i D^2) is -D^2 times the product over the others
            inner = sum(others[k] * float(np.mean(derivative[2 * k + 2])) for k in range(DIM))
            gradient[j] += -inner * 2.0 * b * b * beta[j]
        return gradient

    return _root(score, truth)


def repetition(loss: str, budget: tuple[float, float, float], n: int, rng: np.random.Generator) -> np.ndarray:
    """Mean square error of the slopes for each of METHODS; nan where there is no estimate."""
    epsilon, delta, zero_prob = budget
    x, y, truth, intercept = draw(loss, rng, n)
    one = int(intercept)
    scale = zil_scale(epsilon, delta, zero_prob)
    sigma, b = gaussian_sigma(epsilon, delta), laplace_scale(epsilon, delta)
    kind = "quantile:0.5" if loss == "median" else loss
    released = simulation.publish(x, scale, rng, zero_prob)
    found: list[np.ndarray | None] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zil.ConvergenceWarning)
        shared = {"y": y, "intercept": intercept, "n_threads": 1, "rng": int(rng.integers(2**63))}
        fits = [zil.fit(kind, x, **shared)]
        for method in ("rb", "optimal"):
            noise = zil.Noise(zero_prob, scale)
            fits.append(zil.fit(kind, released, noise=noise, bounds=simulation.BOUNDS, method=method, **shared))
    found = [fit.params if fit.converged else None for fit in fits]
    normal = x + sigma * rng.standard_normal(x.shape)
    laplace = x + b * rng.laplace(size=x.shape)
    if loss == "squared":
        found += [moments(normal, y, sigma**2), moments(laplace, y, 2.0 * b * b)]
    elif loss == "logistic":
        found += [conditional_score(normal, y, sigma, truth), laplace_logistic(laplace, y, b, truth)]
    else:
        found += [None, None]
    return np.array([math.nan if p is None else float(((p - truth)[one:] ** 2).mean()) for p in found])


def cell(squares: np.ndarray, exists: bool) -> str:
    good = squares[np.isfinite(squares)]
    if not exists:
        return "no correction"
    if len(good) < 0.5 * len(squares):
        return f"no solution in {100 - 100 * len(good) / len(squares):.0f} %"
    rmse = math.sqrt(good.mean())
    error = good.std(ddof=1) / math.sqrt(len(good)) / (2.0 * rmse)
    lost = "" if len(good) == len(squares) else f", none {100 - 100 * len(good) / len(squares):.0f} %"
    return f"{rmse:.4f} ({error:.4f}){lost}"


HEADER = """# ZIL against Gaussian and Laplace noise

{runs} repetitions, n = {n}, seed {seed}, made by `tools/compare_mechanisms.py`. Root mean square error per slope
(Monte Carlo error); protection of one entry of a row, the same (epsilon, delta) for every mechanism. "none": share of
runs without a proper minimum or a root near the truth; "sd": standard deviation of an entry's noise (of ZIL: in a
row that is not published unchanged). How each noise is corrected is explained in the script.

| loss | epsilon, delta | zero_prob | sd (ZIL, Gauss, Laplace) | original | rb | optimal | Gaussian | Laplace |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=30)
    parser.add_argument("--n", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", nargs="+", default=list(LOSSES), choices=LOSSES)
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    given = parser.parse_args()
    text = HEADER.format(runs=given.repetitions, n=given.n, seed=given.seed)
    print(text, end="")
    for loss in given.losses:
        for budget in BUDGETS:
            epsilon, delta, zero_prob = budget
            draws = np.stack(
                simulation.repeat(
                    functools.partial(repetition, loss, budget, given.n),
                    given.repetitions,
                    seed=given.seed,
                    processes=given.processes,
                    progress=simulation.Bar(f"{loss} {epsilon:g}"),
                )
            )
            scales = (zil_scale(*budget), gaussian_sigma(epsilon, delta), laplace_scale(epsilon, delta) * math.sqrt(2))
            cells = [cell(draws[:, k], k < 3 or loss != "median") for k in range(len(METHODS))]
            row = f"| {loss} | {epsilon:g}, {delta:g} | {zero_prob:g} | " + ", ".join(f"{s:.2f}" for s in scales)
            row += " | " + " | ".join(cells) + " |"
            print(row, flush=True)
            text += row + "\n"
            if given.out is not None:
                given.out.write_text(text)


if __name__ == "__main__":
    main()
