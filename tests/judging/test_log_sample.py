"""Questions drawn from logs: exactly n, with the recorded probabilities."""

import json
from collections import Counter

import pytest

import rankgauge
from rankgauge.judging import sample_log


@pytest.fixture
def log(tmp_path):
    """Searches with frequencies 40, 9, 5, 3, 2 and 1."""
    rows = [("fees", 39), ("hours", 9), ("cards", 5), ("wifi", 3), ("rooms", 2), ("print", 1)]
    file = tmp_path / "log.csv"
    lines = ["query,count", *(f"{text},{count}" for text, count in rows), " FEES ,1"]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def expected(sizes, n):
    """Inclusion probabilities from their definition: those that reach 1 are certain."""
    certain = set()
    while True:
        rest = {key: size for key, size in sizes.items() if key not in certain}
        total = sum(rest.values())
        found = {key: (n - len(certain)) * size / total for key, size in rest.items()}
        over = {key for key, value in found.items() if value >= 1}
        if not over:
            return found | dict.fromkeys(certain, 1.0)
        certain |= over


SIZES = {"fees": 40, "hours": 9, "cards": 5, "wifi": 3, "rooms": 2, "print": 1}


def test_probabilities_are_proportional_to_frequencies_and_recorded(log):
    for seed in range(30):
        drawn = sample_log(log, 3, seed=seed)
        assert len({each.id for each in drawn}) == 3
        for each in drawn:
            assert each.probability == pytest.approx(expected(SIZES, 3)[each.text], abs=1e-15)
            assert each.origin == "log"


@pytest.mark.parametrize("by", ["frequency", "uniform"])
def test_each_question_is_drawn_as_often_as_its_probability_says(log, by):
    draws = 4000
    counted = Counter(
        each.text for seed in range(draws) for each in sample_log(log, 2, by=by, seed=seed)
    )
    sizes = SIZES if by == "frequency" else dict.fromkeys(SIZES, 1)
    for text, p in expected(sizes, 2).items():
        assert abs(counted[text] - draws * p) <= 4 * (draws * p * (1 - p)) ** 0.5


def test_all_questions_are_drawn_for_certain(log):
    assert {each.probability for each in sample_log(log, 6)} == {1.0}


def test_a_question_has_the_same_identifier_in_every_sample(log):
    ids = {each.text: each.id for each in sample_log(log, 6)}
    for seed in range(5):
        for each in sample_log(log, 3, seed=seed):
            assert ids[each.text] == each.id
    assert [each.id for each in sample_log(log, 3)] == [each.id for each in sample_log(log, 3)]


def test_logs_are_json_lines_or_a_question_on_each_line(tmp_path):
    lines = tmp_path / "log.txt"
    lines.write_text("late fees\n\nLate  Fees\nwifi\n", encoding="utf-8")
    assert {each.text for each in sample_log(lines, 2)} == {"late fees", "wifi"}
    rows = tmp_path / "log.jsonl"
    texts = ["late fees", "wifi", "LATE FEES"]
    rows.write_text("".join(json.dumps({"user_query": text}) + "\n" for text in texts))
    assert {each.text for each in sample_log(rows, 2)} == {"late fees", "wifi"}


def test_what_cannot_be_drawn_is_an_error_with_its_line(tmp_path, log):
    with pytest.raises(rankgauge.InputError, match="has 6 different ones"):
        sample_log(log, 7)
    file = tmp_path / "bad.csv"
    file.write_text("query,count\nfees,2\nwifi,often\n", encoding="utf-8")
    with pytest.raises(rankgauge.FormatError, match="'often' for a count") as error:
        sample_log(file, 1)
    assert error.value.line == 3
    file.write_text("when,what\n1,fees\n", encoding="utf-8")
    with pytest.raises(rankgauge.FormatError, match="the columns are when, what"):
        sample_log(file, 1)
