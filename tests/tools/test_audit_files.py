"""The audit's lines about files hold, and each of its controls loses."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location(
    "audit_files", Path(__file__).resolve().parents[2] / "tools" / "audit_files.py"
)
audit_files = importlib.util.module_from_spec(spec)
spec.loader.exec_module(audit_files)


@pytest.mark.parametrize("section", ["permissions", "links"])
def test_lines_hold(section):
    lines = list(getattr(audit_files, section)())
    assert len(lines) >= 3
    assert [line for line in lines if line[3] is not True] == []
    assert any("naive" in said for _, _, said, _ in lines)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_source_that_changes_in_the_second_reading(ending):
    """Step 6 is after the first batch of the copy; tools/audit.py tries all steps."""
    found, steps, published = audit_files._raced(ending, "in place", 6, audit_files._safe)
    assert found == 0
    assert steps > 6
    assert published


def test_the_control_repeats_its_noise():
    assert audit_files._raced("csv", "in place", 1, audit_files._keyed)[0] > 100


def test_ids():
    assert audit_files._known("101", "101.0")
    assert not audit_files._known("101", "102")
