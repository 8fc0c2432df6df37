"""Whole fits as public calls: against the libraries of `peers`, every loss by every method, and growing work.

Defaults keep the whole within minutes; ``--large`` takes the sizes that the goals are stated for
(n = 1e6 and 5 columns; rows up to 1e7, columns up to 100).  Nothing fails on time.
"""

import time

import numpy as np
import pytest
from ask import ask
from calls import LOSSES, METHODS, regression
from peers import GOALS, PEERS

import zil

D = 5
SHARE = 0.7  # of a fit's time inside compiled passes
TIMES = {"dr": 4.0, "rb": 4.0, "optimal": 10.0}  # at most so many plain fits
MEMORY = {"dr": 1.5, "rb": 1.5, "optimal": 3.0}  # peak beyond the data at most so many times the data
EXPONENT = 1.1


@pytest.fixture(scope="module")
def rows(large):
    return 1_000_000 if large else 100_000


def seconds(call, x, y, least=0.3):
    """Best time of a call; once if that takes long."""
    best, spent = float("inf"), 0.0
    while spent < least:
        start = time.perf_counter()
        call(x, y)
        took = time.perf_counter() - start
        best, spent = min(best, took), spent + took
    return best


@pytest.mark.filterwarnings("ignore::Warning")  # what other libraries warn each other of
@pytest.mark.parametrize("loss", list(dict.fromkeys(peer.loss for peer in PEERS)))
def test_plain_fit_against_peers(loss, rows, record):
    """zil and each peer in turn, three times; the ratio is of the best times, the fastest peer decides."""
    x, y = regression(rows, D, loss)
    present = [peer for peer in PEERS if peer.loss == loss and peer.installed]
    for peer in PEERS:
        if peer.loss == loss and not peer.installed:
            record("plain fits against peers", f"{loss}: {peer.name}", f"skipped: {peer.module} is not installed")

    def ours(x, y):
        return zil.fit(loss, x, y=y, n_threads=1)

    result = ours(x[:2000], y[:2000])
    for peer in present:
        peer.fit(x[:2000], y[:2000])
    times = {"zil": [], **{peer.name: [] for peer in present}}
    for _ in range(3):
        times["zil"].append(seconds(ours, x, y))
        for peer in present:
            if len(times[peer.name]) == 0 or min(times[peer.name]) < 5.0:
                times[peer.name].append(seconds(peer.fit, x, y))
    own = min(times["zil"])
    fastest = min(present, key=lambda peer: min(times[peer.name]))
    result = ours(x, y)
    for peer in present:
        theirs = peer.fit(x, y)
        if loss == "quantile:0.5":  # minima need not be unique; the objective is
            objective = zil.CorrectedLoss(loss, x, y, method="naive", n_threads=1)
            assert result.objective_value <= objective(theirs)[0] * (1 + 1e-9)
        elif loss != "huber":
            np.testing.assert_allclose(result.params, theirs, rtol=1e-4, atol=1e-4)
        goal = GOALS.get(loss) if peer is fastest else None
        record(
            "plain fits against peers", f"{loss}: {peer.name}" + ("" if peer.with_errors else " (no standard errors)"),
            f"zil {1e3 * own:9.1f} ms, peer {1e3 * min(times[peer.name]):9.1f} ms", min(times[peer.name]) / own, goal,
        )  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
def test_methods(loss, rows, record):
    """Each fit in a process of its own: time in plain fits, peak memory beyond the data, share of compiled passes."""
    title = f"every loss by every method, n = {rows}, {D} columns"
    plain = ask("fit", rows, D, loss=loss)
    for method in ("plain", *METHODS):
        if method == "scl" and not loss.startswith("quantile"):
            continue
        name = f"{loss} {method}"
        found = plain if method == "plain" else ask("fit", rows, D, loss=loss, method=method, seconds=0.0)
        if "error" in found:
            record(title, name, f"not done: {found['error'][:90]}")
            continue
        times = found["seconds"] / plain["seconds"]
        memory = "?" if found["memory"] is None else f"{found['memory']:.1f}"
        text = (
            f"{1e3 * found['seconds']:9.1f} ms; memory {memory} x data (goal {MEMORY.get(method, 1.5)});"
            f" compiled {100 * found['kernel']:3.0f} % (goal {100 * SHARE:.0f} %); plain fits:"
        )
        record(title, name, text, times, TIMES.get(method), below=True)


def exponent(sizes, times):
    """Slope of log time on log size over the upper half of the sizes."""
    upper = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[upper:]), np.log(times[upper:]), 1)[0])


GROWING = (("squared", "plain"), ("logistic", "rb"), ("quantile:0.5", "rb"), ("logistic", "optimal"))


@pytest.mark.parametrize(("loss", "method"), GROWING)
def test_growth_with_rows(loss, method, large, record):
    sizes = [1_000, 3_000, 10_000, 30_000, 100_000]
    if large:
        sizes += [300_000, 1_000_000, 3_000_000, 10_000_000]
    times = _grow(sizes, lambda n: ask("fit", n, D, loss=loss, method=method, seconds=0.1), "seconds")
    if len(times) < len(sizes):
        record("growth with rows", f"{loss} {method}", f"ended at n = {sizes[len(times)]}: {times.problem}")
    if len(times) > 3:
        text = ", ".join(f"{n:.0e}: {1e3 * t:.1f} ms" for n, t in zip(sizes, times, strict=False))
        slope = exponent(sizes[: len(times)], times)
        record("growth with rows", f"{loss} {method}", text + "; exponent", slope, EXPONENT, below=True, unit="")


@pytest.mark.parametrize(("loss", "method"), GROWING)
def test_growth_with_columns(loss, method, large, record):
    """Of the time outside compiled passes too: it holds no p^2 work of a Hessian."""
    sizes = [1, 2, 5, 10, 20, 40] + ([70, 100] if large else [])
    n = 100_000 if large else 10_000
    answers = [ask("fit", n, d, loss=loss, method=method, seconds=0.1) for d in sizes]
    pairs = list(zip(sizes, answers, strict=True))
    kept = [(d, a["seconds"], a["seconds"] * (1 - a["kernel"])) for d, a in pairs if "error" not in a]
    for d, answer in pairs:
        if "error" in answer:
            record("growth with columns", f"{loss} {method}", f"d = {d}: {answer['error'][:90]}")
    d, total, outside = (np.array(column) for column in zip(*kept, strict=True))
    text = ", ".join(f"{k}: {1e3 * t:.1f} ms" for k, t in zip(d, total, strict=True))
    record(
        "growth with columns", f"{loss} {method}, n = {n}",
        f"{text}; exponent {exponent(d, total):.2f}, outside compiled passes", exponent(d, outside), EXPONENT,
        below=True, unit="",
    )  # fmt: skip


class _Times(list):
    problem = ""


def _grow(sizes, question, field):
    """Answers up to the first size that cannot be done (no memory, say)."""
    times = _Times()
    for size in sizes:
        answer = question(size)
        if "error" in answer:
            times.problem = answer["error"][:90]
            break
        times.append(answer[field])
    return times
