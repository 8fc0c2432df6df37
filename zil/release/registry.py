"""A release as an entry of the differential privacy deployments registry (YAML).

Names and allowed values are those of the registry's own schema (github.com/opendp/deployments-registry-data,
``schemas/deployments-schema.yaml``, commit 057e5d8; ``tests/data/registry_schema.json`` has what is checked).
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from typing import Any

from zil import _validate

FIELDS = (
    "name", "curator", "curator_type", "description", "intended_use", "region", "sector", "publication_date", "model",
    "author",
)  # fmt: skip
CHOICES = {
    "curator_type": ("Government", "Industry", "Nonprofit"),
    "sector": ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
    "model": ("Central", "Local"),
}


# a pair of surrogates; a backslash that is itself escaped is passed over
_ESCAPED = re.compile(r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")


def _yaml(value: Any, indent: int = 0) -> str:
    """Mappings, lists and scalars; every text is quoted as JSON does, which YAML reads the same."""
    pad = "  " * indent
    if isinstance(value, dict):
        lines = []
        for key, entry in value.items():
            nested = isinstance(entry, (dict, list)) and len(entry) > 0
            lines.append(f"{pad}{key}:\n{_yaml(entry, indent + 1)}" if nested else f"{pad}{key}: {_yaml(entry)}")
        return "\n".join(lines)
    if isinstance(value, list) and value:
        return "\n".join(
            f"{pad}-\n{_yaml(entry, indent + 1)}" if isinstance(entry, dict) else f"{pad}- {_yaml(entry)}"
            for entry in value
        )
    if isinstance(value, float):
        text = repr(value)
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    # ASCII alone: some characters that JSON leaves as they are end a line in YAML (U+0085, U+2028), or are not allowed
    return _ESCAPED.sub(_one_escape, json.dumps(value))


def _one_escape(pair: re.Match[str]) -> str:
    """A character beyond U+FFFF, which JSON writes as two and YAML as one."""
    text = pair.group()
    return f"\\U{ord(json.loads(chr(34) + text + chr(34))):08x}" if text.startswith("\\u") else text


def _stated(metadata: dict[str, Any]) -> tuple[str, float, float]:
    """Unit, epsilon and delta: the calibration target, else the record level at epsilon 1."""
    target = metadata["target"] or {}
    unit = target.get("unit", "record")
    if "epsilon" in target:
        return unit, float(target["epsilon"]), float(target["delta"])
    points = metadata["guarantees"][unit]["sharp"]["epsilon_delta"]
    epsilon, delta = next(point for point in points if point[0] == 1.0)
    return unit, epsilon, delta


def _checked(basic: Mapping[str, str]) -> dict[str, str]:
    """What the publisher says, with every field: "" where nothing is said."""
    for name, value in basic.items():
        if name not in FIELDS:
            raise TypeError(f"a registry entry has no field {name!r}; there are {', '.join(FIELDS)}")
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a text, got {type(value).__name__}")
        if name in CHOICES:
            _validate.choice(name, value, CHOICES[name])
    date = basic.get("publication_date")
    if date is not None:
        try:
            good = datetime.date.fromisoformat(date).isoformat() == date
        except ValueError:
            good = False
        if not good:
            raise ValueError(f"publication_date must be a day as YYYY-MM-DD, got {date!r}")
    return {**dict.fromkeys(FIELDS, ""), **basic}


TRUST = {
    "Central": "Who holds the table sees all rows and noises each by itself; who reads it is not trusted.",
    "Local": "Each person noises the own row before it leaves; nobody else is trusted.",
}


def entry(metadata: dict[str, Any], **basic: str) -> str:
    """YAML text; what only the publisher knows comes from ``basic`` (`FIELDS`) or is left empty.

    Required fields that are empty do not pass the registry's check: they are for the publisher to fill in.

    Raises
    ------
    TypeError, ValueError
        An unknown field, a value that the registry does not allow, a date that is none.
    """
    said = _checked(basic)
    model = said["model"] or "Central"  # in the registry's words "Local" is where the curator never sees the rows
    unit, epsilon, delta = _stated(metadata)
    names = ", ".join(str(column["name"]) for column in metadata["columns"])
    scales = "; ".join(
        f"{c['name']}: bounds {c['lower']:g} to {c['upper']:g}, scale {c['scale']:.6g}, tick {c['tick']:.6g}"
        for c in metadata["columns"]
    )
    what = "one entry of a row" if unit == "attribute" else "one row"
    others = ", ".join(f"({e:g}, {d:.6g})" for e, d in metadata["guarantees"][unit]["sharp"]["epsilon_delta"])
    composition = "None: each row is released once."
    if "repeat" in metadata:
        count = metadata["repeat"]["releases_of_these_rows"]
        points = metadata["repeat"]["composed"][unit]["epsilon_delta"]
        epsilon, delta = next(point for point in points if point[0] == 1.0)
        composition = f"{count} releases of the same rows; the parameters stated are those of all together."
    content = {
        "url_slug": f"zil-{metadata['release_id']}",
        "deployment": {
            "basic": {
                "name": said["name"],
                "data_curators": [{"data_curator_name": said["curator"], "data_curator_type": said["curator_type"]}],
                "description": said["description"],
                "intended_use": said["intended_use"],
                "data_product_type": "Dataset",
                "data_product_region": said["region"],
                **({"data_product_sector": said["sector"]} if said["sector"] else {}),
                "publication_date": said["publication_date"],
            },
            "dp_variant": {
                "variant_name": "Approximate DP",
                "data_domain": f"Numeric table with public bounds; noised columns {names}.",
                "unprotected_quantities": "Columns that are not noised, and the number of rows.",
            },
            "privacy_loss": {
                "privacy_unit": f"{unit} ({what} changes)",
                "privacy_unit_details": f"shift c = {metadata['shift'][unit]:.6g} in units of the noise",
                "number_of_privacy_units": metadata["n_rows"]
                * (len(metadata["columns"]) if unit == "attribute" else 1),
                "privacy_parameters": {"epsilon": epsilon, "delta": delta},
                "privacy_parameters_details": (
                    f"delta includes the probability {metadata['zero_prob']:g} that a row is published unchanged "
                    f"({metadata['expected_unchanged_rows']:g} of {metadata['n_rows']} rows expected). "
                    f"(epsilon, delta) of one release: {others}"
                ),
            },
            "deployment_model": {
                "model_name": model,
                "model_name_details": "A local randomiser: no row's noise depends on another row.",
                "trust_assumptions": TRUST[model],
                "actors": "",
                "release_type": "Many releases" if "repeat" in metadata else "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "Clipped to public bounds, moved to public ticks.",
                "mechanisms": f"{metadata['mechanism']}, zil {metadata['version']}. {scales}",
                "composition": composition,
                "post_processing": "",
                "justification": "Noise is exactly rounded, so the numerical delta is 0.",
                "utility": "",
                "additional_information": "",
            },
            "administrative": {"status": "Draft", "registry_authors": [said["author"]], "tier": 3},
        },
    }
    return _yaml(content) + "\n"
