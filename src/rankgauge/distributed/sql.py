"""SQL queries that compute common measures in a database or warehouse.

The queries are written in the dialect of DuckDB and translated by sqlglot. So that all dialects
agree, numbers are cast to doubles, ids to text, and ties are broken by document id, byte by byte.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rankgauge.core.libraries import library
from rankgauge.errors import InputError, UnknownName

if TYPE_CHECKING:
    from rankgauge.measures import Measure

DIALECTS = ("bigquery", "duckdb", "postgres", "snowflake", "spark")

_ROLES = ("query_id", "doc_id", "score", "grade")
# Rank of judged documents that were not retrieved, below all others.
_NOT_RETRIEVED = 2**31 - 1
_ONE, _ZERO = "CAST(1 AS DOUBLE)", "CAST(0 AS DOUBLE)"
# PostgreSQL cuts longer names.
_LONGEST_NAME = 63
_Params = Mapping[str, Any]


def sql_query(
    measures: str | Measure | Iterable[str | Measure],
    *,
    dialect: str = "duckdb",
    run: str = "run",
    qrels: str = "qrels",
    columns: Mapping[str, str] | None = None,
    per_query: bool = False,
) -> str:
    """Return a query that computes measures of a run in a database or warehouse.

    It follows the default policies of `evaluate`: all judged queries count, and those without
    results have the value 0; unjudged documents are not relevant; equal scores are ordered by
    document id, descending; undefined values are NULL per query and 0 in the mean. The sums of an
    engine differ in the last digits from those of `evaluate`, which are exact. Duplicates, and
    values that are missing or not finite, are not detected: run the query of `sql_checks` first.

    Args:
        measures: P, R, RelP, F, Success, RR, AP, Rprec, DCG, nDCG, and RBP, with ``k``, a numeric
            ``rel``, and for DCG and nDCG, ``gain``.
        dialect: One of `DIALECTS`. The results of DuckDB, PostgreSQL, and Spark are tested; the
            queries for BigQuery and Snowflake are translated, but were never run.
        run: Table with a single run, in the syntax of the dialect: ``project.dataset.table``. Use a
            view if a table has several runs.
        qrels: Table of the judgments.
        columns: Names of columns that differ from ``query_id``, ``doc_id``, ``score``, ``grade``.
        per_query: Whether the query returns one row for each query instead of the means.

    Returns:
        The query. Its columns have names such as ``ndcg_10`` for nDCG@10 and ``ap_rel_2_at_5`` for
        AP(rel=2)@5; different measures have different names, of at most 63 characters.

    Raises:
        InputError: If a table or column is not a name.
        UnknownName: If a dialect is unknown, or a measure or parameter cannot be written in SQL.
        MissingExtra: If sqlglot is not installed.

    Example:
        >>> print(sql_query("P@10", run="logs.run", qrels="logs.qrels"))  # doctest: +ELLIPSIS
        WITH ranked AS (
        ...
        SELECT
          COUNT(*) AS queries,
          AVG(COALESCE(p_10, 0)) AS p_10
        FROM per_query
    """
    from rankgauge.measures.measure import Measure, parse_all

    listed = [measures] if isinstance(measures, str | Measure) else measures
    names = _output_names(measure for name in listed for measure in parse_all(name))
    tables = _tables(dialect, run, qrels, columns)
    value_of = {measure: _value_of(measure) for measure in names}
    # Running counts of relevant documents, for the levels of the measures that read them.
    levels = {
        str(measure.arguments["rel"]) for measure, sql in value_of.items() if re.search(r"\b(relevant|found)_", sql)
    }
    text = _PER_QUERY.format(
        **tables,
        levels="".join(_LEVEL.format(level=level, tag=_tag(level)) for level in sorted(levels)),
        values=",\n".join(f"{value_of[measure]} AS {name}" for measure, name in names.items()),
        last=_NOT_RETRIEVED,
        # Ids are ordered byte by byte, also where the default order depends on the locale.
        collation=' COLLATE "C"' if dialect == "postgres" else "",
    )
    if per_query:
        text += "SELECT * FROM per_query ORDER BY query_id"
    else:
        means = ", ".join(f"AVG(COALESCE({name}, 0)) AS {name}" for name in names.values())
        text += f"SELECT COUNT(*) AS queries, {means} FROM per_query"  # noqa: S608 - names are ours
    return _translated(text, dialect)


def sql_checks(
    *, dialect: str = "duckdb", run: str = "run", qrels: str = "qrels", columns: Mapping[str, str] | None = None
) -> str:
    """Return a query that counts problems that `evaluate` rejects and `sql_query` ignores.

    Args:
        dialect: As in `sql_query`.
        run: As in `sql_query`.
        qrels: As in `sql_query`.
        columns: As in `sql_query`.

    Returns:
        The query, which returns one row with a count for each problem, all 0 if the data is valid,
        and the number of judged queries in the run, which should not be 0.

    Raises:
        InputError: If a table or column is not a name.
        UnknownName: If the dialect is unknown.
        MissingExtra: If sqlglot is not installed.

    Example:
        >>> "duplicates_in_run" in sql_checks(dialect="snowflake")
        True
    """
    tables = _tables(dialect, run, qrels, columns)
    of_run, of_qrels = (
        _CHECKS_OF_TABLE.format(
            name=name,
            table=tables[name],
            value=tables[value],
            values=f"{value}s",
            query_id=tables["query_id"],
            doc_id=tables["doc_id"],
        )
        for name, value in (("run", "score"), ("qrels", "grade"))
    )
    return _translated(_CHECKS.format(**tables, of_run=of_run, of_qrels=of_qrels), dialect)


_PER_QUERY = """
WITH ranked AS (
  SELECT CAST({query_id} AS TEXT) AS query_id, CAST({doc_id} AS TEXT) AS doc_id,
    ROW_NUMBER() OVER (
      PARTITION BY CAST({query_id} AS TEXT)
      ORDER BY CAST({score} AS DOUBLE) DESC, CAST({doc_id} AS TEXT){collation} DESC
    ) AS doc_rank
  FROM {run}
), judged AS (
  SELECT judgments.query_id, judgments.grade, COALESCE(ranked.doc_rank, {last}) AS doc_rank,
    ROW_NUMBER() OVER (
      PARTITION BY judgments.query_id ORDER BY judgments.grade DESC
    ) AS ideal_rank
  FROM (
    SELECT CAST({query_id} AS TEXT) AS query_id, CAST({doc_id} AS TEXT) AS doc_id,
      CAST({grade} AS DOUBLE) AS grade
    FROM {qrels}
  ) AS judgments
  LEFT JOIN ranked
  ON ranked.query_id = judgments.query_id AND ranked.doc_id = judgments.doc_id
), counted AS (
  SELECT query_id, grade, doc_rank, ideal_rank{levels}
  FROM judged
), per_query AS (
  SELECT query_id,
  {values}
  FROM counted
  GROUP BY query_id
)
"""

# For a relevance level: relevant documents of the query, and those down to this rank.
_LEVEL = """,
    SUM(CASE WHEN grade >= {level} THEN 1 ELSE 0 END)
      OVER (PARTITION BY query_id) AS relevant_{tag},
    SUM(CASE WHEN grade >= {level} THEN 1 ELSE 0 END) OVER (
      PARTITION BY query_id ORDER BY doc_rank
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS found_{tag}"""

_CHECKS = """
SELECT
  {of_run},
  {of_qrels},
  (SELECT COUNT(*)
    FROM (SELECT DISTINCT CAST({query_id} AS TEXT) AS query_id FROM {qrels}) AS judged
    WHERE query_id IN (SELECT CAST({query_id} AS TEXT) FROM {run})) AS judged_queries_in_run
"""

# NaN is greater than all numbers in most dialects; in the others no comparison with it is true.
_CHECKS_OF_TABLE = """
  (SELECT COUNT(*) FROM {table}
    WHERE {query_id} IS NULL OR {doc_id} IS NULL) AS ids_missing_in_{name},
  (SELECT COUNT(*) FROM {table} WHERE {value} IS NULL
    OR NOT ABS(CAST({value} AS DOUBLE)) <= CAST('1.7976931348623157e308' AS DOUBLE)
  ) AS {values}_not_finite,
  (SELECT COUNT(*) FROM (SELECT 1 AS one FROM {table}
    GROUP BY CAST({query_id} AS TEXT), CAST({doc_id} AS TEXT) HAVING COUNT(*) > 1
  ) AS repeated) AS duplicates_in_{name}"""


def _hits(params: _Params) -> str:
    within = "" if params.get("k") is None else f" AND doc_rank <= {params['k']}"
    return f"grade >= {params['rel']} AND doc_rank < {_NOT_RETRIEVED}{within}"


def _sum(condition: str, value: str) -> str:
    return f"SUM(CASE WHEN {condition} THEN {value} ELSE {_ZERO} END)"


def _count(condition: str) -> str:
    return _sum(condition, _ONE)


def _relevant(params: _Params) -> str:
    """Return the number of relevant documents, NULL if it is 0, so that quotients are NULL."""
    return f"NULLIF(CAST(MAX(relevant_{_tag(params['rel'])}) AS DOUBLE), 0)"


def _discounted(condition: str, gain: Any, doc_rank: str) -> str:
    gained = "POWER(CAST(2 AS DOUBLE), grade) - 1" if gain == "exp" else "grade"
    discount = f"LN(CAST(2 AS DOUBLE)) / LN(CAST({doc_rank} + 1 AS DOUBLE))"
    return _sum(condition, f"({gained}) * {discount}")


def _gaining(params: _Params, doc_rank: str) -> str:
    """Return the condition that a document has a gain and is in the first k of an order."""
    least = "" if params["rel"] is None else f" AND grade >= {params['rel']}"
    return f"grade > 0{least} AND {doc_rank} <= {params['k'] or _NOT_RETRIEVED - 1}"


def _dcg(params: _Params) -> str:
    return _discounted(_gaining(params, "doc_rank"), params["gain"], "doc_rank")


def _ndcg(params: _Params) -> str:
    ideal = _discounted(_gaining(params, "ideal_rank"), params["gain"], "ideal_rank")
    return f"{_dcg(params)} / NULLIF({ideal}, 0)"


def _average_precision(params: _Params) -> str:
    precision = f"CAST(found_{_tag(params['rel'])} AS DOUBLE) / doc_rank"
    return f"{_sum(_hits(params), precision)} / {_relevant(params)}"


def _reciprocal_rank(params: _Params) -> str:
    first = f"MIN(CASE WHEN {_hits(params)} THEN doc_rank END)"
    value = f"COALESCE({_ONE} / {first}, {_ZERO})"
    return f"CASE WHEN {_relevant(params)} IS NOT NULL THEN {value} END"


def _capped_recall(params: _Params) -> str:
    # Not LEAST, which ignores NULL in some dialects.
    relevant, k = _relevant(params), params["k"]
    return f"{_count(_hits(params))} / CASE WHEN {relevant} > {k} THEN {k} ELSE {relevant} END"


def _f(params: _Params) -> str:
    weight = float(params["beta"]) ** 2
    return (
        f"CAST({1 + weight} AS DOUBLE) * {_count(_hits(params))}"
        f" / (CAST({weight} AS DOUBLE) * {_relevant(params)} + {params['k']})"
    )


def _r_precision(params: _Params) -> str:
    level = f"relevant_{_tag(params['rel'])}"
    return f"{_count(f'{_hits(params)} AND doc_rank <= {level}')} / {_relevant(params)}"


def _rbp(params: _Params) -> str:
    p = f"CAST({float(params['p'])!r} AS DOUBLE)"
    return f"(1 - {p}) * {_sum(_hits(params), f'POWER({p}, doc_rank - 1)')}"


class _Template(NamedTuple):
    """SQL of a measure, and the parameters that may differ from their defaults."""

    write: Callable[[_Params], str]
    takes: tuple[str, ...] = ("k", "rel")


SQL_MEASURES = {
    "P": _Template(lambda p: f"{_count(_hits(p))} / {p['k']}"),
    "R": _Template(lambda p: f"{_count(_hits(p))} / {_relevant(p)}"),
    "RelP": _Template(_capped_recall),
    "F": _Template(_f, ("k", "rel", "beta")),
    "Success": _Template(lambda p: f"MAX(CASE WHEN {_hits(p)} THEN {_ONE} ELSE {_ZERO} END)"),
    "RR": _Template(_reciprocal_rank),
    "AP": _Template(_average_precision),
    "Rprec": _Template(_r_precision, ("rel",)),
    "DCG": _Template(_dcg, ("k", "rel", "gain")),
    "nDCG": _Template(_ndcg, ("k", "rel", "gain")),
    "RBP": _Template(_rbp, ("k", "rel", "p")),
}


def _value_of(measure: Measure) -> str:
    template = SQL_MEASURES.get(measure.name)
    if template is None:
        raise UnknownName(
            f"{measure} cannot be written in SQL",
            fix=f"choose from {', '.join(SQL_MEASURES)}, or evaluate the run with rankgauge evaluate",
        )
    for word, value in measure.params:
        if (
            word not in template.takes
            or (word == "gain" and value not in {"linear", "exp"})
            or (word in {"k", "rel"} and not isinstance(value, int | float))
        ):
            raise UnknownName(f"{measure}: {word}={value} cannot be written in SQL", fix=f"omit {word}")
    return template.write(measure.arguments)


def _tag(text: object) -> str:
    """Return a number or measure as a part of a name; 1e-16 and 1e+16 differ."""
    return re.sub(r"\W+", "_", str(text).replace("-", "m")).strip("_").lower()


def _output_names(measures: Iterable[Measure]) -> dict[Measure, str]:
    """Return column names that every dialect allows: ``ndcg_10`` for nDCG@10.

    Different measures have different names, which do not depend on the other measures:
    ``ap_rel_2_at_5`` for AP(rel=2)@5, since ``ap_rel_2_5`` is AP(rel=2.5).
    """
    names = {}
    for measure in measures:
        name = _tag(str(measure).replace(")@", "_at_"))
        if len(name) > _LONGEST_NAME:
            digest = hashlib.sha256(name.encode()).hexdigest()[:16]
            name = f"{name[: _LONGEST_NAME - 17]}_{digest}"
        names[measure] = name
    return names


def column_names(columns: Mapping[str, str] | None, roles: Sequence[str]) -> dict[str, str]:
    """Return the column name of each role: from the mapping, or the role itself."""
    unknown = sorted(set(columns or {}) - set(roles))
    if unknown:
        raise UnknownName(f"unknown column {unknown[0]!r:.60}", fix=f"choose from {', '.join(roles)}")
    return {**dict(zip(roles, roles, strict=True)), **(columns or {})}


def _tables(dialect: str, run: str, qrels: str, columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return tables and columns as identifiers in the dialect of DuckDB."""
    if dialect not in DIALECTS:
        raise UnknownName(f"unknown dialect {dialect!r:.60}", fix=f"choose from {', '.join(DIALECTS)}")
    sqlglot = library("sqlglot", extra="sql", of="SQL")
    names = {"run": run, "qrels": qrels, **column_names(columns, _ROLES)}
    identifiers = {}
    for role, name in names.items():
        try:
            parsed = sqlglot.parse_one(name, into=sqlglot.exp.Table, read=dialect)
        except sqlglot.errors.SqlglotError:
            parsed = None
        parts = parsed.parts if isinstance(parsed, sqlglot.exp.Table) else []
        plain = parts and all(isinstance(part, sqlglot.exp.Identifier) for part in parts)
        bare = plain and set(parsed.args) - {k for k, v in parsed.args.items() if not v} <= {"this", "db", "catalog"}
        if not bare or (role not in {"run", "qrels"} and len(parts) > 1):
            what = "table" if role in {"run", "qrels"} else "column"
            raise InputError(
                f"{name!r:.60} is not the name of a {what}",
                where=role,
                fix=f"pass only the name, quoted as in {dialect} if necessary",
            )
        identifiers[role] = ".".join(part.sql(dialect="duckdb") for part in parts)
    return identifiers


def _translated(text: str, dialect: str) -> str:
    sqlglot = library("sqlglot", extra="sql", of="SQL")
    # The order of NULL in a dialect does not matter: nothing is ordered by NULL.
    (query,) = sqlglot.transpile(
        text, read="duckdb", write=dialect, pretty=True, unsupported_level=sqlglot.ErrorLevel.IGNORE
    )
    return str(query)
