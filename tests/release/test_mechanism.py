"""The data holder's side: what is refused, what is promised, and that what is drawn is the law that is promised.

Over 400 lines because it mirrors one file, zil/release/mechanism.py, whose bad-input table is long.
"""

import copy
import itertools
import math
import pickle

import mpmath as mp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import zil
from zil.release import ticks

SECRET = 739.25
BOUNDS = {"a": (0.0, 1.0), "b": (-2.0, 2.0)}


def mechanism(bounds=(0.0, 1.0), zero_prob=0.05, scale=2.0, **more):
    return zil.Mechanism(bounds, zero_prob=zero_prob, scale=scale, **more)


# bounds and parameters


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (None, "bounds must be given: they are public and are never taken from the data"),
        ({}, "bounds are empty"),
        (np.zeros((0, 2)), "bounds are empty"),
        ({"a": (1, 0)}, r"bounds of 'a' are reversed: \(1, 0\)"),
        ([(0, 1), (3, 2)], "bounds of 1 are reversed"),
        ({"a": (2, 2)}, "bounds of all columns are equal"),
        ({"a": (2, 2), "b": (0, 0)}, "bounds of all columns are equal"),
        ({"a": (0, math.inf)}, "upper bound of 'a' must be finite, got inf"),
        ({"a": (-math.inf, 0)}, "lower bound of 'a' must be finite"),
        ({"a": (math.nan, 1)}, "lower bound of 'a' must not be nan"),
        ({"a": (0, 1, 2)}, "must be a pair"),
        ({"a": 3}, "must be a pair"),
        (np.zeros((2, 3)), r"shape \(d, 2\)"),
        ({"a": (-1.5e308, 1.5e308)}, "wider than float64"),
    ],
)
def test_bounds_refused(bounds, message):
    with pytest.raises(ValueError, match=message):
        zil.calibrate(bounds, epsilon=1, delta=0.1, zero_prob=0.05, unit="attribute")
    with pytest.raises(ValueError, match=message):
        zil.Mechanism(bounds, zero_prob=0.05, scale=1.0)


def test_bounds_types():
    for bounds in ({"a": ("x", 1)}, {"a": (None, 1)}, {("a", "b"): (0, 1)}, {True: (0, 1)}, [("x", "y")]):
        with pytest.raises(TypeError):
            zil.Mechanism(bounds, zero_prob=0.05, scale=1.0)
    whole = zil.Mechanism({"a": (0, 1)}, zero_prob=0.05, scale=1)
    assert whole == zil.Mechanism({"a": (0.0, 1.0)}, zero_prob=0.05, scale=1.0)
    assert whole.bounds == {"a": (0.0, 1.0)}
    assert zil.Mechanism([(0, 1), (2, 4)], zero_prob=0, scale=1).bounds.tolist() == [[0, 1], [2, 4]]


GOOD = {"bounds": BOUNDS, "epsilon": 1.0, "delta": 0.1, "zero_prob": 0.05, "unit": "attribute"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": -1}, r"epsilon must be in \[0, inf\), got -1"),
        ({"epsilon": math.nan}, "epsilon must be .*got nan"),
        ({"epsilon": math.inf}, "epsilon must be .*got inf"),
        ({"delta": 0.05}, "delta needs zero_prob < delta < 1, got delta = 0.05 with zero_prob = 0.05"),
        ({"delta": 0.01}, "delta needs zero_prob < delta < 1"),
        ({"delta": 0.0}, "delta needs zero_prob < delta < 1"),
        ({"delta": 1.0}, "delta needs zero_prob < delta < 1"),
        ({"delta": 1.2}, r"delta must be in \[0, 1\], got 1.2"),
        ({"delta": math.nan}, "delta must be .*got nan"),
        ({"zero_prob": -0.1}, r"zero_prob must be in \[0, 1\], got -0.1"),
        ({"zero_prob": 1.5}, r"zero_prob must be in \[0, 1\]"),
        ({"zero_prob": math.nan}, "zero_prob must be .*got nan"),
        ({"unit": "row"}, "unit must be one of 'attribute', 'record', got 'row'"),
        ({"scaling": "none"}, "scaling must be one of"),
        ({"delta": None}, "or advantage, or alpha and beta; got epsilon"),
        ({"mu": 1.0}, "give epsilon and delta, or mu"),
        ({"epsilon": None, "delta": None, "alpha": 0.1}, "or alpha and beta; got alpha"),
        ({"epsilon": None, "delta": None, "alpha": 0.5, "beta": 0.5}, "a point needs"),
        ({"epsilon": None, "delta": None}, "got none"),
        ({"epsilon": None, "delta": None, "mu": 1.0}, "no scale gives a finite mu"),
        ({"epsilon": None, "delta": None, "advantage": 0.05}, "advantage needs zero_prob < advantage < 1"),
        ({"epsilon": None, "delta": None, "advantage": math.nan}, "advantage must be"),
    ],
)
def test_calibrate_refuses(change, message):
    with pytest.raises(ValueError, match=message):
        zil.calibrate(**{**GOOD, **change})


@pytest.mark.parametrize("change", [{"epsilon": "1"}, {"delta": None, "epsilon": None, "mu": True}, {"delta": [0.1]}])
def test_calibrate_types(change):
    with pytest.raises(TypeError, match="must be a real number"):
        zil.calibrate(**{**GOOD, **change})


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, [1.0, 0.0], {"a": 1.0, "b": -1}, [1.0], {"a": 1.0}])
def test_scale_domain(scale):
    with pytest.raises(ValueError, match="scale"):
        zil.Mechanism(BOUNDS, zero_prob=0.05, scale=scale)


# calibration


def limit_delta(epsilon, c, zero_prob):
    epsilon, c, p = mp.mpf(epsilon), mp.mpf(c), mp.mpf(zero_prob)
    return p - (1 - p) * mp.expm1((epsilon - mp.sqrt(epsilon**2 + 2 * c**2)) / 2)


def test_known_scale_whatever_the_data():
    m = zil.calibrate({"a": (0, 1)}, epsilon=0.8, delta=0.17, zero_prob=0.05, unit="attribute", sharp=False)
    assert m.scale.tolist() == pytest.approx([1 / 0.502521293054799], rel=1e-12)


@pytest.mark.parametrize("unit", ["attribute", "record"])
@pytest.mark.parametrize("scaling", ["per-column", "common"])
def test_guarantee_recomputed_from_the_scale_used(unit, scaling):
    bounds = {"a": (0.1, 0.7), "b": (-3, 1e4), "c": (5, 6)}
    grid = itertools.product((0.0, 0.1, 1, 5, 1e3), (0.02, 0.06, 0.3), (0.0, 0.01, 0.05))
    with mp.workdps(60):
        for epsilon, delta, p in grid:
            if p >= delta:
                continue
            m = zil.calibrate(
                bounds, epsilon=epsilon, delta=delta, zero_prob=p, unit=unit, sharp=False, scaling=scaling
            )
            ratio = [
                (mp.mpf(hi) - mp.mpf(lo)) / mp.mpf(s)
                for (lo, hi), s in zip(bounds.values(), m.scale.tolist(), strict=True)
            ]
            c = max(ratio) if unit == "attribute" else mp.sqrt(sum(r**2 for r in ratio))
            assert c <= mp.mpf(m.shift(unit))
            assert limit_delta(epsilon, m.shift(unit), m.zero_prob) <= mp.mpf(delta)
            assert limit_delta(epsilon, c * (1 + mp.mpf(10) ** -12), m.zero_prob) > mp.mpf(delta)
            assert m.tradeoff(unit, sharp=False).delta(epsilon) <= delta
            if scaling == "common":
                assert len(set(m.scale.tolist())) == 1


def test_units_and_scalings():
    bounds = [(0, 3), (0, 4)]
    common = zil.Mechanism(bounds, zero_prob=0.1, scale=2.0)
    assert common.shift("attribute") == pytest.approx(2.0, rel=1e-15)
    assert common.shift("record") == pytest.approx(2.5, rel=1e-15)
    per = zil.Mechanism(bounds, zero_prob=0.1, scale=[1.5, 4])
    assert per.shift("attribute") == pytest.approx(2.0, rel=1e-15)
    assert per.shift("record") == pytest.approx(math.sqrt(5), rel=1e-15)
    with pytest.raises(ValueError, match="unit must be"):
        common.shift("row")


def test_column_with_equal_bounds_still_gets_noise():
    m = zil.calibrate({"a": (2, 2), "b": (0, 1)}, epsilon=1, delta=0.1, zero_prob=0, unit="attribute", sharp=False)
    assert m.scale[0] == m.scale[1] == pytest.approx(1 / m.shift("attribute"))


def test_targets():
    one = {"a": (0, 1)}
    m = zil.calibrate(one, advantage=0.3, zero_prob=0.05, unit="attribute")
    assert m.tradeoff("attribute").advantage == pytest.approx(0.3, rel=1e-12)
    assert m.tradeoff("attribute").advantage <= 0.3
    m = zil.calibrate(one, mu=1.0, zero_prob=0.0, unit="attribute")
    assert m.tradeoff("attribute").gaussian_mu <= 1.0
    assert m.tradeoff("attribute").gaussian_mu == pytest.approx(1.0, rel=1e-9)
    m = zil.calibrate(one, epsilon=1.5, delta=0.1 + 1e-12, zero_prob=0.1, unit="record")
    assert m.scale[0] == pytest.approx(math.sqrt(2) / 1.5, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-300, 1e-300), (1e300, 0.5), (0.0, 1e-12), (1e-9, 1 - 1e-12)])
def test_extreme_budgets(epsilon, delta):
    m = zil.calibrate({"a": (0, 1)}, epsilon=epsilon, delta=delta, zero_prob=0, unit="record", sharp=False)
    assert 0 < m.scale[0] < math.inf
    assert m.tradeoff("record", sharp=False).delta(epsilon) <= delta


@pytest.mark.parametrize("unit", ["attribute", "record"])
@pytest.mark.parametrize("scaling", ["per-column", "common"])
def test_the_exact_curve_asks_for_less_noise(unit, scaling):
    given = {
        "bounds": {"a": (0.1, 0.7), "b": (-3, 40), "c": (5, 6)},
        "zero_prob": 0.05,
        "unit": unit,
        "scaling": scaling,
    }
    for target in ({"epsilon": 1, "delta": 0.1}, {"alpha": 0.05, "beta": 0.6}, {"epsilon": 0, "delta": 0.2}):
        sharp, limit = (zil.calibrate(**given, **target, sharp=s) for s in (True, False))
        assert (sharp.scale <= limit.scale).all()
        f = sharp.tradeoff(unit)
        if "alpha" in target:
            assert f(target["alpha"]) >= target["beta"]
        else:
            assert sharp.delta(target["epsilon"], unit) <= target["delta"]
        if target.get("epsilon", 1):
            assert (sharp.scale < 0.9 * limit.scale).all()
            other = sharp.tradeoff(unit, sharp=False)
            assert other(0.05) < f(0.05)


def test_two_columns_can_be_gaussian():
    m = zil.calibrate([(0, 1), (0, 1)], mu=1.0, zero_prob=0, unit="record")
    assert m.tradeoff("record").gaussian_mu <= 1.0
    with pytest.raises(ValueError, match="no scale gives a finite mu"):
        zil.calibrate([(0, 1), (0, 1)], mu=1.0, zero_prob=0, unit="record", sharp=False)


def test_label_of_mechanisms_beyond_the_range_of_the_exact_curve():
    for scale in (1e-4, 1e6):
        m = zil.Mechanism([(0, 1)] * 3, zero_prob=0.1, scale=scale)
        label = m.release(np.zeros((2, 3))).metadata["guarantees"]["record"]
        assert label["sharp"] == label["limit"]
        assert m.delta(1.0, "record") == m.tradeoff("record", sharp=False).delta(1.0)
    within = zil.Mechanism([(0, 1)] * 3, zero_prob=0.1, scale=1.0).release(np.zeros((2, 3))).metadata["guarantees"]
    assert within["record"]["sharp"] != within["record"]["limit"]


def test_bounds_that_float64_cannot_serve():
    target = {"epsilon": 1, "delta": 0.1, "zero_prob": 0, "unit": "attribute"}
    with pytest.raises(ValueError, match="too far from 0"):
        zil.calibrate({"a": (1e15, 1e15 + 1)}, **target)
    with pytest.raises(ValueError, match="larger than float64"):
        zil.calibrate({"a": (0, 1e308)}, **target)
    near = zil.calibrate({"a": (1.7e9, 1.7e9 + 3600)}, **target)
    assert near.scale[0] == pytest.approx(3600 / near.shift("attribute"))


def test_epsilon_and_delta_of_a_mechanism():
    m = zil.calibrate({"a": (0, 1)}, epsilon=1.0, delta=0.1, zero_prob=0.05, unit="attribute")
    assert m.delta(1.0, "attribute") <= 0.1
    assert m.delta(1.0, "attribute") == pytest.approx(0.1, rel=1e-12)
    assert m.epsilon(0.1, "attribute") == pytest.approx(1.0, rel=1e-9)
    assert m.epsilon(0.01, "attribute") == math.inf
    assert m.tradeoff("attribute")(0.0) == 1 - m.zero_prob


# report


def test_report_begins_with_the_unchanged_rows():
    m = zil.Mechanism(BOUNDS, zero_prob=0.05, scale=3.0)
    first = [line for line in m.report(1000).splitlines() if line][2]
    assert first.startswith("1. **Exact disclosure.** About 50 rows (5 %) are published as they are")
    assert "5 % of all rows are published as they are (50 of every 1,000)" in m.report()
    page = m._repr_html_()
    assert page.index("5 % of all rows") < page.index("Recognition")
    assert "<script>" not in zil.Mechanism({"<script>": (0, 1)}, zero_prob=0, scale=1)._repr_html_()
    with pytest.raises(ValueError, match="n_rows"):
        m.report(-1)


def test_printed_numbers_are_rounded_up():
    """Who copies a printed scale into a mechanism gets at least the printed guarantee."""
    m = zil.calibrate(BOUNDS, epsilon=1, delta=0.1, zero_prob=0.05, unit="record")
    rows = [line.split("|") for line in m.report().splitlines() if line.startswith(("| a", "| b"))]
    printed = [float(cells[3]) for cells in rows[:2]]
    assert (np.array(printed) >= m.scale).all()
    assert printed == pytest.approx(m.scale.tolist(), rel=1e-5)
    assert zil.Mechanism(BOUNDS, zero_prob=0.05, scale=printed).delta(1.0, "record") <= 0.1
    shown = next(line for line in m.report().splitlines() if line.startswith("| 1 |")).split("|")
    assert float(shown[2]) >= m.delta(1.0, "attribute")
    assert float(shown[4]) == 0.1


def test_value_semantics():
    m = zil.calibrate(BOUNDS, epsilon=1, delta=0.1, zero_prob=0.05, unit="record", resolution={"a": 0.5})
    for twin in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
        assert twin == m
        assert hash(twin) == hash(m)
        assert twin.report(5) == m.report(5)
    assert m != zil.Mechanism(BOUNDS, zero_prob=0.05, scale=1.0)
    assert m != 3
    m.scale[:] = 9
    assert m.scale.max() < 1e3
    assert m.scale[0] != 9


# tables


def tables(values):
    a, b = (np.asarray(v) for v in values)
    names = {"id": [f"r{k}" for k in range(len(a))], "a": a, "b": b}
    return [pd.DataFrame(names, index=list(range(len(a), 0, -1))), pl.DataFrame(names), pa.table(names)]


PUBLISH = [zil.Mechanism.release, zil.Mechanism.simulate]


@pytest.mark.parametrize("publish", PUBLISH)
def test_same_kind_of_table_comes_back(publish):
    m = zil.Mechanism({"b": (-2, 2), "a": (0, 1)}, zero_prob=0.5, scale=1.0)
    for table in tables(([0.0, 1.0, 0.5], [2, -2, 0])):
        before = copy.deepcopy(table)
        out = publish(m, table)
        assert type(out.data) is type(table)
        assert list(getattr(out.data, "column_names", getattr(out.data, "columns", None))) == ["id", "a", "b"]
        assert [str(v) for v in out.data["id"]] == [str(v) for v in table["id"]]
        assert str(before) == str(table)
        if isinstance(table, pd.DataFrame):
            assert out.data.index.tolist() == [3, 2, 1]
            assert out.data["b"].dtype == np.float64
        assert out.noise.scales(["id", "a", "b"])[0] == 0.0
        assert out.columns == ["b", "a"]


@pytest.mark.parametrize("publish", PUBLISH)
def test_arrays_by_place(publish):
    m = zil.Mechanism([(0, 1), (0, 2)], zero_prob=1.0, scale=1.0)
    assert publish(m, np.array([[0, 1], [1, 2]])).data.tolist() == [[0, 1], [1, 2]]
    assert publish(m, pd.DataFrame({"x": [1], "y": [2]})).noise.scale.keys() == {"x", "y"}
    one = zil.Mechanism({1: (0, 1)}, zero_prob=0.0, scale=1.0)
    out = publish(one, np.array([[5.0, 0.5, 7.0]])).data
    assert out[0, [0, 2]].tolist() == [5.0, 7.0]
    assert out[0, 1] != 0.5
    named = zil.Mechanism({"x": (0, 1)}, zero_prob=1.0, scale=1.0)
    assert publish(named, np.array([0.5])).data.tolist() == [0.5]
    assert publish(named, [0.5]).data.tolist() == [0.5]
    with pytest.raises(zil.SchemaError, match="'x' not in the table"):
        publish(named, np.zeros((2, 2)))
    with pytest.raises(zil.SchemaError, match="not in the table"):
        publish(m, pd.DataFrame({"x": [1.0], "y": [1.0], "z": [1.0]}))


@pytest.mark.parametrize("publish", PUBLISH)
def test_clipping_is_silent(publish):
    m = mechanism(zero_prob=1.0)
    assert publish(m, np.array([-5.0, 0.25, SECRET])).data.tolist() == [0.0, 0.25, 1.0]
    assert publish(mechanism((0, 300), zero_prob=1.0), np.array([250], "u1")).data.tolist() == [250.0]
    assert publish(m, np.array([True, False])).data.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("publish", PUBLISH)
def test_missing_and_infinite(publish):
    m = zil.Mechanism({"a": (0, 1)}, zero_prob=1.0, scale=1.0)
    nan = pd.DataFrame({"a": [0.2, np.nan, SECRET]})
    inf = pd.DataFrame({"a": [0.2, np.inf, -np.inf]})
    both = pd.DataFrame({"a": [np.nan, np.inf]})
    for table, word in (
        (nan, "missing"),
        (inf, "infinite"),
        (pd.DataFrame({"a": pd.array([1, None], "Int64")}), "missing"),
    ):
        with pytest.raises(zil.SchemaError, match=f"column 'a' has {word}") as caught:
            publish(m, table)
        assert "739" not in str(caught.value)
    assert publish(m, inf, missing="clip").data["a"].tolist() == pytest.approx([0.2, 1.0, 0.0], abs=1e-6)
    with pytest.raises(zil.SchemaError, match="missing"):
        publish(m, both, missing="clip")
    assert publish(m, both, missing="midpoint").data["a"].tolist() == [0.5, 1.0]
    assert publish(m, both, missing=0.25).data["a"].tolist() == [0.25, 1.0]
    assert publish(m, both, missing={"a": 9}).data["a"].tolist() == [1.0, 1.0]
    assert publish(m, both, missing={"a": 9}).metadata["policies"]["missing"] == {"a": 9}
    for wrong in ("drop", {"b": 1}, math.nan, math.inf):
        with pytest.raises(ValueError, match="missing"):
            publish(m, both, missing=wrong)


@pytest.mark.parametrize("publish", [*PUBLISH, lambda m, x, **how: m.simulate(x, np.random.default_rng(0), **how)])
@pytest.mark.parametrize("n", [1, 5000])
def test_missing_and_infinite_in_arrays(publish, n):
    """The kernel of `simulate` sees them itself; the last row of an array is in another chunk than the first."""
    m = zil.Mechanism([(0, 1)] * 3, zero_prob=1.0, scale=1.0)
    x = np.full((n, 3), 0.5)
    for odd, word in ((np.nan, "missing"), (np.inf, "infinite"), (-np.inf, "infinite")):
        for row in {0, n - 1}:
            spoiled = x.copy()
            spoiled[row, 1] = odd
            with pytest.raises(zil.SchemaError, match=f"column 1 has {word}"):
                publish(m, spoiled)
            if np.isinf(odd):
                assert publish(m, spoiled, missing="clip").data[row].tolist() == [0.5, odd > 0, 0.5]
            else:
                with pytest.raises(zil.SchemaError, match="missing"):
                    publish(m, spoiled, missing="clip")
                assert publish(m, spoiled, missing=0.25).data[row].tolist() == [0.5, 0.25, 0.5]


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.MT19937, np.random.RandomState])
def test_a_refused_table_leaves_the_generator(kind):
    m = mechanism()
    rng, twin = kind(3), kind(3)
    for bad in (np.array([0.5, np.nan]), np.array([np.inf]), np.zeros(0), pd.DataFrame({"a": [np.nan]})):
        with pytest.raises(zil.SchemaError):
            m.simulate(bad, rng)
    assert np.array_equal(m.simulate(np.full(9, 0.5), rng).data, m.simulate(np.full(9, 0.5), twin).data)
    assert not np.array_equal(m.simulate(np.full(9, 0.5), rng).data, m.simulate(np.full(9, 0.5), kind(3)).data)


@pytest.mark.parametrize("publish", PUBLISH)
def test_refused_before_any_draw(publish, monkeypatch):
    def never(*_, **__):
        raise AssertionError("randomness was drawn")

    m = zil.Mechanism({"a": (0, 1)}, zero_prob=0.0, scale=1.0)
    monkeypatch.setattr("os.urandom", never)
    monkeypatch.setattr("zil.release.rows.simulated", never)
    for table, error in [
        (pd.DataFrame({"a": ["x"]}), TypeError),
        (pd.DataFrame({"a": pd.Categorical([1])}), TypeError),
        (pd.DataFrame({"a": pd.to_datetime(["2020"])}), TypeError),
        (pd.DataFrame({"a": pd.array([1.0], object)}), TypeError),
        (pd.DataFrame({"a": [np.nan]}), zil.SchemaError),
        (pd.DataFrame({"b": [0.0]}), zil.SchemaError),
        (pd.DataFrame({"a": []}, dtype=float), zil.SchemaError),
        (pd.DataFrame([[0.0, 1.0, 2.0]], columns=["a", "a", "b"]), zil.SchemaError),
        (pl.LazyFrame({"a": [0.0]}), TypeError),
        (np.zeros((0, 1)), zil.SchemaError),
        (np.ma.array([0.5], mask=[True]), zil.SchemaError),
    ]:
        with pytest.raises(error):
            publish(m, table)
    with pytest.raises(AssertionError, match="drawn"):
        publish(m, [0.5])


@pytest.mark.parametrize("publish", PUBLISH)
def test_layouts_are_accepted_and_left_alone(publish):
    m = mechanism((0, 20), zero_prob=1.0)
    values = np.arange(12.0)
    locked = values.copy()
    locked.flags.writeable = False
    for table in (
        values,
        values[::-1],
        values[::2],
        locked,
        values.astype("f4"),
        values.astype(">f8"),
        values.astype(int),
    ):
        before = table.copy()
        assert publish(m, table).data.tolist() == table.tolist()
        assert np.array_equal(table, before)


def test_release_has_no_seed():
    m = mechanism(zero_prob=0.0)
    for word in ("seed", "rng", "random_state"):
        with pytest.raises(TypeError):
            m.release([0.5], **{word: 1})
    np.random.seed(0)  # noqa: NPY002
    first = m.release([0.5] * 4).data
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(first, m.release([0.5] * 4).data)


def test_simulate_is_reproducible_and_stamped():
    m = mechanism(zero_prob=0.3)
    first = m.simulate([0.5] * 40, 7)
    assert np.array_equal(first.data, m.simulate([0.5] * 40, 7).data)
    assert np.array_equal(first.data, m.simulate([0.5] * 40, np.random.PCG64(7)).data)
    assert not np.array_equal(first.data, m.simulate([0.5] * 40).data)
    assert first.private is False
    assert first.metadata["numeric_delta"] is None
    assert "not private" in repr(first)
    assert first.report().splitlines()[1].startswith("VERDICT: NOT PRIVATE")
    assert "detects at most" not in first.report()
    assert "detects at most" not in first._repr_html_()
    assert m.release([0.5]).private is True


@pytest.mark.parametrize("publish", PUBLISH)
def test_output_lies_on_the_lattice(publish):
    """The grid of the output says nothing about the value: every number is a tick."""
    m = mechanism(zero_prob=0.1, scale=1.0)
    for value in (0.0, 1.0, 0.3):
        out = publish(m, np.full(20_000, value)).data / m.tick[0]
        assert (out == np.rint(out)).all()
    naive = 1.0 + np.random.default_rng().laplace(size=1000)
    assert not (naive / m.tick[0] == np.rint(naive / m.tick[0])).all()


@pytest.mark.parametrize("publish", PUBLISH)
def test_sign_of_zero_tells_nothing(publish):
    m = mechanism((-1, 1), zero_prob=1.0)
    assert not np.signbit(publish(m, np.array([-1e-300, -0.0, -1e-9, 0.0])).data).any()


@pytest.mark.parametrize("n", [1, 4095, 4097, 16_384, 40_000])
def test_same_bytes_for_any_number_of_threads(n, monkeypatch):
    m = zil.Mechanism([(0, 1), (0, 2), (0, 3)], zero_prob=0.2, scale=1.0)
    table = np.random.default_rng(1).uniform(0, 3, (n, 3))
    assert len({m.simulate(table, 0, n_threads=k).data.tobytes() for k in (1, 2, 8)}) == 1
    assert np.array_equal(m.simulate(table, 0).data[: n // 2], m.simulate(table[: max(1, n // 2)], 0).data[: n // 2])
    monkeypatch.setattr("os.urandom", lambda k: bytes(range(k)))
    assert len({m.release(table, n_threads=k).data.tobytes() for k in (1, 2, 8)}) == 1
    monkeypatch.undo()
    if n > 1:  # one row is published unchanged twice in 4 of 100 runs
        assert m.release(table).data.tobytes() != m.release(table).data.tobytes()


# the joint law


def moments(noise, zero_prob, scale):
    """Largest studentised deviation from the joint law, over twelve moments; noise of shape (n, 2)."""
    n = len(noise)
    zero = (noise == 0).all(axis=1)
    z = noise / scale
    terms = [
        (zero.astype(float), zero_prob),
        ((noise == 0).any(axis=1).astype(float), zero_prob),
        (z[:, 0] ** 2, 1 - zero_prob),
        (z[:, 1] ** 2, 1 - zero_prob),
        (z[:, 0] * z[:, 1], 0.0),
        (z[:, 0] ** 2 * z[:, 1] ** 2, 2 * (1 - zero_prob)),
        (z[:, 0] ** 4, 6 * (1 - zero_prob)),
        (np.abs(z[:, 0]), math.sqrt(0.5) * (1 - zero_prob)),
        (z[:, 0], 0.0),
        (np.cos(z[:, 0]), (1 + zero_prob / 2) / 1.5),
        (np.cos(z[:, 0] + z[:, 1]), (1 + zero_prob) / 2),
        ((z[1:, 0] * z[:-1, 0]), 0.0),
    ]
    return max(abs(t.mean() - mean) / (t.std() / math.sqrt(n)) for t, mean in terms)


@pytest.mark.parametrize("publish", PUBLISH)
def test_joint_law(publish):
    """False alarm below 1e-6: twelve questions at 6.5 standard errors (fourth moments included, n = 2e5)."""
    m = zil.Mechanism([(0, 1), (0, 1)], zero_prob=0.2, scale=1.5)
    noise = publish(m, np.zeros((200_000, 2))).data
    assert moments(noise, 0.2, 1.5) < 6.5
    zero = noise == 0
    # noise that rounds to tick 0 in one column alone: mean 0.2 of these rows, 9 or more below 1e-9
    assert (zero[:, 0] != zero[:, 1]).sum() < 9


@pytest.mark.parametrize("mutant", ["per entry", "no root", "variance", "zero per entry", "zero_prob"])
def test_joint_law_power(mutant):
    """The twelve questions see each of the usual faults."""
    rng = np.random.default_rng()
    n = 200_000
    w = rng.exponential(size=(n, 2 if mutant == "per entry" else 1))
    keep = rng.random((n, 2 if mutant == "zero per entry" else 1)) >= (0.21 if mutant == "zero_prob" else 0.2)
    scale = 1.5**0.5 if mutant == "variance" else 1.5
    noise = keep * (w if mutant == "no root" else np.sqrt(w)) * rng.normal(size=(n, 2)) * scale
    assert moments(noise, 0.2, 1.5) > 6.5


def test_tick_variance_is_handed_over():
    m = zil.Mechanism([(0, 10)], zero_prob=0.0, scale=8.0, resolution=1)
    out = m.release(np.full(10, 3.0))
    assert (out.data == np.rint(out.data)).all()
    assert out.noise.scale == {0: pytest.approx(math.sqrt(64 + 1 / 12))}
    assert m.noise == out.noise


def test_extremes_of_zero_prob():
    assert mechanism(zero_prob=1.0).release([0.25, 0.5]).data.tolist() == [0.25, 0.5]
    never = mechanism(zero_prob=0.0).release(np.full(1000, 0.5)).data
    assert (np.abs(never - 0.5) < ticks.REACH * 2).all()
    assert (never == 0.5).sum() < 3


# check


def test_check_counts_for_the_holder():
    table = pd.DataFrame({"a": [-1.0, 0.5, np.nan, np.inf], "b": [0, 9, 1, 1]})
    assert zil.check(table, BOUNDS) == {
        "a": {"out_of_bounds": 2, "below": 1, "above": 1, "missing": 1},
        "b": {"out_of_bounds": 1, "below": 0, "above": 1, "missing": 0},
    }
    assert zil.check(np.array([2.0]), [(0, 1)])[0]["above"] == 1
    with pytest.raises(TypeError, match="column 'a'"):
        zil.check(pd.DataFrame({"a": ["x"], "b": [1]}), BOUNDS)


def test_release_never_calls_check(monkeypatch):
    monkeypatch.setattr("zil.release.schema.outside", None)
    assert len(mechanism().release([0.5]).data) == 1


def test_a_resolution_that_is_not_used_is_told():
    """Whole numbers in, fractions out: rows published unchanged stand out."""
    unused = zil.Mechanism({"n": (0, 10)}, zero_prob=0.05, scale=6.0, resolution={"n": 1})
    for label in (unused.report(), unused.release(pd.DataFrame({"n": [1.0]})).report()):
        assert "declared resolution of" in label
    used = zil.Mechanism({"n": (0, 10)}, zero_prob=0.05, scale=9.0, resolution={"n": 1})
    assert "resolution" not in used.report()
    assert "Noise that rounds to 0" in used.report()


def test_an_error_about_text_does_not_depend_on_it():
    mechanism = zil.Mechanism([(0, 1), (0, 1)], zero_prob=0.1, scale=2.0)
    messages = set()
    for text in ("short", "a longer and private text"):
        with pytest.raises(TypeError, match="dtype text") as caught:
            mechanism.release([[1.0, text]])
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_sharp_is_true_or_false():
    with pytest.raises(TypeError, match="sharp"):
        zil.calibrate({"a": (0, 1)}, epsilon=1, delta=0.1, zero_prob=0.05, unit="record", sharp="no")


NAMED = zil.Mechanism({"a": (0, 1), "b": (0, 2)}, zero_prob=0.5, scale=1.0)


@pytest.mark.parametrize("call", [NAMED.release, lambda table: NAMED.simulate(table, 1)])
def test_an_array_without_names_is_taken_in_order_and_says_so(call):
    table = np.array([[0.5, 1.0], [0.25, 2.0]])
    if call == NAMED.release:
        with pytest.warns(UserWarning, match="the table has no column names: .* taken for 'a', 'b', in this") as caught:
            NAMED.release(table)
    else:
        with pytest.warns(UserWarning, match="no column names") as caught:
            NAMED.simulate(table.tolist(), 1)
    assert [warning.filename for warning in caught] == [__file__]


def test_names_and_single_columns_say_nothing():
    """Warnings are errors in this suite."""
    table = np.array([[0.5, 1.0], [0.25, 2.0]])
    NAMED.release(pd.DataFrame(table, columns=["b", "a"]))
    zil.Mechanism([(0, 1), (0, 2)], zero_prob=0.5, scale=1.0).release(table)
    zil.Mechanism({"a": (0, 1)}, zero_prob=0.5, scale=1.0).release(table[:, 0])


BEYOND = 2**53 + 1


@pytest.mark.parametrize(
    "table",
    [
        np.array([[0, BEYOND], [1, 7]]),
        np.array([[0, -BEYOND], [1, 7]]),
        np.array([[0, BEYOND], [1, 7]], np.uint64),
        np.ma.array([[0, BEYOND], [1, 7]], mask=[[False, False], [False, True]]),
        [[0, BEYOND], [1, 7]],
        [[0.5, BEYOND], [1, 7]],
        ([0.5, BEYOND], [1, 7]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("how", ["release", "simulate"])
def test_passed_whole_numbers_that_an_array_cannot_keep(table, how, monkeypatch):
    """They came back as others; the refusal comes before any draw and shows none of them."""
    first = zil.Mechanism({0: (0, 1)}, zero_prob=0.5, scale=1.0)
    monkeypatch.setattr("zil.release.sampler.TickNoise", None)
    with pytest.raises(
        zil.SchemaError, match=r"column 1 passes through and has whole numbers beyond 2\*\*53"
    ) as caught:
        getattr(first, how)(table)
    assert "9007" not in str(caught.value)


def test_passed_whole_numbers_that_an_array_keeps():
    first = zil.Mechanism({0: (0, 1)}, zero_prob=0.5, scale=1.0)
    for top in (2**53, -(2**53)):
        for table in (np.array([[0, top], [1, 7]]), [[0.5, top], [1, 7]]):
            assert first.release(table).data[:, 1].tolist() == [top, 7]
    masked = np.ma.array([[0, BEYOND], [1, 7]], mask=[[False, True], [False, False]])
    assert np.isnan(first.release(masked).data[0, 1])
    frame = pd.DataFrame({0: [0, 1], 1: [BEYOND, 7]})
    assert first.release(frame).data[1].tolist() == [BEYOND, 7]  # a frame keeps its integers
    noised = zil.Mechanism({1: (0, 1)}, zero_prob=0.5, scale=1.0)
    noised.release(np.array([[0, BEYOND], [1, 7]]))  # clipped anyway
