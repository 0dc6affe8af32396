"""Read folders and zip archives that contain a collection, or one document per file.

Archive members are read in place, without unpacking them to disk.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from rankgauge.core.project_names import PROJECT_FILE
from rankgauge.core.text import keep, many, some
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.archives import Archive
from rankgauge.formats.columns import RUN, Layout
from rankgauge.formats.datasets import TEST
from rankgauge.formats.lines import Source
from rankgauge.formats.questions import Grades, read_questions
from rankgauge.formats.registry import unpacked
from rankgauge.formats.texts import Faults, RowReader, TextReader, TextRow, TextSource, kept

TEXTS = frozenset({".md", ".markdown", ".mdx", ".txt", ".text", ".rst", ".adoc", ".org", ".html", ".htm", ".ipynb"})
_MARKDOWN = frozenset({".md", ".markdown", ".mdx", ".ipynb"})
_HEADING = re.compile(r"\A\s*#{1,6}[ \t]+(?P<title>[^\n]*)(?:\n|\Z)")
# The title at the beginning of other texts: underlined (.rst), = (.adoc), or #+title: (.org).
_TITLES = {
    ".rst": re.compile(r"\A\s*(?:([=~^\"'#*+-])\1{2,}\n)?[ \t]*(?P<title>[^\n]+)\n([=~^\"'#*+-])\3{2,}[ \t]*(?:\n|\Z)"),
    ".adoc": re.compile(r"\A\s*=[ \t]+(?P<title>[^\n]+)(?:\n|\Z)"),
    ".org": re.compile(r"\A\s*#\+title:[ \t]*(?P<title>[^\n]+)(?:\n|\Z)", re.IGNORECASE),
}
# Elements of HTML whose text is not displayed, and inline elements.
_HIDDEN = frozenset({"title", "script", "style", "template", "noscript", "svg"})
_INLINE = frozenset(
    {"a", "abbr", "b", "code", "em", "i", "kbd", "mark", "q", "s", "small", "span", "strong", "sub", "sup", "u"}
)
# Commands that convert other files to text.
_CONVERTERS = {
    ".pdf": "pdftotext {0}.pdf",
    ".docx": "pandoc {0}.docx -o {0}.md",
    ".odt": "pandoc {0}.odt -o {0}.md",
    ".epub": "pandoc {0}.epub -o {0}.md",
    ".pptx": "markitdown {0}.pptx -o {0}.md",
    ".xlsx": "libreoffice --headless --convert-to csv {0}.xlsx --outdir {1}",
}
_LATER = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<title>[^\n]*)$", re.MULTILINE)
_FENCED = re.compile(r"^ {0,3}(```|~~~).*?^ {0,3}\1", re.MULTILINE | re.DOTALL)
_FRONT = re.compile(r"\A(?P<mark>---|\+\+\+)[ \t]*\n(?P<front>.*?\n)(?P=mark)[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title[ \t]*[:=][ \t]*(?P<title>[^\n]+?)[ \t]*$", re.MULTILINE)
_JOINTS = re.compile(r"[-_\s]+")


def pages_of(folder: Path, not_texts: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """Return the text files and the other files below a folder, as relative paths.

    Hidden files and folders, compiled Python, and reports of this program are skipped.
    """
    pages: list[str] = []
    others: list[str] = []
    for path, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        inside = Path(path).relative_to(folder)
        for name in sorted(files):
            shown = (inside / name).as_posix()
            if name.startswith(".") or unpacked(shown) in not_texts:
                continue
            ending = PurePosixPath(name).suffix.lower()
            if ending == ".html" and _is_report(folder / shown):
                continue
            (pages if ending in TEXTS else others).append(shown)
    return sorted(pages), others


def _is_report(path: Path) -> bool:
    """Return whether a file is a page that this program wrote, such as ``report.html``."""
    with suppress(OSError), path.open("rb") as stream:
        return b'name="generator" content="rankgauge' in stream.read(2000)
    return False


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


class _HTMLText(HTMLParser):
    """The title and the shown text of an HTML page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: dict[str, str] = {"": "", "title": ""}
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object = None) -> None:  # noqa: ARG002 - of the base class
        """Begin a line before a block, and note an element whose text is not shown."""
        self.parts[""] += "" if tag in _INLINE else "\n"
        self._inside = self._inside or (tag if tag in _HIDDEN else "")

    def handle_endtag(self, tag: str) -> None:
        """Begin a line after a block."""
        self._inside = "" if tag == self._inside else self._inside
        self.handle_starttag("" if tag in _HIDDEN else tag)

    def handle_data(self, data: str) -> None:
        """Collect the title and the shown text."""
        if self._inside in self.parts:
            self.parts[self._inside] += re.sub(r"\s+", " ", data)


def _notebook_text(page: str, text: str) -> str:
    """Return the Markdown and the code of a Jupyter notebook, without its outputs."""
    try:
        sources = [cell["source"] for cell in json.loads(text)["cells"]] if text.strip() else []
        return "\n\n".join(source if isinstance(source, str) else "".join(source) for source in sources)
    except (ValueError, KeyError, TypeError, RecursionError):
        fix = "save it again with Jupyter, or move it out of the folder"
        raise FormatError("this is not a Jupyter notebook", path=page, fix=fix) from None


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
    kind = path.suffix.lower()
    named = " ".join(_JOINTS.split(path.stem)).strip() or path.name
    if kind in {".html", ".htm"}:
        parts = _HTMLText(text).parts
        return TextRow(page, parts["title"].strip() or named, re.sub(r" *\n\s*", "\n", parts[""]).strip(), {})
    if kind == ".ipynb":
        text = _notebook_text(page, text)
    if kind not in _MARKDOWN:
        first = _TITLES[kind].match(text) if kind in _TITLES else None
        title, body = (first["title"].strip(), text[first.end() :]) if first else (named, text)
        return TextRow(page, title, body, {})
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
        plain = {unpacked(name).lower(): name for name in sorted(self.names, reverse=True)}
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
    pages, others = pages_of(files.folder, {*QUERIES, *_FLAT, PROJECT_FILE})
    if not pages:
        return {}, ()
    stamp, read = partial(_stats, files.folder, pages), partial(_read, files.folder)
    reader = RowReader(partial(iter, pages), files.name, read, pages.__getitem__, stamp()[0], stamp)
    kinds = ", ".join(sorted({PurePosixPath(name).suffix or name for name in others})[:5])
    convert = conversions(files.folder, others)
    empty = [name for name in pages if not (files.folder / name).stat().st_size]
    return kept(reader, faults), keep(
        empty and f"WARNING: {many(len(empty), 'empty document')}: {some(empty)}",
        others and f"{many(len(others), 'non-text file')} skipped: {kinds}{convert and f'; convert them: {convert}'}",
    )


def conversions(folder: Path, names: Sequence[str]) -> str:
    """Return the commands that convert the first file of each kind to text; empty if unknown."""
    kinds = {PurePosixPath(name).suffix.lower(): (folder / name).with_suffix("") for name in reversed(names)}
    quoted = {kind: (shlex.quote(os.fspath(path)), shlex.quote(os.fspath(folder))) for kind, path in kinds.items()}
    commands = (_CONVERTERS[kind].format(*quoted[kind]) for kind in sorted(kinds) if kind in _CONVERTERS)
    return ", ".join(commands)


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
    grades = None if asked is None else read_questions(files.source(asked), documents_in(files)[0])[1]
    return None if grades is None else (grades, [f"{files.name}: judgments from {asked}"])


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
