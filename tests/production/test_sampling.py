"""Questions sampled from logs: exactly n, with known probabilities, near-duplicates as one."""

import json
import math
import random
from collections import Counter

import pytest
from hypothesis import given, strategies as st

import rankgauge
from rankgauge.production import EvaluationQuestion, sample_questions
from rankgauge.production.sampling import group_questions


@pytest.fixture
def log(tmp_path):
    """Searches with frequencies 40, 9, 5, 3, 2 and 1."""
    rows = [("fees", 39), ("hours", 9), ("cards", 5), ("wifi", 3), ("rooms", 2), ("print", 1)]
    file = tmp_path / "log.csv"
    lines = ["query,count", *(f"{text},{count}" for text, count in rows), " FEES? ,1"]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


SIZES = {"fees": 40, "hours": 9, "cards": 5, "wifi": 3, "rooms": 2, "print": 1}


def written(folder, sizes):
    file = folder / "sizes.csv"
    file.write_text("query,count\n" + "".join(f"{text},{n}\n" for text, n in sizes.items()))
    return file


def expected(sizes, n):
    """Return inclusion probabilities from their definition: those that reach 1 are certain."""
    certain = set()
    while True:
        rest = {key: size for key, size in sizes.items() if key not in certain}
        total = sum(rest.values())
        found = {key: (n - len(certain)) * size / total for key, size in rest.items()}
        over = {key for key, value in found.items() if value >= 1}
        if not over:
            return found | dict.fromkeys(certain, 1.0)
        certain |= over


def test_probabilities_are_proportional_to_frequencies_and_recorded(log):
    for seed in range(30):
        drawn = sample_questions(log, 3, seed=seed).questions
        assert len({each.id for each in drawn}) == 3
        for each in drawn:
            assert each.probability == pytest.approx(expected(SIZES, 3)[each.text], abs=1e-15)
            assert each.frequency == SIZES[each.text]
            assert each.weight == pytest.approx(SIZES[each.text] / each.probability)
            assert each.query_weight == pytest.approx(1 / each.probability)
            assert each.origin == "log"


@pytest.mark.parametrize("by", ["frequency", "uniform", "strata"])
def test_each_question_is_drawn_as_often_as_its_probability_says(tmp_path, by):
    sizes = {"fees": 20, "hours": 15, "cards": 10, "wifi": 5, "rooms": 4, "print": 4, "maps": 2}
    # Cumulative sums before each: 0, 20, 35, 45, 50, 54, 58 of 60; thirds begin at 20 and 40.
    strata = {"fees": "head", "hours": "torso", "cards": "torso"}
    if by == "frequency":
        right = expected(sizes, 3)
    elif by == "uniform":
        right = dict.fromkeys(sizes, 3 / 7)
    else:
        right = {text: {"head": 1.0, "torso": 0.5}.get(strata.get(text), 1 / 4) for text in sizes}
    draws = 600
    counted = Counter()
    file = written(tmp_path, sizes)
    for seed in range(draws):
        for each in sample_questions(file, 3, by=by, seed=seed).questions:
            counted[each.text] += 1
            assert each.probability == pytest.approx(right[each.text], abs=1e-15)
            assert each.stratum == ("" if by != "strata" else strata.get(each.text, "tail"))
    for text, p in right.items():
        assert abs(counted[text] - draws * p) <= 4 * (draws * p * (1 - p)) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("by", ["frequency", "uniform", "strata"])
def test_weighted_means_of_samples_are_those_of_the_log(tmp_path, by):
    """Hájek estimates over 1,500 draws: of the mean over searches, and over questions."""
    rng = random.Random(1)
    sizes = {f"{chr(97 + n % 26) * 3}{n} q": 1 + int(60 / (n + 1)) for n in range(40)}
    values = {text: rng.random() * (2 if size > 5 else 1) for text, size in sizes.items()}
    file = written(tmp_path, sizes)
    traffic = sum(sizes[t] * v for t, v in values.items()) / sum(sizes.values())
    plain = sum(values.values()) / len(values)
    found = {"weight": [], "query_weight": []}
    for seed in range(1_500):
        drawn = sample_questions(file, 12, by=by, seed=seed, personal="keep").questions
        for name, estimates in found.items():
            weights = [getattr(each, name) for each in drawn]
            total = sum(w * values[q.text] for w, q in zip(weights, drawn, strict=True))
            estimates.append(total / sum(weights))
    for name, truth in (("weight", traffic), ("query_weight", plain)):
        mean = sum(found[name]) / len(found[name])
        # The bias of a ratio is of order 1 / n, far below the spread of one estimate.
        spread = math.sqrt(sum((x - mean) ** 2 for x in found[name]) / len(found[name]))
        assert abs(mean - truth) < 0.15 * spread + 0.002, (name, mean, truth, spread)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["frequency", "strata"])
def test_intervals_of_traffic_cover_the_mean_of_the_log(tmp_path, by):
    """Values fall with the frequency, as usual in search; 600 draws of 40 of 400 questions."""
    rng = random.Random(2)
    sizes = {f"{chr(97 + n % 26) * 3}{n} q": 1 + int(300 / (n + 1)) for n in range(400)}
    values = {t: min(1.0, rng.random() * (1.5 if size > 3 else 1)) for t, size in sizes.items()}
    truth = sum(sizes[t] * v for t, v in values.items()) / sum(sizes.values())
    file, covered, draws = written(tmp_path, sizes), 0, 600
    for seed in range(draws):
        drawn = sample_questions(file, 40, by=by, seed=seed, personal="keep").questions
        found = rankgauge.stats.weighted_mean_interval(
            [values[each.text] for each in drawn], [each.weight for each in drawn]
        )
        covered += found.low <= truth <= found.high
    # Certain questions have no sampling error, so the interval is wider than necessary.
    assert covered / draws >= 0.93


def test_a_stratum_with_few_questions_leaves_the_rest_to_the_others(tmp_path):
    sizes = {"fees": 20, "hours": 15, "cards": 10, "wifi": 5, "rooms": 4, "print": 4, "maps": 2}
    found = sample_questions(written(tmp_path, sizes), 6, by="strata")
    drawn = {each.name: (each.questions, each.searches, each.drawn) for each in found.strata}
    assert drawn == {"head": (1, 20, 1), "torso": (2, 25, 2), "tail": (4, 15, 3)}
    assert len(found.questions) == 6


def test_any_two_questions_can_be_drawn_together(tmp_path):
    file = written(tmp_path, dict.fromkeys(("fees", "hours", "cards", "wifi"), 5))
    pairs = {frozenset(each.text for each in sample_questions(file, 2, seed=seed).questions) for seed in range(80)}
    assert len(pairs) == 6


def test_the_summary_has_probabilities_and_what_was_grouped(log):
    (stratum,) = sample_questions(log, 3).strata
    probabilities = expected(SIZES, 3).values()
    assert (stratum.low, stratum.high) == pytest.approx((min(probabilities), max(probabilities)))
    known = [EvaluationQuestion("a", "Fees!"), EvaluationQuestion("b", "membership")]
    assert "1 of 2 excluded questions was asked" in str(sample_questions(log, 3, exclude=known))
    assert any(": 1 grouped with others" in n for n in sample_questions(log, 3).table().notes)


def test_a_near_duplicate_is_drawn_with_the_sum_of_the_frequencies(tmp_path):
    sizes = {"opening hours": 5, "Opening huors": 2, "opening hour": 1, "wifi": 4, "parking": 4}
    file = written(tmp_path, sizes)
    draws, count = 1000, 0
    for seed in range(draws):
        drawn = sample_questions(file, 1, seed=seed)
        (one,) = drawn.questions
        if one.text == "opening hours":
            count += 1
            assert one.frequency == 8
            assert one.probability == 8 / 16
        assert one.text in {"opening hours", "wifi", "parking"}
    assert abs(count - draws / 2) <= 4 * math.sqrt(draws / 4)
    assert drawn.strata[0].questions == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Late fees?", "late fees"),
        ("late fee", "late fees"),
        ("opening huors", "opening hours"),
        ("renew pasport", "renew passport"),
        ("café hours", "Cafe hours"),
        ("e mail", "email"),
        ("reserve a tabel today", "reserve a table today"),
    ],
)
def test_case_signs_and_one_typing_error_make_no_other_question(one, other):
    assert [g.frequency for g in group_questions({one: 2, other: 1})] == [3]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("error 404", "error 405"),
        ("vitamin a dose", "vitamin c dose"),
        ("C++ jobs", "C# jobs"),
        ("flights from paris to rome", "flights from rome to paris"),
        ("cars", "card"),
        ("enable logging", "disable logging"),
        ("legal status", "illegal status"),
        ("iphone 14", "iphone 15"),
        ("train tickets", "brain tickets"),
        ("q1", "q11"),
        ("car hire", "cart hire"),
    ],
)
def test_other_words_and_numbers_make_another_question(one, other):
    assert len(group_questions({one: 2, other: 1})) == 2


words = st.text("abcé 1?", min_size=1, max_size=9).filter(str.strip)


@given(st.dictionaries(words, st.integers(1, 9), max_size=25), st.lists(words, max_size=3))
def test_groups_lose_no_search_and_represent_their_most_frequent_text(counts, known):
    groups = group_questions(counts, known)
    assert sum(group.frequency for group in groups) == sum(counts.values())
    assert [group.text for group in groups[: len(known)]] == known
    rest = groups[len(known) :]
    assert [g.frequency for g in rest] == sorted((g.frequency for g in rest), reverse=True)
    # Groups stay together: the representatives are not near-duplicates of each other.
    assert len(group_questions({g.text: counts[g.text] for g in rest})) == len(rest)


def test_known_questions_are_not_drawn_and_keep_the_searches_of_their_near_duplicates(log):
    known = [EvaluationQuestion("a", "Fees!"), EvaluationQuestion("b", "membership")]
    found = sample_questions(log, 5, exclude=known)
    assert {each.text for each in found.questions} == {"hours", "cards", "wifi", "rooms", "print"}
    assert found.known == {"a": 40, "b": 0}
    assert found.strata[0].searches == 20
    # Among equal excluded questions, the first has the searches.
    twice = [EvaluationQuestion("a", "fees"), EvaluationQuestion("b", "Fees?")]
    assert sample_questions(log, 5, exclude=twice).known == {"a": 40, "b": 0}


def test_personal_data_is_replaced_before_questions_are_compared(tmp_path):
    file = tmp_path / "log.txt"
    file.write_text("order of jo@example.org\norder of ann@example.org\nwifi\n", encoding="utf-8")
    found = sample_questions(file, 2)
    assert {each.text for each in found.questions} == {"order of [email]", "wifi"}
    assert found.scrubbed == 2
    assert "personal data replaced in 2" in str(found)
    assert len(sample_questions(file, 3, personal="keep").questions) == 3


def test_all_questions_are_drawn_for_certain(log):
    assert {each.probability for each in sample_questions(log, 6).questions} == {1.0}


def test_a_question_has_the_same_identifier_in_every_sample(log):
    ids = {each.text: each.id for each in sample_questions(log, 6).questions}
    for seed in range(5):
        for each in sample_questions(log, 3, seed=seed).questions:
            assert ids[each.text] == each.id
    assert sample_questions(log, 3, date="2026-01-01") == sample_questions(log, 3, date="2026-01-01")


def test_the_order_of_the_log_does_not_change_the_draw(tmp_path):
    lines = [f"{text}\n" for text, count in SIZES.items() for _ in range(count)]
    drawn = []
    for seed in range(3):
        random.Random(seed).shuffle(lines)
        file = tmp_path / "log.txt"
        file.write_text("".join(lines), encoding="utf-8")
        drawn.append(sample_questions(file, 3, seed=7).questions)
    assert drawn[0] == drawn[1] == drawn[2]


def test_logs_are_json_lines_or_a_question_on_each_line(tmp_path):
    lines = tmp_path / "log.txt"
    lines.write_text("late fees\n\nLate  Fees\nwifi\n", encoding="utf-8")
    counted = {each.text: each.frequency for each in sample_questions(lines, 2).questions}
    assert counted == {"Late Fees": 2, "wifi": 1}
    rows = tmp_path / "log.jsonl"
    texts = ["late fees", "wifi", "LATE FEES", "late fees"]
    rows.write_text("".join(json.dumps({"user_query": text}) + "\n" for text in texts))
    assert {each.text for each in sample_questions(rows, 2).questions} == {"late fees", "wifi"}


def test_an_impossible_sample_or_table_is_an_error_with_its_line(tmp_path, log):
    with pytest.raises(rankgauge.InputError, match="has 6 distinct questions"):
        sample_questions(log, 7)
    with pytest.raises(rankgauge.InputError, match="has 5 distinct questions besides the 1 excluded"):
        sample_questions(log, 6, exclude=[EvaluationQuestion("a", "fees")])
    with pytest.raises(rankgauge.InputError, match="2 strata"):
        sample_questions(log, 1, by="strata")
    file = tmp_path / "bad.csv"
    file.write_text("query,count\nfees,2\nwifi,often\n", encoding="utf-8")
    with pytest.raises(rankgauge.FormatError, match="got 'often', expected a count") as error:
        sample_questions(file, 1)
    assert error.value.line == 3
    file.write_text("when,what\n1,fees\n", encoding="utf-8")
    with pytest.raises(rankgauge.FormatError, match="the columns are when, what"):
        sample_questions(file, 1)
