"""Conversion of values to JSON; values that JSON lacks become null or text."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from rankgauge.core.escaping import for_json


def plain(value: Any) -> Any:
    """Convert a value to JSON types: NaN and infinity become None, objects become dicts or text.

    Objects with `to_dict` are converted by it, dataclasses without their own ``__str__`` to their
    attributes, and all other objects to ``str``.

    Example:
        >>> plain({"mean": float("nan"), "k": (1, 2)})
        {'mean': None, 'k': [1, 2]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return _plain_object(value)


def _plain_object(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if dataclasses.is_dataclass(value) and type(value).__str__ is object.__str__:
        return {part.name: plain(getattr(value, part.name)) for part in dataclasses.fields(value)}
    return str(value)


def dump_json(value: Any) -> str:
    """Return JSON text that is safe in every output (see `plain` and `for_json`)."""
    return for_json(json.dumps(plain(value), ensure_ascii=False, allow_nan=False))
