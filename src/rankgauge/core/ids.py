"""Columns of ids in packed bytes.

Ids are text, whole numbers, or bytes (one type per column), stored as UTF-8 bytes in one buffer
with the start and length of each: no Python object per row. Equality, hashing, and sorting process
eight bytes at a time in NumPy. Equal hashes are only candidates; :meth:`Ids.same` compares the
bytes.
"""

from __future__ import annotations

import itertools
import numbers
import zlib
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.core import native
from rankgauge.core.escaping import visible
from rankgauge.errors import InputError

Id: TypeAlias = str | int | bytes
IntArray: TypeAlias = npt.NDArray[np.int64]
# Makes the error for a row (from 0) from problem and fix; the reader adds the location.
Blame: TypeAlias = Callable[[int, str, str], InputError]

# Not allowed in ids.
NO_TEXT = "\0"
_WORD = 8
# Mask n keeps the first n bytes of a little-endian word.
_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(_WORD)] + [2**64 - 1], dtype=np.uint64)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
# Above this ratio of spanned bytes to used bytes, ids are sliced one by one.
_SPARSE = 16
# Rows per piece, so that intermediate arrays fit in the cache.
_PIECE = 1 << 15
# Maximum number of bytes objects in memory at once.
_AT_ONCE = 1 << 17
_LONG = 128
_SHOWN = 60
_SAMPLE_SIZE = 10_000
_LEAVE = "remove the row, or give it an id"
_EXPECTED = "text, a whole number, or bytes"
_TYPE_NAMES: dict[type, str] = {str: "text", int: "a whole number", bytes: "bytes"}


def freeze(*arrays: npt.NDArray[Any] | None) -> None:
    """Make arrays read-only."""
    for array in arrays:
        if array is not None:
            array.flags.writeable = False


class Frozen:
    """Base of dataclasses whose `__post_init__` makes arrays and mappings read-only: unpickled ones are writable."""

    def __post_init__(self) -> None:
        """Make arrays and mappings read-only."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()


def _by_row(row: int, what: str, fix: str) -> InputError:
    return InputError(what, where=f"row {row + 1}", fix=fix)


@dataclass(frozen=True, eq=False)
class Ids(Frozen):
    """A column of N ids. Immutable."""

    data: npt.NDArray[np.uint8]  # bytes of all ids, and at least eight bytes of padding
    starts: IntArray  # (N,) start of each id in ``data``
    lengths: IntArray  # (N,) length of each id in bytes
    # Set by readers that compute the hashes while reading.
    _hashed: npt.NDArray[np.uint64] | None = None

    def __post_init__(self) -> None:
        freeze(self.data, self.starts, self.lengths, self._hashed)

    @classmethod
    def of(cls, values: Iterable[Any], what: str = "id", blame: Blame = _by_row) -> Ids:
        """Pack ids into a column.

        Example:
            >>> Ids.of([7, 42]).tolist()
            [b'7', b'42']
        """
        if isinstance(values, np.ndarray):
            rows = values.tolist()
        else:
            rows = values if isinstance(values, list) else list(values)
        quick = _text_lines(rows)
        if quick is not None:
            return _checked(quick, what, blame)
        kind = _kind_of(rows, what, blame)
        if kind is bytes:
            return _checked(_packed(b"".join(rows), map(len, rows)), what, blame)
        if kind is int:
            rows = [str(int(value)) for value in rows]
        text = "".join(rows)
        if text.isascii():
            return _checked(_packed(text.encode("ascii"), map(len, rows)), what, blame)
        encoded = [value.encode("utf-8", "surrogatepass") for value in rows]
        packed = b"".join(encoded)
        if not _is_text(packed):
            row = next(row for row, value in enumerate(encoded) if not _is_text(value))
            raise blame(row, *_surrogate(rows[row], what))
        return _checked(_packed(packed, map(len, encoded)), what, blame)

    @classmethod
    def joined(cls, parts: Sequence[Ids]) -> Ids:
        """Concatenate columns."""
        if len(parts) == 1:
            return parts[0]
        ends = np.cumsum([len(part.data) for part in parts])
        starts = [part.starts + end - len(part.data) for part, end in zip(parts, ends, strict=True)]
        known = [part._hashed for part in parts if part._hashed is not None]  # noqa: SLF001 - of the same class
        hashed = np.concatenate(known) if len(known) == len(parts) else None
        return cls(
            np.concatenate([part.data for part in parts]),
            np.concatenate(starts),
            np.concatenate([part.lengths for part in parts]),
            hashed,
        )

    @classmethod
    def keyed(cls, pairs: Iterable[tuple[bytes, bytes]]) -> Ids:
        r"""Combine each pair into one id, joined by a NUL byte, which ids cannot contain.

        Example:
            >>> Ids.keyed([(b"d1", b"a")]).tolist()
            [b'd1\x00a']
        """
        keys = [b"%b\0%b" % pair for pair in pairs]
        return _packed(b"".join(keys), map(len, keys))

    def __getstate__(self) -> dict[str, Any]:
        # Hashes are recomputed rather than pickled.
        return {"data": self.data, "starts": self.starts, "lengths": self.lengths, "_hashed": None}

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> bytes:
        start = int(self.starts[row])
        return self.data[start : start + int(self.lengths[row])].tobytes()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ids):
            return NotImplemented
        if len(self) != len(other):
            return False
        rows = np.arange(len(self))
        return bool(self.same(rows, other, rows).all())

    __hash__ = None  # type: ignore[assignment] # a column is compared, never a dictionary key

    def tolist(self) -> list[bytes]:
        """Return all ids as bytes objects."""
        if not len(self):
            return []
        # The ids of a query are adjacent: copy only the part of the buffer that they span.
        first = int(self.starts.min())
        starts = self.starts - first
        ends = starts + self.lengths
        if int(ends.max()) > _SPARSE * (int(self.lengths.sum()) + _LONG):
            # Query ids are scattered among document ids.
            spans = zip(self.starts.tolist(), (self.starts + self.lengths).tolist(), strict=True)
            view = memoryview(self.data)  # type: ignore[arg-type] # an array is a buffer
            return [view[start:end].tobytes() for start, end in spans]
        data = self.data[first : first + int(ends.max())].tobytes()
        return [data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

    def shown(self) -> list[str]:
        """Return all ids as text, with escapes for anything that is not printable UTF-8."""
        if len(self) > _AT_ONCE:
            starts = range(0, len(self), _AT_ONCE)
            return [text for start in starts for text in self.take(slice(start, start + _AT_ONCE)).shown()]
        values = self.tolist()
        whole = b"\n".join(values)
        # Usually no id needs an escape, and all are decoded at once.
        texts = whole.decode("ascii").split("\n") if whole.isascii() else []
        if len(texts) == len(values) and "".join(texts).isprintable():
            return texts
        return [show_id(value) for value in values]

    def not_text(self) -> int:
        """Count distinct ids that are not UTF-8."""
        if int(self.data.max()) < 128:
            return 0
        return sum(not _is_text(value) for value in set(self.tolist()))

    def take(self, rows: npt.NDArray[Any] | slice) -> Ids:
        """Return the ids of these rows, sharing the buffer."""
        hashed = None if self._hashed is None else self._hashed[rows]
        return Ids(self.data, self.starts[rows], self.lengths[rows], hashed)

    def compact(self) -> Ids:
        """Return a copy with a buffer of only these ids (for pickling part of a column)."""
        lengths = self.lengths.copy()
        data = np.append(self.bytes(), np.zeros(_WORD, dtype=np.uint8))
        return Ids(data, np.cumsum(lengths) - lengths, lengths)

    def bytes(self) -> npt.NDArray[np.uint8]:
        """Return the concatenated bytes of all ids."""
        if native.core is not None:
            data, starts, lengths = self.columns()
            size = int(lengths.sum())
            packed = np.empty(size + 16, dtype=np.uint8)  # the compiled core needs spare bytes
            native.core.pack_ids(data, starts.copy(), lengths, 0, len(self), packed, 0)
            return packed[:size]
        return np.frombuffer(b"".join(self.tolist()), dtype=np.uint8)

    @cached_property
    def texts(self) -> list[str]:
        """The ids as text; `NO_TEXT` for those that are not UTF-8."""
        values = self.tolist()
        try:
            return [value.decode() for value in values]
        except UnicodeDecodeError:
            texts = (value.decode("utf-8", "replace") for value in values)
            return [text if text.encode() == value else NO_TEXT for text, value in zip(texts, values, strict=True)]

    @cached_property
    def longest(self) -> int:
        """Length of the longest id in bytes; 0 without rows."""
        return int(self.lengths.max()) if len(self) else 0

    def hashes(self) -> npt.NDArray[np.uint64]:
        """Return a 64-bit hash of each id; only equal hashes of equal ids are guaranteed."""
        if self._hashed is not None:
            return self._hashed
        hashed = np.empty(len(self), dtype=np.uint64)
        if native.core is not None:
            native.core.number_ids(None, *self.columns(), hashed)
        else:
            for start in range(0, len(self), _PIECE):
                hashed[start : start + _PIECE] = _hashes(self.take(slice(start, start + _PIECE)))
        freeze(hashed)
        # Judgments and runs are read several times.
        object.__setattr__(self, "_hashed", hashed)
        return hashed

    def columns(self) -> tuple[npt.NDArray[np.uint8], IntArray, IntArray]:
        """Return bytes, starts, and lengths as contiguous arrays for the compiled core."""
        return (
            np.ascontiguousarray(self.data),
            np.ascontiguousarray(self.starts, dtype=np.int64),
            np.ascontiguousarray(self.lengths, dtype=np.int64),
        )

    def same(self, rows: IntArray | slice, other: Ids, other_rows: IntArray | slice) -> npt.NDArray[np.bool_]:
        """Return whether each of these ids equals the corresponding id of the other column."""
        ours, theirs = self.take(rows), other.take(other_rows)
        equal = ours.lengths == theirs.lengths
        for number in range(_word_count(ours)):
            left = np.flatnonzero(equal & (ours.lengths > number * _WORD)) if number else slice(None)
            equal[left] &= words_of(ours.take(left), number) == words_of(theirs.take(left), number)
        for row in np.flatnonzero(equal & (ours.lengths > _LONG)).tolist():
            equal[row] = ours[row] == theirs[row]
        return equal

    def descending(self, rows: IntArray, groups: IntArray) -> IntArray:
        """Return the order of ``rows`` by group ascending, then by id descending (bytewise)."""
        ids = self.take(rows).tolist()
        order = np.array(sorted(range(len(ids)), key=ids.__getitem__, reverse=True), dtype=np.int64)
        return order[np.argsort(groups[order], kind="stable")]

    def ascending(self) -> IntArray:
        """Return the rank of each id (n,) in ascending bytewise order; equal ids share a rank."""
        codes, names = self.unique()
        every = np.arange(len(names))
        numbers = np.empty(len(names), dtype=np.int64)
        numbers[names.descending(every, np.zeros(len(names), dtype=np.int64))[::-1]] = every
        return numbers[codes]

    def unique(self) -> tuple[IntArray, Ids]:
        """Return the number of each id by first appearance, and the distinct ids."""
        codes, names = self.numbered()
        return codes.astype(np.int64), names

    def runs(self) -> IdRuns:
        """Return runs of equal ids; adjacent runs may have the same id."""
        count = len(self)
        # Rows of a query are usually adjacent: look up an id only where it changes.
        heads = np.concatenate([np.zeros(min(count, 1), np.int64), *map(self._changes, range(0, count, _PIECE))])
        if 2 * len(heads) > count:
            return IdRuns(self, np.broadcast_to(np.int64(1), count))
        return IdRuns(self.take(heads), np.diff(np.append(heads, count)))

    def _changes(self, start: int) -> IntArray:
        """Return the rows of one piece after ``start`` at which the id changes."""
        part = self.take(slice(start, start + _PIECE + 1))
        return np.flatnonzero(~part.same(slice(1, None), part, slice(-1))) + start + 1

    def numbered(self) -> tuple[npt.NDArray[np.int32], Ids]:
        """Like :meth:`unique`, with numbers of 32 bits."""
        return Numbering().add(self)


class Numbering:
    """Numbers of ids in order of first appearance, over several columns."""

    def __init__(self) -> None:
        self._core, self._count = native.core, 0
        self._known: Any = {} if self._core is None else self._core.numbering()

    def add(self, ids: Ids) -> tuple[npt.NDArray[np.int32], Ids]:
        """Return the number of each id, and the new ids."""
        numbers, known = np.empty(len(ids), dtype=np.int32), self._known
        if self._core is None:
            numbers[:] = [known.setdefault(value, len(known)) for value in ids.tolist()]
        else:
            self._core.number_ids(known, *ids.columns(), numbers)
        rows = np.flatnonzero(np.diff(np.maximum.accumulate(np.append(np.int32(self._count - 1), numbers))))
        self._count += len(rows)
        return numbers, ids.take(rows).compact()


@dataclass(frozen=True, eq=False)
class IdRuns:
    """Ids of rows, with one entry for each run of consecutive equal ids. Immutable."""

    ids: Ids  # the id of each run, or, with codes, ids in any order
    counts: IntArray  # its number of rows
    codes: npt.NDArray[np.integer[Any]] | None = None  # the place in ``ids`` of its id

    def __len__(self) -> int:
        return int(self.counts.sum())

    def runs(self) -> IdRuns:
        """Return itself, like :meth:`Ids.runs`."""
        return self

    def numbered(self) -> tuple[npt.NDArray[np.int32], Ids]:
        """Return the number of each run by first appearance of its id, and the distinct ids."""
        if self.codes is None:
            return self.ids.numbered()
        # A dictionary may have far more entries than rows, in any order, and equal ones.
        codes, entries = self.codes, len(self.ids)
        rows = np.arange(len(codes), dtype=np.int32 if len(codes) < 2**31 else np.int64)
        first, numbers = np.empty(entries, dtype=rows.dtype), np.empty(entries, dtype=np.int32)
        first[codes[::-1]] = rows[::-1]
        used = codes[first[codes] == rows]
        numbers[used], names = np.arange(len(used)), self.ids.take(used)
        hashes = np.sort(names.hashes())
        if (hashes[1:] == hashes[:-1]).any():
            numbers[used], names = names.numbered()
        return numbers[codes], names.compact()

    def spread(self) -> Ids:
        """Return the id of each row."""
        codes = np.arange(len(self.ids)) if self.codes is None else self.codes
        return self.ids.take(np.repeat(codes, self.counts))


def _hashes(ids: Ids) -> npt.NDArray[np.uint64]:
    """Return a hash of each id: a sum over its words."""
    hashed = ids.lengths.astype(np.uint64)
    for row in np.flatnonzero(ids.lengths > _LONG).tolist():
        hashed[row] ^= np.uint64(zlib.crc32(ids[row]))
    for number, factor in enumerate(np.multiply.accumulate(np.full(_word_count(ids), _MIX))):
        # A missing word is 0: a hash must not depend on the other ids of the column.
        words = words_of(ids, number)
        words ^= words >> _HALF
        words *= factor
        hashed += words
    hashed ^= hashed >> _HALF
    hashed *= _MIX
    return hashed


def _word_count(ids: Ids) -> int:
    """Return the number of words in the longest id; of long ids, only the first words are read."""
    return -(-min(ids.longest, _LONG) // _WORD)


def words_of(ids: Ids, number: int) -> npt.NDArray[np.uint64]:
    """Return the ``number``-th eight bytes of each id, zero after its end."""
    data = ids.data.data
    # The eight bytes at every offset.
    unaligned = np.ndarray((len(data) - _WORD + 1,), dtype="<u8", buffer=data, strides=(1,))
    # Eight bytes are readable at every start of an id, but not always at later offsets.
    starts = np.minimum(ids.starts + number * _WORD, len(data) - _WORD) if number else ids.starts
    words: npt.NDArray[np.uint64] = unaligned[starts]
    words &= _MASKS.take(ids.lengths - number * _WORD, mode="clip")
    return words


def are_ids(text: str, ids: Container[str]) -> bool:
    """Return whether these ids, joined into `text`, are valid: not empty, no NUL, no surrogate."""
    if "" in ids or "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def id_bytes(value: Any, what: str = "id") -> bytes:
    """Convert an id to UTF-8 bytes.

    Example:
        >>> id_bytes("d1"), id_bytes(7)
        (b'd1', b'7')
    """
    kind = _kind(value)
    if kind is bytes:
        return bytes(value)
    if kind is int:
        return b"%d" % int(value)
    if kind is None:
        fault, fix = _no_id(value, what)
        raise InputError(fault, fix=fix)
    try:
        return str(value).encode("utf-8")
    except UnicodeEncodeError:
        fault, fix = _surrogate(value, what)
        raise InputError(fault, fix=fix) from None


def id_text(value: Any, what: str = "id") -> str:
    """Convert an id to text, as it is displayed.

    Example:
        >>> id_text(b"d1"), id_text(7)
        ('d1', '7')
    """
    raw = id_bytes(value, what)
    if b"\0" in raw:
        fault, fix = _nul(raw, what)
        raise InputError(fault, fix=fix)
    return show_id(raw)


def show_id(value: bytes) -> str:
    r"""Decode an id for display: UTF-8, with escapes for anything that is not printable.

    Example:
        >>> show_id(b"d\xff1")
        'd\\xff1'
    """
    return visible(value.decode("utf-8", "backslashreplace"))


def near_match(ours: Iterable[bytes], theirs: Iterable[bytes]) -> tuple[bytes, bytes] | None:
    """Find an id on each side that differ only in leading zeros, surrounding spaces, or case.

    Return None if there is no such pair, or if both sides share an id and therefore use the same
    ids. Compares the first 10,000 ids of each side in linear time.

    Example:
        >>> near_match([b"007", b"8"], [b"7"])
        (b'007', b'7')
        >>> near_match([b"007", b"8"], [b"7", b"8"])
    """
    left = list(itertools.islice(ours, _SAMPLE_SIZE))
    right = list(itertools.islice(theirs, _SAMPLE_SIZE))
    if not set(left).isdisjoint(right):
        return None
    near: dict[str, bytes] = {}
    for value in right:
        near.setdefault(_plain(value), value)
    return next(((value, near[_plain(value)]) for value in left if _plain(value) in near), None)


def renumbered(value: bytes, step: int) -> bytes:
    """Add ``step`` to an id that is a whole number, keeping leading zeros.

    Example:
        >>> renumbered(b"009", 1), renumbered(b"d9", 1)
        (b'010', b'd9')
    """
    # Longer numbers are not counters, and are slow to parse.
    if not value.isdigit() or len(value) >= 19:
        return value
    moved = b"%d" % (int(value) + step)
    return moved.zfill(len(value)) if len(value) > 1 and value.startswith(b"0") else moved


def _plain(value: bytes) -> str:
    """Normalize an id: no surrounding whitespace, lower case, no leading zeros."""
    text = value.decode("utf-8", "surrogateescape").strip().lower()
    return text.lstrip("0") or text[-1:]


def _kind(value: Any) -> type[str | int | bytes] | None:
    """Return the type of an id; None if the value is not an id."""
    if isinstance(value, str):
        return str
    if isinstance(value, bytes):
        return bytes
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)
    return int if whole else None


def _kind_of(rows: Sequence[Any], what: str, blame: Blame) -> type[str | int | bytes]:
    """Return the common type of ids, or raise an error for the first that differs."""
    types = set(map(type, rows))
    if types <= {str}:
        return str
    kinds: dict[type, type[str | int | bytes]] = {}
    first = rows[0]
    for row, value in enumerate(rows):
        if type(value) in kinds:
            continue
        kind = _kind(value)
        if kind is None:
            raise blame(row, *_no_id(value, what))
        kinds[type(value)] = kind
        if kind is not kinds[type(first)]:
            raise blame(
                row,
                f"{what} {_short(value)} is {_TYPE_NAMES[kind]}, "
                f"but {_short(first)} is {_TYPE_NAMES[kinds[type(first)]]}",
                f"convert all {what}s of this input to text: str(...)",
            )
        if len(kinds) == len(types):
            break
    return kinds[type(first)]


def _no_id(value: Any, what: str) -> tuple[str, str]:
    """Return problem and fix for a value that is not an id."""
    # Only missing values differ from themselves (NaN) or cannot be compared (pandas.NA).
    if value is None or type(value).__name__ in {"NAType", "NaTType"} or value is np.ma.masked:
        return f"the {what} is missing ({value})", _LEAVE
    if isinstance(value, float | np.floating):
        if np.isnan(value):
            return f"the {what} is missing (NaN)", _LEAVE
        fix = "convert it to a whole number or text, as in the other input (pandas: .astype('int64'))"
        return f"{what} {float(value)} is a decimal number; expected {_EXPECTED}", fix
    return (
        f"{what} {_short(value)} is of type {type(value).__name__}; expected {_EXPECTED}",
        "convert it to text: str(...)",
    )


def _nul(raw: bytes, what: str) -> tuple[str, str]:
    return (
        f"{what} '{show_id(raw[:_SHOWN])}' contains a NUL byte",
        "remove the NUL; convert UTF-16 text to UTF-8 first",
    )


def _surrogate(value: str, what: str) -> tuple[str, str]:
    return (
        f"{what} {_short(value)} contains a lone surrogate, which is not a character",
        "read the source as UTF-8, or pass the id as bytes",
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _text_lines(rows: list[Any]) -> Ids | None:
    """Pack ids that are all ASCII text without line feeds, the usual case; else return None.

    Joining the ids checks that they are text, and the line feeds between them give the lengths
    without another pass over the objects.
    """
    try:
        text = "\n".join(rows)
    except TypeError:
        return None
    if not rows or not text.isascii():
        return None
    data = np.frombuffer(text.encode("ascii") + bytes(_WORD), dtype=np.uint8)
    ends = np.flatnonzero(data[:-_WORD] == ord("\n"))
    if len(ends) != len(rows) - 1:
        return None
    starts = np.concatenate([[0], ends + 1])
    return Ids(data, starts, np.append(ends, len(text)) - starts)


def _packed(data: bytes, lengths: Iterable[int] | IntArray) -> Ids:
    sizes = lengths if isinstance(lengths, np.ndarray) else np.fromiter(lengths, dtype=np.int64)
    return Ids(np.frombuffer(data + bytes(_WORD), dtype=np.uint8), np.cumsum(sizes) - sizes, sizes)


def _checked(ids: Ids, what: str, blame: Blame) -> Ids:
    """Refuse empty ids and ids with a NUL, at which other tools truncate them."""
    if not ids.lengths.all():
        row = int(np.argmin(ids.lengths))
        raise blame(row, f"the {what} is empty", _LEAVE)
    if not ids.data[:-_WORD].all():
        place = int(np.argmin(ids.data[:-_WORD]))
        row = int(np.searchsorted(ids.starts, place, side="right")) - 1
        raise blame(row, *_nul(ids[row], what))
    return ids
