"""Corrected losses against the numpy/scipy expression a user would write; exact fits against a linear program."""

import numpy as np
import pytest
from scipy import optimize, special

import zil
from zil.estimation.objective.index import IndexObjective
from zil.estimation.objective.parts import Part
from zil.estimation.rows import Rows
from zil.estimation.scl import SmoothCheck
from zil.estimation.solvers.minimise import minimise

N, D = 100_000, 6
ZERO_PROB = 0.2


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    x1 = rng.normal(size=(N, D))
    x2 = x1 + rng.laplace(size=(N, 1)) * rng.normal(size=(N, D)) * 0.4
    y = np.where(rng.uniform(size=N) < 0.5, 1.0, -1.0)
    return x1, x2, y, rng.normal(size=N)


def corrected(loss, method, x1, x2, y):
    return zil.CorrectedLoss(
        loss, x1, y, noise=zil.Noise(ZERO_PROB, 1.0), method=method, X2=x2, intercept=False, n_threads=1
    )


def test_logistic_dr_value_and_gradient(race, rows):
    """Goal of the fused kernel: 5x."""
    x1, x2, y, _ = rows
    objective, theta = corrected("logistic", "dr", x1, x2, y), np.full(D, 0.5)
    a, b = 1 / ZERO_PROB, -(1 - ZERO_PROB) / ZERO_PROB

    def baseline():
        m1, m2 = -y * (x1 @ theta), -y * (x2 @ theta)
        value = (a * np.logaddexp(0, m1) + b * np.logaddexp(0, m2)).mean()
        gradient = (x1.T @ (-a * y * special.expit(m1)) + x2.T @ (-b * y * special.expit(m2))) / N
        return value, gradient

    ours, theirs = objective(theta), baseline()
    assert ours[0] == pytest.approx(theirs[0])
    assert ours[1] == pytest.approx(theirs[1])
    race(lambda: objective(theta), baseline, baseline_name="numpy + scipy.special", units=N, goal=5.0)


def test_check_dr_value_and_gradient(race, rows):
    """Goal: 3x."""
    x1, x2, _, y = rows
    tau, theta = 0.3, np.full(D, 0.5)
    objective = corrected(zil.losses.Quantile(tau), "dr", x1, x2, y)
    a, b = 1 / ZERO_PROB, -(1 - ZERO_PROB) / ZERO_PROB

    def baseline():
        r1, r2 = y - x1 @ theta, y - x2 @ theta
        value = (a * r1 * (tau - (r1 < 0)) + b * r2 * (tau - (r2 < 0))).mean()
        gradient = -(x1.T @ (a * (tau - (r1 < 0))) + x2.T @ (b * (tau - (r2 < 0)))) / N
        return value, gradient

    assert objective(theta)[1] == pytest.approx(baseline()[1])
    race(lambda: objective(theta), baseline, baseline_name="numpy", units=N, goal=3.0)


def test_logistic_rb_value_and_gradient(race, rows):
    """RB needs no second data set; the baseline is DR with 20 copies, which comes close to it."""
    x1, x2, y, _ = rows
    objective, theta = corrected("logistic", "rb", x1, x2, y), np.full(D, 0.5)
    dr = corrected("logistic", "dr", x1, np.stack([x2] * 20), y)
    race(lambda: objective(theta), lambda: dr(theta), baseline_name="zil DR, 20 copies", units=N, goal=3.0)


def test_logistic_dr_hessian(race, rows):
    x1, x2, y, _ = rows
    objective, theta = corrected("logistic", "dr", x1, x2, y), np.full(D, 0.5)
    a, b = 1 / ZERO_PROB, -(1 - ZERO_PROB) / ZERO_PROB

    def baseline():
        total = 0.0
        for coefficient, x in ((a, x1), (b, x2)):
            p = special.expit(x @ theta)
            total = total + coefficient * (x.T * (p * (1 - p))) @ x
        return total / N

    assert objective.hessian(theta) == pytest.approx(baseline())
    race(lambda: objective.hessian(theta), baseline, baseline_name="numpy + scipy.special", units=N, goal=2.0)


def test_exact_quantile_fit(race):
    """Exact minimum of a clean quantile regression against HiGHS on the linear program."""
    rng = np.random.default_rng(2)
    n, d = 2000, 6
    x = rng.normal(size=(n, d))
    y = x.sum(axis=1) + rng.normal(size=n)
    design = np.column_stack([np.ones(n), x])
    cost = np.concatenate([np.zeros(d + 1), np.full(n, 0.3 / n), np.full(n, 0.7 / n)])
    equality = np.hstack([design, np.eye(n), -np.eye(n)])
    limits = [(None, None)] * (d + 1) + [(0, None)] * (2 * n)

    def kernel():
        return zil.fit(zil.losses.Quantile(0.3), x, y=y, n_threads=1).objective_value

    def baseline():
        return optimize.linprog(cost, A_eq=equality, b_eq=y, bounds=limits, method="highs").fun

    assert kernel() == pytest.approx(baseline(), rel=1e-10)
    race(kernel, baseline, baseline_name="scipy HiGHS", units=n, goal=10.0, rounds=3)


def test_index_rb_value_and_gradient(race):
    """A user's loss, log cosh, averaged exactly over the noise, against Gauss-Laguerre quadrature row by row.

    Forty nodes a side leave an error of 1e-7 or so, the smoother less; goal 5x.
    """
    rng = np.random.default_rng(3)
    n, scale = 20_000, np.sqrt(0.5 * ZERO_PROB)  # the conditional law of the noise given X1
    x, theta = rng.normal(size=(n, D)), np.full(D, 0.4)
    y = x.sum(axis=1) + rng.normal(size=n)
    loss = zil.losses.Index(lambda eta, y: np.logaddexp(eta - y, y - eta), lambda eta, y: np.tanh(eta - y))
    objective = zil.CorrectedLoss(
        loss, x, y, noise=zil.Noise(ZERO_PROB, 1.0), method="rb", intercept=False, n_threads=1
    )
    nodes, weights = np.polynomial.laguerre.laggauss(40)
    length = np.sqrt(theta @ theta)
    a, b = 1 / ZERO_PROB, -(1 - ZERO_PROB) / ZERO_PROB

    def baseline():
        eta = x @ theta
        value, score, spread = a * loss.phi(eta, y).mean(), a * loss.dphi(eta, y), 0.0
        for u, w in zip(nodes, weights, strict=True):
            for side in (u, -u):
                at = eta + side * scale * length
                value += 0.5 * b * w * loss.phi(at, y).mean()
                slope = 0.5 * b * w * loss.dphi(at, y)
                score += slope
                spread += side * slope.mean()
        return value, x.T @ score / n + spread * scale * theta / length

    ours, theirs = objective(theta), baseline()
    assert ours[0] == pytest.approx(theirs[0], rel=1e-6)
    assert ours[1] == pytest.approx(theirs[1], rel=1e-5)
    race(lambda: objective(theta), baseline, baseline_name="numpy, 80-point quadrature", units=n, goal=5.0)


def test_scl_fit(race):
    """One sCL minimisation, Newton with the exact Hessian against BFGS with the numpy gradient; goal 1.2x."""
    rng = np.random.default_rng(4)
    n, h = 5000, 1.2
    x = rng.normal(size=(n, D))
    y = 1.0 + x.sum(axis=1) + rng.normal(size=n)
    x2 = x + np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=(n, D)) * 0.5
    design, noise = np.column_stack([np.ones(n), x2]), np.concatenate([[0.0], np.full(D, 0.25)])
    rows = Rows(np.ascontiguousarray(x2.T), y)
    objective = IndexObjective(SmoothCheck(0.3, h), (Part(rows, a=1.0, c=-0.5),), noise, 0.0, True, n, float(n))

    def value_gradient(theta):
        t = (y - design @ theta) / h
        density = np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
        q = noise @ (theta * theta)
        level = 0.3 - 1.0 + special.ndtr(t)
        second, third = density * (2.0 - t * t) / h, density * t * (t * t - 4.0) / h**2
        score = -(level + t * density - 0.5 * q * third)
        value = (h * t * level - 0.5 * q * second).mean()
        return value, design.T @ score / n - second.mean() * noise * theta

    def baseline():
        return optimize.minimize(value_gradient, np.zeros(D + 1), jac=True, method="BFGS").x

    def kernel():
        return minimise(objective, start=np.zeros(D + 1)).theta

    assert kernel() == pytest.approx(baseline(), abs=1e-4)
    race(kernel, baseline, baseline_name="numpy + scipy BFGS", units=n, goal=1.2)
