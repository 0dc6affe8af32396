"""Read a file or standard input line by line, compressed or not."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from rankgauge.core.progress import is_shown, report
from rankgauge.core.threads import check_stopped
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.registry import PACKINGS, BrokenPackError, Packing, format_named

if TYPE_CHECKING:
    from rankgauge.formats.archives import Archive

Source: TypeAlias = str | os.PathLike[str]

AROUND = 32  # spare bytes around a text, so that 64-bit words can be read at any position
UTF8_BOM = b"\xef\xbb\xbf"
_UTF16 = ("UTF-16 text", "save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE")
_ZIPPED = (b"PK\x03\x04", b"PK\x05\x06")
_FRAME = "read the file with pandas or polars, and pass the data frame"
_WRITE = "write the pairs with their grades or scores as CSV or Parquet"
# First bytes of columnar files: Parquet, Arrow files (including Feather), and Arrow streams.
COLUMNAR = (b"PAR1\x15", b"ARROW1\0\0", b"\xff\xff\xff\xff")
_NAMED_COLUMNAR = format_named("parquet").suffixes + format_named("arrow").suffixes
# Bytes at the beginning of files that are not text, kind of file, and fix.
_STRANGE: tuple[tuple[bytes, str, str], ...] = (
    (b"\xff\xfe", *_UTF16),
    (b"\xfe\xff", *_UTF16),
    *((start, "a zip archive", "unpack it, and name a file in it") for start in _ZIPPED),
    (COLUMNAR[0], "a Parquet file", _FRAME),
    (COLUMNAR[1], "an Arrow file", _FRAME),
    (COLUMNAR[2], "an Arrow stream", _FRAME),
    (b"FEA1\0", "a Feather version 1 file", "write it again with version 2"),
    (b"SQLite format 3\0", "an SQLite database", _WRITE),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _WRITE),
    (b"\x93NUMPY", "a NumPy array", "load it, and pass arrays: Run.from_columns(...)"),
    *(
        (
            start,
            "a pickle, which can run any code when it is loaded",
            "load it yourself if you trust it, and pass its contents",
        )
        for start in (b"\x80\x02", b"\x80\x03", b"\x80\x04\x95", b"\x80\x05\x95")
    ),
    (b"\x1f\x9d", "packed with compress", "unpack it: uncompress FILE"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "unpack it, and name a file in it"),
    (b"Rar!\x1a\x07", "a RAR archive", "unpack it, and name a file in it"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file", "save the table as CSV"),
    (b"Obj\x01", "an Avro file", _WRITE),
)
# The same for bytes at a later place, in a file with a NUL before the place of tar archives.
_TAR_AT = 257
_STRANGE_LATER = (
    (8, b"DUCK", "a DuckDB database", _WRITE),
    (_TAR_AT, b"ustar", "a tar archive", "unpack it (tar -xf FILE), and name a file in it"),
)
_LOOK = 16
# Exceptions raised while reading or decompressing files.
_FAULTS = (BrokenPackError, OSError)
_PART = 1 << 18
_SHOWN = 80


def source_name(source: Any, unnamed: str = "") -> str:
    """Return the name of a source for messages; `unnamed` if it is not a file."""
    if not isinstance(source, str | os.PathLike):
        return unnamed
    return "<stdin>" if source == "-" else os.fspath(source)


def mistaken_for(start: bytes) -> str:
    """Return which kind of file these first bytes suggest; empty for plain text."""
    packing = _packing(start)
    if packing is not None:
        return f"{packing.name} data"
    if start.startswith(UTF8_BOM):
        return "a byte order mark"
    return next((what for magic, what, _ in _STRANGE if start.startswith(magic)), "")


def _packing(start: bytes) -> Packing | None:
    return next((packing for packing in PACKINGS if start.startswith(packing.starts)), None)


@contextmanager
def opened(source: Source) -> Iterator[BinaryIO]:
    """Open a file, or standard input for ``-``; compression is detected by the first bytes.

    If the file is a zip archive, its only file is opened; ``archive.zip!member`` selects one of
    several.
    """
    name = source_name(source)
    with opened_bytes(source) as stream:
        if not is_zip(start_of(stream)):
            refuse(start_of(stream), name)
            yield stream
            return
        archive = archive_of(stream, source)
        sole = archive.sole()
        if sole is None:
            raise archive.several()
        with archive.opened(sole) as member:
            refuse(start_of(member), f"{name}!{sole}")
            yield member


@contextmanager
def opened_bytes(source: Source) -> Iterator[BinaryIO]:
    """Open a file like :func:`opened`, but accept binary files and return archives as they are."""
    name = source_name(source)
    if "!" in name and not os.path.exists(source):  # noqa: PTH110 - a path may be text
        from rankgauge.formats.archives import named_member

        member = named_member(name)
        if member is not None:
            with member as stream:
                yield stream
            return
    if source == "-":
        raw = getattr(sys.stdin, "buffer", None)
        if raw is None:
            raise InputError("there is no standard input", where="<stdin>", fix="pass a path")
        _refuse_device(raw, name)
    else:
        raw = _open(source)
    try:
        buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast("Any", raw))
        try:
            packing = _packing(buffered.peek(_LOOK)[:_LOOK])
        except OSError as error:
            raise _fault(error, name) from None
        if packing is None:
            yield buffered
        else:
            from rankgauge.formats.compression import unpacking

            yield unpacking(buffered, packing, name)
        if source == "-" and buffered is not raw:
            buffered.detach()  # closing the wrapper would close standard input
    finally:
        if source != "-":
            raw.close()


def is_columnar(start: bytes, name: str) -> bool:
    """Return whether a file is columnar, by its first bytes, and by its name if it is empty."""
    named = (not start or b"\0" in start) and name.lower().endswith(_NAMED_COLUMNAR)
    return start.startswith(COLUMNAR) or named


def is_plain_file(stream: BinaryIO) -> bool:
    """Return whether a stream is a file itself, neither compressed nor a member of an archive."""
    return type(stream) is io.BufferedReader


def report_read(stream: BinaryIO) -> None:
    """Report how much of a plain file was read, if its size is known."""
    if is_shown() and is_plain_file(stream) and stream.seekable():
        report(stream.tell(), os.fstat(stream.fileno()).st_size, "read")


def is_zip(start: bytes) -> bool:
    """Return whether a file with these first bytes is a zip archive."""
    return start.startswith(_ZIPPED)


def archive_of(stream: BinaryIO, source: Source) -> Archive:
    """Open an archive; a stream without a file is read into memory."""
    from rankgauge.formats.archives import Archive

    name = source_name(source)
    if is_plain_file(stream) and os.path.isfile(source):  # noqa: PTH113
        return Archive(name, name)
    return Archive(name, content=read_bytes(stream, name))


def read_bytes(stream: BinaryIO, name: str, size: int = -1) -> bytes:
    """Read all bytes of a stream, or up to `size`."""
    try:
        return stream.read(size)
    except _FAULTS as error:
        raise _fault(error, name) from None


def start_of(stream: BinaryIO) -> bytes:
    """Return the first few hundred bytes without consuming them; empty if they cannot be read."""
    try:
        return cast("io.BufferedReader", stream).peek(2 * _TAR_AT)[: 2 * _TAR_AT]
    except _FAULTS:
        return b""  # the reader reports the error


def refuse(start: bytes, name: str) -> None:
    """Refuse a file whose first bytes are not text."""
    places = [(0, *strange) for strange in _STRANGE] + list(_STRANGE_LATER) * (b"\0" in start[:_TAR_AT])
    for at, magic, what, fix in places:
        if start.startswith(magic, at):
            raise FormatError(f"this is {what}, expected plain text", path=name, fix=fix)
    packing = _packing(start)
    if packing is not None:
        raise FormatError(
            f"this is {packing.name} data within compressed data: it is compressed twice",
            path=name,
            fix="unpack it once, and name the result",
        )


def _refuse_device(stream: BinaryIO, name: str) -> BinaryIO:
    """Reject devices, except terminals and /dev/null: many have no end, such as /dev/zero."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError, AttributeError):
        return stream  # not a file of the operating system
    device = stat.S_ISCHR(status.st_mode) and not stream.isatty()
    if stat.S_ISBLK(status.st_mode) or (device and not os.path.samestat(status, os.stat(os.devnull))):  # noqa: PTH116
        stream.close()
        raise InputError("this is a device, not a file", where=name, fix="check the path")
    return stream


def _open(source: Source) -> BinaryIO:
    name = source_name(source)
    try:
        opened_file = open(source, "rb")  # noqa: PTH123, SIM115 - a path may be text
    except (OSError, ValueError) as error:
        if "\n" in name:
            raise InputError(
                f"a text of {len(name.splitlines())} lines is not a path",
                fix="write it to a file, or pass the data as a mapping",
            ) from None
        # Windows raises a different error for folders.
        if isinstance(error, OSError) and os.path.isdir(source):  # noqa: PTH112 - a path may be text
            raise InputError("this is a folder", where=name, fix="name a file in it") from None
        if isinstance(error, FileNotFoundError):
            raise InputError("there is no such file", where=name, fix="check the path") from None
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot be read: {reason}", where=ascii(name)[1:-1], fix="check the path and its permissions"
        ) from None
    return _refuse_device(opened_file, name)


def numbered_lines(stream: Iterable[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number, from 1, without a byte order mark.

    Lines end with LF, CRLF, or CR. Parts of one line share its number; a run of blank lines has the
    number of the first.
    """
    number, line, whole = 0, b"", True
    try:
        for raw in stream:
            check_stopped()
            if raw.isspace() and raw.count(b"\n") > 1:
                line = raw
                yield number + 1, raw
                number += len(raw.splitlines())
                continue
            # Most lines have no carriage return, or only one before the line feed.
            lone = b"\r" in raw and (b"\r" in raw[:-2] or not raw.endswith((b"\r", b"\n")))
            for line in raw.splitlines(keepends=True) if lone else (raw,):
                if whole:
                    number += 1
                    if number == 1:
                        line = line.removeprefix(UTF8_BOM)  # noqa: PLW2901 - the same line
                whole = line.endswith((b"\n", b"\r"))
                yield number, line
    except _FAULTS as error:
        raise _fault(error, name, number, line) from None


def is_content(line: bytes) -> bool:
    """Return whether a line is neither blank nor a comment."""
    return bool(line.strip()) and not line.lstrip().startswith(b"#")


def line_parts(stream: BinaryIO) -> Iterator[bytes]:
    """Yield lines, long ones in parts, so that files with a single huge line fit into memory."""
    while part := stream.readline(_PART):
        # CR and LF together are one line end.
        yield part + stream.readline(1) if part.endswith(b"\r") else part


def blank_runs(stream: BinaryIO, joins: Callable[[], bool]) -> Iterator[bytes]:
    """Yield lines, joining runs of blank lines: a small compressed file may have millions."""
    for line in stream:
        if not line.isspace() or not joins():
            yield line
            continue
        ahead = cast("io.BufferedReader", stream).peek()
        blank = ahead[: len(ahead) - len(ahead.lstrip())]
        yield line + stream.read(blank.rfind(b"\n") + 1)


class KeptStream(io.BytesIO):
    """The rest of a stream in memory, which can be read again; its error, if any, is at the end."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._fault: Exception | None = None
        try:
            # Same block size as reading by lines: both must read the same bytes before an error.
            while part := cast("io.BufferedReader", stream).read1(io.DEFAULT_BUFFER_SIZE):
                self.write(part)
        except _FAULTS as error:
            self._fault = error
            self.truncate(self.getvalue().rfind(b"\n") + 1)
        self.seek(0)

    def __iter__(self) -> Iterator[bytes]:
        """Yield lines, then raise the error."""
        yield from iter(self.readline, b"")
        if self._fault is not None:
            raise self._fault

    def peek(self, size: int) -> bytes:
        """Return the next bytes without consuming them."""
        return bytes(self.getbuffer()[self.tell() :][:size])

    def readinto(self, room: Any) -> int:
        """Fill a buffer, and return the number of bytes."""
        size = super().readinto(room)
        if not size and self._fault is not None:
            raise self._fault
        return size


def read_into(stream: BinaryIO, room: npt.NDArray[np.uint8]) -> int | None:
    """Fill the buffer and return the number of bytes, fewer only at the end; None on errors."""
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


def _fault(error: Exception, name: str, number: int = 0, line: bytes = b"") -> InputError:
    """Return the error for one of `_FAULTS`, raised after this line."""
    if not isinstance(error, BrokenPackError):
        reason = getattr(error, "strerror", None) or error
        return InputError(
            f"cannot be read from line {number + 1} on: {reason}", where=name, fix="check the disk, or use another copy"
        )
    return FormatError(
        f"the {error.what} is corrupt or truncated {'after this line' if number else 'at its start'}",
        path=name,
        line=number,
        text=shorten(line),
        fix=f"download or write the file again ({error.check} checks it)",
    )


def decoded(piece: bytes, name: str, number: int) -> str:
    """Decode lines as UTF-8."""
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError as error:
        first = piece.rfind(b"\n", 0, error.start) + 1
        raise FormatError(
            f"byte {error.start - first + 1} of the line, 0x{piece[error.start]:02x}, is not UTF-8",
            path=name,
            line=number + piece.count(b"\n", 0, first),
            text=shorten(piece[first:].partition(b"\n")[0]),
            fix="save the file as UTF-8: iconv -f LATIN1 -t UTF-8 FILE",
        ) from None


def shorten(line: bytes) -> str:
    """Format a line for a message."""
    start = line[: 4 * _SHOWN].rstrip(b"\r\n").decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in start)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
