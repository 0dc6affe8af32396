"""Columns of ids: input, output, and comparison."""

from __future__ import annotations

import itertools
import pickle
from enum import IntEnum, StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from rankgauge.core import native
from rankgauge.core.ids import IdRuns, Ids, Numbering, id_bytes, near_match, renumbered, show_id
from rankgauge.errors import InputError

BYTES = st.binary(min_size=1, max_size=40).filter(lambda value: b"\0" not in value)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
COLUMNS = st.lists(BYTES | st.sampled_from([b"a", b"aa", b"ab", b"a" * 200, b"a" * 199 + b"b"]))


class Color(StrEnum):
    RED = "red"


class Number(IntEnum):
    SEVEN = 7


@given(COLUMNS)
def test_bytes_come_back_as_they_went_in(values: list[bytes]) -> None:
    assert Ids.of(values).tolist() == values


@given(st.lists(TEXT))
def test_text_comes_back_as_utf8(values: list[str]) -> None:
    assert Ids.of(values).tolist() == [value.encode() for value in values]


@given(st.lists(st.integers()))
def test_whole_numbers_are_their_digits(values: list[int]) -> None:
    assert Ids.of(values) == Ids.of([str(value) for value in values])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([1, -2], dtype=np.int8), [b"1", b"-2"]),
        (np.array([2**64 - 1], dtype=np.uint64), [b"18446744073709551615"]),
        (np.array([-(2**63)]), [b"-9223372036854775808"]),
        (np.array(["a", "bcd"]), [b"a", b"bcd"]),
        (np.array(["a", "é"], dtype=">U3"), [b"a", "é".encode()]),
        (np.array([b"a", b"bcd\xff"]), [b"a", b"bcd\xff"]),
        (np.array(["a", np.str_("b")], dtype=object), [b"a", b"b"]),
        (np.array(["a", "b", "c", "d"])[::2], [b"a", b"c"]),
        (np.arange(6)[::-2], [b"5", b"3", b"1"]),
        (np.array([], dtype="U3"), []),
        (np.array([], dtype=np.float64), []),
        ([Color.RED], [b"red"]),
        ([Number.SEVEN, 8], [b"7", b"8"]),
        ([np.int64(7), 8], [b"7", b"8"]),
        ([np.bytes_(b"x"), b"y"], [b"x", b"y"]),
        ((str(n) for n in range(2)), [b"0", b"1"]),
    ],
)
def test_ids_are_read_from_any_column(values: Any, expected: list[bytes]) -> None:
    assert Ids.of(values).tolist() == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([True], "row 1: id True is of type bool; expected text, a whole number, or bytes"),
        (np.array([True]), "row 1: id True is of type bool; expected text, a whole number, or bytes"),
        (["a", 1], "row 2: id 1 is a whole number, but 'a' is text"),
        (["a", b"a"], "row 2: id b'a' is bytes, but 'a' is text"),
        (["a", "b", ""], "row 3: the id is empty"),
        (np.array(["a", ""]), "row 2: the id is empty"),
        ([b"a", b"b\0c"], "row 2: id 'b\\x00c' contains a NUL byte"),
        (["a", None], "row 2: the id is missing (None)"),
        (np.ma.array([1, 2], mask=[False, True]), "row 2: the id is missing (None)"),
        (["a", "\ud83d", "\ude00"], "row 2: id '\\ud83d' contains a lone surrogate"),
        ([1.0], "row 1: id 1.0 is a decimal number"),
        ([["a"]], "row 1: id ['a'] is of type list"),
        (["x" * 1000, 5], f"row 2: id 5 is a whole number, but '{'x' * 56}... is text"),
    ],
)
def test_what_is_no_id_is_refused_with_its_row(values: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Ids.of(values)
    assert str(caught.value).startswith(message)


@given(COLUMNS, st.randoms())
def test_hashes_and_equality_follow_the_bytes(values: list[bytes], random: Any) -> None:
    ids = Ids.of(values)
    mixed = values[:]
    random.shuffle(mixed)
    others = Ids.of(mixed)
    rows = np.arange(len(values))
    same = [one == other for one, other in zip(values, mixed, strict=True)]
    assert ids.same(rows, others, rows).tolist() == same
    assert [h for h, s in zip(ids.hashes(), same, strict=True) if s] == [
        h for h, s in zip(others.hashes(), same, strict=True) if s
    ]


@pytest.mark.parametrize("compiled", [True, False])
@given(values=COLUMNS)
def test_a_hash_does_not_depend_on_the_rest_of_the_column(*, compiled: bool, values: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(native, "core", native.core if compiled else None)
        check_hashes(values)


def check_hashes(values: list[bytes]) -> None:
    alone = [int(Ids.of([value]).hashes()[0]) for value in values]
    assert Ids.of(values).hashes().tolist() == alone
    assert len({*alone}) == len({*values})


@given(COLUMNS)
def test_order_is_by_bytes_descending(values: list[bytes]) -> None:
    rows = np.arange(len(values))
    order = Ids.of(values).descending(rows, np.zeros(len(values), dtype=np.int64))
    assert [values[row] for row in order] == sorted(values, reverse=True)


@given(COLUMNS, st.randoms(), st.booleans())
def test_order_is_by_group_then_by_bytes_descending(values, dice, ordered):
    groups = [dice.randrange(1 + len(values) // 2) for _ in values]
    groups = sorted(groups) if ordered else groups
    order = Ids.of(values).descending(np.arange(len(values)), np.array(groups))
    wanted = [
        (group, value)
        for group in sorted(set(groups))
        for value in sorted((v for v, g in zip(values, groups, strict=True) if g == group), reverse=True)
    ]
    assert [(groups[row], values[row]) for row in order] == wanted


@given(COLUMNS)
def test_unique_numbers_ids_in_order_of_appearance(values: list[bytes]) -> None:
    codes, names = Ids.of(values).unique()
    assert names.tolist() == list(dict.fromkeys(values))
    assert [names.tolist()[code] for code in codes] == values


@given(st.lists(COLUMNS, max_size=4))
@example([[b"a", b"b"], [b"a", b"b"]])
def test_numbers_continue_over_several_columns(columns: list[list[bytes]]) -> None:
    for core in {native.core, None}:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(native, "core", core)
            numbering, known = Numbering(), list[bytes]()
            for values in columns:
                numbers, names = numbering.add(Ids.of(values))
                known += names.tolist()
                assert [known[number] for number in numbers] == values
            assert known == list(dict.fromkeys(itertools.chain(*columns)))


@given(st.lists(BYTES, min_size=1, max_size=9), st.data())
def test_codes_are_numbered_in_the_order_of_the_rows(entries: list[bytes], data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.integers(0, len(entries) - 1), max_size=30))
    counts = data.draw(st.lists(st.integers(1, 3), min_size=len(codes), max_size=len(codes)))
    runs = IdRuns(Ids.of(entries), np.array(counts, dtype=np.int64), np.array(codes, dtype=np.int8))
    values = [entries[code] for code in codes]
    numbers, names = runs.numbered()
    assert names.tolist() == list(dict.fromkeys(values))
    assert [names.tolist()[number] for number in numbers] == values
    assert runs.spread().tolist() == [value for value, count in zip(values, counts, strict=True) for _ in range(count)]


@pytest.mark.parametrize("piece", [1, 2, 3])
@given(values=COLUMNS, repeated=st.lists(st.integers(0, 5), max_size=30))
def test_long_columns_are_hashed_and_numbered_in_pieces(piece: int, values: list[bytes], repeated: list[int]) -> None:
    # Rows with separate bytes, and rows that share bytes as those of a dictionary column do.
    alone = [int(Ids.of([value]).hashes()[0]) for value in values]
    for rows in (list(range(len(values))), [row for row in repeated if row < len(values)]):
        ids = Ids.of(values).take(np.array(rows, dtype=np.int64))
        taken = [values[row] for row in rows]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("rankgauge.core.ids._PIECE", piece)
            codes, names = ids.unique()
            assert names.tolist() == list(dict.fromkeys(taken))
            assert [names.tolist()[code] for code in codes] == taken
            assert ids.hashes().tolist() == [alone[row] for row in rows]


def test_hashes_are_cached_and_selected_with_the_rows() -> None:
    ids = Ids.of(["a", "b", "c"])
    hashes = ids.hashes()
    assert ids.hashes() is hashes
    assert ids.take(np.array([2, 0])).hashes().tolist() == hashes[[2, 0]].tolist()
    assert ids.take(slice(1, 3)).tolist() == [b"b", b"c"]
    again = pickle.loads(pickle.dumps(ids))
    for kept in (hashes, again.hashes()):
        assert not kept.flags.writeable


def test_hashes_are_not_pickled() -> None:
    ids = Ids.of([str(number) for number in range(1000)])
    before = len(pickle.dumps(ids))
    hashes = ids.hashes()
    assert len(pickle.dumps(ids)) == before
    assert np.array_equal(pickle.loads(pickle.dumps(ids)).hashes(), hashes)


def test_ids_pickle_and_stay_read_only() -> None:
    ids = pickle.loads(pickle.dumps(Ids.of(["a", "bc"])))
    assert ids == Ids.of(["a", "bc"])
    assert ids != Ids.of(["a", "bd"])
    for array in (ids.data, ids.starts, ids.lengths):
        assert not array.flags.writeable


def test_changing_the_source_changes_nothing() -> None:
    for source in (np.array([b"a", b"b"]), np.array([1, 2]), np.array(["a", "b"], dtype=object)):
        ids = Ids.of(source)
        before = ids.tolist()
        source[0] = source[1]
        assert ids.tolist() == before


def test_ids_that_are_not_utf8_are_counted_once() -> None:
    assert Ids.of([b"a", b"\xff", b"\xff", b"\xfe"]).not_text() == 2
    assert Ids.of(["é", "a"]).not_text() == 0
    assert Ids.of([]).not_text() == 0


def test_an_id_of_a_megabyte_is_an_id() -> None:
    ids = Ids.of(["a" * 1_000_000, "b"])
    assert ids.same(np.array([0]), ids, np.array([0])).all()
    assert len(set(ids.hashes().tolist())) == 2


@pytest.mark.parametrize(
    ("value", "shown"), [(b"d1", "d1"), ("é".encode(), "é"), (b"\xff", "\\xff"), (b"a\nb", "a\\nb")]
)
def test_ids_are_shown_escaped(value: bytes, shown: str) -> None:
    assert show_id(value) == shown


def test_one_id_alone_is_read_as_in_a_column() -> None:
    for value in ("d", 7, b"d\xff", np.int64(3), np.str_("é")):
        assert [id_bytes(value)] == Ids.of([value]).tolist()
    for value in (True, 1.5, None, "\ud800", ["a"]):
        with pytest.raises(InputError):
            id_bytes(value)


@pytest.mark.parametrize(
    ("ours", "theirs", "pair"),
    [
        ([b"x", b"001"], [b"2", b"1"], (b"001", b"1")),
        ([b"D1"], [b"d1"], (b"D1", b"d1")),
        ([b" d1\t"], [b"d1"], (b" d1\t", b"d1")),
        (["É".encode()], ["é".encode()], ("É".encode(), "é".encode())),
        ([b"00"], [b"0"], (b"00", b"0")),
        ([b" "], [b"0"], None),
        ([b"d1"], [b"d2"], None),
        ([b"D1", b"d2"], [b"d1", b"d2"], None),
        ([b"\xff"], [b"\xfe"], None),
        ([], [b"d1"], None),
        ([b"d1"], [], None),
    ],
)
def test_ids_match_except_for_zeros_blanks_and_case(
    ours: list[bytes], theirs: list[bytes], pair: tuple[bytes, bytes] | None
) -> None:
    assert near_match(iter(ours), iter(theirs)) == pair


def test_only_the_first_ten_thousand_ids_are_looked_at() -> None:
    many = (b"d%d" % number for number in itertools.count())
    assert near_match(many, [b"D9999"]) == (b"d9999", b"D9999")
    assert next(many) == b"d10000"
    assert near_match((b"d%d" % number for number in itertools.count()), [b"D10000"]) is None


@pytest.mark.parametrize(
    ("value", "step", "moved"),
    [
        (b"9", 1, b"10"),
        (b"10", -1, b"9"),
        (b"0", 1, b"1"),
        (b"009", 1, b"010"),
        (b"d9", 1, b"d9"),
        (b"", 1, b""),
        (b"9" * 19, 1, b"9" * 19),
    ],
)
def test_whole_numbers_move_one_further_and_other_ids_stay(value, step, moved):
    assert renumbered(value, step) == moved
