"""The guide for analysts runs as it stands, in order."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "guide_estimation.md"


def test_examples():
    names = {}
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
            exec(compile(block, str(PAGE), "exec"), names)
    said = output.getvalue()
    assert "Quantile(tau=0.5), method optimal, 20000 rows" in said
    assert "weights of the truncation levels" in said
    assert "1 x box" in said
    assert names["best"].converged
