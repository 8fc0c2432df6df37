"""Mechanism.risk: its keys, its bands, groups, copies and persons."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import zil
from zil.release import risk as judgement

BOUNDS = {"age": (18, 90), "score": (0, 1)}
MECHANISM = zil.calibrate(BOUNDS, epsilon=1.0, delta=0.1, zero_prob=0.05, unit="record")
KEYS = {
    "unchanged_rows", "unchanged_in_box", "best_guess", "power_at_1_percent", "certain_95", "interval_95", "record",
    "person", "groups", "verdict", "reasons", "suppression",
}  # fmt: skip
THREE = {"best_guess", "power_at_1_percent", "certain_95"}


def test_keys_and_kinds():
    risk = MECHANISM.risk(4000, rows_per_person=2, groups={"both": ["age", "score"]})
    content = risk.to_dict()
    assert set(content) == KEYS
    assert set(content["unchanged_in_box"]) == {"corner", "centre", "average"}
    assert set(content["record"]) == set(content["groups"]["both"]) == THREE
    assert set(content["person"]) == {"unchanged", "certain_95"}
    assert set(content["interval_95"]) == set(BOUNDS)
    assert set(content["suppression"]) == {"share", "standard_error_factor"}
    assert json.loads(json.dumps(content)) == content
    content["record"]["best_guess"] = 0.0
    assert risk.record["best_guess"] > 0.5
    assert risk.unchanged_rows == pytest.approx(200)
    assert risk.summary().startswith("VERDICT: ")
    assert "Verdict" in risk._repr_html_()
    assert MECHANISM.risk().unchanged_rows is None


def test_all_columns_as_a_group_are_the_row():
    risk = MECHANISM.risk(groups=[["age", "score"], ["age"]])
    assert risk.groups["age + score"] == pytest.approx(risk.record)
    assert risk.groups["age"] == pytest.approx({key: getattr(risk, key) for key in THREE})


def test_combinations_of_a_group():
    m = zil.Mechanism({"a": (0, 1), "b": (0, 1), "c": (0, 2)}, zero_prob=0.1, scale=[1.0, 1.0, 2.0])
    dummies = {"columns": ["a", "b", "c"], "values": "dummies"}
    table = {"columns": ["a", "b", "c"], "values": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 2]]}
    risk = m.risk(groups={"d": dummies, "t": table, "all": ["a", "b", "c"]})
    assert risk.groups["d"] == pytest.approx(risk.groups["t"])
    expected = 1 - zil.tradeoff(3, math.sqrt(2), 0.1)(0.01)
    assert risk.groups["d"]["power_at_1_percent"] == pytest.approx(expected, rel=1e-6)
    assert risk.groups["all"]["power_at_1_percent"] > risk.groups["d"]["power_at_1_percent"]


def test_a_person_has_the_unit_of_the_target():
    entry = zil.calibrate(BOUNDS, epsilon=1.0, delta=0.1, zero_prob=0.05, unit="attribute").risk(rows_per_person=1)
    assert entry.person["certain_95"] == entry.certain_95 != entry.record["certain_95"]
    row = MECHANISM.risk(rows_per_person=5)
    assert row.person["unchanged"] == pytest.approx(1 - 0.95**5)
    assert row.person["certain_95"] == pytest.approx(0.445, abs=0.002)
    assert row.verdict == "do not publish"


# verdict


@pytest.mark.parametrize(
    ("epsilon", "delta", "zero_prob", "n", "verdict", "word"),
    [
        (1.0, 0.1, 0.05, 4000, "under contract", "200 x 1/n"),
        (1.0, 0.1, 0.05, 10, "under contract", "epsilon of a person"),  # under one row, but no epsilon at 1/(10 n)
        (1.0, 0.1, 0.05, None, "under contract", "not known"),
        (3.0, 0.3, 0.2, 4000, "do not publish", "95 % sure"),
        (5.0, 0.1, 0.05, 4000, "do not publish", "guesses right"),
        (0.5, 1e-5, 1e-6, 4000, "open data", "strong"),
        (8.0, 1e-5, 1e-6, 4000, "open data", "conventional"),
        (15.0, 1e-5, 1e-6, 4000, "do not publish", "guesses right"),
    ],
)
def test_bands(epsilon, delta, zero_prob, n, verdict, word):
    m = zil.calibrate(BOUNDS, epsilon=epsilon, delta=delta, zero_prob=zero_prob, unit="record")
    risk = m.risk(n)
    assert risk.verdict == verdict
    assert word in " ".join(risk.reasons)


def test_a_release_with_more_than_one_raw_row_is_never_open():
    for z in (0.3, 0.01, 2.0 / 4000):
        assert zil.Mechanism(BOUNDS, zero_prob=z, scale=[1e5, 1e3]).risk(4000).verdict != "open data"
    assert zil.Mechanism(BOUNDS, zero_prob=0.5 / 40_000, scale=[1e9, 1e7]).risk(4000).verdict == "open data"
    # five rows each: five times as many persons
    assert (
        zil.Mechanism(BOUNDS, zero_prob=1e-5, scale=[1e9, 1e7]).risk(40_000, rows_per_person=5).verdict != "open data"
    )


def described(**changes):
    return {**MECHANISM._metadata(n_rows=4000), **changes}


def test_columns_of_few_values_without_grain_are_recognised():
    metadata = described()
    metadata["columns"][1]["support"] = [0, 1]
    risk = judgement.assess(metadata)
    assert risk.unchanged_in_box == {"corner": 1.0, "centre": 1.0, "average": 1.0}
    assert risk.verdict == "do not publish"
    assert "recognised: score" in risk.reasons[0]
    metadata["columns"][1]["grain"] = 1
    assert judgement.assess(metadata).verdict == "under contract"


def test_simulated_tables_have_no_guarantee():
    table = pd.DataFrame({"age": [20.0, 30.0], "score": [0.1, 0.2]})
    risk = MECHANISM.simulate(table, 1).risk()
    assert risk.verdict == "do not publish"
    assert "no guarantee" in risk.reasons[0]
    assert MECHANISM.release(table).risk().to_dict() == MECHANISM.risk(2).to_dict()


def test_copies_compose(tmp_path):
    table = pd.DataFrame({"age": np.linspace(18, 90, 300), "score": np.linspace(0, 1, 300)})
    table.to_csv(tmp_path / "in.csv", index=False)
    MECHANISM.release_file(tmp_path / "in.csv", tmp_path / "a.csv")
    with pytest.warns(zil.PrivacyWarning):
        MECHANISM.release_file(tmp_path / "in.csv", tmp_path / "b.csv", release_id="b", repeat=True)
    once, twice = zil.load(tmp_path / "a.csv").risk(), zil.load(tmp_path / "b.csv").risk()
    assert once.to_dict() == MECHANISM.risk(300).to_dict()
    both = MECHANISM.risk(300, rows_per_person=2)  # two copies of a row are two rows of a person
    assert twice.record["certain_95"] == pytest.approx(both.person["certain_95"])
    assert twice.person["unchanged"] == pytest.approx(1 - 0.95**2)
    assert twice.record["best_guess"] > once.record["best_guess"]


def test_suppression_meets_the_same_target():
    assert MECHANISM.risk().suppression == {"share": 0.1, "standard_error_factor": pytest.approx(math.sqrt(10))}
    m = zil.calibrate(BOUNDS, advantage=0.3, zero_prob=0.1, unit="record")
    assert m.risk().suppression["share"] == 0.3
    m = zil.calibrate(BOUNDS, alpha=0.1, beta=0.7, zero_prob=0.1, unit="record")
    assert m.risk().suppression["share"] == pytest.approx(0.2)
    assert zil.Mechanism(BOUNDS, zero_prob=0.2, scale=9.0).risk().suppression["share"] == pytest.approx(0.2)
    assert zil.Mechanism(BOUNDS, zero_prob=0.0, scale=9.0).risk().suppression["standard_error_factor"] == math.inf


def test_equal_bounds_have_no_interval():
    risk = zil.Mechanism({"a": (0, 1), "b": (2, 2)}, zero_prob=0.1, scale=1.0).risk(100)
    assert set(risk.interval_95) == {"a"}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rows_per_person": 0}, ValueError, "rows_per_person"),
        ({"rows_per_person": 1.5}, TypeError, "rows_per_person"),
        ({"groups": {"g": ["age", "income"]}}, ValueError, "'income', which is not noised"),
        ({"groups": {"g": ["age", "age"]}}, ValueError, "twice"),
        ({"groups": {"g": "age"}}, TypeError, "list of columns"),
        ({"groups": {"g": []}}, TypeError, "list of columns"),
        ({"groups": {"g": {"names": ["age"]}}}, ValueError, "needs 'columns'"),
        ({"groups": {"g": {"columns": ["age"], "values": "one"}}}, ValueError, "dummies"),
        ({"groups": {"g": {"columns": ["age"], "values": [[20, 1]]}}}, ValueError, "shape"),
        ({"groups": {"g": {"columns": ["age"], "values": [[20], [91]]}}}, ValueError, "leave the bounds"),
        ({"n_rows": -1}, ValueError, "n_rows"),
        ({"prior": "flat"}, ValueError, "prior"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        MECHANISM.risk(**arguments)
