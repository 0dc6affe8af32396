"""A folder or a zip archive with the parts of a collection, looked at alike.

Members of an archive are read where they are; nothing is ever unpacked to disk.
"""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol, cast

from rankgauge.errors import FormatError, InputError
from rankgauge.formats.texts import TextSource

__all__ = ["ArchivePlace", "FolderPlace", "Place"]

_GZIP = b"\x1f\x8b"
# Text packs ten times at most; what claims far more is made to fill a memory.
_RATIO = 200
_HARMLESS = 64 << 20
_PARTS = ("corpus.", "collection.", "docs.", "documents.", "queries.", "questions.", "topics.")


class Place(Protocol):
    """Where files lie, by names relative to it with ``/`` between folders."""

    @property
    def name(self) -> str:
        """Its name for messages."""
        ...

    @property
    def title(self) -> str:
        """What a collection from here is called."""
        ...

    @cached_property
    def files(self) -> frozenset[str]:
        """The names of all files at hand, down to one folder below."""
        ...

    def source(self, name: str) -> TextSource:
        """One of the files."""
        ...


@dataclass(frozen=True)
class FolderPlace:
    """A folder."""

    path: Path

    @property
    def name(self) -> str:
        """Its path."""
        return os.fspath(self.path)

    @property
    def title(self) -> str:
        """The name of the folder."""
        return self.path.resolve().name

    @cached_property
    def files(self) -> frozenset[str]:
        """Files in the folder, and in those of its folders that hold judgments."""
        try:
            inside = [path for path in self.path.iterdir() if path.is_file()]
            judged = self.path / "qrels"
            inside += [p for p in judged.iterdir() if p.is_file()] if judged.is_dir() else []
        except OSError as error:
            raise InputError(
                f"the folder cannot be read: {error.strerror or error}", where=self.name,
                fix="check its rights",
            ) from None  # fmt: skip
        return frozenset(path.relative_to(self.path).as_posix() for path in inside)

    def source(self, name: str) -> TextSource:
        """One of the files."""
        return TextSource.of(self.path / name)


@dataclass(frozen=True)
class ArchivePlace:
    """A zip archive, seen from the folder in it that holds the parts."""

    path: Path

    @property
    def name(self) -> str:
        """Its path."""
        return os.fspath(self.path)

    @property
    def title(self) -> str:
        """The name of the archive, without its ending."""
        return self.path.stem

    @cached_property
    def files(self) -> frozenset[str]:
        """Names of members, without the folder that all of them are in."""
        return frozenset(name.removeprefix(self._root) for name in self._members)

    @cached_property
    def _members(self) -> dict[str, zipfile.ZipInfo]:
        try:
            with zipfile.ZipFile(self.path) as archive:
                return {info.filename: info for info in archive.infolist() if not info.is_dir()}
        except (zipfile.BadZipFile, OSError) as error:
            raise InputError(
                f"the archive cannot be read: {error}", where=self.name,
                fix="fetch it again (unzip -t FILE checks it)",
            ) from None  # fmt: skip

    @cached_property
    def _root(self) -> str:
        """The folder of the highest files that look like parts.

        Raises:
            InputError: If several folders hold such files: nobody knows which is meant.
        """
        known = [
            PurePosixPath(name)
            for name in self._members
            if PurePosixPath(name).name.startswith(_PARTS) and not name.startswith("__MACOSX")
        ]
        if not known:
            return ""
        highest = min(len(path.parts) for path in known)
        folder, *others = sorted(
            {path.parent.as_posix() for path in known if len(path.parts) == highest}
        )
        if others:
            raise InputError(
                f"parts of a collection lie in {len(others) + 1} folders of the archive: "
                f"{', '.join(map(repr, [folder, *others][:5]))}",
                where=self.name, fix="unpack it, and name the folder that is meant",
            )  # fmt: skip
        return "" if folder == "." else f"{folder}/"

    def source(self, name: str) -> TextSource:
        """One of the members.

        Raises:
            InputError: If it is locked, or claims to be far longer than text can be.
        """
        info = self._members[self._root + name]
        shown = f"{self.name}!{info.filename}"
        if info.flag_bits & 1:
            raise InputError(
                "this part of the archive is locked with a password", where=shown,
                fix="unpack it, and name the folder",
            )  # fmt: skip
        if info.file_size > max(_HARMLESS, _RATIO * info.compress_size):
            raise InputError(
                f"{info.compress_size} bytes claim to be {info.file_size} unpacked: no text packs "
                "so well",
                where=shown,
                fix="if you trust it, unpack it, and name the folder",
            )
        opening = partial(_opened_member, self.name, info.filename)
        return TextSource(shown, opening, info.file_size, self.name)


@contextmanager
def _opened_member(path: str, member: str) -> Iterator[BinaryIO]:
    shown = f"{path}!{member}"
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            if stream.peek(2).startswith(_GZIP):  # type: ignore[attr-defined] # it is a ZipExtFile
                yield cast("BinaryIO", gzip.GzipFile(fileobj=stream))
            else:
                yield cast("BinaryIO", stream)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, KeyError) as error:
        raise FormatError(
            f"this part of the archive cannot be read: {error}", path=shown,
            fix="fetch it again (unzip -t FILE checks it)",
        ) from None  # fmt: skip
