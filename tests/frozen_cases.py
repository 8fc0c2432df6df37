"""Small seeded fits of every loss by every method: what tests/data/frozen_fits.json holds the answers of.

The data come from a congruential generator written out here, so they are the same under any version of numpy.
"""

from __future__ import annotations

import warnings

import numpy as np

import zil
from zil import losses


def uniform(seed, shape):
    """Numbers in (0, 1) from a 64-bit multiplicative generator (Knuth's multiplier), top 53 bits."""
    state, out = (2 * seed + 1) * 0x9E3779B97F4A7C15 % 2**64, []
    for _ in range(int(np.prod(shape)) + 16):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(((state >> 11) + 0.5) / 2**53)
    return np.array(out[16:]).reshape(shape)


def logistic_noise(u):
    return np.log(u / (1.0 - u))


def logit(eta, y):
    return np.logaddexp(0.0, eta) - y * eta


def logit_slope(eta, y):
    return 1.0 / (1.0 + np.exp(-eta)) - y


def logit_bend(eta, y):
    s = 1.0 / (1.0 + np.exp(-eta))
    return s * (1.0 - s)


def tilted(eta, y):
    return np.abs(y - eta) + 0.3 * np.maximum(eta, 0.0)


def tilted_slope(eta, y):
    return np.sign(eta - y) + 0.3 * (eta > 0.0)


def at_response(y):
    return y


def pseudo_huber(x, y, theta):
    r = y - theta[0] - x @ theta[1:]
    return np.sqrt(1.0 + r * r) - 1.0


def design(n=1000):
    """Original rows (two noised columns of different scale, one clean), responses of every kind, row weights."""
    u = uniform(1, (n, 4))
    x = np.column_stack([2.0 * u[:, 0] - 1.0, 20.0 * u[:, 1], 2.0 * u[:, 2] - 1.0])
    eta = 0.3 + 0.8 * x[:, 0] - 0.05 * x[:, 1] + 0.5 * x[:, 2]
    v = uniform(2, (n, 4))
    real = eta + 0.5 * logistic_noise(v[:, 0])
    label = (logistic_noise(v[:, 1]) < 2.0 * eta) * 1.0
    count = np.floor(3.0 * np.exp(0.4 * eta) * v[:, 2])
    weight = np.where(v[:, 3] < 0.05, 0.0, 0.5 + v[:, 3])
    return x, real, label, count, weight


BOUNDS = {0: (-1.0, 1.0), 1: (0.0, 20.0)}
SCALES = np.array([0.6, 6.0, 0.0])
ZERO_PROB = 0.3


def released(columns, scales, zero_prob=ZERO_PROB, seed=3):
    """Rows with zero-inflated Laplace noise: one radius and one atom a row (Box-Muller normals)."""
    n, d = columns.shape
    u = uniform(seed, (n, 2 + 2 * d))
    normal = np.sqrt(-2.0 * np.log(u[:, 2 : 2 + d])) * np.cos(2.0 * np.pi * u[:, 2 + d :])
    size = np.where(u[:, 0] < zero_prob, 0.0, np.sqrt(-np.log(u[:, 1])))
    return columns + size[:, None] * normal * scales


LOSSES = {
    "squared": (losses.Squared(), "real"),
    "absolute": (losses.Absolute(), "real"),
    "quantile": (losses.Quantile(0.3), "real"),
    "huber": (losses.Huber(0.8), "real"),
    "logistic": (losses.Logistic(), "label"),
    "hinge": (losses.Hinge(), "label"),
    "squared_hinge": (losses.SquaredHinge(), "label"),
    "poisson": (losses.Poisson(), "count"),
    "index": (losses.Index(logit, logit_slope, logit_bend), "label"),
    "index_kinked": (losses.Index(tilted, tilted_slope, kinks=[at_response, 0.0]), "real"),
}
SMOOTH = {"squared", "logistic", "poisson", "index"}


def fits():
    """Name -> (loss, arguments of ``zil.fit``)."""
    x, real, label, count, weight = design()
    noisy = released(x, SCALES)
    responses = {"real": real, "label": label, "count": count}
    noise = zil.Noise(ZERO_PROB, SCALES)
    bounds = [(-1.0, 1.0), (0.0, 20.0), (-1.0, 1.0)]
    out = {}
    for name, (loss, kind) in LOSSES.items():
        y = responses[kind]
        out[f"{name} clean"] = loss, {"data": x, "y": y}
        out[f"{name} clean weights ridge"] = loss, {"data": x, "y": y, "weights": weight, "ridge": 0.01}
        methods = ["naive", "dr", "rb", "optimal"]
        methods += ["sdr", "sl"] if name in SMOOTH else []
        methods += ["scl"] if name == "quantile" else []
        for method in methods:
            if name == "index_kinked" and method in ("dr", "optimal"):  # several seconds each; rb walks the same code
                continue
            given = {"data": noisy, "y": y, "noise": noise, "method": method}
            if method == "optimal":
                given["bounds"] = bounds
            out[f"{name} {method}"] = loss, given
            if method in ("rb", "optimal") and not name.startswith("index"):
                out[f"{name} {method} weights"] = loss, {**given, "weights": weight}
            if method in ("dr", "optimal") and name in ("logistic", "squared"):
                out[f"{name} {method} copies"] = loss, {**given, "copies": 3, "ridge": 0.02}
            if method == "rb" and name in ("quantile", "absolute", "huber"):
                out[f"{name} {method} bounds"] = loss, {**given, "bounds": bounds}
                out[f"{name} {method} no intercept"] = loss, {**given, "intercept": False}
    both = released(np.column_stack([x, real]), np.append(SCALES, 0.5), seed=5)
    shared = {"data": both, "y": 3, "noise": zil.Noise(ZERO_PROB, np.append(SCALES, 0.5))}
    for name in ("squared", "quantile", "huber"):
        for method in ("naive", "dr", "rb", "optimal"):
            box = {"bounds": [*bounds, (-12.0, 12.0)]} if method == "optimal" else {}
            out[f"{name} noised response {method}"] = LOSSES[name][0], {**shared, "method": method, **box}
    column = released(uniform(7, (1000, 1)), np.array([0.5]))
    location = {"data": column, "x": [], "noise": zil.Noise(ZERO_PROB, np.array([0.5]))}
    for g in ("identity", "relu", "abs_sin", ("indicator", 0.25, 0.75)):
        for method in ("naive", "dr", "rb", "optimal"):
            box = {"bounds": [(0.0, 1.0)]} if method == "optimal" else {}
            shown = g if isinstance(g, str) else g[0]
            out[f"mean {shown} {method}"] = losses.Mean(g), {**location, "method": method, **box}
    out["quantile location rb"] = losses.Quantile(0.5), {**location, "method": "rb"}
    out["quantile location optimal"] = losses.Quantile(0.5), {**location, "method": "optimal", "bounds": [(0.0, 1.0)]}
    custom = losses.Custom(pseudo_huber)
    start = np.array([0.3, 0.8, -0.05, 0.5])
    out["custom clean"] = custom, {"data": x, "y": real, "start": start}
    out["custom dr"] = custom, {"data": noisy, "y": real, "noise": noise, "method": "dr", "start": start}
    out["logistic sl no atom"] = (
        losses.Logistic(),
        {"data": noisy, "y": label, "noise": zil.Noise(0.0, SCALES), "method": "sl"},
    )
    shifted = noisy.copy()
    shifted[:, 2] += 1e6
    out["squared rb far"] = losses.Squared(), {"data": shifted, "y": real, "noise": noise, "method": "rb"}
    out["quantile rb far"] = losses.Quantile(0.5), {"data": shifted, "y": real, "noise": noise, "method": "rb"}
    out["squared rb hc1"] = losses.Squared(), {"data": noisy, "y": real, "noise": noise, "method": "rb", "cov": "hc1"}
    declared = {"box": (-3.0, 3.0)}
    out["quantile rb box"] = losses.Quantile(0.5), {"data": noisy, "y": real, "noise": noise, "method": "rb"} | declared
    return out


def answer(loss, arguments):
    """Numbers of one fit."""
    given = dict(arguments)
    data = given.pop("data")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zil.ConvergenceWarning)
        found = zil.fit(loss, data, n_threads=1, **given)
    return {
        "params": found.params.tolist(),
        "bse": [None if np.isnan(b) else float(b) for b in found.bse],
        "covariance": None if not found.converged else found.covariance.ravel().tolist(),
        "objective": float(found.objective_value),
        "converged": bool(found.converged),
        "small_sample": bool(found.small_sample),
    }


def objectives():
    """Name -> corrected loss: value, gradient and Hessian at one point are frozen."""
    x, real, label, count, weight = design()
    noisy, noise = released(x, SCALES), zil.Noise(ZERO_PROB, SCALES)
    responses = {"real": real, "label": label, "count": count}
    out = {}
    for name, (loss, kind) in LOSSES.items():
        methods = ["naive", "dr", "rb"]
        methods += ["sdr", "sl"] if name in SMOOTH else []
        methods += ["scl"] if name == "quantile" else []
        for method in methods:
            out[f"{name} {method}"] = zil.CorrectedLoss(
                loss, noisy, responses[kind], noise=noise, method=method, weights=weight, n_threads=1
            )
    return out


THETA = np.array([0.2, 0.7, -0.04, 0.45])


def values(objective):
    """Value, gradient, Hessian (where there is one) and the outer product of the scores."""
    value, gradient = objective(THETA)
    scores = objective.scores(THETA)
    return {
        "value": float(value),
        "gradient": gradient.tolist(),
        "hessian": None if objective.loss.kinked else objective.hessian(THETA).ravel().tolist(),
        "meat": (scores.T @ scores / len(scores)).ravel().tolist(),
    }
