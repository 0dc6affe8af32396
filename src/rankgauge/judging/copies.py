"""Copies of a judging project: backup, export of all events as JSON lines, and restore."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rankgauge.core.files import create_privately
from rankgauge.core.sqlite import is_sqlite
from rankgauge.core.text import many
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.json_files import objects
from rankgauge.formats.lines import numbered_lines, opened
from rankgauge.formats.writers import written
from rankgauge.judging.events import OUTCOMES
from rankgauge.judging.project import JudgingProject
from rankgauge.judging.store import RECORDED, Transaction
from rankgauge.rendering import Result, Table

EVENTS_SCHEMA = "rankgauge/judging-events/1"
_COUNTED = ("questions", "documents", "judges", "presentations", "choices")


@dataclass(frozen=True)
class ProjectCopy(Result):
    """A copy of a project.

    Attributes:
        source: The path or URL that was read.
        target: The path or URL that was written.
        rows: The number of rows by table; empty for a copy of an SQLite file.
        secrets: Whether the copy contains the judges' invitations and sessions.
    """

    source: str
    target: str
    rows: Mapping[str, int] = field(default_factory=dict)
    secrets: bool = True

    def table(self) -> Table:
        """Return one row: the number of rows copied."""
        counts = [self.rows.get(name) for name in _COUNTED]
        return Table(("source", "target", *_COUNTED), ((self.source, self.target, *counts),))

    def summary(self) -> str:
        """Return a summary of the copy."""
        text = f"{self.target}: a copy of {self.source}"
        if self.rows:
            text += f", {many(self.rows['questions'], 'question')}, " + many(self.rows["choices"], "choice")
        if not self.secrets:
            text += "; without the invitations of judges: invite them again"
        return text


def write_events(project: JudgingProject, target: str | os.PathLike[str]) -> ProjectCopy:
    """Export a complete project as JSON lines, without secrets and sessions.

    Args:
        project: The project. It may be in use: the export is a consistent snapshot.
        target: The file, compressed according to its name (``.jsonl.gz``); ``-`` for standard
            output. Only the owner can read the file: it contains names and choices of judges.

    Raises:
        InputError: If the project cannot be read or the file cannot be written.
    """
    counts: Counter[str] = Counter()
    with project.reading() as stored, written(target, private=True) as stream:

        def write(values: Mapping[str, Any]) -> None:
            stream.write(json.dumps(values).encode() + b"\n")

        write({"schema": EVENTS_SCHEMA, "rankgauge": version("rankgauge")})
        for name, row in stored.records():
            body = row.get("body")
            if body is not None and row.get("kind") != "guideline":
                row |= {"body": json.loads(body)}
            write({"table": name, **row})
            counts[name] += 1
        # The last line; a file without it is truncated.
        write({"rows": {name: counts[name] for name in RECORDED}})
    return ProjectCopy(project.where, os.fspath(target), {name: counts[name] for name in RECORDED}, secrets=False)


def backup(project: JudgingProject, target: str | os.PathLike[str]) -> ProjectCopy:
    """Back up a project while judges keep working.

    Args:
        project: The project.
        target: A new file. The backup of an SQLite file is a complete project, including the hashed
            secrets of the judges. The backup of a PostgreSQL database, or one whose name ends in
            ``.jsonl`` (``.gz``, ``.zst``, ...), is JSON lines without secrets.

    Raises:
        InputError: If the file already exists or cannot be written.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> project = JudgingProject.create(f"{folder}/judging.db")
        >>> done = backup(project, f"{folder}/copy.db")
        >>> JudgingProject(f"{folder}/copy.db").settings == project.settings
        True
    """
    path = Path(target)
    if path.exists():
        raise _existing(str(path))
    if project.path is None or ".jsonl" in path.suffixes:
        return write_events(project, path)
    project.copy_to(path)
    return ProjectCopy(project.where, str(path))


def restore(source: str | os.PathLike[str], where: str | os.PathLike[str] | None = None) -> ProjectCopy:
    """Restore a project from a backup.

    Args:
        source: A file that :func:`backup` or :func:`write_events` wrote.
        where: The new project: a path, or the URL of a PostgreSQL database without a project.

    Raises:
        FormatError: If a line cannot be read; nothing is stored.
        InputError: If the project already exists, or the file is not a backup.
    """
    target, name = JudgingProject(where), os.fspath(source)
    if target.path is None:
        return ProjectCopy(name, target.where, _copied(source, target), secrets=False)
    if target.path.exists():
        raise _existing(target.where)
    if is_sqlite(Path(source)):
        JudgingProject(source).copy_to(target.path)
        return ProjectCopy(name, target.where)
    try:
        # The project is closed before the file is renamed, so that no WAL file remains.
        with create_privately(target.path) as part, JudgingProject(part) as project:
            counts = _copied(source, project)
    except FileExistsError:
        raise _existing(target.where) from None
    return ProjectCopy(name, target.where, counts, secrets=False)


def _existing(where: str) -> InputError:
    return InputError("this file already exists", where=where, fix="name a new file")


def _copied(source: str | os.PathLike[str], target: JudgingProject) -> dict[str, int]:
    """Store all rows of a backup in an empty project, and return their number by table."""
    name = os.fspath(source)
    if is_sqlite(Path(source)):
        with JudgingProject(source).reading() as read:
            return _stored(target, ((0, *row) for row in read.records()), name)
    with opened(source) as stream:
        lines = objects(numbered_lines(stream, name), name)
        return _stored(target, _rows_of(lines, name), name)


def _rows_of(lines: Iterator[tuple[int, dict[str, Any]]], name: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield the rows of an export, after checks of its header and of the row count at its end."""
    number, head = next(lines, (0, {}))
    if head.get("schema") != EVENTS_SCHEMA:
        raise FormatError(
            f"this is not a copy of a judging project: its first line has no {EVENTS_SCHEMA!r}",
            path=name,
            line=number,
            fix="use a file that rankgauge judge backup wrote; for judgments use judge import",
        )
    counts: Counter[str] = Counter()
    for number, values in lines:
        if "table" not in values:
            if values == {"rows": {table: counts[table] for table in RECORDED}}:
                return
            break
        table = values.pop("table")
        if not isinstance(table, str) or table not in RECORDED:
            raise _unreadable(name, number, f"there is no table {table!r:.40}")
        if not isinstance(values.get("body", ""), str):
            values["body"] = json.dumps(values["body"])
        counts[table] += 1
        yield number, table, values
    raise FormatError(
        f"the file is incomplete: {many(sum(counts.values()), 'row')} read",
        path=name,
        line=number,
        fix="make another copy; nothing was stored",
    )


def _unreadable(name: str, line: int, what: str) -> FormatError:
    return FormatError(
        f"this row cannot be read: {what}",
        path=name,
        line=line,
        fix="make another copy, or correct the line; nothing was stored",
    )


def _stored(target: JudgingProject, rows: Iterator[tuple[int, str, dict[str, Any]]], source: str) -> dict[str, int]:
    """Store all rows in an empty project, or none of them; return the number of rows by table."""
    counts: Counter[str] = Counter()
    modes: dict[str, str] = {}
    with target._database.writing() as connection:  # noqa: SLF001 - there is no project yet
        stored = Transaction(connection)
        if stored.version("settings") is not None:
            raise InputError("a judging project already exists", where=target.where, fix="name another database")
        for line, name, row in rows:
            try:
                if name == "choices":
                    _check_choice(row, modes)
                stored.add_record(name, row)
                if name == "presentations":
                    modes[row["id"]] = json.loads(row["body"])["mode"]
            except (KeyError, TypeError, ValueError) as error:
                raise _unreadable(source, line, str(error)) from None
            counts[name] += 1
        stored.finish_records()
    target.questions  # noqa: B018 - read now, so that errors are raised here
    return {name: counts[name] for name in RECORDED}


def _check_choice(row: Mapping[str, Any], modes: Mapping[str, str]) -> None:
    mode = modes.get(row["presentation"])
    if mode is None:
        raise ValueError(f"there is no presentation {row['presentation']!r:.60}")
    if row["outcome"] not in OUTCOMES[mode]:
        raise ValueError(f"{row['outcome']!r:.40} is not an outcome of the mode {mode}")
