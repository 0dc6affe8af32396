"""Contents of artifacts: rankings, judgments, and texts as columns, and back exactly."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Ids, IntArray
from rankgauge.core.pair_table import PairTable, distinct, heads_of, offsets_of, ranges_of
from rankgauge.corpus.collection import Document, Query
from rankgauge.data.qrels import Pairs
from rankgauge.data.special_qrels import SpecialQrels
from rankgauge.formats.texts import TextRow
from rankgauge.store.artifacts import Artifact, Columns

# Kinds of artifacts.
RUN, JUDGMENTS, QUESTIONS, DOCUMENTS, ANSWERS = "run", "judgments", "questions", "documents", "answers"

Read: TypeAlias = Callable[[Sequence[int]], Iterator[Columns]]

# Parts of the format: a change needs a new name of the format, since it changes the blocks of a name.
_FORMAT = b"rankgauge contents 1\n"
_ROWS = 1 << 16  # rows of a block of rankings, except for longer rankings
_TEXT = 1 << 18  # bytes of a block of texts
_PACK = 1 << 25  # bytes of an artifact of texts
_DIGEST = 16


def pack_pairs(kind: str, pairs: Pairs | SpecialQrels) -> tuple[Artifact, Iterator[Columns]]:
    """Return the artifact of a run or of judgments, and its blocks."""
    reads, table = "", pairs.table if isinstance(pairs, Pairs) else pairs.keyed
    notes = table.notes
    if isinstance(pairs, SpecialQrels):
        reads, notes = pairs.reads, pairs.qrels.table.notes
    about = json.dumps([reads, notes, table.paired]).encode()
    digest = hashlib.sha256(_FORMAT)
    content = (
        np.frombuffer(kind.encode() + about, np.uint8),
        table.offsets.astype("<i8"),
        *_ids(table.queries),
        *_ids(table.docs),
        table.values.astype("<f8"),
    )
    for column in content:
        digest.update(len(column).to_bytes(8, "little"))
        digest.update(column.data)
    firsts = _firsts(table.offsets)

    def blocks() -> Iterator[Columns]:
        yield np.frombuffer(about, np.uint8), _narrow(np.diff(table.offsets)), *_ids(table.queries)
        for first, last in pairwise(firsts):
            rows = slice(table.offsets[first], table.offsets[last])
            docs, codes = table.docs.take(rows), np.zeros(0, np.uint8)
            if 2 * len(distinct(docs.hashes())) < len(docs):
                numbers, docs = docs.unique()
                codes = _narrow(numbers)
            yield table.values[rows].astype("<f8"), codes, *_ids(docs)

    return Artifact(kind, digest.hexdigest(), len(firsts)), blocks()


def read_pairs(read: Read, source: str, queries: Iterable[bytes] | None = None) -> tuple[PairTable, str]:
    """Return the rows of a run or of judgments, and the kind of special judgments.

    Args:
        read: Function that yields the columns of blocks by number.
        source: The source for messages.
        queries: Read only these queries, in their stored order; default: all.
    """
    ((about, counts, lengths, data),) = read([0])
    reads, notes, paired = json.loads(about.tobytes())
    names, offsets = _ids_of(lengths, data), offsets_of(counts)
    chosen = np.arange(len(names))
    if queries is not None:
        wanted = set(queries)
        chosen = np.flatnonzero(np.array([name in wanted for name in names.tolist()], dtype=bool))
    firsts = _firsts(offsets)
    blocks = np.searchsorted(firsts, chosen, side="right")  # block 0 is the index
    numbers = distinct(blocks)
    values, docs = [np.zeros(0)], [Ids.of([])]
    for numbered, codes, lengths, data in read(numbers.tolist()):
        values.append(numbered.astype(np.float64))
        distinct_docs = _ids_of(lengths, data)
        docs.append(distinct_docs.take(codes) if len(codes) else distinct_docs)
    # Where the rows of each query are among the rows that were read.
    starts = offsets_of([len(part) for part in values[1:]])[np.searchsorted(numbers, blocks)]
    sizes = np.diff(offsets)[chosen]
    rows = ranges_of(starts + offsets[chosen] - offsets[firsts[blocks - 1]], sizes)
    table = PairTable(
        names.take(chosen),
        offsets_of(sizes),
        Ids.joined(docs).take(rows),
        np.concatenate(values)[rows],
        source=source,
        notes=tuple(notes),
        paired=paired,
    )
    return table, reads


def _firsts(offsets: IntArray) -> IntArray:
    """Return the first query of each block after the index, and the number of queries."""
    return np.append(heads_of(offsets[:-1] // _ROWS), len(offsets) - 1)


def pack_texts(kind: str, rows: Iterable[tuple[str, bytes]]) -> Iterator[tuple[Artifact, Iterator[Columns]]]:
    """Pack texts, given the id and the line of each (see :func:`line_of`)."""
    ids: list[str] = []
    lines: list[bytes] = []
    size = 0
    for key, line in rows:
        ids.append(key)
        lines.append(line)
        size += len(line)
        if size >= _PACK:
            yield _texts(kind, ids, lines)
            ids, lines, size = [], [], 0
    if ids:
        yield _texts(kind, ids, lines)


def _texts(kind: str, ids: Sequence[str], lines: Sequence[bytes]) -> tuple[Artifact, Iterator[Columns]]:
    sizes = np.array([len(line) for line in lines])
    firsts = [*heads_of(offsets_of(sizes)[:-1] // _TEXT).tolist(), len(lines)]

    def blocks() -> Iterator[Columns]:
        names, digests = json.dumps(ids).encode(), b"".join(map(digest_of, lines))
        yield np.frombuffer(names, np.uint8), np.frombuffer(digests, np.uint8), _narrow(np.diff(firsts))
        for first, last in pairwise(firsts):
            yield (np.frombuffer(b"".join(lines[first:last]), np.uint8),)

    digest = hashlib.sha256(_FORMAT + kind.encode() + b"\n")
    for line in lines:
        digest.update(line)
    return Artifact(kind, digest.hexdigest(), len(firsts)), blocks()


def ids_in(kind: str, pairs: Iterable[Pairs | SpecialQrels]) -> set[str]:
    """Return the ids of questions or documents in rankings and judgments, as displayed."""
    ids: set[str] = set()
    for part in pairs:
        table = (part if isinstance(part, Pairs) else part.qrels).table
        ids.update((table.queries if kind == QUESTIONS else table.docs.unique()[1]).shown())
    return ids


def line_of(key: str, row: Document | Query | TextRow) -> bytes:
    """Return a text as a line of JSON."""
    return json.dumps([key, getattr(row, "title", ""), row.text, row.fields], default=str).encode() + b"\n"


def digest_of(line: bytes) -> bytes:
    """Return the digest of a text in the index."""
    return hashlib.sha256(line).digest()[:_DIGEST]


def digests_in(read: Read) -> Iterator[tuple[str, bytes]]:
    """Yield the id and the digest of each text of an artifact."""
    ((names, digests, _),) = read([0])
    raw = digests.tobytes()
    for place, key in enumerate(json.loads(names.tobytes())):
        yield key, raw[place * _DIGEST : (place + 1) * _DIGEST]


def read_texts(read: Read, ids: Container[str] | None = None) -> Iterator[TextRow]:
    """Yield the texts of an artifact that have these ids, by default all."""
    ((names, _, counts),) = read([0])
    keys, place = json.loads(names.tobytes()), 0
    for number, count in enumerate(counts.tolist(), 1):
        wanted = [ids is None or key in ids for key in keys[place : place + count]]
        place += count
        if any(wanted):
            ((lines,),) = read([number])
            for line, chosen in zip(lines.tobytes().splitlines(), wanted, strict=True):
                if chosen:
                    yield TextRow(*json.loads(line))


def _narrow(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers from 0 in the smallest type."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _ids(ids: Ids) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    return _narrow(ids.lengths), ids.bytes()


def _ids_of(lengths: npt.NDArray[Any], data: npt.NDArray[np.uint8]) -> Ids:
    sizes = lengths.astype(np.int64)
    return Ids(np.append(data, np.zeros(8, np.uint8)), offsets_of(sizes)[:-1], sizes)
