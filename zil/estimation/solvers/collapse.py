"""Rows far from their kink as one: the exact end of a kinked fit on few rows.

In a piecewise linear loss a row is linear until its kink is met.  Rows that lie far from theirs at a point near the
minimum are added up, sign by sign, into one row each (the mean row with the summed weight); rows near theirs are kept.
As long as no far row changes its side the objective is the same function, for a difference of convex functions too;
whether one did is looked up afterwards, in every row.  The idea is that of preprocessing in quantile regression
(Portnoy and Koenker, Statistical Science 12, 1997).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zil._validate import FloatArray
from zil.estimation.objective.index import IndexObjective
from zil.estimation.objective.parts import Part
from zil.estimation.rows import Rows

# The objective with its far rows added up, and whether it is the objective at another point.
Collapsed = tuple[IndexObjective, Callable[[FloatArray], bool]]

# Samples of fewer rows are searched as they are.
LEAST = 20_000
# Rows that are kept as near, at least, and as a share of the sample.
NEAR, SHARE = 2_000, 0.01


def collapse(objective: IndexObjective, theta: FloatArray, share: float = SHARE) -> Collapsed | None:
    """The objective about ``theta`` with its far rows added up, and whether it is the objective at another point.

    ``share`` of the rows are kept as they are.  None where there is nothing to gain: a small sample, or rows with
    weights of both signs.
    """
    parts: list[Part] = []
    sides: list[tuple[Part, NDArray[np.bool_], NDArray[np.bool_]]] = []
    for part in objective.parts:
        rows = part.rows
        n = rows.features.shape[1]
        weights = rows.weights
        if n < LEAST or rows.index is not None or (weights is not None and (weights < 0.0).any()):
            return None
        if part.e != 0.0:
            parts.append(replace(part, a=0.0))
        if part.a == 0.0:
            continue
        t = objective.argument(part, theta)[0]
        size = np.abs(t)
        count = min(n - 1, max(NEAR, int(share * n)))
        far = size > np.partition(size, count)[count]
        above, below = far & (t > 0.0), far & (t < 0.0)
        groups = [above, below]
        if objective.loss.affine[3] != 0.0:  # the response turns the index: each of its values apart
            values = np.unique(rows.y)
            if len(values) > 2:
                return None
            groups = [side & (rows.y == value) for side in groups for value in values]
        kept = np.flatnonzero(~far)
        features, response, weight = [rows.features[:, kept]], [rows.y[kept]], [_weights(rows)[kept]]
        for group in groups:
            own = group * _weights(rows)
            total = float(own.sum())
            if total > 0.0:
                features.append((rows.features @ own / total)[:, None])
                response.append(np.array([rows.y @ own / total]))
                weight.append(np.array([total]))
        m = sum(len(each) for each in weight)
        few = Rows(np.concatenate(features, axis=1), np.concatenate(response), np.concatenate(weight), np.arange(m))
        parts.append(Part(few, a=part.a))
        sides.append((part, above, below))

    def holds(at: FloatArray) -> bool:
        for part, above, below in sides:
            t = objective.argument(part, at)[0]
            if (t[above] <= 0.0).any() or (t[below] >= 0.0).any():
                return False
        return True

    return replace(objective, parts=tuple(parts)), holds


def _weights(rows: Rows) -> FloatArray:
    return np.ones(rows.features.shape[1]) if rows.weights is None else rows.weights
