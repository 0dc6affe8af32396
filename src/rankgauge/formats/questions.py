"""Read question files that list relevant documents, and plain query files."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Collection, Container, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from rankgauge.errors import FormatError, InputError
from rankgauge.formats.columns import JUDGMENTS, RUN, columns_of
from rankgauge.formats.delimited import DELIMITERS, named_cells, numbered_rows
from rankgauge.formats.experiments import is_example, records_of_example
from rankgauge.formats.json_files import json_document, objects
from rankgauge.formats.lines import UTF8_BOM, numbered_lines
from rankgauge.formats.registry import format_of, unpacked
from rankgauge.formats.texts import (
    IDS,
    QUESTIONS,
    Faults,
    TextReader,
    TextRow,
    TextSource,
    add_fault,
    id_of,
    located,
    read_texts,
)

_ASKED = (*QUESTIONS, "text", "title", "questions", "user_input", "prompt", "input", "q")
_RELEVANT = (
    "relevant",
    "expected",
    "relevant_documents",
    "relevant_docs",
    "relevant_ids",
    "expected_documents",
    "expected_docs",
    "doc_ids",
    "doc_id",
)
# Columns of documents if queries have no ids; otherwise ordinary fields.
_WEAK = ("documents", "document", "docs", "doc", "sources", "source", "files", "file")
_GRADES = ("grade", "relevance", "score")
# Names of columns whose documents are results of a search, or the opposite of relevant.
_OTHER_DOCUMENTS = re.compile(
    r"(^|_)(not|non|un|hits?|top)(_|$)|irrel|wrong|incorrect|negativ|distract|exclu|unrel|retriev|result|predict|actual|found"
)
# The id column of a question must not be mistaken for that of a document.
_OWN_IDS = tuple(name for name in IDS if name not in {"doc_id", "docno", "docid", "corpus-id"})
_SEPARATOR = re.compile(r"[;|\n]")
# Separators of columns that programs use in some locales.
_OTHERS = ";|\t,"
# A file with this name is not a table of id and text.
_QUESTIONS = re.compile(r"questions\.[a-z]+$")
# Number of rows that decide whether a column contains documents.
_SAMPLED = 50
_EXAMPLE = "question,relevant and a line: how long do refunds take,refunds.md;orders/faq.md"

# Query id to document id to grade.
Grades: TypeAlias = Mapping[str, Mapping[str, float]]
Questions: TypeAlias = tuple[Mapping[str, TextRow], Grades | None]


def read_questions(source: TextSource, documents: Mapping[str, Any], faults: Faults | None = None) -> Questions:
    """Read queries, and grades if the file lists relevant documents.

    Such a file is CSV, TSV, or JSON lines with a column for the question (``question``, ``query``,
    ``text``) and one for the documents (``relevant``, ``expected``, ``doc_id``, ..., or the only
    column of any name that contains documents): several ids separated by ``;``, in JSON also a list
    or a mapping from id to grade; or one line per pair. An
    id of the query (``id``, ``query_id``) and a ``grade`` are optional; questions without an id are
    numbered from q1.
    """
    names, separator = _header(source)
    if _column(names, _ASKED) is None and names and _QUESTIONS.search(unpacked(source.name)):
        raise FormatError(
            f"there is no column for the question: the columns are {', '.join(map(repr, names))}",
            path=source.name,
            line=1,
            fix=f"name it question, as in {_EXAMPLE}",
        )
    if source.path and not source.size:
        raise FormatError("there are no questions: the file is empty", path=source.name, fix=f"write {_EXAMPLE}")
    relevant = _relevant(names) or _column_of_documents(source, names, documents)
    # Without a misspelled column, documents or grades would be ignored.
    for known, column in ((_RELEVANT, relevant), (_GRADES, _column(names, _GRADES))):
        if column is not None:
            continue
        for name in names:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.86)
            if near:
                raise FormatError(
                    f"unknown column {name!r}", path=source.name, line=1, fix=f"did you mean {near[0]!r}?"
                )
    usual = separator == DELIMITERS.get(format_of(source.name) or "", "")
    if _column(names, _ASKED) is None or (relevant is None and usual and _column(names, _OWN_IDS) is not None):
        return {row.id: row for row in read_texts(TextReader(source), faults)}, None
    answers = _Answers(documents, source, relevant)
    for number, row in named_rows(source, faults):
        try:
            answers.add(row)
        except InputError as error:
            add_fault(located(error, source.name, number), faults)
    judged = {query: grades for query, grades in answers.grades.items() if grades}
    return answers.queries, judged if judged or answers.has_documents else None


def may_be_questions(source: TextSource) -> bool:
    """Return whether the columns of a file are a question and its relevant documents.

    A column ``query`` may contain ids or texts; it contains questions if a value contains a space.
    """
    names, _ = _header(source)
    asked = _column(names, QUESTIONS)
    pairs = any(columns_of(names, layout) is not None for layout in (JUDGMENTS, RUN))
    if asked is None or pairs or _relevant(names) is None:
        return False
    return asked == QUESTIONS[0] or any(
        isinstance(row.get(asked), str) and " " in row[asked].strip() for _, row in named_rows(source, Faults())
    )


class _Answers:
    """Collector of questions and their relevant documents."""

    def __init__(self, documents: Mapping[str, Any], source: TextSource, relevant: str | None = None) -> None:
        self._documents, self._column = documents, relevant
        self._folder = Path(source.path or source.name).resolve().parent.name
        self._keys: dict[str, str] = {}
        self.queries: dict[str, TextRow] = {}
        self.grades: dict[str, dict[str, float]] = {}
        # A column for documents, even if empty, means that the file contains the judgments.
        self.has_documents = False

    def add(self, row: dict[str, Any]) -> None:
        asked, relevant = _column(row, _ASKED), self._column if self._column in row else _relevant(row)
        self.has_documents |= relevant is not None
        own, grade = _column(row, _OWN_IDS), _column(row, _GRADES)
        text = "" if asked is None else row[asked]
        if not isinstance(text, str) or not text.strip():
            raise InputError("there is no question", fix=f"use {_EXAMPLE}")
        text = text.strip()
        own_id = None if own is None else row[own]
        if own_id is None or own_id == "":
            # With one line per pair, equal questions are the same query.
            key = self._keys.setdefault(text, f"q{len(self._keys) + 1}")
        else:
            key = id_of(own_id.strip() if isinstance(own_id, str) else own_id)
        used = {asked, relevant, own, grade if relevant else None}
        fields = {k: v for k, v in row.items() if k not in used and v is not None and v != ""}
        grades = self._documents_of(None if relevant is None else row[relevant])
        if grade is not None and relevant is not None and row[grade] not in {None, ""}:
            grades = dict.fromkeys(grades, _grade(row[grade]))
        known = self.queries.setdefault(key, TextRow(key, "", text, fields))
        if known.text != text:
            raise InputError(f"question {key!r} occurs before with another text", fix="give each question a unique id")
        self.grades.setdefault(key, {}).update(grades)

    def has_documents_in(self, values: Collection[Any]) -> bool:
        """Return whether most values are documents; numbers may have another meaning."""
        parts = [value if isinstance(value, list) else _SEPARATOR.split(str(value)) for value in values if value]
        found = (all(self._known(str(part).strip()) and not str(part).isdigit() for part in ids) for ids in parts)
        return sum(found) > len(parts) / 2

    def _known(self, key: str) -> str:
        """Return the document with this id, or with this path from or in the folder; empty if there is none."""
        plain = key.replace("\\", "/").removeprefix("./")
        inside = f"/{plain}".partition(f"/{self._folder}/")[2]
        beside = f"{self._folder}/{plain}"
        return next((name for name in (key, plain, inside, beside) if name in self._documents), "")

    def _documents_of(self, value: Any) -> dict[str, float]:
        if value is None:
            return {}
        if isinstance(value, str):
            # An id may contain the separator.
            whole = value.strip()
            value = [whole] if whole in self._documents else [part.strip() for part in _SEPARATOR.split(whole)]
        elif isinstance(value, int) and not isinstance(value, bool):
            value = [value]
        if isinstance(value, Mapping):
            return {self._doc(k): _grade(v) for k, v in value.items()}
        if not isinstance(value, list):
            raise InputError(f"got {value!r:.60} for documents", fix=f"use {_EXAMPLE}")
        return {self._doc(name): 1.0 for name in value if name not in {"", None}}

    def _doc(self, value: Any) -> str:
        value = value.strip() if isinstance(value, str) else value
        key = id_of(value, "a document", "use its id as text")
        if found := self._known(key) if self._documents else key:
            return found
        plain = key.replace("\\", "/").removeprefix("./")
        if all(part in self._documents for part in re.split(r"[,\s]+", plain)):
            fix = "separate documents with ';'"
        else:
            known = list(itertools.islice(self._documents, 5000))
            near = [name for name in known if name.casefold() == plain.casefold()]
            near = near or [name for name in difflib.get_close_matches(plain, known, 10, 0.5) if _similar(plain, name)]
            fix = f"did you mean {near[0]!r}?" if near else "use the id of a document: its path"
        raise InputError(f"there is no document {key!r}", fix=fix)


def _grade(value: Any) -> float:
    try:
        grade = float(value)
    except (TypeError, ValueError):
        grade = float("nan")
    if not abs(grade) < 1e100 or isinstance(value, bool):
        raise InputError(f"got {value!r:.60}, expected a grade", fix="use a number: 1, 2, 3")
    return grade


def _column_of_documents(source: TextSource, names: Collection[str], documents: Mapping[str, Any]) -> str | None:
    """Return the only column, of any name, most of whose first values are documents."""
    if not documents:
        return None
    rows = [row for _, row in itertools.islice(named_rows(source, Faults()), _SAMPLED)]
    answers = _Answers(documents, source)
    others = [name for name in names if name not in {*_ASKED, *_OWN_IDS} and not _OTHER_DOCUMENTS.search(name)]
    found = [name for name in others if answers.has_documents_in([row.get(name) for row in rows])]
    return found[0] if len(found) == 1 else None


def _column(row: Container[str], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in row), None)


def _relevant(row: Container[str]) -> str | None:
    strong = _column(row, _RELEVANT)
    return strong if strong or _column(row, _OWN_IDS) else _column(row, _WEAK)


def _header(source: TextSource) -> tuple[tuple[str, ...], str]:
    """Return the names of columns or keys, if there are any, and the separator of columns.

    JSON documents and examples of other tools, which only `named_rows` reads, have the separator ``rows``.
    """
    if not source.path:  # standard input cannot be inspected in advance
        return (), DELIMITERS.get(format_of(source.name) or "", "")
    first = next((row for _, row in _rows(source, Faults())), {})
    if format_of(source.name) in DELIMITERS and not is_example(first):
        return _columns(source)
    return tuple(next(_named(first), ())), "rows" if is_example(first) or _is_document(source) else ""


def _columns(source: TextSource) -> tuple[tuple[str, ...], str]:
    """Return the names of the columns of a table, if it has a header, and their separator."""
    usual = DELIMITERS[format_of(source.name) or ""]
    names: tuple[str, ...] = ()
    for by in (usual, *_OTHERS):
        with source.open() as stream, suppress(FormatError):
            rows = numbered_rows(numbered_lines(stream, source.name), source.name, by)
            found = next((tuple(map(_word, cells)) for _, cells in rows if any(cells)), ())
            if _column(found, _ASKED if by == usual else QUESTIONS) is not None:
                return found, by
            names = names or found
    return names, usual


def named_rows(source: TextSource, faults: Faults | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield rows with named cells; nothing if the file has no names (another reader reads it)."""
    for number, row in _rows(source, faults):
        yield from ((number, named) for named in _named(row))


def _named(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the row, or the questions of an example of another tool, by names of columns."""
    if is_example(row):
        yield from records_of_example(row, answers=False)
    else:
        yield {_word(key): value for key, value in row.items()}


def _is_document(source: TextSource) -> bool:
    """Return whether a file is one JSON list, or one object on several lines."""
    if format_of(source.name) != "json":
        return False
    with source.open() as stream:
        start = stream.read(1 << 10).removeprefix(UTF8_BOM).strip().partition(b"\n")[0].strip()
        return start == b"{" or start[:1] == b"["


def _rows(source: TextSource, faults: Faults | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield rows as they are in the file."""
    form, report = format_of(source.name), None if faults is None else faults.add
    if form not in {"csv", "tsv", "json", "jsonl"}:
        return
    separator = "" if form not in DELIMITERS else _columns(source)[1] if source.path else DELIMITERS[form]
    whole = not separator and _is_document(source)
    with source.open() as stream:
        lines = numbered_lines(stream, source.name)
        if separator:
            yield from named_cells(lines, source.name, separator, key=_word, on_error=report)
        elif whole:
            found = json_document(lines, source.name, "a list of questions")
            rows = found if isinstance(found, list) else [found]
            yield from ((number, row) for number, row in enumerate(rows, 1) if isinstance(row, dict))
        else:
            yield from objects(lines, source.name, report)


def _similar(key: str, name: str) -> bool:
    """Return whether two paths have similar file names, apart from the extension."""
    a, b = (PurePosixPath(path).stem.casefold() for path in (key, name))
    return difflib.SequenceMatcher(None, a, b).ratio() >= 0.5


def _word(column: str) -> str:
    return "_".join(column.lower().split())
