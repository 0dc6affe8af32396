"""Rows of query, document, and number, stored in columns."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from rankgauge.core import native, pair_table
from rankgauge.core.ids import IdRuns, Ids
from rankgauge.core.pair_table import PairTable, distinct, offsets_of, pair_keys

ROWS = st.lists(st.tuples(st.sampled_from("pqr"), st.sampled_from(["a", "b", "cc"]), st.integers(0, 9)))


def table(rows: list[tuple[str, str, int]]) -> PairTable:
    queries, docs, values = zip(*rows, strict=True) if rows else ((), (), ())
    return PairTable.of_rows(
        Ids.of(queries), Ids.of(docs), np.array(values, dtype=np.float64), lines=np.arange(1, len(rows) + 1)
    )


@given(ROWS)
def test_rows_of_a_query_are_contiguous_in_the_given_order(rows: list[tuple[str, str, int]]) -> None:
    made = table(rows)
    queries = made.queries.tolist()
    assert queries == list(dict.fromkeys(query.encode() for query, _, _ in rows))
    got = [
        (queries[number].decode(), doc.decode(), int(value))
        for number, doc, value in zip(made.query_numbers(), made.docs.tolist(), made.values, strict=True)
    ]
    assert got == sorted(rows, key=lambda row: queries.index(row[0].encode()))
    assert made.lines is not None
    assert [rows[line - 1] for line in made.lines] == got


@given(ROWS)
def test_repeats_are_all_found(rows: list[tuple[str, str, int]]) -> None:
    made = table(rows)
    pairs = [row[:2] for row in rows]
    expected = {pair: pairs.count(pair) for pair in pairs if pairs.count(pair) > 1}
    queries, docs, numbers = made.queries.tolist(), made.docs.tolist(), made.query_numbers()
    found = {(queries[numbers[group[0]]].decode(), docs[group[0]].decode()): len(group) for group in made.repeats()}
    assert found == expected


@pytest.mark.parametrize("bits", [64, 2, 0])
@given(rows=ROWS)
def test_repeats_come_in_the_order_of_their_first_row_whatever_a_hash_is_worth(bits, rows):
    made = table(rows)
    kept = np.uint64((1 << bits) - 1)
    object.__setattr__(made.docs, "_hashed", made.docs.hashes() & kept)
    pairs = list(zip(made.query_numbers().tolist(), made.docs.tolist(), strict=True))
    places = {pair: [n for n, other in enumerate(pairs) if other == pair] for pair in pairs}
    assert made.repeats() == [group for group in places.values() if len(group) > 1]


@pytest.mark.parametrize("place", [None, 0, 7, 59])
@pytest.mark.parametrize("lengths", [(4,), (3, 5)], ids=["alike", "of two lengths"])
def test_a_repeat_is_found_among_many_queries_of_like_length(lengths: tuple[int, ...], place: int | None) -> None:
    rows = [
        (f"q{query}", f"d{0 if query == place and doc < 2 else doc}", 1)
        for query in range(60)
        for doc in range(lengths[query % len(lengths)])
    ]
    found = table(rows).repeats()
    assert [len(group) for group in found] == [2] * (place is not None)
    assert all(rows[row][:2] == (f"q{place}", "d0") for group in found for row in group)


def test_keeping_rows_keeps_the_queries() -> None:
    kept = table([("p", "a", 1), ("q", "b", 2), ("q", "a", 3)]).keep(np.array([2]))
    assert kept.queries.tolist() == [b"p", b"q"]
    assert kept.offsets.tolist() == [0, 0, 1]
    assert kept.docs.tolist() == [b"a"]


def test_tables_are_equal_if_their_rows_are() -> None:
    rows = [("p", "a", 1), ("q", "b", 2)]
    assert table(rows) == table(rows).with_notes("a note", source="a file")
    assert table(rows) != table(rows[::-1])
    assert table(rows) != table([("p", "a", 1), ("q", "b", 3)])
    assert table(rows) != rows


def test_tables_pickle_and_stay_read_only() -> None:
    made = pickle.loads(pickle.dumps(table([("p", "a", 1)])))
    assert made == table([("p", "a", 1)])
    for array in (made.offsets, made.values, made.lines, made.docs.data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_equal_pairs_have_equal_keys_and_others_differ() -> None:
    docs = Ids.of(["a", "b", "a", "a"])
    keys = pair_keys(docs.hashes(), np.array([0, 0, 0, 1])).tolist()
    assert keys[0] == keys[2]
    assert len(set(keys)) == 3


def test_offsets_start_at_zero_and_end_behind_the_last() -> None:
    assert offsets_of([2, 0, 3]).tolist() == [0, 2, 2, 5]
    assert offsets_of([]).tolist() == [0]


def test_runs_without_rows_are_grouped_with_the_others_of_their_query() -> None:
    runs = IdRuns(Ids.of(["a", "b", "a", "b"]), np.array([2, 0, 1, 1]))
    rows = PairTable.of_rows(runs, Ids.of(["d1", "d2", "d3", "d4"]), np.zeros(4))
    assert (rows.queries.tolist(), rows.offsets.tolist()) == ([b"a", b"b"], [0, 3, 4])
    assert rows.docs.tolist() == [b"d1", b"d2", b"d3", b"d4"]


@given(st.lists(st.integers(-3, 3)))
def test_distinct_numbers_are_those_that_numpy_finds(numbers: list[int]) -> None:
    found = distinct(np.array(numbers, dtype=np.int64))
    assert found.dtype == np.int64
    assert found.tolist() == np.unique(np.array(numbers, dtype=np.int64)).tolist()


@given(
    st.dictionaries(
        st.text("qé", min_size=1), st.lists(st.tuples(st.text("ab0é", min_size=1, max_size=12), st.integers(0, 3)))
    )
)
@pytest.mark.parametrize("deep", [0, 100])
@pytest.mark.parametrize("longest", [3, 12])
def test_rows_by_id_are_sorted_whatever_the_length_of_ids_and_repeats(longest, deep, ranked):
    pairs = [(query, doc[:longest], value) for query, ranking in ranked.items() for doc, value in ranking]
    if longest == 12:
        pairs = list({pair[:2]: pair for pair in pairs}.values())
    queries, docs, values = zip(*pairs, strict=True) if pairs else ((), (), ())
    rows = PairTable.of_rows(Ids.of(queries), Ids.of(docs), np.array(values, dtype=np.float64))
    expected = sorted(range(len(rows)), key=lambda row: rows.values[row])
    expected.sort(key=lambda row: rows.docs[row], reverse=True)
    expected.sort(key=lambda row: int(rows.query_numbers()[row]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_table, "_DEEP", deep)
        assert rows.by_id().tolist() == expected


@given(ROWS, st.booleans())
@example(rows=[("p", "cc", 0), ("p", "a", 1), ("p", "b", 1), ("q", "a", 1)], by_id=True)
@example(rows=[("p", "cc", 0), ("p", "b", 1), ("p", "a", 1), ("q", "a", 1)], by_id=False)
@pytest.mark.parametrize("compiled", [True, False])
def test_the_best_rows_come_first_and_equal_ones_by_id_or_as_given(compiled, rows, by_id):
    rows = list({row[:2]: row for row in rows}.values())
    found = table(rows)
    lines = found.lines.tolist()
    numbered = sorted(range(len(rows)), key=lambda row: rows[row][1] if by_id else -row, reverse=True)
    numbered.sort(key=lambda row: -rows[row][2])
    numbered.sort(key=lambda row: [*dict.fromkeys(query for query, *_ in rows)].index(rows[row][0]))
    groups = [rows[row][::2] for row in numbered]
    heads = [place for place in range(len(rows)) if not place or groups[place] != groups[place - 1]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "core", native.core if compiled else None)
        order, starts = found.best_first(by_id=by_id)
    assert [lines[row] - 1 for row in order.tolist()] == numbered
    assert starts.tolist() == [*heads, len(rows)]
