"""Whether a corrected objective falls to -infinity far out."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import optimize

from zil._validate import FloatArray
from zil.estimation.losses.base import Loss
from zil.estimation.losses.compiled import Asymptote, Squared
from zil.estimation.losses.user import Growth, Index
from zil.estimation.objective.coordinates import Coordinates
from zil.estimation.objective.index import IndexObjective
from zil.estimation.objective.parts import Part
from zil.estimation.rows import Rows

# Slopes far out, as shares of a typical one: what is rounding, and above what the lowest of one descent is trusted.
SLOPE_ROUNDING, STEEP = 1e-9, 0.25
# In large samples some MANY of the rows are asked first: a slope above SURE among them is far from 0 in all of them
# (its standard error is below .07 of a typical slope at zero_prob .05).
MANY, SURE = 100_000, 0.25
# Further descents where it is not.
DESCENTS = 24


def coercive(objective: IndexObjective) -> bool:
    """Convex and growing in every direction: there is a minimum, however far out (the design has full rank)."""
    loss, slopes = objective.loss, objective.loss.recession
    grows = isinstance(loss, Squared) or (not loss.classifier and slopes is not None and min(slopes) > 0.0)
    return grows and all(part.a >= 0.0 and part.c == 0.0 and part.e >= 0.0 for part in objective.parts)


def recession(objective: IndexObjective) -> IndexObjective | None:
    """The objective's behaviour far out, a positively homogeneous function; None where growth is not linear.

    ``mean of a phi_inf(t) + e u_inf(t)`` with ``phi_inf`` the asymptotic slopes and the response dropped.
    """
    if objective.ridge > 0.0 or any(part.c != 0.0 for part in objective.parts):
        return None
    far: Loss
    if isinstance(objective.loss, Index):
        responses = [part.rows.y for part in objective.parts]
        if not objective.loss.linear_growth(np.unique(np.concatenate(responses))):
            return None
        far = Growth(objective.loss)
    elif objective.loss.recession is not None:
        far = Asymptote(*objective.loss.affine[2:4], *objective.loss.recession)
    else:
        return None
    parts: list[Part] = [replace(part, q0=0.0) for part in objective.parts]
    return replace(objective, loss=far, parts=tuple(parts), noise_response=0.0)


def unbounded(objective: IndexObjective, coords: Coordinates, theta: FloatArray) -> bool:
    """True if a direction is found along which the objective falls to -infinity.

    The slope far out is minimised over directions, from the lowest of a few; where that comes near 0, from many more.
    Where hundreds of descents find a negative slope, this finds one in 85 to 100 % (median and logistic regression of
    150 to 300 rows, scale 1.5 to 2); at common sizes one descent settles it.
    """
    far = recession(objective)
    if far is None or all(part.a >= 0.0 and part.e >= 0.0 for part in far.parts):
        return False
    if objective.n_rows > 2 * MANY:
        thin = thinned(objective, objective.n_rows // MANY)
        own = recession(thin)
        if own is not None and _lowest_slope(thin, own, coords, theta) > SURE:
            return False
    return _lowest_slope(objective, far, coords, theta) < -SLOPE_ROUNDING


def thinned(objective: IndexObjective, step: int) -> IndexObjective:
    """The objective on every ``step``-th row of the sample."""
    parts = []
    for part in objective.parts:
        rows = part.rows
        if rows.index is not None:
            rows = rows.take(np.flatnonzero(rows.index % step == 0))
            assert rows.index is not None
            rows = replace(rows, index=rows.index // step)
        else:
            response = None if rows.response is None else rows.response[::step].copy()
            weights = None if rows.weights is None else rows.weights[::step].copy()
            rows = Rows(rows.features[:, ::step], response, weights)
        parts.append(replace(part, rows=rows))
    n = len(range(0, objective.n_rows, step))
    total = objective.total * (n / objective.n_rows)
    return replace(objective, parts=tuple(parts), n_rows=n, total=total)


def _lowest_slope(objective: IndexObjective, far: IndexObjective, coords: Coordinates, theta: FloatArray) -> float:
    """The lowest slope far out that is found, as a share of a typical one."""
    p = objective.n_params
    matrix = coords.matrix

    def slope(z: FloatArray) -> tuple[float, FloatArray]:
        """Along ``z/|z|`` in units of ``unit``, with its gradient by z."""
        length = float(np.linalg.norm(z)) or 1.0
        value, gradient = far.value_gradient(matrix @ z)
        gradient = matrix.T @ gradient - (value / length) * (z / length)
        return value / (length * unit), gradient / (length * unit)

    directions = [*np.eye(p), *_weak_directions(objective, matrix)]
    here = coords.z(theta)
    if np.linalg.norm(here) > 0:
        directions.append(here / np.linalg.norm(here))
    starts = [sign * z for z in directions for sign in (1.0, -1.0)]
    unit = 1.0
    slopes = [slope(z)[0] for z in starts]
    unit = float(np.median(slopes))
    if min(slopes) < 0.0 or unit <= 0.0:
        return -math.inf if min(slopes) < 0.0 else 0.0
    lowest = math.inf
    more = np.random.Generator(np.random.Philox(0)).standard_normal((DESCENTS, p))
    for z in (starts[int(np.argmin(slopes))], *more):
        found = optimize.minimize(slope, z, jac=True, method="L-BFGS-B", options={"ftol": 1e-4, "maxiter": 40})
        lowest = min(lowest, float(found.fun))
        if lowest < -SLOPE_ROUNDING or lowest > STEEP:
            break
    return lowest


def _weak_directions(objective: IndexObjective, matrix: FloatArray) -> list[FloatArray]:
    """Eigenvectors of the corrected second moments with the smallest eigenvalues."""
    parts = tuple(replace(part, q0=0.0) for part in objective.parts)
    square = IndexObjective(
        Squared(), parts, objective.noise, 0.0, objective.intercept, objective.n_rows, objective.total
    )
    moments = matrix.T @ square.hessian(np.zeros(objective.n_params)) @ matrix
    _, vectors = np.linalg.eigh(moments)
    return [vectors[:, 0], vectors[:, min(1, len(vectors) - 1)]]
