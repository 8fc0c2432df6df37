"""Risk formulas against simulation of the attack that they describe.

Each simulated figure is compared at five standard errors (false alarm 6e-7 per comparison, any seed); each test
has a twin in which a wrong noise, prior or count is seen at the same five.
"""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

import zil
from zil.privacy import curves, risk
from zil.privacy.composition import compose
from zil.privacy.tradeoff import TradeOff

LIMIT = 5.0
LOG_19 = math.log(19.0)


def noise(rng, n, d, zero_prob=0.0):
    """Noise in units of the scale, and which rows have none."""
    none = rng.random(n) < zero_prob
    return ~none[:, None] * np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=(n, d)), none


def log_g(r, d):
    """Log density by radius, up to a constant, written independently of the kernel."""
    v = d / 2 - 1
    x = math.sqrt(2) * r
    return -v * np.log(r) + np.log(special.kve(v, x)) - x


def log_ratio(s, c):
    """Evidence for "shifted by c" of noise rows; at an unchanged row the evidence has no limit."""
    moved = s.copy()
    moved[:, 0] -= c
    a, b = np.linalg.norm(s, axis=1), np.linalg.norm(moved, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = log_g(np.maximum(b, 1e-300), s.shape[1]) - log_g(np.maximum(a, 1e-300), s.shape[1])
    return np.where(b == 0, np.inf, np.where(a == 0, -np.inf, value))


def off(hits, expected):
    """Deviation of a share of hits from its expectation in standard errors."""
    return abs(hits.mean() - expected) / math.sqrt(expected * (1 - expected) / len(hits))


# ---- recognition


@pytest.mark.parametrize("true_prob", [0.2, 0.21])
def test_unchanged_rows_inside_the_box(true_prob):
    rng = np.random.default_rng()
    n, tau = 2_000_000, np.array([0.7, 1.3])
    s, none = noise(rng, n, 2, true_prob)
    inside = ((x := rng.random((n, 2)) + tau * s) >= 0).all(axis=1) & (x <= 1).all(axis=1)
    answer = risk.unchanged_in_box(tau, 0.2)
    deviations = off(inside, answer["share_in_box"]), off(none[inside], answer["average"])
    if true_prob == 0.2:
        assert max(deviations) < LIMIT
    else:
        assert deviations[1] > LIMIT


@pytest.mark.parametrize("per_entry", [False, True])
def test_unchanged_rows_at_one_place(per_entry):
    """Noise that takes y back into the box, counted; one W per entry is seen."""
    rng = np.random.default_rng()
    n, tau, z = 1_000_000, np.array([0.7, 1.3, 2.0]), 0.05
    s = np.sqrt(rng.exponential(size=(n, 3 if per_entry else 1))) * rng.normal(size=(n, 3)) * tau
    answer = risk.unchanged_in_box(tau, z)
    deviations = []
    for name, y in (("corner", 0.0), ("centre", 0.5)):
        q = (1 / answer[name] - 1) * z / (1 - z)
        deviations.append(off(((y - s >= 0) & (y - s <= 1)).all(axis=1), q))
    assert (max(deviations) > LIMIT) == per_entry


@pytest.mark.parametrize("right", [True, False])
def test_own_prior(right):
    """Recognition of a rare value under a histogram, at its own cell: counted in a thin slice around it."""
    rng = np.random.default_rng()
    n, z, tau = 4_000_000, 0.3, 0.5
    edges, mass = np.array([0.0, 0.25, 0.5, 1.0]), np.array([0.1, 0.3, 0.6])
    cell = rng.choice(3, p=mass, size=n)
    x = edges[cell] + rng.random(n) * np.diff(edges)[cell]
    s, none = noise(rng, n, 1, z)
    y = x + tau * s[:, 0]
    law = [(edges, mass if right else np.array([0.3, 0.3, 0.4]))]
    answer = risk.unchanged_in_box(np.array([tau]), z, law)
    inside = (y >= 0) & (y <= 1)
    # the last cell is the denser end; within 0.004 of it the density of the noised rows moves by under 0.2 %
    corner = (y > 0.996) & (y <= 1)
    deviations = off(none[inside], answer["average"]), off(none[corner], answer["corner"])
    assert (max(deviations) < LIMIT) == right


def test_recognition_without_noise_or_width():
    assert risk.unchanged_in_box(np.array([1.0]), 0.0)["corner"] == 0.0
    assert risk.unchanged_in_box(np.array([1.0, math.inf]), 0.1) == {
        "corner": 1.0, "centre": 1.0, "average": 1.0, "share_in_box": pytest.approx(0.1),
    }  # fmt: skip
    wide = risk.unchanged_in_box(np.full(10, 1e4), 0.05)  # rows that noise leaves in such a box are few
    assert wide["average"] > 1 - 1e-8
    one = risk.unchanged_in_box(np.array([0.8]), 0.05)
    a = math.sqrt(2) / 0.8  # one column in closed form: the noise is univariate Laplace
    assert one["corner"] == pytest.approx(0.05 / (0.05 + 0.95 * 0.5 * -math.expm1(-a)), rel=1e-10)
    assert one["centre"] == pytest.approx(0.05 / (0.05 + 0.95 * -math.expm1(-a / 2)), rel=1e-10)
    assert one["average"] == pytest.approx(0.05 / (0.05 + 0.95 * (1 + math.expm1(-a) / a)), rel=1e-10)


def test_an_unchanged_row_is_recognised_as_the_guide_says():
    """Figures of the mathematics: noise of two widths, zero_prob .05, d = 1, 2, 5, 10."""
    for d, figure in ((1, 0.16), (2, 0.32), (5, 0.72), (10, 0.90)):
        assert risk.unchanged_in_box(np.full(d, 2.0), 0.05)["average"] == pytest.approx(figure, abs=0.02)


# ---- decisions between two values


def pairs(rng, n, dim, c, z):
    """Evidence for the shifted value, and whether it is the true one, at equal odds."""
    s, _ = noise(rng, n, dim, z)
    shifted = rng.random(n) < 0.5
    s[:, 0] += c * shifted
    return log_ratio(s, c), shifted


@pytest.mark.parametrize(("dim", "z"), [(2, 0.05), (5, 0.2), (3, 0.0)])
@pytest.mark.parametrize("wrong", [1.0, 1.1])
def test_guess_certainty_and_power(dim, z, wrong):
    rng = np.random.default_rng()
    n, c = 400_000, 1.5
    evidence, shifted = pairs(rng, n, dim, c * wrong, z)
    f = zil.tradeoff(dim, c, z)
    rare = 0.2
    s, _ = noise(rng, n, dim, z)
    unlikely = rng.random(n) < rare
    s[:, 0] += c * wrong * unlikely
    guess = log_ratio(s, c * wrong) > math.log((1 - rare) / rare)
    toward = np.where(shifted, evidence, -evidence)
    deviations = [
        off((evidence > 0) == shifted, risk.best_guess(f)),
        off(guess == unlikely, risk.best_guess(f, rare)),
        off(guess == unlikely, risk.best_guess(f, 1 - rare)),
        off(toward >= LOG_19, risk.certain(f)),
        off(toward >= math.log(3.0), risk.certain(f, 0.75)),
    ]
    # alarms at a fixed threshold: the detected share at their own false-alarm rate
    alarm = evidence > 1.0
    size, hit = alarm[~shifted].mean(), alarm[shifted].mean()
    error = math.sqrt((hit * (1 - hit) + math.exp(2.0) * size * (1 - size)) / (n / 2))
    deviations.append(abs(risk.power(f, size) - hit) / error)
    assert (max(deviations) < LIMIT) == (wrong == 1.0)


@pytest.mark.parametrize("rows", [5, 6])
def test_all_rows_of_a_person(rows):
    """Evidence of five rows adds up; six are seen.  The composed curve lies on a grid: 2e-3 for that."""
    rng = np.random.default_rng()
    n, dim, c, z = 100_000, 2, 0.6, 0.05
    f = zil.tradeoff(dim, c, z).compose(5)
    total, unchanged = np.zeros(n), np.zeros(n, dtype=bool)
    for _ in range(rows):
        s, none = noise(rng, n, dim, z)
        s[:, 0] += c
        total += log_ratio(s, c)
        unchanged |= none
    slack = 2e-3 * math.sqrt(n) / 0.5
    deviations = off(total >= LOG_19, risk.certain(f)) - slack, off(unchanged, risk.exposed(z, 5))
    assert (max(deviations) < LIMIT) == (rows == 5)


def test_certain_is_reached_at_once():
    assert risk.certain(zil.tradeoff(2, 1.0, 0.1), 0.5, 0.9) == 1.0
    assert risk.exposed(1.0, 3) == 1.0
    assert risk.exposed(0.2, 1) == pytest.approx(0.2)
    assert risk.best_guess(zil.tradeoff(2, 1.0, 0.1), 1.0) == 1.0
    f = zil.eps_delta_tradeoff(0.0, 0.3)  # blanking all but 30 %
    assert risk.best_guess(f) == pytest.approx(0.65)
    assert risk.certain(f) == pytest.approx(0.3)
    assert risk.power(f) == pytest.approx(0.31)
    assert risk.odds_after_alarm(f, 0.01, 0.1) == pytest.approx(0.31 / 0.01 / 9)


@pytest.mark.parametrize(
    "f",
    [
        zil.tradeoff(1, 1.2, 0.1), zil.tradeoff(4, 1.2, 0.1), zil.tradeoff(math.inf, 0.7), zil.gaussian_tradeoff(1.3),
        zil.tradeoff(2, 3.0), zil.eps_delta_tradeoff(1.0, 0.1), zil.tradeoff(3, 0.0, 0.4),
    ],
)  # fmt: skip
def test_exceeds_is_delta_less_its_slope(f):
    for t in (0.05, 0.4, 1.1, 2.5):
        h = 1e-5
        slope = (f.delta(t + h) - f.delta(t - h)) / (2 * h)
        assert f.exceeds(t) == pytest.approx(f.delta(t) - slope, abs=1e-9)
    assert f.exceeds(math.inf) == pytest.approx(f.zero_prob)
    assert f.exceeds(np.array([0.1, 0.2])).shape == (2,)
    with pytest.raises(ValueError, match="epsilon"):
        f.exceeds(0.0)


def test_exceeds_at_a_jump_counts_it():
    f = zil.tradeoff(1, 1.0)
    q = math.sqrt(2)
    assert f.exceeds(q) == pytest.approx(0.5, abs=1e-12)
    assert f.exceeds(q + 1e-9) == 0.0
    assert zil.eps_delta_tradeoff(1.0, 0.0).exceeds(1.0) == pytest.approx(math.e / (1 + math.e))


def test_exceeds_of_a_composition():
    curve = curves.Gaussian(0.5)
    polygon, atom = compose([(curve.delta, curve.epsilon, 4)])
    for t in (0.3, 1.0, 2.0):
        assert TradeOff(polygon, atom).exceeds(t) == pytest.approx(stats.norm.cdf(0.5 - t), abs=2e-3)


# ---- intervals


def lengths(rng, n, tau, dim, wrong=1.0):
    """Length of the highest posterior set of each of n noised rows, and whether it covers, on a grid of x."""
    grid = (np.arange(2000) + 0.5) / 2000
    x = rng.random(n)
    s, _ = noise(rng, n, dim)
    y = x + wrong * tau * s[:, 0]
    distance = np.abs(y[:, None] - grid) / tau
    if dim == 1:
        log_density = -math.sqrt(2) * distance
    else:
        others = np.linalg.norm(s[:, 1:], axis=1)
        log_density = log_g(np.hypot(others[:, None], np.maximum(distance, 1e-12)), dim)
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    order = np.sort(density, axis=1)[:, ::-1]
    mass = np.cumsum(order, axis=1) / density.sum(axis=1, keepdims=True)
    cells = (mass < 0.95).sum(axis=1) + 1
    lowest = np.take_along_axis(order, cells[:, None] - 1, axis=1)[:, 0]
    at = density[np.arange(n), np.minimum((x * 2000).astype(int), 1999)]
    return cells / 2000, at >= lowest


@pytest.mark.parametrize(("tau", "dim"), [(0.3, 1), (1.0, 1), (0.3, 2), (0.68, 5)])
@pytest.mark.parametrize("wrong", [1.0, 1.5])
def test_intervals(tau, dim, wrong):
    rng = np.random.default_rng()
    n = 4000
    length, covered = lengths(rng, n, tau, dim)
    expected = risk.interval_share(tau * wrong, dim)
    deviation = abs(length.mean() - expected) / (length.std() / math.sqrt(n) + 1e-4)
    assert (deviation < LIMIT) == (wrong == 1.0)
    if wrong == 1.0:
        assert off(covered, 0.95) < LIMIT


def test_intervals_at_the_ends():
    assert risk.interval_share(1e4) == pytest.approx(0.95, abs=1e-3)  # nothing but the prior
    assert risk.interval_share(1e4, 3) == pytest.approx(0.95, abs=1e-3)
    narrow = risk.interval_share(1e-3)
    assert narrow == pytest.approx(2 * math.log(20) / math.sqrt(2) * 1e-3, rel=0.01)


# ---- other mechanisms, groups


def test_laplace_of_the_same_budget():
    assert risk.laplace_epsilon(3.0, 0.3) == pytest.approx(3.713, abs=1e-3)
    f = risk.independent_laplace(1, risk.laplace_loss(1, 3.0, 0.3))
    assert f.delta(3.0) == pytest.approx(0.3, abs=1e-12)
    assert [risk.best_guess(f), risk.power(f), risk.certain(f)] == pytest.approx([0.92, 0.41, 0.66], abs=0.005)
    assert risk.mean_factor(math.sqrt(2) / risk.laplace_loss(1, 3.0, 0.3)) == pytest.approx(1.66, abs=0.005)


@pytest.mark.parametrize("wrong", [1.0, 1.1])
def test_laplace_noise_on_three_columns(wrong):
    """delta(epsilon) = E_Q(1 - exp(epsilon - L))+ by simulation; a loss 10 % too large is seen."""
    rng = np.random.default_rng()
    n, epsilon, delta = 1_000_000, 1.0, 0.1
    q = risk.laplace_loss(3, epsilon, delta) * wrong
    s = rng.laplace(size=(n, 3))
    loss = (np.abs(s + q) - np.abs(s)).sum(axis=1)
    gain = np.maximum(0.0, -np.expm1(epsilon - loss))
    assert (abs(gain.mean() - delta) < LIMIT * gain.std() / math.sqrt(n)) == (wrong == 1.0)


@pytest.mark.parametrize("wrong", [1.0, 1.02])
def test_same_cell(wrong):
    rng = np.random.default_rng()
    n, tau = 1_000_000, 0.9
    y = rng.random(n) + wrong * tau * noise(rng, n, 1)[0][:, 0]
    assert (off((y >= 0) & (y <= 1), risk.same_cell(tau)) < LIMIT) == (wrong == 1.0)


def test_shift_of_a_group():
    ratio = np.array([1.0, 2.0, 0.5])
    assert risk.admissible_shift(ratio) == pytest.approx(math.sqrt(5.25))
    dummies = np.vstack([np.zeros(3), np.eye(3)])
    assert risk.admissible_shift(ratio, dummies) == pytest.approx(math.sqrt(5.0))
    assert risk.admissible_shift(ratio, np.array([[0, 0, 0], [0.5, 0.5, 0]])) == pytest.approx(math.sqrt(1.25))


def test_mean_factor():
    assert risk.mean_factor(0.68095, 0.2) == pytest.approx(2.33, abs=0.005)
    rng = np.random.default_rng()
    n, tau = 400_000, 0.9
    y = rng.random(n) + tau * noise(rng, n, 1, 0.2)[0][:, 0]
    variance, kurtosis = y.var(), stats.kurtosis(y, fisher=False)
    expected = risk.mean_factor(tau, 0.2) ** 2 / 12
    error = variance * math.sqrt((kurtosis - 1) / n)
    assert abs(variance - expected) < LIMIT * error
    assert abs(variance - risk.mean_factor(tau, 0.25) ** 2 / 12) > LIMIT * error


def test_average_recognition_by_quadrature():
    """The closed form inside E_W against two nested numerical integrals."""
    tau = 0.8

    def stays(w):
        t = tau * math.sqrt(w)
        return integrate.quad(lambda x: stats.norm.cdf((1 - x) / t) - stats.norm.cdf(-x / t), 0, 1)[0]

    q = integrate.quad(lambda w: math.exp(-w) * stays(w) ** 2, 0, 40, limit=200)[0]
    z = 0.1
    assert risk.unchanged_in_box(np.array([tau, tau]), z)["average"] == pytest.approx(z / (z + (1 - z) * q), rel=1e-7)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("normal", "prior must be"),
        ({"b": ([0, 1], [1])}, "names 'b'"),
        ({"a": 3}, "pair"),
        ({"a": ([0, 1], [1])}, "from 2 to 4"),
        ({"a": ([2, 3, 4], [1])}, "shapes"),
        ({"a": ([2, 3, 4], [1, -1])}, ">= 0"),
        ({"a": ([2, 3, 4], [0, 0])}, "not all 0"),
    ],
)
def test_bad_priors(prior, message):
    with pytest.raises(ValueError, match=message):
        risk.priors(prior, ["a"], np.array([[2.0, 4.0]]))
