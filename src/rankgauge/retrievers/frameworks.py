"""What adapters of frameworks share: ids and scores of what comes back, and settings."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any

from rankgauge.errors import InputError

__all__ = ["depth_of", "named", "options_told", "ranking"]

_IDS = ("id", "doc_id", "_id", "docno", "document_id", "docid")


def ranking(
    rows: Iterable[tuple[str, float | None]], k: int
) -> list[tuple[str, float]] | list[str]:
    """The first `k` documents of rows of id and score, in the order they came, each once.

    Frameworks put what was re-ordered (by diversity, by a later step) first without always scoring
    it anew: where scores do not descend in the order that came, the order counts and they do not.
    """
    ids: dict[str, float | None] = {}
    for name, score in rows:
        ids.setdefault(name, score)
    first = list(itertools.islice(ids.items(), k))
    scored = [(name, float(score)) for name, score in first if score is not None]
    if len(scored) < len(first) or any(b > a for (_, a), (_, b) in itertools.pairwise(scored)):
        return [name for name, _ in first]
    return scored


def named(own: Any, data: Mapping[str, Any], id_key: str | None, *, adapter: str) -> str:
    """The id of a document: what its data hold under `id_key`; without one, its own, else theirs.

    Raises:
        InputError: If it has none; with the keys that are there.
    """
    if id_key is not None:
        found = data.get(id_key)
    else:
        places = (data.get(key) for key in _IDS)
        found = own or next((value for value in places if _is_id(value)), None)
    if not _is_id(found):
        keys = ", ".join(map(str, data)) or "none"
        raise InputError(
            f"a document has no {id_key or 'id'}; keys of its metadata: {keys}",
            where=adapter,
            fix=f"say which key holds the document id: {adapter}(..., id_key='...')",
        )
    return str(found)


def _is_id(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, str) and bool(value))


def depth_of(depth: Any, *, adapter: str) -> int | None:
    """How many hits to ask for, if more than `k`.

    Raises:
        InputError: If it is no whole number from 1.
    """
    if depth is not None and (type(depth) is not int or depth < 1):
        raise InputError(
            f"depth={depth!r:.60} is not possible", where=adapter, fix="give a whole number from 1"
        )
    return depth


def options_told(
    kind: str, settings: Any, library: str, options: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """The settings of an adapter: what its maker told, options and version; None if nothing.

    An object of a framework does not say what it is made of, so nobody but its maker can say that
    two give equal rankings.

    Raises:
        InputError: If what was told is no mapping.
    """
    if settings is None:
        return None
    if not isinstance(settings, Mapping):
        raise InputError(
            f"got {type(settings).__name__} for the settings", where=kind,
            fix='give what tells it from others: settings={"model": "..."}',
        )  # fmt: skip
    try:
        version = metadata.version(library)
    except metadata.PackageNotFoundError:
        version = "unknown"
    told = {name: value for name, value in options.items() if value is not None}
    return {"type": kind, **told, **settings, "versions": {library: version}}
