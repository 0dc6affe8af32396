"""Write judgments, runs, texts, and collections atomically.

For texts, JSON lines store everything. The other formats do not: content that they cannot store is
detected for each text and raises an error or, if requested, is counted.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from rankgauge.core.arguments import option
from rankgauge.core.files import write_atomically
from rankgauge.core.ids import show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.core.text import many
from rankgauge.errors import FormatError, InputError
from rankgauge.formats import sgml
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout
from rankgauge.formats.delimited import csv_line
from rankgauge.formats.lines import Source, mistaken_for, source_name
from rankgauge.formats.registry import (
    TARGET_FORMATS,
    Format,
    description_of,
    ending,
    format_named,
    load,
    packing_of,
    target_format,
)
from rankgauge.formats.texts import IDS, TEXTS, TITLES, TextRow

# Extensions of formats that are not text; a text file must not have such a name.
_NOT_WRITTEN = frozenset(
    {
        ".7z",
        ".avro",
        ".db",
        ".duckdb",
        ".h5",
        ".hdf5",
        ".npy",
        ".npz",
        ".ods",
        ".orc",
        ".pickle",
        ".pkl",
        ".rar",
        ".sqlite",
        ".tar",
        ".tgz",
        ".xls",
        ".xlsx",
        ".zip",
    }
)
# Many CSV readers, including Python's, reject longer cells.
_LONGEST_CELL = 131_072
_BREAKS = re.compile(r"[\t\r\n]+")
_LOSSLESS = "write JSON lines, which keep everything, or accept and count the losses: --lossy (lossy=True)"


def refuse_ending(target: Source, form: str | None) -> None:
    """Refuse a file name whose extension indicates a format that cannot be written."""
    name = source_name(target)
    end = ending(name)
    if end not in _NOT_WRITTEN or (form is not None and end != ".zip"):
        return
    fix = "use a name that ends in .csv, .json, or .parquet, or pass the format: --to (in Python target_format=...)"
    if end == ".zip":
        fix = "only a collection can be a .zip; use .gz, .xz, or .zst for a single file"
    raise InputError(f"files that end in {end} are not written", where=name, fix=fix)


def write_tables(
    tables: Iterable[PairTable], target: Source, layout: Layout, tag: str = "", *, form: str | None = None
) -> None:
    """Write tables with different queries to one file atomically."""
    name = source_name(target)
    form = form or (None if target == "-" else target_format(name)) or "trec"
    option("format", form, TARGET_FORMATS)
    if form not in {"parquet", "arrow"}:
        with written(target) as stream:
            # Not every compressor has `writelines`.
            for chunk in pair_lines(tables, layout, form, name=name, tag=tag):
                stream.write(chunk)
        return
    from rankgauge.formats.parquet import write_columns

    packing = packing_of(name)
    if packing is not None:
        raise InputError(f"{form} is already compressed", where=name, fix=f"remove {packing.suffix} from the name")
    with written(target) as stream:
        write_columns(_checked_tables(tables, layout, format_named(form), name), layout, form, stream)


def copy_description(source: str, target: Source) -> None:
    """Copy the description of judgments, so that evaluations of the copy print it, too.

    If there is none, remove that of the judgments that were replaced.
    """
    if target == "-":
        return
    known, path = description_of(source), Path(f"{source_name(target)}.about.json")
    if not known:
        path.unlink(missing_ok=True)
        return
    text = Path(known).read_bytes()
    with write_atomically(path) as copy:
        copy.write(text)


def pair_lines(tables: Iterable[PairTable], layout: Layout, form: str, *, name: str, tag: str = "") -> Iterator[bytes]:
    """Yield the encoded lines of a text file of judgments or of a run."""
    declared = format_named(form)
    held = _checked_tables(tables, layout, declared, name)
    if form == "opensearch" and ".csv" in name.lower():
        declared = format_named("quepid")
    chunks: Iterable[bytes | str] = load(declared.writer)(held, layout, tag)
    return (chunk if isinstance(chunk, bytes) else chunk.encode() for chunk in chunks)


def _checked_tables(tables: Iterable[PairTable], layout: Layout, form: Format, name: str) -> Iterator[PairTable]:
    """Yield the tables; refuse those that the format cannot represent."""
    if ("run" if layout is RUN else "qrels") not in form.writes:
        got, holds = ("a run", "judgments") if layout is RUN else ("judgments", "runs")
        raise InputError(
            f"{form.name} cannot store {got}, only {holds}",
            fix="choose another format, such as trec, csv, json, or parquet",
        )
    for table in tables:
        empty = np.flatnonzero(np.diff(table.offsets) == 0)
        if layout is JUDGMENTS and len(empty) and not form.empty_queries:
            raise InputError(
                f"query '{show_id(table.queries[int(empty[0])])}' has no judgment, so it has no line",
                where=name,
                fix="drop the query, or write JSON: use a path that ends in .json",
            )
        values = table.values if form.largest_grade else np.zeros(0)
        # Rounding would change grades, and -0.0 would lose its sign.
        beyond = (values != np.trunc(values)) | (np.abs(values) > form.largest_grade)
        bad = np.flatnonzero(beyond | ((values == 0) & np.signbit(values)))
        if len(bad):
            row = int(bad[0])
            query = table.queries[int(table.query_numbers()[row])]
            others = f" ({len(bad)} grades do not fit)" if len(bad) > 1 else ""
            raise InputError(
                f"{form.name} stores integer grades up to {form.largest_grade}, got "
                f"{float(values[row])!r} for document '{show_id(table.docs[row])}' of query "
                f"'{show_id(query)}'{others}",
                fix="multiply the grades so that all are integers, or write csv, json, parquet, or trec",
            )
        repeats = table.repeats() if form.unique else []
        if repeats:
            raise table.repeat_error(repeats[0], fix=f"keep one of them, or write another format than {form.name}")
        yield table


@contextmanager
def written(target: Source) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces the target if the block ends without an error."""
    if target == "-":
        import tempfile

        with tempfile.TemporaryFile() as copy:
            yield cast("BinaryIO", copy)
            copy.seek(0)
            shutil.copyfileobj(copy, sys.stdout.buffer)
        return
    name = source_name(target)
    packing = packing_of(name)
    try:
        with write_atomically(target) as raw:
            if packing is None:
                yield raw
                return
            from rankgauge.formats.compression import packed

            with packed(raw, packing, name) as stream:
                yield stream
    except InputError as error:
        if error.where:
            raise
        raise InputError(error.what, where=name, fix=error.fix) from None


def write_collection(target: Source, parts: Mapping[str, Iterable[bytes]]) -> None:
    """Write the files of a collection in the BEIR layout: all of them or nothing."""
    if not source_name(target).lower().endswith(".zip"):
        _write_folder(Path(target), parts)
        return
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

    with written(target) as stream, ZipFile(stream, "w") as archive:
        for name, chunks in parts.items():
            member = ZipInfo(name)  # with its fixed date, which makes output reproducible
            member.compress_type = ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            with archive.open(member, "w", force_zip64=True) as inside:
                for chunk in chunks:
                    inside.write(chunk)


def _write_folder(target: Path, parts: Mapping[str, Iterable[bytes]]) -> None:
    import secrets

    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise InputError("the target already exists", where=str(target), fix="name a new folder, or empty this one")
    # A sibling of the target, so that the last step is a rename.
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        for name, chunks in parts.items():
            path = part / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as stream:
                for chunk in chunks:
                    stream.write(chunk)
        if target.exists():
            target.rmdir()
        part.replace(target)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}",
            where=str(target),
            fix="check that the parent folder exists and is writable",
        ) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


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
            yield f"{what} of {many(count, 'text')}, first {self.first[what]!r}: {self.form} cannot store it"


def text_lines(
    texts: Callable[[], Iterable[TextRow]], form: str, kind: str, loss_counter: LossCounter
) -> Iterator[bytes]:
    """Yield the encoded lines of a file of texts, one text at a time; `texts` may be called twice."""
    if form == "jsonl":
        write: Callable[[TextRow], str] = _json_line
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
        text = write(row)
        try:
            line = text.encode()
        except UnicodeEncodeError:
            if form == "jsonl":  # only JSON can escape it
                line = (json.dumps(_object(row), allow_nan=False) + "\n").encode()
            else:
                loss_counter.add("a lone surrogate in the text", row)
                line = text.encode("utf-8", "replace")
        if not loss_counter.texts and mistaken_for(line[:32]):
            raise _unwritable(row, f"the file would be read as {mistaken_for(line[:32])}", loss_counter)
        loss_counter.texts += 1
        yield line


def _unwritable(row: TextRow, why: str, loss_counter: LossCounter) -> InputError:
    return InputError(
        f"id {row.id!r} cannot be written: {why}", where=loss_counter.name, fix="rename it, or write JSON lines"
    )


def _object(row: TextRow) -> dict[str, Any]:
    item: dict[str, Any] = {"_id": row.id}
    # Without a title key, such a field would be read as the title.
    if row.title or row.fields.keys() & TITLES:
        item["title"] = row.title
    return item | {"text": row.text} | {k: v for k, v in row.fields.items() if k not in item}


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
        # Without a title column, a heading among the fields would be read as the title.
        self._titled = titled or bool(fields.keys() & TITLES)
        # Whether each field can be read back under its name.
        self._known: dict[str, bool] = {}
        taken = {"_id", "text", "title"}
        for name in fields:
            plain = name == name.strip().lower() and name not in taken
            self._known[name] = plain and not _BREAKS.search(name)
            taken.add(name)

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
        if self._form == "tsv" and any(_BREAKS.search(cell) for cell in cells):
            if _BREAKS.search(row.id):
                raise _unwritable(row, "it contains a tab or a line break", self._counter)
            self._counter.add("tabs and line breaks", row)
            cells = [_BREAKS.sub(" ", cell) for cell in cells]
        if self._form == "csv" and any(len(cell) > _LONGEST_CELL for cell in cells):
            self._counter.add(f"a text of more than {_LONGEST_CELL} characters", row)
        line = self._joined(cells)
        bare = self._form == "tsv" and not self.header()
        like_header = row.id.lower() in IDS and row.text.strip().lower() in TEXTS
        like_header = like_header or sgml.begins(row.id.encode("utf-8", "replace"))
        if not line.strip() or (bare and (row.id != row.id.strip() or like_header)):
            raise _unwritable(row, "it would be read as another line", self._counter)
        return line

    def _cell(self, name: str, row: TextRow) -> str:
        value = row.fields.get(name, "")
        if isinstance(value, str):
            return value
        if value is None or (isinstance(value, Mapping | list) and not value):
            return ""  # equivalent to no value
        self._counter.add(f"the non-text value of field {name!r}", row)
        return json.dumps(value, ensure_ascii=False)

    def _joined(self, cells: list[str]) -> str:
        return "\t".join(cells) + "\n" if self._form == "tsv" else csv_line(cells)


def _marked(row: TextRow, make: Callable[[TextRow], str], loss_counter: LossCounter) -> str:
    """Format a TREC document or topic, and read it back to detect losses."""
    markup = make(row)
    try:
        key, title, text, fields = sgml.parts_of(markup.encode("utf-8", "replace"), "", 1)
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
    return markup


def _document(row: TextRow) -> str:
    title = f"<TITLE>{html.escape(row.title, quote=False)}</TITLE>\n" if row.title else ""
    return (
        f"<DOC>\n<DOCNO>{html.escape(row.id, quote=False)}</DOCNO>\n{title}"
        f"<TEXT>\n{html.escape(row.text, quote=False)}\n</TEXT>\n</DOC>\n"
    )


def _topic(row: TextRow) -> str:
    parts = [f"<top>\n\n<num> Number: {html.escape(row.id, quote=False)}\n"]
    parts.append(f"<title> {html.escape(row.text, quote=False)}\n\n")
    for name in ("description", "narrative"):
        value = row.fields.get(name)
        if isinstance(value, str) and value:
            label = name.capitalize()
            parts.append(f"<{name[:4]}> {label}:\n{html.escape(value, quote=False)}\n\n")
    return "".join(parts) + "</top>\n"
