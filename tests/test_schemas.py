"""The published JSON schemas: valid, described, and open to new keys."""

import jsonschema
import pytest
from schemas import NAMES, parts, published, strict


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_and_named_after_its_file(name):
    schema = published(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"rankgauge/{'/'.join(name.rsplit('-', 1))}"
    assert schema["properties"]["schema"]["const"] == schema["$id"]


@pytest.mark.parametrize("name", NAMES)
def test_new_keys_are_allowed_within_a_version(name):
    assert not [part for part in parts(published(name)) if part.get("additionalProperties") is False]


@pytest.mark.parametrize("name", NAMES)
def test_required_keys_are_declared_and_all_keys_are_described(name):
    for part in parts(published(name)):
        if "additionalProperties" not in part:
            assert set(part.get("required", ())) <= set(part.get("properties", ())), part
        for key, value in part.get("properties", {}).items():
            assert "description" in value, key


def test_the_strict_schema_rejects_undeclared_keys():
    written = {
        "schema": "rankgauge/gate/1",
        "rankgauge": "1.0",
        "run": "a",
        "verdict": "PASS",
        "notes": [],
        "warnings": [],
        "checks": [
            {"kind": "run", "name": "a", "verdict": "PASS", "sentence": "ok", "note": "", "numbers": None, "new": 1}
        ],
    }
    jsonschema.validate(written, published("gate-1"))
    with pytest.raises(jsonschema.ValidationError, match="'new' was unexpected"):
        jsonschema.validate(written, strict("gate-1"))
    del written["checks"][0]["new"]
    jsonschema.validate(written, strict("gate-1"))
