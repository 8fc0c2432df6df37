"""Draws and double randomisation as public calls against the numpy expression a user would write, one thread.

Fresh memory is part of both; ``out=`` saves it.
"""

import numpy as np
import pytest

import zil

D = 6


@pytest.mark.parametrize("n", [100_000, 1_000_000])
@pytest.mark.parametrize(("what", "goal"), [("rvs", 6.0), ("rvs, out=", 8.0), ("double", 6.0)])
def test_noise(race, what, goal, n):
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(n, D))
    scale = np.linspace(1.0, 2.0, D)
    law = zil.ZeroInflatedLaplace(0.2, scale=scale)
    published = zil.Mechanism([(0, 1)] * D, zero_prob=0.2, scale=scale).simulate(x, rng=1)
    out = np.zeros_like(x)

    def kernel():
        if what == "double":
            return published.double(n_threads=1)
        return law.rvs(n, rng=1, n_threads=1, out=out if "out" in what else None)

    def baseline():
        noise = rng.standard_normal((n, D)) * np.sqrt(rng.exponential(size=(n, 1)))
        if what == "double":
            return published.data + noise * scale
        noise[rng.random(n) < 0.2] = 0
        return noise * scale

    race(kernel, baseline, baseline_name="numpy PCG64", units=n, goal=goal, rounds=7)
