"""A folder of plain texts and Markdown: each file is a document."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath

from rankgauge.errors import FormatError
from rankgauge.formats.texts import Faults, Placed, TextRow, add_fault

TEXTS = frozenset({".md", ".markdown", ".mdx", ".txt", ".text", ".rst", ".adoc", ".org"})
_MARKDOWN = frozenset({".md", ".markdown", ".mdx"})
_HEADING = re.compile(r"\A\s*#{1,6}[ \t]+(?P<title>[^\n]*)(?:\n|\Z)")
_LATER = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<title>[^\n]*)$", re.MULTILINE)
_FENCED = re.compile(r"^ {0,3}(```|~~~).*?^ {0,3}\1", re.MULTILINE | re.DOTALL)
_FRONT = re.compile(r"\A---[ \t]*\n(?P<front>.*?\n)---[ \t]*\n", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:[ \t]*(?P<title>[^\n]+?)[ \t]*$", re.MULTILINE)
_JOINTS = re.compile(r"[-_\s]+")


def pages_of(folder: Path, not_texts: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """The files of text in a folder and below, by path relative to it, and the other files.

    Hidden files and folders are left out of both.
    """
    pages: list[str] = []
    others: list[str] = []
    for path, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = Path(path).relative_to(folder)
        for name in sorted(files):
            shown = (inside / name).as_posix()
            if name.startswith(".") or shown in not_texts:
                continue
            ending = PurePosixPath(name).suffix.lower()
            (pages if ending in TEXTS else others).append(shown)
    return sorted(pages), others


class PageReader:
    """Reads the files of a folder, each a document; its id is its path, with ``/``.

    The title is that of the front matter, else the first heading, else the name of the file. A
    heading at the very beginning is not repeated in the text.
    """

    def __init__(self, folder: Path, pages: Sequence[str]) -> None:
        self.name, self.seekable = os.fspath(folder), True
        self._folder, self._pages = folder, tuple(pages)
        self.size: int | None = sum(size for size, _ in self._stats())

    def rows(self, faults: Faults | None = None) -> Iterator[Placed]:
        """Every document, by path."""
        for place in range(len(self._pages)):
            try:
                yield Placed(place + 1, place, self.at(place))
            except FormatError as error:
                add_fault(error, faults)

    def at(self, offset: int) -> TextRow:
        """The document at this place, from 0."""
        page = self._pages[offset]
        path = self._folder / page
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise FormatError(
                f"byte 0x{error.object[error.start]:02x} is not UTF-8", path=os.fspath(path),
                line=line, fix="save the file as UTF-8, or move it out of the folder",
            ) from None  # fmt: skip
        except OSError as error:
            raise FormatError(
                f"cannot be read: {error.strerror or error}", path=os.fspath(path),
                fix="check its permissions, or move it out of the folder",
            ) from None  # fmt: skip
        return _row(page, text.replace("\r\n", "\n"))

    def stamp(self) -> object:
        """Size and time of every file, hashed."""
        return hash(tuple(self._stats()))

    def _stats(self) -> Iterator[tuple[int, int]]:
        for page in self._pages:
            try:
                found = (self._folder / page).stat()
            except OSError:
                yield 0, 0
            else:
                yield found.st_size, found.st_mtime_ns


def _row(page: str, text: str) -> TextRow:
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
    # Signs at the end of a heading close it.
    headed = first["title"].rstrip(" \t#") if first else ""
    title = heading["title"].strip("\"'") if heading else headed
    return TextRow(page, title or named, body, {})
