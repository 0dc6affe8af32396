"""Questions of a judging project, from a file, a collection or a page; and hidden tests."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rankgauge.corpus import Collection, Query
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.questions import named_rows, read_questions
from rankgauge.formats.texts import TextRow, TextSource
from rankgauge.judging.events import GoldTask, Question
from rankgauge.judging.project import JudgingProject

# Recommended number of questions without a plan, and the number for a first evaluation.
_TARGET = 100
_FIRST_LOOK = 20
_MOST_TEXT = 5_000  # characters of a question
_NEEDS = ("need", "information_need", "narrative", "description", "desc", "narr")
_AUTHORS = ("author", "written_by")


def load_questions(
    source: str | os.PathLike[str], collection: Collection | None = None, *, author: str = ""
) -> list[Question]:
    """Read questions from a file of queries, or from a collection that has queries.

    A file may name the documents that answer each question, as for `Collection.load`; a column
    ``need`` (or ``narrative``, ``description``) becomes the information need, ``author`` the
    author.

    Args:
        source: A file of queries or questions, or whatever `Collection.load` takes.
        collection: The documents; if given, each answering document must be one of them.
        author: The author of questions that name none.

    Raises:
        FormatError: With the first line that cannot be read.
        InputError: If there is no question, or an answering document is not in the collection.

    Example:
        >>> from rankgauge.sample import sample_path
        >>> load_questions(sample_path("queries.jsonl"))[0].text
        'how do i renew'
    """
    answers: dict[str, tuple[str, ...]] = {}
    if str(source) != "-" and not Path(source).is_file():
        queries: Mapping[str, Query | TextRow] = Collection.read(source).queries
    else:
        documents = {} if collection is None else collection.documents
        queries, grades = read_questions(TextSource.of(source), documents)
        answers = {
            query: tuple(name for name, grade in judged.items() if grade > 0)
            for query, judged in (grades or {}).items()
        }
    if not queries:
        raise InputError(
            "there are no questions", where=str(source),
            fix="give a file with a question on each line, such as JSON lines of id and text",
        )  # fmt: skip
    return [
        Question(
            query.id,
            query.text,
            need=_field(query, _NEEDS),
            author=_field(query, _AUTHORS) or author,
            answers=answers.get(query.id, ()),
        )
        for query in queries.values()
    ]


def questions_of(drawn: Iterable[Any], author: str = "") -> list[Question]:
    """Return the questions of a log or a question set as a judging project stores them.

    Args:
        drawn: What `rankgauge.production` draws or generates: questions with text, origin and
            probability.
        author: The author of the questions; the model that generated them if empty.
    """
    return [
        Question(
            each.id, each.text, author=author or each.model, origin=each.origin,
            probability=each.probability, answers=(each.document,) if each.document else (),
        )
        for each in drawn
    ]  # fmt: skip


def write_question(
    project: JudgingProject,
    text: str,
    *,
    need: str = "",
    answers: Iterable[str] = (),
    author: str = "",
) -> Question:
    """Add a question that somebody wrote; return it with its identifier.

    Args:
        project: The project.
        text: The question.
        need: The information need behind it.
        answers: Identifiers of documents that answer it, as far as they are known.
        author: Who wrote it.

    Raises:
        InputError: If there is no text, it is too long, it was asked before, or a document is
            unknown to the project.
    """
    text, need = text.strip(), need.strip()
    if not text or max(len(text), len(need)) > _MOST_TEXT:
        raise InputError(
            f"the question has {len(text):,} characters, the information need {len(need):,}",
            where="question", fix=f"write 1 to {_MOST_TEXT:,} characters",
        )  # fmt: skip
    same = [each for each in project.questions.values() if each.text.casefold() == text.casefold()]
    if same:
        raise InputError(
            f"the question already exists as {same[0].id}", where="question",
            fix="write another question",
        )  # fmt: skip
    names = tuple(dict.fromkeys(filter(None, map(str.strip, answers))))
    unknown = [name for name in names if name not in project.documents(names)]
    if unknown:
        raise InputError(
            f"there is no document {unknown[0]!r:.60} in this project", where="question",
            fix="give identifiers of documents in its pools, or leave them out",
        )  # fmt: skip
    question = Question(
        f"page-{uuid.uuid4().hex[:8]}", text, need, author, "page",
        datetime.now(UTC).isoformat(timespec="seconds"), answers=names,
    )  # fmt: skip
    project.add_questions([question])
    return question


def load_gold(source: str | os.PathLike[str], project: JudgingProject) -> list[GoldTask]:
    """Read hidden tests: sets of documents with the answers to accept.

    Args:
        source: CSV, TSV or JSON lines with ``question`` (its identifier), ``documents`` and
            ``accepted``: identifiers, in JSON a list, else separated by ``;``. Without an accepted
            document, "none" is the answer.
        project: The project, which has these questions and the texts of these documents.

    Raises:
        FormatError: With the first line that cannot be read, or does not fit the project.
    """
    read = TextSource.of(source)
    questions = project.questions
    tasks = []
    for line, row in named_rows(read, None):
        documents, accepted = (_listed(row.get(name)) for name in ("documents", "accepted"))
        question = str(row.get("question", ""))
        missing = [each for each in documents if each not in project.documents(documents)]
        what = ""
        if question not in questions:
            what = f"there is no question {question!r:.60} in the project"
        elif missing:
            what = f"there is no document {missing[0]!r:.60} in the project"
        elif not documents or len(set(documents)) < len(documents):
            what = f"the documents are {list(documents)!r:.60}"
        elif not set(accepted) <= set(documents):
            what = f"the accepted documents {list(accepted)!r:.60} are not all shown"
        if what:
            raise FormatError(
                what, path=read.name, line=line,
                fix="give a question of the project, documents of its pools, and which of them are "
                'accepted: {"question": "q1", "documents": ["d1", "d2"], "accepted": ["d2"]}',
            )  # fmt: skip
        tasks.append(GoldTask(question, documents, accepted))
    if not tasks:
        raise InputError(
            "there are no hidden tests", where=str(source),
            fix="give CSV or JSON lines with question, documents and accepted",
        )  # fmt: skip
    return tasks


def _listed(given: Any) -> tuple[str, ...]:
    parts = given if isinstance(given, list) else str(given or "").split(";")
    return tuple(str(part).strip() for part in parts if str(part).strip())


def advice(questions: int) -> str:
    """Return the warning for too few questions; empty if there are enough."""
    if questions >= _TARGET:
        return ""
    first = "enough" if questions >= _FIRST_LOOK else f"{_FIRST_LOOK} are enough"
    return f"{first} for a first look; aim for {_TARGET} (see rankgauge judge size)"


def _field(query: Query | TextRow, names: tuple[str, ...]) -> str:
    return next((str(query.fields[name]) for name in names if query.fields.get(name)), "")
