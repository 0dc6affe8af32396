"""Base of judgments with labels in addition to grades.

Labels are the subtopic, the stratum, or group and subgroup. `formats.extra_columns` reads rows with
these columns; this module arranges them by query.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from rankgauge.core.arguments import of_kind
from rankgauge.core.ids import Id, Ids, IntArray, freeze, id_bytes, show_id
from rankgauge.core.pair_table import FloatArray, PairTable, distinct, heads_of, offsets_of
from rankgauge.data.join import Joined, numbered
from rankgauge.data.judged_run import JudgedRun
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.formats.columns import JUDGMENTS, number_text
from rankgauge.formats.extra_columns import Wide, WideRows, row_place, wide_rows, write_wide
from rankgauge.formats.lines import Source
from rankgauge.formats.rows import id_texts

_CELLS = 1 << 17


@dataclass(frozen=True, eq=False, repr=False)
class SpecialQrels(Mapping[str, Any]):
    """Judgments with labels: entries by query, each with a document, labels, and a grade.

    Attributes:
        qrels: The same as ordinary judgments, with the highest grade of each document.
        offsets: (Q + 1,) entries of query q are ``offsets[q]:offsets[q + 1]``.
        row: (E,) row of the entry's document in ``qrels.table``.
        labels: Labels of the entries, one column of ids per kind of label.
        grade: (E,) grade of the entry.
    """

    reads: ClassVar[str]
    """Kind of judgments that measures read: `Declaration.reads`."""
    layout: ClassVar[Wide]
    """Declaration of the rows."""
    labeled: ClassVar[str]
    """Name of what ordinary judgments lack, for messages."""
    note: ClassVar[str]
    """Note on the interpretation of ordinary measures."""
    nesting: ClassVar[tuple[str, ...]]
    """Order of entries and of mapping levels: labels and ``document``."""
    judged_once: ClassVar[tuple[str, ...]]
    """Labels that, with query and document, identify a grade."""

    qrels: Qrels
    offsets: IntArray
    row: IntArray
    labels: tuple[Ids, ...]
    grade: FloatArray

    def __post_init__(self) -> None:
        freeze(self.offsets, self.row, self.grade)

    @classmethod
    def of(cls, source: Any) -> Self:
        """Convert any supported source to judgments of this kind."""
        if isinstance(source, cls):
            return source
        if isinstance(source, Qrels | Run) or hasattr(type(source), "reads"):
            raise InputError(
                f"got the run {source.name!r}, expected judgments"
                if isinstance(source, Run)
                else f"these judgments have no {cls.labeled}",
                where="judgments",
                fix=f"pass {cls.layout.words}: a path, {cls.layout.mapping}, or rows ({', '.join(cls.layout.written)})",
            )
        return cls._of_rows(wide_rows(source, cls.layout))

    @classmethod
    def read(cls, path: Source, form: str | None = None) -> Self:
        """Read judgments of this kind from a file: TREC format, CSV, TSV, JSON, or JSON lines."""
        return cls._of_rows(wide_rows(path, cls.layout, form))

    @classmethod
    def _of_rows(cls, rows: WideRows) -> Self:
        return cls._made(rows, *rows.queries.unique(), f"{rows.source}: {cls.note}")

    @classmethod
    def _made(cls, rows: WideRows, query: IntArray, queries: Ids, *notes: str) -> Self:
        """Build judgments from rows: queries in order of appearance, documents by ascending id."""
        codes = {name: labels.ascending() for name, labels in rows.labels.items()}
        codes["document"] = doc = rows.docs.ascending()
        cls._refuse_repeated(rows, query, codes)
        by_doc = np.lexsort((doc, query))
        heads = heads_of(query[by_doc], doc[by_doc])
        row = np.empty(len(by_doc), dtype=np.int64)
        row[by_doc] = np.searchsorted(heads, np.arange(len(by_doc)), side="right") - 1
        table = PairTable(
            queries,
            offsets_of(np.bincount(query[by_doc[heads]], minlength=len(queries))),
            rows.docs.take(by_doc[heads]).compact(),
            np.maximum.reduceat(rows.grades[by_doc], heads) if len(heads) else rows.grades,
            unique=True,
            source=rows.source,
            notes=notes,
        )
        order = np.lexsort((*(codes[name] for name in reversed(cls.nesting)), query))
        return cls(
            qrels=Qrels(table),
            offsets=offsets_of(np.bincount(query, minlength=len(queries))),
            row=row[order],
            labels=tuple(rows.labels[name].take(order).compact() for name in cls.layout.columns),
            grade=rows.grades[order],
        )

    @classmethod
    def _refuse_repeated(cls, rows: WideRows, query: IntArray, codes: Mapping[str, IntArray]) -> None:
        keys = [query, *(codes[name] for name in cls.judged_once), codes["document"]]
        order = np.lexsort(keys[::-1])
        same = np.logical_and.reduce([key[order][1:] == key[order][:-1] for key in keys])
        if not same.any():
            return
        at = int(np.flatnonzero(same)[0])
        one, other = order[at : at + 2].tolist()
        named = [f"{name} '{show_id(rows.labels[name][one])}'" for name in cls.judged_once[::-1]]
        raise InputError(
            f"duplicate document '{show_id(rows.docs[one])}' for "
            + " of ".join([*named, f"query '{show_id(rows.queries[one])}'"]),
            where=row_place(rows, *sorted((one, other))),
            fix="keep one grade of each document for each " + " and ".join(cls.judged_once or ("query",)),
        )

    def write(self, path: Source, form: str | None = None) -> None:
        """Write the judgments to a file atomically.

        Args:
            path: The file, whose name determines the format (default: TREC format); ``-`` is
                standard output.
            form: ``trec``, ``csv``, ``tsv``, ``json``, or ``jsonl``.

        Raises:
            InputError: If the format cannot represent an id, or the file cannot be written.
        """
        rows = list(self.rows())
        nested: dict[str, Any] = {}
        for row in rows:
            cells = dict(zip(self.layout.parts, row, strict=True))
            inside = nested.setdefault(cells["query"], {})
            for level in self.nesting[:-1]:
                inside = inside.setdefault(cells[level], {})
            inside[cells[self.nesting[-1]]] = cells["grade"]
        texts = ((*row[:-1], number_text(row[-1], JUDGMENTS)) for row in rows)
        write_wide(texts, nested, self.layout, path, form=form)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the entries as rows in column order, with exact ids as text.

        Raises:
            InputError: If an id is not UTF-8.
        """
        cells: dict[str, list[Any]] = {
            "query": id_texts(self.qrels.table.queries.take(self.query)),
            "document": id_texts(self.qrels.table.docs.take(self.row)),
            "grade": self.grade.tolist(),
        }
        for name, labels in zip(self.layout.columns, self.labels, strict=True):
            cells[name] = id_texts(labels)
        yield from zip(*(cells[field] for field in self.layout.parts), strict=True)

    def __len__(self) -> int:
        return len(self.qrels)

    def __iter__(self) -> Iterator[str]:
        return iter(self.qrels)

    def __getitem__(self, query: Id) -> Any:
        number = self.qrels.query_index.get(id_bytes(query))
        if number is None:
            raise KeyError(query)
        own = slice(*self.offsets[number : number + 2].tolist())
        columns = dict(zip(self.layout.columns, self.labels, strict=True))
        levels = [
            self.qrels.table.docs.take(self.row[own]).shown() if name == "document" else columns[name].take(own).shown()
            for name in self.nesting
        ]
        found: dict[str, Any] = {}
        for *outer, last, grade in zip(*levels, self.grade[own].tolist(), strict=True):
            inside = found
            for key in outer:
                inside = inside.setdefault(key, {})
            inside[last] = grade
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        # Compare exact ids; iteration yields them as displayed.
        mine, theirs = (each.qrels.table.queries.tolist() for each in (self, other))
        return {q: self[q] for q in mine} == {q: other[q] for q in theirs}

    __hash__ = None  # type: ignore[assignment] # holds arrays

    @cached_property
    def query(self) -> IntArray:
        """(E,) number of each entry's query."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def label_number(self) -> tuple[IntArray, int]:
        """(E,) number of each entry's first label within its query, and their total number."""
        codes = self.labels[0].ascending()
        wide = int(codes.max(initial=0)) + 1
        pairs = self.query * wide + codes
        known = distinct(pairs)
        first = np.searchsorted(known, np.arange(len(self)) * wide)
        return np.searchsorted(known, pairs) - first[self.query], len(known)

    @cached_property
    def width(self) -> int:
        """Largest number of labels of a query."""
        return int(self.label_number[0].max(initial=0)) + 1

    @cached_property
    def keyed(self) -> PairTable:
        """The entries as pairs: each document followed by a NUL and its labels, with its grade."""
        docs = self.qrels.table.docs.take(self.row).tolist()
        names = map(b"\0".join, zip(*(labels.tolist() for labels in self.labels), strict=True))
        keyed = Ids.keyed(zip(docs, names, strict=True))
        return PairTable(self.qrels.table.queries, self.offsets, keyed, self.grade, unique=True)

    @cached_property
    def _numbered(self) -> Qrels:
        return numbered(self.qrels)

    def blocks(self, joined: Joined, queries: IntArray, cells: int = _CELLS) -> Iterator[tuple[IntArray, Any]]:
        """Yield kernel inputs for blocks of these queries, with the indices of their rows."""
        joined = joined.by_rows(self._numbered)
        for places, block in joined.blocks(queries, max(1, cells // self.width)):
            yield places, self._seen(block, queries[places])

    @abstractmethod
    def _seen(self, block: JudgedRun, queries: IntArray) -> Any:
        """Return the kernel input for a block whose grades are row numbers of documents."""

    @abstractmethod
    def tied(self, joined: Joined) -> IntArray:
        """Return the queries in which a tie could change a value."""


def as_mapping(found: Any, where: str, wanted: str, layout: str) -> Mapping[Any, Any]:
    """Check that a level of a nested mapping is a mapping, and return it."""
    of_kind(wanted, found, Mapping, f"write {layout}", where=f"judgments, {where}")
    level: Mapping[Any, Any] = found
    return level
