"""Validation of arguments: numbers, names, and types."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rankgauge.core.grammar import plain_key
from rankgauge.errors import InputError, UnknownName


def is_number(value: Any) -> bool:
    """Return whether a value is a number within the range of floats (booleans are not)."""
    most = sys.float_info.max
    return isinstance(value, int | float) and not isinstance(value, bool) and -most <= value <= most


def to_float(value: Any) -> float:
    """Return a number, or text of a number, as `float`; NaN for anything else."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def integer(name: str, value: Any, *, least: int | None = 1, most: int | None = None) -> int:
    """Return a valid whole number as `int`, or raise `InputError`."""
    fits = hasattr(value, "__index__") and not isinstance(value, bool)
    if fits and (least is None or value >= least) and (most is None or value <= most):
        return int(value)
    bounds = "" if least is None else f" from {least}" + ("" if most is None else f" to {most:,}")
    raise InputError(f"{name}={value!r:.60} is not valid", where=name, fix=f"pass a whole number{bounds}")


def number(name: str, value: Any, *, low: float = 0.0, high: float = math.inf, above: bool = False) -> float:
    """Return a valid finite number as `float`, or raise `InputError`."""
    if is_number(value) and low <= value <= high and not (above and value == low):
        return float(value)
    bounds = f"above {low:g}" if above else f"from {low:g}"
    bounds += "" if high == math.inf else f" to {high:g}"
    raise InputError(f"{name}={value!r:.60} is not valid", where=name, fix=f"pass a number {bounds}")


def memory_size(value: Any) -> int:
    """Return a memory size in bytes from a number or text with a unit.

    Example:
        >>> memory_size("512MB"), memory_size("2 GiB")
        (512000000, 2147483648)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]?)(i?)B?", str(value).strip(), re.IGNORECASE)
    fix = 'pass a size with a unit, such as "512MB" or "2GB"'
    if match is None or isinstance(value, bool):
        raise InputError(f"memory={value!r:.60} is not a size", where="memory", fix=fix)
    amount, unit, binary = match.groups()
    size = int(float(amount) * (1024 if binary else 1000) ** " KMGT".index(unit.upper() or " "))
    if size < 64_000_000:
        raise InputError(f"memory={value!r:.60} is too small: at least 64MB is needed", where="memory", fix=fix)
    return size


def option(name: str, value: Any, known: Iterable[str]) -> None:
    """Raise `UnknownName` unless the value is one of the known options."""
    if value not in (names := tuple(known)):
        raise UnknownName(f"{name}={value!r:.60} is not valid", fix=f"choose one of: {', '.join(names)}")


def known_name(what: str, value: Any, known: Iterable[str], *, where: str = "") -> None:
    """Raise `UnknownName`, which lists the nearest names, unless the value is one of the known names."""
    if value not in known:
        raise UnknownName.of(what, str(value), known, where=where)


def of_kind(name: str, value: Any, kind: type | UnionType, fix: str, *, where: str = "") -> None:
    """Raise `InputError` unless the value has the type `kind`; a boolean is not a number."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"got {value!r:.60} for {name}", where=where or name, fix=fix)


def choice(name: str, value: Any, known: Iterable[str]) -> str:
    """Return the known name that matches, ignoring case, spaces, hyphens, and underscores.

    Example:
        >>> choice("search", "Exact", ("exact", "usearch"))
        'exact'
    """
    names = list(known)
    matched = {plain_key(candidate): candidate for candidate in names}.get(
        plain_key(value) if isinstance(value, str) else ""
    )
    if matched is None:
        raise UnknownName.of(name, str(value), names)
    return matched


_NO_READERS: Mapping[Any, Callable[[Any], Any]] = MappingProxyType({})


def object_of(kind: Any, data: Any, readers: Mapping[Any, Callable[[Any], Any]] = _NO_READERS) -> Any:
    """Return the object of a type from its JSON, in which NaN is null.

    Keys that later versions may add are skipped; `readers` read the types that are text in JSON.

    Raises:
        ValueError: If a value is of another type, or a key is missing.

    Example:
        >>> object_of(tuple[float, ...], [1, None]), object_of(str | None, None)
        ((1.0, nan), None)
    """
    origin, parts = get_origin(kind), get_args(kind)
    if kind in readers:
        return readers[kind](object_of(str, data))
    if data is None and (kind is float or NoneType in parts):
        return math.nan if kind is float else None
    if origin in {UnionType, Union}:  # with None
        return object_of(parts[0], data, readers)
    if is_dataclass(kind):
        return _dataclass_of(kind, data, readers)
    if origin is tuple and isinstance(data, list):
        return tuple(object_of(parts[0], element, readers) for element in data)
    json_type = dict if origin is Mapping else kind
    if not (data in parts if origin is Literal else is_number(data) if kind is float else type(data) is json_type):
        expected = " or ".join(parts) if origin is Literal else getattr(json_type, "__name__", kind)
        raise ValueError(f"{data!r:.40}, expected {expected}")
    return float(data) if kind is float else data


def _dataclass_of(kind: Any, data: Any, readers: Mapping[Any, Callable[[Any], Any]]) -> Any:
    types, values, known = get_type_hints(kind), {}, object_of(dict, data)
    for field in fields(kind):
        if field.name in known:
            try:
                values[field.name] = object_of(types[field.name], known[field.name], readers)
            except ValueError as error:
                raise ValueError(f"{field.name}: {error}") from None
        elif field.default is MISSING:
            raise ValueError(f"{field.name} is missing")
    return kind(**values)
