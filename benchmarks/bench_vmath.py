"""Elementary functions of the kernels against numpy's."""

import numpy as np
import pytest

from zil._core import probe

N = 4096
BASELINES = {
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "sin2pi": lambda x: np.sin(2 * np.pi * x),
}


@pytest.mark.parametrize("name", BASELINES)
def test_function(race, name):
    x = np.random.default_rng(1).uniform(0.1, 1, N)
    out = np.empty(N)
    function, baseline = probe.FUNCTIONS[name], BASELINES[name]
    race(
        lambda: probe.evaluate(function, x, out),
        lambda: baseline(x),
        baseline_name="numpy",
        units=N,
        unit="values",
        goal=0.5,  # numpy's own vector code may use what differs between machines
    )
