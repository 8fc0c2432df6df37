"""The data holder's side: calibrate a mechanism, look at what it promises, publish with it."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zil import _random, _tables, _threads, _validate
from zil._core import sampling
from zil._validate import FloatArray, SchemaError
from zil.privacy import calibrate as formulas
from zil.privacy.noise import Noise
from zil.privacy.tradeoff import TradeOff, tradeoff
from zil.release import metadata as facts
from zil.release import report, sampler, ticks
from zil.release.keystream import Key
from zil.release.published import Release

UNITS = facts.UNITS
LABEL_EPSILONS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
LABEL_ALPHAS = (0.001, 0.01, 0.05, 0.1)


def _pair(name: Any, pair: Any) -> tuple[float, float]:
    try:
        low, high = pair
    except (TypeError, ValueError):
        raise ValueError(f"bounds of {name!r} must be a pair (low, high), got {pair!r}") from None
    low, high = _validate.finite(f"lower bound of {name!r}", low), _validate.finite(f"upper bound of {name!r}", high)
    if low > high:
        raise ValueError(f"bounds of {name!r} are reversed: ({low:g}, {high:g})")
    return low, high


def _read_bounds(bounds: Any) -> tuple[tuple[Any, ...], FloatArray, bool]:
    """Names, bounds (d, 2), and whether they came by name."""
    if bounds is None:
        raise ValueError("bounds must be given: they are public and are never taken from the data")
    if isinstance(bounds, Mapping):
        names: list[Any] = []
        for name in bounds:
            if isinstance(name, bool) or not isinstance(name, (str, int, np.integer)):
                raise TypeError(f"a column in bounds must be a name or a position, got {type(name).__name__}")
            names.append(name if isinstance(name, str) else int(name))
        pairs = [_pair(name, pair) for name, pair in zip(names, bounds.values(), strict=True)]
    else:
        table = _validate.float_array("bounds", bounds)
        if table.shape == (2,):  # one column
            table = table.reshape(1, 2)
        if table.ndim != 2 or table.shape[1] != 2:
            raise ValueError(f"bounds must be a dictionary or have shape (d, 2), got shape {table.shape}")
        names = list(range(len(table)))
        pairs = [_pair(name, pair) for name, pair in enumerate(table.tolist())]
    if not pairs:
        raise ValueError("bounds are empty: there is no column to protect")
    if all(low == high for low, high in pairs):
        raise ValueError("the bounds of all columns are equal: there is nothing to protect")
    return tuple(names), np.array(pairs), isinstance(bounds, Mapping)


def _read_scale(names: tuple[Any, ...], scale: Any) -> FloatArray:
    if isinstance(scale, Mapping):
        if set(scale) != set(names):
            raise ValueError("scale must name the same columns as bounds")
        entries = [scale[name] for name in names]
    elif np.ndim(scale) == 0:
        entries = [scale] * len(names)
    else:
        entries = _validate.float_array("scale", scale, 1).tolist()
        if len(entries) != len(names):
            raise ValueError(f"scale has {len(entries)} entries for {len(names)} columns")
    return np.array([_validate.positive(f"scale of {name!r}", s) for name, s in zip(names, entries, strict=True)])


class Mechanism:
    """Zero-inflated symmetric Laplace noise on some columns of a table.

    Every row is published unchanged with probability ``zero_prob``; otherwise column j gets
    ``sqrt(W) scale_j N_j`` with one ``W ~ Exp(1)`` per row (paper, section 3).

    Parameters
    ----------
    bounds : dict or array-like of shape (d, 2)
        Public bounds by column name, or by position.  They must not come from the data.  The
        columns named are noised, all others pass through.
    zero_prob : float in [0, 1]
        Probability that a row is published unchanged.  What is used is a multiple of 2**-64.
    scale : float, array-like of shape (d,), or dict
        Noise scale in units of the column, > 0; not a variance.
    resolution : float, array-like of shape (d,), or dict, optional
        Step of the published values (1 for whole numbers), used where the scale holds at least eight steps.
        By default a power of two near 2**-20 of the scale.

    Raises
    ------
    ValueError
        Bounds missing, reversed, infinite, or equal in all columns; a parameter out of range.

    See Also
    --------
    calibrate : the mechanism for a privacy target.
    """

    def __init__(self, bounds: Any, *, zero_prob: float, scale: Any, resolution: Any = None) -> None:
        self._names, self._bounds, self._by_name = _read_bounds(bounds)
        self._zero_prob = sampler.dyadic(_validate.probability("zero_prob", zero_prob))
        self._scale = _read_scale(self._names, scale)
        width = formulas.widths(self._bounds)
        self._resolution = tuple(ticks.resolutions(self._names, resolution))
        self._grid = ticks.lattice(self._names, self._bounds, self._scale, self._resolution)
        over = zip(self._scale.tolist(), self._grid.tick.tolist(), strict=True)
        self._in_ticks = np.array([sampler.scale_in_ticks(s, u) for s, u in over])
        # the range over the noise, as declared and as the lattice holds it: equal but for decimal ticks
        self._ratios = np.maximum(
            formulas.ratios(width, self._scale),
            formulas.ratios(self._grid.high - self._grid.low, self._in_ticks),
        )
        self._target: dict[str, Any] | None = None
        self._label: dict[str, Any] | None = None

    @property
    def bounds(self) -> Any:
        """Public bounds in the form they were given: a dictionary by column, or an array of shape (d, 2)."""
        if self._by_name:
            return {name: tuple(pair) for name, pair in zip(self._names, self._bounds.tolist(), strict=True)}
        return self._bounds.copy()

    @property
    def columns(self) -> list[Any]:
        """Names of the noised columns, or positions 0 .. d - 1."""
        return list(self._names)

    @property
    def zero_prob(self) -> float:
        """Probability that a row is published unchanged, as used."""
        return self._zero_prob

    @property
    def scale(self) -> FloatArray:
        """Noise scales, shape (d,), in units of the columns."""
        return self._scale.copy()

    @property
    def tick(self) -> FloatArray:
        """Step of the published values, shape (d,)."""
        return self._grid.tick.copy()

    @property
    def dim(self) -> int:
        """Number of noised columns."""
        return len(self._names)

    @property
    def noise(self) -> Noise:
        """What an analyst must know; its scales include the rounding to ticks."""
        effective = ticks.effective_scale(self._scale, self._grid.tick)
        return Noise(self._zero_prob, dict(zip(self._names, effective.tolist(), strict=True)))

    def _key(self) -> tuple[Any, ...]:
        arrays = (self._bounds.tobytes(), self._scale.tobytes())
        return (self._names, self._by_name, arrays, self._zero_prob, self._resolution)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Mechanism) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        bounds = self.bounds if self._by_name else self._bounds.tolist()
        return f"Mechanism({bounds!r}, zero_prob={self._zero_prob!r}, scale={self._scale.tolist()!r})"

    def shift(self, unit: str) -> float:
        """Shift ``c`` of two neighbouring rows in units of the noise, rounded up.

        Parameters
        ----------
        unit : {"attribute", "record"}
            What may change: one entry, ``max_j width_j/scale_j``, or the whole row,
            ``|(width_j/scale_j)_j|_2``.
        """
        return formulas.shift(self._ratios, _validate.choice("unit", unit, UNITS))

    def tradeoff(self, unit: str, sharp: bool = True) -> TradeOff:
        """What an attacker can tell about one entry or one row.

        Parameters
        ----------
        unit : {"attribute", "record"}
        sharp : bool
            The exact curve for this number of columns, or the limit curve, safe for any number.
        """
        return tradeoff(_curve_dim(self.dim, sharp), self.shift(unit), self._zero_prob)

    def epsilon(self, delta: Any, unit: str) -> Any:
        """Smallest epsilon at total ``delta`` (exact curve); inf where there is none."""
        return self.tradeoff(unit).epsilon(delta)

    def delta(self, epsilon: Any, unit: str) -> Any:
        """Total delta at ``epsilon`` (exact curve); it includes ``zero_prob``."""
        return self.tradeoff(unit).delta(epsilon)

    def _guarantees(self) -> dict[str, Any]:
        if self._label is None:
            self._label = {
                unit: {curve: _describe(self.tradeoff(unit, curve == "sharp")) for curve in facts.CURVES}
                for unit in UNITS
            }
        return self._label

    def _metadata(
        self,
        names: Sequence[Any] | None = None,
        *,
        private: bool = True,
        n_rows: int | None = None,
        release_id: str | None = None,
        missing: Any = "error",
        table: str | None = None,
    ) -> dict[str, Any]:
        effective = ticks.effective_scale(self._scale, self._grid.tick)
        columns = self._names if names is None else names
        return facts.build(
            columns=facts.columns_part(columns, self._bounds, self._grid.tick, self._scale, effective),
            zero_prob=self._zero_prob,
            target=self._target,
            shifts={unit: self.shift(unit) for unit in UNITS},
            guarantees=self._guarantees(),
            private=private,
            n_rows=n_rows,
            release_id=release_id,
            missing=missing,
            table=table,
        )

    def report(self, n_rows: int | None = None) -> str:
        """The privacy label in markdown.

        It begins with the expected number of rows published unchanged, then both units, both
        curves, and what an attacker detects at given false-alarm rates.

        Parameters
        ----------
        n_rows : int, optional
            Rows to be published; without it shares are given.
        """
        rows = None if n_rows is None else _validate.integer("n_rows", n_rows, 0)
        return report.markdown(self._metadata(n_rows=rows))

    def _repr_html_(self) -> str:
        return report.html(self._metadata())

    def _prepare(self, table: Any, names: Sequence[Any], missing: Any) -> FloatArray:
        """The noised columns in ticks, (n, d); every refusal comes from here, before any draw."""
        allow, fill = _missing_policy(missing, self._names, self._bounds)
        values = _tables.to_float(table, names, allow_missing=fill is not None, allow_infinite=allow)
        if len(values) == 0:
            raise SchemaError("the table has no rows")
        if fill is not None:
            np.copyto(values, fill, where=np.isnan(values))
        return ticks.to_ticks(values, self._bounds, self._grid)

    def _finish(self, table: Any, names: Sequence[Any], counts: FloatArray, **about: Any) -> Release:
        counts *= self._grid.tick
        data = _tables.replace(table, {name: counts[:, k] for k, name in enumerate(names)})
        return Release(data, self._metadata(names, n_rows=len(counts), table=_tables.kind(table), **about))

    def release(self, table: Any, *, missing: Any = "error", n_threads: int | None = None) -> Release:
        """Publish a table: clip, move to the lattice, add noise from the operating system's randomness.

        There is no seed.  Releasing the same rows again spends the guarantee again; see
        `release_file` for a ledger.

        Parameters
        ----------
        table
            numpy array, pandas, polars or pyarrow table; the same kind comes back, with rows,
            index and other columns as they were.
        missing : {"error", "clip", "midpoint"}, float, or dict
            What to do with NaN, null and infinite entries of noised columns.  ``"error"`` refuses
            them; ``"clip"`` moves infinite ones to the bounds and refuses the rest; ``"midpoint"``
            and public constants (by column) replace NaN and null, and clip infinite ones.
        n_threads : int, optional
            None: what ``OMP_NUM_THREADS`` and the CPU affinity allow.

        Returns
        -------
        Release

        Raises
        ------
        SchemaError
            Missing or infinite entries, unknown or repeated columns, no rows.
        TypeError
            A noised column is not numeric.
        """
        names = _locate(self._names, self._by_name, table)
        counts = self._prepare(table, names, missing)
        with Key.fresh() as key:
            counts += sampler.draw_ticks(key, len(counts), self._in_ticks, self._zero_prob, n_threads=n_threads)
        return self._finish(
            table, names, counts, private=True, release_id=secrets.token_hex(16), missing=_policy_label(missing)
        )

    def simulate(self, table: Any, rng: Any = None, *, missing: Any = "error", n_threads: int | None = None) -> Release:
        """The same law from a reproducible generator, for studies; stamped ``private=False``.

        Parameters
        ----------
        table
            As for `release`.
        rng : None, int, SeedSequence, Generator or BitGenerator
            As numpy's ``default_rng``; not cryptographic.
        missing, n_threads
            As for `release`; the result does not depend on ``n_threads``.
        """
        names = _locate(self._names, self._by_name, table)
        counts = self._prepare(table, names, missing)
        counts = _simulated(counts, self._in_ticks, self._zero_prob, rng, n_threads)
        return self._finish(table, names, counts, private=False, missing=_policy_label(missing))


def _locate(names: Sequence[Any], by_name: bool, table: Any) -> list[Any]:
    """The table's own names of the noised columns: by name, or by place where one side has no names."""
    present = _tables.column_names(table)
    if all(name in present for name in names):
        return list(names)
    if len(present) == len(names) and (not by_name or present == list(range(len(present)))):
        return present
    return _tables.resolve(table, names)


def _simulated(counts: FloatArray, scale: FloatArray, zero_prob: float, rng: Any, n_threads: int | None) -> FloatArray:
    """``counts`` (n, d) plus noise in ticks, from the fast kernel."""
    key = _random.resolve_key(rng)
    out = np.empty_like(counts)

    def task(first: int, last: int) -> None:
        sampling.add_noise(key, sampling.NOISE, zero_prob, scale, None, counts, out, 0, first, last)

    _threads.run_chunks(task, -(-len(counts) // sampling.CHUNK), n_threads)
    return np.rint(out, out=out)


def _curve_dim(dim: int, sharp: bool) -> float:
    """Dimension of the curve that states the guarantee; the limit is safe where the exact curve is not at hand."""
    return 1 if sharp and dim == 1 else math.inf


def _describe(f: TradeOff) -> dict[str, Any]:
    """Points of a curve for the label; powers are upper bounds."""
    epsilons, alphas = np.array(LABEL_EPSILONS), np.array(LABEL_ALPHAS)
    return {
        "epsilon_delta": np.column_stack([epsilons, f.delta(epsilons)]).tolist(),
        "attack": np.column_stack([alphas, 1.0 - f.bounds(alphas)[0]]).tolist(),
        "advantage": f.advantage,
    }


def _missing_policy(missing: Any, names: Sequence[Any], bounds: FloatArray) -> tuple[bool, FloatArray | None]:
    """Whether infinite entries pass (and are clipped), and what replaces NaN, shape (d,)."""
    if isinstance(missing, str):
        policy = _validate.choice("missing", missing, ("error", "clip", "midpoint"))
        fill = bounds.mean(axis=1) if policy == "midpoint" else None
        return policy != "error", fill
    if isinstance(missing, Mapping):
        if set(missing) != set(names):
            raise ValueError("missing must give a constant for each noised column and for no other")
        return True, np.array([_validate.finite(f"missing of {name!r}", missing[name]) for name in names])
    return True, np.full(len(names), _validate.finite("missing", missing))


def _policy_label(missing: Any) -> Any:
    return dict(missing) if isinstance(missing, Mapping) else missing


def calibrate(
    bounds: Any,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    mu: float | None = None,
    advantage: float | None = None,
    zero_prob: float,
    unit: str,
    sharp: bool = True,
    scaling: str = "per-column",
    resolution: Any = None,
) -> Mechanism:
    """The mechanism with the least noise that meets a privacy target.

    Give ``epsilon`` and ``delta``, or ``mu``, or ``advantage``.

    Parameters
    ----------
    bounds : dict or array-like of shape (d, 2)
        Public bounds, as for `Mechanism`.
    epsilon : float >= 0
    delta : float
        The total, ``zero_prob < delta < 1``.
    mu : float > 0
        Gaussian differential privacy; exists only for ``zero_prob = 0`` and one or two columns.
    advantage : float
        Bound on ``1 - alpha - beta`` of any attack, ``zero_prob < advantage < 1``.
    zero_prob : float in [0, 1]
        Probability that a row is published unchanged.
    unit : {"attribute", "record"}
        What the target protects: one entry of a row, or the whole row.
    sharp : bool
        Use the exact curve for this number of columns (less noise) or the limit curve, which has a closed form.
    scaling : {"per-column", "common"}
        Noise in proportion to each column's width, or the same scale for all.
    resolution : optional
        As for `Mechanism`.

    Returns
    -------
    Mechanism
        Its guarantee, recomputed from the scales it really uses, meets the target.

    Notes
    -----
    Limit curve: ``L = 2 log((1 - zero_prob)/(1 - delta))``, ``c = sqrt(L (L + 2 epsilon)/2)``,
    ``scale = width/c`` (beyond the paper: mathematics 3.3).
    """
    names, pairs, _ = _read_bounds(bounds)
    _validate.choice("unit", unit, UNITS)
    _validate.choice("scaling", scaling, ("per-column", "common"))
    share = sampler.dyadic(_validate.probability("zero_prob", zero_prob))
    given = {"epsilon": epsilon, "delta": delta, "mu": mu, "advantage": advantage}
    target = {key: float(value) for key, value in given.items() if value is not None}
    dim = _curve_dim(len(names), sharp)
    c = _largest_shift(dim, share, target)
    width = formulas.widths(pairs)
    for step in range(40):
        scale = np.maximum(formulas.scales(width, c, unit, scaling), ticks.smallest_scale(pairs))
        mechanism = Mechanism(bounds, zero_prob=zero_prob, scale=scale, resolution=resolution)
        if _meets(mechanism.tradeoff(unit, sharp), target):
            mechanism._target = {"unit": unit, **target, "sharp": bool(sharp), "scaling": scaling}
            return mechanism
        c *= 1.0 - math.ldexp(formulas.MARGIN, step)  # a last digit was lost in evaluating the curve
    raise ValueError("no scale meets the target to the precision of float64")


def _largest_shift(dim: float, zero_prob: float, target: dict[str, float]) -> float:
    match sorted(target):
        case ["delta", "epsilon"]:
            formula = formulas.laplace_shift if dim == 1 else formulas.limit_shift
            return formula(target["epsilon"], target["delta"], zero_prob)
        case ["advantage"]:
            return formulas.advantage_shift(target["advantage"], zero_prob)
        case ["mu"]:
            c = formulas.gaussian_shift(target["mu"])
            if math.isinf(tradeoff(dim, c, zero_prob).gaussian_mu):
                raise ValueError(
                    "no scale gives a finite mu: it takes zero_prob = 0 and at most two noised columns with sharp=True "
                    f"(got zero_prob = {zero_prob:g}, {dim} columns)"
                )
            return c
    raise ValueError(f"give epsilon and delta, or mu, or advantage; got {', '.join(sorted(target)) or 'none'}")


def _meets(f: TradeOff, target: dict[str, float]) -> bool:
    if "mu" in target:
        return f.gaussian_mu <= target["mu"]
    if "advantage" in target:
        return f.advantage <= target["advantage"]
    return bool(f.delta(target["epsilon"]) <= target["delta"])


def check(table: Any, bounds: Any) -> dict[Any, dict[str, int]]:
    """Count out-of-bounds and missing values by column, for the data holder's eyes only.

    The counts are computed from the data and must not be published; `Mechanism.release` never
    calls this.

    Parameters
    ----------
    table
        As for `Mechanism.release`.
    bounds : dict or array-like of shape (d, 2)

    Returns
    -------
    dict
        ``{column: {"out_of_bounds", "below", "above", "missing"}}``; infinite entries count as
        below or above.
    """
    names, pairs, by_name = _read_bounds(bounds)
    located = _locate(names, by_name, table)
    values = _tables.to_float(table, located, allow_missing=True, allow_infinite=True)
    result = {}
    for k, name in enumerate(located):
        below, above = int((values[:, k] < pairs[k, 0]).sum()), int((values[:, k] > pairs[k, 1]).sum())
        missing = int(np.isnan(values[:, k]).sum())
        result[name] = {"out_of_bounds": below + above, "below": below, "above": above, "missing": missing}
    return result
