"""Read TREC runs and judgments line by line, and write them.

Fields are separated by blanks or tabs. Blank lines and lines that begin with ``#`` are skipped. All
lines have the same number of fields. Judgments have four fields (``query iteration document
grade``) or three (without the iteration). Runs have six (``query Q0 document rank score tag``),
five (without the tag), or three (``query document`` and a number: a rank, as in MS MARCO, or a
score). A rank next to a score is ignored: scores determine the order.
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
from rankgauge.core.text import inflect, many
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout, number_text, wrong_number
from rankgauge.formats.lines import is_content, mistaken_for
from rankgauge.formats.rows import AT_ONCE, Rows, number_or_nan, score_lines

# Indices of query, document, and number, by number of fields.
_PLACES = {"judgments": {4: (0, 2, 3), 3: (0, 1, 2)}, "run": {6: (0, 2, 4), 5: (0, 2, 4), 3: (0, 1, 2)}}
_RUN, _TAGLESS = 6, 5
# Three-column formats and their columns.
THIRD_COLUMNS = {"msmarco": "query document rank", "trec3": "query document score"}


def places_of(fields: Sequence[bytes], layout: Layout) -> tuple[int, int, int] | None:
    """Return the indices of query, document, and number; None if the fields do not fit."""
    # Five fields may also lack something other than the tag; a rank would then be read as the
    # score.
    if layout is RUN and len(fields) == _TAGLESS and fields[1].upper() != b"Q0":
        return None
    return _PLACES[layout.name].get(len(fields))


def rank_place(width: int, layout: Layout) -> int:
    """Return the index of the rank in lines with `width` fields; -1 if there is none."""
    return 3 if layout is RUN and width in {_RUN, _TAGLESS} else -1


def is_line(fields: list[bytes], layout: Layout) -> bool:
    """Return whether these fields are a valid line: the right count, and a number in its place."""
    places = places_of(fields, layout)
    return places is not None and not math.isnan(number_or_nan(fields[places[2]]))


def trec_pieces(
    lines: Iterable[tuple[int, bytes]], rows: Rows, separator: bytes | None = None, *, like: bytes = b""
) -> Iterator[PairTable]:
    """Read numbered lines with fields separated by white space, or by `separator`.

    Yield a table whenever the rows are full. The lines have as many fields as `like`, if it is given.
    """
    layout = rows.layout
    lines, width, places = _usual_fields(lines, rows, separator, like)
    longer = 0
    for number, line in lines:
        parts = line.split() if separator is None else line.rstrip(b"\r\n").split(separator)
        if not parts or not parts[0] + parts[-1] or parts[0].startswith(b"#"):
            continue
        if len(parts) > _RUN and layout is RUN and width in {0, _RUN} and _tag_has_blank(parts):
            longer += 1
            parts = parts[:_RUN]
        if len(parts) != width:
            line_places = places_of(parts, layout)
            if width or line_places is None:
                rows.refuse(number, *_miscounted(parts, width, layout), text=line)
                continue
            width, places = len(parts), line_places
        query, doc, column = places
        value = number_or_nan(parts[column])
        if not math.isfinite(value):
            what, fix = wrong_number(parts[column].decode("utf-8", "backslashreplace"), layout)
            not_finite = fix == layout.fix
            rows.refuse(
                number, what, fix, column=column + 1, text=line, ids=(parts[query], parts[doc]), not_finite=not_finite
            )
            continue
        rows.add(number, parts[query], parts[doc], value)
        if rows.with_ranks and (rank := rank_place(width, layout)) >= 0:
            rows.ranks.append(number_or_nan(parts[rank]))
        if rows.full:
            yield _table_of(rows, places, 0)
            rows.clear()
    if not rows.ended:
        yield _table_of(rows, places, longer)


def _table_of(rows: Rows, places: tuple[int, int, int], longer: int) -> PairTable:
    if not rows.lines:
        raise FormatError("there are no lines", path=rows.name, fix=f"use lines such as: {rows.layout.example}")
    table = rows.table(places=(places[0] + 1, places[1] + 1, places[2] + 1))
    if longer:
        have = inflect(longer, "has", "have")
        table = table.with_notes(f"{rows.name}: {many(longer, 'line')} {have} text after the tag, which is not read")
    return as_read(table, rows.name)


_Lines: TypeAlias = Iterable[tuple[int, bytes]]


def _usual_fields(
    lines: _Lines, rows: Rows, separator: bytes | None, like: bytes
) -> tuple[_Lines, int, tuple[int, int, int]]:
    """Return the lines, the field count of `like`, or with `on_error` the usual one, and the indices to read."""
    fitting: dict[int, tuple[int, int, int]] = {0: (0, 0, 0)}
    lines = iter(lines)
    head = [] if rows.on_error is None else list(itertools.islice(lines, 1000))
    widths: Counter[int] = Counter()
    for line in (like, *(line for _, line in head)):
        parts = line.strip().split(separator)
        places = places_of(parts, rows.layout) if is_content(line) else None
        if places is not None:
            fitting[len(parts)] = places
            widths[len(parts)] += 1
    width = max(widths, key=widths.__getitem__, default=0)
    return itertools.chain(head, lines), width, fitting[width]


def _tag_has_blank(parts: Sequence[bytes]) -> bool:
    """Return whether only the tag contains blanks, so that the other fields are in place."""
    return (
        parts[1].upper() == b"Q0"
        and parts[3].isdigit()
        and not math.isnan(number_or_nan(parts[4]))
        and math.isnan(number_or_nan(parts[5]))
    )


def as_read(table: PairTable, name: str) -> PairTable:
    """Set the source of a table, and add a note on ids that are not UTF-8."""
    strange = table.queries.not_text() + table.docs.not_text()
    if not strange:
        return table.with_notes(source=name)
    return table.with_notes(f"{name}: {many(strange, 'id')} not in UTF-8: compared byte by byte", source=name)


def _miscounted(parts: list[bytes], width: int, layout: Layout) -> tuple[str, str]:
    """Return the problem with a line of the wrong width, and the fix."""
    got = many(len(parts), "field")
    if width:
        return f"got {got}, expected {width} as in the lines before", "fix the line, or remove it"
    wanted = "6" if layout is RUN else "4 (or 3, without the iteration)"
    fix = f"write lines such as: {layout.example}"
    if layout is RUN and len(parts) > _RUN:
        fix += " (no blanks inside an id or the tag)"
    elif layout is RUN and len(parts) == 2:
        fix += "; for lines of query and document only, best first, number the documents of each query: "
        fix += "awk '{print $1, $2, ++n[$1]}'"
    elif layout is JUDGMENTS and len(parts) == _TAGLESS and not math.isnan(number_or_nan(parts[-1])):
        fix += (
            "; judgments of a sample (query 0 document stratum grade) require a measure for "
            "samples, such as infNDCG; preferences (query group subgroup document grade) a "
            "preference measure, such as Prefs"
        )
    elif is_line(parts, JUDGMENTS if layout is RUN else RUN):
        looks = JUDGMENTS.words if layout is RUN else RUN.words
        fix = f"this looks like {looks}: pass the judgments first, then the run"
    return f"got {got}, expected {wanted}: {layout.fields}", fix


def read_third_column(table: PairTable, name: str, form: str | None) -> PairTable:
    """Interpret the third column of a three-column run as a rank or a score."""
    if form == "trec3":
        return table
    strange = _uncounted(table)
    if strange is None or form == "msmarco":
        text = f"{name}: the third column is read as a rank: documents are in that order"
        if form is None:
            text = (
                f"{name}: the third column counts from 1 to n in every query, so it is read as a "
                "rank (trec3:FILE reads it as a score)"
            )
        return replace(table, values=-table.values).with_notes(text)
    count = int(table.offsets[strange + 1] - table.offsets[strange])
    ranks = f"1 to {count}" if count > 1 else "1"
    raise FormatError(
        "got 3 fields, and the third may be a rank or a score: for query "
        f"'{show_id(table.queries[strange])}' it is not {ranks}",
        path=name,
        fix="choose: msmarco:FILE (query document rank) or trec3:FILE (query document score); "
        "in Python, format='msmarco' or format='trec3'",
    )


def _uncounted(table: PairTable) -> int | None:
    """Return the first query whose numbers are not 1 to n in any order, or None."""
    counts = np.diff(table.offsets)
    values = table.values
    fits = (values >= 1) & (values <= np.repeat(counts, counts)) & (values == np.floor(values))
    seen = np.zeros(len(values), dtype=bool)
    # n distinct integers from 1 to n leave no slot empty.
    seen[np.repeat(table.offsets[:-1], counts)[fits] + values[fits].astype(np.int64) - 1] = True
    missed = np.flatnonzero(~seen)
    if not len(missed):
        return None
    return int(np.searchsorted(table.offsets, missed[0], side="right")) - 1


def trec_lines(tables: Iterable[PairTable], layout: Layout, tag: str = "") -> Iterator[bytes]:
    """Write TREC format, query by query; runs with the best score first, and with ranks."""
    tags = tag.encode("utf-8", "replace").split() or [b"run"]
    # Decode bytes as Latin-1: joining text is faster.
    end = f" {b'_'.join(tags).decode('latin-1')}\n"
    for place, table in enumerate(tables):
        _refuse_queries(table.queries, first=not place)
        for number, query in enumerate(table.queries.tolist()):
            start, stop = table.offsets[number : number + 2].tolist()
            values, order = table.values[start:stop], None
            if layout is RUN and (values[1:] > values[:-1]).any():
                order = start + np.argsort(-values, kind="stable")
            named = query.decode("latin-1")
            # Write queries with many documents in parts, to save memory.
            for first in range(0, stop - start, AT_ONCE):
                last = min(first + AT_ONCE, stop - start)
                rows = slice(start + first, start + last) if order is None else order[first:last]
                if layout is RUN:
                    yield _run_lines(table, rows, (f"{named} Q0 ", end), first + 1)
                    continue
                pairs = zip(_doc_texts(table, rows), table.values[rows].tolist(), strict=True)
                lines = [f"{named} 0 {doc} {number_text(value, JUDGMENTS)}\n" for doc, value in pairs]
                yield "".join(lines).encode("latin-1")


def _refuse_queries(queries: Ids, *, first: bool) -> None:
    _refuse_blanks(queries, "query id")
    for query in queries.tolist():
        if query.startswith(b"#"):
            raise _unwritable(query, "query id", "such a line is a comment")
        if first and mistaken_for(query + b" "):
            raise _unwritable(query, "query id", f"the file would be read as {mistaken_for(query + b' ')}")
        first = False


def _run_lines(table: PairTable, rows: slice | IntArray, around: tuple[str, str], first: int) -> bytes:
    start, end = around
    if start.isascii() and end.isascii():
        lines = score_lines(table, rows, (start, " ", end), first)
        if lines is not None:
            return lines
    pairs = zip(_doc_texts(table, rows), table.values[rows].tolist(), strict=True)
    texts = [f"{start}{doc} {rank} {value!r}{end}" for rank, (doc, value) in enumerate(pairs, first)]
    return "".join(texts).encode("latin-1")


def msmarco_lines(tables: Iterable[PairTable], *_: object) -> Iterator[bytes]:
    """Write an MS MARCO run: ``query TAB document TAB rank``."""
    for table in tables:
        _refuse_blanks(table.queries, "query id")
        rows, ends = table.best_first(by_id=True)[0], table.offsets.tolist()
        for number, query in enumerate(table.queries.tolist()):
            docs = _doc_texts(table, rows[ends[number] : ends[number + 1]])
            named = query.decode("latin-1")
            lines = [f"{named}\t{doc}\t{rank}\n" for rank, doc in enumerate(docs, 1)]
            yield "".join(lines).encode("latin-1")


def _doc_texts(table: PairTable, rows: slice | IntArray) -> list[str]:
    """Return the documents of these rows, decoded as Latin-1."""
    docs = table.docs.take(rows).tolist()
    joined = b"\n".join(docs)
    if joined.split() != docs:
        _refuse_blanks(table.docs, "document id")
    return joined.decode("latin-1").split("\n") if docs else []


def _refuse_blanks(ids: Ids, what: str) -> None:
    blank = dict.fromkeys(value for value in ids.tolist() if value.split() != [value])
    if blank:
        others = "" if len(blank) == 1 else f" ({len(blank)} ids contain blanks)"
        raise _unwritable(next(iter(blank)), what, f"blanks separate fields{others}")


def _unwritable(value: bytes, what: str, why: str) -> InputError:
    return InputError(
        f"{what} '{show_id(value)}' cannot be written: {why}",
        fix="rename it, or write JSON: use a path that ends in .json",
    )
