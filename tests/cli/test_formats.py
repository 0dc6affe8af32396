"""A format before the path of a file (``trec3:scores.run``), in every command that reads such files."""

import os
import re
from pathlib import Path

import pytest
from command import run

import rankgauge

QRELS = rankgauge.sample_path("qrels.txt")
RUNS = {name: rankgauge.sample_path(f"runs/{name}.run") for name in ("bm25", "keyword")}
COMMANDS = {
    "evaluate": ["evaluate", "QRELS", "bm25", "keyword", "-m", "nDCG@10", "-m", "AP"],
    "evaluate and save": ["evaluate", "QRELS", "bm25", "-m", "AP", "--save", "--store", "FRESH"],
    "check": ["check", "QRELS", "bm25", "keyword", "-m", "AP"],
    "compare": ["compare", "QRELS", "bm25", "keyword", "-m", "AP"],
    "diff": ["diff", "QRELS", "bm25", "keyword"],
    "diagnose": ["diagnose", "QRELS", "bm25", "--also", "keyword"],
    "report": ["report", "QRELS", "bm25", "keyword", "--no-plots", "-o", "-"],
    "gate": ["gate", "QRELS", "bm25", "--update-baseline", "--baseline", "FRESH"],
    "fuse": ["fuse", "bm25", "keyword", "--tune", "QRELS", "--method", "rrf"],
    "cut": ["cut", "bm25", "-k", "3"],
    "sample": ["sample", "bm25", "-n", "5"],
    "sample judgments": ["sample", "--qrels", "QRELS", "-n", "5"],
    "collection": ["collection", "info", "CORPUS", "--qrels", "QRELS", "--run", "bm25"],
}


@pytest.fixture
def folder(tmp_path):
    """The sample, and copies with misleading names: the runs as query, document, score."""
    (tmp_path / "true").mkdir()
    (tmp_path / "odd").mkdir()
    (tmp_path / "true/qrels.txt").write_bytes(Path(QRELS).read_bytes())
    (tmp_path / "odd/qrels.csv").write_bytes(Path(QRELS).read_bytes())
    for name, path in RUNS.items():
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        rows = [line.split() for line in lines if line and line[0] != "#"]
        (tmp_path / f"true/{name}.run").write_bytes(Path(path).read_bytes())
        odd = "".join(f"{row[0]} {row[2]} {row[4]}\n" for row in rows)
        (tmp_path / f"odd/{name}.json").write_text(odd, encoding="utf-8")
    return tmp_path


def words_of(command, *, odd, formats=("", "")):
    place = "odd" if odd else "true"
    paths = {name: f"{formats[0]}{place}/{name}.{'json' if odd else 'run'}" for name in RUNS}
    paths |= {
        "QRELS": f"{formats[1]}{place}/qrels.{'csv' if odd else 'txt'}",
        "FRESH": f"{place}/fresh",
        "CORPUS": str(rankgauge.sample_path("corpus.jsonl")),
    }
    return [paths.get(word, word) for word in COMMANDS[command]]


def plain(done):
    """Return the output without file names and varying parts."""
    text = re.sub(r"(\btrec3?:)?\b(true|odd)/", "", done.stdout + done.stderr)
    text = re.sub(r"\b(qrels|bm25|keyword)\.(txt|csv|run|json)\b", r"\1", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?", "now", text)
    return re.sub(r"saved as \w+|\b[0-9a-f]{64}\b", "", text)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_named_format_overrides_the_file_name(command, folder):
    right = run(*words_of(command, odd=False), cwd=folder)
    assert right.returncode == 0, right.stderr
    done = run(*words_of(command, odd=True, formats=("trec3:", "trec:")), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert plain(done) == plain(right)
    assert run(*words_of(command, odd=True), cwd=folder).returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="a colon is part of file names of POSIX")
def test_a_file_with_such_a_name_is_read_as_it_is(folder):
    (folder / "trec3:a.run").write_bytes((folder / "true/bm25.run").read_bytes())
    done = run("evaluate", "true/qrels.txt", "trec3:a.run", "-m", "AP", cwd=folder)
    assert done.returncode == 0, done.stderr


def test_standard_input_may_have_a_format(folder):
    text = (folder / "odd/bm25.json").read_text(encoding="utf-8")
    words = ("evaluate", "true/qrels.txt", "trec3:-", "-m", "AP")
    done = run(*words, cwd=folder, stdin=text)
    right = run("evaluate", "true/qrels.txt", "true/bm25.run", "-m", "AP", cwd=folder)
    assert done.returncode == 0
    assert done.stdout.splitlines()[2].split()[1] == right.stdout.splitlines()[2].split()[1]
