"""``zil.Fit``: estimates with their covariance, without any row."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from zil import _tables, _validate
from zil._validate import FloatArray
from zil.estimation.inference.rank_sets import RankSets
from zil.estimation.inference.score_sets import ScoreSets
from zil.estimation.losses.base import Loss


def _largest_normal(covariance: FloatArray, level: float) -> float:
    """Quantile of ``max |Z_j|`` for normal Z with these correlations; nan if they are not known."""
    errors = np.sqrt(np.diag(covariance))
    if not np.isfinite(covariance).all() or not (errors > 0.0).all():
        return math.nan
    values, vectors = np.linalg.eigh(covariance / np.outer(errors, errors))
    draws = np.random.default_rng(0).standard_normal((100_000, len(errors)))
    draws *= np.sqrt(np.clip(values, 0.0, None))
    return float(np.quantile(np.abs(draws @ vectors.T).max(axis=1), level))


@dataclass(frozen=True, eq=False)
class Fit:
    """Result of ``zil.fit``.  Holds no rows, so pickles are small and carry no data.

    A loss made of a user's functions is pickled by their names: lambdas and functions of ``__main__`` cannot be loaded
    elsewhere.

    Attributes
    ----------
    params : (p,) array
        Estimates, intercept first.
    names : list of p str
    nobs : int
        Rows used.
    method : str
    converged : bool
        True only for a proper minimum.  If False, standard errors are nan and ``message`` says why.
    message : str
    n_iter : int
        Newton steps and vertices.
    loss : Loss
    objective_value : float
        Corrected sample objective at ``params``.
    zero_prob : float or None
        Probability that a row was published unchanged; None for clean data.
    classes : tuple or None
        The two labels of a classifier; the second is the event.
    notes : tuple of str
        What a reader should know (methods that are not consistent, weights of truncation levels, ...).
    small_sample : bool
        The sample is small for this noise: intervals may cover more or less than they say; a note gives the reason.
    columns : tuple or None
        Keys of the features in the table of the fit, by which ``predict`` finds them in another.
    score : ScoreSets, RankSets or None
        What score intervals are made of.  RankSets holds the rows until the first interval or pickle is made of them.
    """

    params: FloatArray
    covariance: FloatArray
    names: Sequence[str]
    nobs: int
    method: str
    converged: bool
    message: str
    n_iter: int
    loss: Loss
    objective_value: float
    intercept: bool
    zero_prob: float | None = None
    classes: tuple[Any, ...] | None = None
    cov_type: str = "sandwich"
    notes: tuple[str, ...] = field(default=())
    small_sample: bool = False
    columns: tuple[Any, ...] | None = None
    score: ScoreSets | RankSets | None = field(default=None, repr=False)

    @property
    def strength(self) -> dict[str, float]:
        """How surely the data tell each coefficient from infinity: F by name, for least squares under noise (else {}).

        At most 3.84: its 95 % interval is unbounded.  Below 10: it is known only roughly.  Below 50: its standard error
        and Wald interval are too small.  Above 400 both kinds of interval agree.
        """
        if not isinstance(self.score, ScoreSets):
            return {}
        return dict(zip(self.names, self.score.strength().tolist(), strict=True))

    @property
    def bse(self) -> FloatArray:
        """Standard errors, shape (p,); nan if the fit did not converge."""
        return np.sqrt(np.diag(self.covariance))

    def cov_params(self) -> FloatArray:
        """Covariance matrix of the estimates, shape (p, p)."""
        return self.covariance.copy()

    @property
    def tvalues(self) -> FloatArray:
        """``params / bse``: z statistics (the reference law is normal)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.params / self.bse)

    @property
    def pvalues(self) -> FloatArray:
        """Two-sided p-values of ``params = 0``: by the score test for least squares under noise, else under the normal
        law."""
        if isinstance(self.score, ScoreSets):
            return self.score.pvalues()
        return np.asarray(2.0 * stats.norm.sf(np.abs(self.tvalues)))

    def conf_int(self, level: float = 0.95, kind: str = "auto", *, simultaneous: bool = False) -> FloatArray:
        """Confidence intervals, shape (p, 2).

        Parameters
        ----------
        level : float in (0, 1)
        kind : {"auto", "wald", "score"}
            "wald": the estimate and a multiple of its standard error.  "score": the values that a score test does not
            refuse, for least squares under noise (inference/score_sets.py) and for quantiles of clean rows with fewer
            than 200 in the smaller tail (inference/rank_sets.py).  Where the data do not know how much
            the originals of a column vary, that may be every value, and the interval is ``(-inf, inf)``.  "auto": score
            where there is one, else Wald.
        simultaneous : bool
            All intervals hold at once with probability ``level``: the half width is a quantile of the largest of p
            correlated normals (simulated with a fixed seed, error about 0.2 %).

        Raises
        ------
        ValueError
            ``level`` outside (0, 1) or nan; ``kind="score"`` for a fit that has none.
        """
        level = _validate.in_range("level", level, 0.0, 1.0, open_low=True, open_high=True)
        kind = _validate.choice("kind", kind, ("auto", "wald", "score"))
        if kind == "score" and self.score is None:
            raise ValueError(
                "kind='score' needs a converged fit of least squares on noised rows, or a quantile of few clean rows; "
                "no ridge, no bootstrap"
            )
        times = _largest_normal(self.covariance, level) if simultaneous else float(stats.norm.ppf(0.5 + 0.5 * level))
        if kind != "wald" and self.score is not None and math.isfinite(times):
            return np.array([self.score.interval(j, times) for j in range(len(self.params))])
        half = times * self.bse
        return np.column_stack([self.params - half, self.params + half])

    def wald_test(self, R: Any, q: Any = 0.0) -> WaldTest:
        """Wald test of ``R theta = q``; for least squares under noise the score test that ``conf_int`` inverts.

        Parameters
        ----------
        R : array-like of shape (r, p) or (p,)
        q : float or array-like of shape (r,)

        Returns
        -------
        WaldTest
            ``statistic`` (chi-square; nan if the estimates of ``R theta`` have no or no proper covariance), ``df``
            (rank of R) and ``pvalue``.

        Raises
        ------
        ValueError
            Wrong shape, or rows of R that are linearly dependent.
        """
        matrix = np.atleast_2d(_validate.finite_array("R", R, (1, 2)))
        if matrix.shape[1] != len(self.params):
            raise ValueError(f"R must have {len(self.params)} columns, got shape {matrix.shape}")
        target = _validate.finite_array("q", q, (0, 1))
        if target.ndim and target.shape != (len(matrix),):
            raise ValueError(f"q must be a number or have {len(matrix)} entries, one per row of R, got {len(target)}")
        if np.linalg.matrix_rank(matrix) < len(matrix):
            raise ValueError("rows of R are linearly dependent")
        if isinstance(self.score, ScoreSets):
            statistic = self.score.test(matrix, target)
            return WaldTest(statistic, len(matrix), float(stats.chi2.sf(statistic, len(matrix))))
        gap = matrix @ self.params - target
        middle = matrix @ self.covariance @ matrix.T
        spread = np.sqrt(np.diag(middle))
        statistic = math.nan
        if np.isfinite(middle).all() and (spread > 0.0).all():
            statistic = float(gap / spread @ np.linalg.solve(middle / np.outer(spread, spread), gap / spread))
        return WaldTest(statistic, len(matrix), float(stats.chi2.sf(statistic, len(matrix))))

    def predict(self, X: Any) -> FloatArray:
        """Prediction for new, *clean* rows.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Columns in the order of the fit (an array has no names: if the fit had some, a warning says so), or a table
            that has them by name.

        Returns
        -------
        (m,) array
            The index ``intercept + x'theta`` (regression, hinge losses), the probability of the event (logistic)
            or the expected count (Poisson).
        """
        one = int(self.intercept)
        wanted = list(self.names[one:] if self.columns is None else self.columns)
        d = len(self.params) - one
        if isinstance(X, (np.ndarray, list, tuple)):
            rows = _validate.finite_array("X", X, (1, 2))
            if rows.ndim == 1:
                rows = rows.reshape(-1, d) if d != 1 else rows.reshape(-1, 1)
        else:
            rows = _tables.to_float(X, wanted)
        if rows.shape[1] != d:
            raise ValueError(f"X must have {d} columns, got shape {rows.shape}")
        by_name = self.columns is not None and all(isinstance(name, str) for name in wanted)
        if d > 1 and by_name and isinstance(X, (np.ndarray, list, tuple)):
            _tables.warn_nameless("X", wanted, depth=2)
        eta = rows @ self.params[one:]
        return self.loss.mean(eta + self.params[0] if one else eta)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, ready for JSON."""
        return {
            "loss": repr(self.loss),
            "method": self.method,
            "classes": None if self.classes is None else [str(label) for label in self.classes],
            "nobs": self.nobs,
            "zero_prob": self.zero_prob,
            "converged": self.converged,
            "message": self.message,
            "n_iter": self.n_iter,
            "objective": self.objective_value,
            "cov_type": self.cov_type,
            "names": list(self.names),
            "params": self.params.tolist(),
            "bse": self.bse.tolist(),
            "conf_int": self.conf_int().tolist(),
            "pvalues": self.pvalues.tolist(),
            "covariance": self.covariance.tolist(),
            "notes": list(self.notes),
            "small_sample": self.small_sample,
            "strength": self.strength,
        }

    def _rows(self) -> list[tuple[str, ...]]:
        interval = self.conf_int()
        pvalues = self.pvalues
        before, after = (self.params, self.bse, self.tvalues), (interval[:, 0], interval[:, 1])
        return [
            (
                name,
                *(f"{column[k]:.5g}" for column in before),
                f"{pvalues[k]:.3f}",
                *(f"{column[k]:.5g}" for column in after),
            )
            for k, name in enumerate(self.names)
        ]

    def _heading(self) -> list[str]:
        lines = [f"{self.loss!r}, method {self.method}, {self.nobs} rows, {self.cov_type} standard errors"]
        if self.classes is not None:
            lines.append(f"class {self.classes[1]!r} against {self.classes[0]!r}")
        if self.zero_prob is not None:
            lines.append(f"published rows: each one unchanged with probability {self.zero_prob:g}")
        if not self.converged:
            lines.append(f"NOT CONVERGED: {self.message}; standard errors are not available")
        return lines

    def summary(self) -> Summary:
        """Table of estimates; prints as text, shows as HTML in a notebook."""
        return Summary(
            tuple(self._heading()),
            ("", "coef", "std err", "z", "P>|z|", "[0.025", "0.975]"),
            tuple(self._rows()),
            self.notes,
        )

    def __repr__(self) -> str:
        return f"<zil Fit: {self.loss!r}, method={self.method!r}, nobs={self.nobs}, converged={self.converged}>"

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


@dataclass(frozen=True)
class WaldTest:
    """Wald test: chi-square ``statistic`` with ``df`` degrees of freedom."""

    statistic: float
    df: int
    pvalue: float


@dataclass(frozen=True)
class Summary:
    """A printable table of estimates."""

    heading: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        table = [self.columns, *self.rows]
        widths = [max(len(row[k]) for row in table) for k in range(len(self.columns))]

        def line(row: Sequence[str]) -> str:
            first, *rest = row
            cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
            return "  ".join(cells)

        body = [line(row) for row in table]
        rule = "-" * len(body[0])
        return "\n".join([*self.heading, rule, body[0], rule, *body[1:], rule, *self.notes])

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        head = "".join(f"<p>{html.escape(line)}</p>" for line in self.heading)
        foot = "".join(f"<p>{html.escape(line)}</p>" for line in self.notes)
        body = "".join(row(cells, "td") for cells in self.rows)
        return f"{head}<table>{row(self.columns, 'th')}{body}</table>{foot}"
