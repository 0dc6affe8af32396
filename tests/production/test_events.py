"""Drafts of events become events: times, numbers, kinds, and reasons for rejection."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rankgauge.production.events import DRAFT, create_draft, statement

duckdb = pytest.importorskip("duckdb")

NOON = "2026-05-01T12:00:00Z"


def read(*rows, shifts=None, timezone=None):
    """Return the events of drafts, clicks at noon by default."""
    names = list(DRAFT)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        create_draft(connection)
        for line, given in enumerate(rows, 1):
            row = {"line": line, "part": 0, "kind": "click", "time": NOON, "rank_group": ""} | given
            marks = ", ".join(f"?::{DRAFT[name]}" for name in names)
            connection.execute(f"INSERT INTO draft VALUES ({marks})", [row.get(n) for n in names])
        ranks = {"groups": [*(shifts or {})], "shifts": [*(shifts or {}).values()]}
        found = connection.execute(statement("events"), {"source": "f.csv", "timezone": timezone, **ranks})
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def utc(*parts):
    return datetime(*parts, tzinfo=UTC).replace(tzinfo=None)


WHEN = utc(2026, 5, 1, 10, 20, 30, 123456)
SINCE = round((WHEN - utc(1970, 1, 1)) / timedelta(microseconds=1))


@pytest.mark.parametrize(
    ("text", "when"),
    [
        (f"{SINCE / 1e6:.3f}", WHEN.replace(microsecond=123000)),
        (f"{SINCE // 1000}", WHEN.replace(microsecond=123000)),
        (f"{SINCE}", WHEN),
        (f"{SINCE}000", WHEN),
        (f"{SINCE // 10**6}", WHEN.replace(microsecond=0)),
        ("2026-05-01T12:20:30.123456+02:00", WHEN),
        ("2026-05-01 10:20:30.123456Z", WHEN),
        ("2026-05-01T05:20:30.123456-05:00", WHEN),
        (NOON, utc(2026, 5, 1, 12)),
    ],
)
def test_times_are_read_in_utc_to_the_microsecond(text, when):
    (found,) = read({"time": text})
    assert found["problem"] is None
    # Nanoseconds have more digits than a float.
    assert abs(found["time"] - when) <= timedelta(microseconds=1 if text == f"{SINCE}000" else 0)


@pytest.mark.parametrize("month", [1, 7])
def test_times_without_a_zone_have_that_of_the_import(month):
    local = datetime(2026, month, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    text = f"2026-0{month}-01T12:00:00"
    (found,) = read({"time": text}, timezone="Europe/Berlin")
    assert found["time"] == local.astimezone(UTC).replace(tzinfo=None)
    assert read({"time": text})[0]["problem"] == "a time without a zone"


@pytest.mark.parametrize(
    ("text", "problem"),
    [(None, "no time"), ("soon", "a time that cannot be read"), ("7", "a time that cannot be read")],
)
def test_other_times_are_refused(text, problem):
    assert read({"time": text})[0]["problem"] == problem


@pytest.mark.parametrize(
    ("kind", "meanings"),
    [
        ("thumbs", {"Up ": 1, "1": 1, "1.0": 1, "like": 1, "down": -1, "0": -1, "-1": -1, "No": -1}),
        ("preference", {"a": 1, " First": 1, "1": 1, "B": -1, "2": -1, "right": -1, "-1": -1, "tie": 0, "0": 0}),
        ("label", {"answerable": 1, "1": 1, "yes": 1, "0": 0, "Unanswerable": 0, "false": 0}),
        ("click", {"3.5": 3.5, "inf": None, "x": None}),
    ],
)
def test_values_have_the_meaning_of_their_kind(kind, meanings):
    found = read(*({"kind": kind, "value": text} for text in meanings))
    assert {text: each["value"] for text, each in zip(meanings, found, strict=True)} == meanings
    assert {each["problem"] for each in found} == {None}


@pytest.mark.parametrize("kind", ["thumbs", "preference", "label"])
def test_values_without_a_meaning_are_refused(kind):
    for value in ("perhaps", "3", None):
        (found,) = read({"kind": kind, "value": value})
        assert found["problem"] == "a value that cannot be read"
    (bad,) = read({"kind": "preference", "value": "Neither"})
    assert (bad["problem"], bad["value"], bad["label"]) == (None, None, "both bad")


def test_ranks_are_shifted_by_their_group_and_those_of_a_retrieval_begin_with_1():
    shown = {"documents": ["a", "b", "c"]}
    found = read(
        {"kind": "retrieval", **shown},
        {"kind": "impression", **shown},
        {"kind": "retrieval", **shown, "ranks": ["11", "12", "13"]},
        {"documents": ["a"], "ranks": ["0"], "rank_group": "zero"},
        {"documents": ["a"], "ranks": ["4.0"]},
        shifts={"zero": 1},
    )
    assert [each["ranks"] for each in found] == [[1, 2, 3], None, [11, 12, 13], [1], [4]]
    assert {each["problem"] for each in found} == {None}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"documents": ["a"], "ranks": ["0"]}, "an invalid rank"),
        ({"documents": ["a"], "ranks": ["1.5"]}, "an invalid rank"),
        ({"documents": ["a"], "ranks": ["3e9"]}, "an invalid rank"),
        ({"documents": ["a"], "ranks": ["x"]}, "an invalid rank"),
        ({"documents": ["a"], "ranks": ["1", "2"]}, "the numbers of ranks and documents differ"),
        ({"documents": ["a", "b"], "ranks": ["1"]}, "the numbers of ranks and documents differ"),
        ({"documents": ["a", "b"], "scores": ["1"]}, "scores that cannot be read"),
        ({"documents": ["a"], "scores": ["high"]}, "scores that cannot be read"),
        ({"latency_ms": "-1"}, "a latency that cannot be read"),
        ({"latency_ms": "inf"}, "a latency that cannot be read"),
        ({"latency_ms": "fast"}, "a latency that cannot be read"),
        ({"kind": None}, "no kind"),
    ],
)
def test_impossible_numbers_are_refused(fields, problem):
    assert read(fields)[0]["problem"] == problem


def test_possible_numbers_are_kept():
    (found,) = read({"documents": ["a", "b"], "scores": ["0.5", "-2"], "latency_ms": "0"})
    assert (found["scores"], found["latency_ms"], found["source"]) == ([0.5, -2], 0, "f.csv:1")


def test_events_without_an_identifier_differ_if_any_of_their_fields_differs():
    given = {"documents": ["a"], "ranks": ["1"], "value": "2", "text": "t", "question_id": "q"}
    others = [
        {"documents": ["b"]},
        {"ranks": ["2"]},
        {"value": "3"},
        {"text": "u"},
        {"arm": "A"},
        {"question_id": "r"},
        {"session_id": "s"},
        {"user_id": "u"},
        {"kind": "citation click"},
        {"time": "2026-05-01T12:00:00.000001Z"},
        {"label": "l"},
        {"scores": ["1"]},
    ]
    first, again, *rest = (each["event_id"] for each in read(given, given, *(given | other for other in others)))
    assert first == again
    assert len({first, *rest}) == 1 + len(others)
    assert read({"event_id": "e7"})[0]["event_id"] == "e7"
