"""A release as an entry of the differential privacy deployments registry (YAML)."""

from __future__ import annotations

import json
from typing import Any


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
    return json.dumps(value, ensure_ascii=False)


def _stated(metadata: dict[str, Any]) -> tuple[str, float, float]:
    """Unit, epsilon and delta: the calibration target, else the record level at epsilon 1."""
    target = metadata["target"] or {}
    unit = target.get("unit", "record")
    if "epsilon" in target:
        return unit, float(target["epsilon"]), float(target["delta"])
    points = metadata["guarantees"][unit]["sharp"]["epsilon_delta"]
    epsilon, delta = next(point for point in points if point[0] == 1.0)
    return unit, epsilon, delta


def entry(metadata: dict[str, Any], **basic: str) -> str:
    """YAML text; what only the publisher knows (name, curator, purpose) is left empty or comes from ``basic``."""
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
                "name": basic.get("name", ""),
                "data_curators": [{"data_curator_name": basic.get("curator", ""), "data_curator_type": ""}],
                "description": basic.get("description", ""),
                "intended_use": basic.get("intended_use", ""),
                "data_product_type": "Microdata",
                "data_product_region": basic.get("region", ""),
                "data_product_sector": basic.get("sector", ""),
                "publication_date": basic.get("publication_date", ""),
            },
            "dp_variant": {
                "variant_name": "Approximate DP",
                "data_domain": f"Numeric table with public bounds; noised columns {names}.",
                "unprotected_quantities": "Columns that are not noised, and the number of rows.",
            },
            "privacy_loss": {
                "privacy_unit": f"{unit} ({what} changes)",
                "privacy_unit_details": f"shift c = {metadata['shift'][unit]:.6g} in units of the noise",
                "number_of_privacy_units": 1,
                "privacy_parameters": {"epsilon": epsilon, "delta": delta},
                "privacy_parameters_details": (
                    f"delta includes the probability {metadata['zero_prob']:g} that a row is published unchanged "
                    f"({metadata['expected_unchanged_rows']:g} of {metadata['n_rows']} rows expected). "
                    f"(epsilon, delta) of one release: {others}"
                ),
            },
            "deployment_model": {
                "model_name": "Local",
                "model_name_details": "Every row is noised by itself.",
                "trust_assumptions": "Who runs the release sees the rows; who reads it is not trusted.",
                "actors": "",
                "release_type": "One release",
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
            "administrative": {"status": "Draft", "registry_authors": [""], "tier": 3},
        },
    }
    return _yaml(content) + "\n"
