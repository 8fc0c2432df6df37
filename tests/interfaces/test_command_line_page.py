"""Every command of docs/command_line.md runs."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from zil.interfaces import cli

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command_line.md"


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng()
    age, income = rng.uniform(18, 90, 4000), rng.uniform(0, 200_000, 4000)
    spending = 100 + 3 * age + 0.01 * income + rng.normal(scale=50, size=4000)
    table = np.column_stack([age, income, spending])
    np.savetxt("raw.csv", table, delimiter=",", header="age,income,spending", comments="", fmt="%.2f")
    commands = re.findall(r"^    \$ (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(commands) >= 8
    for command in commands:
        line, _, target = command.partition(" > ")
        program, *arguments = shlex.split(line)
        assert program == "zil"
        code = cli.main(arguments)
        out, err = capsys.readouterr()
        # a fit on this much noise may say that it did not converge; nothing else may go wrong
        assert code == 0 or (code == 1 and arguments[0] == "fit" and "ConvergenceWarning" in err), (command, err)
        if target:
            Path(target).write_text(out)
