"""Print the polynomial constants of ``src/c/vmath_tables.h`` (needs mpmath).

Every polynomial is a Chebyshev fit in 60 digits, rounded to double at the end:

* exp:  (e^r - 1 - r) / r^2            on |r| <= log(2)/2
* log:  (2 atanh(s)/s - 2) / s^2       in z = s^2, s = f/(2+f), 1+f in [sqrt(1/2), sqrt(2)]
* sin:  sin(2 pi r)/r                  in z = r^2, |r| <= 1/8
* cos:  (cos(2 pi r) - 1)/r^2          in z = r^2, |r| <= 1/8
* mills: (x + 5) (1 - Phi(x))/Phi'(x)  in u = (x - 5)/(x + 5), 0 <= x <= 39, Phi the normal distribution

Run: ``python tools/make_vmath.py > src/c/vmath_tables.h``.
"""

from __future__ import annotations

import mpmath as mp

mp.mp.dps = 60


def fit(function, low, high, terms):
    """Chebyshev fit; returns coefficients from the constant upwards and the error."""
    coefficients, error = mp.chebyfit(function, [low, high], terms, error=True)
    return [float(c) for c in reversed(coefficients)], float(error)


def emit(name, coefficients, error, what):
    print(f"/* {what}; fit error {error:.1e} */")
    print(f"static const double {name}[{len(coefficients)}] = {{")
    for value in coefficients:
        print(f"    {value!r}, /* {value.hex()} */")
    print("};\n")


def main() -> None:
    print("/* Made by tools/make_vmath.py; do not edit. */\n#ifndef ZIL_VMATH_TABLES_H\n#define ZIL_VMATH_TABLES_H\n")
    half = mp.log(2) / 2 * mp.mpf("1.0001")
    tiny = mp.mpf(10) ** -25
    emit(
        "VM_EXP",
        *fit(lambda r: mp.mpf(1) / 2 + r / 6 if abs(r) < tiny else (mp.expm1(r) - r) / r**2, -half, half, 11),
        "(exp(r) - 1 - r)/r^2, |r| <= log(2)/2",
    )
    top = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.0001")

    def atanh_tail(z):
        if z < mp.mpf(10) ** -30:
            return mp.mpf(2) / 3
        s = mp.sqrt(z)
        return (2 * mp.atanh(s) / s - 2) / z

    emit("VM_LOG", *fit(atanh_tail, mp.mpf(10) ** -28, top, 8), "(2 atanh(s)/s - 2)/s^2 in s^2")
    z_top = mp.mpf(1) / 64

    def sine(z):
        r = mp.sqrt(z)
        return mp.sin(2 * mp.pi * r) / r

    emit("VM_SIN", *fit(sine, mp.mpf(10) ** -28, z_top, 8), "sin(2 pi r)/r in r^2, |r| <= 1/8")
    emit(
        "VM_COS",
        *fit(lambda z: (mp.cos(2 * mp.pi * mp.sqrt(z)) - 1) / z, mp.mpf(10) ** -28, z_top, 8),
        "(cos(2 pi r) - 1)/r^2 in r^2, |r| <= 1/8",
    )

    def mills(u):
        x = 5 * (1 + u) / (1 - u)
        return (x + 5) * mp.sqrt(mp.pi / 2) * mp.erfc(x / mp.sqrt(2)) * mp.exp(x * x / 2)

    emit(
        "VM_MILLS",
        *fit(mills, -1, mp.mpf(34) / 44, 22),
        "(x + 5) (1 - Phi(x))/Phi'(x) in (x - 5)/(x + 5), 0 <= x <= 39",
    )
    ln2_hi = mp.mpf(float.fromhex("0x1.62e42fee00000p-1"))
    print(f"#define VM_LN2_HI {float(ln2_hi)!r} /* log(2), low 32 bits zero: k * VM_LN2_HI is exact */")
    print(f"#define VM_LN2_LO {float(mp.log(2) - ln2_hi)!r}")
    print(f"#define VM_LOG2E {float(1 / mp.log(2))!r}")
    print("\n#endif")


if __name__ == "__main__":
    main()
