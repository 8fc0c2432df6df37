"""zil.plan: its frontier, its predictions against fits, and what it refuses."""

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import special

import zil
from zil.estimation import prediction
from zil.estimation.pilot import Pilot

BOUNDS = {"a": (-1, 1), "b": (0, 2)}
KEYS = {
    "kind", "zero_prob", "scale", "unchanged_rows", "delta_attribute", "delta_record", "se", "factor", "trust",
    "n_needed",
}  # fmt: skip


def rows(n, seed, loss):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, n), rng.uniform(0, 2, n)
    index = a + b - 1
    y = rng.random(n) < special.expit(index) if loss == "logistic" else index + 0.5 * rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "y": np.asarray(y, dtype=float)})


def made(loss="logistic", epsilon=3.0, delta=0.1, n=20_000, **more):
    more = {"pilot": rows(4000, 0, loss.split(":")[0]), "y": "y"} | more
    return zil.plan(BOUNDS, epsilon=epsilon, delta=delta, unit="attribute", loss=loss, n=n, **more)


def test_frontier():
    plan = made(target_se=0.05)
    kinds = [entry["kind"] for entry in plan.frontier]
    assert kinds == ["sl", "zil", "zil", "zil", "zil", "zil", "suppress", "laplace"]
    for entry in plan.frontier:
        assert set(entry) == KEYS
        assert set(entry["se"]) == {"Intercept", "a", "b"}
        assert entry["trust"] in ("fine", "weak", "hopeless")
        assert entry["unchanged_rows"] == pytest.approx(20_000 * entry["zero_prob"])
        assert entry["delta_attribute"] <= 0.1 + 1e-9
        assert entry["delta_record"] >= entry["delta_attribute"] - 1e-9
        # twice the rows that the target needs would be more than enough
        worst = max(entry["se"]["a"], entry["se"]["b"])
        assert entry["n_needed"] >= 20_000 * (worst / 0.05) ** 2 - 1
    zil_points = [e for e in plan.frontier if e["kind"] == "zil"]
    assert [e["zero_prob"] for e in zil_points] == pytest.approx([0.005, 0.02, 0.05, 0.08, 0.097])
    for entry in zil_points:
        same = zil.calibrate(BOUNDS, epsilon=3.0, delta=0.1, zero_prob=entry["zero_prob"], unit="attribute")
        assert list(entry["scale"].values()) == same.scale.tolist()
    assert plan.n_needed == [entry["n_needed"] for entry in plan.frontier]
    assert json.loads(json.dumps(plan.to_dict()))["n"] == 20_000
    assert plan.estimate["a"] == pytest.approx(1.0, abs=0.3)
    assert made() == made()  # the same call says the same
    words = plan.summary()
    assert "No point is the best one" in words
    assert "Blanking all but 10 % of rows" in words
    assert plan._repr_html_().startswith("<pre>")


def test_there_is_no_best_point():
    assert not any(hasattr(zil.PrivacyPlan, word) for word in ("best", "argmin", "optimum"))


@pytest.mark.parametrize(
    ("loss", "z"), [("logistic", 0.08), ("logistic", 0.0), ("squared", 0.05), ("quantile:0.5", 0.08)]
)
def test_predictions_agree_with_fits(loss, z):
    """Median standard error of seven fits at n = 20,000 within 15 %; half the scale would be a third off."""
    plan = made(loss, zero_probs=[z])
    entry = plan.frontier[0]
    mechanism = zil.calibrate(BOUNDS, epsilon=3.0, delta=0.1, zero_prob=z, unit="attribute")
    errors = []
    for seed in range(7):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = zil.fit(loss, mechanism.simulate(rows(20_000, seed + 1, loss), seed), y="y", x=["a", "b"])
        errors.append(found.bse[1:])
    predicted = np.array([entry["se"]["a"], entry["se"]["b"]])
    assert np.abs(np.log(np.median(errors, axis=0) / predicted)).max() < math.log(1.15)


def test_suppression_is_the_original_over_the_root_of_the_share():
    plan = made()
    entry = next(e for e in plan.frontier if e["kind"] == "suppress")
    assert entry["factor"] == pytest.approx(1 / math.sqrt(0.1), rel=0.01)
    assert entry["zero_prob"] == entry["delta_record"] == 0.1
    original = zil.fit("logistic", rows(4000, 0, "logistic"), y="y")
    for k, name in enumerate(["Intercept", "a", "b"]):
        assert entry["se"][name] == pytest.approx(original.bse[k] * math.sqrt(4000 / 2000), rel=0.02)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("wrong", [1.0, 1.3])
def test_laplace_scores_are_unbiased(loss, wrong):
    """Their mean over noise is the clean score: five standard errors (3 parameters, false alarm 2e-6 in total); noise
    30 % larger than stated is seen."""
    rng = np.random.default_rng()
    table = rows(4000, 3, loss)
    pilot = Pilot.of(zil.losses.resolve(loss), list(BOUNDS), np.array([[-1.0, 1], [0, 2]]), table, "y", None, rng)
    scale = np.array([0.9, 0.7])
    clean = pilot.scores(pilot.table, None, "naive")(pilot.theta + 0.5)
    total = []
    for _ in range(30):
        noise = wrong * scale * rng.laplace(size=(len(clean), 2)) / math.sqrt(2)
        scores = prediction.laplace_scores(pilot, prediction.moved(pilot, pilot.table, noise), scale)
        total.append(scores(pilot.theta + 0.5) - clean)
    gap = np.concatenate(total)
    off = np.abs(gap.mean(axis=0)) / (gap.std(axis=0) / math.sqrt(len(gap)))
    assert (off.max() < 5.0) == (wrong == 1.0)


def test_noised_response_and_location():
    bounds = {"a": (-1, 1), "y": (-4, 4)}
    table = rows(1000, 1, "squared")[["a", "y"]]
    plan = zil.plan(bounds, epsilon=3.0, delta=0.2, unit="record", loss="squared", n=5000, pilot=table, y="y")
    assert [entry["kind"] for entry in plan.frontier].count(
        "laplace"
    ) == 0  # its response would have to be corrected too
    assert plan.frontier[-2]["factor"] > 1.0
    median = zil.plan(
        {"y": (-4, 4)}, epsilon=1.0, delta=0.2, unit="record", loss="quantile:0.5", n=500, pilot=table, y="y", x=[]
    )
    assert list(median.estimate) == ["Intercept"]
    assert all(math.isfinite(e["se"]["Intercept"]) for e in median.frontier)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "quantile:0.9", "huber", "squared_hinge", "absolute"])
def test_without_a_pilot(loss):
    plan = zil.plan({"age": (18, 90), "score": (0, 1)}, epsilon=2.0, delta=0.2, unit="record", loss=loss, n=20_000)
    assert plan.synthetic
    assert "order of magnitude" in plan.summary()
    last = [entry["se"] for entry in plan.frontier if entry["kind"] == "zil"][-1]
    # equal shares of the index: errors in proportion to 1/width
    assert last["score"] / last["age"] == pytest.approx(72, rel=0.2)


def test_rows_for_a_target():
    plan = made(n=None, target_se={"a": 0.02})
    assert plan.n is None
    for entry in plan.frontier:
        assert entry["se"]["a"] <= 0.02 * (1 + 1e-9)
        assert entry["unchanged_rows"] == pytest.approx(entry["n_needed"] * entry["zero_prob"])
    assert made(n=None).n == 4000  # as many as the pilot


def test_hopeless_at_a_tiny_size():
    plan = zil.plan(BOUNDS, epsilon=0.5, delta=0.01, unit="record", loss="logistic", n=200)
    assert {entry["trust"] for entry in plan.frontier} == {"hopeless"}
    assert "hopeless at this size" in plan.summary()


def test_plot():
    pytest.importorskip("matplotlib")
    ax = made().plot()
    assert ax.get_ylabel().startswith("standard error")
    assert len(ax.lines) == 4


def test_a_long_pilot_is_thinned():
    short = made()
    long = made(pilot=pd.concat([rows(4000, k, "logistic") for k in range(5)]), n=20_000)
    for one, other in zip(short.frontier[-3:], long.frontier[-3:], strict=True):
        assert one["se"]["a"] == pytest.approx(other["se"]["a"], rel=0.25)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n": None, "pilot": None}, ValueError, "give n"),
        ({"y": None}, ValueError, "y is missing"),
        ({"pilot": rows(20, 0, "logistic")}, ValueError, "at least 50 rows"),
        ({"x": ["c"]}, zil.SchemaError, "'c'"),
        ({"pilot": None, "x": ["c"]}, ValueError, "'c' has none"),
        ({"target_se": {"c": 1.0}}, ValueError, "names 'c'"),
        ({"target_se": -1.0}, ValueError, "target_se"),
        ({"zero_probs": [0.2]}, ValueError, "zero_probs"),
        ({"delta": 1.0}, ValueError, "delta"),
        ({"epsilon": -1.0}, ValueError, "epsilon"),
        ({"n": 1}, ValueError, "n must be"),
        ({"pilot": rows(100, 0, "squared").assign(y=1.0)}, ValueError, "class|minimum"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        made(**arguments)


def test_kinked_losses_need_unchanged_rows():
    with pytest.raises(ValueError, match="smooth loss"):
        made("quantile:0.5", zero_probs=[0.0])
    assert made("quantile:0.5").frontier[0]["kind"] == "zil"
    with pytest.raises(ValueError, match="bounds"):
        zil.plan(
            {"c": (0, 1)},
            epsilon=1,
            delta=0.1,
            unit="record",
            loss="squared",
            pilot=rows(100, 0, "squared"),
            y="y",
            x=["a"],
        )
