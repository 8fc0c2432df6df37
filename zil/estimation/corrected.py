"""``zil.CorrectedLoss``: the corrected sample objective as an object for any optimiser."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zil import _tables, _validate
from zil._validate import FloatArray
from zil.estimation import losses as loss_module
from zil.estimation import optimal, scl
from zil.estimation import sample as samples
from zil.estimation.losses.base import Loss
from zil.estimation.objective import truncated
from zil.estimation.objective.build import Second, check_method, index_objective
from zil.estimation.objective.index import IndexObjective
from zil.privacy.noise import Noise


class CorrectedLoss:
    """Corrected sample loss of released rows, as a function of the parameters.

    ``obj(theta)`` answers ``(value, gradient)``, so that ``scipy.optimize.minimize(obj, x0, jac=True)`` works.
    The value is the mean over rows of a function whose expectation, given the original rows, is the
    ordinary loss on the original rows (Lu, Chen, Qiu 2026, sections 4 and 6; RB beyond the paper:
    mathematics 4).

    Parameters
    ----------
    loss : Loss or str
        From ``zil.losses``.
    X1 : array or table of shape (n, d)
        Released rows.
    y : array-like of shape (n,) or (n, 1)
        Response; None with X1 of shape (n, 1) and a location loss (the column itself is the response).
    noise : zil.Noise, optional
        None: clean data, the ordinary M-estimator.  A dictionary scale goes by column name of X1 (and the
        name of y, if it is a named series); an array has one entry per column of X1, or one more for y.
    method : {"rb", "dr", "sdr", "sl", "naive", "scl", "optimal"}
        "optimal" adds truncated versions of the loss with weights from a pilot fit (mathematics 4.4); it needs bounds.
    X2 : array of shape (n, d) or (copies, n, d), optional
        Doubly randomised rows (with one more column for y if y is noised).  Default: drawn here.
    weights : array-like of shape (n,), optional
        Non-negative row weights.  A row of weight zero is no row: no second noise is drawn for it and its score is 0.
    intercept : bool
        The first parameter is an intercept.
    bounds : optional
        Public bounds of the columns, as in ``zil.fit``; used by ``method="optimal"`` only.
    copies : int
        Independent second noises to average (DR, SDR, SL; 1 means 8 for the truncated versions of "optimal").
    rng : None, int, SeedSequence, Generator or BitGenerator
        Source of the second noise; None: a fixed public stream, so that the same call gives the same numbers.
    n_threads : int, optional

    Raises
    ------
    ValueError, TypeError, SchemaError
        Input that the contract refuses; the message names the argument and the rule.

    Warns
    -----
    ConvergenceWarning
        The pilot fit of "optimal" found no minimum: the objective is one truncated version, unbiased but not combined.

    Examples
    --------
    >>> import numpy as np, zil
    >>> X = np.array([[0.0], [1.0], [2.0], [4.0]])
    >>> obj = zil.CorrectedLoss(zil.losses.Squared(), X, [1.0, 3.0, 5.0, 9.0])
    >>> value, gradient = obj(np.array([1.0, 2.0]))
    >>> float(value)
    0.0
    """

    def __init__(
        self,
        loss: Loss | str,
        X1: Any,
        y: Any = None,
        *,
        noise: Noise | None = None,
        method: str = "rb",
        X2: Any = None,
        weights: Any = None,
        intercept: bool = True,
        bounds: Any = None,
        copies: int = 1,
        rng: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.loss = loss_module.resolve(loss)
        copies = _validate.integer("copies", copies, 1)
        intercept = _validate.boolean("intercept", intercept)
        names = _tables.column_names(X1)
        n = _tables.n_rows(X1)
        features = _tables.to_float(X1, names)
        if n == 0:
            raise ValueError("X1 has no rows")
        column = getattr(y, "name", None)
        if y is None:
            if len(names) != 1:
                raise ValueError("y is missing")
            y, features = features[:, 0], np.empty((n, 0))
            column, names = names[0], []
        else:
            _tables.pair_by_label(X1, y, "X1 and y")
            samples.check_response("y", y, self.loss)
        samples.check_location(self.loss, names)
        coded, classes = self.loss.code_response(samples.column_vector("y", y, n), samples.class_order(y))
        scale, scale_y, zero_prob = samples.split_noise(noise, names, column, self.loss)
        self._sample = samples.Sample(
            x=features,
            y=coded,
            names=[str(name) for name in names],
            scale=scale,
            scale_y=scale_y,
            zero_prob=zero_prob,
            weights=samples._weights(weights, None, X1, n, coded if classes else None, classes),
            classes=classes,
            columns=[*names, column],
        )
        self.method = check_method(self.loss, method, self._sample)
        second = None if X2 is None else self._second(X1, X2)
        self._n = n
        self._kept: NDArray[np.intp] | None = None
        second = self._existing(second)
        used = self.loss
        if self.method == "scl":
            used, second = scl.prepared(used, self._sample, second, copies, intercept, rng, n_threads)
        self._objective = index_objective(
            used,
            self._sample,
            self.method,
            intercept=intercept,
            second=second,
            copies=copies,
            rng=rng,
            n_threads=n_threads,
        )
        if self.method == "optimal" and self._sample.zero_prob != 1.0:
            self._objective = self._combined(bounds, copies, second, intercept, rng, n_threads)

    def _existing(self, second: Second | None) -> Second | None:
        """Leave out the rows of weight zero, which are no rows, here and in the second noises."""
        sample = self._sample
        if sample.weights is None or (sample.weights > 0.0).all():
            return second
        self._kept = kept = np.flatnonzero(sample.weights)
        self._sample = replace(sample, x=sample.x[kept], y=sample.y[kept], weights=sample.weights[kept])
        return None if second is None else [(x2[kept], y2[kept]) for x2, y2 in second]

    def _combined(
        self, bounds: Any, copies: int, second: Any, intercept: bool, rng: Any, n_threads: int | None
    ) -> IndexObjective:
        """Support control variates with weights from a pilot fit."""
        sample = self._sample
        box = samples.public_box(sample, bounds)
        if box is None:
            raise ValueError("method 'optimal' needs the public bounds of the noised columns (bounds=)")
        if second is not None:
            raise ValueError("method 'optimal' draws its own copies of X2; give copies= and rng= instead")
        assert sample.zero_prob is not None
        objects = truncated.draw(
            self._objective,
            sample.zero_prob,
            sample.scale,
            sample.scale_y,
            box,
            copies if copies > 1 else truncated.COPIES,
            rng,
        )
        naive = index_objective(self.loss, sample, "naive", intercept=intercept, n_threads=n_threads)
        objective, reason = optimal.combined_objective(objects, naive)
        if reason:
            warnings.warn(
                f"the weights of the truncation levels need a pilot fit, which failed: {reason}; one level is used",
                _validate.ConvergenceWarning,
                stacklevel=3,
            )
        return objective

    def _second(self, X1: Any, X2: Any) -> Second:
        if not isinstance(X2, (np.ndarray, list, tuple)):
            _tables.same_rows(X1, X2, "X1 and X2")
            stack = _tables.to_float(X2, self._names_in(X1, X2), what="X2 column")[None]
        else:
            stack = _validate.finite_array("X2", X2, (1, 2, 3))
            stack = stack.reshape(1, -1, 1) if stack.ndim == 1 else stack[None] if stack.ndim == 2 else stack
        n, d = self._sample.x.shape
        noised_y = self._sample.scale_y > 0.0
        if stack.shape[1:] not in {(n, d), (n, d + noised_y)} or (noised_y and stack.shape[2] == d):
            rule = f"({n}, {d + noised_y})" + (", the response last" if noised_y else "")
            raise ValueError(f"X2 must have shape {rule}, or a stack of such copies, got {np.shape(X2)}")
        if noised_y:
            return [(np.ascontiguousarray(s[:, :-1]), np.ascontiguousarray(s[:, -1])) for s in stack]
        return [(s, self._sample.y) for s in stack]

    def _names_in(self, X1: Any, X2: Any) -> list[Any] | None:
        """X2's columns in the order of X1's, its response last; None if X1 has no names."""
        if isinstance(X1, (np.ndarray, list, tuple)):
            return None
        *names, response = self._sample.columns
        if not names:
            return None
        extra = [name for name in _tables.column_names(X2) if name not in names]
        if self._sample.scale_y > 0.0:
            names = [*names, response if response in extra or len(extra) != 1 else extra[0]]
        elif extra:
            raise _validate.SchemaError(f"X2 has columns that X1 does not have: {extra}")
        return names

    @property
    def n_params(self) -> int:
        """Number of parameters, intercept included (of a ``Custom`` loss: unless theta says otherwise)."""
        return self._objective.n_params

    def _at(self, theta: Any) -> tuple[FloatArray, IndexObjective]:
        """The checked parameters, and the objective of so many."""
        values = _validate.finite_array("theta", theta, 1)
        if self.loss.free:  # the loss takes as many parameters as it is given
            return values, replace(self._objective, size=len(values))  # type: ignore[call-arg]
        if len(values) != self.n_params:
            raise ValueError(f"theta must have {self.n_params} entries, got {len(values)}")
        return values, self._objective

    def __call__(self, theta: Any) -> tuple[float, FloatArray]:
        """Value and gradient (p,): means over rows.

        Raises
        ------
        ValueError
            The loss smoothed by the noise has no finite mean at ``theta`` (Poisson).
        """
        values, objective = self._at(theta)
        value, gradient = objective.value_gradient(values)
        if value == np.inf:
            raise ValueError(objective.undefined(values) or "the loss is infinite")
        return value, gradient

    def value(self, theta: Any) -> float:
        """Mean corrected loss."""
        return self(theta)[0]

    def gradient(self, theta: Any) -> FloatArray:
        """Gradient, shape (p,).  At a kink: the mean of both sides."""
        return self(theta)[1]

    def hessian(self, theta: Any) -> FloatArray:
        """Hessian, shape (p, p).

        Raises
        ------
        ValueError
            For a piecewise linear loss, which has none.
        """
        values, objective = self._at(theta)
        if objective.loss.kinked:
            raise ValueError(f"{self.loss.name} has kinks: its sample Hessian does not exist")
        return objective.hessian(values)

    def scores(self, theta: Any) -> FloatArray:
        """Joint score of each row, shape (n, p); their mean is the gradient."""
        values, objective = self._at(theta)
        scores = objective.scores(values)
        if self._kept is None:
            return scores
        out = np.zeros((self._n, scores.shape[1]))
        out[self._kept] = scores * (self._n / len(scores))
        return out

    def partial(self, theta: Any, rows: Any) -> tuple[float, FloatArray, float]:
        """Additive pieces of some rows: sum of values, sum of gradients, sum of weights.

        Pieces of disjoint row sets add up; value and gradient of the whole are the sums divided by the
        summed weights.

        Parameters
        ----------
        rows : slice, integer or boolean array
            No row twice.
        """
        wanted = np.zeros(self._n, dtype=bool)
        wanted[rows] = True
        if self._kept is not None:
            wanted = wanted[self._kept]
        parts = tuple(
            replace(part, rows=part.rows.take(wanted if part.rows.index is None else wanted[part.rows.index]))
            for part in self._objective.parts
        )
        weights = self._sample.weights
        total = float(wanted.sum() if weights is None else weights[wanted].sum())
        values, objective = self._at(theta)
        sums = replace(objective, parts=parts, total=1.0).sums(values)
        return float(sums[0]), sums[1:], total
