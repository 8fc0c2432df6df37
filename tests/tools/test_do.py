"""tools/do.py: what it says when the machine lacks something, and when it installs again."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("do", ROOT / "tools" / "do.py")
do = importlib.util.module_from_spec(spec)
spec.loader.exec_module(do)


def test_missing_compiler_is_named(monkeypatch, capsys):
    monkeypatch.setattr(do.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit) as stopped:
        do.check_machine()
    assert stopped.value.code == 1
    assert "no C compiler" in capsys.readouterr().err


def test_missing_headers_are_named(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(do.shutil, "which", lambda name: "/usr/bin/cc")
    monkeypatch.setattr(do.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(SystemExit):
        do.check_machine()
    assert "Python headers are missing" in capsys.readouterr().err


def test_old_python_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(do, "OLDEST", (99, 0))
    with pytest.raises(SystemExit):
        do.check_machine()
    assert "needs Python 99.0" in capsys.readouterr().err


def test_hash_follows_the_sources(monkeypatch, tmp_path):
    for name in ("pyproject.toml", "meson.build", "src/a.c", "zil/a.py", "zil/__pycache__/a.pyc", "docs/a.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    monkeypatch.setattr(do, "ROOT", tmp_path)
    before = do.source_hash()
    (tmp_path / "docs/a.md").write_text("two")
    (tmp_path / "zil/__pycache__/a.pyc").write_text("two")
    assert do.source_hash() == before
    (tmp_path / "src/a.c").write_text("two")
    after = do.source_hash()
    assert after != before
    (tmp_path / "zil/b.py").write_text("")
    assert do.source_hash() != after


def test_installs_only_when_something_changed(monkeypatch, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "zil").mkdir()
    (tmp_path / ".venv").mkdir()
    (tmp_path / "meson.build").write_text("")
    (tmp_path / "pyproject.toml").write_text('[build-system]\nrequires = ["x"]\n')
    monkeypatch.setattr(do, "ROOT", tmp_path)
    monkeypatch.setattr(do, "STAMP", tmp_path / ".venv" / "stamp.json")
    monkeypatch.setattr(do, "check_machine", lambda: None)
    monkeypatch.setattr(do, "make_venv", lambda: None)
    calls = []
    monkeypatch.setattr(do, "must", lambda command, what: calls.append(what))
    do.install("test")
    do.install("test")
    do.install("")
    assert calls == ["installing the build tools", "installing .[test]"]
    (tmp_path / "src" / "a.c").write_text("int x;")
    do.install("")
    assert calls[2:] == ["installing ."]
    do.install("test")
    assert calls[3:] == []
