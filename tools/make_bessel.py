"""Print the constants of ``src/c/bessel_tables.h`` (needs mpmath).

* x < 1:  power series in z = x^2/4 of I_0, I_1 and of the regular parts of K_0, K_1,
* x >= 1: ``exp(x) sqrt(2x/pi) K_v(x)`` as a quotient of polynomials in y = 1/x, from
  interpolation at Chebyshev points of (0, 1] (near-minimax).  The function is a Stieltjes
  transform in y, so all coefficients come out positive and evaluation loses no digits.

Run: ``python tools/make_bessel.py > src/c/bessel_tables.h``.
"""

from __future__ import annotations

import mpmath as mp

mp.mp.dps = 60
TERMS = 9  # the next term is 3e-17 at x = 1
DEGREE = 10


def emit(name, values, what):
    print(f"/* {what} */")
    print(f"static const double {name}[{len(values)}] = {{")
    for value in values:
        print(f"    {float(value)!r},")
    print("};\n")


def scaled(order):
    def function(y):
        x = 1 / mp.mpf(y)
        return mp.exp(x) * mp.besselk(order, x) * mp.sqrt(2 * x / mp.pi)

    return function


def rational(function, degree):
    """Numerator and denominator (ascending, denominator starts at 1), and the largest relative error."""
    count = 2 * degree + 1
    nodes = [(1 - mp.cos(mp.pi * (2 * k + 1) / (2 * count))) / 2 for k in range(count)]
    matrix, right = mp.matrix(count, count), mp.matrix(count, 1)
    for row, y in enumerate(nodes):
        value = function(y)
        for k in range(degree + 1):
            matrix[row, k] = y**k
        for k in range(1, degree + 1):
            matrix[row, degree + k] = -value * y**k
        right[row] = value
    solution = mp.lu_solve(matrix, right)
    top = list(solution[: degree + 1])
    bottom = [mp.mpf(1), *list(solution[degree + 1 :])]
    if min(top + bottom) <= 0:
        raise ValueError("a coefficient is not positive")
    error = mp.mpf(0)
    for k in range(1, 200):
        y = mp.mpf(k) / 200
        fitted = mp.polyval(top[::-1], y) / mp.polyval(bottom[::-1], y)
        error = max(error, abs(fitted / function(y) - 1))
    return top, bottom, float(error)


def main() -> None:
    print("/* Made by tools/make_bessel.py; do not edit. */")
    print("#ifndef ZIL_BESSEL_TABLES_H\n#define ZIL_BESSEL_TABLES_H\n")
    orders = range(TERMS)
    emit("BESSEL_I0", [1 / mp.factorial(k) ** 2 for k in orders], "I_0(x) in z = x^2/4")
    emit(
        "BESSEL_K0",
        [mp.psi(0, k + 1) / mp.factorial(k) ** 2 for k in orders],
        "K_0(x) + log(x/2) I_0(x) in z",
    )
    emit("BESSEL_I1", [1 / (mp.factorial(k) * mp.factorial(k + 1)) for k in orders], "2 I_1(x)/x in z")
    emit(
        "BESSEL_K1",
        [(mp.psi(0, k + 1) + mp.psi(0, k + 2)) / (2 * mp.factorial(k) * mp.factorial(k + 1)) for k in orders],
        "log(x/2) 2 I_1(x)/x - (K_1(x) - 1/x) 2/x in z",
    )
    for order in (0, 1):
        top, bottom, error = rational(scaled(order), DEGREE)
        emit(f"BESSEL_P{order}", top, f"exp(x) sqrt(2x/pi) K_{order}(x), numerator in 1/x; relative error {error:.1e}")
        emit(f"BESSEL_Q{order}", bottom, "its denominator")
    print("#endif")


if __name__ == "__main__":
    main()
