"""The guide for data holders runs as it stands, in order, in an empty folder."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "publishing.md"


def test_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
            exec(compile(block, str(PAGE), "exec"), names)
    said = output.getvalue()
    assert said.startswith("0 ages outside")
    assert "About 200 rows (5 %) are published as they are" in said
    assert "refused:" in said
    assert "url_slug" in said
