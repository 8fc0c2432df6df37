"""Several trade-off functions in one picture (needs matplotlib, imported on demand by ``TradeOff.plot``)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zil.privacy.tradeoff import TradeOff, eps_delta_tradeoff


def compare(
    curves: Mapping[str, TradeOff] | Sequence[TradeOff], *, epsilons: Sequence[float] = (), ax: Any = None
) -> Any:
    """Draw several curves, the line of pure guessing, and the (epsilon, delta) polygons of the first.

    Parameters
    ----------
    curves : mapping of names to TradeOff, or a sequence of TradeOff
        A higher curve protects better.
    epsilons : sequence of float >= 0
        For each, the (epsilon, delta) polygon that the first curve satisfies; the curve is their
        upper envelope.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If there is no curve.
    """
    named = dict(curves) if isinstance(curves, Mapping) else {f.label: f for f in curves}
    if not named:
        raise ValueError("curves must not be empty")
    for name, f in named.items():
        ax = f.plot(ax, label=name)
    first = next(iter(named.values()))
    for i, epsilon in enumerate(epsilons):
        delta = first.delta(epsilon)
        corner = (1.0 - delta) / (1.0 + math.exp(epsilon))
        alpha = np.array([0.0, corner, 1.0 - delta, 1.0])
        name = "(ε, δ) polygons of the first" if i == 0 else "_"
        ax.plot(alpha, eps_delta_tradeoff(epsilon, delta)(alpha), color="0.6", linewidth=0.7, label=name, zorder=1)
    ax.legend()
    return ax
