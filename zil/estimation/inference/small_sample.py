"""Whether a sample is too small, for its noise, for the asymptotic law of its estimates."""

from __future__ import annotations

import math

import numpy as np

from zil._validate import FloatArray
from zil.estimation.inference.covariance import index_error, spread
from zil.estimation.objective.coordinates import coordinates
from zil.estimation.objective.index import IndexObjective

# Beyond these a sample is called small.
LARGE_INDEX_ERROR = 0.15
# A kernel estimate of the curvature has an error of its own.
LARGE_CURVATURE_ERROR = {"smooth": 0.05, "kinked": 0.15}


def curvature_error(smooth: IndexObjective, theta: FloatArray, hessian: FloatArray, covariance: FloatArray) -> float:
    """Relative standard error of the estimated curvature, in the direction in which it is weakest."""
    natural = coordinates(smooth).matrix
    own = natural.T @ hessian @ natural
    scale = np.sqrt(np.diag(own))
    weakest = natural @ (np.linalg.eigh(own / np.outer(scale, scale))[1][:, 0] / scale)
    weakest /= math.sqrt(float(weakest @ np.linalg.solve(covariance, weakest)))
    mean, square = smooth.bends(theta, weakest)
    return math.sqrt(max(square - mean * mean, 0.0) / smooth.n_rows) / float(weakest @ hessian @ weakest)


def small_sample(smooth: IndexObjective, theta: FloatArray, hessian: FloatArray, covariance: FloatArray) -> str:
    """Why the asymptotic law is in doubt; "" where it is not.

    It takes the curvature for known and constant over a few standard errors.  The limits are where simulated coverage
    leaves 93.5 to 96.5 % (docs/coverage.md).
    """
    if smooth.loss.kinked:
        share = index_error(smooth, covariance) / max(spread(smooth, theta), 1e-300)
        if share > LARGE_INDEX_ERROR:
            return f"the sampling error of the index is {share:.2f} of the spread of the residuals or margins"
    error = curvature_error(smooth, theta, hessian, covariance)
    limit = LARGE_CURVATURE_ERROR["kinked" if smooth.loss.kinked else "smooth"]
    return f"the curvature is known to {100.0 * error:.0f} % only" if error > limit else ""
