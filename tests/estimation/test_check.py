"""zil.check: what it finds in tables whose answer is known."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import zil

BOUNDS = {"age": (18, 90), "score": (0, 1)}


def mechanism(zero_prob=0.05, scale=(150.0, 2.0)):
    return zil.Mechanism(BOUNDS, zero_prob=zero_prob, scale=list(scale))


def table(n=2000, seed=1, whole=False):
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 90, n)
    return pd.DataFrame(
        {
            "age": age.round() if whole else age,
            "score": rng.random(n),
            "region": rng.choice(["north", "south"], n),
            "sex": rng.integers(0, 2, n),
            "person": np.arange(n) // 2,
        }
    )


def test_bounds_alone_count_as_before():
    rows = pd.DataFrame({"a": [-1.0, 0.5, np.nan, np.inf], "b": [0, 9, 1, 1]})
    found = zil.check(rows, {"a": (0, 1), "b": (0, 5)})
    assert found == {
        "a": {"out_of_bounds": 2, "below": 1, "above": 1, "missing": 1},
        "b": {"out_of_bounds": 1, "below": 0, "above": 1, "missing": 0},
    }
    assert found.summary().startswith("NOT FOR PUBLICATION")
    with pytest.raises(TypeError, match="need a mechanism"):
        zil.check(rows, {"a": (0, 1)}, person="b")


def test_head_and_sections():
    found = zil.check(table(), mechanism(), person="person")
    assert found.summary().startswith("NOT FOR PUBLICATION")
    assert repr(found) == found.summary()
    assert "NOT FOR PUBLICATION" in found._repr_html_()
    assert set(found) == {
        "rows", "complete_rows", "simulated_copy", "columns", "keys", "unchanged", "links", "intervals", "persons",
        "utility", "verdict", "reasons",
    }  # fmt: skip
    assert found["simulated_copy"]
    assert "VERDICT" in found.summary()


def test_groups_of_equal_keys():
    rows = table(12).assign(region=["a"] * 6 + ["b"] * 4 + ["c", None], sex=0)
    found = zil.check(rows, mechanism(), keys=["region", "sex"])["keys"]
    assert found["unique"] == pytest.approx(2 / 12)
    assert found["below_5"] == pytest.approx(6 / 12)
    assert found["smallest"] == 1
    assert found["distinct"] == {"region": 4, "sex": 1}
    everything = zil.check(rows, mechanism())["keys"]
    assert everything["columns"] == ["region", "sex", "person"]
    assert zil.check(rows, mechanism(), keys=[])["keys"]["columns"] == []
    assert zil.check(rows[["age", "score"]], mechanism())["keys"]["unique"] == 0.0
    missing = table(10).assign(sex=[np.nan] * 5 + [1.0] * 5)  # missing entries are one group
    assert zil.check(missing, mechanism(), keys=["sex"])["keys"]["below_5"] == 0.0


def test_every_kind_of_table_gives_the_same():
    rows = table(400)
    numbers = rows[["age", "score", "sex"]]
    found = [zil.check(kind, mechanism()) for kind in (numbers, pl.from_pandas(numbers), pa.Table.from_pandas(numbers))]
    assert found[0] == found[1] == found[2]
    by_place = zil.Mechanism([(18, 90), (0, 1)], zero_prob=0.05, scale=[150.0, 2.0])
    array = zil.check(numbers.to_numpy()[:, :2], by_place)
    assert array["links"]["share"] == found[0]["links"]["share"]
    assert zil.check(rows["score"], zil.Mechanism([(0, 1)], zero_prob=0.1, scale=1.0))["rows"] == 400
    again = zil.check(numbers, mechanism())
    assert again == found[0]
    rows.loc[0, "age"] = 1e6
    assert zil.check(rows, mechanism())["columns"]["age"]["above"] == 1


@pytest.mark.parametrize("whole", [True, False])
def test_unchanged_rows_stand_out_by_their_digits(whole):
    rows = table(5000, whole=whole)
    released = mechanism(0.1).release(rows)
    found = zil.check(rows, mechanism(0.1), released)["unchanged"]
    grid = np.abs(released.data[["age", "score"]] - rows[["age", "score"]]).max(axis=1) < 1e-3
    assert found["rows"] == grid.sum()
    assert not zil.check(rows, mechanism(0.1), released)["simulated_copy"]
    if whole:
        assert found["by_look"] == ["age"]
        assert found["share"] == 1.0
        assert found["right"] > 0.98  # 1e-4 of the noised rows end within half a tick of a whole number
    else:
        assert found["by_look"] == []
        assert found["share"] < 0.01


def test_few_values_stand_out():
    rng = np.random.default_rng()
    rows = pd.DataFrame({"a": rng.choice([0.123456789, 0.3, 0.9], 3000), "b": rng.random(3000)})
    m = zil.Mechanism({"a": (0, 1), "b": (0, 1)}, zero_prob=0.1, scale=1.0)
    found = zil.check(rows, m)
    assert found["unchanged"]["by_look"] == ["a"]
    assert found["unchanged"]["share"] == 1.0
    assert found["verdict"] == "do not publish"
    assert "their look" in found["reasons"][0]
    constant = zil.check(pd.DataFrame({"a": np.full(100, 0.5), "b": rng.random(100)}), m)
    assert constant["unchanged"]["by_look"] == ["a"]
    assert constant["utility"]["columns"]["a"]["mean_factor"] == math.inf


def test_repeated_rows_stand_out():
    rows = pd.DataFrame({"age": np.full(50, 33.333333), "score": np.full(50, 0.77777777), "person": np.arange(50) // 5})
    m = zil.Mechanism(BOUNDS, zero_prob=0.5, scale=[150.0, 2.0])
    found = zil.check(rows, m, person="person")
    assert found["unchanged"]["repeated_rows"] == found["unchanged"]["rows"] > 1
    copy = m.simulate(rows, 0).data
    raw = (np.abs(copy["age"] - 33.333333) < 1e-3).groupby(rows["person"]).sum()
    assert found["persons"] == {
        "persons": 10,
        "most_rows": 5,
        "with_an_unchanged_row": (raw > 0).mean(),
        "found_by_repeats": (raw > 1).mean(),
    }
    other = rows.assign(person=np.arange(50), age=np.linspace(20, 80, 50))
    assert zil.check(other, m, person="person")["persons"]["found_by_repeats"] == 0.0


def test_links_are_the_likeliest_rows():
    rows = table(300)
    m = mechanism(0.1, (10.0, 0.1))
    released = m.release(rows)
    found = zil.check(rows, m, released, keys=["region"])["links"]
    x, y = rows[["age", "score"]].to_numpy(), released.data[["age", "score"]].to_numpy()
    r = np.sqrt((((y[:, None] - x[None]) / m.scale) ** 2).sum(axis=2))
    assert found["share"] == pytest.approx((r.argmin(axis=1) == np.arange(300)).mean())
    same = rows["region"].to_numpy()[:, None] == rows["region"].to_numpy()[None]
    inside = np.where(same, r, np.inf)
    assert found["with_keys"] == pytest.approx((inside.argmin(axis=1) == np.arange(300)).mean())
    assert found["with_keys"] >= found["share"] > found["blind"] == 1 / 300
    assert found["blind_with_keys"] == pytest.approx(2 / 300)


def test_ties_are_shared():
    rows = pd.DataFrame({"age": np.repeat([20.0, 50.0, 80.0], 10), "score": np.repeat([0.1, 0.5, 0.9], 10)})
    found = zil.check(rows, mechanism(1.0), keys=[])["links"]
    assert found["share"] == pytest.approx(0.1)
    rows["key"] = np.tile(np.arange(5), 6)
    found = zil.check(rows, mechanism(1.0), keys=["key"])["links"]
    assert found["with_keys"] == pytest.approx(0.5)
    lost = zil.check(table(2000), mechanism(0.0, (1e6, 1e4)))["links"]
    assert lost["share"] < 0.01


def test_intervals_and_utility():
    """Shares and means against the copy itself, over 40,000 rows: five standard errors, false alarm 6e-7 each."""
    rows = table(40_000)
    m = mechanism(0.3, (20.0, 0.3))
    released = m.release(rows)
    found = zil.check(rows, m, released)
    for name, (low, high) in BOUNDS.items():
        error = np.abs(released.data[name] - rows[name])
        near = error <= 0.05 * (high - low)
        assert found["intervals"][name] == pytest.approx(near.mean(), abs=2e-4)
        sigma = rows[name].std()
        il1s = error / (math.sqrt(2) * sigma)
        part = found["utility"]["columns"][name]
        assert abs(part["il1s"] - il1s.mean()) < 5 * il1s.std() / 200
        ratio = released.data[name].var() / rows[name].var()
        assert part["mean_factor"] == pytest.approx(math.sqrt(ratio), rel=0.05)
    fitted = found["utility"]["regression"]
    assert fitted["answers"] == 5
    assert fitted["ratio"] > 1.2
    assert fitted["n_eff"] == pytest.approx(40_000 / fitted["ratio"] ** 2)
    assert "least squares of age on score" in fitted["formula"]


def test_missing_rows_are_left_out():
    rows = table(500)
    rows.loc[:9, "age"] = np.nan
    rows.loc[10, "score"] = np.inf
    found = zil.check(rows, mechanism())
    assert (found["rows"], found["complete_rows"]) == (500, 490)
    assert found["columns"]["age"]["missing"] == 10
    assert found["columns"]["score"]["above"] == 1
    with pytest.raises(zil.SchemaError, match="every row misses"):
        zil.check(rows.assign(age=np.nan), mechanism())


def test_verdict_of_the_table():
    rows = table(2000)
    fair = mechanism(0.01, (1000.0, 15.0))
    assert fair.risk(2000).verdict == "under contract"
    assert zil.check(rows, fair, keys=["region", "sex"])["verdict"] == "under contract"
    few = zil.check(rows, fair)  # the column person makes every two rows a group
    assert few["verdict"] == "do not publish"
    assert "fewer than five" in few["reasons"][0]
    rows.loc[0, "region"] = "island"
    open_data = zil.Mechanism(BOUNDS, zero_prob=1e-9, scale=[1e9, 1e7])
    assert open_data.risk(2000).verdict == "open data"
    alone = zil.check(rows, open_data, keys=["region"])
    assert alone["verdict"] == "under contract"
    assert "one row only" in alone["reasons"][0]
    assert zil.check(rows, open_data, keys=["sex"])["verdict"] == "open data"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"keys": ["height"]}, zil.SchemaError, "height"),
        ({"person": "height"}, zil.SchemaError, "height"),
        ({"published": pd.DataFrame({"age": [1.0], "score": [0.0]})}, zil.SchemaError, "number of rows"),
        ({"published": pd.DataFrame({"age": np.zeros(2000)})}, zil.SchemaError, "score"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        zil.check(table(), mechanism(), **arguments)


def test_no_rows():
    with pytest.raises(zil.SchemaError, match="no rows"):
        zil.check(table(0), mechanism())
