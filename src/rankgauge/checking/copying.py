"""A copy of a file of judgments or of a run, with some lines left out and some fields changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeAlias

import numpy as np

from rankgauge.errors import InputError
from rankgauge.formats.layout import Layout, columns_of, number_text
from rankgauge.formats.lines import numbered_lines, opened
from rankgauge.formats.naming import format_of
from rankgauge.formats.trec import places_of
from rankgauge.formats.writing import target_format, write_table, written
from rankgauge.ids import Ids, IntArray
from rankgauge.judged import BoolArray
from rankgauge.table import FloatArray, PairTable

__all__ = ["copy_lines", "copy_name"]

_FIELD = re.compile(rb"\S+")
_Fields: TypeAlias = tuple[bytes, bytes, bytes | None]
# Rows that are Python's objects at a time: bounds the memory.
_AT_ONCE = 1 << 16
_END: tuple[int, bool, _Fields] = (0, False, (b"", b"", None))


def copy_name(source: str, layout: Layout) -> str:
    """What the copy of an input is called."""
    name = PurePath(source).name or layout.name
    if name.endswith(".zip"):
        name = name.removesuffix(".zip")
    return name if PurePath(name).suffix else f"{name}.txt"


def copy_lines(
    source: str, target: Path, pair: tuple[PairTable, PairTable], layout: Layout
) -> None:
    """Write a copy of an input: its own lines where it has some, else its rows anew.

    Args:
        source: The path, or what the input is called.
        target: The copy; its folder is made.
        pair: The rows as they were, and as they are to be, in the same order.
        layout: Judgments or run.

    Raises:
        InputError: If it cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder cannot be made: {error.strerror or error}",
            where=os.fspath(target.parent), fix="name another folder",
        ) from None  # fmt: skip
    edit = _Edit.of(source, pair, layout)
    if edit is None:
        write_table(pair[1], target, layout, PurePath(target).stem)
        return
    with written(target) as stream:
        stream.writelines(edit.lines(source))


@dataclass(frozen=True, eq=False)
class _Edit:
    """What becomes of the lines of a file: those of rows that are gone are left out.

    Attributes:
        layout: Judgments or run.
        numbers: (n,) the lines that stay, ascending.
        changed: (n,) whether a field of it changes.
        other_value: (n,) whether its number does.
        queries: (n,) its query then.
        docs: (n,) its document then.
        values: (n,) its number then.
    """

    layout: Layout
    numbers: IntArray
    changed: BoolArray
    other_value: BoolArray
    queries: Ids
    docs: Ids
    values: FloatArray

    @classmethod
    def of(cls, source: str, pair: tuple[PairTable, PairTable], layout: Layout) -> _Edit | None:
        """None for what has not a line for each row, or lines whose fields are not changed here."""
        before, after = pair
        if before.lines is None or after.lines is None or not Path(source).is_file():
            return None
        first, then = np.argsort(before.lines), np.argsort(after.lines)
        numbers = after.lines[then]
        ordered = before.lines[first]
        if (ordered[1:] == ordered[:-1]).any() or target_format(source) in {"parquet", "arrow"}:
            return None
        old = first[np.searchsorted(ordered, numbers)]
        queries = after.queries.take(after.query_numbers()[then])
        docs, values = after.docs.take(then), after.values[then]
        rows = np.arange(len(then))
        other = before.values[old] != values
        same = before.queries.take(before.query_numbers()[old]).same(rows, queries, rows)
        same &= before.docs.take(old).same(rows, docs, rows) & ~other
        # In TREC format a field is changed where it stands; other formats have quotes and escapes.
        if not same.all() and format_of(source) is not None:
            return None
        return cls(layout, numbers, ~same, other, queries, docs, values)

    def lines(self, source: str) -> Iterator[bytes]:
        """The lines of the copy."""
        header = format_of(source) in {"csv", "tsv", None}
        rows = self._rows()
        at, changed, new = next(rows, _END)
        with opened(source) as stream:
            for number, line in numbered_lines(stream, source):
                if number == at:
                    yield self._with_fields(line, new) if changed else line
                    at, changed, new = next(rows, _END)
                    header = False
                elif not line.strip() or line.lstrip().startswith(b"#"):
                    yield line
                elif header and self._is_header(line):
                    yield line
                    header = False

    def _rows(self) -> Iterator[tuple[int, bool, _Fields]]:
        """The line of each row, whether it changes, and its fields as they are to be written."""
        for start in range(0, len(self.numbers), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            values = (
                number_text(value, self.layout).encode() if other else None
                for value, other in zip(
                    self.values[part].tolist(), self.other_value[part].tolist(), strict=True
                )
            )
            fields = zip(
                self.queries.take(part).tolist(), self.docs.take(part).tolist(), values, strict=True
            )
            yield from zip(
                self.numbers[part].tolist(), self.changed[part].tolist(), fields, strict=True
            )

    def _is_header(self, line: bytes) -> bool:
        text = line.decode("utf-8", "replace").strip()
        return any(
            columns_of([cell.strip().strip('"') for cell in text.split(sign)], self.layout)
            is not None
            for sign in ("\t", ",")
        )

    def _with_fields(self, line: bytes, new: _Fields) -> bytes:
        """The line with other fields; what stands between them stays."""
        fields = line.split(b" ")
        places = places_of(fields, self.layout)
        # Most lines have one blank between their fields.
        if places is not None and len(line.split()) == len(fields):
            for at, text in zip(places, new, strict=True):
                if text is not None:
                    end = fields[at][len(fields[at].rstrip()) :]
                    fields[at] = text + end
            return b" ".join(fields)
        found = list(_FIELD.finditer(line))
        places = places_of([one[0] for one in found], self.layout) or (0, 0, 0)
        # From the right: what stands before keeps its place.
        for at, text in sorted(zip(places, new, strict=True), key=lambda pair: -pair[0]):
            if text is not None:
                line = line[: found[at].start()] + text + line[found[at].end() :]
        return line
