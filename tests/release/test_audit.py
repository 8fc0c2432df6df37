"""The audit passes the right sampler, at the level it states, and finds those that give away more than is claimed."""

import numpy as np
import pytest

import zil
from zil.release import audit as module

MECHANISMS = {
    "one column": zil.Mechanism([(0, 1)], zero_prob=0.05, scale=1.0),
    "two columns": zil.Mechanism({"a": (18, 90), "b": (0, 1e5)}, zero_prob=0.2, scale={"a": 30.0, "b": 1e5}),
    "six columns, little noise": zil.Mechanism([(0, 1)] * 6, zero_prob=0.1, scale=0.4),
    "no atom": zil.Mechanism([(-1, 1)] * 3, zero_prob=0.0, scale=2.0),
    "whole numbers": zil.Mechanism([(0, 10)] * 2, zero_prob=0.05, scale=8.0, resolution=1.0),
}


@pytest.mark.parametrize("unit", ["attribute", "record"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_right_sampler_passes(name, unit):
    """Fails with probability at most 1e-7, and looks hard: at epsilon = 0 it shows nearly all that is claimed."""
    mechanism = MECHANISMS[name]
    result = zil.audit(mechanism, unit=unit, n_samples=200_000, level=1e-7)
    assert result.passed, result.summary()
    np.testing.assert_array_equal(result.claimed, mechanism.delta(result.epsilons, unit))
    slack = 0.02 if name != "whole numbers" else 0.05
    assert result.lower_bounds[0] > result.claimed[0] - slack
    assert "passed" in result.summary()
    assert result.contradictions == ()
    assert result.questions > 500
    assert f"{result.questions} questions about the law of the noise, 0 contradictions" in result.summary()


def wrong(kind, mechanism, rng):
    """A plausible mistake; "no lattice" makes none but adds the noise in float64."""
    scale, zero_prob, tick = mechanism.scale, mechanism.zero_prob, mechanism.tick

    def publish(values):
        n, d = values.shape
        w = rng.exponential(size=(n, 1))
        mask = rng.random((n, 1)) >= zero_prob + (0.01 if kind == "zero_prob + .01" else 0.0)
        if kind == "zero draw per entry":
            mask = rng.random((n, d)) >= zero_prob
        noise = np.sqrt(w) * rng.standard_normal((n, d)) * scale * mask
        if kind == "scale x .9":
            noise *= 0.9
        if kind == "standard deviation for scale":
            noise /= np.sqrt(2)
        if kind == "no lattice":
            return values + noise
        return np.rint((values + noise) / tick) * tick

    return publish


EPSILONS = np.array(module.EPSILONS)


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        ("scale x .9", "attribute"),
        ("scale x .9", "record"),
        ("standard deviation for scale", "attribute"),
        ("zero_prob + .01", "attribute"),
        ("zero draw per entry", "record"),
    ],
)
def test_a_wrong_sampler_fails(kind, unit):
    mechanism = zil.Mechanism([(0, 1)] * 2, zero_prob=0.05, scale=1.0)
    rng = np.random.default_rng()
    result = module.run(mechanism, wrong(kind, mechanism, rng), unit, 500_000, EPSILONS, 1e-6)
    assert not result.passed
    assert "FAILED" in result.summary()
    assert (result.lower_bounds > result.claimed).any()
    assert "more can be learnt" in result.summary()
    assert module.run(mechanism, wrong("none", mechanism, rng), unit, 200_000, EPSILONS, 1e-7).passed


def test_noise_added_in_float64_fails():
    """The naive control: its bounds of delta are those of the right law, its values are off the lattice."""
    mechanism = zil.Mechanism([(0, 1)] * 2, zero_prob=0.05, scale=1.0)
    result = module.run(
        mechanism, wrong("no lattice", mechanism, np.random.default_rng()), "record", 10_000, EPSILONS, 1e-6
    )
    assert not result.passed
    assert (result.lower_bounds <= result.claimed).all()
    assert [c.what for c in result.contradictions] == ["values off the lattice"]
    assert "the noise does not have the stated law" in result.summary()
    assert "values off the lattice: " in result.summary()


def test_false_alarms_are_no_more_than_stated():
    """100 audits at level 0.2; more than 20 + 6 standard errors fail with probability below 1e-8."""
    mechanism = MECHANISMS["two columns"]
    failed = sum(not zil.audit(mechanism, unit="record", n_samples=2000, level=0.2).passed for _ in range(100))
    assert failed <= 44


def test_epsilons_in_any_order():
    mechanism = MECHANISMS["one column"]
    result = zil.audit(mechanism, unit="record", n_samples=20_000, epsilons=[2.0, 0.0, 1.0])
    assert result.epsilons.tolist() == [2.0, 0.0, 1.0]
    assert result.claimed[1] > result.claimed[2] > result.claimed[0]
    assert result.lower_bounds[1] >= result.lower_bounds[2] >= result.lower_bounds[0]
    one = zil.audit(mechanism, unit="record", n_samples=1000, epsilons=1.0)
    assert one.epsilons.shape == one.lower_bounds.shape == one.claimed.shape == (1,)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"unit": "town"}, ValueError, "unit must be one of"),
        ({"n_samples": 10}, ValueError, "n_samples must be at least 100"),
        ({"n_samples": 1e6}, TypeError, "n_samples must be an integer"),
        ({"level": 0.0}, ValueError, "level must be in"),
        ({"level": float("nan")}, ValueError, "level must be in"),
        ({"epsilons": [-1.0]}, ValueError, "epsilons must be"),
        ({"epsilons": []}, ValueError, "epsilons must be"),
        ({"epsilons": [np.inf]}, ValueError, "epsilons must be finite"),
        ({"mechanism": "m"}, TypeError, "mechanism must be"),
    ],
)
def test_bad_input(change, error, message):
    arguments = {"mechanism": MECHANISMS["one column"], "unit": "record", "n_samples": 1000} | change
    with pytest.raises(error, match=message):
        zil.audit(arguments.pop("mechanism"), **arguments)
