"""Bytes of a file or of standard input, line by line, whatever they are packed in."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from rankgauge.errors import FormatError, InputError
from rankgauge.formats.naming import PACKINGS, BrokenPackError, Packing

__all__ = [
    "AROUND",
    "Source",
    "Text",
    "first_bytes",
    "gathered",
    "mistaken_for",
    "numbered_lines",
    "opened",
    "opened_bytes",
    "read_into",
    "refuse",
    "shorten",
    "source_name",
    "start_of",
]

Source: TypeAlias = str | os.PathLike[str]

AROUND = 32  # spare bytes around a text, so that whole words can be taken anywhere in it
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16 = ("UTF-16 text", "save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE")
_ZIP = ("a zip archive", "unpack it, and name a file in it")
_FRAME = "read it with pandas or polars, and pass the data frame"
# How files start that are no text, what they are, and what to do about it.
_STRANGE = (
    (b"\xff\xfe", *_UTF16),
    (b"\xfe\xff", *_UTF16),
    (b"PK\x03\x04", *_ZIP),
    (b"PK\x05\x06", "an empty zip archive", "write it again"),
    (b"PAR1", "a Parquet file", _FRAME),
    (b"ARROW1\0\0", "a file of Arrow", _FRAME),
    (b"\xff\xff\xff\xff", "a stream of Arrow", _FRAME),
)
_LOOK = 16
_PACKED, _LEAST = io.DEFAULT_BUFFER_SIZE, 1 << 16
# What reading raises, of files and of what is packed.
_FAULTS = (BrokenPackError, OSError)
_SHOWN = 80


def source_name(source: Source) -> str:
    """The name of a source for messages."""
    return "<stdin>" if source == "-" else os.fspath(source)


def mistaken_for(start: bytes) -> str:
    """What a file with these first bytes would be taken for; empty for plain text."""
    packing = _packing(start)
    if packing is not None:
        return f"{packing.name} data"
    if start.startswith(_UTF8_BOM):
        return "a byte order mark"
    return next((what for magic, what, _ in _STRANGE if start.startswith(magic)), "")


def _packing(start: bytes) -> Packing | None:
    return next((packing for packing in PACKINGS if start.startswith(packing.starts)), None)


@contextmanager
def opened(source: Source) -> Iterator[BinaryIO]:
    """Open a file, or standard input for ``-``; what is packed is known by its first bytes.

    Raises:
        InputError: If there is no such file, or it cannot be read.
        FormatError: If it is no text: UTF-16, a Parquet file, ...
        MissingExtra: If it is packed, and the library that unpacks it is not installed.
    """
    with opened_bytes(source) as stream:
        refuse(start_of(stream), source_name(source))
        yield stream


@contextmanager
def opened_bytes(source: Source) -> Iterator[BinaryIO]:
    """Open a file as :func:`opened`, text or not."""
    name = source_name(source)
    raw = _standard_input() if source == "-" else _open(source)
    try:
        buffered = (
            raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast("Any", raw))
        )
        packing = _packing(buffered.peek(_LOOK)[:_LOOK])
        if packing is None:
            yield buffered
        else:
            from rankgauge.formats.packing import unpacking

            yield unpacking(buffered, packing, name)
        if source == "-":
            _leave(buffered, raw)
    finally:
        if source != "-":
            raw.close()


def start_of(stream: BinaryIO) -> bytes:
    """The first few bytes, which are not consumed; none where they cannot be read."""
    try:
        return cast("io.BufferedReader", stream).peek(_LOOK)[:_LOOK]
    except _FAULTS:
        return b""  # who reads it says so


def refuse(start: bytes, name: str) -> None:
    """Refuse what starts as no text does.

    Raises:
        FormatError: Naming what it is, and what to do about it.
    """
    for magic, what, fix in _STRANGE:
        if start.startswith(magic):
            raise FormatError(f"this is {what}, wanted plain text", path=name, fix=fix)


def _leave(buffered: io.BufferedReader, raw: BinaryIO) -> None:
    # Closing our wrapper would close standard input.
    if buffered is not raw:
        buffered.detach()


def _standard_input() -> BinaryIO:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise InputError("there is no standard input", where="<stdin>", fix="give a path")
    return cast("BinaryIO", stream)


def _open(source: Source) -> BinaryIO:
    name = source_name(source)
    try:
        return open(source, "rb")  # noqa: PTH123 - a path may be text
    except (OSError, ValueError) as error:
        if "\n" in name:
            raise InputError(
                f"this text of {len(name.splitlines())} lines is no path",
                fix="write it into a file, or pass the data as a mapping",
            ) from None
        # Windows has another error for it.
        if isinstance(error, OSError) and os.path.isdir(source):  # noqa: PTH112 - a path may be text
            raise InputError("this is a folder", where=name, fix="name a file in it") from None
        if isinstance(error, FileNotFoundError):
            raise InputError("there is no such file", where=name, fix="check the path") from None
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot be read: {reason}",
            where=ascii(name)[1:-1],
            fix="check the path and its rights",
        ) from None


def numbered_lines(stream: Iterable[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Each line with its number, from 1; without a byte order mark.

    A line ends with LF, CRLF or CR.

    Raises:
        FormatError: If compressed data is broken or ends early: with the last line that was read.
        InputError: If reading fails.
    """
    number, line = 0, b""
    try:
        for raw in stream:
            for line in raw.splitlines(keepends=True) if b"\r" in raw[:-2] else (raw,):
                number += 1
                if number == 1 and line.startswith(_UTF8_BOM):
                    line = line[len(_UTF8_BOM) :]  # noqa: PLW2901 - the same line
                yield number, line
    except _FAULTS as error:
        raise _fault(error, name, number, line) from None


def first_bytes(stream: io.BufferedReader[Any], name: str) -> bytes:
    """How the text begins, without a byte order mark and blanks; nothing is consumed.

    Raises:
        FormatError: If compressed data is broken.
        InputError: If reading fails.
    """
    try:
        return stream.peek(_LOOK).removeprefix(_UTF8_BOM).lstrip()
    except _FAULTS as error:
        raise _fault(error, name) from None


@dataclass(frozen=True, eq=False)
class Text:
    """A whole text in memory.

    Attributes:
        data: Its bytes, with `AROUND` spare ones before and behind.
        size: How many there are.
        fault: What reading it raised, before its end was reached.
    """

    data: npt.NDArray[np.uint8]
    size: int
    fault: Exception | None = None

    def lines(self) -> Iterator[bytes]:
        """Its lines, and then the fault that met the one who read it."""
        whole = self.data[AROUND : AROUND + self.size].tobytes()
        if self.fault is not None:
            whole = whole[: whole.rfind(b"\n") + 1]
        yield from io.BytesIO(whole)
        if self.fault is not None:
            raise self.fault


def gathered(stream: BinaryIO, start: bytes) -> Text:
    """The rest of a stream, behind what was read of it."""
    data = np.zeros(_room(stream) + len(start) + 2 * AROUND, dtype=np.uint8)
    data[AROUND : AROUND + len(start)] = np.frombuffer(start, dtype=np.uint8)
    size = len(start)
    fault: Exception | None = None
    try:
        while True:
            if size + 2 * AROUND + _PACKED > len(data):
                larger = np.zeros(len(data) + max(len(data) // 2, _LEAST), dtype=np.uint8)
                larger[: len(data)] = data
                data = larger
            read = _read_some(stream, data[AROUND + size : len(data) - AROUND])
            if not read:
                break
            size += read
    except _FAULTS as error:
        fault = error
    return Text(data, size, fault)


def read_into(stream: BinaryIO, room: npt.NDArray[np.uint8]) -> int | None:
    """Fill this room, how far; short only at the end. None if reading fails before it."""
    size = 0
    try:
        while size < len(room):
            read = cast("io.BufferedIOBase", stream).readinto(room[size:].data)
            if not read:
                break
            size += read
    except _FAULTS:
        return None
    return size


def _read_some(stream: BinaryIO, room: npt.NDArray[np.uint8]) -> int:
    """Read some bytes into this room, how many; 0 at the end."""
    if isinstance(stream, io.BufferedReader):
        return stream.readinto(room.data)
    # As little at a time as reading by lines takes: what is read before a fault must be the same.
    part = getattr(stream, "read1", stream.read)(_PACKED)
    room[: len(part)] = np.frombuffer(part, dtype=np.uint8)
    return len(part)


def _room(stream: BinaryIO) -> int:
    """Bytes the stream may have; a guess."""
    try:
        return os.fstat(stream.fileno()).st_size + _PACKED
    except (AttributeError, OSError, ValueError):
        return _LEAST


def _fault(error: Exception, name: str, number: int = 0, line: bytes = b"") -> InputError:
    """The error for one of `_FAULTS`, met behind this line."""
    if not isinstance(error, BrokenPackError):
        reason = getattr(error, "strerror", None) or error
        return InputError(f"cannot be read on from line {number + 1}: {reason}", where=name)
    return FormatError(
        f"the {error.what} is broken or cut off {'behind this line' if number else 'at once'}",
        path=name,
        line=number,
        text=shorten(line),
        fix=f"fetch or write the file again ({error.check} checks it)",
    )


def shorten(line: bytes) -> str:
    """A line for a message."""
    start = line[: 4 * _SHOWN].rstrip(b"\r\n").decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in start)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
