"""``zil.fit``: from a release to estimates with standard errors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zil import _validate
from zil._validate import ConvergenceWarning, FloatArray
from zil.estimation import computed, sources
from zil.estimation import losses as loss_module
from zil.estimation import sample as samples
from zil.estimation.inference import bootstrap as bootstrapping
from zil.estimation.inference.covariance import sandwich
from zil.estimation.inference.rank_sets import RankSets, few_rows
from zil.estimation.inference.score_sets import ScoreSets, score_sets, strength_note
from zil.estimation.inference.small_sample import small_sample
from zil.estimation.losses.base import Loss
from zil.estimation.losses.compiled import Absolute, Quantile, Squared
from zil.estimation.objective.build import check_method, stand_in
from zil.estimation.objective.coordinates import coordinates
from zil.estimation.plan import Estimate, Plan
from zil.estimation.result import Fit
from zil.privacy.noise import Noise

# Steps of the published values that a scale must hold for the public bounds to be of use.
FINE_STEPS = 1024.0
# Parameters up to which rank-score intervals are made: each takes fifty fits of the others.
MOST_RANKED = 12


def fit(
    loss: Loss | str,
    data: Any,
    *,
    y: Any = None,
    x: Sequence[Any] | None = None,
    noise: Noise | None = None,
    method: str | None = None,
    intercept: bool = True,
    weights: Any = None,
    weights_type: str = "probability",
    ridge: float = 0.0,
    bounds: Any = None,
    start: Any = None,
    box: Any = None,
    cov: str = "sandwich",
    copies: int | None = None,
    n_boot: int = 200,
    n_threads: int | None = None,
    rng: Any = None,
    progress: bool = False,
) -> Fit:
    """Fit an M-estimator on a published table.

    Parameters
    ----------
    loss : Loss or str
        From ``zil.losses``, or its name ("logistic", "quantile:0.9", ...).
    data : Release, table, path or list of Parquet paths, dask DataFrame or Array
        Tables are numpy arrays, pandas, polars or pyarrow tables.  A file that zil did not write is a plain table:
        clean unless ``noise`` is given.  A dask collection is computed once.
    y : column name or array-like of shape (n,)
        Response.  Columns of an array are named by position.
    x : list of columns, optional
        Default: all other columns.  ``[]`` fits an intercept only (a location).
    noise : zil.Noise, optional
        Default: that of the release; for a plain table None means clean data.
    method : {"optimal", "rb", "dr", "sdr", "sl", "scl", "naive"}, optional
        Correction for the noise ("scl", quantiles only, and "naive" are for comparison).
        Default: "optimal" if bounds are known, else "rb".
    intercept : bool
        Added because asked, never inferred from the data.
    weights : array-like of shape (n,) or column name, optional
        A row of weight zero is no row.
    weights_type : {"probability", "frequency"}
        What a weight means.  "probability": how much a row counts, up to a common factor (survey weights); the errors
        are those of the rows that are there.  "frequency": how often a row occurs, a whole number; estimates and errors
        are those of the table with every row written out that often, which is what is computed, in memory too.
    ridge : float >= 0
        Adds ``ridge/2 |coefficients|^2`` to the mean loss, intercept free.
    bounds : dict by column, or array-like of shape (d, 2), optional
        Public bounds of the noised columns; default: those of the release.  Needed by "optimal", and used for the
        standard errors of kinked losses.
    start : array-like of shape (p,), optional
        Default: the naive fit.  The result is never higher than the start, by the corrected objective itself, "optimal"
        apart (it minimises no single objective); a start outside the box is moved into it first.
    box : (low, high), optional
        Numbers or arrays of shape (p,): the search stays inside; a point on the box is never called converged.
        Default: 50 natural units per standard deviation of a column.
    cov : {"sandwich", "hc1", "bootstrap"}
        "hc1" multiplies the sandwich by ``n/(n - p)`` (few rows); "bootstrap" resamples rows.
    copies : int, optional
        Second noises averaged by DR, SDR and SL (default 1) and by the truncated losses of "optimal" (default 8).
    n_boot : int
        Resamples of ``cov="bootstrap"``.
    rng : optional
        Source of the second noise; None: fixed, so the same call gives the same estimate.  It also draws the rows of
        a bootstrap (None: other rows each time).
    progress : bool
        Count the bootstrap's resamples on stderr.

    Returns
    -------
    Fit

    Raises
    ------
    ValueError, TypeError, SchemaError
        Input that the contract refuses, a rank deficient design, a single class, DR or RB at ``zero_prob = 0``.

    Warns
    -----
    ConvergenceWarning
        No proper minimum was found (unbounded objective, box reached, separation, indefinite Hessian); then
        ``converged`` is False and standard errors are nan.

    Examples
    --------
    >>> import numpy as np, zil
    >>> table = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0], [3.0, 8.0]])
    >>> result = zil.fit(zil.losses.Squared(), table, y=1)
    >>> result.params.round(6).tolist()
    [0.8, 2.3]
    """
    if cov == "bootstrap":
        rng = bootstrapping.fixed_seed(rng)
    made = plan(
        loss,
        data,
        y=y,
        x=x,
        noise=noise,
        method=method,
        intercept=intercept,
        weights=weights,
        weights_type=weights_type,
        ridge=ridge,
        bounds=bounds,
        start=start,
        box=box,
        copies=copies,
        n_threads=n_threads,
        rng=rng,
    )
    cov = _validate.choice("cov", cov, ("sandwich", "hc1", "bootstrap"))
    return conclude(made, made.estimate(), cov, n_boot=n_boot, progress=bool(progress))


def bootstrap(loss: Loss | str, data: Any, *, n_boot: int = 200, rng: Any = None, **fit_arguments: Any) -> Fit:
    """``zil.fit`` with standard errors from resampled rows; the same as ``cov="bootstrap"``.

    Parameters
    ----------
    loss, data, **fit_arguments
        As in ``zil.fit``.
    n_boot : int >= 2
        Number of resamples.
    rng : None, int, SeedSequence, Generator or BitGenerator
        Draws the rows, and the second noise as in ``zil.fit``.  An int gives the same result every time, for any
        number of threads; None draws other rows each time.

    Returns
    -------
    Fit
        ``cov_type`` is "bootstrap".

    Warns
    -----
    ConvergenceWarning
        The fit, or more than a tenth of the resamples, found no proper minimum; standard errors are nan.
    """
    # not through fit: warnings name the caller's line, and there is to be one call between it and what warns
    progress = bool(fit_arguments.pop("progress", False))
    if "cov" in fit_arguments:
        raise TypeError("zil.bootstrap takes no cov: it is the bootstrap's; zil.fit takes it")
    made = plan(loss, data, rng=bootstrapping.fixed_seed(rng), **fit_arguments)
    return conclude(made, made.estimate(), "bootstrap", n_boot=n_boot, progress=progress)


def plan(
    loss: Loss | str,
    data: Any,
    *,
    y: Any = None,
    x: Sequence[Any] | None = None,
    noise: Noise | None = None,
    method: str | None = None,
    intercept: bool = True,
    weights: Any = None,
    weights_type: str = "probability",
    ridge: float = 0.0,
    bounds: Any = None,
    start: Any = None,
    box: Any = None,
    copies: int | None = None,
    n_threads: int | None = None,
    rng: Any = None,
) -> Plan:
    """Check every argument of ``fit`` and decide the method."""
    kind = loss_module.resolve(loss)
    table, noise, bounds, rounded = _open(data, noise, bounds)
    if rounded and method == "optimal":
        raise ValueError(
            f"method 'optimal' is not right for {rounded}: these were published with a resolution, and values rounded "
            "after the noise do not keep to the public bounds; use 'rb' or 'dr'"
        )
    y, weights = sources.computed(y), sources.computed(weights)
    intercept = _validate.boolean("intercept", intercept)
    ridge = _validate.in_range("ridge", ridge, 0.0, np.inf, open_high=True)
    if copies is not None:
        copies = _validate.integer("copies", copies, 1)
    weights_type = _validate.choice("weights_type", weights_type, ("probability", "frequency"))
    sample = _read_sample(kind, table, y, x, noise, weights, weights_type, intercept)
    computed.warn_of_computed(sample, table, noise)
    order = None
    if not kind.free:  # a loss that is free to use x as it likes gets the columns as they were asked for
        sample, order = samples.in_table_order(sample, table)
        bounds = _in_order(bounds, order)
    shift = None
    if intercept and box is None and not kind.free:
        sample, shift = samples.centred(sample)
    public = samples.public_box(sample, bounds, shift)
    if method is None:
        method = "optimal" if public is not None and sample.zero_prob else "rb"
        if sample.zero_prob == 0.0 and kind.smooth:
            method = "sl"
    used = check_method(kind, method, sample)
    if used == "optimal" and public is None:
        raise ValueError("method 'optimal' needs the public bounds of the noised columns (bounds=)")
    p = len(sample.names) + int(intercept)
    first = None if start is None else _validate.finite_array("start", start, 1)
    if first is not None and kind.free:
        p = len(first)
    if first is not None and len(first) != p:
        raise ValueError(f"start must have {p} entries, got {len(first)}")
    limits = _box(box, p)
    if order is not None:
        places = np.append(np.arange(int(intercept)), int(intercept) + order)
        first = None if first is None else first[places]
        limits = None if limits is None else (limits[0][places], limits[1][places])
    if first is not None and shift is not None:
        first = first + np.append(shift @ first[1:], np.zeros(p - 1))
    return Plan(
        loss=kind,
        sample=sample,
        public=public,
        method=used,
        intercept=intercept,
        ridge=ridge,
        copies=copies,
        start=first,
        limits=limits,
        rng=rng,
        n_threads=n_threads,
        size=p if kind.free else -1,
        shift=shift,
        order=order,
    )


def _in_order(bounds: Any, order: NDArray[np.intp] | None) -> Any:
    """Bounds that go by the place of a column in ``x``, in the order of the table (the response stays last)."""
    if order is None or bounds is None or isinstance(bounds, Mapping):
        return bounds
    pairs = _validate.finite_array("bounds", bounds, 2)
    return pairs if len(pairs) < len(order) else np.concatenate([pairs[order], pairs[len(order) :]])


def conclude(made: Plan, estimate: Estimate, cov: str, *, n_boot: int = 200, progress: bool = False) -> Fit:
    """Standard errors, the final checks and the result."""
    sample, objective, solution, method = made.sample, estimate.objective, estimate.solution, made.method
    n = objective.n_rows
    p = objective.n_params
    converged, message = solution.converged, solution.message
    covariance, doubt = np.full((p, p), np.nan), ""
    back, sets, ranked = made.back(p), None, None
    remarks = list(estimate.notes)
    if sample.noised and method != "naive":
        q = objective.index_noise(solution.theta)
        reason = objective.loss.undefined(q) if method != "optimal" else ""
        if converged and reason:
            converged, message = False, reason
        remarks.extend(filter(None, [objective.loss.caution(q), stand_in(made.loss, method, made.copies)]))
    if converged and n <= p:
        remarks.append(f"{n} rows for {p} parameters: no standard errors")
        warnings.warn(f"{n} row(s) for {p} parameter(s): standard errors are nan", ConvergenceWarning, stacklevel=3)
    elif converged:
        if cov == "bootstrap":
            covariance, note = bootstrapping.covariance(
                made, solution.theta, n_boot, made.rng, made.n_threads, progress
            )
            remarks.append(note)
        else:
            made_of = estimate.pieces()
            # in natural coordinates: a column far from 0 would make V look singular
            natural = coordinates(objective).matrix
            own = sandwich(made_of.meat(natural), natural.T @ made_of.hessian @ natural, objective.n_rows)
            covariance = natural @ own @ natural.T * (n / (n - p) if cov == "hc1" else 1.0)
            judged = sample.noised and method != "naive" and not made.loss.rough  # a rough score has no derivative
            if judged and np.isfinite(covariance).all():
                doubt = small_sample(made_of.smooth, solution.theta, made_of.hessian, covariance)
            if judged and isinstance(made.loss, Squared) and made.ridge == 0.0 and np.isfinite(covariance).all():
                sets, note = _score_sets(made, estimate, covariance, n - p if cov == "hc1" else n)
                remarks.extend(filter(None, [note]))
            if not sample.noised and isinstance(made.loss, (Absolute, Quantile)) and np.isfinite(covariance).all():
                on_fit = int(np.count_nonzero(objective.argument(objective.parts[0], solution.theta)[0] == 0.0))
                doubt = few_rows(made.loss, n, on_fit, p)
                if doubt and sample.weights is None and made.ridge == 0.0 and made.limits is None and p <= MOST_RANKED:
                    theta, errors = back @ solution.theta, np.sqrt(np.diag(back @ covariance @ back.T))
                    ranked = _rank_sets(made, theta, errors)
        if cov != "bootstrap" and not np.isfinite(covariance).all():
            reason = "the sample is too small for this noise" if sample.noised else "no proper minimum"
            converged, message = False, f"the Hessian is not positive definite: {reason}"
    if not converged:
        warnings.warn(f"{message}; standard errors are nan", ConvergenceWarning, stacklevel=3)
        covariance = np.full((p, p), np.nan)
    if method == "naive" and sample.noised:
        remarks.append("naive: the noise is ignored, so these estimates are not consistent")
    if doubt and converged and ranked is not None:
        remarks.append(f"SMALL SAMPLE: {doubt}; the intervals are rank-score intervals, which need no density")
    elif doubt and converged:
        of = " for this noise" if sample.noised else ""
        remarks.append(f"SMALL SAMPLE{of}: {doubt}; intervals may cover more or less than they say")
    return Fit(
        params=back @ solution.theta,
        covariance=back @ covariance @ back.T,
        names=made.names,
        nobs=n,
        method=method,
        converged=converged,
        message=message,
        n_iter=solution.n_iter,
        loss=objective.loss,
        objective_value=solution.value,
        intercept=objective.intercept,
        zero_prob=sample.zero_prob,
        classes=sample.classes,
        cov_type=cov,
        notes=tuple(remarks),
        small_sample=bool(doubt),
        columns=made.columns,
        score=(sets or ranked) if converged else None,
    )


def _rank_sets(made: Plan, theta: FloatArray, errors: FloatArray) -> RankSets:
    """Rank-score sets in the user's coordinates and order of columns."""
    sample = made.sample
    x = sample.x if made.shift is None else sample.x + made.shift
    if made.order is not None:
        x = x[:, np.argsort(made.order)]
    return RankSets(made.loss, replace(sample, x=x), made.intercept, theta, errors)


def _score_sets(made: Plan, estimate: Estimate, covariance: FloatArray, n: int) -> tuple[ScoreSets | None, str]:
    """Score sets of least squares under noise, and what a reader should know of their strength."""
    found = coordinates(estimate.objective)
    back = made.back(len(covariance))
    sets = score_sets(estimate.scores_at, estimate.solution.theta, found.matrix, found.unit, back, covariance)
    if sets is None:
        return None, "too many rows and columns for score intervals: these are Wald intervals"
    sets = replace(sets, n=n)
    return sets, strength_note(made.names, sets.strength())


def _open(source: Any, noise: Noise | None, bounds: Any) -> tuple[Any, Noise | None, Any, list[Any]]:
    """The table of a release with its noise and bounds, and its columns that were rounded after the noise; anything
    else stays as it is.

    Truncation at the public bounds is exact for values that keep their place: a step that is no small part of the
    noise moves rows across the edge (integers in 0 to 20 with steps of 1: a slope of .077 for .1).  Such a release is
    fitted without its bounds.
    """
    opened = sources.read(source, noise)
    if hasattr(opened, "noise") and hasattr(opened, "metadata"):
        noise = opened.noise if noise is None else noise
        columns = opened.metadata["columns"]
        rounded = [column["name"] for column in columns if column["scale"] < FINE_STEPS * column["tick"]]
        bounds = None if rounded else opened.bounds if bounds is None else bounds
        return opened.data, noise, bounds, rounded
    return opened, noise, bounds, []


def _read_sample(
    loss: Loss,
    table: Any,
    y: Any,
    x: Sequence[Any] | None,
    noise: Noise | None,
    weights: Any,
    weights_type: str,
    intercept: bool,
) -> samples.Sample:
    sample = samples.sample(loss, table, y=y, x=x, noise=noise, weights=weights, weights_type=weights_type)
    if not intercept and not sample.names:
        raise ValueError("nothing to fit: x=[] without an intercept")
    if not loss.free:
        samples.check_rank(sample, intercept)
    return sample


def _box(box: Any, p: int) -> tuple[FloatArray, FloatArray] | None:
    if box is None:
        return None
    try:
        low, high = box
    except (TypeError, ValueError):
        raise ValueError("box must be a pair (low, high)") from None
    edges = [_validate.float_array("box", edge, (0, 1)) for edge in (low, high)]
    if any(np.isnan(edge).any() for edge in edges) or any(edge.ndim and len(edge) != p for edge in edges):
        raise ValueError(f"box must hold numbers or arrays of {p} entries, none of them nan")
    lower, upper = (np.broadcast_to(edge, (p,)).copy() for edge in edges)
    if not (lower < upper).all():
        raise ValueError("box must have low < high for every parameter")
    return lower, upper
