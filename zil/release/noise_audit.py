"""Publish rows, count, and list what contradicts the stated law of the noise.

Every question is a binomial event with an exact probability or an enclosure of it (zil/release/noise_events.py);
sums are judged by Chernoff's bound, repeated rows by Markov's.  So a right sampler is blamed with at most the stated
probability, for any number of rows, and nothing is asymptotic.

Design: rows are published with every entry at its lower bound, the middle, its upper bound or anywhere, drawn anew for
every row, because noise that depends on the value shows only where values differ.  Calls are long (2^18 rows of up to
eight columns), because noise that comes again after a chunk shows only in a call longer than the chunk, and are made
in pairs, because noise that comes again in the next call shows only across calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from zil import _threads
from zil._validate import FloatArray
from zil.release import noise_law as law
from zil.release.noise_events import LEVELS, Call, Counts, Family, Questions
from zil.release.ticks import Lattice

Publish = Callable[[FloatArray], FloatArray]

CELLS_OF_CALL = 1 << 21  # entries of one call: memory of a thread stays below 250 MB
LONGEST_CALL = 1 << 18
GENERAL = 0.5  # share of the level for the few questions about parameters; the many about shapes have the rest


@dataclass(frozen=True)
class Contradiction:
    """One question whose answer a right mechanism would not give.

    Attributes
    ----------
    kind : str
        Family of questions: "zero rows", "scale", "columns", ...
    what : str
        The event, in words.
    count, trials : float
        How often it was seen, and among how many (for "scale" a mean and the number of summands).
    expected : (float, float)
        Probability (for "scale" the mean) of a right mechanism, enclosed.
    chance : float
        Probability at most of so extreme a count.
    """

    kind: str
    what: str
    count: float
    trials: float
    expected: tuple[float, float]
    chance: float

    def __str__(self) -> str:
        low, high = self.expected
        chance = f"(chance <= {self.chance:.1g})"
        if self.kind == "scale":
            return f"{self.kind}: {self.what} is {self.count:.6g} over {self.trials:.0f}, not {low:.6g} {chance}"
        right = f"{high * self.trials:.6g}"
        if high - low > 1e-3 * high:
            right = f"{low * self.trials:.6g} to {right}"
        return f"{self.kind}: {self.what}: {self.count:.0f} of {self.trials:.0f}, expected {right} {chance}"


def repeated_rows(ticks: Counts, scale: FloatArray) -> int:
    """How many rows that are not zero come again, judged by the three finest columns."""
    finest = ticks[:, np.argsort(-scale)[:3]]
    finest = finest[finest.any(axis=1)]
    ordered = finest[np.lexsort(finest.T)]
    return int((ordered[1:] == ordered[:-1]).all(axis=1).sum())


@dataclass(frozen=True)
class Findings:
    """Contradictions, most striking first, the number of questions asked, and of rows looked at."""

    contradictions: tuple[Contradiction, ...]
    questions: int
    rows: int


def ask(
    publish: Publish,
    grid: Lattice,
    scale: FloatArray,
    zero_prob: float,
    names: Sequence[Any],
    n: int,
    level: float,
    n_threads: int | None = None,
) -> Findings:
    """Publish about ``n`` rows and list what contradicts the law; a right sampler gives none but with chance ``level``.

    ``scale`` (d,) is in ticks.
    """
    questions = Questions(scale, zero_prob, names)
    d = questions.dim
    longest = min(LONGEST_CALL, max(1 << 12, 1 << (CELLS_OF_CALL // d).bit_length() - 1))
    n_pairs = max(1, round(n / (2 * longest)))
    size = n // (2 * n_pairs)
    families = questions.families(size)
    counted: list[list[tuple[Counts, Counts]]] = [[] for _ in range(n_pairs)]
    sums = np.zeros((n_pairs, 2, d, len(LEVELS)))  # ticks beyond the first and entries not zero, by column and level
    logs = np.zeros((n_pairs, 4))

    def call(rng: np.random.Generator) -> Call:
        levels = rng.integers(0, 4, (size, d), dtype=np.int8)
        places = np.stack([grid.low, np.floor(0.5 * (grid.low + grid.high)), grid.high])
        anywhere = np.minimum(np.floor(grid.low + rng.random((size, d)) * (grid.high - grid.low + 1)), grid.high)
        original = np.where(levels == 3, anywhere, places[np.minimum(levels, 2), np.arange(d)])
        published = publish(original * grid.tick)
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.rint(published / grid.tick)
            off = ~(near * grid.tick == published)  # NaN is off too
            noise = np.where(np.isfinite(near), near - original, 0.0)
        return questions.prepare(np.clip(noise, -(2.0**62), 2.0**62).astype(np.int64), levels, int(off.sum()))

    def task(first: int, last: int) -> None:
        for k in range(first, last):
            rng = np.random.default_rng()
            a, b = call(rng), call(rng)
            counted[k] = [family.count(a, b) for family in families]
            for c in (a, b):
                live = c.ticks != 0
                for j in range(d):
                    for side, weights in enumerate((np.abs(c.ticks[:, j]) - live[:, j], live[:, j])):
                        sums[k, side, j] += np.bincount(c.levels[:, j], weights, minlength=len(LEVELS))
                radius = c.radius[~c.zero]
                repeated = repeated_rows(c.ticks, scale)
                logs[k] += np.log(radius + questions.h).sum(), np.log(radius).sum(), len(radius), repeated

    _threads.run_chunks(task, n_pairs, n_threads)
    answers = [
        _answer(family, *(np.sum([part[f][side] for part in counted], axis=0) for side in (0, 1)))
        for f, family in enumerate(families)
    ]
    rows = 2 * size * n_pairs
    general = [
        *_scales(questions, *sums.sum(axis=0)),
        *_rows(questions, logs.sum(axis=0).tolist(), size * (size - 1) * n_pairs),
        *answers[0],
    ]
    shapes = [answer for family in answers[1:] for answer in family]
    found = [a for a in general if a.chance <= GENERAL * level / (2 * len(general))]
    found += [a for a in shapes if a.chance <= (1 - GENERAL) * level / (2 * len(shapes))]
    ordered = tuple(sorted(found, key=lambda a: a.chance))
    return Findings(ordered, len(general) + len(shapes), rows)


def _answer(family: Family, counts: Counts, trials: Counts) -> list[Contradiction]:
    lower, upper = law.binomial_tails(counts, trials, family.low, family.high)
    columns = (family.labels, counts, trials, family.low, family.high, np.minimum(lower, upper))
    return [
        Contradiction(family.kind, label, float(k), float(m), (float(p), float(q)), float(chance))
        for label, k, m, p, q, chance in zip(*columns, strict=True)
    ]


def _scales(questions: Questions, totals: FloatArray, counts: FloatArray) -> Iterator[Contradiction]:
    """The scale of each column, in all and by level; totals and counts (d, levels)."""
    for name, scale, total, count in zip(questions.names, questions.scale.tolist(), totals, counts, strict=True):
        right = 1 / math.expm1(math.sqrt(2) / scale)
        every = zip(["", *LEVELS], [total.sum(), *total], [count.sum(), *count], strict=True)
        for level, added, number in every:
            chance = min(law.geometric_tails(float(added), int(number), scale))
            what = f"mean of the ticks of column {name!r}" + (f", values {level}" if level else "")
            yield Contradiction("scale", what, float(added / max(number, 1)), float(number), (right, right), chance)


def _rows(questions: Questions, logs: list[float], pairs: int) -> Iterator[Contradiction]:
    """The scale of whole rows, and rows that come again; ``pairs`` of rows could have been equal."""
    d = questions.dim
    if d == 1:
        return
    low, high, count, repeated = logs
    chance = min(law.log_radius_tails(low, high, int(count), questions.scale))
    right = math.exp(0.5 * (math.log(2) - np.euler_gamma + float(special.digamma(0.5 * d))))
    size = math.exp(high / count) if count else 0.0
    yield Contradiction("scale", "geometric mean of the radius", size, count, (right, right), chance)
    p = questions.noisy**2 * law.equal_rows(questions.scale)
    chance = min(1.0, pairs * p / repeated) if repeated else 1.0
    yield Contradiction("repeated rows", "rows that come again", repeated, pairs, (0.0, p), chance)
