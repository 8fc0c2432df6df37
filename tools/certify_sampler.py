"""Derive the constants of ``src/c/certified_tables.h`` and prove the error bound they carry (needs mpmath).

Every number below is an upper bound in exact rational arithmetic (pi and log 2 enter as rational
enclosures), so the script is the machine-checked half of ``docs/certified_sampler.md``: it fails if
a bound used by the C code is smaller than the bound that is proved.

Run: ``python tools/certify_sampler.py > src/c/certified_tables.h``; with ``--bounds`` it prints each
step of the error budget in units of u = 2^-53 instead.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from math import factorial

import mpmath as mp

U = Fraction(1, 2**53)
LOG_TERMS, TURN_TERMS = 9, 8

# What the C code uses, in units of u where named so.  ``budget`` proves each of them.
LOG_ERROR = 8 * U
ANGLE_ERROR = 5 * U
RELATIVE = 18 * U
SHARE_LIMIT = Fraction(1, 2**11)
HALF = Fraction(1, 2) * (1 + Fraction(1, 2**9))


def enclose(function) -> tuple[Fraction, Fraction]:
    """Rational enclosure of a constant from interval arithmetic with 200 bits."""
    mp.iv.prec = mp.mp.prec = 200
    value = function(mp.iv)

    def rational(x):
        sign, mantissa, exponent, _ = x._mpf_
        return Fraction((-1) ** sign * int(mantissa)) * Fraction(2) ** exponent

    low, high = rational(mp.mpf(value.a)), rational(mp.mpf(value.b))
    assert 0 < high - low < Fraction(1, 2**190)
    return low, high


PI_LOW, PI_HIGH = enclose(lambda iv: iv.pi)
LN2_LOW, LN2_HIGH = enclose(lambda iv: iv.log(2))
SPLIT = Fraction(float.fromhex("0x1.6a09ep-1"))  # 0x3fe6a09e00000000: mantissas lie in [SPLIT, 2 SPLIT)


def nearest(low: Fraction, high: Fraction) -> float:
    """The double nearest to a number known only by its enclosure."""
    assert float(low) == float(high)
    return float(low)


def atanh_coefficients() -> list[float]:
    """2/(2k+3): 2 atanh(s) = 2 s + s z sum_k z^k 2/(2k+3), z = s^2."""
    return [float(Fraction(2, 2 * k + 3)) for k in range(LOG_TERMS)]


def turn_coefficient(power: int) -> tuple[Fraction, Fraction]:
    """Enclosure of (2 pi)^power / power!."""
    return (2 * PI_LOW) ** power / factorial(power), (2 * PI_HIGH) ** power / factorial(power)


def sine_coefficients() -> list[float]:
    return [(-1) ** k * nearest(*turn_coefficient(2 * k + 1)) for k in range(TURN_TERMS)]


def cosine_coefficients() -> list[float]:
    return [-((-1) ** k) * nearest(*turn_coefficient(2 * k + 2)) for k in range(TURN_TERMS)]


def gamma(n: int) -> Fraction:
    """|(1 + d_1)...(1 + d_n) - 1| with |d_i| <= u (Higham's gamma_n)."""
    return n * U / (1 - n * U)


def log_bound() -> dict[str, Fraction]:
    """Relative error of minus_log, step [C2]."""
    # |s| <= (1 - SPLIT)/(1 + SPLIT): the lower end of the mantissa gives the larger |s|
    s_top = max((1 - SPLIT) / (1 + SPLIT), (2 * SPLIT - 1) / (2 * SPLIT + 1))
    z_top = s_top**2
    # s: the sum 2 + f and the division; f = m - 1 is exact.  z = s s.
    s_error, z_error = 2, 5
    # Horner with positive terms: coefficient k passes 1 rounding of its own, at most 2 (LOG_TERMS - 1) of the scheme
    # and the errors of k factors z
    tail_share = Fraction(0)  # error of s z q, as a share of 2 s
    value_share = Fraction(0)  # s z q / (2 s) itself
    for k in range(LOG_TERMS):
        share = z_top ** (k + 1) / (2 * k + 3)
        value_share += share
        tail_share += share * gamma(1 + 2 * (LOG_TERMS - 1) + k * z_error + s_error + z_error + 2)
    cut = z_top ** (LOG_TERMS + 1) / ((2 * LOG_TERMS + 3) * (1 - z_top))  # the series beyond, as a share of 2 s
    head = gamma(s_error)
    # of L = log m, as a share of |2 s| <= |L|
    mantissa_part = (head + tail_share) * (1 + U) + U * (1 + value_share) + cut
    ln2 = Fraction(nearest(LN2_LOW, LN2_HIGH))
    ln2_error = max(abs(ln2 - LN2_LOW), abs(ln2 - LN2_HIGH)) / LN2_LOW
    multiple = (1 + ln2_error) * (1 + U) - 1
    # exponent k >= 1: E = k ln2 - L >= k ln2 / 2 and E >= |L| (L <= ln(2 SPLIT) < ln2 / 2)
    assert 2 * SPLIT * 2 * SPLIT < 2
    with_exponent = (2 * multiple + mantissa_part) * (1 + U) + U
    return {"L = log of the mantissa": mantissa_part, "k ln2": multiple, "E": max(mantissa_part, with_exponent)}


def turn_bound() -> dict[str, Fraction]:
    """Absolute error of cosine and sine, step [C3]."""
    r = Fraction(1, 8)
    z = r**2
    # U differs from q/4 + r by at most 2^-55 (the word rounded to 54 bits, and the bits beyond the word)
    angle = 2 * PI_HIGH * Fraction(1, 2**55)
    # Horner: coefficient k passes its own rounding, 2 (n - 1) of the scheme or fewer, and k factors z of error u
    sine = Fraction(0)
    for k in range(TURN_TERMS):
        roundings = 1 + (2 * k + 1 if k < TURN_TERMS - 1 else 2 * k) + k + 1  # the last: times r
        sine += turn_coefficient(2 * k + 1)[1] * z**k * r * gamma(roundings)
    sine_cut = (2 * PI_HIGH * r) ** (2 * TURN_TERMS + 1) / factorial(2 * TURN_TERMS + 1)
    cosine = Fraction(0)
    for k in range(TURN_TERMS):
        roundings = 1 + (2 * k + 1 if k < TURN_TERMS - 1 else 2 * k) + (k + 1) + 1  # the last: times z
        cosine += turn_coefficient(2 * k + 2)[1] * z ** (k + 1) * gamma(roundings)
    cosine = cosine * (1 + U) + U  # the sum with 1
    cosine_cut = (2 * PI_HIGH * r) ** (2 * TURN_TERMS + 2) / factorial(2 * TURN_TERMS + 2)
    return {
        "angle": angle,
        "sine": sine + sine_cut,
        "cosine": cosine + cosine_cut,
        "total": angle + max(sine + sine_cut, cosine + cosine_cut),
    }


def budget() -> dict[str, Fraction]:
    """Every step, checked against what the C code uses."""
    steps = {f"log: {name}": value for name, value in log_bound().items()}
    steps |= {f"turn: {name}": value for name, value in turn_bound().items()}
    assert steps["log: E"] <= LOG_ERROR
    assert steps["turn: total"] <= ANGLE_ERROR
    # [C6] T = reach * part: two logarithms under the root, product, root, times R, times cosine
    share = SHARE_LIMIT + LOG_ERROR
    second_order = 1 + 2 * share  # 1 - sqrt(1 - t) <= (t/2)(1 + t), t <= 2 share
    arithmetic = LOG_ERROR * second_order + gamma(4)  # (u/2 + u + u + u <= gamma_4)
    relative = (arithmetic + ANGLE_ERROR) * (1 + 4 * share)
    steps["relative part of the bound"] = relative
    # computing the bound itself: at most 8 roundings, each 1 + u; the margin adds one
    assert relative * (1 + gamma(9)) <= RELATIVE
    # shares: (u + 2^-64/x)(1 + 2u) / E, computed with at most 8 roundings; cross terms with the arithmetic part
    half = Fraction(1, 2) * second_order * (1 + 2 * U) * (1 + gamma(9)) * (1 + 64 * U)
    steps["factor of the shares"] = half
    assert half <= HALF
    return steps


def emit() -> str:
    lines = [
        "/* Made by tools/certify_sampler.py, which proves them; do not edit. */",
        "#ifndef ZIL_CERTIFIED_TABLES_H",
        "#define ZIL_CERTIFIED_TABLES_H",
    ]
    tables = [
        ("CERT_ATANH", atanh_coefficients(), "2/(2k+3)"),
        ("CERT_SIN", sine_coefficients(), "(-1)^k (2 pi)^(2k+1)/(2k+1)!"),
        ("CERT_COS", cosine_coefficients(), "(-1)^(k+1) (2 pi)^(2k+2)/(2k+2)!"),
    ]
    for name, values, what in tables:
        lines += ["", f"/* {what} */", f"static const double {name}[{len(values)}] = {{"]
        lines += [f"    {value!r}," for value in values]
        lines.append("};")
    lines += [
        "",
        f"#define CERT_LN2 {nearest(LN2_LOW, LN2_HIGH)!r}",
        f"#define CERT_LOG_ERROR {float(LOG_ERROR)!r} /* 8 u, relative; u = 2^-53 */",
        f"#define CERT_ANGLE_ERROR {float(ANGLE_ERROR)!r} /* 5 u, absolute */",
        f"#define CERT_RELATIVE {float(RELATIVE)!r} /* 18 u */",
        f"#define CERT_SHARE_LIMIT {float(SHARE_LIMIT)!r} /* 2^-11 */",
        f"#define CERT_HALF {float(HALF)!r} /* (1 + 2^-9)/2 */",
        "",
        "#endif",
    ]
    return "\n".join(lines)


def main() -> None:
    steps = budget()
    if "--bounds" in sys.argv[1:]:
        for name, value in steps.items():
            print(f"{name:32s} {float(value / U):12.4f} u" if value < 1e-3 else f"{name:32s} {float(value):12.8f}")
        return
    print(emit())


if __name__ == "__main__":
    main()
