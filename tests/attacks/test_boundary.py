"""Arbitrary input through the boundary: no crash, no undocumented exception, no cell in a message."""

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


def test_every_outcome_is_met():
    """The generator is not stuck in refusals."""
    met = set()

    @settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def explore(data):
        met.add(boundary.attempt(Drawn(data)))

    explore()
    assert met == {"parameters refused", "table refused", "published"}
