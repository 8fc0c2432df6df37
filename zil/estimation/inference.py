"""Standard errors from the joint row scores, and the result object.

``sqrt(n)(theta^ - theta0) -> N(0, V^-1 A V^-1)``: ``A`` is the mean outer product of the n *joint* scores
(all terms of a row added first; stacking the two noisy data sets would count every person twice), ``V``
the Hessian of the expected loss.  For kinked losses ``V`` is the Hessian of the corrected loss smoothed
at a Hall-Sheather bandwidth, a Powell-type kernel estimate with a Laplace kernel.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import stats

from zil import _validate
from zil._validate import FloatArray
from zil.estimation import solve
from zil.estimation.losses import Loss
from zil.estimation.objective import IndexObjective

# Beyond these a sample is called small.
LARGE_INDEX_ERROR = 0.15
# A kernel estimate of the curvature has an error of its own.
LARGE_CURVATURE_ERROR = {"smooth": 0.05, "kinked": 0.15}
# Parts of the sample that are left out in turn.
FOLDS = 10


def hall_sheather(n: float, tau: float) -> float:
    """Hall-Sheather bandwidth on the probability scale for the tau-quantile, at level 0.05.

    ``n^(-1/3) z^(2/3) [1.5 f^2 / (2 x^2 + 1)]^(1/3)`` with ``x = Phi^-1(tau)``, ``f = phi(x)``, ``z = Phi^-1(.975)``.
    """
    x = float(stats.norm.ppf(tau))
    density = float(stats.norm.pdf(x))
    z = float(stats.norm.ppf(0.975))
    return float(n ** (-1 / 3) * z ** (2 / 3) * (1.5 * density**2 / (2 * x * x + 1)) ** (1 / 3))


def _spread(objective: IndexObjective, theta: FloatArray) -> float:
    """Spread of ``t`` for the original rows: the variance that the noise added is taken off; robust to tails."""
    part = objective.parts[0]
    t = objective.argument(part, theta)[0]
    if part.rows.weights is not None:
        t = t[part.rows.weights != 0.0]
    total = float(np.var(t))
    spread = math.sqrt(max(total - objective.noise_variance(theta), 0.05 * total))
    low, high = np.quantile(t, [0.25, 0.75])
    robust = float(high - low) / 1.349
    return min(spread, robust) if robust > 0.0 else spread


def kernel_width(objective: IndexObjective, theta: FloatArray, n: float | None = None) -> float:
    """Scale of the Laplace kernel for the Hessian of a kinked loss, in units of ``t``.

    ``n`` is the number of rows that Hall and Sheather's rule is to count, by default those of the first part.
    """
    up, down = objective.loss.constants
    tau = 0.5 if objective.loss.classifier else up / (up + down)
    spread = _spread(objective, theta)
    n = objective.parts[0].rows.features.shape[1] if n is None else n
    probability = min(hall_sheather(max(n, 2), tau), 0.98 * min(tau, 1 - tau))
    low_tau, high_tau = max(tau - probability, 1e-6), min(tau + probability, 1 - 1e-6)
    window = spread * float(stats.norm.ppf(high_tau) - stats.norm.ppf(low_tau))
    # quantile regression's uniform kernel on (-window/2, window/2) has variance window^2/12, Laplace 2 s^2
    return max(window / math.sqrt(24.0), 1e-12 * max(spread, 1e-300))


def effective_rows(objective: IndexObjective, theta: FloatArray, width: float) -> float:
    """Clean rows that would estimate the density at the kink as well as the rows of this objective.

    The weights ``k_i`` of the Laplace kernel, all terms of a row added, have mean ``f``; without noise their variance
    is ``f / (4 width)`` but for terms of lower order, so ``n_eff = n f / (4 width var(k))``.
    """
    noise = objective.index_noise(theta)
    weights = np.zeros(objective.n_rows)
    for part in objective.smoothed(width).parts:
        scale = math.sqrt(part.q0 + part.kappa * noise)
        own = part.e / (2.0 * scale) * np.exp(-np.abs(objective.argument(part, theta)[0]) / scale)
        if part.rows.weights is not None:
            own = own * part.rows.weights
        index = part.rows.index
        weights += own if index is None else np.bincount(index, own, minlength=objective.n_rows)
    weights *= objective.n_rows / objective.total
    density, variance = float(weights.mean()), float(weights.var())
    return objective.n_rows * density / (4.0 * width * variance) if density > 0.0 else 1.0


def index_error(objective: IndexObjective, covariance: FloatArray) -> float:
    """Sampling error of the index under an estimate's covariance, root mean square over the rows of the first part."""
    rows = objective.parts[0].rows
    features, one = rows.features, int(objective.intercept)
    if one:  # an intercept takes up where a column has its zero
        centre = features.mean(axis=1) if rows.weights is None else features @ rows.weights / rows.weights.sum()
        features = features - centre[:, None]
    moments = features @ features.T / features.shape[1]
    return math.sqrt(max(float((covariance[one:, one:] * moments).sum()), 0.0))


def kernel_reach(objective: IndexObjective, covariance: FloatArray) -> float:
    """Narrowest kernel for a Hessian at an estimate: 1.3 times the sampling error of the index.  A narrower one would
    measure how well the rows were fitted."""
    return 1.3 * index_error(objective, covariance)


def curved(objective: IndexObjective, theta: FloatArray) -> IndexObjective:
    """The objective itself, or a kinked one smoothed by a kernel: its Hessian at ``theta`` estimates V.

    For a kinked loss the estimate is minimised over the same rows that it measures, so at a narrow kernel it is far
    too large (a factor 3 to 7 for DR at scale 1 to 2): the kernel is widened to the sampling error of the index.
    """
    if not objective.loss.kinked:
        return objective
    width = kernel_width(objective, theta)
    if all(part.a >= 0.0 and part.e >= 0.0 for part in objective.parts):
        return objective.smoothed(width)
    scores = objective.scores(theta)
    wide = max(width, 0.5 * _spread(objective, theta))
    for _ in range(2):
        covariance = sandwich(scores, objective.smoothed(wide).hessian(theta))
        if not np.isfinite(covariance).all():
            break
        wide = max(width, kernel_reach(objective, covariance))
    return objective.smoothed(wide)


def held_out_hessian(smooth: IndexObjective, theta: FloatArray, scores: FloatArray) -> FloatArray:
    """Hessian of a smooth objective with every tenth of the rows taken at the estimate of the others.

    Without it the estimate of V comes from the rows that were fitted and is too large: the minimiser looks for places
    where the sample is more curved than its expectation (7 % at the .9 quantile of 20000 rows at scale 1; 1 % so).
    The estimates of the others are one Newton step away: ``theta + V^-1 (sum of the left-out scores) / (rows kept)``.

    ``scores`` (n, p) are those of the estimate.
    """
    n = len(scores)
    fold = np.arange(n) % FOLDS
    hessian, penalty = smooth.hessian(theta), smooth.penalty_curvature()
    centred = scores - scores.mean(axis=0)
    total = np.zeros_like(hessian)
    for k in range(FOLDS):
        out = fold == k
        without = theta + np.linalg.solve(hessian, centred[out].sum(axis=0)) / (n - out.sum())
        parts = [
            replace(part, rows=part.rows.take(out if part.rows.index is None else out[part.rows.index]))
            for part in smooth.parts
        ]
        total += replace(smooth, parts=tuple(parts)).hessian(without) - penalty
    return total + penalty


def curvature_error(smooth: IndexObjective, theta: FloatArray, hessian: FloatArray, covariance: FloatArray) -> float:
    """Relative standard error of the estimated curvature, in the direction in which it is weakest.

    Row curvatures are differences of row scores over a thousandth of a standard error.
    """
    natural = solve.coordinates(smooth).matrix
    own = natural.T @ hessian @ natural
    scale = np.sqrt(np.diag(own))
    weakest = natural @ (np.linalg.eigh(own / np.outer(scale, scale))[1][:, 0] / scale)
    weakest /= math.sqrt(float(weakest @ np.linalg.solve(covariance, weakest)))
    step = 1e-3 * weakest
    rows = (smooth.scores(theta + step) - smooth.scores(theta - step)) @ weakest / 2e-3
    return float(rows.std() / math.sqrt(len(rows)) / (weakest @ hessian @ weakest))


def small_sample(smooth: IndexObjective, theta: FloatArray, hessian: FloatArray, covariance: FloatArray) -> str:
    """Why the asymptotic law is in doubt; "" where it is not.

    It takes the curvature for known and constant over a few standard errors.  The limits are where simulated coverage
    leaves 93.5 to 96.5 % (docs/coverage.md).
    """
    if smooth.loss.kinked:
        share = index_error(smooth, covariance) / max(_spread(smooth, theta), 1e-300)
        if share > LARGE_INDEX_ERROR:
            return f"the sampling error of the index is {share:.2f} of the spread of the residuals or margins"
    error = curvature_error(smooth, theta, hessian, covariance)
    limit = LARGE_CURVATURE_ERROR["kinked" if smooth.loss.kinked else "smooth"]
    return f"the curvature is known to {100.0 * error:.0f} % only" if error > limit else ""


def row_scores(objective: IndexObjective, theta: FloatArray) -> FloatArray:
    """Joint row scores (n, p) at an estimate.

    A vertex puts p rows exactly on their kink; rounding would give each one side or the other, so a kinked loss is
    smoothed by a millionth of the kernel: they get the mean of both sides.
    """
    if objective.loss.kinked:
        objective = objective.smoothed(1e-6 * kernel_width(objective, theta))
    return objective.scores(theta)


def sandwich(scores: FloatArray, hessian: FloatArray) -> FloatArray:
    """``V^-1 A V^-1 / n``, shape (p, p); nan where V is not positive definite."""
    n, p = scores.shape
    nothing = np.full((p, p), np.nan)
    scale = np.sqrt(np.abs(np.diag(hessian)))
    if not np.isfinite(hessian).all() or not (scale > 0.0).all():
        return nothing
    scaled = hessian / np.outer(scale, scale)  # the units of the columns leave the matrix
    values, vectors = np.linalg.eigh(scaled)
    if values[0] <= 1e-12 * values[-1]:
        return nothing
    inverse = (vectors / values) @ vectors.T
    half = (scores / scale) @ inverse / scale
    return np.asarray(half.T @ half / (n * n))


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
        """Two-sided p-values of ``params = 0`` under the normal law."""
        return np.asarray(2.0 * stats.norm.sf(np.abs(self.tvalues)))

    def conf_int(self, level: float = 0.95, *, simultaneous: bool = False) -> FloatArray:
        """Normal confidence intervals, shape (p, 2).

        Parameters
        ----------
        level : float in (0, 1)
        simultaneous : bool
            All intervals hold at once with probability ``level``: the half width is a quantile of the largest of p
            correlated normals (simulated with a fixed seed, error about 0.2 %).

        Raises
        ------
        ValueError
            ``level`` outside (0, 1) or nan.
        """
        level = _validate.in_range("level", level, 0.0, 1.0, open_low=True, open_high=True)
        times = _largest_normal(self.covariance, level) if simultaneous else float(stats.norm.ppf(0.5 + 0.5 * level))
        half = times * self.bse
        return np.column_stack([self.params - half, self.params + half])

    def wald_test(self, R: Any, q: Any = 0.0) -> WaldTest:
        """Wald test of ``R theta = q``.

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
        target = np.broadcast_to(_validate.finite_array("q", q, (0, 1)), (len(matrix),))
        if np.linalg.matrix_rank(matrix) < len(matrix):
            raise ValueError("rows of R are linearly dependent")
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
            Columns in the order of the fit, or a table that has them by name.

        Returns
        -------
        (m,) array
            The index ``intercept + x'theta`` (regression, hinge losses), the probability of the event (logistic)
            or the expected count (Poisson).
        """
        from zil import _tables

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
        }

    def _rows(self) -> list[tuple[str, ...]]:
        interval = self.conf_int()
        columns = (self.params, self.bse, self.tvalues, self.pvalues, interval[:, 0], interval[:, 1])
        return [
            (name, *(f"{column[k]:.3f}" if column is self.pvalues else f"{column[k]:.5g}" for column in columns))
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
