"""Tantivy: BM25 in memory or in a folder."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from rankgauge.core.arguments import integer
from rankgauge.core.libraries import library, versions
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers.base import Ranking, indexed

# Names of analyzers in an index; another process can recreate an analyzer from its name.
_OURS = re.compile(r"rankgauge_([a-z]+)_([a-z]+)")
_LONGEST = 40
_WORD = re.compile(r"[^\W_]+")
_META, _MANAGED = "meta.json", ".managed.json"
_LOCKS = (".tantivy-meta.lock", ".tantivy-writer.lock")


@dataclass(eq=False, repr=False)
class Tantivy:
    """Tantivy's BM25, with fixed k1 = 1.2 and b = 0.75.

    Any word of the query may match; a word that occurs twice in a query counts twice. Queries have
    no syntax. Title and text are one field. Ties keep the order in which documents were indexed.

    Args:
        stemmer: The language of the stemmer, such as ``"english"`` or ``"german"``; None for no
            stemming.
        stop_words: The language of the stop words to remove; None for none.
        location: The path of a folder; None for memory.
        existing: Whether to search an existing index unchanged, with its own stemmer;
            ``index()`` only checks it.
        replace: Whether to remove an existing index, even if created elsewhere.
        id_field: The field of document ids, which is stored.
        fields: The fields of an existing index to search.
        filter_field: Search only documents whose field of this name equals the same field of the
            query, as text; queries without the field search all.
        heap: Memory for indexing in bytes.

    Raises:
        MissingExtra: If tantivy is not installed.
        InputError: If options are invalid or incompatible.
    """

    stemmer: str | None = "english"
    _: KW_ONLY
    stop_words: str | None = None
    location: str | None = None
    existing: bool = False
    replace: bool = False
    id_field: str = "id"
    fields: Sequence[str] = ("text",)
    filter_field: str | None = None
    heap: int = 64_000_000

    def __post_init__(self) -> None:
        self._tantivy = library("tantivy", extra="tantivy", of="Tantivy")
        if self.existing and (self.location is None or self.replace):
            raise InputError(
                "existing=True needs the location of an index, and excludes replace=True",
                where="tantivy",
                fix='pass location="its/folder", and omit replace',
            )
        if isinstance(self.fields, str) or not self.fields or (not self.existing and len(self.fields) > 1):
            raise InputError(
                f"fields={self.fields!r:.60} is not valid",
                where="tantivy",
                fix='pass one name in a list, ["text"], or those of an existing index',
            )
        self.fields = list(self.fields)
        if len({self.id_field, self.filter_field, *self.fields}) < len(self.fields) + 2:
            raise InputError(
                "a field can have only one use",
                where="tantivy",
                fix="give id_field, filter_field, and fields different names",
            )
        self._folder = None if self.location is None else Path(self.location)
        integer("heap", self.heap, least=15_000_000)  # the minimum that Tantivy accepts
        self._made = False
        self._index: Any = None
        self._analyzer = self._build_analyzer(self.stemmer, self.stop_words)

    @property
    def settings(self) -> Mapping[str, Any] | None:
        """Settings that determine the rankings; None for an existing index, which may change."""
        if self.existing:
            return None
        return {
            "type": "tantivy",
            "stemmer": self.stemmer,
            "stop_words": self.stop_words,
            "filter_field": self.filter_field,
            "versions": versions("tantivy"),
        }

    @property
    def size(self) -> int | None:
        """Bytes of the folder; None in memory."""
        if self._folder is None:
            return None
        return sum(file.stat().st_size for file in self._folder.rglob("*") if file.is_file())

    def close(self) -> None:
        """Close the index; files in a folder are kept."""
        self._index = None

    def index(self, documents: Iterable[Document]) -> None:
        """Create the index; with ``existing=True``, only check it.

        Raises:
            InputError: If an index exists that this object did not create, or an existing index is
                missing.
        """
        self._index = None
        if self.existing:
            self._index = self._open()
            return
        self._clear()
        index = self._create()
        self._made = True
        # One thread: with several, the order of documents, and so the order of ties, would be
        # random.
        writer = index.writer(self.heap, 1)
        for document in documents:
            row = self._tantivy.Document()
            row.add_text(self.id_field, document.id)
            row.add_text(self.fields[0], document.full_text)
            value = document.fields.get(self.filter_field) if self.filter_field else None
            if isinstance(value, str | int):
                row.add_text(self.filter_field, _text_of(value))
            writer.add_document(row)
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self._index = index

    def search(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        """Return at most `k` documents for each query, best first, with scores.

        Raises:
            InputError: If nothing was indexed.
        """
        if self._index is None and self.existing:
            self._index = self._open()
        searcher = indexed(self, self._index).searcher()
        return [self._ranking(searcher, query, k) for query in queries]

    # ---- indexing

    def _build_analyzer(self, stemmer: str | None, stop_words: str | None) -> Any:
        """Return an analyzer, which splits texts into words."""
        part = self._tantivy.Filter
        builder = self._tantivy.TextAnalyzerBuilder(self._tantivy.Tokenizer.simple())
        builder = builder.filter(part.remove_long(_LONGEST)).filter(part.lowercase())
        try:
            if stop_words is not None:
                builder = builder.filter(part.stopword(stop_words))
            if stemmer is not None:
                builder = builder.filter(part.stemmer(stemmer))
            return builder.build()
        except (ValueError, TypeError) as error:
            raise InputError(
                f"{error}: stemmer={stemmer!r}, stop_words={stop_words!r}",
                where="tantivy",
                fix='write the English name of a language: "english"',
            ) from error

    def _create(self) -> Any:
        name = f"rankgauge_{self.stemmer or 'none'}_{self.stop_words or 'none'}"
        builder = self._tantivy.SchemaBuilder()
        builder.add_text_field(self.id_field, stored=True, tokenizer_name="raw", index_option="basic")
        builder.add_text_field(self.fields[0], tokenizer_name=name, index_option="freq")
        if self.filter_field:
            builder.add_text_field(self.filter_field, tokenizer_name="raw", index_option="basic")
        schema = builder.build()
        if self._folder is None:
            index = self._tantivy.Index(schema)
        else:
            self._folder.mkdir(parents=True, exist_ok=True)
            index = self._tantivy.Index(schema, path=str(self._folder))
        index.register_tokenizer(name, self._analyzer)
        return index

    def _clear(self) -> None:
        folder = self._folder
        if folder is None or not (folder / _META).exists():
            return
        if not self._made and not self.replace:
            raise InputError(
                "an index already exists",
                where=str(folder),
                fix="search it with existing=True, remove it with replace=True, or pass another folder",
            )
        managed = json.loads((folder / _MANAGED).read_text("utf-8"))
        for name in [*managed, *_LOCKS, _MANAGED, _META]:
            (folder / Path(name).name).unlink(missing_ok=True)

    def _open(self) -> Any:
        folder = str(self._folder)
        try:
            index = self._tantivy.Index.open(folder)
            self._register_analyzers(index)
            index.searcher()
            for field in self.fields:
                index.parse_query('"a"', [field])
        except ValueError as error:
            raise InputError(
                f"cannot be searched: {error}",
                where=folder,
                fix="name the folder of an index of Tantivy, and its fields: fields=[...]",
            ) from error
        return index

    def _register_analyzers(self, index: Any) -> None:
        """Register the analyzers of an index: the index itself stores only their names."""
        schema = json.loads((Path(self._folder or "") / _META).read_text("utf-8"))["schema"]
        for field in schema:
            indexing = (field.get("options") or {}).get("indexing") or {}
            name = indexing.get("tokenizer", "") if isinstance(indexing, dict) else ""
            if ours := _OURS.fullmatch(name):
                stemmer, stop_words = (None if word == "none" else word for word in ours.groups())
                index.register_tokenizer(name, self._build_analyzer(stemmer, stop_words))

    # ---- searching

    def _ranking(self, searcher: Any, query: Query, k: int) -> Ranking:
        if k < 1 or not _WORD.search(query.text):
            return []
        rows: dict[str, float] = {}
        for score, address in searcher.search(self._parsed(query), k, count=False).hits:
            held = searcher.doc(address).to_dict()
            if self.id_field not in held:
                raise InputError(
                    f"a hit has no document id in {self.id_field!r}; it has {', '.join(sorted(held)) or 'nothing'}",
                    where="tantivy",
                    fix="name the field that contains it: id_field=...",
                )
            rows.setdefault(str(held[self.id_field][0]), score)
        return list(rows.items())

    def _parsed(self, query: Query) -> Any:
        """Return a query in which each word is optional and weighted by its count, with the filter."""
        kind, occur = self._tantivy.Query, self._tantivy.Occur
        words = [
            # Quoted letters and digits contain no query syntax.
            (occur.Should, kind.boost_query(self._index.parse_query(f'"{word}"', self.fields), float(count)))
            for word, count in Counter(_WORD.findall(query.text)).items()
        ]
        asked = kind.boolean_query(words)
        value = query.fields.get(self.filter_field) if self.filter_field else None
        if value is None:
            return asked
        term = kind.term_query(self._index.schema, self.filter_field, _text_of(value))
        # Score 0: the filter selects documents but does not affect their ranks.
        return kind.boolean_query([(occur.Must, asked), (occur.Must, kind.const_score_query(term, 0.0))])


def _text_of(value: str | int) -> str:
    """Return a filter value as text, as SQL would cast it."""
    return value if isinstance(value, str) else str(value).lower()
