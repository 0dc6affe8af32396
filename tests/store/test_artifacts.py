"""Runs, judgments, and texts that are saved with evaluations, and come back exactly."""

import struct
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankgauge import Collection, History, InputError, Qrels, Run, diagnose, evaluate
from rankgauge.core.ids import Ids
from rankgauge.core.pair_table import PairTable, offsets_of
from rankgauge.corpus import Document
from rankgauge.data import PreferenceQrels, Records, SampledQrels, SubtopicQrels
from rankgauge.sample import sample_path
from rankgauge.store import artifacts
from rankgauge.store.artifacts import pack_pairs, read_pairs

QRELS = Qrels({"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}})
RUN = Run({"q1": {"d2": 0.5, "d1": 0.25}, "q2": {"d9": 1.5, "d3": 0.5}}, name="bm25", settings={"k1": 0.9})
COLLECTION = Collection.of(
    {f"d{n}": Document(f"d{n}", f"Title {n}", f"Text ✓ {n}", {"year": n, "tags": ["a", None]}) for n in range(12)},
    {"q1": {"text": "one?", "type": "fact"}, "q2": "two?", "q3": "never asked"},
)


def saved(where, qrels=QRELS, run=RUN, collection=None, **options):
    """Save an evaluation, and return the history and the entry."""
    history = History(where)
    return history, history.add(evaluate(qrels, run, "RR"), qrels, run=run, collection=collection, **options)


def rows(table):
    """The exact rows of a table: ids, and the bits of numbers."""
    bits = [struct.pack("<d", number) for number in table.values.tolist()]
    return table.queries.tolist(), table.offsets.tolist(), table.docs.tolist(), bits, table.notes, table.paired


ids = st.binary(min_size=1, max_size=40).map(lambda raw: raw.replace(b"\0", b"0"))
numbers = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 0.5, 1e-300])
rankings = st.dictionaries(ids, st.lists(st.tuples(ids, numbers), max_size=30), max_size=12)


@given(rankings, st.integers(1, 20), st.lists(st.text(max_size=9), max_size=2), st.booleans())
def test_any_rows_come_back_with_every_bit(ranked, size, notes, paired):
    pairs = [pair for ranking in ranked.values() for pair in ranking]
    table = PairTable(
        Ids.of(list(ranked)),
        offsets_of([len(ranking) for ranking in ranked.values()]),
        Ids.of([doc for doc, _ in pairs]),
        np.array([number for _, number in pairs], dtype=np.float64),
        notes=tuple(notes),
        paired=paired,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(artifacts, "_ROWS", size)  # more blocks
        artifact, blocks = pack_pairs("run", Run(table))
        stored = list(blocks)
        assert len(stored) == artifact.count
        read = partial(map, stored.__getitem__)
        back, reads = read_pairs(read, "here")
        assert (rows(back), reads, back.source) == (rows(table), "", "here")
        # A part of the queries, in their order.
        some = list(ranked)[::-2]
        part, _ = read_pairs(read, "", some)
        kept = [query for query in ranked if query in some]
        assert part.queries.tolist() == kept
        ends = part.offsets.tolist()
        for number, query in enumerate(kept):
            own = slice(ends[number], ends[number + 1])
            assert list(zip(part.docs.tolist()[own], part.values.tolist()[own], strict=True)) == ranked[query]


def test_a_name_depends_on_every_bit_and_on_the_order():
    names = {
        pack_pairs(kind, Run.of(ranked))[0].name
        for kind in ("run", "judgments")
        for ranked in (
            {"q": {"a": 0.0, "b": 1}},
            {"q": {"a": -0.0, "b": 1}},
            {"q": {"b": 1, "a": 0.0}},
            {"q": {"ab": 0.0, "b": 1}},
            {"q": {"a": 0.0, "b": 1}, "r": {}},
            {"q": {"a": 0.0}, "r": {"b": 1}},
        )
    }
    assert len(names) == 12


def test_a_run_and_judgments_are_read_as_they_were_saved(where):
    history, entry = saved(where)
    run = history.run(entry)
    assert run == RUN
    assert rows(run.table) == rows(RUN.table)
    assert rows(history.qrels(1).table) == rows(QRELS.table)
    assert dict(history.run(1, ["q2", "q7"])) == {"q2": RUN["q2"]}
    again = evaluate(history.qrels(1), run, "RR")
    assert again.mean() == history.load(1).mean()


@pytest.mark.parametrize(
    ("judged", "measure"),
    [
        (SubtopicQrels.of({"q1": {"d1": {"a": 1}, "d2": {"a": 0, "b": 2}}, "q2": {"d3": {"a": 1}}}), "alpha_nDCG@5"),
        (SampledQrels.of({"q1": {"top": {"d1": 1}, "deep": {"d2": 0, "d8": -1}}, "q2": {"top": {"d3": 1}}}), "infNDCG"),
        (PreferenceQrels.of({"q1": {"x": {"1": {"d1": 2, "d2": 1}}, "y": {"d2": 1}}, "q2": {"x": {"d3": 1}}}), "Prefs"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_special_judgments_are_read_as_they_were_saved(where, judged, measure):
    history = History(where)
    evaluation = evaluate(judged, RUN, measure)
    history.add(evaluation, judged, run=RUN)
    back = history.qrels(1)
    assert type(back) is type(judged)
    assert back == judged
    assert back.qrels.table.notes == judged.qrels.table.notes
    assert (back.row == judged.row).all()
    again = evaluate(back, history.run(1), measure)
    np.testing.assert_array_equal(again.per_query, evaluation.per_query)


def test_records_keep_their_judgments_unless_they_have_two_kinds(where):
    history = History(where)
    plain = Records.of([(["d2", "d1"], {"d1"})])
    both = Records.of([{"id": "q", "retrieved": ["a", "b"], "relevant": ["b"], "relevance_scores": {"a": 2, "b": 1}}])
    for records in (plain, both):
        history.add(evaluate(records, measures="RR"), records)
    assert (history.qrels(1), history.run(1)["1"]) == (plain.qrels, plain.run["1"])
    assert history.run(2)["q"] == both.run["q"]
    with pytest.raises(InputError, match="evaluation 2 was saved without its judgments"):
        history.qrels(2)


def test_texts_of_what_was_retrieved_or_judged_are_kept(where):
    history, _ = saved(where, collection=COLLECTION)
    texts = history.collection(1)
    assert dict(texts.documents) == {key: COLLECTION.documents[key] for key in ("d1", "d2", "d3", "d9")}
    assert dict(texts.queries) == {key: COLLECTION.queries[key] for key in ("q1", "q2")}
    assert history.entry(1).collection == COLLECTION.fingerprint


def test_without_texts_the_fingerprint_of_the_collection_is_kept(where):
    history, entry = saved(where, collection=COLLECTION, texts=False)
    assert entry.collection == COLLECTION.fingerprint
    with pytest.raises(InputError, match="evaluation 1 was saved without its texts") as told:
        history.collection(1)
    assert "fix: " in str(told.value)


def test_what_was_not_saved_is_an_error_that_names_the_argument(where):
    history = History(where)
    history.add(evaluate(QRELS, RUN, "RR"))
    for read, argument in ((history.run, "run=run"), (history.qrels, "qrels=qrels")):
        with pytest.raises(InputError, match="evaluation 1 was saved without its") as told:
            read(1)
        assert argument in str(told.value)


def test_equal_content_is_stored_once(where):
    history, _ = saved(where, collection=COLLECTION)
    sizes = history.sizes()
    saved(where, run=replace(RUN, name="again", settings={}), collection=COLLECTION)
    again = history.sizes()
    assert {kind: again[kind] for kind in ("run", "judgments", "questions", "documents")} == {
        kind: sizes[kind] for kind in ("run", "judgments", "questions", "documents")
    }
    assert history.run(2) == replace(RUN, name="again", settings={})


def test_another_system_adds_only_its_own_texts(where):
    history, _ = saved(where, collection=COLLECTION)
    other = Run({"q1": ["d2", "d5"]}, name="other")
    saved(where, run=other, collection=COLLECTION)
    for number, keys in ((1, {"d1", "d2", "d3", "d9"}), (2, {"d1", "d2", "d3", "d5"})):
        assert dict(history.collection(number).documents) == {key: COLLECTION.documents[key] for key in keys}
    # A text that is changed, and changed back: each evaluation has its own.
    changed = Collection.of(dict(COLLECTION.documents) | {"d2": "changed"}, dict(COLLECTION.queries))
    saved(where, collection=changed)
    saved(where, collection=COLLECTION)
    saved(where, collection=changed)
    texts = [history.collection(number).documents["d2"].text for number in range(1, 6)]
    assert texts == ["Text ✓ 2", "Text ✓ 2", "changed", "Text ✓ 2", "changed"]
    # Deleting some leaves what the others need.
    for number in (1, 3, 2):
        history.delete(number)
    assert [history.collection(number).documents["d2"].text for number in (4, 5)] == ["Text ✓ 2", "changed"]
    assert history.run(4) == RUN
    for number in (4, 5):
        history.delete(number)
    assert history.sizes() == {"values": 0}


def test_a_saved_evaluation_is_diagnosed_as_the_original(where):
    folder = sample_path("qrels.txt").parent
    qrels, run = Qrels.of(folder / "qrels.txt"), Run.of(folder / "runs" / "bm25.run")
    collection = Collection.load(folder)
    history, _ = saved(where, qrels, run, collection)
    kept = diagnose(history.qrels(1), history.run(1), history.collection(1))
    assert str(kept) == str(diagnose(qrels, run, collection))
