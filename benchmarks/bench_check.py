"""zil.check of a million rows against a clock of ten seconds."""

import time

import numpy as np
import pandas as pd

import zil


def test_check(race):
    n = 1_000_000
    rng = np.random.default_rng(1)
    table = pd.DataFrame({f"x{k}": rng.uniform(size=n) for k in range(5)})
    table["region"], table["person"] = rng.choice(["north", "south"], n), np.arange(n) // 3
    mechanism = zil.calibrate(
        {f"x{k}": (0, 1) for k in range(5)}, epsilon=1.0, delta=0.1, zero_prob=0.05, unit="record"
    )
    race(
        lambda: zil.check(table, mechanism, person="person"),
        lambda: time.sleep(10.0),
        baseline_name="a clock of 10 s",
        units=n,
        goal=1.0,
        rounds=2,
    )
