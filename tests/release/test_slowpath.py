"""The exact slow path: every enclosure against mpmath, every row against 256-bit uniforms."""

import mpmath as mp
import numpy as np
import pytest
import reference

from zil.release import slowpath


def integers(rng, bits, n):
    """Numbers in [1, 2^bits - 1], their size spread over all exponents from either end."""
    numbers = []
    for _ in range(n):
        value = int.from_bytes(rng.bytes(bits // 8), "big") >> int(rng.integers(bits))
        value = max(1, value)
        numbers.append(value if rng.random() < 0.5 else 2**bits - value)
    return numbers


@pytest.mark.parametrize("bits", [64, 128, 192, 320])
def test_minus_log_encloses(bits):
    p = bits + 64
    with mp.workprec(4 * bits + 200):
        for k in [1, 2, 3, 2**bits, 2**bits - 1, 2 ** (bits - 1), *integers(np.random.default_rng(), bits, 200)]:
            low, high = slowpath.minus_log(k, bits, p)
            real = -mp.log(mp.mpf(k) / mp.mpf(2) ** bits) * mp.mpf(2) ** p
            assert low <= real <= high
            assert high - low <= 2


@pytest.mark.parametrize("bits", [64, 128, 192, 320])
def test_turn_encloses(bits):
    p = bits + 64
    rng = np.random.default_rng()
    eighths = [k * 2 ** (bits - 3) + e for k in range(8) for e in (0, 1)] + [2**bits - 1]
    with mp.workprec(4 * bits + 200):
        for k in [0, *eighths, *integers(rng, bits, 200)]:
            enclosures = slowpath.turn(k, bits, p)
            for step in (0, mp.mpf(1) / 2, 1):
                angle = 2 * mp.pi * (mp.mpf(k) + step) / mp.mpf(2) ** bits
                for (low, high), real in zip(enclosures, (mp.cos(angle), mp.sin(angle)), strict=True):
                    assert low <= real * mp.mpf(2) ** p <= high
            for low, high in enclosures:
                assert high - low <= 2 * 7 * 2 ** (p - bits) + 2


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_rows_against_mpmath(d):
    rng = np.random.default_rng()
    width = 2 + 2 * ((d + 1) // 2)
    scales = np.exp2(rng.uniform(-3, 44, d)).tolist()
    for _ in range(100):
        levels = rng.integers(0, 2**64, (4, width), dtype=np.uint64).tolist()
        joined = [sum(levels[k][i] << 64 * (3 - k) for k in range(4)) for i in range(1, width)]
        with mp.workprec(600):
            expected = [int(mp.nint(t)) for t in reference.laplace_row(joined, 256, scales)]
        assert slowpath.ticks(lambda level, levels=levels: levels[level], scales) == expected


def test_undecided_rows_read_further_levels():
    """U1 begins with 128 zero bits: only the third level tells how large the noise is."""
    levels = [[0, 2**63, 0, 2**60], [0, 5, 0, 7], [0, 9, 2**62, 11], [0, 1, 1, 1]]
    read = []

    def words(level):
        read.append(level)
        return levels[level]

    tick = slowpath.ticks(words, [1000.0])
    joined = [sum(levels[k][i] << 64 * (3 - k) for k in range(4)) for i in range(1, 4)]
    with mp.workprec(600):
        assert tick == [int(mp.nint(t)) for t in reference.laplace_row(joined, 256, [1000.0])]
    assert read == [0, 1, 2]


def test_a_near_tie_is_decided_by_the_further_bits():
    """Two rows that share the first 64 bits of every uniform and round to different integers."""
    first = [0, 0x8123456789ABCDEF, 0x4123456789ABCDEF, 0x0123456789ABCDEF]
    with mp.workprec(600):
        middle = reference.laplace_row([w << 64 | 2**63 for w in first[1:]], 128, [1.0])[0]
        # among doubles near 2^43, the one that brings scale * middle nearest to a half-integer: the ends of U move
        # the product by about 2^43 2^-62, and 2^20 scales leave the nearest about that far
        start = int(2.0**43 * 2**9)
        scales = [mp.mpf(start + i) / 2**9 for i in range(4000)]
        scale = float(min(scales, key=lambda s: abs(s * middle - mp.floor(s * middle) - mp.mpf(1) / 2)))
    ends = []
    for further in (0, 2**64 - 1):
        got = slowpath.ticks(lambda level, f=further: first if level == 0 else [f] * 4, [scale])
        with mp.workprec(600):
            joined = [w << 192 | (further << 128 | further << 64 | further) for w in first[1:]]
            assert got == [int(mp.nint(t)) for t in reference.laplace_row(joined, 256, [scale])]
        ends.append(got)
    assert abs(ends[0][0] - ends[1][0]) <= 1


def test_a_stream_that_is_not_random_is_an_error():
    with pytest.raises(RuntimeError, match="not random"):
        slowpath.ticks(lambda level: [0] * 4, [1.0])
