"""``convert()``: change the format of judgments, runs, and texts.

Losses that would affect a measure or change a text are errors. Other losses (tags, ranks, extra
columns) are counted and reported.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from rankgauge.core.arguments import option
from rankgauge.core.escaping import for_terminal
from rankgauge.core.ids import show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.core.text import many
from rankgauge.corpus.collection import Collection
from rankgauge.data.qrels import Qrels, read_qrels
from rankgauge.data.run import Run, read_run, run_name
from rankgauge.errors import InputError
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout
from rankgauge.formats.contents import FileContent, content_of, kinds_named
from rankgauge.formats.lines import Source, is_plain_file, opened, opened_bytes, source_name
from rankgauge.formats.losses import Tally, UnreadFields, column_losses, rest, unread_fields, unread_losses
from rankgauge.formats.pieces import PairFile
from rankgauge.formats.questions import may_be_questions, read_questions
from rankgauge.formats.readers import read_stream, read_table
from rankgauge.formats.registry import (
    CONTENTS,
    FORMATS,
    TARGET_FORMATS,
    Content,
    InFormat,
    format_named,
    target_format,
    unpacked,
)
from rankgauge.formats.rows import PairInput
from rankgauge.formats.texts import TextReader, TextRow, TextSource, kept
from rankgauge.formats.writers import (
    LossCounter,
    copy_description,
    pair_lines,
    refuse_ending,
    text_lines,
    write_collection,
    write_tables,
    written,
)
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table

# File names for texts with TREC markup.
_TREC_NAME = re.compile(r"\.(trec|sgml?|xml|top|topics?|dat)$|topics[^/\\]*\.txt$")
_FILES = (".txt", ".trec", ".qrels", ".run", ".sgml", ".xml")
_TEXT_TARGETS = tuple(form.name for form in FORMATS if "documents" in form.writes)
# Files of a collection in BEIR layout.
_CORPUS, _QUERIES, _QRELS = "corpus.jsonl", "queries.jsonl", "qrels/test.tsv"
_SAID = {
    "qrels": "judgments of {}",
    "run": "a run of {}",
    "queries": "queries",
    "documents": "documents",
    "collection": "a collection of {}",
}
_ROWS = {"qrels": "judgment", "run": "document", "queries": "text", "documents": "text", "collection": "document"}


@dataclass(frozen=True)
class Conversion(Result):
    """Summary of a conversion, with its losses.

    Attributes:
        source: Name of the source.
        target: Name of the target.
        kind: ``qrels``, ``run``, ``queries``, ``documents``, or ``collection``.
        source_format: Format that was read.
        target_format: Format that was written.
        queries: Number of queries; 0 for documents.
        rows: Number of judgments, retrieved documents, or texts; for a collection, of documents.
        losses: Content missing from the target, one sentence each.
        notes: Notes of the reader, and fields left to fill in.

    Example:
        >>> import tempfile
        >>> from rankgauge import convert, sample_path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = convert(sample_path("qrels.txt"), f"{folder}/qrels.csv")
        >>> done.kind, done.rows, done.losses
        ('qrels', 289, ())
    """

    source: str
    target: str
    kind: Content
    source_format: str
    target_format: str
    queries: int
    rows: int
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def table(self) -> Table:
        """Return a one-row table: source, target, and counts."""
        return Table(
            ("source", "target", "kind", "from", "to", "queries", "rows"),
            ((self.source, self.target, self.kind, self.source_format, self.target_format, self.queries, self.rows),),
            notes=(*(f"lost: {loss}" for loss in self.losses), *self.notes),
        )

    def summary(self) -> str:
        """Return a summary in one sentence."""
        what = _SAID[self.kind].format(many(self.queries, "query"))
        done = f"{self.target}: {what}, {many(self.rows, _ROWS[self.kind])}"
        return f"{done} ({self.source_format} to {self.target_format})"

    def __str__(self) -> str:
        """Return a line on what was written, and a line for each loss and note."""
        losses = [f"lost: {loss}" for loss in self.losses]
        lines = [self.summary(), *losses, *(f"note: {note}" for note in self.notes)]
        return "\n".join(map(for_terminal, lines))


def convert(
    source: Any,
    target: Source,
    *,
    kind: Content | None = None,
    source_format: str | None = None,
    target_format: str | None = None,
    name: str | None = None,
    lossy: bool = False,
) -> Conversion:
    """Write judgments, a run, queries, or documents in another format.

    Args:
        source: A file, ``-`` for standard input; a folder or an archive that
            :meth:`Collection.load` accepts; or a :class:`Qrels`, :class:`Run`, or
            :class:`Collection`.
        target: The file to write, ``-`` for standard output. Its name determines format and
            compression: ``.csv.gz``, ``.parquet``, ``.jsonl.zst``, ... A collection is written as a
            new folder in BEIR layout, or as an archive if the name ends in ``.zip``.
        kind: The content of the source: ``qrels``, ``run``, ``queries``, or ``documents``. Required
            if it is ambiguous. For a collection, the part to write.
        source_format: Format of the source, if name and first line are misleading; alternatively,
            pass an :class:`InFormat` as `source`.
        target_format: The format to write, if the name does not determine it.
        name: The tag of a run in TREC format; default: that of the source.
        lossy: Whether to write the file even if the target cannot represent all of it (queries
            without judgments; titles, fields, and line breaks of texts) and count the losses.

    Raises:
        InputError: If the source cannot be read or is ambiguous, if source and target are the same
            file, or if the target cannot represent the data.
        UnknownName: If a kind or format is unknown.
        MissingExtra: If a library that the format needs is not installed.

    Example:
        >>> import tempfile
        >>> from rankgauge import Run, convert, read_run
        >>> run = Run.of({"q1": {"d1": 0.1, "d2": 1e-300}})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = convert(run, f"{folder}/run.tsv")
        ...     read_run(f"{folder}/run.tsv")["q1"]
        {'d1': 0.1, 'd2': 1e-300}
    """
    option("kind", kind or CONTENTS[0], CONTENTS)
    option("target_format", target_format or TARGET_FORMATS[0], TARGET_FORMATS)
    if isinstance(source, InFormat):
        source, source_format = source.path, source_format or source.format
    request = _Request(target, target_format, name, lossy=lossy)
    if isinstance(source, Qrels | Run):
        return _convert_in_memory(source, request)
    if isinstance(source, Collection) or _is_collection(source):
        return _collection_or_part(source, kind or _part_named(request), source_format, request)
    _refuse_itself(source, target)
    with _reopenable(source) as text:
        held = content_of(text, kind=kind, form=source_format, target=request.target_name)
        if held.kind in {"qrels", "run"}:
            return _pairs_converted(text, held, source_format, request)
        refuse_ending(request.target, request.format)
        # Read everything once to check all texts and ids before the first is written.
        if held.kind == "queries" and held.form in {"csv", "tsv", "jsonl"} and may_be_questions(text):
            rows = read_questions(text, {})[0]
        else:
            rows = kept(TextReader(text, source_format))
        return _lines_written(rows.values, held, text.name, request)


@dataclass(frozen=True)
class _Request:
    """The requested target and options."""

    target: Source
    format: str | None
    name: str | None
    lossy: bool

    @property
    def pairs_form(self) -> str:
        """Target format for judgments or a run."""
        named = None if self.target == "-" else target_format(source_name(self.target))
        return self.format or named or "trec"

    @property
    def target_name(self) -> str:
        """Name of the target for messages."""
        return "<stdout>" if self.target == "-" else source_name(self.target)


def _is_collection(source: Any) -> bool:
    """Return whether the source is a folder or an archive."""
    if source == "-" or not isinstance(source, str | os.PathLike):
        return False
    name = os.fspath(source)
    return os.path.isdir(name) or name.lower().endswith(".zip") or ".zip!" in name.lower()  # noqa: PTH112


def _refuse_itself(source: Source, target: Source) -> None:
    """Refuse to overwrite the source."""
    if source == "-" or target == "-":
        return
    try:
        same = os.path.samefile(source, target)  # noqa: PTH121 - a path may be text
    except (OSError, ValueError):
        return
    if same:
        raise InputError("the target is the source file", where=source_name(target), fix="name another file")


@contextmanager
def _reopenable(source: Source) -> Iterator[TextSource]:
    """Yield a source that can be opened repeatedly; standard input is first copied to a file."""
    if source != "-" and os.path.isfile(source):  # noqa: PTH113 - a path may be text
        yield TextSource.of(source)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stdin")  # noqa: PTH118 - it is opened by its name
        with opened(source) as stream, open(path, "wb") as copy:  # noqa: PTH123 - the same
            shutil.copyfileobj(stream, copy)
        yield TextSource(source_name(source), partial(opened, path), os.path.getsize(path), path)  # noqa: PTH202


# ---------------------------------------------------------------- judgments and runs


def _pairs_converted(source: TextSource, held: FileContent, source_format: str | None, request: _Request) -> Conversion:
    def copied(blocks: Iterator[Qrels | Run]) -> Conversion:
        first = next(blocks)
        unread = UnreadFields()
        if held.form == "trec":
            fields = unread_fields(source, layout)
            # If this document was not read first, the file only has as many fields as TREC.
            docs, lines = first.table.docs, first.table.lines
            first_doc = docs[0 if lines is None else int(np.argmin(lines))] if len(docs) else b""
            unread = fields if fields.doc in {b"", first_doc} else unread
        tally = Tally(request.pairs_form)
        tag = next(iter(unread.tags), b"").decode("utf-8", "replace")
        tag = request.name or tag or (first.name if isinstance(first, Run) else "")
        done = _written(chain([first], blocks), request, (source.name, held.form, tag), tally)
        losses = [*unread_losses(tally, unread, layout, name=request.name), *column_losses(source, held, layout)]
        if format_named(held.form).dropped:
            losses.append(format_named(held.form).dropped)
        return replace(done, losses=(*losses, *done.losses))

    layout = RUN if held.kind == "run" else JUDGMENTS
    form = _read_as(source, source_format)
    if layout is RUN and _is_plain(source):
        file = InFormat(source.path, form) if form else source.path
        blocks = PairFile(file, RUN, ranks=held.form == "trec").blocks()
        with suppress(InputError):
            return copied(Run(block, name=run_name(source.path)) for block in blocks)
    # If a block is refused, read the whole file to report the error with line numbers.
    return copied(iter([_read(source, layout, form)]))


def _is_plain(source: TextSource) -> bool:
    """Return whether the source is an original, uncompressed file, not a copy."""
    if source.name != source.path:
        return False
    with opened_bytes(source.path) as stream:
        return is_plain_file(stream)


def _read_as(source: TextSource, form: str | None) -> str | None:
    """Return the format to read the source as; None to detect it by name or first bytes."""
    if form is not None and form in TARGET_FORMATS and not format_named(form).named:
        form = format_named(form).read_as or None
    if form == "json" and ".csv" in source.name.lower():
        return "csv"  # table for import into OpenSearch
    return form


def _read(source: TextSource, layout: Layout, form: str | None) -> Qrels | Run:
    name = "run"
    if source.name == source.path:
        table = read_table(source.path, layout, form, ranks=True)
        name = run_name(source.path)
    else:
        # For a copied stream, messages use the name of the stream.
        with source.open() as stream:
            table = read_stream(stream, PairInput(layout, source.name, ranks=True), form)
    return Run(table, name=name) if layout is RUN else Qrels(table)


def _convert_in_memory(held: Qrels | Run, request: _Request) -> Conversion:
    """Convert judgments or a run in memory; most formats cannot store its name and settings."""
    losses: list[str] = []
    tag = ""
    if isinstance(held, Run):
        tag = request.name or held.name
        if request.pairs_form != "trec" and held.name != "run":
            losses.append(f"the name {held.name!r}: {request.pairs_form} cannot store it")
        if held.settings:
            losses.append(f"the settings of the run ({len(held.settings)})")
    source = held.table.source or ("run" if isinstance(held, Run) else "judgments")
    done = _written([held], request, (source, "memory", tag))
    return replace(done, losses=(*losses, *done.losses))


def _written(
    parts: Iterable[Qrels | Run], request: _Request, origin: tuple[str, str, str], tally: Tally | None = None
) -> Conversion:
    """Write judgments or a run, given in parts with different queries."""
    source, source_form, tag = origin
    tally = tally or Tally(request.pairs_form)
    refuse_ending(request.target, request.format)
    parts = iter(parts)
    first = next(parts)
    layout = RUN if isinstance(first, Run) else JUDGMENTS
    losses: list[str] = []

    def tables() -> Iterator[PairTable]:
        for part in chain([first], parts):
            table, more = _without_empty(part, request)
            losses.extend(more)
            yield table

    write_tables(tally.each(tables()), request.target, layout, tag, form=tally.form)
    if layout is JUDGMENTS:
        copy_description(first.table.source, request.target)
    missing = format_named(tally.form).missing
    return Conversion(
        source=source,
        target=request.target_name,
        kind="run" if layout is RUN else "qrels",
        source_format=source_form,
        target_format=tally.form,
        queries=tally.queries,
        rows=tally.rows,
        losses=(*losses, *tally.target_losses(tag)),
        notes=(*tally.notes, *([missing] if missing else [])),
    )


def _without_empty(held: Qrels | Run, request: _Request) -> tuple[PairTable, tuple[str, ...]]:
    """Drop queries that the target has no line for, and describe them."""
    table = held.table
    sizes = np.diff(table.offsets)
    empty = np.flatnonzero(sizes == 0)
    if not len(empty) or format_named(request.pairs_form).empty_queries:
        return table, ()
    # Queries without judgments affect means; an empty ranking is equivalent to a missing one.
    if isinstance(held, Qrels) and not request.lossy:
        return table, ()
    rows = np.flatnonzero(sizes)
    first = show_id(table.queries[int(empty[0])])
    what = "judgments" if isinstance(held, Qrels) else "documents"
    smaller = replace(table, queries=table.queries.take(rows), offsets=np.append(0, np.cumsum(sizes[rows])))
    return smaller, (f"{many(len(empty), 'query')} without {what}: '{first}'{rest(len(empty))}",)


# ---------------------------------------------------------------- queries and documents


def _lines_written(
    texts: Callable[[], Iterable[TextRow]], held: FileContent, source: str, request: _Request
) -> Conversion:
    name = request.target_name
    form = request.format or (None if request.target == "-" else target_format(name))
    if form is None and _TREC_NAME.search(unpacked(name).lower()):
        form = "trec"
    if form not in _TEXT_TARGETS:
        raise InputError(
            f"{form} cannot store {held.kind}" if form else f"the file name does not show the format of {held.kind}",
            where=name,
            fix=f"choose one of: {', '.join(_TEXT_TARGETS)} (--to, in Python target_format=...)",
        )
    loss_counter = LossCounter(form, name, request.lossy)
    with written(request.target) as stream:
        for line in text_lines(texts, form, held.kind, loss_counter):
            stream.write(line)
    return Conversion(
        source=source,
        target=name,
        kind=held.kind,
        source_format=held.form,
        target_format=form,
        queries=loss_counter.texts if held.kind == "queries" else 0,
        rows=loss_counter.texts,
        losses=tuple(loss_counter.messages()),
    )


# ---------------------------------------------------------------- collections


def _collection_or_part(source: Any, kind: Content | None, form: str | None, request: _Request) -> Conversion:
    """Convert a collection, or the part of it selected by `kind`."""
    if not isinstance(source, Collection) and kind in {"qrels", "run"}:
        # A single file inside is sufficient; texts are not required.
        read = read_run(source, format=form) if kind == "run" else read_qrels(source, format=form)
        layout = "zip" if os.path.isfile(source) else "folder"  # noqa: PTH113 - a path may be text
        tag = request.name or (read.name if isinstance(read, Run) else "")
        return _written([read], request, (source_name(source), layout, tag))
    held = source if isinstance(source, Collection) else Collection.load(source)
    name = held.name if isinstance(source, Collection) else source_name(source)
    if kind is None or kind == "collection":
        return _collection_converted(held, name, request)
    if kind == "qrels" and held.qrels is not None:
        return replace(_convert_in_memory(held.qrels, request), source=name)
    if kind in {"run", "qrels"}:
        fix = "choose queries or documents" if held.qrels is None else "choose queries, documents, or qrels"
        raise InputError(f"the collection has no {kind}", where=name, fix=fix)
    return _lines_written(partial(_rows, held, kind), FileContent(kind, "collection"), name, request)


def _part_named(request: _Request) -> Content | None:
    """Return the part of a collection named by the target file; None for a folder or archive."""
    name = request.target_name
    file = target_format(name) or unpacked(name).lower().endswith(_FILES)
    if request.target == "-" or request.format == "beir" or not file or os.path.isdir(name):  # noqa: PTH112
        return None
    kinds = kinds_named(name)
    if len(kinds) == 1:
        return kinds.pop()
    raise InputError(
        "a collection is written as a folder or a .zip of BEIR, not one file",
        where=name,
        fix="name a folder or .zip, or choose a part: --kind qrels (in Python kind=...)",
    )


def _collection_converted(held: Collection, source: str, request: _Request) -> Conversion:
    """Write a whole collection in BEIR layout."""
    name = source_name(request.target)
    if request.format not in {None, "beir"} or request.target == "-":
        raise InputError(
            "a collection is written as a folder or a .zip of BEIR",
            where=name,
            fix="name a folder or .zip, or choose a part: --kind (in Python kind=...)",
        )
    loss_counter = LossCounter("jsonl", name, request.lossy)
    parts: dict[str, Iterable[bytes]] = {
        _CORPUS: text_lines(partial(_rows, held, "documents"), "jsonl", "documents", loss_counter),
        _QUERIES: text_lines(partial(_rows, held, "queries"), "jsonl", "queries", loss_counter),
    }
    losses: tuple[str, ...] = ()
    if held.qrels is not None:
        judged, losses = _without_empty(held.qrels, replace(request, format="beir"))
        parts[_QRELS] = pair_lines([judged], JUDGMENTS, "beir", name=name)
    write_collection(request.target, parts)
    return Conversion(
        source=source,
        target=name,
        kind="collection",
        source_format="collection",
        target_format="beir",
        queries=len(held.queries),
        rows=len(held.documents),
        losses=(*losses, *loss_counter.messages()),
        notes=held.notes,
    )


def _rows(held: Collection, kind: Content) -> Iterable[TextRow]:
    if kind == "documents":
        return (TextRow(d.id, d.title, d.text, d.fields) for d in held.documents.values())
    return (TextRow(q.id, "", q.text, q.fields) for q in held.queries.values())
