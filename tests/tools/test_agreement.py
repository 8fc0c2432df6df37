"""Estimates of every loss by every correction agree with the original data and with each other, in mean.

The table of docs/agreement.md has 200 draws and |z| < 4.5; here 30 draws of 4000 rows with twice the noise.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("agreement", ROOT / "tools" / "agreement.py")
agreement = importlib.util.module_from_spec(spec)
sys.modules["agreement"] = agreement  # its dataclasses look themselves up
spec.loader.exec_module(agreement)

DRAWS, ROWS = 30, 4000
# t with 29 degrees of freedom, shifted by a bias of up to 0.6 (see the script): 6e-10 a comparison, about 350 of them
LIMIT = 9.6
# the table has these too; in kind they are covered by the others
LEFT_OUT = {
    "least squares",
    "median",
    "quantile 0.1",
    "Huber",
    "Poisson",
    "mean",
    "median of a column",
    "Index: log cosh, y noised",
    "Index: probit",
    "Index with kinks: dead zone",
    "Custom with kinks: median",
}
# RB told another scale is hardly another estimate where the noise has several periods
DULL = {"mean of abs sin"}


@pytest.mark.parametrize("name", [name for name in agreement.CASES if name not in LEFT_OUT])
def test_estimates_agree_in_mean(name):
    """Paired differences over 30 draws: |z| < 9.6 for each parameter, pair of methods and loss.

    False alarm 2e-7 in all.  Power: naive, and RB told 1.7 times the scale, must fail the same limit (or have no
    minimum).
    """
    rng = np.random.default_rng()
    draws = [agreement.repetition(name, ROWS, rng, wrong=1.7, times=2.0) for _ in range(DRAWS)]
    for a, b in agreement.pairs(name):
        _, z, count = agreement.z_scores(draws, a, b)
        assert count >= DRAWS - 2
        assert np.abs(z).max() < LIMIT, (a, b)
    for twin in ("naive", "wrong") if name not in DULL else ("naive",):
        _, z, count = agreement.z_scores(draws, twin, agreement.ORIGINAL)
        assert count < DRAWS // 2 or np.abs(z).max() > LIMIT, twin
