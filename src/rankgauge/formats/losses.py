"""Losses of a conversion: dropped fields and columns, scores, and tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from rankgauge.core.ids import show_id
from rankgauge.core.pair_table import PairTable, distinct
from rankgauge.core.text import keep, many
from rankgauge.formats.columns import RUN, Layout, columns_of
from rankgauge.formats.contents import FileContent
from rankgauge.formats.fast_trec import FieldLines, NotInBlocksError, Shape, quick_pieces
from rankgauge.formats.json_files import objects
from rankgauge.formats.lines import numbered_lines
from rankgauge.formats.readers import head_of
from rankgauge.formats.registry import format_named
from rankgauge.formats.rows import PairInput
from rankgauge.formats.texts import TextSource

_SHOWN = 3
# Fields of a complete line: their number, and the fields that are counted. Tags of a run come first,
# because their order matters.
_SHAPES = {"run": Shape(6, query=5, doc=1, number=4), "judgments": Shape(4, query=1, doc=1, number=3)}
# Usual second field.
_USUAL = {"run": b"Q0", "judgments": b"0"}


@dataclass(slots=True)
class UnreadFields:
    """Fields of a TREC file that the reader ignores."""

    # Counts of second fields other than `Q0` (run) or `0` (judgments).
    seconds: Counter[bytes] = field(default_factory=Counter)
    # Counts of the last fields of a run, in order of first appearance.
    tags: Counter[bytes] = field(default_factory=Counter)
    comments: int = 0  # number of comment lines
    doc: bytes = b""  # third field of the first complete line


def unread_fields(source: TextSource, layout: Layout) -> UnreadFields:
    """Count the second field and the tag of each line of a file in TREC format."""
    try:
        unread = _count_arrays(source, layout)
    except NotInBlocksError:
        unread = _count_lines(source, layout)
    unread.seconds.pop(_USUAL[layout.name], None)
    return unread


def _count_arrays(source: TextSource, layout: Layout) -> UnreadFields:
    """Count the fields of a file without comments after its first line."""
    unread = UnreadFields()
    with source.open() as stream:
        *before, (_, start) = head_of(numbered_lines(stream, source.name))
        unread.comments = sum(not line.isspace() for _, line in before)
        if start.endswith(b"\r"):
            raise NotInBlocksError("a line ends with CR")  # the stream is already after other lines
        lines = FieldLines(stream, start, 1, _SHAPES[layout.name])
        for table, _ in quick_pieces(lines, PairInput(layout, source.name)):
            seconds = table.docs.runs()
            for second, count in zip(seconds.ids.tolist(), seconds.counts.tolist(), strict=True):
                unread.seconds[second] += count
            if layout is RUN:
                counts = np.diff(table.offsets).tolist()
                unread.tags.update(dict(zip(table.queries.tolist(), counts, strict=True)))
    unread.doc = start.split()[2]
    return unread


def _count_lines(source: TextSource, layout: Layout) -> UnreadFields:
    unread = UnreadFields()
    with source.open() as stream:
        for _, line in numbered_lines(stream, source.name):
            parts = line.split()
            if parts and parts[0].startswith(b"#"):
                unread.comments += 1
            elif len(parts) == _SHAPES[layout.name].width:
                unread.doc = unread.doc or parts[2]
                unread.seconds[parts[1]] += 1
                if layout is RUN:
                    unread.tags[parts[5]] += 1
    return unread


class Tally:
    """Counts of tables while they are written to a file.

    Attributes:
        form: Format of the file.
        queries: Number of queries.
        rows: Number of rows.
        notes: Notes of the reader.
    """

    def __init__(self, form: str) -> None:
        self.form = form
        self.queries = self.rows = 0
        self.notes: dict[str, None] = {}
        # Queries in which a document with a worse rank has a better score.
        self.contradicted: list[str] = []
        self._negative = 0
        self._only_ranks = True

    def each(self, tables: Iterable[PairTable]) -> Iterator[PairTable]:
        """Yield the tables and count their contents."""
        for table in tables:
            self.contradicted += [show_id(table.queries[query]) for query in _contradicted(table)]
            self._negative += int(np.count_nonzero(table.values < 0))
            if self.form == "msmarco" and self._only_ranks:
                # Reading ranks gives their negated values, 1 to n.
                places = np.arange(len(table)) - table.offsets[table.query_numbers()]
                self._only_ranks = np.array_equal(table.values[table.best_first(by_id=True)[0]], -1.0 - places)
            self.queries += len(table.queries)
            self.rows += len(table)
            self.notes |= dict.fromkeys(table.notes)
            yield table

    def target_losses(self, tag: str) -> tuple[str, ...]:
        """Return the losses caused by the target format."""
        return keep(
            not self._only_ranks and f"{many(self.rows, 'score')}: {self.form} stores only ranks",
            self._negative
            and format_named(self.form).ratings
            and f"{many(self._negative, 'grade')} below 0 (pooled, not judged): {self.form} reads them as ratings",
            self.form == "trec"
            and tag
            and tag.split() != [tag]
            and f"the tag {tag!r} is written without blanks: '{'_'.join(tag.split())}'",
        )


def unread_losses(tally: Tally, unread: UnreadFields, layout: Layout, *, name: str | None) -> tuple[str, ...]:
    """Return the losses of ignored fields of TREC lines."""
    form, (word, called) = tally.form, ("Q0", "second field") if layout is RUN else ("0", "iteration")
    lines, first = sum(unread.seconds.values()), show_id(next(iter(unread.seconds), b""))
    tags = [show_id(tag) for tag in unread.tags]
    counts = zip(tags[:_SHOWN], unread.tags.values(), strict=False)
    shown = ", ".join(f"'{tag}' ({many(count, 'line')})" for tag, count in counts)
    fate = "merged into one" if form == "trec" else f"{form} cannot store them"
    tag = f"the tag '{tags[0]}'" if len(tags) == 1 else ""
    wrong = tally.contradicted if unread.tags else []
    return keep(
        unread.comments and f"{many(unread.comments, 'comment line')} dropped",
        lines and f"{called} other than {word} in {many(lines, 'line')}: first '{first}'",
        len(tags) > 1 and f"{len(tags)} tags, {fate}: {shown}{rest(len(tags), _SHOWN)}",
        tag and form != "trec" and f"{tag}: {form} cannot store it",
        tag and form == "trec" and name not in {None, tags[0]} and f"{tag}: replaced by '{name}'",
        wrong
        and f"the rank column contradicts the scores in {many(len(wrong), 'query')}, "
        f"'{wrong[0]}'{rest(len(wrong))}: the scores are used",
    )


def _contradicted(table: PairTable) -> list[int]:
    """Return the queries in which a document with a worse rank has a better score."""
    if table.ranks is None:
        return []
    queries, values, ranks = table.query_numbers(), table.values, table.ranks
    if ((ranks[1:] < ranks[:-1]) & (queries[1:] == queries[:-1])).any():
        order = np.lexsort((ranks, queries))
        queries, values, ranks = queries[order], values[order], ranks[order]
    wrong = queries[1:] == queries[:-1]
    wrong &= (ranks[1:] > ranks[:-1]) & (values[1:] > values[:-1])
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


def rest(count: int, shown: int = 1) -> str:
    """Return the number of items not shown, as text."""
    return f" and {count - shown} more" if count > shown else ""
