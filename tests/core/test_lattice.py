"""The lattice kernel: same bits for every instruction set, and it refuses what does not fit."""

import numpy as np
import pytest

from zil._core import lattice, probe


@pytest.mark.parametrize("d", [1, 3, 8])
@pytest.mark.parametrize("binary", [True, False])
def test_same_bits_for_every_instruction_set(d, binary):
    rng = np.random.default_rng()
    tick = np.tile(2.0 ** rng.integers(-30, 5, d) if binary else rng.uniform(0.1, 1, d), 5)
    inverse = 1 / tick if binary else None
    x = np.concatenate([rng.normal(size=(1000, d)), [[np.inf] * d, [-np.inf] * d, [-0.0] * d]])
    low, high = -tick * 2**20, tick * 3
    results = []
    for isa in range(probe.best_isa() + 1):
        out = np.full_like(x, 7.0)
        lattice.to_ticks(low, high, tick, inverse, x, out, isa)
        counts = out.copy()
        lattice.to_values(tick, out, isa)
        results.append((counts.tobytes(), out.tobytes()))
    assert len(set(results)) == 1
    expected = np.rint(np.clip(x, low[:d], high[:d]) / tick[:d])
    assert np.array_equal(counts, expected)
    assert np.array_equal(out, expected * tick[:d])
    assert not np.signbit(out[-1]).any()


def test_ties_go_to_even_up_to_the_limit():
    tick = np.ones(1)
    x = np.array([[0.5], [1.5], [2.5], [2.0**50 + 0.5], [2.0**50 + 1.5], [-(2.0**51) + 1], [2.0**51 - 1]])
    out = np.empty_like(x)
    lattice.to_ticks(tick * -(2.0**52), tick * 2.0**52, tick, tick, x, out)
    assert np.array_equal(out, np.rint(x))


def test_shapes_are_checked():
    one, x = np.ones(2), np.ones((3, 2))
    for arguments in (
        (one, one, one, one, x, np.ones((3, 3))),
        (one, one, one, one, np.ones((3, 3)), np.ones((3, 3))),
        (np.ones(4), one, one, one, x, x.copy()),
        (one, one, one, np.ones(4), x, x.copy()),
        (one, one, one[:0], one, x, x.copy()),
    ):
        with pytest.raises(ValueError):
            lattice.to_ticks(*arguments)
    with pytest.raises(ValueError, match="whole number of rows"):
        lattice.to_values(np.ones(3), x)
    lattice.to_ticks(one, one, one, None, x[:0], x[:0].copy())
    lattice.to_values(one, x[:0].copy())
