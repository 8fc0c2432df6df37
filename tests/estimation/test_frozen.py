"""Every loss by every method gives what it gave before the engine was rewritten (tests/data/frozen_fits.json)."""

import json
from pathlib import Path

import frozen_cases
import numpy as np
import pytest

FROZEN = json.loads((Path(__file__).parents[1] / "data" / "frozen_fits.json").read_text(encoding="utf-8"))
FITS = frozen_cases.fits()
OBJECTIVES = frozen_cases.objectives()
# Shares of a standard error.  User losses smooth and differ numerically, and active sets stop at 1e-10 of the sum of
# slopes: their own error is larger than the rounding.
TOLERANCE = 1e-9
ROUGH = {"custom": 1e-5, "index": 1e-6}


def tolerance(name):
    if name.endswith("clean weights ridge") and FITS[name][0].kinked:
        return 1e-6
    return next((limit for start, limit in ROUGH.items() if name.startswith(start)), TOLERANCE)


def test_nothing_is_missing():
    assert set(FROZEN["fits"]) == set(FITS)
    assert set(FROZEN["objectives"]) == set(OBJECTIVES)


@pytest.mark.parametrize("name", list(FITS))
def test_fit(name):
    was, now = FROZEN["fits"][name], frozen_cases.answer(*FITS[name])
    limit = tolerance(name)
    assert now["converged"] == was["converged"]
    assert now["small_sample"] == was["small_sample"]
    if not was["converged"]:  # where a search that found no minimum came to a halt is no result
        return
    error = np.array(was["bse"], dtype=float)
    assert (np.abs(np.array(now["params"]) - was["params"]) <= limit * error).all()
    size = np.outer(error, error).ravel()
    assert (np.abs(np.array(now["covariance"]) - was["covariance"]) <= 10.0 * limit * size).all()
    assert now["objective"] == pytest.approx(was["objective"], rel=max(limit * 1e-2, 1e-11), abs=1e-13)


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_objective(name):
    was, now = FROZEN["objectives"][name], frozen_cases.values(OBJECTIVES[name])
    assert now["value"] == pytest.approx(was["value"], rel=1e-11)
    for key in ("gradient", "hessian", "meat"):
        if was[key] is None:
            assert now[key] is None
            continue
        size = np.abs(was[key]).max()
        assert np.array(now[key]) == pytest.approx(np.array(was[key]), rel=1e-9, abs=1e-10 * size)
