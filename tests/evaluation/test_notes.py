"""Notes of every evaluation: present where they are true, and only there."""

import gzip
import re

import pytest
from hypothesis import given, strategies as st

from rankgauge import Qrels, Run, convert, evaluate, read_qrels, write_qrels
from rankgauge.checks import FINDING_KINDS
from rankgauge.evaluation.questions import QueryFields

SEVERAL = ["P@2", "AP"]


def noted(code, qrels, run, measures=SEVERAL, **words):
    """Return the notes with a code, which must be the same for the run and its table."""
    said = evaluate(qrels, run, measures, **words).notes
    assert evaluate(qrels, Run.of(run), measures, **words).notes == said
    return [note for note in said if note.endswith(f"({code})")]


def test_every_code_below_a_table_can_be_explained():
    qrels = {f"q{n}": {"a": 1, "b": 0.5} for n in range(12)} | {"none": {"a": 0}}
    run = {query: {"a": 1.0, "x": 1.0} for query in qrels}
    codes = set()
    for measures in (["nDCG@10", "R@1", "AP"], "Rprec", ["AP", "nDCG(rel=1)"][:1]):
        for note in evaluate(qrels, run, measures).notes:
            codes |= set(re.findall(r"\(([A-Z]\d\d\d)\)$", note))
    assert codes >= {"J103", "J104", "R105", "R106", "P106", "M101"}
    assert codes <= set(FINDING_KINDS)


# ---- grades


def test_grades_between_0_and_the_level_are_counted():
    qrels = {"q": {"a": 1, "b": 0.5, "c": 0.25, "d": 0, "e": -1, "f": 0.99}}
    (said,) = noted("J104", qrels, {"q": {"a": 1.0, "b": 0.5}})
    assert said == "grades between 0 and 1 never count as relevant: 3 (J104)"


@pytest.mark.parametrize(
    "measures",
    [["nDCG@2", "ERR@2"], ["AP(rel=0.2)", "P(rel=0.25)@2"], ["AP(rel=2)", "P(rel=2)@2"]],
    ids=["measures that read grades", "a lower level", "a higher level is meant"],
)
def test_grades_that_reach_the_level_are_not(measures):
    assert not noted("J104", {"q": {"a": 1, "b": 0.5, "c": 0.25}}, {"q": {"a": 1.0}}, measures)


def test_the_lowest_level_that_is_asked_for_counts():
    qrels = {"q": {"a": 1, "b": 0.5, "c": 0.25}}
    (said,) = noted("J104", qrels, {"q": {"a": 1.0}}, ["AP(rel=0.5)", "P(rel=2)@2"])
    assert said.startswith("grades between 0 and 0.5 never count as relevant: 1 ")


def test_negative_grades_are_counted_as_before():
    qrels = {"q": {"a": 1, "b": -1, "c": -2, "d": 0.5}}
    assert (
        "2 judgments with a negative grade: pooled but not judged" in evaluate(qrels, {"q": {"a": 1.0}}, SEVERAL).notes
    )


# ---- queries without relevant documents


def test_undefined_values_have_a_code_where_nothing_is_relevant():
    qrels = {"q1": {"a": 1}, "q2": {"a": 0}}
    run = {"q1": {"a": 1.0}, "q2": {"a": 1.0}}
    (said,) = noted("J103", qrels, run, ["AP", "R@5"])
    assert said == "AP, R@5: undefined for 1 query, counted 0 in the mean (J103)"


def test_undefined_values_have_none_where_something_was_not_found():
    qrels, run = {"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 1.0}, "q2": {"a": 1.0}}
    notes = evaluate(qrels, run, ["FirstRel", "AP"]).notes
    assert "FirstRel: undefined for 1 query, excluded from the mean" in notes
    assert not noted("J103", qrels, run, ["FirstRel", "AP"])


def test_one_query_that_was_not_found_among_those_without_takes_the_code_away():
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"b": 0}}
    notes = evaluate(qrels, {"q1": {"a": 1.0}}, ["FirstRel", "AP"]).notes
    assert "FirstRel: undefined for 2 queries, excluded from the mean" in notes
    assert "AP: undefined for 1 query, counted 0 in the mean (J103)" in notes


# ---- depth


def test_a_run_that_ends_above_the_deepest_cut_off_is_named():
    qrels, run = {"q1": {"a"}, "q2": {"a"}}, {"q1": {"a": 3.0, "b": 2.0}, "q2": {"a": 1.0}}
    assert noted("R105", qrels, run, ["P@1", "R@3"]) == ["rankings have at most 2 documents, cut-offs go to 3 (R105)"]
    assert not noted("R105", qrels, run, ["P@1", "R@2"])
    assert not noted("R105", qrels, run, ["AP", "RR"])


def test_rankings_of_queries_that_are_not_judged_do_not_count():
    run = {"q1": {"a": 1.0}, "other": {doc: float(n) for n, doc in enumerate("abcdef")}}
    assert noted("R105", {"q1": {"a"}}, run, ["P@3", "AP"])


# ---- recall


@given(sizes=st.lists(st.integers(0, 6), min_size=1, max_size=12))
def test_queries_with_more_relevant_documents_than_k_are_counted(sizes):
    qrels = {f"q{n}": {f"d{i}": 1 for i in range(size)} | {"x": 0} for n, size in enumerate(sizes)}
    run = {"q0": {"d0": 1.0}}
    said = noted("J107", qrels, run, ["R@1", "R@3", "P@1"])
    beyond = {k: sum(size > k for size in sizes) for k in (1, 3)}
    found = {int(k): int(n) for k, n in re.findall(r"R@(\d) in (\d+)", "".join(said))}
    assert found == {k: number for k, number in beyond.items() if number}
    assert len(said) == bool(found)


def test_recall_at_another_level_counts_by_that_level():
    qrels = {"q": {"a": 2, "b": 2, "c": 1}}
    run = {"q": {"a": 1.0}}
    assert noted("J107", qrels, run, ["R(rel=2)@2", "AP"]) == []
    assert len(noted("J107", qrels, run, ["R(rel=2)@1", "AP"])) == 1


# ---- scores and values


@pytest.mark.parametrize(
    ("run", "constant"),
    [
        ({"q1": {"a": 1.0, "b": 1.0}, "q2": {"a": 2.0, "b": 2.0}}, True),
        ({"q1": {"a": 1.0}, "q2": {"a": 2.0, "b": 2.0}}, True),
        ({"q1": {"a": 1.0}, "q2": {"a": 2.0}}, False),
        ({"q1": {"a": 1.0, "b": 1.0}, "q2": {"a": 2.0, "b": 1.0}}, False),
        ({"q1": {"a": 1.0, "b": 1.0, "c": 0.5}}, False),
        ({"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 2.0, "b": 2.0}}, False),
        ({"q1": {"a": 0, "b": 0.0}, "q2": {}}, True),
    ],
    ids=[
        "all",
        "single documents beside",
        "single documents only",
        "the second query",
        "the last document",
        "the first query",
        "zeros of two kinds",
    ],
)
def test_constant_scores_are_named(run, constant):
    said = noted("R106", {"q1": {"a"}, "q2": {"a"}}, run)
    assert len(said) == constant
    assert all(note.startswith("WARNING: ") for note in said)


def perfect(queries, *, but=0):
    qrels = {f"q{n}": {"a": 1, "b": 0} for n in range(queries)}
    run = {q: {"a": 2.0, "b": 3.0 if n < but else 1.0} for n, q in enumerate(qrels)}
    return qrels, run


def test_a_run_that_is_perfect_for_every_query_is_suspicious():
    (said,) = noted("P107", *perfect(10), ["AP", "nDCG@2", "RR", "P@1"])
    assert said.startswith("WARNING: AP, nDCG@2 is 1 for every query")
    assert not noted("P107", *perfect(9))
    assert not noted("P107", *perfect(10, but=1))
    assert not noted("P107", *perfect(10), ["RR", "P@1"])


def test_all_judged_at_k_needs_no_code():
    qrels, run = perfect(3)
    assert not noted("P106", qrels, run)
    assert len(noted("P106", qrels, {"q0": {"a": 2.0, "x": 1.0}})) == 1


# ---- measures


@pytest.mark.parametrize(("measure", "other"), [("nDCG@5", "R@5"), ("R@20", "nDCG@20"), ("AP", "R@10")])
def test_a_single_measure_gets_a_suggestion_for_a_second(measure, other):
    (said,) = noted("M101", *perfect(3), measure)
    assert said == f"{measure} is the only measure: {other} would show other aspects (M101)"
    assert not noted("M101", *perfect(3), [measure, other])


# ---- streams


def test_a_run_in_blocks_has_the_notes_of_the_whole_run():
    qrels = Qrels.of({f"q{n}": {"a": 1, "b": 1, "c": 0.5} for n in range(6)})
    run = {f"q{n}": {"a": 2.0, "x": 2.0} for n in range(6)}
    whole = evaluate(qrels, run, ["R@1", "P@3"])
    blocks = ({query: docs} for query, docs in run.items())
    assert evaluate(qrels, blocks, ["R@1", "P@3"]).notes == whole.notes
    codes = {code for note in whole.notes for code in re.findall(r"\((\w\d+)\)$", note)}
    assert codes == {"P106", "J104", "J107", "R105", "R106"}


def test_only_the_queries_that_are_averaged_count():
    qrels = {"q1": {"a": 1, "b": 1}, "q2": {"a": 1}}
    run = {"q1": {"a": 1.0}, "q2": {"a": 1.0}}
    assert noted("J107", qrels, run, ["R@1", "AP"])
    assert not noted("J107", qrels, run, ["R@1", "AP"], queries=["q2"])


def test_compressed_judgments_keep_their_description(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text("q1 0 d1 1\n")
    (tmp_path / "qrels.txt.about.json").write_text('{"warnings": ["made by a model"]}')
    packed = tmp_path / "qrels.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    convert(packed, tmp_path / "copy.csv")
    write_qrels(read_qrels(packed), tmp_path / "again.txt.gz")
    for name in ("qrels.txt.gz", "copy.csv", "again.txt.gz"):
        found = evaluate(tmp_path / name, {"q1": ["d1"]}, "RR").findings
        assert "made by a model" in [each.message for each in found], name
    # Judgments that replace others do not keep the description of those.
    plain = tmp_path / "plain.txt"
    plain.write_text("q1 0 d1 1\n")
    convert(plain, tmp_path / "copy.csv")
    write_qrels({"q1": {"d1": 1}}, tmp_path / "again.txt.gz")
    assert sorted(tmp_path.glob("*.about.json")) == [tmp_path / "qrels.txt.about.json"]


@pytest.mark.parametrize(
    "about",
    [
        "",
        "[]",
        "{",
        "null",
        '{"warnings": 5}',
        '{"warnings": [5, null, ""]}',
        '{"origin": ["x"]}',
        '{"guidelines": {"version": "1"}, "criteria": [["name"]]}',
        "\udcff",
        "[" * 100_000,
    ],
)
def test_a_description_that_is_not_ours_is_ignored(tmp_path, about):
    path = tmp_path / "qrels.txt"
    path.write_text("q1 0 d1 1\n")
    plain = evaluate(path, {"q1": ["d1"]}, "RR").notes
    (tmp_path / "qrels.txt.about.json").write_bytes(about.encode("utf-8", "surrogateescape"))
    assert evaluate(path, {"q1": ["d1"]}, "RR").notes == plain


def test_recalls_beside_a_measure_that_the_core_lacks_keep_their_notes():
    qrels = {"a": dict.fromkeys("xy", 1), "b": dict.fromkeys("xyz", 1), "c": dict.fromkeys("wxyz", 1)}
    run = {query: {"x": 1.0} for query in qrels}
    (said,) = noted("J107", qrels, run, ["R@1", "R@2", "R@3", "YAAP"])
    assert said.endswith(": R@1 in 3 queries, R@2 in 2, R@3 in 1 (J107)")


def test_a_query_that_is_not_in_the_run_has_no_error_of_estimation():
    qrels = {"a": {"x": 1, "y": 0}, "missing": {"x": 1}}
    said = evaluate(qrels, {"a": {"x": 1.0, "y": 1.0}}, "ERR@1", ties="mean", draws=200).notes
    (estimated,) = [note for note in said if note.startswith("estimated from 200 orders")]
    assert re.search(r" 0\.\d+$", estimated)


def test_notes_of_weights_follow_those_that_were_already_read():
    found = evaluate({"q1": {"d1": 1}, "q2": {"d1": 1}}, {"q1": ["d1"], "q2": ["d1"]}, ["R@1", "AP"])
    assert found.notes
    weighted = QueryFields.of(None, {"q1": 1, "q2": 3}, None).add_to(found, mix_origins=False)
    assert weighted.notes[: len(found.notes)] == found.notes
    assert weighted.notes[len(found.notes)] == "means are weighted by query"
