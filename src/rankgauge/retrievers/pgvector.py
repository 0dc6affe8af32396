"""pgvector: vectors in PostgreSQL tables."""

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
# Maximum and default of hnsw.ef_search in pgvector.
_MOST_EF, _EF = 1000, 40


@dataclass(eq=False, repr=False, kw_only=True)
class PGVector(VectorStore):
    """Vectors in a PostgreSQL table with the pgvector extension.

    Without an index, search is exact, and ties are broken by document id, ascending. With an index
    (`hnsw`), search is approximate, and filters are applied to the hits of the index.

    Arguments common to all vector stores are described by ``VectorStore``.

    Args:
        location: The URL of the database, ``postgresql://...``; if empty, the PostgreSQL
            environment variables are used (``PGHOST``, ``PGUSER``, ...).
        schema: The schema; default: that of the connection.
        hnsw: Whether to create an HNSW index after filling the table.
        ef_search: The number of candidates in a search of the index; default: `k`, at least 40, or
            the server's setting for existing tables.
        id_field: The column of document ids.
        filter_field: Search only documents whose column of this name equals the same field of the
            query, as text; queries without the field search all.
        vector_field: The column of vectors, of type ``vector`` or ``halfvec``.
        key_env: The environment variable with the password.

    Raises:
        MissingExtra: If psycopg or pgvector is not installed.
        InputError: If the server cannot be reached, or the extension is missing.
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
        given = self._parse_location(location) | secret
        for name in ("password", "sslpassword"):
            self._secrets.add(given.get(name) or "", name)
        try:
            self._connection = self._psycopg.connect(
                autocommit=True, **{"application_name": "rankgauge", **given}
            )
        except self._psycopg.Error as error:
            raise InputError(
                f"cannot connect: {self._error_text(error)}", where="pgvector",
                fix='pass the URL of a running server: location="postgresql://user@host/name"',
            ) from None  # fmt: skip
        self._prepare()

    @property
    def size(self) -> int | None:
        """Bytes of the table and its indexes; None without a table."""
        found = self._connection.execute(
            "SELECT pg_total_relation_size(to_regclass(%s))", [self._regclass()]
        )
        return found.fetchone()[0]

    def _close(self) -> None:
        self._connection.close()

    def _options(self) -> dict[str, Any]:
        return {"hnsw": self.hnsw, "ef_search": self.ef_search, "engine": self._versions}

    def _parse_location(self, location: str) -> dict[str, Any]:
        """Return the parts of a URL, or of a string such as ``host=... dbname=...``."""
        conninfo = library("psycopg.conninfo", extra="pgvector", of="PGVector")
        try:
            url = escaped_login(location) if "://" in location else location
            parts: dict[str, Any] = conninfo.conninfo_to_dict(url)
        except (ValueError, self._psycopg.Error):
            # The driver's message might contain parts of a password.
            raise InputError(
                "the location cannot be parsed", where="pgvector",
                fix="write postgresql://user:password@host:port/database; in the password, @ is "
                "%40, / is %2F, : is %3A; or name its variable in key_env",
            ) from None  # fmt: skip
        return parts

    def _error_text(self, error: Exception) -> str:
        return self._secrets.redact(str(error)).strip()

    # ---- SQL; names are always quoted by psycopg

    def _prepare(self) -> None:
        """Ensure that the extension is installed, and record the versions for the settings."""
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
                fix="install it on the server, and have the owner run: CREATE EXTENSION vector",
            ) from None  # fmt: skip

    def _regclass(self) -> str:
        """Return the quoted name of the table as a string."""
        names = [self.schema] if self.schema else []
        return self._sql.Identifier(*names, self.collection).as_string(self._connection)

    def _name(self) -> Any:
        return self._sql.SQL(self._regclass().replace("%", "%%"))

    def _column(self, name: str) -> Any:
        # For psycopg, a percent sign begins a placeholder even within quotes.
        quoted = self._sql.Identifier(name).as_string(self._connection)
        return self._sql.SQL(quoted.replace("%", "%%"))

    def _run(self, text: str, given: list[Any] | None = None, **names: str | None) -> Any:
        known = {key: self._column(name) for key, name in names.items() if name}
        statement = self._sql.SQL(text).format(table=self._name(), **known)
        return self._connection.execute(statement, given or [])

    def _describe(self) -> Existing | None:
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
        # An index can sort by distance only.
        text += "" if self.hnsw or self.existing else ', {id} COLLATE "C"'
        text += " LIMIT %s"
        given = [] if value is None else [text_of(value)]
        with self._connection.transaction():
            self._set_ef_search(limit)
            return [
                [
                    (name, self._score(distance))
                    for name, distance in self._run(
                        text, [vector, *given, limit],
                        id=self.id_field, vector=self.vector_field, kept=self.filter_field,
                    )
                    # The cosine of a zero vector in an existing table is undefined.
                    if distance is not None and not math.isnan(distance)
                ]
                for vector in vectors
            ]  # fmt: skip

    def _set_ef_search(self, limit: int) -> None:
        """Let the index return as many hits as requested."""
        wanted = self.ef_search
        if wanted is None and self.hnsw and not self.existing:
            wanted = min(max(limit, _EF), _MOST_EF)
        if wanted is not None:
            self._connection.execute(f"SET LOCAL hnsw.ef_search = {int(wanted)}")

    def _score(self, distance: float) -> float:
        # <=> is 1 - cosine, <#> the negative inner product, <-> the Euclidean distance.
        return 1.0 - distance if self.similarity == "cosine" else -distance
