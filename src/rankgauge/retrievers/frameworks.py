"""Base of framework adapters: settings, depth, and ids and scores of results."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any, ClassVar

from rankgauge.core.arguments import integer, of_kind
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError

_IDS = ("id", "doc_id", "_id", "docno", "document_id", "docid")


class FrameworkRetriever:
    """Base of adapters for framework objects, whose indexes are used unchanged.

    Empty queries have no results and are not passed on. Framework objects do not report their
    configuration, so settings are those passed by the caller, if any.
    """

    TYPE: ClassVar[str]
    LIBRARY: ClassVar[str]
    # Methods of which the object must have at least one, and a description of suitable objects.
    METHODS: ClassVar[tuple[str, ...]]
    WANTED: ClassVar[str]

    def __init__(
        self, source: Any, *, settings: Mapping[str, Any] | None, options: Mapping[str, Any], depth: int | None = None
    ) -> None:
        name = type(self).__name__
        if not any(hasattr(source, method) for method in self.METHODS):
            raise InputError(
                f"got {type(source).__name__}, which has no {self.METHODS[0]}()", where=name, fix=f"pass {self.WANTED}"
            )
        self._source = source
        self._depth = 0 if depth is None else integer("depth", depth)
        self.settings: Mapping[str, Any] | None = None
        if settings is None:
            return
        fix = 'pass settings that identify it: settings={"model": "..."}'
        of_kind("the settings", settings, Mapping, fix, where=name)
        try:
            version = metadata.version(self.LIBRARY)
        except metadata.PackageNotFoundError:
            version = "unknown"
        given = {key: value for key, value in options.items() if value is not None}
        given |= {} if depth is None else {"depth": depth}
        versions = {self.LIBRARY: version}
        self.settings = {"type": self.TYPE, **given, **settings, "versions": versions}

    @property
    def members(self) -> Sequence[Any]:
        """The object of the framework."""
        return (self._source,)

    def index(self, documents: Iterable[Document]) -> None:
        """Do nothing: the existing index is used."""

    def search(self, queries: Sequence[Query], k: int) -> list[Any]:
        """Return one ranking per query."""
        depth = max(k, self._depth)
        asked = self._with_depth(depth)
        return [self._ranking(asked, query.text, depth, k) if query.text.strip() else [] for query in queries]

    def _with_depth(self, depth: int) -> Any:  # noqa: ARG002 - most have no such option
        """Return the object, or a copy of it that returns ``depth`` hits."""
        return self._source

    def _ranking(self, asked: Any, text: str, depth: int, k: int) -> list[Any]:
        """Return at most `k` documents, best first."""
        raise NotImplementedError


def ranking_of(rows: Iterable[tuple[str, float | None]], k: int) -> list[tuple[str, float]] | list[str]:
    """Return the first `k` documents of rows of id and score in their order, without duplicates.

    Frameworks may reorder hits (for diversity, or in a later step) without updating their scores:
    if the scores do not descend, the order is used and the scores are dropped.
    """
    ids: dict[str, float | None] = {}
    for name, score in rows:
        ids.setdefault(name, score)
    first = list(itertools.islice(ids.items(), k))
    scored = [(name, float(score)) for name, score in first if score is not None]
    if len(scored) < len(first) or any(b > a for (_, a), (_, b) in itertools.pairwise(scored)):
        return [name for name, _ in first]
    return scored


def document_id(own: Any, data: Mapping[str, Any], id_key: str | None, *, adapter: str) -> str:
    """Return a document id: `id_key` of its metadata if set, else its own id, else a common key."""
    if id_key is not None:
        found = data.get(id_key)
    else:
        found = own or next((data[key] for key in _IDS if _is_id(data.get(key))), None)
    if not _is_id(found):
        keys = ", ".join(map(str, data)) or "none"
        raise InputError(
            f"a document has no {id_key or 'id'}; keys of its metadata: {keys}",
            where=adapter,
            fix=f"name the key of the document id: {adapter}(..., id_key='...')",
        )
    return str(found)


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""
