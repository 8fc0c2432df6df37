"""Trade-off functions: what an attacker can and cannot tell from a released record.

``f(alpha)`` is the smallest type II error of any test, with type I error alpha, of "the record
was x" against "the record was x'".  A release that leaves a record unchanged with probability
``zero_prob`` gives everything away in that case, so every curve starts at ``1 - zero_prob``:

    f(alpha) = (1 - zero_prob) T(alpha/(1 - zero_prob)),   0 beyond 1 - zero_prob

with ``T`` one of the curves of ``zil.privacy.curves``.

References
----------
Lu, Chen, Qiu (2026), arXiv 2501.15127, section 3; closed forms of the limit: beyond the paper.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zil._validate import FloatArray, finite, float_array, in_range, integer, probability
from zil.privacy import composition, curves, exact

# Beyond it the exact curve takes minutes, and the limit is about 1e-5 lower.
LARGEST_DIM = 10_000


def _like(values: FloatArray, result: FloatArray) -> Any:
    """A float for a scalar question, an array of the same shape otherwise."""
    return float(result[()]) if values.ndim == 0 else result


def _checked(name: str, values: Any, low: float, high: float) -> FloatArray:
    """``values`` as float64 of any shape, all in [low, high]; nan is outside."""
    array = np.asarray(values)
    shape = array.shape
    result = float_array(name, array.reshape(-1)).reshape(shape)
    if not ((result >= low) & (result <= high)).all():
        wrong = result[~((result >= low) & (result <= high))].flat[0]
        raise ValueError(f"{name} must be in [{low:g}, {high:g}], got {wrong:g}")
    return result


class TradeOff:
    """A trade-off function with an atom: call it, or ask it for (epsilon, delta), advantage, bounds.

    Made by `tradeoff`, `gaussian_tradeoff`, `eps_delta_tradeoff`.

    Attributes
    ----------
    zero_prob : float
        Probability that the release gives the record away; ``f(0) = 1 - zero_prob``.
    label : str
        What the curve is, for prints and plots.
    """

    def __init__(self, curve: curves.Curve, zero_prob: float = 0.0, label: str = "") -> None:
        self._curve = curve
        self.zero_prob = zero_prob
        self.label = label

    def __repr__(self) -> str:
        return f"<TradeOff {self.label}>"

    def _parts(self, name: str, values: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The question, and the place on the curve without atom: alpha/(1-z) and its complement, both in [0, 1]."""
        alpha = _checked(name, values, 0.0, 1.0)
        noisy = 1.0 - self.zero_prob
        if noisy == 0.0:
            return alpha, np.ones_like(alpha), np.zeros_like(alpha)
        inner = np.minimum(alpha / noisy, 1.0)
        rest = np.maximum((noisy - alpha) / noisy, 0.0)
        return alpha, inner, rest

    def __call__(self, alpha: Any) -> Any:
        """Smallest type II error at type I error ``alpha``.

        Parameters
        ----------
        alpha : scalar or array in [0, 1]

        Returns
        -------
        float or array of the same shape

        Raises
        ------
        ValueError
            If an alpha is outside [0, 1] or nan.
        """
        values, inner, rest = self._parts("alpha", alpha)
        return _like(values, (1.0 - self.zero_prob) * self._curve.beta(inner, rest))

    def inverse(self, beta: Any) -> Any:
        """Smallest type I error at type II error ``beta`` in [0, 1]; every curve here is its own inverse."""
        values, inner, rest = self._parts("beta", beta)
        return _like(values, (1.0 - self.zero_prob) * self._curve.beta(inner, rest))

    def delta(self, epsilon: Any) -> Any:
        """The delta for which (epsilon, delta) indistinguishability holds exactly: ``max(1 - f(a) - e^epsilon a)``.

        Parameters
        ----------
        epsilon : scalar or array >= 0 (inf allowed)
        """
        values = _checked("epsilon", epsilon, 0.0, math.inf)
        with np.errstate(invalid="ignore"):
            inner = self._curve.delta(np.minimum(values, np.finfo(np.float64).max))
        inner = np.clip(inner, 0.0, 1.0)  # the error of a tabulated curve must not carry it out of [0, 1]; nan stays
        return _like(values, self.zero_prob + (1.0 - self.zero_prob) * inner)

    def epsilon(self, delta: Any) -> Any:
        """The smallest epsilon >= 0 with ``f.delta(epsilon) <= delta``; inf where there is none.

        Parameters
        ----------
        delta : scalar or array in [0, 1]
            The total: it includes ``zero_prob``.
        """
        values = _checked("delta", delta, 0.0, 1.0)
        noisy = 1.0 - self.zero_prob
        inner = (values - self.zero_prob) / noisy if noisy > 0.0 else np.where(values >= 1.0, 1.0, -1.0)
        return _like(values, self._curve.epsilon(inner))

    def exceeds(self, epsilon: Any) -> Any:
        """Probability that the evidence for the true record reaches ``exp(epsilon)`` against the other one.

        ``P(log-likelihood ratio >= epsilon)`` under the truth, ``delta(epsilon) - delta'(epsilon)``; it includes
        ``zero_prob``, as an unchanged record is evidence without limit.

        Parameters
        ----------
        epsilon : scalar or array > 0 (inf allowed)
        """
        values = _checked("epsilon", epsilon, np.nextafter(0.0, 1.0), math.inf)
        inner = np.clip(self._curve.exceeds(np.minimum(values, np.finfo(np.float64).max)), 0.0, 1.0)
        return _like(values, self.zero_prob + (1.0 - self.zero_prob) * inner)

    @property
    def advantage(self) -> float:
        """Best ``1 - alpha - beta`` of an attacker: the total variation distance."""
        return float(self.delta(0.0))

    @property
    def gaussian_mu(self) -> float:
        """The smallest mu with ``f >= G_mu`` everywhere; inf if there is none."""
        return self._curve.gaussian_mu() if self.zero_prob == 0.0 else math.inf

    def plot(self, ax: Any = None, *, label: str | None = None, **line: Any) -> Any:
        """Draw the curve with the line of pure guessing, ``alpha + beta = 1`` (needs matplotlib).

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: new axes; draw several curves into the axes of the first to compare them.
        label : str, optional
            For the legend; default: what the curve is.
        **line
            Passed on to ``Axes.plot``.

        Returns
        -------
        matplotlib Axes
        """
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise ImportError("plots need matplotlib: pip install 'zil[plot]'") from None
            _, ax = pyplot.subplots()
        if not ax.lines:
            ax.plot([0.0, 1.0], [1.0, 0.0], color="0.6", linestyle=":", label="pure guessing")
            ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
            ax.set(xlabel="type I error (false alarms)", ylabel="type II error (missed)")
        alpha = np.unique(np.concatenate([[0.0], np.geomspace(1e-6, 0.02, 100), np.linspace(0.02, 1.0, 300)]))
        ax.plot(alpha, self(alpha), label=repr(self) if label is None else label, **line)
        ax.legend()
        return ax

    def bounds(self, alpha: Any) -> tuple[Any, Any]:
        """Certified enclosure (lower, upper) of ``f(alpha)``; both are the value itself for a closed form."""
        values, inner, rest = self._parts("alpha", alpha)
        lower, upper = self._curve.bounds(inner, rest)
        noisy = 1.0 - self.zero_prob
        return _like(values, noisy * lower), _like(values, noisy * upper)

    def compose(self, other: int | TradeOff) -> TradeOff:
        """Several releases of the same record together.

        Parameters
        ----------
        other : int >= 1 or TradeOff
            How many releases with this curve; or the curve of one other release.

        Returns
        -------
        TradeOff
            On the safe side: at most the true composition.  `bounds` encloses the truth, up to the
            discretisation error that is estimated from half the grid.  Gaussian curves compose in closed form.

        Raises
        ------
        ValueError, TypeError
            If ``other`` is neither a positive integer nor a TradeOff.

        Notes
        -----
        Fourier transform of the privacy-loss distribution on a grid of 2^13 points, every rounding towards
        less privacy (beyond the paper: mathematics 3.7).
        """
        if isinstance(other, TradeOff):
            parts, label = [(self, 1), (other, 1)], f"{self.label} with {other.label}"
        else:
            count = integer("other", other, 1)
            if count == 1:
                return self
            parts, label = [(self, count)], f"{self.label}, {count} times"
        atom = -math.expm1(sum(k * math.log1p(-f.zero_prob) for f, k in parts if f.zero_prob < 1.0))
        if any(f.zero_prob == 1.0 for f, _ in parts):
            return TradeOff(curves.Perfect(), 1.0, label)
        noisy = [(f._curve, k) for f, k in parts if not isinstance(f._curve, curves.Perfect)]
        if all(isinstance(curve, curves.Gaussian) for curve, _ in noisy):
            mu = math.sqrt(sum(k * curve.mu**2 for curve, k in noisy if isinstance(curve, curves.Gaussian)))
            return TradeOff(curves.Gaussian(mu) if mu > 0.0 else curves.Perfect(), atom, label)
        if len(noisy) == 1 and noisy[0][1] == 1:
            return TradeOff(noisy[0][0], atom, label)
        # the atoms compose by themselves; what is left of the grid adds to them
        curve, rest = composition.compose([(curve.delta, curve.epsilon, k) for curve, k in noisy])
        return TradeOff(curve, atom + (1.0 - atom) * rest, label)


def tradeoff(dim: float, c: float, zero_prob: float = 0.0) -> TradeOff:
    """Trade-off function of zero-inflated symmetric Laplace noise.

    Parameters
    ----------
    dim : int >= 1 or math.inf
        Number of noised columns; inf is the limit, a lower bound for every dimension.  The limit also answers for more
        than 10000 columns.
    c : float >= 0
        Shift in units of the noise, ``|x - x'|/scale``.
    zero_prob : float in [0, 1]
        Probability that a record is published unchanged.

    Returns
    -------
    TradeOff

    Raises
    ------
    ValueError, TypeError
        If an argument is outside its range (nan included).

    Notes
    -----
    d = 1: paper, section 3. Finite d without simulation and the limit in closed form: beyond the
    paper, mathematics 3.3 and 3.4.
    """
    size = math.inf if isinstance(dim, (float, np.floating)) and dim == math.inf else integer("dim", dim, 1)
    shift = in_range("c", c, 0.0, math.inf, open_high=True)
    z = probability("zero_prob", zero_prob)
    label = f"ZIL, d = {'inf' if size == math.inf else size}, c = {shift:g}, zero_prob = {z:g}"
    return TradeOff(_laplace_curve(size, shift), z, label)


def _laplace_curve(dim: float, c: float) -> curves.Curve:
    if c == 0.0:
        return curves.Perfect()
    if dim == 1:
        return curves.LaplaceLine(c)
    if dim > LARGEST_DIM or not exact.SMALLEST_SHIFT <= c <= exact.LARGEST_SHIFT:
        # safe for any number of columns; below that shift all curves of one c lie within c/sqrt(2) of each other
        return curves.LaplaceLimit(c)
    return exact.exact_curve(int(dim), c)


def gaussian_tradeoff(mu: float) -> TradeOff:
    """The curve ``G_mu`` of N(0, 1) against N(mu, 1), mu >= 0 and finite."""
    value = in_range("mu", mu, 0.0, math.inf, open_high=True)
    curve = curves.Gaussian(value) if value > 0.0 else curves.Perfect()
    return TradeOff(curve, 0.0, f"Gaussian, mu = {value:g}")


def eps_delta_tradeoff(epsilon: float, delta: float) -> TradeOff:
    """The polygon ``max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a))`` of (epsilon, delta) privacy.

    Parameters
    ----------
    epsilon : float >= 0, finite
    delta : float in [0, 1]
    """
    eps = finite("epsilon", in_range("epsilon", epsilon, 0.0))
    total = probability("delta", delta)
    curve = curves.PureEpsilon(eps) if eps > 0.0 else curves.Perfect()
    return TradeOff(curve, total, f"epsilon = {eps:g}, delta = {total:g}")
