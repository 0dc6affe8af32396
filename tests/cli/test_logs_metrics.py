"""``rankgauge logs metrics``."""

import json

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

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


@pytest.mark.parametrize(("words", "says"), [
    (["-m", "thumbs"], "thumbs_ratio"),
    (["--where", "language"], "NAME=VALUE"),
    (["--plot", "x.svg"], "--by day"),
    (["--fail-if", "high"], "NAME > NUMBER"),
])  # fmt: skip
def test_impossible_options_are_refused(log, words, says):
    done = run("logs", "metrics", log, *words)
    assert done.returncode == 2
    assert says in done.stderr
