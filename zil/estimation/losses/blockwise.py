"""Losses that are evaluated in numpy, a block of rows at a time.

A compiled loss is one scalar function of one index.  Losses of a location (``Mean``), of a user's scalar function
(``Index``) or of anything at all (``Custom``) answer for whole blocks of rows instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zil._validate import FloatArray
from zil.estimation.losses.base import Loss, Term

# Central differences: relative step for a first derivative.
STEP = float(np.finfo(float).eps) ** (1 / 3)


@dataclass(frozen=True)
class Block:
    """Rows as a loss sees them, with the noise they carry.

    Attributes
    ----------
    x : (d, n) array
    y : (n,) array
    weights : (n,) array or None
    intercept : bool
        The first parameter is an intercept.
    noise : (p,) array
        Squared noise scale of each parameter's column; 0 for the intercept and clean columns.
    noise_response : float
        Squared noise scale of the response.
    """

    x: FloatArray
    y: FloatArray
    weights: FloatArray | None
    intercept: bool
    noise: FloatArray
    noise_response: float

    def columns(self) -> FloatArray:
        """Features with the intercept's ones before them, shape (p, n)."""
        return np.vstack([np.ones(self.x.shape[1]), self.x]) if self.intercept else self.x

    def index(self, theta: FloatArray) -> FloatArray:
        """``eta`` of every row, shape (n,)."""
        eta = self.x.T @ theta[int(self.intercept) :]
        return eta + theta[0] if self.intercept else eta

    def index_noise(self, theta: FloatArray) -> float:
        """``Q``: squared noise scale of the index (of the residual when the response is noised)."""
        return float(self.noise_response + self.noise @ (theta * theta))


@dataclass(frozen=True)
class RowLoss(Loss):
    """A loss that evaluates blocks of rows.

    Attributes
    ----------
    exact_rb : bool
        The Laplace-smoothed loss is known; else "rb" is DR averaged over antithetic copies of the second noise.
    """

    block: ClassVar[str] = "rows"

    @property
    def exact_rb(self) -> bool:
        return False

    @property
    def affine(self) -> tuple[float, float, float, float, float]:
        return (0.0, 0.0, 0.0, 0.0, 0.0)

    def rows(self, term: Term, block: Block, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (n,) and scores (n, p) of one term, row weights left out."""
        raise NotImplementedError

    def values(self, term: Term, block: Block, theta: FloatArray) -> FloatArray:
        """Values (n,) alone."""
        return self.rows(term, block, theta)[0]

    def sums(self, term: Term, block: Block, theta: FloatArray) -> FloatArray:
        """``[sum of values, sum of scores]`` of one term, shape (1 + p,), row weights included."""
        value, score = self.rows(term, block, theta)
        if block.weights is None:
            return np.concatenate([[value.sum()], score.sum(axis=0)])
        return np.concatenate([[block.weights @ value], block.weights @ score])

    def step_unit(self, y: FloatArray) -> float:
        """Natural unit of the index, for steps of differences."""
        del y
        return 1.0

    def hessian(self, term: Term, block: Block, theta: FloatArray) -> FloatArray | None:
        """Sum of second derivatives over the rows of one term, row weights included; None: take differences."""
        del term, block, theta
        return None


@dataclass(frozen=True)
class IndexRows(RowLoss):
    """A loss of one index: a term is ``F(eta, Q)`` per row, ``Q`` the squared noise scale of the index.

    Scores and second derivatives by theta follow from derivatives by eta and Q, and sums need no (n, p) array.
    """

    def terms(self, term: Term, eta: FloatArray, y: FloatArray, noise: float) -> tuple[FloatArray, ...]:
        """``F``, ``F_eta``, ``F_Q`` of every row at ``Q = noise``, each of shape (n,)."""
        raise NotImplementedError

    def bends(self, term: Term, eta: FloatArray, y: FloatArray, noise: float) -> tuple[FloatArray, ...] | None:
        """``F_eta,eta``, ``F_eta,Q``, ``F_QQ``, ``F_Q`` of every row; None: take differences."""
        del term, eta, y, noise
        return None

    def rows(self, term: Term, block: Block, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, slope, spread = self.terms(term, block.index(theta), block.y, block.index_noise(theta))
        score = block.columns().T * slope[:, None]
        return value, score + spread[:, None] * (2.0 * block.noise * theta)

    def values(self, term: Term, block: Block, theta: FloatArray) -> FloatArray:
        return self.terms(term, block.index(theta), block.y, block.index_noise(theta))[0]

    def sums(self, term: Term, block: Block, theta: FloatArray) -> FloatArray:
        value, slope, spread = self.terms(term, block.index(theta), block.y, block.index_noise(theta))
        if (weights := block.weights) is not None:
            value, slope, spread = value * weights, slope * weights, spread * weights
        gradient = 2.0 * float(spread.sum()) * block.noise * theta
        one = int(block.intercept)
        gradient[:one] += slope.sum()
        gradient[one:] += block.x @ slope
        return np.concatenate([[value.sum()], gradient])

    def hessian(self, term: Term, block: Block, theta: FloatArray) -> FloatArray | None:
        found = self.bends(term, block.index(theta), block.y, block.index_noise(theta))
        if found is None:
            return None
        weights = block.weights
        bend, cross, twice, spread = found if weights is None else (weights * each for each in found)
        design, grows = block.columns(), 2.0 * block.noise * theta
        across = np.outer(design @ cross, grows)
        by_noise = float(twice.sum()) * np.outer(grows, grows) + np.diag(2.0 * block.noise * float(spread.sum()))
        return np.asarray((design * bend) @ design.T + across + across.T + by_noise)
