"""``convert``: between all formats, with no silent loss."""

from __future__ import annotations

import gzip
import json
import math
import os
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from converting import IDS, ODD, numbers
from hypothesis import given, settings, strategies as st

from rankgauge import InputError, Qrels, Run, UnknownName, convert, read_qrels, read_run
from rankgauge.core import native
from rankgauge.corpus import Conversion
from rankgauge.formats import InFormat, fast_trec
from rankgauge.formats.texts import TextReader, TextSource
from rankgauge.formats.writers import write_collection
from rankgauge.sample import sample_path

# Formats that this package reads itself, and those of the libraries in the test environment.
READ = ("trec", "csv", "tsv", "json", "jsonl", "parquet", "arrow")
# Each format with three others, so that each pair is there once; both ways are converted.
PAIRS = [(one, READ[(place + shift) % len(READ)]) for place, one in enumerate(READ) for shift in (1, 2, 3)]
TEXTS = ("jsonl", "csv", "tsv", "trec")
ENDS = {"trec": "txt"}


def named(folder: Path, word: str, form: str) -> Path:
    return folder / f"{word}.{ENDS.get(form, form)}"


def texts(path: Path) -> list[tuple[str, str, str, dict[str, object]]]:
    rows = (placed.row for placed in TextReader(TextSource.of(path)).rows())
    return [(row.id, row.title, row.text, dict(row.fields)) for row in rows]


# ---------------------------------------------------------------- judgments and runs


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_the_bundled_judgments_come_back_from_any_format_through_any_other(one, two, tmp_path):
    first, second, back = (
        named(tmp_path, word, form) for word, form in (("qrels", one), ("judgments", two), ("qrels-back", one))
    )
    convert(sample_path("qrels.txt"), first)
    convert(first, second)
    done = convert(second, back)
    assert back.read_bytes() == first.read_bytes()
    assert (done.kind, done.source_format, done.target_format) == ("qrels", two, one)
    assert (done.queries, done.rows, done.losses) == (30, 289, ())


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_the_bundled_run_comes_back_from_any_format_through_any_other(one, two, tmp_path):
    first, second, back = (
        named(tmp_path, word, form) for word, form in (("run", one), ("other-run", two), ("run-back", one))
    )
    convert(sample_path("runs/bm25.run"), first)
    convert(first, second)
    convert(second, back, name="bm25")
    assert numbers(read_run(back)) == numbers(read_run(sample_path("runs/bm25.run")))
    if {one, two} <= {"trec"}:
        assert back.read_bytes() == first.read_bytes()


SCORES = st.floats(allow_nan=False, allow_infinity=False)
RUNS = st.dictionaries(
    st.one_of(ODD, IDS), st.dictionaries(st.one_of(ODD, IDS), SCORES, max_size=3), min_size=1, max_size=3
)


@pytest.mark.slow
@pytest.mark.parametrize(("one", "two"), [*PAIRS, *((form, form) for form in READ)])
@settings(max_examples=8, deadline=None)
@given(scored=RUNS)
def test_any_run_round_trips_bit_for_bit_or_losses_are_reported(one, two, scored, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    run = Run.of(scored)
    paths = named(folder, "run", one), named(folder, "run2", two)
    try:
        there = convert(run, paths[0])
        back = convert(paths[0], paths[1], kind="run", source_format=one)
        again = read_run(paths[1])
    except InputError as error:
        # A run without rows is an unreadable file; errors about ids suggest a fix.
        assert error.fix  # noqa: PT017 - either way is fine
        return
    said = there.losses + back.losses
    kept = {q: docs for q, docs in numbers(run).items() if docs}
    got = {q: docs for q, docs in numbers(again).items() if docs}
    assert got == kept
    if numbers(again) != numbers(run):
        assert any("without documents" in loss for loss in said)


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_columns_are_known_by_their_first_bytes_and_others_are_counted(form, tmp_path):
    frame = pytest.importorskip("pandas").DataFrame({"rank": [1], "docno": ["d"], "qid": ["q"], "grade": [2.5]})
    path = tmp_path / "a.bin"
    (frame.to_parquet if form == "parquet" else frame.to_feather)(path)
    done = convert(path, tmp_path / "out.txt")
    assert (done.kind, done.source_format) == ("qrels", form)
    assert done.losses == ("1 column dropped: 'rank'",)
    assert (tmp_path / "out.txt").read_text() == "q 0 d 2.5\n"


def test_objects_in_memory_are_converted_with_name_but_without_settings(tmp_path):
    run = Run.of({"q": {"d": 0.1}}, name="mine", settings={"k1": 0.9})
    done = convert(run, tmp_path / "a.run")
    assert (tmp_path / "a.run").read_text() == "q Q0 d 1 0.1 mine\n"
    assert done.losses == ("the settings of the run (1)",)
    assert (done.source, done.source_format, done.kind) == ("run", "memory", "run")
    done = convert(run, tmp_path / "a.csv")
    assert done.losses[0] == "the name 'mine': csv cannot store it"
    done = convert(Qrels.of({"q": {"d": 1}}), tmp_path / "q.csv")
    assert (done.source, done.kind, done.losses) == ("judgments", "qrels", ())


# ---------------------------------------------------------------- reported losses


def lost(tmp_path: Path, text: str, target: str = "out.txt", **words: object) -> tuple[str, ...]:
    path = tmp_path / "in.txt"
    path.write_text(text)
    return convert(path, tmp_path / target, **words).losses


def test_an_iteration_that_is_not_0_is_counted(tmp_path):
    judged = "q1 0 d1 1\nq1 1 d2 1\nq1 2 d3 0\n"
    assert lost(tmp_path, judged) == ("iteration other than 0 in 2 lines: first '1'",)


def test_a_second_field_that_is_not_q0_is_counted(tmp_path):
    run = "q1 Q0 d1 1 2.0 t\nq1 q0 d2 2 1.0 t\n"
    assert lost(tmp_path, run) == ("second field other than Q0 in 1 line: first 'q0'",)


def test_the_tag_is_kept_if_the_format_has_one(tmp_path):
    run = "q1 Q0 d1 1 2.0 bm25\n"
    assert lost(tmp_path, run) == ()
    assert (tmp_path / "out.txt").read_text() == run
    assert lost(tmp_path, run, "out.csv") == ("the tag 'bm25': csv cannot store it",)
    assert lost(tmp_path, run, name="mine") == ("the tag 'bm25': replaced by 'mine'",)
    assert (tmp_path / "out.txt").read_text() == run.replace("bm25", "mine")


def test_several_tags_are_counted(tmp_path):
    run = "".join(f"q1 Q0 d{n} {n} {9 - n}.0 {tag}\n" for n, tag in enumerate("aabcd", 1))
    wanted = "4 tags, merged into one: 'a' (2 lines), 'b' (1 line), 'c' (1 line) and 1 more"
    assert lost(tmp_path, run) == (wanted,)
    assert " a\n" in (tmp_path / "out.txt").read_text()


def test_a_tag_with_blanks_is_joined(tmp_path):
    (tmp_path / "run.json").write_text('{"q": {"d": 1}}')
    done = convert(tmp_path / "run.json", tmp_path / "out.txt", name="my run")
    assert done.losses == ("the tag 'my run' is written without blanks: 'my_run'",)


def test_ranks_that_contradict_the_scores_are_counted_by_query(tmp_path):
    run = "q1 Q0 d1 1 1.0 t\nq1 Q0 d2 2 2.0 t\nq2 Q0 d1 2 1.0 t\nq2 Q0 d2 1 2.0 t\n"
    message = "the rank column contradicts the scores in 1 query, 'q1': the scores are used"
    assert lost(tmp_path, run) == (message,)


def test_ranks_are_compared_with_scores_even_if_queries_are_interleaved(tmp_path):
    rows = [("q1", 1, 3.0), ("q2", 1, 1.0), ("q1", 2, 2.0), ("q2", 2, 5.0), ("q1", 3, 2.0)]
    run = "".join(f"{q} Q0 d{n} {rank} {score} t\n" for n, (q, rank, score) in enumerate(rows))
    message = "the rank column contradicts the scores in 1 query, 'q2': the scores are used"
    assert lost(tmp_path, run) == (message,)


@pytest.mark.parametrize("form", ["trec", "csv", "tsv", "json", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_run_in_blocks_becomes_the_same_file(form, compiled, tmp_path, monkeypatch):
    run = tmp_path / "a.run"
    rows = [(q, d, (d * 7 + q) % 11 / 7) for q in range(60) for d in range(20)]
    ids = {3: "a,b", 5: 'say"so', 8: "ü"}
    run.write_text("".join(f"q{q} Q0 {ids.get(d, d)} {d + 1} {s!r} t{q % 2}\n" for q, d, s in rows))
    packed = tmp_path / "a.run.gz"  # which is read as a whole
    packed.write_bytes(gzip.compress(run.read_bytes()))
    monkeypatch.setattr(fast_trec, "_BLOCK", 3000)
    monkeypatch.setattr(fast_trec, "_PIECE", 500)
    monkeypatch.setattr("rankgauge.formats.parquet._ROWS", 70)
    if not compiled:
        monkeypatch.setattr(native, "core", None)
    streamed, whole = tmp_path / f"s.{form}", tmp_path / f"w.{form}"
    said, wanted = convert(run, streamed), convert(packed, whole)
    if form == "arrow":  # column buffers may be longer than their content
        batches = (pa.ipc.open_file(path).read_all().to_batches() for path in (streamed, whole))
        assert next(batches) == next(batches)
    else:
        assert streamed.read_bytes() == whole.read_bytes()
    assert (said.losses, said.notes) == (wanted.losses, wanted.notes)
    assert (said.queries, said.rows) == (60, 1200)
    assert "contradicts the scores in 60 queries, 'q0' and 59 more" in said.losses[-1]


def test_a_fault_in_a_later_block_names_its_line_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(fast_trec, "_BLOCK", 3000)
    monkeypatch.setattr(fast_trec, "_PIECE", 500)
    lines = [f"q{n // 10} Q0 d{n % 10} 1 {n}.5 t\n" for n in range(500)]
    (tmp_path / "a.run").write_text("".join([*lines, "q49 Q0 d3 1 2.5 t\n"]))
    with pytest.raises(InputError, match="lines 494 and 501"):
        convert(tmp_path / "a.run", tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


def test_each_rank_belongs_to_its_own_line(tmp_path):
    rows = [("q1", 3, 1.0), ("q2", 1, 9.0), ("q1", 2, 2.0), ("q2", 2, 5.0), ("q1", 1, 3.0)]
    run = "".join(f"{q} Q0 d{n} {rank} {score} t\n" for n, (q, rank, score) in enumerate(rows))
    assert lost(tmp_path, run) == ()


@pytest.mark.parametrize("rank", ["x", "1.5", "-1", "1e400", "nan"])
def test_a_rank_that_is_no_number_is_passed_over(rank, tmp_path):
    assert lost(tmp_path, f"q1 Q0 d1 1 2.0 t\nq1 Q0 d2 {rank} 1.0 t\n") in {
        (),
        ("the rank column contradicts the scores in 1 query, 'q1': the scores are used",),
    }


def test_comment_lines_are_counted(tmp_path):
    assert lost(tmp_path, "# one\nq1 0 d1 1\n# two\nq1 0 d2 1\n") == ("2 comment lines dropped",)


def test_ids_that_look_like_formulas_are_converted_unchanged(tmp_path):
    scores = {"-1": 2.0, "@x": 1.0, "+1": 0.5}
    convert(Run.of({"=1+1": scores}), tmp_path / "a.csv")
    assert dict(Run.of(tmp_path / "a.csv")["=1+1"]) == scores


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_additional_columns_are_counted(form, tmp_path):
    mark = {"csv": ",", "tsv": "\t"}.get(form)
    path = tmp_path / f"a.{form}"
    if mark:
        path.write_text(
            mark.join(["query_id", "doc_id", "score", "rank", "tag"])
            + "\n"
            + mark.join(["q", "d", "1", "1", "t"])
            + "\n"
        )
    else:
        row = {"query_id": "q", "doc_id": "d", "score": 1}
        path.write_text(json.dumps(row) + "\n" + json.dumps(row | {"doc_id": "e", "tag": 1, "rank": 2}) + "\n")
    done = convert(path, tmp_path / "out.json", kind="run")
    many = "columns" if mark else "keys"
    names = "'rank', 'tag'" if mark else "'tag', 'rank'"
    assert done.losses == (f"2 {many} dropped: {names}",)


def test_a_format_of_ranks_loses_the_scores_with_a_note(tmp_path):
    run = Run.of({"q": {"d": 2.0, "e": 1.0}})
    done = convert(run, tmp_path / "a.tsv", target_format="msmarco")
    assert done.losses == ("2 scores: msmarco stores only ranks",)
    assert (tmp_path / "a.tsv").read_text() == "q\td\t1\nq\te\t2\n"


def test_ranks_that_become_ranks_lose_nothing(tmp_path):
    (tmp_path / "a.tsv").write_text("q2\td2\t2\nq1\td1\t1\nq2\td1\t1\n")
    done = convert(tmp_path / "a.tsv", tmp_path / "b.tsv", kind="run", target_format="msmarco")
    assert done.losses == ()
    assert sorted((tmp_path / "b.tsv").read_text().splitlines()) == ["q1\td1\t1", "q2\td1\t1", "q2\td2\t2"]


def test_grades_below_0_are_ratings_elsewhere(tmp_path):
    judged = Qrels.of({"q": {"d": -1, "e": 2}})
    done = convert(judged, tmp_path / "a.json", target_format="rank-eval")
    wanted = "1 grade below 0 (pooled, not judged): rank-eval reads them as ratings"
    assert done.losses == (wanted,)
    assert convert(judged, tmp_path / "a.txt").losses == ()


def test_a_query_without_judgments_is_an_error_or_counted(tmp_path):
    judged = Qrels.of({"p": {}, "q": {"d": 1}, "r": {}})
    with pytest.raises(InputError, match="query 'p' has no judgment"):
        convert(judged, tmp_path / "a.csv")
    done = convert(judged, tmp_path / "a.csv", lossy=True)
    assert done.losses == ("2 queries without judgments: 'p' and 1 more",)
    assert (tmp_path / "a.csv").read_text() == "query_id,doc_id,relevance\nq,d,1\n"
    assert convert(judged, tmp_path / "a.json").losses == ()


def test_a_query_without_documents_is_counted(tmp_path):
    done = convert(Run.of({"p": {}, "q": {"d": 1.0}}), tmp_path / "a.csv")
    assert done.losses == ("1 query without documents: 'p'",)


@pytest.mark.parametrize("comments", [False, True])
def test_the_fields_are_the_same_however_the_lines_are_read(comments, tmp_path):
    from rankgauge.formats import losses
    from rankgauge.formats.columns import RUN

    lines = ["# head\n", "q Q0 a 1 9 t\n"]
    for n in range(200):
        lines.append(f"q{n % 7} {'Q0' if n % 5 else 'X'} d{n} {n % 11} {n}.5 {'t' if n % 3 else 'u'}\n")
        if comments and n % 50 == 0:
            lines.append("# comment\n")
        if comments and n % 70 == 0:
            lines.append("\n")
    lines[-1] = lines[-1].rstrip("\n")
    path = tmp_path / "a"
    path.write_text("".join(lines))
    found = losses.unread_fields(TextSource.of(path), RUN)
    cells = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    assert found.seconds == {b"X": sum(c[1] == "X" for c in cells)}
    assert found.tags == {t.encode(): sum(c[5] == t for c in cells) for t in "tu"}
    assert found.comments == sum(line.startswith("#") for line in lines)
    assert found.doc == b"a"


# ---------------------------------------------------------------- kinds of data


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a", "q1 0 d1 1\n", "qrels"),
        ("a", "q1 Q0 d1 1 2.0 t\n", "run"),
        ("a", "q1 d1 0\n", "qrels"),
        ("a.csv", "qid,docno,grade\nq,d,1\n", "qrels"),
        ("a.csv", "qid,docno,sim\nq,d,1\n", "run"),
        ("a.csv", "query_id,doc_id,score\nq,d,1\n", "run"),
        ("a.tsv", "query-id\tcorpus-id\tscore\nq\td\t1\n", "qrels"),
        ("a.jsonl", '{"query_id": "q", "doc_id": "d", "relevance": 1}\n', "qrels"),
        ("qrels.json", '{"q": {"d": 1}}', "qrels"),
        ("my-run.json", '{"q": {"d": 1}}', "run"),
        ("runs/bm25.json", '{"q": {"d": 1}}', "run"),
        ("a", "<top>\n<num>1</num>\n<title>x</title>\n</top>\n", "queries"),
        ("a", "<DOC>\n<DOCNO>1</DOCNO>\n<TEXT>x</TEXT>\n</DOC>\n", "documents"),
        ("a.jsonl", '{"_id": "1", "title": "t", "text": "x"}\n', "documents"),
        ("a.jsonl", '{"qid": "1", "query": "x"}\n', "queries"),
        ("queries.jsonl", '{"_id": "1", "text": "x"}\n', "queries"),
        ("corpus.tsv", "1\tx y z\n", "documents"),
    ],
)
def test_the_contents_of_an_unambiguous_file_are_recognized(name, text, kind, tmp_path):
    path = tmp_path / "in" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert convert(path, tmp_path / "out.jsonl").kind == kind


@pytest.mark.parametrize(
    ("name", "text", "kinds"),
    [
        ("a.json", '{"q": {"d": 1}}', ("qrels", "run")),
        ("a.csv", "qid,docno,score\nq,d,1\n", ("qrels", "run")),
        ("a.tsv", "1\t7\t1\n1\t8\t2\n", ("qrels", "run")),
        ("a.jsonl", '{"_id": "1", "text": "x"}\n', ("queries", "documents")),
        ("a.tsv", "1\thello there\n", ("queries", "documents")),
    ],
)
def test_an_ambiguous_file_needs_a_named_format(name, text, kinds, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        convert(path, tmp_path / "out.jsonl")
    assert all(f"--kind {kind}" in caught.value.fix for kind in kinds)
    assert not (tmp_path / "out.jsonl").exists()


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "a.md").write_text("# Notes\nnothing\n")
    with pytest.raises(InputError, match="cannot be converted"):
        convert(tmp_path / "a.md", tmp_path / "b.csv")
    (tmp_path / "empty").write_text("\n# only this\n")
    with pytest.raises(InputError, match="the file is empty"):
        convert(tmp_path / "empty", tmp_path / "b.csv")


def test_a_path_with_its_format_is_read_in_it(tmp_path):
    (tmp_path / "a.run").write_text("q\td1\t1\nq\td2\t2\n")
    done = convert(InFormat(tmp_path / "a.run", "trec3"), tmp_path / "b.json")
    assert (done.source_format, done.notes) == ("trec3", ())
    assert json.loads((tmp_path / "b.json").read_text()) == {"q": {"d1": 1.0, "d2": 2.0}}
    ranked = convert(tmp_path / "a.run", tmp_path / "c.run", kind="run")
    assert "read as a rank" in ranked.notes[0]


def test_texts_are_read_in_the_format_that_is_named(tmp_path):
    (tmp_path / "a.dat").write_text('q1,"to be, or not"\n')
    done = convert(tmp_path / "a.dat", tmp_path / "b.jsonl", kind="queries", source_format="csv")
    assert done.source_format == "csv"
    assert (tmp_path / "b.jsonl").read_text() == '{"_id": "q1", "text": "to be, or not"}\n'
    with pytest.raises(UnknownName, match="texts cannot be read from the format 'letor'"):
        convert(tmp_path / "a.dat", tmp_path / "c.tsv", kind="queries", source_format="letor")


@pytest.mark.parametrize("there", [False, True], ids=["new", "an empty folder"])
def test_a_partly_written_collection_is_removed(there, tmp_path):
    target = tmp_path / "collection"
    if there:
        target.mkdir()

    def breaking():
        yield b"one line\n"
        raise InputError("the source ends here", fix="mend it")

    with pytest.raises(InputError, match="the source ends here"):
        write_collection(target, {"corpus.jsonl": [b"{}\n"], "queries.jsonl": breaking()})
    assert list(tmp_path.iterdir()) == ([target] if there else [])
    assert not there or list(target.iterdir()) == []


@pytest.mark.parametrize("name", ["a.zip", "a.xlsx", "a.rar", "a.tar.gz", "A.DB"])
def test_a_name_with_an_unsupported_suffix_is_refused(name, tmp_path):
    for source in ("qrels.txt", "queries.jsonl"):
        with pytest.raises(InputError):
            convert(sample_path(source), tmp_path / name)
    with pytest.raises(InputError, match="are not written"):
        convert(sample_path("qrels.txt"), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_format_that_is_named_may_have_any_name_but_that_of_an_archive(tmp_path):
    convert(sample_path("qrels.txt"), tmp_path / "a.db", target_format="csv")
    assert (tmp_path / "a.db").read_text().startswith("query_id,doc_id,relevance\n")
    with pytest.raises(InputError, match="are not written"):
        convert(sample_path("qrels.txt"), tmp_path / "a.zip", target_format="csv")


@pytest.mark.parametrize(
    ("form", "left"), [("rank-eval", "match_all"), ("opensearch", "text of each query"), ("quepid", "text of each")]
)
def test_fields_that_another_tool_needs_are_named(form, left, tmp_path):
    done = convert(sample_path("qrels.txt"), tmp_path / "a", target_format=form)
    assert left in done.notes[-1]


def test_unknown_words_are_named(tmp_path):
    with pytest.raises(UnknownName, match="kind='qrel' is not valid"):
        convert(sample_path("qrels.txt"), tmp_path / "a", kind="qrel")
    with pytest.raises(UnknownName, match="target_format='xls' is not valid"):
        convert(sample_path("qrels.txt"), tmp_path / "a", target_format="xls")


def test_its_input_is_not_overwritten(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("q1 0 d1 1\n")
    (tmp_path / "link.csv").symlink_to(path)
    for target in (path, tmp_path / "link.csv"):
        with pytest.raises(InputError, match="the target is the source file"):
            convert(path, target)
    assert path.read_text() == "q1 0 d1 1\n"


def test_standard_input_and_output_are_converted(tmp_path, monkeypatch, capfdbinary):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"q1 0 d1 1\n"))
    with path.open("rb") as raw, os.fdopen(os.dup(raw.fileno()), "r") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        done = convert("-", "-", target_format="csv")
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b"query_id,doc_id,relevance\nq1,d1,1\n"
    assert (done.source, done.target) == ("<stdin>", "<stdout>")


def test_a_conversion_is_printed_in_lines():
    done = Conversion("a", "b", "run", "trec", "csv", queries=1, rows=2, losses=("the tag",), notes=("odd",))
    assert str(done).split("\n") == ["b: a run of 1 query, 2 documents (trec to csv)", "lost: the tag", "note: odd"]


# ---------------------------------------------------------------- real data


@pytest.fixture
def data() -> Path:
    folder = os.environ.get("RANKGAUGE_TEST_DATA")
    if folder is None:
        pytest.skip("RANKGAUGE_TEST_DATA is not set: no real file was converted")
    return Path(folder)


@pytest.mark.parametrize("form", READ)
def test_real_judgments_and_runs_come_back(form, data, tmp_path):
    files = {
        "cranfield/trec/qrels.txt": "qrels",
        "cranfield/qrels/test.tsv": "qrels",
        "formats/trec_qrels_decimal_grades.qrels": "qrels",
        "formats/qrels_web2010_negative_grades.txt.gz": "qrels",
        "cranfield/runs/rrf-bm25-minilm-k60.run.gz": "run",
        "formats/run_tabs_crlf.run.gz": "run",
    }
    # All files in one format, and a small file of each kind in the others.
    small = ("cranfield/qrels/test.tsv", "formats/run_tabs_crlf.run.gz")
    for name in files if form == "jsonl" else small:
        kind = files[name]
        target = named(tmp_path, kind, form)
        done = convert(data / name, target)
        assert done.kind == kind
        read = read_qrels if kind == "qrels" else read_run
        assert numbers(read(target)) == numbers(read(data / name))


def test_a_score_that_a_float_of_32_bits_would_lose_is_kept(tmp_path):
    value = math.nextafter(1e9, math.inf)
    for form in READ:
        target = named(tmp_path, "run", form)
        convert(Run.of({"q": {"d": value}}), target)
        assert read_run(target)["q"]["d"] == value


# ---------------------------------------------------------------- shapes of other tools


@pytest.mark.parametrize(
    ("form", "end"),
    [
        ("beir", "tsv"),
        ("beir", "txt"),
        ("rank-eval", "json"),
        ("rank-eval", "txt"),
        ("opensearch", "json"),
        ("opensearch", "csv"),
        ("quepid", "csv"),
        ("quepid", "txt"),
    ],
)
@pytest.mark.parametrize("said", [True, False])
def test_judgments_come_back_from_the_shapes_of_other_tools(form, end, said, tmp_path):
    path = tmp_path / f"judgments.{end}"
    convert(sample_path("qrels.txt"), path, target_format=form)
    convert(path, tmp_path / "back.txt", source_format=form if said else None)
    assert numbers(read_qrels(tmp_path / "back.txt")) == numbers(read_qrels(sample_path("qrels.txt")))


def test_ranks_come_back_from_three_columns(tmp_path):
    first, second = tmp_path / "run-1.tsv", tmp_path / "run-2.tsv"
    convert(sample_path("runs/bm25.run"), first, target_format="msmarco")
    convert(first, second, source_format="msmarco", target_format="msmarco")
    assert first.read_bytes() == second.read_bytes()
