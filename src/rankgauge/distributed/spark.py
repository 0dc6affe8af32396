"""Evaluation on Apache Spark: values per query as a DataFrame, equal to those of `evaluate`.

PySpark is imported when a function is called. Only DataFrames and ``mapInArrow`` are used, so that
classic sessions and Spark Connect work alike, from Spark 3.4 on.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import socket
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any, Literal

from rankgauge.comparison.differences import Design, Pairing
from rankgauge.core.arguments import option
from rankgauge.core.libraries import library
from rankgauge.core.policies import Duplicates, Policies, Ties, Undefined, Unjudged
from rankgauge.core.text import many
from rankgauge.distributed.comparison import DistributedComparison, compare_sums, spread_job
from rankgauge.distributed.sql import column_names
from rankgauge.distributed.worker import Job, PairJob, PairSums, SpreadSums, Sum, mean_of, read_sums
from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation import Evaluation
from rankgauge.evaluation.context import make_plan
from rankgauge.formats.columns import JUDGMENTS, RUN, columns_of, wrong_columns
from rankgauge.measures import Measure, parse
from rankgauge.stats.arrays import check_draws

_ROLES = ("query_id", "doc_id", "score", "grade", "run")
# Subpackages that workers need.
_PACKAGES = ("core", "data", "distributed", "evaluation", "formats", "measures", "rendering", "stats")
# Error of this package at the end of a task's traceback.
_OWN_ERROR = re.compile(r"rankgauge\.errors\.\w+: (?P<what>.+)\nfix: (?P<fix>.+)")
_NO_FILES = "Spark finds no file: it ignores names that begin with _ or ."
_RENAME = "rename or copy the file"
# Errors of Spark whose first line does not say how to fix them.
_KNOWN_ERRORS = (
    (
        r"No module named '(?P<name>numpy|pyarrow)|\[PACKAGE_NOT_INSTALLED\] (?P<other>\w+)",
        "the Python of Spark's workers lacks {name}{other}",
        "install numpy and pyarrow there, or set PYSPARK_PYTHON to a Python that has them",
    ),
    (
        r'Cannot run program "(?P<python>[^"]+)"',
        "the workers of Spark cannot start {python}",
        "set PYSPARK_PYTHON to a Python that all workers have",
    ),
    (r"UNABLE_TO_INFER_SCHEMA", _NO_FILES, _RENAME),
    (r"JAVA_GATEWAY_EXITED", "Java does not start", "install Java 17 and set JAVA_HOME"),
    (
        r"\[PATH_ALREADY_EXISTS\] Path (?P<path>\S+) already exists",
        "{path} already exists",
        "write to a new folder, or delete this one",
    ),
)
_WHOLE = re.compile(r"(string|varchar.*|char.*|tinyint|smallint|int|bigint|decimal\(\d+,0\))")
_NUMBER = re.compile(r"(string|tinyint|smallint|int|bigint|decimal.*|float|double|boolean)")
_TEXT_ENDINGS = (".txt", ".run", ".qrels", ".trec")
# Java also reads 5f, 5d, and 0x1p3. From 2^53 on, doubles do not represent all integers.
_NUMBER_SQL = """CASE
  WHEN CAST({name} AS STRING) RLIKE '^[ \t\r\n]*$' THEN NULL
  WHEN NOT CAST({name} AS STRING) RLIKE
    '^[ \t\r\n]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[ \t\r\n]*$'
  THEN RAISE_ERROR(CONCAT("rankgauge.errors.InputError: {value} '", LEFT({name}, 40),
    "' is text, not a decimal number\nfix: write every {value} as a number\n"))
  WHEN ABS(TRY_CAST({name} AS DOUBLE)) >= 9007199254740992
    AND CAST({name} AS STRING) RLIKE '^[ \t\r\n]*[+-]?[0-9]+([.]0*)?[ \t\r\n]*$'
    AND NOT COALESCE(ABS(TRY_CAST({name} AS DOUBLE)) < 9223372036854775808D
      AND TRY_CAST({name} AS DECIMAL(38, 0)) = TRY_CAST(TRY_CAST({name} AS DOUBLE) AS BIGINT),
      FALSE)
  THEN RAISE_ERROR(CONCAT('rankgauge.errors.InputError: {value} ', LEFT({name}, 40),
    ' is not exactly representable as a 64-bit float\nfix: use a smaller {value}\n'))
  ELSE TRY_CAST({name} AS DOUBLE) END"""


@contextmanager
def open_session(master: str) -> Iterator[Any]:
    """Start a Spark session, and stop it at the end.

    Args:
        master: The URL of a master, such as ``local[*]``, ``yarn``, or ``spark://host:7077``; or
            ``sc://host`` for Spark Connect.

    Yields:
        The session.

    Raises:
        InputError: If Spark raises an error before the end: the error of a task of this package, or
            the first sentence of Spark's message.
        MissingExtra: If pyspark is not installed.

    Example:
        >>> with open_session("local[*]") as session:  # doctest: +SKIP
        ...     run = read_files(session, "s3://logs/bm25.run", "run")
    """
    errors = library("pyspark.errors", extra="spark", of="Spark")
    java = library("py4j.protocol", extra="spark", of="Spark")
    builder = library("pyspark.sql", extra="spark", of="Spark").SparkSession.builder
    if master.startswith("local"):
        # Spark's default is python3, which may be another Python.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    connect = master.startswith("sc://")
    _check_reachable(master)
    builder = builder.appName("rankgauge")
    if connect:
        builder = builder.remote(master)
    else:
        builder = builder.master(master).config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
    try:
        session = builder.getOrCreate()
        try:
            if not connect:
                # Errors are raised as one sentence, without hundreds of lines of Java.
                session.sparkContext.setLogLevel("OFF")
            yield session
        finally:
            session.stop()
    except (errors.PySparkException, java.Py4JError) as error:
        raise _readable_error(str(error), master) from None


def _check_reachable(master: str) -> None:
    """Raise InputError if the master cannot be reached: Spark would try for minutes."""
    scheme, _, rest = master.partition("://")
    if scheme not in {"spark", "sc"}:
        return
    reasons = []
    # A Spark master may have several addresses, one of them active.
    for address in rest.partition("/")[0].split(","):
        host, _, port = address.rpartition(":") if ":" in address else (address, "", "15002")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
        except (OSError, ValueError) as error:
            reasons.append(f"{address}: {error}")
        else:
            return
    raise InputError(
        f"no Spark master at {'; '.join(reasons)}",
        where="master",
        fix=f"start it, or correct the URL: {scheme}://HOST:PORT",
    )


def _readable_error(text: str, master: str) -> InputError:
    """Return the error of a task of this package, or the first sentence of Spark's message."""
    for pattern, what, fix in _KNOWN_ERRORS:
        match = re.search(pattern, text)
        if match:
            names = {name: value or "" for name, value in match.groupdict().items()}
            return InputError(what.format(**names), where=f"Spark ({master})", fix=fix)
    own = list(_OWN_ERROR.finditer(text))
    if own:
        return InputError(own[-1]["what"], fix=own[-1]["fix"])
    lines = [line.strip(" :") for line in text.splitlines() if line.strip(" :")]
    messages = [line for line in lines if not line.startswith("An error occurred while calling")]
    return InputError(
        (messages or ["an error without a message"])[0],
        where=f"Spark ({master})",
        fix="check paths, the master, and the logs of Spark",
    )


def read_files(session: Any, path: str, kind: Literal["run", "qrels"]) -> Any:
    """Read a run or judgments from any storage of Spark, by the rules of a single machine.

    The format follows from the file name: CSV or TSV with a header (``.csv``, ``.tsv``), JSON lines
    (``.json``, ``.jsonl``), TREC (``.txt``, ``.run``, ``.qrels``, ``.trec``), each also with
    ``.gz`` or ``.bz2``; otherwise Parquet. Columns have the names that `rankgauge.evaluate` knows.

    Args:
        session: A Spark session.
        path: A file, a folder, or a pattern of files of one format. The path of a local file is
            literal; in other paths, write a backslash before ``[``, ``{``, ``*``, and ``?`` in the
            name of a file.
        kind: Whether the rows are a ``run`` or judgments (``qrels``).

    Returns:
        A DataFrame with query_id, doc_id, and score (of a run) or grade.

    Raises:
        InputError: If the columns are not those of a run or of judgments, or Spark ignores the
            path, because the name begins with ``_`` or ``.``. A TREC line with a wrong number of
            fields, and a number that a single machine refuses, fail the task that reads them.

    Example:
        >>> qrels = read_files(session, "s3://logs/qrels.parquet", "qrels")  # doctest: +SKIP
    """
    functions = library("pyspark.sql.functions", extra="spark", of="Spark")
    layout = RUN if kind == "run" else JUDGMENTS
    place = literal_path(path) if Path(path.removeprefix("file://")).exists() else path
    name = path.rstrip("/").lower().removesuffix(".gz").removesuffix(".bz2")
    if name.endswith(_TEXT_ENDINGS):
        lines = session.read.text(place)
        if not lines.inputFiles():
            raise InputError(_NO_FILES, where=path, fix=_RENAME)
        frame = _trec_rows(functions, lines, path, layout.value)
    elif name.endswith((".csv", ".tsv")):
        separator = "\t" if name.endswith(".tsv") else ","
        frame = session.read.csv(place, header=True, sep=separator, escape='"', mode="FAILFAST")
    elif name.endswith((".json", ".jsonl")):
        frame = session.read.json(place, mode="FAILFAST")
    else:
        frame = session.read.parquet(place)
    columns = columns_of(frame.columns, layout)
    if columns is None:
        what, fix = wrong_columns(frame.columns, layout)
        raise InputError(what, where=path, fix=fix)
    names = dict(zip(("query_id", "doc_id", layout.value), columns.read, strict=True))
    rows = _rows(functions, frame, names, value=layout.value, run=None)
    # Lower ranks are better.
    value = -functions.col("value") if columns.has_ranks else functions.col("value")
    return rows.select("query_id", "doc_id", value.alias(layout.value))


def literal_path(path: str) -> str:
    r"""Return a pattern for the readers of Spark that matches only this path.

    Args:
        path: A path or URL, which may contain characters of patterns.

    Example:
        >>> print(literal_path("s3://logs/run[1].txt"))
        s3://logs/run\[1\].txt
    """
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def read_runs(session: Any, paths: Mapping[str, str]) -> Any:
    """Read several runs as one DataFrame, with the name of the run in the column ``run``.

    Args:
        session: A Spark session.
        paths: Name to path, as in `read_files`.

    Returns:
        A DataFrame with query_id, doc_id, score, and run.

    Raises:
        InputError: As in `read_files`.

    Example:
        >>> runs = {"bm25": "s3://logs/bm25.run", "dense": "s3://logs/dense"}
        >>> every = read_runs(session, runs)  # doctest: +SKIP
    """
    functions = library("pyspark.sql.functions", extra="spark", of="Spark")
    frames = [read_files(session, path, "run").withColumn("run", functions.lit(name)) for name, path in paths.items()]
    return reduce(lambda above, below: above.unionByName(below), frames)


def _trec_rows(functions: Any, lines: Any, path: str, value: str) -> Any:
    """Return the fields of TREC lines; a task that reads an invalid line fails."""
    line = functions.regexp_replace("value", r"^\s+|\s+$", "")
    fields = functions.split(line, r"\s+")
    count = functions.size(fields)
    if value == "score":
        without_tag = (count == 5) & (functions.upper(functions.get(fields, 1)) == "Q0")
        fits, doc, number = (count == 6) | without_tag, 2, 4
        expected = RUN.fields
    else:
        fits, doc, number = count.isin(3, 4), count - 2, count - 1
        expected = JUDGMENTS.fields
    error = functions.concat(
        functions.lit(f"rankgauge.errors.FormatError: {path}: expected '{expected}', found '"),
        functions.substring(line, 1, 80),
        functions.lit("'\nfix: correct the line, or name the file by its format\n"),
    )
    checked = functions.when(fits, fields).otherwise(functions.raise_error(error))
    return lines.where(~line.rlike("^(#|$)")).select(
        functions.get(checked, 0).alias("query_id"),
        functions.get(checked, doc).alias("doc_id"),
        functions.get(checked, number).alias(value),
    )


def evaluate(  # noqa: PLR0913 - one parameter per choice
    run: Any,
    qrels: Any,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    runs: Iterable[str] | None = None,
    ties: Ties = "trec",
    queries: Literal["all", "intersection"] = "all",
    duplicates: Duplicates = "error",
    unjudged: Unjudged = "not relevant",
    partitions: int | None = None,
    ship: Literal["value", "installed"] = "value",
) -> Any:
    """Evaluate runs in Spark: the value of each measure for each judged query.

    Judgments and runs are shuffled once, by query. Values are equal to those of
    :func:`rankgauge.evaluate`, bit by bit, for any partitioning. For fewer than about 10 million
    rows, a single machine finishes before a Spark session has started.

    Args:
        run: A Spark DataFrame with the columns query_id, doc_id, and score, and with several runs
            also run, the name of the run.
        qrels: A Spark DataFrame with the columns query_id, doc_id, and grade.
        measures: As in :func:`rankgauge.evaluate`; measures that read more than grades are an
            error.
        columns: Names of columns that differ: ``{"grade": "relevance"}``.
        runs: Names of the runs to evaluate, if there are several. By default, all runs, which are
            determined by a pass over the run.
        ties: As in :func:`rankgauge.evaluate`, except ``input``: rows have no order in Spark.
        queries: ``all`` judged queries, or their ``intersection`` with those of each run.
        duplicates: ``error`` if a document is twice in a ranking; ``best`` keeps the highest score.
        unjudged: As in :func:`rankgauge.evaluate`.
        partitions: Number of shuffle partitions; by default, that of Spark.
        ship: ``value`` sends the code to the workers, which need only NumPy and PyArrow;
            ``installed`` uses the package installed there, with its compiled core.

    Returns:
        A lazy DataFrame with run, query_id, and a column of doubles for each measure, null where
        undefined. Save it with its own writer.

    Raises:
        InputError: If a column is missing, or ids are decimal numbers. When the result is used,
            Spark reports duplicates and missing values of the input.
        UnknownName: If a measure, a run, or an option is unknown.
        MissingExtra: If pyspark or pyarrow is not installed.

    Example:
        >>> values = evaluate(run_df, qrels_df, ["nDCG@10", "RR"])  # doctest: +SKIP
        >>> summarize(values)  # doctest: +SKIP
        {'run': {'nDCG@10': 0.639, 'RR': 0.8333}}
    """
    functions = library("pyspark.sql.functions", extra="spark", of="Spark")
    library("pyarrow", extra="spark", of="Spark")
    plan = make_plan(measures)
    if plan.special:
        raise UnknownName(
            f"{plan.measures[plan.special[0]]} reads {plan.reads}, which Spark rows do not have",
            fix="evaluate it with rankgauge.evaluate",
        )
    for word, value, refused, other in (("ties", ties, "input", "trec"), ("duplicates", duplicates, "first", "best")):
        if value == refused:
            raise UnknownName(
                f"{word}={value} needs an order of rows, which Spark does not have", fix=f"use {word}={other}"
            )
    policies = Policies(ties=ties, queries=queries, duplicates=duplicates, unjudged=unjudged)
    plan.check_ties(policies.ties, 0)
    names = column_names(columns, _ROLES)
    of_run = _column(run, names["run"])
    if of_run is None and (runs is not None or "run" in (columns or {})):
        raise InputError(
            f"the run has no column {names['run']!r}: it has {', '.join(run.columns)}",
            where="run",
            fix="name the column of the runs: columns={'run': ...}",
        )
    run_names = _names_of(run, of_run, runs) if of_run else ("run",)
    for name in run_names if runs is not None else ():
        if not run.where(functions.col(f"`{of_run}`").cast("string") == name).head(1):
            raise UnknownName.of("run", name, _names_of(run, of_run, None), where="runs")
    rows = _rows(functions, run, names, value="score", run=of_run)
    judged = _rows(functions, qrels, names, value="grade", run=None)
    tagged = rows.withColumn("judged", functions.lit(False)).unionByName(  # noqa: FBT003
        judged.withColumn("judged", functions.lit(True))  # noqa: FBT003
    )
    by_query = [partitions, "query_id"] if partitions else ["query_id"]
    sorted_rows = tagged.repartition(*by_query).sortWithinPartitions("query_id")
    job = Job(tuple(map(str, plan.measures)), run_names, policies)
    doubles = "".join(f", `{measure}` double" for measure in job.measures)
    return sorted_rows.mapInArrow(_on_worker("measure_batches", job, ship), f"run string, query_id string{doubles}")


def check_queries(run: Any, qrels: Any, *, columns: Mapping[str, str] | None = None) -> None:
    """Raise an error if a run has no query of the judgments: all of its values would be 0.

    Call it if all means are 0: it takes a pass over the run, which `evaluate` avoids.

    Args:
        run: As in `evaluate`.
        qrels: As in `evaluate`.
        columns: As in `evaluate`.

    Raises:
        InputError: If they have no query in common, with an example from each.

    Example:
        >>> check_queries(run_df, qrels_df)  # doctest: +SKIP
    """
    functions = library("pyspark.sql.functions", extra="spark", of="Spark")
    names = column_names(columns, _ROLES)
    queries = [
        _rows(functions, frame, names, value=value, run=None).select("query_id")
        for frame, value in ((run, "score"), (qrels, "grade"))
    ]
    if queries[0].join(queries[1], "query_id", "left_semi").head(1):
        return
    ours, theirs = (repr(row[0]) for frame in queries for row in frame.head(1) or [("nothing",)])
    raise InputError(
        f"the run and the judgments have no query in common: the run has {ours}, the judgments {theirs}",
        where="query_id",
        fix="use the same query ids in both",
    )


def summarize(
    values: Any, *, undefined: Undefined = "zero", ship: Literal["value", "installed"] = "value"
) -> dict[str, dict[str, float]]:
    """Return the mean of each measure by run: exact sums, equal to `Evaluation.mean`.

    Args:
        values: Result of `evaluate`, or the same columns read from storage.
        undefined: Whether undefined values count as ``zero`` in the mean, or are excluded
            (``skip``).
        ship: As in `evaluate`.

    Returns:
        Run to measure to mean.

    Raises:
        InputError: If the columns are not those of `evaluate`.
    """
    Policies(undefined=undefined)
    measures = _measures_of(values)
    parts = values.mapInArrow(_on_worker("sum_batches", measures, ship), "sums string")
    sums = read_sums((row["sums"] for row in parts.collect()), Sum)
    return {
        run: {measure: mean_of(measure, sums[run, measure], skip_undefined=undefined == "skip") for measure in measures}
        for run in sorted({run for run, _ in sums})
    }


def compare(  # noqa: PLR0913 - one parameter per choice
    values: Any,
    *,
    runs: Iterable[str] | None = None,
    baseline: str | None = None,
    pairs: Pairing = "baseline",
    tested: str | Measure | Iterable[str | Measure] | None = None,
    correction: Literal["holm", "bonferroni", "benjamini-hochberg"] = "holm",
    interval: Literal["t", "percentile"] = "t",
    draws: int = 1000,
    seed: int = 0,
    undefined: Undefined = "zero",
    ship: Literal["value", "installed"] = "value",
) -> DistributedComparison:
    """Compare runs by the paired t test, without collecting the values per query.

    Means, differences, standard deviations, t intervals, p-values, and verdicts are equal to those
    of :func:`rankgauge.compare` with ``test="t", interval="t"``, bit by bit, for any partitioning
    (for geometric means, except for the last digit). Values are shuffled by query and read twice:
    write them to storage first. For up to a few million queries, use `to_evaluations` and
    :func:`rankgauge.compare`, whose tests do not assume that means are normally distributed.

    Args:
        values: Result of `evaluate` for all runs in one call, or the same columns read from
            storage.
        runs: Names of the runs. By default, all runs in alphabetical order, which takes a pass over
            the values.
        baseline: As in :func:`rankgauge.compare`.
        pairs: As in :func:`rankgauge.compare`.
        tested: Measures whose differences are tested; by default, the first one.
        correction: As in :func:`rankgauge.compare`.
        interval: ``t``, or ``percentile``:
            :func:`rankgauge.stats.poisson_bootstrap_interval`, whose draws depend only on the seed
            and the query ids.
        draws: Number of bootstrap draws; 1,000 draws for 10^8 queries take about 7 CPU minutes per
            measure.
        seed: Seed of the draws.
        undefined: As in `summarize`.
        ship: As in `evaluate`.

    Raises:
        InputError: If there are fewer than two runs or queries, or the columns are not those of
            `evaluate`. Spark reports a run without a row for a query, or with two of them.
        UnknownName: If a run, a measure, or an option is unknown.

    Example:
        >>> values = session.read.parquet("s3://logs/values")  # doctest: +SKIP
        >>> print(compare(values, baseline="bm25"))  # doctest: +SKIP
    """
    Policies(undefined=undefined)
    measures = _measures_of(values)
    names = _names_of(values, "run", runs)
    if len(names) < 2:
        raise InputError(
            f"got {many(len(names), 'run')}, expected two or more",
            where="values",
            fix="evaluate several runs, named in the column run",
        )
    if baseline is not None and baseline not in names:
        raise UnknownName(f"unknown run {baseline!r}", fix=f"runs are: {', '.join(names)}")
    option("interval", interval, ("t", "percentile"))
    check_draws(draws, seed)
    tested_measures = (tested,) if isinstance(tested, str | Measure) else tuple(tested or measures[:1])
    design = Design(
        tuple(map(parse, tested_measures)), baseline or names[0], pairs, "t", correction, interval, draws, seed
    )
    for measure in design.tested:
        if str(measure) not in measures:
            raise UnknownName.of("measure", str(measure), measures)
    shown = tuple(dict.fromkeys([*map(str, design.tested), *measures]))
    job = PairJob(shown, names, tuple(design.pairs_of(names)), undefined == "skip")
    by_query = values.repartition("query_id").sortWithinPartitions("query_id")
    first = by_query.mapInArrow(_on_worker("sum_pairs", job, ship), "sums string, pairs string").collect()
    means = read_sums((row["sums"] for row in first), Sum)
    sums = read_sums((row["pairs"] for row in first), PairSums)
    around = spread_job(job, sums, design)
    second = by_query.mapInArrow(_on_worker("sum_spreads", around, ship), "sums string")
    spreads = read_sums((row["sums"] for row in second.collect()), SpreadSums) if around.centers else {}
    return compare_sums(names, design, means, sums, spreads, skip_undefined=job.skip_undefined)


def to_evaluations(values: Any) -> dict[str, Evaluation]:
    """Collect the values of all queries on this machine, to compare, gate, save, or report them.

    Args:
        values: Result of `evaluate`, or the same columns read from storage. A value takes 8 bytes,
            an id about 60.

    Returns:
        Run to `Evaluation`, with sorted queries.

    Raises:
        InputError: If the columns are not those of `evaluate`.
    """
    measures = _measures_of(values)
    by_run: dict[str, dict[str, list[float]]] = {}
    for row in values.toLocalIterator():
        of_query = [float("nan") if row[name] is None else row[name] for name in measures]
        by_run.setdefault(row["run"], {})[row["query_id"]] = of_query
    return {
        run: Evaluation.from_values(
            run,
            sorted(by_query),
            {measure: [by_query[query][at] for query in sorted(by_query)] for at, measure in enumerate(measures)},
        )
        for run, by_query in sorted(by_run.items())
    }


def _column(frame: Any, name: str) -> str | None:
    """Return the column of this name, in any case: Spark does not distinguish cases."""
    folded = {column.lower(): column for column in frame.columns}
    return name if name in frame.columns else folded.get(name.lower())


def _names_of(run: Any, column: Any, runs: Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of the runs."""
    if runs is not None:
        return tuple(dict.fromkeys(runs))
    names = [row[0] for row in run.select(run[column].cast("string")).distinct().collect()]
    if None in names:
        raise InputError("a row has no run name", where=column, fix="filter out rows without one")
    if not names:
        raise InputError("the run has no rows", where="run", fix="pass at least one ranking")
    return tuple(sorted(names))


def _rows(functions: Any, frame: Any, names: Mapping[str, str], *, value: str, run: str | None) -> Any:
    """Return the rows of a run or of judgments, with the columns that workers read.

    A task that reads an invalid number fails.
    """
    what = "run" if value == "score" else "judgments"
    types = dict(frame.dtypes)
    names = {role: _column(frame, name) or name for role, name in names.items()}
    for role in ("query_id", "doc_id", value):
        if names[role] not in types:
            raise InputError(
                f"the {what} have no column {names[role]!r}: they have {', '.join(types)}",
                where=what,
                fix=f"name it: columns={{{role!r}: ...}}",
            )
        kind = types[names[role]]
        if role != value and not _WHOLE.fullmatch(kind):
            raise InputError(
                f"column {names[role]!r} has values of type {kind}, which cannot be ids",
                where=what,
                fix="cast it to integer or text",
            )
        if role == value and not _NUMBER.fullmatch(kind):
            raise InputError(
                f"column {names[role]!r} has values of type {kind}, which are not numbers",
                where=what,
                fix=f"cast it, or name another column: columns={{{role!r}: ...}}",
            )
    column, kind = functions.col, types[names[value]]
    name = functions.lit("run") if run is None else column(f"`{run}`").cast("string")
    number = column(f"`{names[value]}`").cast("double")
    if kind in {"string", "bigint"} or kind.startswith("decimal"):
        # As on a single machine, text has to be a decimal number, and integers have to be exact.
        number = functions.expr(_NUMBER_SQL.format(name=f"`{names[value]}`", value=value))
    return frame.select(
        column(f"`{names['query_id']}`").cast("string").alias("query_id"),
        column(f"`{names['doc_id']}`").cast("string").alias("doc_id"),
        number.alias("value"),
        name.alias("run"),
    )


def _measures_of(values: Any) -> tuple[str, ...]:
    """Return the measures among the columns of values per query."""
    measures = tuple(name for name in values.columns if name not in {"run", "query_id"})
    try:
        known = bool(measures) and len(values.columns) == len(measures) + 2
        for name in measures:
            parse(name)
    except UnknownName:
        known = False
    if not known:
        raise InputError(
            f"the columns are {', '.join(values.columns)}; expected run, query_id, and measures",
            where="values",
            fix="pass the result of rankgauge.distributed.spark.evaluate",
        )
    return measures


def _on_worker(name: str, settings: object, ship: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function of batches, one of `worker`, that workers can run without this package.

    Nested functions are pickled with their code, not by their name.
    """
    option("ship", ship, ("value", "installed"))
    packed = pickle.dumps(settings)
    sources, digest = _sources() if ship == "value" else (b"", "")

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib
        import importlib.abc
        import importlib.util
        import pickle
        import sys
        import zlib

        # A Spark process runs several jobs, so the loaded code may be that of another job.
        finders: list[Any] = [finder for finder in sys.meta_path if hasattr(finder, "rankgauge")]
        known = finders[0].rankgauge if finders else ""
        if known != digest:
            for loaded in [module for module in sys.modules if module.partition(".")[0] == "rankgauge"]:
                del sys.modules[loaded]
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder not in finders]
        if digest and known != digest:
            texts = pickle.loads(zlib.decompress(sources))  # noqa: S301 - made below

            class Sources(importlib.abc.InspectLoader, importlib.abc.MetaPathFinder):
                """Importer of modules from their source, without files on the worker."""

                rankgauge = digest

                def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002
                    return None if fullname not in texts else importlib.util.spec_from_loader(fullname, self)

                def is_package(self, fullname: str) -> bool:
                    return bool(texts[fullname][1])

                def get_source(self, fullname: str) -> str:
                    return str(texts[fullname][0])

            sys.meta_path.insert(0, Sources())
        home = importlib.import_module("rankgauge.distributed.worker")
        yield from getattr(home, name)(batches, pickle.loads(packed))  # noqa: S301 - made above

    return work


@lru_cache(maxsize=1)
def _sources() -> tuple[bytes, str]:
    """Return the packed source of the modules that workers need, and its digest."""
    root = Path(__file__).parents[1]
    files = [root / "__init__.py", root / "errors.py"]
    files += [path for name in _PACKAGES for path in sorted((root / name).rglob("*.py"))]
    texts = {}
    for path in files:
        parts = path.relative_to(root.parent).with_suffix("").parts
        package = parts[-1] == "__init__"
        texts[".".join(parts[:-1] if package else parts)] = (path.read_text("utf-8"), package)
    packed = zlib.compress(pickle.dumps(texts), 9)
    return packed, hashlib.sha256(packed).hexdigest()
