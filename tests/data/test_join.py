"""The join and the ranks compared with plain Python: bad hashes, odd ids, and odd input orders."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles import ranked
from strategies import Batch, batch, batches, completed, few_scores, joined, values

import rankgauge.core.ids
import rankgauge.core.pair_table
import rankgauge.data.join
from rankgauge import InputError, Qrels, Run, list_measures, parse
from rankgauge.core import native
from rankgauge.data.join import Joined, find_judged, join
from rankgauge.data.judged_run import UNRANKED
from rankgauge.measures.declaration import SPECIAL

SOME = [
    *(parse(name) for name in ("AP", "nDCG", "RR", "P@3", "Bpref", "infAP", "Judged@5", "RBP")),
    parse("P(judged_only=True)@3"),
]

Ranks = dict[bytes, list[tuple[int, int, int, float]]]


def _entries(found: Joined) -> Ranks:
    """Return rank, first and last rank of the tie group, and grade, by query."""
    ends = found.offsets.tolist()
    rows = list(
        zip(found.rank.tolist(), found.tie_first.tolist(), found.tie_last.tolist(), found.grade.tolist(), strict=True)
    )
    queries = found.qrels.table.queries.tolist()
    entries: Ranks = {query: [] for query in queries}
    for place, number in enumerate(found.numbers.tolist()):
        entries[queries[number]] = rows[ends[place] : ends[place + 1]]
    return entries


def _by_hand(made: Batch, order: Any = ranked) -> Ranks:
    """Return the same from plain Python."""
    wanted: Ranks = {}
    for query, grades in made.qrels.items():
        scores = made.run.get(query, {})
        rows = []
        for rank, doc in enumerate(order(scores), start=1):
            if doc in grades:
                above = sum(1 for score in scores.values() if score > scores[doc])
                equal = sum(1 for score in scores.values() if score == scores[doc])
                rows.append((rank, above + 1, above + equal, float(grades[doc])))
        wanted[query.encode()] = rows
    return wanted


def _as_given(scores: dict[str, float]) -> list[str]:
    return sorted(scores, key=lambda doc: -scores[doc])


def _bytes_order(ids: list[bytes]) -> list[bytes]:
    """Return the ids in the order of the join for equal scores."""
    found = Run.from_columns([b"q"] * len(ids), ids, np.zeros(len(ids)))
    qrels = Qrels.from_columns([b"q"] * len(ids), ids, np.ones(len(ids)))
    # A join for each judged document would be slow, so unique grades identify the documents.
    graded = Qrels.from_columns([b"q"] * len(ids), ids, np.arange(1, len(ids) + 1))
    assert len(join(qrels, found, ties="trec").rank) == len(ids)
    entry = join(graded, found, ties="trec")
    return [ids[int(grade) - 1] for grade in entry.grade.tolist()]


# ---- ranks


def test_ranks_and_tie_groups_are_those_of_plain_python() -> None:
    made = batch(5, queries=600, deepest=60)
    assert _entries(joined(made.qrels, made.run)) == _by_hand(made)


@given(batches())
def test_ranks_of_any_small_case_are_those_of_plain_python(made: Batch) -> None:
    assert _entries(joined(made.qrels, made.run)) == _by_hand(made)


@given(batches(scores=few_scores))
def test_ties_by_input_keep_the_order_given(made: Batch) -> None:
    assert _entries(joined(made.qrels, made.run, "input")) == _by_hand(made, _as_given)


def _by_grade(made: Batch, policy: str) -> dict[bytes, list[tuple[int, float]]]:
    """Return rank and grade of each judged document, by the definition of the two policies."""
    found = {}
    for query, grades in made.qrels.items():
        scores = made.run.get(query, {})
        # Unjudged documents rank below the lowest grade.
        worth = {doc: grades.get(doc, -math.inf) for doc in scores}
        sign = -1 if policy != "worst" else 1
        order = sorted(scores, key=lambda doc: (-scores[doc], sign * worth[doc]))
        found[query.encode()] = [(rank, grades[doc]) for rank, doc in enumerate(order, start=1) if doc in grades]
    return found


@pytest.mark.parametrize("policy", ["best", "worst", "mean"])
@given(batches(scores=few_scores))
def test_ties_by_grade_put_the_unjudged_at_their_end(policy: str, made: Batch) -> None:
    found = {
        query: [(rank, grade) for rank, _, _, grade in rows]
        for query, rows in _entries(joined(made.qrels, made.run, policy)).items()
    }
    assert found == _by_grade(made, policy)


def test_rankings_without_scores_keep_their_order() -> None:
    lists = {"q1": ["b", "a", "c", "d"], "q2": ["z", "y"]}
    qrels = {"q1": {"a": 1, "d": 2}, "q2": {"y": 1}}
    for ties in ("trec", "input"):
        ranks = {query: [row[0] for row in rows] for query, rows in _entries(joined(qrels, lists, ties)).items()}
        assert ranks == {b"q1": [2, 4], b"q2": [2]}


@given(
    st.lists(
        st.binary(min_size=1, max_size=40).map(lambda raw: raw.replace(b"\0", b"\x01")),
        min_size=1,
        max_size=30,
        unique=True,
    )
)
def test_equal_scores_are_ordered_by_id_as_python_bytes(ids: list[bytes]) -> None:
    assert _bytes_order(ids) == sorted(ids, reverse=True)


@pytest.mark.parametrize("length", [1, 7, 8, 9, 15, 16, 17, 64, 127, 128, 129, 200, 255, 300])
def test_ids_of_any_length_are_ordered_as_python_bytes(length: int) -> None:
    rng = random.Random(length)
    stem = bytes(rng.choices(range(1, 256), k=length - 1))
    ids = {stem + bytes([last]) for last in (1, 2, 0x7F, 0x80, 0xFF, 0x20)}
    # Prefixes, and ids that differ in a single byte at any position.
    ids |= {stem[:cut] for cut in range(1, length) if cut % 5 == 0 or cut > length - 3}
    for place in range(0, length - 1, max(1, length // 9)):
        ids.add(stem[:place] + bytes([stem[place] % 255 + 1]) + stem[place + 1 :] + b"\x01")
    shuffled = sorted(ids)
    rng.shuffle(shuffled)
    assert _bytes_order(shuffled) == sorted(ids, reverse=True)


def test_one_long_id_does_not_change_the_order_of_the_others() -> None:
    short = [f"d{number}".encode() for number in range(200)]
    long = b"d1" + b"0" * 300
    with_long = _bytes_order([*short, long])
    assert with_long == sorted([*short, long], reverse=True)
    assert [doc for doc in with_long if doc != long] == _bytes_order(short)


def test_whole_numbers_as_ids_are_ordered_by_their_digits() -> None:
    """As text, like in trec_eval: 9 ranks above 10."""
    found = Run.from_columns(np.zeros(3, dtype=int), np.array([10, 9, 100]), np.zeros(3))
    entry = joined({0: {10: 2, 9: 1, 100: 3}}, found)
    assert entry.grade.tolist() == [1, 3, 2]


def test_scores_that_differ_in_64_bits_only_are_no_tie() -> None:
    entry = joined({"q": {"a": 1}}, {"q": {"a": 1 + 2**-50, "z": 1.0}})
    assert (entry.rank.tolist(), entry.tie_last.tolist()) == ([1], [1])


def test_lines_in_any_order_and_queries_in_pieces_change_nothing() -> None:
    made = batch(17, queries=150, deepest=50)
    wanted = values(joined(made.qrels, made.run), SOME)
    rng = random.Random(3)
    lines = [(query, doc, s) for query, scores in made.run.items() for doc, s in scores.items()]
    judged = [(query, doc, g) for query, grades in made.qrels.items() for doc, g in grades.items()]
    for _ in range(3):
        rng.shuffle(lines)
        rng.shuffle(judged)
        qrels = Qrels.of(judged)
        found = values(joined(qrels, lines), SOME)
        back = [qrels.query_ids.index(query) for query in made.qrels]
        assert np.array_equal(found[back], wanted, equal_nan=True)


def test_queries_of_very_different_depth_do_not_affect_each_other() -> None:
    rng = random.Random(8)
    depths = {f"q{number}": depth for number, depth in enumerate([1, 20000, 2, 0, 3000, 1, 7] * 3)}
    run = {
        query: {f"d{place}": rng.choice((0.0, 1.0, 2.0)) for place in range(depth)}
        for query, depth in depths.items()
        if depth
    }
    qrels = {query: {f"d{rng.randrange(max(depth, 1) + 2)}": 1 for _ in range(30)} for query, depth in depths.items()}
    together = joined(qrels, run)
    assert together.numbers.tolist() == [q for q, depth in enumerate(depths.values()) if depth]
    assert together.retrieved.tolist() == [depth for depth in depths.values() if depth]
    for query in depths:
        alone = joined({query: qrels[query]}, {query: run.get(query, {}), "other": {"d0": 1.0}})
        assert _entries(alone)[query.encode()] == _entries(together)[query.encode()]


def test_the_same_document_in_two_queries_is_judged_in_each_by_itself() -> None:
    qrels = {"q1": {"d": 1}, "q2": {"d": 3, "e": 0}, "q3": {"e": 2}}
    run = {"q3": {"d": 2.0, "e": 1.0}, "q2": {"e": 2.0, "d": 1.0}, "q1": {"e": 1.0}}
    assert _entries(joined(qrels, run)) == {b"q1": [], b"q2": [(1, 1, 1, 0.0), (2, 2, 2, 3.0)], b"q3": [(2, 2, 2, 2.0)]}


@pytest.mark.parametrize("core", [native.core, None], ids=["compiled", "NumPy"])
@given(batches(scores=few_scores), st.sampled_from(["trec", "input"]))
def test_a_run_whose_judged_documents_are_known_is_joined_alike(core: Any, made: Batch, ties: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "core", core)
        qrels, run = Qrels.of(made.qrels), Run.of(made.run)
        wanted, found = (join(qrels, run, ties=ties, judged=how) for how in (None, find_judged(qrels, run.table)))
        for name, column in vars(wanted).items():
            assert name == "qrels" or getattr(found, name).tolist() == column.tolist()


# ---- hash collisions are resolved by comparing ids


def _weaken(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    """Keep only some bits of every hash and key, so that nearly all ids collide."""
    whole_keys, whole_hashes = rankgauge.core.pair_table.pair_keys, rankgauge.core.ids.Ids.hashes
    keep = np.uint64((1 << bits) - 1)

    def few_keys(docs: Any, numbers: Any) -> Any:
        # The highest bits, which the filter uses, and the lowest.
        few = whole_keys(docs, numbers) & keep
        return few | (few << np.uint64(64 - bits)) if bits else few

    def few_hashes(ids: Any) -> Any:
        return whole_hashes(ids) & keep

    monkeypatch.setattr(rankgauge.core.ids.Ids, "hashes", few_hashes)
    monkeypatch.setattr(rankgauge.core.pair_table, "pair_keys", few_keys)


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 6])
def test_a_weak_hash_changes_no_number(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = batch(23, queries=60, deepest=40)
    every = [completed(bare) for bare in list_measures() if bare.declaration.reads not in SPECIAL]
    wanted = values(joined(made.qrels, made.run), every)
    entries = _entries(joined(made.qrels, made.run))
    _weaken(monkeypatch, bits)
    qrels = Qrels.of(made.qrels)
    assert len(np.unique(qrels.table.docs.hashes())) <= 1 << bits
    weak = joined(qrels, made.run)
    assert _entries(weak) == entries
    assert np.array_equal(values(weak, every), wanted, equal_nan=True)


@pytest.mark.parametrize("bits", [0, 2])
def test_a_weak_hash_finds_the_same_repeated_documents(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _weaken(monkeypatch, bits)
    lines = [("q", f"d{number % 40}", float(number)) for number in range(43)]
    run = Run.of([*lines, ("p", "d1", 1.0), ("p", "d2", 1.0)])
    assert sorted(run.repeats) == [[0, 40], [1, 41], [2, 42]]
    with pytest.raises(InputError, match="document 'd0'"):
        run.without_repeats("error")
    assert run.without_repeats("best").table.values.max() == 42
    assert run.without_repeats("first").table.values[0] == 0
    with pytest.raises(InputError, match="document 'd1'"):
        Qrels.of([("q", "d1", 1), ("q", "d2", 1), ("q", "d1", 0)])


# ---- blocks


@given(batches(), st.sampled_from((1, 5, 20, 10**6)))
def test_blocks_hold_each_query_once_within_their_bound(made: Batch, cells: int) -> None:
    found = joined(made.qrels, made.run)
    queries = np.arange(len(found.qrels))[::-1].copy()
    places: list[int] = []
    for at, block in found.blocks(queries, cells=cells):
        places += at.tolist()
        assert len(block) == len(at) > 0
        # A single query may be larger than a block.
        assert len(block) == 1 or max(block.rank.size, block.ideal.size) <= cells
        padded = ~block.in_qrels
        assert (block.rank[padded] == UNRANKED).all()
        assert (block.grade[padded] == 0).all()
        assert not block.judged[padded].any()
        assert (np.diff(block.rank.astype(float), axis=1) >= 0).all()
        assert (np.diff(block.ideal, axis=1) <= 0).all()
        assert (block.judged == (block.in_qrels & (block.grade >= 0))).all()
        assert (np.count_nonzero(block.ideal >= 0, axis=1) == block.n_judged).all()
        assert (block.tie_first <= block.rank).all()
        assert (block.rank <= block.tie_last).all()
    assert sorted(places) == list(range(len(queries)))


def test_a_block_keeps_the_order_of_the_queries_asked_for() -> None:
    made = batch(3, queries=40)
    found = joined(made.qrels, made.run)
    wanted = values(found, SOME)
    asked = np.array([17, 3, 39, 3])
    result = np.empty((len(asked), len(SOME)))
    for places, block in found.blocks(asked, cells=30):
        result[places] = np.stack([measure.values(block) for measure in SOME], axis=1)
    assert np.array_equal(result, wanted[asked], equal_nan=True)


def test_a_run_in_pieces_gives_the_same_bits() -> None:
    """Few documents with many judgments take another path through the join."""
    made = batch(11, queries=300, deepest=8)
    qrels = Qrels.of(made.qrels)
    wanted = values(joined(qrels, made.run), SOME)
    for size in (1, 2, 50):
        pieces = list(made.run)
        found = np.full_like(wanted, -np.inf)
        for start in range(0, len(pieces), size):
            run = {query: made.run[query] for query in pieces[start : start + size]}
            piece = joined(qrels, run)
            found[piece.numbers] = values(piece, SOME)[piece.numbers]
        missing = [q for q, query in enumerate(made.qrels) if query not in made.run]
        assert np.isinf(found[missing]).all()
        assert len(missing) > 3
        found[missing] = wanted[missing]
        assert np.array_equal(found, wanted, equal_nan=True)


# ---- notes on the input


def test_queries_of_one_side_only_are_known() -> None:
    found = joined({"q1": {"d": 1}, "q2": {"d": 1}}, {"q3": {"d": 1.0}, "q1": {"e": 1.0, "f": 0.0}})
    assert found.numbers.tolist() == [0]
    assert found.retrieved.tolist() == [2]
    assert found.unknown_queries.tolist() == [0]


@given(batches(scores=few_scores), st.randoms(use_true_random=False))
def test_a_query_that_no_tie_can_change_is_changed_by_no_tie(made: Batch, rng: random.Random) -> None:
    """Compare all other orders of equal scores, for measures that depend on relevance."""
    found = joined(made.qrels, made.run)
    calm = np.setdiff1d(np.arange(len(found.qrels)), found.tied())
    every = [
        measure
        for measure in (*SOME, parse("ERR@2"), parse("IPrec@0.5"), parse("DCG@2"))
        if measure.name != "Judged" and "judged_only" not in dict(measure.params)
    ]
    wanted = values(found, every)
    for _ in range(4):
        run = {}
        for query, scores in made.run.items():
            items = list(scores.items())
            rng.shuffle(items)
            run[query] = dict(items)
        other = values(joined(made.qrels, run, "input"), every)
        assert np.array_equal(other[calm], wanted[calm], equal_nan=True)


def test_a_tie_counts_only_where_it_can_matter() -> None:
    equal = dict.fromkeys(("a", "b", "c"), 1.0)
    qrels = {
        "alike": {"a": 1, "b": 1, "c": 1},
        "differ": {"a": 1, "b": 2, "c": 1},
        "unjudged": {"a": 1, "b": 1},
        "nothing": {"a": 0, "b": -1},
        "apart": {"a": 1},
    }
    run = dict.fromkeys(qrels, equal)
    run["apart"] = {"a": 3.0, "b": 2.0, "c": 2.0}
    found = joined(qrels, run)
    names = [found.qrels.query_ids[number] for number in found.tied()]
    assert names == ["differ", "unjudged"]


@given(batches())
def test_a_ranked_run_has_the_order_of_trec_eval(made: Batch) -> None:
    found = rankgauge.data.join.ranked(Run.of(made.run))
    table = found.table
    docs, ends = table.docs.tolist(), table.offsets.tolist()
    rows = {
        query.decode(): [doc.decode() for doc in docs[ends[number] : ends[number + 1]]]
        for number, query in enumerate(table.queries.tolist())
    }
    assert rows == {query: ranked(scores) for query, scores in made.run.items()}
    assert found == rankgauge.data.join.ranked(found)


def test_a_ranked_run_keeps_ties_as_they_came_where_asked() -> None:
    run = Run.of([("q1", "a", 1), ("q2", "x", 5), ("q1", "b", 2), ("q1", "c", 1)])
    assert list(rankgauge.data.join.ranked(run, ties="input")["q1"]) == ["b", "a", "c"]
    assert list(rankgauge.data.join.ranked(run)["q1"]) == ["b", "c", "a"]


def test_a_run_with_a_document_twice_has_no_ranks() -> None:
    with pytest.raises(InputError, match="occurs twice"):
        rankgauge.data.join.ranked(Run.of([("q1", "a", 1), ("q1", "a", 2)]))


@given(batches(scores=few_scores), st.integers(1, 4))
def test_a_ranked_run_cut_at_a_depth_is_the_beginning_of_the_whole(made: Batch, depth: int) -> None:
    for ties in ("trec", "input"):
        whole = rankgauge.data.join.ranked(Run.of(made.run), ties=ties)
        cut = rankgauge.data.join.ranked(Run.of(made.run), ties=ties, depth=depth)
        assert {query: list(cut[query].items()) for query in cut} == {
            query: list(whole[query].items())[:depth] for query in whole
        }


@pytest.mark.parametrize("depth", [-1, 1.5])
def test_an_impossible_depth_is_refused(depth: Any) -> None:
    with pytest.raises(InputError, match="depth="):
        rankgauge.data.join.ranked(Run.of({"q": ["d"]}), depth=depth)
