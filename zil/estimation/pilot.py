"""The pilot of a plan: clean rows from which everything is predicted, read from a table or made up."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from scipy import special

from zil import _tables, _validate
from zil._validate import FloatArray
from zil.estimation.corrected import CorrectedLoss
from zil.estimation.fit import fit
from zil.estimation.losses.base import Loss
from zil.privacy.noise import Noise

PILOT_ROWS, FEWEST = 4000, 50


@dataclass(frozen=True)
class Pilot:
    """Clean rows, the estimate from them, and V; features are centred, which only the intercept notices."""

    loss: Loss
    features: FloatArray  # (N, d)
    response: Any
    names: list[str]
    theta: FloatArray
    hessian: FloatArray
    centre: FloatArray
    noised: list[int]  # columns of the noise: numbers of x, d for the response
    order: list[int]  # where each of them is in the bounds
    box: FloatArray  # (noised, 2), centred

    @classmethod
    def of(
        cls,
        loss: Loss,
        bounded: Sequence[Any],
        pairs: FloatArray,
        pilot: Any,
        y: Any,
        x: Sequence[Any] | None,
        rng: np.random.Generator,
    ) -> Pilot:
        read = synthetic(loss, bounded, pairs, y, x, rng) if pilot is None else _read(pilot, y, x)
        features, response, columns, y = read
        total = len(features)
        keep = np.arange(total)
        if total > PILOT_ROWS:
            keep = np.sort(rng.choice(total, PILOT_ROWS, replace=False))
        elif total < PILOT_ROWS:  # each row several times, with other noise
            keep = np.tile(keep, -(-PILOT_ROWS // total))
        centre = features.mean(axis=0)
        places = [*columns, y]
        noised = [k for k, name in enumerate(places) if name in bounded]
        if not noised:
            raise ValueError("no column of the fit has bounds: nothing would be noised")
        order = [list(bounded).index(places[k]) for k in noised]
        box = pairs[order] - np.append(centre, 0.0)[noised][:, None]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", _validate.ConvergenceWarning)
            found = fit(loss, features - centre, y=response) if columns else fit(loss, _one_column(response), y=0, x=[])
        if not found.converged:
            raise ValueError(f"the loss has no proper minimum on the pilot: {found.message}")
        chosen = features[keep] - centre
        hessian = _curvature(loss, chosen, response[keep], found.params)
        names = ["Intercept", *map(str, columns)]
        return cls(loss, chosen, response[keep], names, found.params, hessian, centre, noised, order, box)

    @property
    def table(self) -> FloatArray:
        """Features and, last, the response as numbers (0 where it is not noised), (N, d + 1)."""
        last = self.response if len(self.centre) in self.noised else np.zeros(len(self.features))
        return np.column_stack([self.features, last])

    def back(self) -> FloatArray:
        """Matrix from the parameters of centred features to those of the user's."""
        matrix = np.eye(len(self.theta))
        matrix[0, 1:] = -self.centre
        return matrix

    def theta_back(self) -> FloatArray:
        return np.asarray(self.back() @ self.theta)

    def sandwich(self, meat: FloatArray) -> FloatArray:
        """``V^-1 A V^-1`` for the user's parameters."""
        inverse = self.back() @ np.linalg.inv(self.hessian)
        return np.asarray(inverse @ meat @ inverse.T)

    def scores(
        self, rows: FloatArray, noise: Noise | None, method: str, response: Any = None
    ) -> Callable[[FloatArray], FloatArray]:
        """Row scores as a function of theta; ``rows`` (N, d + 1) hold the response last if it is noised."""
        if len(self.centre) in self.noised:
            response = rows[:, -1]
        elif response is None:
            response = self.response
        return corrected(self.loss, rows[:, :-1], response, noise, method).scores

    def step(self, direction: FloatArray) -> float:
        """How far to move along a direction for a difference quotient of scores: a kernel width if they have jumps."""
        if not self.loss.kinked:
            return 1e-3
        design = np.column_stack([np.ones(len(self.features)), self.features])
        return _width(design @ self.theta, self.response) / float(np.sqrt(((design @ direction) ** 2).mean()))

    def clean(self) -> FloatArray:
        """The sandwich of the original table."""
        scores = self.scores(self.table, None, "naive")(self.theta)
        return self.sandwich(np.cov(scores.T, bias=True).reshape(len(self.theta), -1))


def _read(pilot: Any, y: Any, x: Sequence[Any] | None) -> tuple[FloatArray, Any, list[Any], Any]:
    """Features, response and their names from a pilot table."""
    if y is None:
        raise ValueError("y is missing: which column of the pilot is the response?")
    present = _tables.column_names(pilot)
    columns = [name for name in present if name != y] if x is None else list(x)
    _tables.resolve(pilot, [*columns, y])
    total = _tables.n_rows(pilot)
    if total < FEWEST:
        raise ValueError(f"a pilot needs at least {FEWEST} rows, got {total}")
    features = _tables.to_float(pilot, columns) if columns else np.empty((total, 0))
    return features, _column(pilot, y), columns, y


def _one_column(response: Any) -> Any:
    return np.asarray(response, dtype=np.float64).reshape(-1, 1)


def _column(table: Any, name: Any) -> Any:
    """The response as an array, numbers or classes."""
    if isinstance(table, (np.ndarray, list, tuple)):
        array = np.asarray(table)
        return array if array.ndim == 1 else array[:, name]
    series = nw.from_native(table, eager_only=True).get_column(name)
    return series.to_numpy() if series.dtype.is_numeric() else np.array(series.to_list())


def _curvature(loss: Loss, features: FloatArray, response: Any, theta: FloatArray) -> FloatArray:
    """V on clean rows: the Hessian, or for a kinked loss a difference quotient of the gradient.

    The step moves the index by N^(-1/5) standard deviations of its error: of order the kernel width that Hall and
    Sheather's rule gives at this size.
    """
    objective = corrected(loss, features, response, None, "naive")
    if not loss.kinked:
        return np.asarray(objective.hessian(theta))
    design = np.column_stack([np.ones(len(features)), features])
    step = _width(design @ theta, response)
    result = np.empty((len(theta), len(theta)))
    for k, size in enumerate(np.sqrt((design**2).mean(axis=0)).tolist()):
        move = np.zeros(len(theta))
        move[k] = step / size
        result[k] = (objective.gradient(theta + move) - objective.gradient(theta - move)) / (2.0 * move[k])
    return 0.5 * (result + result.T)


def _width(index: FloatArray, response: Any) -> float:
    """Half the width of a kernel: N^(-1/5) standard deviations of the error, or of the index for classes."""
    error = index if np.unique(response).size == 2 else response - index
    return float(np.std(error)) * math.pow(len(index), -0.2)


def corrected(loss: Loss, features: FloatArray, response: Any, noise: Noise | None, method: str) -> CorrectedLoss:
    if features.shape[1] == 0:
        return CorrectedLoss(loss, _one_column(response), noise=noise, method=method)
    return CorrectedLoss(loss, features, response, noise=noise, method=method)


def synthetic(
    loss: Loss,
    bounded: Sequence[Any],
    pairs: FloatArray,
    y: Any,
    x: Sequence[Any] | None,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, list[Any], Any]:
    """A pilot where there is none: features, response, their names.

    Features are uniform on their bounds, the index has standard deviation 1, shared evenly by them; classes follow
    the logistic law, counts the Poisson law, other responses have a normal error of standard deviation 1.  A response
    that has bounds itself is mapped to their middle third.
    """
    if y is None and loss.location:
        y = bounded[0]
    columns = [name for name in bounded if name != y] if x is None else list(x)
    missing = [name for name in columns if name not in bounded]
    if missing:
        raise ValueError(f"without a pilot every column of x needs bounds; {missing[0]!r} has none")
    low, high = pairs[[list(bounded).index(name) for name in columns]].reshape(-1, 2).T
    own = pairs[list(bounded).index(y)] if y in bounded else None
    if not columns:
        if own is None:
            raise ValueError("no column of the fit has bounds: nothing would be noised")
        return np.empty((PILOT_ROWS, 0)), rng.uniform(float(own[0]), float(own[1]), size=PILOT_ROWS), columns, y
    unit = rng.uniform(size=(PILOT_ROWS, len(columns)))
    index = (unit - 0.5).sum(axis=1) * math.sqrt(12.0 / len(columns))
    if loss.classifier:
        response = (rng.uniform(size=PILOT_ROWS) < special.expit(index)).astype(np.float64)
    elif loss.block == "exponential":
        response = rng.poisson(np.exp(index)).astype(np.float64)
    else:
        response = index + rng.normal(size=PILOT_ROWS)
        if own is not None:
            response = np.clip(own.mean() + response * (own[1] - own[0]) / (6.0 * math.sqrt(2.0)), *own)
    return low + unit * (high - low), response, columns, "y" if y is None else y
