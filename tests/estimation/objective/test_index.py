"""Compiled losses and their corrected sums, driven by the list of losses."""

from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
import reference

from zil import losses
from zil._core import objective as kernel
from zil._core import probe
from zil.estimation.objective import corrections
from zil.estimation.objective.index import IndexObjective
from zil.estimation.objective.parts import Part
from zil.estimation.rows import Rows
from zil.estimation.scl import SmoothCheck

LOSSES = [
    losses.Squared(),
    losses.Absolute(),
    losses.Quantile(0.3),
    losses.Huber(0.8),
    losses.Logistic(),
    losses.Hinge(),
    losses.SquaredHinge(),
    losses.Poisson(),
]


def make(loss, method, rng, n=701, d=3, zero_prob=0.25, intercept=True, weights=False, noised_response=True):
    """An objective on random rows; noise in two of three columns, and in a residual's response."""
    scale = np.array([0.4, 0.7, 0.0])[:d]
    x1 = rng.normal(size=(n, d))
    x2 = x1 + rng.laplace(size=(n, 1)) * scale * 0.5
    y = rng.normal(size=n)
    if loss.classifier:
        y = np.where(y > 0, 1.0, -1.0)
    w = rng.uniform(0.1, 2.0, n) if weights else None
    first = Rows(np.ascontiguousarray(x1.T), y, w)
    second = Rows(np.ascontiguousarray(x2.T), y, w)
    parts = tuple(
        Part(second if row.doubled else first, a=row.a, c=row.c, e=row.e, kappa=row.kappa)
        for row in corrections.correction(method, zero_prob)
    )
    residual = not loss.classifier and loss.block != "exponential"
    return IndexObjective(
        loss,
        parts,
        np.concatenate([np.zeros(int(intercept)), scale**2]),
        0.09 if residual and noised_response else 0.0,
        intercept,
        n,
        float(n if w is None else w.sum()),
    )


def methods(loss):
    return [m for m in corrections.METHODS if loss.smooth or m not in corrections.NEED_SMOOTH]


CASES = [(loss, method) for loss in LOSSES for method in methods(loss) if method != "optimal"]
# The check loss of sCL has no smoothed form; its values are compared in test_scl.py.
SOFT = [(SmoothCheck(0.3, 0.5), "naive"), (SmoothCheck(0.3, 0.5), "scl")]


def ids(case):
    return f"{case[0].name}-{case[1]}"


@pytest.mark.parametrize("case", CASES, ids=ids)
@pytest.mark.parametrize("weights", [False, True])
def test_value_against_the_plain_formula(case, weights):
    loss, method = case
    rng = np.random.default_rng()
    objective = make(loss, method, rng, weights=weights)
    theta = rng.normal(size=objective.n_params) * 0.5
    q = objective.index_noise(theta)
    expected = 0.0
    for part in objective.parts:
        x = np.column_stack([np.ones(objective.n_rows), part.rows.features.T])
        w = np.ones(objective.n_rows) if part.rows.weights is None else part.rows.weights
        values = reference.corrected_rows(
            loss.name, loss.constants, x @ theta, part.rows.response, q, part.a, part.c, part.e, part.kappa
        )
        expected += (w * values).sum() / objective.total
    assert objective.value_gradient(theta)[0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("case", CASES + SOFT, ids=ids)
@pytest.mark.parametrize("intercept", [False, True])
def test_gradient_hessian_and_scores(case, intercept):
    """Central differences of the value and of the gradient; scores average to the gradient."""
    loss, method = case
    rng = np.random.default_rng()
    objective = make(loss, method, rng, intercept=intercept, weights=intercept)
    if loss.kinked:  # smooth the kinks: the sums are then differentiable
        objective = objective.smoothed(0.2)
    theta = rng.normal(size=objective.n_params) * 0.5
    step = 1e-5
    gradient = objective.value_gradient(theta)[1]
    basis = np.eye(objective.n_params) * step
    difference = np.array(
        [(objective.value_gradient(theta + e)[0] - objective.value_gradient(theta - e)[0]) / (2 * step) for e in basis]
    )
    assert gradient == pytest.approx(difference, abs=1e-6 * max(1.0, np.abs(gradient).max()))
    scores = objective.scores(theta)
    assert scores.mean(axis=0) == pytest.approx(gradient, abs=1e-12 * max(1.0, np.abs(scores).max()))
    if loss.block in ("huber", "square_plus") and method in ("naive", "dr"):
        objective = objective.smoothed(0.2)  # phi'' jumps: differences of the gradient need smoothing
    hessian = objective.hessian(theta)
    difference = np.array(
        [(objective.value_gradient(theta + e)[1] - objective.value_gradient(theta - e)[1]) / (2 * step) for e in basis]
    )
    if loss.block in ("huber", "square_plus"):
        assert hessian == pytest.approx(difference, abs=2e-2 * np.abs(hessian).max())
    else:
        # a smoothed kink has a jump in its third derivative, which a difference of step 1e-5 may straddle
        assert hessian == pytest.approx(difference, abs=(1e-4 if loss.kinked else 2e-6) * np.abs(hessian).max())
    assert np.array_equal(hessian, hessian.T)


@pytest.mark.parametrize("case", CASES + SOFT, ids=ids)
def test_same_bytes_for_threads_and_instruction_sets(case):
    loss, method = case
    rng = np.random.default_rng()
    objective = make(loss, method, rng, n=70_001)
    theta = rng.normal(size=objective.n_params) * 0.3
    results = set()
    for n_threads in (1, 2, 8):
        threaded = replace(objective, n_threads=n_threads)
        value, gradient = threaded.value_gradient(theta)
        results.add((value, gradient.tobytes(), threaded.hessian(theta).tobytes(), threaded.scores(theta).tobytes()))
    assert len(results) == 1
    n_chunks = -(-objective.n_rows // kernel.CHUNK)
    everything = kernel.HESSIAN | kernel.MEAT | kernel.BEND
    packed = objective._packed(theta, objective.parts, everything)
    plain = objective._packed(theta, objective.parts, 0)
    seen = set()
    for isa in range(probe.best_isa() + 1):
        sums = np.empty((n_chunks, kernel.width(len(theta), everything)))
        kernel.sums(*packed, 0, n_chunks, sums, direction=theta, isa=isa)
        scores = np.empty((objective.n_rows, len(theta)))
        kernel.sums(*plain, 0, n_chunks, scores, scores=True, isa=isa)
        seen.add((sums.tobytes(), scores.tobytes()))
    assert len(seen) == 1


def smoothed_softplus(t, s):
    taylor = np.empty(kernel.SOFTPLUS_TAYLOR_SIZE)
    kernel.softplus_taylor(taylor)
    table = np.empty(kernel.SOFTPLUS_TABLE_SIZE)
    kernel.softplus_table(taylor, s * s, True, table)
    x = np.array([[1.0]])
    sums, both = np.empty((1, 2)), np.empty((1, 3))
    at_t = (kernel.LOSSES["softplus"], (0.0, 0.0), (0.0, 0.0, 1.0, 0.0, 0.0), 0.0, 0.0, 1.0, s * s, 0.0)
    kernel.sums(((at_t, table, x, None, None),), False, np.array([t]), np.zeros(1), 0.0, 0, 0, 1, sums)
    u, u_t = sums[0]
    # all of the smoothing from the noise of a column that is 0 here: the derivative by its coefficient is 2 s u_q
    by_noise = (kernel.LOSSES["softplus"], (0.0, 0.0), (t, 0.0, 1.0, 0.0, 0.0), 0.0, 0.0, 1.0, 0.0, 1.0)
    zero = np.array([[0.0]])
    parts = ((by_noise, table, zero, None, None),)
    kernel.sums(parts, False, np.array([s]), np.ones(1), 0.0, kernel.HESSIAN, 0, 1, both)
    return u, u_t, both[0, 1], both[0, 2]


def test_smoothed_softplus_against_the_reference_values():
    """Twelve-digit values of u, u_t, u_s computed independently (tests/data/oracle.json)."""
    for t, s, u, u_t, u_s in reference.oracle()["laplace_smoothed_softplus(t, s, u, u_t, u_s)"]:
        got = smoothed_softplus(t, s)
        assert got[0] == pytest.approx(float(u), rel=1e-12)
        assert got[1] == pytest.approx(float(u_t), rel=1e-12)
        assert got[2] == pytest.approx(float(u_s), rel=1e-11)


@pytest.mark.parametrize("s", [1e-4, 0.03, 0.0624, 0.0626, 0.3, 0.999, 1.0, 1.7, 6.0, 40.0])
def test_smoothed_softplus_anywhere(s):
    """mpmath quadrature, far tails included; the second derivative by s from a difference of u_s."""
    rng = np.random.default_rng()
    for t in [*rng.uniform(-39, 39, 1), -60.0, float(rng.uniform(-60, -41)), float(rng.uniform(41, 60)), 0.125]:
        u, u_t, u_s, u_ss = smoothed_softplus(t, s)
        truth = reference.laplace_smooth_softplus(t, s)
        assert u == pytest.approx(float(truth[0]), rel=1e-10)
        assert u_t == pytest.approx(float(truth[1]), rel=1e-10)
        assert u_s == pytest.approx(float(truth[2]), rel=1e-9)
        h = 1e-4 * s
        difference = (smoothed_softplus(t, s + h)[2] - smoothed_softplus(t, s - h)[2]) / (2 * h)
        assert u_ss == pytest.approx(difference, rel=1e-5, abs=1e-7 * abs(u_s) / s)


@pytest.mark.parametrize("loss", [x for x in LOSSES if x.block != "softplus"], ids=lambda x: x.name)
def test_smoothed_losses_against_quadrature(loss):
    """u = E phi(t + L) by mpmath for the closed forms."""
    rng = np.random.default_rng()
    for _ in range(8):
        t, s = float(rng.normal() * 2), float(rng.uniform(0.05, 0.9))
        expected = reference.laplace_smooth(loss.name, loss.constants, t, s)
        got = reference.smoothed_formula(loss.name, loss.constants, np.array([t]), s)[0]
        assert got == pytest.approx(float(expected), rel=1e-12)


def test_gram_of_ones_is_exact():
    """C34: sums of ones have no rounding at all, whatever the threads."""
    n = 1_000_000
    rows = Rows(np.ones((2, n)), None)
    objective = IndexObjective(losses.Squared(), (Part(rows, a=1.0),), np.zeros(2), 0.0, False, n, 1.0)
    assert np.array_equal(objective.hessian(np.zeros(2)), np.full((2, 2), 1e6))


def test_small_noise_limit_is_the_plain_loss():
    """At coefficients 0 the index carries no noise: RB equals the ordinary loss."""
    rng = np.random.default_rng()
    for loss in LOSSES:
        objective = make(loss, "rb", rng, noised_response=False)
        theta = np.zeros(objective.n_params)
        theta[0] = 0.3
        part = objective.parts[0]
        x = np.full(objective.n_rows, 0.3)
        plain = reference.corrected_rows(loss.name, loss.constants, x, part.rows.response, 0.0, 1.0, 0.0, 0.0, 0.0)
        assert objective.value_gradient(theta)[0] == pytest.approx(plain.mean(), rel=1e-12)


def test_kernels_refuse_shapes_that_do_not_fit():
    x = np.ones((2, 5))
    term = (0, (0.0, 0.0), (0.0, 1.0, -1.0, 0.0, 0.0), 1.0, 0.0, 0.0, 0.0, 0.0)
    sums = np.empty((1, 3))
    good = {"y": np.ones(5), "theta": np.ones(2), "noise": np.ones(2)}

    def call(y, theta, noise, out=sums, last=1):
        kernel.sums(((term, None, x, y, None),), False, theta, noise, 0.0, 0, 0, last, out)

    call(**good)
    for bad in (
        {"y": np.ones(4)},
        {"theta": np.ones(3)},
        {"noise": np.ones(3)},
        {"out": np.empty((1, 2))},
        {"last": 2},
    ):
        with pytest.raises(ValueError, match=r"does not fit|wrong"):
            call(**{**good, **bad})
    for number, message in ((kernel.LOSSES["softplus"], "table"), (kernel.LOSSES["soft_check"], "no smoothed form")):
        smoothed = (number, (0.3, 0.5), term[2], 0.0, 0.0, 1.0, 1.0, 0.0)
        with pytest.raises(ValueError, match=message):
            kernel.sums(((smoothed, None, x, None, None),), False, np.ones(2), np.ones(2), 0.0, 0, 0, 1, sums)


def test_power_of_the_value_test():
    """A smoothed loss with the wrong scale (variance for scale, off by sqrt 2) is told apart."""
    right = reference.smoothed_formula("Quantile", (0.3, 0.7), np.array([0.2]), 0.5)[0]
    wrong = reference.smoothed_formula("Quantile", (0.3, 0.7), np.array([0.2]), 0.5 * mp.sqrt(2))[0]
    assert abs(float(wrong) / float(right) - 1) > 1e-2


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic(), losses.Poisson()], ids=lambda x: x.name)
def test_hessian_where_the_index_carries_no_noise(loss):
    """At zero slopes RB's Hessian still has the curvature of the noise term: the limit from nearby points."""
    rng = np.random.default_rng()
    objective = make(loss, "rb", rng, noised_response=False)
    theta = np.zeros(objective.n_params)
    theta[0] = 0.1
    limit = objective.hessian(theta + np.array([0.0, 1e-4, -1e-4, 0.0]))
    assert objective.hessian(theta) == pytest.approx(limit, abs=2e-3 * np.abs(limit).max())


def test_a_range_of_a_larger_table_is_read_in_place():
    """The same bits as its copy, also for a table stored row by row and for every other row of one."""
    rng = np.random.default_rng()
    objective = make(losses.Logistic(), "rb", rng, n=9000)
    theta = rng.normal(size=objective.n_params) * 0.3
    part = objective.parts[0].block(slice(100, 8500))
    assert not part.rows.features.flags.c_contiguous
    copied = replace(part, rows=replace(part.rows, features=part.rows.features.copy()))
    found = [replace(objective, parts=(own,)) for own in (part, copied)]
    assert np.array_equal(found[0].sums(theta), found[1].sums(theta))
    assert np.array_equal(found[0].hessian(theta), found[1].hessian(theta))
    turned = replace(part, rows=replace(part.rows, features=np.ascontiguousarray(part.rows.features.T).T))
    assert turned.rows.features.strides[1] != 8
    assert np.array_equal(replace(objective, parts=(turned,)).sums(theta), found[0].sums(theta))
    every = replace(part, rows=Rows(part.rows.features[:, ::2], part.rows.response[::2].copy()))
    copied = replace(every, rows=replace(every.rows, features=every.rows.features.copy()))
    assert np.array_equal(*(replace(objective, parts=(own,)).sums(theta, kernel.HESSIAN) for own in (every, copied)))


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("case", CASES, ids=ids)
def test_sums_of_scores_against_their_rows(case, weights):
    """Outer products and second derivatives added up in the kernel, against an array with a row for every row."""
    loss, method = case
    rng = np.random.default_rng()
    objective = replace(make(loss, method, rng, n=5001, weights=weights), ridge=0.1)
    theta = rng.normal(size=objective.n_params) * 0.3
    centre = np.concatenate([[0.0], rng.normal(size=objective.n_params - 1)])
    scores = objective.scores(theta)
    own = objective.parts[0].rows.weights
    share = np.ones(len(scores)) if own is None else own * (len(scores) / own.sum())
    full = scores + np.multiply.outer(share, objective.penalty(theta))
    shifted = full - np.multiply.outer(full[:, 0], centre)
    assert objective.meat(theta, penalised=False) == pytest.approx(
        scores.T @ scores / len(scores), rel=1e-11, abs=1e-13
    )
    size = np.abs(shifted.T @ shifted).max() / len(scores)
    assert objective.meat(theta, centre) == pytest.approx(
        shifted.T @ shifted / len(scores), rel=1e-10, abs=1e-12 * size
    )
    if loss.kinked or not loss.smooth:
        return
    direction = rng.normal(size=objective.n_params)
    step = 1e-4 * direction
    rows = (objective.scores(theta + step) - objective.scores(theta - step)) @ direction / 2e-4
    mean, square = objective.bends(theta, direction)
    assert mean == pytest.approx(rows.mean(), rel=1e-5, abs=1e-6 * np.abs(rows).max())
    assert square == pytest.approx((rows * rows).mean(), rel=1e-5)
