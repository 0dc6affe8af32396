"""Changes from one run to another, compared with plain loops over dictionaries."""

import json
import math

import jsonschema
import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles import ranked
from schemas import strict
from strategies import batches, few_scores

import rankgauge
from rankgauge import Collection, InputError, MismatchError, Run, diff, evaluate, rbo
from rankgauge.core.ids import show_id

SAMPLE = rankgauge.sample_path("qrels.txt").parent
QRELS = {"lost": {"a": 2, "b": 1, "z": 0}, "won": {"c": 1}, "same": {"d": 1}, "gone": {"e": 1}}
OLD = {"lost": ["a", "b", "x"], "won": ["y", "c"], "same": ["d"], "gone": ["e"]}
NEW = {"lost": ["z", "x", "v", "a"], "won": ["c", "y"], "same": ["d", "w"]}
TEXTS = Collection.of(
    {"a": {"title": "About\x1b[31m\x00 a", "text": "..."}, "z": "Text\u202e of\nz"}, {"lost": "What is\r\nlost?"}
)
FOUND = diff(QRELS, Run.of(OLD, name="old"), Run.of(NEW, name="new"), "RR", collection=TEXTS)


def place(ranking, document):
    return next(at for at in ranking if at.document == document)


@given(batches(scores=few_scores), st.randoms(use_true_random=False), st.integers(1, 3))
def test_every_number_is_that_of_a_plain_loop(made, random, depth):
    other = {
        query: {doc: random.randint(0, 3) for doc in scores if random.random() < 0.8}
        for query, scores in made.run.items()
    }
    other = {query: scores for query, scores in other.items() if scores}
    if not other.keys() & made.qrels.keys() or not made.run.keys() & made.qrels.keys():
        return
    found = diff(made.qrels, made.run, other, "nDCG@3", queries=list(made.qrels), k=depth)
    runs = (made.run, other)
    values = [evaluate(made.qrels, run, "nDCG@3").per_query[:, 0] for run in runs]
    assert np.array_equal(found.values, np.stack(values, axis=1), equal_nan=True)
    for query in found.shown:
        a, b = ([show_id(d.encode()) for d in ranked(run.get(query.query, {}))] for run in runs)
        grades = {show_id(d.encode()): grade for d, grade in made.qrels[query.query].items()}
        assert [at.document for at in query.ranking_a] == a[:depth]
        assert [at.document for at in query.ranking_b] == b[:depth]
        for at in query.ranking_a:
            assert at.rank == a.index(at.document) + 1
            assert at.other_rank == (b.index(at.document) + 1 if at.document in b else None)
            assert at.grade == grades.get(at.document)
        relevant = {doc for doc, grade in grades.items() if grade >= 1}
        first = [next((r for r, d in enumerate(x, 1) if d in relevant), None) for x in (a, b)]
        assert [query.first_a, query.first_b] == first
        assert [at.document for at in query.gained] == [
            doc for doc in b[:depth] if doc in relevant and doc not in a[:depth]
        ]
        assert [at.document for at in query.lost] == [
            doc for doc in a[:depth] if doc in relevant and doc not in b[:depth]
        ]
        same = bool(found.same_top[found.query_ids.index(query.query)])
        assert same == (a[:depth] == b[:depth])
        if a or b:
            assert query.rbo == rbo({"q": a}, {"q": b}).ext[0]
        else:
            assert math.isnan(query.rbo)


def test_largest_losses_come_first_then_largest_gains():
    assert [query.query for query in FOUND.shown] == ["gone", "lost", "won"]
    assert [query.change for query in FOUND.shown] == [-1.0, -0.75, 0.5]
    assert (FOUND.wins, FOUND.unchanged, FOUND.losses) == (1, 1, 2)


def test_equal_changes_are_ordered_by_id():
    qrels = {f"q{n}": {"d"} for n in (3, 1, 2, 4)}
    old = {query: ["d"] for query in qrels}
    new = {query: ["x", "d"] for query in qrels}
    assert [q.query for q in diff(qrels, old, new, "RR", n=3).shown] == ["q1", "q2", "q3"]


def test_shares_are_of_all_that_was_lost_and_gained():
    found = diff(QRELS, OLD, NEW, "RR", n=1)
    assert found.loss_share == 1 / 1.75
    assert found.gain_share == 1.0
    assert math.isnan(diff(QRELS, OLD, OLD, "RR").loss_share)


def test_a_document_has_its_rank_in_the_other_run():
    lost = FOUND.query("lost")
    assert [(at.document, at.move, at.other_rank) for at in lost.ranking_a] == [
        ("a", "down", 4),
        ("b", "gone", None),
        ("x", "up", 2),
    ]
    assert [(at.document, at.move, at.other_rank) for at in lost.ranking_b] == [
        ("z", "new", None),
        ("x", "up", 3),
        ("v", "new", None),
        ("a", "down", 1),
    ]
    assert place(lost.ranking_b, "z").grade == 0.0
    assert place(lost.ranking_b, "v").grade is None
    assert (lost.first_a, lost.first_b) == (1, 4)
    assert [at.document for at in lost.lost] == ["b"]
    assert lost.gained == ()


def test_below_the_depth_is_out_though_retrieved():
    found = diff(QRELS, OLD, NEW, "RR", k=2, queries="lost").shown[0]
    assert [(at.document, at.other_rank) for at in found.lost] == [("a", 4), ("b", None)]


def test_a_query_of_one_run_is_an_empty_ranking_in_the_other_with_a_note():
    gone = FOUND.query("gone")
    assert gone.ranking_b == ()
    assert (gone.retrieved_a, gone.retrieved_b, gone.rbo) == (1, None, 0.0)
    assert "1 judged query missing from new: counted as an empty ranking" in FOUND.notes


def test_a_query_of_neither_run_has_no_overlap():
    found = diff({**QRELS, "nowhere": {"a": 1}}, OLD, NEW, "RR", queries=["nowhere"])
    assert math.isnan(found.shown[0].rbo)
    assert found.shown[0].change == 0.0


def test_texts_are_one_printable_line():
    lost = FOUND.query("lost")
    assert lost.text == "What is lost?"
    assert place(lost.ranking_a, "a").text == "About\\x1b[31m\\x00 a"
    assert place(lost.ranking_b, "z").text == "Text\\u202e of z"
    assert "6 documents shown without text: not in collection" in FOUND.notes


def test_queries_asked_for_are_shown_as_asked_changed_or_not():
    found = diff(QRELS, OLD, NEW, "RR", queries=["same", "lost", "same"])
    assert [query.query for query in found.shown] == ["same", "lost"]
    assert (found.wins, found.losses) == (1, 2)


def test_where_lower_is_better_a_fall_is_a_gain():
    found = diff(QRELS, OLD, {**NEW, "gone": ["e"]}, "FirstRel")
    assert [(q.query, q.change) for q in found.shown] == [("lost", 3.0), ("won", -1.0)]
    assert (found.wins, found.losses) == (1, 1)


def test_a_value_that_is_left_out_of_the_mean_has_no_change():
    found = diff(QRELS, OLD, NEW, "FirstRel")
    assert math.isnan(found.changes[3])
    assert "1 query left out: FirstRel is undefined in one run or both" in found.notes


def test_the_relevance_level_is_that_of_the_measure():
    found = diff(QRELS, OLD, NEW, "RR(rel=2)", queries=["lost"])
    assert found.level == 2
    assert found.shown[0].lost == ()


def test_a_run_against_itself_has_nothing_to_show():
    found = diff(QRELS, OLD, OLD)
    assert found.shown == ()
    assert found.unchanged == 4
    assert found.same_top.all()
    assert (found.run_a, found.run_b) == ("run A", "run B")


@given(batches(), st.randoms(use_true_random=False))
def test_the_order_of_queries_and_documents_does_not_matter(made, random):
    if not made.run.keys() & made.qrels.keys():
        return
    other = {q: {d: -s for d, s in scores.items()} for q, scores in made.run.items()}
    queries = list(made.run)
    random.shuffle(queries)
    mixed = {q: dict(random.sample(sorted(other[q].items()), len(other[q]))) for q in queries}
    one, again = (json.loads(diff(made.qrels, made.run, run, "AP").to_json()) for run in (other, mixed))
    # Notes may name the first ids of an input.
    assert one | {"notes": []} == again | {"notes": []}


def test_json_is_by_the_published_schema():
    for found in (FOUND, diff(QRELS, OLD, NEW, "FirstRel"), diff(QRELS, OLD, OLD)):
        data = json.loads(found.to_json(), parse_constant=pytest.fail)
        jsonschema.validate(data, strict("diff-1"))
    data = json.loads(FOUND.to_json())
    assert data["queries"][3] == {
        "query": "gone",
        "values": [1.0, 0.0],
        "change": -1.0,
        "rbo": 0.0,
        "first_relevant": [1, None],
        "same_top": False,
    }
    assert data["shown"][1]["rankings"][1][0] == {
        "rank": 1,
        "document": "z",
        "grade": 0.0,
        "other_rank": None,
        "move": "new",
        "text": "Text\\u202e of z",
    }


def test_ids_may_be_numbers():
    found = diff({1: {7: 1}}, {1: [8, 7]}, {1: [7, 8]}, "RR", queries=[1])
    assert found.query(1).ranking_b[0].document == "7"


def test_the_sample_has_its_texts():
    runs = (rankgauge.sample_path(f"runs/{name}.run") for name in ("bm25", "keyword"))
    found = diff(SAMPLE / "qrels.txt", *runs, collection=SAMPLE)
    assert len(found.shown) == 10
    assert all(query.text for query in found.shown)
    assert all(at.text for query in found.shown for at in query.ranking_a)


def test_it_has_a_short_repr_and_a_table():
    assert repr(FOUND).endswith(", 1 win, 1 tie, 2 losses>")
    assert "<table" in FOUND._repr_html_()
    assert len(FOUND.table().rows) == 4


@pytest.mark.parametrize(
    ("act", "error", "said"),
    [
        (lambda: diff(QRELS, OLD, NEW, k=0), InputError, "k=0 is not valid"),
        (lambda: diff(QRELS, OLD, NEW, n=-1), InputError, "n=-1 is not valid"),
        (lambda: diff(QRELS, OLD, NEW, queries=["q"]), MismatchError, "query 'q' is not judged"),
        (lambda: diff(QRELS, OLD, NEW, queries=[]), InputError, "list of queries is empty"),
        (lambda: diff(QRELS, OLD, NEW, queries=1.5), InputError, "got 1.5 for the queries"),
        (lambda: diff(QRELS, OLD, NEW, collection={}), InputError, "got dict for the collection"),
        (lambda: diff(QRELS, OLD, {"q": ["a"]}), MismatchError, "no query of the run is judged"),
        (lambda: FOUND.query("same"), InputError, "'same' is not among those shown"),
    ],
)
def test_bad_input_is_refused(act, error, said):
    with pytest.raises(error) as caught:
        act()
    assert said in str(caught.value)


def test_ties_follow_the_given_policy():
    judged, run = {"q": {"a": 1}}, [("q", "a", 1.0), ("q", "b", 1.0), ("q", "c", 2.0)]
    for ties, wanted in (("trec", ["c", "b", "a"]), ("input", ["c", "a", "b"])):
        found = diff(judged, run, {"q": ["a"]}, queries=["q"], ties=ties)
        assert [at.document for at in found.shown[0].ranking_a] == wanted
