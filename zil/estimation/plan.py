"""One fit with everything decided: the rows, the loss, the method and the options.

``fit`` makes a plan and estimates it once; the bootstrap estimates the same plan with other row weights,
and several quantile levels share one sample.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zil._validate import FloatArray
from zil.estimation import optimal, scl
from zil.estimation.inference import covariance
from zil.estimation.losses.base import Loss
from zil.estimation.objective import truncated
from zil.estimation.objective.build import index_objective
from zil.estimation.objective.index import IndexObjective
from zil.estimation.sample import Box, Sample
from zil.estimation.solvers.minimise import minimise
from zil.estimation.solvers.outcome import Solution

Limits = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Pieces:
    """What the sandwich is made of.

    ``scores()`` gives the joint row scores (n, p), for those who need them row by row; ``meat(natural)`` their mean
    outer product in the coordinates ``natural``; ``hessian`` is the estimate of V (p, p), ``smooth`` the smooth
    objective behind it.
    """

    scores: Callable[[], FloatArray]
    meat: Callable[[FloatArray], FloatArray]
    hessian: FloatArray
    smooth: IndexObjective


@dataclass(frozen=True)
class Estimate:
    """What a plan came to.

    ``pieces()`` answers what the sandwich is made of, once; ``scores_at(theta)`` gives the row scores (n, p) of the
    equation that was solved, ridge apart, anywhere.
    """

    objective: IndexObjective
    solution: Solution
    pieces: Callable[[], Pieces]
    scores_at: Callable[[FloatArray], FloatArray]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Arguments of ``zil.fit`` after all checks.

    Attributes
    ----------
    method : str
        The one used: "naive" where nothing is noised.
    copies : int or None
        None: the default of the method.
    size : int
        Number of parameters if they are not an intercept and coefficients, else -1.
    shift : (d,) array or None
        What was taken off the columns of x, for the intercept to take up.
    order : (d,) array or None
        Place in the user's ``x`` of each column of the sample; None: the same.
    """

    loss: Loss
    sample: Sample
    public: Box | None
    method: str
    intercept: bool = True
    ridge: float = 0.0
    copies: int | None = None
    start: FloatArray | None = None
    limits: Limits | None = None
    rng: Any = None
    n_threads: int | None = None
    size: int = -1
    shift: FloatArray | None = None
    order: NDArray[np.intp] | None = None

    def _asked(self, of_columns: Sequence[Any]) -> list[Any]:
        """What belongs to the columns of the sample, in the order in which the user named them."""
        places = range(len(of_columns)) if self.order is None else np.argsort(self.order)
        return [of_columns[k] for k in places]

    @property
    def columns(self) -> tuple[Any, ...]:
        """Keys of the features in the table, as the user ordered them."""
        return tuple(self._asked(self.sample.columns[:-1]))

    @property
    def names(self) -> list[str]:
        """Names of the parameters."""
        own = [*(["Intercept"] if self.intercept else []), *self._asked(self.sample.names)]
        return own if self.size in (-1, len(own)) else [f"theta{k}" for k in range(self.size)]

    def back(self, p: int) -> FloatArray:
        """Matrix (p, p) from the parameters of the shifted columns, in their order, to those of the user's."""
        matrix = np.eye(p)
        if self.shift is not None:
            matrix[0, 1:] = -self.shift
        if self.order is not None:
            one = int(self.intercept)
            matrix[one + self.order] = matrix[one:].copy()
        return matrix

    def build(self, method: str) -> IndexObjective:
        """The objective of one method."""
        loss, second = self.loss, None
        if method == "scl":
            loss, second = scl.prepared(
                loss, self.sample, None, self.copies or 1, self.intercept, self.rng, self.n_threads
            )
        return index_objective(
            loss,
            self.sample,
            method,
            intercept=self.intercept,
            second=second,
            copies=self.copies or 1,
            ridge=self.ridge,
            rng=self.rng,
            n_threads=self.n_threads,
            size=self.size,
        )

    @property
    def n_rows(self) -> int:
        """Rows of the sample."""
        return len(self.sample.y)

    def refit(self, counts: FloatArray, start: FloatArray) -> FloatArray | None:
        """The estimate for a sample that holds row i ``counts[i]`` times; one thread, as many run at once."""
        own = self.sample.weights
        weights = counts if own is None else counts * own
        again = replace(self, sample=replace(self.sample, weights=weights), start=start, n_threads=1)
        solution = again.estimate().solution
        return solution.theta if solution.converged else None

    def estimate(self) -> Estimate:
        """Find the minimum."""
        sample, used = self.sample, self.method
        naive = self.build("naive")
        objective = naive if used == "naive" else self.build(used)
        levels = None
        atom = sample.zero_prob or 0.0
        if self.public is not None and 0.0 < atom < 1.0 and (used == "optimal" or self.loss.kinked or self.loss.rough):
            plain = objective if used == "optimal" else self.build("rb")
            copies = self.copies or truncated.COPIES
            levels = truncated.draw(plain, atom, sample.scale, sample.scale_y, self.public, copies, self.rng)
        if used == "optimal" and levels is not None:
            best = optimal.fit(levels, start=self.start, naive=naive, box=self.limits)

            def combined() -> Pieces:
                theta = best.solution.theta
                penalty = objective.penalty(theta)
                meat = best.combined(penalty).meat

                def rows() -> FloatArray:
                    mixes = [np.vstack([mix[:-1], penalty]) for mix in best.mixes]
                    return levels.rows(theta, best.width, mixes)

                return Pieces(rows, lambda natural: natural.T @ meat @ natural, best.hessian(), best.smooth)

            def combined_at(theta: FloatArray) -> FloatArray:
                return levels.rows(theta, best.width, best.mixes)

            return Estimate(objective, best.solution, functools.cache(combined), combined_at, best.notes())
        first = None if objective is naive else naive
        solution = minimise(objective, start=self.start, box=self.limits, naive=first)

        def pieces() -> Pieces:
            theta = solution.theta
            rows = covariance.row_objective(objective, theta)
            if levels is None or used == "naive":
                smooth = covariance.curved(objective, theta)
            elif self.loss.rough:  # V is the same for every corrected version: take the one with the least noise
                smooth = levels.level(len(truncated.LEVELS) - 1)
            else:
                smooth = optimal.box_curved(levels, theta, rows.meat(theta, penalised=False))
            return Pieces(
                lambda: self._penalised(rows.scores(theta), objective, theta),
                lambda natural: covariance.natural_meat(rows, theta, natural),
                smooth.hessian(theta),
                smooth,
            )

        return Estimate(objective, solution, functools.cache(pieces), objective.scores)

    def _penalised(self, scores: FloatArray, objective: IndexObjective, theta: FloatArray) -> FloatArray:
        """Row scores with the ridge term: it is these whose mean is 0 at the estimate, and whose spread counts."""
        if self.ridge == 0.0:
            return scores
        weights = self.sample.weights
        share = np.ones(len(scores)) if weights is None else weights * (len(scores) / weights.sum())
        return scores + np.multiply.outer(share, objective.penalty(theta))


def influence(scores: FloatArray, hessian: FloatArray) -> FloatArray:
    """``-V^-1 score / n`` of each row, shape (n, p); the covariance is the sum of outer products."""
    return np.asarray(-np.linalg.solve(hessian, scores.T).T / len(scores))
