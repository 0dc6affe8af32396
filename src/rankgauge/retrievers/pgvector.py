"""pgvector: tables of PostgreSQL."""

from __future__ import annotations

import math
import re
from dataclasses import InitVar, dataclass
from typing import Any

from rankgauge.core.arguments import integer
from rankgauge.core.database import escaped_login
from rankgauge.core.libraries import library
from rankgauge.errors import InputError
from rankgauge.retrievers.vector_store import (
    Existing,
    Row,
    Vectors,
    VectorStore,
    secret_of,
    text_of,
)

_OPERATORS = {"cosine": "<=>", "dot": "<#>", "l2": "<->"}
_CLASSES = {"cosine": "vector_cosine_ops", "dot": "vector_ip_ops", "l2": "vector_l2_ops"}
_TYPE = re.compile(r"(?:.*\.)?(vector|halfvec)(?:\((\d+)\))?")
# What PostgreSQL takes, and what it uses unless told.
_MOST_EF, _EF = 1000, 40


@dataclass(eq=False, repr=False, kw_only=True)
class PGVector(VectorStore):
    """Vectors in a table of PostgreSQL with the extension pgvector.

    Without an index every vector is compared, and ties are in the order of document ids. Through an
    index (`hnsw`) the search is not exact, and a filter is applied to what the index found.

    Arguments common to all vector stores are described by ``VectorStore``.

    Args:
        location: The URL of the database, ``postgresql://...``; if empty, the environment variables
            of PostgreSQL (``PGHOST``, ``PGUSER``, ...).
        schema: The schema; default: that of the connection.
        hnsw: Create an HNSW index after filling the table.
        ef_search: The number of candidates in a search of the index; default: `k`, at least 40, or
            the server's setting for existing tables.
        id_field: The column of document ids.
        filter_field: Search only documents whose column of that name equals that field of the
            query, as text; queries without it search all.
        vector_field: The column of vectors, of type ``vector`` or ``halfvec``.
        key_env: The environment variable that holds the password.

    Raises:
        MissingExtra: If psycopg or pgvector is not installed.
        InputError: If there is no such server, or not the extension.
    """

    TYPE = "pgvector"
    LIBRARIES = ("pgvector", "psycopg")

    location: InitVar[str] = ""
    schema: str | None = None
    hnsw: bool = False
    ef_search: int | None = None
    vector_field: str = "vector"
    key_env: InitVar[str | None] = None

    def __post_init__(self, location: str, key_env: str | None) -> None:
        super().__post_init__()
        if self.ef_search is not None:
            integer("ef_search", self.ef_search, most=_MOST_EF)
        self._psycopg = library("psycopg", extra="pgvector", of="PGVector")
        self._pgvector = library("pgvector.psycopg", extra="pgvector", of="PGVector")
        self._sql = library("psycopg.sql", extra="pgvector", of="PGVector")
        self._kind = "vector"
        password = secret_of(key_env, "pgvector")
        secret = {} if password is None else {"password": password}
        given = self._understood(location) | secret
        for name in ("password", "sslpassword"):
            self._secrets.add(given.get(name) or "", name)
        try:
            self._connection = self._psycopg.connect(
                autocommit=True, **{"application_name": "rankgauge", **given}
            )
        except self._psycopg.Error as error:
            raise InputError(
                f"cannot connect: {self._error_text(error)}", where="pgvector",
                fix='give the URL of a running server: location="postgresql://user@host/name"',
            ) from None  # fmt: skip
        self._prepare()

    @property
    def size(self) -> int | None:
        """Bytes of the table with its indexes; None if there is none."""
        found = self._connection.execute(
            "SELECT pg_total_relation_size(to_regclass(%s))", [self._regclass()]
        )
        return found.fetchone()[0]

    def _close(self) -> None:
        self._connection.close()

    def _options(self) -> dict[str, Any]:
        return {"hnsw": self.hnsw, "ef_search": self.ef_search, "engine": self._versions}

    def _understood(self, location: str) -> dict[str, Any]:
        """Return the parts of a URL, or of a text such as ``host=... dbname=...``."""
        conninfo = library("psycopg.conninfo", extra="pgvector", of="PGVector")
        try:
            url = escaped_login(location) if "://" in location else location
            parts: dict[str, Any] = conninfo.conninfo_to_dict(url)
        except (ValueError, self._psycopg.Error):
            # What the driver says of it would repeat parts of a password.
            raise InputError(
                "this location cannot be parsed", where="pgvector",
                fix="write postgresql://user:password@host:port/database; in the password, @ is "
                "%40, / is %2F, : is %3A; or name its variable in key_env",
            ) from None  # fmt: skip
        return parts

    def _error_text(self, error: Exception) -> str:
        return self._secrets.redact(str(error)).strip()

    # ---- SQL, in which no name is ever pasted

    def _prepare(self) -> None:
        """See that the extension is there, and note which versions search."""
        there = "SELECT 1 FROM pg_extension WHERE extname = 'vector'"
        try:
            if self._connection.execute(there).fetchone() is None:
                self._connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            self._pgvector.register_vector(self._connection)
            version = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
            self._versions = {
                "postgresql": self._connection.info.server_version,
                "vector": self._connection.execute(version).fetchone()[0],
            }
        except self._psycopg.Error as error:
            self._connection.close()
            raise InputError(
                f"the database has no pgvector: {self._error_text(error)}", where="pgvector",
                fix="install it on the server, and let its owner run: CREATE EXTENSION vector",
            ) from None  # fmt: skip

    def _regclass(self) -> str:
        """Return the name of the table, quoted, as a value."""
        names = [self.schema] if self.schema else []
        return self._sql.Identifier(*names, self.collection).as_string(self._connection)

    def _name(self) -> Any:
        return self._sql.SQL(self._regclass().replace("%", "%%"))

    def _column(self, name: str) -> Any:
        # Quotes are no shelter from psycopg, for which a percent sign begins a placeholder.
        quoted = self._sql.Identifier(name).as_string(self._connection)
        return self._sql.SQL(quoted.replace("%", "%%"))

    def _run(self, text: str, given: list[Any] | None = None, **names: str | None) -> Any:
        known = {key: self._column(name) for key, name in names.items() if name}
        statement = self._sql.SQL(text).format(table=self._name(), **known)
        return self._connection.execute(statement, given or [])

    def _described(self) -> Existing | None:
        rows = self._connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
            " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            [self._regclass()],
        ).fetchall()
        if not rows:
            return None
        columns = dict(rows)
        wanted = [self.id_field, self.vector_field, self.filter_field]
        missing = [name for name in wanted if name and name not in columns]
        kind = _TYPE.fullmatch(columns.get(self.vector_field, ""))
        if not self.existing:
            return Existing(None, None)
        if missing or kind is None:
            shown = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            raise InputError(
                f"table {self.collection!r} has no column {(missing or [self.vector_field])[0]!r}"
                f"{'' if missing else ' of vectors'}; it has {shown}",
                where="pgvector", fix="name the columns: id_field=..., vector_field=...",
            )  # fmt: skip
        self._kind = kind[1]
        return Existing(None, int(kind[2]) if kind[2] else None)

    def _create(self, dimensions: int) -> None:
        if self.schema:
            self._run("CREATE SCHEMA IF NOT EXISTS {schema}", schema=self.schema)
        columns = f"({{id}} text PRIMARY KEY, {{vector}} vector({int(dimensions)}) NOT NULL"
        columns += ", {kept} text)" if self.filter_field else ")"
        self._run(
            f"CREATE TABLE {{table}} {columns}",
            id=self.id_field, vector=self.vector_field, kept=self.filter_field,
        )  # fmt: skip

    def _drop(self) -> None:
        self._run("DROP TABLE {table}")

    def _add(self, ids: list[str], vectors: Vectors, values: list[Any]) -> None:
        names = [self.id_field or "", self.vector_field]
        columns: list[Any] = [ids, list(vectors)]
        if self.filter_field:
            names.append(self.filter_field)
            columns.append([text_of(value) for value in values])
        statement = self._sql.SQL("INSERT INTO {table} ({names}) VALUES ({marks})").format(
            table=self._name(),
            names=self._sql.SQL(", ").join(map(self._column, names)),
            marks=self._sql.SQL(", ").join(self._sql.Placeholder() * len(names)),
        )
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(statement, list(zip(*columns, strict=True)))

    def _finish(self) -> None:
        if self.hnsw:
            self._run(
                f"CREATE INDEX ON {{table}} USING hnsw ({{vector}} {_CLASSES[self.similarity]})",
                vector=self.vector_field,
            )
        self._run("ANALYZE {table}")

    def _nearest(self, vectors: Vectors, limit: int, value: Any) -> list[list[Row]]:
        compared = f"{{vector}} {_OPERATORS[self.similarity]} %s::{self._kind}"
        text = f"SELECT {{id}}::text, {compared} AS distance FROM {{table}}"  # noqa: S608 - fixed
        text += "" if value is None else " WHERE {kept}::text = %s"
        text += " ORDER BY distance"
        # An index gives them in the order of distance alone.
        text += "" if self.hnsw or self.existing else ', {id} COLLATE "C"'
        text += " LIMIT %s"
        given = [] if value is None else [text_of(value)]
        with self._connection.transaction():
            self._widen(limit)
            return [
                [
                    (name, self._score(distance))
                    for name, distance in self._run(
                        text, [vector, *given, limit],
                        id=self.id_field, vector=self.vector_field, kept=self.filter_field,
                    )
                    # A vector of zeros in an existing table has no cosine.
                    if distance is not None and not math.isnan(distance)
                ]
                for vector in vectors
            ]  # fmt: skip

    def _widen(self, limit: int) -> None:
        """Let an index find as many as are asked for."""
        wanted = self.ef_search
        if wanted is None and self.hnsw and not self.existing:
            wanted = min(max(limit, _EF), _MOST_EF)
        if wanted is not None:
            self._connection.execute(f"SET LOCAL hnsw.ef_search = {int(wanted)}")

    def _score(self, distance: float) -> float:
        # <=> is 1 - cosine, <#> the inner product with a minus, <-> the Euclidean distance.
        return 1.0 - distance if self.similarity == "cosine" else -distance
