"""Which reader a file gets: by its name, else by its first line."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO, TypeAlias

from rankgauge.core.pair_table import PairTable
from rankgauge.errors import FormatError, InputError, UnknownName
from rankgauge.formats.fast_trec import quick_blocks, quick_table
from rankgauge.formats.layout import RUN, Layout, columns_of
from rankgauge.formats.lines import (
    AROUND,
    Source,
    Text,
    gathered,
    is_columnar,
    is_zip,
    numbered_lines,
    opened,
    opened_bytes,
    refuse,
    source_name,
    start_of,
)
from rankgauge.formats.names import QRELS_FORMATS, RUN_FORMATS, InFormat, format_of
from rankgauge.formats.trec import is_line, places_of, read_trec

__all__ = ["path_and_format", "read_blocks", "read_ids", "read_stream"]

# Lines looked at for the first that says something: they are kept, and a line takes memory.
_HEAD = 1 << 12
# What has fields and no names: between blanks, or between tabs.
_FIELDS = ("trec", "cells", "msmarco", "trec3")
_THREE = 3
_TAB, _BLANK = 9, 32


def path_and_format(source: Source, layout: Layout, form: str | None) -> tuple[Source, str | None]:
    """Return the path of a source and its format, None if none is given.

    Raises:
        UnknownName: If nothing of this kind comes in such a format.
    """
    if isinstance(source, InFormat):
        form = form or source.format
        source = source.path
    known = RUN_FORMATS if layout is RUN else QRELS_FORMATS
    if form is not None and form not in known:
        raise UnknownName(
            f"no format is called {form!r}",
            where="format",
            fix=f"choose one of: {', '.join(known)}",
        )
    return source, form


def read_stream(
    stream: BinaryIO, name: str, layout: Layout, form: str | None = None, *, ranks: bool = False
) -> PairTable:
    """Read what is open already, such as a member of an archive; `name` is for messages."""
    start = start_of(stream)
    if is_columnar(start, name):
        from rankgauge.formats.parquet import read_columnar

        return read_columnar(stream, name, layout)
    refuse(start, name)
    lines = numbered_lines(stream, name)
    head = list(_head(lines))
    first = head[-1][1].strip() if head else b""
    if b"\0" in first:
        raise FormatError(
            "the line holds a NUL byte: this is UTF-16 or no text at all", path=name,
            line=head[-1][0], fix="save it as UTF-8 text",
        )  # fmt: skip
    given = form
    form = form or format_of(name) or _guess(first, layout)
    if form == "tsv" and _headless(first, layout):
        form = "cells"
    if form not in _FIELDS:
        return _read(itertools.chain(head, lines), name, layout, form)
    if given is None:
        _refuse_others(head, name, layout)
    elif form != "trec":
        _refuse_width(first, name, form)
    table = _read_trec(
        (head, lines, stream), name, layout, b"\t" if form == "cells" else None, ranks=ranks
    )
    return _third(table, name, given) if layout is RUN and _width(first, form) == _THREE else table


def read_blocks(
    source: Source, layout: Layout, *, ranks: bool = False
) -> Iterator[PairTable | None]:
    """Read a file in tables of whole queries; None, and no more, if that is not to be had.

    Then `read_table` reads it, or says what is wrong with it. A table is good until the next
    is asked for.

    Args:
        source: The path, alone or with its format.
        layout: Judgments or run.
        ranks: Whether the ranks are wanted too, and the number of each line.
    """
    source, given = path_and_format(source, layout, None)
    name = source_name(source)
    if source == "-" or not os.path.isfile(source):  # noqa: PTH113
        # What is no file of its own, such as a pipe, can be read once only.
        yield None
        return
    with opened_bytes(source) as stream:
        begin = start_of(stream)
        if is_zip(begin) or is_columnar(begin, name):
            yield None
            return
        refuse(begin, name)
        lines = numbered_lines(stream, name)
        head = list(_head(lines))
        start = head[-1][1] if head else b""
        form = given or format_of(name) or _guess(start.strip(), layout)
        if not start or form not in _FIELDS or b"\0" in start or _cut_up(head):
            yield None
            return
        three = _width(start, form) == _THREE
        if (given is None and _doubtful(start)) or (form != "trec" and not three):
            # All of it is read, or refused in words.
            yield None
            return
        line = head[-1][0] if ranks else None
        blocks = quick_blocks(stream, start, name, layout, line=line)
        yield from _thirds(blocks, name, given) if three and layout is RUN else blocks


def _thirds(
    blocks: Iterator[PairTable | None], name: str, form: str | None
) -> Iterator[PairTable | None]:
    """The blocks of a run of three columns; None, and no more, where nobody knows the third."""
    for block in blocks:
        try:
            found = None if block is None else _third(block, name, form)
        except FormatError:
            found = None
        yield found
        if found is None:
            return


def _third(table: PairTable, name: str, form: str | None) -> PairTable:
    from rankgauge.formats.three_columns import read_third

    return read_third(table, name, None if form == "trec" else form)


def _width(line: bytes, form: str) -> int:
    return len(line.rstrip(b"\r\n").split(b"\t") if form == "cells" else line.split())


def _doubtful(first: bytes) -> bool:
    """Whether the line may be one of something else: cheap, and wrong at times."""
    if first.startswith((b"<", b".I ")) or b" \t" in first or b"\tall\t" in first:
        return True
    return first.count(b".") > 1 and all(b"." in word for word in first.split()[2:4])


def _refuse_others(head: list[tuple[int, bytes]], name: str, layout: Layout) -> None:
    """Refuse what begins like something else.

    Raises:
        FormatError: If it does.
    """
    number, first = head[-1] if head else (0, b"")
    if _doubtful(first) or first.count(b"\t") == 1:
        from rankgauge.formats.lookalikes import refuse

        refuse(first, name, number, layout)


def _refuse_width(first: bytes, name: str, form: str) -> None:
    """Refuse a line of other than three fields, where such are asked for.

    Raises:
        FormatError: If it is one.
    """
    width = len(first.split())
    if form in {"msmarco", "trec3"} and width != _THREE:
        from rankgauge.formats.three_columns import THIRDS

        raise FormatError(
            f"got {width} fields, wanted 3: {THIRDS[form]}",
            path=name,
            fix="name another format, or leave it out: name and first line mostly say it",
        )


def _cut_up(head: list[tuple[int, bytes]]) -> bool:
    """Whether a line ends with a lone carriage return: its rest may be in the iterator of lines."""
    return any(line.endswith(b"\r") for _, line in head)


_Begun: TypeAlias = tuple[list[tuple[int, bytes]], Iterator[tuple[int, bytes]], BinaryIO]


def _read_trec(
    begun: _Begun, name: str, layout: Layout, separator: bytes | None = None, *, ranks: bool
) -> PairTable:
    """Read it as whole arrays if it is as simple as that, else line by line.

    Args:
        begun: What was read of it, and what is left.
        name: The name of the file.
        layout: Judgments or run.
        separator: What stands between fields; blanks and tabs if left out.
        ranks: Whether ranks are wanted, too.
    """
    head, lines, stream = begun
    start = b"".join(line for _, line in head)
    if _cut_up(head):
        return read_trec(itertools.chain(head, lines), name, layout, separator)
    text = gathered(stream, start)
    before = sum(len(line) for _, line in head[:-1])
    found = None
    if head and text.fault is None:
        found = quick_table(text, name, layout, skip=before, line=head[-1][0], ranks=ranks)
    if found is None or (separator is not None and not _tabs_only(text, head[-1][1], len(found))):
        # From the start: only what is read line by line says what is wrong with which.
        return read_trec(numbered_lines(text.lines(), name), name, layout, separator)
    return found


def _tabs_only(text: Text, first: bytes, rows: int) -> bool:
    """Whether fields between white space are cells between tabs: one tab each, and no blank."""
    data = text.data[AROUND : AROUND + text.size]
    tabs = (len(first.split()) - 1) * rows
    return not (data == _BLANK).any() and int((data == _TAB).sum()) == tabs


def _head(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The lines up to the first that says something, or so many that nobody wrote them by hand."""
    for number, line in lines:
        yield number, line
        if number == _HEAD or (line.strip() and not line.lstrip().startswith(b"#")):
            return


def _read(lines: Iterable[tuple[int, bytes]], name: str, layout: Layout, form: str) -> PairTable:
    if form in {"smart", "npl", "letor"}:
        from rankgauge.formats.classic import read_classic

        return read_classic(lines, name, form)
    from rankgauge.formats.tables import read_delimited, read_json, read_json_lines

    match form:
        case "csv" | "tsv":
            return read_delimited(lines, name, layout, form)
        case "jsonl":
            return read_json_lines(lines, name, layout)
        case _:
            return read_json(lines, name, layout)


def _headless(first: bytes, layout: Layout) -> bool:
    """Whether this line between tabs is to be read by the place of its cells: it is no header."""
    cells = first.split(b"\t")
    if _columns(cells, layout) or _table(first, layout):
        return False
    # A line of the right width that has no number is a header in words we do not know.
    return places_of(cells, layout) is None or is_line(cells, layout)


def _columns(cells: list[bytes], layout: Layout) -> bool:
    names = [cell.decode("utf-8", "replace") for cell in cells]
    return columns_of(names, layout) is not None


def _guess(first: bytes, layout: Layout) -> str:
    """The format that begins with this line."""
    if layout is not RUN and (old := _old(first)):
        return old
    if is_line(first.split(), layout):
        return "trec"
    if first.startswith((b"{", b"[")):
        return "jsonl" if _is_row(first, layout) else "json"
    if _columns(first.split(b"\t"), layout):
        return "tsv"
    return "csv" if _table(first, layout) else "trec"


def _table(first: bytes, layout: Layout) -> bool:
    """Whether this is the header of a table, other than of one with tabs."""
    return any(by in first and _columns(first.split(by), layout) for by in (b",", b";", b"|"))


def _old(first: bytes) -> str:
    """The format of judgments that begin with this line, if it is an old one; else empty."""
    fields = first.split(None, 3)
    looks = len(fields) < 2 or fields[1].startswith(b"qid:") or fields[2:3] == [b"0"]
    if not looks:
        return ""
    from rankgauge.formats.classic import begins_letor, begins_npl, begins_smart

    if begins_letor(first):
        return "letor"
    if begins_npl(first):
        return "npl"
    return "smart" if begins_smart(first) else ""


def _is_row(first: bytes, layout: Layout) -> bool:
    import json

    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return False  # an object of many lines, or broken: the reader says so
    if not isinstance(value, dict):
        return False
    columns = columns_of(value, layout)
    if columns is not None:
        return not isinstance(value[columns.query], list | dict)
    from rankgauge.formats.nested_rows import Nested

    nested = Nested.of(value, "", layout)
    return nested is not None and not isinstance(value[nested.columns.query], list | dict)


def read_ids(source: Source) -> list[bytes]:
    """Ids, one a line; empty lines are passed over.

    Raises:
        InputError: If the file cannot be read, or holds no id.
    """
    name = source_name(source)
    with opened(source) as stream:
        lines = [line.strip(b"\r\n") for _, line in numbered_lines(stream, name)]
    ids = [line for line in lines if line.strip()]
    if not ids:
        raise InputError("there is no id to read", where=name, fix="write one id a line")
    return ids
