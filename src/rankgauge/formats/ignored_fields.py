"""What readers of judgments and runs pass over: fields and columns that no table holds.

A conversion says what of it was there, so it is looked at once more, as whole arrays where the
lines are simple.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Ids, IntArray
from rankgauge.core.pair_table import FloatArray, PairTable
from rankgauge.formats.decimals import decimals, words_of
from rankgauge.formats.layout import RUN, Layout, read_number
from rankgauge.formats.lines import AROUND

__all__ = ["Unread", "contradicted", "unread_fields"]

_PIECE = 1 << 22
_BLANK, _LINE, _COMMENT = 32, 10, 35
_BOM = b"\xef\xbb\xbf"
# How many fields a line has that says more than a table holds.
_WIDTHS = {"run": 6, "judgments": 4}
# What stands in the second field of most lines.
_USUAL = {"run": b"Q0", "judgments": b"0"}


@dataclass(frozen=True)
class Unread:
    """The fields of a TREC file that no table holds.

    Attributes:
        seconds: What stands in the second field where it is not ``Q0`` (run) or ``0`` (judgments),
            and in how many lines.
        tags: The last fields of a run, and in how many lines, the first one first.
        ranks: The rank of each line, in the order of the file; NaN where it is no number.
        comments: How many lines are comments.
        doc: The third field of the first line that has as many as it should.
    """

    seconds: Counter[bytes] = field(default_factory=Counter)
    tags: Counter[bytes] = field(default_factory=Counter)
    ranks: FloatArray = field(default_factory=lambda: np.zeros(0))
    comments: int = 0
    doc: bytes = b""


class _Found(NamedTuple):
    seconds: Counter[bytes]
    tags: Counter[bytes]
    ranks: FloatArray
    doc: bytes = b""


def unread_fields(stream: BinaryIO, layout: Layout) -> Unread:
    """Look at the second field, the rank and the tag of each line of a file in TREC format.

    Args:
        stream: The file; it reads well.
        layout: Judgments or run.
    """
    seconds: Counter[bytes] = Counter()
    tags: Counter[bytes] = Counter()
    ranks: list[FloatArray] = []
    comments = 0
    width = 0
    doc = b""
    for text in _pieces(stream):
        found = _of_arrays(text, layout, width) if width else None
        if found is None:
            found, wide, passed = _of_lines(text.removeprefix(_BOM), layout)
            width = wide or width
            comments += passed
        seconds.update(found.seconds)
        tags.update(found.tags)
        ranks.append(found.ranks)
        doc = doc or found.doc
    seconds.pop(_USUAL[layout.name], None)
    return Unread(seconds, tags, np.concatenate(ranks) if ranks else np.zeros(0), comments, doc)


def contradicted(table: PairTable, ranks: FloatArray) -> IntArray:
    """The queries in which a document of a worse rank has a better score.

    Args:
        table: A run that knows its lines.
        ranks: The rank of each line, in the order of the file.
    """
    none = np.zeros(0, dtype=np.int64)
    if table.lines is None or len(ranks) != len(table) or not len(table):
        return none
    of_row = np.empty(len(table))
    of_row[np.argsort(table.lines, kind="stable")] = ranks
    known = ~np.isnan(of_row)
    queries, values = table.query_numbers()[known], table.values[known]
    of_row = of_row[known]
    same = queries[1:] == queries[:-1]
    if (same & (of_row[1:] < of_row[:-1])).any():
        order = np.lexsort((of_row, queries))
        queries, values, of_row = queries[order], values[order], of_row[order]
        same = queries[1:] == queries[:-1]
    wrong = same & (of_row[1:] > of_row[:-1]) & (values[1:] > values[:-1])
    return np.unique(queries[1:][wrong])


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    """Whole lines, many at a time; the first and the comments before it alone."""
    for line in stream:
        yield line
        if line.strip() and not line.lstrip().startswith(b"#"):
            break
    rest = b""
    while piece := stream.read(_PIECE):
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield rest + piece[:cut]
        rest = piece[cut:] if cut else rest + piece
    if rest:
        yield rest


def _of_lines(text: bytes, layout: Layout) -> tuple[_Found, int, int]:
    """The fields of lines one by one, how many fields they have, and how many are comments."""
    seconds: Counter[bytes] = Counter()
    tags: Counter[bytes] = Counter()
    ranks: list[float] = []
    width = comments = 0
    doc = b""
    for line in text.splitlines():
        parts = line.split()
        if not parts:
            continue
        if parts[0].startswith(b"#"):
            comments += 1
            continue
        width = len(parts)
        if width != _WIDTHS[layout.name]:
            continue
        seconds[parts[1]] += 1
        doc = doc or parts[2]
        if layout is RUN:
            tags[parts[5]] += 1
            ranks.append(_rank(parts[3]))
    return _Found(seconds, tags, np.array(ranks), doc), width, comments


def _rank(text: bytes) -> float:
    try:
        return read_number(text)
    except ValueError:
        return float("nan")


def _of_arrays(text: bytes, layout: Layout, width: int) -> _Found | None:
    """The fields of lines that all have so many, none a comment; else None."""
    if width != _WIDTHS[layout.name] or b"\r" in text:
        return None
    data = np.zeros(len(text) + 2 * AROUND, dtype=np.uint8)
    data[AROUND : AROUND + len(text)] = np.frombuffer(text, dtype=np.uint8)
    data[:AROUND] = data[AROUND + len(text) :] = _LINE
    blank = data <= _BLANK
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    feeds = np.flatnonzero(data[AROUND : AROUND + len(text)] == _LINE) + AROUND
    if text[-1:] != b"\n":
        feeds = np.append(feeds, AROUND + len(text))
    if len(starts) != width * len(feeds):
        return None
    opened, closed = starts.reshape(-1, width), ends.reshape(-1, width)
    # Each line has its fields: the first of a line begins behind the end of the line before.
    if not ((opened[1:, 0] > feeds[:-1]).all() and (closed[:, -1] <= feeds).all()):
        return None
    if (data[opened[:, 0]] == _COMMENT).any():
        return None

    def counted(column: int) -> Counter[bytes]:
        ids = Ids(data.view(), opened[:, column], closed[:, column] - opened[:, column])
        codes, names = ids.unique()
        return Counter(dict(zip(names.tolist(), np.bincount(codes).tolist(), strict=True)))

    if layout is not RUN:
        return _Found(counted(1), Counter(), np.zeros(0))
    return _Found(counted(1), counted(5), _ranks(data, opened[:, 3], closed[:, 3]))


def _ranks(data: npt.NDArray[np.uint8], starts: IntArray, ends: IntArray) -> FloatArray:
    values, sure = decimals(data, words_of(data), starts, ends)
    for row in np.flatnonzero(~sure).tolist():
        values[row] = _rank(data[starts[row] : ends[row]].tobytes())
    return values
