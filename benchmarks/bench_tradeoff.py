"""Exact trade-off curve: a thousand points from nothing, table included, against a clock of 20 ms."""

import time

import numpy as np
import pytest

from zil.privacy import exact
from zil.privacy.tradeoff import TradeOff

POINTS = np.linspace(0.001, 0.999, 1000)


@pytest.mark.parametrize("dim", [2, 3, 6, 7, 50])
def test_thousand_points(race, dim):
    race(
        lambda: TradeOff(exact.LaplaceExact(dim, 1.0))(POINTS), lambda: time.sleep(0.02), baseline_name="20 ms",
        units=1000, unit="points", goal=1.0,
    )  # fmt: skip
