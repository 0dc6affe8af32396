"""Differently spelled equal ids: the fast check misses none that the slow definition finds."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given, strategies as st

from rankgauge.core.ids import Ids
from rankgauge.data.id_spelling import _WAYS, id_change, matches, spelled, way_of

_BIT = st.sampled_from(
    [
        "0",
        "0",
        "1",
        "7",
        "a",
        "A",
        "b",
        "B",
        "_",
        "-",
        ".",
        "/",
        ":",
        " ",
        "%41",
        "%2F",
        "%00",
        ".0",
        "'",
        '"',
        "é",
        "É",
        "ß",
        "\u212a",
        "k",
        "\u00a0",
    ]
)
_ID = st.lists(_BIT, min_size=1, max_size=6).map("".join).map(str.encode)


def _slowly(value: bytes) -> str:
    """Return an id without whitespace, quotes, case, leading zeros, .0, and escapes."""
    text = unquote(value.decode()).strip().strip("\"'").strip()
    whole = re.fullmatch(r"(-?\d+)\.0+", text)
    text = whole[1] if whole else text
    return re.sub(r"(?<!\d)0+(?=\d)", "", text).casefold()


@given(st.sets(_ID, min_size=1, max_size=20), st.sets(_ID, min_size=1, max_size=10))
def test_whatever_ids_are_made_of_a_way_is_found_where_two_meet(ours, theirs):
    ours -= theirs
    meet = {_slowly(value) for value in ours} & {_slowly(value) for value in theirs}
    plain = all(value.isdigit() and value[:1] != b"0" for value in ours | theirs)
    way = way_of(ours, theirs)
    if not ours or plain or not meet - {""}:
        return
    assert way is not None
    found = spelled(way, [Ids.of(sorted(ours))], theirs)
    assert found.names


@pytest.mark.parametrize(
    ("written", "by"),
    [
        (b"%07d", "without leading zeros"),
        (b"%d.0", "without .0 at the end"),
        (b'"%d"', "without surrounding spaces or quotes"),
    ],
)
def test_a_single_differently_spelled_id_among_thousands_is_found(written, by):
    judged = [b"%d" % number for number in range(1, 5000)]
    ours = [*judged[:-1], written % 4999]
    way = way_of(ours, judged)
    assert way is not None
    assert way.by == by
    assert spelled(way, [Ids.of(ours)], judged).names == {written % 4999: b"4999"}


def test_two_ids_of_one_case_among_thousands_are_taken_for_chance():
    judged = [b"a%d" % number for number in range(5000)]
    assert way_of([*judged[:-1], b"A4999"], judged) is None


@pytest.mark.parametrize(
    ("ours", "by"),
    [
        ("corpus/{}", "without the prefix 'corpus/'"),
        ("docs_v2/{}", "without the prefix 'docs_v2/'"),
        ("{}.txt", "without the suffix '.txt'"),
        ("corpus/{}.txt", "without the prefix 'corpus/' and the suffix '.txt'"),
        # The numbers after the separator are ids, too, but all are equal.
        ("{}#3", "without the suffix '#3'"),
    ],
)
@pytest.mark.parametrize("name", ["{}", "how-to-renew-{}", "D{}"])
def test_a_shared_prefix_or_suffix_of_ids_is_removed(ours, by, name):
    judged = [name.format(number).encode() for number in range(3, 90)]
    mine = [ours.format(value.decode()).encode() for value in judged]
    for one, other in ((mine, judged), (judged, mine)):
        way = way_of(one, other)
        assert way is not None
        assert way.by == by
        assert dict(matches(way, one, other)) == dict(zip(one, other, strict=True))
        found = spelled(way, [Ids.of(one)], other)
        assert found.names == dict(zip(one, other, strict=True))
        assert found.one_to_one


@given(st.lists(st.text("aB1 0._/#-%2:'|\t", min_size=1, max_size=6), min_size=1, max_size=3))
def test_a_way_that_changes_an_id_is_possible(ids):
    for way in _WAYS:
        if way.by != "without the word before the number" and any(way.turn(i) != i for i in ids):
            assert way.possible("\n".join(ids)), way.by


def test_a_word_before_the_number_needs_bare_numbers_too():
    (way,) = (way for way in _WAYS if way.by == "without the word before the number")
    assert way.possible("DOC486\n486")
    assert not way.possible("DOC486\nDOC487")


PATHS = ["loans/renewing.md", "loans/fees.md", "house/hours.md", "house/wifi.md", "readme.md"]


@pytest.mark.parametrize(
    ("spell", "arguments"),
    [
        ("/home/me/{}", 'base="/home/me"'),
        ("docs/{}", 'base="docs"'),
        ("https://a.example/{}", 'base="https://a.example"'),
        ("{}#7", 'id=lambda doc: doc.id.rsplit("#", 1)[0]'),
        ("{}_chunk_7", 'id=lambda doc: doc.id.rsplit("_chunk_", 1)[0]'),
        ("/a/{}::7", 'base="/a", id=lambda doc: doc.id.rsplit("::", 1)[0]'),
        ("/a/{}-7", 'base="/a", id=lambda doc: doc.id.rsplit("-", 1)[0]'),
        ("page:{}", 'id=lambda doc: doc.id.removeprefix("page:")'),
        ("{}.txt", 'id=lambda doc: doc.id.removesuffix(".txt")'),
        ("/a/{}.txt", 'base="/a", id=lambda doc: doc.id.removesuffix(".txt")'),
    ],
)
def test_the_change_of_ids_in_python_makes_them_match(spell, arguments):
    ours = [spell.replace("7", str(number)).format(path) for number, path in enumerate(PATHS)]
    assert id_change(ours, PATHS, "doc.id") == (arguments, len(PATHS))
    code, matched = id_change(ours, PATHS)
    assert [eval(code, {"doc_id": name}) for name in ours] == PATHS
    assert matched == len(PATHS)


def test_documents_of_another_folder_do_not_hide_the_change():
    ours = ["/elsewhere/new.md", *(f"/home/me/{path}#{number}" for number, path in enumerate(PATHS))]
    assert id_change(ours, PATHS, "doc.id") == ('base="/home/me", id=lambda doc: doc.id.rsplit("#", 1)[0]', 5)


def test_ids_without_their_ending_are_completed():
    ours = [path.removesuffix(".md") for path in PATHS]
    assert id_change(ours, PATHS) == ('doc_id + ".md"', 5)


@pytest.mark.parametrize("ours", [["1", "2"], ["renewing.md", "fees.md", "hours.md"], PATHS, []])
def test_ids_that_no_single_change_makes_match_have_no_advice(ours):
    assert id_change(ours, PATHS)[0] == ""


def test_no_change_is_advised_that_breaks_the_ids_of_other_documents():
    assert id_change(["/h/x.md#1", "/h/y#2.md", "/h/z.md#4"], ["x.md", "y#2.md", "z.md"], "doc.id") == ("", 0)
    assert id_change(["a.md", "b.md", "c"], ["a.md", "b.md", "c.md"], "doc.id") == ("", 2)


def test_a_folder_with_quotation_marks_is_quoted():
    assert id_change(['/"a"/x.md', '/"a"/y.md'], ["x.md", "y.md"], "doc.id") == (r'base="/\"a\""', 2)


def test_names_that_several_folders_have_get_no_folder():
    assert id_change(["fees.md", "hours.md"], ["loans/fees.md", "house/fees.md", "house/hours.md"]) == ("", 0)
    assert id_change(["fees.md", "hours.md"], ["house/fees.md", "house/hours.md"]) == ('"house/" + doc_id', 2)
