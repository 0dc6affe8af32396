"""``rankgauge fuse``, ``cut``, and ``sample``."""

from pathlib import Path

import pytest
from command import run

import rankgauge

QRELS = str(rankgauge.sample_path("qrels.txt"))
BM25 = str(rankgauge.sample_path("runs/bm25.run"))
KEYWORD = str(rankgauge.sample_path("runs/keyword.run"))


def test_without_a_file_the_fused_run_goes_to_standard_output_as_trec(tmp_path):
    done = run("fuse", BM25, KEYWORD)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "q01 Q0 loans-renewing-phone 1 0.03278688524590164 rrf"
    written = tmp_path / "all.run"
    written.write_text(done.stdout, encoding="utf-8")
    library = rankgauge.fuse([rankgauge.read_run(BM25), rankgauge.read_run(KEYWORD)])
    assert dict(rankgauge.read_run(written)) == dict(library)


def test_options_are_those_of_the_library(tmp_path):
    target = tmp_path / "both.jsonl"
    done = run(
        "fuse",
        BM25,
        KEYWORD,
        "--method",
        "wsum",
        "--weights",
        "0.7,0.3",
        "--norm",
        "z-score",
        "--name",
        "both",
        "-o",
        target,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "30 queries; bm25, keyword fused by wsum" in done.stderr
    runs = [rankgauge.read_run(BM25), rankgauge.read_run(KEYWORD)]
    library = rankgauge.fuse(runs, "wsum", norm="z-score", weights=(0.7, 0.3))
    assert dict(rankgauge.read_run(target)) == dict(library)


def test_tuning_reports_its_choices_and_writes_the_run(tmp_path):
    target = tmp_path / "tuned.run"
    done = run(
        "fuse",
        BM25,
        KEYWORD,
        "--tune",
        QRELS,
        "-m",
        "AP",
        "--folds",
        "3",
        "--seed",
        "4",
        "--grid",
        "k=1,60",
        "-o",
        target,
    )
    assert done.returncode == 0, done.stderr
    assert "so no query was fused" in done.stderr
    assert "3 folds of the 30 judged queries, seed 4" in done.stderr
    runs = [rankgauge.read_run(BM25), rankgauge.read_run(KEYWORD)]
    tuned = rankgauge.tune_fusion(rankgauge.read_qrels(QRELS), runs, "AP", grid={"k": [1, 60]}, folds=3, seed=4)
    assert dict(rankgauge.read_run(target)) == dict(tuned.run)


def test_a_parameter_given_is_fixed_while_others_are_tuned():
    done = run("fuse", BM25, KEYWORD, "--method", "wsum", "--norm", "sum", "--tune", QRELS, "--grid", "weights=1/1,3/1")
    assert "2 choices for wsum: norm sum; weights 1/1, 3/1" in done.stderr


def test_a_file_of_queries_to_train_on_leaves_them_out(tmp_path):
    listed = tmp_path / "train.txt"
    listed.write_text("q01\nq02\nq03\n", encoding="utf-8")
    done = run("fuse", BM25, KEYWORD, "--tune", QRELS, "--train", listed)
    assert "chosen on the 3 queries of --train" in done.stderr
    assert not {"q01", "q02", "q03"} & {line.split()[0] for line in done.stdout.splitlines()}


def test_a_terminal_without_box_characters_gets_ascii():
    done = run("fuse", BM25, KEYWORD, "--tune", QRELS, env={"PYTHONIOENCODING": "latin-1"})
    assert done.returncode == 0
    assert "* tried: 8 choices" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((BM25,), "got 1 run, expected two or more"),
        ((BM25, "nosuch.run"), "nosuch.run: there is no such file"),
        ((BM25, KEYWORD, "--method", "rff"), "did you mean rrf"),
        ((BM25, KEYWORD, "--weights", "1;2"), "expected numbers separated by ','"),
        ((BM25, KEYWORD, "--weights", "1"), "got 1 weight for 2 runs"),
        ((BM25, KEYWORD, "--weights", "nan,1"), "a weight=nan is not valid"),
        ((BM25, KEYWORD, "--norm", "sum"), "rrf has no parameter norm"),
        ((BM25, KEYWORD, "--k", "-3"), "k=-3.0 is not valid"),
        ((BM25, KEYWORD, "--folds", "3"), "--folds needs --tune QRELS"),
        ((BM25, KEYWORD, "--grid", "k=1"), "--grid needs --tune QRELS"),
        ((BM25, KEYWORD, "-m", "AP"), "--measure needs --tune QRELS"),
        ((BM25, KEYWORD, "--tune", QRELS, "--folds", "2", "--train", "x"), "cannot be combined"),
        ((BM25, KEYWORD, "--tune", QRELS, "--folds", "99"), "choose from 2 to 30 folds"),
        ((BM25, KEYWORD, "--tune", QRELS, "--grid", "k=a"), "expected numbers"),
        ((BM25, KEYWORD, "--tune", QRELS, "--grid", "q=1"), "unknown parameter of a fusion"),
        ((BM25, KEYWORD, "--tune", QRELS, "--grid", "k"), "is not WORD=V,V..."),
        ((BM25, KEYWORD, "--tune", QRELS, "--grid", "weights=1/x"), "expected numbers"),
        ((BM25, KEYWORD, "-o", "no/such/folder/x.run"), "cannot be written"),
        ((BM25, QRELS), "this looks like judgments"),
    ],
)
def test_impossible_fusions_end_with_2_and_a_fix(words, said):
    done = run("fuse", *words)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert (done.stdout, "Traceback" in done.stderr) == ("", False)


def test_fuse_and_cut_make_a_pipe():
    fused = run("fuse", BM25, KEYWORD).stdout
    done = run("cut", "-", "-k", 2, stdin=fused)
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert {line[3] for line in lines} == {"1", "2"}
    assert len(lines) == 60


def test_cut_fixes_a_run_that_diff_and_fuse_refuse(tmp_path):
    twice = tmp_path / "twice.run"
    twice.write_text("q Q0 d 1 2.0 t\nq Q0 e 2 1.5 t\nq Q0 d 3 1.0 t\n")
    refused = run("fuse", twice, BM25)
    assert refused.returncode != 0
    assert "--duplicates best" in refused.stderr
    done = run("cut", twice, "-k", 9, "--duplicates", "best")
    assert [line.split()[2] for line in done.stdout.splitlines()] == ["d", "e"]


def test_cut_writes_a_file_by_its_name(tmp_path):
    target = tmp_path / "top.json"
    assert run("cut", BM25, "-k", 3, "-o", target).returncode == 0
    assert dict(rankgauge.read_run(target)) == dict(rankgauge.cut(rankgauge.read_run(BM25), 3))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((BM25, "-k", "0"), "k=0 is not valid"),
        ((BM25,), "Missing option '-k'"),
        (("nosuch.run", "-k", "1"), "there is no such file"),
    ],
)
def test_an_impossible_cut_is_reported(words, said):
    done = run("cut", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_the_same_queries_are_sampled_from_all_files(tmp_path):
    folder = tmp_path / "small"
    done = run("sample", BM25, KEYWORD, "--qrels", QRELS, "-n", 7, "--seed", 3, "-o", folder)
    assert done.returncode == 0, done.stderr
    runs = [rankgauge.read_run(folder / name) for name in ("bm25.run", "keyword.run")]
    qrels = rankgauge.read_qrels(folder / "qrels.txt")
    assert set(qrels) == set(runs[0]) == set(runs[1])
    assert len(qrels) == 7
    assert f"{QRELS}: 7 of 30 queries kept" in done.stderr
    assert dict(runs[0]) == {q: rankgauge.read_run(BM25)[q] for q in qrels}
    alone = run("sample", BM25, "-n", 7, "--seed", 3)
    assert {line.split()[0] for line in alone.stdout.splitlines()} == set(qrels)


def test_queries_in_a_file_are_kept(tmp_path):
    listed = tmp_path / "ids.txt"
    listed.write_text("q05\nq01\n", encoding="utf-8")
    done = run("sample", "--qrels", QRELS, "--queries", listed)
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"q01", "q05"}
    assert "2 of 30 queries kept" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "pass a RUN, or --qrels QRELS"),
        ((BM25,), "pass -n NUMBER, or --queries FILE"),
        ((BM25, "-n", "1", "--queries", "x"), "pass -n NUMBER, or --queries FILE"),
        ((BM25, "-n", "99"), "99 queries were requested, but there are only 30"),
        ((BM25, "-n", "0"), "n=0 is not valid"),
        ((BM25, KEYWORD, "-n", "1"), "name a folder for them with -o"),
        ((BM25, BM25, "-n", "1", "-o", "x"), "two files would be written as"),
        (("-", "-", "-n", "1", "-o", "x"), "standard input can be read only once"),
        ((BM25, KEYWORD, "-n", "1", "-o", str(Path(BM25).parent)), "would be overwritten"),
        ((BM25, KEYWORD, "-n", "1", "-o", BM25), "cannot be created: "),
        ((BM25, "--queries", "nosuch.txt"), "nosuch.txt: there is no such file"),
        ((QRELS, "-n", "1"), "this looks like judgments"),
    ],
)
def test_an_impossible_sample_is_reported(words, said):
    done = run("sample", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
