"""``rankgauge bench``."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import command
import jsonschema
import pytest
from schemas import strict

import rankgauge
from rankgauge.retrievers.encoders import installed_encoder

PLAN = str(rankgauge.sample_path("rankgauge.toml"))
FOLDER = str(rankgauge.sample_path("qrels.txt").parent)


@pytest.fixture
def bench(tmp_path):
    def run(*words, plan=PLAN):
        store = str(tmp_path / "st")
        return command.run("bench", plan, "--responses", store, "--no-save", *words, cwd=tmp_path)

    return run


def planned(tmp_path, text):
    path = tmp_path / "rankgauge.toml"
    path.write_text(f"collection = '{FOLDER}'\ntimed = 0\n" + textwrap.dedent(text))
    return str(path)


@pytest.mark.slow
def test_retrievers_are_compared_by_quality_and_latency(bench):
    done = bench("--full")
    assert done.returncode == 0, done.stderr
    for said in ("compared with bm25", "latency and cost", "p50 ms", "hashing", "index s"):
        assert said in done.stdout
    assert done.stderr == ""
    again = bench("--full")
    assert "30 of 30 responses reused from" in again.stdout
    assert "same settings (declared)" in " ".join(again.stdout.split())


def test_without_full_the_output_fits_a_screen_and_names_the_next_step(bench):
    done = bench("--diagnose")
    lines = done.stdout.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 100
    assert "hashing is worse than bm25" in done.stdout
    assert "likely cause: unjudged at the top" in " ".join(done.stdout.split())
    assert " ".join(lines[-2:]).endswith("10 more tables, 2 more notes   hidden; show with --full (full=True)")


def test_a_folder_needs_no_plan(bench, tmp_path):
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "refunds.md").write_text("# Refunds\n\nThey take a week.\n")
    (folder / "late.md").write_text("# Late orders\n\nWrite to us.\n")
    (folder / "questions.csv").write_text("question,relevant\nlate order,late.md\nrefund,refunds.md\n")
    done = bench(plan=str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 queries, 2 documents, k = 100\nmeasure")
    assert done.stdout.splitlines()[1].split() == ["measure", "bm25", installed_encoder()[0]]


def test_a_folder_without_questions_is_an_error_with_a_fix(bench, tmp_path):
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "refunds.md").write_text("# Refunds\n\nThey take a week.\n")
    done = bench(plan=str(folder))
    assert done.returncode == 2
    assert "fix: " in done.stderr


def test_a_single_retriever_is_evaluated_and_timed(bench):
    done = bench("--only", "bm25", "-m", "RR")
    assert done.returncode == 0, done.stderr
    assert "against" not in done.stdout.splitlines()[0]
    assert "p50 ms" in done.stdout


def test_json_is_valid_by_its_schema_and_csv_has_a_line_per_run(bench):
    data = json.loads(bench("--as", "json").stdout)
    jsonschema.validate(data, strict("benchmark-1"))
    jsonschema.validate(data["comparison"], strict("comparison-1"))
    assert [run["name"] for run in data["runs"]] == ["bm25", "hashing"]
    lines = bench("--as", "csv").stdout.splitlines()
    assert lines[0].startswith("run,nDCG@10,R@5,P@5,RR,p50_seconds,")
    assert len(lines) == 3


@pytest.mark.parametrize("form", ["markdown", "latex", "html"])
def test_every_form_has_both_tables(bench, form):
    done = bench("--as", form)
    assert done.returncode == 0, done.stderr
    assert "nDCG@10" in done.stdout
    assert "p50 ms" in done.stdout


@pytest.mark.slow
def test_one_command_writes_runs_diagnosis_report_and_history(bench, tmp_path):
    files = ["--runs", "runs", "--report", "r.html"]
    done = bench("--diagnose", "--full", *files, "--save", "--store", "h.db", "--set", "label=first")
    assert done.returncode == 0, done.stderr
    assert "Diagnosis of hashing: quality" in done.stdout
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["bm25.run", "hashing.run"]
    assert (tmp_path / "runs" / "bm25.run").read_text().startswith("# ir_metadata.start\n")
    page = (tmp_path / "r.html").read_text()
    assert "Latency and cost" in page
    with rankgauge.History(tmp_path / "h.db") as history:
        entries = history.entries()
        assert len(entries) == 2
        kept = {history.load(entry).run_name: history.load(entry) for entry in entries}
        assert kept["bm25"].settings["retriever"]["type"] == "bm25"
        assert {entry.label for entry in entries} == {"first"}


def test_a_plain_run_is_one_that_trec_eval_reads(bench, tmp_path):
    bench("--only", "bm25", "--runs", "runs", "--plain")
    first = (tmp_path / "runs" / "bm25.run").read_text().split("\n")[0]
    assert first.split()[1] == "Q0"


def test_a_named_run_is_diagnosed(bench):
    assert "Diagnosis of bm25: quality" in bench("--diagnose", "bm25", "--full").stdout
    done = bench("--diagnose", "bm52")
    assert done.returncode == 2
    assert "retrievers are: bm25" in done.stderr
    done = bench("--diagnose", "bm25", "--only", "hashing")
    assert "unknown run 'bm25'" in done.stderr


def test_repeats_are_reported(bench):
    done = bench("--only", "bm25", "--repeat", "2")
    assert "bm25: the same rankings and scores in 2 repetitions" in done.stdout


def test_configurations_are_explored_and_chosen(tmp_path):
    words = ["explore", PLAN, "--responses", str(tmp_path), "--timed", "0"]
    done = command.run(*words, "--full")
    assert done.returncode == 0, done.stderr
    for said in (
        "5 of 5 configurations tried (grid)",
        "best and before on 15 test queries",
        "before and best, 15 queries",
        "one setting changed at a time",
    ):
        assert said in done.stdout


FAILING = """
    [retrievers.flaky]
    type = "python"
    call = "flaky_for_the_command:search"
    settings = { version = 1 }
    limits = { retries = 0 }
"""


def test_failures_are_refused_then_counted_then_retried(bench, tmp_path):
    (tmp_path / "flaky_for_the_command.py").write_text(
        "import os\n\ndef search(text):\n"
        "    if os.environ.get('DOWN') and 'renew' in text:\n"
        "        raise ConnectionError('down')\n"
        "    return ['loans-renewing']\n"
    )
    plan = planned(tmp_path, FAILING)
    os.environ["DOWN"] = "1"
    try:
        refused = bench(plan=plan)
        assert refused.returncode == 2
        assert "failed; " in refused.stderr
        assert "--failed" in refused.stderr
        counted = bench("--errors", "empty", plan=plan)
        assert counted.returncode == 0
        assert "WARNING" in counted.stdout
    finally:
        del os.environ["DOWN"]
    still = bench(plan=plan)
    assert still.returncode == 2, "failures are kept until they are asked again"
    mended = bench("--failed", plan=plan)
    assert mended.returncode == 0, mended.stderr


def test_a_retriever_that_cannot_be_built_changes_only_the_exit_code(bench, tmp_path):
    plan = planned(
        tmp_path,
        """
        [retrievers.gone]
        type = "sentence-transformers-of-old"
        [retrievers.lots]
        type = "random"
        """,
    )
    done = bench(plan=plan)
    assert done.returncode == 2
    assert "sentence-transformers" in done.stderr
    (tmp_path / "broken_for_the_command.py").write_text(
        "class Broken:\n    def index(self, documents):\n        raise OSError('disk on fire')\n"
        "    def search(self, queries, k):\n        return []\n"
    )
    plan = planned(
        tmp_path,
        """
        [retrievers.gone]
        type = "python"
        call = "broken_for_the_command:Broken"
        arguments = {}
        [retrievers.lots]
        type = "random"
        """,
    )
    done = bench(plan=plan)
    assert done.returncode == 2
    assert "gone was not run" in done.stderr
    assert "disk on fire" in done.stderr
    assert "lots" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "label=x"), "need --save"),
        (("--fresh", "--failed"), "omit --failed"),
        (("--only", "bm52"), "'bm52'"),
        (("--report", "no/such/r.html"), "no folder"),
        (("-m", "nDGC@10"), "nDGC"),
        (("--baseline", "bm52"), "retrievers are: bm25, hashing"),
        (("--diagnose", "bm52"), "'bm52'"),
        (("--repeat", "0"), "0"),
        (("--runs", PLAN), "cannot be created"),
    ],
    ids=str,
)
def test_impossible_requests_are_reported_before_any_search(bench, words, said, tmp_path):
    done = bench(*words)
    assert not (tmp_path / "st").exists()
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_an_interrupted_command_names_its_store_and_resumes(tmp_path):
    (tmp_path / "slow_for_the_command.py").write_text(
        "import time\n\ndef search(text):\n    time.sleep(0.1)\n    return ['loans-renewing']\n"
    )
    plan = planned(tmp_path, '[retrievers.slow]\ntype = "python"\ncall = "slow_for_the_command:search"')
    command = [sys.executable, "-m", "rankgauge", "bench", plan, "--responses", str(tmp_path / "st")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if any(f.read_bytes().count(b"\n") > 3 for f in tmp_path.glob("st/*/responses.jsonl")):
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the same command continues from there" in said
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "unfinished run; slow_for_the_command.py and" in " ".join(done.stdout.split())


def test_one_retriever_is_diagnosed_in_one_sentence_and_in_full(bench):
    done = bench("--only", "hashing", "--diagnose")
    assert "27 of 30 queries of hashing miss a relevant document in the top 5" in done.stdout
    assert len(done.stdout.splitlines()) <= 25
    assert "Diagnosis of hashing: quality" in bench("--only", "hashing", "--diagnose", "--full").stdout


def test_a_server_that_cannot_be_reached_has_no_numbers_and_hides_none(bench, tmp_path):
    plan = planned(
        tmp_path,
        """
        measures = ["RR"]
        limits = { retries = 0 }
        [retrievers.bm25]
        type = "bm25"
        [retrievers.engine]
        type = "http"
        url = "http://127.0.0.1:9/search"
        [retrievers.reranked]
        type = "rerank"
        retriever = "bm25"
        reranker = { type = "rerank-endpoint", url = "http://127.0.0.1:9", model = "m" }
        """,
    )
    for words in ([], ["--errors", "empty"]):
        done = bench(*words, plan=plan)
        assert done.returncode == 2
        assert "bm25" in done.stdout
        assert "0.0000" not in done.stdout
        for name in ("engine", "reranked"):
            assert name not in done.stdout
            said = rf"{name} was not run: run '{name}': \d+ of 30 queries failed"
            assert re.search(said, done.stderr)
        assert "the server cannot be reached" in done.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_code_of_another_user_is_run_only_if_trusted(tmp_path):
    (tmp_path / "code_of_another_user.py").write_text(
        "import pathlib\n\npathlib.Path(__file__).with_name('imported').touch()\n\n"
        "def search(text):\n    return ['loans-renewing']\n"
    )
    table = '[retrievers.mine]\ntype = "python"\ncall = "code_of_another_user:search"\n'
    explored = '[explore]\nretriever = "mine"\n[explore.space]\ncall = ["code_of_another_user:search"]\n'
    path = tmp_path / "rankgauge.toml"
    path.write_text(f"collection = '{FOLDER}'\ntimed = 0\n{table}{explored}")
    os.chown(path, 12345, -1)
    rankgauge.BenchmarkPlan.read(path).load()
    rankgauge.GateRules.of(path)
    for words in (["bench"], ["explore"], ["gate", "mine", "--update-baseline"]):
        done = command.run(*words, cwd=tmp_path)
        assert done.returncode == 2
        assert "rankgauge.toml: this file belongs to another user" in done.stderr
        assert not (tmp_path / "imported").exists()
    assert command.run("gate", "mine", "--update-baseline", "--trust", cwd=tmp_path).returncode == 0
    assert (tmp_path / "imported").exists()


def test_without_a_project_the_error_names_the_command_that_creates_one(tmp_path):
    for name in ("bench", "explore"):
        done = command.run(name, cwd=tmp_path)
        assert done.returncode == 2
        assert "there is no rankgauge.toml in this folder or above it\nfix: create one: rankgauge init" in done.stderr
