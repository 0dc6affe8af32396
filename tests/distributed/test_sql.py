"""SQL queries, run by DuckDB and PostgreSQL and compared with the kernels."""

import math
import random

import pytest
from hypothesis import given, strategies as st

import rankgauge
from rankgauge.distributed import DIALECTS, sql_checks, sql_query
from rankgauge.distributed.sql import _output_names
from rankgauge.errors import InputError, UnknownName

duckdb = pytest.importorskip("duckdb", reason="without duckdb no query is run")
sqlglot = pytest.importorskip("sqlglot", reason="without sqlglot no query is written")

MEASURES = (
    "P@5",
    "P(rel=2)@3",
    "R@10",
    "R(rel=2)@3",
    "RelP@5",
    "F1@5",
    "F2@3",
    "Success@3",
    "Success(rel=3)@1",
    "RR",
    "RR@3",
    "RR(rel=2)@10",
    "AP",
    "AP@4",
    "AP(rel=1.5)",
    "Rprec",
    "DCG@5",
    "DCG(gain=exp)",
    "nDCG",
    "nDCG@3",
    "nDCG@10",
    "nDCG(gain=exp)@10",
    "nDCG(rel=2)@5",
    "RBP(p=0.8)",
    "RBP(p=0.5)@3",
)

QUERIES, DOCS = [f"q{n}" for n in range(6)], ["a", "B", "ä", "10", "9", "Z", "aa", "z", "_"]
PER_QUERY, MEANS = sql_query(MEASURES, per_query=True), sql_query(MEASURES)
RANKINGS = st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0.0, 0.5, 1.0, 2.5]), min_size=1)
JUDGED = st.dictionaries(st.sampled_from([*DOCS, "never"]), st.sampled_from([-1, 0, 0, 1, 2, 3]), min_size=1)


def rows_of(table):
    return [(query, doc, value) for query, docs in table.items() for doc, value in docs.items()]


def in_duckdb(run, qrels):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE run (query_id TEXT, doc_id TEXT, score DOUBLE)")
    connection.execute("CREATE TABLE qrels (query_id TEXT, doc_id TEXT, grade INTEGER)")
    for name, rows in (("run", rows_of(run)), ("qrels", rows_of(qrels))):
        if rows:
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
    return connection


def output_columns(measures):
    return list(_output_names(map(rankgauge.parse, measures)).values())


def assert_equal(rows, run, qrels, measures=MEASURES):
    evaluation = rankgauge.evaluate(qrels, run, measures)
    assert [row[0] for row in rows] == sorted(qrels)
    for query_id, *values in rows:
        for measure, value in zip(measures, values, strict=True):
            expected = evaluation.value(query_id, measure)
            found = math.nan if value is None else value
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-15, nan_ok=True), (query_id, measure)


@given(
    st.dictionaries(st.sampled_from(QUERIES), RANKINGS, min_size=1),
    st.dictionaries(st.sampled_from(QUERIES), JUDGED, min_size=1),
)
def test_duckdb_computes_the_values_of_the_kernels(run, qrels):
    run, qrels = {"q": {"a": 1.0}} | run, {"q": {"a": 1}} | qrels
    connection = in_duckdb(run, qrels)
    rows = connection.execute(PER_QUERY).fetchall()
    assert_equal(rows, run, qrels)
    [(queries, *means)] = connection.execute(MEANS).fetchall()
    assert queries == len(qrels)
    for at, mean in enumerate(means, start=1):
        assert mean == pytest.approx(math.fsum(row[at] or 0 for row in rows) / len(rows), rel=1e-12)


def drawn_measure(random):
    """Return a measure with random parameters, as a user would write it."""
    name = random.choice(["P", "R", "RelP", "F", "Success", "RR", "AP", "Rprec", "DCG", "nDCG", "RBP"])
    params = []
    if random.random() < 0.7:
        level = random.choice([2, 3, 2.5, 25, 1e-5, 1e16, 1e-16, random.uniform(1, 4), random.random() / 1e5])
        params.append(f"rel={level}")
    if name == "F":
        params.append(f"beta={random.choice([1, 2, 0.5, random.random() / 1e5])}")
    if "DCG" in name and random.random() < 0.5:
        params.append("gain=exp")
    if name == "RBP":
        params.append(f"p={random.choice([0.5, 0.8, random.random()])}")
    needs = name in {"P", "R", "RelP", "F", "Success"}
    cut = random.choice([1, 2, 5, 25, 10**9]) if needs or random.random() < 0.6 else 0
    at = f"@{cut}" if cut and name != "Rprec" else ""
    return name + (f"({','.join(params)})" if params else "") + at


def test_different_measures_have_different_columns():
    drawn = random.Random(0)
    names = {}
    keywords = {
        *(
            word
            for (word,) in duckdb.sql(
                "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
            ).fetchall()
        ),
        "queries",
        "query_id",
    }
    for draw in range(800):
        chosen = {str(rankgauge.parse(drawn_measure(drawn))) for _ in range(drawn.randint(1, 6))}
        measures = ["AP(rel=2)@5", "AP(rel=2.5)", *chosen - {"AP(rel=2)@5", "AP(rel=2.5)"}]
        columns = output_columns(measures)
        for measure, column in zip(measures, columns, strict=True):
            assert names.setdefault(column, measure) == measure
            assert len(column.encode()) <= 63
            assert column == column.casefold()
            assert column.isidentifier()
            assert column not in keywords
        if draw % 200 == 0:
            found = in_duckdb(RUN, QRELS).execute(sql_query(measures, per_query=True))
            assert [each[0] for each in found.description] == ["query_id", *columns]
            assert_equal(found.fetchall(), RUN, QRELS, measures)
    assert len(names) > 800
    assert any(len(column) == 63 for column in names)


RUN = {
    "q1": {"a": 1.0, "B": 1.0, "ä": 1.0, "10": 2.0, "9": 0.5},
    "q2": {"z": 0.25, "Z": 0.25, "_": 0.25, "aa": 0.25},
    "q4": {"a": 1.0},
}
QRELS = {
    "q1": {"a": 3, "B": 1, "9": 2, "10": 0, "never": 1},
    "q2": {"Z": 2, "_": 1, "aa": 0},
    "q3": {"a": 1},
    "q4": {"a": 0},
}


def test_postgresql_computes_the_values_of_the_kernels(postgres):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres.replace("+psycopg", "")) as connection:
        # The order of ids in a locale differs from the order of bytes.
        connection.execute("CREATE TABLE run (query_id TEXT, doc_id TEXT, score REAL)")
        connection.execute("CREATE TABLE qrels (query_id TEXT, doc_id TEXT, grade SMALLINT)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO run VALUES (%s, %s, %s)", rows_of(RUN))
            cursor.executemany("INSERT INTO qrels VALUES (%s, %s, %s)", rows_of(QRELS))
        query = sql_query(MEASURES, dialect="postgres", per_query=True)
        assert_equal(connection.execute(query).fetchall(), RUN, QRELS)
        assert connection.execute(sql_checks(dialect="postgres")).fetchall() == [(0, 0, 0, 0, 0, 0, 3)]
        for number in ("NaN", "Infinity", "-Infinity", None):
            connection.execute("INSERT INTO run VALUES ('q1', %s, %s)", (str(number), number))
        counts = connection.execute(sql_checks(dialect="postgres")).fetchone()
        assert counts == (0, 4, 0, 0, 0, 0, 3)


def test_ids_of_different_types_match():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE run AS SELECT 7 AS query_id, 3 AS doc_id, 1 AS score")
    connection.execute("CREATE TABLE qrels AS SELECT '7' AS query_id, '3' AS doc_id, 1 AS grade")
    assert connection.execute(sql_query("nDCG@10")).fetchall() == [(1, 1.0)]


def test_checks_count_what_an_evaluation_refuses():
    connection = duckdb.connect()
    connection.execute(
        """CREATE TABLE run AS FROM (VALUES
        ('q1', 'a', 1.0::DOUBLE), ('q1', 'a', 2.0), ('q1', 'b', NULL), ('q1', 'c', 'nan'::DOUBLE),
        (NULL, 'd', 1.0), ('q9', 'd', 1.0), ('q1', 'e', 'inf'), ('q1', 'f', '-inf'))
        AS t(query_id, doc_id, score)"""
    )
    connection.execute(
        """CREATE TABLE qrels AS FROM (VALUES
        ('q1', 'a', 1), ('q1', 'a', 0), ('q2', 'b', NULL), ('q2', NULL, 1), ('q2', 'e', 1))
        AS t(query_id, doc_id, grade)"""
    )
    found = connection.execute(sql_checks())
    names = [column[0] for column in found.description]
    assert dict(zip(names, found.fetchall()[0], strict=True)) == {
        "ids_missing_in_run": 1,
        "scores_not_finite": 4,
        "duplicates_in_run": 1,
        "ids_missing_in_qrels": 1,
        "grades_not_finite": 1,
        "duplicates_in_qrels": 1,
        "judged_queries_in_run": 1,
    }


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_dialect_reads_its_query(dialect):
    for text in (sql_query(MEASURES, dialect=dialect), sql_checks(dialect=dialect)):
        parsed = sqlglot.parse_one(text, read=dialect)
        numbers = parsed.find_all(sqlglot.exp.Literal)
        # A bare 1.0 is a decimal in some warehouses, with decimal division.
        decimals = [n for n in numbers if not n.is_string and "." in n.name]
        assert all(isinstance(number.parent, sqlglot.exp.Cast) or "grade" in number.parent.sql() for number in decimals)
        assert ('COLLATE "C"' in text) == (dialect == "postgres" and "ROW_NUMBER" in text)


def test_names_of_tables_and_columns_are_kept_as_the_dialect_writes_them():
    text = sql_query("P@5", dialect="bigquery", run="`my-project`.logs.run", columns={"grade": "relevance"})
    assert "`my-project`.logs.run" in text
    assert "CAST(relevance AS FLOAT64) AS grade" in text


@pytest.mark.parametrize(
    "names",
    [
        {"run": "run; DROP TABLE x"},
        {"run": "(SELECT 1)"},
        {"run": "run AS r"},
        {"run": ""},
        {"columns": {"score": "a.b"}},
        {"columns": {"score": "max(score)"}},
    ],
)
def test_an_invalid_name_is_refused(names):
    with pytest.raises(InputError, match="is not the name of a"):
        sql_query("P@5", **names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"measures": "ERR"}, "ERR.* cannot be written in SQL"),
        ({"measures": "P(judged_only=True)@5"}, "judged_only"),
        ({"measures": "RR(rel=best)"}, "rel=best"),
        ({"measures": "nDCG(ideal=retrieved)@5"}, "ideal=retrieved"),
        ({"measures": "P@5", "dialect": "oracle"}, "unknown dialect 'oracle'"),
        ({"measures": "P@5", "columns": {"docs": "d"}}, "unknown column 'docs'"),
    ],
)
def test_measures_that_sql_cannot_compute_are_named(arguments, message):
    with pytest.raises(UnknownName, match=message):
        sql_query(**arguments)
