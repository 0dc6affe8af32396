"""The texts behind the ids: documents and queries of a test collection."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rankgauge.errors import InputError
from rankgauge.formats.lines import Source, source_name
from rankgauge.formats.texts import TextRow, read_texts
from rankgauge.ids import id_bytes, show_id

__all__ = [
    "Collection", "Document", "Query", "fingerprint_documents", "read_documents", "read_queries",
]  # fmt: skip

_DOCUMENTS = ("corpus.jsonl", "corpus.jsonl.gz", "documents.jsonl", "corpus.tsv", "collection.tsv")
_QUERIES = ("queries.jsonl", "queries.jsonl.gz", "queries.tsv", "topics.tsv")
_SNIPPET = 160


@dataclass(frozen=True, slots=True)
class Document:
    """A document.

    Attributes:
        id: Its id, as text.
        title: Its title, empty without one.
        text: Its text, without the title.
        fields: What else is known of it.

    Example:
        >>> Document("d1", title="Opening hours", text="Daily from nine to five.").whole
        'Opening hours. Daily from nine to five.'
    """

    id: str
    title: str = ""
    text: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def whole(self) -> str:
        """Title and text, the title once where the text begins with it."""
        if not self.title or self.text.startswith(self.title):
            return self.text
        joint = " " if self.title.endswith((".", "?", "!")) else ". "
        return self.title + joint + self.text if self.text else self.title

    def snippet(self, most: int = _SNIPPET) -> str:
        """The title, or the beginning of the text: one line of at most so many characters."""
        line = " ".join((self.title or self.text).split())
        return line if len(line) <= most else line[: most - 1].rstrip() + "…"


@dataclass(frozen=True, slots=True)
class Query:
    """A query.

    Attributes:
        id: Its id, as text.
        text: What is asked.
        fields: What else is known of it, such as its type or language.
    """

    id: str
    text: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class Collection:
    """Documents and queries by id. Immutable; either may be missing.

    Attributes:
        documents: Document id to document.
        queries: Query id to query.
        name: What it is called.

    Example:
        >>> collection = Collection.of({"d1": "We open at nine."}, {"q1": "opening hours"})
        >>> collection.documents["d1"].text, collection.queries["q1"].text
        ('We open at nine.', 'opening hours')
    """

    documents: Mapping[str, Document] = field(default_factory=dict)
    queries: Mapping[str, Query] = field(default_factory=dict)
    name: str = "collection"

    def __post_init__(self) -> None:
        for part in ("documents", "queries"):
            object.__setattr__(self, part, MappingProxyType(dict(getattr(self, part))))

    @classmethod
    def of(
        cls, documents: Any = None, queries: Any = None, *, name: str = "collection"
    ) -> Collection:
        """A collection of what is at hand.

        Args:
            documents: The path of a file (see :func:`read_documents`), or a mapping of document id
                to text, to ``{"title": ..., "text": ...}`` or to a :class:`Document`.
            queries: The path of a file, or a mapping of query id to text, to ``{"text": ...}`` or
                to a :class:`Query`.
            name: What it is called.

        Raises:
            InputError: If it is neither.
        """
        return cls(_documents(documents), _queries(queries), name)

    @classmethod
    def read(cls, folder: Source) -> Collection:
        """A collection from a folder as BEIR lays it out: ``corpus.jsonl``, ``queries.jsonl``.

        Each may be packed (``.gz``) or a ``.tsv`` of id and text; one of the two may be missing.

        Raises:
            InputError: If there is no such folder, or neither file in it.

        Example:
            >>> from rankgauge.sample import sample_path
            >>> collection = Collection.read(sample_path("qrels.txt").parent)
            >>> len(collection.documents), len(collection.queries)
            (66, 30)
        """
        place = Path(folder)
        if not place.is_dir():
            raise InputError(
                "there is no such folder", where=source_name(folder),
                fix="name the folder that holds corpus.jsonl and queries.jsonl",
            )  # fmt: skip
        found = [
            next((place / name for name in names if (place / name).is_file()), None)
            for names in (_DOCUMENTS, _QUERIES)
        ]
        if found == [None, None]:
            raise InputError(
                "the folder holds neither documents nor queries",
                where=source_name(folder),
                fix=f"wanted {_DOCUMENTS[0]} or {_QUERIES[0]} (.gz, .tsv)",
            )
        return cls.of(*found, name=place.resolve().name)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "documents": dict(self.documents), "queries": dict(self.queries), "name": self.name
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def __repr__(self) -> str:
        return (
            f"<Collection {self.name!r}: {len(self.documents)} documents, "
            f"{len(self.queries)} queries>"
        )


def read_documents(path: Source) -> dict[str, Document]:
    """Read documents from a file.

    Args:
        path: JSON lines with an id (``_id``, ``id``, ``doc_id``, ``docno``), a ``text`` and
            perhaps a ``title``; or TSV or CSV of id and text or of id, title and text. Gzip too;
            ``-`` for standard input.

    Raises:
        FormatError: With the line that does not fit, or for an id that stands twice.

    Example:
        >>> from rankgauge.sample import sample_path
        >>> read_documents(sample_path("corpus.jsonl"))["loans-periods"].title
        'How long you can keep items'
    """
    return {row.id: _document(row) for row in read_texts(path)}


def read_queries(path: Source) -> dict[str, Query]:
    """Read queries from a file, of the same kinds as documents; other keys become fields.

    Raises:
        FormatError: With the line that does not fit, or for an id that stands twice.

    Example:
        >>> from rankgauge.sample import sample_path
        >>> read_queries(sample_path("queries.jsonl"))["q05"].text
        'late fees'
    """
    return {row.id: _query(row) for row in read_texts(path)}


def fingerprint_documents(documents: Iterable[Document]) -> str:
    """SHA-256 of what documents say, as 64 hexadecimal digits.

    It does not depend on the format they were read from, nor on their order; it changes with any
    id, title, text or field. A field without a value (None, empty) is as good as none.

    Each document has a SHA-256 of its id, title, text and fields (JSON with sorted keys, all in
    UTF-8), each behind its length; these are added as whole numbers, modulo 2^256, and sum and
    count are hashed again. So one document is in memory at a time.

    Args:
        documents: The documents, in any order.

    Raises:
        InputError: If fields are no mapping of text to values.

    Example:
        >>> one, other = Document("d1", text="We open at nine."), Document("d2", "Fees")
        >>> fingerprint_documents([one, other]) == fingerprint_documents([other, one])
        True
    """
    return _digest(b"rankgauge documents 1\n", ((d, (d.title, d.text)) for d in documents))


def _digest(kind: bytes, rows: Iterable[tuple[Document | Query, tuple[str, ...]]]) -> str:
    added = count = 0
    for row, texts in rows:
        one = hashlib.sha256()
        for part in (row.id, *texts, _fields_text(row)):
            # A lone surrogate is no UTF-8, and no reason to stop.
            raw = part.encode("utf-8", "surrogatepass")
            one.update(len(raw).to_bytes(8, "little"))
            one.update(raw)
        added += int.from_bytes(one.digest(), "little")
        count += 1
    total = (added % (1 << 256)).to_bytes(32, "little")
    return hashlib.sha256(kind + count.to_bytes(8, "little") + total).hexdigest()


def _fields_text(row: Document | Query) -> str:
    if not row.fields:
        return ""
    said = {
        str(key): value
        for key, value in row.fields.items()
        if not (value is None or (isinstance(value, str | Mapping | list | tuple) and not value))
    }
    try:
        return json.dumps(said, sort_keys=True, default=str) if said else ""
    except (TypeError, ValueError) as error:
        raise InputError(
            f"its fields cannot be written as JSON: {error}", where=f"{row.id!r}",
            fix="give fields as a mapping of text to plain values",
        ) from None  # fmt: skip


def _document(row: TextRow) -> Document:
    return Document(row.id, row.title, row.text, row.fields)


def _query(row: TextRow) -> Query:
    text = row.text or row.title
    return Query(row.id, text, row.fields)


def _documents(given: Any) -> Mapping[str, Document]:
    if isinstance(given, str | os.PathLike):
        return read_documents(given)
    rows = _items(given, "document", '{"d1": "its text", ...}')
    return {k: v if isinstance(v, Document) else _document(_row(k, v, "document")) for k, v in rows}


def _queries(given: Any) -> Mapping[str, Query]:
    if isinstance(given, str | os.PathLike):
        return read_queries(given)
    rows = _items(given, "query", '{"q1": "what is asked", ...}')
    return {k: v if isinstance(v, Query) else _query(_row(k, v, "query")) for k, v in rows}


def _items(given: Any, what: str, example: str) -> Iterator[tuple[str, Any]]:
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise InputError(
            f"got {type(given).__name__} for the texts, wanted a mapping or a path", where=what,
            fix=f"give a path or a mapping: {example}",
        )  # fmt: skip
    for key, value in given.items():
        yield show_id(id_bytes(key)), value


def _row(key: str, value: Any, what: str) -> TextRow:
    """One text given as text or as a mapping."""
    if isinstance(value, str):
        return TextRow(key, "", value, {})
    if not isinstance(value, Mapping) or not isinstance(value.get("text"), str):
        raise InputError(
            f"got {value!r:.60} for a {what}", where=f"{what} {key!r}",
            fix='give its text, or {"text": "..."}',
        )  # fmt: skip
    rest = {str(k): v for k, v in value.items() if k not in {"text", "title", "_id", "id"}}
    return TextRow(key, str(value.get("title") or ""), value["text"], rest)
