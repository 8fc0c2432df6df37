"""Ticks from a key: exact integers, exact law, the same for every batch and thread count."""

import copy
import json
import pickle
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import reference

from zil._core import certified
from zil.release import sampler
from zil.release.keystream import Key

KEY = bytes(range(32))
VECTORS = json.loads((Path(__file__).parent.parent / "data" / "certified_vectors.json").read_text())


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_known_answers(case):
    """The stream is part of the format: these integers, made by mpmath from the words of the RFC, never change."""
    ticks = sampler.draw_ticks(
        bytes.fromhex(case["key"]), case["n"], case["scale_over_tick"], case["zero_prob"], first_row=case["first_row"]
    )
    assert ticks.tolist() == case["ticks"]


def test_rows_against_mpmath():
    rng = np.random.default_rng()
    key = rng.bytes(32)
    scales = [2.0**20, 2.0**43, 0.0, 1.25, 2.0**38]
    first = int(rng.integers(2**40))
    got = sampler.draw_ticks(key, 60, scales, 0.25, first_row=first)
    assert got.tolist() == [reference.noise_ticks(key, first + i, scales, 2**62) for i in range(60)]


def test_slow_path_agrees_with_the_fast_one():
    key = np.random.default_rng().bytes(32)
    scales = [2.0**20, 3.7, 2.0**44]
    fast = sampler.draw_ticks(key, 300, scales, 0.5)
    noise = sampler.TickNoise(key, scales, 0.5)
    assert fast.tolist() == [noise.exact(i) for i in range(300)]


@pytest.mark.parametrize("d", [1, 4, 6])
def test_same_integers_for_any_batch_and_thread_count(monkeypatch, d):
    key, n = np.random.default_rng().bytes(32), 3001
    scales = [2.0**42] * d
    whole = sampler.draw_ticks(key, n, scales, 0.1, n_threads=1)
    assert certified.fill(key, 0, 0, np.array(scales), whole.copy(), np.empty(n, np.int64)) > 0, "no slow row met"
    for batch in (1 + n // 7, 64, n):
        monkeypatch.setattr(sampler, "BATCH_ROWS", batch)
        for threads in (1, 2, 8):
            np.testing.assert_array_equal(sampler.draw_ticks(key, n, scales, 0.1, n_threads=threads), whole)
    cuts = [0, 1, 17, 1500, n]
    parts = [sampler.draw_ticks(key, b - a, scales, 0.1, first_row=a) for a, b in pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_keys_of_any_kind():
    with Key(bytearray(KEY)) as key:
        a = sampler.draw_ticks(key, 50, [100.0], 0.1)
        assert key.secret == KEY
    np.testing.assert_array_equal(a, sampler.draw_ticks(bytearray(KEY), 50, [100.0], 0.1))


def test_the_noise_of_a_key_does_not_travel():
    noise = sampler.TickNoise(KEY, [100.0], 0.1)
    for carry in (copy.deepcopy, pickle.dumps):  # a shallow copy shares the key
        with pytest.raises(TypeError, match="neither copied nor pickled"):
            carry(noise)


def test_zero_probability_is_published_as_used():
    assert sampler.dyadic(0.0) == 0
    assert sampler.dyadic(1.0) == 1
    for p in (0.05, 0.1, 2.0**-11, 1 - 2.0**-53):
        assert sampler.dyadic(p) == p
    for p in (1e-5, 3.3e-9, 1e-300, np.nextafter(2.0**-64, 0)):
        used = sampler.dyadic(p)
        assert Fraction(p) - Fraction(1, 2**64) < Fraction(used) <= Fraction(p)


def test_probability_one_makes_zeros():
    assert not sampler.draw_ticks(KEY, 1000, [2.0**30] * 3, 1.0).any()
    assert (sampler.draw_ticks(KEY, 1000, [2.0**30] * 3, 0.0) != 0).all()


def test_scale_is_rounded_up():
    rng = np.random.default_rng()
    for scale, tick in rng.uniform(0.1, 5, (200, 2)).tolist():
        ratio = sampler.scale_in_ticks(scale, tick)
        exact = Fraction(scale) / Fraction(tick)
        assert Fraction(ratio) >= exact
        assert Fraction(float(np.nextafter(ratio, 0))) < exact
    assert sampler.scale_in_ticks(3.0, 0.5) == 6.0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"key": bytes(31)}, ValueError, "32 bytes"),
        ({"n": -1}, ValueError, "n must be at least 0"),
        ({"n": 2.0}, TypeError, "n must be an integer"),
        ({"first_row": 2**48}, ValueError, "2\\*\\*48"),
        ({"scale_over_tick": [1.0, -1.0]}, ValueError, "scale_over_tick"),
        ({"scale_over_tick": [1.0, 2.0**45]}, ValueError, "2\\*\\*44"),
        ({"scale_over_tick": [np.nan]}, ValueError, "finite"),
        ({"scale_over_tick": [[1.0]]}, ValueError, "dimension"),
        ({"zero_prob": 1.1}, ValueError, "zero_prob"),
        ({"zero_prob": float("nan")}, ValueError, "zero_prob"),
        ({"n_threads": 0}, ValueError, "n_threads"),
    ],
)
def test_bad_parameters(change, error, message):
    arguments = {"key": KEY, "n": 4, "scale_over_tick": [1.0], "zero_prob": 0.1} | change
    with pytest.raises(error, match=message):
        sampler.draw_ticks(**arguments)


def test_empty():
    assert sampler.draw_ticks(KEY, 0, [1.0, 2.0], 0.1).shape == (0, 2)
    assert sampler.draw_ticks(KEY, 3, [], 0.1).shape == (3, 0)


def test_a_build_that_computes_something_else_does_not_import():
    """The known answers are checked on import."""
    code = (
        "import sys, zil._core.certified as c\n"
        "real = c.fill\n"
        "def fill(*a):\n"
        "    count = real(*a); a[4][2, 0] += 1; return count\n"
        "c.fill = fill\n"
        "sys.modules.pop('zil.release.sampler', None)  # zil itself has imported it\n"
        "import zil.release.sampler"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "known answers" in done.stderr
