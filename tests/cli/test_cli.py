"""The command line: output, streams, and exit codes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import run

import rankgauge
from rankgauge.cli.main import cli

QRELS = str(rankgauge.sample_path("qrels.txt"))
BM25 = str(rankgauge.sample_path("runs/bm25.run"))
KEYWORD = str(rankgauge.sample_path("runs/keyword.run"))


def test_without_measures_it_prints_cut_offs_down_and_measures_across():
    done = run("evaluate", QRELS, BM25)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.splitlines()[1].split() == ["k", "P", "R", "F1", "Success", "nDCG"]
    assert "\x1b" not in done.stdout


def test_measures_and_several_runs_make_one_table():
    done = run("evaluate", QRELS, BM25, KEYWORD, "-m", "nDCG@10", "-m", "AP")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["run", "nDCG@10", "AP"]
    assert [line.split()[0] for line in lines[2:4]] == ["bm25", "keyword"]


def test_the_numbers_are_those_of_the_library():
    done = run("evaluate", QRELS, BM25, "-m", "nDCG@10", "--as", "json")
    ev = rankgauge.evaluate(rankgauge.read_qrels(QRELS), rankgauge.read_run(BM25), "nDCG@10")
    assert rankgauge.Evaluation.from_json(done.stdout) == ev


def test_a_limit_of_memory_prints_the_same():
    words = ("evaluate", QRELS, BM25, KEYWORD, "-m", "nDCG@10", "-m", "AP")
    assert run(*words, "--memory", "512MB").stdout == run(*words).stdout


def test_policies_of_trec_and_csv_forms_go_to_standard_error():
    for form in ("trec", "csv"):
        done = run("evaluate", QRELS, BM25, "-m", "AP", "--as", form)
        assert "ties broken by document id" in done.stderr
        assert "equal scores" not in done.stdout


def test_a_profile_is_noted_below_the_table_and_its_limits_are_errors():
    done = run("evaluate", QRELS, BM25, "-m", "mrr@10", "--profile", "ranx")
    assert done.returncode == 0, done.stderr
    assert "as ranx 0.3 (profile ranx): RR@10: whole grades; ties as given" in done.stdout
    lacking = run("evaluate", QRELS, BM25, "-m", "F1@5", "--profile", "beir")
    assert lacking.returncode == 2
    assert "BEIR has no F1@5" in lacking.stderr
    against = run("evaluate", QRELS, BM25, "--profile", "trec_eval-10", "--ties", "input")
    assert "ties=input contradicts the profile trec_eval-10" in against.stderr


def test_a_use_case_selects_measures_with_reasons():
    done = run("evaluate", QRELS, BM25, "-m", "qa")
    assert done.stdout.splitlines()[0].split() == ["run", "RR", "Success@1"]
    assert "question answering: RR, Success@1 (one good document is enough" in done.stderr


def test_standard_input_is_a_run():
    text = Path(BM25).read_text(encoding="utf-8")
    done = run("evaluate", QRELS, "-", "-m", "RR", stdin=text)
    assert done.returncode == 0
    assert done.stdout.splitlines()[2].split()[1] == "0.7279"


def test_queries_can_be_given_in_a_file(tmp_path):
    listed = tmp_path / "ids.txt"
    listed.write_text("q01\nq02\n", encoding="utf-8")
    done = run("evaluate", QRELS, BM25, "-m", "RR", "--queries", str(listed))
    assert "2 queries: the given list" in done.stdout


def test_records_carry_run_and_judgments(tmp_path):
    records = tmp_path / "records.jsonl"
    lines = [
        {"id": "q1", "retrieved": ["d1", "d2"], "relevant": ["d2"]},
        {"id": "q2", "retrieved": ["d3"], "relevant": ["d3"]},
    ]
    records.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    done = run("evaluate", str(records), "-m", "RR")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[2].split()[-1] == "0.7500"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("evaluate", QRELS, "nosuch.run"), "nosuch.run: there is no such file"),
        (("evaluate", QRELS, BM25, "-m", "nDCG@0"), "k=0 is not valid"),
        (("evaluate", QRELS, BM25, "-m", "nDGC@5"), "did you mean"),
        (("evaluate", QRELS, BM25, "--queries", "nosuch.txt"), "nosuch.txt: there is no such file"),
        (("evaluate", QRELS, BM25, "--ties", "random"), "'random' is not one of"),
        (("evaluate", QRELS, BM25, "--memory", "abc"), "memory='abc' is not a size"),
        (("evaluate", QRELS, BM25, "--memory", "1GB", "--save"), "need a whole run"),
        (("evaluate",), "name the judgments and the run"),
        (("evaluat",), "No such command"),
        (("measures", "nope"), "unknown measure 'nope'"),
    ],
)
def test_an_error_goes_to_standard_error_and_ends_with_2(words, said):
    done = run(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_measures_are_listed_and_explained():
    assert "nDCG" in run("measures").stdout
    assert run("measures", "nDCG", "--full").stdout == rankgauge.reports.describe("nDCG")
    assert run("measures", "nDCG").stdout == rankgauge.reports.describe("nDCG", full=False)
    rows = json.loads(run("measures", "--as", "json").stdout)["rows"]
    assert sum(row["computed by"] == "evaluate" for row in rows) == len(rankgauge.list_measures())


@pytest.mark.parametrize("words", [(), ("evaluate",), ("measures",)])
def test_every_command_has_help(words):
    done = run(*words, "--help")
    assert done.returncode == 0
    assert "Usage:" in done.stdout


def test_the_version_is_printed():
    assert run("--version").stdout.strip() == rankgauge.__version__


@pytest.mark.skipif(os.name == "nt", reason="SIGINT is sent differently there")
def test_an_interrupt_ends_with_130():
    words = [sys.executable, "-m", "rankgauge", "evaluate", QRELS, "-"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        # More than a pipe buffers: once it is written, the command is reading.
        process.stdin.write(b"q01 Q0 d1 1 1.0 x\n" * 20_000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert stderr.decode().strip() == "interrupted"


def test_the_number_of_jobs_changes_nothing_that_is_printed():
    for command in ("compare", "evaluate"):
        alone, shared = (run(command, "--full", QRELS, BM25, KEYWORD, "--jobs", jobs) for jobs in (1, 2))
        assert (alone.returncode, alone.stdout, alone.stderr) == (shared.returncode, shared.stdout, shared.stderr)
        assert alone.returncode == 0


def test_fewer_jobs_than_one_are_refused():
    for command in ("compare", "evaluate"):
        done = run(command, QRELS, BM25, KEYWORD, "--jobs", "0")
        assert done.returncode == 2
        assert "0 is not in the range" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="SIGINT is sent differently there")
def test_an_interrupt_ends_all_jobs():
    words = [sys.executable, "-m", "rankgauge", "compare", QRELS, BM25, KEYWORD, "--jobs", "2"]
    with subprocess.Popen([*words, "--draws", "1000000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        time.sleep(3)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert stderr.decode().strip() == "interrupted"


def test_a_closed_pipe_is_no_error():
    words = f'"{sys.executable}" -m rankgauge evaluate "{QRELS}" "{BM25}" --per-query'
    done = subprocess.run(f"{words} | head -1", shell=True, capture_output=True, check=False)
    assert done.stderr == b""


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_a_narrow_encoding_gets_plain_lines_and_every_number(encoding):
    for words in (("evaluate", QRELS, BM25, "-m", "AP"), ("measures",), ("measures", "nDCG")):
        done = run(*words, env={"PYTHONIOENCODING": encoding})
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
    assert "0.5305" in run("evaluate", QRELS, BM25, "-m", "AP", env={"PYTHONIOENCODING": encoding}).stdout


def test_runs_with_the_same_file_name_are_distinguished_by_path(tmp_path):
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "run.txt"
        path.write_bytes(Path(BM25).read_bytes())
        paths.append(str(path))
    done = run("evaluate", QRELS, *paths, "-m", "AP", "--as", "csv")
    assert [line.split(",")[0] for line in done.stdout.splitlines()[1:]] == paths


def test_a_warning_is_shown_with_json(tmp_path):
    other = tmp_path / "other.run"
    other.write_text("q01 Q0 unheard-of 1 1.0 x\n", encoding="utf-8")
    done = run("evaluate", QRELS, str(other), "-m", "AP", "--as", "json")
    assert json.loads(done.stdout)["measures"][0]["mean"] == 0.0
    assert done.stderr.startswith("WARNING: no retrieved document is judged")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_output_that_cannot_be_written_is_an_error():
    words = f'"{sys.executable}" -m rankgauge evaluate "{QRELS}" "{BM25}" > /dev/full'
    done = subprocess.run(words, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "cannot write" in done.stderr
    assert "a bug in rankgauge" not in done.stderr


# ---- compare


def test_runs_are_compared_and_the_verdict_is_in_words():
    done = run("compare", QRELS, BM25, KEYWORD, "-m", "nDCG@10", "-m", "RR")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["measure", "bm25", "keyword"]
    assert "keyword is worse than bm25 by nDCG@10: difference -0.163" in done.stdout
    assert "keyword   RR " not in done.stdout.partition("compared with bm25")[2]


def test_compared_runs_with_the_same_file_name_are_distinguished_by_path(tmp_path):
    paths = []
    for folder, source in (("a", BM25), ("b", KEYWORD)):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "run.txt"
        path.write_bytes(Path(source).read_bytes())
        paths.append(str(path))
    done = run("compare", QRELS, *paths, "-m", "RR", "--as", "csv")
    assert done.stdout.splitlines()[1].split(",")[0] == paths[1]
    assert "has the highest RR" in done.stderr


def test_a_comparison_can_be_transposed_and_tested_in_every_way():
    words = ("compare", QRELS, BM25, KEYWORD, "-m", "RR", "--draws", "500")
    done = run(*words, "--transpose", "--all-pairs", "--test", "tukey-hsd", "--interval", "bca", "--full")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["run", "RR"]
    assert "all pairs of runs" in done.stdout
    assert "Tukey HSD over all runs, 500 draws" in " ".join(done.stdout.split())
    done = run(*words, "--correction", "max-t", "--queries", "intersection", "--as", "json")
    found = json.loads(done.stdout)
    assert found["design"]["correction"] == "max-t"
    assert found["policies"]["queries"] == "given"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((BM25, KEYWORD, "--test", "t", "--correction", "max-t"), "max-t corrects the"),
        ((BM25,), "got 1 run, expected two or more"),
        ((BM25, KEYWORD, "--baseline", "nope"), "unknown run 'nope'"),
        ((BM25, BM25), "duplicate run name"),
        ((), "name the judgments and the run"),
    ],
)
def test_an_impossible_comparison_ends_with_2(words, said):
    done = run("compare", QRELS, *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_measure_that_reads_subtopics_makes_the_judgments_be_read_by_subtopic(tmp_path):
    (tmp_path / "qrels").write_text("q1 1 d1 1\nq1 2 d1 1\nq1 2 d2 1\n", encoding="utf-8")
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2.5 a\nq1 Q0 d3 2 1.5 a\n", encoding="utf-8")
    (tmp_path / "b.run").write_text("q1 Q0 d2 1 2.5 b\n", encoding="utf-8")
    qrels, *runs = (str(tmp_path / name) for name in ("qrels", "a.run", "b.run"))
    done = run("evaluate", qrels, *runs, "-m", "StRecall@5", "-m", "AP", "--as", "csv")
    assert done.stdout.splitlines()[1:] == ["a,1.0,0.5", "b,0.5,0.5"]
    assert run("evaluate", qrels, *runs, "-m", "AP").returncode == 2
    done = run("evaluate", QRELS, BM25, "-m", "StRecall@5")
    assert done.returncode == 2
    assert "these judgments have no subtopics" in done.stderr


# ---- wrong commands


def test_measures_may_be_separated_by_commas():
    joined = run("evaluate", QRELS, BM25, "-m", "nDCG@10,RR(rel=2), F(beta=2,rel=1)@3")
    single = run("evaluate", QRELS, BM25, "-m", "nDCG@10", "-m", "RR(rel=2)", "-m", "F(beta=2,rel=1)@3")
    assert joined.stdout == single.stdout
    for given in ("P.5,10,map", "P.5,10, map, ", ",P.5,10,,map,"):
        done = run("evaluate", QRELS, BM25, "-m", given, "--as", "csv")
        assert done.stdout.splitlines()[0] == "run,P@5,P@10,AP"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("evaluate", QRELS, BM25, "--metric", "RR"), "fix: write -m NAME, such as -m nDCG@10"),
        (("evaluate", QRELS, BM25, "-k", "10"), "fix: write the cut-off in the name"),
        (("evaluate", QRELS, BM25, "--json"), "fix: write --as json"),
        (("evaluate", QRELS, BM25, "--zzz"), "--help lists the options"),
        (("gate", QRELS, BM25, "--margin", "0.02"), "rankgauge.toml: the lines [gate.measures] and"),
        (("gate", QRELS, BM25, "-m", "RR"), "rankgauge.toml: the lines [gate.measures] and"),
        (("sql", "-m", "RR"), "fix: write the measures without -m: rankgauge sql nDCG@10 RR"),
        (("compare", QRELS, BM25, KEYWORD, "--basline", "x"), "fix: did you mean --baseline?"),
        (("evalute", QRELS, BM25), "fix: did you mean evaluate?"),
        (("metrics",), "fix: write rankgauge measures"),
        (("zzz",), "--help lists the commands"),
        (("status", "p.db"), "rankgauge init"),
        (("history", "lst"), "fix: did you mean list?"),
        (("explain", QRELS, BM25, "AP,RR"), "fix: name one of them: RR"),
        (("evaluate", BM25), "pass the judgments and the run: evaluate QRELS RUN"),
        (("evaluate", QRELS), "pass the judgments and the run: evaluate QRELS RUN"),
        (("bench", "notes/setup.md"), "the documents and questions: notes"),
        (("bench", "notes/questions.csv"), "the documents and questions: notes"),
        (("bench", "notes"), "unknown column 'relevent'\nfix: did you mean 'relevant'?"),
    ],
)
def test_a_wrong_command_names_the_fix(words, said, tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "setup.md").write_text("# Setup\n", encoding="utf-8")
    (notes / "questions.csv").write_text("question,relevent\nhow,the setup\n", encoding="utf-8")
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


def test_every_misspelled_option_and_command_gets_its_name_as_a_suggestion():
    def every(command, words):
        for name, one in getattr(command, "commands", {}).items():
            yield (*words, f"{name}z"), name
            yield from every(one, (*words, name))
        for name in (name for option in command.params for name in option.opts):
            if name.startswith("--") and len(name) > 6:
                yield (*words, f"{name}z"), name

    cli.get_command(None, "")
    wrong = list(every(cli, ()))
    assert len(wrong) > 300
    for words, name in wrong[:: 1 + len(wrong) // 60]:
        done = run(*words)
        assert done.returncode == 2
        assert f"fix: did you mean {name}?" in done.stderr, words


def test_a_measure_is_described_by_any_name():
    for name in ("hitrate", "hit rate", "Hit_Rate", "success", "Success@5"):
        assert run("measures", name).stdout == run("measures", "Success").stdout


# ---- ties


def test_every_policy_of_ties_has_its_own_values_and_note():
    found = {}
    for ties in ("trec", "input", "best", "worst", "mean"):
        done = run("evaluate", QRELS, KEYWORD, "-m", "nDCG@10", "--ties", ties, "--as", "json")
        data = json.loads(done.stdout)
        assert data["policies"]["ties"] == ties
        assert any(f"(ties={ties})" in found["message"] for found in data["findings"])
        found[ties] = data["measures"][0]["mean"]
    assert len(set(found.values())) == 5
    assert found["worst"] < min(found["trec"], found["input"], found["mean"])
    assert found["best"] > max(found["trec"], found["input"], found["mean"])


def test_a_mean_without_closed_form_is_refused_or_sampled(tmp_path):
    asked = ("evaluate", QRELS, KEYWORD, "-m", "ERR@10", "--ties", "mean")
    done = run(*asked)
    assert done.returncode == 2
    assert "ERR(top=4)@10: no closed form" in done.stderr
    assert "draws = 1000 in [evaluation] of rankgauge.toml" in done.stderr
    (tmp_path / "rankgauge.toml").write_text("[evaluation]\ndraws = 50\nseed = 7\n", encoding="utf-8")
    drawn = run(*asked, "--no-save", cwd=tmp_path)
    assert drawn.returncode == 0
    assert "estimated from 50 orders drawn at random (seed 7)" in drawn.stdout


def test_a_tie_report_is_printed_for_each_run():
    done = run("sensitivity", "ties", QRELS, KEYWORD, BM25, "-m", "RR")
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if line.endswith(": ties")] == ["keyword: ties", "bm25: ties"]
    csv = run("sensitivity", "ties", QRELS, KEYWORD, "-m", "RR", "--per-query", "--as", "csv")
    assert csv.stdout.startswith("query,measure,as evaluated (trec),worst,mean,best\n")
    assert "groups of equal scores" in csv.stderr


@pytest.mark.parametrize("kind", ["ties", "unjudged"])
def test_a_report_on_sensitivity_is_another_command(kind):
    report = {"ties": "--tie-report", "unjudged": "--unjudged-report"}[kind]
    done = run("evaluate", QRELS, KEYWORD, report)
    assert done.returncode == 2
    assert f"fix: write rankgauge sensitivity {kind} QRELS RUN" in done.stderr
