"""Exactly rounded noise from a cryptographic stream against naive noise in numpy, one thread."""

import numpy as np
import pytest

from zil.release import sampler
from zil.release.keystream import Key

N = 200_000
ZERO_PROB = 0.1


@pytest.mark.parametrize("d", [1, 2, 3, 6, 12])
def test_draw_ticks(race, d):
    rng = np.random.default_rng()
    key = Key.fresh()

    def naive():
        noise = rng.standard_normal((N, d)) * np.sqrt(rng.standard_exponential((N, 1)))
        return noise * (rng.random((N, 1)) >= ZERO_PROB)

    race(
        lambda: sampler.draw_ticks(key, N, [2.0**20] * d, ZERO_PROB, n_threads=1),
        naive,
        baseline_name="numpy: normal * sqrt(exp) + mask",
        units=N,
        goal=1.0 if d == 1 else 1.5,
    )
