"""What the label states of a mechanism's curves."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from zil.privacy import shifts as formulas
from zil.privacy.tradeoff import TradeOff, tradeoff
from zil.release import metadata as facts

EPSILONS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
ALPHAS = (0.001, 0.01, 0.05, 0.1)


def curve(dim: int, c: float, zero_prob: float, sharp: bool = True) -> TradeOff:
    """The exact curve within the range in which it is tested, else (or if not ``sharp``) the limit curve."""
    low, high = formulas.EXACT_RANGE
    exact = sharp and (dim == 1 or (dim <= formulas.EXACT_DIM and low <= c <= high))
    return tradeoff(dim if exact else math.inf, c, zero_prob)


def composed(spent: list[dict[str, Any]]) -> dict[str, Any]:
    """What several releases of the same rows give away together, from their dimensions, shifts and zero_prob."""
    if len(spent) == 1:
        return {}
    result = {}
    for unit in facts.UNITS:
        curves = [curve(one["dim"], one["shift"][unit], one["zero_prob"]) for one in spent]
        result[unit] = describe(functools.reduce(lambda f, g: f.compose(g), curves))
    mechanisms = [{key: one[key] for key in ("dim", "zero_prob", "shift")} for one in spent]
    return {"repeat": {"releases_of_these_rows": len(spent), "composed": result, "mechanisms": mechanisms}}


def describe(f: TradeOff) -> dict[str, Any]:
    """Points of a curve for the label; powers are upper bounds."""
    epsilons, alphas = np.array(EPSILONS), np.array(ALPHAS)
    return {
        "epsilon_delta": np.column_stack([epsilons, np.minimum(f.delta(epsilons), 1.0)]).tolist(),
        "attack": np.column_stack([alphas, 1.0 - f.bounds(alphas)[0]]).tolist(),
        "advantage": f.advantage,
    }
