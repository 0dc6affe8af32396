"""Write documents and queries as JSON lines, CSV, TSV, or TREC markup.

JSON lines store everything. The other formats do not: content that they cannot store is detected
for each text and raises an error or, if requested, is counted.
"""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

from rankgauge.errors import FormatError, InputError
from rankgauge.formats import sgml
from rankgauge.formats.lines import mistaken_for
from rankgauge.formats.texts import IDS, TextRow

_TITLE_WORDS = {"title", "heading"}
_TEXT_WORDS = ("text", "contents", "body", "abstract", "query", "question")
# Many CSV readers, including Python's, reject longer cells.
_LONGEST_CELL = 131_072
_BREAKS = re.compile(r"[\t\r\n]+")
_INSIDE_TOPIC = ("description", "narrative")
_LOSSLESS = "write JSON lines, which keep everything, or accept and count the losses: --lossy (lossy=True)"


@dataclass(slots=True)
class LossCounter:
    """Counter of content that a format cannot store; raises an error unless `lossy` is set."""

    form: str  # name of the format
    name: str  # file being written, for messages
    lossy: bool  # whether to count instead of raising an error
    texts: int = 0  # number of texts written
    counts: dict[str, int] = field(default_factory=dict)  # counts by kind of content
    first: dict[str, str] = field(default_factory=dict)

    def add(self, what: str, row: TextRow) -> None:
        """Count a loss, or raise an error."""
        if not self.lossy:
            raise InputError(f"{self.form} cannot store {what} of {row.id!r}", where=self.name, fix=_LOSSLESS)
        self.counts[what] = self.counts.get(what, 0) + 1
        self.first.setdefault(what, row.id)

    def messages(self) -> Iterator[str]:
        """Yield a sentence for each kind of loss."""
        for what, count in self.counts.items():
            texts = "1 text" if count == 1 else f"{count} texts"
            yield f"{what} of {texts}, first {self.first[what]!r}: {self.form} cannot store it"


def text_lines(
    texts: Callable[[], Iterable[TextRow]], form: str, kind: str, loss_counter: LossCounter
) -> Iterator[bytes]:
    """Yield the encoded lines of a file of texts, one text at a time; `texts` may be called twice."""
    write: Callable[[TextRow], str]
    if form == "jsonl":
        write = _json_line
    elif form == "trec":
        make = _topic if kind == "queries" else _document
        write = partial(_marked, make=make, loss_counter=loss_counter)
    else:
        table = _Table(form, texts(), loss_counter)
        head = table.header()
        if head:
            yield head.encode()
        write = table.line
    for row in texts():
        line = _encoded(write(row), row, form, loss_counter)
        if not loss_counter.texts and mistaken_for(line[:32]):
            raise _unwritable(row, f"the file would be read as {mistaken_for(line[:32])}", loss_counter)
        loss_counter.texts += 1
        yield line


def _encoded(text: str, row: TextRow, form: str, loss_counter: LossCounter) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        if form == "jsonl":  # only JSON can escape it
            return (json.dumps(_object(row), allow_nan=False) + "\n").encode()
        loss_counter.add("a lone surrogate in the text", row)
        return text.encode("utf-8", "replace")


def _unwritable(row: TextRow, why: str, loss_counter: LossCounter) -> InputError:
    return InputError(
        f"id {row.id!r} cannot be written: {why}", where=loss_counter.name, fix="rename it, or write JSON lines"
    )


def _object(row: TextRow) -> dict[str, Any]:
    found: dict[str, Any] = {"_id": row.id}
    # Without a title key, such a field would be read as the title.
    if row.title or _TITLE_WORDS & row.fields.keys():
        found["title"] = row.title
    return found | {"text": row.text} | {k: v for k, v in row.fields.items() if k not in found}


def _json_line(row: TextRow) -> str:
    try:
        return json.dumps(_object(row), ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError as error:
        raise InputError(f"a field of {row.id!r} is not a JSON value: {error}", fix="leave it out, or fix it") from None


class _Table:
    """Formatter of texts as lines of CSV or TSV."""

    def __init__(self, form: str, rows: Iterable[TextRow], loss_counter: LossCounter) -> None:
        self._form, self._counter = form, loss_counter
        fields: dict[str, None] = {}
        titled = False
        for row in rows:
            titled = titled or bool(row.title)
            fields.update(dict.fromkeys(row.fields))
        self._fields = tuple(fields)
        # Without a title column, a heading among the fields would be read as the title.
        self._titled = titled or bool(_TITLE_WORDS & fields.keys())
        self._known = self._readable()
        self._parts: list[str] = []
        sink = SimpleNamespace(write=self._parts.append)
        self._writer = csv.writer(sink, lineterminator="\r\n")

    def _readable(self) -> dict[str, bool]:
        """Return whether each field can be read back under its name."""
        taken = {"_id", "text", "title"}
        known = {}
        for name in self._fields:
            plain = name == name.strip().lower() and name not in taken
            known[name] = plain and not _BREAKS.search(name)
            taken.add(name)
        return known

    def header(self) -> str:
        """Return the header line; empty for TSV with only id and text."""
        kept = [name for name, known in self._known.items() if known]
        if self._form == "tsv" and not self._titled and not kept:
            return ""
        return self._joined(["_id", *(["title"] if self._titled else []), "text", *kept])

    def line(self, row: TextRow) -> str:
        """Format one text."""
        cells = [row.id, *([row.title] if self._titled else []), row.text]
        for name in row.fields:
            if not self._known.get(name):
                self._counter.add(f"the name of field {name!r}", row)
        cells += [self._cell(name, row) for name, known in self._known.items() if known]
        if self._form == "tsv":
            cells = self._unbroken(cells, row)
        elif any(len(cell) > _LONGEST_CELL for cell in cells):
            self._counter.add(f"a text of more than {_LONGEST_CELL} characters", row)
        line = self._joined(cells)
        bare = self._form == "tsv" and not self.header()
        if not line.strip() or (bare and (row.id != row.id.strip() or self._like_header(row))):
            raise _unwritable(row, "it would be read as another line", self._counter)
        return line

    def _like_header(self, row: TextRow) -> bool:
        like_id = row.id.lower() in IDS and row.text.strip().lower() in _TEXT_WORDS
        return like_id or sgml.begins(row.id.encode("utf-8", "replace"))

    def _cell(self, name: str, row: TextRow) -> str:
        value = row.fields.get(name, "")
        if isinstance(value, str):
            return value
        if value is None or (isinstance(value, Mapping | list) and not value):
            return ""  # equivalent to no value
        self._counter.add(f"the non-text value of field {name!r}", row)
        return json.dumps(value, ensure_ascii=False)

    def _unbroken(self, cells: list[str], row: TextRow) -> list[str]:
        if not any(_BREAKS.search(cell) for cell in cells):
            return cells
        if _BREAKS.search(row.id):
            raise _unwritable(row, "it contains a tab or a line break", self._counter)
        self._counter.add("tabs and line breaks", row)
        return [_BREAKS.sub(" ", cell) for cell in cells]

    def _joined(self, cells: list[str]) -> str:
        if self._form == "tsv":
            return "\t".join(cells) + "\n"
        self._writer.writerow(cells)
        line = "".join(self._parts).removesuffix("\r\n") + "\n"
        self._parts.clear()
        return line


def _marked(row: TextRow, make: Callable[[TextRow], str], loss_counter: LossCounter) -> str:
    """Format a TREC document or topic, and read it back to detect losses."""
    made = make(row)
    try:
        key, title, text, fields = sgml.parts_of(made.encode("utf-8", "replace"), "", 1)
    except FormatError as error:
        raise _unwritable(row, error.what, loss_counter) from None
    if key != row.id:
        raise _unwritable(row, f"it would be read as {key!r}", loss_counter)
    if title != row.title:
        loss_counter.add("the title" if not title else "blanks and line breaks", row)
    if text != row.text:
        loss_counter.add("blanks and line breaks", row)
    for name in row.fields:
        if fields.get(name) != row.fields[name]:
            loss_counter.add(f"field {name!r}", row)
    return made


def _document(row: TextRow) -> str:
    title = f"<TITLE>{html.escape(row.title, quote=False)}</TITLE>\n" if row.title else ""
    return (
        f"<DOC>\n<DOCNO>{html.escape(row.id, quote=False)}</DOCNO>\n{title}"
        f"<TEXT>\n{html.escape(row.text, quote=False)}\n</TEXT>\n</DOC>\n"
    )


def _topic(row: TextRow) -> str:
    parts = [f"<top>\n\n<num> Number: {html.escape(row.id, quote=False)}\n"]
    parts.append(f"<title> {html.escape(row.text, quote=False)}\n\n")
    for name in _INSIDE_TOPIC:
        value = row.fields.get(name)
        if isinstance(value, str) and value:
            label = name.capitalize()
            parts.append(f"<{name[:4]}> {label}:\n{html.escape(value, quote=False)}\n\n")
    return "".join(parts) + "</top>\n"
