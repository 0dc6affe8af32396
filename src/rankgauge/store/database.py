"""Databases (SQLite files, PostgreSQL URLs): connections, transactions, migrations.

The first write creates the database; a database of another program is never written to. Alembic is
imported only to migrate a store of an earlier revision.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from rankgauge.core.project_file import ProjectFile, data_folder
from rankgauge.core.project_names import find_project_file
from rankgauge.core.redaction import Secrets, redact
from rankgauge.core.sqlite import damaged, locked, sqlite_error
from rankgauge.errors import InputError, MissingExtra, RankgaugeError, StorageError
from rankgauge.store.schema import PREFIX, SCHEMA, Schema

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

# Arbitrary number; all writers must request the same lock.
_LOCK = 7_265_001
DEFAULT_STORE = ".rankgauge/store.db"
_VERSION = f"{PREFIX}version"
# What a store of before this schema has, one for each kind.
_EARLIER = re.compile(rf"{PREFIX}(history|judging_project|store_of_verdicts)_version")
_MISSING = "save an evaluation first: rankgauge evaluate QRELS RUN --save"
_POSTGRES = {"postgres", "postgresql", "postgresql+psycopg"}
_URL = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*)://")
_PASSWORD = re.compile(r"(?i)(ssl)?pass\w*")


class NothingStored(InputError):  # noqa: N818 - an error in words
    """The database or its tables do not exist yet."""


class _Shared(threading.local):
    """The transactions that reads of a thread share, by store: several objects may open a store."""

    def __init__(self) -> None:
        self.connections: dict[str, Connection] = {}


_shared = _Shared()


class Database:
    """A database that is opened on first use."""

    def __init__(self, where: str, schema: Schema, *, patience: float) -> None:
        self._schema, self._patience, self.first = schema, patience, _MISSING
        self._engines: dict[bool, Engine] = {}
        self._keeps = False
        self._prepared: tuple[int, int] | None = None  # identity of the prepared file
        if "\0" in where or not where:
            raise InputError(f"{where!r:.60} is not a path", where="store", fix="name a file or a URL")
        self._url = _url_of(where) if _URL.match(where) else None
        self.path: Path | None = None
        if self._url is None:
            self.path = Path(where)
        elif self._url.get_backend_name() == "sqlite":
            if not self._url.database or self._url.database == ":memory:":
                raise InputError(
                    "this URL names no file",
                    where=self._url.render_as_string(hide_password=True),
                    fix="write sqlite:///store.db, or the path",
                )
            self.path = Path(self._url.database)
        self._secrets = Secrets()
        if self._url is not None:
            self._secrets.add_login(self._url.username or "", self._url.password or "")
            for name, value in self._url.normalized_query.items():
                if _PASSWORD.fullmatch(name):
                    self._secrets.add(value[0], name)
            where = self._url.render_as_string(hide_password=True)
        self.where = redact(where)

    def keep_open(self) -> None:
        """Keep connections open until `close` and reuse them."""
        self.close()
        self._keeps = True

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        self._keeps, self._prepared = False, None
        for engine in self._engines.values():
            engine.dispose()
        self._engines.clear()

    @contextmanager
    def reading(self, done: str = "read") -> Iterator[Connection]:
        """Open a read-only transaction, or use the shared one; `done` says in errors what cannot be done."""
        with self.errors(done), self._begin() if self.shared is None else nullcontext(self.shared) as connection:
            yield connection

    @contextmanager
    def sharing(self) -> Iterator[Connection]:
        """Open a read-only transaction that all reads of this store in this thread use, until it writes."""
        with self._begin() as connection:
            _shared.connections[self.where] = connection
            try:
                yield connection
            finally:
                _shared.connections.pop(self.where, None)

    @property
    def shared(self) -> Connection | None:
        """The transaction that reads of this thread share."""
        return _shared.connections.get(self.where)

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        if self.path is not None:
            self._refuse_folder(self.path)
            if not self.path.exists():
                raise self.nothing_stored()
        with self._engine(create=False).begin() as connection:
            if self.path is None:
                # One snapshot for all statements, as in SQLite.
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self._set_lock_timeout(connection)
            revision = self._revision(connection)
            if revision is None:
                raise self.nothing_stored()
            if revision == self._schema.revision:
                yield connection
                return
        with self.writing():
            pass  # migrates
        with self._begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a write transaction: it is committed as a whole or rolled back.

        Only one writer at a time; others wait. The first write creates the tables and migrates an
        older database.
        """
        _shared.connections.pop(self.where, None)
        with self.errors("written"):
            if self.path is not None:
                folder = Path(os.path.abspath(self.path)).parent  # noqa: PTH100 - a link stays a link
                if folder.name == ".rankgauge" and folder.parent.is_dir():
                    data_folder(folder.parent)
                # Other folders are not created: their names may be typos.
                if not folder.is_dir():
                    raise InputError(
                        f"there is no folder {str(folder)!r}", where=self.where, fix="create it, or correct the path"
                    )
                self._refuse_folder(self.path)
                if not self._keeps or self._prepared is None or self._prepared != self._file():
                    self._prepare_file()
                    self._prepared = self._file()
            with self._engine(create=True).begin() as connection:
                self._set_lock_timeout(connection)
                if self.path is None:
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
                revision = self._revision(connection)
                if revision != self._schema.revision:
                    self._migrate(connection, revision)
                yield connection

    @contextmanager
    def adding(self) -> Iterator[Connection]:
        """Open a connection to an existing database that adds rows beside other writers, and commits by itself."""
        with self.errors("written"), self._engine(create=True).connect() as connection:
            yield connection

    def compact(self) -> None:
        """Remove deleted content from the bytes of an SQLite file and its log."""
        if self.path is not None:
            with self.errors("compacted"), contextlib.closing(self._open(create=False)) as raw:
                raw.execute("VACUUM")
                if raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                    raise locked("store", self.where, self._patience)

    # ---- opening

    def _set_lock_timeout(self, connection: Connection) -> None:
        """Set the lock timeout (for SQLite it is set on opening)."""
        if self.path is None:
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(self._patience * 1000)}")

    def _engine(self, *, create: bool) -> Engine:
        from sqlalchemy import create_engine, event
        from sqlalchemy.exc import DisconnectionError
        from sqlalchemy.pool import NullPool, QueuePool

        if create in self._engines:
            return self._engines[create]
        pool: dict[str, Any] = {"poolclass": NullPool}
        if self._keeps:
            pool = {"poolclass": QueuePool, "pool_size": 8, "max_overflow": -1}
        if self._url is not None and self.path is None:
            wait = {} if "connect_timeout" in self._url.query else {"connect_timeout": 10}
            try:
                engine = create_engine(self._url, **pool, pool_pre_ping=self._keeps, connect_args=wait)
            except ImportError:
                raise MissingExtra(
                    "PostgreSQL needs the driver psycopg, which is not installed",
                    where=self.where,
                    fix="pip install 'rankgauge[postgres]'",
                ) from None
        else:
            engine = create_engine("sqlite://", **pool, creator=lambda: self._open(create=create))
            how = "BEGIN IMMEDIATE" if create else "BEGIN"
            event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(how))
            if self._keeps:

                @event.listens_for(engine, "connect")
                def note(_: object, record: Any) -> None:
                    record.info["file"] = self._file()

                @event.listens_for(engine, "checkout")
                def check(_: object, record: Any, __: object) -> None:
                    # The file may have been replaced by a backup or a new project.
                    if record.info["file"] != self._file():
                        raise DisconnectionError

        self._engines[create] = engine
        return engine

    def _open(self, *, create: bool) -> sqlite3.Connection:
        """Open a connection; only the owner can read a new file and its WAL.

        Nothing else in this module may open the file: closing it would release all locks that
        SQLite holds on it in this process (sqlite.org/howtocorrupt.html, 2.2).
        """
        path = Path(os.path.abspath(self.path or ""))  # noqa: PTH100 - a link stays a link
        new = create and not path.exists()
        mode = "rwc" if create else "rw"
        if not create and not os.access(path.parent, os.W_OK):
            # Reading creates two files in the folder, unless the database is immutable.
            mode = "ro" if Path(f"{path}-wal").exists() else "ro&immutable=1"
        raw = sqlite3.connect(
            f"{path.as_uri()}?mode={mode}",
            uri=True,
            timeout=self._patience,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            if new:
                path.chmod(0o600)
            raw.execute("PRAGMA synchronous = FULL")
            self._refuse_truncated(raw, path)
        except BaseException:
            raw.close()
            raise
        return raw

    def _refuse_truncated(self, raw: sqlite3.Connection, path: Path) -> None:
        """Reject a file that is shorter than its pages; SQLite accepts half of the last page."""
        raw.execute("BEGIN")
        raw.execute("SELECT count(*) FROM sqlite_master")  # begins to read
        pages, size = (raw.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in ("page_count", "page_size"))
        try:
            logged = os.stat(f"{path}-wal").st_size  # noqa: PTH116 - as the next line
        except FileNotFoundError:
            logged = 0
        # Without a log, all pages of this transaction are in the file.
        if not logged and path.stat().st_size < pages * size:
            raise self.damaged("it is truncated")
        raw.execute("COMMIT")

    def _file(self) -> tuple[int, int] | None:
        """Return device and inode of the file; None if it does not exist."""
        try:
            status = os.stat(self.path or "")  # noqa: PTH116 - the path may be empty
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _prepare_file(self) -> None:
        """Switch the file to WAL mode, in which readers and a writer do not block each other."""
        with contextlib.closing(self._open(create=True)) as raw:
            self._refuse_others([row[0] for row in raw.execute("SELECT name FROM sqlite_master")])
            if raw.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
                return
            until = time.monotonic() + self._patience
            while True:
                try:
                    raw.execute("PRAGMA journal_mode = WAL")
                except sqlite3.OperationalError as error:
                    # SQLite's busy timeout does not apply to this statement.
                    busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                    if not busy or time.monotonic() > until:
                        raise
                    time.sleep(0.02)
                else:
                    return

    def _refuse_folder(self, path: Path) -> None:
        if path.is_dir():
            raise InputError("this is a folder", where=self.where, fix="name a file in it")

    # ---- tables and their revision

    def _revision(self, connection: Connection) -> str | None:
        """Return the revision of the tables; None if there are no tables."""
        from sqlalchemy import inspect, select

        names = set(inspect(connection).get_table_names())
        if self.path is not None:
            self._refuse_others(names)
        if any(map(_EARLIER.fullmatch, names)):
            raise InputError(
                "an earlier development version wrote this store; its format is not read any more",
                where=self.where,
                fix="name a new store",
            )
        if _VERSION not in names:
            return None
        latest = self._schema.revision
        revision: Any = connection.scalar(select(self._schema.table("version")))
        if not isinstance(revision, str) or not revision.isdecimal() or not int(revision):
            raise self.damaged(f"its version is {revision!r:.60}")
        if int(revision) > int(latest):
            raise InputError(
                f"this store is of version {revision}; this rankgauge knows versions up to {latest}",
                where=self.where,
                fix="use the newer rankgauge that wrote it: pip install --upgrade rankgauge",
            )
        if revision == latest and not names.issuperset(self._schema.tables.tables):
            raise self.damaged("tables are missing")
        return revision

    def _migrate(self, connection: Connection, revision: str | None) -> None:
        """Create the tables, or apply the migrations after this revision, in the transaction of the connection."""
        if revision is None:
            self._schema.tables.create_all(connection)
            connection.execute(self._schema.table("version").insert().values(version_num=self._schema.revision))
            return
        try:
            from alembic.migration import MigrationContext
            from alembic.operations import Operations
            from alembic.script import ScriptDirectory
        except ImportError:
            raise MissingExtra(
                f"this store is of version {revision}; to upgrade it, Alembic is needed, which is not installed",
                where=self.where,
                fix="pip install 'rankgauge[postgres]'",
            ) from None
        folder = str(self._schema.migrations)
        script = ScriptDirectory(folder, version_locations=[folder])
        context = MigrationContext.configure(connection, opts={"version_table": _VERSION})
        with Operations.context(context):
            for step in reversed(list(script.iterate_revisions(self._schema.revision, revision))):
                step.module.upgrade()
                context.stamp(script, step.revision)

    # ---- errors

    def _refuse_others(self, names: Iterable[str]) -> None:
        others = [name for name in names if not name.startswith((PREFIX, "sqlite_"))]
        if others:
            raise InputError(
                f"this is another kind of database: it contains {others[0]!r:.60}",
                where=self.where,
                fix="name another file for the store",
            )

    def nothing_stored(self, what: str = "store") -> NothingStored:
        """Return the error for a store that is needed but does not exist."""
        return NothingStored(f"there is no {what} yet", where=self.where, fix=self.first)

    def damaged(self, how: str) -> InputError:
        """Return the error for damaged content."""
        return damaged(how, "store", self.where)

    @contextmanager
    def errors(self, done: str) -> Iterator[None]:
        """Raise errors of the database and of files as `InputError`; `done` is ``read`` or ``written``."""
        from sqlalchemy.exc import DBAPIError, SQLAlchemyError

        try:
            yield
        except (DBAPIError, sqlite3.Error) as error:
            raw = error.orig if isinstance(error, DBAPIError) else error
            if isinstance(raw, sqlite3.Error):
                raise sqlite_error(raw, done, store="store", where=self.where, patience=self._patience) from None
            raise self._server_error(raw) from None
        except SQLAlchemyError as error:
            raise InputError(
                f"the database cannot be {done}: {self._plain(error)}", where=self.where, fix="check the URL"
            ) from None
        except (OSError, ValueError) as error:
            if isinstance(error, RankgaugeError):
                raise
            raise InputError(
                f"cannot be {done}: {getattr(error, 'strerror', None) or error}",
                where=self.where,
                fix="check the path, and that its folder is writable",
            ) from None

    def _server_error(self, error: Any) -> InputError:
        state = getattr(error, "sqlstate", None) or ""
        message = self._plain(error)
        if state in {"55P03", "57014"}:
            return locked("store", self.where, self._patience)
        if state == "42501":
            what = f"the server denies permission: {message}"
            fix = "ask for the right to create tables"
        elif state and not state.startswith(("08", "28", "3D", "57P")):
            what, fix = f"the server says: {message}", "check the database"
        else:
            what = f"the server cannot be reached: {message}"
            fix = "check host, port, name, and password in the URL, and that the server is running"
        return StorageError(what, where=self.where, fix=fix)

    def _plain(self, error: object) -> str:
        """Return the driver's message on one line, without secrets."""
        return " ".join(redact(self._secrets.redact(str(error))).split())[:300]


class Store:
    """Base class of stores in a database; a context manager that closes it."""

    _first: ClassVar[str] = _MISSING  # fix to show if nothing is stored yet

    def __init__(self, where: str | os.PathLike[str] | None = None, *, wait: float = 30.0) -> None:
        """Open a store, which the first write creates.

        Args:
            where: Path of a file, or ``postgresql://user:password@host/database``. If omitted, the
                value of the environment variable ``RANKGAUGE_STORE``, the store of the project of
                the current folder or of one above it, or ``.rankgauge/store.db``.
            wait: Seconds to wait while another program holds a lock.

        Raises:
            MissingExtra: If the PostgreSQL driver is not installed.
            InputError: If the URL is invalid.
        """
        named = where is not None
        if where is None:
            project = find_project_file()
            default = DEFAULT_STORE if project is None else ProjectFile.read(project).store
            where = os.environ.get("RANKGAUGE_STORE") or default
        if not isinstance(where, str | os.PathLike):
            raise InputError(
                f"got {where!r:.60}, expected a path or a URL",
                where="store",
                fix=f'pass text: {type(self).__name__}("store.db")',
            )
        self._database = Database(os.fspath(where), SCHEMA, patience=wait)
        # Names this store in commands; the default store needs no name.
        self.flag = f" --store {shlex.quote(self.where)}" if named else ""
        self._database.first = self._first + self.flag

    @property
    def where(self) -> str:
        """The path, or the URL without its password."""
        return self._database.where

    def close(self) -> None:
        """Close the database; the next use opens it again."""
        self._database.close()

    def __enter__(self) -> Self:
        """Keep connections open inside the block: opening one takes milliseconds."""
        self._database.keep_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.where}>"


def _url_of(where: str) -> URL:
    """Parse a URL. Messages never repeat it in full: it may contain a password."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    scheme, _, rest = where.partition("://")
    unreadable = InputError(
        "this URL cannot be parsed",
        where=f"{scheme}://...",
        fix="write postgresql://user:password@host:port/database; in the password, @ is %40, / is %2F, : is %3A",
    )
    # The rest of a password after an "@" would be parsed, and printed, as the host.
    if rest.partition(":")[2].count("@") > 1:
        raise unreadable
    try:
        url = make_url(where)
    except (ArgumentError, ValueError):
        raise unreadable from None
    if scheme in _POSTGRES:
        return url.set(drivername="postgresql+psycopg")
    if scheme in {"sqlite", "sqlite+pysqlite"}:
        return url
    raise InputError(
        "this kind of database is not supported",
        where=f"{scheme}://...",
        fix="pass the path of a file (SQLite), or postgresql://user:password@host/database",
    )
