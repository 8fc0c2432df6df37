"""ZIL release noise and double randomisation against the numpy expression a user would write."""

import numpy as np
import pytest

from zil._core import sampling
from zil._random import resolve_key

D = 6


@pytest.mark.parametrize("n", [100_000, 1_000_000])
@pytest.mark.parametrize("what", ["release", "double", "double-in-place"])
def test_noise(race, what, n):
    rng = np.random.default_rng(1)
    key = resolve_key(1)
    x = rng.uniform(size=(n, D))
    scale = np.linspace(1.0, 2.0, D)
    zero_prob = 0.2 if what == "release" else 0.0
    buffer = x.copy()

    def kernel():
        out = buffer if what == "double-in-place" else np.empty_like(x)
        start = buffer if what == "double-in-place" else x
        sampling.add_noise(key, 1, zero_prob, scale, None, start, out, 0, 0, -(-n // sampling.CHUNK))
        return out

    def baseline():
        noise = rng.standard_normal((n, D)) * np.sqrt(rng.exponential(size=(n, 1)))
        if what == "release":
            noise[rng.random(n) < zero_prob] = 0
        return x + noise * scale

    race(kernel, baseline, baseline_name="numpy PCG64", units=n, goal=6.0)
