"""``rankgauge judge answers`` and ``votes``."""

import json

import pytest
from command import run

from rankgauge.judging import JudgingProject, Question


@pytest.fixture
def project(tmp_path):
    path = tmp_path / "judging.db"
    with JudgingProject.create(path) as opened:
        opened.add_questions([Question("q1", "How?")])
    answers = tmp_path / "answers.csv"
    answers.write_text("id,question,text,retrieval,sources\na,q1,x,v1,d1;d2\nb,q1,y,v2,d3\n")
    done = run("judge", "answers", "--store", path, answers)
    assert done.returncode == 0, done.stderr
    assert "2 answers to 1 question of the project" in done.stderr + done.stdout
    return path


def test_votes_are_imported_and_reported(project, tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("question,left,right,winner\nq1,a,b,left\nq1,b,a,both bad\n")
    done = run("judge", "votes", "--store", project, "--import", votes, "--kind", "application")
    assert done.returncode == 0, done.stderr
    assert "2 new votes" in done.stderr + done.stdout
    assert "application" in done.stdout
    told = json.loads(run("judge", "votes", "--store", project, "--as", "json").stdout)
    assert [(each["wins"], each["losses"]) for each in told["pairs"]] == [(1, 0)]
    assert [each["document"] for each in told["credits"]] == ["d1", "d2", "d3"]


def test_a_broken_line_is_named(project, tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("question,left,right,winner\nq1,a,zz,left\n")
    done = run("judge", "votes", "--store", project, "--import", votes)
    assert done.returncode == 2
    assert "line 2: there is no answer 'zz'" in done.stderr
