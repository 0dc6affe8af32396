"""``rankgauge history`` and ``rankgauge evaluate --save``."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import command
import pytest

import rankgauge
from rankgauge.sample import sample_path

QRELS = str(sample_path("qrels.txt"))
BM25 = str(sample_path("runs/bm25.run"))
KEYWORD = str(sample_path("runs/keyword.run"))


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.delenv("RANKGAUGE_STORE", raising=False)

    def run(*words, stdin="", **variables):
        return command.run(*words, stdin=stdin, cwd=tmp_path, env=variables)

    return run


@pytest.fixture
def kept(run):
    """A history of bm25 and keyword."""
    done = run(
        "evaluate",
        QRELS,
        BM25,
        KEYWORD,
        "-m",
        "nDCG@10",
        "-m",
        "RR",
        "--save",
        "--set",
        "label=1.0",
        "--set",
        "k1=0.9",
        "--set",
        "n=12",
        "--set",
        "model=e5",
        "--set",
        "fast=true",
        "--set",
        "version=1e5",
        "--set",
        "zip=007",
        "--set",
        "date=2026-01-05",
    )
    assert done.returncode == 0, done.stderr
    return run


def test_saving_prints_the_numbers_and_the_same_table(run, tmp_path):
    plain = run("evaluate", QRELS, BM25, KEYWORD, "-m", "nDCG@10")
    saved = run("evaluate", QRELS, BM25, KEYWORD, "-m", "nDCG@10", "--save")
    assert saved.stdout == plain.stdout
    assert saved.stderr == ("saved as bm25#1 in .rankgauge/store.db\nsaved as keyword#2 in .rankgauge/store.db\n")
    assert [path.name for path in tmp_path.iterdir()] == [".rankgauge"]


def test_show_prints_the_given_values(kept):
    known = json.loads(kept("history", "show", "1", "--as", "json").stdout)
    assert known["settings"] == {"k1": 0.9, "n": 12, "model": "e5", "fast": True, "version": "1e5", "zip": "007"}
    assert known["time"] == "2026-01-05T00:00:00+00:00"
    assert known["label"] == "1.0"
    assert known["ranking"] == rankgauge.data.fingerprint(rankgauge.read_run(BM25))


def test_a_list_has_a_line_for_each(kept):
    rows = json.loads(kept("history", "list", "--as", "json").stdout)["entries"]
    assert [row["run"] for row in rows] == ["bm25", "keyword"]
    assert rows[0]["means"]["nDCG@10"] == pytest.approx(0.6390, abs=5e-5)
    only = kept("history", "list", "--run", "keyword", "-m", "RR", "--as", "csv").stdout
    assert only.splitlines()[1].startswith("2,2026-01-05T00:00:00+00:00,keyword,1.0,30,0.5768")


def test_a_long_list_is_shortened_to_the_latest(run, tmp_path):
    evaluation = rankgauge.evaluate({"q1": {"d1": 1}}, {"q1": ["d1"]}, "RR")
    with rankgauge.History(tmp_path / "many.db") as history:
        for _ in range(25):
            history.add(evaluation)
    short, full, last, data = (
        run("history", "list", "--store", "many.db", *words).stdout
        for words in ([], ["--full"], ["--last", "3"], ["--as", "csv"])
    )
    assert (short.count(" run "), full.count(" run "), last.count(" run ")) == (21, 26, 4)
    assert "the latest 20 of 25 evaluations: --last N or --full" in short
    assert "the latest" not in full
    assert data.count("\n") == 26


def test_an_exported_evaluation_is_the_one_that_was_made(kept):
    text = kept("history", "export", "1").stdout
    made = rankgauge.evaluate(rankgauge.read_qrels(QRELS), rankgauge.read_run(BM25), ["nDCG@10", "RR"])
    assert rankgauge.Evaluation.from_json(text) == made


def test_two_are_compared_by_their_short_names(kept):
    done = kept("compare", "bm25#1", "@latest", "-m", "nDCG@10")
    assert "keyword#2 is worse than bm25#1 by nDCG@10" in done.stdout


def test_different_judgments_are_refused(kept, tmp_path):
    lines = Path(QRELS).read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "fewer.txt").write_text("".join(lines[:-1]), encoding="utf-8")
    kept("evaluate", "fewer.txt", BM25, "-m", "nDCG@10", "--save")
    done = kept("compare", "#1", "#3")
    assert done.returncode == 4
    assert done.stdout == ""
    assert "bm25#1 and bm25#3 are not comparable: different judgments" in done.stderr
    assert "not comparable" in kept("history", "trend").stdout


def test_a_trend_warns_of_a_decline_in_every_form(kept, tmp_path):
    done = kept("history", "trend", "-m", "nDCG@10")
    assert "WARNING" not in done.stdout  # runs with different names are not a change over time
    later = tmp_path / "later" / "bm25.run"
    later.parent.mkdir()
    shutil.copy(KEYWORD, later)
    kept("evaluate", QRELS, later, "-m", "nDCG@10", "--save", "--set", "label=1.1")
    done = kept("history", "trend", "-m", "nDCG@10")
    assert "• WARNING: bm25#3 (1.1) is worse than bm25#1 (1.0)" in done.stdout
    done = kept("history", "trend", "--as", "csv")
    assert "WARNING: bm25#3 (1.1) is worse" in done.stderr
    assert len(done.stdout.splitlines()) == 4
    assert "choose one with --run" not in kept("history", "trend", "--run", "bm25").stdout


def test_a_trend_can_be_printed_where_only_ascii_can(kept):
    done = kept("history", "trend", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "|----" in done.stdout


def test_deleting_asks_first(kept):
    done = kept("history", "delete", "1", stdin="n\n")
    assert done.returncode == 0
    assert "delete evaluation bm25#1 (1.0), 2026-01-05 00:00?" in done.stderr
    assert kept("history", "delete", "1").returncode == 130
    assert "deleted evaluation bm25#1" in kept("history", "delete", "1", stdin="y\n").stderr
    assert "deleted evaluation keyword#2" in kept("history", "delete", "2", "--yes").stderr
    assert "no evaluation is saved" in kept("history", "list").stdout


def test_a_closed_pipe_does_not_prevent_saving(run, tmp_path):
    line = f'"{sys.executable}" -m rankgauge evaluate "{QRELS}" "{BM25}" --save 2>&1 | true'
    subprocess.run(line, shell=True, cwd=tmp_path, check=True)
    assert len(json.loads(run("history", "list", "--as", "json").stdout)["entries"]) == 1


def test_an_unwritable_store_does_not_prevent_the_table(run, tmp_path):
    (tmp_path / "h.db").write_text("no database " * 50, encoding="utf-8")
    done = run("evaluate", QRELS, BM25, "-m", "RR", "--save", "--store", "h.db")
    assert done.returncode == 2
    assert "0.7279" in done.stdout
    assert "h.db: not an SQLite database" in done.stderr
    assert "saved" not in done.stderr


def test_the_variable_names_the_store(run, tmp_path):
    run("evaluate", QRELS, BM25, "--save", RANKGAUGE_STORE="own.db")
    assert {path.name for path in tmp_path.iterdir()} == {"own.db", "own.db.artifacts"}
    assert "bm25" in run("history", "list", RANKGAUGE_STORE="own.db").stdout
    assert "bm25" in run("history", "list", "--store", "own.db").stdout


def test_records_can_be_saved(run, tmp_path):
    (tmp_path / "records.jsonl").write_text(
        '{"id": "q1", "retrieved": ["d1", "d2"], "relevant": ["d2"]}\n'
        '{"id": "q2", "retrieved": ["d3"], "relevant": ["d3"]}\n',
        encoding="utf-8",
    )
    assert run("evaluate", "records.jsonl", "-m", "RR", "--save").returncode == 0
    known = json.loads(run("history", "show", "1", "--as", "json").stdout)
    assert known["run"] == "records"
    assert known["means"] == {"RR": 0.75}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("history", "list"), "there is no store yet\nfix: save an evaluation first"),
        (("history", "show", "1"), "there is no store yet"),
        (("history", "trend"), "there is no store yet"),
        (("history", "list", "--last", "0"), "0 is not in the range"),
        (("evaluate", QRELS, BM25, "--set", "label=a"), "need --save"),
        (("evaluate", QRELS, BM25, "--save", "--set", "a"), "got 'a', expected KEY=VALUE"),
        (("evaluate", QRELS, BM25, "--save", "--set", "=1"), "got '=1', expected KEY=VALUE"),
        (("evaluate", QRELS, BM25, "--save", "--set", "date=soon"), "got date=soon, expected a date"),
        (
            ("evaluate", QRELS, BM25, "--save", "--store", "mysql://me:secret@host/db"),
            "this kind of database is not supported",
        ),
    ],
)
def test_an_error_ends_with_2_and_makes_no_store(words, said, run, tmp_path):
    done = run(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_trend_is_drawn(kept, tmp_path):
    done = kept("history", "trend", "--plot", "trend.svg")
    assert (done.returncode, done.stderr) == (0, "wrote trend.svg\n")
    assert "nDCG@10 over time" in (tmp_path / "trend.svg").read_text(encoding="utf-8")
    assert kept("history", "trend", "--plot", "trend.png", "--last", "1").returncode == 0
    assert (tmp_path / "trend.png").read_bytes().startswith(b"\x89PNG")
    bad = kept("history", "trend", "--plot", "trend.gif")
    assert (bad.returncode, "use a name that ends in .svg or .png" in bad.stderr) == (2, True)
