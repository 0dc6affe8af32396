"""Paths with the characters of patterns, shells, URLs, and SQL: a command reads what it names."""

import re
import shutil
from pathlib import Path

import pytest
from command import run

import rankgauge

NAME = "a[1]*? '\"%2f#;é日"
# Without escaping, NAME is a pattern that matches this name.
OTHER = "a1zzq '\"%2f#;é日"
USUAL = "x" * (len(NAME) + 1)  # as wide
FILES = (
    "qrels.txt",
    "queries.jsonl",
    "corpus.jsonl",
    "rankgauge.toml",
    "runs/bm25.run",
    "runs/keyword.run",
    "answers/prompt-1.jsonl",
    "answers/questions.jsonl",
    "answers/verdicts.jsonl",
    "log/mapping.toml",
    "log/searches.jsonl.gz",
)


def folder(where, name):
    """Copy the sample into a folder, with this name before the name of each file, too."""
    made = where / name
    made.mkdir()
    for file in FILES:
        source = rankgauge.sample_path(file)
        shutil.copy(source, made / f"{name}{source.name}")
    shutil.copytree(rankgauge.sample_path("qrels.txt").parent, made / f"{name}data")
    return made


@pytest.fixture
def places(tmp_path):
    """Return a folder with special characters and one with usual names of the same files."""
    special, usual = folder(tmp_path / "1", NAME), folder(tmp_path / "2", USUAL)
    for broken in (special.parent / OTHER, special):
        broken.mkdir(exist_ok=True)
        for file in FILES:
            (broken / f"{OTHER}{Path(file).name}").write_bytes(b"\0broken")
    return special, usual


@pytest.fixture(autouse=True)
def parents(tmp_path):
    for name in "12":
        (tmp_path / name).mkdir()


def words_of(command, where):
    """Return the words of a command; names in braces are files of the folder."""
    return [re.sub(r"\{(.*?)\}", lambda part: str(where / f"{where.name}{part[1]}"), word) for word in command.split()]


def numbers(text, where):
    """Return the numbers of an output, without those of paths."""
    for name in (str(where.parent), where.name):
        text = text.replace(name, "")
    # Sorted, because lines break at other places.
    return sorted(re.findall(r"\d+\.\d\d+|\d\d+", text))


RUNS = "{qrels.txt} {bm25.run} {keyword.run}"
COMMANDS = [
    f"evaluate {RUNS}",
    f"compare {RUNS}",
    f"diff {RUNS}",
    f"reliability {RUNS}",
    f"check {RUNS}",
    "diagnose {qrels.txt} {bm25.run} --also {keyword.run}",
    "explain {qrels.txt} {bm25.run} nDCG@10",
    "evaluate {qrels.txt} {bm25.run} --memory 64MB",
    "collection info {data} --run {bm25.run}",
    "evaluate {data} {bm25.run}",
    "diagnose {qrels.txt} {bm25.run} --collection {data}",
    "report {qrels.txt} {bm25.run} --collection {data} -o {report.html}",
    "bench {data}/rankgauge.toml --only bm25 --runs {runs}",
    "bench {data}/rankgauge.toml --only bm25 --resume --runs {again}",
    "explore {data}/rankgauge.toml",
    "evaluate {qrels.txt} {runs}/bm25.run {again}/bm25.run",
    "gate {qrels.txt} {bm25.run} --baseline {base.json} --update-baseline",
    "gate {qrels.txt} {keyword.run} --baseline {base.json}",
    "convert {bm25.run} {bm25.parquet}",
    "evaluate {qrels.txt} {bm25.parquet}",
    "convert {bm25.run} {bm25.csv}",
    "evaluate {qrels.txt} {bm25.csv}",
    "convert {qrels.txt} {qrels.tsv}",
    "convert {corpus.jsonl} {corpus.tsv} --lossy",
    "fuse {bm25.run} {keyword.run} -o {fused.run}",
    "evaluate {qrels.txt} {fused.run}",
    "cut {bm25.run} -k 3 -o {cut.run}",
    "evaluate {qrels.txt} {cut.run}",
    "sample {bm25.run} --qrels {qrels.txt} -n 5 -o {small}",
    "evaluate {qrels.txt} {bm25.run} --save --store {history.db}",
    "history list --store {history.db}",
    "answers evaluate {prompt-1.jsonl} --reference {questions.jsonl} --verdicts {verdicts.jsonl}",
    "answers calibrate {prompt-1.jsonl} --human {verdicts.jsonl} -o {calibration.json}",
    "logs import --mapping {mapping.toml} {searches.jsonl.gz} {log}",
    "logs import --mapping {mapping.toml} {searches.jsonl.gz} {log}",
    "logs show {log}",
    "logs metrics {log}",
    "logs sample {log} -n 5 --as csv",
    "logs drift {queries.jsonl} {log}",
    "logs health {log} --store {history.db} -m nDCG@10",
    "logs show {log}/events-000001.parquet",
    "judge create --store {judging.db} --questions {queries.jsonl}",
    "judge import --store {judging.db} {qrels.txt} --judge one",
    "judge status --store {judging.db}",
    "judge relevance --store {judging.db}",
    "judge export --store {judging.db} {judged.txt}",
    "judge pool --store {judging.db} --collection {data} --run {bm25.run}",
    "judge questions --store {judging.db}",
    "store backup --store {judging.db} {copy.zip}",
    "store restore {copy.zip} --store {restored.db}",
    "judge status --store {restored.db}",
]


@pytest.mark.slow
def test_special_characters_in_paths_change_nothing(places):
    for command in COMMANDS:
        outputs = []
        for where in places:
            done = run(*words_of(command, where), cwd=where.parent, env={"COLUMNS": "300"})
            assert done.returncode in {0, 1}, (command, done.stderr)
            assert "bug in rankgauge" not in done.stderr
            timed = command.startswith(("bench", "explore"))
            outputs.append((done.returncode, [] if timed else numbers(done.stdout, where)))
        assert outputs[0] == outputs[1], command
    special, usual = ({each.name.removeprefix(where.name) for each in where.iterdir()} for where in places)
    assert {each for each in special if not each.startswith(OTHER)} == usual
