"""Spark itself: local, Connect, and a cluster in which one of two workers is killed."""

import json
import math
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from docs_scripts import copies_of_the_sample

import rankgauge
from rankgauge.cli.main import cli
from rankgauge.distributed import spark
from rankgauge.errors import InputError, RankgaugeError, UnknownName

pyspark = pytest.importorskip("pyspark", reason="without pyspark no job is run")
pytest.importorskip("pyarrow")
if shutil.which("java") is None:
    pytest.skip("without Java no job is run", allow_module_level=True)

JOB = Path(__file__).parents[1] / "spark_job.py"
MEASURES = ("nDCG@10", "RR", "AP", "GMAP", "R@20")
SOURCES = Path(rankgauge.__file__).parents[1]


@pytest.fixture(scope="module", autouse=True)
def _python():
    """Let the workers use this Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYTHONPATH", str(SOURCES))
        yield


@pytest.fixture(scope="module")
def session():
    from pyspark.sql import SparkSession

    made = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


QRELS = {
    "q1": {"a": 3, "B": 1, "9": 2, "10": 0, "never": 1},
    "q2": {"Z": 2, "_": 1, "aa": 0},
    "q3": {"a": 1},
    "q4": {"a": 0},
    "é": {"a": 1, "b": 2},
}
RUNS = {
    "a": {
        "q1": {"a": 1.0, "B": 1.0, "ä": 1.0, "10": 2.0, "9": 0.5},
        "q2": {"z": 0.25, "Z": 0.25, "_": 0.25, "aa": 0.25},
        "q4": {"a": 1.0},
        "unknown": {"a": 1.0},
    },
    "b": {"q1": {"B": 0.5, "a": 0.5}, "é": {"b": 1.0}},
}


def frames(session, runs=RUNS, qrels=QRELS):
    rows = [
        (name, query, doc, score)
        for name, run in runs.items()
        for query, docs in run.items()
        for doc, score in docs.items()
    ]
    grades = [(query, doc, grade) for query, docs in qrels.items() for doc, grade in docs.items()]
    return (
        session.createDataFrame(rows, "run string, query_id string, doc_id string, score double"),
        session.createDataFrame(grades, "query_id string, doc_id string, grade int"),
    )


def assert_equal(found, expected):
    """Check that queries and bits are equal."""
    order = sorted(range(len(expected.query_ids)), key=expected.query_ids.__getitem__)
    assert list(found.query_ids) == [expected.query_ids[at] for at in order]
    for row, at in enumerate(order):
        for a, b in zip(found.per_query[row], expected.per_query[at], strict=True):
            assert a == b or (math.isnan(a) and math.isnan(b))


@pytest.mark.parametrize("ship", ["value", "installed"])
def test_values_and_means_are_those_of_evaluate(session, ship):
    values = spark.evaluate(*frames(session), MEASURES, ship=ship)
    found = spark.to_evaluations(values)
    assert list(found) == ["a", "b"]
    means = spark.summarize(values, ship=ship)
    for name, run in RUNS.items():
        expected = rankgauge.evaluate(QRELS, run, MEASURES)
        assert_equal(found[name], expected)
        assert means[name] == expected.mean()
    skipped = rankgauge.evaluate(QRELS, RUNS["a"], MEASURES, undefined="skip").mean()
    assert spark.summarize(values, undefined="skip")["a"] == skipped
    comparison = rankgauge.compare([found["a"], found["b"]])
    assert "nDCG@10" in str(comparison)


def test_runs_are_compared_as_on_one_machine_for_any_partitioning(session):
    rng = random.Random(4)
    rows = [
        (run, f"q{n}", rng.choice([0.0, 0.25, 1 / 3, 1.0]), rng.random() if n % 9 else None)
        for n in range(400)
        for run in "abc"
    ]
    values = session.createDataFrame(rows, "run string, query_id string, RR double, AP double")
    words = {"baseline": "b", "tested": ["AP", "RR"], "interval": "t"}
    found = spark.compare(values, **words)
    local = rankgauge.compare(list(spark.to_evaluations(values).values()), test="t", **words)
    assert repr(found.differences) == repr(local.differences)
    assert found.means() == local.means()
    assert spark.compare(values.repartition(7), **words).to_dict() == found.to_dict()
    drawn = {"interval": "percentile", "draws": 40, "seed": 3, "runs": "ab"}
    one = spark.compare(values.coalesce(1), **drawn)
    assert spark.compare(values.repartition(7), ship="installed", **drawn) == one
    assert one.differences[0].low < found.difference("a", "RR").difference < one.differences[0].high
    assert "detectable with about 80% power" in str(one)


def test_two_queries_with_equal_differences_are_compared_as_on_one_machine(session):
    rows = [(run, query, value) for run, value in (("a", 1.0), ("b", 0.5)) for query in ("q1", "q2")]
    values = session.createDataFrame(rows, "run string, query_id string, RR double")
    local = rankgauge.compare(list(spark.to_evaluations(values).values()), test="t", interval="t")
    assert repr(spark.compare(values).differences) == repr(local.differences)


def test_impossible_comparisons_are_refused(session):
    rows = [("a", "q1", 1.0), ("b", "q1", 0.5), ("a", "q2", 1.0)]
    values = session.createDataFrame(rows, "run string, query_id string, RR double")
    with pytest.raises(Exception, match="run 'b' has no value for query 'q2'"):
        spark.compare(values)
    with pytest.raises(InputError, match="got 1 run, expected two or more"):
        spark.compare(values.where("run = 'a'"))
    with pytest.raises(InputError, match="a row has no run name"):
        spark.compare(values.withColumn("run", pyspark.sql.functions.lit(None).cast("string")))
    for words, message in (
        ({"baseline": "c"}, "unknown run 'c'"),
        ({"tested": "AP"}, "unknown measure 'AP'"),
        ({"interval": "bca"}, "interval"),
        ({"draws": 0}, "draws=0"),
        ({"correction": "max-t"}, "max-t corrects the randomization test"),
    ):
        with pytest.raises(RankgaugeError, match=message):
            spark.compare(values, **words)


def test_one_run_needs_no_name_and_columns_may_have_others(session):
    run, qrels = frames(session, {"run": RUNS["a"]})
    values = spark.evaluate(
        run.drop("run").withColumnRenamed("score", "s"),
        qrels.withColumnRenamed("grade", "my relevance"),
        "AP",
        partitions=2,
        columns={"score": "s", "grade": "my relevance"},
        queries="intersection",
    )
    expected = rankgauge.evaluate(QRELS, RUNS["a"], "AP", queries="intersection")
    assert_equal(spark.to_evaluations(values)["run"], expected)


@pytest.mark.parametrize("name", ["r.run", "r.trec.gz", "r.csv", "r.tsv.bz2", "r.jsonl", "r.parquet", "folder/r.txt"])
def test_files_are_read_by_their_endings(session, tmp_path, name):
    folder = tmp_path / "folder"
    folder.mkdir()
    rankgauge.write_run(RUNS["a"], tmp_path / name)
    rankgauge.write_qrels(QRELS, tmp_path / "q.qrels")
    run = spark.read_runs(session, {"one": str(tmp_path / name), "two": str(tmp_path / name)})
    qrels = spark.read_files(session, str(tmp_path / "q.qrels"), "qrels")
    found = spark.to_evaluations(spark.evaluate(run, qrels, MEASURES))
    assert list(found) == ["one", "two"]
    expected = rankgauge.evaluate(QRELS, RUNS["a"], MEASURES)
    assert_equal(found["one"], expected)
    assert_equal(found["two"], expected)


def test_columns_have_the_names_that_evaluate_knows(session, tmp_path):
    run, qrels = tmp_path / "run.csv", tmp_path / "qrels.tsv"
    run.write_text('qid,docno,rank\n007,"a, ""b""",1\n007,c,2\n')
    qrels.write_text("Query-ID\tcorpus-id\tlabel\n007\tc\t1\n")
    rows = spark.read_files(session, str(run), "run").collect()
    assert [tuple(row) for row in rows] == [("007", 'a, "b"', -1.0), ("007", "c", -2.0)]
    [row] = spark.read_files(session, str(qrels), "qrels").collect()
    assert row.asDict() == {"query_id": "007", "doc_id": "c", "grade": 1.0}
    with pytest.raises(InputError, match=r"run\.csv: the columns are .* one of grades"):
        spark.read_files(session, str(run), "qrels")


@pytest.mark.parametrize("name", ["run[1].txt", "run{1,2}.csv", "run*.parquet", "r?n1.jsonl", "a\\b.run"])
def test_a_local_file_is_read_as_it_is_named(session, tmp_path, name):
    plain = Path(name).suffix
    for other in ("run1", "run2", "runs", "a", "ab"):
        rankgauge.write_run(RUNS["b"], tmp_path / f"{other}{plain}")
    rankgauge.write_run(RUNS["a"], tmp_path / name)
    expected = {(q, d, s) for q, docs in RUNS["a"].items() for d, s in docs.items()}
    for path in (str(tmp_path / name), f"file://{tmp_path / name}"):
        assert {tuple(row) for row in spark.read_files(session, path, "run").collect()} == expected


@pytest.mark.parametrize("name", ["_x.txt", ".x.run", "_x.csv", ".x.jsonl", "_x.parquet"])
def test_a_file_that_spark_ignores_is_refused(session, tmp_path, name):
    rankgauge.write_run(RUNS["a"], tmp_path / name)
    with pytest.raises(Exception, match=r"ignores names that begin|UNABLE_TO_INFER_SCHEMA"):
        spark.read_files(session, str(tmp_path / name), "run")


@pytest.mark.slow
def test_the_command_names_a_file_that_spark_ignores(tmp_path):
    rankgauge.write_qrels(QRELS, tmp_path / "qrels.txt")
    rankgauge.write_run(RUNS["a"], tmp_path / "_a.csv")
    done = command(tmp_path / "qrels.txt", tmp_path / "_a.csv")
    assert done.returncode == 2
    assert "Spark finds no file: it ignores names that begin with _ or ." in done.stderr


VALID = ("5", "5.", ".5", "+5", "-5e-1", "5E2", "9007199254740992", "9007199254740993.5", "00012")
INVALID = (
    "5f",
    "5d",
    "0x1p3",
    "1_0",
    "NaN",
    "inf",
    "1,5",
    "five",
    "\u0663",
    "9007199254740993",
    "-9007199254740993.0",
    "1e400",
    "9223372036854775807",
    "1" + "0" * 41,
)


def lines_of(path, kind, numbers):
    form = "q Q0 d{} 1 {} tag\n" if kind == "run" else "q 0 d{} {}\n"
    lines = (form.format(n, number) for n, number in enumerate(numbers))
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["run", "qrels"])
def test_numbers_are_those_of_a_single_machine(session, tmp_path, kind):
    path = lines_of(tmp_path / "lines.txt", kind, VALID)
    local = (rankgauge.Run if kind == "run" else rankgauge.Qrels).of(path)["q"]
    assert len(local) == len(VALID)
    rows = spark.read_files(session, str(path), kind).collect()
    assert {row[1]: row[2] for row in rows} == dict(local)


@pytest.mark.parametrize("kind", ["run", "qrels"])
@pytest.mark.parametrize("number", INVALID)
def test_numbers_that_a_single_machine_refuses_are_refused(session, tmp_path, kind, number):
    path = lines_of(tmp_path / "lines.txt", kind, [number])
    with pytest.raises(InputError):
        (rankgauge.Run if kind == "run" else rankgauge.Qrels).of(path)
    other = session.createDataFrame([("q", "d", 1.0)], "query_id string, doc_id string, x double")
    rows = spark.read_files(session, str(path), kind)
    pair = (rows, other) if kind == "run" else (other, rows)
    names = {"grade" if kind == "run" else "score": "x"}
    # Other numbers are refused by Spark itself, while it reads the file.
    if number in {"5f", "1e400"}:
        rows = spark.evaluate(*pair, "NumRet", columns=names)
    with pytest.raises(Exception, match=r"(score|grade|number).*(text|represent|finite|number)"):
        rows.collect()


def test_integers_that_no_double_represents_are_refused(session):
    qrels = session.createDataFrame([("q", "d", 1)], "query_id string, doc_id string, grade int")
    for kind in ("bigint", "decimal(38,3)"):
        for score, exact in ((2**53, True), (2**53 + 1, False), (2**63 - 1, False)):
            run = session.createDataFrame([("q", "d", 7)], "query_id string, doc_id string, x int")
            score = pyspark.sql.functions.lit(score).cast(kind)  # noqa: PLW2901 - as a column
            values = spark.evaluate(run.withColumn("score", score), qrels, "RR")
            if exact:
                assert values.head()["RR"] == 1.0
            else:
                with pytest.raises(Exception, match="not exactly representable as a 64-bit float"):
                    values.collect()


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("run", "\ufeffq Q0 d 1 2.5 tag\n# comment\n\n\t q  q0 e 2 1 ", "q 0 d 1 2.5"),
        ("qrels", "q 0 d 2.5\r\nq e 1\r\n", "q 0 d 1 2"),
    ],
)
def test_lines_of_trec_have_the_fields_of_their_kind(session, tmp_path, kind, good, bad):
    path = tmp_path / "lines.txt"
    path.write_text(good, encoding="utf-8")
    rows = spark.read_files(session, str(path), kind).collect()
    assert [tuple(row) for row in rows] == [("q", "d", 2.5), ("q", "e", 1.0)]
    path = tmp_path / "bad.txt"
    path.write_text(f"{bad}\n", encoding="utf-8")
    with pytest.raises(Exception, match=rf"bad\.txt: expected '.*', found '{bad}'"):
        spark.read_files(session, str(path), kind).collect()


def test_ids_that_are_numbers_on_one_side_match(session):
    run = session.createDataFrame([(7, 3, 1.0)], "query_id int, doc_id long, score float")
    qrels = session.createDataFrame([("7", "3", 1)], "query_id string, doc_id string, grade long")
    assert spark.summarize(spark.evaluate(run, qrels, "RR")) == {"run": {"RR": 1.0}}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(None, "d", 1.0)], "a query id is missing in the run"),
        ([("q1", None, 1.0)], "run run: .*document id is missing"),
        ([("q1", "d", math.nan)], "run run: "),
        ([("q1", "d", None)], "run run: "),
        ([("q1", "d", 1.0), ("q1", "d", 2.0)], "'d' occurs twice"),
    ],
)
def test_faults_of_rows_are_named_in_the_error_of_spark(session, rows, message):
    run = session.createDataFrame(rows, "query_id string, doc_id string, score double")
    values = spark.evaluate(run, frames(session)[1], "RR")
    with pytest.raises(Exception, match=message):
        values.collect()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((None, "d", 1.0), "a query id is missing in the judgments"),
        (("q1", None, 1.0), "judgments: .*document id is missing"),
        (("q1", "d", math.nan), "judgments: .*grade"),
        (("q1", "d", None), "judgments: .*grade"),
    ],
)
def test_faults_of_judgments_are_named_in_the_error_of_spark(session, row, message):
    qrels = session.createDataFrame([row], "query_id string, doc_id string, grade double")
    values = spark.evaluate(frames(session)[0], qrels, "RR", runs="ab")
    with pytest.raises(Exception, match=message):
        values.collect()


def test_a_row_without_a_run_is_refused(session):
    rows = [("a", "q1", "d", 1.0), (None, "q1", "d", 1.0)]
    run = session.createDataFrame(rows, "run string, query_id string, doc_id string, score double")
    with pytest.raises(InputError, match="run: a row has no run name"):
        spark.evaluate(run, frames(session)[1], "RR")
    values = spark.evaluate(run, frames(session)[1], "RR", runs=["a"])
    with pytest.raises(Exception, match="run: a row has no run name"):
        values.collect()


@pytest.mark.parametrize(
    ("names", "column"),
    [(["a"], "run"), (["b"], "RUN"), (["a"], "Run"), (["a", "b"], "run"), (["a", "b"], "RUN")],
    ids=str,
)
def test_only_the_rows_of_the_named_runs_count(session, names, column):
    run, qrels = frames(session)
    found = spark.to_evaluations(spark.evaluate(run.withColumnRenamed("run", column), qrels, MEASURES, runs=names))
    assert list(found) == names
    for name in names:
        assert_equal(found[name], rankgauge.evaluate(QRELS, RUNS[name], MEASURES))


def test_names_of_runs_are_checked(session):
    run, qrels = frames(session)
    with pytest.raises(UnknownName, match=r"unknown run 'A'\nfix: did you mean a"):
        spark.evaluate(run, qrels, "RR", runs=["A"])
    for words in ({"runs": ["a"]}, {"columns": {"run": "system"}}):
        with pytest.raises(InputError, match=r"the run has no column '(run|system)'"):
            spark.evaluate(run.drop("run"), qrels, "RR", **words)
    every = spark.evaluate(run.withColumnRenamed("run", "RUN"), qrels, "RR")
    assert list(spark.to_evaluations(every)) == ["a", "b"]


def test_a_partition_may_have_only_unjudged_queries(session):
    run, qrels = frames(session, {"run": {"q9": {"a": 1.0}}}, {"q1": {"a": 1}})
    values = spark.evaluate(run, qrels, "RR", queries="intersection", partitions=1)
    assert values.collect() == []


def test_runs_without_a_query_of_the_judgments_are_refused(session):
    run, qrels = frames(session)
    spark.check_queries(run, qrels)
    other = qrels.withColumn("query_id", pyspark.sql.functions.concat("query_id", "doc_id"))
    message = "no query in common: the run has '.*', the judgments '.*'"
    with pytest.raises(InputError, match=message):
        spark.check_queries(run, other)
    with pytest.raises(InputError, match="the run has 'nothing'"):
        spark.check_queries(run.where("false"), qrels)


@pytest.mark.parametrize(
    "url", ["spark://127.0.0.1:{}", "spark://127.0.0.1:{0},127.0.0.1:{0}", "sc://127.0.0.1:{}/;token=x"]
)
def test_a_master_that_does_not_answer_is_refused_within_seconds(url):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # no process listens there
        master = url.format(probe.getsockname()[1])
        with pytest.raises(InputError, match=r"master: no Spark master at .*refused"), spark.open_session(master):
            pass
    with pytest.raises(InputError, match="no Spark master at host"), spark.open_session("spark://host"):
        pass


def test_impossible_arguments_are_refused_before_a_job_starts(session):
    run, qrels = frames(session)
    with pytest.raises(InputError, match="the judgments have no column 'grade'"):
        spark.evaluate(run, qrels.drop("grade"), "RR")
    for column, kind, message in (
        ("query_id", "double", "'query_id' has values of type double, which cannot be ids"),
        ("doc_id", "array<string>", "'doc_id' has values of type array<string>, which cannot be"),
        ("query_id", "decimal(9,2)", r"'query_id' has values of type decimal\(9,2\), which cannot be"),
        ("score", "date", "'score' has values of type date, which are not numbers"),
    ):
        wrong = run.withColumn(column, pyspark.sql.functions.lit(None).cast(kind))
        with pytest.raises(InputError, match=f"run: column {message}"):
            spark.evaluate(wrong, qrels, "RR")
    for arguments, message in (
        ({"measures": "alpha_nDCG@10"}, "reads subtopics"),
        ({"measures": "RR", "ties": "input"}, "needs an order of rows"),
        ({"measures": "RR", "duplicates": "first"}, "needs an order of rows"),
        ({"measures": "RR", "ship": "code"}, "choose one of: value, installed"),
        ({"measures": "RR", "columns": {"rank": "r"}}, "unknown column 'rank'"),
    ):
        with pytest.raises(UnknownName, match=message):
            spark.evaluate(run, qrels, **arguments)
    with pytest.raises(InputError, match="expected run, query_id, and measures"):
        spark.summarize(run)


def test_spark_runs_the_query_that_is_written_for_it(session):
    pytest.importorskip("sqlglot")
    from rankgauge.distributed import sql_checks, sql_query

    run, qrels = frames(session, {"run": RUNS["a"]})
    run.createOrReplaceTempView("run")
    qrels.createOrReplaceTempView("qrels")
    measures = ("nDCG@10", "nDCG(gain=exp)@3", "RR", "AP", "R@20", "P@5", "RBP(p=0.8)", "Rprec")
    rows = session.sql(sql_query(measures, dialect="spark", per_query=True)).collect()
    expected = rankgauge.evaluate(QRELS, RUNS["a"], measures)
    assert [row["query_id"] for row in rows] == sorted(QRELS)
    for row in rows:
        found = [math.nan if value is None else value for value in row[1:]]
        exact = [expected.value(row["query_id"], measure) for measure in measures]
        assert found == pytest.approx(exact, rel=1e-12, nan_ok=True)
    [counts] = session.sql(sql_checks(dialect="spark")).collect()
    assert list(counts) == [0, 0, 0, 0, 0, 0, 3]


# ---- in a separate process


def check_result(folder, means):
    """Values and means of a job equal those of `evaluate`; no query occurs twice."""
    import pyarrow.parquet as pq

    qrels = rankgauge.Qrels.of(pq.read_table(folder / "qrels"))
    rows, values = pq.read_table(folder / "run"), pq.read_table(folder / "values").to_pandas()
    runs = rows["run"].to_numpy(zero_copy_only=False)
    for name in ("a", "b"):
        chosen = rows.filter(runs == name).select(["query_id", "doc_id", "score"])
        expected = rankgauge.evaluate(qrels, chosen, MEASURES)
        found = values[values["run"] == name].sort_values("query_id")
        order = sorted(range(len(qrels)), key=expected.query_ids.__getitem__)
        assert found["query_id"].tolist() == [expected.query_ids[at] for at in order]
        exact = expected.per_query[order]
        mine = found[list(MEASURES)].to_numpy()
        assert ((mine == exact) | ((mine != mine) & (exact != exact))).all()  # noqa: PLR0124 - NaN
        assert means[name] == expected.mean()


@pytest.mark.slow
def test_connect_gives_the_same_bits(tmp_path):
    pytest.importorskip("grpc", reason="without grpc there is no Spark Connect")
    done = subprocess.run(
        [sys.executable, str(JOB), "connect", str(tmp_path), "3000"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    check_result(tmp_path, json.loads(done.stdout.splitlines()[-1]))


def command(*words, master="local[2]"):
    """Run `rankgauge spark` in a separate process, which ends its session."""
    return subprocess.run(
        [sys.executable, "-m", "rankgauge", "spark", *map(str, words), "--master", master],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.slow
def test_a_missing_python_of_the_workers_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/missing/python")
    rankgauge.write_qrels(QRELS, tmp_path / "qrels.txt")
    rankgauge.write_run(RUNS["a"], tmp_path / "a.run")
    done = command(tmp_path / "qrels.txt", tmp_path / "a.run")
    assert done.returncode == 2
    assert "the workers of Spark cannot start /missing/python" in done.stderr
    assert "fix: set PYSPARK_PYTHON to a Python that all workers have" in done.stderr
    assert "java.io" not in done.stderr


@pytest.mark.slow
def test_the_command_prints_the_means_of_evaluate_and_writes_the_values(tmp_path):
    import pyarrow.parquet as pq

    rankgauge.write_qrels(QRELS, tmp_path / "qrels.txt")
    rankgauge.write_run(RUNS["a"], tmp_path / "a.run")
    rankgauge.write_run(RUNS["b"], tmp_path / "b.parquet")
    files = [tmp_path / name for name in ("qrels.txt", "a.run", "b.parquet")]
    measures = [word for measure in MEASURES for word in ("-m", measure)]
    values = tmp_path / "values[1]"
    policies = ("--ties", "worst", "--undefined", "skip")
    done = command(*files, *measures, *policies, "--values", values, "--as", "json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)["rows"]
    expected = {
        name: rankgauge.evaluate(QRELS, run, MEASURES, ties="worst", undefined="skip") for name, run in RUNS.items()
    }
    assert printed == [{"run": name, **one.mean()} for name, one in expected.items()]
    assert done.stderr.splitlines()[-2:] == [
        "14 rows of runs and 12 judgments",
        "rankgauge evaluate is faster below about 10 million rows",
    ]
    rows = pq.read_table(values).to_pylist()
    assert len(rows) == 2 * len(QRELS)
    for row in rows:
        # An undefined value is null.
        value = math.nan if row["nDCG@10"] is None else row["nDCG@10"]
        exact = expected[row["run"]].value(row["query_id"], "nDCG@10")
        assert value == exact or (math.isnan(value) and math.isnan(exact))


@pytest.mark.slow
def test_the_command_shows_an_error_of_a_task_without_its_trace(tmp_path):
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\n")
    (tmp_path / "twice.run").write_text("q1 Q0 d1 1 2.0 t\nq1 Q0 d1 2 1.0 t\n")
    values = tmp_path / "values"
    done = command(tmp_path / "qrels.txt", tmp_path / "twice.run", "-m", "RR", "--values", values)
    assert (done.returncode, done.stdout) == (2, "")
    found, fix = done.stderr.splitlines()[-2:]
    assert found == "error: run twice: document 'd1' occurs twice for query 'q1'"
    assert fix.startswith("fix: remove it")
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr
    assert not values.exists()


@pytest.mark.slow
def test_the_command_says_that_workers_lack_arrow_and_that_ids_do_not_match(tmp_path, monkeypatch):
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\n")
    (tmp_path / "a.run").write_text("1 Q0 d1 1 2.0 t\n")
    done = command(tmp_path / "qrels.txt", tmp_path / "a.run", "-m", "RR")
    assert done.returncode == 2
    assert "the run has '1', the judgments 'q1'" in done.stderr
    fake = tmp_path / "fake" / "pyarrow" / "__init__.py"
    fake.parent.mkdir(parents=True)
    fake.write_text("raise ModuleNotFoundError(\"No module named 'pyarrow'\", name='pyarrow')\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={fake.parents[1]}:$PYTHONPATH exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    done = command(tmp_path / "qrels.txt", tmp_path / "a.run", "-m", "RR")
    assert done.returncode == 2
    assert "the Python of Spark's workers lacks pyarrow" in done.stderr.splitlines()[-2]


@contextmanager
def cluster(folder):
    """Yield the URL of a master and the processes of two workers with one core each."""
    home = Path(pyspark.__file__).parent
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    commands = [[f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    commands += [
        [
            f"{deploy}.worker.Worker",
            "--host",
            "127.0.0.1",
            "--cores",
            "1",
            "--memory",
            "1g",
            "--webui-port",
            "0",
            "--work-dir",
            str(folder / f"work{n}"),
            url,
        ]
        for n in range(2)
    ]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    processes = []
    with (folder / "cluster.log").open("wb") as log:
        for command in commands:
            processes.append(
                subprocess.Popen(
                    [str(home / "bin" / "spark-class"), *command],
                    stdout=log,
                    stderr=log,
                    env=environment | {"SPARK_HOME": str(home)},
                    start_new_session=True,
                )
            )
            deadline = time.monotonic() + 60
            while len(processes) == 1 and time.monotonic() < deadline:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
        try:
            yield url, processes[1:]
        finally:
            for process in processes:
                kill(process)


def kill(process):
    """Kill a process and its descendants."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_last_stage_changes_nothing(tmp_path):
    """2 million rows on a cluster whose workers cannot import the package from a path."""
    with (
        cluster(tmp_path) as (url, workers),
        (tmp_path / "job.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, str(JOB), url, str(tmp_path), "100000"], stdout=subprocess.PIPE, stderr=log, text=True
        ) as job,
    ):
        evaluating = killed = False
        last = ""
        for line in job.stdout:
            last = line
            evaluating = evaluating or line.startswith("evaluating")
            ended = int(line.split()[1]) if line.startswith("ended") else 0
            if evaluating and not killed and 3 <= ended < 14:
                kill(workers[0])
                killed = True
    assert job.returncode == 0, (tmp_path / "job.log").read_text()[-3000:]
    assert killed
    check_result(tmp_path, json.loads(last))


@pytest.mark.slow
def test_copies_of_the_sample_have_the_same_table_on_a_cluster(tmp_path):
    files = copies_of_the_sample(tmp_path, 20)
    words = [*files, "--as", "csv", *(f"-m{measure}" for measure in MEASURES)]
    with cluster(tmp_path) as (url, _):
        done = command(*words, master=url)
    assert done.returncode == 0, done.stderr
    assert done.stdout == CliRunner().invoke(cli, ["evaluate", *words]).stdout
