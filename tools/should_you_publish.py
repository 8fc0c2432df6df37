"""Write docs/should_you_publish.md: what the same budget buys with ZIL, with blanked rows and with Laplace noise.

    python tools/should_you_publish.py --out docs/should_you_publish.md

The sentences of the page are checked against the numbers here: if a number no longer bears one out, this stops.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import zil
from zil.privacy import risk

# columns, unit, epsilon, delta, zero_prob
ATTACKS = [(5, "attribute", 3.0, 0.3, 0.2), (2, "record", 1.0, 0.1, 0.05), (2, "record", 8.0, 0.001, 0.0008)]
# columns, unit, epsilon, delta
BUDGETS = [
    (2, "record", 1.0, 0.3), (2, "record", 1.0, 0.1), (2, "record", 3.0, 0.01), (2, "record", 5.0, 0.01),
    (2, "record", 8.0, 0.1), (2, "record", 8.0, 0.001), (6, "record", 8.0, 0.001), (2, "attribute", 3.0, 0.01),
    (2, "attribute", 8.0, 0.001),
]  # fmt: skip
LOSSES = ["squared", "logistic", "quantile:0.5"]

PAGE = """# Should you publish with zil?

Every number on this page is made by

    python tools/should_you_publish.py --out docs/should_you_publish.md

## What convention says

`zero_prob` is the share of rows that are published exactly as they are, and it is a part of delta. Convention for open
data wants delta far below 1/n: fewer than one row in the whole table. So **a table with `zero_prob` above 1/n is never
open data**, however small its epsilon. Deployments of local differential privacy use an epsilon between 1 and 8 for a
person, and hardly any delta at all. The label says on which of three shelves a table belongs:

| shelf | what it takes |
| --- | --- |
| open data | under one row unchanged; epsilon of a person at delta = 1/(10 n) at most 10 (strong: 1); no unique keys |
| under contract | an attacker is rightly 95 % sure in at most 10 % and guesses right at most 75 % of the time |
| | unchanged rows do not stand out; under 5 % of rows share their keys with fewer than five |
| do not publish | everything else: secure access only |

The bands are zil's own; the three shelves are those of official statistics.

## What an attacker gets for the same budget

Two other ways to spend a budget are older and simpler. *Blanking*: empty the protected columns of all rows but a
random share delta. That is (0, delta) private. *Laplace*: independent noise for each column, no row unchanged.
"Original" is the share of the rows inside the bounds that are original ones, "guess" and "sure" are about the entry or
row that the budget protects.

| budget | way | rows unchanged | original | best guess | at 1 % false alarms | 95 % sure | s.e. of a mean |
| --- | --- | --- | --- | --- | --- | --- | --- |
{attacks}

At the same `zero_prob`, blanking **always** protects better than ZIL: it gives the same rows away and says nothing
about the others. What the noise adds is that nobody can prove a row to be true, and that noised rows tell something.

## What an analyst gets for the same budget

Standard errors as multiples of those of the original table (the largest over the slopes), predicted by `zil.plan` for
uniform columns and an index of standard deviation 1. ZIL is shown with no row unchanged, and with 20 % and 80 % of
delta as `zero_prob`. The smallest is bold; "-" means that there is no such estimator.

| loss | columns | budget | ZIL, none unchanged | ZIL, .2 delta | ZIL, .8 delta | blanking | Laplace |
| --- | --- | --- | --- | --- | --- | --- | --- |
{losses}

## So when?

- **A small epsilon and a large delta: blank rows.** At (1, 0.1) blanking is the most precise way for every loss here,
  and it protects better. What it cannot give is deniability.
- **A large epsilon, a tiny delta, few columns, whole rows, a smooth loss: ZIL** with few rows unchanged, or none. At
  (8, 0.001) with two columns its standard errors are {zil_wide:.3g} times those of the original table for logistic
  regression, with independent Laplace noise {laplace_wide:.3g} times, with blanked rows {blank_wide:.3g} times.
- **One entry at a time, a smooth loss: Laplace noise.** At attribute level its standard errors are the smallest.
- **Many columns: nothing is cheap.** A whole row of six columns needs so much noise that the noised rows tell little;
  ZIL then comes near to blanking as `zero_prob` comes near to delta.
- **Medians, other quantiles and support vector machines**: their corrections live on unchanged rows, and independent
  Laplace noise has none that is known. Blanking is more precise in every row above; take ZIL where a published row
  must not be provably true, with `zero_prob` near delta.
- **Several rows of one person**: count them (`rows_per_person=`); five rows turn most releases from "under contract"
  into "do not publish".

Blanking and independent Laplace noise are not mechanisms of zil; they are on the label and in the plan so that you can
see what they would give.

## From a table to a signed label

```python
import numpy as np
import zil

rng = np.random.default_rng(1)
table = np.column_stack([rng.uniform(18, 90, 4000), rng.uniform(0, 1, 4000)])
bounds = {{0: (18, 90), 1: (0, 1)}}  # public knowledge, never from the data

plan = zil.plan(bounds, epsilon=1.0, delta=0.1, unit="record", loss="squared", n=len(table), y=1)
print(plan.summary())  # what each zero_prob would buy

mechanism = zil.calibrate(bounds, epsilon=1.0, delta=0.1, zero_prob=0.05, unit="record")
print(mechanism.risk(len(table), rows_per_person=1).verdict)
print(zil.check(table, mechanism).summary())  # NOT FOR PUBLICATION

published = mechanism.release(table)
with open("label.html", "w") as page:  # print it, read it, sign it or refuse
    page.write(published.report(format="html", rows_per_person=1))
```
"""


def attack_rows() -> list[str]:
    lines = []
    for d, unit, epsilon, delta, z in ATTACKS:
        bounds = dict.fromkeys(range(d), (0, 1))
        mechanism = zil.calibrate(bounds, epsilon=epsilon, delta=delta, zero_prob=z, unit=unit)
        figures = mechanism.risk()
        part: Any = figures.to_dict() if unit == "attribute" else figures.record
        share = figures.unchanged_in_box["average"]
        cost = risk.mean_factor(float(mechanism.scale[0]), z)
        word = "entry" if unit == "attribute" else "row"
        head = f"({epsilon:g}, {delta:g}), {word} of {d} columns"
        ways = [("ZIL", z, share, part["best_guess"], part["power_at_1_percent"], part["certain_95"], cost)]
        for kept in dict.fromkeys((z, delta)):
            ways.append((f"blank all but {100 * kept:g} %", kept, 1.0, 0.5 + kept / 2, kept + 0.01, kept, kept**-0.5))
        columns = 1 if unit == "attribute" else d
        q = risk.laplace_loss(columns, epsilon, delta)
        f = risk.independent_laplace(columns, q)
        ways.append(
            (
                "Laplace",
                0.0,
                0.0,
                risk.best_guess(f),
                risk.power(f),
                risk.certain(f),
                risk.mean_factor(math.sqrt(2) / q),
            )
        )
        for name, raw, original, guess, power, sure, factor in ways:
            cells = [f"{100 * (v if v > 1e-12 else 0.0):.3g} %" for v in (raw, original, guess, power, sure)]
            lines.append(f"| {head} | {name} | {' | '.join(cells)} | x {factor:.2f} |")
            head = ""
    return lines


def factors(loss: str, d: int, unit: str, epsilon: float, delta: float) -> list[float]:
    """ZIL without unchanged rows, with .2 and .8 delta, blanking, Laplace; nan where there is none."""
    kinked = loss.startswith("quantile")
    grid = [share * delta for share in ((0.2, 0.8) if kinked else (0.0, 0.2, 0.8))]
    plan = zil.plan(
        {f"x{k}": (0, 1) for k in range(d)},
        epsilon=epsilon,
        delta=delta,
        unit=unit,
        loss=loss,
        n=20_000,
        zero_probs=grid,
    )
    own = [entry["factor"] for entry in plan.frontier if entry["kind"] in ("sl", "zil")]
    other = {entry["kind"]: entry["factor"] for entry in plan.frontier}
    return [*([math.nan] if kinked else []), *own, other["suppress"], other.get("laplace", math.nan)]


def check(table: dict[tuple[str, int, str, float, float], list[float]]) -> None:
    """The sentences of the page, as the numbers have them."""
    for (loss, d, unit, epsilon, delta), (none, few, many, blank, laplace) in table.items():
        ways = [none, few, many, laplace]
        if (epsilon, delta) == (1.0, 0.1) or loss.startswith("quantile"):
            assert all(math.isnan(way) or blank < way for way in ways), "blanking is no longer the most precise"
        elif (d, epsilon, delta) == (2, 8.0, 0.001):
            zil_best = min(none, few, many)
            assert zil_best < blank, "ZIL no longer beats blanking at (8, 0.001)"
            assert (zil_best < laplace) == (unit == "record"), "ZIL against Laplace depends on the unit no longer"


def loss_rows(table: dict[tuple[str, int, str, float, float], list[float]]) -> list[str]:
    lines = []
    for (loss, d, unit, epsilon, delta), values in table.items():
        smallest = min(value for value in values if not math.isnan(value))
        cells = ["-" if math.isnan(v) else f"**{v:.3g}**" if v == smallest else f"{v:.3g}" for v in values]
        word = "entry" if unit == "attribute" else "row"
        lines.append(f"| {loss} | {d} | ({epsilon:g}, {delta:g}) per {word} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    given = parser.parse_args()
    table = {(loss, *budget): factors(loss, *budget) for loss in LOSSES for budget in BUDGETS}
    check(table)
    wide = table["logistic", 2, "record", 8.0, 0.001]
    page = PAGE.format(
        attacks="\n".join(attack_rows()), losses="\n".join(loss_rows(table)), zil_wide=min(wide[:3]),
        laplace_wide=wide[4], blank_wide=wide[3],
    )  # fmt: skip
    print(page)
    if given.out is not None:
        given.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
