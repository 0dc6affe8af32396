"""Detect the content of a file: judgments, a run, queries, or documents."""

from __future__ import annotations

import csv
import os
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

from rankgauge.errors import InputError
from rankgauge.formats import sgml
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout, columns_of
from rankgauge.formats.json_files import Nested
from rankgauge.formats.lines import COLUMNAR, UTF8_BOM, is_columnar, is_content, opened_bytes, read_bytes, start_of
from rankgauge.formats.questions import may_be_questions
from rankgauge.formats.readers import first_object
from rankgauge.formats.registry import FORMATS, Content, format_of
from rankgauge.formats.rows import PairInput
from rankgauge.formats.texts import IDS, QUESTIONS, TEXTS, TextSource
from rankgauge.formats.trec import is_line

_SAID = {"qrels": "judgments", "run": "a run", "queries": "queries", "documents": "documents"}
# Words in names of files and folders.
_WORDS: dict[Content, set[str]] = {
    "qrels": {"qrels", "qrel", "judgments", "judgements", "ratings"},
    "run": {"run", "runs", "results"},
    "queries": {"queries", "query", "topics", "questions"},
    "documents": {"corpus", "documents", "docs", "collection"},
}
_SIDES: tuple[tuple[Content, Layout], ...] = (("qrels", JUDGMENTS), ("run", RUN))
# Formats for only one kind of pairs.
_OF_FORM = {
    form.name: sides
    for form in FORMATS
    if len(sides := tuple(side for side in form.reads if side in {"qrels", "run"})) == 1
}
# Names of number columns that only judgments have, or only runs.
_GRADES = {"relevance", "rel", "grade", "label", "judgment", "rating"}
_SCORES = {"sim", "similarity", "rank"}
_BEIR = ("query-id", "corpus-id", "score")
_OF_QUERY = {"query_id", "qid", "query-id", *QUESTIONS}
_OF_DOCUMENT = {"docno", "doc_id", "docid", "corpus-id", "title", "contents", "body", "abstract"}
_OF_QUESTIONS: tuple[Content, ...] = ("qrels", "queries")
_HEAD = 1 << 18


@dataclass(frozen=True)
class FileContent:
    """The detected content of a file."""

    kind: Content  # judgments, a run, queries, or documents
    form: str  # format, as far as determined by name and first line
    columns: tuple[str, ...] = ()  # column names, if any


def content_of(
    source: TextSource | str | os.PathLike[str],
    *,
    kind: Content | None = None,
    form: str | None = None,
    target: str = "",
) -> FileContent:
    """Detect the content of a file: ``qrels``, ``run``, ``queries``, or ``documents``.

    Args:
        source: The file.
        kind: The content, if it is known.
        form: The format, if it is known.
        target: The name of the file to write, whose words decide for a table of questions and documents.

    Raises:
        InputError: If the content is ambiguous.

    Example:
        >>> from rankgauge.sample import sample_path
        >>> content_of(sample_path("qrels.txt")).kind
        'qrels'
    """
    source = source if isinstance(source, TextSource) else TextSource.of(source)
    possible, guessed, columns = _possible(source, form)
    if kind is not None:
        return FileContent(kind, form or guessed, columns)
    # The name of the file, or else of its folder.
    folder, base = os.path.split(os.path.abspath(source.name))  # noqa: PTH100 - a name, perhaps no file
    kinds = kinds_named(base) or kinds_named(folder)
    if possible == _OF_QUESTIONS:
        kinds = kinds_named(target)
    named = [content for content in possible if content in kinds]
    if len(possible) > 1 and len(named) == 1:
        possible = (named[0],)
    if len(possible) == 1:
        return FileContent(possible[0], form or guessed, columns)
    what = " or ".join(_SAID[content] for content in possible)
    choices = " or ".join(f"--kind {content}" for content in (possible or _SAID))
    read = "" if form is None else f" in the format {form}"
    raise InputError(
        f"this may be {what}" if possible else f"this cannot be converted{read}",
        where=source.name,
        fix=f"specify which: {choices} (in Python kind=...)",
    )


def kinds_named(name: str) -> set[Content]:
    """Return the kinds of content suggested by the words of a name."""
    words = set(re.split(r"[^a-z]+", os.path.basename(name).lower()))  # noqa: PTH119 - it is text
    return {kind for kind, those in _WORDS.items() if words & those}


_Possible: TypeAlias = tuple[tuple[Content, ...], str, tuple[str, ...]]


def _possible(source: TextSource, form: str | None) -> _Possible:
    """Return the possible kinds of content, the format, and the column names of a file."""
    if source.path:
        with opened_bytes(source.path) as stream:
            start = start_of(stream)
            if is_columnar(start, source.name):
                from rankgauge.formats.parquet import column_names

                columns = column_names(stream, source.name)
                text = "parquet" if start.startswith(COLUMNAR[0]) else "arrow"
                return _by_columns(columns), text, columns
    with source.open() as stream:
        head = read_bytes(stream, source.name, _HEAD)
    head = head.removeprefix(UTF8_BOM)
    whole = head[: head.rfind(b"\n") + 1] or head
    lines = [line.strip(b"\r\n") for line in whole.splitlines() if is_content(line)]
    if not lines:
        raise InputError("the file is empty", where=source.name, fix="use a file with data")
    if form in _OF_FORM:
        return _OF_FORM[form], form, ()
    first = lines[0]
    if sgml.begins(first):
        # A document may mention its topic.
        element = re.search(rb"<(top|topic|doc)[\s>]", head, re.IGNORECASE)
        topics = element is not None and element[1].lower() != b"doc"
        return (("queries",) if topics else ("documents",)), "trec", ()
    form = form or format_of(source.name)
    if form in {"csv", "tsv", "jsonl"} and may_be_questions(source):
        return _OF_QUESTIONS, form, ()
    if first.lstrip().startswith((b"{", b"[")):
        return _of_json(first, form, head)
    return _of_lines(lines, form)


def _by_columns(columns: tuple[str, ...]) -> tuple[Content, ...]:
    """Return the kinds of content with these columns or keys."""
    names = tuple(name.strip().strip('"').lower() for name in columns)
    kinds = _pairs_by_columns(names)
    if kinds or set(names).isdisjoint(IDS) or set(names).isdisjoint(TEXTS):
        return kinds
    asked, of_document = set(names) & _OF_QUERY, set(names) & _OF_DOCUMENT
    if bool(asked) == bool(of_document):
        return ("queries", "documents")
    return ("queries",) if asked else ("documents",)


def _pairs_by_columns(names: tuple[str, ...]) -> tuple[Content, ...]:
    if names[:3] == RUN.columns:
        return ("run",)
    if names[:3] == _BEIR or set(names) >= {"query", "docid", "rating"}:
        return ("qrels",)
    chosen = (columns_of(names, layout) for _, layout in _SIDES)
    values = {columns.value for columns in chosen if columns is not None}
    if len(values) > 1:
        values.discard("rank")  # judgments may include the rank of a document
    if not values:
        return ()
    if values <= _GRADES:
        return ("qrels",)
    return ("run",) if values <= _SCORES else ("qrels", "run")


def _of_json(first: bytes, form: str | None, head: bytes) -> _Possible:
    if re.match(rb'\s*\{\s*"requests"\s*:', head):
        return ("qrels",), "rank-eval", ()
    if b'"judgmentRatings"' in head:
        return ("qrels",), "opensearch", ()
    value: Any = first_object(first)
    keys = tuple(value) if isinstance(value, dict) else ()
    kinds = _by_columns(keys) if form != "json" else ()
    if kinds:
        return kinds, form or "jsonl", keys
    row = value[0] if isinstance(value, list) and value else value
    if isinstance(row, dict):
        nested = tuple(kind for kind, layout in _SIDES if Nested.of(row, PairInput(layout, "")) is not None)
        if nested:
            return nested, form or ("json" if row is not value else "jsonl"), tuple(row)
    return ("qrels", "run"), form or "json", ()


def _of_lines(lines: list[bytes], form: str | None) -> _Possible:
    first = lines[0]
    for mark, form_name in (("\t", "tsv"), (",", "csv")):
        if form in {form_name, None} or mark == "\t":
            try:
                cells = next(csv.reader([first.decode("utf-8", "replace")], delimiter=mark), [])
            except csv.Error:
                cells = []  # the reader reports the error
            kinds = _by_columns(tuple(cells))
            if kinds:
                return kinds, form_name, tuple(cells)
    if form != "csv":
        kinds = _of_fields(lines, first.split(b"\t"))
        if kinds:
            return kinds, "trec" if form != "tsv" else form, ()
    separator = b"\t" if form != "csv" else b","
    return (("queries", "documents") if separator in first else ()), form or "tsv", ()


def _of_fields(lines: list[bytes], cells: list[bytes]) -> tuple[Content, ...]:
    """Return the possible kinds of content of lines of fields without a header."""
    if len(cells) == 2 or (len(cells) == 3 and not is_line(cells, JUDGMENTS)):
        return ()
    width = len(lines[0].split())
    if width == 6 and all(is_line(line.split(), RUN) for line in lines):
        return ("run",)
    if width not in {3, 4} or not all(is_line(line.split(), JUDGMENTS) for line in lines):
        return ()
    thirds = [line.split()[2] for line in lines] if width == 3 else []
    ranks = bool(thirds) and all(part.isdigit() and part != b"0" for part in thirds)
    return ("qrels", "run") if ranks else ("qrels",)
