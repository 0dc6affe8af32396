"""TREC runs and judgments: the plain reader, one line at a time, and the writer.

Fields stand between blanks or tabs. Blank lines and lines that start with ``#`` are passed over.
Judgments have four fields (``query iteration document grade``) or three (without the iteration) on
every line, runs have six (``query Q0 document rank score tag``), five (without the tag) or three
(``query document`` and a number: :mod:`rankgauge.formats.three_columns` says what it is). The rank
is not read where there is a score: the score decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from rankgauge.core.ids import Blame, Ids, IntArray, show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.layout import (
    JUDGMENTS,
    RUN,
    Layout,
    lost_number,
    number_text,
    read_number,
    table_of,
)
from rankgauge.formats.lines import mistaken_for, shorten

__all__ = ["as_read", "is_line", "places_of", "rank_place", "read_trec", "trec_lines"]

# Where query, document and number stand, by the number of fields.
_PLACES = {
    "judgments": {4: (0, 2, 3), 3: (0, 1, 2)},
    "run": {6: (0, 2, 4), 5: (0, 2, 4), 3: (0, 1, 2)},
}
_RUN, _TAGLESS = 6, 5
# Rows that are written at once.
_AT_ONCE = 1 << 16
# Where a rank stands beside the score.
_RANKS = {"run": {6: 3, 5: 3}}


def places_of(fields: Sequence[bytes], layout: Layout) -> tuple[int, int, int] | None:
    """Where query, document and number stand among such fields; None if they do not fit."""
    # Five fields may also lack another one than the tag: then a rank would be taken for a score.
    if layout is RUN and len(fields) == _TAGLESS and fields[1].upper() != b"Q0":
        return None
    return _PLACES[layout.name].get(len(fields))


def rank_place(width: int, layout: Layout) -> int:
    """Where the rank stands beside a score in so many fields; -1 where there is none."""
    return _RANKS.get(layout.name, {}).get(width, -1)


def is_line(fields: list[bytes], layout: Layout) -> bool:
    """Whether these are the fields of such a line: so many, and a number where it should be."""
    places = places_of(fields, layout)
    return places is not None and not math.isnan(_number(fields[places[2]]))


def read_trec(
    lines: Iterable[tuple[int, bytes]], name: str, layout: Layout, separator: bytes | None = None
) -> PairTable:
    """Read numbered lines.

    Args:
        lines: The lines with their numbers.
        name: The name of the file.
        layout: Judgments or run.
        separator: What stands between fields; blanks and tabs if left out.

    Raises:
        FormatError: With line, column and the line itself, for the first line that does not fit.
    """
    queries: list[bytes] = []
    docs: list[bytes] = []
    values: list[float] = []
    numbers: list[int] = []
    width, places, longer = 0, (0, 0, 0), 0
    for number, line in lines:
        parts = line.split() if separator is None else line.rstrip(b"\r\n").split(separator)
        if not parts or not parts[0] + parts[-1] or parts[0].startswith(b"#"):
            continue
        if len(parts) > _RUN and layout is RUN and width in {0, _RUN} and _tag_goes_on(parts):
            longer += 1
            parts = parts[:_RUN]
        if len(parts) != width:
            found = None if width else places_of(parts, layout)
            if found is None:
                what, fix = _miscounted(parts, width, layout)
                raise FormatError(what, path=name, line=number, text=shorten(line), fix=fix)
            width, places = len(parts), found
        query, doc, column = places
        value = _number(parts[column])
        if not math.isfinite(value):
            what, fix = _unusable(parts[column], layout)
            raise FormatError(
                what, path=name, line=number, column=column + 1, text=shorten(line), fix=fix
            )
        queries.append(parts[query])
        docs.append(parts[doc])
        values.append(value)
        numbers.append(number)
    if not queries:
        fix = f"give lines such as: {layout.example}"
        raise FormatError("there is no line to read", path=name, fix=fix)

    def blame(column: int) -> Blame:
        return lambda row, what, fix: FormatError(
            what, path=name, line=numbers[row], column=column + 1, fix=fix
        )

    table = table_of(
        Ids.of(queries, "query id", blame(places[0])),
        Ids.of(docs, "document id", blame(places[1])),
        np.array(values),
        layout,
        source=name,
        lines=numbers,
    )
    if longer:
        table = table.said(f"{name}: {longer} lines go on behind the tag: what follows is not read")
    return as_read(table, name)


def _tag_goes_on(parts: Sequence[bytes]) -> bool:
    """Whether a blank stands in the tag alone: with one in an id, other fields would be numbers."""
    return (
        parts[1].upper() == b"Q0"
        and parts[3].isdigit()
        and not math.isnan(_number(parts[4]))
        and math.isnan(_number(parts[5]))
    )


def as_read(table: PairTable, name: str) -> PairTable:
    """The table with its source, and with what is to be said of its ids."""
    strange = table.queries.not_text() + table.docs.not_text()
    if not strange:
        return table.said(source=name)
    said = f"{name}: {strange} ids are not UTF-8: compared byte by byte"
    return table.said(said, source=name)


def _number(field: bytes) -> float:
    try:
        return read_number(field)
    except ValueError:
        return math.nan


def _unusable(field: bytes, layout: Layout) -> tuple[str, str]:
    lost = lost_number(field, layout)
    if lost is not None:
        return lost
    shown = f"{layout.value} {shorten(field)!r}"
    try:
        read_number(field)
    except ValueError:
        return f"{shown} is not a number", f"write the {layout.value} as a number"
    return f"{shown} is not a finite number", layout.mend


def _miscounted(parts: list[bytes], width: int, layout: Layout) -> tuple[str, str]:
    """What is wrong with a line of so many fields, and the fix."""
    got = "1 field" if len(parts) == 1 else f"{len(parts)} fields"
    if width:
        return f"got {got}, wanted {width} as before", "mend the line, or remove it"
    wanted = "6" if layout is RUN else "4 (or 3, without the iteration)"
    fix = f"write lines such as: {layout.example}"
    if layout is RUN and len(parts) > _RUN:
        fix += " (no blanks inside an id or the tag)"
    elif layout is RUN and len(parts) == 2:
        fix += "; of query and document alone, best first, number the documents of each query: "
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
    return f"got {got}, wanted {wanted}: {layout.fields}", fix


def trec_lines(table: PairTable, layout: Layout, tag: str) -> Iterator[bytes]:
    """A file in TREC format, query by query; runs best score first, with their rank.

    Raises:
        InputError: If the format cannot carry an id.
    """
    queries = table.queries.tolist()
    _refuse_blanks(table.queries, "query id")
    for query in queries:
        if query.startswith(b"#"):
            raise _unwritable(query, "query id", "such a line is a comment")
    if queries and mistaken_for(queries[0] + b" "):
        said = f"the file would be taken for {mistaken_for(queries[0] + b' ')}"
        raise _unwritable(queries[0], "query id", said)
    tags = tag.encode("utf-8", "replace").split() or [b"run"]
    # Bytes as the characters of the same numbers: text is put together quicker.
    end = f" {b'_'.join(tags).decode('latin-1')}\n"
    for number, query in enumerate(queries):
        rows = np.arange(table.offsets[number], table.offsets[number + 1])
        if layout is RUN:
            rows = rows[np.argsort(-table.values[rows], kind="stable")]
        named = query.decode("latin-1")
        # A query with very many documents is not written at once: that would take much memory.
        for first in range(0, len(rows), _AT_ONCE):
            part = rows[first : first + _AT_ONCE]
            pairs = zip(_doc_texts(table, part), table.values[part].tolist(), strict=True)
            if layout is RUN:
                numbered = enumerate(pairs, first + 1)
                lines = [f"{named} Q0 {d} {at} {value!r}{end}" for at, (d, value) in numbered]
            else:
                lines = [f"{named} 0 {d} {number_text(value, layout)}\n" for d, value in pairs]
            yield "".join(lines).encode("latin-1")


def _doc_texts(table: PairTable, rows: IntArray) -> list[str]:
    """The documents of these rows, each byte as the character of its number.

    Raises:
        InputError: If an id has white space.
    """
    given = table.docs.take(rows).tolist()
    joined = b"\n".join(given)
    if joined.split() != given:
        _refuse_blanks(table.docs, "document id")
    return joined.decode("latin-1").split("\n")


def _refuse_blanks(ids: Ids, what: str) -> None:
    """Refuse ids with white space.

    Raises:
        InputError: Naming the first, and how many there are.
    """
    blank = dict.fromkeys(value for value in ids.tolist() if value.split() != [value])
    if blank:
        others = "" if len(blank) == 1 else f" ({len(blank)} ids have some)"
        raise _unwritable(next(iter(blank)), what, f"in TREC format blanks separate fields{others}")


def _unwritable(value: bytes, what: str, why: str) -> InputError:
    return InputError(
        f"{what} '{show_id(value)}' cannot be written: {why}",
        fix="rename it, or write JSON: give a path that ends in .json",
    )
