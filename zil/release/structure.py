"""Whether metadata have the structure that ``zil/data/release.schema.json`` says.

Design: files must be read where nothing but numpy, scipy and narwhals is installed, so the few words of JSON Schema
that this one schema uses are understood here; the tests compare the answers with those of the jsonschema library.  A
word that is not understood is an error, so the schema cannot grow past this module unseen.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

SILENT = {"$schema", "title", "description", "contentEncoding", "$defs"}


@cache
def _text() -> str:
    return resources.files("zil").joinpath("data", "release.schema.json").read_text("utf-8")


def schema() -> dict[str, Any]:
    """The JSON Schema of the metadata, as shipped."""
    result: dict[str, Any] = json.loads(_text())
    return result


def fault(value: Any) -> str | None:
    """What is wrong with metadata: the place and the rule, never what stands there; None if all is well."""
    whole = schema()
    return _fault(value, whole, whole, "the metadata")


def _number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": _number,
    "integer": lambda value: _number(value) and float(value).is_integer(),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


def _same(value: Any, other: Any) -> bool:
    """Equality of JSON, where true is not 1."""
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _fault(value: Any, rule: Any, whole: dict[str, Any], place: str) -> str | None:
    if rule is True:
        return None
    if rule is False:
        return f"{place} must not be there"
    for word, said in rule.items():
        if word in SILENT:
            continue
        found = WORDS[word](value, said, rule, whole, place)
        if found is not None:
            return found
    return None


def _type(value: Any, said: Any, _rule: Any, _whole: Any, place: str) -> str | None:
    kinds = [said] if isinstance(said, str) else said
    return None if any(TYPES[kind](value) for kind in kinds) else f"{place} must be of type {' or '.join(kinds)}"


def _enum(value: Any, said: Any, _rule: Any, _whole: Any, place: str) -> str | None:
    good = any(_same(value, one) for one in said)
    return None if good else f"{place} must be one of {', '.join(map(json.dumps, said))}"


def _required(value: Any, said: Any, _rule: Any, _whole: Any, place: str) -> str | None:
    lost = [name for name in said if name not in value] if isinstance(value, dict) else []
    return f"{place} must have {lost[0]!r}" if lost else None


def _properties(value: Any, said: Any, _rule: Any, whole: Any, place: str) -> str | None:
    if isinstance(value, dict):
        for name, inner in said.items():
            found = _fault(value[name], inner, whole, f"{place}: {name}") if name in value else None
            if found is not None:
                return found
    return None


def _additional(value: Any, said: Any, rule: Any, whole: Any, place: str) -> str | None:
    if isinstance(value, dict):
        for name in value.keys() - rule.get("properties", {}).keys():
            found = _fault(value[name], said, whole, f"{place}: an entry")
            if found is not None:
                return found
    return None


def _items(value: Any, said: Any, rule: Any, whole: Any, place: str) -> str | None:
    if isinstance(value, list):
        first = len(rule.get("prefixItems", ()))
        for k, entry in enumerate(value[first:], first):
            found = _fault(entry, said, whole, f"{place}: entry {k}")
            if found is not None:
                return found
    return None


def _prefix(value: Any, said: Any, _rule: Any, whole: Any, place: str) -> str | None:
    if isinstance(value, list):
        for k, (entry, inner) in enumerate(zip(value, said, strict=False)):
            found = _fault(entry, inner, whole, f"{place}: entry {k}")
            if found is not None:
                return found
    return None


def _choice(value: Any, said: Any, _rule: Any, whole: Any, place: str) -> str | None:
    good = sum(_fault(value, one, whole, place) is None for one in said)
    return None if good == 1 else f"{place} has none of its allowed forms"


def _any(value: Any, said: Any, _rule: Any, whole: Any, place: str) -> str | None:
    good = any(_fault(value, one, whole, place) is None for one in said)
    return None if good else f"{place} has none of its allowed forms"


def _reference(value: Any, said: Any, _rule: Any, whole: Any, place: str) -> str | None:
    rule: Any = whole
    for step in said.removeprefix("#/").split("/"):
        rule = rule[step]
    return _fault(value, rule, whole, place)


def _bound(kind: Callable[[Any], bool], good: Callable[[Any, Any], bool], words: str) -> Callable[..., str | None]:
    def check(value: Any, said: Any, _rule: Any, _whole: Any, place: str) -> str | None:
        return None if not kind(value) or good(value, said) else f"{place} {words} {said}"

    return check


WORDS: dict[str, Callable[..., str | None]] = {
    "type": _type,
    "const": lambda value, said, rule, whole, place: _enum(value, [said], rule, whole, place),
    "enum": _enum,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
    "prefixItems": _prefix,
    "oneOf": _choice,
    "anyOf": _any,
    "$ref": _reference,
    "minimum": _bound(_number, lambda value, said: value >= said, "must be at least"),
    "maximum": _bound(_number, lambda value, said: value <= said, "must be at most"),
    "exclusiveMinimum": _bound(_number, lambda value, said: value > said, "must be greater than"),
    "exclusiveMaximum": _bound(_number, lambda value, said: value < said, "must be less than"),
    "minItems": _bound(TYPES["array"], lambda value, said: len(value) >= said, "must have at least so many entries:"),
    "maxItems": _bound(TYPES["array"], lambda value, said: len(value) <= said, "must have at most so many entries:"),
    "minLength": _bound(TYPES["string"], lambda value, said: len(value) >= said, "must have a length of at least"),
    "pattern": _bound(TYPES["string"], lambda value, said: re.search(said, value) is not None, "must match"),
}
