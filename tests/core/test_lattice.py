"""The lattice kernels: same bits for every instruction set, and they refuse what does not fit."""

import numpy as np
import pytest

from zil._core import lattice, probe, sampling
from zil._random import resolve_key

ISAS = range(probe.best_isa() + 1)
MAGIC = 1.5 * 2.0**52


def plain(low, high, tick, x, noise):
    """Whole numbers of ticks, one numpy step at a time."""
    return np.rint(np.rint(np.clip(x, low, high) / tick) + noise)


def parameters(rng, d, binary):
    tick = 2.0 ** rng.integers(-30, 5, d) if binary else rng.uniform(0.1, 1, d)
    return -tick * 2**20, tick * 3, tick, MAGIC * tick if binary else None


@pytest.mark.parametrize("d", [1, 2, 3, 8, 16, 17, 40])
@pytest.mark.parametrize("binary", [True, False])
def test_same_bits_for_every_instruction_set(d, binary):
    rng = np.random.default_rng()
    low, high, tick, shift = parameters(rng, d, binary)
    x = np.concatenate([rng.normal(size=(1000, d)), [[np.inf] * d, [-np.inf] * d, [-0.0] * d]])
    noise = np.concatenate([rng.integers(-(2**49), 2**49, (1000, d)), np.zeros((3, d), np.int64)])
    expected = plain(low, high, tick, x, noise) * tick
    for isa in ISAS:
        out = np.full_like(x, 7.0)
        lattice.publish(low, high, tick, shift, x, noise, out, isa)
        assert np.array_equal(out, expected)
        assert not np.signbit(out[-1]).any()


@pytest.mark.parametrize("d", [1, 2, 3, 6, 7, 16, 17, 40])
@pytest.mark.parametrize("binary", [True, False])
def test_simulated_noise_is_that_of_the_sampler(d, binary):
    """One pass gives the bits of: clip, divide, round, add the noise, round, multiply."""
    rng = np.random.default_rng()
    key, n, chunks = resolve_key(rng), sampling.CHUNK + 77, 2
    low, high, tick, shift = parameters(rng, d, binary)
    scale = rng.uniform(10, 2**20, d)
    x = rng.normal(size=(n, d))
    noise, out = np.empty((n, d)), np.empty((n, d))
    for isa in ISAS:
        sampling.add_noise(key, sampling.NOISE, 0.2, scale, None, None, noise, 0, 0, chunks, isa)
        assert lattice.simulate(low, high, tick, shift, x, key, 0.2, scale, out, 0, chunks, isa)
        assert np.array_equal(out, plain(low, high, tick, x, noise) * tick)
        assert not np.signbit(out[out == 0]).any()
    part = np.full((n, d), 7.0)
    lattice.simulate(low, high, tick, shift, x, key, 0.2, scale, part, 1, 2)
    assert (part[: sampling.CHUNK] == 7.0).all()
    assert np.array_equal(part[sampling.CHUNK :], out[sampling.CHUNK :])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("odd", [np.nan, -np.nan, np.inf, -np.inf])
def test_entries_that_are_not_finite_are_seen(isa, binary, odd):
    """Wherever they are, and nothing finite is taken for one."""
    rng = np.random.default_rng()
    d, n = 3, 300
    key = resolve_key(rng)
    low, high, tick, shift = parameters(rng, d, binary)
    rest = (key, 0.2, np.full(d, 100.0), np.empty((n, d)), 0, 1, isa)
    big = np.finfo(float).max
    x = rng.choice([0.0, -0.0, 1.0, big, -big, 5e-324, -5e-324], (n, d))
    assert lattice.simulate(low, high, tick, shift, x, *rest)
    for place in (0, n * d - 1, int(rng.integers(n * d))):
        spoiled = x.copy()
        spoiled.ravel()[place] = odd
        assert not lattice.simulate(low, high, tick, shift, spoiled, *rest)


@pytest.mark.parametrize("shift", [None, np.array([MAGIC])])
def test_ties_go_to_even_up_to_the_limit(shift):
    tick = np.ones(1)
    x = np.array([[0.5], [1.5], [2.5], [2.0**50 + 0.5], [2.0**50 + 1.5], [-(2.0**51) + 1], [2.0**51 - 1]])
    out = np.empty_like(x)
    lattice.publish(tick * -(2.0**52), tick * 2.0**52, tick, shift, x, np.zeros(x.shape, np.int64), out)
    assert np.array_equal(out, np.rint(x))


def test_shapes_are_checked():
    one, x, zero, key = np.ones(2), np.ones((3, 2)), np.zeros((3, 2), np.int64), resolve_key(1)
    for low, high, tick, shift, message in (
        (np.ones(4), one, one, one, "one value per column"),
        (one, one[:1], one, one, "one value per column"),
        (one, one, one[:0], one, "one value per column"),
        (one, one, one, np.ones(4), "shift"),
    ):
        with pytest.raises(ValueError, match=message):
            lattice.publish(low, high, tick, shift, x, zero, x.copy())
        with pytest.raises(ValueError, match=message):
            lattice.simulate(low, high, tick, shift, x, key, 0.1, one, x.copy(), 0, 1)
    for noise, out in ((zero, np.ones((3, 3))), (zero[:2], x.copy()), (np.zeros((3, 1), np.int64), x.copy())):
        with pytest.raises(ValueError, match="differ in shape"):
            lattice.publish(one, one, one, None, x, noise, out)
    for how, message in (
        ((key[:3].copy(), 0.1, one, x.copy(), 0, 1), "key"),
        ((key, 0.1, np.ones(3), x.copy(), 0, 1), "scale"),
        ((key, 0.1, one, np.ones((2, 2)), 0, 1), "differ in shape"),
        ((key, 0.1, one, x.copy(), -1, 1), "negative"),
    ):
        with pytest.raises(ValueError, match=message):
            lattice.simulate(one, one, one, None, x, *how)
    lattice.publish(one, one, one, None, x[:0], zero[:0], x[:0].copy())
    assert lattice.simulate(one, one, one, None, x[:0], key, 0.1, one, x[:0].copy(), 0, 1)
