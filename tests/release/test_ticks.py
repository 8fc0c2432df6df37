"""The public lattice: inside the bounds, exact in float64, clipped, and refusing what does not fit."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zil.release import sampler, ticks

NAMES = ["a"]


def to_values(values, g, noise=0):
    out = np.empty_like(values)
    ticks.Kernel(g).publish(values, np.full(values.shape, noise), out)
    return out


def to_ticks(values, g):
    """Published without noise, in ticks: whole numbers, and for powers of two without rounding."""
    return np.rint(to_values(values, g) / g.tick)


def grid(low, high, scale, resolution=None):
    return ticks.lattice(NAMES, np.array([[low, high]], float), np.array([scale], float), [resolution])


def test_default_tick_is_a_power_of_two_near_the_millionth():
    for scale in (1.0, 0.3, 7e-5, 123456.0):
        tick = float(grid(0, 1e-3 * scale, scale).tick[0])
        assert np.frexp(tick)[0] == 0.5
        assert 2**20 <= scale / tick < 2**21


def test_declared_resolution():
    assert grid(0, 10, 8.0, 1.0).tick[0] == 1.0
    assert grid(0, 10, 7.9, 1.0).tick[0] < 1e-4  # too coarse for this little noise
    cents = grid(0.3, 0.7, 1.0, 0.01)
    assert (cents.low[0], cents.high[0]) == (30, 70)


bound = st.floats(-1e6, 1e6)


@settings(deadline=None)
@given(bound, bound, st.floats(1e-3, 1e6), st.lists(st.floats(allow_nan=False), min_size=1, max_size=5))
def test_values_end_on_the_lattice_inside_the_bounds(one, other, scale, values):
    low, high = min(one, other), max(one, other)
    g = grid(low, high, scale)
    tick = Fraction(float(g.tick[0]))
    assert Fraction(g.high[0]) - Fraction(g.low[0]) <= (Fraction(high) - Fraction(low)) / tick
    got = to_values(np.array(values)[:, None], g) / g.tick  # exact
    assert (got == np.rint(got)).all()
    assert ((got >= g.low) & (got <= g.high)).all()
    for value, count in zip(values, got[:, 0].tolist(), strict=True):
        clipped = min(max(value, low), high)
        assert abs(Fraction(count) * tick - Fraction(clipped)) <= tick


def test_whole_numbers_are_kept():
    g = grid(0, 100, 33.0)
    values = np.arange(101.0)[:, None]
    assert (to_values(values, g) == values).all()


def test_infinite_values_go_to_the_bounds():
    g = grid(0, 1, 1.0)
    got = to_values(np.array([[np.inf], [-np.inf]]), g)
    assert got.tolist() == [[1.0], [0.0]]


def test_bounds_closer_than_a_tick():
    g = grid(0.1, 0.1 + 1e-12, 1.0)
    assert g.low == g.high
    assert abs(g.low[0] * g.tick[0] - 0.1) <= g.tick[0]
    assert grid(2, 2, 1.0).low[0] * grid(2, 2, 1.0).tick[0] == 2.0


def test_bounds_far_from_zero():
    far = grid(1e12, 1e12 + 1, 2.0)  # coarser than 2**-20 of the scale, still exact
    assert 2.0 / far.tick[0] >= ticks.COARSEST
    assert np.abs(far.high[0]) <= ticks.LIMIT
    with pytest.raises(ValueError, match=r"column 'a': .*too far from 0 for float64"):
        grid(1e18, 1e18 + 1024, 10.0)
    with pytest.raises(ValueError, match="too far"):
        grid(0, 1e15, 8.0, 1e-3)


def test_resolution_too_fine_for_the_sampler():
    """Refused where the mechanism is made: `release` must find nothing more to refuse once it has drawn a key."""
    for resolution in (2.0**-44, 5e-14, 1e-300, 5e-324):
        with pytest.raises(ValueError, match=r"column 'a': a resolution of .* is too fine for scale 1,"):
            grid(0, 1, 1.0, resolution)
    for resolution in (np.nextafter(2.0**-44, 1), 6e-14):
        g = grid(0, 1, 1.0, resolution)
        sampler.draw_ticks(bytes(32), 1, [sampler.scale_in_ticks(1.0, float(g.tick[0]))], 0.1)


def test_noise_that_could_overflow_is_refused():
    with pytest.raises(ValueError, match=r"column 'a': .*larger than float64"):
        grid(0, 1e308, 1e307)


def test_effective_scale_adds_the_rounding():
    assert ticks.effective_scale(np.array([8.0]), np.array([1.0]))[0] == pytest.approx(np.sqrt(64 + 1 / 12))


def test_resolution_forms():
    assert ticks.resolutions(["a", "b"], None) == [None, None]
    assert ticks.resolutions(["a", "b"], 1) == [1.0, 1.0]
    assert ticks.resolutions(["a", "b"], {"b": 0.5}) == [None, 0.5]
    assert ticks.resolutions(["a", "b"], [None, 2]) == [None, 2.0]
    with pytest.raises(ValueError, match="names 'c'"):
        ticks.resolutions(["a"], {"c": 1})
    with pytest.raises(ValueError, match="2 entries for 1 columns"):
        ticks.resolutions(["a"], [1, 2])
    with pytest.raises(ValueError, match="resolution of 'a' must be in"):
        ticks.resolutions(["a"], 0.0)


@pytest.mark.parametrize("d", [1, 2, 3, 7, 2000])
@pytest.mark.parametrize("resolution", [None, 0.01])
def test_the_kernel_is_the_plain_formula(d, resolution):
    rng = np.random.default_rng()
    bounds = np.sort(rng.normal(size=(d, 2)), axis=1)
    g = ticks.lattice(list(range(d)), bounds, rng.uniform(1, 9, d), [resolution] + [None] * (d - 1))
    values = rng.normal(size=(1500 // d + 3, d)) * 2
    noise = rng.integers(-(2**40), 2**40, values.shape)
    plain = np.rint(np.clip(values, g.low * g.tick, g.high * g.tick) / g.tick) + noise
    out = np.empty_like(values)
    ticks.Kernel(g).publish(values, noise, out)
    assert np.array_equal(out, plain * g.tick)


@pytest.mark.parametrize("scale", [1e-290, 3e-310 * 2**40, 1e-3, 1e280, 1e300])
def test_ticks_of_any_size(scale):
    """Powers of two beyond 2^-900 and 2^900 take the path with divisions."""
    g = grid(-scale, scale, scale)
    assert np.frexp(g.tick)[0] == 0.5
    values = np.random.default_rng().uniform(-2, 2, (999, 1)) * scale
    plain = np.rint(np.clip(values, g.low * g.tick, g.high * g.tick) / g.tick)
    assert np.array_equal(to_values(values, g, 12345), (plain + 12345) * g.tick)


def test_no_negative_zero():
    g = grid(-1, 1, 1.0)
    assert not np.signbit(to_values(np.array([[-0.0], [0.0], [-1e-30]]), g)).any()
    g = grid(-1, 1, 1.0, 0.01)
    assert not np.signbit(to_values(np.array([[-0.0], [0.0], [-1e-30]]), g)).any()
