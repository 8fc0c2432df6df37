"""An audit: what an attacker demonstrably learns from the released rows, against what is claimed.

The mechanism publishes two rows that differ as much as the unit of protection allows, many times
each, through the same code as a release.  A test that an attacker could run then gives lower bounds
of delta that hold with a stated probability; none may exceed the claimed curve.

Design: the tests are the likelihood ratio beyond epsilon (the best one if the noise has the law it
should have) and "an entry came back unchanged" (the best one against a zero draw per entry).  Any
event gives a valid bound, so a wrong sampler can only be found, never a right one blamed beyond the
stated level.  Such bounds see too little noise and too many unchanged rows; they do not see a scale half a percent
too small, or noise that one column or row shares with another.  So the same code is also asked a few thousand
questions about the exact law of the noise (zil/release/noise_audit.py), with half of the level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from zil import _threads, _validate
from zil._validate import FloatArray
from zil.privacy.density import log_density
from zil.release import noise_audit, rows
from zil.release.keystream import Key
from zil.release.mechanism import UNITS, Mechanism
from zil.release.noise_audit import Contradiction, Publish

EPSILONS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
BLOCK = 1 << 16  # rows in memory at a time
EVENTS = 2
SHOWN = 12  # contradictions in the summary


@dataclass(frozen=True)
class AuditResult:
    """What an audit found.

    Attributes
    ----------
    epsilons : (K,) array
    lower_bounds : (K,) array
        Largest lower bound of delta found at each epsilon, over pairs of rows and tests.
    claimed : (K,) array
        The curve of the mechanism, ``zero_prob`` included.
    unit : str
    n_samples : int
        Releases of each row of each pair.
    level : float
        Probability at most that a right mechanism fails.
    contradictions : tuple of Contradiction
        Counts that noise of the stated law would not give, most striking first; empty for a right mechanism.
    questions : int
        How many counts were compared with the law.
    """

    epsilons: FloatArray
    lower_bounds: FloatArray
    claimed: FloatArray
    unit: str
    n_samples: int
    level: float
    contradictions: tuple[Contradiction, ...] = ()
    questions: int = 0

    @property
    def passed(self) -> bool:
        """No lower bound exceeds the claim, and nothing contradicts the law of the noise."""
        return bool((self.lower_bounds <= self.claimed).all()) and not self.contradictions

    def summary(self) -> str:
        """The findings as a table in markdown."""
        lines = [
            f"Audit at {self.unit} level, {self.n_samples} releases of each row: "
            + ("**passed**" if self.passed else f"**FAILED**: {self._failure()}")
            + f" (a right mechanism fails with probability at most {self.level:g}).",
            "",
            "| epsilon | delta demonstrated, at least | delta claimed, at most |",
            "| --- | --- | --- |",
        ]
        rows_of_table = zip(self.epsilons, self.lower_bounds, self.claimed, strict=True)
        lines += [f"| {e:g} | {low:.6g}{'' if low <= top else ' **!**'} | {top:.6g} |" for e, low, top in rows_of_table]
        lines += [
            "",
            f"{self.questions} questions about the law of the noise, {len(self.contradictions)} contradictions.",
        ]
        lines += [f"- {contradiction}" for contradiction in self.contradictions[:SHOWN]]
        if len(self.contradictions) > SHOWN:
            lines.append(f"- and {len(self.contradictions) - SHOWN} more")
        return "\n".join(lines)

    def _failure(self) -> str:
        if (self.lower_bounds <= self.claimed).all():
            return "the noise does not have the stated law"
        return "more can be learnt than is claimed"

    def __str__(self) -> str:
        return self.summary()


def audit(
    mechanism: Mechanism,
    *,
    unit: str,
    n_samples: int = 10_000_000,
    epsilons: Any = None,
    level: float = 1e-6,
    n_threads: int | None = None,
) -> AuditResult:
    """Look for more than the mechanism admits: lower bounds of delta from its own releases.

    Parameters
    ----------
    mechanism : Mechanism
    unit : {"attribute", "record"}
        Which of its claims is put to the test.
    n_samples : int >= 100
        Releases of each row, and rows for the questions about the law; time grows with it, memory does not.
    epsilons : array-like of shape (K,), optional
        Where to look, finite and >= 0.
    level : float in (0, 1)
        Probability at most that a right mechanism fails, over all questions asked together.
    n_threads : int, optional
        None: what ``OMP_NUM_THREADS`` and the CPU affinity allow.

    Returns
    -------
    AuditResult

    Notes
    -----
    For an event A, ``delta(epsilon) >= P(A) - exp(epsilon) Q(A)`` (beyond the paper: mathematics
    3.7 in the other direction).  P(A) and Q(A) are bounded by Clopper and Pearson's limits, half the level
    shared over epsilons, events, pairs and the two limits.  Pairs: single columns from bound to
    bound; for a record also the diagonal of the box and a random face of it.

    The other half of the level is shared over exact binomial tests and Chernoff bounds: zero rows (in all, and where
    each column is low, middle or high), single columns, the radius, two columns, signs, two rows.  What they find at
    how many draws, and what they cannot find, is in docs/audit.md.
    """
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"mechanism must be a zil.Mechanism, got {type(mechanism).__name__}")
    _validate.choice("unit", unit, UNITS)
    n = _validate.integer("n_samples", n_samples, 100)
    level = _validate.in_range("level", level, 0.0, 1.0, open_low=True, open_high=True)
    where = _validate.finite_array("epsilons", EPSILONS if epsilons is None else epsilons, (0, 1)).reshape(-1)
    if not len(where) or (where < 0).any():
        raise ValueError("epsilons must be a non-empty array of numbers >= 0")

    def publish(values: FloatArray) -> FloatArray:
        with Key.fresh() as key:
            return rows.certified(values, mechanism._grid, mechanism._in_ticks, mechanism.zero_prob, key, n_threads=1)

    return run(mechanism, publish, unit, n, where, level, n_threads)


def run(
    mechanism: Mechanism,
    publish: Publish,
    unit: str,
    n: int,
    epsilons: FloatArray,
    level: float,
    n_threads: int | None = None,
) -> AuditResult:
    """The audit of any ``publish``: (m, d) rows to (m, d) published rows."""
    order = np.argsort(epsilons)
    grid = mechanism._grid
    low = grid.low * grid.tick
    others = [np.where(changed, grid.high * grid.tick, low) for changed in _pairs(mechanism, unit)]
    share = 0.5 * level / (2 * EVENTS * len(others) * len(epsilons))
    found = np.zeros(len(epsilons))
    below = _counts(mechanism, publish, low, low, others, n, epsilons[order], n_threads)
    for p, high in zip(below, others, strict=True):
        q = _counts(mechanism, publish, high, low, [high], n, epsilons[order], n_threads)[0]
        at_least = np.where(p > 0, stats.beta.ppf(share, p, n - p + 1), 0.0)
        at_most = np.where(q < n, stats.beta.ppf(1.0 - share, q + 1, n - q), 1.0)
        with np.errstate(over="ignore"):
            bounds = at_least - np.exp(epsilons[order]) * at_most
        found[order] = np.maximum(found[order], bounds.max(axis=0))
    findings = noise_audit.ask(
        publish, grid, mechanism._in_ticks, mechanism.zero_prob, mechanism.columns, n, 0.5 * level, n_threads
    )
    return AuditResult(
        epsilons=epsilons.copy(),
        lower_bounds=found,
        claimed=np.atleast_1d(mechanism.delta(epsilons, unit)),
        unit=unit,
        n_samples=n,
        level=level,
        contradictions=findings.contradictions,
        questions=findings.questions,
    )


def _pairs(mechanism: Mechanism, unit: str) -> Iterator[NDArray[np.bool_]]:
    """Which columns change from their lower to their upper bound, worst first."""
    grid = mechanism._grid
    widest = np.argsort(-(grid.high - grid.low) * grid.tick / mechanism.scale)
    d = mechanism.dim
    columns = np.arange(d)
    if unit == "record" and d > 1:
        yield np.ones(d, dtype=bool)
        if d > 2:
            yield np.isin(columns, np.random.default_rng().choice(d, size=d - 1, replace=False))
    for column in widest[: 1 if unit == "record" else 3]:
        yield columns == column


def _counts(
    mechanism: Mechanism,
    publish: Publish,
    original: FloatArray,
    low: FloatArray,
    others: list[FloatArray],
    n: int,
    epsilons: FloatArray,
    n_threads: int | None,
) -> NDArray[np.int64]:
    """How many of n releases of ``original`` lie in each event, shape (pairs, EVENTS, K); ``epsilons`` ascending.

    Events for the pair of ``low`` and another row: the likelihood ratio of ``low`` against it exceeds
    exp(epsilon), the atom at ``low`` counting as infinite; an entry in which the two differ equals that of ``low``.
    """
    n_blocks = -(-n // BLOCK)
    parts = np.zeros((n_blocks, len(others), EVENTS, len(epsilons)), dtype=np.int64)

    def log_density_around(row: FloatArray, published: FloatArray) -> FloatArray:
        steps = (published - row) / mechanism.scale
        return log_density(mechanism.dim, np.sqrt(np.einsum("ij,ij->i", steps, steps)), 1)

    def task(first: int, last: int) -> None:
        for block in range(first, last):
            published = publish(np.tile(original, (min(BLOCK, n - block * BLOCK), 1)))
            same = published == low
            whole = same.all(axis=1)
            near_low = log_density_around(low, published)
            for k, high in enumerate(others):
                with np.errstate(invalid="ignore"):  # inf - inf only where the rows are the same: set below
                    ratio = near_low - log_density_around(high, published)
                ratio[whole] = np.inf
                place = np.searchsorted(epsilons, ratio, side="left")  # number of epsilons below the ratio
                parts[block, k, 0] = np.bincount(place, minlength=len(epsilons) + 1)[::-1].cumsum()[::-1][1:]
                parts[block, k, 1] = np.count_nonzero(same[:, low != high].any(axis=1))

    _threads.run_chunks(task, n_blocks, n_threads)
    return np.asarray(parts.sum(axis=0))
