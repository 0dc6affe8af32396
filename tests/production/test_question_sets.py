"""Question sets: a frozen core, a rotating part, and sentinels; refreshed with a new sample."""

import pytest
from hypothesis import given, strategies as st

import rankgauge
from rankgauge.production import EvaluationQuestion, QuestionSet, sample_questions


def log_of(folder, **counts):
    file = folder / "log.csv"
    file.write_text("query,count\n" + "".join(f"{t},{n}\n" for t, n in counts.items()))
    return file


WEEK_1 = {"fees": 40, "hours": 9, "cards": 5, "wifi": 3, "rooms": 2, "print": 1}
WEEK_2 = {"fees": 10, "hours": 20, "maps": 8, "wifi": 6, "games": 4, "audio": 2}


def refreshed(folder):
    """A core of 2 from the first week, then 3 others and a sentinel from the second."""
    first = sample_questions(log_of(folder, **WEEK_1), 2, seed=3)
    core = QuestionSet().refresh(first.questions, part="core", frequencies=first.known).after
    known = (EvaluationQuestion("s1", "Maps?"), EvaluationQuestion("s2", "login fails"))
    second = sample_questions(log_of(folder, **WEEK_2), 3, exclude=[*core.questions, *known], seed=5)
    return core, core.refresh(second.questions, sentinels=known, frequencies=second.known)


def test_a_refresh_keeps_core_and_sentinels_and_replaces_the_rotating_part(tmp_path):
    core, change = refreshed(tmp_path)
    after = change.after
    assert [each.id for each in after.part("core")] == [each.id for each in core.questions]
    assert [each.id for each in after.part("sentinel")] == ["s1", "s2"]
    assert len(after.part("rotating")) == 3
    assert (core.version, after.version) == (1, 2)
    third = sample_questions(
        log_of(tmp_path, zoo=3, hats=2, **WEEK_2), 2, seed=1, exclude=after.part("core", "sentinel")
    )
    again = after.refresh(third.questions, frequencies=third.known)
    before, now = ({e.id for e in s.questions} for s in (after, again.after))
    assert {each.id for each in again.added} == now - before
    assert {each.id for each in again.retired} == before - now
    assert again.kept == len(before & now)
    assert {e.id for e in after.part("core", "sentinel")} <= now
    assert again.after.version == 3
    assert f"{again.kept} kept, {len(again.retired)} retired" in str(again)


def test_weights_of_a_refreshed_set_are_those_of_the_new_log(tmp_path):
    _, change = refreshed(tmp_path)
    texts = {each.text: each for each in change.after.questions}
    for each in change.after.part("core"):
        # Known questions represent only themselves.
        assert each.weight == each.frequency == WEEK_2.get(each.text, 0)
    assert texts["Maps?"].weight == 8
    assert (texts["login fails"].weight, texts["login fails"].query_weight) == (0, 0)
    for each in change.after.part("rotating"):
        assert each.weight == pytest.approx(WEEK_2[each.text] / each.probability)
    represented = {row[0]: row[2] for row in change.after.table().rows}
    for part, searches in represented.items():
        assert searches == pytest.approx(sum(each.weight for each in change.after.part(part)))


def test_a_question_absent_from_the_log_represents_no_search():
    core = QuestionSet((EvaluationQuestion("q1", "fees", part="core", version=3),))
    (after,) = core.refresh([], frequencies={}).after.questions
    assert (after.frequency, after.weight, after.query_weight) == (0, 0, 0)
    (asked,) = core.refresh([], frequencies={"q1": 7}).after.questions
    assert (asked.frequency, asked.weight, asked.query_weight) == (7, 7, 1)
    (left,) = core.refresh([]).after.questions
    assert left.weight is None


def test_a_core_drawn_later_leaves_the_rotating_part_and_questions_that_stay_win():
    made = QuestionSet((EvaluationQuestion("q1", "fees", version=1), EvaluationQuestion("q2", "hours", version=4)))
    assert made.version == 4
    drawn = [EvaluationQuestion("q3", "maps"), EvaluationQuestion("q2", "hours", frequency=9)]
    after = made.refresh(drawn, part="core").after
    assert [(each.id, each.part) for each in after.questions] == [
        ("q1", "rotating"),
        ("q2", "rotating"),
        ("q3", "core"),
    ]
    assert after.questions[1].frequency is None
    assert {each.version for each in after.questions} == {5}


@pytest.mark.slow
def test_means_of_refreshed_sets_estimate_those_of_the_new_log(tmp_path):
    """Over draws of the rotating part, given the core: totals of weights are unbiased."""
    core, _ = refreshed(tmp_path)
    file = log_of(tmp_path, **WEEK_2)
    searches, questions, draws = 0.0, 0.0, 3000
    for seed in range(draws):
        drawn = sample_questions(file, 2, exclude=core.questions, seed=seed)
        found = core.refresh(drawn.questions, frequencies=drawn.known).after.questions
        searches += sum(each.weight for each in found)
        questions += sum(each.query_weight for each in found)
    assert searches / draws == pytest.approx(sum(WEEK_2.values()), rel=0.02)
    assert questions / draws == pytest.approx(len(WEEK_2), rel=0.05)


def test_a_core_is_drawn_once(tmp_path):
    core, _ = refreshed(tmp_path)
    with pytest.raises(rankgauge.InputError, match="2 questions and is frozen"):
        core.refresh([], part="core")


texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(str.strip)
questions = st.builds(
    EvaluationQuestion,
    id=st.uuids().map(str),
    text=texts.map(lambda t: " ".join(t.split())),
    origin=st.sampled_from(["log", "expert", "generated"]),
    part=st.sampled_from(["core"]),
    frequency=st.none() | st.integers(0, 10**9),
    probability=st.none() | st.floats(0, 1),
    weight=st.none() | st.floats(0, 1e9),
    model=st.sampled_from(["", "m"]),
)


@given(st.lists(questions, min_size=1, max_size=5, unique_by=lambda each: each.id))
def test_a_question_set_is_read_back(tmp_path_factory, found):
    path = tmp_path_factory.mktemp("set") / "set.jsonl"
    made = QuestionSet(tuple(found))
    made.write(path)
    assert QuestionSet.read(path) == made


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "q1"}', "no id or no question"),
        ('{"text": "fees"}', "no id or no question"),
        ('{"id": "q1", "text": "fees", "weight": "much"}', "'much' for weight"),
        ('{"id": "q1", "text": "fees", "weight": -1}', "-1 for weight"),
        ('{"id": "q1", "text": "fees", "part": "other"}', "part 'other' is unknown"),
        ('{"id": "q0", "text": "fees"}', "'q0' occurs twice"),
    ],
)
def test_a_line_that_is_no_question_is_refused(tmp_path, line, message):
    path = tmp_path / "set.jsonl"
    path.write_text('{"id": "q0", "text": "hours"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(rankgauge.InputError, match=message):
        QuestionSet.read(path)
