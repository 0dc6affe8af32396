"""Read mappings and rows in memory: ``{"q1": {"d1": 2}}``, ``[("q1", "d1", 2)]``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, Sequence, Set as AbstractSet
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from rankgauge.core import native
from rankgauge.core.ids import Ids, show_id
from rankgauge.core.pair_table import PairTable, offsets_of
from rankgauge.errors import InputError
from rankgauge.formats.columns import JUDGMENTS, RUN, Columns, Layout, columns_of, is_missing, numbers_of
from rankgauge.formats.frames import blame_row, from_columns, listed, short
from rankgauge.formats.rows import PairInput, finite

# Mappings with more entries are documents by query, never columns of a table.
_WIDE = 64


def from_mapping(data: Mapping[Any, Any], origin: PairInput) -> PairTable:
    """Read a mapping from query id to a mapping with numbers, a list, or (judgments) a set.

    A list is in ranked order. A mapping from column names to columns is read as columns.
    """
    layout, source, on_error, _ = origin
    data = _unlabelled(_read_once(data, source), origin)
    columns = _columns(data, layout)
    if columns is not None:
        queries, docs, values = (data[name] for name in columns.read)
        return from_columns(queries, docs, values, origin, columns=columns)
    queries = Ids.of(list(data), "query id", blame_row(source, "query"))
    inner = list(data.values())
    packed = None if on_error or native.core is None else native.core.pack_dicts(inner)
    if packed is not None:
        starts, lengths, sizes = (np.frombuffer(packed[n], np.int64) for n in (1, 2, 4))
        docs = Ids(np.frombuffer(packed[0], np.uint8), starts, lengths)
        if layout is JUDGMENTS:
            # Decoding the ids again would cost more than measuring a run.
            vars(docs)["texts"] = packed[5]
        values, paired = np.frombuffer(packed[3]), layout is RUN and not len(starts)
        return PairTable(queries, offsets_of(sizes), docs, values, unique=True, source=source, paired=paired)
    if set(map(type, inner)) <= {dict}:
        parts: list[tuple[Any, Any]] = [(value, value.values()) for value in inner]
    else:
        parts = [_parts(value, layout, _place(source, queries, q)) for q, value in enumerate(inner)]
    # Lists of pairs, whose order may matter, or empty ones.
    paired = layout is RUN and all(
        not len(numbers) or (isinstance(numbers, list) and not hasattr(value, "dtype"))
        for value, (_, numbers) in zip(inner, parts, strict=True)
    )
    # Keys of a mapping are unique; labels of a series may not be.
    unique = all(isinstance(value, Mapping) for value in inner)
    return replace(_of_parts(queries, parts, origin, unique=unique), paired=paired)


def _read_once(data: Mapping[Any, Any], where: str) -> dict[Any, Any]:
    """Return a mapping as a dict; other mappings may change, or have a wrong length."""
    if type(data) is dict:
        return data
    try:
        return dict(data.items())
    except (LookupError, RuntimeError) as error:
        raise InputError(
            f"this {type(data).__name__} cannot be read: {type(error).__name__}: {error}",
            where=where,
            fix="pass a dict, and do not change it meanwhile",
        ) from None


def _of_parts(queries: Ids, parts: list[tuple[Any, Any]], origin: PairInput, *, unique: bool) -> PairTable:
    layout, source, on_error, _ = origin
    offsets = offsets_of([len(docs) for docs, _ in parts])

    def place(row: int) -> str:
        return _place(source, queries, int(np.searchsorted(offsets, row, side="right")) - 1)

    def by_query(row: int, what: str, fix: str) -> InputError:
        return InputError(what, where=place(row), fix=fix)

    def by_pair(row: int, what: str, fix: str) -> InputError:
        return InputError(what, where=f"{place(row)}, document '{show_id(docs[row])}'", fix=fix)

    ids = list(itertools.chain.from_iterable(docs for docs, _ in parts))
    numbers = list(itertools.chain.from_iterable(numbers for _, numbers in parts))
    if not len(ids) == len(numbers) == offsets[-1]:
        raise InputError(
            "the number of documents changed during reading, or is not len() of the ranking",
            where=source,
            fix="pass plain dicts and lists, and do not change them",
        )
    docs = Ids.of(ids, "document id", by_query)
    if on_error is not None:
        numbers = [math.nan if is_missing(number) else number for number in numbers]
    values = numbers_of(numbers, layout, by_pair)
    return finite(PairTable(queries, offsets, docs, values, unique=unique, source=source), origin)


def _place(source: str, queries: Ids, number: int) -> str:
    return f"{source}, query '{show_id(queries[number])}'"


def _parts(value: Any, layout: Layout, where: str) -> tuple[Any, Any]:
    """Return the documents of one query, from any container, and their numbers."""
    if isinstance(value, Mapping):
        documents = _read_once(value, where)
        return documents, documents.values()
    pairs = labelled(value, where)
    if pairs is not None:
        return pairs
    docs = _documents(value, layout, where, ordered=layout is RUN)
    listed = [issubclass(kind, tuple | list) for kind in set(map(type, docs))]
    if any(listed):
        if not all(listed) or set(map(len, docs)) != {2}:
            other = next(d for d in docs if not isinstance(d, tuple | list) or len(d) != 2)
            raise InputError(
                f"got {short(other)}, expected a pair (document, {layout.value})",
                where=where,
                fix=f"use only pairs, only document ids, or {{document: {layout.value}}}",
            )
        return [doc for doc, _ in docs], [number for _, number in docs]
    # A plain list is a ranking: the first document gets the highest score. In judgments, grade 1.
    return docs, range(len(docs), 0, -1) if layout is RUN else [1] * len(docs)


def _documents(value: Any, layout: Layout, where: str, *, ordered: bool) -> list[Any]:
    """Return the documents of one query as a list."""
    if not is_list(value) or labelled(value, where) is not None:
        mapping = "" if ordered and layout is JUDGMENTS else f'{{"d1": {layout.value}}} or '
        raise InputError(
            f"got {short(value)}, expected the documents of a query",
            where=where,
            fix=f'write {mapping}a list of document ids: ["d1", "d2"]',
        )
    if ordered and isinstance(value, AbstractSet) and not isinstance(value, KeysView | ItemsView):
        raise InputError(
            "a set has no order, so it is not a ranking", where=where, fix='pass a list, best first: ["d1", "d2"]'
        )
    return listed(value)


def is_list(value: object) -> bool:
    """Return whether this is a sequence of entries, not a string, mapping, or table."""
    plain = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    # Zero-dimensional arrays have an __iter__ method but cannot be iterated.
    return plain and not hasattr(value, "columns") and getattr(value, "ndim", 1) != 0


def labelled(value: Any, where: str) -> tuple[list[Any], list[Any]] | None:
    """Return labels and numbers of a pandas series that is used as a mapping.

    Return None for anything else, and for a series that only lists its values: its labels are row
    numbers, or its values are text and its labels are row numbers of the original frame.
    """
    index = getattr(value, "index", None)
    if index is None or callable(index) or not hasattr(value, "dtype"):
        return None
    if type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1):
        return None
    labels, values = listed(index), listed(value)
    if not all(_is_integer(label) for label in labels):
        return labels, values
    if any(isinstance(entry, str | bytes | tuple | list) for entry in values):
        return None
    if values and all(_is_integer(entry) for entry in values):
        raise InputError(
            "a series has whole numbers as labels and as values, and either could be the ids",
            where=where,
            fix="pass .to_dict() if the labels are the ids, .tolist() if the values are",
        )
    return (labels, values) if values else None


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def from_rankings(data: Any) -> PairTable:
    """Read ranked ground truth, best first: grades decrease to 1 for the last document."""
    source = JUDGMENTS.name
    if not isinstance(data, Mapping):
        raise InputError(
            f"got {short(data)}, expected ordered ground truth",
            where=source,
            fix='pass a mapping: {"q1": ["best", "second"]}',
        )
    data = _read_once(data, source)
    queries = Ids.of(list(data), "query id", blame_row(source, "query"))
    rankings = [
        _documents(value, JUDGMENTS, _place(source, queries, number), ordered=True)
        for number, value in enumerate(data.values())
    ]
    parts = [(docs, range(len(docs), 0, -1)) for docs in rankings]
    return _of_parts(queries, parts, PairInput(JUDGMENTS, source), unique=False)


def _unlabelled(data: Mapping[Any, Any], origin: PairInput) -> Mapping[Any, Any]:
    """Convert a pandas table of the form ``{column: {row: cell}}`` to columns; keep other data.

    If its ids are numbers, such a table looks like a mapping of queries and would be read as one.
    """
    first = next(iter(data.values()), None)
    if not isinstance(first, Mapping):
        return data
    columns = columns_of(data, origin.layout) if len(data) <= _WIDE and _numbered(first) else None
    if columns is not None:
        chosen = [name for name in data if str(name) in {*columns.read, *columns.beside}]
        cells = [data[name] for name in chosen]
        if all(isinstance(column, Mapping) and column.keys() == first.keys() for column in cells):
            return dict(zip(chosen, (list(column.values()) for column in cells), strict=True))
    if len(first) <= _WIDE and _numbered(data) and columns_of(first, origin.layout) is not None:
        names = ", ".join(map(repr, itertools.islice(first, _WIDE)))
        raise InputError(
            f"this looks like the rows of a table ({names}), not documents by query",
            where=origin.name,
            fix='in pandas: df.to_json(path, orient="records"), or pass the data frame itself',
        )
    return data


def _numbered(rows: Mapping[Any, Any]) -> bool:
    """Return whether all keys are row numbers, as numbers or as text in JSON."""
    return all(_is_integer(row) or (isinstance(row, str) and row.isdecimal()) for row in rows)


def _columns(data: Mapping[Any, Any], layout: Layout) -> Columns | None:
    """Return the column names if this is a mapping of columns, not of queries."""
    first = next(iter(data.values()), None)
    if isinstance(first, Mapping | AbstractSet | str) or not all(isinstance(name, str) for name in data):
        return None
    columns = columns_of(data, layout)
    if columns is None:
        return None
    chosen = (data[columns.query], data[columns.doc], data[columns.value])
    return None if any(isinstance(value, Mapping | AbstractSet | str) for value in chosen) else columns


def from_rows(rows: Iterable[Any], layout: Layout) -> PairTable:
    """Read rows of query, document, and number: tuples, or mappings or objects with these names."""
    if isinstance(rows, AbstractSet):
        raise InputError(
            "a set has no order, so it cannot give rows", where=layout.name, fix=f"pass a mapping: {layout.mapping}"
        )

    def choose(names: Iterable[Any]) -> tuple[str, ...] | None:
        columns = columns_of(names, layout)
        return None if columns is None else columns.read

    kind: type | None = None
    pick: Callable[[Any], Any] | None = None
    columns: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for place, row in enumerate(rows):
        try:
            if type(row) is not kind:
                kind, pick = type(row), row_picker(row, choose)
            query, doc, number = row if pick is None else pick(row)
        except ROW_FAULTS:
            raise InputError(
                f"got {short(row)}, expected query, document, and {layout.value}",
                where=f"{layout.name}, row {place + 1}",
                fix=f'pass rows: ("q1", "d1", {layout.value}), or a mapping: {layout.mapping}',
            ) from None
        columns[0].append(query)
        columns[1].append(doc)
        columns[2].append(number)
    return from_columns(*columns, PairInput(layout, layout.name))


# Errors that `row_picker` and its result raise.
ROW_FAULTS = (TypeError, ValueError, KeyError, AttributeError)


def row_picker(row: Any, choose: Callable[[Iterable[Any]], Sequence[str] | None]) -> Callable[[Any], Any] | None:
    """Return a function that extracts the cells of rows like this one by name; None: by position.

    `choose` returns the names of the cells among those of a row, or None if one is missing.
    """
    if isinstance(row, Mapping):
        names = choose(row)
        getter: Callable[..., Any] = itemgetter
    else:
        names = choose(getattr(row, "_fields", () if isinstance(row, tuple | list) else dir(row)))
        getter = attrgetter
    # Text, mappings, and sets could be unpacked, but only by accident.
    if names is None and isinstance(row, str | bytes | Mapping | AbstractSet):
        raise TypeError(row)
    return None if names is None else getter(*names)
