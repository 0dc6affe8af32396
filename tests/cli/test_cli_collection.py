"""``rankgauge collection``."""

import json

import command
import pytest

import rankgauge

FOLDER = rankgauge.sample_path("qrels.txt").parent


def run(*words, cwd=None):
    return command.run("collection", *words, cwd=cwd)


def test_it_prints_the_result_of_the_library():
    done = run("info", FOLDER, "--as", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads(json.dumps(rankgauge.describe_collection(FOLDER).to_dict()))


def test_every_option_reaches_the_library(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\nwhat is in here then\n")
    (tmp_path / "q.csv").write_text("id,question,relevant\nq1,What is in here?,a.md\n")
    (tmp_path / "qrels.txt").write_text("q1 0 a.md 3\nq2 0 b.md 1\n")
    (tmp_path / "a.run").write_text("q1 Q0 z.md 1 2.5 mytag\n")
    words = ("--queries", "q.csv", "--qrels", "qrels.txt", "--run", "a.run", "--as", "csv")
    done = run("info", "docs", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for line in (
        "judgments of grade 3,1,,",
        "queries whose text occurs in a document,1,1,q1 in a.md",
        "judged documents not in the collection,1,2,b.md",
        "judged queries not in the collection,1,2,q2",
        "documents of the run a that are not in the collection,1,1,z.md",
    ):
        assert line in done.stdout.splitlines()
    done = run("info", "docs", "--split", "dev", cwd=tmp_path)
    assert done.returncode == 2
    assert "no judgments of a split 'dev'" in done.stderr


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_every_form_has_all_known_facts(form, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"_id": "d", "text": "x"}\nno\n')
    done = run("info", path, "--as", form)
    assert done.returncode == 0
    assert "lines or files that were skipped" in done.stdout
    assert "no judgments were given" in done.stdout


def test_missing_input_is_reported_in_one_message():
    done = run("info", "no-such-folder")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no-such-folder: there is no such file or folder\nfix: ")
