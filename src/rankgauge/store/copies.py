"""The store as a whole: backup, restore, export, sizes, and the removal of a person or a text."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import shutil
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import groupby, islice, starmap
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rankgauge.core.files import create_privately
from rankgauge.data.qrels import Qrels, write_qrels
from rankgauge.data.run import Run, write_run
from rankgauge.data.special_qrels import SpecialQrels
from rankgauge.errors import FormatError, InputError, RankgaugeError
from rankgauge.store.artifacts import (
    ANSWERS,
    DOCUMENTS,
    QUESTIONS,
    RUN,
    Artifact,
    Read,
    line_of,
    pack_texts,
    read_texts,
)
from rankgauge.store.entries import OWN
from rankgauge.store.history import History, seal
from rankgauge.store.schema import PREFIX, SCHEMA

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

_SCHEMA = "rankgauge/store/1"
_ABOUT, _ROWS = "rankgauge.json", "rows.jsonl"
_EVENTS = ("judging_", "answers_", "gates")
# Sessions end with a backup; blocks are copied as artifacts.
_NOT_COPIED = {"version", "judging_sessions", "blocks"}
_NAME = re.compile("[0-9a-f]+")  # of an artifact: a hash
_AT_ONCE = 500
_REMOVED = "(removed)"


class WholeStore(History):
    """All contents of a store: evaluations, judgments of people, and verdicts on answers.

    Example:
        >>> import tempfile
        >>> from rankgauge import evaluate
        >>> folder = tempfile.mkdtemp()
        >>> store = WholeStore(f"{folder}/store.db")
        >>> entry = store.add(evaluate({"q1": {"d1": 1}}, {"q1": ["d2", "d1"]}, "RR"))
        >>> store.backup(f"{folder}/store.zip")["evaluations"]
        1
        >>> restored = WholeStore(f"{folder}/restored.db")
        >>> restored.restore(f"{folder}/store.zip")["evaluations"]
        1
        >>> restored.load(1).mean()
        {'RR': 0.5}
    """

    def backup(self, target: str | os.PathLike[str]) -> dict[str, int]:
        """Write all contents to a new file while others use the store; return the number of rows by table.

        The file is a ZIP archive of JSON lines and artifacts that any database can restore. Only its
        owner can read it: it contains names of judges and hashes of their invitations.

        Raises:
            InputError: If the file already exists or cannot be written, or the store is damaged.
        """
        path, counts = Path(target), Counter[str]()
        try:
            with (
                create_privately(path) as part,
                zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
                self._database.reading(f"copied to {path}") as connection,
            ):
                with archive.open(_ROWS, "w", force_zip64=True) as stream:
                    for row in _rows(connection):
                        stream.write(json.dumps(row).encode() + b"\n")
                        counts[row["table"]] += 1
                names = SCHEMA.table("artifacts").select().with_only_columns(SCHEMA.table("artifacts").c.name)
                for name in connection.scalars(names).all():
                    for number, body in enumerate(self._artifacts.bodies(connection, name)):
                        archive.writestr(f"artifacts/{name}/{number}", body, zipfile.ZIP_STORED)
                about = {"schema": _SCHEMA, "revision": SCHEMA.revision, "rankgauge": version("rankgauge")}
                archive.writestr(_ABOUT, json.dumps(about | {"rows": counts}))
        except FileExistsError:
            raise _existing(path) from None
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror}", where=str(path), fix="check the folder and the disk"
            ) from None
        return dict(counts)

    def restore(self, source: str | os.PathLike[str]) -> dict[str, int]:
        """Restore a backup into this store, which must be new or empty; return the number of rows by table.

        Raises:
            FormatError: If the file is not a complete backup; nothing is restored.
            InputError: If the store has contents, or cannot be written.
        """
        name = os.fspath(source)
        try:
            with zipfile.ZipFile(name) as archive:
                about = json.loads(archive.read(_ABOUT))
                complete = about["schema"] == _SCHEMA
                if complete and about["revision"] != SCHEMA.revision:
                    raise InputError(
                        f"this backup is of version {about['revision']}; this rankgauge restores {SCHEMA.revision}",
                        where=name,
                        fix=f"restore it with rankgauge {about['rankgauge']}",
                    )
                if complete:
                    return self._restore(archive, name)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=name, fix="check the path") from None
        except (zipfile.BadZipFile, zlib.error, EOFError, AttributeError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, RankgaugeError):
                raise
        raise FormatError(
            "this is not a complete backup of a store",
            path=name,
            fix="use an intact file of rankgauge store backup; nothing was restored",
        )

    def _restore(self, archive: zipfile.ZipFile, source: str) -> dict[str, int]:
        counts = Counter[str]()
        with self._database.writing() as connection:
            self._refuse_contents(connection)
        blocks: dict[str, int] = Counter(name.split("/")[1] for name in archive.namelist() if "/" in name)
        if not all(map(_NAME.fullmatch, blocks)):
            raise ValueError  # a path that could leave the folder of the artifacts
        for name, count in blocks.items():
            bodies = (archive.read(f"artifacts/{name}/{number}") for number in range(count))
            self._artifacts.put(Artifact("", name, count), bodies)
        tables = dict(_tables())
        with self._database.writing() as connection, archive.open(_ROWS) as stream:
            self._refuse_contents(connection)

            def values(number: int, line: bytes) -> tuple[str, dict[str, Any]]:
                try:
                    row = json.loads(line)
                    name = row.pop("table")
                    return name, _values(tables[name], row)
                except ValueError as error:
                    raise FormatError(
                        f"this row cannot be read: {error}",
                        path=f"{source}: {_ROWS}",
                        line=number,
                        fix="make another backup; nothing was restored",
                    ) from None

            for name, rows in groupby(starmap(values, enumerate(stream, 1)), itemgetter(0)):
                while part := [row for _, row in islice(rows, _AT_ONCE)]:
                    connection.execute(tables[name].insert(), part)
                    counts[name] += len(part)
            self._finish(connection)
        return dict(counts)

    def _refuse_contents(self, connection: Connection) -> None:
        for _, table in _tables():
            if connection.execute(table.select().limit(1)).first() is not None:
                raise InputError("this store has contents", where=self.where, fix="name a new store: --store FILE")

    def _finish(self, connection: Connection) -> None:
        """Check references (PostgreSQL has done it), and continue numbers after the restored ones."""
        if self._database.path is not None:
            if (row := connection.exec_driver_sql("PRAGMA foreign_key_check").first()) is not None:
                raise self._database.damaged(f"a row of {row[0]} refers to a missing row")
            return
        from sqlalchemy import func, select

        for _, table in _tables():
            for column in table.primary_key:
                if column.autoincrement is True:
                    counter = func.pg_get_serial_sequence(table.name, column.name)
                    connection.execute(select(func.setval(counter, func.max(column))))

    def export(self, folder: str | os.PathLike[str]) -> dict[str, int]:
        """Write the contents in open formats to a new folder; return the number of each kind.

        ``evaluations.jsonl`` has the evaluations, which commands read, and ``index.jsonl`` the files
        of each: runs and judgments in TREC format (JSON lines if an id has spaces), and questions
        and documents as JSON lines. ``events.jsonl`` has the rows of judging, verdicts, and gates, without
        secrets.

        Raises:
            InputError: If the folder exists or cannot be written.
        """
        target, counts = Path(folder), Counter[str]()
        if target.exists():
            raise _existing(target)
        part = target.with_name(f".{secrets.token_hex(8)}.part")
        try:
            part.mkdir(mode=0o700)
            with self, self._database.reading(f"copied to {target}") as connection:
                self._export_evaluations(connection, part, counts)
                with (part / "events.jsonl").open("w", encoding="utf-8") as stream:
                    for row in _rows(connection, _EVENTS):
                        row.pop("secret", None)
                        if row["table"] != "judging_versions" and "body" in row:
                            row["body"] = json.loads(row["body"])
                        stream.write(json.dumps(row) + "\n")
                        counts["events"] += 1
            part.rename(target)
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror}", where=str(target), fix="check the folder and the disk"
            ) from None
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return dict(counts)

    def _export_evaluations(self, connection: Connection, folder: Path, counts: Counter[str]) -> None:
        artifacts, uses = map(SCHEMA.table, ("artifacts", "uses"))
        with (
            (folder / "evaluations.jsonl").open("w", encoding="utf-8") as values,
            (folder / "index.jsonl").open("w", encoding="utf-8") as index,
        ):
            for entry in self._entries(connection, None):
                values.write(self._load(connection, entry).to_json() + "\n")
                counts["evaluations"] += 1
                used = artifacts.join(uses, uses.c.artifact == artifacts.c.name).select()
                used = used.where(uses.c.evaluation == entry.id).order_by(uses.c.number)
                files: dict[str, list[str]] = {}
                for row in connection.execute(used.with_only_columns(artifacts.c.kind, artifacts.c.name)).all():
                    known = next(iter(folder.glob(f"{row.kind}-{row.name[:16]}.*")), None)
                    if known is None:
                        counts[row.kind] += 1
                        known = folder / f"{row.kind}-{row.name[:16]}.jsonl"
                        if row.kind in {QUESTIONS, DOCUMENTS, ANSWERS}:
                            _write_texts(row.kind, partial(self._artifacts.read, connection, row.name), known)
                        else:
                            known = _write_pairs(self.run(entry) if row.kind == RUN else self.qrels(entry), known)
                    files.setdefault(row.kind, []).append(known.name)
                index.write(json.dumps({"evaluation": entry.id, "name": entry.short_name, **files}) + "\n")

    def sizes(self) -> dict[str, int]:
        """Return the bytes of values, judging, verdicts, gates, and each kind of artifact, after compression.

        Raises:
            InputError: If the store does not exist or cannot be read.
        """
        from sqlalchemy import func, select

        sizes = Counter(super().sizes())
        with self._database.reading() as connection:
            for name, table in _tables(_EVENTS):
                if "body" in table.c:
                    size = connection.scalar(select(func.sum(func.length(table.c.body))))
                    sizes[name.partition("_")[0]] += int(size or 0)
        return dict(sizes)

    def forget(self, kind: Literal["judge", "document", "question"], name: str) -> dict[str, int]:
        """Remove a person or a text from the store; return the number of changes of each kind.

        Numbers stay: values, rankings, judgments, and choices. A judge loses name, comments, and
        access, and keeps the random id, so that agreement and relevance do not change. A text is
        removed from judging and from all saved evaluations, which say so in their notes. Backups
        and exports made before are not changed.

        Args:
            kind: What to remove.
            name: The id or the name of a judge, or the id of a document or question.

        Raises:
            InputError: If the store has nothing of this name.
        """
        removed = Counter[str]()
        with self._database.reading():
            pass  # a store that does not exist is not created
        with self._database.writing() as connection:
            if kind == "judge":
                self._forget_judge(connection, name, removed)
            else:
                self._forget_text(connection, kind, name, removed)
        removed = +removed  # without zeros
        if not removed:
            raise InputError(f"the store has no {kind} {name!r:.60}", where=self.where, fix="check the id")
        self._artifacts.collect()
        self._database.compact()
        return dict(removed)

    def _forget_text(self, connection: Connection, kind: str, name: str, removed: Counter[str]) -> None:
        def change(row: dict[str, Any]) -> Mapping[str, Any]:
            body = {"text": _REMOVED} if kind == "document" else json.loads(row["body"]) | {"text": _REMOVED}
            return {"body": json.dumps(body)}

        removed["text"] += _change(connection, f"judging_{kind}s", {"id": {name}}, change)
        artifacts, uses = map(SCHEMA.table, ("artifacts", "uses"))
        marked: set[int] = set()
        columns = artifacts.c.name, artifacts.c.kind
        names = artifacts.select().with_only_columns(*columns).where(artifacts.c.kind.in_([f"{kind}s", ANSWERS]))
        for old, own in connection.execute(names).all():
            read = partial(self._artifacts.read, connection, old)
            rows = list(read_texts(read))
            # An answer contains its question, and texts of documents.
            kept = [row for row in rows if row.id != name or (kind, own) == ("document", ANSWERS)]
            if own == ANSWERS and kind == "document":
                kept = [row for row in rows if all(part["id"] != name for part in row.fields["contexts"])]
            if len(kept) == len(rows):
                continue
            lines = [(row.id, line_of(row.id, row)) for row in kept]
            written = [self._artifacts.write(*packed) for packed in pack_texts(own, lines)]
            self._artifacts.name(connection, written, [])
            where = uses.c.artifact == old
            marked |= set(connection.scalars(uses.select().with_only_columns(uses.c.evaluation).where(where)))
            # It has less text than before, and therefore at most one artifact.
            for artifact in written:
                connection.execute(uses.update().where(where).values(artifact=artifact.name))
            connection.execute(uses.delete().where(where))
            removed["text"] += 1
        note = f"the text of a {kind} was removed after saving: the evaluation cannot be recomputed from its texts"

        removed["marked evaluation"] += _change_heads(
            connection, marked, lambda head: head | {"notes": [*head["notes"], note]}
        )

    def _forget_judge(self, connection: Connection, name: str, removed: Counter[str]) -> None:
        alias = f"removed-{secrets.token_hex(4)}"
        judges, sessions = map(SCHEMA.table, ("judging_judges", "judging_sessions"))
        known = {row.id: json.loads(row.body) for row in connection.execute(judges.select())}
        own = {key for key, body in known.items() if name in {key, body["name"]}}
        names = {name, *(known[key]["name"] for key in own)}

        def rename(row: dict[str, Any]) -> Mapping[str, Any]:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            body = json.loads(row["body"]) | {"name": f"judge {row['id']}"}
            return {"body": json.dumps(body), "secret": None, "revoked": row["revoked"] or now}

        def silence(row: dict[str, Any]) -> Mapping[str, Any]:
            body = json.loads(row["body"])
            return {"body": json.dumps(body | {"comment": ""})} if body["comment"] else {}

        def disown(row: dict[str, Any]) -> Mapping[str, Any]:
            body = json.loads(row["body"])
            return {"body": json.dumps(body | {"author": ""})} if body["author"] in names else {}

        removed["name"] += _change(connection, "judging_judges", {"id": own}, rename)
        connection.execute(sessions.delete().where(sessions.c.judge.in_(own)))
        removed["comment"] += _change(connection, "judging_choices", {"judge": own}, silence)
        _change(connection, "judging_versions", {"author": names}, lambda _: {"author": ""})
        _change(connection, "judging_questions", {}, disown)
        removed["renamed verdict"] += _change(
            connection,
            "answers_verdicts",
            {"judge": names},
            lambda row: {"judge": alias, "body": json.dumps(json.loads(row["body"]) | {"reason": ""})},
        )

        def replace(row: dict[str, Any]) -> Mapping[str, Any]:
            body = json.dumps(_replaced(json.loads(zlib.decompress(row["body"])), names, alias))
            return {"body": zlib.compress(body.encode(), 9)}

        _change(connection, "values", {"kind": {OWN}}, replace)
        settings = ("settings", "run_settings")
        _change_heads(
            connection, None, lambda head: head | {part: _replaced(head[part], names, alias) for part in settings}
        )


def _tables(beginnings: tuple[str, ...] = ("",)) -> Iterator[tuple[str, Table]]:
    """Yield the copied tables with their short names, each before the tables that refer to it."""
    for table in SCHEMA.tables.sorted_tables:
        name = table.name.removeprefix(PREFIX)
        if name not in _NOT_COPIED and name.startswith(beginnings):
            yield name, table


def _rows(connection: Connection, beginnings: tuple[str, ...] = ("",)) -> Iterator[dict[str, Any]]:
    """Yield the rows of these tables as values of JSON, with the name of their table."""
    for name, table in _tables(beginnings):
        for row in connection.execute(table.select().order_by(*table.primary_key)).mappings():
            yield {"table": name} | {
                key: base64.b64encode(value).decode() if isinstance(value, bytes | memoryview) else value
                for key, value in row.items()
            }


def _values(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row of :func:`_rows` after checking their types."""
    if list(row) != table.c.keys():
        raise ValueError(f"it has {', '.join(row)}, expected {', '.join(table.c.keys())}")
    values = {}
    for column in table.columns:
        value, kind = row[column.name], column.type.python_type
        if kind is bytes:
            value = base64.b64decode(value, validate=True)
        elif not (column.nullable if value is None else type(value) in {kind, int if kind is float else kind}):
            raise ValueError(f"{column.name} is {value!r:.40}")
        values[column.name] = value
    return values


def _change(
    connection: Connection,
    name: str,
    where: Mapping[str, set[Any]],
    change: Callable[[dict[str, Any]], Mapping[str, Any]],
) -> int:
    """Change rows whose columns have one of these values; return the number of changed rows."""
    table = SCHEMA.table(name)
    query = table.select()
    for column, wanted in where.items():
        query = query.where(table.c[column].in_(wanted))
    rows = [dict(row) for row in connection.execute(query).mappings()]
    changed = [(row, values) for row in rows if (values := change(row))]
    for row, values in changed:
        same = [column == row[column.name] for column in table.primary_key]
        connection.execute(table.update().where(*same).values(values))
    return len(changed)


def _change_heads(
    connection: Connection, evaluations: set[int] | None, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> int:
    """Change the metadata of evaluations, by default all, and seal it again; return their number."""

    def seal_again(row: dict[str, Any]) -> Mapping[str, Any]:
        known = json.loads(row["head"])
        head = change(known)
        return {} if head == known else {"head": json.dumps(head), "seal": seal(row["time"], json.dumps(head))}

    return _change(connection, "evaluations", {} if evaluations is None else {"id": evaluations}, seal_again)


def _replaced(value: Any, names: set[str], alias: str) -> Any:
    """Return a JSON value in which texts that are one of these names are replaced."""
    if isinstance(value, dict):
        return {key: _replaced(inner, names, alias) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, names, alias) for inner in value]
    return alias if isinstance(value, str) and value in names else value


def _write_texts(kind: str, read: Read, path: Path) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for row in read_texts(read):
            title = {"title": row.title} if kind == DOCUMENTS else {}
            stream.write(json.dumps({"_id": row.id, **title, "text": row.text, **row.fields}) + "\n")


def _write_pairs(content: Run | Qrels | SpecialQrels, path: Path) -> Path:
    """Write a run or judgments in TREC format, or as JSON lines if it cannot contain an id; return the path."""
    write: Callable[[Path], None] = partial(write_run if isinstance(content, Run) else write_qrels, content)
    if isinstance(content, SpecialQrels):
        write = content.write
    with suppress(InputError):
        write(path.with_suffix(".trec"))
        return path.with_suffix(".trec")
    write(path)
    return path


def _existing(path: Path) -> InputError:
    return InputError("this file already exists", where=str(path), fix="choose another name")
