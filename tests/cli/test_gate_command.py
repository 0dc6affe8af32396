"""``rankgauge gate``: output, written files, and exit codes."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import command
import pytest

import rankgauge
from rankgauge.store import Gates

QRELS = str(rankgauge.sample_path("qrels.txt"))
BM25 = str(rankgauge.sample_path("runs/bm25.run"))
KEYWORD = str(rankgauge.sample_path("runs/keyword.run"))


@pytest.fixture
def gate(tmp_path):
    def run(*words, **env):
        return command.run("gate", QRELS, *words, cwd=tmp_path, env=env)

    return run


@pytest.fixture
def baseline(gate):
    assert gate(BM25, "--update-baseline").returncode == 0


def test_the_first_run_shows_how_to_write_a_baseline(gate):
    done = gate(BM25)
    assert done.returncode == 2
    assert "gate-baseline.json: there is no baseline yet" in done.stderr
    assert "--update-baseline" in done.stderr


@pytest.mark.usefixtures("baseline")
def test_the_same_run_passes_and_a_worse_one_fails(gate):
    assert gate(BM25).returncode == 0
    done = gate(KEYWORD)
    assert done.returncode == 1
    assert done.stdout.startswith("FAIL: keyword\n")
    assert "worse than the baseline" in done.stdout
    assert "card-lost from rank 1 to 8" in done.stdout
    assert done.stderr == ""


@pytest.mark.usefixtures("baseline")
def test_strict_ends_with_3_if_inconclusive(gate, tmp_path):
    half = [line if int(line[1:3]) > 4 else None for line in Path(BM25).read_text(encoding="utf-8").splitlines()]
    worse = [line for line in Path(KEYWORD).read_text(encoding="utf-8").splitlines() if int(line[1:3]) <= 4]
    (tmp_path / "mixed.run").write_text("\n".join([*filter(None, half), *worse, ""]))
    (tmp_path / "rules.toml").write_text('[gate.measures]\n"nDCG@10" = { margin = 0.02 }\n')
    words = ("mixed.run", "--rules", "rules.toml")
    done = gate(*words)
    assert done.returncode == 0, done.stdout
    assert "INCONCLUSIVE: mixed" in done.stdout
    assert "needs about" in " ".join(done.stdout.split())
    assert gate(*words, "--strict").returncode == 3


@pytest.mark.usefixtures("baseline")
def test_incomparable_evaluations_end_with_4(gate, tmp_path):
    stored = json.loads((tmp_path / "gate-baseline.json").read_text(encoding="utf-8"))
    assert stored["run"] == "bm25"
    (tmp_path / "rules.toml").write_text('[gate.measures]\n"AP" = {}\n')
    done = gate(KEYWORD, "--rules", "rules.toml")
    assert done.returncode == 4
    assert "the baseline has no AP" in done.stdout


@pytest.mark.usefixtures("baseline")
def test_rules_are_found_in_the_project(gate, tmp_path):
    (tmp_path / "rankgauge.toml").write_text('[gate.measures]\n"nDCG@10" = { margin = 0.3 }\n')
    done = gate(KEYWORD)
    assert done.returncode == 0
    assert "worse than the baseline, but within the margin" in " ".join(done.stdout.split())


def test_the_rules_allow_queries_without_a_ranking_in_the_baseline_of_an_evaluation(tmp_path):
    run = {"q1": {"d1": 1.0}}
    evaluation = rankgauge.evaluate({"q1": {"d1": 1}, "q2": {"d2": 1}}, run, "nDCG@10")
    (tmp_path / "saved.jsonl").write_text(evaluation.to_json() + "\n")
    rules = '[gate]\nmax_failed = {}\n[gate.measures]\n"nDCG@10" = {{ margin = 0.02 }}\n'
    for allowed, code in ((0.4, 2), (0.5, 0)):
        (tmp_path / "rules.toml").write_text(rules.format(allowed))
        done = command.run("gate", "saved.jsonl", "--rules", "rules.toml", "--update-baseline", cwd=tmp_path)
        assert done.returncode == code, done.stderr
    assert (tmp_path / "gate-baseline.json").is_file()


@pytest.mark.usefixtures("baseline")
def test_an_anchor_is_gated_too(gate):
    assert gate(BM25, "--update-baseline", "--baseline", "release.json").returncode == 0
    done = gate(KEYWORD, "--anchor", "release.json", "--full")
    assert "anchor nDCG@10" in done.stdout
    assert "Holm over 1 measure, for baseline and anchor separately" in " ".join(done.stdout.split())


@pytest.mark.usefixtures("baseline")
def test_files_and_the_summary_of_the_step_are_written(gate, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    words = (KEYWORD, "--junit", "j.xml", "--json", "r.json", "--github")
    done = gate(*words, GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 1
    assert ET.parse(tmp_path / "j.xml").getroot().get("failures") == "1"
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["verdict"] == "FAIL"
    assert "\n::error title=rankgauge baseline nDCG@10::FAIL: " in done.stdout
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("before\n**FAIL: keyword**\n")
    summary.write_text("x" * (1 << 20), encoding="utf-8")
    assert gate(*words, GITHUB_STEP_SUMMARY=str(summary)).returncode == 1
    assert summary.stat().st_size == 1 << 20


@pytest.mark.usefixtures("baseline")
def test_results_are_stored_in_a_project_only(gate, tmp_path):
    store = tmp_path / ".rankgauge" / "store.db"
    assert gate(BM25, "--json", "r.json").returncode == 0
    assert not store.exists()
    (tmp_path / "rankgauge.toml").write_text('[gate.measures]\n"nDCG@10" = {}\n')
    assert gate(BM25, "--no-save").stderr == ""
    assert not store.exists()
    done = gate(KEYWORD)
    assert done.returncode == 1
    assert "saved the result in" in done.stderr
    assert gate(BM25).returncode == 0
    results = Gates(store).results()
    assert [each.verdict for each in results] == ["IDENTICAL", "FAIL"]
    made = rankgauge.gates.GateResult.from_json(results[1].body)
    assert (made.run_name, made.commit, made.time) == ("keyword", None, results[1].time)


@pytest.mark.usefixtures("baseline")
def test_results_of_ci_are_imported_once_and_all_or_none(gate, tmp_path):
    assert gate(KEYWORD, "--json", "r.json").returncode == 1
    (tmp_path / "rankgauge.toml").write_text("")
    done = gate("--import", "r.json", "--import", str(tmp_path / "rankgauge.toml"))
    assert done.returncode == 2
    assert "rankgauge.toml: not a result of a gate" in done.stderr
    for words in ("stored: FAIL: keyword", "already stored: FAIL: keyword"):
        done = gate("--import", "r.json")
        assert (done.returncode, done.stderr) == (0, f"r.json: {words}\n")
    (each,) = Gates(tmp_path / ".rankgauge" / "store.db").results()
    assert (each.author, each.verdict) == ("imported", "FAIL")


@pytest.mark.usefixtures("baseline")
def test_a_margin_within_the_noise_is_an_error(gate):
    done = gate(BM25, "--noise", BM25, "--noise", KEYWORD)
    assert done.returncode == 2
    assert "2 runs of the same system differ by about" in done.stderr
    assert gate(BM25, "--noise", BM25).returncode == 2
    assert gate(BM25, "--noise", BM25, "--noise", BM25).returncode == 0


def test_noise_of_an_evaluation_is_that_of_evaluations(tmp_path):
    qrels = {f"q{number}": {"d": 1} for number in range(5)}
    for rank in (0, 1):
        run = {query: [*["x"] * rank, "d"] for query in qrels}
        (tmp_path / f"{rank}.json").write_text(rankgauge.evaluate(qrels, run, "nDCG@10").to_json())
    options = ["--noise", "0.json", "--noise", "1.json", "--baseline", "base.json"]
    assert command.run("gate", "0.json", *options, "--update-baseline", cwd=tmp_path).returncode == 0
    band = rankgauge.Baseline.read(tmp_path / "base.json").noise.bands["nDCG@10"]
    assert band > 0.02
    for more in ((), options[:4]):
        done = command.run("gate", "0.json", "--baseline", "base.json", *more, cwd=tmp_path)
        assert done.returncode == 2
        assert f"2 runs of the same system differ by about {band:.4f}" in done.stderr
    done = command.run("gate", "0.json", "--noise", BM25, "--noise", BM25, "--update-baseline", cwd=tmp_path)
    assert done.returncode == 2
    assert "this is not an evaluation in JSON" in done.stderr


@pytest.mark.usefixtures("baseline")
def test_latency_is_read_from_two_files(gate, tmp_path):
    rows = "".join(f"q{n},{0.01 + n / 10_000}\n" for n in range(100))
    (tmp_path / "old.csv").write_text("query,latency\n" + rows)
    (tmp_path / "new.csv").write_text(rows)
    (tmp_path / "rules.toml").write_text("[gate.latency]\np95 = 1.1\n")
    words = (BM25, "--rules", "rules.toml", "--latency", "old.csv", "new.csv")
    done = gate(*words)
    assert done.returncode == 0, done.stderr
    assert "latency p95" in done.stdout
    (tmp_path / "new.csv").write_text(rows.replace("q7,", "q7,fast"))
    assert "took 'fast" in gate(*words).stderr
    (tmp_path / "new.csv").write_text("q1,1,2\n")
    assert "3 fields, expected two" in gate(*words).stderr
    (tmp_path / "new.csv").write_text("q1,1\n")
    assert "were timed for only one of the two" in gate(*words).stderr
    assert "no rule limits them" in gate(BM25, "--latency", "old.csv", "new.csv").stderr


@pytest.mark.usefixtures("baseline")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((BM25, "--rules", "none.toml"), "none.toml: there is no such file"),
        ((BM25, "--baseline", "none.json"), "none.json: there is no baseline yet"),
        ((BM25, "--baseline", BM25), "not a baseline"),
        ((BM25, "--anchor", "none.json"), "none.json: there is no baseline yet"),
        ((BM25, "--junit", "no/such/j.xml"), "error: no/such/j.xml: cannot be written"),
        ((BM25, "--update-baseline", "--baseline", "no/such.json"), "cannot be written"),
        (("none.run",), "none.run: there is no such file"),
        ((BM25, "--noise", "none.run"), "none.run: there is no such file"),
        ((BM25, "--latency", "a.csv"), "requires 2 arguments"),
    ],
)
def test_an_error_is_reported_and_ends_with_2(gate, words, said):
    done = gate(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--json", "--junit"])
@pytest.mark.usefixtures("baseline")
def test_a_file_that_cannot_be_written_is_named(gate, option):
    done = gate(BM25, option, "nowhere/result")
    assert done.returncode == 2
    assert "error: nowhere/result: cannot be written: No such file or directory" in done.stderr
    assert "IDENTICAL: bm25" in done.stdout


@pytest.mark.usefixtures("baseline")
def test_a_summary_that_cannot_be_written_is_named(gate):
    done = gate(BM25, "--github", GITHUB_STEP_SUMMARY="nowhere/summary")
    assert done.returncode == 2
    assert "error: nowhere/summary: cannot be written" in done.stderr


def test_a_retriever_of_the_project_is_run_and_gated(tmp_path):
    def gate(*words, folder=tmp_path):
        return command.run("gate", *words, cwd=folder)

    assert "name the run: rankgauge gate QRELS RUN" in gate("dense").stderr
    dense = '[retrievers.dense]\ntype = "dense"\nencoder = { type = "hashing" }\n'
    text = f'collection = "{rankgauge.sample_path("qrels.txt").parent}"\n{dense}{dense.replace("dense]", "other]")}'
    (tmp_path / "rankgauge.toml").write_text(text, encoding="utf-8")
    done = gate("dense", "--update-baseline")
    assert done.stdout.startswith("wrote gate-baseline.json: dense, 30 queries")
    inner = tmp_path / "inner"
    inner.mkdir()
    assert "IDENTICAL: other" in gate("other", folder=inner).stdout
    for words, message in (
        (["densse"], "unknown retriever of the project 'densse'\nfix: did you mean dense?"),
        ([QRELS], "name the run: rankgauge gate QRELS RUN"),
    ):
        done = gate(*words)
        assert done.returncode == 2
        assert message in done.stderr


# ---- replacing a baseline


@pytest.mark.usefixtures("baseline")
def test_a_better_baseline_is_replaced_by_a_failing_run_only_with_force(gate, tmp_path):
    before = (tmp_path / "gate-baseline.json").read_bytes()
    done = gate(KEYWORD, "--update-baseline")
    assert done.returncode == 2
    assert "the gate fails: FAIL: nDCG@10 0.6390 → 0.4757" in done.stderr
    assert "--force" in done.stderr
    assert (tmp_path / "gate-baseline.json").read_bytes() == before
    done = gate(KEYWORD, "--update-baseline", "--force")
    assert done.returncode == 0
    assert done.stdout.startswith("FAIL: nDCG@10 0.6390 → 0.4757\nwrote gate-baseline.json")
    done = gate(BM25, "--update-baseline")
    assert done.stdout.startswith("PASS: nDCG@10 0.4757 → 0.6390\nwrote gate-baseline.json")


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("name", ["a.run", "qrels.txt", "result.json", "one.bin"])
def test_a_file_that_is_not_a_baseline_is_never_replaced(gate, tmp_path, name, force):
    contents = {
        "a.run": Path(BM25).read_bytes(),
        "qrels.txt": Path(QRELS).read_bytes(),
        "result.json": b'{"schema": "rankgauge/gate/1"}',
        "one.bin": b"\xff\x00",
    }
    (tmp_path / name).write_bytes(contents[name])
    done = gate(BM25, "--update-baseline", "--baseline", name, *force)
    assert done.returncode == 2
    assert f"{name}: the file is not a baseline and was not replaced" in done.stderr
    assert "--baseline FILE" in done.stderr
    assert (tmp_path / name).read_bytes() == contents[name]


@pytest.mark.usefixtures("baseline")
def test_the_anchor_is_never_replaced(gate, tmp_path):
    before = (tmp_path / "gate-baseline.json").read_bytes()
    words = ("--update-baseline", "--anchor", "./gate-baseline.json", "--force")
    done = gate(KEYWORD, *words)
    assert done.returncode == 2
    assert "this is the anchor, which is never updated" in done.stderr
    assert (tmp_path / "gate-baseline.json").read_bytes() == before
    anchor = tmp_path / "gate-baseline.anchor.json"
    before = anchor.read_bytes()
    done = gate(KEYWORD, "--update-baseline", "--baseline", anchor.name, "--force")
    assert done.returncode == 2
    assert "this is the anchor, which is never updated" in done.stderr
    assert anchor.read_bytes() == before


@pytest.mark.usefixtures("baseline")
def test_a_damaged_or_incomparable_baseline_is_replaced_with_a_message(gate, tmp_path):
    path = tmp_path / "gate-baseline.json"
    path.write_text(path.read_text().replace('"run": "bm25"', '"run": "other"'))
    assert gate(BM25).returncode == 2
    done = gate(BM25, "--update-baseline")
    assert done.stdout.startswith("replaced a baseline that cannot be compared: the checksum does not match")
    few = tmp_path / "few.txt"
    few.write_text("".join(Path(QRELS).read_text().splitlines(keepends=True)[:40]))
    done = command.run("gate", few, BM25, "--update-baseline", cwd=tmp_path)
    assert done.stdout.startswith("NOT COMPARABLE: nDCG@10 0.6390 → ")
    path.write_text(path.read_text().replace("rankgauge/baseline/2", "rankgauge/baseline/9"))
    done = gate(BM25, "--update-baseline")
    assert done.returncode == 2
    assert "a newer rankgauge" in done.stderr


@pytest.mark.usefixtures("baseline")
def test_a_broken_floor_fails_an_update(gate, tmp_path):
    (tmp_path / "rules.toml").write_text('[gate.measures]\n"nDCG@10" = { margin = 0.02, floor = 0.9 }\n')
    done = gate(BM25, "--update-baseline", "--rules", "rules.toml")
    assert "the gate fails: FAIL: nDCG@10 0.6390 → 0.6390" in done.stderr
