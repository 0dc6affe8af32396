"""``rankgauge convert``."""

import gzip

import command

import rankgauge

QRELS = str(rankgauge.sample_path("qrels.txt"))
BM25 = str(rankgauge.sample_path("runs/bm25.run"))


def run(*words, stdin=None):
    done = command.run("convert", *words, stdin=stdin)
    return done._replace(stdout=done.stdout.encode(), stderr=done.stderr.encode())


def test_output_files_and_losses_are_reported_on_standard_error(tmp_path):
    done = run(BM25, tmp_path / "a.csv")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.decode().splitlines() == [
        f"{tmp_path / 'a.csv'}: a run of 30 queries, 501 documents (trec to csv)",
        "lost: the tag 'bm25': csv cannot store it",
    ]
    assert rankgauge.read_run(tmp_path / "a.csv")["q01"] == rankgauge.read_run(BM25)["q01"]


def test_standard_input_can_be_compressed_and_output_has_the_given_format():
    with open(QRELS, "rb") as file:  # noqa: PTH123 - a path as text
        plain = file.read()
    done = run("-", "-", "--to", "jsonl", stdin=gzip.compress(plain))
    assert done.returncode == 0
    first = b'{"query_id": "q01", "doc_id": "loans-renewing", "relevance": 3}'
    assert done.stdout.split(b"\n")[0] == first
    assert done.stderr == b"<stdout>: judgments of 30 queries, 289 judgments (trec to jsonl)\n"


def test_options_are_those_of_the_library(tmp_path):
    (tmp_path / "a.json").write_text('{"q": {"d": 1}}')
    done = run(tmp_path / "a.json", tmp_path / "b", "--kind", "run", "--name", "mine")
    assert done.returncode == 0
    assert (tmp_path / "b").read_text() == "q Q0 d 1 1.0 mine\n"
    (tmp_path / "odd.txt").write_text("qid,docno,grade\nq,d,1\n")
    done = run(tmp_path / "odd.txt", tmp_path / "c.tsv", "--from", "csv", "--to", "beir")
    assert (tmp_path / "c.tsv").read_text() == "query-id\tcorpus-id\tscore\nq\td\t1\n"


def test_an_error_ends_with_2_and_writes_nothing(tmp_path):
    (tmp_path / "a.json").write_text('{"q": {"d": 1}}')
    done = run(tmp_path / "a.json", tmp_path / "b")
    assert done.returncode == 2
    assert b"this may be judgments or a run" in done.stderr
    assert b"--kind qrels or --kind run" in done.stderr
    assert not (tmp_path / "b").exists()
    done = run(QRELS, tmp_path / "nowhere" / "b.csv")
    assert done.returncode == 2
    assert b"there is no folder" in done.stderr
