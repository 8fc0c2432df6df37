"""The examples of the README run as they stand, in order, in an empty folder."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def blocks():
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def test_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    provider, analyst = blocks()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(provider, "README: data holder", "exec"), {})
        exec(compile(analyst, "README: analyst", "exec"), {})
    said = output.getvalue()
    assert said.startswith("PRIVACY LABEL: age (5,000 rows)")
    assert "About 750 rows (15 %) are published as they are" in said
    assert "method optimal" in said
    assert (tmp_path / "published.parquet").is_file()


@pytest.mark.parametrize("command", ["demo", "test"])
def test_it_opens_with_the_two_commands(command):
    assert f"python3 tools/do.py {command}" in (ROOT / "README.md").read_text(encoding="utf-8")[:400]
