"""The look for nan and infinite numbers: every place, every length, nothing finite is taken for one."""

import numpy as np
import pytest

from zil._core import finite, probe

FINITE = [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, np.finfo(float).max, -np.finfo(float).max, np.finfo(float).tiny]
OTHERS = [np.nan, -np.nan, np.inf, -np.inf, np.array(0x7FF0000000000001, np.uint64).view(float)[()]]


@pytest.mark.parametrize("isa", range(probe.best_isa() + 1))
@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 33, 1000])
def test_all_finite(isa, n):
    x = np.random.default_rng().choice(FINITE, n)
    x.flags.writeable = False
    assert finite.all_finite(x, isa) is True
    for place in range(min(n, 40)):
        for other in OTHERS:
            spoiled = x.copy()
            spoiled[place] = other
            assert finite.all_finite(spoiled, isa) is False
            assert finite.all_finite(spoiled[place + 1 :], isa) is True
            assert finite.all_finite(spoiled[:place], isa) is True
