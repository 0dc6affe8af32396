"""Folders and zip archives with the parts of a collection, and the judgments in them.

Members of an archive are read where they are; nothing is ever unpacked to disk.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Protocol

from rankgauge.errors import InputError
from rankgauge.formats.archives import Archive
from rankgauge.formats.columns import RUN, Layout
from rankgauge.formats.lines import Source
from rankgauge.formats.pages import PageReader, pages_of
from rankgauge.formats.questions import Grades, may_be_questions, read_questions
from rankgauge.formats.registry import PACKINGS
from rankgauge.formats.texts import Faults, TextReader, TextRow, TextSource, kept

__all__ = [
    "ArchivePlace", "FolderPlace", "Place", "documents_in", "judgments_in_folder",
    "judgments_named", "pairs_in_archive", "queries_in", "splits_of",
]  # fmt: skip

_PACKED = ("", *(packing.suffix for packing in PACKINGS))
_JUDGED = tuple(
    form + pack
    for form in (".tsv", ".txt", ".trec", ".qrels", ".csv", ".jsonl", ".parquet")
    for pack in _PACKED
)
_FLAT = tuple(f"qrels{end}" for end in (*_JUDGED, ""))
_ENDINGS = (
    *(form + pack for form in (".jsonl", ".tsv", ".csv") for pack in _PACKED), ".ndjson",
)  # fmt: skip
_MARKED = tuple(form + pack for form in (".sgml", ".xml", ".trec") for pack in _PACKED)
_PLAIN = tuple(f".txt{pack}" for pack in _PACKED)
_DOCUMENTS = (
    *(f"{stem}{end}" for stem in ("corpus", "documents", "docs", "collection") for end in _ENDINGS),
    *(f"{stem}{end}" for stem in ("corpus", "documents", "docs") for end in _MARKED),
)
_QUERIES = (
    *(f"{stem}{end}" for stem in ("queries", "questions", "topics") for end in _ENDINGS),
    *(f"topics{end}" for end in (*_MARKED, *_PLAIN)),
)
_FOLDER = "qrels"
_SPLIT = "test"
# What shows that an archive holds a collection.
_TEXTS = ("corpus.", "queries.", "documents.")
_PARTS = ("corpus.", "collection.", "docs.", "documents.", "queries.", "questions.", "topics.")


class Place(Protocol):
    """A set of files, by names relative to it with ``/`` between folders."""

    @property
    def name(self) -> str:
        """Its name for messages."""
        ...

    @property
    def title(self) -> str:
        """The name of a collection from here."""
        ...

    @cached_property
    def files(self) -> frozenset[str]:
        """The names of all files, down to one folder below."""
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
        """The folder of the highest files that look like parts."""
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
        """One of the members."""
        member = self._root + name
        size = self.archive.size(member)
        opening = partial(self.archive.opened, member)
        return TextSource(f"{self.name}!{member}", opening, size, self.archive.path)


def splits_of(place: Place) -> dict[str, str]:
    """The judgments in ``qrels/``: name of the split to name of the file."""
    found = {}
    for name in sorted(place.files):
        path = PurePosixPath(name)
        end = next((end for end in _JUDGED if path.name.endswith(end)), None)
        if path.parent.as_posix() == _FOLDER and end is not None:
            found[path.name.removesuffix(end)] = name
    return found


def judgments_named(place: Place, split: str | None) -> str | None:
    """The file of judgments in a place: of this split, of ``test``, or the only one."""
    splits = splits_of(place)
    if split is not None and split not in splits:
        raise InputError(
            f"there are no judgments of a split {split!r}", where=place.name,
            fix=f"there are: {', '.join(splits)}" if splits else f"give qrels/{split}.tsv",
        )  # fmt: skip
    if split is not None or _SPLIT in splits:
        return splits[split or _SPLIT]
    if len(splits) > 1:
        raise InputError(
            f"there are judgments of {len(splits)} splits, and none is called test",
            where=place.name, fix=f"choose one, as split=...: {', '.join(splits)}",
        )  # fmt: skip
    if splits:
        return next(iter(splits.values()))
    return next((name for name in _FLAT if name in place.files), None)


def queries_in(place: Place) -> str | None:
    """The name of the file of queries, if there is one."""
    return next((name for name in _QUERIES if name in place.files), None)


def documents_in(
    place: Place, faults: Faults | None = None
) -> tuple[Mapping[str, TextRow], tuple[str, ...]]:
    """The documents of a file or, of a folder, in files of text; and notes on them."""
    found = next((name for name in _DOCUMENTS if name in place.files), None)
    if found is not None:
        return kept(TextReader(place.source(found)), faults), ()
    if not isinstance(place, FolderPlace):
        return {}, ()
    pages, others = pages_of(place.path, {*_QUERIES, *_FLAT})
    notes: tuple[str, ...] = ()
    if pages and others:
        kinds = ", ".join(sorted({PurePosixPath(name).suffix or name for name in others})[:5])
        notes = (f"{len(others)} files that are no text were passed over: {kinds}",)
    return (kept(PageReader(place.path, pages), faults) if pages else {}), notes


def judgments_in_folder(path: Source, split: str | None = None) -> tuple[TextSource | Grades, str]:
    """The judgments in a folder of BEIR, in its folder ``qrels``, or beside its questions.

    Returns:
        Their file, or grades that were read with the questions; and a note on where they are from.
    """
    folder = Path(os.fsdecode(path))
    place = FolderPlace(folder.parent if folder.resolve().name == _FOLDER else folder)
    found = _judgments(place, split)
    if found is None:
        raise InputError(
            "this is a folder, and there are no judgments in it: neither qrels/test.tsv nor "
            "qrels.txt, nor questions.csv with the columns question and relevant",
            where=place.name, fix="name a file in it",
        )  # fmt: skip
    return found


def _judgments(place: Place, split: str | None) -> tuple[TextSource | Grades, str] | None:
    chosen = judgments_named(place, split)
    if chosen is not None:
        return place.source(chosen), _note(place, chosen)
    asked = queries_in(place)
    if asked is None or not may_be_questions(place.source(asked)):
        return None
    _, grades = read_questions(place.source(asked), documents_in(place)[0])
    return grades or {}, f"{place.name}: judgments from {asked}"


def pairs_in_archive(
    archive: Archive, layout: Layout, split: str | None = None
) -> tuple[TextSource | Grades, str]:
    """The only file of an archive, or the judgments of the collection in it; and a note on it."""
    sole = archive.sole()
    if sole is not None and split is None:
        return TextSource(f"{archive.name}!{sole}", partial(archive.opened, sole)), ""
    place = ArchivePlace(archive)
    if layout is RUN:
        known = [name for name in place.files if name.startswith(_TEXTS)]
        if known:
            raise InputError(
                f"this is a collection ({', '.join(sorted(known))}): it holds judgments, and no "
                "run",
                where=archive.name, fix="give the run, a file with a score for each document found",
            )  # fmt: skip
        raise archive.several()
    found = _judgments(place, split)
    if found is None:
        raise archive.several()
    return found


def _note(place: Place, chosen: str) -> str:
    others = ", ".join(name for name, file in splits_of(place).items() if file != chosen)
    also = f"; there are also: {others}" if others else ""
    return f"{place.name}: judgments from {chosen}{also}"
