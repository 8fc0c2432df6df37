"""The guide for data holders runs as it stands, in order, in an empty folder."""

import contextlib
import hashlib
import io
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import zil

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


@pytest.mark.skipif(shutil.which("ssh-keygen") is None or shutil.which("sh") is None, reason="OpenSSH is not installed")
def test_a_signature_finds_what_the_digest_cannot(tmp_path):
    """The commands of the page: the signature holds, and not for a file that somebody forged with a new digest."""
    once, sign, check = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)

    def shell(commands):
        return subprocess.run(["sh", "-e", "-c", commands], cwd=tmp_path, capture_output=True, timeout=60).returncode

    path = tmp_path / "published.parquet"
    mechanism = zil.Mechanism({"a": (0, 1)}, zero_prob=0.5, scale=1.0)
    mechanism.release(pd.DataFrame({"a": [0.5, 0.25]})).save(path)
    assert shell(once) == 0
    assert shell(sign) == 0
    assert shell(check) == 0
    raw = path.read_bytes()
    digest = zil.load(path).metadata["sha256"].encode()
    forged = raw.replace(digest, b"0" * 64).replace(b'"zero_prob": 0.5', b'"zero_prob": 0.9')
    path.write_bytes(forged.replace(b"0" * 64, hashlib.sha256(forged).hexdigest().encode()))
    assert zil.load(path).metadata["zero_prob"] == 0.9  # a digest is no authentication
    assert shell(check) != 0
    path.write_bytes(raw)
    assert shell(check) == 0
