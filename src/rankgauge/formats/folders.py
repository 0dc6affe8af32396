"""A folder or a zip archive with the parts of a collection, looked at alike.

Members of an archive are read where they are; nothing is ever unpacked to disk.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Protocol

from rankgauge.errors import InputError
from rankgauge.formats.archives import Archive
from rankgauge.formats.texts import TextSource

__all__ = ["ArchivePlace", "FolderPlace", "Place"]

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

    archive: Archive

    @classmethod
    def of(cls, path: Path) -> ArchivePlace:
        """The archive at a path."""
        return cls(Archive(os.fspath(path), os.fspath(path)))

    @property
    def name(self) -> str:
        """Its path."""
        return self.archive.name

    @property
    def title(self) -> str:
        """The name of the archive, without its ending."""
        return Path(self.archive.name).stem

    @cached_property
    def files(self) -> frozenset[str]:
        """Names of members, without the folder that all of them are in."""
        return frozenset(name.removeprefix(self._root) for name in self.archive.members)

    @cached_property
    def _root(self) -> str:
        """The folder of the highest files that look like parts.

        Raises:
            InputError: If several folders hold such files: nobody knows which is meant.
        """
        known = [
            PurePosixPath(name)
            for name in self.archive.members
            if PurePosixPath(name).name.startswith(_PARTS)
        ]
        # Of judgments alone: beside the folder that holds them.
        known = known or [
            PurePosixPath(name).parent
            for name in self.archive.members
            if PurePosixPath(name).parent.name == "qrels"
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
        member = self.member(name)
        size = self.archive.size(member)
        opening = partial(self.archive.opened, member)
        return TextSource(f"{self.name}!{member}", opening, size, self.archive.path)

    def member(self, name: str) -> str:
        """The name of one of the files, as it is in the archive."""
        return self._root + name
