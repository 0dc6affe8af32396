"""Read folders and zip archives that contain a collection, or one document per file.

Archive members are read in place, without unpacking them to disk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from rankgauge.core.text import many
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.archives import Archive
from rankgauge.formats.columns import RUN, Layout
from rankgauge.formats.datasets import TEST
from rankgauge.formats.lines import Source
from rankgauge.formats.questions import Grades, may_be_questions, read_questions
from rankgauge.formats.registry import unpacked
from rankgauge.formats.texts import Faults, RowReader, TextReader, TextRow, TextSource, kept

TEXTS = frozenset({".md", ".markdown", ".mdx", ".txt", ".text", ".rst", ".adoc", ".org"})
_MARKDOWN = frozenset({".md", ".markdown", ".mdx"})
_HEADING = re.compile(r"\A\s*#{1,6}[ \t]+(?P<title>[^\n]*)(?:\n|\Z)")
_LATER = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<title>[^\n]*)$", re.MULTILINE)
_FENCED = re.compile(r"^ {0,3}(```|~~~).*?^ {0,3}\1", re.MULTILINE | re.DOTALL)
_FRONT = re.compile(r"\A---[ \t]*\n(?P<front>.*?\n)---[ \t]*\n", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:[ \t]*(?P<title>[^\n]+?)[ \t]*$", re.MULTILINE)
_JOINTS = re.compile(r"[-_\s]+")


def pages_of(folder: Path, not_texts: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """Return the text files and the other files below a folder, as relative paths.

    Hidden files and folders are skipped.
    """
    pages: list[str] = []
    others: list[str] = []
    for path, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = Path(path).relative_to(folder)
        for name in sorted(files):
            shown = (inside / name).as_posix()
            if name.startswith(".") or unpacked(shown) in not_texts:
                continue
            ending = PurePosixPath(name).suffix.lower()
            (pages if ending in TEXTS else others).append(shown)
    return sorted(pages), others


def _read(folder: Path, page: str) -> TextRow:
    path = folder / page
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise FormatError(
            f"byte 0x{error.object[error.start]:02x} is not UTF-8",
            path=os.fspath(path),
            line=line,
            fix="save the file as UTF-8, or move it out of the folder",
        ) from None
    except OSError as error:
        raise FormatError(
            f"cannot be read: {error.strerror or error}",
            path=os.fspath(path),
            fix="check its permissions, or move it out of the folder",
        ) from None
    return _row(page, text.replace("\r\n", "\n"))


def _stats(folder: Path, pages: Sequence[str]) -> tuple[int, int]:
    """Return the total size of files, and a hash of their sizes and modification times."""
    stats = []
    for page in pages:
        with suppress(OSError):
            stat = (folder / page).stat()
            stats.append((stat.st_size, stat.st_mtime_ns))
    return sum(size for size, _ in stats), hash(tuple(stats))


def _row(page: str, text: str) -> TextRow:
    """Return a document in a file of its own; its id is the path, with ``/``.

    The title comes from the front matter, else from the first heading, else from the file name. A
    heading at the very beginning is not repeated in the text.
    """
    path = PurePosixPath(page)
    named = " ".join(_JOINTS.split(path.stem)).strip() or path.name
    if path.suffix.lower() not in _MARKDOWN:
        return TextRow(page, named, text, {})
    front = _FRONT.match(text)
    body = text if front is None else text[front.end() :]
    heading = None if front is None else _FRONT_TITLE.search(front["front"])
    first = _HEADING.match(body)
    if first is not None:
        body = body[first.end() :]
    else:
        first = _LATER.search(_FENCED.sub("", body))
    # A heading may be closed by # characters.
    headed = first["title"].rstrip(" \t#") if first else ""
    title = heading["title"].strip("\"'") if heading else headed
    return TextRow(page, title or named, body, {})


# A judgment file, or the grades in a question file; and notes.
_Judgments: TypeAlias = tuple[TextSource | Grades, list[str]]
# Names of files without an extension for compression, best first.
_JUDGED = (".tsv", ".txt", ".trec", ".qrels", ".csv", ".jsonl", ".parquet")
_FLAT = tuple(f"qrels{end}" for end in (*_JUDGED, ""))
_ENDINGS = (".jsonl", ".tsv", ".csv", ".ndjson")
_MARKED = (".sgml", ".xml", ".trec")
_DOCUMENTS = (
    *(f"{stem}{end}" for stem in ("corpus", "documents", "docs", "collection") for end in _ENDINGS),
    *(f"{stem}{end}" for stem in ("corpus", "documents", "docs") for end in _MARKED),
)
# Names of files of queries, best first.
QUERIES = (
    *(f"{stem}{end}" for stem in ("queries", "questions", "topics") for end in _ENDINGS),
    *(f"topics{end}" for end in (*_MARKED, ".txt")),
)
_FOLDER = "qrels"
# File names that mark an archive as a collection.
_TEXTS = ("corpus.", "queries.", "documents.")
_PARTS = ("corpus.", "collection.", "docs.", "documents.", "queries.", "questions.", "topics.")


@dataclass(frozen=True)
class FileSet:
    """The files of a folder or archive, by relative name, with ``/`` as separator."""

    name: str  # name for messages
    title: str  # name for a collection read from here
    names: frozenset[str]  # names of all files, at most one folder deep
    source: Callable[[str], TextSource]  # returns the text source for a file
    folder: Path | None = None  # the folder; None for an archive

    def first(self, wanted: Sequence[str]) -> str | None:
        """Return the first of these files, compressed or not."""
        plain = {unpacked(name): name for name in sorted(self.names, reverse=True)}
        return next((plain[name] for name in wanted if name in plain), None)


def files_in_folder(folder: Path) -> FileSet:
    """List the files in a folder and in its ``qrels`` subfolder."""
    try:
        inside = [path for path in folder.iterdir() if path.is_file()]
        judged = folder / _FOLDER
        inside += [path for path in judged.iterdir() if path.is_file()] if judged.is_dir() else []
    except OSError as error:
        raise InputError(
            f"the folder cannot be read: {error.strerror or error}",
            where=os.fspath(folder),
            fix="check the path and its permissions",
        ) from None
    names = frozenset(path.relative_to(folder).as_posix() for path in inside)
    return FileSet(os.fspath(folder), folder.resolve().name, names, lambda name: TextSource.of(folder / name), folder)


def files_in_archive(archive: Archive) -> FileSet:
    """List the members of a zip archive, relative to the folder that contains the collection."""
    root = _root(archive)

    def source(name: str) -> TextSource:
        member = root + name
        opening = partial(archive.opened, member)
        return TextSource(f"{archive.name}!{member}", opening, archive.info(member).file_size, archive.path)

    names = frozenset(name.removeprefix(root) for name in archive.members)
    return FileSet(archive.name, Path(archive.name).stem, names, source)


def _root(archive: Archive) -> str:
    """Return the topmost folder with files that look like parts of a collection."""
    members = [PurePosixPath(name) for name in archive.members]
    known = [path for path in members if path.name.startswith(_PARTS)]
    # Judgments only: use the parent of the ``qrels`` folder.
    known = known or [path.parent for path in members if path.parent.name == _FOLDER]
    if not known:
        return ""
    highest = min(len(path.parts) for path in known)
    folders = sorted({path.parent.as_posix() for path in known if len(path.parts) == highest})
    if len(folders) > 1:
        raise InputError(
            f"parts of a collection are in {len(folders)} folders of the archive: {', '.join(map(repr, folders[:5]))}",
            where=archive.name,
            fix="unpack it, and name the intended folder",
        )
    return "" if folders == ["."] else f"{folders[0]}/"


def splits_of(files: FileSet) -> dict[str, str]:
    """Return the judgment files in ``qrels/`` by name of the split."""
    splits = {}
    for name in sorted(files.names):
        path = PurePosixPath(unpacked(name))
        if path.parent.as_posix() == _FOLDER and path.suffix in _JUDGED:
            splits[path.stem] = name
    return splits


def judgments_named(files: FileSet, split: str | None) -> str | None:
    """Return the judgment file of this split; by default that of ``test``, or the only one."""
    splits = splits_of(files)
    if split is not None and split not in splits:
        raise InputError(
            f"there are no judgments of a split {split!r}",
            where=files.name,
            fix=f"there are: {', '.join(splits)}" if splits else f"use qrels/{split}.tsv",
        )
    if split is not None or TEST in splits:
        return splits[split or TEST]
    if len(splits) > 1:
        raise InputError(
            f"there are judgments of {len(splits)} splits, and none is called test",
            where=files.name,
            fix=f"choose one, as split=...: {', '.join(splits)}",
        )
    if splits:
        return next(iter(splits.values()))
    return files.first(_FLAT)


def documents_in(files: FileSet, faults: Faults | None = None) -> tuple[Mapping[str, TextRow], tuple[str, ...]]:
    """Read documents from one file, or from the text files of a folder; also return notes."""
    corpus = files.first(_DOCUMENTS)
    if corpus is not None:
        return kept(TextReader(files.source(corpus)), faults), ()
    if files.folder is None:
        return {}, ()
    pages, others = pages_of(files.folder, {*QUERIES, *_FLAT})
    if not pages:
        return {}, ()
    stamp, read = partial(_stats, files.folder, pages), partial(_read, files.folder)
    reader = RowReader(partial(iter, pages), files.name, read, pages.__getitem__, stamp()[0], stamp)
    kinds = ", ".join(sorted({PurePosixPath(name).suffix or name for name in others})[:5])
    notes = (f"{many(len(others), 'non-text file')} skipped: {kinds}",)
    return kept(reader, faults), notes if others else ()


def judgments_in_folder(path: Source, split: str | None = None) -> _Judgments:
    """Return the judgment file of a folder, or the grades in its question file; and notes."""
    folder = Path(os.fsdecode(path))
    files = files_in_folder(folder.parent if folder.resolve().name == _FOLDER else folder)
    judgments = _judgments(files, split)
    if judgments is None:
        raise InputError(
            "this folder has no judgments: no qrels/test.tsv, qrels.txt, or questions.csv with "
            "the columns question and relevant",
            where=files.name,
            fix="name a file in it",
        )
    return judgments


def _judgments(files: FileSet, split: str | None) -> _Judgments | None:
    chosen = judgments_named(files, split)
    if chosen is not None:
        others = ", ".join(name for name, file in splits_of(files).items() if file != chosen)
        also = f"; there are also: {others}" if others else ""
        return files.source(chosen), [f"{files.name}: judgments from {chosen}{also}"]
    asked = files.first(QUERIES)
    if asked is None or not may_be_questions(files.source(asked)):
        return None
    _, grades = read_questions(files.source(asked), documents_in(files)[0])
    return grades or {}, [f"{files.name}: judgments from {asked}"]


def pairs_in_archive(archive: Archive, layout: Layout, split: str | None = None) -> _Judgments:
    """Return the only file of an archive, or the judgments of its collection; and notes."""
    sole = archive.sole()
    if sole is not None and split is None:
        return TextSource(f"{archive.name}!{sole}", partial(archive.opened, sole)), []
    files = files_in_archive(archive)
    if layout is RUN:
        known = [name for name in files.names if name.startswith(_TEXTS)]
        if known:
            raise InputError(
                f"this is a collection ({', '.join(sorted(known))}), which has judgments but no run",
                where=archive.name,
                fix="pass the run: a file with a score for each retrieved document",
            )
        raise archive.several()
    judgments = _judgments(files, split)
    if judgments is None:
        raise archive.several()
    return judgments
