"""Several quantile levels of one regression at once, with their joint covariance.

The levels are fitted one by one; their influence functions (``-V^-1 score`` of each row) are stacked, so the
covariance between levels is known and statements across levels, such as equal slopes, can be tested.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zil import _validate
from zil._validate import ConvergenceWarning, FloatArray
from zil.estimation.fit import conclude, plan
from zil.estimation.losses.compiled import Quantile
from zil.estimation.plan import influence
from zil.estimation.result import Fit, Summary, WaldTest


@dataclass(frozen=True, eq=False)
class QuantileFits:
    """Result of ``zil.fit_quantiles``; indexing by a level gives the ``Fit`` of that level.

    Attributes
    ----------
    taus : tuple of k floats
    fits : tuple of k Fit
    joint : Fit
        All parameters in one vector, level by level, with names such as "0.25: x".
    """

    taus: tuple[float, ...]
    fits: tuple[Fit, ...]
    joint: Fit

    @property
    def params(self) -> FloatArray:
        """Estimates, shape (k, p): a row per level."""
        return np.stack([fit.params for fit in self.fits])

    @property
    def bse(self) -> FloatArray:
        """Standard errors, shape (k, p)."""
        return np.asarray(self.joint.bse.reshape(self.params.shape))

    @property
    def names(self) -> list[str]:
        return list(self.fits[0].names)

    @property
    def converged(self) -> bool:
        return self.joint.converged

    def cov_params(self) -> FloatArray:
        """Joint covariance, shape (k p, k p), level by level."""
        return self.joint.cov_params()

    def conf_int(self, level: float = 0.95, *, simultaneous: bool = False) -> FloatArray:
        """Confidence intervals, shape (k, p, 2); ``simultaneous``: all of them hold at once with this probability."""
        return self.joint.conf_int(level, simultaneous=simultaneous).reshape(*self.params.shape, 2)

    def wald_test(self, R: Any, q: Any = 0.0) -> WaldTest:
        """Wald test of ``R theta = q``, theta all parameters level by level."""
        return self.joint.wald_test(R, q)

    def equal_slopes(self) -> WaldTest:
        """Wald test that no coefficient but the intercept changes with the level.

        Raises
        ------
        ValueError
            Fewer than two levels, or no coefficients.
        """
        k, p = self.params.shape
        one = int(self.joint.intercept)
        if k < 2 or p == one:
            raise ValueError("equal slopes need two levels and a coefficient")
        rows = np.zeros((k - 1, p - one, k, p))
        for i in range(k - 1):
            for j in range(p - one):
                rows[i, j, i, one + j], rows[i, j, i + 1, one + j] = 1.0, -1.0
        return self.wald_test(rows.reshape(-1, k * p))

    def __getitem__(self, tau: float) -> Fit:
        for level, fit in zip(self.taus, self.fits, strict=True):
            if math.isclose(level, tau, rel_tol=1e-12):
                return fit
        raise KeyError(tau)

    def summary(self) -> Summary:
        """One table with all levels."""
        joint = self.joint.summary()
        levels = ", ".join(f"{tau:g}" for tau in self.taus)
        first = joint.heading[0].replace(repr(self.joint.loss), f"Quantiles {levels}", 1)
        return replace(joint, heading=(first, *joint.heading[1:]))

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def fit_quantiles(taus: Sequence[float], data: Any, **fit_arguments: Any) -> QuantileFits:
    """Quantile regression at several levels with joint covariance.

    Parameters
    ----------
    taus : sequence of floats in (0, 1), all different
    data, **fit_arguments
        As in ``zil.fit``; ``cov`` is "sandwich" or "hc1".

    Returns
    -------
    QuantileFits

    Raises
    ------
    ValueError
        A level outside (0, 1), twice the same, none, or another covariance.

    Warns
    -----
    ConvergenceWarning
        A level found no proper minimum; its errors, and all joint ones, are nan.

    Examples
    --------
    >>> import numpy as np, zil
    >>> rows = np.random.default_rng(0).normal(size=(500, 2))
    >>> result = zil.fit_quantiles([0.25, 0.75], rows, y=1)
    >>> result.params.shape
    (2, 2)
    """
    levels = [float(t) for t in _validate.finite_array("taus", taus, 1)]
    if not levels or len(set(levels)) != len(levels):
        raise ValueError(f"taus must be one or more different levels, got {levels}")
    cov = fit_arguments.pop("cov", "sandwich")
    fit_arguments.pop("progress", None)  # there is no bootstrap to count
    _validate.choice("cov", cov, ("sandwich", "hc1"))
    fits, pieces = [], []
    for tau in levels:
        made = plan(Quantile(tau), data, **fit_arguments)
        estimate = made.estimate()
        fits.append(conclude(made, estimate, cov))
        if np.isfinite(fits[-1].covariance).all():
            made_of = estimate.pieces()
            pieces.append(influence(made_of.scores(), made_of.hessian) @ made.back(made_of.hessian.shape[0]).T)
    p, n = len(fits[0].params), fits[0].nobs
    size = p * len(levels)
    covariance = np.full((size, size), np.nan)
    if len(pieces) == len(fits):
        stacked = np.concatenate(pieces, axis=1)
        covariance = stacked.T @ stacked * (n / (n - p) if cov == "hc1" else 1.0)
    failed = [tau for tau, fit in zip(levels, fits, strict=True) if not fit.converged]
    if failed:
        warnings.warn(f"no minimum at level(s) {failed}: joint errors are nan", ConvergenceWarning, stacklevel=2)
    first = fits[0]
    shared = tuple(note for note in first.notes if all(note in fit.notes for fit in fits))
    notes = shared + tuple(
        f"{tau:g}: {note}" for tau, fit in zip(levels, fits, strict=True) for note in fit.notes if note not in shared
    )
    joint = Fit(
        params=np.concatenate([fit.params for fit in fits]),
        covariance=covariance,
        names=[f"{tau:g}: {name}" for tau in levels for name in first.names],
        nobs=n,
        method=first.method,
        converged=not failed,
        message="converged" if not failed else f"no minimum at level(s) {failed}",
        n_iter=sum(fit.n_iter for fit in fits),
        loss=first.loss,
        objective_value=float(sum(fit.objective_value for fit in fits)),
        intercept=first.intercept,
        zero_prob=first.zero_prob,
        cov_type=cov,
        notes=notes,
        small_sample=any(fit.small_sample for fit in fits),
    )
    return QuantileFits(tuple(levels), tuple(fits), joint)
