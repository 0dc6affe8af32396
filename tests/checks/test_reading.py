import gzip
import math

import pytest
from checked import good, only

from rankgauge import FormatError, InputError, check
from rankgauge.checks.readers import CheckInput, open_qrels, open_runs, read_into_memory
from rankgauge.formats import InFormat, fast_trec, readers
from rankgauge.formats.columns import RUN

QRELS = {"q1": {"d1": 1, "d2": 0}}


def test_broken_lines_are_counted_and_the_others_checked(tmp_path):
    path = tmp_path / "a.run"
    lines = ["q1 Q0 d1 1 9.0 t", "q1 Q0 d2 2", "# said", "", "q1 Q0 d2 2 x t"]
    lines += [f"broken {n}" for n in range(6)] + ["q1 Q0 d2 3 1.0 t"]
    path.write_text("\n".join(lines))
    problem = only(check(QRELS, path), "F101")
    assert (problem.evidence.count, problem.evidence.of) == (8, 10)
    assert [location.line for location in problem.evidence.locations] == [2, 5, 6, 7, 8]
    (measured,) = problem.evidence.effects
    assert math.isnan(measured.before)
    assert measured.after == 1.0


def test_a_broken_first_line_does_not_set_the_number_of_fields(tmp_path):
    path = tmp_path / "a.qrels"
    path.write_text("q1 d1 1\nq1 0 d1 1\nq1 0 d2 0\nq1 0 d3 0\n")
    problem = only(check(path), "F101")
    assert [location.line for location in problem.evidence.locations] == [1]


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("a.csv", "query_id,doc_id,score\nq1,d1,2\nq1\nq1,d2,1\n,d3,1\n", [3, 5]),
        ("a.tsv", "qid\tdocno\tscore\nq1\td1\t2\nq1\td2\tx\nq1\td2\t1\n", [3]),
        (
            "a.jsonl",
            '{"qid": "q1", "docno": "d1", "score": 2}\n{"qid": \n[]\n{"qid": "q1"}\n{"qid": "q"}\n',
            [2, 3, 4, 5],
        ),
    ],
    ids=["csv", "tsv", "jsonl"],
)
def test_tables_are_read_past_their_broken_lines(tmp_path, name, text, lines):
    path = tmp_path / name
    path.write_text(text)
    problem = only(check(QRELS, path), "F101")
    assert problem.evidence.count == len(lines)
    assert [location.line for location in problem.evidence.locations] == lines


@pytest.mark.parametrize(
    "run",
    [
        pytest.param({"q1": {"d1": 1.0, "d2": math.nan}}, id="mapping"),
        pytest.param({"q1": {"d1": 1.0, "d2": None}}, id="missing"),
        pytest.param({"qid": ["q1", "q1"], "docno": ["d1", "d2"], "score": [1.0, math.inf]}, id="columns"),
    ],
)
def test_non_finite_numbers_in_memory_are_skipped(run):
    problem = only(check(QRELS, run), "R102")
    assert (problem.evidence.count, problem.evidence.of) == (1, 2)
    assert problem.evidence.locations[0].document == "d2"


def test_a_json_file_is_read_past_numbers_that_are_not_finite(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"q1": {"d1": 1.0, "d2": NaN}}')
    assert only(check(QRELS, path), "R102").evidence.source == str(path)


def test_a_grade_that_is_not_finite_is_a_line_that_cannot_be_read():
    problem = only(check({"q1": {"d1": 1, "d2": math.nan, "d3": 0}}), "F101")
    assert (problem.evidence.count, problem.evidence.locations[0].document) == (1, "d2")


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.run", "", FormatError),
        ("a.run", "hello\nworld\n", FormatError),
        ("a.json", "{", FormatError),
        ("a.json", '{"q1": 3}', InputError),
        ("a.csv", "a,b\n1,2\n", FormatError),
        ("missing/a.run", None, InputError),
    ],
    ids=["empty", "no run", "truncated", "no mapping", "other columns", "missing"],
)
def test_unreadable_input_is_the_same_error_as_elsewhere(tmp_path, name, text, kind):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(kind) as caught:
        check(QRELS, path)
    with pytest.raises(kind) as wanted:
        readers.read_table(path, RUN)
    assert str(caught.value) == str(wanted.value)


def test_truncated_compressed_data_are_checked_up_to_their_end(tmp_path):
    path = tmp_path / "a.run.gz"
    text = "".join(f"q1 Q0 d{n} {n} {99999 - n}.5 t\n" for n in range(1, 30000))
    whole = gzip.compress(text.encode())
    path.write_bytes(whole[: len(whole) // 2])
    found = check(QRELS, path)
    assert only(found, "F101").evidence.count == 1
    assert "truncated" in only(found, "F101").message


@pytest.mark.parametrize("mixed", [False, True], ids=["query by query", "queries mixed"])
def test_a_file_is_checked_as_its_mapping_is(tmp_path, mixed):
    qrels, run = good()
    run["q2"] = {d: float(int(s) // 4) for d, s in run["q2"].items()}
    rows = [
        f"{query} Q0 {doc} {rank} {score} t\n"
        for query, docs in run.items()
        for rank, (doc, score) in enumerate(docs.items(), start=1)
    ]
    if mixed:
        rows.sort(key=lambda row: row.split()[3])
    path = tmp_path / "run"
    path.write_text("".join(rows))
    one, other = check(qrels, run), check(qrels, path)
    assert [(p.code, p.message, p.evidence.count, p.evidence.effects) for p in one.findings] == [
        (p.code, p.message, p.evidence.count, p.evidence.effects) for p in other.findings
    ]


def test_blocks_of_a_file_have_lines_and_ranks(tmp_path):
    path = tmp_path / "a.run"
    path.write_text("# one\n\n" + "".join(f"q{n // 3} Q0 d{n} {n % 3} {9 - n % 3} t\n" for n in range(9)))
    (block,) = CheckInput("a", str(path)).blocks()
    assert block.lines.tolist() == list(range(3, 12))
    assert block.ranks.tolist() == [0, 1, 2] * 3


def test_lines_are_numbered_through_all_blocks_of_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(fast_trec, "_BLOCK", 1 << 12)
    monkeypatch.setattr(fast_trec, "_PIECE", 1 << 10)
    path = tmp_path / "a.run"
    path.write_text("".join(f"q{n // 20} Q0 d{n} {n % 20 + 1} {99 - n % 20} t\n" for n in range(2000)))
    blocks = list(CheckInput("a", str(path)).blocks())
    assert len(blocks) > 2
    lines = [line for block in CheckInput("a", str(path)).blocks() for line in block.lines.tolist()]
    assert lines == list(range(1, 2001))
    ranks = [rank for block in CheckInput("a", str(path)).blocks() for rank in block.ranks.tolist()]
    assert ranks == [*range(1, 21)] * 100


def test_a_run_of_three_columns_is_read_in_its_named_format(tmp_path):
    path = tmp_path / "three.run"
    path.write_text("q1 d1 0.5\nq1 d2 0.25\nq2 d3 7\n")
    qrels = {"q1": {"d1": 1}, "q2": {"d3": 1}}
    with pytest.raises(FormatError, match="the third may be a rank or a score"):
        check(qrels, [path])
    for form, scores in (("trec3", [0.5, 0.25, 7]), ("msmarco", [-0.5, -0.25, -7])):
        (given,) = open_runs([InFormat(path, form)])
        assert given.source == str(path)
        assert given.whole.values.tolist() == scores
        assert [block.values.tolist() for block in given.blocks()] == [scores]
        assert read_into_memory(given).whole.values.tolist() == scores


def test_the_third_column_of_a_broken_run_is_ambiguous(tmp_path):
    path = tmp_path / "three.run"
    path.write_text("q1 d1 0.5\nq1 d2\nq1 d3 0.25\n")
    with pytest.raises(FormatError, match="line 2: got 2 fields, expected 3"):
        check(QRELS, path)
    # In judgments, it is the grade.
    assert open_qrels(path).whole.docs.tolist() == [b"d1", b"d3"]


@pytest.mark.parametrize("rows", [999, 1000, 1001, 2500])
def test_no_other_line_is_lost_however_long_the_file_with_a_broken_one(rows, tmp_path):
    path = tmp_path / "broken.run"
    lines = [f"q{n // 50} Q0 d{n} {n % 50} {100 - n % 50} t\n" for n in range(rows)]
    path.write_text("".join(lines) + "q0 Q0 last 51 nan t\n")
    given = read_into_memory(CheckInput("broken", str(path)))
    assert given.faults.numbers == 1
    assert given.whole.docs.tolist() == [b"d%d" % n for n in range(rows)]
