"""Every mutant of the sampler is killed by moment and joint tests; the certified sampler passes them."""

import numpy as np
import pytest
from attacks import law

from zil.release import sampler
from zil.release.keystream import Key

D, SCALE, ZERO_PROB = 4, 2.0**30, 0.002
MANY = 3_000_000  # 0.5 % of scale are 12 standard errors, 0.0005 of probability 19: threshold 6.5, so never missed


def certified(n, scale=SCALE, zero_prob=ZERO_PROB):
    with Key.fresh() as key:
        return sampler.draw_ticks(key, n, [scale] * D, zero_prob)


def test_the_certified_sampler_survives():
    """False alarms: fifteen tests at 1e-9 or less."""
    assert law.alarms(certified(300_000), SCALE, ZERO_PROB) == set()
    assert law.alarms(certified(MANY), SCALE, ZERO_PROB, [law.scale, law.share_of_zero_rows]) == set()
    assert law.repeated(certified(1000), certified(1000)) == 0


def test_the_model_of_the_mutants_is_the_certified_sampler():
    """So that a mutant differs by its defect only."""
    with Key.fresh() as key:
        exact = sampler.draw_ticks(key, 20_000, [2.0**20] * 5, ZERO_PROB)
        model = law.draw(key.secret, 20_000, 5, 2.0**20, ZERO_PROB)
    assert (exact != model).mean() < 1e-3
    np.testing.assert_allclose(exact, model, atol=1)


@pytest.mark.parametrize(
    ("scale", "zero_prob", "killer"),
    [(0.995 * SCALE, ZERO_PROB, law.scale), (SCALE, ZERO_PROB + 0.0005, law.share_of_zero_rows)],
    ids=["scale x 0.995", "zero_prob + 0.0005"],
)
def test_wrong_parameter_is_killed(scale, zero_prob, killer):
    assert law.alarms(certified(MANY, scale, zero_prob), SCALE, ZERO_PROB, [killer]) == {killer.__name__}


KILLERS = {
    "no sqrt of W": "marginal_law",
    "W per entry": "common_w",
    "zero draw per entry": "zeros_not_by_row",
    "float32 noise": "low_bits",
    "chunk repeat": "repeated_rows",
}


@pytest.mark.parametrize("name", law.MUTANTS)
def test_mutant_is_killed(name):
    with Key.fresh() as key:
        ticks = law.draw(key.secret, 100_000, D, SCALE, ZERO_PROB, law.MUTANTS[name])
        found = law.alarms(ticks, SCALE, ZERO_PROB)
        if name == "key reuse":  # one table alone looks right
            with Key.fresh() as other:
                second = law.draw(other.secret, 100_000, D, SCALE, ZERO_PROB, law.MUTANTS[name])
            assert law.repeated(ticks, second) > 99_000
        else:
            assert KILLERS[name] in found
