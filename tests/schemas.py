"""The published JSON schemas."""

import json
from functools import cache
from importlib import resources
from typing import Any

NAMES = sorted(
    path.name.removesuffix(".json")
    for path in resources.files("rankgauge.schemas").iterdir()
    if path.name.endswith(".json")
)
# Keywords whose values are mappings of schemas by name, and keywords whose values are data.
_MAPPINGS = {"$defs", "properties", "patternProperties"}
_DATA = {"const", "default", "enum", "examples", "required"}


@cache
def published(name: str) -> dict[str, Any]:
    """Return a schema as published."""
    path = resources.files("rankgauge.schemas").joinpath(f"{name}.json")
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def strict(name: str) -> dict[str, Any]:
    """Return a schema that also rejects undeclared keys of objects with declared ones."""
    return _closed(published(name))


def parts(schema: Any) -> list[dict[str, Any]]:
    """Return a schema and all schemas in it."""
    if isinstance(schema, list):
        return [part for inner in schema for part in parts(inner)]
    if not isinstance(schema, dict):
        return []
    found = [schema]
    for key, value in schema.items():
        if key not in _DATA:
            found += parts(list(value.values()) if key in _MAPPINGS else value)
    return found


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: value
        if key in _DATA
        else {name: _closed(inner) for name, inner in value.items()}
        if key in _MAPPINGS
        else _closed(value)
        for key, value in schema.items()
    }
    if "properties" in schema:
        # `additionalProperties` does not see the keys that other schemas declare for the object.
        assert not schema.keys() & {"$ref", "allOf", "anyOf", "oneOf", "if"}, schema
        found.setdefault("additionalProperties", False)
    return found
