"""Subtopic judgments: construction, content, and evaluation."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import diverse
import numpy as np
import pytest

import rankgauge
from rankgauge import InputError, MismatchError, Qrels, Run, SubtopicQrels, evaluate
from rankgauge.data import fingerprint, read_subtopic_qrels
from rankgauge.evaluation import read_judgments

JUDGED = {"q1": {"d1": {"a": 1.0}, "d2": {"a": 0.0, "b": 2.0}}, "q2": {"x": {"b": 1.0}}}
LINES = "q1 a d1 1\nq1 a d2 0\nq1 b d2 2\nq2 b x 1\n"
RUN = {"q1": ["d2", "d1"], "q2": ["y", "x"]}
COLUMNS = {
    "query_id": ["q1", "q1", "q1", "q2"],
    "subtopic_id": ["a", "a", "b", "b"],
    "doc_id": ["d1", "d2", "d2", "x"],
    "relevance": [1, 0, 2, 1],
}
ROWS = list(zip(*COLUMNS.values(), strict=True))


def as_dicts(judged: SubtopicQrels) -> dict[str, Any]:
    return {query: dict(judged[query]) for query in judged}


class Judgment:
    """A judgment as in ir_datasets."""

    def __init__(self, query: str, subtopic: str, doc: str, grade: int) -> None:
        self.query_id, self.subtopic_id, self.doc_id, self.relevance = query, subtopic, doc, grade


# ---- construction


@pytest.mark.parametrize(
    "source",
    [
        JUDGED,
        COLUMNS,
        ROWS,
        [dict(zip(COLUMNS, row, strict=True)) for row in ROWS],
        [Judgment(*row) for row in ROWS],
        ROWS[::-1][1:] + ROWS[::-1][:1],
    ],
    ids=["mapping", "columns", "rows", "dicts", "objects", "other-order"],
)
def test_all_sources_give_the_same_judgments(source: Any) -> None:
    assert as_dicts(SubtopicQrels.of(source)) == JUDGED


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("qrels.div", LINES),
        ("qrels", f"# a comment\n\n{LINES}"),
        ("a.csv", "topic,subtopic,docno,rel\n" + LINES.replace(" ", ",")),
        ("a.tsv", "query_id\titeration\tdoc_id\tgrade\n" + LINES.replace(" ", "\t")),
        ("a.json", json.dumps(JUDGED)),
        ("plain", json.dumps(JUDGED)),
        ("b.json", json.dumps(COLUMNS)),
        ("a.jsonl", "".join(json.dumps(dict(zip(COLUMNS, r, strict=True))) + "\n" for r in ROWS)),
    ],
)
def test_all_files_give_the_same_judgments(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert as_dicts(read_subtopic_qrels(path)) == JUDGED
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert read_subtopic_qrels(packed) == read_subtopic_qrels(path)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_gives_the_same_judgments(library: str) -> None:
    frame = pytest.importorskip(library).DataFrame(COLUMNS)
    assert as_dicts(SubtopicQrels.of(frame)) == JUDGED


def test_a_list_of_subtopics_means_grade_1() -> None:
    judged = SubtopicQrels.of({"q": {"d": ["a", "b"], "e": {"c"}}})
    assert as_dicts(judged) == {"q": {"d": {"a": 1.0, "b": 1.0}, "e": {"c": 1.0}}}


@pytest.mark.parametrize(
    ("source", "what", "fix"),
    [
        ({"q": {"d": 1}}, "got 1 for subtopics", '"subtopic": grade'),
        ({"q": ["d"]}, "for documents", '"subtopic": grade'),
        ([("q", "d", 1)], "expected query, subtopic, document, grade", "pass rows"),
        ([("q", "s", "d", "x")], "grade 'x' is text, not a number", "as a number"),
        ([("q", "s", "d", float("nan"))], "NaN is not a finite number", "remove"),
        ([("q", "s", "d", 1), ("q", "s", "d", 0)], "duplicate document 'd'", "keep one"),
        ([("q", "0", "d", 1)], "these judgments have no subtopics: all are of '0'", "q1 2 d1 1"),
        ({"query_id": ["q"], "doc_id": ["d"], "relevance": [1]}, "for documents", "write"),
        (7, "got int, expected judgments by subtopic", "pass a mapping"),
        ([], "there are no rows", "pass rows of query_id, subtopic_id"),
        (Qrels.of({"q": {"d"}}), "these judgments have no subtopics", "pass judgments by subtopic"),
        (Run.of({"q": ["d"]}), "got the run 'run', expected judgments", "by subtopic"),
    ],
    ids=["grade", "list", "pairs", "text", "nan", "twice", "ordinary", "columns", "number", "none", "qrels", "run"],
)
def test_invalid_judgments_are_refused_with_a_fix(source: Any, what: str, fix: str) -> None:
    with pytest.raises(InputError) as error:
        SubtopicQrels.of(source)
    assert what in str(error.value)
    assert fix in error.value.fix


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a", "q1 a d1 1\nq1 a d1\n", "a, line 2: got 3 fields, expected 4"),
        ("a", "q1 a d1 one\n", "a, line 1: grade 'one' is text"),
        ("a", LINES + "\nq1 b d2 1\n", "a, lines 3 and 6: duplicate document 'd2' for subtopic"),
        ("a", "\n", "there are no rows"),
        ("a.csv", "query,subtopic,doc\nq,s,d\n", "the columns are 'query', 'subtopic', 'doc'"),
        ("a.csv", "query,subtopic,doc,grade\nq,s,d\n", "a.csv, line 2: got 3 columns, expected 4"),
        ("a.jsonl", '{"query": 1}\n', "the columns are 'query'; judgments by subtopic need"),
    ],
)
def test_a_file_that_does_not_fit_names_the_line(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_subtopic_qrels(path)
    assert message in str(error.value)
    assert error.value.fix


def test_an_underscore_is_no_digit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("q1 a d1 1_0\n", encoding="utf-8")
    with pytest.raises(InputError, match="grade '1_0' is text"):
        read_subtopic_qrels(path)


# ---- content


def test_ordinary_judgments_have_the_highest_grade() -> None:
    judged = SubtopicQrels.of({"q": {"d": {"a": -1, "b": -2}, "e": {"a": 0, "b": 3}}})
    assert judged.qrels == Qrels.of({"q": {"d": -1, "e": 3}})
    assert Qrels.of(judged) is judged.qrels


def test_they_are_immutable_compared_by_content_and_pickled() -> None:
    judged = SubtopicQrels.of(JUDGED)
    with pytest.raises(ValueError, match="read-only"):
        judged.grade[0] = 7
    assert pickle.loads(pickle.dumps(judged)) == judged == SubtopicQrels.of(ROWS[::-1])
    assert judged != SubtopicQrels.of({"q1": {"d1": ["a"]}})
    assert "q1" in judged
    with pytest.raises(KeyError):
        judged["q9"]


def test_a_fingerprint_depends_on_subtopics() -> None:
    one, other = SubtopicQrels.of({"q": {"d": ["a"]}}), SubtopicQrels.of({"q": {"d": ["b"]}})
    assert one.qrels == other.qrels
    assert fingerprint(one) != fingerprint(other) != fingerprint(other.qrels)
    assert fingerprint(SubtopicQrels.of(ROWS)) == fingerprint(SubtopicQrels.of(ROWS[::-1]))


# ---- evaluation


def test_ordinary_measures_can_be_combined_with_those_of_subtopics() -> None:
    judged = SubtopicQrels.of(JUDGED)
    names = ["alpha_nDCG@10", "nDCG@10", "AP"]
    both = evaluate(judged, RUN, names)
    assert evaluate(judged.qrels, RUN, names[1:]).per_query.tolist() == both.per_query[:, 1:].tolist()
    assert evaluate(judged, RUN, names[1:]).mean() == evaluate(judged.qrels, RUN, names[1:]).mean()
    assert any("judged by subtopic" in note for note in both.notes)


def test_every_way_to_give_a_run_gives_the_same_bits(tmp_path: Path) -> None:
    judged, run = diverse.batch(4)
    del run["unknown"]
    names = ["alpha_nDCG@10", "nNRBP", "AP_IA", "AP"]
    wanted = evaluate(SubtopicQrels.of(judged), run, names).per_query
    path, qrels = tmp_path / "a.run", tmp_path / "qrels.div"
    run = {query: scores for query, scores in run.items() if scores}
    path.write_text(
        "".join(f"{q} Q0 {d} 0 {s!r} t\n" for q, own in run.items() for d, s in own.items()), encoding="utf-8"
    )
    qrels.write_text(
        "".join(
            f"{q} {s} {d} {g!r}\n" for q, docs in judged.items() for d, own in docs.items() for s, g in own.items()
        ),
        encoding="utf-8",
    )
    blocks = ({query: scores} for query, scores in run.items())
    for given in (path, Run.of(run), blocks):
        found = evaluate(str(qrels), given, names).per_query
        assert np.array_equal(found, wanted, equal_nan=True)


def test_a_query_that_is_missing_covers_nothing() -> None:
    found = evaluate(SubtopicQrels.of(JUDGED), {"q1": ["d2", "d1"]}, ["StRecall@5", "nNRBP"])
    assert found.per_query[1].tolist() == [0.0, 0.0]
    only = evaluate(JUDGED, {"q1": ["d2"]}, "StRecall@5", queries="intersection")
    assert only.query_ids == ("q1",)


def test_without_a_relevant_document_a_value_is_undefined() -> None:
    judged = {"q1": {"d": {"a": 1, "b": 0}}, "q2": {"d": {"a": 0}}}
    found = evaluate(judged, {"q1": ["d"], "q2": ["d"]}, "alpha_nDCG@5")
    assert found.mean() == {"alpha_nDCG@5": 0.5}
    assert "alpha_nDCG@5: undefined for 1 query, counted 0 in the mean (J103)" in found.notes
    assert evaluate(judged, {"q1": ["d"]}, "P_IA@1", undefined="skip").mean() == {"P_IA@1": 1.0}


def test_a_tie_of_documents_that_cover_different_subtopics_is_counted() -> None:
    same = {"q": {"d": {"a": 1}, "e": {"a": 1}, "f": {"a": 0}}}
    other = {"q": {"d": {"a": 1}, "e": {"b": 1}, "f": {"a": 0}}}
    run = {"q": {"d": 1.0, "e": 1.0, "f": 0.5, "g": 0.5}}
    assert evaluate(same, run, "alpha_nDCG@5").counts["tied"] == 0
    assert evaluate(other, run, "alpha_nDCG@5").counts["tied"] == 1
    # Ordinary measures value both equally.
    assert evaluate(SubtopicQrels.of(other), run, "AP").counts["tied"] == 0
    assert evaluate(same, {"q": {"d": 1.0, "g": 1.0}}, "NRBP").counts["tied"] == 1


@pytest.mark.parametrize("ties", ["best", "worst", "mean"])
def test_where_grades_alone_would_decide_ties_it_is_refused(ties: Any) -> None:
    """The highest grade of a document does not determine its gain after other documents."""
    with pytest.raises(InputError) as error:
        evaluate(JUDGED, RUN, ["alpha_nDCG@5", "AP", "NRBP"], ties=ties)
    assert f"ties={ties}: alpha_nDCG@5, NRBP" in str(error.value)
    assert "is not available for measures of subtopics" in error.value.what
    assert "ties='trec'" in error.value.fix
    assert evaluate(SubtopicQrels.of(JUDGED), RUN, "AP", ties=ties).mean()


def test_judgments_without_subtopics_are_refused_where_a_measure_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text("q1 0 d1 1\n", encoding="utf-8")
    for source in ({"q1": {"d1": 1}}, Qrels.of({"q1": {"d1": 1}}), path, {"q1": {"d1"}}):
        with pytest.raises(InputError) as error:
            evaluate(source, {"q1": ["d1"]}, ["AP", "alpha_nDCG@5"])
        assert "subtopic" in error.value.what + error.value.fix
        assert error.value.fix
    with pytest.raises(InputError, match="reads subtopics, which records do not have"):
        evaluate([(["d1"], {"d1"})], None, "alpha_nDCG@5")


def test_one_subtopic_for_each_query_is_a_warning() -> None:
    found = evaluate({"q": {"d": ["a"]}, "p": {"d": ["b"]}}, {"q": ["d"]}, "NRBP")
    assert any("WARNING" in n and "no query has more than one subtopic" in n for n in found.notes)


def test_judgments_by_subtopic_read_as_ordinary_ones_have_a_note(tmp_path: Path) -> None:
    path = tmp_path / "qrels.div"
    path.write_text(LINES, encoding="utf-8")
    with pytest.raises(InputError) as error:
        evaluate(path, RUN, "AP")
    assert "'a' and 'b' in the second field are subtopics" in error.value.fix
    assert "read_subtopic_qrels(path).qrels" in error.value.fix
    # Judging the same pair twice with the same label changes nothing.
    path.write_text("q1 0 d1 1\nq1 0 d1 0\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        evaluate(path, RUN, "AP")
    assert "subtopic" not in error.value.fix


def test_ids_that_do_not_meet_are_an_error_as_ever() -> None:
    with pytest.raises(MismatchError, match="no query of the run is judged"):
        evaluate(JUDGED, {"z": ["d1"]}, "alpha_nDCG@5")


def test_a_file_is_read_as_the_measures_need_it(tmp_path: Path) -> None:
    path = tmp_path / "qrels.div"
    path.write_text("q1 1 d1 1\nq1 2 d2 1\n", encoding="utf-8")
    assert isinstance(read_judgments(path, ["AP", "alpha_nDCG@5"]), SubtopicQrels)
    assert isinstance(read_judgments(path, "AP"), Qrels)
    assert isinstance(read_judgments(path), Qrels)
    assert isinstance(read_judgments(path, "StRecall@5", format="trec"), SubtopicQrels)
    with pytest.raises(rankgauge.UnknownName, match="cannot be read from the format 'smart'"):
        read_judgments(path, "StRecall@5", format="smart")


# ---- public functions


def test_runs_are_compared_by_it() -> None:
    judged, run = diverse.batch(6)
    del run["unknown"]
    other = {query: dict(list(own.items())[::2]) for query, own in run.items()}
    found = rankgauge.compare(judged, {"a": run, "b": other}, ["alpha_nDCG@10", "AP"])
    alone = evaluate(judged, run, "alpha_nDCG@10").mean()["alpha_nDCG@10"]
    assert found.evaluations[0].mean()["alpha_nDCG@10"] == alone
    assert found.primary.name == "alpha_nDCG"


def test_a_report_page_is_written(tmp_path: Path) -> None:
    path = tmp_path / "qrels.div"
    path.write_text(LINES, encoding="utf-8")
    for source in (path, JUDGED, SubtopicQrels.of(JUDGED)):
        page = rankgauge.html_report(source, {"a": RUN}, ["alpha_nDCG@5", "AP"], plots=False)
        assert "alpha_nDCG@5" in page


def test_an_evaluation_is_kept_with_the_fingerprint_of_its_subtopics(tmp_path: Path) -> None:
    judged = SubtopicQrels.of(JUDGED)
    with rankgauge.History(tmp_path / "history.db") as history:
        entry = history.add(evaluate(judged, RUN, "alpha_nDCG@10"), judged)
        assert entry.qrels == fingerprint(judged)


def test_names_of_ndeval_and_ir_measures_parse() -> None:
    for name, ours in (
        ("alpha-nDCG@20", "alpha_nDCG@20"),
        ("ERR-IA@20", "ERR_IA@20"),
        ("MAP-IA", "AP_IA"),
        ("strec@10", "StRecall@10"),
        ("nNRBP(alpha=0.9,beta=0.8)", "nNRBP(alpha=0.9,p=0.8)"),
        ("P-IA@5", "P_IA@5"),
        ("alpha_nDCG(alpha=0.5,rel=2)@20", "alpha_nDCG(rel=2)@20"),
    ):
        assert str(rankgauge.parse(name)) == ours
