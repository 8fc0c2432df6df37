"""The compiled tick sampler: key stream, proved bound, and the same integers everywhere."""

import mpmath as mp
import numpy as np
import pytest
import reference
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from zil._core import certified, probe

KEY = bytes(range(32))
LEVELS = range(probe.best_isa() + 1)


def stream(key, nonce, first, count, isa=-1):
    words = np.empty(count, np.uint64)
    certified.stream(key, nonce, first, words, isa)
    return words


def fill(key, first_row, threshold, scales, n, isa=-1, all_zero=False):
    out, redo = np.empty((n, len(scales)), np.int64), np.empty(n, np.int64)
    count = certified.fill(key, first_row, threshold, np.asarray(scales, float), out, redo, all_zero, isa)
    return out, redo[:count]


def evaluate(words, scales, isa=-1):
    n, d = len(words), len(scales)
    ticks, redo = np.empty((n, d), np.int64), np.empty(n, np.uint8)
    value, bound = np.empty((n, d)), np.empty((n, d))
    certified.evaluate(words, np.asarray(scales, float), ticks, value, bound, redo, isa)
    return ticks, value, bound, redo.astype(bool)


@pytest.mark.parametrize("isa", LEVELS)
def test_block_function_of_rfc_8439(isa):
    """Section 2.3.2: key 00..1f, nonce 00000009 0000004a 00000000, counter 1."""
    words = stream(KEY, 0x4A000000, (0x09000000 << 32 | 1) * 8, 8, isa)
    assert words.tobytes().hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("first", [0, 7, 8 * (2**32 - 3) + 5, 8 * (2**40) + 1])
def test_key_stream_against_cryptography(isa, first):
    rng = np.random.default_rng()
    key, nonce, count = rng.bytes(32), int(rng.integers(2**64, dtype=np.uint64)), 700
    got = stream(key, nonce, first, count, isa)
    expected = []
    for block in range(first // 8, (first + count) // 8 + 1):  # block by block: OpenSSL's counter carries elsewhere
        initial = (block & 0xFFFFFFFF).to_bytes(4, "little") + (block >> 32).to_bytes(4, "little")
        cipher = Cipher(algorithms.ChaCha20(key, initial + nonce.to_bytes(8, "little")), None)
        expected.append(np.frombuffer(cipher.encryptor().update(bytes(64)), np.uint64))
    np.testing.assert_array_equal(got, np.concatenate(expected)[first % 8 :][:count])


def test_key_stream_against_the_words_of_the_rfc():
    assert stream(KEY, certified.level_nonce(3), 8 * 2**33 + 3, 20).tolist() == reference.keystream_words(
        KEY, 3, 8 * 2**33 + 3, 20
    )


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("d", [1, 2, 3, 5, 6, 7, 13])
def test_rows_do_not_depend_on_batches_or_instruction_set(isa, d):
    scales = np.exp2(np.linspace(-2, 40, d))
    whole, redo = fill(KEY, 0, 2**62, scales, 700, 0)
    for first, n in [(0, 700), (1, 1), (3, 200), (127, 130), (500, 200)]:
        part, part_redo = fill(KEY, first, 2**62, scales, n, isa)
        np.testing.assert_array_equal(part, whole[first : first + n])
        np.testing.assert_array_equal(part_redo, redo[(redo >= first) & (redo < first + n)] - first)


def test_a_row_is_its_words():
    """The place of every word, against words read one by one."""
    d, scales = 5, [3.0, 1e6, 0.0, 2.0**20, 7.5]
    width = certified.words_per_row(d)
    assert width == 8
    words = stream(KEY, certified.level_nonce(0), 0, 50 * width).reshape(50, width)
    ticks, _, _, _ = evaluate(words, scales)
    got, _ = fill(KEY, 0, 2**63, scales, 50)
    np.testing.assert_array_equal(got, np.where(words[:, :1] < 2**63, 0, ticks))
    assert (got[:, 2] == 0).all()


def test_probability_one_and_zero():
    assert not fill(KEY, 0, 2**64 - 1, [2.0**20], 100, all_zero=True)[0].any()
    assert fill(KEY, 0, 0, [2.0**20], 100)[0].all()


def violations(words, scales, further, factor=1.0):
    """Rows whose real value is farther from the computed one than ``factor`` times the bound, or rounds elsewhere."""
    ticks, value, bound, redo = evaluate(words, scales)
    bad, decided = 0, 0
    for i in np.flatnonzero(~redo):
        uniforms = [int(w) << 64 | int(f) for w, f in zip(words[i, 1:], further[i, 1:], strict=True)]
        real = reference.laplace_row(uniforms, 128, scales)
        decided += 1
        with mp.workprec(400):
            inside = all(
                abs(mp.mpf(float(v)) - t) <= factor * float(b) for v, t, b in zip(value[i], real, bound[i], strict=True)
            )
            bad += not (inside and [int(mp.nint(t)) for t in real] == ticks[i].tolist())
    return bad, decided


def test_bound_holds_on_edge_biased_words():
    """Against mpmath, with further bits at their extremes too; tools/fuzz_certified.py does ten million."""
    rng = np.random.default_rng()
    scales = [2.0**20, 3.0, 2.0**12, 1.0]
    words = reference.edge_words(rng, (1500, 6))
    further = rng.choice(np.array([0, 2**64 - 1, 2**63, 12345], np.uint64), words.shape)
    bad, decided = violations(words, scales, further)
    assert bad == 0
    assert decided > 700


def test_power_of_the_bound_test():
    """A bound eight times too small is found by ordinary words alone."""
    rng = np.random.default_rng()
    words = rng.integers(0, 2**64, (1500, 6), dtype=np.uint64)
    assert violations(words, [2.0**20, 3.0, 2.0**12, 1.0], words, factor=1 / 8)[0] > 0


def test_ends_of_the_uniforms_are_left_to_the_slow_path():
    """-log 0, -log 1 and their neighbours: the first-order bound says nothing there."""
    ordinary = 0x123456789ABCDEF0
    for end in [0, 1, 2, 2**64 - 1, 2**64 - 2, 2**64 - 1024]:
        for place in (1, 2):
            words = np.full((1, 4), ordinary, np.uint64)
            words[0, place] = end
            assert evaluate(words, [1.0, 1.0])[3].all()


@pytest.mark.parametrize("isa", LEVELS)
def test_evaluation_has_the_same_bits(isa):
    words = reference.edge_words(np.random.default_rng(), (3001, 8))
    scales = np.exp2(np.linspace(0, 44, 6))
    for got, base in zip(evaluate(words, scales, isa), evaluate(words, scales, 0), strict=True):
        assert got.tobytes() == base.tobytes()


def test_share_of_undecided_rows():
    """About 5e-8 of rows at scale 2^20; at 2^36 the share is 2^16 times that.  False alarm below 1e-9 (Poisson)."""
    n = 100_000
    _, redo = fill(np.random.default_rng().bytes(32), 0, 0, [2.0**36] * 6, n)
    assert 0.5 * 0.0028 * n < len(redo) < 2 * 0.0028 * n


def test_shapes_are_checked_before_memory_is_touched():
    out, redo = np.empty((4, 2), np.int64), np.empty(4, np.int64)
    with pytest.raises(ValueError, match="32 bytes"):
        certified.fill(b"short", 0, 0, np.ones(2), out, redo)
    with pytest.raises(ValueError, match="differ in size"):
        certified.fill(KEY, 0, 0, np.ones(3), out, redo)
    with pytest.raises(ValueError, match="differ in size"):
        certified.fill(KEY, 0, 0, np.ones(2), out, redo[:3])
    with pytest.raises(ValueError, match="differ in size"):
        evaluate(np.zeros((2, 3), np.uint64), [1.0])
    with pytest.raises(ValueError, match="32 bytes"):
        stream(KEY + KEY, 0, 0, 4)
    assert certified.fill(KEY, 0, 0, np.ones(2), out[:0], redo) == 0
