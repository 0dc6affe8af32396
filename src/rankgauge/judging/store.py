"""Transactions on the tables of a judging project, with SQL and no judging logic."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from rankgauge.errors import InputError
from rankgauge.judging.events import (
    Answer,
    Candidate,
    Choice,
    Document,
    GoldTask,
    Judge,
    Presentation,
    Question,
    Settings,
    Source,
)
from rankgauge.store.schema import SCHEMA

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table


_Stored = TypeVar("_Stored")
_AT_ONCE = 500
_MOST_ID = 500  # characters of an identifier
_MOST_UUID = 36
_MOST_BODY = 2_000_000  # characters of a document


class Transaction:
    """Reads and writes within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _table(self, name: str) -> Table:
        return SCHEMA.table(f"judging_{name}")

    # ---- settings and guideline

    def add_version(self, kind: str, body: str, author: str) -> int:
        """Store a new version of the ``settings`` or the ``guideline`` and return its number."""
        if "\0" in body + author:
            raise InputError("the text has a NUL character", where=kind, fix="remove it")
        number = (self.version(kind) or (0, ""))[0] + 1
        self._insert("versions", [{"kind": kind, "number": number, "time": _now(), "author": author, "body": body}])
        return number

    def version(self, kind: str, number: int | None = None) -> tuple[int, str] | None:
        """Return the number and body of a version, by default the latest."""
        versions = self._table("versions")
        query = versions.select().with_only_columns(versions.c.number, versions.c.body).where(versions.c.kind == kind)
        if number is not None:
            query = query.where(versions.c.number == number)
        row = self._connection.execute(query.order_by(versions.c.number.desc())).first()
        return (int(row[0]), str(row[1])) if row else None

    def versions(self, kind: str) -> list[tuple[int, str, str]]:
        """Return the number, time, and author of each version, latest first."""
        rows = self._rows("versions", "kind", [kind], order=("number",))
        return [(row.number, row.time, row.author) for row in rows][::-1]

    def settings(self) -> Settings:
        """Return the latest settings."""
        _, body = self.version("settings") or (0, "{}")
        return Settings(**json.loads(body))

    def add_settings(self, settings: Settings, author: str) -> int:
        """Store the settings as a new version and return its number."""
        return self.add_version("settings", json.dumps(asdict(settings)), author)

    # ---- questions and candidates

    def add_questions(self, questions: Iterable[Question]) -> None:
        """Store questions; an existing identifier adds a new version of that question."""
        rows = []
        for question in questions:
            _check_id(question.id, "question")
            rows.append(_row_of(replace(question, time=question.time or _now())))
        self._insert("questions", rows)

    def questions(self) -> dict[str, Question]:
        """Return the latest version of each question, in the order of addition."""
        return {row.id: _object_of(Question, row) for row in self._rows("questions", order=("sequence",))}

    def add_documents(self, documents: Iterable[Document]) -> None:
        """Store documents, replacing those with the same identifier."""
        rows = []
        for document in documents:
            _check_id(document.id, "document")
            body = json.dumps(dict(document.fields))
            if len(body) > _MOST_BODY:
                raise InputError(
                    f"document {document.id!r:.60} has {len(body):,} characters",
                    where="documents",
                    fix=f"cut it into passages of up to {_MOST_BODY:,}",
                )
            rows.append({"id": document.id, "body": body})
        self._upsert("documents", rows, ("id",), update=("body",))

    def documents(self, ids: Iterable[str]) -> dict[str, Document]:
        """Return the stored documents among these identifiers."""
        return {row.id: Document(row.id, json.loads(row.body)) for row in self._rows("documents", "id", ids)}

    def add_candidates(self, candidates: Iterable[Candidate]) -> int:
        """Store candidates with their sources; return the number of new pairs."""
        rows = []
        for candidate in candidates:
            _check_id(candidate.question, "question")
            _check_id(candidate.document, "document")
            pair = {"question": candidate.question, "document": candidate.document, "time": _now()}
            for source in candidate.sources:
                known = {"rank": source.rank, "score": source.score, "probability": source.probability}
                rows.append({**pair, "source": source.name, "kind": source.kind, **known})
        before = len(self.candidates())
        self._upsert("candidates", rows, ("question", "document", "source", "kind"))
        return len(self.candidates()) - before

    def candidates(self, questions: Iterable[str] | None = None) -> list[Candidate]:
        """Return the pools of these questions (None: all), documents in the order of addition."""
        pool: dict[tuple[str, str], list[Source]] = {}
        order = ("time", "question", "rank", "document", "source")
        for row in self._rows("candidates", "question", questions, order=order):
            source = Source(row.source, row.kind, row.rank, row.score, row.probability)
            pool.setdefault((row.question, row.document), []).append(source)
        return [Candidate(*pair, tuple(sources)) for pair, sources in pool.items()]

    def add_gold(self, tasks: Iterable[GoldTask]) -> None:
        """Store hidden tests."""
        self._insert("gold", list(map(_row_of, tasks)))

    def gold(self) -> list[GoldTask]:
        """Return the hidden tests."""
        return [_object_of(GoldTask, row) for row in self._rows("gold", order=("sequence",))]

    def marks(self) -> tuple[Any, ...]:
        """Return markers that change with every write except that of an event."""
        judges = tuple((row.id, row.body, row.revoked) for row in self._rows("judges"))
        return (*map(self.count, ("versions", "questions", "candidates", "gold")), judges)

    def count(self, name: str) -> int:
        """Return the number of rows of a table."""
        from sqlalchemy import func, select

        return int(self._connection.scalar(select(func.count()).select_from(self._table(name))) or 0)

    # ---- answers of systems

    def add_answers(self, answers: Iterable[Answer]) -> None:
        """Store answers of systems; existing answers are kept."""
        rows = list(map(_row_of, answers))
        for row in rows:
            _check_id(row["id"], "answer")
        self._upsert("answers", rows, ("id",))

    def answers(self, ids: Iterable[str] | None = None) -> dict[str, Answer]:
        """Return the answers with these identifiers, by default all answers."""
        return {row.id: _object_of(Answer, row) for row in self._rows("answers", "id", ids)}

    # ---- judges

    def add_judge(self, judge: Judge, secret: str | None = None, more: Mapping[str, Any] | None = None) -> None:
        """Store or replace a judge, with the hash of the invitation's secret.

        `more` replaces the other stored fields; if None, they are kept.
        """
        _check_id(judge.id, "judge")
        if more is None:
            known = self._find("judges", judge.id)
            more = {} if known is None else json.loads(known.body)
        body = dict(more) | {"name": judge.name, "role": judge.role, "kind": judge.kind}
        row = {
            "id": judge.id,
            "secret": secret,
            "time": _now(),
            "body": json.dumps(body),
            "revoked": _now() if judge.revoked else None,
        }
        changed = ("body", "revoked", *(("secret",) if secret is not None else ()))
        self._upsert("judges", [row], ("id",), update=changed)

    def judges(self) -> dict[str, Judge]:
        """Return the judges by identifier."""
        return {row.id: _judge_of(row) for row in self._rows("judges", order=("time", "id"))}

    def judge_by_secret(self, secret: str) -> tuple[Judge, dict[str, Any]] | None:
        """Return the judge whose secret has this hash, with the other stored fields."""
        row = next(iter(self._rows("judges", "secret", [secret])), None)
        return (_judge_of(row), json.loads(row.body)) if row else None

    def origins(self) -> dict[str, tuple[str, ...]]:
        """Return the origins from which each application, unless revoked, may send votes."""
        return {
            row.id: tuple(json.loads(row.body).get("origins", ()))
            for row in self._rows("judges")
            if row.revoked is None
        }

    def add_session(self, token: str, judge: str, expires: datetime) -> None:
        """Store a session by the hash of its token, and delete expired sessions."""
        table = self._table("sessions")
        self._connection.execute(table.delete().where(table.c.expires < _now()))
        self._insert("sessions", [{"token": token, "judge": judge, "expires": expires.isoformat(timespec="seconds")}])

    def session_judge(self, token: str, now: datetime) -> Judge | None:
        """Return the judge of a session, or None if it has expired."""
        row = next(iter(self._rows("sessions", "token", [token])), None)
        if row is None or datetime.fromisoformat(row.expires) <= now:
            return None
        judge = self.judges().get(row.judge)
        return None if judge is None or judge.revoked else judge

    def end_sessions(self, *, judge: str = "", token: str = "") -> None:
        """Delete all sessions of a judge, and the session with a token."""
        table = self._table("sessions")
        self._connection.execute(table.delete().where((table.c.judge == judge) | (table.c.token == token)))

    # ---- events

    def append_presentation(self, shown: Presentation) -> Presentation:
        """Store a presentation and return it with its time and sequence number."""
        _check_id(shown.id, "task", _MOST_UUID)
        for document in (shown.question, *shown.documents):
            _check_id(document, "document")
        shown = replace(shown, time=shown.time or _now())
        return replace(shown, sequence=self._append("presentations", _row_of(shown)))

    def append_choice(self, choice: Choice) -> Choice | None:
        """Store a choice and return it; return None if its identifier is already stored."""
        _check_id(choice.id, "choice", _MOST_UUID)
        if self._find("choices", choice.id) is not None:
            return None
        choice = replace(choice, time=choice.time or _now())
        return replace(choice, sequence=self._append("choices", _row_of(choice)))

    def choice(self, name: str) -> Choice | None:
        """Return a choice by its identifier."""
        row = self._find("choices", name)
        return None if row is None else _object_of(Choice, row)

    def presentations(self, after: int = 0) -> list[Presentation]:
        """Return the presentations after a sequence number, in order."""
        return [_object_of(Presentation, row) for row in self._rows("presentations", order=("sequence",), after=after)]

    def choices(self, after: int = 0) -> list[Choice]:
        """Return the choices after a sequence number, in order."""
        return [_object_of(Choice, row) for row in self._rows("choices", order=("sequence",), after=after)]

    # ---- statements

    def _rows(
        self,
        name: str,
        column: str = "",
        values: Iterable[str] | None = None,
        *,
        order: Sequence[str] = (),
        after: int | None = None,
    ) -> Iterator[Any]:
        """Yield the rows of a table, those with one of the values in a column, or those after a number."""
        table = self._table(name)
        query = table.select().order_by(*(table.c[key] for key in order))
        if after is not None:
            query = query.where(table.c.sequence > after)
        if values is None:
            yield from self._connection.execute(query)
            return
        # No stored text contains NUL: PostgreSQL would refuse the query.
        wanted = [value for value in dict.fromkeys(values) if "\0" not in value]
        for start in range(0, len(wanted), _AT_ONCE):
            yield from self._connection.execute(query.where(table.c[column].in_(wanted[start : start + _AT_ONCE])))

    def _find(self, table: str, name: str) -> Any:
        return next(iter(self._rows(table, "id", [name])), None)

    def _append(self, name: str, row: Mapping[str, Any]) -> int:
        key = self._connection.execute(self._table(name).insert(), dict(row)).inserted_primary_key
        return int(key[0]) if key else 0

    def _insert(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self._connection.execute(self._table(name).insert(), [dict(row) for row in rows])

    def _upsert(
        self, name: str, rows: Sequence[Mapping[str, Any]], keys: Sequence[str], *, update: Sequence[str] = ()
    ) -> None:
        """Insert rows; in existing rows, update only the columns `update`."""
        if not rows:
            return
        insert: Any
        if self._connection.dialect.name == "sqlite":
            from sqlalchemy.dialects.sqlite import insert
        else:
            from sqlalchemy.dialects.postgresql import insert
        statement = insert(self._table(name))
        if update:
            statement = statement.on_conflict_do_update(
                index_elements=keys, set_={column: statement.excluded[column] for column in update}
            )
        else:
            statement = statement.on_conflict_do_nothing()
        self._connection.execute(statement, [dict(row) for row in rows])


def _check_id(value: str, what: str, most: int = _MOST_ID) -> None:
    # Lone surrogates are not valid characters.
    if not value or len(value) > most or any(char < " " or "\ud800" <= char <= "\udfff" for char in value):
        raise InputError(
            f"{value!r:.60} is not a valid identifier of a {what}",
            where=f"{what}s",
            fix=f"use 1 to {most} characters without control characters",
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


# The columns of each kind of row; the other fields are in its body. Fields that are tuples.
_STORED: Mapping[type, tuple[tuple[str, ...], tuple[str, ...]]] = {
    Question: (("id", "time"), ("answers",)),
    Answer: (("id",), ("sources",)),
    GoldTask: (("question",), ("documents", "accepted")),
    Presentation: (("id", "question", "judge", "time", "sequence"), ("documents",)),
    Choice: (("id", "presentation", "judge", "outcome", "time", "sequence"), ("documents", "grades")),
}


def _object_of(kind: type[_Stored], row: Any) -> _Stored:
    columns, tuples = _STORED[kind]
    body = json.loads(row.body)
    body |= {name: tuple(body[name]) for name in tuples}
    return kind(**{name: getattr(row, name) for name in columns}, **body)


def _row_of(stored: Question | Answer | GoldTask | Presentation | Choice) -> dict[str, Any]:
    """Return the row of an object, without a number, which the database assigns."""
    body = asdict(stored)
    body.pop("sequence", None)
    row = {name: body.pop(name) for name in _STORED[type(stored)][0] if name in body}
    return row | {"body": json.dumps(body)}


def _judge_of(row: Any) -> Judge:
    body = json.loads(row.body)
    return Judge(row.id, body["name"], body["role"], body["kind"], row.revoked is not None)
