"""Read members of zip archives in place, without unpacking them to disk.

The directory of an archive is not trusted: member names never become file paths, and declared sizes
are only claims.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import BinaryIO, cast

from rankgauge.errors import FormatError, InputError
from rankgauge.formats.compression import CountedOutput, Unpacked, exploded, too_many, unpacking
from rankgauge.formats.registry import PACKINGS, BrokenPackError

ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_CHECK = "unzip -t FILE"
_SHOWN = 8
_BROKEN = (
    zipfile.BadZipFile,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
)


class _File:
    """The file interface that ZipFile needs, counting the bytes that are read."""

    def __init__(self, stream: BinaryIO) -> None:
        self.seek, self.tell, self.seekable = stream.seek, stream.tell, stream.seekable
        self.taken = 0
        self._read = stream.read

    def read(self, size: int = -1) -> bytes:
        part = self._read(size)
        self.taken += len(part)
        return part


@dataclass(frozen=True)
class Archive:
    """A zip archive."""

    name: str  # name for messages
    path: str = ""  # path of the file
    content: bytes | None = None  # contents, if it is not a file

    @cached_property
    def _infos(self) -> list[zipfile.ZipInfo]:
        with self._opened() as (archive, _):
            # Skip members without a name, which some Python versions cannot query.
            named = (info for info in archive.infolist() if info.filename)
            return [info for info in named if not info.is_dir()]

    @cached_property
    def members(self) -> tuple[str, ...]:
        """Names of its files, without hidden files and those added by macOS."""
        names = dict.fromkeys(info.filename for info in self._infos)
        return tuple(
            name for name in names if not name.startswith("__MACOSX/") and not PurePosixPath(name).name.startswith(".")
        )

    def sole(self) -> str | None:
        """Return its only file, or None if it contains several."""
        if not self.members:
            raise FormatError("there is no file in this archive", path=self.name, fix="write it again")
        return self.members[0] if len(self.members) == 1 else None

    def several(self) -> FormatError:
        """Return the error for an archive in which the user must name one of several files."""
        if "[Content_Types].xml" in self.members:
            return FormatError("this is an Excel or Word file", path=self.name, fix="save the table as CSV")
        if all(name.endswith(".npy") for name in self.members):
            return FormatError(
                f"these are {len(self.members)} NumPy arrays",
                path=self.name,
                fix="load them, and pass three columns: Run.from_columns(...)",
            )
        shown = ", ".join(repr(name) for name in self.members[:_SHOWN])
        more = f" and {len(self.members) - _SHOWN} more" if self.members[_SHOWN:] else ""
        return FormatError(
            f"there are {len(self.members)} files in this archive: {shown}{more}",
            path=self.name,
            fix=f"name one of them: {self.name}!{self.members[0]}",
        )

    @contextmanager
    def opened(self, member: str) -> Iterator[BinaryIO]:
        """Open a member for reading; decompress it if it is compressed itself."""
        info, shown = self.info(member), f"{self.name}!{member}"
        with self._opened() as (archive, file):
            try:
                stream = cast("zipfile.ZipExtFile", archive.open(info))
            except _BROKEN as error:
                raise FormatError(
                    f"this archive member cannot be read: {error}",
                    path=shown,
                    fix=f"download it again ({_CHECK} checks it)",
                ) from None
            before = file.taken
            with stream:
                yield _plain(stream, lambda: file.taken - before, shown)

    @contextmanager
    def _opened(self) -> Iterator[tuple[zipfile.ZipFile, _File]]:
        with ExitStack() as stack:
            try:
                raw = open(self.path, "rb") if self.content is None else io.BytesIO(self.content)  # noqa: PTH123, SIM115
                file = _File(stack.enter_context(cast("BinaryIO", raw)))
                archive = stack.enter_context(zipfile.ZipFile(cast("BinaryIO", file)))
            except _BROKEN as error:
                raise FormatError(
                    f"the archive cannot be read: {error}",
                    path=self.name,
                    fix=f"download it again ({_CHECK} checks it)",
                ) from None
            yield archive, file

    def info(self, member: str) -> zipfile.ZipInfo:
        """Return the declaration of a member, such as its size; refuse one that cannot be read."""
        named = [info for info in self._infos if info.filename == member]
        shown = f"{self.name}!{member}"
        if not named:
            near = f"it has {', '.join(repr(name) for name in self.members[:_SHOWN])}"
            raise InputError("there is no such file in the archive", where=shown, fix=near)
        info = named[0]
        if len(named) > 1:
            raise FormatError(
                f"{len(named)} files of this name are in the archive",
                path=shown,
                fix="write it again, each file once",
            )
        if info.flag_bits & 1:
            raise InputError(
                "this archive member is encrypted", where=shown, fix="unpack it (unzip FILE), and name the result"
            )
        # Stored, deflate, and bzip2 need little memory, whatever the archive claims.
        if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2}:
            raise FormatError(
                f"this archive member is compressed by method {info.compress_type}, which is not supported",
                path=shown,
                fix="unpack it (unzip FILE), and name the result",
            )
        if too_many(info.compress_size, info.file_size):
            raise exploded(shown, (info.compress_size, info.file_size), "unzip FILE", claimed=True)
        return info


def named_member(name: str) -> AbstractContextManager[BinaryIO] | None:
    """Open the archive member that a name such as ``archive.zip!member`` refers to, if any."""
    for at, sign in enumerate(name):
        path, member = name[:at], name[at + 1 :]
        if sign == "!" and member and os.path.isfile(path):  # noqa: PTH113 - pathlib is slow to load
            return Archive(path, path).opened(member)
    return None


def _plain(stream: zipfile.ZipExtFile, taken: Callable[[], int], shown: str) -> BinaryIO:
    def parts(size: int) -> bytes:
        try:
            return stream.read1(size)
        except _BROKEN:
            raise BrokenPackError("zip data", _CHECK) from None

    plain = Unpacked(CountedOutput(parts, taken, shown, "unzip FILE"))
    try:
        start = plain.peek(16)
    except BrokenPackError as error:
        raise FormatError(
            f"the {error.what} is corrupt or truncated", path=shown, fix=f"download it again ({_CHECK} checks it)"
        ) from None
    if start.startswith(ZIP):
        raise FormatError(
            "this is an archive within an archive",
            path=shown,
            fix="unpack the outer one (unzip FILE), and name the result",
        )
    packing = next((method for method in PACKINGS if start.startswith(method.starts)), None)
    return plain if packing is None else unpacking(plain, packing, shown, taken=taken)
