"""``rankgauge logs metrics``."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

import duckdb
from tests.command import run
from tests.online_loops import random_events, write_events


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return str(write_events(tmp_path_factory.mktemp("log") / "log.parquet", random_events(5, 200)))


def test_the_table_has_numbers_and_thresholds_first(log):
    done = run("logs", "metrics", log, "--fail-if", "idk_rate > 0.9")
    assert done.returncode == 0
    assert "PASS: idk_rate is not above 0.9" in done.stdout
    assert len(done.stdout.splitlines()) <= 32


def test_a_threshold_exceeded_beyond_its_interval_ends_with_1(log):
    done = run("logs", "metrics", log, "-m", "idk_rate", "--fail-if", "idk_rate > 0.01")
    assert (done.returncode, "FAIL: idk_rate is above 0.01" in done.stdout) == (1, True)
    unsure = "thumbs_ratio < 0.5"
    assert run("logs", "metrics", log, "--fail-if", unsure).returncode == 0
    assert run("logs", "metrics", log, "--fail-if", unsure, "--strict").returncode == 3


def test_json_has_all_numbers_and_definitions(log):
    done = run("logs", "metrics", log, "--by", "arm", "--as", "json", "--where", "language=de")
    found = json.loads(done.stdout)
    assert {row["group"] for row in found["rows"]} == {None, "A", "B"}
    assert found["parameters"] == {"minutes": 10, "similarity": 0.5, "abstention": "events"}
    assert all(row["unit"] and row["definition"] for row in found["rows"])


def test_full_has_units_and_definitions(log):
    done = run("logs", "metrics", log, "--full")
    assert "win_rate: (first preferred + ties / 2) / comparisons" in done.stdout


def test_a_plot_is_written(log, tmp_path):
    pytest.importorskip("matplotlib")
    target = tmp_path / "idk.svg"
    done = run("logs", "metrics", log, "-m", "idk_rate", "--by", "day", "--plot", target)
    assert (done.returncode, target.exists()) == (0, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-m", "thumbs"], "thumbs_ratio"),
        (["--where", "language"], "NAME=VALUE"),
        (["--plot", "x.svg"], "--by day"),
        (["--fail-if", "high"], "NAME > NUMBER"),
    ],
)
def test_impossible_options_are_refused(log, words, says):
    done = run("logs", "metrics", log, *words)
    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="SIGINT is sent differently there")
def test_an_interrupt_of_a_query_is_no_error(tmp_path):
    """DuckDB turns the interrupt into a RuntimeError."""
    path = tmp_path / "log.parquet"
    duckdb.execute(f"""
        COPY (SELECT 'e' || i AS event_id, 'question' AS kind, 'q' || i AS question_id,
            TIMESTAMPTZ '2026-05-04 08:00:00+00' + INTERVAL 1 SECOND * i AS time
        FROM range(1000000) t(i)) TO '{path}' (FORMAT parquet)""")
    words = [sys.executable, "-m", "rankgauge", "logs", "metrics", str(path)]
    whole = time.monotonic()
    subprocess.run(words, check=True, capture_output=True)
    whole = time.monotonic() - whole
    for part in (0.4, 0.6, 0.8):
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            time.sleep(part * whole)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate()
        # While Python ends, it does not handle the signal any more.
        ends = {(130, "interrupted"), (0, ""), (-signal.SIGINT, "")}
        assert (process.returncode, errors.decode().strip()) in ends
