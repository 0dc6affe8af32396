"""``--format`` and ``--qrels-format``, on every command that reads such files."""

import re
from pathlib import Path

import pytest
from command import run

import rankgauge
from rankgauge.cli.main import cli

QRELS = rankgauge.sample_path("qrels.txt")
RUNS = {name: rankgauge.sample_path(f"runs/{name}.run") for name in ("bm25", "keyword")}
COMMANDS = {
    "evaluate": ["evaluate", "QRELS", "bm25", "keyword", "-m", "nDCG@10", "-m", "AP"],
    "evaluate and save": ["evaluate", "QRELS", "bm25", "-m", "AP", "--save", "--history", "FRESH"],
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


def words_of(command, *, odd):
    place = "odd" if odd else "true"
    paths = {name: f"{place}/{name}.{'json' if odd else 'run'}" for name in RUNS}
    paths |= {
        "QRELS": f"{place}/qrels.{'csv' if odd else 'txt'}",
        "FRESH": f"{place}/fresh",
        "CORPUS": str(rankgauge.sample_path("corpus.jsonl")),
    }
    return [paths.get(word, word) for word in COMMANDS[command]]


def plain(done):
    """Return the output without file names and varying parts."""
    text = re.sub(r"\b(true|odd)/", "", done.stdout + done.stderr)
    text = re.sub(r"\b(qrels|bm25|keyword)\.(txt|csv|run|json)\b", r"\1", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?", "now", text)
    return re.sub(r"saved as \w+|\b[0-9a-f]{64}\b", "", text)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_named_format_overrides_the_file_name(command, folder):
    right = run(*words_of(command, odd=False), cwd=folder)
    assert right.returncode == 0, right.stderr
    words = words_of(command, odd=True)
    known = {option for one in _parameters(words) for option in one.opts}
    options = ["--format", "trec3", "--qrels-format", "trec"]
    options = options if "--qrels-format" in known else options[:2]
    done = run(*words, *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert plain(done) == plain(right)
    assert run(*words, cwd=folder).returncode == 2


def _parameters(words):
    command = cli.get_command(None, words[0])
    if words[0] == "collection":
        command = command.get_command(None, words[1])
    return command.params


def test_an_unknown_format_lists_the_known_ones(folder):
    done = run("evaluate", "true/qrels.txt", "true/bm25.run", "--format", "xml", cwd=folder)
    assert done.returncode == 2
    assert "trec3" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "records.jsonl", "--format", "trec"],
        ["fuse", "true/bm25.run", "true/keyword.run", "--qrels-format", "trec"],
    ],
    ids=["records", "no tuning"],
)
def test_a_format_of_an_unread_input_is_refused(words, folder):
    done = run(*words, cwd=folder)
    assert done.returncode == 2
    assert "-format" in done.stderr.splitlines()[-1]


def test_standard_input_may_have_a_format(folder):
    text = (folder / "odd/bm25.json").read_text(encoding="utf-8")
    words = ("evaluate", "true/qrels.txt", "-", "-m", "AP", "--format", "trec3")
    done = run(*words, cwd=folder, stdin=text)
    right = run("evaluate", "true/qrels.txt", "true/bm25.run", "-m", "AP", cwd=folder)
    assert done.returncode == 0
    assert done.stdout.splitlines()[2].split()[1] == right.stdout.splitlines()[2].split()[1]
