"""Truncated versions of a corrected objective, and their joint scores (mathematics 4.4).

Every version truncates the loss outside ``k`` times the public box, ``l(x) 1{x in k box}``; optimal.py says why, and
combines them.  The level ``inf`` is RB; finite levels are DR with ``copies`` second noises (a truncated loss has no
closed form).

Design: a row inside the box at level k lies in one shell, so it is stored once, in the order of the sample, with the
number of its shell.  Scores of the levels are sums over shells; what the estimator needs of them are sums over rows of
their outer products, fold by fold, which one pass makes (src/c/objective.h).  Rows outside every finite level are not
kept.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zil._core import objective as kernel
from zil._validate import FloatArray
from zil.estimation.objective.coordinates import coordinates
from zil.estimation.objective.index import IndexObjective
from zil.estimation.objective.parts import Part, Shells
from zil.estimation.rows import Rows, square
from zil.estimation.sample import Box
from zil.privacy.distributions import DOUBLE_DOMAIN, add_noise
from zil.privacy.doubling import second_key

LEVELS = (math.inf, 2.5, 1.6, 1.25, 1.0)
INSIDE = np.array(LEVELS[:0:-1])
# Parts of the sample whose regression coefficients come from the other parts.
FOLDS = 10
# Least eigenvalue, as a share of the largest, of the standardised regressors that is used.
CUTOFF = 0.05
# Copies of the second noise; fewer when rows times columns times copies would not fit in memory comfortably.
COPIES = 8
MAX_ENTRIES = 400_000_000
# Rows that are sorted by shell at once.
SOME = 1 << 16


@dataclass(frozen=True)
class Versions:
    """All truncated versions of one corrected objective.

    Attributes
    ----------
    plain : IndexObjective
        Level inf: RB.
    first, second : Shells
        X1 and the copies of X2 inside the largest finite level; their coefficient is that of the uncorrected loss.
    """

    plain: IndexObjective
    first: Shells
    second: Shells

    def combined(self, weights: FloatArray) -> IndexObjective:
        """``sum_k weights[k] * objective at LEVELS[k]``; weights sum to 1."""
        parts = [
            replace(part, a=part.a * weights[0], e=part.e * weights[0])
            for part in self.plain.parts
            if weights[0] != 0.0
        ]
        parts += [part for shells in (self.first, self.second) if (part := _weighted(shells, weights)) is not None]
        # positive parts first: the solvers read scale and spread off the first one
        parts.sort(key=lambda part: part.a <= 0.0)
        # inside a box the noise is cut off: its variance is not to be taken off the spread of the rows
        return replace(self.plain, parts=tuple(parts), noise_share=0.0)

    def level(self, k: int) -> IndexObjective:
        """The objective at ``LEVELS[k]``; remembered."""
        known: dict[int, IndexObjective] = self.__dict__.setdefault("_levels", {})
        if k not in known:
            known.clear()  # a level holds rows: one at a time
            known[k] = self.combined(np.eye(len(LEVELS))[k])
        return known[k]

    def hessian(self, theta: FloatArray, weights: FloatArray, width: float = 0.0) -> FloatArray:
        """Hessian of ``combined(weights)``, smoothed by ``width`` > 0.

        It is linear in the weights: those of the shells are found once for one theta and width.
        """
        key = (theta.tobytes(), width)
        known = self.__dict__.setdefault("_hessians", {})
        if known.get("key") != key:
            each = np.zeros((len(LEVELS), len(theta), len(theta)))
            each[0] = _smoothed(self.plain, width).hessian(theta) - self.plain.penalty_curvature()
            for shells in (self.first, self.second):
                for part, slots in _by_slot(shells):
                    for slot, rows in enumerate(slots, start=1):
                        if rows.start < rows.stop:
                            own = replace(self.plain, parts=(part.block(rows),), ridge=0.0)
                            each[slot] += _smoothed(own, width).hessian(theta)
            known.update(key=key, each=each)
        shares = np.append(weights[0], np.cumsum(weights[1:]))
        return np.asarray(np.tensordot(shares, known["each"], axes=1) + self.plain.penalty_curvature())

    def gradients(self, theta: FloatArray, width: float = 0.0) -> FloatArray:
        """Gradient of every version, shape (levels, p), ridge apart; ``width`` > 0 smooths the loss."""
        plain, sets = self._sets(width)
        sums = plain.level_sums(theta, sets, len(LEVELS), 1, False)[0, :-1].reshape(len(LEVELS), -1)
        sums[:0:-1] = np.cumsum(sums[:0:-1], axis=0)
        return np.asarray(sums / self.plain.total)

    def scores(self, theta: FloatArray, width: float = 0.0) -> Scores:
        """Sums of the joint row scores at every level and of their products; ``width`` > 0 smooths the loss."""
        plain, sets = self._sets(width)
        p = plain.n_params
        k = len(LEVELS) * p + 1
        found = plain.level_sums(theta, sets, len(LEVELS), FOLDS, True)
        turn = self._turn(p)
        n = plain.n_rows
        counts = np.array([len(range(fold, n, FOLDS)) for fold in range(FOLDS)])
        sums = found[:, :k] @ turn.T
        grams = np.stack([turn @ square(own[k:], k) @ turn.T for own in found])
        return Scores(counts, sums, grams, coordinates(self.plain).matrix)

    def rows(self, theta: FloatArray, width: float, mixes: Sequence[FloatArray]) -> FloatArray:
        """Row scores (n, p), each fold with its own combination of the columns, for those who need them row by row."""
        plain, sets = self._sets(width)
        columns = plain.level_columns(theta, sets, len(LEVELS)) @ self._turn(plain.n_params).T
        out = np.empty((len(columns), plain.n_params))
        for fold, mix in enumerate(mixes):
            out[fold :: len(mixes)] = columns[fold :: len(mixes)] @ mix
        return out

    def _sets(self, width: float) -> tuple[IndexObjective, list[Shells]]:
        sets = [each for each in (self.first, self.second) if len(each.slot)]
        if width:
            q = width * width
            sets = [replace(each, a=0.0, e=each.a, q0=q) for each in sets]
        return _smoothed(self.plain, width), sets

    def _turn(self, p: int) -> FloatArray:
        """From the numbers of a row by shell to those by level: inf, then differences to it; the weight stays."""
        levels = len(LEVELS)
        shells = np.triu(np.ones((levels, levels)))
        shells[0] = 0.0
        shells[:, 0] = -1.0
        shells[0, 0] = 1.0
        k = levels * p + 1
        turn = np.eye(k)
        turn[:-1, :-1] = np.kron(shells, np.eye(p))
        return np.asarray(turn * (self.plain.n_rows / self.plain.total))


def _weighted(shells: Shells, weights: FloatArray) -> Part | None:
    """The rows under ``weights`` of the levels (levels,); None if no row counts."""
    own = np.append(0.0, np.cumsum(weights[1:]))
    rows, slot = shells.rows, shells.slot
    if (own[1:] == 0.0).any():
        keep = np.flatnonzero(own[slot] != 0.0)
        rows, slot = rows.take(keep), slot[keep]
    if not len(slot):
        return None
    total = own[slot]
    if rows.weights is not None:
        total = total * rows.weights
    return Part(replace(rows, weights=total), a=shells.a)


def _by_slot(shells: Shells) -> Iterator[tuple[Part, list[slice]]]:
    """Some rows after the other, sorted by shell, with the range of each shell."""
    for start in range(0, len(shells.slot), SOME):
        slot = shells.slot[start : start + SOME]
        order = np.argsort(slot, kind="stable")
        edges = np.searchsorted(slot[order], np.arange(1, len(LEVELS) + 1))
        rows = [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]
        yield Part(shells.rows.take(start + order), a=shells.a), rows


def _smoothed(objective: IndexObjective, width: float) -> IndexObjective:
    return objective.smoothed(width) if width else objective


def draw(
    plain: IndexObjective,
    zero_prob: float,
    scale: FloatArray,
    scale_y: float,
    box: Box,
    copies: int,
    rng: object = None,
) -> Versions:
    """Draw the second noises, chunk by chunk, and keep what lies inside the largest finite level.

    Parameters
    ----------
    plain : IndexObjective
        The RB objective; its first part holds X1.
    scale, scale_y : noise scales of x's columns (d,) and of the response
    """
    rows = plain.parts[0].rows
    d, n = rows.features.shape
    copies = max(2, min(copies, MAX_ENTRIES // max(1, n * (d + 1))))
    spread = np.ascontiguousarray(np.append(scale, scale_y)[box.noised] * math.sqrt(zero_prob))
    keys = [second_key(rng, copy) for copy in range(copies)]
    first, second = _Store(rows, box, 1), _Store(rows, box, copies)
    for start in range(0, n, kernel.CHUNK):
        stop = min(start + kernel.CHUNK, n)
        noised = first.noised(start, stop)
        first.keep(noised, start)
        moved = np.empty_like(noised)
        for key in keys:
            add_noise(
                noised, zero_prob=0.0, scale=spread, key=key, domain=DOUBLE_DOMAIN, first_row=start, n_threads=1,
                out=moved,
            )  # fmt: skip
            second.keep(moved, start)
        first.close()
        second.close()
    return Versions(
        plain=plain,
        first=first.shells(1.0 / zero_prob),
        second=second.shells(-(1.0 - zero_prob) / (zero_prob * copies)),
    )


class _Store:
    """Rows inside the largest finite level, collected chunk by chunk.

    Design: memory for every row is asked for at once and only what is written is ever touched; lists of pieces joined
    at the end would hold everything twice.
    """

    def __init__(self, rows: Rows, box: Box, copies: int) -> None:
        self.source, self.box = rows, box
        self.d, n = rows.features.shape
        self.has_y = bool(len(box.noised)) and int(box.noised[-1]) == self.d
        self.clean = [column for column in range(self.d) if column not in box.noised]
        self.features = np.empty((self.d, copies * n))
        self.response = np.empty(copies * n if rows.response is not None else 0)
        self.index = np.empty(copies * n, dtype=np.int32)
        self.slot = np.empty(copies * n, dtype=np.uint8)
        self.starts, self.size = [0], 0

    def noised(self, start: int, stop: int) -> FloatArray:
        """The noised columns of some rows of the source, shape (m, noised)."""
        out = np.empty((stop - start, len(self.box.noised)))
        for k, column in enumerate(self.box.noised):
            values = self.source.y if column == self.d else self.source.features[column]
            out[:, k] = values[start:stop]
        return out

    def keep(self, noised: FloatArray, start: int) -> None:
        """Store those of the rows from ``start`` on, with these values of the noised columns, that lie inside."""
        reach = self.box.level(noised)
        inside = np.flatnonzero(reach <= INSIDE[-1])
        index = start + inside
        to = slice(self.size, self.size + len(inside))
        moved = noised[inside]
        for column in self.clean:
            self.features[column, to] = self.source.features[column, start : start + len(noised)][inside]
        for k, column in enumerate(self.box.noised):
            if column < self.d:
                self.features[column, to] = moved[:, k]
        if self.source.response is not None:
            self.response[to] = moved[:, -1] if self.has_y else self.source.response[index]
        self.index[to] = index
        self.slot[to] = len(INSIDE) - np.searchsorted(INSIDE, reach[inside])
        self.size = to.stop

    def close(self) -> None:
        """The chunk is done."""
        self.starts.append(self.size)

    def shells(self, coefficient: float) -> Shells:
        index, weights = self.index[: self.size], self.source.weights
        rows = Rows(
            self.features[:, : self.size],
            None if self.source.response is None else self.response[: self.size],
            None if weights is None else weights[index],
            index,
        )
        return Shells(rows, np.array(self.starts, dtype=np.intp), self.slot[: self.size], a=coefficient)


@dataclass(frozen=True)
class Scores:
    """Sums over rows, fold by fold, of the joint scores of all versions at one theta.

    A row has a column for each level and parameter: level inf, then what each finite level adds to it (differences of
    versions, mean zero at every theta), and its weight last.

    Attributes
    ----------
    counts : (folds,) array
    sums : (folds, levels p + 1) array
    grams : (folds, levels p + 1, levels p + 1) array
        Sums of outer products.
    natural : (p, p) array
        Natural coordinates of the parameters (``Coordinates.matrix``), in which variances are added up and regressors
        compared: where a column has its zero, and its unit, do not matter.
    """

    counts: NDArray[np.intp]
    sums: FloatArray
    grams: FloatArray
    natural: FloatArray

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    @functools.cached_property
    def means(self) -> FloatArray:
        """Means of the columns of the levels, shape (levels p,)."""
        return np.asarray(self.sums.sum(axis=0)[:-1] / self.n)

    @functools.cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the columns of the levels over rows."""
        return np.asarray(self.grams.sum(axis=0)[:-1, :-1] / self.n - np.outer(self.means, self.means))

    def level_weights(self, hessian: FloatArray) -> FloatArray:
        """Scalar weights of the levels, summing to 1, that minimise the trace of the estimator's covariance
        measured in units of the present standard errors of the natural parameters."""
        levels, p = len(LEVELS), len(self.natural)
        inverse = np.linalg.inv(hessian) @ np.linalg.inv(self.natural).T
        # covariance of the influence functions, parameter by parameter, for blocks and then for levels
        blocks = np.einsum("kalb,aj,bj->jkl", self.covariance.reshape(levels, p, levels, p), inverse, inverse)
        sums = np.eye(levels)
        sums[:, 0] = 1.0
        each = sums @ blocks @ sums.T
        scale = np.diagonal(each, axis1=1, axis2=2).min(axis=1)
        moments = np.asarray((each / np.where(scale > 0.0, scale, 1.0)[:, None, None]).sum(axis=0))
        base = int(np.argmin(np.diag(moments)))
        others = [k for k in range(levels) if k != base]
        difference = moments[np.ix_(others, others)] - moments[others, base][:, None] - moments[base, others][None, :]
        difference += moments[base, base]
        right = moments[base, base] - moments[others, base]
        # levels that hardly differ make this singular; least squares with a cut-off leaves them alone
        share = np.linalg.lstsq(difference, right, rcond=1e-9)[0]
        weights = np.zeros(levels)
        weights[others] = share
        weights[base] = 1.0 - share.sum()
        return weights

    def mixture(self, weights: FloatArray) -> FloatArray:
        """The combination of the columns that is the weighted score, shape (levels p + 1, p)."""
        p = len(self.natural)
        return np.asarray(np.vstack([np.eye(p), *(weight * np.eye(p) for weight in weights[1:]), np.zeros((1, p))]))

    def residual(self, weights: FloatArray) -> FloatArray:
        """The combination that is the weighted score minus its regression on the differences."""
        return self._regressed(self.mixture(weights), self.covariance)

    def held_out(self, weights: FloatArray) -> list[FloatArray]:
        """``residual`` from the rows outside each fold (every ``FOLDS``-th row from the k-th on).

        Coefficients from the rows they are used on follow the noise of these rows: the estimate gets a bias of order
        1/n and its standard error is too small (least squares, residual noise .1 beside slope 3, 1000 rows: bias of one
        standard error, coverage 82 %).
        """
        out, total, gram = self.mixture(weights), self.sums.sum(axis=0)[:-1], self.grams.sum(axis=0)[:-1, :-1]
        found = []
        for count, sums, own in zip(self.counts, self.sums[:, :-1], self.grams[:, :-1, :-1], strict=True):
            kept, rest = self.n - int(count), total - sums
            mean = rest / kept
            found.append(self._regressed(out.copy(), (gram - own) / kept - np.outer(mean, mean)))
        return found

    def combine(self, mixes: Sequence[FloatArray], penalty: FloatArray | None = None) -> Combined:
        """Each fold with its own combination of the columns; ``penalty`` (p,) is added in the share of the row."""
        mixes = list(mixes) * (len(self.counts) // len(mixes))
        sums, meat = [], np.zeros_like(self.natural)
        for mix, own, gram in zip(mixes, self.sums, self.grams, strict=True):
            full = mix if penalty is None else np.vstack([mix[:-1], penalty])
            sums.append(own @ full)
            meat = meat + full.T @ gram @ full
        return Combined(self.counts, np.stack(sums), np.asarray(meat / self.n))

    def _regressed(self, out: FloatArray, covariance: FloatArray) -> FloatArray:
        levels, p = len(LEVELS), len(self.natural)
        natural = np.kron(np.eye(levels - 1), self.natural)
        gram, cross = natural.T @ covariance[p:, p:] @ natural, natural.T @ covariance[p:] @ out[:-1]
        spread = np.sqrt(np.maximum(np.diag(gram), 0.0))
        # levels that coincide but for a few rows: what these say of the coefficients is not true of other rows
        scale = np.where(spread > 1e-7 * float(spread.max(initial=0.0)), spread, np.inf)
        standard = gram / np.outer(scale, scale)
        out[p:-1] -= natural @ (np.linalg.lstsq(standard, cross / scale[:, None], rcond=CUTOFF)[0] / scale[:, None])
        return out


@dataclass(frozen=True)
class Combined:
    """Sums of combined row scores.

    Attributes
    ----------
    counts : (folds,) array
    sums : (folds, p) array
    meat : (p, p) array
        Mean outer product.
    """

    counts: NDArray[np.intp]
    sums: FloatArray
    meat: FloatArray

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    @property
    def mean(self) -> FloatArray:
        """Mean score, shape (p,)."""
        return np.asarray(self.sums.sum(axis=0) / self.n)
