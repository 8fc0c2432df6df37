"""The mechanism as one would first write it, and as libraries have shipped it: the control that must lose.

Every attack test runs the same attack on this and on zil.  If the control survives, the attack is too
weak to say anything about zil.
"""

import numpy as np


def noise(n, scale, zero_prob, rng):
    """Zero-inflated symmetric Laplace noise in float64, shape (n, len(scale))."""
    scale = np.atleast_1d(scale)
    z = rng.standard_normal((n, len(scale))) * np.sqrt(rng.standard_exponential((n, 1))) * scale
    z[rng.random(n) < zero_prob] = 0
    return z


def release(x, bounds, scale, zero_prob, rng=None):
    """Clip and add, with bounds from the data if none are given and messages that try to help."""
    rng = np.random.default_rng() if rng is None else rng
    if bounds is None:
        bounds = x.min(axis=0), x.max(axis=0)
    outside = (x < bounds[0]) | (x > bounds[1])
    if outside.any():
        raise ValueError(f"{outside.sum()} values outside the bounds, the first is {x[outside][0]}")
    return np.clip(x, *bounds) + noise(len(x), np.broadcast_to(scale, x.shape[1:]), zero_prob, rng)
