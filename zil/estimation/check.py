"""What only the holder of a table may see before it is published: who stands out, who is found again, what is lost.

Design: a `Risk` is about the mechanism alone; a `Check` tries the attacks on the table itself, against a published
copy if there is one, else against one simulated copy from a fixed stream, so the same call says the same.  Links are
tried
for a sample of rows by maximum likelihood, which is the nearest original in units of the noise (the density falls
with the distance); everything else looks at all rows.  It lies above estimation because it refits a regression.

Over 400 lines because every section of the answer has its sentence in the same file.
"""

from __future__ import annotations

import html
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import spatial

from zil import _tables
from zil._validate import FloatArray, SchemaError
from zil.estimation.fit import fit
from zil.release import risk as judgement
from zil.release import schema, words
from zil.release.mechanism import Mechanism
from zil.release.published import Release

Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]

SMALL = 5  # rows that share their keys: fewer are too few
SMALL_SHARE = 0.05  # of rows in such groups, at most, under contract
NEAR = 0.05  # of a column's width: so near, the value is disclosed
LINKED = 1000  # rows whose original is looked for
FEW_VALUES = 20  # distinct values of a column that counts as an answer to choose
DECIMALS = 8
COPIES, FITTED_ROWS = 5, 10_000
HEAD = "NOT FOR PUBLICATION. These figures are computed from the original table."


class Check(dict[Any, Any]):
    """What `check` found: a dictionary, and `summary` in words.  It must not be published."""

    def summary(self) -> str:
        """The findings in plain English; the first words are NOT FOR PUBLICATION."""
        if "verdict" not in self:
            lines = [
                f"{words.shown(name)}: {part['out_of_bounds']:,} values outside the bounds ({part['below']:,} below, "
                f"{part['above']:,} above), {part['missing']:,} missing."
                for name, part in self.items()
            ]
        else:
            lines = _sentences(self)
        return "\n".join([HEAD, *lines])

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"


def check(
    table: Any, mechanism: Any, published: Any = None, *, keys: Sequence[Any] | None = None, person: Any = None
) -> Check:
    """Look at a table with the eyes of an attacker before it is published; for the data holder only.

    The answer is computed from the data and must not be published; `Mechanism.release` never calls this.

    Parameters
    ----------
    table
        The original table, as for `Mechanism.release`.
    mechanism : Mechanism, dict or array-like of shape (d, 2)
        The mechanism; or only bounds, then only what is outside them or missing is counted.
    published : Release or table, optional
        What was, or is to be, published of this table, rows in the same order; by default one simulated copy.
    keys : list of columns, optional
        Columns that an outsider may know of a person; by default all that pass through.
    person : column, optional
        The column that names the person, where one person has several rows.

    Returns
    -------
    Check
        With bounds: ``{column: {"out_of_bounds", "below", "above", "missing"}}``; infinite entries count as
        below or above.  With a mechanism, the sections

        - ``columns``: those counts, and ``at_bounds``, the share of entries at or beyond a bound;
        - ``keys``: ``unique`` and ``below_5``, the shares of rows whose keys nobody or fewer than five share, the
          smallest group, and the number of ``distinct`` values by column;
        - ``unchanged``: rows published as they are, how many of them ``stand_out`` by their digits, their few possible
          values or their repetition, and the share ``right`` of the rows that stand out;
        - ``links``: share of sampled rows whose nearest original is their own (ties shared), among all rows and among
        those
          with the same keys, and what blind guessing would give;
        - ``intervals``: by column, the share of entries published within 5 % of the width from the truth;
        - ``persons``: how many, most rows of one, shares with a row published as it is, and found by repeats;
        - ``utility``: by column ``il1s``, mean error per cell over sqrt(2) standard deviations, and ``mean_factor``,
        the
          standard error of the mean over that of the original; ``regression``: the stated regression over five
          simulated copies, its ``ratio`` of standard errors and the rows ``n_eff`` that would do without noise;
        - ``verdict`` and ``reasons``: of `Mechanism.risk`, and of what was found here.

    Raises
    ------
    ValueError, TypeError
        As for `Mechanism.release`; a published table with other columns or another number of rows.
    """
    if not isinstance(mechanism, Mechanism):
        if published is not None or keys is not None or person is not None:
            raise TypeError("published, keys and person need a mechanism, not only bounds")
        return Check(schema.outside(table, mechanism))
    names = schema.locate(mechanism.columns, isinstance(mechanism.bounds, Mapping), _tables.column_names(table))
    known, who = _known(table, names, keys, person)
    values = _tables.to_float(table, names, allow_missing=True, allow_infinite=True)
    if len(values) == 0:
        raise SchemaError("the table has no rows")
    whole: Mask = ~np.asarray(np.isnan(values).any(axis=1), dtype=bool)
    if not whole.any():
        raise SchemaError("every row misses an entry of a noised column")
    copy = _published(mechanism, table, names, published)[whole]
    columns = mechanism._metadata()["columns"]
    low, high = (np.array([c[end] for c in columns]) for end in ("lower", "upper"))
    cell = np.array([c.get("grain") or c["tick"] for c in columns])
    clean = np.clip(values[whole], low, high)
    unchanged: Mask = np.logical_and.reduce(
        np.abs(copy - clean) <= 0.5 * cell * (1 + 1e-9) + 1e-12 * np.abs(clean), axis=1
    )
    codes = _codes(table, known)[whole] if known else None
    result = Check(
        rows=len(values),
        complete_rows=int(whole.sum()),
        simulated_copy=published is None,
        columns=_counts(table, mechanism.bounds, names, values, low, high),
        keys=_uniqueness(table, known, codes),
        unchanged=_stand_out(clean, copy, unchanged, columns),
        links=_links(clean, copy, mechanism.scale, codes),
        intervals=_near(clean, copy, names, high - low),
        persons=_persons(table, who, whole, unchanged, copy),
        utility=_utility(mechanism, table, clean, whole, names),
    )
    result.update(_verdict(mechanism, result))
    return result


def _known(table: Any, names: Sequence[Any], keys: Any, person: Any) -> tuple[list[Any], Any]:
    """Columns that an outsider may know, and the one that names the person."""
    present = _tables.column_names(table)
    if person is not None:
        _tables.resolve(table, [person], what="person column")
    if keys is not None:
        return _tables.resolve(table, list(keys), what="key"), person
    return [name for name in present if name not in names and name != person], person


def _published(mechanism: Mechanism, table: Any, names: Sequence[Any], published: Any) -> FloatArray:
    """The noised columns of the copy to be attacked, (n, d)."""
    if published is None:
        return _tables.to_float(mechanism.simulate(table, 0, missing="midpoint").data, names)
    data = published.data if isinstance(published, Release) else published
    if _tables.n_rows(data) != _tables.n_rows(table):
        raise SchemaError("the published table has another number of rows than the original")
    return _tables.to_float(data, names, allow_missing=True)


def _column(table: Any, name: Any) -> Any:
    """One column as a numpy array (numbers) or a list (anything else)."""
    if isinstance(table, (np.ndarray, list, tuple)):
        array = np.asarray(table)
        return array if array.ndim == 1 else array[:, name]
    series = nw.from_native(table, eager_only=True, allow_series=True)
    series = series if isinstance(series, nw.Series) else series.get_column(name)
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy() if series.null_count() else series.to_numpy()
    return series.to_list()


def _codes(table: Any, names: Sequence[Any]) -> Codes:
    """A number for each combination of entries, (n,); missing entries are equal to each other."""
    result = np.zeros(_tables.n_rows(table), dtype=np.int64)
    for name in names:
        entries = _column(table, name)
        if isinstance(entries, list):
            seen: dict[Any, int] = {}
            own = np.array([seen.setdefault(e if e == e else None, len(seen)) for e in map(_hashable, entries)])
        else:
            own = np.unique(entries, return_inverse=True)[1]
        result = np.unique(result * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1].astype(np.int64)
    return result


def _hashable(entry: Any) -> Any:
    return entry if entry.__hash__ else repr(entry)


def _counts(
    table: Any, bounds: Any, names: Sequence[Any], values: FloatArray, low: FloatArray, high: FloatArray
) -> dict[Any, dict[str, Any]]:
    result = schema.outside(table, bounds)
    at = ((values <= low) | (values >= high)).mean(axis=0)
    return {name: {**result[name], "at_bounds": share} for name, share in zip(names, at.tolist(), strict=True)}


def _uniqueness(table: Any, known: Sequence[Any], codes: Codes | None) -> dict[str, Any]:
    if codes is None:
        return {"columns": [], "unique": 0.0, "below_5": 0.0, "smallest": None, "distinct": {}}
    sizes = np.bincount(codes)
    share = sizes / sizes.sum()
    return {
        "columns": list(known),
        "unique": float(share[sizes == 1].sum()),
        "below_5": float(share[sizes < SMALL].sum()),
        "smallest": int(sizes[sizes > 0].min()),
        "distinct": {name: int(_codes(table, [name]).max()) + 1 for name in known},
    }


def _digits(values: FloatArray, tick: float) -> int | None:
    """Fewest decimals that all entries have; None if more than eight, or too fine to be seen on the ticks."""
    for decimals in range(DECIMALS + 1):
        if 10.0**-decimals < 20.0 * tick:
            return None
        if (np.abs(values - np.round(values, decimals)) <= 1e-9 * np.maximum(1.0, np.abs(values))).all():
            return decimals
    return None


def _pattern(clean: FloatArray, copy: FloatArray, column: Mapping[str, Any]) -> Mask | None:
    """Which published entries look like originals of this column; None if originals have no look."""
    slack = 0.51 * column["tick"]
    head = np.unique(clean[:5000])
    if len(head) <= FEW_VALUES:
        support = np.unique(clean)
        if len(support) <= FEW_VALUES:
            place = np.searchsorted(support, copy)
            place = np.minimum(place, len(support) - 1)
            near = np.minimum(np.abs(copy - support[np.maximum(place - 1, 0)]), np.abs(copy - support[place]))
            return np.asarray(near <= slack)
    decimals = _digits(clean, column["tick"])
    return None if decimals is None else np.asarray(np.abs(copy - np.round(copy, decimals)) <= slack)


def _stand_out(
    clean: FloatArray, copy: FloatArray, unchanged: Mask, columns: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Unchanged rows that are seen by their look alone."""
    found = np.zeros(len(copy), dtype=bool)
    looks = [c["name"] for c in columns]
    patterns = [_pattern(clean[:, j], copy[:, j], column) for j, column in enumerate(columns)]
    seen = [p for p in patterns if p is not None]
    if seen:
        found |= np.logical_and.reduce(seen)
    # noise never gives the same row twice: a repeated row was not noised
    mark = copy @ np.random.default_rng(0).normal(size=copy.shape[1])
    _, back, times = np.unique(mark, return_inverse=True, return_counts=True)
    repeated = times[back] > 1
    found |= repeated
    count, out = int(unchanged.sum()), int((found & unchanged).sum())
    return {
        "rows": count,
        "stand_out": out,
        "share": out / count if count else 0.0,
        "right": out / int(found.sum()) if found.any() else 0.0,
        "by_look": [name for name, p in zip(looks, patterns, strict=True) if p is not None],
        "repeated_rows": int(repeated.sum()),
    }


def _links(clean: FloatArray, copy: FloatArray, scale: FloatArray, codes: Codes | None) -> dict[str, Any]:
    """Right links of sampled published rows to the original rows, by maximum likelihood, ties shared."""
    rng = np.random.default_rng(0)
    n = len(clean)
    sample = np.sort(rng.choice(n, min(n, LINKED), replace=False))
    originals, target = clean / scale, (copy / scale)[sample]
    result = {"rows": len(sample), "share": _right(originals, target, sample), "blind": 1.0 / n}
    if codes is not None:
        # one more coordinate that keeps rows with other keys farther away than any with the same
        apart = codes * (10.0 * float(np.abs(target).max() + np.abs(originals).max() + 1.0) * math.sqrt(clean.shape[1]))
        joined = np.column_stack([originals, apart])
        result |= {
            "with_keys": _right(joined, np.column_stack([target, apart[sample]]), sample),
            "blind_with_keys": float((np.bincount(codes) > 0).sum() / n),
        }
    return result


def _right(originals: FloatArray, target: FloatArray, rows: NDArray[np.intp]) -> float:
    """Share of the targets whose nearest original is that of their own row, ties shared."""
    tree = spatial.cKDTree(originals)
    nearest = np.asarray(tree.query(target)[0])
    own = np.linalg.norm(target - originals[rows], axis=1)
    reach = nearest * (1 + 1e-9) + 1e-12
    score = np.zeros(len(rows))
    for k in np.flatnonzero(own <= reach).tolist():
        score[k] = 1.0 / tree.query_ball_point(target[k], float(reach[k]), return_length=True)
    return float(score.mean())


def _near(clean: FloatArray, copy: FloatArray, names: Sequence[Any], width: FloatArray) -> dict[Any, float]:
    share = (np.abs(copy - clean) <= NEAR * width).mean(axis=0)
    return dict(zip(names, share.tolist(), strict=True))


def _persons(table: Any, person: Any, whole: Mask, unchanged: Mask, copy: FloatArray) -> dict[str, Any] | None:
    """Rows of the same person: how many, and which persons give themselves away by a repeated row."""
    if person is None:
        return None
    codes = _codes(table, [person])[whole]
    _, codes = np.unique(codes, return_inverse=True)
    rows = np.bincount(codes)
    mark = copy @ np.random.default_rng(0).normal(size=copy.shape[1])
    both = np.lexsort((mark, codes))
    twice = (np.diff(mark[both]) == 0.0) & (np.diff(codes[both]) == 0)
    found = np.unique(codes[both][1:][twice])
    return {
        "persons": len(rows),
        "most_rows": int(rows.max()),
        "with_an_unchanged_row": float((np.bincount(codes, weights=unchanged) > 0).mean()),
        "found_by_repeats": len(found) / len(rows),
    }


def _utility(mechanism: Mechanism, table: Any, clean: FloatArray, whole: Mask, names: Sequence[Any]) -> dict[str, Any]:
    """What the analyst loses: cells, means, and one regression."""
    keep = 1.0 - mechanism.zero_prob
    sigma = clean.std(axis=0)
    with np.errstate(divide="ignore"):
        relative = np.where(sigma > 0.0, mechanism.scale / sigma, math.inf)
    columns = {
        name: {"il1s": keep * r / 2.0, "mean_factor": math.sqrt(1.0 + keep * r * r)}
        for name, r in zip(names, relative.tolist(), strict=True)
    }
    varied = [k for k in range(len(names)) if sigma[k] > 0.0]
    result: dict[str, Any] = {"columns": columns, "regression": None}
    if len(varied) < 2 or len(clean) < 50:
        return result
    finite = np.isfinite(_tables.to_float(table, names, allow_missing=True, allow_infinite=True)).all(axis=1)
    chosen = np.flatnonzero(whole & finite)
    if len(chosen) > FITTED_ROWS:
        chosen = np.sort(np.random.default_rng(0).choice(chosen, FITTED_ROWS, replace=False))
    rows = _rows(table, chosen)
    response, *others = [names[k] for k in varied]
    ratios = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a copy without an answer is counted, not warned of
        exact = fit("squared", rows, y=response, x=others)
        for copy in range(COPIES):
            noisy = mechanism.simulate(rows, copy, missing="midpoint")
            if not _inside(noisy):  # an answer needs rows within the bounds
                continue
            found = fit("squared", noisy, y=response, x=others)
            if found.converged and np.isfinite(found.bse).all():
                ratios.append(found.bse[1:] / exact.bse[1:])
    told = f"least squares of {words.shown(response)} on {words.listed(others, words.FEW)}"
    result["regression"] = {"formula": told, "copies": COPIES, "answers": len(ratios)}
    if ratios:
        ratio = float(np.median(np.array(ratios)))
        result["regression"] |= {"ratio": ratio, "n_eff": len(clean) / ratio**2}
    return result


def _inside(release: Release) -> bool:
    """Whether any published row lies within the bounds."""
    values = _tables.to_float(release.data, release.columns)
    low, high = np.array([release.bounds[name] for name in release.columns]).T
    return bool(((values >= low) & (values <= high)).all(axis=1).any())


def _rows(table: Any, chosen: NDArray[np.intp]) -> Any:
    """Some rows of a table, of the same kind."""
    if isinstance(table, (np.ndarray, list, tuple)):
        return np.asarray(table)[chosen]
    return nw.to_native(nw.from_native(table, eager_only=True)[chosen])


def _verdict(mechanism: Mechanism, found: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict of the mechanism, and worse if the table asks for it."""
    persons = found["persons"]
    risk = mechanism.risk(found["rows"], rows_per_person=persons["most_rows"] if persons else 1)
    verdict, reasons = risk.verdict, list(risk.reasons)
    against = []
    if found["keys"]["below_5"] > SMALL_SHARE:
        share = words.percent(found["keys"]["below_5"])
        against.append(f"{share} of rows share their keys with fewer than five (at most 5 % under contract).")
    if found["unchanged"]["stand_out"] and found["unchanged"]["share"] > 0.99 and found["unchanged"]["right"] > 0.99:
        against.append("Rows published as they are can be told from the others by their look.")
    if against:
        reasons = [*against, *(reasons if verdict == judgement.CLOSED else [])]
        verdict = judgement.CLOSED
    elif verdict == judgement.OPEN and found["keys"]["unique"] > 0.0:
        verdict = judgement.CONTRACT
        reasons = [
            f"Not open data: the keys of {words.percent(found['keys']['unique'])} of rows are those of one row only."
        ]
    return {"verdict": verdict, "reasons": reasons}


def _sentences(found: Mapping[str, Any]) -> list[str]:
    """The sections in words."""
    pct, rows = words.percent, found["complete_rows"]
    lines = [f"VERDICT: {found['verdict'].upper()}", *(f"- {reason}" for reason in found["reasons"])]
    copy = "one simulated copy" if found["simulated_copy"] else "the published table"
    lines.append(f"{found['rows']:,} rows, {rows:,} of them complete; attacked: {copy}.")
    known = found["keys"]
    if known["columns"]:
        lines.append(
            f"Keys {words.listed(known['columns'], words.FEW)}: {pct(known['unique'])} of rows are alone with theirs, "
            f"{pct(known['below_5'])} share them with fewer than five."
        )
    else:
        lines.append("No column passes through that could be a key.")
    raw = found["unchanged"]
    lines.append(
        f"{raw['rows']:,} rows are published as they are; {raw['stand_out']:,} of them ({pct(raw['share'])}) stand "
        "out, and who "
        f"points at what stands out is right in {pct(raw['right'])}."
    )
    if raw["by_look"]:
        lines.append(f"Originals have a look (digits, few values) in {words.listed(raw['by_look'], words.FEW)}.")
    links = found["links"]
    lines.append(
        f"Right links by the protected columns alone: {pct(links['share'])} of {links['rows']:,} sampled rows (blind: "
        f"{pct(links['blind'])})."
    )
    if "with_keys" in links:
        lines.append(
            f"With the keys: {pct(links['with_keys'])} (keys alone: {pct(links['blind_with_keys'])}). Row order passes "
            "through: shuffle the rows first if their order tells who is who."
        )
    worst = max(found["intervals"], key=lambda name: found["intervals"][name])
    lines.append(
        f"Within {pct(NEAR)} of the range: up to {pct(found['intervals'][worst])} of entries ({words.shown(worst)})."
    )
    if found["persons"]:
        who = found["persons"]
        lines.append(
            f"{who['persons']:,} persons with up to {who['most_rows']} rows: {pct(who['with_an_unchanged_row'])} have "
            "a row "
            f"published as it is, {pct(who['found_by_repeats'])} are found because such a row comes twice."
        )
    for name, part in found["columns"].items():
        if part["out_of_bounds"] or part["missing"] or part["at_bounds"] > 0.05:
            lines.append(
                f"{words.shown(name)}: {part['out_of_bounds']:,} values outside the bounds, {part['missing']:,} "
                "missing, "
                f"{pct(part['at_bounds'])} at a bound or beyond."
            )
    lost = found["utility"]
    worst = max(lost["columns"], key=lambda name: lost["columns"][name]["mean_factor"])
    part = lost["columns"][worst]
    lines.append(
        f"Lost to the analyst: the mean of {words.shown(worst)} has {part['mean_factor']:.3g} times the standard "
        "error, a cell "
        f"is off by {part['il1s']:.3g} (IL1s)."
    )
    fitted = lost["regression"]
    if fitted and "ratio" in fitted:
        lines.append(
            f"The {fitted['formula']}: standard errors x {fitted['ratio']:.3g}, as of "
            f"{words.count(round(fitted['n_eff']))} "
            f"rows without noise ({fitted['answers']} of {fitted['copies']} copies have an answer)."
        )
    elif fitted:
        lines.append(f"The {fitted['formula']} has no answer in any of {fitted['copies']} copies.")
    return lines
