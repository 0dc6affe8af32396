"""Preference judgments: construction, content, and errors."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from rankgauge import InputError, PreferenceQrels, Qrels, Run, evaluate
from rankgauge.data import fingerprint, read_preference_qrels
from rankgauge.evaluation import read_judgments

JUDGED = {"q1": {"ann": {"1": {"d1": 2.0, "d2": 1.0}, "2": {"d2": 3.0, "d3": 0.0}}}, "q2": {"bob": {"0": {"d1": 0.0}}}}
LINES = "q1 ann 1 d1 2\nq1 ann 1 d2 1\nq1 ann 2 d2 3\nq1 ann 2 d3 0\nq2 bob 0 d1 0\n"
NAMES = ("query_id", "group_id", "subgroup_id", "doc_id", "relevance")
ROWS = [(*line.split()[:4], float(line.split()[4])) for line in LINES.splitlines()]
COLUMNS = dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))


def as_dicts(judged: PreferenceQrels) -> dict[str, Any]:
    return {query: dict(judged[query]) for query in judged}


@pytest.mark.parametrize(
    "source",
    [
        JUDGED,
        {"q1": JUDGED["q1"], "q2": {"bob": {"d1": 0}}},
        COLUMNS,
        ROWS,
        [dict(zip(NAMES, row, strict=True)) for row in ROWS],
        [*ROWS[1:4], ROWS[0], ROWS[4]],
    ],
    ids=["mapping", "no-subgroup", "columns", "rows", "dicts", "other-order"],
)
def test_all_sources_give_the_same_judgments(source: Any) -> None:
    judged = PreferenceQrels.of(source)
    assert as_dicts(judged) == JUDGED
    assert judged == PreferenceQrels.of(JUDGED)
    assert fingerprint(judged) == fingerprint(PreferenceQrels.of(JUDGED))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prefs", LINES),
        ("prefs", f"# a comment\n\n{LINES}"),
        ("a.csv", ",".join(NAMES) + "\n" + LINES.replace(" ", ",")),
        ("a.tsv", "topic\tjg\tjsg\tdocno\tgrade\n" + LINES.replace(" ", "\t")),
        ("a.json", json.dumps(JUDGED)),
        ("a.jsonl", "".join(json.dumps(dict(zip(NAMES, r, strict=True))) + "\n" for r in ROWS)),
    ],
)
def test_all_files_give_the_same_judgments(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert as_dicts(read_preference_qrels(path)) == JUDGED
    found = read_judgments(path, ["prefs_simp", "AP"])
    assert isinstance(found, PreferenceQrels)


def test_ordinary_judgments_are_one_group_for_each_query_and_a_note_says_so(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text("q1 0 d1 2\nq1 0 d2 0\n", encoding="utf-8")
    plain = {"q1": {"d1": 2, "d2": 0}}
    for source in (path, plain, Qrels.of(plain)):
        judged = PreferenceQrels.of(source)
        assert as_dicts(judged) == {"q1": {"0": {"0": {"d1": 2.0, "d2": 0.0}}}}
        notes = evaluate(source, {"q1": ["d1"]}, "prefs_simp").notes
        assert any("ordinary judgments read as preferences" in note for note in notes)
    empty = Qrels.of({"q1": {"d1": 1, "d2": 0}, "q2": {}})
    assert len(PreferenceQrels.of(empty)) == len(empty)


def test_ordinary_measures_read_the_highest_grade() -> None:
    judged = PreferenceQrels.of({"q": {"a": {"d": 1, "e": -1}, "b": {"d": 3}}})
    assert judged.qrels == Qrels.of({"q": {"d": 3, "e": -1}})


def test_they_are_immutable_compared_by_content_and_pickled() -> None:
    judged = PreferenceQrels.of(JUDGED)
    with pytest.raises(ValueError, match="read-only"):
        judged.grade[0] = 7
    assert pickle.loads(pickle.dumps(judged)) == judged
    other = PreferenceQrels.of({**JUDGED, "q2": {"eve": {"0": {"d1": 0.0}}}})
    assert judged != other
    assert judged.qrels == other.qrels
    assert fingerprint(judged) != fingerprint(other)
    with pytest.raises(KeyError):
        judged["q9"]


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (
            {"q": {"g": {"1": {"a": 2, "b": 1}, "2": {"b": 2, "a": 1}}}},
            "group 'g' of query 'q' contradicts itself: 'a' and 'b' are each preferred",
        ),
        (
            {"q": {"g": {"1": {"a": 2, "b": 1}, "2": {"b": 2, "c": 1}, "3": {"c": 2, "a": 1}}}},
            "'a' and 'b' are each preferred to the other",
        ),
        ({"q": {"g": {"1": {"a": 1}, "2": {"a": 0}}}}, "'a' has both grade 0 and a higher one"),
        (
            [("q", "g", "1", "a", 1), ("q", "g", "1", "a", 2)],
            "duplicate document 'a' for subgroup '1' of group 'g' of query 'q'",
        ),
        ({"q": {"g": {"1": {"a": "good"}}}}, "grade 'good' is text"),
        (Run.of({"q": ["a"]}), "got the run"),
        (7, "got int, expected preferences"),
    ],
    ids=["conflict", "circle", "zero", "twice", "text", "run", "number"],
)
def test_invalid_judgments_are_refused_with_a_fix(source: Any, what: str) -> None:
    with pytest.raises(InputError) as error:
        PreferenceQrels.of(source)
    assert what in str(error.value)
    assert error.value.fix


def test_a_file_that_does_not_fit_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "prefs"
    path.write_text("q a 1 d1 1\nq a 1 d2\n", encoding="utf-8")
    with pytest.raises(InputError, match="prefs, line 2: got 4 fields, expected 5: query group sub"):
        read_preference_qrels(path)


@pytest.mark.parametrize("ties", ["best", "worst", "mean"])
def test_ties_by_grade_are_refused(ties: Any) -> None:
    with pytest.raises(InputError, match="is not available for measures of preferences"):
        evaluate(PreferenceQrels.of(JUDGED), {"q1": ["d1"]}, "prefs_simp", ties=ties)
