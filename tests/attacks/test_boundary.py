"""Arbitrary input through the boundary: no crash, no undocumented exception, no cell in a message."""

import numpy as np
from attacks import boundary
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


class Drawn:
    """Choices made by hypothesis."""

    def __init__(self, data):
        self.data = data

    def integer(self, low, high):
        return self.data.draw(st.integers(low, high))

    def number(self):
        return self.data.draw(st.floats(-1e3, 1e3))

    def choice(self, options):
        return options[self.integer(0, len(options) - 1)]


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_boundary(data):
    boundary.attempt(Drawn(data))


class Dice:
    """Choices made by chance."""

    def __init__(self, rng):
        self.rng = rng

    def integer(self, low, high):
        return int(self.rng.integers(low, high, endpoint=True))

    def number(self):
        return float(self.rng.normal() * 10)

    def choice(self, options):
        return options[self.integer(0, len(options) - 1)]


def test_every_outcome_is_met():
    """The maker of arguments is not stuck in refusals: each outcome has a share of 8 % or more."""
    dice = Dice(np.random.default_rng())
    met = [boundary.attempt(dice) for _ in range(600)]
    assert {outcome for outcome in met if met.count(outcome) > 5} == {
        "parameters refused",
        "table refused",
        "published",
    }
