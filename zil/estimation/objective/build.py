"""From a sample and a method to the objective: the terms of the correction, each with its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zil import _validate
from zil._validate import FloatArray
from zil.estimation.losses.base import Loss
from zil.estimation.losses.blockwise import RowLoss
from zil.estimation.losses.compiled import Quantile
from zil.estimation.objective import corrections
from zil.estimation.objective.index import IndexObjective
from zil.estimation.objective.parts import Part
from zil.estimation.objective.rough import RoughObjective
from zil.estimation.objective.rowwise import RowObjective
from zil.estimation.rows import Rows
from zil.estimation.sample import Sample
from zil.privacy.doubling import double

# Doubly randomised rows: (x2, y2) of each second noise.
Second = Sequence[tuple[FloatArray, FloatArray]]
# Second noises averaged by "rb" where the smoothed loss is not known.
RB_COPIES = 16


def check_method(loss: Loss, method: str, sample: Sample) -> str:
    """The method, once it is known to fit the loss and the noise; "naive" where there is no noise.

    Raises
    ------
    ValueError
        Unknown method, SL or SDR for a loss that is not twice differentiable, DR or RB at ``zero_prob = 0``.
    """
    method = _validate.choice("method", method, corrections.METHODS)
    loss.check_response(sample.y, sample.scale_y > 0.0)
    if not sample.noised or sample.zero_prob is None:
        return "naive"
    if method == "scl":
        if not isinstance(loss, Quantile):
            raise ValueError(f"method 'scl' is for the Quantile loss only, got {loss.name}; use 'rb' or 'dr'")
        return method
    if method in corrections.NEED_SMOOTH and not loss.smooth:
        raise ValueError(
            f"method {method!r} differentiates the loss twice, and {loss.name} is not twice differentiable; "
            "use 'rb' or 'dr'"
        )
    loss.check_method(method, sample.y, sample.scale_y > 0.0)
    corrections.correction(method, sample.zero_prob)
    return method


def stand_in(loss: Loss, method: str, copies: int | None) -> str:
    """What stands for RB where the smoothed loss is not known; "" where it is RB itself."""
    if method not in ("rb", "optimal") or not isinstance(loss, RowLoss) or loss.exact_rb:
        return ""
    number = 2 * ((max(copies or 1, RB_COPIES) + 1) // 2)
    return (
        f"rb is approximate: {loss.name} has no known mean over the noise, DR averaged over {number} second noises in "
        "pairs of opposite sign stands for it"
    )


def index_objective(
    loss: Loss,
    sample: Sample,
    method: str,
    *,
    intercept: bool = True,
    second: Second | None = None,
    copies: int = 1,
    ridge: float = 0.0,
    rng: Any = None,
    n_threads: int | None = None,
    size: int = -1,
) -> IndexObjective:
    """Terms of one method on one sample.

    Parameters
    ----------
    second : sequence of (x2, y2), optional
        Doubly randomised rows; default: drawn here (``copies`` of them) if the method needs them.
    size : int
        Number of parameters of a loss that is free to choose it; -1: intercept and coefficients.
    """
    zero_prob = 1.0 if sample.zero_prob is None else sample.zero_prob
    kind: type[IndexObjective] = IndexObjective
    if isinstance(loss, RowLoss):
        kind = RoughObjective if loss.rough else RowObjective
        if method in ("rb", "optimal") and not loss.exact_rb:
            # no smoothed loss: the mean of DR over many second noises, in pairs of opposite sign
            method = "dr"
            if second is None and sample.noised:
                second = antithetic(sample, max(copies, RB_COPIES), rng, n_threads)
    rows = corrections.correction(method, zero_prob)
    first = sample.rows
    parts: list[Part] = []
    for row in rows:
        if not row.doubled:
            parts.append(Part(first, a=row.a, c=row.c, e=row.e, kappa=row.kappa))
            continue
        if second is None:
            second = doubled(sample, copies, rng, n_threads)
        share = 1.0 / len(second)
        for x2, y2 in second:
            own = Rows(x2.T, np.ascontiguousarray(y2), sample.weights)
            parts.append(Part(own, a=row.a * share, c=row.c * share, e=row.e * share, kappa=row.kappa))
    noise = np.concatenate([np.zeros(int(intercept)), sample.scale**2])
    extra = {"size": size} if issubclass(kind, RowObjective) else {}
    return kind(
        loss=loss,
        parts=tuple(parts),
        noise=noise,
        # the contrast of a residual; a response that is not part of the argument enters linearly or not at all
        noise_response=sample.scale_y**2 if sample.scale_y > 0.0 and loss.residual(sample.y) else 0.0,
        intercept=intercept,
        n_rows=len(sample.y),
        total=float(len(sample.y) if sample.weights is None else sample.weights.sum()),
        ridge=ridge,
        noise_share=1.0 if rows[0].doubled else 1.0 - zero_prob,
        n_threads=n_threads,
        **extra,
    )


def doubled(
    sample: Sample, copies: int, rng: Any = None, n_threads: int | None = None
) -> list[tuple[FloatArray, FloatArray]]:
    """``copies`` doubly randomised versions of the sample: (x2, y2) each; one W per row serves x and y."""
    zero_prob = 1.0 if sample.zero_prob is None else sample.zero_prob
    if sample.scale_y == 0.0:
        stack = double(sample.x, zero_prob, sample.scale, copies=copies, rng=rng, n_threads=n_threads)
        return [(x2, sample.y) for x2 in stack]
    joined = np.column_stack([sample.x, sample.y])
    scale = np.append(sample.scale, sample.scale_y)
    stack = double(joined, zero_prob, scale, copies=copies, rng=rng, n_threads=n_threads)
    return [(np.ascontiguousarray(both[:, :-1]), np.ascontiguousarray(both[:, -1])) for both in stack]


def antithetic(
    sample: Sample, copies: int, rng: Any = None, n_threads: int | None = None
) -> list[tuple[FloatArray, FloatArray]]:
    """Doubly randomised versions in pairs ``x1 + S``, ``x1 - S``; an odd count is rounded up."""
    half = doubled(sample, (copies + 1) // 2, rng, n_threads)
    noised_y = sample.scale_y > 0.0
    return [
        pair
        for x2, y2 in half
        for pair in ((x2, y2), (2.0 * sample.x - x2, 2.0 * sample.y - y2 if noised_y else sample.y))
    ]
