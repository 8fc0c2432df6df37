"""The digest covers all that is written; what is damaged is said in one line that shows no cell."""

import base64
import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import zil
from zil.release import files, integrity
from zil.release import metadata as facts

MECHANISM = zil.Mechanism({"a": (0, 1), "b": (0, 10)}, zero_prob=0.25, scale=[1.0, 5.0])
CELL = "canary-7391"  # of a column that passes through: no message may show it
FORMAT_1 = Path(__file__).parents[1] / "data" / "format_1"


def table(n=40):
    rng = np.random.default_rng(1)
    kinds = pd.Categorical([CELL, "v"] * (n // 2))
    return pd.DataFrame({"a": rng.random(n), "b": rng.integers(0, 11, n), "kind": kinds, "note": CELL})


def saved(folder, ending, how="save"):
    path = folder / f"out.{ending}"
    if how == "save":
        MECHANISM.release(table()).save(path)
    else:
        source = folder / f"in.{ending}"
        table().to_csv(source, index=False) if ending == "csv" else table().to_parquet(source)
        MECHANISM.release_file(source, path)
    return path


def refused(path):
    with pytest.raises(zil.SchemaError) as caught:
        zil.load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert CELL not in message
    return message


def with_metadata(source, target, change):
    """A Parquet file written again with other metadata, as somebody would who does not know of the digest."""
    arrow = pq.read_table(source)
    text = change(pq.read_metadata(source).metadata[b"zil"])
    pq.write_table(arrow.replace_schema_metadata({**arrow.schema.metadata, b"zil": text}), target)


@pytest.mark.parametrize("how", ["save", "release_file"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_digest_can_be_checked_without_zil(ending, how, tmp_path):
    path = saved(tmp_path, ending, how)
    whole = path.read_bytes() + (files.sidecar(path).read_bytes() if ending == "csv" else b"")
    digest = zil.load(path).metadata["sha256"].encode()
    assert whole.count(digest) == 1
    assert hashlib.sha256(whole.replace(digest, b"0" * 64)).hexdigest().encode() == digest


FOOTER = {
    b'"private": true': b'"private": fals',
    b'"zero_prob": 0.25': b'"zero_prob": 0.05',
    b'"name": "a"': b'"name": "b"',
    b'"scale": 5.0': b'"scale": 1.0',
}


@pytest.mark.parametrize("how", ["save", "release_file"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("old", FOOTER)
def test_the_digest_covers_what_is_said(old, ending, how, tmp_path):
    path = saved(tmp_path, ending, how)
    place = files.sidecar(path) if ending == "csv" else path
    content = place.read_bytes()
    assert old in content
    place.write_bytes(content.replace(old, FOOTER[old], 1))
    assert "was changed after it was written" in refused(path)


def test_metadata_moved_to_another_file(tmp_path):
    with_metadata(saved(tmp_path, "parquet"), tmp_path / "again.parquet", lambda text: text)
    assert "was changed after it was written" in refused(tmp_path / "again.parquet")


def test_the_digest_covers_the_schema(tmp_path):
    """A column renamed in the Parquet footer, or two exchanged."""
    path = saved(tmp_path, "parquet")
    content = path.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little")
    head, foot = content[: -8 - footer], content[-8 - footer :]
    changed = foot.replace(b"\x04note", b"\x04mote")
    assert changed != foot
    path.write_bytes(head + changed)
    assert "was changed after it was written" in refused(path)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_byte_can_change(ending, tmp_path, data):
    """Every byte of either file counts, but for what reads as the same digest."""
    path = tmp_path / f"out.{ending}"
    if not path.exists():
        saved(tmp_path, ending)
    place = files.sidecar(path) if ending == "csv" and data.draw(st.booleans()) else path
    content = place.read_bytes()
    k, bit = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(0, 7))
    try:
        place.write_bytes(content[:k] + bytes([content[k] ^ (1 << bit)]) + content[k + 1 :])
        refused(path)
        place.write_bytes(content[:k])
        refused(path)
    finally:
        place.write_bytes(content)
    assert zil.load(path).private


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_number_of_rows_is_compared(ending, tmp_path):
    release = MECHANISM.release(table())
    for count in (39, 41, 10**15):
        false = zil.Release(release.data, {**release.metadata, "n_rows": count})
        with pytest.raises(zil.SchemaError, match=f"the table has 40 rows and its metadata say {count}"):
            false.save(tmp_path / f"x.{ending}")
        assert list(tmp_path.iterdir()) == []


def test_a_false_number_of_rows_with_a_right_digest_is_refused(tmp_path):
    """The digest is no authentication: who changes the file can renew it, and then the rows are counted."""
    path = saved(tmp_path, "csv")
    beside = files.sidecar(path)
    digest = zil.load(path).metadata["sha256"]
    text = beside.read_text().replace('"n_rows": 40', '"n_rows": 41')
    blank = text.replace(digest, integrity.BLANK).encode()
    renewed = hashlib.sha256(path.read_bytes() + blank).hexdigest()
    beside.write_bytes(blank.replace(integrity.BLANK.encode(), renewed.encode()))
    assert "it has 40 rows and its metadata say 41" in refused(path)


def resealed(path, change):
    """Metadata beside a CSV file changed, with a digest that fits."""
    beside = files.sidecar(path)
    described = json.loads(beside.read_bytes())
    described = {key: value for key, value in change(described).items() if key != "sha256"}
    blank = json.dumps({**described, "sha256": integrity.BLANK}, indent=2).encode()
    digest = hashlib.sha256(path.read_bytes() + blank).hexdigest().encode()
    beside.write_bytes(blank.replace(integrity.BLANK.encode(), digest))


WRONG = {
    "columns": [None, [], {}, "a", [{}], [{"name": "a"}], 3, [None]],
    "zero_prob": [None, "x", 2, -1, True, 10**400, [0.1]],
    "n_rows": [None, "40", -1, 40.5, True, 10**300],
    "names": [None, 5, [None, {}], [[]]],
    "table": [5, []],
    "arrow_schema": [5, "", "????", base64.b64encode(b"x" * 100).decode()],
    "guarantees": [None, {}, {"attribute": {}, "record": {}}],
    "policies": [None, {"missing": CELL}],
    "private": [None, 1, "yes"],
    "shift": [{}, {"attribute": CELL, "record": 1}],
}


@pytest.mark.parametrize("key", WRONG)
def test_metadata_of_wrong_kinds(key, tmp_path):
    path = saved(tmp_path, "csv")
    good = files.sidecar(path).read_bytes()
    for value in WRONG[key]:
        if key == "n_rows" and value is None:
            continue
        resealed(path, lambda described, value=value: {**described, key: value})
        refused(path)
        files.sidecar(path).write_bytes(good)
    resealed(path, lambda described: {**described, CELL: 1})
    refused(path)


DAMAGED = [
    b"", b"{", b"null", b"[" * 100_000, b'{"a":' * 100_000, b"1" * 10_000, b"\xff\xfe\x00", b"\x00" * 100,
    b'{"format": "zil-release", "format_version": 2}', b'{"format": "zil-release", "format_version": 1e999}',
    b'{"format": "zil-release", "format_version": {}}', b'{"format": ["zil-release"]}', b'{"format": NaN}',
]  # fmt: skip


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_metadata_that_are_none(text, tmp_path):
    path = saved(tmp_path, "csv")
    files.sidecar(path).write_bytes(text)
    refused(path)
    source = saved(tmp_path, "parquet")
    with_metadata(source, tmp_path / "again.parquet", lambda _: text)
    refused(tmp_path / "again.parquet")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 4000), junk=st.binary(max_size=40))
@example(cut=10, junk=b"")
def test_truncated_metadata(tmp_path, cut, junk):
    path = tmp_path / "out.parquet"
    if not path.exists():
        saved(tmp_path, "parquet")
    with_metadata(path, tmp_path / "again.parquet", lambda text: text[:cut] + junk)
    refused(tmp_path / "again.parquet")


def test_a_footer_that_is_no_footer(tmp_path):
    """pyarrow answers with an OSError of its own."""
    path = tmp_path / "x.parquet"
    for content in (b"PAR1" + b"\xff" * 40 + (40).to_bytes(4, "little") + b"PAR1", b"PAR1", b"", b"PAR1" * 3):
        path.write_bytes(content)
        assert "not a Parquet file, or a damaged one" in refused(path)
        with pytest.raises(zil.SchemaError, match="not a Parquet file, or a damaged one"):
            zil.fit("squared", path, y="a")


def test_a_text_in_the_table_that_looks_like_a_digest(tmp_path):
    """Statistics in a Parquet footer hold entries of the columns that pass through."""
    frame = table().assign(note=f'"sha256": "{integrity.BLANK}"', kind=f'"sha256": "{"a" * 64}"')
    for ending in ("parquet", "csv"):
        MECHANISM.release(frame).save(tmp_path / f"x.{ending}")
        assert zil.load(tmp_path / f"x.{ending}").data["note"].tolist() == frame["note"].tolist()


@pytest.mark.parametrize("name", ["table.parquet", "table.csv", "array.csv", "file.csv", "file.parquet"])
def test_files_of_format_1_stay_readable(name, tmp_path):
    release = zil.load(FORMAT_1 / name)
    assert release.metadata["format_version"] == 1
    assert release.report()
    if name.startswith("table"):
        assert release.data["kind"].tolist() == ["u", "v", "u"]
        assert release.data["id"].tolist() == ["01", None, ""] or release.data["id"].isna().tolist() == [0, 1, 0]
    for part in FORMAT_1.glob(f"{name}*"):
        shutil.copy(part, tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])
    assert "was changed after it was written" in refused(tmp_path / name)


def test_what_a_digest_is_called_in_the_schema():
    described = facts.loads((FORMAT_1 / "array.csv.json").read_bytes())
    assert re.fullmatch("[0-9a-f]{64}", described["sha256"])
    assert "sha256_bytes" in described


def test_the_mark_that_pandas_keeps(tmp_path):
    path = saved(tmp_path, "parquet", "release_file")
    assert pd.read_parquet(path).attrs == {"zil": integrity.MARK}
    assert zil.load(path).data.attrs == {}
    assert integrity.is_marked({b"zil": b""})
    for other in (None, {}, pa.int8(), *({b"PANDAS_ATTRS": text} for text in (b"[", b"3", b'{"a": 1}'))):
        assert not integrity.is_marked(other)
