"""Clean columns that were computed from a noised one, and noised columns under another unit.

A correction is right for the column that was published.  A square, a product or a rescaled copy of it carries other
noise, and nothing in its name says so: the estimate is wrong without a sign.  What can be seen in the table itself is
said here; what cannot (a function of two noised columns, say) only the guide can tell.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from zil import _tables
from zil._validate import FloatArray
from zil.estimation.sample import Sample
from zil.privacy.noise import Noise

# Rows that are looked at; with fewer than FEW nothing is said of relations, with fewer than MANY nothing of spreads.
ROWS, FEW, MANY = 2000, 20, 100
# A correlation of ranks or values above this is a function, up to the last digits of a stored number.
ONE = 1.0 - 1e-9
# A column with less than this share of the variance of its own noise has another unit (by chance once in 1e6 samples of
# 100 rows).
LEAST_SPREAD = 0.25


def _correlation(a: FloatArray, b: FloatArray) -> float:
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return abs(float(a @ b)) / size if size > 0.0 else 0.0


def _ranks(values: FloatArray) -> FloatArray:
    out = np.empty(len(values))
    out[np.argsort(values, kind="stable")] = np.arange(len(values))
    return out


def warn_of_computed(sample: Sample, table: Any, noise: Noise | None) -> None:
    """Warn of a clean column of x, or a clean response, that is a function of a noised column of the table.

    Seen are monotone functions (a rescaled copy, a logarithm), squares, and products with another column of the fit;
    and a noised column that varies less than its noise.

    Warns
    -----
    UserWarning
        Names the columns and what to do.
    """
    if noise is None or noise.zero_prob == 1.0 or len(sample.y) < FEW:
        return
    some = slice(0, None, max(1, -(-len(sample.y) // ROWS)))
    names, scales = list(sample.columns), [*sample.scale, sample.scale_y]
    columns = [*sample.x[some].T, sample.y[some]]
    if sample.classes:
        names, scales, columns = names[:-1], scales[:-1], columns[:-1]
    known = list(zip(names, map(float, scales), columns, strict=True))
    clean = [(name, column) for name, scale, column in known if scale == 0.0]
    noised = [(name, column) for name, scale, column in known if scale > 0.0]
    if clean and isinstance(noise.scale, dict) and _tables.n_rows(table) == len(sample.y):
        left = [name for name, scale in noise.scale.items() if scale > 0.0 and name not in sample.columns]
        noised += [(name, _tables.to_float(table, [name], look=False)[some, 0]) for name in left]
    for name, column in clean:
        for source, origin in noised:
            found = _relation(column, origin, [(other, own) for other, _, own in known if other not in (name, source)])
            if found:
                warnings.warn(
                    f"column {name!r} looks computed from the noised column {source!r} ({found}): what noise is in it "
                    "is not known, so the estimates are wrong; fit without it, within groups, or on a release of the "
                    "computed column itself (the guide, 'Columns computed from a noised one')",
                    UserWarning,
                    stacklevel=4,
                )
                break
    for name, scale, column in known:
        least = (1.0 - (sample.zero_prob or 0.0)) * scale**2
        if scale > 0.0 and len(column) >= MANY and float(column.var()) < LEAST_SPREAD * least:
            warnings.warn(
                f"column {name!r} varies less than its noise alone would: it was rescaled after it was published, or "
                "the noise given is in another unit; the noise has to be in the unit of the column",
                UserWarning,
                stacklevel=4,
            )


def _relation(column: FloatArray, origin: FloatArray, others: list[tuple[Any, FloatArray]]) -> str:
    """What the column is of the noised one; "" if nothing that can be seen."""
    many = len(np.unique(column)) > 0.9 * len(column)  # ranks of tied values say nothing
    if many and _correlation(_ranks(column), _ranks(origin)) > ONE:
        return "a monotone function of it"
    if _correlation(column, origin * origin) > ONE or _correlation(column, np.abs(origin)) > ONE:
        return "its square or its size"
    for other, values in others:
        if _correlation(column, origin * values) > ONE:
            return f"its product with {other!r}"
    return ""
