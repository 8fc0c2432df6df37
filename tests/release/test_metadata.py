"""What is said about a release: the schema that is shipped, its strictness, and the registry form."""

import copy
import json
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import zil
from zil.release import metadata as facts
from zil.release import structure

MECHANISM = zil.calibrate({"a": (0, 1), "b": (0, 10)}, epsilon=1, delta=0.1, zero_prob=0.05, unit="record")
TABLE = pd.DataFrame({"a": [0.1, 0.2], "b": [1, 2], "t": ["x", "y"]})

MECHANISM_RELEASE = MECHANISM.release(TABLE)


def examples(tmp_path):
    yield MECHANISM.release(TABLE).metadata
    yield MECHANISM.release(TABLE, missing={"a": 0, "b": 1}).metadata
    yield MECHANISM.simulate(TABLE, 1, missing=0.5).metadata
    yield zil.Mechanism([(0, 1)], zero_prob=0, scale=1).release(np.array([0.5])).metadata
    yield zil.Mechanism([(0, 10)], zero_prob=0, scale=6, resolution=1).release(np.array([0.5])).metadata
    yield zil.calibrate([(0, 1)], advantage=0.3, zero_prob=0.1, unit="attribute").release([0.5]).metadata
    for ending in ("csv", "parquet"):
        MECHANISM.release(TABLE).save(tmp_path / f"x.{ending}")
        getattr(TABLE, f"to_{ending}")(tmp_path / f"in.{ending}", index=False)
        yield MECHANISM.release_file(tmp_path / f"in.{ending}", tmp_path / f"out.{ending}")
        with pytest.warns(zil.PrivacyWarning):
            yield MECHANISM.release_file(
                tmp_path / f"in.{ending}",
                tmp_path / f"twice.{ending}",
                release_id="twice",
                repeat=True,
            )
        yield zil.load(tmp_path / f"x.{ending}").metadata
    yield json.loads((tmp_path / "x.csv.json").read_text())


def test_every_metadata_fits_the_schema(tmp_path):
    schema = structure.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    for meta in examples(tmp_path):
        check.validate(json.loads(facts.dumps(meta)))
        assert facts.loads(facts.dumps(meta)) == json.loads(facts.dumps(meta))


@pytest.mark.parametrize("word", ["seed", "key", "path", "clipped_rows", "host"])
def test_the_schema_allows_nothing_else(word):
    check = jsonschema.Draft202012Validator(structure.schema())
    meta = json.loads(facts.dumps(MECHANISM.release(TABLE).metadata))
    with pytest.raises(jsonschema.ValidationError):
        check.validate({**meta, word: 1})
    inner = copy.deepcopy(meta)
    inner["columns"][0][word] = 1
    with pytest.raises(jsonschema.ValidationError):
        check.validate(inner)


def test_metadata_is_the_callers_own():
    first = MECHANISM.release(TABLE).metadata
    first["guarantees"]["record"]["sharp"]["advantage"] = 0.0
    assert MECHANISM.release(TABLE).metadata["guarantees"]["record"]["sharp"]["advantage"] > 0


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"format": "zil-release"}', "\xff"])
def test_other_texts_are_refused(text):
    with pytest.raises(zil.SchemaError, match="not the metadata of a zil release"):
        facts.loads(text)
    newer = {**MECHANISM.release(TABLE).metadata, "format_version": 3}
    with pytest.raises(zil.SchemaError, match="of a version that can be read"):
        facts.loads(facts.dumps(newer))


def test_registry_entry(tmp_path):
    text = MECHANISM.release(TABLE).registry_entry(name='Visits: "all"', curator="Office")
    entry = yaml.safe_load(text)
    deployment = entry["deployment"]
    assert set(deployment) == {
        "basic", "dp_variant", "privacy_loss", "deployment_model", "implementation", "administrative"
    }  # fmt: skip
    assert deployment["basic"]["name"] == 'Visits: "all"'
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 0.1}
    assert deployment["privacy_loss"]["privacy_unit"].startswith("record")
    assert deployment["deployment_model"]["model_name"] == "Central"
    assert deployment["privacy_loss"]["number_of_privacy_units"] == 2
    plain = zil.Mechanism({"a": (0, 1)}, zero_prob=0.05, scale=1e7)
    assert stated(plain.release(TABLE).registry_entry()) == {"epsilon": 1.0, "delta": plain.delta(1.0, "record")}
    with pytest.raises(ValueError, match="simulated"):
        MECHANISM.simulate(TABLE).registry_entry()
    twice = next(m for m in examples(tmp_path) if "repeat" in m)
    both = stated(zil.Release(None, twice).registry_entry())
    assert both["epsilon"] == 1.0
    assert both["delta"] > 0.1


SPECIAL = [
    "a\x85b", "a\u2028b\u2029", "\ufeff", "\x00\x07\x1b\x7f\x9f", "\U0001f600 \\ud83d", "a: b # c", "- x",
    "'\"\\\n\t\r",
    "%x", "@x", "`x", "!!python/object:x", "&a *a", "null", "yes", "1e3", "~", "", " ", "\ufffe\uffff", "{[}]",
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_registry_texts_are_read_back_equal(text):
    for part in (text, *SPECIAL):
        entry = yaml.safe_load(MECHANISM_RELEASE.registry_entry(name=part, description=part))
        assert entry["deployment"]["basic"]["name"] == part
        assert entry["deployment"]["basic"]["description"] == part


FILLED = {
    "name": "Visits", "curator": "Office", "curator_type": "Government", "description": "-", "intended_use": "-",
    "region": "-", "sector": "Healthcare", "publication_date": "2026-01-31", "author": "A. B.",
}  # fmt: skip


def registry_faults(text):
    schema = json.loads((Path(__file__).parents[1] / "data" / "registry_schema.json").read_text())["schema"]
    check = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    return {error.json_path.rsplit(".", 1)[-1] for error in check.iter_errors(yaml.safe_load(text))}


def test_registry_entries_pass_the_registrys_own_schema(tmp_path):
    for meta in (m for m in examples(tmp_path) if m["private"]):
        release = zil.Release(None, meta)
        assert registry_faults(release.registry_entry(**FILLED)) == set()
        assert registry_faults(release.registry_entry(**FILLED, model="Local")) == set()
        # what only the publisher knows and did not say is what the registry asks for
        assert registry_faults(release.registry_entry()) == {"data_curator_type", "publication_date"}
    attribute = zil.calibrate([(0, 1)] * 3, advantage=0.3, zero_prob=0.1, unit="attribute").release(np.zeros((5, 3)))
    loss = yaml.safe_load(attribute.registry_entry())["deployment"]["privacy_loss"]
    assert loss["number_of_privacy_units"] == 15


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("curator_type", "Agency", ValueError),
        ("sector", "Retail", ValueError),
        ("model", "Shuffle", ValueError),
        ("publication_date", "31.1.2026", ValueError),
        ("publication_date", "20260131", ValueError),
        ("publication_date", "2026-02-30", ValueError),
        ("name", 3, TypeError),
        ("owner", "Office", TypeError),
    ],
)
def test_registry_values_are_checked(field, value, error):
    with pytest.raises(error, match=field):
        MECHANISM.release(TABLE).registry_entry(**{field: value})


def stated(text):
    return yaml.safe_load(text)["deployment"]["privacy_loss"]["privacy_parameters"]
