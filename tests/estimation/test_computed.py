"""Columns computed from a noised one are told, and nothing else is."""

import warnings

import numpy as np
import pandas as pd
import pytest

import zil

pytestmark = pytest.mark.filterwarnings("ignore::zil.ConvergenceWarning")


def release(n=400, rng=1):
    source = np.random.default_rng(rng)
    x, g = source.uniform(0.0, 10.0, n), source.integers(0, 2, n) * 1.0
    table = pd.DataFrame({"x": x, "g": g, "z": source.normal(size=n), "y": 1 + x + 0.5 * g + 2 * x * g})
    table["y"] += source.normal(size=n)
    return zil.Mechanism({"x": (0, 10)}, zero_prob=0.4, scale=4.0).simulate(table, rng=source)


def fitted(made, **new):
    table = made.data.assign(**new)
    return zil.fit("squared", table, y="y", x=["x", "g", "z", *new], noise=made.noise, bounds={"x": (0, 10)})


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("product", lambda t: t["x"] * t["g"]),
        ("square", lambda t: t["x"] ** 2),
        ("centred square", lambda t: 3.0 * (t["x"] ** 2) - 7.0),
        ("exponential", lambda t: np.exp(-t["x"] / 5.0)),
        ("rank", lambda t: t["x"].rank()),
        ("size", lambda t: t["x"].abs()),
    ],
)
def test_told(name, of):
    made = release()
    with pytest.warns(UserWarning, match=f"'{name}' looks computed from the noised column 'x'"):
        fitted(made, **{name: of(made.data)})


def test_told_where_only_the_new_column_is_used():
    made = release()
    table = made.data.assign(thousands=made.data["x"] / 1000.0)
    with pytest.warns(UserWarning, match="'thousands' looks computed"):
        zil.fit("squared", table, y="y", x=["thousands", "g"], noise=made.noise, bounds={"x": (0, 10)}, method="rb")


def test_told_of_another_unit():
    made = release()
    table = made.data.assign(x=made.data["x"] / 1000.0)
    with pytest.warns(UserWarning, match="'x' varies less than its noise alone"):
        zil.fit("squared", table, y="y", x=["x", "g"], noise=made.noise, method="rb")


def test_no_false_alarm():
    """Correlated clean columns, sorted rows, a constant-looking group, repeated noised values: 60 releases, silent."""
    for k in range(60):
        made = release(n=120, rng=k)
        table = made.data.sort_values("x").assign(
            near=made.data["x"] + np.random.default_rng(k).normal(size=120), few=(made.data["z"] > 2) * 1.0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            warnings.simplefilter("ignore", zil.ConvergenceWarning)
            zil.fit("squared", table, y="y", x=["x", "g", "z", "near"], noise=made.noise, method="rb")
