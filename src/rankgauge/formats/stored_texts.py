"""Texts that stay where they are: read again each time, and found by an index of hashes."""

from __future__ import annotations

import hashlib
import threading
from abc import abstractmethod
from array import array
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from typing import Any, TypeVar

import numpy as np

from rankgauge.errors import InputError
from rankgauge.formats.texts import (
    Faults,
    Reader,
    TextRow,
    each_once,
    no_text,
    repeated,
)

__all__ = ["HashIndex", "StoredTexts", "Streamed", "kept"]

T_co = TypeVar("T_co", covariant=True)

# Bytes of texts: what has less is held in memory.
_SMALL = 32 << 20


class Streamed(Mapping[str, T_co]):
    """A mapping that holds one value at a time when it is gone through."""

    @abstractmethod
    def stream(self) -> Iterator[tuple[str, T_co]]:
        """Every id with its value, in order."""

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.stream())

    def values(self) -> ValuesView[T_co]:
        """The values, one at a time."""
        return _Values(self)

    def items(self) -> ItemsView[str, T_co]:
        """Ids and values, one pair at a time."""
        return _Items(self)


class _Values(ValuesView[Any]):
    _mapping: Streamed[Any]

    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self._mapping.stream())


class _Items(ItemsView[str, Any]):
    _mapping: Streamed[Any]

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self._mapping.stream()


class HashIndex:
    """Where each id stands: 16 bytes for each, whatever its length.

    A hash of 64 bits proposes places; whoever asks looks whether the id is there.

    Args:
        ids: The ids, in order.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        hashes = np.frombuffer(array("Q", map(_hash, ids)), dtype=np.uint64)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def __len__(self) -> int:
        return len(self._order)

    def places(self, key: str) -> list[int]:
        """Where it may stand, from 0."""
        wanted = np.uint64(_hash(key))
        low = int(np.searchsorted(self._hashes, wanted, side="left"))
        high = int(np.searchsorted(self._hashes, wanted, side="right"))
        return [int(place) for place in self._order[low:high]]

    def suspects(self) -> frozenset[int]:
        """Places whose hash stands at another place, too: the same id, or by chance."""
        equal = np.flatnonzero(self._hashes[1:] == self._hashes[:-1])
        return frozenset(self._order[np.union1d(equal, equal + 1)].tolist())


def _hash(key: str) -> int:
    raw = key.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")


class StoredTexts(Streamed[TextRow]):
    """The texts of a file, which stay there. Made with one pass through it, which checks them all.

    In memory are 24 bytes for each text. A text is found by its place in a plain file. In a packed
    file it is found by reading on from the last one that was looked for, or from the beginning.

    Args:
        reader: Reads a file, a member of an archive, or whatever holds rows.
        faults: Where given, what does not fit is counted there and passed over.

    Raises:
        FormatError: With the first line that does not fit, or for an id that stands twice.
    """

    def __init__(self, reader: Reader, faults: Faults | None = None) -> None:
        self._reader, self._skips = reader, faults is not None
        self._stamp = reader.stamp()
        offsets, numbers = array("q"), array("q")

        def ids() -> Iterator[str]:
            for placed in self._reader.rows(faults):
                offsets.append(placed.offset)
                numbers.append(placed.number)
                yield placed.row.id

        self._index = HashIndex(ids())
        self._offsets = offsets if self._reader.seekable else array("q")
        self._dropped = self._repeats(numbers, faults)
        if not len(self._index) and faults is None:
            raise no_text(reader.name)
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._cursor: Iterator[TextRow] = iter(())
        self._next = len(self._index)

    def _repeats(self, numbers: array[int], faults: Faults | None) -> frozenset[int]:
        """The places of texts whose id stood before."""
        suspects = self._index.suspects()
        if not suspects:
            return frozenset()
        first: dict[str, int] = {}
        dropped = set()
        for place, row in enumerate(self._rows()):
            if place not in suspects:
                continue
            if row.id in first:
                error = repeated(
                    row.id, (numbers[first[row.id]], numbers[place]), self._reader.name
                )
                if faults is None:
                    raise error
                faults.add(error)
                dropped.add(place)
            first.setdefault(row.id, place)
        return frozenset(dropped)

    def _rows(self) -> Iterator[TextRow]:
        if self._reader.stamp() != self._stamp:
            raise InputError(
                "the file is not the one that was read at first", where=self._reader.name,
                fix="load the collection again, and leave its files alone meanwhile",
            )  # fmt: skip
        passed = Faults() if self._skips else None
        return (placed.row for placed in self._reader.rows(passed))

    def stream(self) -> Iterator[tuple[str, TextRow]]:
        """Every text, in the order of the file."""
        for place, row in enumerate(self._rows()):
            if place not in self._dropped:
                yield row.id, row

    def __len__(self) -> int:
        return len(self._index) - len(self._dropped)

    def __getitem__(self, key: str) -> TextRow:
        if isinstance(key, str):
            for place in self._index.places(key):
                row = self._at(place)
                if row is not None and row.id == key:
                    return row
        raise KeyError(key)

    def _at(self, place: int) -> TextRow | None:
        if self._offsets:
            return self._reader.at(self._offsets[place])
        with self._lock:
            if place < self._next:
                self._cursor, self._next = self._rows(), 0
            row = None
            while self._next <= place:
                row = next(self._cursor, None)
                self._next += 1
            return row

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in {"_lock", "_cursor", "_next"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()


def kept(reader: Reader, faults: Faults | None = None) -> Mapping[str, TextRow]:
    """Texts: in memory if they are short or can be read only once, else where they are.

    Raises:
        FormatError: With the first line that does not fit, or for an id that stands twice.
    """
    if reader.size is None or reader.size <= _SMALL:
        return {row.id: row for row in each_once(reader, faults)}
    return StoredTexts(reader, faults)
