"""The data holder's side: calibrate a mechanism, look at what it promises, publish with it.

Over 400 lines because half of them document the public methods, which belong in one class.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zil import _random, _tables, _validate
from zil._validate import FloatArray, SchemaError
from zil.privacy import shifts as formulas
from zil.privacy.noise import Noise
from zil.privacy.tradeoff import TradeOff
from zil.release import label, rows, sampler, schema, streaming, ticks
from zil.release import metadata as facts
from zil.release import risk as judgement
from zil.release.keystream import Key
from zil.release.published import Release
from zil.release.report import Label
from zil.release.risk import Risk

UNITS = facts.UNITS


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
        By default, and where it holds fewer (`report` names such columns), a power of two near 2**-20 of the scale.

    Raises
    ------
    ValueError
        Bounds missing, reversed, infinite, or equal in all columns; a parameter out of range.

    See Also
    --------
    calibrate : the mechanism for a privacy target.
    """

    def __init__(self, bounds: Any, *, zero_prob: float, scale: Any, resolution: Any = None) -> None:
        self._names, self._bounds, self._by_name = schema.read_bounds(bounds)
        self._zero_prob = sampler.dyadic(_validate.probability("zero_prob", zero_prob))
        self._scale = schema.read_scale(self._names, scale)
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
        self._label: str | None = None

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
            Beyond the range in which the exact curve is tested (shifts from 0.001 to 50, 1000
            columns) the limit curve answers for it.
        """
        return label.curve(self.dim, self.shift(unit), self._zero_prob, sharp)

    def epsilon(self, delta: Any, unit: str) -> Any:
        """Smallest epsilon at total ``delta`` (exact curve); inf where there is none."""
        return self.tradeoff(unit).epsilon(delta)

    def delta(self, epsilon: Any, unit: str) -> Any:
        """Total delta at ``epsilon`` (exact curve); it includes ``zero_prob``."""
        return self.tradeoff(unit).delta(epsilon)

    def _guarantees(self) -> dict[str, Any]:
        """By unit and curve; computed once and kept as text, since callers may write into their metadata."""
        if self._label is None:
            sharp = {unit: label.describe(self.tradeoff(unit)) for unit in UNITS}
            limit = {unit: label.describe(self.tradeoff(unit, False)) for unit in UNITS}
            self._label = json.dumps({unit: {"sharp": sharp[unit], "limit": limit[unit]} for unit in UNITS})
        guarantees: dict[str, Any] = json.loads(self._label)
        return guarantees

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
        columns = facts.columns_part(
            self._names if names is None else names, self._bounds, self._grid.tick, self._scale, effective
        )
        for column, step in zip(columns, self._resolution, strict=True):
            if step is not None and step != column["tick"]:  # the label says it, of the published file too
                column["unused_resolution"] = step
        return facts.build(
            columns=columns,
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

    def risk(
        self, n_rows: int | None = None, *, rows_per_person: int = 1, groups: Any = None, prior: Any = "uniform"
    ) -> Risk:
        """What the best attacker gets out of a release with this mechanism, and what follows; it needs no table.

        Parameters
        ----------
        n_rows : int, optional
            Rows to be published; without it no verdict is better than "under contract".
        rows_per_person : int
            Most rows of one person.
        groups : list of lists, or dict, optional
            Noised columns that are functions of each other: their names, or ``{"columns": names, "values":
            combinations}`` with
            the combinations that can occur, (m, k) in units of the columns, or ``"dummies"`` where at most one
            is at its upper bound.  Without values all combinations count.
        prior : "uniform" or dict
            What an attacker expects of the values, for ``unchanged_in_box``: ``{column: (edges, probabilities)}``, a
            public
            histogram from bound to bound; columns not named are uniform.

        Returns
        -------
        Risk

        Raises
        ------
        ValueError, TypeError
            An argument out of range, an unknown column.

        See Also
        --------
        zil.check : what only the holder of the table may see.
        """
        count = None if n_rows is None else _validate.integer("n_rows", n_rows, 0)
        return judgement.assess(
            self._metadata(n_rows=count), rows_per_person=rows_per_person, groups=groups, prior=prior
        )

    def report(
        self,
        n_rows: int | None = None,
        *,
        format: str = "markdown",
        rows_per_person: int | None = None,
        groups: Any = None,
    ) -> str:
        """The privacy label: a verdict, at most 35 lines of plain English, a line to sign, then the tables.

        Parameters
        ----------
        n_rows : int, optional
            Rows to be published; without it shares are given.
        format : {"markdown", "text", "html"}
            ``"html"`` is one page that needs no other file.
        rows_per_person : int, optional
            Most rows of one person; without it the verdict is for one, and five are shown as an example.
        groups : optional
            As for `risk`.
        """
        count = None if n_rows is None else _validate.integer("n_rows", n_rows, 0)
        made = self._label_of(count, rows_per_person=rows_per_person, groups=groups)
        return made.show(format)

    def _label_of(self, n_rows: int | None, **about: Any) -> Label:
        return Label(self._metadata(n_rows=n_rows), **about)

    def _repr_html_(self) -> str:
        return self._label_of(None).fragment()

    def _locate(self, table: Any) -> list[Any]:
        """The table's own names of the noised columns."""
        names = schema.locate(self._names, self._by_name, _tables.column_names(table))
        if self._by_name and self.dim > 1 and names != list(self._names):  # they were taken by place
            _tables.warn_nameless("the table", self._names, depth=3)
        return names

    def _values(self, table: Any, names: Sequence[Any], missing: Any, look: bool = True) -> FloatArray:
        """The noised columns, (n, d), not to be written to; every refusal comes from here, before any draw.

        ``look=False`` may leave it to the caller to find nan and infinite entries.
        """
        allow, fill = schema.missing_policy(missing, self._names, self._bounds)
        _tables.check_passed(table, names)
        values = _tables.to_float(
            table, names, allow_missing=fill is not None, allow_infinite=allow, copy=False, look=look or allow
        )
        if len(values) == 0:
            raise SchemaError("the table has no rows")
        return values if fill is None else np.where(np.isnan(values), fill, values)

    def _finish(self, table: Any, names: Sequence[Any], published: FloatArray, **about: Any) -> Release:
        data = _tables.with_columns(table, names, published)
        return Release(data, self._metadata(names, n_rows=len(published), table=_tables.kind(table), **about))

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
        names = self._locate(table)
        values = self._values(table, names, missing)
        with Key.fresh() as key:
            published = rows.certified(values, self._grid, self._in_ticks, self._zero_prob, key, n_threads=n_threads)
        return self._finish(
            table,
            names,
            published,
            private=True,
            release_id=secrets.token_hex(16),
            missing=schema.policy_label(missing),
        )

    def simulate(self, table: Any, rng: Any = None, *, missing: Any = "error", n_threads: int | None = None) -> Release:
        """The same law from a reproducible generator, for studies; stamped ``private=False``.

        Parameters
        ----------
        table
            As for `release`.
        rng : None, int, SeedSequence, Generator or BitGenerator
            As numpy's ``default_rng``; not cryptographic.  A refused table leaves a generator where it was.
        missing, n_threads
            As for `release`; the result does not depend on ``n_threads``.
        """
        names = self._locate(table)
        # the kernel sees nan and infinite entries in passing, which saves a pass; but by then a generator has moved on
        look = _random.bit_generator(rng) is not None
        values = self._values(table, names, missing, look)
        key = _random.resolve_key(rng)
        published, finite = rows.simulated(
            values, self._grid, self._in_ticks, self._zero_prob, key, n_threads=n_threads
        )
        if not (look or finite):
            self._values(table, names, missing)  # refuses, unless infinite entries are to be clipped
        return self._finish(table, names, published, private=False, missing=schema.policy_label(missing))

    def release_file(
        self,
        src: str | os.PathLike[str],
        dst: str | os.PathLike[str],
        *,
        ledger: str | os.PathLike[str] | None = None,
        release_id: str | None = None,
        batch_rows: int = streaming.BATCH_ROWS,
        columns: Sequence[str] | None = None,
        row_id: str | None = None,
        header: bool | Sequence[str] | None = None,
        types: Mapping[str, str] | None = None,
        append: bool = False,
        repeat: bool = False,
        missing: Any = "error",
        progress: Any = False,
        n_threads: int | None = None,
    ) -> dict[str, Any]:
        """Publish a CSV or Parquet file in bounded memory; after a crash the same call gives the same bytes.

        Columns that are not noised pass through: byte for byte from CSV to CSV, else equal.  The ledger notes what
        was released, so the same rows are not published twice by mistake.  CSV is read by one strict grammar
        (RFC 4180), and before the file gets its name another parser compares it with the source.

        Parameters
        ----------
        src, dst : path
            ``.csv``, ``.parquet`` or ``.pq``, in any pair; metadata goes into the Parquet footer, or beside a CSV
            file as ``.json``.
        ledger : path, optional
            SQLite file, made with mode 0600; by default ``src`` with ``.ledger`` added, so that it lies
            with the raw data: it is as secret as they are.  One ledger must serve all releases of one
            data set: name it where the data lie in several files, or in one that changes its name.
        release_id : str, optional
            Name of the release in the ledger and the metadata; by default derived from the source
            and the mechanism.
        batch_rows : int
            Rows in memory at a time; it does not change the output.
        columns : list of str, optional
            Columns to write; every noised one must be among them.
        row_id : str, optional
            Column that names the row (a person): no row is then released twice under this ledger, which is bound to
            this column.  Ids are the same if they are the same text without blanks around it (Unicode NFC) or the
            same number: 101, "101.0", " 101" and "0101" are one row.
        header : True or list of str, optional
            Of a CSV source.  None: its first line holds the names, and none of them may read as a number.  True: it
            holds them whatever they look like.  A list: the file has no such line, and these are its columns.
        types : dict, optional
            From CSV to Parquet: "text", "integer", "number", "boolean", "date" or "timestamp" by column that passes
            through.  Others are integers or numbers if every entry is plainly one, else text.
        append : bool
            Take only rows whose id was never released, with a fresh key, and add them to ``dst``.
        repeat : bool
            Publish rows that were released before once more, under a new ``release_id``; the
            metadata then states the composed guarantee.
        missing, n_threads
            As for `release`.
        progress : bool or callable
            Print the rows done, or call ``progress(done, total)``.

        Returns
        -------
        dict
            The metadata; `zil.load` reads the table.

        Raises
        ------
        SchemaError, TypeError
            As for `release`; nothing was drawn then.
        ValueError
            A second release of the same rows, a release id used for other data, one path given twice, a destination
            that holds another release, a column that another release of these rows published the other way, or a
            source that changed while it was read.

        Warns
        -----
        PrivacyWarning
            Rows are published once more on purpose.
        """
        allow, fill = schema.missing_policy(missing, self._names, self._bounds)
        policy = schema.policy_label(missing)
        own = self._metadata(missing=policy)
        plan = streaming.Plan(
            locate=lambda present: schema.locate(self._names, self._by_name, present),
            protected=self._names,
            fill=fill,
            allow_infinite=allow,
            grid=self._grid,
            scale=self._in_ticks,
            zero_prob=self._zero_prob,
            parameters={key: own[key] for key in ("columns", "zero_prob", "policies")},
            spent={"dim": self.dim, "zero_prob": self._zero_prob, "shift": own["shift"]},
            describe=lambda names, n_rows, release_id, spent: {
                **self._metadata(names, n_rows=n_rows, release_id=release_id, missing=policy),
                **label.composed(spent),
            },
            n_threads=n_threads,
        )
        return streaming.release_file(
            plan,
            src,
            dst,
            ledger=ledger,
            release_id=release_id,
            batch_rows=batch_rows,
            columns=columns,
            row_id=row_id,
            header=header,
            types=types,
            append=append,
            repeat=repeat,
            progress=progress,
        )
