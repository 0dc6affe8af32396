"""Import of judgments: qrels, files with several judges, and preferences."""

from __future__ import annotations

import math
import os
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rankgauge.core.arguments import choice as one_of
from rankgauge.core.text import keep, many
from rankgauge.data.preference_qrels import PreferenceQrels
from rankgauge.data.qrels import table_of_input
from rankgauge.errors import FormatError, InputError, UnknownName
from rankgauge.formats.columns import JUDGMENTS, column_word, columns_of, read_number
from rankgauge.formats.lines import UTF8_BOM, opened_bytes, source_name, start_of
from rankgauge.formats.records import row_cells
from rankgauge.formats.registry import InFormat, format_of
from rankgauge.formats.rows import id_texts
from rankgauge.judging.events import KINDS, Choice, Judge, Presentation, Question
from rankgauge.judging.project import JudgingProject
from rankgauge.judging.store import Transaction
from rankgauge.rendering import Result, Table

# Recognized names for the column of judges.
_JUDGES = ("judge", "judge_id", "rater", "annotator", "assessor", "worker", "user", "user_id")
_GRADED = ("query", "document", "grade")
_PAIRED = ("query", "left", "right", "winner")
_MORE = ("judge", "comment")
# Version number of an unknown guideline.
_UNKNOWN_GUIDELINE = 0
_SHOWN = 5
# Namespace of identifiers: equal judgments have equal identifiers, so reimports add no duplicates.
_NAMESPACE = uuid.UUID("3c1d6ad8-5d0c-4c52-9a51-5a6f6f1d2d0e")
_SETS = 3


class _Row(NamedTuple):
    """Judgment read from a file."""

    line: int
    query: str
    documents: tuple[str, ...]
    outcome: str
    best: tuple[str, ...] = ()
    grade: str | float | None = None
    judge: str = ""
    comment: str = ""
    id: str = ""  # identifier of the presentation, if the file has one


@dataclass(frozen=True)
class JudgmentImport(Result):
    """Result of an import of judgments.

    Attributes:
        source: The source of the judgments.
        judges: The names of the judges.
        new: The number of judgments added.
        changed: The number of judgments whose stored value differed; the new value now counts.
        known: The number of judgments that were already stored.
        unjudged: The number of documents with a negative grade (pooled but not judged), which are
            not imported.
        questions: The number of questions added.
        skipped: Messages about skipped rows.
    """

    source: str
    judges: tuple[str, ...]
    new: int
    changed: int
    known: int
    unjudged: int
    questions: int
    skipped: tuple[str, ...] = ()

    def table(self) -> Table:
        """Return the counts; notes list skipped rows."""
        more = len(self.skipped) - _SHOWN
        return Table(
            ("source", "judges", "new", "changed", "known", "unjudged", "skipped"),
            ((self.source, len(self.judges), self.new, self.changed, self.known, self.unjudged, len(self.skipped)),),
            notes=keep(*(f"skipped: {reason}" for reason in self.skipped[:_SHOWN]), more > 0 and f"and {more} more"),
            shortened=frozenset({0}),
        )

    def summary(self) -> str:
        """Return the counts that are not 0 as a sentence."""
        parts = ((self.changed, "changed"), (self.known, "known"), (len(self.skipped), "skipped"))
        new = f"{many(self.new, 'new judgment')} of {many(len(self.judges), 'judge')}"
        return ", ".join(keep(new, *(number and f"{number} {what}" for number, what in parts)))


def import_judgments(
    project: JudgingProject,
    source: Any,
    judge: str = "imported",
    *,
    kind: str = "person",
    preferences: bool = False,
    columns: Mapping[str, str] | None = None,
    several: bool = False,
    add_questions: bool = False,
    skip_bad: bool = False,
) -> JudgmentImport:
    """Import judgments made with other tools; on an error, import none of them.

    A grade becomes a graded judgment of one document; a preference group becomes a choice or a
    ranking. Questions are matched by identifier, then by text. Importing a file again adds new
    judgments and updates changed ones.

    Args:
        project: The project.
        source: Anything that :meth:`Qrels.of` accepts (an :class:`InFormat` sets the format of a
            file). With `columns` or a column of judges (``judge``, ``rater``, ``annotator``,
            ``worker``, ...), a CSV, TSV, or JSON lines file, or an export of Label Studio or
            Argilla.
        judge: The name of the judge of a file without a column of judges.
        kind: Who judged: ``person``, ``model``, or ``application``.
        preferences: Whether to read the source as preferences (:meth:`PreferenceQrels.of`).
        columns: Column names for ``query``, ``document``, and ``grade``; or for ``query``,
            ``left``, ``right``, and ``winner`` (``left``, ``right``, an identifier, ``tie``, or
            ``none``); and optionally for ``judge`` and ``comment``.
        several: Whether repeated judgments of a pair are by different, unnamed people. The first
            judgment of a pair is by ``JUDGE 1``, the second by ``JUDGE 2``.
        add_questions: Whether to add questions that are not in the project.
        skip_bad: Whether to skip and report rows that cannot be imported.

    Raises:
        InputError: If a row cannot be imported; the message has path and line.

    Example:
        >>> import tempfile
        >>> from rankgauge.judging import JudgingProject, export_judgments
        >>> project = JudgingProject.create(tempfile.mkdtemp() + "/judging.db")
        >>> qrels = {"q1": {"a": 2, "b": 0}}
        >>> import_judgments(project, qrels, "Ann", add_questions=True).new
        2
        >>> export_judgments(project).judgments["q1"]
        {'a': 2.0, 'b': 0.0}
    """
    one_of("kind", kind, KINDS)
    name = source_name(source, JUDGMENTS.name)
    faults: list[InputError] = []

    def refuse(error: InputError) -> None:
        if not skip_bad:
            raise error
        faults.append(error)

    if preferences:
        rows = list(_preference_rows(source, refuse, name))
    else:
        named = columns or _columns_of_judges(source)
        if named:
            rows = list(_named_rows(source, dict(named), refuse))
        else:
            rows = _qrels_rows(source, refuse if skip_bad else None)
    with project.writing() as stored:
        incoming = _Import(stored, name, judge, kind, add_questions=add_questions)
        for row in _with_numbered_judges(rows, judge) if several else rows:
            try:
                incoming.add(row)
            except InputError as error:
                refuse(error)
    return JudgmentImport(
        name,
        tuple(incoming.names),
        **{what: incoming.counts[what] for what in ("new", "changed", "known", "unjudged", "questions")},
        skipped=tuple(str(error) for error in faults),
    )


# ---- rows


def _qrels_rows(source: Any, refuse: Callable[[InputError], None] | None) -> list[_Row]:
    """Return the rows of judgments in any supported format."""
    on_error = None if refuse is None else lambda fault: refuse(fault.error)
    table = table_of_input(source, JUDGMENTS, on_error=on_error)
    queries = id_texts(table.queries)
    cells = zip(
        [0] * len(table) if table.lines is None else table.lines.tolist(),
        table.query_numbers().tolist(),
        id_texts(table.docs),
        table.values.tolist(),
        strict=True,
    )
    rows = [_Row(line, queries[n], (document,), "graded", grade=grade) for line, n, document, grade in cells]
    return sorted(rows, key=lambda row: row.line)


def _columns_of_judges(source: Any) -> dict[str, str] | None:
    """Return the columns of a file that has a column of judges, else None."""
    form = source.format if isinstance(source, InFormat) else None
    form = form or (format_of(os.fspath(source)) if _is_file(source) else None)
    # Other JSON, such as a Quepid case, has no rows.
    if form not in {"csv", "tsv", "jsonl", "json"} or (form == "json" and not _is_list(source)):
        return None
    header = next(row_cells(source), (0, {}))[1]
    if form == "json" and not header:
        raise FormatError(
            "there are no annotations: tasks are open or skipped",
            path=source_name(source),
            fix="annotate tasks, and export them again",
        )
    words = {column_word(name): name for name in reversed(list(header))}
    columns = columns_of(header, JUDGMENTS)
    judge = next((words[word] for word in _JUDGES if word in words), None)
    if columns is None or judge is None or judge in columns.read:
        return None
    return dict(zip(_GRADED, columns.read, strict=True)) | {"judge": judge, "comment": words.get("comment", "comment")}


def _is_list(source: str | os.PathLike[str]) -> bool:
    with opened_bytes(source) as stream:
        return start_of(stream).removeprefix(UTF8_BOM).lstrip()[:1] == b"["


def _is_file(source: Any) -> bool:
    return isinstance(source, str | os.PathLike) and Path(source).is_file()


def _named_rows(source: Any, columns: dict[str, str], refuse: Callable[[InputError], None]) -> Iterator[_Row]:
    """Yield the rows of a file whose columns were named."""
    paired = "winner" in columns
    wanted = _PAIRED if paired else _GRADED
    wrong = [key for key in columns if key not in {*wanted, *_MORE}]
    missing = [key for key in wanted if key not in columns]
    if wrong or missing:
        raise UnknownName(
            f"column {wrong[0]!r:.40} is not known" if wrong else f"no column for {missing[0]}",
            where="columns",
            fix=f"name the columns for {', '.join(wanted)}; optional: {', '.join(_MORE)}",
        )
    if not _is_file(source):
        raise InputError(
            "columns can be named only for a file",
            where=source_name(source, JUDGMENTS.name),
            fix="write CSV or JSON lines first",
        )
    for line, cells in row_cells(source):
        absent = [name for key, name in columns.items() if name not in cells and key != "comment"]
        if absent:
            raise FormatError(
                f"there is no column {absent[0]!r:.60}, but {', '.join(map(repr, cells)):.200}",
                path=source_name(source),
                line=line,
                fix="name columns of the file",
            )
        texts = {key: "" if cells.get(name) is None else str(cells[name]) for key, name in columns.items()}
        row = _Row(
            line, texts["query"], (), "graded", judge=texts.get("judge", "").strip(), comment=texts.get("comment", "")
        )
        if not paired:
            yield row._replace(documents=(texts["document"],), grade=texts["grade"])
            continue
        pair = (texts["left"], texts["right"])
        winner = {"left": pair[0], "right": pair[1]}.get(texts["winner"], texts["winner"])
        if winner in pair:
            yield row._replace(documents=pair, outcome="chosen", best=(winner,))
        elif winner in {"tie", "none"}:
            # A tie between two documents is not a valid choice.
            yield row._replace(documents=pair, outcome="none" if winner == "none" else "cannot tell")
        else:
            refuse(
                FormatError(
                    f"the winner is {winner!r:.60}",
                    path=source_name(source),
                    line=line,
                    fix="write left, right, the identifier of one of them, tie, or none",
                )
            )


def _preference_rows(source: Any, refuse: Callable[[InputError], None], name: str) -> Iterator[_Row]:
    """Yield a row for each group of preferences."""
    groups: dict[tuple[str, str], dict[str, dict[str, float]]] = defaultdict(dict)
    for query, group, part, document, grade in PreferenceQrels.of(source).rows():
        groups[query, group].setdefault(part, {})[document] = grade
    for (query, group), parts in groups.items():
        row = _ranking_of(query, group, next(iter(parts.values())))
        if row is not None and len(parts) == 1:
            yield row
            continue
        what, fix = "it has sub-groups", "write the implied preferences as separate groups"
        if len(parts) == 1:
            what = "two documents have the same grade above the lowest, or all have it"
            fix = "give different grades to documents that were ranked"
        refuse(InputError(what, where=f"{name}, query {query!r:.60}, group {group!r:.60}", fix=fix))


def _ranking_of(query: str, group: str, grades: Mapping[str, float]) -> _Row | None:
    """Return the choice or ranking equivalent to the grades of a group, or None."""
    documents = tuple(grades)
    if max(grades.values()) == 0:
        return _Row(0, query, documents, "none", id=group)
    least = min(grades.values())
    lowest = [document for document in documents if grades[document] == least]
    # Not ranked: documents of grade 0 or 1, and several documents that share the lowest grade.
    out = set(lowest) if least <= 1 or len(lowest) > 1 else set()
    best = sorted((document for document in documents if document not in out), key=lambda document: -grades[document])
    if not best or len({grades[document] for document in best}) < len(best):
        return None
    return _Row(0, query, documents, "chosen", tuple(best), id=group)


def _with_numbered_judges(rows: Iterable[_Row], judge: str) -> Iterator[_Row]:
    """Yield the rows; repeated judgments of a pair without a judge get ``JUDGE 1``, ``JUDGE 2``, ..."""
    seen: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for row in rows:
        seen[row.query, row.documents] += not row.judge
        yield row._replace(judge=row.judge or f"{judge} {seen[row.query, row.documents]}")


# ---- the project


class _Import:
    """Import of judgments into a project, within a transaction."""

    def __init__(self, stored: Transaction, name: str, judge: str, kind: str, *, add_questions: bool) -> None:
        self._stored, self._settings = stored, stored.settings()
        self._name, self._judge, self._kind, self._add_questions = name, judge, kind, add_questions
        self.counts: Counter[str] = Counter()
        self.names: dict[str, None] = {}  # of judges
        self._questions = stored.questions()
        self._by_text: dict[str, list[str]] = defaultdict(list)
        for question in self._questions.values():
            self._by_text[question.text].append(question.id)
        self._judges = stored.judges()
        self._presentations = {presentation.id: presentation for presentation in stored.presentations()}
        self._latest = {choice.presentation: choice for choice in stored.choices()}
        self._lines: dict[str, int] = {}  # the line of each presentation

    def add(self, row: _Row) -> None:
        """Store a row unless it is already known."""
        grades = (self._grade(row),) if row.outcome == "graded" else ()
        if any(grade < 0 for grade in grades):
            self.counts["unjudged"] += 1
            return
        for identifier in (row.query, *row.documents):
            if not identifier.strip():
                raise self._wrong(row, "an identifier is empty", "add one to each row")
        if len(set(row.documents)) < len(row.documents):
            raise self._wrong(row, "a document is compared with itself", "use two documents")
        question = self._question(row)
        judge = self._judge_of(row)
        shown = self._presentation(question, judge, row)
        if (line := self._lines.get(shown.id)) is not None:
            raise self._wrong(
                row,
                f"{row.documents[0]!r:.60} was judged for {row.query!r:.60} by this judge"
                + (f" in line {line}, too" if line else " before"),
                "keep one of them; with --several each is from a different judge",
            )
        choice = Choice(str(uuid.uuid4()), shown.id, judge.id, row.outcome, row.best, grades, comment=row.comment)
        try:
            choice.check(shown, self._settings)
        except InputError as error:
            raise self._wrong(row, error.what, error.fix) from None
        self._lines[shown.id] = row.line
        before, known = self._latest.get(shown.id), self._presentations.get(shown.id)
        if before is not None and _answer(before) == _answer(choice):
            self.counts["known"] += 1
            return
        if known is None:
            self._stored.append_presentation(shown)
        elif (known.judge, known.purpose) != (shown.judge, "import"):
            raise InputError(
                f"{shown.id} is a task of this project that somebody judged differently",
                where=self._name,
                fix="remove it, or let the judge judge it again",
            )
        self._stored.append_choice(choice)
        self.counts["new" if before is None else "changed"] += 1

    def _grade(self, row: _Row) -> int:
        labels = self._settings.grades
        grade = row.grade
        if isinstance(grade, str):
            if grade.strip() in labels:
                return labels.index(grade.strip())
            try:
                grade = read_number(grade.strip().encode())
            except ValueError:
                grade = None
        if grade is None or not math.isfinite(grade) or grade % 1 or grade >= len(labels):
            raise self._wrong(
                row,
                f"the grade {row.grade!r:.40} is not one of the {len(labels)} grades of the project",
                f"use integer grades from 0 to {len(labels) - 1}, or change the scale: rankgauge "
                "judge settings --grade LABEL ...",
            )
        return int(grade)

    def _question(self, row: _Row) -> str:
        if row.query in self._questions:
            return row.query
        same = self._by_text.get(row.query, [])
        if len(same) == 1:
            return same[0]
        if same:
            raise self._wrong(
                row, f"{len(same)} questions have the text {row.query!r:.60}", "use the identifier of one of them"
            )
        if not self._add_questions:
            raise self._wrong(
                row,
                f"the project has no question {row.query!r:.60}",
                "add it: rankgauge judge questions FILE; or import with --add-questions",
            )
        added = Question(row.query, row.query, author=self._name)
        self._stored.add_questions([added])
        self._questions[added.id] = added
        self.counts["questions"] += 1
        return added.id

    def _judge_of(self, row: _Row) -> Judge:
        name = row.judge or self._judge
        same = [judge for judge in self._judges.values() if judge.kind == self._kind and name in {judge.id, judge.name}]
        if len(same) > 1:
            raise InputError(
                f"{len(same)} judges have the name {name!r:.60}",
                where=self._name,
                fix="use the identifier of one of them",
            )
        if not same:
            same = [Judge(uuid.uuid4().hex[:12], name, kind=self._kind)]
            self._stored.add_judge(same[0])
            self._judges[same[0].id] = same[0]
        self.names[name] = None
        return same[0]

    def _presentation(self, question: str, judge: Judge, row: _Row) -> Presentation:
        mode = "graded"
        if row.outcome != "graded":
            mode = "choice" if len(row.documents) <= _SETS and len(row.best) <= 1 else "ranking"
        words = (judge.id, question, *sorted(row.documents), mode, row.id)
        # A UUID was exported by this or another judging project.
        name = row.id if _is_uuid(row.id) else str(uuid.uuid5(_NAMESPACE, "\0".join(words)))
        return Presentation(name, question, row.documents, judge.id, mode, "import", guideline=_UNKNOWN_GUIDELINE)

    def _wrong(self, row: _Row, what: str, fix: str) -> InputError:
        pair = "" if row.line else f", query {row.query!r:.60}, document {row.documents[0]!r:.60}"
        return FormatError(what, path=self._name + pair, line=row.line, fix=fix)


def _answer(choice: Choice) -> tuple[Any, ...]:
    return choice.outcome, choice.documents, choice.grades, choice.comment


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
