"""The demo: its data, its table, and a closing sentence that follows from the numbers, whatever they are."""

import math

import numpy as np
import pytest

from zil.interfaces import demo
from zil.interfaces.demo import Slope

pytest.importorskip("pandas")


def slopes(naive=0.0, optimal=0.09, error=0.01):
    result = {}
    for tau in demo.TAUS:
        for method, value, se in (("original", 0.094, 0.001), ("naive", naive, 0.002), ("optimal", optimal, error)):
            result[method, tau] = Slope(value, se, value - 1.96 * se, value + 1.96 * se)
    return result


PLAIN = {tau: Slope(0.095, 0.005, 0.085, 0.105) for tau in demo.TAUS}


def test_one_row_per_person():
    frame = demo.load_wages()
    assert list(frame.columns) == ["education", "age", "log_wage", "female", "region"]
    assert frame.shape == (61_395, 5)
    assert not frame.isna().any().any()
    for name, (low, high) in demo.BOUNDS.items():
        assert low <= frame[name].min() < frame[name].max() <= high
    assert np.exp(frame["log_wage"]).mean() == pytest.approx(18.4352, abs=1e-4)
    assert len(demo.load_rand()) == 20_190


def test_its_mechanism_is_for_a_contract():
    risk = demo.mechanism().risk(61_395)
    assert risk.verdict == "under contract"
    assert demo.mechanism().delta(demo.EPSILON, "record") <= demo.DELTA


def test_the_sentence_follows_from_the_numbers():
    usual = demo.verdict(slopes(), PLAIN)
    assert "its intervals miss both slopes" in usual
    assert "covers both slopes of the original table" in usual
    assert "2.0 to 2.0 times smaller" in usual
    bad_day = demo.verdict(slopes(optimal=0.05), PLAIN)
    assert "covers neither slope; 95 % intervals miss one time in twenty" in bad_day
    assert "its intervals miss neither slope" in demo.verdict(slopes(naive=0.094), PLAIN)
    none = demo.verdict(slopes(error=math.nan), PLAIN)
    assert "nan" not in none
    assert "no proper minimum" in demo.table(slopes(error=math.nan))


def test_the_whole_demo(tmp_path, capsys, monkeypatch):
    """On every sixth row, to be quick; the files are there and the label comes before the table."""
    frame = demo.load_wages()[::6]
    monkeypatch.setattr(demo, "load_wages", lambda: frame.copy())
    demo.main(str(tmp_path / "out"))
    said = capsys.readouterr().out
    assert said.index("VERDICT: UNDER CONTRACT ONLY") < said.index("Slope of a year of schooling")
    assert "PRIVACY LABEL: education, age, log_wage (10,233 rows, one per person)" in said
    assert (tmp_path / "out" / "label.html").read_text().startswith("<!DOCTYPE html>")
    pytest.importorskip("matplotlib")
    assert (tmp_path / "out" / "slopes.png").stat().st_size > 5000
    assert str(tmp_path / "out" / "slopes.png") in said
