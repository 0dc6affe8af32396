"""TREC runs and judgments: the plain reader, one line at a time, and the writer.

Fields are separated by blanks or tabs. Blank lines and lines that begin with ``#`` are skipped.
Judgments have four fields (``query iteration document grade``) or three (without the iteration) on
every line, runs have six (``query Q0 document rank score tag``), five (without the tag) or three
(``query document`` and a number: a rank, as MS MARCO has it, or a score). A rank next to a score is
not read: the score decides.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from rankgauge.core.ids import Ids, IntArray, show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout
from rankgauge.formats.lines import is_content, mistaken_for, shorten
from rankgauge.formats.numbers import lost_number, number_text, read_number
from rankgauge.formats.rows import Rows, score_lines

# The places of query, document and number, by the number of fields.
_PLACES = {
    "judgments": {4: (0, 2, 3), 3: (0, 1, 2)},
    "run": {6: (0, 2, 4), 5: (0, 2, 4), 3: (0, 1, 2)},
}
_RUN, _TAGLESS = 6, 5
# The place of a rank next to the score.
_RANKS = {"run": {6: 3, 5: 3}}
# The formats of three columns, and what their third one is.
THIRD_COLUMNS = {"msmarco": "query document rank", "trec3": "query document score"}
# Rows written together.
_AT_ONCE = 1 << 16
# Lines that decide the number of fields if some lines are broken.
_LOOK = 1000


def places_of(fields: Sequence[bytes], layout: Layout) -> tuple[int, int, int] | None:
    """The places of query, document and number among such fields; None if they do not fit."""
    # Five fields may also lack another one than the tag: then a rank would be taken for a score.
    if layout is RUN and len(fields) == _TAGLESS and fields[1].upper() != b"Q0":
        return None
    return _PLACES[layout.name].get(len(fields))


def rank_place(width: int, layout: Layout) -> int:
    """Position of the rank next to a score among this many fields; -1 if there is none."""
    return _RANKS.get(layout.name, {}).get(width, -1)


def is_line(fields: list[bytes], layout: Layout) -> bool:
    """Whether these are the fields of such a line: the right number, with a number in its place."""
    places = places_of(fields, layout)
    return places is not None and not math.isnan(_number(fields[places[2]]))


def read_trec(
    lines: Iterable[tuple[int, bytes]], rows: Rows, separator: bytes | None = None
) -> PairTable:
    """Read numbered lines, whose fields are separated by blanks and tabs, or by `separator`."""
    (table,) = trec_pieces(lines, rows, separator)
    return table


def trec_pieces(
    lines: Iterable[tuple[int, bytes]], rows: Rows, separator: bytes | None = None
) -> Iterator[PairTable]:
    """Read as :func:`read_trec`, one table each time that the rows are full."""
    layout = rows.layout
    lines, width, places = _usual_fields(lines, rows, separator)
    longer = 0
    for number, line in lines:
        parts = line.split() if separator is None else line.rstrip(b"\r\n").split(separator)
        if not parts or not parts[0] + parts[-1] or parts[0].startswith(b"#"):
            continue
        if len(parts) > _RUN and layout is RUN and width in {0, _RUN} and _tag_has_blank(parts):
            longer += 1
            parts = parts[:_RUN]
        if len(parts) != width:
            found = places_of(parts, layout)
            if width or found is None:
                rows.refuse(number, *_miscounted(parts, width, layout), text=line)
                continue
            width, places = len(parts), found
        query, doc, column = places
        value = _number(parts[column])
        if not math.isfinite(value):
            what, fix, not_finite = _unusable(parts[column], layout)
            rows.refuse(
                number, what, fix, column=column + 1, text=line,
                ids=(parts[query], parts[doc]), not_finite=not_finite,
            )  # fmt: skip
            continue
        rows.add(number, parts[query], parts[doc], value)
        if rows.with_ranks and (rank := rank_place(width, layout)) >= 0:
            rows.ranks.append(_number(parts[rank]))
        if rows.full:
            yield _table_of(rows, places, 0)
            rows.clear()
    if not rows.ended:
        yield _table_of(rows, places, longer)


def _table_of(rows: Rows, places: tuple[int, int, int], longer: int) -> PairTable:
    if not rows.lines:
        fix = f"give lines such as: {rows.layout.example}"
        raise FormatError("there is no line to read", path=rows.name, fix=fix)
    table = rows.table(places=(places[0] + 1, places[1] + 1, places[2] + 1))
    if longer:
        text = f"{rows.name}: {longer} lines have text after the tag, which is not read"
        table = table.with_notes(text)
    return as_read(table, rows.name)


_Lines: TypeAlias = Iterable[tuple[int, bytes]]


def _usual_fields(
    lines: _Lines, rows: Rows, separator: bytes | None
) -> tuple[_Lines, int, tuple[int, int, int]]:
    """The lines, and where errors are reported how many fields most have, and which are read."""
    fitting: dict[int, tuple[int, int, int]] = {0: (0, 0, 0)}
    if rows.on_error is None:
        return lines, 0, fitting[0]
    lines = iter(lines)
    head = list(itertools.islice(lines, _LOOK))
    widths: Counter[int] = Counter()
    for _, line in head:
        parts = line.strip().split(separator)
        places = places_of(parts, rows.layout) if is_content(line) else None
        if places is not None:
            fitting[len(parts)] = places
            widths[len(parts)] += 1
    width = max(widths, key=widths.__getitem__, default=0)
    return itertools.chain(head, lines), width, fitting[width]


def _tag_has_blank(parts: Sequence[bytes]) -> bool:
    """Whether a blank is in the tag alone: with one in an id, other fields would be numbers."""
    return (
        parts[1].upper() == b"Q0"
        and parts[3].isdigit()
        and not math.isnan(_number(parts[4]))
        and math.isnan(_number(parts[5]))
    )


def as_read(table: PairTable, name: str) -> PairTable:
    """The table with its source, and a note on ids that are not UTF-8."""
    strange = table.queries.not_text() + table.docs.not_text()
    if not strange:
        return table.with_notes(source=name)
    text = f"{name}: {strange} ids are not UTF-8: compared byte by byte"
    return table.with_notes(text, source=name)


def _number(field: bytes) -> float:
    try:
        return read_number(field)
    except ValueError:
        return math.nan


def _unusable(field: bytes, layout: Layout) -> tuple[str, str, bool]:
    """What is wrong with a number, the fix, and whether it is one that is not finite."""
    lost = lost_number(field, layout)
    if lost is not None:
        return *lost, False
    shown = f"{layout.value} {shorten(field)!r}"
    try:
        read_number(field)
    except ValueError:
        return f"{shown} is not a number", f"write the {layout.value} as a number", False
    return f"{shown} is not a finite number", layout.fix, True


def _miscounted(parts: list[bytes], width: int, layout: Layout) -> tuple[str, str]:
    """What is wrong with a line of this many fields, and the fix."""
    got = "1 field" if len(parts) == 1 else f"{len(parts)} fields"
    if width:
        return f"got {got}, expected {width} as before", "fix the line, or remove it"
    wanted = "6" if layout is RUN else "4 (or 3, without the iteration)"
    fix = f"write lines such as: {layout.example}"
    if layout is RUN and len(parts) > _RUN:
        fix += " (no blanks inside an id or the tag)"
    elif layout is RUN and len(parts) == 2:
        fix += (
            "; for lines of query and document only, best first, number the documents of each "
            "query: "
        )
        fix += "awk '{print $1, $2, ++n[$1]}'"
    elif layout is JUDGMENTS and len(parts) == _TAGLESS and not math.isnan(_number(parts[-1])):
        fix += (
            "; judgments of a sample (query 0 document stratum grade) are read for measures of "
            "samples, such as infNDCG; preferences (query group subgroup document grade) for "
            "measures of preferences, such as Prefs"
        )
    elif is_line(parts, JUDGMENTS if layout is RUN else RUN):
        looks = JUDGMENTS.words if layout is RUN else RUN.words
        fix = f"this looks like {looks}: give the judgments first, then the run"
    return f"got {got}, expected {wanted}: {layout.fields}", fix


def read_third_column(table: PairTable, name: str, form: str | None) -> PairTable:
    """A run of three columns, with its third column read as a rank or as a score."""
    if form == "trec3":
        return table
    strange = _uncounted(table)
    if strange is None or form == "msmarco":
        text = f"{name}: the third column is read as a rank: documents are in that order"
        if form is None:
            text = (
                f"{name}: the third column counts 1 to n in every query, so it is read as a rank "
                "(--format trec3 reads it as a score)"
            )
        return replace(table, values=-table.values).with_notes(text)
    count = int(table.offsets[strange + 1] - table.offsets[strange])
    ranks = f"1 to {count}" if count > 1 else "1"
    raise FormatError(
        "got 3 fields, and the third may be a rank or a score: for query "
        f"'{show_id(table.queries[strange])}' it is not {ranks}", path=name,
        fix="choose: --format msmarco (query document rank) or --format trec3 (query document "
        "score); in Python, format='msmarco' or format='trec3'",
    )  # fmt: skip


def _uncounted(table: PairTable) -> int | None:
    """The first query whose numbers are not 1 to n, in any order."""
    counts = np.diff(table.offsets)
    values = table.values
    fits = (values >= 1) & (values <= np.repeat(counts, counts)) & (values == np.floor(values))
    seen = np.zeros(len(values), dtype=bool)
    # Numbers that fit and all differ leave no place empty.
    seen[np.repeat(table.offsets[:-1], counts)[fits] + values[fits].astype(np.int64) - 1] = True
    missed = np.flatnonzero(~seen)
    if not len(missed):
        return None
    return int(np.searchsorted(table.offsets, missed[0], side="right")) - 1


def trec_lines(tables: Iterable[PairTable], layout: Layout, tag: str = "") -> Iterator[bytes]:
    """A file in TREC format, query by query; runs best score first, with their rank."""
    tags = tag.encode("utf-8", "replace").split() or [b"run"]
    # Bytes as Latin-1 characters: joining text is faster.
    end = f" {b'_'.join(tags).decode('latin-1')}\n"
    for place, table in enumerate(tables):
        _refuse_queries(table.queries, first=not place)
        for number, query in enumerate(table.queries.tolist()):
            start, stop = table.offsets[number : number + 2].tolist()
            values, order = table.values[start:stop], None
            if layout is RUN and (values[1:] > values[:-1]).any():
                order = start + np.argsort(-values, kind="stable")
            named = query.decode("latin-1")
            # A query with very many documents is written in parts, to save memory.
            for first in range(0, stop - start, _AT_ONCE):
                last = min(first + _AT_ONCE, stop - start)
                rows = slice(start + first, start + last) if order is None else order[first:last]
                if layout is RUN:
                    yield _run_lines(table, rows, (f"{named} Q0 ", end), first + 1)
                else:
                    yield _judgment_lines(table, rows, named)


def _refuse_queries(queries: Ids, *, first: bool) -> None:
    _refuse_blanks(queries, "query id")
    for query in queries.tolist():
        if query.startswith(b"#"):
            raise _unwritable(query, "query id", "such a line is a comment")
        if first and mistaken_for(query + b" "):
            text = f"the file would be read as {mistaken_for(query + b' ')}"
            raise _unwritable(query, "query id", text)
        first = False


def _run_lines(
    table: PairTable, rows: slice | IntArray, around: tuple[str, str], first: int
) -> bytes:
    start, end = around
    if start.isascii() and end.isascii():
        lines = score_lines(table, rows, (start, " ", end), first)
        if lines is not None:
            return lines
    pairs = zip(_doc_texts(table, rows), table.values[rows].tolist(), strict=True)
    ranked = enumerate(pairs, first)
    text = "".join([f"{start}{doc} {rank} {value!r}{end}" for rank, (doc, value) in ranked])
    return text.encode("latin-1")


def _judgment_lines(table: PairTable, rows: slice | IntArray, query: str) -> bytes:
    pairs = zip(_doc_texts(table, rows), table.values[rows].tolist(), strict=True)
    lines = [f"{query} 0 {doc} {number_text(value, JUDGMENTS)}\n" for doc, value in pairs]
    return "".join(lines).encode("latin-1")


def msmarco_lines(tables: Iterable[PairTable], *_: object) -> Iterator[bytes]:
    """A run of MS MARCO: ``query TAB document TAB rank``."""
    for table in tables:
        _refuse_blanks(table.queries, "query id")
        rows, ends = ranked_rows(table), table.offsets.tolist()
        for number, query in enumerate(table.queries.tolist()):
            docs = _doc_texts(table, rows[ends[number] : ends[number + 1]])
            named = query.decode("latin-1")
            lines = [f"{named}\t{doc}\t{rank}\n" for rank, doc in enumerate(docs, 1)]
            yield "".join(lines).encode("latin-1")


def ranked_rows(table: PairTable) -> IntArray:
    """The rows in ranked order, query by query: equal scores by document id, descending."""
    numbers = table.query_numbers()
    by_score = np.lexsort((-table.values, numbers))
    values, queries = table.values[by_score], numbers[by_score]
    new = np.ones(len(by_score), dtype=bool)
    new[1:] = (values[1:] != values[:-1]) | (queries[1:] != queries[:-1])
    if new.all():
        return by_score
    return by_score[table.docs.descending(by_score, np.cumsum(new))]


def _doc_texts(table: PairTable, rows: slice | IntArray) -> list[str]:
    """The documents of these rows, each byte as the character of its number."""
    given = table.docs.take(rows).tolist()
    joined = b"\n".join(given)
    if joined.split() != given:
        _refuse_blanks(table.docs, "document id")
    return joined.decode("latin-1").split("\n") if given else []


def _refuse_blanks(ids: Ids, what: str) -> None:
    blank = dict.fromkeys(value for value in ids.tolist() if value.split() != [value])
    if blank:
        others = "" if len(blank) == 1 else f" ({len(blank)} ids have some)"
        raise _unwritable(next(iter(blank)), what, f"blanks separate fields{others}")


def _unwritable(value: bytes, what: str, why: str) -> InputError:
    return InputError(
        f"{what} '{show_id(value)}' cannot be written: {why}",
        fix="rename it, or write JSON: give a path that ends in .json",
    )
