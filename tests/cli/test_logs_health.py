"""``rankgauge logs health``: a history compared with a log."""

import json

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from tests.command import run
from tests.production.test_monitor import ANGRY, log

import rankgauge

QRELS = {f"q{n}": {"a": 1} for n in range(6)}


def history(path, *runs, qrels=QRELS):
    with rankgauge.History(path) as kept:
        for name, ranking in runs:
            found = rankgauge.evaluate(qrels, rankgauge.Run(dict.fromkeys(qrels, ranking)), "RR")
            kept.add(
                rankgauge.Evaluation.from_values(name, found.query_ids, {"RR": found.per_query[:, 0].tolist()}), qrels
            )
    return path


def test_a_steady_measure_with_unhappy_users_suggests_a_new_evaluation_set(tmp_path):
    store = history(tmp_path / "h.db", ("a", ["a", "b"]), ("a", ["a", "c"]))
    events = log(tmp_path / "log.parquet", **ANGRY)
    done = run("logs", "health", events, "--store", store, "-m", "RR")
    assert done.returncode == 0
    assert done.stdout.startswith("REFRESH: metrics look good, but users complain: refresh the evaluation set")
    assert len(done.stdout.splitlines()) <= 24
    found = json.loads(
        run("logs", "health", events, "--store", store, "-m", "RR", "--margin", "0.15", "--as", "json").stdout
    )
    assert found["verdict"] == "REFRESH"
    assert {signal["name"]: signal["state"] for signal in found["online"]} == {
        "thumbs_ratio": "worse",
        "idk_rate": "steady",
        "reformulation_rate": "steady",
    }


@pytest.mark.parametrize(("verdict", "drift"), [("missing", True), ("mixed", False), ("cannot tell", None)])
def test_a_report_of_drift_is_read(tmp_path, verdict, drift):
    store = history(tmp_path / "h.db", ("a", ["a", "b"]), ("a", ["a", "c"]))
    events = log(tmp_path / "log.parquet", **ANGRY)
    finding = dict.fromkeys(("code", "message", "effect", "fix"), "x") | {"severity": "warning"}
    report = tmp_path / "drift.json"
    report.write_text(json.dumps({"schema": "rankgauge/drift/1", "verdict": verdict, "finding": finding}))
    options = ("--store", store, "-m", "RR", "--drift", report, "--as", "json")
    assert json.loads(run("logs", "health", events, *options).stdout)["drift"] is drift
    report.write_text("{}")
    assert "not a drift report" in run("logs", "health", events, *options).stderr


def test_several_runs_need_a_name(tmp_path):
    store = history(tmp_path / "h.db", ("a", ["a"]), ("b", ["a"]))
    events = log(tmp_path / "log.parquet", days=1, **ANGRY)
    done = run("logs", "health", events, "--store", store, "-m", "RR")
    assert (done.returncode, "--run NAME" in done.stderr) == (2, True)
    chosen = run("logs", "health", events, "--store", store, "-m", "RR", "--run", "b")
    assert "there is only one evaluation" in " ".join(chosen.stdout.split())


def test_evaluations_before_a_change_of_judgments_are_left_out(tmp_path):
    path = history(tmp_path / "h.db", ("a", ["a"]))
    history(path, ("a", ["b", "a"]), qrels=QRELS | {"q9": {"a": 1}})
    events = log(tmp_path / "log.parquet", days=1, **ANGRY)
    done = run("logs", "health", events, "--store", path, "-m", "RR")
    assert "excluded: 1 evaluation before different judgments" in done.stderr
