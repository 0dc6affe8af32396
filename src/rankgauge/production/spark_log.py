"""`SparkLog`: a production log in a Spark DataFrame, analyzed with the same queries as files.

sqlglot translates queries from the DuckDB dialect, so that each metric is defined once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from rankgauge.core.libraries import library
from rankgauge.errors import FormatError
from rankgauge.production.events import COLUMNS, statement
from rankgauge.production.log import REQUIRED_COLUMNS, EventLog

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - as DuckDB gives times
_ZONE = "spark.sql.session.timeZone"
_NUMBERS = count(1)
_NONE: Mapping[str, Any] = {}
_WORD = r"[\pL\pN]+"  # as in the macro of `EventLog`


class SparkLog(EventLog):
    """A log in a Spark DataFrame, for `online_metrics` and `compare_arms`.

    The queries run on Spark and give the same numbers as for a log in files: counts and their
    intervals are equal, and sums of fractions (``click_mrr``) are equal up to rounding. Only sums
    are collected. The order of simultaneous events may differ.

    Args:
        events: A DataFrame with the columns of `COLUMNS`; only ``event_id``, ``kind``, ``time``
            (a timestamp), and ``question_id`` are required.
        name: The name in tables.

    Raises:
        FormatError: If a column is missing or ``time`` is not a timestamp.
        MissingExtra: If pyspark or sqlglot is not installed.

    Example:
        >>> log = SparkLog(session.read.parquet("s3://logs/events"))  # doctest: +SKIP
        >>> print(online_metrics(log, by="week"))  # doctest: +SKIP
    """

    def __init__(self, events: Any, name: str = "Spark") -> None:  # does not open files
        library("pyspark", extra="spark", of="a log on Spark")
        library("sqlglot", extra="sql", of="a log on Spark")
        self.path, self.files = name, ()
        types = dict(events.dtypes)
        missing = [column for column in REQUIRED_COLUMNS if column not in types]
        if missing:
            raise FormatError(
                f"there is no column {missing[0]!r}: the columns are {', '.join(sorted(types))}",
                path=name,
                fix="name the columns as rankgauge.production.COLUMNS",
            )
        if types["time"] != "timestamp":
            raise FormatError(
                f"column 'time' has values of type {types['time']}", path=name, fix="cast it to a timestamp"
            )
        self._frame = events

    def connection(self) -> Any:
        """Open a connection to Spark with the views ``events`` and ``questions``.

        Until it is closed, Spark's time zone is UTC.
        """
        return _Connection(self._frame)


class _Connection(AbstractContextManager["_Connection"]):
    """The subset of the DuckDB connection interface that the analyses of a log use."""

    def __init__(self, events: Any) -> None:
        self._session = events.sparkSession
        self._prefix = f"rankgauge_{next(_NUMBERS)}_"
        self._views: list[str] = []
        self._kept: list[Any] = []
        self._rows: list[Any] = []
        self._zone = self._session.conf.get(_ZONE)
        self._session.conf.set(_ZONE, "UTC")
        self._sqlglot = library("sqlglot", extra="sql", of="a log on Spark")
        columns = (
            f"CAST({f'`{name}`' if name in events.columns else 'NULL'} AS"
            f" {self._sqlglot.exp.DataType.build(kind, dialect='duckdb').sql(dialect='spark')}) AS `{name}`"
            for name, kind in COLUMNS.items()
        )
        self._create("events", events.selectExpr(*columns))
        self._create("questions", self._query(statement("questions"), _NONE))

    def execute(self, sql: str, parameters: Mapping[str, Any] = _NONE) -> _Connection:
        """Run a statement of the analyses; its parameters have names, such as ``$arm``."""
        tree = self._sqlglot.parse_one(sql, read="duckdb")
        if not isinstance(tree, self._sqlglot.exp.Create):
            self._rows = _fetch(self._query(tree, parameters))
        elif tree.expression is None:
            columns = ", ".join(f"{column.name} {column.kind.sql('spark')}" for column in tree.this.expressions)
            self._create(tree.this.this.name, self._session.createDataFrame([], columns))
        else:
            # Cached because each statement that reads it would recompute it.
            frame = self._query(tree.expression, parameters).persist()
            self._kept.append(frame)
            self._create(tree.this.name, frame)
        return self

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows into a table."""
        name = self._sqlglot.parse_one(sql, read="duckdb").this.name
        known = self._session.table(self._prefix + name)
        self._create(name, self._session.createDataFrame(list(map(tuple, rows)), known.schema))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows of the last query."""
        return self._rows

    def close(self) -> None:
        """Drop all views."""
        for frame in self._kept:
            frame.unpersist()
        for name in self._views:
            self._session.catalog.dropTempView(self._prefix + name)
        self._session.conf.set(_ZONE, self._zone)

    def __exit__(self, *_: object) -> None:
        self.close()

    def _create(self, name: str, frame: Any) -> None:
        frame.createOrReplaceTempView(self._prefix + name)
        if name not in self._views:
            self._views.append(name)

    def _query(self, query: Any, parameters: Mapping[str, Any]) -> Any:
        """Run a DuckDB query, translated to the dialect of Spark."""
        exp = self._sqlglot.exp
        tree = self._sqlglot.parse_one(query, read="duckdb") if isinstance(query, str) else query
        # Replace children before their parents.
        for node in reversed(list(tree.walk())):
            if isinstance(node, exp.Parameter | exp.Placeholder):
                node.replace(exp.convert(parameters[node.name]))
            elif isinstance(node, exp.Table) and node.name in self._views:
                node.set("this", exp.to_identifier(self._prefix + node.name))
            else:
                adapted = _adapted(node, exp)
                if adapted is not None:
                    node.replace(adapted)
        return self._session.sql(tree.sql(dialect="spark"))


def _adapted(node: Any, exp: Any) -> Any:  # noqa: C901, PLR0911 - one case for each function
    """Return the replacement of a function that sqlglot mistranslates, or None."""

    def call(name: str, *arguments: Any) -> Any:
        return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])

    match node:
        case exp.Length():  # only used for lists
            return call("array_size", node.this)
        case exp.ArgMin() | exp.ArgMax():
            # Ignore rows without a value.
            name = "min_by" if isinstance(node, exp.ArgMin) else "max_by"
            known = exp.Not(this=exp.Is(this=node.this.copy(), expression=exp.Null()))
            return call(name, node.this, exp.If(this=known, true=node.expression.copy(), false=exp.Null()))
        case exp.Bracket(this=exp.Anonymous()):  # map_extract(map, key)[1]
            return call("try_element_at", *node.this.expressions)
        case exp.Bracket():
            return call("get", node.this, *node.expressions)
        case exp.Quantile() | exp.PercentileDisc():
            order = exp.Ordered(this=node.this.copy(), nulls_first=True)
            at = node.args.get("quantile") or node.expression
            return exp.WithinGroup(this=call("percentile_disc", at), expression=exp.Order(expressions=[order]))
        case exp.GroupConcat():
            units = call("collect_set", node.find(exp.Column))
            return call("array_join", call("sort_array", units), exp.convert(" or "))
        case exp.Anonymous() if node.name.lower() == "arg_max_null":
            return call("max_by", *node.expressions)
        case exp.TimeToUnix():  # DuckDB includes the fraction
            return exp.Div(this=call("unix_micros", node.this), expression=exp.convert(1e6))
        case exp.Anonymous() if node.name.lower() == "word_similarity":
            first, second = (
                call(
                    "array_distinct",
                    call("regexp_extract_all", call("lower", text), exp.convert(_WORD), exp.convert(0)),
                )
                for text in node.expressions
            )
            sizes = exp.Mul(this=call("array_size", first), expression=call("array_size", second))
            return exp.Div(
                this=call("array_size", call("array_intersect", first, second)),
                expression=call("nullif", call("sqrt", sizes), exp.convert(0)),
            )
    return None


def _fetch(frame: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a small result, with naive times in UTC as from DuckDB."""
    names = [f"c{n}" for n in range(len(frame.columns))]
    times = [kind == "timestamp" for _, kind in frame.dtypes]
    cells = [f"unix_micros({c})" if is_time else c for c, is_time in zip(names, times, strict=True)]
    return [
        tuple(
            _EPOCH + timedelta(microseconds=value) if is_time and value is not None else value
            for value, is_time in zip(row, times, strict=True)
        )
        for row in frame.toDF(*names).selectExpr(*cells).collect()
    ]
