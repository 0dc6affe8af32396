"""Artifacts: rankings, judgments, and texts of saved evaluations, outside the tables of the store.

An artifact is a sequence of blocks of columns that are compressed one by one, so that a part is
read without the rest; block 0 is the index. It is named by the SHA-256 of its content and never
changes, so equal content is stored once. Artifacts are files beside an SQLite file, and rows in
PostgreSQL. They are written and synced before the short transaction that names them.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.core.files import write_atomically
from rankgauge.core.ids import Ids, IntArray
from rankgauge.core.pair_table import PairTable, distinct, heads_of, offsets_of, ranges_of
from rankgauge.corpus.collection import Document, Query
from rankgauge.data.qrels import Pairs
from rankgauge.data.special_qrels import SpecialQrels
from rankgauge.formats.texts import TextRow
from rankgauge.store.database import Database
from rankgauge.store.schema import SCHEMA

if TYPE_CHECKING:
    from sqlalchemy import Connection

Columns: TypeAlias = Sequence[npt.NDArray[Any]]

_MAGIC = b"rankgauge artifact 1\n"
_CHECK = struct.Struct("<I")  # CRC-32 of a block, its artifact, and its number
# Levels and strategies of zlib. Bytes of numbers have no matches, only frequent or random values.
_WAYS = (0, zlib.Z_DEFAULT_STRATEGY), (1, zlib.Z_RLE), (1, zlib.Z_DEFAULT_STRATEGY)
_SAMPLE = 1 << 12
_DIRTY = 1 << 22  # bytes of a file that are not yet on disk, at most
_LEFT_OVER = 3600  # seconds after which content without a name is not about to be named any more


@dataclass(frozen=True)
class Artifact:
    """The name of an artifact.

    Attributes:
        kind: ``run``, ``judgments``, ``questions``, or ``documents``.
        name: The SHA-256 of its content.
        count: The number of blocks.
    """

    kind: str
    name: str
    count: int


class Artifacts:
    """The artifacts of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._folder: Path | None = None
        if database.path is not None:
            # SQLite follows links, too. Stores a.db and a.sqlite have folders of their own.
            path = Path(os.path.realpath(database.path))
            self._folder = path.with_name(f"{path.name}.artifacts")

    def write(self, artifact: Artifact, blocks: Iterable[Columns]) -> Artifact:
        """Write the blocks of an artifact to disk unless it is stored.

        They are deleted by the next :meth:`collect` if no transaction names the artifact.
        """
        return self.put(artifact, _packed_blocks(artifact, blocks))

    def put(self, artifact: Artifact, bodies: Iterable[bytes]) -> Artifact:
        """Write the bodies of blocks, as :meth:`write` does."""
        if self._folder is None:
            self._insert(artifact, bodies)
            return artifact
        path = self._path(artifact.name)
        with self._database.errors("written"):
            for folder in (self._folder, path.parent):
                if not folder.exists():
                    folder.mkdir(mode=0o700, exist_ok=True)
                    _sync(folder.parent)
            if not path.exists():
                with write_atomically(path, private=True) as stream:
                    _write(stream, bodies)
            _sync(path.parent)
        return artifact

    def _insert(self, artifact: Artifact, bodies: Iterable[bytes]) -> None:
        """Insert blocks, each in a transaction; another process may be inserting the same ones."""
        from sqlalchemy.dialects.postgresql import insert

        with self._database.adding() as connection:
            if self._size(connection, artifact) is None:
                for number, body in enumerate(bodies):
                    row = {"artifact": artifact.name, "number": number, "time": int(time.time()), "body": body}
                    connection.execute(insert(SCHEMA.table("blocks")).values(row).on_conflict_do_nothing())
                    connection.commit()

    def name(self, connection: Connection, written: Iterable[Artifact], shared: Sequence[str]) -> bool:
        """Name artifacts that were written; return False if one of them or of those shared has been collected."""
        table = SCHEMA.table("artifacts")
        sizes = {artifact: self._size(connection, artifact) for artifact in written}
        names = [*shared, *(artifact.name for artifact in sizes)]
        known = set(connection.scalars(table.select().with_only_columns(table.c.name).where(table.c.name.in_(names))))
        if None in sizes.values() or not known.issuperset(shared):
            return False
        for artifact, size in sizes.items():
            if artifact.name not in known:
                row = {"name": artifact.name, "kind": artifact.kind, "size": size}
                connection.execute(table.insert().values(row))
        return True

    def _size(self, connection: Connection, artifact: Artifact) -> int | None:
        """Return the bytes of an artifact; None if it is not stored completely."""
        if self._folder is not None:
            path = self._path(artifact.name)
            return path.stat().st_size if path.exists() else None
        from sqlalchemy import func, select

        table = SCHEMA.table("blocks")
        count, size = connection.execute(
            select(func.count(), func.sum(func.length(table.c.body))).where(table.c.artifact == artifact.name)
        ).one()
        return int(size) if count == artifact.count else None

    def read(self, connection: Connection, name: str, numbers: Sequence[int]) -> Iterator[Columns]:
        """Yield the columns of these blocks.

        Raises:
            InputError: If a block is missing or differs from what was written.
        """
        for body in self._bodies(connection, name, numbers):
            yield _unpacked(body[_CHECK.size :])

    def bodies(self, connection: Connection, name: str) -> Iterator[bytes]:
        """Yield the bodies of all blocks of an artifact.

        Raises:
            InputError: If a block is missing or differs from what was written.
        """
        if self._folder is None:
            from sqlalchemy import func, select

            table = SCHEMA.table("blocks")
            count = connection.scalar(select(func.count()).select_from(table).where(table.c.artifact == name)) or 0
        else:
            try:
                with self._path(name).open("rb") as stream:
                    count = len(_ends(stream)) - 1
            except (FileNotFoundError, ValueError):
                count = 1  # reading it reports what is wrong
        return self._bodies(connection, name, range(count))

    def _bodies(self, connection: Connection, name: str, numbers: Sequence[int]) -> Iterator[bytes]:
        bodies = self._rows(connection, name, numbers) if self._folder is None else self._parts(name, numbers)
        for number, body in zip(numbers, bodies, strict=True):
            check = _CHECK.pack(_checksum(name, number, body[_CHECK.size :]))
            if body[: _CHECK.size] != check:
                raise self._database.damaged(f"block {number} of artifact {name[:8]} differs from what was saved")
            yield body

    def _rows(self, connection: Connection, name: str, numbers: Iterable[int]) -> Iterator[bytes]:
        table = SCHEMA.table("blocks")
        for number in numbers:
            asked = table.select().with_only_columns(table.c.body)
            body = connection.scalar(asked.where(table.c.artifact == name, table.c.number == number))
            yield bytes(body or b"")

    def _parts(self, name: str, numbers: Iterable[int]) -> Iterator[bytes]:
        try:
            with self._path(name).open("rb") as stream:
                ends = _ends(stream)
                for number in numbers:
                    start, end = ends[number : number + 2]
                    stream.seek(start)
                    yield stream.read(end - start)
        except FileNotFoundError:
            raise self._database.damaged(f"artifact {name[:8]} is missing") from None
        except ValueError:
            raise self._database.damaged(f"artifact {name[:8]} is truncated") from None

    def _path(self, name: str) -> Path:
        return Path(self._folder or "") / name[:2] / name

    def collect(self) -> None:
        """Delete artifacts that no evaluation uses, and old left-overs of interrupted writes.

        A process that is about to name one of them waits, finds it missing, and writes it again.
        """
        artifacts, uses, blocks = map(SCHEMA.table, ("artifacts", "uses", "blocks"))
        with self._database.writing() as connection:
            unused = artifacts.c.name.not_in(uses.select().with_only_columns(uses.c.artifact))
            gone = set(connection.scalars(artifacts.select().with_only_columns(artifacts.c.name).where(unused)))
            connection.execute(artifacts.delete().where(unused))
        # Deleted files do not come back if a transaction fails: only what is committed decides.
        with self._database.writing() as connection:
            known = artifacts.select().with_only_columns(artifacts.c.name)
            if self._folder is None:
                old = blocks.c.artifact.in_(gone) | (blocks.c.time < time.time() - _LEFT_OVER)
                connection.execute(blocks.delete().where(old, blocks.c.artifact.not_in(known)))
                return
            names = set(connection.scalars(known))
            for path in self._folder.glob("??/*"):
                with suppress(FileNotFoundError):  # a temporary file that has got its name
                    left_over = path.name in gone or path.stat().st_mtime < time.time() - _LEFT_OVER
                    if left_over and path.name not in names:
                        path.unlink()


def _packed_blocks(artifact: Artifact, blocks: Iterable[Columns]) -> Iterator[bytes]:
    for number, columns in enumerate(blocks):
        body = b"".join(map(_packed, columns))
        yield _CHECK.pack(_checksum(artifact.name, number, body)) + body


def _checksum(name: str, number: int, body: bytes) -> int:
    # A block in the place of another one is damage, too.
    return zlib.crc32(body, zlib.crc32(f"{name} {number}".encode()))


def _packed(column: npt.NDArray[Any]) -> bytes:
    """Compress a column: the first bytes of all numbers, then the second bytes, ..."""
    planes = np.ascontiguousarray(column).view(np.uint8).reshape(len(column), column.itemsize).T
    bodies = [_deflated(plane.tobytes()) for plane in planes]
    sizes = np.array([len(column), *map(len, bodies)], dtype="<u4")
    return b"".join((column.dtype.str[1:].encode(), sizes.tobytes(), *bodies))


def _deflated(raw: bytes) -> bytes:
    """Compress bytes in the way that suits the first of them."""
    sample = raw[:_SAMPLE]
    return _compressed(raw, *min(_WAYS, key=lambda way: len(_compressed(sample, *way))))


def _compressed(raw: bytes, level: int, strategy: int) -> bytes:
    squeeze = zlib.compressobj(level, zlib.DEFLATED, 15, 9, strategy)
    return squeeze.compress(raw) + squeeze.flush()


def _unpacked(block: bytes) -> Columns:
    columns, start = [], 0
    while start < len(block):
        dtype = np.dtype(f"<{block[start : start + 2].decode()}")
        rows, *sizes = np.frombuffer(block, "<u4", dtype.itemsize + 1, start + 2).tolist()
        start += 2 + 4 * (dtype.itemsize + 1)
        raw = np.empty((rows, dtype.itemsize), np.uint8)
        for place, size in enumerate(sizes):
            raw[:, place] = np.frombuffer(zlib.decompress(block[start : start + size]), np.uint8)
            start += size
        columns.append(raw.reshape(-1).view(dtype))
    return columns


def _write(stream: BinaryIO, bodies: Iterable[bytes]) -> None:
    """Write a file: its format, the blocks, the end of each, and their number."""
    ends, synced = [stream.write(_MAGIC)], 0
    for body in bodies:
        ends.append(ends[-1] + stream.write(body))
        if ends[-1] - synced > _DIRTY:
            # Otherwise the file system makes commits of other programs wait for all of the file.
            stream.flush()
            os.fsync(stream.fileno())
            synced = ends[-1]
    stream.write(np.array([*ends, len(ends)], dtype="<i8").tobytes())


def _ends(stream: BinaryIO) -> list[int]:
    """Return the start of the first block and the end of each; checksums of blocks show whether they are right."""
    end = max(0, stream.seek(0, os.SEEK_END) - 8)
    stream.seek(end)
    start = end - 8 * int.from_bytes(stream.read(8), "little")
    stream.seek(max(0, start))
    ends: list[int] = np.frombuffer(stream.read(end - stream.tell()), dtype="<i8").tolist()
    if ends != sorted(ends) or [*ends[:1], *ends[-1:]] != [len(_MAGIC), start]:
        raise ValueError("the file is truncated")
    return ends


def _sync(folder: Path) -> None:
    """Write the names in a folder to disk."""
    if os.name != "nt":  # Windows cannot open folders
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


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
