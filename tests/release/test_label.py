"""The privacy label: two examples number by number, its form in three formats, and names that try to break it."""

import html.parser
import math
import re

import numpy as np
import pandas as pd
import pytest
from reference import sl_alpha_float
from scipy import integrate, optimize, special

import zil
from zil.release.report import Label

RAND = {"disea": (0, 60), "physlm": (0, 1), "hlthg": (0, 1), "hlthf": (0, 1), "hlthp": (0, 1)}
HEALTH = {"Self-rated health": {"columns": ["hlthg", "hlthf", "hlthp"], "values": "dummies"}}
PAIR = {"age": (18, 90), "score": (0, 1)}


# ---- an independent computation of everything that the two examples say


def alpha_at(d, c, t):
    """Alarm rate at threshold t; d = 2: no double is near enough to the pole for thresholds beyond a dozen."""
    try:
        return sl_alpha_float(d, c, t)
    except ValueError:
        return 0.0


def delta_at(d, c, z, epsilon):
    """1 - beta - exp(epsilon) alpha of the likelihood-ratio test, beta(t) = alpha(-t) = 1 - Int e^s d(-alpha)."""
    if epsilon == 0:
        return z + (1 - z) * (1 - math.exp(-c / math.sqrt(2)))
    # d delta/d t = -e^t alpha(t): from epsilon to where nothing is left
    nodes, weights = np.polynomial.legendre.leggauss(24)
    t = epsilon + 20 * (nodes + 1) ** 3 / 8
    slope = 20 * 3 * (nodes + 1) ** 2 / 8 * weights
    return z + (1 - z) * float(sum(w * math.exp(s) * alpha_at(d, c, s) for w, s in zip(slope, t, strict=True)))


def sure_at(d, c, z):
    """P(log-likelihood ratio >= log 19) under the truth: delta + e^t alpha."""
    t = math.log(19.0)
    inner = (delta_at(d, c, z, t) - z) / (1 - z) + 19.0 * alpha_at(d, c, t)
    return z + (1 - z) * inner


def power_at(d, c, z, alpha=0.01):
    """1 - f(alpha): the threshold whose alarm rate is alpha, then its detection rate."""
    goal = alpha / (1 - z)
    t = optimize.brentq(lambda s: alpha_at(d, c, s) - goal, 1e-3, 30.0, xtol=1e-10)
    return z + (1 - z) * ((delta_at(d, c, z, t) - z) / (1 - z) + math.exp(t) * goal)


def calibrated(mechanism, epsilon, delta, z, unit):
    """The shift of a mechanism, once it is seen to meet its target and to waste nothing."""
    c = mechanism.shift(unit)
    assert abs(delta_at(mechanism.dim, c, z, epsilon) - delta) < 1e-6
    return c


def recognised(tau, d, z):
    """Shares of originals at the corner, in the centre and on average, and of rows inside the box; equal columns."""

    def mean(value):
        return integrate.quad(lambda u: math.exp(2 * u - math.exp(2 * u)) * 2 * value(tau * math.exp(u)), -40, 2.2)[0]

    def average(t):
        return integrate.quad(lambda x: special.ndtr((1 - x) / t) - special.ndtr(-x / t), 0, 1)[0] ** d

    qs = [
        mean(lambda t: (special.ndtr(1 / t) - 0.5) ** d),
        mean(lambda t: (2 * special.ndtr(0.5 / t) - 1) ** d),
        mean(average),
    ]
    return [z / (z + (1 - z) * q) for q in qs], z + (1 - z) * qs[2]


def interval(tau, dim, n=20_000):
    """Mean share of a 95 % interval, by simulation of rows and a grid of values: standard error below 0.002."""
    rng = np.random.default_rng()
    grid = (np.arange(400) + 0.5) / 400
    s = np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=(n, dim))
    y = rng.random(n) + tau * s[:, 0]
    distance = np.abs(y[:, None] - grid) / tau
    r = distance if dim == 1 else np.hypot(np.linalg.norm(s[:, 1:], axis=1)[:, None], distance)
    v = dim / 2 - 1
    x = math.sqrt(2) * np.maximum(r, 1e-9)
    log_density = -x if dim == 1 else -v * np.log(x) + np.log(special.kve(v, x)) - x
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    mass = np.cumsum(np.sort(density, axis=1)[:, ::-1], axis=1) / density.sum(axis=1, keepdims=True)
    return float(((mass < 0.95).sum(axis=1) + 0.5).mean() / 400)


def persons(d, c, z, k, n=400_000):
    """Share of persons an attacker is 95 % sure of after k rows, by simulation: standard error 0.0008."""
    rng = np.random.default_rng()
    total = np.zeros(n)
    v = d / 2 - 1
    for _ in range(k):
        s = np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=(n, d))
        moved = s.copy()
        moved[:, 0] += c

        def log_g(r):
            return -v * np.log(r) + np.log(special.kve(v, math.sqrt(2) * r)) - math.sqrt(2) * r

        loss = log_g(np.linalg.norm(s, axis=1)) - log_g(np.linalg.norm(moved, axis=1))
        total += np.where(rng.random(n) < z, np.inf, loss)
    return float((total >= math.log(19.0)).mean())


def figures(line):
    return [float(text.replace(",", "")) for text in re.findall(r"\d[\d,]*\.?\d*", line)]


def sentence(text, heading):
    """One numbered sentence of the text label, unfolded."""
    page = text.split("Signed:")[0]
    found = re.search(rf"^ ?\d+ {heading}\. (.*?)(?=^ ?\d+ [A-Z]|\Z)", page, re.S | re.M)
    return " ".join(found[1].split())


def close(stated, value):
    """Printed to the nearest percent, up to 1e-4 for the quadrature."""
    return abs(stated / 100 - value) <= 0.0051


def test_first_example():
    d, z, n = 5, 0.2, 20_190
    mechanism = zil.calibrate(RAND, epsilon=3.0, delta=0.3, zero_prob=z, unit="attribute")
    c = calibrated(mechanism, 3.0, 0.3, z, "attribute")
    text = mechanism.report(n, format="text", rows_per_person=5, groups=HEALTH)
    lines = text.splitlines()
    assert lines[0] == "PRIVACY LABEL: disea, physlm, hlthg, hlthf, hlthp (20,190 rows, up to 5 per person)"
    assert lines[1] == "VERDICT: DO NOT PUBLISH. Secure access only."

    assert figures(sentence(text, "Exact disclosure")) == [4038, 20, 0.00005]
    assert n * z == 4038
    assert round(1 / n, 5) == 0.00005

    (corner, centre, average), inside = recognised(1 / c, d, z)
    stated = figures(sentence(text, "Recognition"))[:4]
    assert stated == [31, 65, 49, 93]
    assert all(map(close, stated, [inside, average, centre, corner]))

    guess, sure = 0.5 + delta_at(d, c, z, 0) / 2, sure_at(d, c, z)
    stated = figures(sentence(text, "One entry"))
    assert stated == [86, 50, 95, 38]
    assert close(stated[0], guess)
    assert close(stated[3], sure)

    row = c * math.sqrt(5)
    stated = figures(sentence(text, "Whole row"))
    assert stated == [96, 82]
    assert all(map(close, stated, [0.5 + delta_at(d, row, z, 0) / 2, sure_at(d, row, z)]))

    stated = figures(sentence(text, "Noised rows"))
    assert stated == [95, 87, 83]
    assert abs(interval(1 / c, 1) - 0.87) < 0.015
    assert abs(interval(1 / c, d) - 0.83) < 0.015

    stated = figures(sentence(text, "Group"))
    assert stated == [3, 1, 63, 47]
    assert close(63, power_at(d, c * math.sqrt(2), z))
    assert close(47, power_at(d, c, z))

    stated = figures(sentence(text, "Persons"))
    assert stated == [5, 67, 95, 97]
    assert close(67, 1 - (1 - z) ** 5)
    assert abs(persons(d, c, z, 5) - 0.97) < 0.0095

    assert sentence(text, "Not protected").startswith("All other columns")
    stated = figures(sentence(text, "Budget"))
    assert stated == [3, 0.30, 3, 0.71, 8, 0.25]
    assert abs(delta_at(d, row, z, 3.0) - 0.71) < 0.005
    assert abs(delta_at(d, row, z, 8.0) - 0.25) < 0.005

    # blanking: 30 % of rows stay; one Laplace noise of loss epsilon - 2 log(1 - delta); means of uniform columns
    q = 3.0 - 2 * math.log(0.7)
    laplace = [1 - math.exp(-q / 2) / 2, 1 - math.exp((math.log(19) - q) / 2) / 2, math.sqrt(1 + 24 / q**2)]
    stated = figures(sentence(text, "Instead"))
    assert stated == [30, 0, 0.30, 65, 95, 30, 1.83, 2.33, 92, 66, 1.66]
    assert stated[6] == round(1 / math.sqrt(0.3), 2)
    assert stated[7] == round(math.sqrt(1 + 12 * (1 - z) / c**2), 2)
    assert close(92, laplace[0])
    assert close(66, laplace[1])
    assert stated[10] == round(laplace[2], 2)


def test_second_example():
    d, z, n = 2, 0.05, 4000
    mechanism = zil.calibrate(PAIR, epsilon=1.0, delta=0.1, zero_prob=z, unit="record")
    row = calibrated(mechanism, 1.0, 0.1, z, "record")
    c = row / math.sqrt(2)
    text = mechanism.report(n, format="text", rows_per_person=1)
    lines = text.splitlines()
    assert lines[0] == "PRIVACY LABEL: age, score (4,000 rows, one per person)"
    assert lines[1] == "VERDICT: UNDER CONTRACT ONLY. Not open data: delta 0.05 is 200 x 1/n."
    assert figures(sentence(text, "Exact disclosure")) == [200, 5, 0.00025]
    (corner, centre, average), inside = recognised(1 / c, d, z)
    stated = figures(sentence(text, "Recognition"))[:4]
    assert stated == [14, 36, 33, 44]
    assert all(map(close, stated, [inside, average, centre, corner]))
    stated = figures(sentence(text, "One entry"))
    assert stated == [66, 50, 95, 5.0]
    assert close(66, 0.5 + delta_at(d, c, z, 0) / 2)
    assert abs(sure_at(d, c, z) - 0.05) < 5e-4
    assert "(the unchanged rows)" in sentence(text, "One entry")
    stated = figures(sentence(text, "Whole row"))
    assert stated == [70, 5.0]
    assert close(70, 0.5 + delta_at(d, row, z, 0) / 2)
    assert abs(sure_at(d, row, z) - 0.05) < 5e-4
    assert figures(sentence(text, "Noised rows"))[:2] == [95, 93]
    assert abs(interval(1 / c, 1) - 0.93) < 0.015
    stated = figures(sentence(text, "Persons"))
    assert stated == [5, 23, 95, 45]
    assert sentence(text, "Persons").endswith("then do not publish.")
    assert close(23, 1 - (1 - z) ** 5)
    assert abs(persons(d, row, z, 5) - 0.445) < 0.005
    stated = figures(sentence(text, "Budget"))
    assert stated == [1, 0.10, 1, 0.059]
    assert abs(delta_at(d, c, z, 1.0) - 0.0585) < 5e-5
    assert figures(sentence(text, "Instead"))[:3] == [10, 0, 0.10]


def test_the_independent_computation_sees_a_wrong_scale():
    """Power twin: three percent less noise would print other figures."""
    z = 0.2
    c = zil.calibrate(RAND, epsilon=3.0, delta=0.3, zero_prob=z, unit="attribute").shift("attribute") / 0.97
    assert abs(delta_at(5, c, z, 3.0) - 0.3) > 1e-3
    assert not close(38, sure_at(5, c, z))
    assert not close(63, power_at(5, c * math.sqrt(2), z))


# ---- form


def page_of(text):
    """The lines of the label without its tables."""
    lines = text.splitlines()
    return lines[: next(k for k, line in enumerate(lines) if line.startswith("Signed:")) + 1]


NASTY = [
    "a\nVERDICT: OPEN DATA", "b|c", "<script>alert(1)</script>", "`code`", "[x](http://e.org)", "a\u2028b", "a\u0085b",
    "\u202eevil", "*bold*", "# head", "--- | ---", "a\rb", "&lt;", "$x$", "\\", "  ", "1. item", "_u_", "| --- |",
]  # fmt: skip


def nasty_release():
    bounds = dict.fromkeys(NASTY[:10], (0, 1))
    table = pd.DataFrame({name: [0.5, 0.6] for name in NASTY})
    return zil.calibrate(bounds, epsilon=1, delta=0.1, zero_prob=0.05, unit="record").release(table)


def test_names_cannot_break_the_text():
    text = nasty_release().report(format="text")
    lines = text.splitlines()
    assert [k for k, line in enumerate(lines) if line.startswith("VERDICT")] == [1]
    assert len(page_of(text)) <= 35
    assert "\\n" in lines[0]


def test_names_cannot_break_the_markdown():
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    page = markdown.render(nasty_release().report())
    assert page.count("<ol>") == 1
    plain = zil.calibrate({f"x{k}": (0, 1) for k in range(10)}, epsilon=1, delta=0.1, zero_prob=0.05, unit="record")
    table = pd.DataFrame({f"x{k}": [0.5, 0.6] for k in range(len(NASTY))})
    twin = markdown.render(plain.release(table).report())
    for tag in (
        "<li>",
        "<table>",
        "<tr>",
        "<td",
        "<th",
        "<h",
        "<a",
        "<code",
        "<em",
        "<strong",
        "<script",
        "<p>",
        "<br",
    ):
        assert page.count(tag) == twin.count(tag), tag
    assert "alert(1)" in page


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)


@pytest.mark.parametrize("show", [lambda r: r.report(format="html"), lambda r: r._repr_html_()])
def test_names_cannot_break_the_page(show):
    page = show(nasty_release())
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.seen
    assert "a" not in tags.seen
    assert tags.seen.count("h1") == 1
    assert "http-equiv" not in page
    assert not re.search(r"(src|href)\s*=", page)  # nothing is fetched


def test_html_is_one_page():
    page = zil.calibrate(PAIR, epsilon=1.0, delta=0.1, zero_prob=0.05, unit="record").report(4000, format="html")
    assert page.startswith("<!DOCTYPE html>")
    assert page.index("PRIVACY LABEL") < page.index("VERDICT: UNDER CONTRACT") < page.index("Exact disclosure")
    assert "Signed:" in page


def test_markdown_is_the_default_and_says_the_same():
    m = zil.calibrate(PAIR, epsilon=1.0, delta=0.1, zero_prob=0.05, unit="record")
    first, second = m.report(4000).splitlines()[:2]
    assert first.startswith("PRIVACY LABEL: age, score (4,000 rows)")
    assert second.startswith("VERDICT: UNDER CONTRACT ONLY.")
    assert m.report(4000) == m.report(4000, format="markdown")
    with pytest.raises(ValueError, match="format"):
        m.report(format="pdf")


def test_the_unchanged_rows_come_first():
    m = zil.calibrate(PAIR, epsilon=1.0, delta=0.1, zero_prob=0.05, unit="record")
    assert page_of(m.report(4000, format="text"))[2].startswith(" 1 Exact disclosure. About 200 rows (5 %)")
    assert page_of(m.report(format="text"))[2].startswith(" 1 Exact disclosure. 5 % of all rows")
    assert "No row is published" in zil.Mechanism(PAIR, zero_prob=0, scale=5.0).report(10, format="text")
    assert "Fewer than one row (0.4 expected)" in zil.Mechanism(PAIR, zero_prob=1e-4, scale=5.0).report(
        4000, format="text"
    )


def test_every_column_that_passes_through_is_named():
    table = pd.DataFrame({"age": [20.0, 30.0], "score": [0.1, 0.2], "region": ["n", "s"], "sex": [0, 1]})
    released = zil.calibrate(PAIR, epsilon=1.0, delta=0.1, zero_prob=0.05, unit="record").release(table)
    assert sentence(released.report(format="text"), "Not protected") == "region, sex; row order, number of rows."
    more = pd.DataFrame({f"a_column_with_a_long_name_{k}": [0, 0] for k in range(200)})
    table = pd.concat([table, more], axis=1)
    released = zil.calibrate(PAIR, epsilon=1.0, delta=0.1, zero_prob=0.05, unit="record").release(table)
    text = released.report(format="text")
    assert "more" in sentence(text, "Not protected")
    assert all(f"a_column_with_a_long_name_{k}\n" in text for k in range(200))
    assert len(page_of(text)) <= 35


@pytest.mark.parametrize("width", [1, 60])
def test_at_most_35_lines(width):
    """The longest label there is: many long names, many groups, copies, coarse ticks, grain."""
    names = [("x" * width) + str(k) for k in range(80)]
    m = zil.calibrate(dict.fromkeys(names, (0, 100)), epsilon=3.0, delta=0.3, zero_prob=0.2, unit="attribute")
    metadata = m._metadata(n_rows=10**7)
    for k, column in enumerate(metadata["columns"]):
        column["tick"] = column["scale"] / 8
        if k % 2:
            column["grain"] = column["scale"]
    one = {"dim": 80, "zero_prob": 0.2, "shift": metadata["shift"]}
    composed = {unit: metadata["guarantees"][unit]["sharp"] for unit in ("attribute", "record")}
    metadata["repeat"] = {"releases_of_these_rows": 2, "composed": composed, "mechanisms": [one, one]}
    groups = {name: [name, names[0]] for name in names[1:9]}
    text = Label(metadata, passed=names, rows_per_person=5, groups=groups).text()
    assert len(page_of(text)) <= 35


def test_warnings_are_on_the_published_label():
    metadata = zil.calibrate(PAIR, epsilon=1.0, delta=0.1, zero_prob=0.05, unit="record")._metadata(n_rows=4000)
    metadata["columns"][0]["tick"] = metadata["columns"][0]["scale"] / 8
    metadata["columns"][1]["grain"] = 0.5
    text = Label(metadata).text()
    stays = 1 - math.exp(-math.sqrt(2) / 16)
    assert (
        f"Noise that rounds to 0 leaves up to {100 * stays:.1f} % of entries of noised rows as they are: age."
        in " ".join(text.split())
    )
    assert "After rounding, up to" in text


def test_tables_follow():
    m = zil.calibrate(PAIR, epsilon=1.0, delta=0.1, zero_prob=0.05, unit="record")
    for form in ("markdown", "text", "html"):
        label = m.report(10, format=form)
        for word in ("attribute, sharp", "attribute, limit", "record, sharp", "record, limit", "Noised columns"):
            assert word in label
