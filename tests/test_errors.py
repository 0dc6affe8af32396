"""Error classes: found value, location, and fix; preserved by pickling."""

from __future__ import annotations

import pickle

import pytest

from rankgauge.errors import FormatError, InputError, MismatchError, MissingExtra, RankgaugeError, UnknownName

ERRORS = [
    InputError("got 3, expected 4", where="run", fix="add one"),
    InputError("got 3"),
    FormatError("no number", path="a.run", line=3, column=5, text="q1 ...", fix="write one"),
    FormatError("nothing here", path="a.run"),
    MismatchError("no query in common", fix="check the ids"),
    UnknownName("nobody knows it", where="measure"),
    MissingExtra("pandas is not installed", fix="pip install pandas"),
]


@pytest.mark.parametrize("error", ERRORS, ids=str)
def test_errors_are_the_same_after_a_pickle(error: RankgaugeError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_a_message_says_where_what_and_the_fix() -> None:
    assert str(ERRORS[0]) == "run: got 3, expected 4\nfix: add one"
    assert str(ERRORS[1]) == "got 3"
    assert str(ERRORS[2]) == "a.run, line 3, column 5: no number\nline: q1 ...\nfix: write one"
    assert str(ERRORS[3]) == "a.run: nothing here"


def test_all_are_caught_by_one_and_by_the_error_of_python() -> None:
    assert all(isinstance(error, RankgaugeError) for error in ERRORS)
    assert all(isinstance(error, ValueError | ImportError) for error in ERRORS)


def test_a_message_is_short_enough_to_read_and_holds_only_what_can_be_printed() -> None:
    error = InputError("got \ud800 and \0 \t" + "x" * 5000 + " in the end", where="a\x1bb", fix="one\ntwo")
    assert "\\ud800 and \\x00 \\t" in error.what
    assert error.what.endswith("x in the end")
    assert " ... " in error.what
    assert len(str(error)) < 2000
    assert (error.where, error.fix) == ("a\\x1bb", "one\\ntwo")
