"""``rankgauge check``: output, written files, and exit codes."""

import json
import os
import re

import command
import jsonschema
import pytest
from schemas import strict

import rankgauge

SAMPLE = rankgauge.sample_path("qrels.txt").parent
QRELS, BM25 = str(SAMPLE / "qrels.txt"), str(SAMPLE / "runs/bm25.run")
GOOD = "".join(f"q{n} 0 d{n} 1\nq{n} 0 e{n} 0\n" for n in range(4))
RUN = "".join(f"q{n} Q0 {doc}{n} {r} {9 - r}.5 x\n" for n in range(4) for r, doc in ((1, "d"), (2, "e")))


@pytest.fixture
def run_check(tmp_path):
    (tmp_path / "qrels.txt").write_text(GOOD)
    (tmp_path / "a.run").write_text(RUN.replace("d1 1 8.5", "d1 2 7").replace("e1 2 7.5", "e1 1 8"))

    def run(*words):
        return command.run("check", *words, cwd=tmp_path)

    return run


def write(folder, name, text):
    (folder / name).write_text(text)
    return name


def codes(done):
    return re.findall(r"(?m)^(?:error|warning|info) +(\w\d+)", done.stdout)


def test_input_without_problems_ends_with_0(run_check):
    done = run_check("qrels.txt", "a.run", "-m", "RR", "-m", "P@2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no problems found in 2 inputs\n• inputs: qrels.txt, a.run\n")


def test_judgments_can_be_checked_alone(run_check, tmp_path):
    write(tmp_path, "twice.txt", GOOD + "q1 0 d1 1\n")
    done = run_check("twice.txt")
    assert done.returncode == 1
    assert codes(done) == ["J101"]
    assert "twice.txt:9 (query q1, document d1)" in done.stdout


@pytest.mark.parametrize(("level", "ends"), [("error", 0), ("warning", 1), ("info", 1), ("never", 0)])
def test_the_level_that_fails_can_be_chosen(run_check, level, ends):
    done = run_check(QRELS, BM25, "--fail-on", level)
    assert codes(done) == ["P106", "R109"]
    assert done.returncode == ends


def test_an_error_fails_unless_failing_is_disabled(run_check, tmp_path):
    write(tmp_path, "twice.txt", GOOD + "q1 0 d1 1\n")
    assert run_check("twice.txt", "--fail-on", "info").returncode == 1
    assert run_check("twice.txt", "--fail-on", "never").returncode == 0


def test_codes_can_be_ignored_or_selected(run_check):
    assert codes(run_check(QRELS, BM25, "--ignore", "P106")) == ["R109"]
    assert codes(run_check(QRELS, BM25, "--select", "P106", "--select", "J101")) == ["P106"]
    for option in ("--ignore", "--select"):
        done = run_check(QRELS, BM25, option, "P999")
        assert done.returncode == 2
        assert "'P999'" in done.stderr


def test_problems_are_shown_with_their_effect_on_each_measure(run_check):
    done = run_check(QRELS, BM25, "-m", "nDCG@10", "-m", "AP")
    assert re.search(r"effect +nDCG@10 0\.\d{4} → 0\.\d{4}, AP 0\.\d{4} → 0\.\d{4}", done.stdout)


def test_a_single_measure_is_a_hint(run_check):
    assert "M101" in codes(run_check(QRELS, BM25, "-m", "nDCG@10"))


def test_a_scale_names_what_is_not_on_it(run_check):
    done = run_check("qrels.txt", "--scale", "1..3")
    assert codes(done) == ["J105"]
    assert run_check("qrels.txt", "--scale", "0..1").returncode == 0
    assert "J105" not in run_check("qrels.txt", "--scale", "0..1").stdout
    assert run_check("qrels.txt", "--scale", "many").returncode == 2


def test_texts_of_a_given_collection_are_checked(run_check, tmp_path):
    texts = [{"_id": f"{kind}{n}", "text": f"{kind} {n}"} for kind in "de" for n in range(4)]
    texts[0]["text"] = " "
    rows = "".join(json.dumps(row) + "\n" for row in texts)
    (tmp_path / "data").mkdir()
    write(tmp_path / "data", "corpus.jsonl", rows)
    queries = "".join(json.dumps({"_id": f"q{n}", "text": f"text {n}"}) + "\n" for n in range(4))
    write(tmp_path / "data", "queries.jsonl", queries)
    assert "T101" not in codes(run_check("qrels.txt", "a.run"))
    done = run_check("qrels.txt", "a.run", "--collection", "data", "--full")
    assert "T101" in codes(done)
    assert "at         document d0" in done.stdout


def test_json_is_by_the_schema_and_nothing_else_is_printed(run_check):
    done = run_check(QRELS, BM25, "--as", "json")
    data = json.loads(done.stdout)
    jsonschema.validate(data, strict("check-1"))
    assert data["inputs"] == [QRELS, BM25]
    assert done.stderr == ""


def test_annotations_name_file_and_line(run_check, tmp_path):
    write(tmp_path, "twice.txt", GOOD + "q1 0 d1 1\n")
    done = run_check("twice.txt", "a.run", "--as", "github")
    assert done.stdout.startswith("::error file=twice.txt,line=9,title=J101 judged-twice::")
    assert done.returncode == 1


def test_fixed_copies_are_written_and_originals_kept(run_check, tmp_path):
    write(tmp_path, "twice.txt", GOOD + "q1 0 d1 1\n")
    done = run_check("twice.txt", "a.run", "--fix", "out")
    assert done.returncode == 1
    assert done.stderr == f"wrote {os.path.join('out', 'twice.txt')}: J101 1 row\n"  # noqa: PTH118 - as it is printed
    assert (tmp_path / "out/twice.txt").read_text() == GOOD
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["twice.txt"]
    assert (tmp_path / "twice.txt").read_text() == GOOD + "q1 0 d1 1\n"
    assert run_check("out/twice.txt", "a.run").returncode == 0


def test_unsafe_fixes_need_their_code(run_check, tmp_path):
    write(tmp_path, "own.run", RUN + "q1 Q0 q1 3 99 x\nq2 Q0 q2 3 99 x\n")
    words = ("qrels.txt", "own.run", "--fix", "out")
    assert run_check(*words).stderr == "nothing to fix: no copy written\n"
    done = run_check(*words, "--fix-also", "R108")
    assert "R108 2 rows" in done.stderr
    assert (tmp_path / "out/own.run").read_text() == RUN


def test_a_code_without_a_fix_is_refused_before_writing(run_check, tmp_path):
    done = run_check("qrels.txt", "a.run", "--fix", "out", "--fix-also", "J102")
    assert done.returncode == 2
    assert "J102 cannot be fixed automatically" in done.stderr
    assert not (tmp_path / "out").exists()
    assert run_check("qrels.txt", "--fix-also", "R101").returncode == 2


def test_standard_input_cannot_be_fixed(run_check):
    done = run_check("qrels.txt", "-", "--fix", "out")
    assert done.returncode == 2
    assert "standard input can be read only once" in done.stderr


def test_every_code_is_listed_and_explained(run_check):
    done = run_check("--list")
    assert done.returncode == 0
    for code in rankgauge.checks.FINDING_KINDS:
        assert re.search(rf"(?m)^{code} ", done.stdout)
    assert run_check("--explain", "C108").stdout.startswith("C108 judged-shares-differ (warning)\n")
    done = run_check("--explain", "J107")
    assert done.stdout.startswith("J107 recall-out-of-reach (warning)\n")
    assert run_check("--explain", "J999").returncode == 2


def test_without_judgments_and_a_project_a_command_is_named(run_check):
    done = run_check()
    assert done.returncode == 2
    assert "rankgauge check qrels.txt bm25.run" in done.stderr


def test_a_missing_file_is_an_error(run_check):
    done = run_check("qrels.txt", "nowhere.run")
    assert done.returncode == 2
    assert "nowhere.run" in done.stderr


def test_lines_that_cannot_be_read_do_not_hide_the_rest(run_check, tmp_path):
    write(tmp_path, "bad.run", RUN + "oops\nq1 Q0 d9 3 nan x\nq1 Q0 d1 3 9 x\n")
    done = run_check("qrels.txt", "bad.run")
    assert done.returncode == 1
    assert set(codes(done)) >= {"F101", "R101", "R102"}
    assert "Traceback" not in done.stderr


def test_formats_are_those_of_other_commands_and_count_in_the_library_too(run_check, tmp_path):
    rows = "".join(f"q{n}\td{n}\t1\nq{n}\te{n}\t2\n" for n in range(4))
    name = write(tmp_path, "three.tsv", rows)
    ranked = run_check("qrels.txt", name, "-m", "RR", "-m", "P@1", "--as", "json")
    scored = run_check("qrels.txt", f"trec3:{name}", "-m", "RR", "-m", "P@1", "--as", "json")
    assert (ranked.returncode, scored.returncode) == (0, 1)
    assert [found["code"] for found in json.loads(scored.stdout)["findings"]] == ["R104"]
    path = rankgauge.formats.InFormat(tmp_path / name, "trec3")
    assert rankgauge.check(tmp_path / "qrels.txt", path, ["RR", "P@1"]).codes == ("R104",)


def test_codes_may_be_written_in_any_case_and_are_known_before_anything_is_read(run_check):
    done = run_check("qrels.txt", "a.run", "--select", "p101", "--ignore", "m101")
    assert (done.returncode, codes(done)) == (0, [])
    for words in (("--ignore", "X9"), ("--select", "X9"), ("--fix", "out", "--fix-also", "X9")):
        done = run_check("nowhere.txt", "a.run", *words)
        assert done.returncode == 2
        assert "unknown finding code 'X9'" in done.stderr
    done = run_check("nowhere.txt", "a.run", "--fix", "out", "--fix-also", "J102")
    assert "J102 cannot be fixed automatically\nfix: codes that can be fixed: F101" in done.stderr


def test_a_format_decides_where_a_file_can_be_read_two_ways(run_check, tmp_path):
    ranked = "".join(f"q{n}\t{doc}{n}\t{r}\n" for n in range(4) for r, doc in ((1, "d"), (2, "e")))
    name = write(tmp_path, "ranked.tsv", ranked)
    as_ranks = run_check("trec:qrels.txt", f"msmarco:{name}")
    assert (as_ranks.returncode, as_ranks.stderr) == (0, "")
    assert run_check("qrels.txt", f"json:{name}").returncode == 2
