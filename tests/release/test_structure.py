"""The checker of metadata agrees with the jsonschema library."""

import copy
import json

import jsonschema
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zil
from zil.release import metadata as facts
from zil.release import structure

MECHANISM = zil.calibrate({"a": (0, 1), "b": (0, 10)}, epsilon=1, delta=0.1, zero_prob=0.05, unit="record")
RELEASE = MECHANISM.release(pd.DataFrame({"a": [0.1], "b": [1]}), missing={"a": 0, "b": 1})
META = json.loads(facts.dumps(RELEASE.metadata))
REPEAT = {
    "releases_of_these_rows": 2,
    "composed": {unit: META["guarantees"][unit]["sharp"] for unit in ("attribute", "record")},
}
WHOLE = {**META, "names": ["a", 1, None], "sha256": "0" * 64, "sha256_bytes": 3, "repeat": REPEAT}
CHECK = jsonschema.Draft202012Validator(structure.schema())
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5), st.sampled_from(["record", "clip", "0" * 64, [], {}, [[1.0, 0.5]], ["a"], {"a": 1.0}]),
)  # fmt: skip


def places(value, path=()):
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from places(entry, (*path, key))


PLACES = list(places(WHOLE))


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(PLACES), VALUES, st.sampled_from(["set", "drop", "add"]))
def test_agreement_with_jsonschema(path, value, how):
    """Some place of good metadata is set to something else, taken out, or gets a neighbour."""
    meta = copy.deepcopy(WHOLE)
    if path:
        inner = meta
        for key in path[:-1]:
            inner = inner[key]
        if how == "set":
            inner[path[-1]] = value
        elif how == "drop":
            del inner[path[-1]]
        elif isinstance(inner, dict):
            inner["more"] = value
        else:
            inner.append(value)
    else:
        meta = value
    assert (structure.fault(meta) is None) == CHECK.is_valid(meta)


def test_every_word_of_the_schema_is_understood():
    def words(rule):
        if isinstance(rule, dict):
            for word, said in rule.items():
                if word in ("properties", "$defs"):
                    for inner in said.values():
                        yield from words(inner)
                else:
                    yield word
                    parts = said if isinstance(said, list) else [said]
                    for inner in parts if word not in ("enum", "required", "const", "type") else ():
                        yield from words(inner)

    assert set(words(structure.schema())) <= structure.WORDS.keys() | structure.SILENT


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**400, True])
def test_numbers_are_finite(value):
    assert structure.fault({**META, "zero_prob": value})
    assert structure.fault({**META, "n_rows": value})


def test_a_fault_says_where_and_shows_no_value():
    wrong = copy.deepcopy(META)
    wrong["columns"][1]["tick"] = "canary"
    said = structure.fault(wrong)
    assert said == "the metadata: columns: entry 1: tick must be of type number"
    assert "must have 'zero_prob'" in structure.fault({k: v for k, v in META.items() if k != "zero_prob"})
    assert "canary" not in structure.fault({**META, "canary": 1})
