"""``rankgauge judge relevance``, ``agreement``, and ``size``."""

import json

import pytest
from command import run

import rankgauge
from rankgauge.judging import Candidate, Choice, Document, JudgingProject, Question, Source

SAMPLE = rankgauge.sample_path("qrels.txt")
RUNS = [str(SAMPLE.parent / "runs" / name) for name in ("bm25.run", "keyword.run")]


@pytest.fixture
def project(tmp_path):
    path = tmp_path / "judging.db"
    with JudgingProject.create(path) as opened:
        opened.add_questions([Question("q1", "How?"), Question("q2", "Why?")])
        pool = [
            Candidate(question, name, (Source("bm25"),)) for question in ("q1", "q2") for name in ("a", "b", "c", "d")
        ]
        opened.add_candidates(pool, [Document(name) for name in "abcd"])
        for name in ("Ann", "Bob"):
            judge, _ = opened.add_judge(name)
            for number in range(4):
                task = opened.next_task(judge.id)
                best = min(task.presentation.documents)
                opened.record(Choice(f"{name}{number}", task.presentation.id, judge.id, "chosen", (best,)))
    return path


def test_relevance_prints_shown_and_chosen(project):
    done = run("judge", "relevance", "--store", project)
    assert done.returncode == 0, done.stderr
    assert "chosen/shown" in done.stdout
    told = json.loads(run("judge", "relevance", "--store", project, "--as", "json").stdout)
    assert sum(each["chosen"] for each in told["documents"]) == 8
    assert {each["question"] for each in told["documents"]} == {"q1", "q2"}


def test_relevance_of_one_question(project):
    done = run("judge", "relevance", "--store", project, "--question", "q2", "--as", "csv")
    assert {line.split(",")[0] for line in done.stdout.splitlines()[1:]} == {"q2"}
    done = run("judge", "relevance", "--store", project, "--question", "nope")
    assert done.returncode == 2
    assert "there is no question 'nope'" in done.stderr


def test_agreement_prints_alpha(project):
    done = run("judge", "agreement", "--store", project)
    assert done.returncode == 0, done.stderr
    assert "alpha, none or any" in done.stdout
    assert json.loads(run("judge", "agreement", "--store", project, "--as", "json").stdout)["people"] == 2


def test_without_judgments_the_next_step_is_shown(tmp_path):
    path = tmp_path / "empty.db"
    JudgingProject.create(path).close()
    for command, step in (
        ("relevance", "serve"),
        ("agreement", "serve"),
        ("votes", "judge answers FILE"),
    ):
        done = run("judge", command, "--store", path)
        assert (done.returncode, done.stdout) == (0, "")
        assert f"Next: rankgauge {step} --store {path}" in done.stderr


def test_the_coefficients_of_each_judge_are_listed_in_full_only(project):
    short = run("judge", "agreement", "--store", project).stdout
    assert max(map(len, short.splitlines())) <= 80
    assert "--full lists" not in short or len(
        run("judge", "agreement", "--store", project, "--full").stdout.splitlines()
    ) > len(short.splitlines())


def test_size_is_that_of_the_projects_settings_and_pools(project):
    done = run("judge", "size", "--store", project, "--difference", "0.05", "--sd", "0.2", "--as", "json")
    told = json.loads(done.stdout)
    assert (told["questions"], told["documents"], told["tasks"]) == (128, 4, 8)


def test_size_takes_the_spread_of_evaluated_runs(project):
    done = run(
        "judge",
        "size",
        "--store",
        project,
        "--difference",
        "0.1",
        "--qrels",
        SAMPLE,
        "--run",
        RUNS[0],
        "--run",
        RUNS[1],
    )
    assert done.returncode == 0, done.stderr
    assert "difference 0.1, power 80%" in done.stdout


def test_size_needs_a_spread(project):
    done = run("judge", "size", "--store", project, "--difference", "0.1")
    assert done.returncode == 2
    assert "pass --sd X, or --qrels FILE" in done.stderr
    one = run("judge", "size", "--store", project, "--difference", "0.1", "--qrels", SAMPLE, "--run", RUNS[0])
    assert one.returncode == 2
    assert "evaluations of two or more runs" in one.stderr
