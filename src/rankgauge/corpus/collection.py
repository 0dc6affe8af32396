"""Documents and queries of a test collection, with their texts."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NoReturn, get_args

from rankgauge.core.arguments import of_kind, option
from rankgauge.core.ids import Frozen, id_text
from rankgauge.core.text import many
from rankgauge.data.qrels import Qrels
from rankgauge.errors import InputError
from rankgauge.formats.lines import Source
from rankgauge.formats.texts import Faults, StoredTexts, TextReader, TextRow, TextSource, kept, read_texts

Invalid = Literal["error", "skip"]


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("fields of documents and queries are read-only; change a copy: dict(fields)")


class _Frozen:
    """A read-only container, whose copies can be changed."""

    __slots__ = ()

    def __copy__(self) -> Any:
        return dict(self) if isinstance(self, dict) else list(self)  # type: ignore[call-overload]

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(copy.copy(self), memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return _frozen, (copy.copy(self),)


class _FrozenDict(_Frozen, dict[Any, Any]):
    """A read-only dict for fields, compatible with JSON and ``isinstance``."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


class _FrozenList(_Frozen, list[Any]):
    """A read-only list for fields."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = _refuse
    reverse = sort = _refuse


_NO_FIELDS = _FrozenDict()
_PLAIN = frozenset({str, int, float, bool, type(None), _FrozenDict, _FrozenList})


def _frozen(value: Any) -> Any:
    """Return a deep read-only copy of dicts, lists, and sets; other values unchanged."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict or isinstance(value, Mapping):
        return _FrozenDict({key: item if type(item) in _PLAIN else _frozen(item) for key, item in value.items()})
    if isinstance(value, list):
        return _FrozenList(map(_frozen, value))
    if kind is tuple:
        return tuple(map(_frozen, value))
    return frozenset(value) if isinstance(value, set) else value


class _Row:
    """Base of documents and queries, whose fields are a read-only copy."""

    __slots__ = ()
    fields: Mapping[str, Any]

    def __post_init__(self) -> None:
        if type(self.fields) is not _FrozenDict:
            with suppress(RecursionError):  # a self-reference raises an error when written
                object.__setattr__(self, "fields", _frozen(self.fields) if self.fields else _NO_FIELDS)


@dataclass(frozen=True, slots=True)
class Document(_Row):
    """A document.

    Attributes:
        id: The id.
        title: The title, or empty.
        text: The text, without the title.
        fields: Further fields; a read-only copy.

    Example:
        >>> Document("d1", title="Opening hours", text="Daily from nine to five.").full_text
        'Opening hours. Daily from nine to five.'
    """

    id: str
    title: str = ""
    text: str = ""
    fields: Mapping[str, Any] = field(default_factory=lambda: _NO_FIELDS)

    @property
    def full_text(self) -> str:
        """Title and text; only the text if it begins with the title."""
        if not self.title or self.text.startswith(self.title):
            return self.text
        joint = " " if self.title.endswith((".", "?", "!")) else ". "
        return self.title + joint + self.text if self.text else self.title

    def snippet(self, max_length: int = 160) -> str:
        """Return the title or the start of the text: one line, at most `max_length` characters."""
        line = " ".join((self.title or self.text).split())
        return line if len(line) <= max_length else line[: max_length - 1].rstrip() + "…"


@dataclass(frozen=True, slots=True)
class Query(_Row):
    """A query.

    Attributes:
        id: The id.
        text: The text of the query.
        fields: Further fields, such as type or language; a read-only copy.
    """

    id: str
    text: str = ""
    fields: Mapping[str, Any] = field(default_factory=lambda: _NO_FIELDS)


@dataclass(frozen=True, repr=False)
class Collection(Frozen):
    """Documents and queries by id, optionally with judgments. Immutable; each part may be empty.

    Create a collection with :meth:`load` (from any supported source) or :meth:`of` (from objects in
    memory). If the documents have more than 32 MiB of text, they remain in their file, and each
    iteration reads them again, one at a time.

    Attributes:
        documents: Document id to document.
        queries: Query id to query.
        name: The name.
        qrels: The judgments of the collection; None without any.
        notes: Notes of the reader.
        faults: Rows that the reader skipped, if requested.

    Example:
        >>> collection = Collection.of({"d1": "We open at nine."}, {"q1": "opening hours"})
        >>> collection.documents["d1"].text, collection.queries["q1"].text
        ('We open at nine.', 'opening hours')
    """

    documents: Mapping[str, Document] = field(default_factory=dict)
    queries: Mapping[str, Query] = field(default_factory=dict)
    name: str = "collection"
    qrels: Qrels | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)
    faults: Faults = field(default_factory=Faults, compare=False)

    def __post_init__(self) -> None:
        for part in ("documents", "queries"):
            texts = getattr(self, part)
            # Documents in a file are read-only already.
            if not isinstance(texts, StoredTexts):
                object.__setattr__(self, part, MappingProxyType(dict(texts)))

    @classmethod
    def of(cls, documents: Any = None, queries: Any = None, *, name: str = "collection") -> Collection:
        """Create a collection from objects in memory.

        Args:
            documents: The path of a file (see :func:`read_documents`), or a mapping of document id
                to text, to ``{"title": ..., "text": ...}``, or to a :class:`Document`.
            queries: The path of a file, or a mapping of query id to text, to ``{"text": ...}``, or
                to a :class:`Query`.
            name: The name.

        Raises:
            InputError: If an argument is neither a path nor a mapping of texts.
        """
        return cls(_documents(documents), _queries(queries), name)

    @classmethod
    def load(
        cls,
        source: Any = None,
        *,
        documents: Any = None,
        queries: Any = None,
        qrels: Any = None,
        split: str | None = None,
        invalid: Invalid = "error",
    ) -> Collection:
        """Load a collection from any supported source.

        Args:
            source: A folder in BEIR layout (``corpus.jsonl``, ``queries.jsonl``,
                ``qrels/test.tsv``) or a zip archive of it; a folder with TREC documents, topics,
                and judgments; a folder of Markdown or text files; a file of documents (JSON lines,
                CSV, TSV, TREC); ``ir_datasets:NAME``, ``hf:NAME``, or ``mteb:NAME``; or a dataset,
                a mapping of datasets, or a task of these libraries.
            documents: Documents that replace those of the source: a path, or a mapping as in
                :meth:`of`.
            queries: Queries that replace those of the source: a path, a mapping as in :meth:`of`,
                or a file of questions with their relevant documents, which also contains the
                judgments.
            qrels: Judgments that replace those of the source, in any form accepted by
                :meth:`Qrels.of`.
            split: The split of the judgments; default: ``test``, or the only split.
            invalid: ``error`` raises an error for the first invalid line or file; ``skip`` skips
                invalid lines and files and counts them in ``faults``.

        Raises:
            InputError: If the collection does not exist.
            FormatError: For the first invalid line, or for a duplicate id.
            MissingExtra: If the library of the source is not installed.

        Example:
            >>> from rankgauge.sample import sample_path
            >>> Collection.load(sample_path("qrels.txt").parent)
            <Collection 'sample': 66 documents, 30 queries, 30 judged>
        """
        from rankgauge.corpus.loading import load

        option("invalid", invalid, get_args(Invalid))
        faults = Faults()
        held = _is_data(documents), _is_data(queries)
        loaded = load(
            source,
            documents=None if held[0] else documents,
            queries=None if held[1] else queries,
            qrels=qrels,
            split=split,
            faults=faults if invalid == "skip" else None,
        )
        return cls(
            _documents(documents) if held[0] else _documents_of_rows(loaded.documents),
            _queries(queries) if held[1] else {k: _query(row) for k, row in loaded.queries.items()},
            loaded.name,
            loaded.qrels,
            loaded.notes,
            faults,
        )

    @classmethod
    def read(cls, source: Any) -> Collection:
        """Read the documents and all queries from any source of :meth:`load`.

        Judgments in separate files are not read.

        Raises:
            InputError: If the source contains no texts.

        Example:
            >>> from rankgauge.sample import sample_path
            >>> collection = Collection.read(sample_path("qrels.txt").parent)
            >>> len(collection.documents), len(collection.queries)
            (66, 30)
        """
        from rankgauge.corpus.loading import load

        loaded = load(source, judged=False)
        queries = {key: _query(row) for key, row in loaded.queries.items()}
        return cls(_documents_of_rows(loaded.documents), queries, loaded.name, notes=loaded.notes)

    @property
    def documents_fingerprint(self) -> str:
        """SHA-256 of the documents, independent of their source."""
        return self._digests[0]

    @property
    def order_fingerprint(self) -> str:
        """SHA-256 of the document ids in their order, which may determine ties."""
        return self._digests[1]

    @cached_property
    def _digests(self) -> tuple[str, str]:
        """Both fingerprints of the documents, computed in one pass."""
        order = hashlib.sha256(b"rankgauge order of documents 1\n")

        def passing() -> Iterator[Document]:
            for document in self.documents.values():
                raw = document.id.encode("utf-8", "surrogatepass")
                order.update(len(raw).to_bytes(8, "little") + raw)
                yield document

        return fingerprint_documents(passing()), order.hexdigest()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of documents and queries, independent of their source."""
        queries = _digest(b"rankgauge queries 1\n", ((q, (q.text,)) for q in self.queries.values()))
        both = f"rankgauge collection 1\n{self.documents_fingerprint}{queries}"
        return hashlib.sha256(both.encode()).hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        # A mapping proxy cannot be pickled.
        return {
            name: dict(value) if isinstance(value, MappingProxyType) else value for name, value in self.__dict__.items()
        }

    def __repr__(self) -> str:
        return (
            f"<Collection {self.name!r}: {many(len(self.documents), 'document')}, "
            f"{many(len(self.queries), 'query')}" + ("" if self.qrels is None else f", {len(self.qrels)} judged") + ">"
        )


def _documents_of_rows(rows: Mapping[str, TextRow]) -> Mapping[str, Document]:
    if isinstance(rows, StoredTexts):
        return rows.mapped(_document)
    return {key: _document(row) for key, row in rows.items()}


def _is_data(data: Any) -> bool:
    """Return whether the argument contains texts and is not a dataset of another library."""
    if isinstance(data, str | os.PathLike) or data is None:
        return False
    return isinstance(data, Mapping) and not type(data).__module__.startswith("datasets")


def read_documents(path: Source) -> dict[str, Document]:
    """Read documents from a file.

    Args:
        path: JSON lines with an id (``_id``, ``id``, ``doc_id``, ``docno``), a ``text``, and
            optionally a ``title``; or TSV or CSV with id and text, or id, title, and text. The file
            may be compressed (gzip, bzip2, xz, zstd, lz4); ``-`` is standard input.

    Raises:
        FormatError: For an invalid line, or for a duplicate id.

    Example:
        >>> from rankgauge.sample import sample_path
        >>> read_documents(sample_path("corpus.jsonl"))["loans-periods"].title
        'How long you can keep items'
    """
    return {row.id: _document(row) for row in read_texts(path)}


def read_queries(path: Source) -> dict[str, Query]:
    """Read queries from a file in a format of :func:`read_documents`; other keys become fields.

    Raises:
        FormatError: For an invalid line, or for a duplicate id.

    Example:
        >>> from rankgauge.sample import sample_path
        >>> read_queries(sample_path("queries.jsonl"))["q05"].text
        'late fees'
    """
    return {row.id: _query(row) for row in read_texts(path)}


def fingerprint_documents(documents: Iterable[Document]) -> str:
    """Return the SHA-256 of documents as 64 hexadecimal digits.

    It is independent of the file format and of the order, and changes with any id, title, text, or
    field. Empty fields are ignored.

    For each document, the SHA-256 of id, title, text, and fields (JSON with sorted keys, all in
    UTF-8), each preceded by its length, is computed. These hashes are added as integers modulo
    2^256, and count and sum are hashed again, so only one document is in memory at a time.

    Args:
        documents: The documents, in any order.

    Raises:
        InputError: If fields cannot be written as JSON.

    Example:
        >>> one, other = Document("d1", text="We open at nine."), Document("d2", "Fees")
        >>> fingerprint_documents([one, other]) == fingerprint_documents([other, one])
        True
    """
    return _digest(b"rankgauge documents 1\n", ((d, (d.title, d.text)) for d in documents))


def _digest(kind: bytes, rows: Iterable[tuple[Document | Query, tuple[str, ...]]]) -> str:
    added = count = 0
    for row, texts in rows:
        digest = hashlib.sha256()
        for part in (row.id, *texts, _fields_text(row)):
            # A lone surrogate, which is not valid UTF-8, must not raise an error.
            raw = part.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little"))
            digest.update(raw)
        added += int.from_bytes(digest.digest(), "little")
        count += 1
    total = (added % (1 << 256)).to_bytes(32, "little")
    return hashlib.sha256(kind + count.to_bytes(8, "little") + total).hexdigest()


def _fields_text(row: Document | Query) -> str:
    if not row.fields:
        return ""
    extra = {
        str(key): value
        for key, value in row.fields.items()
        if not (value is None or (isinstance(value, str | Mapping | list | tuple) and not value))
    }
    try:
        return json.dumps(extra, sort_keys=True, default=str) if extra else ""
    except (TypeError, ValueError) as error:
        raise InputError(
            f"its fields cannot be written as JSON: {error}",
            where=f"{row.id!r}",
            fix="pass fields as a mapping of text to plain values",
        ) from None


def _document(row: TextRow) -> Document:
    return Document(row.id, row.title, row.text, row.fields)


def _query(row: TextRow) -> Query:
    return Query(row.id, _document(row).full_text, row.fields)


def _documents(source: Any) -> Mapping[str, Document]:
    if isinstance(source, str | os.PathLike):
        return _documents_of_rows(kept(TextReader(TextSource.of(source))))
    rows = _items(source, "document", '{"d1": "its text", ...}')
    return {k: v if isinstance(v, Document) else _document(_row(k, v, "document")) for k, v in rows}


def _queries(source: Any) -> Mapping[str, Query]:
    if isinstance(source, str | os.PathLike):
        return read_queries(source)
    rows = _items(source, "query", '{"q1": "the question", ...}')
    return {k: v if isinstance(v, Query) else _query(_row(k, v, "query")) for k, v in rows}


def _items(texts: Any, what: str, example: str) -> Iterator[tuple[str, Any]]:
    if texts is None:
        return
    of_kind("the texts", texts, Mapping, f"pass a path or a mapping: {example}", where=what)
    for key, value in texts.items():
        yield id_text(key), value


def _row(key: str, value: Any, what: str) -> TextRow:
    """Convert a text or a mapping to a row."""
    if isinstance(value, str):
        return TextRow(key, "", value, {})
    if not isinstance(value, Mapping) or not isinstance(value.get("text"), str):
        raise InputError(
            f"got {value!r:.60}, expected a {what}", where=f"{what} {key!r}", fix='pass its text, or {"text": "..."}'
        )
    rest = {str(k): v for k, v in value.items() if k not in {"text", "title", "_id", "id"}}
    return TextRow(key, str(value.get("title") or ""), value["text"], rest)
