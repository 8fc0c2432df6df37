"""The page "Should you publish with zil?": its walk from a table to a signed label runs as it stands."""

import contextlib
import io
import itertools
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "should_you_publish.md"


def test_from_a_table_to_a_label(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(block, str(PAGE), "exec"), {})
    said = output.getvalue()
    assert said.index("No point is the best one") < said.index("under contract") < said.index("NOT FOR PUBLICATION")
    assert "VERDICT: UNDER CONTRACT ONLY" in (tmp_path / "label.html").read_text()


def test_every_table_has_its_columns():
    """A cell that lost its line would break a table."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for above, line in itertools.pairwise(lines):
        if above.startswith("|") and line.startswith("|"):
            assert above.count("|") == line.count("|")
        assert not (line.startswith("|") and not line.endswith("|"))
