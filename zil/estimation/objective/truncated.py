"""Truncated versions of a corrected objective, and their joint scores (mathematics 4.4).

Every version truncates the loss outside ``k`` times the public box, ``l(x) 1{x in k box}``; optimal.py says why, and
combines them.  The level ``inf`` is RB; finite levels are DR with ``copies`` second noises (a truncated loss has no
closed form).

Design: levels are nested, so rows sorted from the inside out hold every level as a prefix: no level copies rows, a
gradient of all versions costs one pass, and scores are added up shell by shell.  Rows outside every finite level
never reach a kernel.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from zil._validate import FloatArray
from zil.estimation.objective.coordinates import coordinates
from zil.estimation.objective.index import IndexObjective
from zil.estimation.objective.parts import Part
from zil.estimation.rows import Rows
from zil.estimation.sample import Box
from zil.privacy.doubling import double

LEVELS = (math.inf, 2.5, 1.6, 1.25, 1.0)
INSIDE = LEVELS[:0:-1]
# Parts of the sample whose regression coefficients come from the other parts.
FOLDS = 10
# Least eigenvalue, as a share of the largest, of the standardised regressors that is used.
CUTOFF = 0.05
# Copies of the second noise; fewer when rows times columns times copies would not fit in memory comfortably.
COPIES = 8
MAX_ENTRIES = 400_000_000


@dataclass(frozen=True)
class Shells:
    """The rows of a noisy data set inside the largest finite level, sorted from the inside out.

    Levels are nested, so the rows inside one are a prefix: no level copies rows.

    Attributes
    ----------
    rows : Rows
    ends : (levels - 1,) array
        How many rows lie inside each finite level, smallest level first.
    coefficient : float
        Weight of the uncorrected loss on these rows.
    """

    rows: Rows
    ends: NDArray[np.intp]
    coefficient: float

    def part(self, weights: FloatArray) -> Part | None:
        """The rows under ``weights`` of the levels (levels,); None if no row counts."""
        own = np.cumsum(weights[1:])[::-1]
        counts = np.diff(self.ends, prepend=0)
        used = np.flatnonzero((own != 0.0) & (counts > 0))
        if not len(used):
            return None
        kept = Part(self.rows, a=self.coefficient).block(slice(0, int(self.ends[used[-1]])))
        total = np.repeat(own, counts)[: self.ends[used[-1]]]
        if kept.rows.weights is not None:
            total = total * kept.rows.weights
        return replace(kept, rows=replace(kept.rows, weights=total))

    @functools.cached_property
    def parts(self) -> list[Part]:
        """Rows between one level and the next, from the inside out."""
        whole = Part(replace(self.rows, index=None), a=self.coefficient)
        return [whole.block(slice(int(a), int(b))) for a, b in itertools.pairwise([0, *self.ends])]

    def adder(self, n_rows: int) -> sparse.csr_array:
        """Adds up what a row of the sample has in each shell, shape (n_rows levels, rows); outermost level first."""
        levels, size = len(LEVELS), int(self.ends[-1])
        shell = np.repeat(np.arange(levels - 1, 0, -1), np.diff(self.ends, prepend=0))
        assert self.rows.index is not None
        place = self.rows.index * levels + shell
        return sparse.csr_array((np.ones(size), (place, np.arange(size))), shape=(n_rows * levels, size))


def _sorted(rows: Rows, reach: FloatArray, coefficient: float) -> Shells:
    """Rows that lie within ``reach`` times the box, from the inside out."""
    shell = np.searchsorted(INSIDE, reach)
    order = np.argsort(shell, kind="stable")
    ends = np.searchsorted(shell[order], np.arange(len(INSIDE)), side="right")
    return Shells(rows.take(order), ends, coefficient)


@dataclass(frozen=True)
class Versions:
    """All truncated versions of one corrected objective.

    Attributes
    ----------
    plain : IndexObjective
        Level inf: RB.
    first, second : Shells
        X1 and the copies of X2.
    """

    plain: IndexObjective
    first: Shells
    second: Shells

    @functools.cached_property
    def adders(self) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Of both data sets: the scores are needed at several points."""
        return self.first.adder(self.plain.n_rows), self.second.adder(self.plain.n_rows)

    def combined(self, weights: FloatArray) -> IndexObjective:
        """``sum_k weights[k] * objective at LEVELS[k]``; weights sum to 1."""
        parts = [
            replace(part, a=part.a * weights[0], e=part.e * weights[0])
            for part in self.plain.parts
            if weights[0] != 0.0
        ]
        parts += [part for shells in (self.first, self.second) if (part := shells.part(weights)) is not None]
        # positive parts first: the solvers read scale and spread off the first one
        parts.sort(key=lambda part: part.a <= 0.0)
        # inside a box the noise is cut off: its variance is not to be taken off the spread of the rows
        return replace(self.plain, parts=tuple(parts), noise_share=0.0)

    def level(self, k: int) -> IndexObjective:
        """The objective at ``LEVELS[k]``."""
        return self.combined(np.eye(len(LEVELS))[k])

    def gradients(self, theta: FloatArray, width: float = 0.0) -> FloatArray:
        """Gradient of every version, shape (levels, p), ridge apart; ``width`` > 0 smooths the loss."""
        sums = np.zeros((len(LEVELS), self.plain.n_params))
        sums[0] = _smoothed(self.plain, width).sums(theta)[1:]
        for shells in (self.first, self.second):
            for k, part in enumerate(shells.parts):
                if part.rows.features.shape[1]:
                    sums[-1 - k] += _smoothed(replace(self.plain, parts=(part,)), width).sums(theta)[1:]
        sums[:0:-1] = np.cumsum(sums[:0:-1], axis=0)
        return sums / self.plain.total

    def scores(self, theta: FloatArray, width: float = 0.0) -> Scores:
        """Joint row scores at every level; ``width`` > 0 smooths the loss."""
        n, p, levels = self.plain.n_rows, self.plain.n_params, len(LEVELS)
        blocks = np.zeros((n, levels, p))
        blocks[:, 0] = _smoothed(self.plain, width).scores(theta)
        for shells, add in zip((self.first, self.second), self.adders, strict=True):
            size = int(shells.ends[-1])
            if not size:
                continue
            part = Part(replace(shells.rows, index=None), a=shells.coefficient * n / self.plain.total)
            alone = replace(self.plain, parts=(part,), n_rows=size, total=float(size))
            blocks += (add @ _smoothed(alone, width).scores(theta)).reshape(n, levels, p)
        for k in range(levels - 2, 0, -1):
            blocks[:, k] += blocks[:, k + 1]
        blocks[:, 1:] -= blocks[:, :1]
        return Scores(blocks, coordinates(self.plain).matrix)


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
    """Draw the second noises and keep what lies inside the largest finite level.

    Parameters
    ----------
    plain : IndexObjective
        The RB objective; its first part holds X1.
    scale, scale_y : noise scales of x's columns (d,) and of the response
    """
    rows = plain.parts[0].rows
    features, response = rows.features, rows.response
    d, n = features.shape
    joined = np.empty((n, d + 1))
    joined[:, :d] = features.T
    joined[:, d] = 0.0 if response is None else response
    scales = np.append(scale, scale_y)
    copies = max(2, min(copies, MAX_ENTRIES // max(1, n * (d + 1))))
    largest = LEVELS[1]
    reach = box.level(joined[:, box.noised])
    near = np.flatnonzero(reach <= largest)
    kept_rows, kept_reach, kept_index = [], [], []
    for copy in range(copies):
        x2 = double(joined, zero_prob, scales, first_copy=copy, rng=rng)[0]
        distance = box.level(x2[:, box.noised])
        inside = np.flatnonzero(distance <= largest)
        kept_rows.append(x2[inside])
        kept_reach.append(distance[inside])
        kept_index.append(inside)
    stacked = np.concatenate(kept_rows)
    index = np.concatenate(kept_index)
    weights = rows.weights
    second = Rows(
        np.ascontiguousarray(stacked[:, :d].T),
        np.ascontiguousarray(stacked[:, d]) if scale_y > 0.0 or response is None else response[index],
        None if weights is None else weights[index],
        index,
    )
    return Versions(
        plain=plain,
        first=_sorted(rows.take(near), reach[near], 1.0 / zero_prob),
        second=_sorted(second, np.concatenate(kept_reach), -(1.0 - zero_prob) / (zero_prob * copies)),
    )


@dataclass(frozen=True)
class Scores:
    """Joint row scores of all versions at one theta.

    Attributes
    ----------
    blocks : (n, levels, p) array
        Level inf, then what each finite level adds to it: differences of versions, mean zero at every theta.
    natural : (p, p) array
        Natural coordinates of the parameters (``Coordinates.matrix``), in which variances are added up and regressors
        compared: where a column has its zero, and its unit, do not matter.
    """

    blocks: FloatArray
    natural: FloatArray

    @property
    def columns(self) -> FloatArray:
        """The blocks side by side, shape (n, levels p)."""
        return self.blocks.reshape(len(self.blocks), -1)

    @functools.cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the columns over rows."""
        mean = self.columns.mean(axis=0)
        return np.asarray(self.columns.T @ self.columns / len(self.blocks) - np.outer(mean, mean))

    def level_weights(self, hessian: FloatArray) -> FloatArray:
        """Scalar weights of the levels, summing to 1, that minimise the trace of the estimator's covariance
        measured in units of the present standard errors of the natural parameters."""
        levels, p = self.blocks.shape[1:]
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
        """The combination of the columns that is the weighted score, shape (levels p, p)."""
        p = self.blocks.shape[2]
        return np.asarray(np.vstack([np.eye(p), *(weight * np.eye(p) for weight in weights[1:])]))

    def residual(self, weights: FloatArray) -> FloatArray:
        """The combination that is the weighted score minus its regression on the differences, shape (levels p, p)."""
        return self._regressed(self.mixture(weights), self.covariance)

    def held_out(self, weights: FloatArray) -> list[FloatArray]:
        """``residual`` from the rows outside each fold (every ``FOLDS``-th row from the k-th on).

        Coefficients from the rows they are used on follow the noise of these rows: the estimate gets a bias of order
        1/n and its standard error is too small (least squares, residual noise .1 beside slope 3, 1000 rows: bias of one
        standard error, coverage 82 %).
        """
        columns, out = self.columns, self.mixture(weights)
        n, total = len(columns), self.columns.sum(axis=0)
        gram = self.covariance * n + np.outer(total, total) / n
        found = []
        for k in range(FOLDS):
            fold = columns[k::FOLDS]
            kept, rest = n - len(fold), total - fold.sum(axis=0)
            mean = rest / kept
            found.append(self._regressed(out.copy(), (gram - fold.T @ fold) / kept - np.outer(mean, mean)))
        return found

    def combine(self, mixes: Sequence[FloatArray]) -> FloatArray:
        """Row scores (n, p), each fold with its own combination of the columns."""
        columns = self.columns
        out = np.empty((len(columns), self.blocks.shape[2]))
        for k, mix in enumerate(mixes):
            out[k :: len(mixes)] = columns[k :: len(mixes)] @ mix
        return out

    def _regressed(self, out: FloatArray, covariance: FloatArray) -> FloatArray:
        levels, p = self.blocks.shape[1:]
        natural = np.kron(np.eye(levels - 1), self.natural)
        gram, cross = natural.T @ covariance[p:, p:] @ natural, natural.T @ covariance[p:] @ out
        spread = np.sqrt(np.maximum(np.diag(gram), 0.0))
        # levels that coincide but for a few rows: what these say of the coefficients is not true of other rows
        scale = np.where(spread > 1e-7 * float(spread.max(initial=0.0)), spread, np.inf)
        standard = gram / np.outer(scale, scale)
        out[p:] -= natural @ (np.linalg.lstsq(standard, cross / scale[:, None], rcond=CUTOFF)[0] / scale[:, None])
        return out
