"""What tells one retriever from another, so that answers are used again only where they may be."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankgauge.errors import InputError
from rankgauge.retrievers.protocol import settings_of

__all__ = ["Identity", "identity_of"]


@dataclass(frozen=True)
class Identity:
    """What a retriever is.

    Attributes:
        settings: Its settings as plain values; of one that declares none, where its code stands.
            What that code is, :func:`code_fingerprint` says.
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
        run: The name of the run, which tells apart retrievers that declare nothing.

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
        return Identity({"callable": name, "run": run}, declared=False, word=_word(name))
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
