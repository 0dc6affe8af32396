"""Commands in a project: arguments that its file or its store makes unnecessary."""

import json
import shutil

import pytest
from command import run as run_command

from rankgauge import Project, Run, sample_path

FILE = """
log = "log"
baseline = "keyword"
measures = ["nDCG@10"]

[collection]
source = "corpus.jsonl"
queries = "queries.jsonl"
qrels = "qrels.txt"

[answers]
file = "answers/prompt-1.jsonl"
reference = "answers/questions.jsonl"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A project with two saved evaluations."""
    folder, sample = tmp_path_factory.mktemp("project"), sample_path("qrels.txt").parent
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.txt", "runs/bm25.run", "runs/keyword.run"):
        shutil.copy(sample / name, folder)
    shutil.copytree(sample / "answers", folder / "answers")
    (folder / "rankgauge.toml").write_text(FILE, encoding="utf-8")
    done = run_command("evaluate", "qrels.txt", "bm25.run", "keyword.run", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def command(folder, monkeypatch):
    monkeypatch.delenv("RANKGAUGE_STORE", raising=False)

    def done(*words):
        result = run_command(*words, cwd=folder)
        assert result.returncode == 0, result.stderr
        return result

    return done


@pytest.mark.parametrize(
    ("files", "saved"),
    [
        ("reliability qrels.txt bm25.run keyword.run -k 3", "reliability bm25#1 keyword#2 -k 3"),
        ("fuse bm25.run keyword.run", "fuse bm25@latest @latest"),
        ("fuse bm25.run keyword.run --tune qrels.txt --folds 2", "fuse bm25#1 keyword.run --tune qrels.txt --folds 2"),
        ("cut bm25.run -k 3", "cut bm25#1 -k 3"),
        ("compare qrels.txt bm25.run keyword.run", "compare qrels.txt bm25#1 keyword.run"),
    ],
)
def test_saved_runs_are_accepted_as_files_are(files, saved, command):
    expected, got = (command(*words.split()).stdout for words in (files, saved))
    for name in ("bm25#1", "keyword#2"):
        expected = expected.replace(name.partition("#")[0], name)
        got = got.replace(name, name.partition("#")[0]).replace(name.partition("#")[0], name)
    assert "".join(got.split()).replace("─", "") == "".join(expected.split()).replace("─", "")


@pytest.mark.parametrize("words", ["reliability", "explain", "compare", "diagnose", "sensitivity ties"])
def test_without_arguments_the_saved_evaluations_are_taken(words, command):
    assert command(*words.split(), "-q").stdout


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("evaluate bm25.run keyword.run --no-save", "evaluate qrels.txt bm25.run keyword.run --no-save"),
        ("compare bm25.run keyword.run", "compare qrels.txt bm25.run keyword.run"),
        ("evaluate -m rag bm25.run --no-save", "evaluate -m R@5,P@5,RR qrels.txt bm25.run --no-save"),
    ],
)
def test_runs_without_judgments_are_evaluated_on_those_of_the_project(words, named, command):
    assert command(*words.split(), "-q").stdout == command(*named.split(), "-q").stdout


def test_the_measures_of_a_project_may_be_a_use_case(folder, command):
    path = folder / "rankgauge.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('["nDCG@10"]', '["rag"]'), encoding="utf-8")
    try:
        expected = command("evaluate", "-m", "rag", "bm25.run", "--no-save").stdout
        assert command("evaluate", "bm25.run", "--no-save").stdout == expected
        assert str(Project(folder).rules.measures[0].measure) == "R@5"
    finally:
        path.write_text(text, encoding="utf-8")


def test_a_saved_run_that_is_cut_keeps_its_scores(folder, command):
    command("cut", "bm25#1", "-k", "2", "-o", "top.run")
    cut, whole = Run.of(folder / "top.run"), Run.of(folder / "bm25.run")
    assert all(len(ranking) <= 2 for ranking in cut.values())
    assert all(whole[query][name] == score for query, ranking in cut.items() for name, score in ranking.items())
    (folder / "top.run").unlink()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("diagnose", "diagnose @latest"),
        ("explain nDCG@10", "explain @latest nDCG@10"),
        ("diff", "diff @baseline @latest"),
        ("check --fail-on never", "check keyword@latest bm25@latest --fail-on never"),
        ("sensitivity ties", "sensitivity ties keyword@latest bm25@latest"),
        ("compare", "compare keyword@latest bm25@latest"),
        ("report -o - --no-plots", "report keyword@latest bm25@latest -o - --no-plots"),
    ],
)
def test_without_a_path_the_latest_runs_of_the_project_are_used(words, named, command):
    assert command(*words.split()).stdout == command(*named.split()).stdout


def test_a_gate_takes_the_latest_evaluation(command):
    assert "keyword#2, 30 queries" in command("gate", "--update-baseline").stdout
    assert command("gate").stdout.startswith("IDENTICAL")


def test_evaluations_of_answers_are_no_runs(command):
    before = command("diagnose").stdout
    command("answers", "evaluate")
    assert command("history", "list", "--as", "csv").stdout.count("\n") == 4
    assert command("diagnose").stdout == before
    assert command("evaluate").stdout == command("evaluate", "keyword#2", "bm25#1").stdout


def test_answers_are_those_of_the_project(folder, command):
    named = ["answers/prompt-1.jsonl", "--reference", "answers/questions.jsonl"]
    assert (
        command("answers", "evaluate", "--no-save").stdout == command("answers", "evaluate", *named, "--no-save").stdout
    )
    assert "prompt-2" in command("answers", "evaluate", "answers/prompt-2.jsonl", "--no-save").stdout
    below = folder / "below"
    below.mkdir()
    done = run_command("answers", "evaluate", "--no-save", cwd=below)
    assert "prompt-1: 20 questions" in done.stdout


def test_the_model_of_the_answers_is_that_of_the_project(folder, command):
    path = folder / "rankgauge.toml"
    text = path.read_text(encoding="utf-8")
    table = '\n[models.small]\nurl = "http://localhost:9/v1"\nmodel = "small-1"\n'
    path.write_text(f'{text}model = "small"\n{table}', encoding="utf-8")
    try:
        assert "small-1" in command("answers", "evaluate", "--dry-run").stderr
        verdicts = ["--verdicts", "answers/verdicts.jsonl"]
        assert command("answers", "evaluate", *verdicts, "--no-save").stdout
    finally:
        path.write_text(text, encoding="utf-8")


def test_the_log_is_that_of_the_project(folder, command):
    source = sample_path("log/searches.jsonl.gz")
    words = ["logs", "import", source, "--mapping", sample_path("log/mapping.toml")]
    command(*words)
    named = command("logs", "show", "log")
    assert command("logs", "show").stdout == named.stdout
    assert "200 of" in named.stdout or "question" in named.stdout
    assert command("logs", "metrics", "-q").stdout == command("logs", "metrics", "log", "-q").stdout
    drift = ["logs", "drift", "--permutations", "19", "-q"]
    assert command(*drift).stdout == command(*drift, "queries.jsonl", "log").stdout
    command(*words, "other")
    assert (folder / "other" / "manifest.json").exists()
    assert "log: " in command("status").stdout


def test_a_user_of_the_log_is_removed_from_its_files(folder, command):
    rows = [
        {"query_id": f"q{n}", "user_query": f"text {n}", "client_id": f"u{n}", "timestamp": "2026-05-01T12:00:00Z"}
        for n in range(3)
    ]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    command("logs", "import", "rows.jsonl")
    done = command("store", "forget", "--user", "u1", "--yes")
    assert done.stderr == "removed user u1 from log: 1 event, 1 question, 1 rewritten file\n"
    again = run_command("store", "forget", "--user", "u1", "--yes", cwd=folder)
    assert again.returncode == 2
    assert "the log has no user 'u1'" in again.stderr


def test_judges_get_the_documents_of_the_project(command):
    command("judge", "create", "--questions", "queries.jsonl")
    named = command("judge", "pool", "--run", "bm25#1", "-k", "2", "--collection", "corpus.jsonl").stdout
    assert "60" in named
    again = command("judge", "pool", "--run", "bm25#1", "-k", "2").stdout
    assert "60" in again
    command("judge", "pool", "--random", "3")
    command("judge", "import", "qrels.txt", "--judge", "Ann")
    command("judge", "export", "sampled.txt", "--to", "sampled")
    assert command("evaluate", "sampled.txt", "bm25.run", "-m", "infNDCG@10", "--no-save").stdout


def test_outside_of_a_project_the_inputs_must_be_named(tmp_path):
    for words in (["diagnose"], ["compare"], ["report"], ["gate"], ["explain", "RR"], ["reliability", "qrels.txt"]):
        done = run_command(*words, cwd=tmp_path)
        assert done.returncode == 2
        assert "name the judgments and the run" in done.stderr
    assert run_command("judge", "create", "--store", "j.db", cwd=tmp_path).returncode == 0
    for words, missing in (
        (["logs", "show"], "name the log"),
        (["answers", "evaluate"], "name the answers"),
        (["judge", "pool", "--bm25", "--store", "j.db"], "name the documents"),
    ):
        done = run_command(*words, cwd=tmp_path)
        assert done.returncode == 2
        assert missing in done.stderr


def test_the_store_of_the_environment_is_that_of_all_commands(folder, monkeypatch, tmp_path):
    where = str(tmp_path / "team.db")
    monkeypatch.setenv("RANKGAUGE_STORE", where)
    assert Project(folder).evaluations.where == where
    done = run_command("evaluate", "bm25.run", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert where in done.stderr
    assert "bm25" in run_command("history", "list", cwd=folder).stdout
