"""The exact slow path of the tick sampler: rows that double precision cannot decide.

Design: fixed-point enclosures in Python integers, about 0.2 ms per row.  Nothing is rounded in a way
that matters: every quantity is a pair of integers that encloses the real number, and a tick is answered
only when both ends round to it.  mpmath would do the same, but the tests need it as an independent
truth and the package does not need it at run time.

Notation: an enclosure at scale 2^p is a pair ``(low, high)`` of integers with
``low <= x 2^p <= high``.  Series run at ``p + GUARD`` bits; each proves its own error in the comment
beside it and is moved to scale 2^p outward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import isqrt

GUARD = 32  # bits; the error of a series below is under 8 units per term, so 2^32 units are far more than enough
WORD_BITS = 64
MAX_LEVELS = 64

Enclosure = tuple[int, int]


def _outward(low: int, high: int, bits: int = GUARD) -> Enclosure:
    return low >> bits, -(-high >> bits)


def _atanh_series(v: int, q: int) -> Enclosure:
    """2 atanh(v 2^-q) for 0 <= v 2^-q <= 1/3, as an enclosure at scale 2^q of any argument in [v, v + 1].

    All operations round down.  With v wrong by at most 1 unit, v^2 is wrong by at most 2, a power by at most 2
    (e -> e/9 + (1/3) 2 + 1) and a term by at most 3; the series ends when the power reaches 0, which leaves a
    rest below 3.
    """
    square = (v * v) >> q
    power, total, terms = v, 0, 0
    while power:
        total += power // (2 * terms + 1)
        power = (power * square) >> q
        terms += 1
    return 2 * total, 2 * (total + 3 * terms + 4)


def _log2_series(q: int) -> Enclosure:
    """log 2 = 2 atanh(1/3)."""
    return _atanh_series((1 << q) // 3, q)


def _two_pi_series(q: int) -> Enclosure:
    """2 pi = 8 (4 atan(1/5) - atan(1/239)), Machin.  Alternating: the sum is wrong by less than its number of terms."""

    def arctangent(n: int) -> Enclosure:
        power, total, terms = (1 << q) // n, 0, 0
        while power:
            total += (-1) ** terms * (power // (2 * terms + 1))
            power //= n * n
            terms += 1
        return total - 3 * terms - 3, total + 3 * terms + 3

    five, other = arctangent(5), arctangent(239)
    return 8 * (4 * five[0] - other[1]), 8 * (4 * five[1] - other[0])


_log2 = lru_cache(maxsize=16)(_log2_series)
_two_pi = lru_cache(maxsize=16)(_two_pi_series)


def minus_log(k: int, bits: int, p: int) -> Enclosure:
    """-log(k 2^-bits) at scale 2^p, for 1 <= k <= 2^bits."""
    q = p + GUARD
    length = k.bit_length()
    one = 1 << length  # k = m 2^length with m in [1/2, 1): -log m = 2 atanh((1 - m)/(1 + m))
    low, high = _atanh_series(((one - k) << q) // (one + k), q)
    log2 = _log2(q)
    shift = bits - length  # -1 if k = 2^bits, where the two logarithms cancel
    low += shift * log2[0] if shift >= 0 else shift * log2[1]
    high += shift * log2[1] if shift >= 0 else shift * log2[0]
    low, high = _outward(low, high)
    return max(low, 0), max(high, 0)


def turn(k: int, bits: int, p: int) -> tuple[Enclosure, Enclosure]:
    """Cosine and sine of 2 pi U for every U in [k, k + 1] 2^-bits, at scale 2^p."""
    q = p + GUARD
    quadrant = ((k << 3) + (1 << bits)) >> (bits + 1)  # round(4 U)
    offset = (k << 2) - (quadrant << bits)  # U = quadrant/4 + offset/4 2^-bits, |offset| <= 2^bits / 2
    angle = _two_pi(q)[0] * abs(offset) >> (bits + 2)  # in [0, pi/4]; below the truth by less than terms of Machin + 1
    # Taylor at this very angle: its square is wrong by 1 unit, so a power by at most 3 (e -> (0.62 e + 2)/2 + 1) and
    # each sum by less than 8 units per term; what follows the last term is below 3 units.
    square = (angle * angle) >> q
    cosine = sine = terms = 0
    even, odd = 1 << q, angle
    while even or odd:
        sign = -1 if terms & 1 else 1
        cosine += sign * even
        sine += sign * odd
        even = ((even * square) >> q) // ((2 * terms + 1) * (2 * terms + 2))
        odd = ((odd * square) >> q) // ((2 * terms + 2) * (2 * terms + 3))
        terms += 1
    if offset < 0:
        sine = -sine
    # units of the series, of the angle (2 pi is enclosed to 45 q + 480 units, Machin having q/4.6 + 1 and q/15 + 1
    # terms) and of U itself: both functions change by at most 2 pi < 7 times the change of U
    error = 8 * terms + 8 + 120 * (q + 1) + (7 << q >> bits) + 1
    for _ in range(quadrant & 3):
        cosine, sine = -sine, cosine
    return _outward(cosine - error, cosine + error), _outward(sine - error, sine + error)


def _negative_log_of(u: int, bits: int, p: int) -> Enclosure | None:
    """-log U for U in [u, u + 1] 2^-bits; None while U may still be 0."""
    if u == 0:
        return None
    return minus_log(u + 1, bits, p)[0], minus_log(u, bits, p)[1]


def _round(radius: Enclosure, part: Enclosure, p: int, scale: float) -> int | None:
    """The integer nearest to scale * radius * part, None if the enclosure does not decide it."""
    numerator, denominator = scale.as_integer_ratio()
    low = min(radius[0] * part[0], radius[1] * part[0])
    high = max(radius[0] * part[1], radius[1] * part[1])
    half = denominator << 2 * p  # floor(x + 1/2) = floor((2 x + 1)/2)
    first = (2 * numerator * low + half) // (2 * half)
    last = (2 * numerator * high + half) // (2 * half)
    return first if first == last else None


def ticks(words: Callable[[int], Sequence[int]], scale_over_tick: Sequence[float]) -> list[int]:
    """The row of integers nearest to its real noise, ignoring the zero word.

    Parameters
    ----------
    words : callable
        ``words(level)`` are the 64-bit words of the row at that level of the key stream: level 0 holds the first 64
        bits of each uniform, level 1 the next 64, and so on.
    scale_over_tick : sequence of d floats
        Scale of each column in ticks.

    Returns
    -------
    list of d ints
        ``round(R_j sqrt(2 W E) cos(2 pi U2))``, and with the sine for the second column of a pair.

    Raises
    ------
    RuntimeError
        If 64 levels of words do not decide the row, which has probability below 2^-4000 for a key stream.
    """
    d = len(scale_over_tick)
    joined = [int(word) for word in words(0)]
    for level in range(1, MAX_LEVELS):
        joined = [value << WORD_BITS | int(word) for value, word in zip(joined, words(level), strict=True)]
        bits = WORD_BITS * (level + 1)
        p = bits + WORD_BITS
        answer: list[int] = []
        w = _negative_log_of(joined[1], bits, p)
        for pair in range((d + 1) // 2):
            e = _negative_log_of(joined[2 + 2 * pair], bits, p)
            if w is None or e is None:
                break
            radius = isqrt(2 * w[0] * e[0]), isqrt(2 * w[1] * e[1]) + 1
            for j, part in zip(range(2 * pair, d), turn(joined[3 + 2 * pair], bits, p), strict=False):
                tick = _round(radius, part, p, scale_over_tick[j])
                if tick is None:
                    break
                answer.append(tick)
        if len(answer) == d:
            return answer
    raise RuntimeError("the key stream gives no decision: it is not random")
