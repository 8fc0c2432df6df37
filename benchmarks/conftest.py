"""Benchmarks measure their baseline in the same run and close with tables of ratios beside their goals.

    def test_fill(race):
        race(lambda: kernel(...), lambda: numpy_expression(...), baseline_name="numpy", units=n, goal=6.0)

    def test_growth(record):
        record("title of the table", "name of the line", "what was measured:", ratio, goal)

Design: before each timed round of the call the baseline is timed too, so that a change of the
machine's speed meets both.  The ratio is the quotient of the best rounds.  Nothing fails on
time: the tables show each ratio beside its goal and a person judges.
"""

import time

import pytest

MIN_ROUND = 2e-3  # seconds; shorter work is repeated inside a round
LINES = pytest.StashKey()


def pytest_addoption(parser):
    parser.addoption("--large", action="store_true", help="the sizes that the goals are stated for: hours, not minutes")


def pytest_configure(config):
    config.stash[LINES] = []


@pytest.fixture(scope="session")
def large(request):
    return request.config.getoption("--large")


@pytest.fixture
def record(request):
    """``record(title, name, text, value=None, goal=None, below=False, unit="x")``: one line of a table."""

    def add(title, name, text, value=None, goal=None, *, below=False, unit="x"):
        request.config.stash[LINES].append((title, name, text, value, goal, below, unit))

    return add


def seconds(function, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - start) / repeats


@pytest.fixture
def race(benchmark):
    def run(kernel, baseline, *, baseline_name, units, goal, unit="rows", rounds=9):
        """Time both; ``units`` is how many ``unit`` one call handles; the ratio comes back."""
        kernel_repeats = max(1, int(MIN_ROUND / max(seconds(kernel, 1), 1e-7)))
        baseline_repeats = max(1, int(MIN_ROUND / max(seconds(baseline, 1), 1e-7)))
        baseline_times, kernel_times = [], []

        def setup():
            baseline_times.append(seconds(baseline, baseline_repeats))

        def timed():
            kernel_times.append(seconds(kernel, kernel_repeats))

        benchmark.pedantic(timed, setup=setup, rounds=rounds, warmup_rounds=1)
        ratio = min(baseline_times) / min(kernel_times)
        benchmark.extra_info.update(
            baseline=baseline_name, goal=goal, ratio=ratio, rate=units / min(kernel_times), unit=unit
        )
        return ratio

    return run


def pytest_terminal_summary(terminalreporter, config):
    write_records(terminalreporter, config.stash[LINES])
    session = getattr(config, "_benchmarksession", None)
    results = [b for b in getattr(session, "benchmarks", []) if "ratio" in b.extra_info]
    if not results:
        return
    terminalreporter.section("ratio to the named baseline, same run")
    width = max(len(b.name) for b in results)
    terminalreporter.write_line(f"{'name':{width}}  {'rate':>18}  {'ratio':>7}  {'goal':>6}  baseline")
    for b in results:
        info = b.extra_info
        rate = f"{info['rate'] / 1e6:.2f} M {info['unit']}/s"
        mark = "" if info["ratio"] >= info["goal"] else "   BELOW GOAL"
        line = f"{b.name:{width}}  {rate:>18}  {info['ratio']:6.2f}x  {info['goal']:5.1f}x  {info['baseline']}{mark}"
        terminalreporter.write_line(line)


def write_records(terminalreporter, lines):
    for title in dict.fromkeys(line[0] for line in lines):
        terminalreporter.section(title)
        mine = [line for line in lines if line[0] == title]
        width = max(len(line[1]) for line in mine)
        for _, name, text, value, goal, below, unit in mine:
            line = f"{name:{width}}  {text}"
            if value is not None:
                line += f" {value:.2f}{unit}"
            if goal is not None:
                line += f" (goal {'at most' if below else 'at least'} {goal:g}{unit})"
                line += "   SHORT OF GOAL" if (value > goal if below else value < goal) else ""
            terminalreporter.write_line(line)
