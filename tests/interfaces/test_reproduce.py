"""The paper's experiments: numbers that agree with the asymptotic law, files, the command line."""

import csv
import io
import math

import numpy as np
import pytest

from zil.interfaces import reproduce as module
from zil.interfaces.reproduce import reproduce


def test_table1_agrees_with_the_asymptotic_law():
    """Any seed: each cell within 7 Monte Carlo errors; the right side multiplied by 1.6 is found to be wrong."""
    seed = int(np.random.default_rng().integers(2**31))
    result = reproduce("table1", 80, seed, methods=["oracle", "dr", "rb"], processes=1)
    known = [row for row in result.rows if not math.isnan(row["expected"])]
    assert len(known) == 36
    # four digits are printed; the mean of 80 squares has a spread of its own, which its estimate understates when small
    gaps = [(row["rmse"] - row["expected"]) / (0.06 * row["expected"] + row["mc_error"]) for row in known]
    assert max(map(abs, gaps)) < 4.5
    wrong = [(row["rmse"] - 1.6 * row["expected"]) / (0.06 * row["expected"] + row["mc_error"]) for row in known]
    assert sum(gap < -3 for gap in wrong) > 15
    # no bias, and DR is worse than RB in every cell
    biases = [row["bias"] / row["bias_error"] for row in result.rows]
    assert max(map(abs, biases)) < 6.5
    assert all(row["no_minimum"] == 0.0 for row in result.rows)


def test_naive_and_sl_are_off_where_the_paper_says_so():
    """The SL column of table 1 is inconsistent for functions with jumps; 6 Monte Carlo errors."""
    seed = int(np.random.default_rng().integers(2**31))
    result = reproduce("table1", 60, seed, methods=["naive", "sl"], processes=1)
    for row in result.rows:
        if row["setting"].startswith("indicator") and row["n"] == 1000:
            assert abs(row["bias"]) > 6 * row["bias_error"]


def test_the_figure_shows_the_errors_of_the_tables():
    """Tables 1 and S1 and figure 2 share their samples."""
    runs = {name: reproduce(name, 2, 5, methods=["dr"], processes=1) for name in ("table1", "tableS1", "figure2")}
    for name, sizes in (("table1", slice(0, 2)), ("tableS1", slice(2, 6))):
        assert np.array_equal(runs[name].errors, runs["figure2"].errors[:, :, sizes])


def test_table2_small():
    result = reproduce("table2", 3, 1, methods=["oracle", "naive", "sdr"], processes=1)
    rows = {(row["setting"], row["n"], row["estimator"]): row for row in result.rows}
    assert len(rows) == 18
    for n in (5000, 7500, 10000):
        for setting in ("scale=0.5", "scale=1"):
            assert rows[setting, n, "oracle"]["rmse"] < 0.2 < rows[setting, n, "naive"]["rmse"]
        assert rows["scale=0.5", n, "oracle"]["rmse"] == rows["scale=1", n, "oracle"]["rmse"]
    again = reproduce("table2", 3, 1, methods=["oracle", "naive", "sdr"], processes=2)
    assert again.rows[0] == result.rows[0]
    np.testing.assert_array_equal(again.errors, result.errors)


def test_runs_without_a_minimum_are_counted_and_left_out():
    draws = np.zeros((4, 2, 3, 1, 7))
    draws[..., :6] = [[[[[1.0] * 6]]], [[[[-1.0] * 6]]], [[[[1.0] * 6]]], [[[[9.0] * 6]]]]
    draws[:3, ..., 6] = 1.0
    rows, errors = module._summary("table3", ("dr",), draws)
    assert rows[0]["rmse"] == 1.0
    assert rows[0]["no_minimum"] == 0.25
    assert rows[0]["rmse_all"] == pytest.approx(math.sqrt(21.0))
    assert np.isnan(errors[3]).all()
    draws[..., 6] = 0.0
    rows, _ = module._summary("table3", ("dr",), draws)
    assert math.isnan(rows[0]["rmse"])
    assert rows[0]["no_minimum"] == 1.0


def test_files(tmp_path):
    result = reproduce("figure2", 3, 0, tmp_path, methods=["oracle", "rb"], processes=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure2.csv", "figure2.md", "figure2.png"]
    table = list(csv.DictReader(io.StringIO((tmp_path / "figure2.csv").read_text())))
    assert len(table) == len(result.rows) == 6 * 6 * 2
    assert float(table[0]["rmse"]) == pytest.approx(result.rows[0]["rmse"], rel=1e-5)
    assert float(table[0]["q0"]) <= float(table[0]["q50"]) <= float(table[0]["q100"])
    text = (tmp_path / "figure2.md").read_text()
    assert text.startswith("## Figure 2")
    assert "3 repetitions, seed 0" in text


def test_command_line(capsys):
    assert module.main(["tableS1", "--repetitions", "2", "--methods", "oracle", "--processes", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("## Table S1")
    assert "n = 5000" in out
    with pytest.raises(SystemExit) as stop:
        module.main(["table2", "--methods", "oracle", "magic"])
    assert stop.value.code == 2
    assert "magic" in capsys.readouterr().err


def test_a_run_goes_on(tmp_path):
    """More repetitions use those that are there; the numbers are those of one run."""
    arguments = {"seed": 3, "methods": ["oracle", "naive"], "processes": 1}
    whole = reproduce("table1", 4, **arguments)
    reproduce("table1", 2, keep=tmp_path, **arguments)
    longer = reproduce("table1", 4, keep=tmp_path, **arguments)
    assert np.array_equal(longer.errors, whole.errors)
    assert longer.to_csv() == whole.to_csv()
    with pytest.raises(ValueError, match="holds repetitions of"):
        reproduce("table1", 4, keep=tmp_path, seed=4, methods=["oracle", "naive"])


def test_bad_input():
    with pytest.raises(ValueError, match="table9"):
        reproduce("table9")
    with pytest.raises(ValueError, match="repetitions"):
        reproduce("table1", 0)
