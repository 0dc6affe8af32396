"""A log in Spark gives the numbers of a log in files, for any partitioning."""

import os
import shutil
import sys
from pathlib import Path

import pytest

import rankgauge
from rankgauge.errors import FormatError
from rankgauge.production import EventLog, SparkLog, compare_arms, online_metrics

pytest.importorskip("pyspark", reason="without pyspark no job is run")
pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")
if shutil.which("java") is None:
    pytest.skip("without Java no job is run", allow_module_level=True)

from tests.online_loops import random_events, write_events


@pytest.fixture(scope="module")
def session():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(Path(rankgauge.__file__).parents[1])
    made = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "America/New_York")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


def rows_of(found):
    return found.data_table().rows


def assert_same(mine, local):
    """Check that all cells are equal; sums of fractions up to rounding."""
    assert mine.summary() == local.summary()
    assert len(rows_of(mine)) == len(rows_of(local))
    for one, other in zip(rows_of(mine), rows_of(local), strict=True):
        if one[1] == "click_mrr":
            fractions = ([c for c in row if isinstance(c, float)] for row in (one, other))
            assert next(fractions) == pytest.approx(next(fractions), rel=1e-12, nan_ok=True)
        else:
            assert repr(one) == repr(other)


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        (1, {}),
        (2, {"by": "week", "thresholds": ["idk_rate > 0.2"]}),
        (3, {"by": "language", "where": {"arm": "B"}, "since": "2026-05-02"}),
    ],
)
def test_online_metrics_are_those_of_a_log_in_files(session, tmp_path, seed, words):
    path = tmp_path / "log.parquet"
    # Without events, abstentions are found by the rule.
    write_events(path, random_events(seed, questions=120, users=15, abstentions=seed != 2))
    local = online_metrics(EventLog(path), **words)
    log = SparkLog(session.read.parquet(str(path)).repartition(3), str(path))
    mine = online_metrics(log, **words)
    assert_same(mine, local)
    assert mine.notes == local.notes
    assert mine.checks == local.checks
    assert (mine.first, mine.last) == (local.first, local.last)
    assert session.conf.get("spark.sql.session.timeZone") == "America/New_York"
    assert not session.catalog.listTables()


def test_arms_are_compared_as_in_files(session, tmp_path):
    path = tmp_path / "log.parquet"
    write_events(path, random_events(5, questions=150, users=20))
    words = {"metrics": ["thumbs_ratio", "containment_rate"], "primary": "search_ctr"}
    local = compare_arms(EventLog(path), **words)
    mine = compare_arms(SparkLog(session.read.parquet(str(path)), str(path)), **words)
    assert mine.to_dict() == local.to_dict()


def test_columns_are_named_in_errors(session):
    frame = session.createDataFrame(
        [("e", "question", "2026-05-01", "q")], "event_id string, kind string, time string, question_id string"
    )
    with pytest.raises(FormatError, match="column 'time' has values of type string"):
        SparkLog(frame)
    with pytest.raises(FormatError, match="there is no column 'kind'"):
        SparkLog(frame.drop("kind"))
