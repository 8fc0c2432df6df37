"""The proof script: its constants are the compiled ones, and it fails on a bound that is too small."""

import importlib.util
import struct
from fractions import Fraction
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def certify():
    spec = importlib.util.spec_from_file_location("certify_sampler", ROOT / "tools" / "certify_sampler.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_header_is_what_the_script_proves(certify):
    certify.budget()
    assert certify.emit() + "\n" == (ROOT / "src" / "c" / "certified_tables.h").read_text()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LOG_ERROR", Fraction(7, 2**53)),
        ("ANGLE_ERROR", Fraction(4, 2**53)),
        ("RELATIVE", Fraction(17, 2**53)),
        ("HALF", Fraction(1, 2)),
        ("LOG_TERMS", 8),
        ("TURN_TERMS", 7),
    ],
)
def test_a_smaller_bound_or_a_shorter_series_is_not_proved(certify, monkeypatch, name, value):
    monkeypatch.setattr(certify, name, value)
    with pytest.raises(AssertionError):
        certify.budget()


def test_switch_of_exponent(certify):
    """The split of mantissas is the double whose upper bits the kernel adds around."""
    bits = int.from_bytes(struct.pack(">d", float(certify.SPLIT)), "big")
    assert bits + 0x00095F6200000000 == 0x3FF0000000000000
