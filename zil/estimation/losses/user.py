"""Losses that a user writes: ``Index`` (a scalar function of the index) and ``Custom`` (anything)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from zil import _validate
from zil._validate import FloatArray
from zil.estimation.losses import smoothing
from zil.estimation.losses.base import Term
from zil.estimation.losses.blockwise import STEP, Block, IndexRows, RowLoss

# An index at which a loss of linear growth has its asymptotic slope.
FAR = 1e8


def _callable(name: str, value: Any, optional: bool = False) -> None:
    if not (callable(value) or (optional and value is None)):
        raise TypeError(f"{name} must be a function, got {type(value).__name__}")


def _per_row(name: str, values: Any, shape: tuple[int, ...]) -> FloatArray:
    result = np.asarray(values, dtype=np.float64)
    if result.shape != shape:
        raise ValueError(f"{name} must return shape {shape} (one entry per row), got {result.shape}")
    return result


@dataclass(frozen=True)
class Index(IndexRows):
    """A scalar function of the index ``eta = intercept + x'theta`` and the response.

    Every method for smooth ``phi``.  With kinks, declared by ``kinks``: "naive", "dr", "rb" and "optimal", to exact
    local minima and with kernel standard errors, as for ``Quantile``.  RB smooths ``phi`` numerically (relative error
    below 1e-10); it is fast if the response has few distinct values, if ``phi`` depends on ``y - eta`` only, or if
    it is affine in y, and right for any other.

    A response that carries noise as well: "naive" and "dr" for any ``phi``; the other methods if ``phi`` depends on
    ``y - eta`` only (noise of both enters the residual) or is affine in y (the noise of y averages out).  Which of the
    two holds is found out from values of ``phi``.

    Parameters
    ----------
    phi, dphi : callable of (eta, y), both of shape (n,), returning (n,)
        The loss and its derivative by eta.
    d2phi : callable, optional
        Second derivative by eta (between kinks); needed by "sl" and "sdr".
    kinks : sequence of numbers or callables of y, optional
        Values of eta at which ``dphi`` jumps: ``[lambda y: y]`` for ``|y - eta|``, ``[-1.0, 1.0]`` for fixed ones.
        A callable takes (n,) and returns (n,).  ``phi`` itself must be continuous.

    Examples
    --------
    >>> import numpy as np, zil
    >>> square = zil.losses.Index(lambda eta, y: (y - eta) ** 2 / 2, lambda eta, y: eta - y)
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> zil.fit(square, x, y=[1.0, 3.0, 5.0, 8.0]).params.round(6).tolist()
    [0.8, 2.3]
    >>> absolute = zil.losses.Index(lambda eta, y: abs(y - eta), lambda eta, y: np.sign(eta - y), kinks=[lambda y: y])
    >>> zil.fit(absolute, x, y=[1.0, 3.0, 5.0, 8.0], start=[0.0, 0.0]).objective_value
    0.25
    """

    phi: Any = None
    dphi: Any = None
    d2phi: Any = None
    kinks: Any = ()

    def __post_init__(self) -> None:
        _callable("phi", self.phi)
        _callable("dphi", self.dphi)
        _callable("d2phi", self.d2phi, optional=True)
        if callable(self.kinks) or isinstance(self.kinks, (str, bytes)) or not np.iterable(self.kinks):
            raise TypeError(f"kinks must be a sequence of numbers or functions of y, got {type(self.kinks).__name__}")
        object.__setattr__(self, "kinks", tuple(k if callable(k) else _validate.finite("kinks", k) for k in self.kinks))

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.d2phi is not None and not self.kinks

    @property
    def kinked(self) -> bool:  # type: ignore[override]
        return bool(self.kinks)

    @property
    def constants(self) -> tuple[float, float]:
        return (1.0, 1.0)

    @property
    def exact_rb(self) -> bool:
        return True

    def check_method(self, method: str, y: FloatArray, noised_response: bool) -> None:
        if noised_response and method not in ("naive", "dr") and not (self.residual(y) or self._affine(y)):
            raise ValueError(
                f"method {method!r} with noise on the response needs a phi that depends on y - eta only or is affine "
                "in y, and this one is neither; use method 'dr'"
            )

    def residual(self, y: FloatArray) -> bool:
        """Whether phi depends on ``y - eta`` only, judged on every response; False for fewer than three."""
        return self._holds(self._of_residual, y)

    def _affine(self, y: FloatArray) -> bool:
        """Whether phi is affine in y, judged on every response; False for fewer than three."""
        return self._holds(self._of_line, y)

    def _holds(self, judge: Callable[[FloatArray, FloatArray], bool], y: FloatArray) -> bool:
        """A verdict on some responses and, where it is yes, on all: a regime of few rows counts.  Verdicts are kept."""
        known: dict[tuple[str, int, int], bool] = self.__dict__.setdefault("_verdicts", {})
        key = (judge.__name__, len(y), hash(y.tobytes()))
        if key not in known:
            if len(known) > 256:
                known.clear()
            some = y[np.unique(np.linspace(0, len(y) - 1, 32).astype(int))]
            every = np.unique(y)
            known[key] = len(every) > 2 and judge(*_probes(some)) and judge(*_probes(every))
        return known[key]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_verdicts"}

    def _of_residual(self, eta: FloatArray, r: FloatArray) -> bool:
        zero = np.zeros(len(r))
        pairs = [(f(eta, r), f(eta - r, zero)) for f in (self._quiet(self.phi), self._quiet(self.dphi))]
        return all(_same(a, b, np.abs(a) + np.abs(b)) for a, b in pairs)

    def _of_line(self, eta: FloatArray, r: FloatArray) -> bool:
        zero, one = np.zeros(len(r)), np.ones(len(r))
        for f in (self._quiet(self.phi), self._quiet(self.dphi)):
            base, slope = f(eta, zero), f(eta, one)
            size = np.abs(base) + np.abs(r) * (np.abs(base) + np.abs(slope))
            if not _same(f(eta, r), base + r * (slope - base), size):
                return False
        return True

    def _quiet(self, function: Any) -> Callable[[FloatArray, FloatArray], FloatArray]:
        def call(eta: FloatArray, y: FloatArray) -> FloatArray:
            with np.errstate(all="ignore"):
                return np.asarray(function(eta, y), dtype=np.float64)

        return call

    def kink_places(self, y: FloatArray) -> FloatArray:
        rows = [_per_row("a kink", k(y), y.shape) if callable(k) else np.full(y.shape, float(k)) for k in self.kinks]
        return np.array(rows).reshape(len(rows), len(y))

    def sides(self, kinks: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        step = 1e-6 * np.maximum(self.natural_unit(y), np.abs(kinks))
        both = [
            np.array([2.0 * self._slope(k + s, y) - self._slope(k + 2.0 * s, y) for k, s in zip(kinks, h, strict=True)])
            for h in (-step, step)
        ]
        return both[0].reshape(kinks.shape), both[1].reshape(kinks.shape)

    def branch(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.call(self.phi, "phi", eta, y), self._slope(eta, y)

    def bend(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        if self.d2phi is not None:
            return self.call(self.d2phi, "d2phi", eta, y)
        kinks = self.kink_places(y)
        if not len(kinks):
            return _derivative(lambda at: self._slope(at, y), eta, self.spread(eta, y))
        gap = eta - kinks
        nearest = np.take_along_axis(gap, np.abs(gap).argmin(axis=0)[None], axis=0)[0]
        size = 1e-5 * np.maximum(self.natural_unit(y), np.abs(eta))
        step = np.where(nearest >= 0.0, size, -size)  # away from the kink
        return np.asarray((self._slope(eta + step, y) - self._slope(eta, y)) / step)

    def argument(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        if not self.kinks:
            return eta, np.ones(len(eta))
        return np.asarray(self.kink_places(y)[0] - eta), np.full(len(eta), -1.0)

    def call(self, function: Any, name: str, eta: FloatArray, y: FloatArray) -> FloatArray:
        return _per_row(name, function(eta, y), eta.shape)

    def natural_unit(self, y: FloatArray) -> float:
        """What the index is measured in: the spread of the response if phi is of a residual, else 1."""
        return (float(y.std()) or 1.0) if self.residual(y) else 1.0

    def spread(self, eta: FloatArray, y: FloatArray) -> float:
        """Median size of the residuals if phi is of them, else 1: over what ``phi`` varies."""
        return (float(np.median(np.abs(y - eta))) or self.natural_unit(y)) if self.residual(y) else 1.0

    def step_unit(self, y: FloatArray) -> float:
        return self.natural_unit(y)

    def _slope(self, eta: FloatArray, y: FloatArray) -> FloatArray:
        return self.call(self.dphi, "dphi", eta, y)

    def linear_growth(self, y: FloatArray) -> bool:
        """Whether the slope by eta tends to a constant on either side, for each of the responses."""
        with np.errstate(all="ignore"):
            for side in (-FAR, FAR):
                near, far = (self._slope(np.full(len(y), k * side), y) for k in (1.0, 2.0))
                if not (np.isfinite(far).all() and (np.abs(far - near) <= 1e-6 * np.abs(far)).all()):
                    return False
        return True

    def terms(self, term: Term, eta: FloatArray, y: FloatArray, noise: float) -> tuple[FloatArray, ...]:
        n = len(eta)
        value, slope, spread = np.zeros(n), np.zeros(n), np.zeros(n)
        if term.a != 0.0:
            value += term.a * self.call(self.phi, "phi", eta, y)
            slope += term.a * self._slope(eta, y)
        if term.c != 0.0:
            second = self.call(self.d2phi, "d2phi", eta, y)
            value += term.c * noise * second
            spread += term.c * second
            slope += (
                term.c * noise * _derivative(lambda at: self.call(self.d2phi, "d2phi", at, y), eta, self.spread(eta, y))
            )
        if term.e != 0.0:
            u, u_t, u_q = self.smoothed(eta, y, term.scale(noise))[:3]
            value += term.e * u
            slope += term.e * u_t
            spread += term.e * term.kappa * u_q
        return value, slope, spread

    def bends(self, term: Term, eta: FloatArray, y: FloatArray, noise: float) -> tuple[FloatArray, ...] | None:
        """At declared kinks only the smoothed terms count."""
        s = term.scale(noise) if term.e != 0.0 else 0.0
        if term.c != 0.0 or (term.e != 0.0 and s == 0.0):
            return None
        bend, cross, twice, spread = (np.zeros(len(eta)) for _ in range(4))
        if term.a != 0.0:
            bend += term.a * self.bend(eta, y)
        if term.e != 0.0:
            _, _, u_q, u_tt, u_tq, u_qq = self.smoothed(eta, y, s, curved=True)
            bend += term.e * u_tt
            cross += term.e * term.kappa * u_tq
            twice += term.e * term.kappa**2 * u_qq
            spread += term.e * term.kappa * u_q
        return bend, cross, twice, spread

    def smoothed(self, eta: FloatArray, y: FloatArray, s: float, curved: bool = False) -> tuple[FloatArray, ...]:
        """``u, u_t, u_q`` (and with ``curved`` ``u_tt, u_tq, u_qq``) of Laplace noise of scale s; inf and nan where the
        mean is infinite.

        Raises
        ------
        NotSmoothError
            phi is not smooth where no kink is declared (a ValueError).
        """
        if s == 0.0:  # no noise in the index: u_q has no effect
            return self.call(self.phi, "phi", eta, y), self._slope(eta, y), np.zeros(len(eta))
        if self.residual(y):
            eta, y = eta - y, np.zeros(len(y))
        elif not self.kinks and len(y) > 64 and self._affine(y):  # two functions of eta instead of one per response
            both = [self._smoothed(eta, np.full(len(y), at), s, curved) for at in (0.0, 1.0)]
            return tuple(zero + y * (one - zero) for zero, one in zip(*both, strict=True))
        return self._smoothed(eta, y, s, curved)

    def _smoothed(self, eta: FloatArray, y: FloatArray, s: float, curved: bool) -> tuple[FloatArray, ...]:
        try:
            found = smoothing.smooth(self.phi, self.dphi, self.d2phi, eta, y, s, self.kink_places(y), curved)
        except smoothing.NotSmoothError as error:
            raise smoothing.NotSmoothError(f"{error}; declare kinks, or use method 'dr'") from None
        if found is None:
            nothing = np.full(len(eta), np.nan)
            return (np.full(len(eta), np.inf), *([nothing] * (5 if curved else 2)))
        return found


@dataclass(frozen=True)
class Growth(IndexRows):
    """How an ``Index`` loss grows far out: its slopes there, joined at 0; for the test at infinity."""

    index: Index

    def terms(self, term: Term, eta: FloatArray, y: FloatArray, noise: float) -> tuple[FloatArray, ...]:
        with np.errstate(all="ignore"):
            below, above = (self.index.branch(np.full(len(y), side), y)[1] for side in (-FAR, FAR))
        phi, slope = np.where(eta > 0.0, above, below) * eta, np.where(eta > 0.0, above, below)
        value, spread, force = term.a * phi, np.zeros(len(y)), term.a * slope
        s = term.scale(noise)
        if term.e != 0.0:
            tail = np.exp(-np.abs(eta) / s) if s > 0.0 else np.zeros(len(y))
            value = value + term.e * (phi + 0.5 * s * (above - below) * tail)
            force = force + term.e * (slope - 0.5 * (above - below) * np.sign(eta) * tail)
            if s > 0.0:
                spread = term.e * term.kappa * (above - below) * (1.0 + np.abs(eta) / s) * tail / (4.0 * s)
        return value, force, spread


def _probes(r: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two pairs of an index and a response for each response: an index about the responses, and one about 0."""
    return np.concatenate([np.roll(r, 1), np.linspace(-2.0, 2.0, len(r))]), np.tile(r, 2)


def _same(a: FloatArray, b: FloatArray, size: FloatArray) -> bool:
    """Equal up to rounding of numbers of the given size wherever both are finite, and finite somewhere."""
    both = np.isfinite(a) & np.isfinite(b) & np.isfinite(size)
    if not both.any():
        return False
    room = 1e-11 * size[both] + 1e-13 * float(np.median(size[both]))
    return bool((np.abs(a - b)[both] <= room).all())


def _derivative(function: Callable[[FloatArray], FloatArray], t: FloatArray, unit: float) -> FloatArray:
    """Fourth-order difference; error about 1e-11 of the scale of a function that varies over the unit."""
    h = 2e-3 * unit
    return (8.0 * (function(t + h) - function(t - h)) - (function(t + 2 * h) - function(t - 2 * h))) / (12.0 * h)


@dataclass(frozen=True)
class Custom(RowLoss):
    """Any loss of a row: ``value(x, y, theta)``, vectorised over rows.

    Methods: "naive"; "dr"; "rb", here DR averaged over 16 second noises in pairs of opposite sign; "optimal" (bounds
    needed); "sl" and "sdr" with a Laplacian.

    Parameters
    ----------
    value : callable of (x, y, theta), shapes (n, d), (n,), (p,), returning (n,)
        x holds the columns as they are, without a column of ones.
    gradient : callable, optional
        Derivative by theta, shape (n, p).  Default: central differences.
    laplacian : callable, optional
        Second derivatives by the columns of x, shape (n, d), one more for a noised response; or their sum over the
        noised columns, shape (n,), if those have one common scale.
    kinks : bool
        Whether the loss has kinks in theta.  A minimum is then found by direct search, to a hundredth of a standard
        error, and the curvature is taken over some standard errors (``cov="bootstrap"`` checks the errors).  Without
        it a fit of such a loss ends with ``converged`` False.

    Notes
    -----
    The number of parameters is that of ``start`` in ``zil.fit`` (of ``theta`` in ``zil.CorrectedLoss``); without a
    start it is d, plus 1 with an intercept.

    Nothing is known of the size of a parameter: differences take steps of ``6e-6 max(1, |theta|)``.  Choose units in
    which parameters are of order one.

    Examples
    --------
    >>> import numpy as np, zil
    >>> line = zil.losses.Custom(lambda x, y, theta: (y - theta[0] - x[:, 0] * theta[1]) ** 2)
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> zil.fit(line, x, y=[1.0, 3.0, 5.0, 8.0]).params.round(6).tolist()
    [0.8, 2.3]
    """

    value: Any = None
    gradient: Any = None
    laplacian: Any = None
    kinks: bool = False
    free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.kinks, bool):
            raise TypeError(f"kinks must be True or False, got {type(self.kinks).__name__}")
        _callable("value", self.value)
        _callable("gradient", self.gradient, optional=True)
        _callable("laplacian", self.laplacian, optional=True)

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.laplacian is not None

    @property
    def rough(self) -> bool:  # type: ignore[override]
        return self.kinks

    def caution(self, q: float) -> str:
        del q
        return (
            "Custom with kinks: curvature over some standard errors; cov='bootstrap' checks the errors"
            if self.kinks
            else ""
        )

    @property
    def affine(self) -> tuple[float, float, float, float, float]:
        return (0.0, 1.0, -1.0, 0.0, 0.0)

    def mean(self, eta: FloatArray) -> FloatArray:
        raise TypeError("a Custom loss does not say what it predicts")

    def rows(self, term: Term, block: Block, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        x = np.ascontiguousarray(block.x.T)
        n, p = len(x), len(theta)
        y = block.y
        value, score = np.zeros(n), np.zeros((n, p))
        if term.a != 0.0:
            value += term.a * _per_row("value", self.value(x, y, theta), (n,))
            if self.gradient is not None:
                score += term.a * _per_row("gradient", self.gradient(x, y, theta), (n, p))
            else:
                score += term.a * _by_theta(lambda at: _per_row("value", self.value(x, y, at), (n,)), theta)
        if term.c != 0.0:

            def curved(at: FloatArray) -> FloatArray:
                return self._laplacian(x, y, at, block)

            value += term.c * curved(theta)
            score += term.c * _by_theta(curved, theta)
        return value, score

    def values(self, term: Term, block: Block, theta: FloatArray) -> FloatArray:
        if term.c != 0.0:
            return self.rows(term, block, theta)[0]
        x = np.ascontiguousarray(block.x.T)
        y = block.y
        return term.a * _per_row("value", self.value(x, y, theta), (len(x),))

    def _laplacian(self, x: FloatArray, y: FloatArray, theta: FloatArray, block: Block) -> FloatArray:
        """Sum over noised columns of squared scale times second derivative, shape (n,)."""
        weights = np.append(block.noise[int(block.intercept) :], block.noise_response)
        second = np.asarray(self.laplacian(x, y, theta), dtype=np.float64)
        if second.shape == (len(x),):
            noised = weights[weights > 0.0]
            if len(noised) and not np.allclose(noised, noised[0], rtol=1e-12):
                raise ValueError("scales differ: laplacian must return one second derivative per column, shape (n, d)")
            return np.asarray(second * (noised[0] if len(noised) else 0.0))
        if second.shape == (len(x), len(weights)):
            return np.asarray(second @ weights)
        if block.noise_response > 0.0:
            raise ValueError(f"laplacian must return shape {(len(x), len(weights))}, the response last")
        return np.asarray(_per_row("laplacian", second, x.shape) @ weights[:-1])


def _by_theta(function: Callable[[FloatArray], FloatArray], theta: FloatArray) -> FloatArray:
    """Derivatives of (n,) values by each parameter, shape (n, p), by central differences."""
    columns = []
    for j in range(len(theta)):
        shift = np.zeros(len(theta))
        shift[j] = STEP * max(1.0, abs(float(theta[j])))
        high, low = theta + shift, theta - shift
        columns.append((function(high) - function(low)) / (high[j] - low[j]))
    return np.stack(columns, axis=1)
