"""Figure 1: its curves, its pairs, its files."""

import math

import numpy as np
import pytest

from zil.interfaces.figure1 import figure1


def test_curves():
    figure = figure1(points=101)
    first, second = figure.panels
    # more columns are easier to tell apart, the limit bounds them all, and every polyline supports the limit
    assert (first["d=2"] >= first["d=4"] - 1e-12).all()
    assert (first["d=4"] >= first["d=inf"] - 1e-12).all()
    for name, values in first.items():
        if name.startswith("("):
            # the name is rounded, the curve is not: it touches the limit and never crosses it
            assert (values <= first["d=inf"] + 1e-12).all()
            assert (first["d=inf"] - values).min() < 2e-3
    assert all(curve[0] == pytest.approx(0.95) for name, curve in first.items() if name.startswith("d="))
    for smaller, larger in (("c=0.2", "c=0.5"), ("c=0.5", "c=0.8"), ("c=0.8", "c=1")):
        assert (second[smaller] >= second[larger]).all()
    np.testing.assert_array_equal(second["c=0.5"], first["d=inf"])


def test_pairs_are_the_closed_form():
    for epsilon, delta in figure1(points=11).pairs:
        s = math.sqrt(epsilon**2 + 2 * 0.5**2)
        assert delta == pytest.approx(0.05 + 0.95 * (1 - math.exp((epsilon - s) / 2)), rel=1e-12)


def test_files(tmp_path):
    figure1(tmp_path, points=11)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure1.csv", "figure1.md", "figure1.png"]
    lines = (tmp_path / "figure1.csv").read_text().splitlines()
    assert lines[0] == "panel,curve,alpha,beta"
    assert len(lines) == 1 + 11 * (3 + 7 + 4 + 1)
