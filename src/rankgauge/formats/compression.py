"""Read and write compressed streams: gzip, bzip2, xz, zstd, and lz4.

Output is counted while reading, so that a small file cannot exhaust memory. Libraries are imported
when needed: even those in the standard library are missing from some Python builds.
"""

from __future__ import annotations

import io
import re
import sys
import zlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, BinaryIO, cast

from rankgauge.errors import FormatError, MissingExtra
from rankgauge.formats.registry import BrokenPackError, Packing

# Text compresses about tenfold; much higher ratios indicate a decompression bomb.
_RATIO = 200
_HARMLESS = 64 << 20
# Limit of working memory for decompression, in bytes; xz -9 needs half of it.
_MEMORY = 128 << 20
_WINDOW = 27  # the same as a power of 2
_TAKEN = io.DEFAULT_BUFFER_SIZE
# zstd can expand four bytes to 128 kB; this step limits output for a library without another limit.
_SIP = 1 << 10
# The usual default levels; higher levels are slow and save little.
_LEVELS = {"gzip": 6, "bzip2": 9, "xz": 6, "zstd": 3, "lz4": 0}

_Read = Callable[[int], bytes]


class Unpacked(io.BufferedReader):
    """The decompressed content of a stream; its type shows that it is not a plain file."""


class CountedOutput(io.RawIOBase):
    """Raw stream that counts its output and stops if it is far larger than the input."""

    def __init__(self, parts: _Read, taken: Callable[[], int], name: str, program: str) -> None:
        self._parts, self._taken = parts, taken
        self._name, self._program = name, program
        self._given = 0
        self._fault: Exception | None = None

    def readable(self) -> bool:
        """Return whether it can be read."""
        return True

    def readinto(self, room: Any) -> int:
        """Fill a buffer, and return the number of bytes."""
        # After an error, another read would report the end of the file as if nothing were wrong.
        if self._fault is not None:
            raise self._fault
        try:
            part = self._parts(len(room))
            self._given += len(part)
            if self._given > _HARMLESS and too_many(self._taken(), self._given):
                raise exploded(self._name, (self._taken(), self._given), self._program)
        except (BrokenPackError, FormatError) as error:
            self._fault = error
            raise
        room[: len(part)] = part
        return len(part)


def exploded(name: str, sizes: tuple[int, int], program: str, *, claimed: bool = False) -> FormatError:
    """Return the error for data that expands too much."""
    verb = "claim to be" if claimed else "unpack to more than"
    return FormatError(
        f"{sizes[0]} bytes {verb} {sizes[1]}{' unpacked' * claimed}: text does not compress that much",
        path=name,
        fix=f"if you trust it, unpack it ({program}), and name the result",
    )


def too_many(packed: int, plain: int) -> bool:
    """Return whether the output is too large for text compressed to this size."""
    return plain > max(_HARMLESS, _RATIO * packed)


def unpacking(stream: BinaryIO, packing: Packing, name: str, *, taken: Callable[[], int] | None = None) -> BinaryIO:
    """Return a stream of the decompressed data: all members or frames, one after another.

    Reading it raises :class:`BrokenPackError` if the data is broken or truncated, and
    :class:`FormatError` if the output is far too large.
    """
    count = 0

    def read(wanted: int = -1) -> bytes:
        nonlocal count
        part = stream.read(wanted)
        count += len(part)
        return part

    parts = _gzip_parts(read) if packing.name == "gzip" else _Members(read, packing, name).part
    return Unpacked(CountedOutput(parts, taken or (lambda: count), name, f"{packing.program} -d FILE"))


def _gzip_parts(read: _Read) -> _Read:
    from gzip import BadGzipFile, GzipFile

    stream = GzipFile(fileobj=cast("BinaryIO", SimpleNamespace(read=read)), mode="rb")

    def part(size: int) -> bytes:
        try:
            return stream.read1(size)
        except (BadGzipFile, EOFError, zlib.error):
            raise BrokenPackError("gzip data", "gzip -t FILE") from None

    return part


class _Members:
    """Decompressor of consecutive members or frames."""

    def __init__(self, read: _Read, packing: Packing, name: str) -> None:
        self._read, self._packing, self._name = read, packing, name
        self._new, self._faults = _decompressors(packing, name)
        self._one = self._new()

    def part(self, size: int) -> bytes:
        """Return up to `size` bytes; none at the end."""
        while True:
            data = b""
            if self._one.eof:
                data = self._rest(self._one.unused_data or b"")
                if not data:
                    return b""
                self._one = self._new()
            elif self._one.needs_input:
                data = self._read(_TAKEN)
                if not data:
                    raise self._broken()
            try:
                part = self._one.decompress(data, size)
            except self._faults as error:
                if re.search("memory|window", str(error), re.IGNORECASE):
                    raise FormatError(
                        f"unpacking needs more than {_MEMORY >> 20} MiB of memory",
                        path=self._name,
                        fix=f"unpack it ({self._packing.program} -d FILE), and name the result",
                    ) from None
                raise self._broken() from None
            if part:
                return part

    def _rest(self, left: bytes) -> bytes:
        """Return the data after a member; xz allows padding with zeros."""
        filled = self._packing.name == "xz"
        while not left or (filled and not left.strip(b"\0")):
            left = self._read(_TAKEN)
            if not left:
                return b""
        return left.lstrip(b"\0") if filled else left

    def _broken(self) -> BrokenPackError:
        return BrokenPackError(f"{self._packing.name} data", f"{self._packing.program} -t FILE")


def _decompressors(packing: Packing, name: str) -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """Return a factory of decompressors, and the exceptions they raise."""
    match packing.name:
        case "bzip2":
            bz2 = _library("bz2", packing, name)
            return bz2.BZ2Decompressor, (OSError, ValueError, EOFError)
        case "xz":
            lzma = _library("lzma", packing, name)
            return lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _MEMORY), (lzma.LZMAError, EOFError, MemoryError)
        case "zstd" if sys.version_info >= (3, 14):
            zstd = _library("compression.zstd", packing, name)
            options = {zstd.DecompressionParameter.window_log_max: _WINDOW}
            return lambda: zstd.ZstdDecompressor(options=options), (zstd.ZstdError, EOFError)
        case "zstd":
            library = _library("zstandard", packing, name)
            # Shared by all frames: it is large, and frames may be small.
            decompressor = library.ZstdDecompressor(max_window_size=_MEMORY)
            return lambda: _SmallReads(decompressor.decompressobj()), (library.ZstdError,)
        case _:
            frame = _library("lz4.frame", packing, name)
            return frame.LZ4FrameDecompressor, (RuntimeError, ValueError, EOFError, MemoryError)


class _SmallReads:
    """A zstd frame, decompressed in small steps to limit the size of each output."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._packed = self._plain = b""
        self._at = 0  # end of the output returned so far

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof) and not self._left

    @property
    def needs_input(self) -> bool:
        return not self._packed and not self._left

    @property
    def _left(self) -> int:
        return len(self._plain) - self._at

    @property
    def unused_data(self) -> bytes:
        return bytes(self._frame.unused_data) + self._packed

    def decompress(self, data: bytes, max_length: int) -> bytes:
        self._packed += data
        while not self._left and self._packed and not self._frame.eof:
            sip, self._packed = self._packed[:_SIP], self._packed[_SIP:]
            self._plain, self._at = self._frame.decompress(sip), 0
        part = self._plain[self._at : self._at + max_length]
        self._at += len(part)
        return part


def _library(module: str, packing: Packing, name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        own = packing.name in {"bzip2", "xz"}
        raise MissingExtra(
            f"{packing.name} needs {module.partition('.')[0]}, which is not installed",
            where=name,
            fix=f"unpack it first: {packing.program} -d FILE" if own else "pip install 'rankgauge[packed]'",
        ) from None


def packed(raw: BinaryIO, packing: Packing, name: str) -> Any:
    """Return a stream that writes compressed data into `raw`, which stays open.

    Equal input gives equal output: headers contain no time and no name.
    """
    level = _LEVELS[packing.name]
    match packing.name:
        case "gzip":
            from gzip import GzipFile

            return GzipFile("", "wb", level, raw, mtime=0)
        case "bzip2":
            return _library("bz2", packing, name).BZ2File(raw, "wb", compresslevel=level)
        case "xz":
            return _library("lzma", packing, name).LZMAFile(raw, "wb", preset=level)
        case "zstd" if sys.version_info >= (3, 14):
            return _library("compression.zstd", packing, name).ZstdFile(raw, "wb", level=level)
        case "zstd":
            return _library("zstandard", packing, name).ZstdCompressor(level=level).stream_writer(raw, closefd=False)
        case _:
            return _library("lz4.frame", packing, name).LZ4FrameFile(raw, mode="wb", compression_level=level)
