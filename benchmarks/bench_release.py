"""A whole release and a whole simulation against the numpy lines a user would write, one thread."""

import numpy as np
import pytest

import zil

D = 6


@pytest.mark.parametrize(("what", "goal"), [("release", 1.0), ("simulate", 6.0)])
def test_publish(race, what, goal):
    n, zero_prob, scale = 1_000_000, 0.05, 2.0
    rng = np.random.default_rng(1)
    table = rng.uniform(size=(n, D))
    mechanism = zil.Mechanism([(0, 1)] * D, zero_prob=zero_prob, scale=scale)

    def kernel():
        if what == "release":
            return mechanism.release(table, n_threads=1)
        return mechanism.simulate(table, 1, n_threads=1)

    def baseline():
        noise = rng.standard_normal((n, D)) * np.sqrt(rng.exponential(size=(n, 1)))
        noise[rng.random(n) < zero_prob] = 0
        return table + noise * scale

    race(kernel, baseline, baseline_name="naive numpy, PCG64", units=n, goal=goal)
