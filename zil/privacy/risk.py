"""What an attacker gets out of one published row: formulas that need no table (beyond the paper).

A trade-off curve answers every question about an attacker who has to decide between two values.  Who
publishes rows wants to know more: which rows are the original ones, how often an attacker is rightly
sure, how wide the interval is that they can give.  Every answer here follows from the law of the
noise alone, so it may be published.

Notation: ``tau_j = scale_j/width_j``, ``z = zero_prob``, ``W ~ Exp(1)``, ``phi`` and ``Phi`` of the standard normal.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import optimize, special

from zil._validate import FloatArray
from zil.privacy.density import log_density
from zil.privacy.tradeoff import TradeOff, tradeoff

SURE = 0.95
STEP = 0.05  # of the trapezoid rule in log sqrt(W), which converges faster than any power of it
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)

Histogram = tuple[FloatArray, FloatArray]  # edges (k + 1,) from 0 to 1, probabilities (k,)
UNIFORM: Histogram = (np.array([0.0, 1.0]), np.array([1.0]))


def best_guess(f: TradeOff, prior: float = 0.5) -> float:
    """Probability that the best attacker decides rightly between two values, one of prior probability ``prior``.

    ``1 - pi + pi delta(log((1 - pi)/pi))`` with ``pi = min(prior, 1 - prior)``: the maximum over tests of
    ``(1 - pi)(1 - alpha) + pi (1 - f(alpha))``.
    """
    rarer = min(prior, 1.0 - prior)
    if rarer == 0.0:
        return 1.0
    gain = float(f.delta(math.log1p(-rarer) - math.log(rarer)))
    return 1.0 - rarer + rarer * gain


def certain(f: TradeOff, posterior: float = SURE, prior: float = 0.5) -> float:
    """Probability that an attacker becomes sure of the true value: that its posterior reaches ``posterior``.

    ``delta(t) - delta'(t)`` at ``t = logit(posterior) - logit(prior)``, the probability under the truth that the
    log-likelihood ratio reaches t.
    """
    threshold = float(special.logit(posterior) - special.logit(prior))
    return 1.0 if threshold <= 0.0 else float(f.exceeds(threshold))


def power(f: TradeOff, alpha: float = 0.01) -> float:
    """Largest share of changes that is detected at false-alarm rate ``alpha``."""
    return 1.0 - float(f.bounds(alpha)[0])


def odds_after_alarm(f: TradeOff, alpha: float, prior: float) -> float:
    """Odds of the suspected value after an alarm of the best test: ``pi (1 - f(alpha))/((1 - pi) alpha)``."""
    return prior * power(f, alpha) / ((1.0 - prior) * alpha)


def exposed(zero_prob: float, rows: int) -> float:
    """Probability that at least one of ``rows`` rows is published unchanged: ``1 - (1 - z)^k``."""
    return 1.0 if zero_prob == 1.0 else -math.expm1(rows * math.log1p(-zero_prob))


def admissible_shift(ratio: FloatArray, values: FloatArray | None = None) -> float:
    """Largest shift ``|(Delta_j/scale_j)_j|_2`` of a group of columns that change together.

    Parameters
    ----------
    ratio : (k,) array
        ``width_j/scale_j``.
    values : (m, k) array, optional
        The combinations that can occur, in widths above the lower bounds; by default all of the box.
    """
    if values is None:
        return math.hypot(*ratio.tolist())
    points = np.asarray(values, dtype=np.float64) * ratio
    squares = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    return math.sqrt(float(squares.max()))


# ---- which rows are unchanged ----------------------------------------------------------------


def _mixing() -> tuple[FloatArray, FloatArray]:
    """Nodes of ``sqrt(W)`` and weights: W as small as 1e-50 counts where the noise is far wider than the box."""
    u = np.arange(-60.0, 2.0, STEP)
    root = np.exp(u)
    return root, 2.0 * STEP * root**2 * np.exp(-(root**2))


ROOT, WEIGHT = _mixing()


def _near(root_tau: FloatArray, y: float, prior: Histogram) -> tuple[FloatArray, float]:
    """``int phi((y - x)/t)/t dF(x)`` times the cell around y, and the density of F at y; y in [0, 1]."""
    edges, mass = prior
    place = (edges - y) / root_tau[:, None]
    cell = min(int(np.searchsorted(edges, y, side="right")) - 1, len(mass) - 1)
    return np.diff(special.ndtr(place), axis=1) @ (mass / np.diff(edges)), float(mass[cell] / np.diff(edges)[cell])


def _stays(root_tau: FloatArray, prior: Histogram) -> FloatArray:
    """P(X + t N in [0, 1]) at each t, X from the prior: integrals of Phi over its cells."""
    edges, mass = prior
    t = root_tau[:, None]

    def primitive(v: FloatArray) -> FloatArray:  # of Phi(v/t), t times (x Phi(x) + phi(x))
        x = v / t
        return np.asarray(t * (x * special.ndtr(x) + np.exp(-0.5 * x * x) / ROOT_TWO_PI), dtype=np.float64)

    upper, lower = primitive(1.0 - edges), primitive(-edges)
    return -np.diff(upper - lower, axis=1) @ (mass / np.diff(edges))


def unchanged_in_box(tau: FloatArray, zero_prob: float, priors: Sequence[Histogram] | None = None) -> dict[str, float]:
    """P(a row is unchanged | its published values lie inside the bounds), at the corner, the centre and on average.

    ``z f(y)/(z f(y) + (1 - z) int g(y - x) dF(x))``.  Under a uniform prior ``z/(z + (1 - z) q)`` with
    ``q = E_W prod_j [Phi(1/t_j) - 1/2]`` at the corner, ``E_W prod_j [2 Phi(1/(2 t_j)) - 1]`` at the centre and
    ``E_W prod_j [2 Phi(1/t_j) - 1 - 2 t_j (phi(0) - phi(1/t_j))]`` on average, ``t_j = tau_j sqrt(W)``.

    Parameters
    ----------
    tau : (d,) array
        ``scale_j/width_j``; inf where the bounds are equal.
    zero_prob : float in [0, 1]
    priors : sequence of d (edges, probabilities), optional
        What an attacker expects of each column, on [0, 1], independent between columns; by default uniform.  The
        corner is then the one of the ends where the prior is denser.

    Returns
    -------
    dict
        ``corner``, ``centre``, ``average``, and ``share_in_box``, the share of rows inside the bounds.
    """
    laws = [UNIFORM] * len(tau) if priors is None else list(priors)
    corner, centre, average = WEIGHT.copy(), WEIGHT.copy(), WEIGHT.copy()
    density = {"corner": 1.0, "centre": 1.0}
    for ratio, law in zip(tau.tolist(), laws, strict=True):
        if math.isinf(ratio):  # noise takes every row out of a box of no width
            corner, centre, average = 0.0 * corner, 0.0 * centre, 0.0 * average
            continue
        root_tau = ROOT * ratio
        first, last = law[1][0] / (law[0][1] - law[0][0]), law[1][-1] / (law[0][-1] - law[0][-2])
        for name, y, product in (("corner", 0.0 if first >= last else 1.0, corner), ("centre", 0.5, centre)):
            around, at = _near(root_tau, y, law)
            product *= around
            density[name] *= at
        average *= _stays(root_tau, law)
    result = {}
    for name, total in (("corner", corner), ("centre", centre)):
        own, noised = zero_prob * density[name], (1.0 - zero_prob) * float(total.sum())
        result[name] = own / (own + noised) if own > 0.0 else 0.0
    inside = zero_prob + (1.0 - zero_prob) * float(average.sum())
    result["average"] = zero_prob / inside if zero_prob > 0.0 else 0.0
    result["share_in_box"] = inside
    return result


# ---- intervals ---------------------------------------------------------------------------------


def _mean_length(length: float, grid: FloatArray, mass: FloatArray, posterior: float) -> float:
    """Expected length of the highest posterior set over [0, length], as a share of it.

    The likelihood is symmetric and falls with distance; ``mass[i]`` is its integral from 0 to
    ``grid[i]``, 1/2 in total.  The set is then what lies within r of y.
    """

    def integral(v: FloatArray) -> FloatArray:
        return np.asarray(np.sign(v) * np.interp(np.abs(v), grid, mass), dtype=np.float64)

    nodes, weights = np.polynomial.legendre.leggauss(40)
    unit, half = 0.5 * (nodes + 1.0), 0.5 * weights
    reach = float(grid[-1])
    far = unit**3 * reach  # beyond the box, denser where it begins
    y = np.concatenate([0.5 * length * (1.0 + unit), length + far])
    weight = np.concatenate([0.5 * length * half, 3.0 * unit**2 * reach * half])
    total = integral(y) - integral(y - length)
    low, high = np.zeros_like(y), y.copy()
    for _ in range(50):
        r = 0.5 * (low + high)
        inside = integral(np.minimum(length - y, r)) + integral(np.minimum(y, r))
        enough = inside >= posterior * total
        low, high = np.where(enough, low, r), np.where(enough, r, high)
    covered = np.minimum(length, y + high) - np.maximum(0.0, y - high)
    weight = weight * total
    return float((weight * covered).sum() / weight.sum()) / length


@functools.lru_cache(maxsize=256)
def interval_share(tau: float, dim: int = 1, posterior: float = SURE) -> float:
    """Expected width of an attacker's interval for one entry of a noised row, as a share of the column's width.

    The set of highest posterior probability ``posterior`` under a uniform prior, averaged over values and noise.

    Parameters
    ----------
    tau : float > 0
        ``scale/width`` of the column.
    dim : int
        1: the other entries are unknown, the noise of the entry is univariate Laplace.  Else the number
        of noised columns whose other originals the attacker knows, and with them the size
        ``r`` of the other noises: likelihood ``g_dim(sqrt(r^2 + ((y - x)/scale)^2))``.
    """
    length = 1.0 / tau
    if dim == 1:
        grid = np.concatenate([[0.0], np.geomspace(1e-6, 40.0, 2000)])
        return _mean_length(length, grid, -0.5 * np.expm1(-math.sqrt(2.0) * grid), posterior)
    others = dim - 1
    step = 0.125
    r = np.exp(np.arange(-14.0, 4.0, step))
    log_sphere = math.log(2.0) + 0.5 * others * math.log(math.pi) - math.lgamma(0.5 * others)
    chance = step * np.exp(others * np.log(r) + log_sphere + log_density(others, r))
    result = 0.0
    for size, weight in zip(r.tolist(), (chance / chance.sum()).tolist(), strict=True):
        if weight < 1e-7:
            continue
        grid = size * np.sinh(np.linspace(0.0, math.asinh(40.0 / size), 600))
        middle = 0.5 * (grid[1:] + grid[:-1])
        log_likelihood = log_density(dim, np.hypot(size, np.concatenate([grid, middle])))
        value = np.exp(log_likelihood - log_likelihood[0])
        ends, between = value[: len(grid)], value[len(grid) :]
        cells = np.diff(grid) * (ends[1:] + ends[:-1] + 4.0 * between) / 6.0
        mass = np.concatenate([[0.0], np.cumsum(cells)])
        result += weight * _mean_length(length, grid, 0.5 * mass / mass[-1], posterior)
    return result


# ---- what else the same budget buys ------------------------------------------------------------


def laplace_epsilon(epsilon: float, delta: float) -> float:
    """Pure epsilon of one Laplace noise that is (epsilon, delta): ``epsilon - 2 log(1 - delta)``.

    From ``delta(epsilon) = 1 - exp((epsilon - q)/2)`` of two Laplace laws whose loss never exceeds q (paper, section
    3).
    """
    return epsilon - 2.0 * math.log1p(-delta)


def independent_laplace(dim: int, loss: float) -> TradeOff:
    """Trade-off function of ``dim`` columns with independent Laplace noise, privacy loss at most ``loss`` each."""
    return tradeoff(1, loss / math.sqrt(2.0)).compose(dim)


@functools.lru_cache(maxsize=64)
def laplace_loss(dim: int, epsilon: float, delta: float) -> float:
    """Largest loss per column of ``dim`` columns with independent Laplace noise that are (epsilon, delta) together.

    ``laplace_epsilon`` for one column; the composition of the exact curves for more.
    The scale of the noise, a standard deviation, is ``sqrt(2) width/loss``.
    """
    most = laplace_epsilon(epsilon, delta)
    if dim == 1:
        return most
    least = 0.5 * most / dim  # with most/dim the losses could add up to no more than of one column

    def excess(q: float) -> float:
        return float(independent_laplace(dim, q).delta(epsilon)) - delta

    return float(optimize.brentq(excess, least, most, xtol=1e-5 * least))


def same_cell(tau: float) -> float:
    """P(a value uniform on a cell, noised, is still in its cell): ``E_W[2 Phi(1/t) - 1 - 2 t (phi(0) - phi(1/t))]``.

    ``tau`` is the scale over the width of the cell, ``t = tau sqrt(W)``.
    """
    return float(WEIGHT @ _stays(ROOT * tau, UNIFORM))


def mean_factor(tau: float, zero_prob: float = 0.0) -> float:
    """Standard error of the mean of a noised column over that of its original, values uniform on the bounds.

    ``sqrt(1 + (1 - z) s^2/sigma^2)`` with ``sigma^2 = width^2/12``.
    """
    return math.sqrt(1.0 + 12.0 * (1.0 - zero_prob) * tau**2)


def read_prior(edges: Sequence[float], mass: Sequence[float], lower: float, upper: float) -> Histogram:
    """A public histogram of one column as a prior on [0, 1]; its edges must run from bound to bound."""
    places, weights = np.asarray(edges, dtype=np.float64), np.asarray(mass, dtype=np.float64)
    if not (places.ndim == weights.ndim == 1 and len(places) == len(weights) + 1 >= 2):
        raise ValueError(
            f"a prior needs edges (k + 1,) and probabilities (k,), got shapes {places.shape} and {weights.shape}"
        )
    if not (np.diff(places) > 0.0).all() or places[0] != lower or places[-1] != upper:
        raise ValueError(f"the edges of a prior must ascend from {lower:g} to {upper:g}, the bounds of its column")
    if not ((weights >= 0.0).all() and 0.0 < weights.sum() < math.inf):
        raise ValueError("the probabilities of a prior must be >= 0 and not all 0")
    return (places - lower) / (upper - lower), weights / weights.sum()


def priors(prior: str | Mapping[object, object], names: Sequence[object], bounds: FloatArray) -> list[Histogram] | None:
    """The prior of each column: None for "uniform", else histograms ``{column: (edges, probabilities)}``."""
    if isinstance(prior, str):
        if prior != "uniform":
            raise ValueError(f"prior must be 'uniform' or {{column: (edges, probabilities)}}, got {prior!r}")
        return None
    unknown = [name for name in prior if name not in names]
    if unknown:
        raise ValueError(f"prior names {unknown[0]!r}, which has no bounds")
    result = []
    for name, (low, high) in zip(names, bounds.tolist(), strict=True):
        pair = prior.get(name)
        if pair is None or low == high:
            result.append(UNIFORM)
            continue
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise ValueError(f"prior of {name!r} must be a pair (edges, probabilities)")
        result.append(read_prior(pair[0], pair[1], low, high))
    return result
