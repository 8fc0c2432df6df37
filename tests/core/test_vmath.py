"""Elementary functions of the kernels against mpmath, and the same bits for every instruction set."""

import mpmath as mp
import numpy as np
import pytest

from zil._core import probe


def evaluate(name, x, isa=-1):
    out = np.empty_like(x)
    probe.evaluate(probe.FUNCTIONS[name], x, out, isa)
    return out


def points(name, rng, n):
    if name == "exp":
        edge = np.array([0.0, -0.0, 1e-300, -708.0, 709.0, 0.34657, -0.34658])
        return np.concatenate([edge, rng.uniform(-700, 700, n), rng.uniform(-1, 1, n)])
    if name == "log":
        edge = np.array([1.0, 2.0, 0.5, np.nextafter(1, 0), np.nextafter(1, 2), 2.3e-308, 1e308, 0.70710678, 1.4142135])
        return np.concatenate([edge, np.exp(rng.uniform(-700, 700, n)), rng.uniform(0.5, 2, n)])
    if name == "log1p":
        return np.concatenate([[0.0, 1.0, 1e-300, 1e-17], np.exp(rng.uniform(-60, 0, n)), rng.uniform(0, 5, n)])
    if name == "normal_cdf":
        return np.concatenate([[0.0, -0.0, 40.0, 1e300], rng.uniform(-3, 3, n), rng.uniform(-37, 9, n)])
    return np.concatenate([[0.0, 0.125, 0.25, 0.5, 0.75, 1.0], rng.uniform(-2, 2, n)])


TRUTH = {
    "exp": mp.exp,
    "log": mp.log,
    "log1p": lambda x: mp.log1p(x),
    "sin2pi": lambda x: mp.sin(2 * mp.pi * x),
    "cos2pi": lambda x: mp.cos(2 * mp.pi * x),
    "normal_cdf": mp.ncdf,
}


@pytest.mark.parametrize("name", probe.FUNCTIONS)
def test_error_is_about_one_ulp(name):
    rng = np.random.default_rng()
    x = points(name, rng, 1000)
    got = evaluate(name, x)
    with mp.workdps(40):
        truth = [TRUTH[name](mp.mpf(float(v))) for v in x]
        # near a zero of sine or cosine the argument itself is exact, so the error is absolute 1 ulp of 1
        floor = 1e-15 if name.endswith("pi") else 0
        # exp(-x^2/2) has the rounding error of x^2/2 as its relative error
        allowed = 1.5 + np.minimum(x, 0.0) ** 2 / 2 if name == "normal_cdf" else np.ones(len(x))
        pairs = zip(got, truth, allowed, strict=True)
        worst = max(abs(mp.mpf(float(g)) - t) / max(abs(t), floor or mp.mpf(10) ** -310) / a for g, t, a in pairs)
    assert worst < (6e-16 if not name.endswith("pi") else 0.5)
    if name.endswith("pi"):
        assert np.abs(got - np.array([float(t) for t in truth])).max() < 2.3e-16


def test_limits():
    x = np.array([-1e4, -709.0, np.nan])
    for name in ("exp", "normal_cdf"):
        got = evaluate(name, x)
        assert got[0] == 0
        assert got[1] == 0
        assert np.isnan(got[2])


@pytest.mark.parametrize("name", probe.FUNCTIONS)
def test_same_bits_for_every_instruction_set(name):
    x = points(name, np.random.default_rng(), 10_001)
    base = evaluate(name, x, 0)
    for isa in range(1, probe.best_isa() + 1):
        assert evaluate(name, x, isa).tobytes() == base.tobytes()


def test_power_of_the_error_test():
    """A constant off by 1e-13 would be seen."""
    x = np.linspace(0.1, 1, 10)
    wrong = evaluate("exp", x) * (1 + 1e-13)
    assert np.abs(wrong / np.exp(x) - 1).max() > 6e-16
