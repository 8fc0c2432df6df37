"""Slow, independent truths in plain Python, numpy and mpmath.  Nothing here imports zil.

Over 400 lines because every truth lives in this one room, a heading per kernel.
"""

import itertools
import json
from pathlib import Path

import mpmath as mp
import numpy as np
from scipy import optimize, special

# ---------------------------------------------------------------------------------------------
# Streams and noise (src/c/streams.h, draws.h, sampling.h)
# ---------------------------------------------------------------------------------------------

MASK32, MASK64 = 2**32 - 1, 2**64 - 1


def chacha20_block(start):
    """The 16 output words of one ChaCha20 block from its 16 start words (RFC 8439, 2.3)."""
    x = list(start)

    def rotate(v, n):
        return ((v << n) | (v >> (32 - n))) & MASK32

    def quarter(a, b, c, d):
        for left, right, target, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[left] = (x[left] + x[right]) & MASK32
            x[target] = rotate(x[target] ^ x[left], n)

    for _ in range(10):
        for k in range(4):
            quarter(k, 4 + k, 8 + k, 12 + k)
        for k in range(4):
            quarter(k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4)
    return [(v + s) & MASK32 for v, s in zip(x, start, strict=True)]


def stream_words(key, domain, chunk, n):
    """The first n words of the stream: eight xoshiro256++ lanes seeded by ChaCha20."""
    state = []
    for k in range(4):
        block = 4 * chunk + k
        start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
        for word in key:
            start += [int(word) & MASK32, int(word) >> 32]
        start += [block & MASK32, block >> 32, domain, int.from_bytes(b"ZIL1", "little")]
        out = chacha20_block(start)
        state.append([out[2 * i] | out[2 * i + 1] << 32 for i in range(8)])

    def rotate(v, n):
        return ((v << n) | (v >> (64 - n))) & MASK64

    words = []
    while len(words) < n:
        for lane in range(8):
            s0, s1, s2, s3 = (state[k][lane] for k in range(4))
            words.append((rotate((s0 + s3) & MASK64, 23) + s0) & MASK64)
            t = (s1 << 17) & MASK64
            s2 ^= s0
            s3 ^= s1
            s1 ^= s2
            s0 ^= s3
            s2 ^= t
            s3 = rotate(s3, 45)
            for k, value in enumerate((s0, s1, s2, s3)):
                state[k][lane] = value
    return words[:n]


def unit(words):
    """Multiples of 2^-52 in (0, 1]: one minus the top 52 bits as a fraction."""
    return np.array([1.0 - (int(w) >> 12) / 2**52 for w in words])


def exponential(words):
    """Four Exp(1) from seven words: Gamma(4) times the spacings of three uniforms."""
    u = unit(words).reshape(7, -1)
    gamma = -np.log(u[:4].prod(axis=0))
    cuts = np.sort(u[4:], axis=0)
    return (gamma * np.diff(cuts, axis=0, prepend=0, append=1)).ravel()


def angle(words):
    """Cosine and sine of uniform angles: a place in the quarter turn around 0, an exchange, a sign."""
    words = [int(w) for w in words]
    turn = np.array([(w >> 12) / 2.0**54 - 0.125 for w in words])
    c, s = np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)
    c = np.where([w & 2 for w in words], -c, c)
    exchange = np.array([w & 1 for w in words], dtype=bool)
    return np.where(exchange, s, c), np.where(exchange, c, s)


def noise_block(words, d, rows, zero_prob):
    """The first block of unit noise of a chunk, from its words."""
    pairs = (d + 1) // 2
    split = (1 + pairs) * rows * 7 // 4
    e = exponential(words[:split]).reshape(1 + pairs, rows)
    rest = words[split : split + (1 + pairs) * rows]
    w = np.where([int(v) < int(zero_prob * 2.0**64) for v in rest[:rows]], 0, e[0])
    out = np.empty((rows, 2 * pairs))
    for p in range(pairs):
        r = np.sqrt(2 * e[1 + p] * w)
        out[:, 2 * p : 2 * p + 2] = (r * angle(rest[(1 + p) * rows : (2 + p) * rows])).T
    return out[:, :d]


# ----------------------------------------------------------------------------------------------
# Certified sampler: the key stream and the real-valued noise behind a row of ticks
# ----------------------------------------------------------------------------------------------


def keystream_words(key: bytes, level: int, first: int, count: int) -> list[int]:
    """64-bit words of one level of the certified sampler's key stream."""
    head = [int.from_bytes(part, "little") for part in (b"expa", b"nd 3", b"2-by", b"te k")]
    head += [int.from_bytes(key[4 * i : 4 * i + 4], "little") for i in range(8)]
    words = []
    for i in range(first, first + count):
        block, place = divmod(i, 8)
        output = chacha20_block([*head, block & MASK32, block >> 32, level, int.from_bytes(b"ZILT", "little")])
        words.append(output[2 * place] | output[2 * place + 1] << 32)
    return words


def edge_words(rng, shape):
    """Words near 0, near 1, near powers of two, near eighths of a turn, and ordinary ones."""
    size = int(np.prod(shape))
    kind = rng.integers(0, 8, size)
    ordinary = rng.integers(0, 2**64, size, dtype=np.uint64, endpoint=False)
    shift = rng.integers(0, 64, size).astype(np.uint64)
    small = rng.integers(0, 5, size).astype(np.uint64)
    power = np.uint64(1) << shift
    eighth = rng.integers(0, 8, size).astype(np.uint64) << np.uint64(61)
    sqrt_half = np.uint64(0xB504F333F9DE6484) >> shift  # where the mantissa changes its exponent
    words = np.choose(
        kind,
        [
            ordinary,
            ordinary >> shift,
            ~(ordinary >> shift),
            power + small,
            power - small,
            eighth + (ordinary >> shift),
            eighth - (ordinary >> shift),
            sqrt_half + (small << np.uint64(8)),
        ],
    )
    return words.astype(np.uint64).reshape(shape)


def laplace_row(uniforms, bits: int, scales):
    """R_j sqrt(2 W E) cos/sin(2 pi U2) as mpf, for integer uniforms u meaning (u + 1/2) 2^-bits.

    ``uniforms`` is the row without its zero word: U0, then U1 and U2 of each pair of columns.
    """
    with mp.workprec(2 * bits + 128):
        real = [(mp.mpf(u) + mp.mpf(1) / 2) / mp.mpf(2) ** bits for u in uniforms]
        w = -mp.log(real[0])
        row = []
        for j, scale in enumerate(scales):
            pair = j // 2
            part = (mp.sin if j % 2 else mp.cos)(2 * mp.pi * real[2 + 2 * pair])
            row.append(mp.mpf(scale) * mp.sqrt(2 * w * -mp.log(real[1 + 2 * pair])) * part)
        return row


def noise_ticks(key: bytes, row: int, scales, zero_threshold: int) -> list[int]:
    """A row of the release's noise in ticks, from 256 bits of every uniform."""
    d = len(scales)
    width = 2 + 2 * ((d + 1) // 2)
    levels = [keystream_words(key, level, row * width, width) for level in range(4)]
    if levels[0][0] < zero_threshold:
        return [0] * d
    joined = [sum(levels[k][i] << 64 * (3 - k) for k in range(4)) for i in range(1, width)]
    with mp.workprec(600):
        return [int(mp.nint(value)) for value in laplace_row(joined, 256, scales)]


# ---------------------------------------------------------------------------------------------
# Symmetric Laplace density and trade-off curves (src/c/bessel.h, sl_density.h, tradeoff.c)
# ---------------------------------------------------------------------------------------------


def bessel_k(order, x):
    """K_order(x) for integer or half-integer order, in the working precision: two orders of mpmath, then recurrence."""
    first = mp.mpf(order) % 1
    low, high = mp.besselk(first, x), mp.besselk(first + 1, x)
    for k in range(int(order)):
        low, high = high, low + 2 * (first + k + 1) / x * high
    return low


def sl_log_density(dim, r, digits=30):
    """log g_dim(r), identity covariance, as an mpmath number."""
    with mp.workdps(digits):
        r, v = mp.mpf(r), mp.mpf(2 - dim) / 2
        bessel = bessel_k(abs(v), mp.sqrt(2) * r)
        return mp.log(2) - mp.mpf(dim) / 2 * mp.log(2 * mp.pi) + v * mp.log(r / mp.sqrt(2)) + mp.log(bessel)


# ---------------------------------------------------------------------------------------------
# Losses, their Laplace-smoothed twins and corrected rows (src/c/losses.h, objective.c)
# ---------------------------------------------------------------------------------------------


def oracle():
    """Independent twelve-digit values by kind of formula."""
    return json.loads((Path(__file__).parent / "data" / "oracle.json").read_text())


def _argument(name, eta, y):
    """t of each loss, as textbooks write it."""
    if name == "Logistic":
        return -y * eta
    if name in ("Hinge", "SquaredHinge"):
        return 1.0 - y * eta
    return eta if name == "Poisson" else y - eta


def _phi(name, constants, t):
    if name == "Squared":
        return t**2 / 2
    if name == "Absolute":
        return np.abs(t)
    if name == "Quantile":
        return t * (constants[0] - (t < 0))
    if name == "Huber":
        return np.where(np.abs(t) <= constants[0], t**2 / 2, constants[0] * np.abs(t) - constants[0] ** 2 / 2)
    if name == "Logistic":
        return np.logaddexp(0, t)
    if name == "Hinge":
        return np.maximum(t, 0)
    if name == "SquaredHinge":
        return np.maximum(t, 0) ** 2 / 2
    return np.exp(t)


def _second_derivative(name, t):
    if name == "Squared":
        return np.ones_like(t)
    if name == "Logistic":
        return 1 / (4 * np.cosh(t / 2) ** 2)
    return np.exp(t)


def smoothed_formula(name, constants, t, s):
    """E phi(t + L), L Laplace of scale s, by the closed forms; softplus by composite Gauss-Legendre quadrature."""
    t = np.asarray(t, dtype=float)
    s = float(s)
    if s == 0.0:
        return _phi(name, constants, t)
    decay = np.exp(-np.abs(t) / s)
    if name == "Squared":
        return t**2 / 2 + s * s
    if name == "Absolute":
        return np.abs(t) + s * decay
    if name in ("Quantile", "Hinge"):
        return _phi(name, constants, t) + s / 2 * decay
    if name == "Huber":
        k = constants[0]

        def cdf(v):
            return np.where(v < 0, np.exp(-np.abs(v) / s) / 2, 1 - np.exp(-np.abs(v) / s) / 2)

        return _phi(name, constants, t) + s * s * (cdf(k - t) - cdf(-k - t))
    if name == "SquaredHinge":
        return _phi(name, constants, t) + s * s * np.where(t > 0, 1 - decay / 2, decay / 2)
    if name == "Poisson":
        return np.exp(t) / (1 - s * s)
    node, weight = np.polynomial.legendre.leggauss(12)
    edges = np.linspace(0, 45, 181)
    half = (edges[1:] - edges[:-1]) / 2
    v = ((edges[1:] + edges[:-1]) / 2)[:, None] + half[:, None] * node
    w = (half[:, None] * weight * np.exp(-v)).ravel()
    v = v.ravel()
    return (np.logaddexp(0, t[..., None] + s * v) + np.logaddexp(0, t[..., None] - s * v)) @ w / 2


def corrected_rows(name, constants, eta, y, q, a, c, e, kappa):
    """a phi + c Q phi'' + e u(., kappa Q) of each row, and the bilinear term of Poisson."""
    t = _argument(name, eta, y)
    out = a * _phi(name, constants, t)
    if c:
        out = out + c * q * _second_derivative(name, t)
    if e:
        out = out + e * smoothed_formula(name, constants, t, np.sqrt(kappa * q))
    return out - (a + e) * y * eta if name == "Poisson" else out


def laplace_smooth(name, constants, t, s):
    """E phi(t + L) by mpmath, split at the kinks."""

    def value(v):
        return mp.mpf(float(_phi(name, constants, np.float64(v)))) if name != "Poisson" else mp.exp(v)

    exact = {
        "Squared": lambda v: v * v / 2,
        "Absolute": abs,
        "Quantile": lambda v: v * (mp.mpf(constants[0]) - (1 if v < 0 else 0)),
        "Hinge": lambda v: max(v, mp.mpf(0)),
        "SquaredHinge": lambda v: max(v, mp.mpf(0)) ** 2 / 2,
        "Huber": lambda v: (
            v * v / 2 if abs(v) <= constants[0] else mp.mpf(constants[0]) * (abs(v) - mp.mpf(constants[0]) / 2)
        ),
    }.get(name, value)
    t, s = mp.mpf(t), mp.mpf(s)
    kinks = [0, *([constants[0], -constants[0]] if name == "Huber" else [])]
    points = sorted({mp.mpf(0), *((mp.mpf(k) - t) / s for k in kinks)})
    with mp.workdps(30):
        ends = [min(points[0], 0) - 60, *points, max(points[-1], 0) + 60]
        if name == "Poisson":
            ends = [-mp.inf, 0, 60 / (1 - s)]
        return mp.quad(lambda v: exact(t + s * v) * mp.exp(-abs(v)) / 2, ends)


def laplace_smooth_softplus(t, s):
    """u, u_t, u_s of the smoothed softplus by mpmath, good to twelve relative digits in the far tails too."""
    with mp.workdps(50):
        t, s = mp.mpf(t), mp.mpf(s)
        corner = -t / s
        points = sorted(
            {mp.mpf(p) for p in (-150, -60, -20, -5, 0, 5, 20, 60, 150)} | ({corner} if abs(corner) < 150 else set())
        )

        def softplus(v):
            return mp.log1p(mp.exp(v)) if v < 0 else v + mp.log1p(mp.exp(-v))

        def sigmoid(v):
            return 1 / (1 + mp.exp(-v))

        u = mp.quad(lambda v: softplus(t + s * v) * mp.exp(-abs(v)) / 2, points)
        u_t = mp.quad(lambda v: sigmoid(t + s * v) * mp.exp(-abs(v)) / 2, points)
        u_s = mp.quad(lambda v: sigmoid(t + s * v) * v * mp.exp(-abs(v)) / 2, points)
        return u, u_t, u_s


def sl_alpha(dim, c, t, digits=20):
    """P(log g(|s - c e1|) - log g(|s|) > t) for s ~ SL_dim(I), t > 0, by quadrature over the radius in mpmath."""
    with mp.workdps(digits + 10):
        c, t = mp.mpf(c), mp.mpf(t)

        def log_g(r):
            return sl_log_density(dim, r, digits + 10)

        def score(r):
            x, order = mp.sqrt(2) * r, mp.mpf(dim) / 2 - 1
            return mp.sqrt(2) * bessel_k(order + 1, x) / bessel_k(order, x)

        def decreasing_root(function, low, high):
            for _ in range(4 * digits):
                middle = (low + high) / 2
                low, high = (middle, high) if function(middle) > 0 else (low, middle)
            return (low + high) / 2

        tiny = mp.mpf(10) ** -(2 * digits)
        near = mp.exp(
            decreasing_root(lambda w: log_g(mp.exp(w)) - log_g(c - mp.exp(w)) - t, mp.log(tiny), mp.log(c / 2))
        )
        points = [c - near, c]
        if t > mp.sqrt(2) * c:
            far = mp.exp(
                decreasing_root(lambda w: log_g(mp.exp(w)) - log_g(c + mp.exp(w)) - t, mp.log(tiny), mp.log(200))
            )
            points += [c + far]
        else:
            points += [c + 1, c + 5, c + 15, c + 45]

        def share(x):
            if abs(x) >= 1:
                return mp.mpf(x < 0)
            value = mp.betainc(mp.mpf(dim - 1) / 2, mp.mpf(1) / 2, 0, 1 - x * x, regularized=True) / 2
            return value if x >= 0 else 1 - value

        area = 2 * mp.pi ** (mp.mpf(dim) / 2) / mp.gamma(mp.mpf(dim) / 2)

        def integrand(a):
            here = log_g(a)
            # log g(b) = log g(a) + t by Newton in b, from the tangent's root, which lies below the solution
            b = max(a - t / score(a), a * mp.mpf(10) ** -6)
            for _ in range(100):
                gap = log_g(b) - here - t
                b += gap / score(b)
                if abs(gap) < mp.mpf(10) ** -digits:
                    break
            return area * a ** (dim - 1) * mp.exp(here) * share((a * a + c * c - b * b) / (2 * a * c))

        return float(mp.quad(integrand, points))


def sl_alpha_float(dim, c, t):
    """The same in double precision with scipy.special: about nine digits in milliseconds, any t > 0."""
    order, root = dim / 2 - 1, np.sqrt(2.0)

    def log_g(r):
        constant = np.log(2) - dim / 2 * np.log(2 * np.pi)
        return constant - order * np.log(r / root) + np.log(special.kve(order, root * r)) - root * r

    def score(r):
        return root * special.kve(order + 1, root * r) / special.kve(order, root * r)

    def root_of(function, low, high):
        return np.exp(optimize.brentq(lambda w: function(np.exp(w)), np.log(low), np.log(high), xtol=1e-14))

    near = root_of(lambda b: log_g(b) - log_g(c - b) - t, 1e-9 * c, c / 2)
    width = 60.0 + 2.0 * dim**0.5
    if t > root * c and log_g(width) - log_g(c + width) < t:
        width = near + root_of(lambda b: log_g(b) - log_g(c + b) - t, 1e-9 * c, width)
    # tanh-sinh: both ends of the integral are algebraic
    u = np.linspace(-3.6, 3.6, 1501)
    y = 1 / (1 + np.exp(-np.pi * np.sinh(u)))
    weight = np.pi * np.cosh(u) * y * (1 - y) * (u[1] - u[0]) * width
    a = c - near + width * y
    b = np.maximum(a - t / score(a), 1e-9 * a)
    for _ in range(60):
        b = b + (log_g(b) - log_g(a) - t) / score(b)
    x = np.clip((a * a + c * c - b * b) / (2 * a * c), -1, 1)
    tail = special.betainc((dim - 1) / 2, 0.5, 1 - x * x) / 2
    share = np.where(x >= 0, tail, 1 - tail)
    area = np.log(2) + dim / 2 * np.log(np.pi) - special.gammaln(dim / 2)
    return float((weight * np.exp(area + (dim - 1) * np.log(a) + log_g(a)) * share).sum())


# Kinked losses with a ridge


def subgradient_gap(design, y, tau, ridge, theta, meet=1e-9):
    """Distance of 0 from the subdifferential of ``mean check_tau(y - design theta) + ridge/2 |slopes|^2``.

    Rows with a residual below ``meet`` may take any slope in ``[tau - 1, tau]``: bounded least squares.
    """
    residual = y - design @ theta
    held = np.abs(residual) < meet
    gradient = -(design[~held] * np.where(residual[~held] > 0, tau, tau - 1.0)[:, None]).sum(axis=0) / len(y)
    gradient += ridge * np.append(0.0, theta[1:])
    scale = np.abs(design).mean(axis=0)
    if held.any():
        rows = -design[held].T / len(y) / scale[:, None]
        found = optimize.lsq_linear(rows, -gradient / scale, (tau - 1.0, tau), method="bvls", tol=1e-15)
        return np.abs(rows @ found.x + gradient / scale).max()
    return np.abs(gradient / scale).max()


def line_minima(value, kinks, low, high):
    """All local minima on [low, high] of a function that is smooth between the given kinks."""
    edges = np.unique(np.concatenate([[low, high], kinks[(kinks > low) & (kinks < high)]]))
    at = np.array([value(t) for t in edges])
    found = [t for k, t in enumerate(edges[1:-1], 1) if _rises(value, edges, at, k)]
    for a, b in itertools.pairwise(edges):
        best = optimize.minimize_scalar(value, bounds=(a, b), method="bounded", options={"xatol": 1e-13 * (1 + abs(b))})
        if a + 1e-4 * (b - a) < best.x < b - 1e-4 * (b - a) and best.fun < min(value(a), value(b)):
            found.append(best.x)
    return np.array(sorted(found))


def _rises(value, edges, at, k):
    """Whether the function rises on both sides of edge k."""
    step = 1e-3 * min(edges[k] - edges[k - 1], edges[k + 1] - edges[k])
    return value(edges[k] - step) >= at[k] and value(edges[k] + step) >= at[k]
