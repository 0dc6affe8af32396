"""``rankgauge logs experiment``, ``interleaving``, and ``judgments``."""

import json

import pytest
from command import run
from production_logs import write_clicks

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("scipy")


@pytest.fixture
def log(tmp_path):
    return write_clicks(tmp_path / "log.parquet")


def test_interleaving_names_the_retriever_that_users_prefer(log):
    done = run("logs", "interleaving", log)
    assert done.returncode == 0
    assert "bm25 is better than dense by interleaving" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    found = json.loads(run("logs", "interleaving", log, "--as", "json").stdout)
    assert (found["wins_a"], found["wins_b"], found["verdict"]) == (32, 8, "better")


@pytest.mark.parametrize("model", ["coec", "position"])
def test_judgments_are_written_with_where_they_come_from(log, tmp_path, model):
    target = tmp_path / "clicks.qrels"
    done = run("logs", "judgments", log, "--model", model, "-o", target, "--full")
    assert done.returncode == 0
    assert "judged by clicks" in done.stdout
    assert "grades by ratio" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    grades = {line.split()[2]: line.split()[3] for line in target.read_text().splitlines()}
    assert grades == {"d1": "2", "d2": "0"}
    run_file = tmp_path / "run.txt"
    query = target.read_text().split()[0]
    run_file.write_text(f"{query} Q0 d1 1 2.0 x\n")
    assert "judged by clicks" in run("evaluate", target, run_file).stdout


def test_queries_of_the_evaluation_set_keep_their_identifiers(log, tmp_path):
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"_id": "q7", "text": "Late fees"}\n')
    target = tmp_path / "clicks.qrels"
    assert run("logs", "judgments", log, "--queries", queries, "-o", target).returncode == 0
    assert target.read_text().startswith("q7 ")


@pytest.fixture
def arms(tmp_path):
    """200 users in two arms over 10 days, who click in 20% and 50% of their searches."""
    path = tmp_path / "arms.parquet"
    duckdb.connect().execute(
        f"""COPY (
        WITH q AS (SELECT i, 'q' || i AS question_id, 'u' || (i // 2) AS user_id,
          TIMESTAMPTZ '2026-05-01 12:00:00+00' + (i % 10) * INTERVAL 1 DAY AS time,
          if(i // 2 % 2 = 0, 'bm25', 'hybrid') AS arm FROM range(400) t(i))
        SELECT 'a' || i AS event_id, 'impression' AS kind, time, question_id, user_id, arm,
          ['d1'] AS documents, [1] AS ranks FROM q
        UNION ALL SELECT 'b' || i, 'click', time, question_id, user_id, arm, ['d1'], [1] FROM q
        WHERE if(arm = 'bm25', i // 4 % 5 = 0, i // 4 % 2 = 0)
        ) TO '{path}'"""
    )
    return path


def test_an_experiment_is_decided_by_its_primary_metric(arms):
    done = run("logs", "experiment", arms, "--primary", "search_ctr", "-m", "click_mrr", "--full")
    assert done.returncode == 0
    assert "hybrid is better than bm25 by search_ctr" in done.stdout
    assert "sample ratio p = 1" in " ".join(done.stdout.split())
    assert "2026-05-10" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    found = json.loads(run("logs", "experiment", arms, "--primary", "search_ctr", "--as", "json").stdout)
    assert found["differences"][0]["difference"] == pytest.approx(0.3)
    assert len(found["days"]) == 10


def test_a_mismatch_of_the_intended_ratio_withholds_the_verdict(arms):
    done = run("logs", "experiment", arms, "--primary", "search_ctr", "--ratio", "9", "1")
    assert done.stdout.startswith("no verdict: 100 and 100 users contradict")


def test_the_plot_of_an_experiment_is_written(arms, tmp_path):
    pytest.importorskip("matplotlib")
    target = tmp_path / "days.svg"
    done = run("logs", "experiment", arms, "--primary", "search_ctr", "--plot", target)
    assert done.returncode == 0
    assert "<svg" in target.read_text()
