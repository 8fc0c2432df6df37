"""From a privacy target to a mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from zil import _validate
from zil.privacy import shifts as formulas
from zil.privacy.tradeoff import TradeOff
from zil.release import sampler, schema, ticks
from zil.release.mechanism import UNITS, Mechanism


def calibrate(
    bounds: Any,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    mu: float | None = None,
    advantage: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    zero_prob: float,
    unit: str,
    sharp: bool = True,
    scaling: str = "per-column",
    resolution: Any = None,
) -> Mechanism:
    """The mechanism with the least noise that meets a privacy target.

    Give ``epsilon`` and ``delta``, or ``mu``, or ``advantage``, or ``alpha`` and ``beta``.

    Parameters
    ----------
    bounds : dict or array-like of shape (d, 2)
        Public bounds, as for `Mechanism`.
    epsilon : float >= 0
    delta : float
        The total, ``zero_prob < delta < 1``.
    mu : float > 0
        Gaussian differential privacy; exists only for ``zero_prob = 0`` and one or two columns.
    advantage : float
        Bound on ``1 - alpha - beta`` of any attack, ``zero_prob < advantage < 1``.
    alpha, beta : float > 0
        A point of the curve: every test with false-alarm rate ``alpha`` misses at least a share
        ``beta``; ``alpha + beta < 1 - zero_prob``.
    zero_prob : float in [0, 1]
        Probability that a row is published unchanged.
    unit : {"attribute", "record"}
        What the target protects: one entry of a row, or the whole row.
    sharp : bool
        Use the exact curve for this number of columns (less noise) or the limit curve, which has a closed form.
    scaling : {"per-column", "common"}
        Noise in proportion to each column's width, or the same scale for all.
    resolution : optional
        As for `Mechanism`.

    Returns
    -------
    Mechanism
        Its guarantee, recomputed from the scales it really uses, meets the target.

    Raises
    ------
    ValueError, TypeError
        No target or more than one, a value outside its range, or a target that no scale meets.

    Notes
    -----
    Limit curve: ``L = 2 log((1 - zero_prob)/(1 - delta))``, ``c = sqrt(L (L + 2 epsilon)/2)``,
    ``scale = width/c`` (beyond the paper: mathematics 3.3).
    """
    names, pairs, _ = schema.read_bounds(bounds)
    _validate.choice("unit", unit, UNITS)
    sharp = _validate.boolean("sharp", sharp)
    _validate.choice("scaling", scaling, ("per-column", "common"))
    share = sampler.dyadic(_validate.probability("zero_prob", zero_prob))
    given = {"epsilon": epsilon, "delta": delta, "mu": mu, "advantage": advantage, "alpha": alpha, "beta": beta}
    target = {key: _number(key, value) for key, value in given.items() if value is not None}
    dim = len(names) if sharp else math.inf
    c = _largest_shift(dim, share, target)
    width = formulas.widths(pairs)
    for step in range(40):
        scale = formulas.scales(width, c, unit, scaling)
        least = ticks.smallest_scale(pairs)
        # a budget so large that float64 cannot hold the noise gets a little more; bounds too far from 0 are refused
        scale = np.where(least <= 2.0**-30 * width, np.maximum(scale, least), scale)
        mechanism = Mechanism(bounds, zero_prob=zero_prob, scale=scale, resolution=resolution)
        if _meets([mechanism.tradeoff(unit, exact) for exact in {bool(sharp), False}], target):
            mechanism._target = {"unit": unit, **target, "sharp": bool(sharp), "scaling": scaling}
            return mechanism
        c *= 1.0 - math.ldexp(formulas.MARGIN, step)  # a last digit was lost in evaluating the curve
    raise ValueError("no scale meets the target to the precision of float64")


def with_target(mechanism: Mechanism, target: dict[str, Any] | None) -> Mechanism:
    """The mechanism with the target that a file says it was calibrated for, once it is seen to meet it.

    Raises
    ------
    ValueError, KeyError, TypeError
        No such target, or the mechanism does not meet it.
    """
    if target is None:
        return mechanism
    unit, sharp = _validate.choice("unit", target["unit"], UNITS), _validate.boolean("sharp", target["sharp"])
    asked = {key: _validate.real(key, target[key]) for key in target if key not in ("unit", "sharp", "scaling")}
    if not _meets([mechanism.tradeoff(unit, exact) for exact in {sharp, False}], asked):
        raise ValueError("the mechanism does not meet its target")
    mechanism._target = {"unit": unit, **asked, "sharp": sharp, "scaling": target["scaling"]}
    return mechanism


def _number(name: str, value: Any) -> float:
    """A number of the right type; nan passes on to the check that knows the interval."""
    try:
        return _validate.real(name, value)
    except ValueError:
        return math.nan


def _largest_shift(dim: float, zero_prob: float, target: dict[str, float]) -> float:
    match sorted(target):
        case ["delta", "epsilon"]:
            epsilon, delta = target["epsilon"], target["delta"]
            if dim == 1:
                return formulas.laplace_shift(epsilon, delta, zero_prob)
            if dim == math.inf:
                return formulas.limit_shift(epsilon, delta, zero_prob)
            return formulas.exact_shift(int(dim), epsilon, delta, zero_prob)
        case ["advantage"]:
            return formulas.advantage_shift(target["advantage"], zero_prob)
        case ["mu"]:
            c = formulas.gaussian_shift(target["mu"])
            if zero_prob > 0.0 or dim > 2:
                raise ValueError(
                    "no scale gives a finite mu: it takes zero_prob = 0 and at most two noised columns with sharp=True "
                    f"(got zero_prob = {zero_prob:g}, {dim} columns)"
                )
            return c if dim == 1 else formulas.exact_gaussian_shift(int(dim), target["mu"])
        case ["alpha", "beta"]:
            return formulas.point_shift(dim, target["alpha"], target["beta"], zero_prob)
    raise ValueError(
        f"give epsilon and delta, or mu, or advantage, or alpha and beta; got {', '.join(sorted(target)) or 'none'}"
    )


def _meets(curves: Sequence[TradeOff], target: dict[str, float]) -> bool:
    """Whether some valid curve proves the target."""
    if "mu" in target:
        return any(f.gaussian_mu <= target["mu"] for f in curves)
    if "advantage" in target:
        return any(f.advantage <= target["advantage"] for f in curves)
    if "alpha" in target:
        return any(f.bounds(target["alpha"])[0] >= target["beta"] for f in curves)
    return any(f.delta(target["epsilon"]) <= target["delta"] for f in curves)
