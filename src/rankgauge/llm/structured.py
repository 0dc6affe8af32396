"""JSON replies of language models: request, extraction, and validation."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from rankgauge.core.libraries import library
from rankgauge.errors import InputError

# Maximum number of positions at which JSON parsing is tried, which bounds the time.
_MOST_STARTS = 200
_SHOWN = 300
_Check: TypeAlias = Callable[[Any], bool]


class InvalidReply(ValueError):  # noqa: N818 - about a reply
    """Error for a reply without a valid object; the message is for the model."""


def object_schema(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def response_format(schema: Mapping[str, Any], level: str) -> dict[str, Any]:
    """Return the parameter ``response_format`` at the level ``json_schema`` or ``json_object``."""
    if level == "json_object":
        return {"type": level}
    name = re.sub(r"\W", "_", str(schema.get("title", "reply")), flags=re.ASCII)[:64]
    return {"type": level, level: {"name": name, "strict": True, "schema": dict(schema)}}


def instruction(schema: Mapping[str, Any]) -> str:
    """Return the instruction that describes the reply to servers without support for schemas."""
    return f"Reply with only JSON that conforms to this JSON schema: {json.dumps(schema)}"


def repair_request(schema: Mapping[str, Any], fault: str) -> str:
    """Return the message that requests a valid reply after an invalid one."""
    return f"The reply is invalid: {fault}. {instruction(schema)}"


def read_reply(text: str, schema: Mapping[str, Any]) -> Any:
    """Return the only valid object of a text: alone, in a Markdown fence, or within prose.

    Raises:
        InvalidReply: If there is no valid object, or there are different valid objects.
    """
    validator, is_valid = _validator(json.dumps(schema, sort_keys=True))
    valid: list[Any] = []
    fault = "it has no JSON object"
    for value in _values(text):
        fault = "" if is_valid is not None and is_valid(value) else _fault(validator, value)
        if not fault:
            valid.append(value)
    if not valid:
        raise InvalidReply(fault)
    if len(valid) > 1:
        different = len({json.dumps(value, sort_keys=True) for value in valid})
        if different > 1:
            raise InvalidReply(f"it has {different} different JSON objects, and one was requested")
    return valid[-1]


def _values(text: str) -> Iterator[Any]:
    """Yield the objects of a text that are not nested in another.

    Raises:
        InvalidReply: If an object is truncated or not JSON. Braces in prose or LaTeX are skipped.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_no_number, parse_float=_finite)
    end = 0
    fault = ""
    found = False
    for _ in range(_MOST_STARTS):
        start = text.find("{", end)
        if start < 0:
            break
        try:
            value, end = decoder.raw_decode(text, start)
        except InvalidReply:
            raise
        except json.JSONDecodeError as error:
            fault = f"its JSON cannot be read: {error.msg} at character {error.pos + 1}"
            if text[start + 1 : error.pos].strip():
                raise InvalidReply(fault) from None
            end = start + 1
        except (ValueError, RecursionError):  # a number with too many digits, or too many brackets
            raise InvalidReply("its JSON has a value that is too large") from None
        else:
            found = True
            yield value
    if fault and not found:
        raise InvalidReply(fault)


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise InvalidReply("its JSON has a key twice in one object")
    return value


def _no_number(name: str) -> Any:
    raise InvalidReply(f"its JSON has {name}, which is not a JSON number")


def check_schema(schema: Mapping[str, Any]) -> None:
    """Validate a JSON schema.

    Raises:
        InputError: If the schema is invalid or has a ``$ref``.
        MissingExtra: If jsonschema is not installed.
    """
    _validator(json.dumps(schema, sort_keys=True))


@lru_cache(maxsize=1024)
def _validator(schema_text: str) -> tuple[Any, _Check | None]:
    """Return the cached validator of a schema given as JSON."""
    jsonschema = library("jsonschema", extra="llm", of="a reply with a schema")
    if '"$ref"' in schema_text:
        raise InputError(
            "the schema has a $ref, which many servers do not support", where="schema", fix="expand the schema"
        )
    schema = json.loads(schema_text)
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise InputError(
            f"not a JSON schema: {error.message:.200}", where="schema", fix="see https://json-schema.org/draft/2020-12"
        ) from None
    return jsonschema.Draft202012Validator(schema), _quick_check(schema)


def _quick_check(schema: Any) -> _Check | None:
    """Return a function that checks values by a simple schema; None for other schemas.

    Simple schemas are arrays, strings, booleans, and objects that require all of their properties
    and allow no others.
    """
    if not isinstance(schema, Mapping):  # true and false are valid schemas
        return None
    kind, names = schema.get("type"), schema.keys()
    if kind == "boolean" and names == {"type"}:
        return lambda value: isinstance(value, bool)
    if kind == "string" and names <= {"type", "enum"}:
        choices = schema.get("enum")
        return lambda value: isinstance(value, str) and (choices is None or value in choices)
    if kind == "array" and {"items"} < names <= {"type", "items", "minItems", "maxItems"}:
        each = _quick_check(schema["items"])
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        return each and (
            lambda value: isinstance(value, list) and least <= len(value) <= most and all(map(each, value))
        )
    strict = names == {"type", "properties", "required", "additionalProperties"}
    if kind == "object" and strict and schema["additionalProperties"] is False:
        parts = {name: _quick_check(part) for name, part in schema["properties"].items()}
        checks = {name: check for name, check in parts.items() if check is not None}
        if set(schema["required"]) == parts.keys() == checks.keys():
            return lambda value: (
                isinstance(value, dict)
                and value.keys() == checks.keys()
                and all(check(value[name]) for name, check in checks.items())
            )
    return None


def _fault(validator: Any, value: Any) -> str:
    """Return the most relevant error of a value; empty if valid."""
    best_match = library("jsonschema.exceptions", extra="llm", of="a reply with a schema").best_match
    error = best_match(validator.iter_errors(value))
    if error is None:
        return ""
    message = error.message
    if len(message) > _SHOWN:
        message = f"{message[: _SHOWN // 2]} ... {message[-_SHOWN // 2 :]}"
    return f"{error.json_path}: {message}"
