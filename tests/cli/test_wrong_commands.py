"""Wrong commands that people type: what the message names, the fix it offers, and whether the fixed command works."""

import json
import shlex
import shutil
import subprocess
import sys

import pytest
from command import run

import rankgauge

_SAMPLE = rankgauge.sample_path("rankgauge.toml").parent
_RUN = "evaluate qrels.txt bm25.run"
_PAIR = "compare qrels.txt bm25.run keyword.run"
# What is typed, what the message names, the fix it offers, and the fixed command (empty if it needs more than the files
# of the test).
_WRONG = [
    # other names of commands
    ("eval qrels.txt bm25.run", "eval", "did you mean evaluate?", _RUN),
    ("evalute qrels.txt bm25.run", "evalute", "did you mean evaluate?", _RUN),
    ("run qrels.txt bm25.run", "run", "write rankgauge evaluate QRELS RUN", _RUN),
    ("qrels.txt bm25.run", "qrels.txt", "rankgauge evaluate qrels.txt bm25.run", _RUN),
    ("metrics", "metrics", "write rankgauge measures", "measures"),
    ("version", "version", "write rankgauge --version", "--version"),
    ("-V", "-V", "write rankgauge --version", "--version"),
    ("help evaluate", "help", "rankgauge COMMAND --help", "evaluate --help"),
    (
        "judge start",
        "start",
        "write rankgauge judge create --questions FILE, then",
        "judge create --questions queries.jsonl",
    ),
    ("judge serve", "serve", "then rankgauge serve", "judge create --questions queries.jsonl"),
    ("judge queries.jsonl", "queries.jsonl", "rankgauge judge create --questions queries.jsonl", ""),
    (
        "answers answers.jsonl",
        "answers.jsonl",
        "rankgauge answers evaluate answers.jsonl",
        "answers evaluate answers.jsonl",
    ),
    ("logs events.csv", "events.csv", "rankgauge logs import events.csv log", "logs import events.csv log"),
    ("collection docs", "docs", "rankgauge collection info docs", "collection info docs"),
    (
        "sensitivity qrels.txt bm25.run",
        "qrels.txt",
        "rankgauge sensitivity ties qrels.txt",
        "sensitivity ties qrels.txt bm25.run",
    ),
    # files: one, in the wrong order, missing, or a folder
    ("evaluate bm25.run", "bm25.run", "evaluate QRELS RUN", _RUN),
    ("evaluate", "QRELS RUN", _RUN, _RUN),
    ("evaluate bm25.run qrels.txt", "bm25.run, line 1", "pass the judgments first, then the run", _RUN),
    ("compare bm25.run keyword.run", "bm25.run, line 1", "pass the judgments first, then the run", _PAIR),
    ("compare qrels.txt bm25.run", "got 1 run", "pass at least one more", _PAIR),
    (
        "diff bm25.run keyword.run",
        "QRELS RUN",
        "rankgauge diff qrels.txt old.run new.run",
        "diff qrels.txt bm25.run keyword.run",
    ),
    (
        "explain qrels.txt bm25.run",
        "QRELS RUN",
        "rankgauge explain qrels.txt bm25.run nDCG@10",
        "explain qrels.txt bm25.run nDCG@10",
    ),
    ("evaluate qrels.txt docs", "docs: this is a folder", "name a file in it", _RUN),
    ("evaluate qrels.txt bm26.run", "bm26.run", "check the path", _RUN),
    ("bench empty", "empty: there are neither documents", "use corpus.jsonl and queries.jsonl", ""),
    ("bench qrels.txt bm25.run", "extra argument (bm25.run)", "rankgauge bench handbook", ""),
    ("convert qrels.txt", "OUT", "rankgauge convert bm25.run bm25.parquet", "convert qrels.txt qrels.csv"),
    ("cut bm25.run 10", "-k", "rankgauge cut bm25.run -k 100", "cut bm25.run -k 10"),
    ("report", "QRELS RUN", "rankgauge report qrels.txt bm25.run", "report qrels.txt bm25.run"),
    ("logs metrics events.csv", "not a log", "rankgauge logs import SOURCE LOG", "logs import events.csv log"),
    # options of other tools
    (f"{_RUN} --metric ndcg@10", "--metric", "write -m NAME", f"{_RUN} -m ndcg@10"),
    (f"{_RUN} --k 10", "--k", "-m nDCG@10", f"{_RUN} -m nDCG@10"),
    (f"{_RUN} -k10", "-k", "-m nDCG@10", f"{_RUN} -m nDCG@10"),
    (f"{_RUN} -l 2", "-l", "-m 'RR(rel=2)'", f"{_RUN} -m 'RR(rel=2)'"),
    (f"{_RUN} -m ndcg@10 recall@5", "recall@5", "-m nDCG@10,R@5", f"{_RUN} -m nDCG@10,R@5"),
    ("evaluate --qrels qrels.txt --run bm25.run", "--qrels", "the judgments first", _RUN),
    (f"{_RUN} --output scores.csv", "--output", "--as csv > FILE", f"{_RUN} --as csv"),
    (f"{_RUN} --format csv", "--format", "--as csv > FILE", f"{_RUN} --as csv"),
    (f"{_RUN} --json", "--json", "write --as json", f"{_RUN} --as json"),
    (f"{_RUN} --as excel", "'excel'", "write --as csv", f"{_RUN} --as csv"),
    (f"{_RUN} --verbose", "--verbose", "write --full", f"{_RUN} --full"),
    (f"{_RUN} --per_query", "--per_query", "did you mean --per-query?", f"{_RUN} --per-query"),
    (f"{_PAIR} --base bm25", "--base", "did you mean --baseline?", f"{_PAIR} --baseline bm25"),
    (f"{_PAIR} --baseline bm24", "'bm24'", "runs are: bm25, keyword", f"{_PAIR} --baseline bm25"),
    (f"{_PAIR} --test ttest", "'ttest'", "write --test t", f"{_PAIR} --test t"),
    ("gate qrels.txt bm25.run --min nDCG@10=0.5", "--min", '"nDCG@10" = { floor = 0.5 }', ""),
    ("gate qrels.txt bm25.run --margin 0.01", "--margin", '"nDCG@10" = { margin = 0.02 }', ""),
    ("gate qrels.txt bm25.run --metric ndcg", "--metric", "rankgauge gate --help lists the options", ""),
    (f"{_RUN} nDCG@10", "nDCG@10: there is no such file", "commas: -m nDCG@10\n", f"{_RUN} -m nDCG@10"),
    (
        "gate qrels.txt bm25.run",
        "there is no baseline yet",
        "--update-baseline",
        "gate qrels.txt bm25.run --update-baseline",
    ),
    ("bench docs --retriever bm25", "--retriever", "write --only NAME", ""),
    ("serve --port http", "--port", "The port to listen on", ""),
    ("serve --port 80", "there is no store yet", "rankgauge judge create --questions FILE", ""),
    # measures
    (f"{_RUN} -m recall", "R needs k", "write R@10", f"{_RUN} -m R@10"),
    (f"{_RUN} -m nDGC@10", "'nDGC'", "did you mean nDCG", f"{_RUN} -m nDCG@10"),
    (f"{_RUN} -m faithfulness", "Faithfulness", "rankgauge answers evaluate FILE", "answers evaluate answers.jsonl"),
]


@pytest.fixture
def folder(tmp_path):
    for name in ("qrels.txt", "queries.jsonl", "runs/bm25.run", "runs/keyword.run"):
        shutil.copy(_SAMPLE / name, tmp_path)
    shutil.copy(_SAMPLE / "answers" / "prompt-1.jsonl", tmp_path / "answers.jsonl")
    for name in ("docs", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "docs" / "setup.md").write_text("# Setup\n", encoding="utf-8")
    (tmp_path / "events.csv").write_text(
        "event_id,kind,time,question_id,text\n1,question,2026-05-01T12:00:00Z,q1,late fees\n", encoding="utf-8"
    )
    return tmp_path


@pytest.mark.parametrize(("typed", "named", "fix", "fixed"), _WRONG, ids=[row[0] for row in _WRONG])
def test_a_wrong_command_names_its_fault_and_a_fix_that_works(typed, named, fix, fixed, folder):
    done = run(*shlex.split(typed), cwd=folder)
    assert done.returncode == 2
    fault, _, offered = done.stderr.rpartition("\nfix: ")
    assert named in fault
    assert fix in offered
    if fixed:
        done = run(*shlex.split(fixed), cwd=folder)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "here"),
    [("ndcg_cut_10", "nDCG@10"), ("recall@5", "R@5"), ("mrr@10", "RR@10"), ("hit@5", "Success@5"), ("map", "AP")],
)
def test_names_of_measures_in_other_tools_work(name, here, folder):
    done = run(*shlex.split(_RUN), "-m", name, "--as", "json", cwd=folder)
    assert [measure["name"] for measure in json.loads(done.stdout)["measures"]] == [here]


@pytest.mark.parametrize("group", ["judge", "answers", "logs", "history", "store"])
def test_a_group_without_a_command_prints_its_help_on_several_lines(group):
    done = run(group)  # click before 8.2 prints help that nobody asked for on standard output
    assert f"\n    rankgauge {group} " in done.stdout + done.stderr


def test_the_floor_that_the_fix_for_min_names_is_read(folder):
    rules = '[gate.measures]\n"nDCG@10" = { floor = 0.5 }\n'
    (folder / "rankgauge.toml").write_text(rules, encoding="utf-8")
    gate = ("gate", "qrels.txt", "bm25.run", "--rules", "rankgauge.toml", "--no-save")
    assert run(*gate, "--update-baseline", cwd=folder).returncode == 0
    done = run(*gate, cwd=folder)
    assert done.returncode == 0
    assert "0.5" in done.stdout


def test_a_missing_extra_is_named_with_the_command_that_installs_it(folder):
    # In a new process: modules loaded earlier keep their libraries.
    code = "import sys; sys.modules['pyarrow'] = None; from rankgauge.cli.main import main; main()"
    command = (sys.executable, "-c", code, "logs", "import", "events.csv", "log")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "fix: pip install 'rankgauge[production]'" in done.stderr
