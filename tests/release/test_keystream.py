"""Keys: fresh, wiped, refused by everything that would carry them away."""

import copy
import os
import pickle

import pytest

from zil.release.keystream import KEY_BYTES, Key


def test_fresh_keys_differ():
    kept = [Key.fresh() for _ in range(1000)]
    keys = {bytes(key.secret) for key in kept}
    assert len(keys) == 1000
    assert all(len(key) == KEY_BYTES for key in keys)


def test_leaving_the_block_wipes_the_callers_buffer_too():
    buffer = bytearray(range(32))
    with Key(buffer) as key:
        assert key.secret is buffer
        assert not key.wiped
    assert buffer == bytes(32)
    assert key.wiped
    with pytest.raises(ValueError, match="wiped"):
        key.secret  # noqa: B018
    key.wipe()


def test_an_error_wipes_as_well():
    buffer = bytearray(range(32))
    with pytest.raises(KeyError), Key(buffer):
        raise KeyError("inside")
    assert buffer == bytes(32)


def test_losing_the_key_wipes_it():
    buffer = bytearray(range(32))
    key = Key(buffer)
    del key
    assert buffer == bytes(32)


@pytest.mark.parametrize(
    "carry",
    [copy.copy, copy.deepcopy, *(lambda key, p=p: pickle.dumps(key, p) for p in range(pickle.HIGHEST_PROTOCOL + 1))],
)
def test_a_key_does_not_travel(carry):
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        carry(Key.fresh())


def test_repr_shows_nothing():
    secret = bytes(range(200, 232))
    key = Key(bytearray(secret))
    for text in (repr(key), str(key), f"{key}"):
        assert text == "<zil key, not shown>"
    assert not hasattr(key, "__dict__")


def test_no_second_source():
    """A failing operating system is an error, never a fallback."""

    def fail(n):
        raise OSError("no entropy")

    patch = pytest.MonkeyPatch()
    with patch.context() as patch:
        patch.setattr(os, "urandom", fail)
        with pytest.raises(OSError, match="no entropy"):
            Key.fresh()
        patch.setattr(os, "urandom", lambda n: b"\0" * (n - 1))
        with pytest.raises(OSError, match="31 random bytes"):
            Key.fresh()


@pytest.mark.parametrize(("secret", "error"), [(bytes(32), TypeError), (bytearray(31), ValueError), ("k", TypeError)])
def test_what_a_key_is_made_of(secret, error):
    with pytest.raises(error):
        Key(secret)
