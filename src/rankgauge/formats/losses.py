"""Losses of a conversion: dropped fields and columns, scores, and tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from rankgauge.core import native
from rankgauge.core.ids import Ids, IntArray, show_id
from rankgauge.core.pair_table import FloatArray, PairTable, distinct
from rankgauge.core.text import many
from rankgauge.formats.columns import RUN, Layout, columns_of
from rankgauge.formats.contents import FileContent
from rankgauge.formats.json_files import objects
from rankgauge.formats.lines import is_content, numbered_lines
from rankgauge.formats.registry import format_named
from rankgauge.formats.rows import rank_number
from rankgauge.formats.texts import TextSource

_PIECE = 1 << 22
_SHOWN = 3
_COMMENT = ord("#")
# Margin that is read around a number.
_SPARE = bytes(32)
# Number of fields of a complete line, and its usual second field.
_WIDTHS = {"run": 6, "judgments": 4}
_RANK = 3
_USUAL = {"run": b"Q0", "judgments": b"0"}


@dataclass(slots=True)
class UnreadFields:
    """Fields of a TREC file that the reader ignores."""

    # Counts of second fields other than `Q0` (run) or `0` (judgments).
    seconds: Counter[bytes] = field(default_factory=Counter)
    # Counts of the last fields of a run, in order of first appearance.
    tags: Counter[bytes] = field(default_factory=Counter)
    # Rank of each line, in file order; NaN if it is not a number.
    ranks: list[FloatArray] = field(default_factory=list)
    # Queries of a run in file order, and whether the lines of a query are not adjacent.
    queries: dict[bytes, None] = field(default_factory=dict)
    scattered: bool = False
    comments: int = 0  # number of comment lines
    doc: bytes = b""  # third field of the first complete line

    def add_queries(self, names: Iterable[bytes]) -> None:
        """Add the queries of consecutive lines, each once per run of adjacent lines."""
        last = next(reversed(self.queries), None)
        for name in names:
            if name != last:
                self.scattered |= name in self.queries
                self.queries[name] = None
                last = name


def unread_fields(stream: BinaryIO, layout: Layout) -> UnreadFields:
    """Collect the second field, the rank, and the tag of each line of a file in TREC format."""
    found = UnreadFields()
    alike = False
    for text in _pieces(stream):
        if not alike or not _add_scanned(found, text, layout):
            alike = _add_lines(found, text.removeprefix(b"\xef\xbb\xbf"), layout)
    found.seconds.pop(_USUAL[layout.name], None)
    return found


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    """Yield blocks of complete lines; comments at the beginning and the first line separately."""
    for line in stream:
        yield line
        if is_content(line):
            break
    rest = b""
    while piece := stream.read(_PIECE):
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield rest + piece[:cut]
        rest = piece[cut:] if cut else rest + piece
    if rest:
        yield rest


def _add_lines(found: UnreadFields, text: bytes, layout: Layout) -> bool:
    """Add lines one by one; return whether the last had the usual number of fields."""
    usual = False
    ranks = []
    for line in text.splitlines():
        parts = line.split()
        if not parts:
            continue
        if parts[0].startswith(b"#"):
            found.comments += 1
            continue
        usual = len(parts) == _WIDTHS[layout.name]
        if usual:
            found.seconds[parts[1]] += 1
            found.doc = found.doc or parts[2]
            if layout is RUN:
                found.tags[parts[5]] += 1
                found.add_queries((parts[0],))
                ranks.append(rank_number(parts[3].decode("latin-1")))
    found.ranks.append(np.array(ranks))
    return usual


def _add_scanned(found: UnreadFields, text: bytes, layout: Layout) -> bool:
    """Add lines with the compiled core; return False if it declines them."""
    core = native.core
    if core is None or not text.endswith(b"\n"):
        return False
    data = np.frombuffer(text + _SPARE, dtype=np.uint8)
    rows = text.count(b"\n")
    hashes, ranks = np.empty(rows, dtype=np.uint64), np.empty(rows)
    numbers = np.empty(rows, dtype=np.int32)

    def scan(counted: int, other: int) -> tuple[dict[bytes, int], Ids] | None:
        """Count the values of one field; return them and the ids of another field."""
        numbering = core.numbering()
        fields = (_WIDTHS[layout.name], counted, other, _RANK, -1)
        starts, lengths = np.empty((2, rows), dtype=np.int64)
        columns = (starts, lengths, hashes, ranks, numbers, ranks)
        if core.scan(numbering, data, 0, len(text), fields, 0, *columns) is None:
            return None
        counts = np.bincount(numbers).tolist()
        return dict(zip(core.names(numbering), counts, strict=True)), Ids(data, starts, lengths)

    scanned = scan(5 if layout is RUN else 1, 0)
    if scanned is None:
        return False
    tags, queries = scanned
    if layout is not RUN:
        found.seconds.update(tags)
        return True
    if not _is_usual(data, queries.starts + queries.lengths):
        scanned = scan(1, 0)
        found.seconds.update(scanned[0] if scanned else {})
    found.tags.update(tags)
    found.add_queries(queries.runs().ids.tolist())
    found.ranks.append(ranks)
    return True


def _is_usual(data: npt.NDArray[np.uint8], ends: IntArray) -> bool:
    """Return whether ``Q0`` follows each of these positions, between single blanks."""
    return all((data[ends + at] == sign).all() for at, sign in enumerate(b" Q0 "))


class Tally:
    """Counts of tables while they are written to a file.

    Attributes:
        form: Format of the file.
        queries: Number of queries.
        rows: Number of rows.
        notes: Notes of the reader.
    """

    def __init__(self, form: str, unread: UnreadFields) -> None:
        self.form = form
        self.queries = self.rows = 0
        self.notes: dict[str, None] = {}
        self._ranks = np.concatenate(unread.ranks) if unread.ranks else np.zeros(0)
        self._contradicted: list[str] = []
        self._negative = 0
        self._only_ranks = True

    def each(self, tables: Iterable[PairTable]) -> Iterator[PairTable]:
        """Yield the tables and count their contents."""
        for table in tables:
            ranks = self._ranks[self.rows : self.rows + len(table)]
            wrong = _contradicted(table, ranks) if len(ranks) == len(table) else ()
            self._contradicted += [show_id(table.queries[row]) for row in wrong]
            self._negative += int(np.count_nonzero(table.values < 0))
            if self.form == "msmarco" and self._only_ranks:
                self._only_ranks = _only_ranks(table)
            self.queries += len(table.queries)
            self.rows += len(table)
            self.notes |= dict.fromkeys(table.notes)
            yield table

    @property
    def contradicted(self) -> list[str]:
        """Queries in which a document with a worse rank has a better score."""
        return self._contradicted if len(self._ranks) == self.rows else []

    def target_losses(self, tag: str) -> Iterator[str]:
        """Yield the losses caused by the target format."""
        if not self._only_ranks:
            yield f"{many(self.rows, 'score')}: {self.form} stores only ranks"
        if self._negative and format_named(self.form).ratings:
            grades = many(self._negative, "grade")
            yield f"{grades} below 0 (pooled, not judged): {self.form} reads them as ratings"
        if self.form == "trec" and tag and tag.split() != [tag]:
            yield f"the tag {tag!r} is written without blanks: '{'_'.join(tag.split())}'"


def unread_losses(tally: Tally, unread: UnreadFields, layout: Layout, *, name: str | None) -> Iterator[str]:
    """Yield the losses of ignored fields of TREC lines."""
    is_run, form = layout is RUN, tally.form
    if unread.comments:
        yield f"{many(unread.comments, 'comment line')} dropped"
    if unread.seconds:
        lines, first = sum(unread.seconds.values()), show_id(next(iter(unread.seconds)))
        word, called = ("Q0", "second field") if is_run else ("0", "iteration")
        yield f"{called} other than {word} in {many(lines, 'line')}: first '{first}'"
    tags = [show_id(tag) for tag in unread.tags]
    if len(tags) > 1:
        counts = zip(tags[:_SHOWN], unread.tags.values(), strict=False)
        shown = ", ".join(f"'{tag}' ({many(count, 'line')})" for tag, count in counts)
        fate = "merged into one" if form == "trec" else f"{form} cannot store them"
        yield f"{len(tags)} tags, {fate}: {shown}{rest(len(tags), _SHOWN)}"
    elif tags and form != "trec":
        yield f"the tag '{tags[0]}': {form} cannot store it"
    elif tags and name is not None and tags[0] != name:
        yield f"the tag '{tags[0]}': replaced by '{name}'"
    wrong = tally.contradicted
    if wrong:
        yield (
            f"the rank column contradicts the scores in {many(len(wrong), 'query')}, "
            f"'{wrong[0]}'{rest(len(wrong))}: the scores are used"
        )


def _contradicted(table: PairTable, ranks: FloatArray) -> list[int]:
    """Return the queries in which a document with a worse rank (by line) has a better score."""
    of_row = ranks
    if table.lines is not None:
        of_row = np.empty(len(table))
        of_row[np.argsort(table.lines, kind="stable")] = ranks
    known = ~np.isnan(of_row)
    queries, values, of_row = table.query_numbers()[known], table.values[known], of_row[known]
    if ((of_row[1:] < of_row[:-1]) & (queries[1:] == queries[:-1])).any():
        order = np.lexsort((of_row, queries))
        queries, values, of_row = queries[order], values[order], of_row[order]
    wrong = queries[1:] == queries[:-1]
    wrong &= (of_row[1:] > of_row[:-1]) & (values[1:] > values[:-1])
    return distinct(queries[1:][wrong]).tolist()


def column_losses(source: TextSource, content: FileContent, layout: Layout) -> Iterator[str]:
    """Yield the losses of columns or keys other than query, document, and number."""
    if not format_named(content.form).columns:
        return
    names = dict.fromkeys(content.columns)
    if content.form == "jsonl":
        with source.open() as stream:
            for _, row in objects(numbered_lines(stream, source.name), source.name):
                names.update(dict.fromkeys(row))
    chosen = columns_of(names, layout)
    others = [name for name in names if chosen is not None and name not in chosen]
    if others:
        shown = ", ".join(repr(name) for name in others[:_SHOWN])
        word = "column" if content.form != "jsonl" else "key"
        yield f"{many(len(others), word)} dropped: {shown}{rest(len(others), _SHOWN)}"


def _only_ranks(table: PairTable) -> bool:
    """Return whether the scores are the negated ranks 1 to n, as produced by reading ranks."""
    places = np.arange(len(table)) - table.offsets[table.query_numbers()]
    return np.array_equal(table.values[table.best_first(by_id=True)[0]], -1.0 - places)


def rest(count: int, shown: int = 1) -> str:
    """Return the number of items not shown, as text."""
    return f" and {count - shown} more" if count > shown else ""
