"""Streams, draws and noise kernels against the reference; the same bytes however they are called."""

import json
from pathlib import Path

import numpy as np
import pytest
import reference
from scipy import stats

from zil._core import probe, sampling
from zil._random import resolve_key
from zil._threads import run_chunks

ISAS = range(probe.best_isa() + 1)
FROZEN = json.loads((Path(__file__).parents[1] / "data" / "streams.json").read_text())["streams"]


def key_of(*words):
    return np.array(words, dtype=np.uint64)


def fresh_key():
    return resolve_key(None)


def words_of(key, domain, chunk, n, isa=-1):
    out = np.empty(n, dtype=np.uint64)
    sampling.stream_words(key, domain, chunk, out, isa)
    return out


def add(key, n, d, zero_prob=0.2, scale=None, factor=None, x=None, out=None, first_row=0, isa=-1, threads=1):
    out = np.empty((n, d)) if out is None else out
    scale = np.ones(d) if scale is None else scale
    first, last = first_row // sampling.CHUNK, -(-(first_row + n) // sampling.CHUNK)

    def task(a, b):
        sampling.add_noise(key, 1, zero_prob, scale, factor, x, out, first_row, first + a, first + b, isa)

    run_chunks(task, last - first, threads)
    return out


def test_reference_block_is_the_rfc_8439_example():
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
    start += [int.from_bytes(bytes(range(4 * k, 4 * k + 4)), "little") for k in range(8)]
    start += [1, 0x09000000, 0x4A000000, 0]
    out = reference.chacha20_block(start)
    assert out[:4] == [0xE4E7F110, 0x15593BD1, 0x1FDD0F50, 0xC47120A3]
    assert out[-1] == 0x4E3C50A2


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", FROZEN, ids=lambda case: f"domain{case['domain']}-chunk{case['chunk']}")
def test_streams_are_frozen(case, isa):
    key = key_of(*(int(k, 16) for k in case["key"]))
    words = words_of(key, case["domain"], case["chunk"], 1024, isa)
    assert [f"{w:016x}" for w in words[:16]] == case["first"]
    assert [f"{w:016x}" for w in words[1016:]] == case["words_1016_1023"]


@pytest.mark.parametrize("isa", ISAS)
def test_stream_of_any_key_is_the_reference(isa):
    key = fresh_key()
    assert words_of(key, 9, 77, 64, isa).tolist() == reference.stream_words(key, 9, 77, 64)


def test_streams_of_other_keys_domains_and_chunks_are_unrelated():
    """No common word and no correlation (false alarm below 1e-9: 16 pairs, 6.5 sigma)."""
    key = fresh_key()
    other = key.copy()
    other[3] ^= np.uint64(1)
    n = 1 << 14
    streams = [words_of(key, 1, 0, n), words_of(key, 1, 1, n), words_of(key, 2, 0, n), words_of(other, 1, 0, n)]
    assert len(np.unique(np.concatenate(streams))) > 4 * n - 3
    u = np.array([reference.unit(s) for s in streams])
    corr = np.corrcoef(u) - np.eye(4)
    assert np.abs(corr).max() < 6.5 / np.sqrt(n)


def test_words_are_uniform():
    """Each of the 64 bits, and the top and low bytes (false alarm below 1e-8)."""
    words = words_of(fresh_key(), 1, 0, 1 << 17)
    n = len(words)
    bits = np.array([int((words >> np.uint64(k) & np.uint64(1)).sum()) for k in range(64)])
    assert np.abs(bits - n / 2).max() < 6.8 * np.sqrt(n) / 2
    for shift in (0, 56):
        counts = np.bincount((words >> np.uint64(shift) & np.uint64(255)).astype(int), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-9


@pytest.mark.parametrize("isa", ISAS)
def test_draws_from_words_are_the_reference(isa):
    words = words_of(fresh_key(), 1, 3, 7 * 64)
    e = np.empty(256)
    sampling.exponential(words, e, isa)
    np.testing.assert_allclose(e, reference.exponential(words), rtol=1e-13)
    for shape in (1, 2, 7, 40):
        some = words_of(fresh_key(), 1, 3, 8 * shape)
        gamma = np.empty(8)
        sampling.gamma(some, gamma, isa)
        truth = -np.log(reference.unit(some).reshape(shape, 8)).sum(axis=0)
        np.testing.assert_allclose(gamma, truth, rtol=1e-13)


@pytest.mark.parametrize("word", [0, 2**64 - 1, 2**63, 2**12 - 1])
def test_extreme_words_give_finite_draws(word):
    """All-zero and all-one bits: no log(0), no sqrt of a negative, no nan."""
    words = np.full(7 * 8, word, dtype=np.uint64)
    e, gamma = np.empty(32), np.empty(8)
    sampling.exponential(words, e)
    sampling.gamma(words, gamma)
    assert np.isfinite(e).all()
    assert (e >= 0).all()
    assert np.isfinite(gamma).all()
    assert (gamma >= 0).all()
    c, s = np.empty(8), np.empty(8)
    sampling.pairs(e[:8], words[:8], c, s)
    np.testing.assert_allclose(c**2 + s**2, 2 * e[:8], rtol=1e-14, atol=1e-300)
    top = -np.log(2.0**-52)
    expected = {0: 0.0, 2**12 - 1: 0.0, 2**64 - 1: 7 * top, 2**63: 7 * np.log(2)}[word]
    np.testing.assert_allclose(gamma, expected, rtol=1e-14)


def test_angles_are_uniform():
    """Kolmogorov-Smirnov on the angle, and both coordinates of one point (false alarm 2e-9)."""
    words = words_of(fresh_key(), 1, 5, 1 << 16)
    c, s = np.empty(len(words)), np.empty(len(words))
    sampling.pairs(np.full(len(words), 0.5), words, c, s)
    turn = np.arctan2(s, c) / (2 * np.pi) % 1
    assert stats.kstest(turn, "uniform").pvalue > 1e-9
    assert stats.kstest(turn[words % 2 == 0] * 2 % 1, "uniform").pvalue < 1e-9  # power: half of the circle is missing
    e_c, e_s = reference.angle(words[:500])
    np.testing.assert_allclose(c[:500], e_c, atol=2e-15)
    np.testing.assert_allclose(s[:500], e_s, atol=2e-15)


def test_noise_is_frozen():
    """One seed, one table: the bytes are part of what a seed promises (numpy plays no part in them)."""
    frozen = json.loads((Path(__file__).parents[1] / "data" / "noise.json").read_text())
    key = key_of(1, 2, 3, 4)
    for d, rows in frozen["rows"].items():
        got = add(key, sampling.CHUNK + 2, int(d), 0.25)[[0, 1, 2, 3, -1]]
        assert [[v.hex() for v in row] for row in got.tolist()] == rows


class FixedBits:
    """A bit generator that returns one value for ever, through numpy's C interface."""

    def __init__(self, word):
        import ctypes
        import threading

        self.lock = threading.Lock()
        self._next = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(lambda state: word)
        entry = ctypes.cast(self._next, ctypes.c_void_p).value
        self._struct = (ctypes.c_void_p * 5)(None, entry, entry, entry, entry)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self._name = b"BitGenerator"
        self.capsule = make(ctypes.addressof(self._struct), self._name, None)


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_a_constant_bit_generator_gives_finite_noise(word):
    key = resolve_key(FixedBits(word))
    assert key.tolist() == [word] * 4
    assert np.isfinite(add(key, 1000, 3)).all()


@pytest.mark.parametrize("d", [1, 2, 3, 6, 7, 8, 17])
def test_noise_is_the_reference(d):
    key = fresh_key()
    rows = 128 if d <= 16 else 32
    pairs = (d + 1) // 2
    words = reference.stream_words(key, 1, 0, (1 + pairs) * rows * 11 // 4)
    expected = reference.noise_block(words, d, rows, 0.3)
    scale = np.linspace(0.5, 2, d)
    got = add(key, rows, d, 0.3, scale)
    np.testing.assert_allclose(got, expected * scale, rtol=1e-12, atol=1e-13)
    lower = np.tril(np.random.default_rng().normal(size=(d, d)))
    mixed = add(key, rows, d, 0.3, scale, lower)
    np.testing.assert_allclose(mixed, (expected * scale) @ lower.T, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6, 7, 8, 20])
def test_same_bytes_for_threads_and_instruction_sets(d):
    n = 2 * sampling.CHUNK + 1234
    key = fresh_key()
    lower = np.tril(np.random.default_rng().normal(size=(d, d)))
    for factor in (None, lower):
        expected = add(key, n, d, factor=factor, isa=0).tobytes()
        for isa in ISAS:
            assert add(key, n, d, factor=factor, isa=isa).tobytes() == expected
        for threads in (2, 3, 8):
            assert add(key, n, d, factor=factor, threads=threads).tobytes() == expected


def test_rows_do_not_depend_on_how_many_are_asked():
    key = fresh_key()
    n = 2 * sampling.CHUNK + 77
    whole = add(key, n, 3)
    for m in (1, 100, 128, 129, sampling.CHUNK, sampling.CHUNK + 1):
        assert add(key, m, 3).tobytes() == whole[:m].tobytes()
    for start in (1, 127, 128, 4095, 4096, 4100, n - 1):
        part = add(key, n - start, 3, first_row=start)
        assert part.tobytes() == whole[start:].tobytes()
    assert add(key, 0, 3).shape == (0, 3)


def test_chunks_and_blocks_are_not_repeated():
    """A repeated chunk or block would show equal rows."""
    noise = add(fresh_key(), 3 * sampling.CHUNK, 2, 0.0)
    assert len(np.unique(noise[:, 0])) == len(noise)


@pytest.mark.parametrize("d", [1, 6, 9])
def test_adding_in_place_and_out_of_place_agree(d):
    key = fresh_key()
    n = sampling.CHUNK + 500
    x = np.random.default_rng().normal(size=(n, d))
    noise = add(key, n, d)
    expected = x + noise
    assert add(key, n, d, x=x).tobytes() == expected.tobytes()
    same = x.copy()
    add(key, n, d, x=same, out=same)
    assert same.tobytes() == expected.tobytes()


def test_zero_probability_ends():
    key = fresh_key()
    assert not add(key, 5000, 2, 1.0).any()
    assert add(key, 5000, 2, 0.0).all()
    # the zero draw only masks: rows that stay are the same noise
    some, none = add(key, 5000, 2, 0.5), add(key, 5000, 2, 0.0)
    kept = some[:, 0] != 0
    assert (some[kept] == none[kept]).all()


def test_zero_scale_leaves_a_column_alone():
    x = np.random.default_rng().normal(size=(1000, 3))
    out = add(fresh_key(), 1000, 3, x=x, scale=np.array([1.0, 0.0, 2.0]))
    assert (out[:, 1] == x[:, 1]).all()
    assert (out[:, 0] != x[:, 0]).mean() > 0.5


def test_shapes_are_checked():
    key = fresh_key()
    good = {"scale": np.ones(2), "factor": None, "x": None}
    for change in ({"scale": np.ones(3)}, {"factor": np.ones((2, 3))}, {"x": np.ones((9, 2))}):
        args = good | change
        with pytest.raises(ValueError, match=r"must|differ"):
            sampling.add_noise(key, 1, 0.1, args["scale"], args["factor"], args["x"], np.empty((5, 2)), 0, 0, 1)
    with pytest.raises(ValueError, match="key"):
        sampling.add_noise(key[:3].copy(), 1, 0.1, np.ones(2), None, None, np.empty((5, 2)), 0, 0, 1)


class TestKey:
    def test_none_is_fresh(self):
        assert resolve_key(None).tolist() != resolve_key(None).tolist()

    def test_seed_kinds_agree(self):
        key = resolve_key(5).tolist()
        assert resolve_key(np.int64(5)).tolist() == key
        assert resolve_key(np.random.SeedSequence(5)).tolist() == key
        assert resolve_key(np.random.default_rng(5)).tolist() == key
        assert resolve_key(np.random.PCG64(5)).tolist() == key
        assert np.random.PCG64(5).random_raw(4).tolist() == key

    @pytest.mark.parametrize("kind", [np.random.PCG64DXSM, np.random.SFC64, np.random.Philox, np.random.MT19937])
    def test_generator_moves_on(self, kind):
        rng = np.random.Generator(kind(1))
        assert resolve_key(rng).tolist() != resolve_key(rng).tolist()

    @pytest.mark.parametrize("bad", [True, "7", 1.5, b"x", object(), np.float64(2)])
    def test_bad_kinds(self, bad):
        with pytest.raises(TypeError, match="rng must be"):
            resolve_key(bad)

    def test_negative_seed(self):
        with pytest.raises(ValueError, match="non-negative"):
            resolve_key(-1)
