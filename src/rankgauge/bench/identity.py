"""What tells one retriever from another, so that answers are used again only where they may be."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from rankgauge.errors import InputError
from rankgauge.retriever import settings_of

__all__ = ["Identity", "identity_of"]


@dataclass(frozen=True)
class Identity:
    """What a retriever is.

    Attributes:
        settings: Its settings as plain values; of one that declares none, where its code stands and
            what that is.
        declared: Whether it declared them.
        word: A word for people, which can be part of a file name.
    """

    settings: Mapping[str, Any]
    declared: bool
    word: str


def identity_of(retriever: Any, settings: Mapping[str, Any] | None, run: str) -> Identity:
    """What a retriever says it is, together with what is said of it.

    Args:
        retriever: The retriever.
        settings: What the caller says of it.
        run: The name of the run: functions made by one function have the same code, so where
            nothing is declared the name tells them apart.

    Raises:
        InputError: If settings are no plain values.

    Example:
        >>> identity_of(len, {"model": "e5"}, "dense").settings
        {'model': 'e5'}
        >>> identity_of(lambda text: [], None, "mine").declared
        False
    """
    own = settings_of(retriever)
    if own is None and settings is None:
        name = _name(retriever)
        return Identity(
            {"callable": name, "code": _code(retriever), "run": run},
            declared=False,
            word=_word(name),
        )
    said = {**(own or {}), **(settings or {})}
    try:
        plain = json.loads(json.dumps(said, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the settings of the retriever are no plain values: {error}", where=_name(retriever),
            fix="give text, finite numbers, lists and mappings of them",
        ) from None  # fmt: skip
    return Identity(plain, declared=True, word=_word(str(plain.get("type", _name(retriever)))))


def _name(retriever: Any) -> str:
    named = retriever if hasattr(retriever, "__qualname__") else type(retriever)
    return f"{named.__module__}.{named.__qualname__}"


def _word(name: str) -> str:
    last = name.replace(".<lambda>", "lambda").rpartition(".")[2]
    return re.sub(r"[^A-Za-z0-9]+", "-", last).strip("-")[:40].lower() or "retriever"


def _code(retriever: Any) -> str:
    """A hash of the code that is called, as far as it can be seen."""
    seen = hashlib.sha256()
    call = getattr(retriever, "func", retriever)
    of_class = vars(type(call)).get("__call__")
    for method in (call, of_class, getattr(call, "search", None)):
        code = getattr(method, "__code__", None) or getattr(
            getattr(method, "__func__", None), "__code__", None
        )
        if isinstance(code, CodeType):
            for part in _parts(code):
                seen.update(part)
    return seen.hexdigest()[:16]


def _parts(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield repr(code.co_names).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)
        else:
            yield repr(constant).encode("utf-8", "backslashreplace")
