"""``rankgauge logs drift``."""

import json

import command
import numpy as np
import pytest

from rankgauge.sample import sample_path


@pytest.fixture
def files(tmp_path):
    """Write evaluation questions about one topic, and a log of two topics."""
    cards = [f"how do i renew card {n}" for n in np.random.default_rng(0).permutation(60)]
    ours, theirs = cards[:30], cards[30:]
    theirs += [f"train to station {n}" for n in range(40)]
    (tmp_path / "eval.txt").write_text("\n".join(ours))
    (tmp_path / "log.csv").write_text("query,count\n" + "\n".join(f"{q},2" for q in theirs))
    return tmp_path


def run(*given):
    return command.run("logs", "drift", *given, "--permutations", 99)


def test_the_verdict_and_the_next_questions_are_printed(files):
    done = run(files / "eval.txt", files / "log.csv")
    assert done.returncode == 0
    assert "MISSING" in done.stdout
    assert "add, for example: 'train to station" in done.stdout
    assert len(done.stdout.splitlines()) < 30


def test_a_page_a_picture_and_numbers_are_written(files):
    pytest.importorskip("matplotlib")
    targets = [word for name in ("drift.html", "drift.png", "drift.json") for word in ("-o", files / name)]
    assert run(files / "eval.txt", files / "log.csv", *targets).returncode == 0
    page = (files / "drift.html").read_text(encoding="utf-8")
    assert page.count("<title>") == 101  # the page and each question
    assert "http" not in page.replace("http-equiv", "")
    assert (files / "drift.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((files / "drift.json").read_text())["verdict"] == "missing"


def test_json_and_full_tables_have_every_question_to_add(files):
    data = json.loads(run(files / "eval.txt", files / "log.csv", "--as", "json").stdout)
    full = run(files / "eval.txt", files / "log.csv", "--full", "--add", "7").stdout
    assert len(data["additions"]) > 7
    assert data["log"]["asked"] == 140
    assert full.count("train to station") >= 7


def test_questions_in_a_page_are_escaped(files):
    (files / "eval.txt").write_text("\n".join(f"<script>alert({n})</script>" for n in range(30)))
    assert run(files / "eval.txt", files / "log.csv", "-o", files / "drift.html").returncode == 0
    assert "<script>alert" not in (files / "drift.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-o", "drift.pdf"], "ends in none of .html"),
        (["-o", "missing/drift.html"], "there is no folder"),
        (["--encoder", "bert"], "unknown encoder 'bert'"),
    ],
)
def test_impossible_options_are_refused(files, options, said):
    done = run(files / "eval.txt", files / "log.csv", *options)
    assert done.returncode == 2
    assert said in done.stderr


def test_files_without_questions_are_refused(files):
    (files / "none.txt").write_text("")
    done = run(files / "none.txt", files / "log.csv")
    assert (done.returncode, "there are no questions" in done.stderr) == (2, True)


def test_a_diagnosis_reads_the_drift_report(files):
    run(files / "eval.txt", files / "log.csv", "-o", files / "drift.json")
    given = ("diagnose", sample_path("qrels.txt"), sample_path("runs/bm25.run"), "--drift")
    done = command.run(*given, files / "drift.json")
    assert done.returncode == 0
    assert "the evaluation set differs from users' questions" in " ".join(done.stdout.split())
    for name in ("eval.txt", "none.json"):
        refused = command.run(*given, files / name)
        assert (refused.returncode, "rankgauge logs drift" in refused.stderr) == (2, True)
