"""Direct search: down to a local minimum of a function of which only values are to be had.

Around the best point the ends of a random orthogonal frame are tried; a lower one is moved to and the
frame grows, else it shrinks.  As the frames are dense among all directions, the limit has no direction of descent
(mesh adaptive direct search: Audet and Dennis, SIAM Journal on Optimization 17, 2006); a search along coordinates or
gradients alone can stop on a crease.  What is claimed at the end is what is tested there: no lower point at some
dozens of fresh directions and a few radii, the smallest a hundredth of a standard error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from zil._validate import FloatArray
from zil.estimation.objective.rough import frame

# Radii as a share of the steps (first, and smallest), and the test at the end.
FIRST, LAST = 0.25, 3e-3
MAX_FRAMES = 2000
DIRECTIONS, RADII = 12, (1.0, 10.0)


def descend(
    value: Callable[[FloatArray], float], theta: FloatArray, steps: FloatArray
) -> tuple[FloatArray, float, int, bool]:
    """Direct search from ``theta`` down to a local minimum on the scale of ``LAST * steps``.

    Parameters
    ----------
    value : callable of (p,)
        May be infinite.
    theta : (p,) array
    steps : (p,) array
        Natural size of a change of each parameter.

    Returns
    -------
    theta, value, frames, settled
    """
    stream = np.random.Generator(np.random.Philox(0))
    p = len(theta)
    low = value(theta)
    radius, frames = FIRST, 0
    while frames < MAX_FRAMES:
        frames += 1
        if radius >= LAST:
            points = theta + radius * steps * frame(stream, p)
        else:  # the test
            draws = stream.standard_normal((len(RADII) * DIRECTIONS * p, p))
            draws *= (np.repeat(RADII, DIRECTIONS * p) / np.linalg.norm(draws, axis=1))[:, None]
            points = theta + LAST * steps * draws
        for point in points:
            trial = value(point)
            if trial < low:
                move = point - theta
                theta, low = point, trial
                further = theta + move  # as long as it goes down this way
                while (trial := value(further)) < low:
                    theta, low = further, trial
                    move = 2.0 * move
                    further = theta + move
                radius = min(2.0 * max(radius, LAST), FIRST)
                break
        else:
            if radius < LAST:
                return theta, low, frames, True
            radius *= 0.5
    return theta, low, frames, False
