"""Bytes of a file or of standard input, line by line, whatever they are packed in."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeAlias, cast

from rankgauge.errors import FormatError, InputError

__all__ = [
    "Source",
    "first_bytes",
    "mistaken_for",
    "numbered_lines",
    "opened",
    "shorten",
    "source_name",
]

Source: TypeAlias = str | os.PathLike[str]

_GZIP = b"\x1f\x8b"
_UTF8_BOM = b"\xef\xbb\xbf"
_UNPACK = "unpack it, and name a file in it"
# How files start that are no text, what they are, and what to do about it.
_STRANGE = (
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE"),
    (b"PK\x03\x04", "a zip archive", _UNPACK),
    (b"BZh91AY&SY", "packed with bzip2", _UNPACK),
    (b"\xfd7zXZ", "packed with xz", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", _UNPACK),
    (b"PAR1\x15", "a Parquet file", "read it with pandas or polars, and pass the data frame"),
)
_LOOK = 16
# What reading raises, of files and of gzip data (gzip.BadGzipFile is an OSError).
_FAULTS = (EOFError, OSError, zlib.error)
_SHOWN = 80


def source_name(source: Source) -> str:
    """The name of a source for messages."""
    return "<stdin>" if source == "-" else os.fspath(source)


def mistaken_for(start: bytes) -> str:
    """What a file with these first bytes would be taken for; empty for plain text."""
    if start.startswith(_GZIP):
        return "gzip data"
    if start.startswith(_UTF8_BOM):
        return "a byte order mark"
    return next((what for magic, what, _ in _STRANGE if start.startswith(magic)), "")


@contextmanager
def opened(source: Source) -> Iterator[BinaryIO]:
    """Open a file, or standard input for ``-``; gzip is recognised by its first bytes.

    Raises:
        InputError: If there is no such file, or it cannot be read.
        FormatError: If it is no text: UTF-16, an archive, ...
    """
    name = source_name(source)
    raw = _standard_input() if source == "-" else _open(source)
    try:
        buffered = (
            raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast("Any", raw))
        )
        start = buffered.peek(_LOOK)[:_LOOK]
        for magic, what, fix in _STRANGE:
            if start.startswith(magic):
                raise FormatError(f"this is {what}, wanted plain text or gzip", path=name, fix=fix)
        if start.startswith(_GZIP):
            yield cast("BinaryIO", gzip.GzipFile(fileobj=buffered))
        else:
            yield buffered
        if source == "-":
            _leave(buffered, raw)
    finally:
        if source != "-":
            raw.close()


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


def _fault(error: Exception, name: str, number: int = 0, line: bytes = b"") -> InputError:
    """The error for one of `_FAULTS`, met behind this line."""
    if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
        reason = error.strerror or error
        return InputError(f"cannot be read on from line {number + 1}: {reason}", where=name)
    return FormatError(
        f"the gzip data is broken or cut off {'behind this line' if number else 'at once'}",
        path=name,
        line=number,
        text=shorten(line),
        fix="fetch or write the file again (gzip -t FILE checks it)",
    )


def shorten(line: bytes) -> str:
    """A line for a message."""
    start = line[: 4 * _SHOWN].rstrip(b"\r\n").decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in start)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
