"""Rules and callables as judges, on manually labelled cases."""

import random
import string

import pytest
from growth import assert_linear
from hypothesis import given, strategies as st

from rankgauge.answers import (
    AnswerRecord,
    AnswerSet,
    CallableJudge,
    Context,
    Item,
    RuleJudge,
    Verdict,
    VerdictStore,
    cited,
    diagnose_answers,
    evaluate_answers,
    items_of,
    judge_answers,
    quote_occurs,
    sentence_claims,
    split_sentences,
)
from rankgauge.answers.judges import _ENOUGH, _SAME, _Content, quantities, unstated
from rankgauge.core.terms import shared
from rankgauge.errors import InputError

S, C, N = "supported", "contradicted", "not stated"


def decided(subject, target, relation="answer-context", judge=None):
    (found,) = (judge or RuleJudge()).judge([Item(relation, "q", subject, target)])
    return found


SUPPORT = [
    # claim, text, label
    ("The Nile is 6,650 km long.", "At 6650 km, the Nile is a long river.", S),
    ("The Nile is 6,650 km long.", "The Nile is 6,400 km long.", C),
    ("The Nile is 6,650 km long.", "The Nile is long in km.", N),
    ("The bridge opened in 1932.", "Work began in 1923. The bridge opened in 1932.", S),
    ("Cats are not mammals.", "Cats are mammals.", C),
    ("Cats are mammals.", "Cats aren't mammals.", C),
    ("Cats aren't reptiles.", "Cats are not reptiles.", S),
    ("Libraries renewed the loans.", "The library renews loans.", S),
    ("It costs 3,50 euros.", "The costs are 3.5 euros.", S),
    ("Paris has a metro.", "Berlin has trams.", N),
    ("Paris has a metro.", "", N),
    ("The tower in Paris is red and high.", "The tower is in Paris. It is red. It is high.", S),
    ("The museum opens at 9 and closes at 17.", "The museum opens at 9. It closes at 17.", S),
    # German, French, Spanish, Russian, Greek, Arabic, Hindi, Chinese, Japanese, Korean, Thai
    ("Der Turm ist 300 Meter hoch.", "Der Turm ist 300 Meter hoch und aus Eisen.", S),
    ("Der Turm ist 300 Meter hoch.", "Der Turm ist nicht 300 Meter hoch.", C),
    ("La tour est ouverte le lundi.", "La tour n'est pas ouverte le lundi.", C),
    ("La torre nunca cierra.", "La torre nunca cierra por la noche.", S),
    ("Москва столица России.", "Москва — столица России.", S),
    ("Москва столица России.", "Москва не столица России.", C),
    ("Αθήνα είναι πόλη.", "Αθήνα είναι μεγάλη πόλη.", S),
    ("القاهرة عاصمة مصر", "القاهرة عاصمة مصر وأكبر مدنها", S),
    ("القاهرة عاصمة مصر", "ليست القاهرة عاصمة مصر", C),
    ("दिल्ली भारत की राजधानी है।", "नई दिल्ली भारत की राजधानी है।", S),
    ("長江是中國最長的河流。", "長江是中國最長的河流。它流入東海。", S),
    ("長江是中國最長的河流。", "長江不是中國最長的河流。", C),
    ("東京は日本の首都です。", "東京は日本の首都です。人口は多い。", S),
    ("東京は日本の首都です。", "京都には寺が多い。", N),
    ("서울은 한국의 수도이다.", "서울은 한국의 수도이다.", S),
    ("กรุงเทพเป็นเมืองหลวง", "กรุงเทพเป็นเมืองหลวงของประเทศไทย", S),
    ("The year was ٢٠٢٤.", "The year was 2024.", S),
]


@pytest.mark.parametrize(("claim", "text", "label"), SUPPORT)
def test_rules_decide_support(claim, text, label):
    verdict = decided(claim, text)
    assert verdict.label == label
    assert (verdict.judge, verdict.prompt) == ("rules", "rules-3")
    assert not verdict.quote or (verdict.quoted and quote_occurs(verdict.quote, text))
    assert bool(verdict.quote) == (label != N)


# Pairs of wordings: equal and different quantities. Each is put into a sentence.
EQUAL = [
    ("ten", "10"),
    ("Twenty", "20"),
    ("twenty-five", "25"),
    ("twenty five", "25"),
    ("two hundred", "200"),
    ("two hundred and fifty", "250"),
    ("a hundred", "100"),
    ("a dozen", "12"),
    ("two dozen", "twenty-four"),
    ("nineteen", "19"),
    ("1,500", "1500"),
    ("three thousand two hundred and five", "3,205"),
    ("5 million", "5,000,000"),
    ("one hundred thousand", "100,000"),
    ("the third", "the 3rd"),
    ("the twenty-first", "the 21st"),
    ("the first", "the 1st"),
    ("ten-year", "10-year"),
    ("twenty one-time", "20 one-time"),
    ("5 km", "5,000 m"),
    ("5 km", "5 kilometers"),
    ("5 mg", "0.005 g"),
    ("5mg", "5 mg"),
    ("two hours", "120 minutes"),
    ("$5", "5 dollars"),
    ("€3.50", "3,50 euros"),
    ("10%", "ten percent"),
    ("5 km", "5 to 10 km"),
    ("10 km", "5-10 km"),
    ("5 mg", "5"),
    ("5", "5 mg"),
    ("3 May 2024", "May 3, 2024"),
    ("3 May 2024", "2024-05-03"),
    ("the 3rd of May 2024", "3 May 2024"),
    ("Sept. 4, 2024", "4 September 2024"),
    ("May 2024", "3 May 2024"),
    ("2024", "2024-05-03"),
    ("3 May", "May 3, 2024"),
    ("5 pm", "5 p.m."),
    ("-5", "minus five"),
    ("\u22125", "-5"),
]
DIFFERENT = [
    ("ten", "twenty"),
    ("ten", "20"),
    ("25", "twenty"),
    ("twenty-five", "twenty-six"),
    ("two hundred", "three hundred"),
    ("two hundred", "2"),
    ("a dozen", "10"),
    ("twenty one-time", "ten one-time"),
    ("twenty one-time", "21 one-time"),
    ("the third", "the fourth"),
    ("the first", "the second"),
    ("the 21st", "the 20th"),
    ("5 mg", "5 g"),
    ("10 km", "10 miles"),
    ("5 hours", "5 minutes"),
    ("5 dollars", "5 euros"),
    ("$5", "€5"),
    ("10%", "10 km"),
    ("5 million", "5 billion"),
    ("ten-year", "5-year"),
    ("3 May 2024", "May 4, 2024"),
    ("3 May 2024", "3 June 2024"),
    ("3 May 2024", "2023-05-03"),
    ("5 am", "5 pm"),
    ("-5", "5"),
    ("once a day", "twice a day"),
    ("Monday", "Tuesday"),
    ("Saturday", "Monday to Friday"),
    ("2024-05-03", "2024-03-05"),
    ("May 2024", "June 2024"),
    ("2024", "3 May 2023"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_quantities_are_supported(one, other):
    claim, text = (f"The old library of Lyon gives {each} codes." for each in (one, other))
    assert decided(claim, text).label == S
    # The year and the month alone do not state the day, and a range is not its end.
    if "2024" not in one and "to" not in other and "-10" not in other and "May" not in one:
        assert decided(text, claim).label == S


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_quantities_are_contradicted(one, other):
    claim, text = (f"The old library of Lyon gives {each} codes." for each in (one, other))
    for pair in ((claim, text), (text, claim)):
        assert decided(*pair).label == C
    three = f"The library is old. It is in Lyon. It gives {other} codes."
    assert decided(claim, three).label != S


@pytest.mark.parametrize(
    ("claim", "text", "label"),
    [
        # Not quantities
        ("One way is the tram.", "The tram is a way.", S),
        ("The one-time codes expire.", "Codes of one time expire.", S),
        ("The bridge first opened to trams.", "The bridge opened to trams.", S),
        ("You may leave the library early.", "Leave the library early.", S),
        ("Once the bridge opened, trams crossed.", "The bridge opened and trams crossed.", S),
        ("The museum opens on Tuesdays.", "The museum opens Monday to Friday.", S),
        ("The museum opens on Sunday.", "The museum opens Saturday-Monday.", S),
        # Negations
        ("The museum is not only old.", "The museum is old.", S),
        ("The museum is on street no. 5.", "The museum is on street 5.", S),
        ("The museum has no garden.", "The museum has a garden.", C),
    ],
)
def test_words_that_look_like_quantities_or_negations(claim, text, label):
    assert decided(claim, text).label == label


def test_number_words_are_those_of_a_table():
    """All numbers below 1,000, written in words by a loop."""
    small = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
        fifteen sixteen seventeen eighteen nineteen""".split()  # noqa: SIM905
    tens = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    below = small + [f"{ten}-{one}" if one else ten for ten in tens for one in ["", *small[1:10]]]
    for n in range(2, 1000):
        hundreds, rest = divmod(n, 100)
        words = f"{small[hundreds]} hundred" * bool(hundreds)
        words += " and " * bool(hundreds and rest) + below[rest] * bool(rest or not hundreds)
        _, found = quantities(f"the {words} codes")
        _, wanted = quantities(f"the {n} codes")
        assert found == wanted, words


def test_a_wrong_number_of_codes_is_a_fault():
    record = AnswerRecord(
        "q1",
        "How many codes?",
        "The service gives twenty one-time codes.",
        (Context("c1", "The service gives ten one-time codes."),),
        "The service gives ten one-time codes.",
        answerable=True,
    )
    answers = AnswerSet("a", (record,))
    items = items_of(record, sentence_claims(record))
    verdicts = [each for each in RuleJudge().judge(list(items)) if isinstance(each, Verdict)]
    found = diagnose_answers(evaluate_answers(answers, verdicts))
    means = found.answers.mean()
    assert (means["Faithfulness"], means["AnswerCorrectness"]) == (0.0, 0.0)
    assert [each.cause for each in found.blame.answers] == ["used but contradicted"]


def test_rules_decide_nuggets():
    text = "The old bridge opened in 1932."
    for nugget, label in (
        ("The bridge opened in 1932.", "supported"),
        ("The bridge opened for trains and buses.", "partly supported"),
        ("The bridge opened in 1933.", "not stated"),
        ("Trains cross hourly.", "not stated"),
        ("The bridge for trains and buses opened in 1934.", "not stated"),
    ):
        assert decided(nugget, text, "nugget-answer").label == label, nugget


def test_rules_decide_relevance_by_terms_of_the_question():
    question = "Where does the Nile begin?"
    assert decided("The Nile begins in Burundi.", question, "context-question").label == "relevant"
    assert decided("Bread needs flour.", question, "context-question").label == "not relevant"
    assert decided("The Nile is long.", question, "answer-question").label == "relevant"
    assert decided("Bread needs flour.", question, "answer-question").label == "not relevant"


def test_rules_judge_a_context_by_the_conversation():
    turns = (("user", "Tell me about the Eiffel Tower."), ("assistant", "It is in Paris."))
    texts = {"The Eiffel Tower is 330 m high.": "relevant", "Everest is high.": "not relevant"}
    for text, label in texts.items():
        item = Item("context-question", "q", text, "How high is it?", history=turns)
        assert next(RuleJudge().judge([item])).label == label
        assert decided(text, "How high is it?", "context-question").label == "relevant"
    follow_up = Item("answer-question", "q", "The tower rusts.", "Why is it so?", history=turns)
    assert next(RuleJudge().judge([follow_up])).label == "relevant"


def test_sixty_percent_of_the_terms_support_and_seventy_five_contradict():
    text = "The old iron bridge of Lyon opened in 1932."
    assert decided("The iron bridge of Lyon closed.", text).label == S  # 3 of 4
    assert decided("The iron bridge carries trains.", text).label == N  # 2 of 4
    assert decided("The iron bridge of Lyon carries trains.", text).label == S  # 3 of 5
    assert decided("The iron bridge of Lyon carries 20 trains.", text).label == N
    assert decided("The iron bridge of Lyon opened in 1933.", text).label == C


def test_rules_decide_abstention_by_the_rule_of_claims():
    verdict = decided("I don't know.", "Why?", "abstention")
    assert (verdict.label, verdict.prompt) == ("abstains", "abstention-2")
    assert decided("Because it rains.", "Why?", "abstention").label == "answers"
    assert decided(" ", "Why?", "abstention").label == "abstains"


@pytest.mark.parametrize(
    ("subject", "target", "relation"),
    [
        ("Is it?", "", "answerability"),
        ("Why?\n\nNo.", "Is polite.", "criterion"),
        ("It is.", "Some text.", "answer-context"),
        ("Some text.", "Who is he?", "context-question"),
    ],
)
def test_a_verdict_is_missing_if_rules_cannot_judge(subject, target, relation):
    missing = decided(subject, target, relation)
    assert missing.code == "cannot judge"
    assert missing.reason


def slow_support(claim, text):
    """The rule from its docstring: a loop over sentences and windows, without an index."""
    wanted = _Content.of(claim)
    some = [_Content.of(each) for each in split_sentences(text)]

    def covered(*sentences):
        found = frozenset().union(*(each.terms for each in sentences))
        return len(shared(wanted.terms, found)) / len(wanted.terms)

    def supports(*sentences):
        stated = {key for each in sentences for number in each.numbers for key in number.keys}
        numbers = all(stated & set(number.alternatives) for number in wanted.numbers)
        negated = any(each.negated for each in sentences)
        enough = covered(*sentences) >= _ENOUGH
        return enough and numbers and negated == wanted.negated

    if any(supports(each) for each in some):
        return S
    best = max(some, key=covered, default=None)
    if best is not None and covered(best) >= _SAME:
        lacks = unstated(wanted.numbers, best.numbers)
        if lacks and unstated(best.numbers, wanted.numbers):
            return C
        if not lacks and wanted.negated != best.negated:
            return C
    windows = (some[start : start + 3] for start in range(len(some) - 1))
    return S if any(supports(*window) for window in windows) else N


WORDS = (
    "tower",
    "towers",
    "red",
    "redness",
    "open",
    "opening",
    "high",
    "metal",
    "not",
    "never",
    "5",
    "6.5",
    "1,932",
    "bar.",
    "street.",
    "paris",
    "東京は日本",
    "five",
    "km",
    "m",
    "miles",
    "twenty",
    "hundred",
    "the third",
    "3 May 2024",
    "2024-05-03",
)


@given(
    claim=st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), text=st.lists(st.sampled_from(WORDS), max_size=25)
)
def test_rules_agree_with_a_slow_loop_over_sentences(claim, text):
    claim, text = f"tower {' '.join(claim)}", " ".join(text)
    assert decided(claim, text).label == slow_support(claim, text)


@pytest.mark.slow
def test_three_megabytes_are_judged_in_linear_time():
    rng = random.Random(1)
    words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 9))) for _ in range(9999)]

    def sentences(count):
        return [" ".join(rng.choices(words, k=14)).capitalize() + "." for _ in range(count)]

    def judge(given):
        text = " ".join(given)
        assert decided(given[-9], text).label == S
        assert decided("The sky is green.", text).label == N

    assert_linear(sentences, judge, 4_000)


@pytest.mark.parametrize(
    ("part", "end"),
    [
        (".", "x"),
        ("A. ", ""),
        (" ", "[1] x"),
        ("x", "-. y"),
        ("-", "x"),
        ("[1] ", ""),
        ("x\n", ""),
        ("5", ""),
        ("1.", ""),
        ("天", ""),
        ("\ud800 x. ", ""),
        ("\x00", "x"),
    ],
)
def test_monotonous_texts_take_linear_time(part, end):
    def judge(text):
        record = AnswerRecord("q", "Why?", text, cited(text, ()) and (), text)
        for item in items_of(record, sentence_claims(record)):
            if item.row < 3:
                decided(item.subject, item.target, item.relation)

    assert_linear(lambda length: part * (length // len(part)) + end, judge, 2_500)


def test_numbers_of_citations_are_of_any_length():
    contexts = (Context("a", "Rain."),)
    digits = "9" * 5000
    found = cited(f"It rains [{digits}]. It snows [01, 2, 0].", contexts)
    assert [each.context for each in found] == [f"[{digits}]", "a", "[2]", "[0]"]


# ---- callables


def test_a_callable_judges_in_batches_and_may_decline():
    sizes = []

    def model(items):
        sizes.append(len(items))
        return [S if "1" in item.subject else None for item in items]

    items = [Item("answer-context", "q", f"claim {n}", "text", n) for n in range(5)]
    found = list(CallableJudge(model, "nli", "v2", batch=2).judge(items, 3))
    assert sizes == [2, 2, 1]
    assert found[1].label == S
    assert (found[1].judge, found[1].prompt, found[1].replicate) == ("nli", "v2", 3)
    assert [each.code for each in found if each is not found[1]] == ["cannot judge"] * 4


def test_an_unknown_label_of_a_callable_is_missing():
    missing = decided("a", "b", judge=CallableJudge(lambda _: ["entailment"], "nli"))
    assert (missing.code, missing.reason) == ("invalid", "'entailment' is not a label")


def test_a_callable_that_returns_too_few_labels_is_refused(tmp_path):
    record = AnswerRecord("q", "Why?", "One. Two. Three.", (Context("c", "text"),))
    judge = CallableJudge(lambda _: [S], "nli")
    with pytest.raises(InputError, match="got 1 label for 3 items"):
        judge_answers(AnswerSet("a", (record,)), judge, VerdictStore(tmp_path / "v.db"), measures="Faithfulness")


def test_five_unsupported_claims_are_not_faithful(tmp_path):
    answer = "Bees fly. Cows eat grass. Owls hunt mice. Pigs dig holes. Frogs jump far."
    record = AnswerRecord("q", "Why?", answer, (Context("c", "The Nile is a river."),))
    store = VerdictStore(tmp_path / "v.db")
    answers = AnswerSet("a", (record,))
    done = judge_answers(answers, RuleJudge(), store, measures="Faithfulness")
    assert (done.items, done.judged, dict(done.missing)) == (5, 5, {})
    assert evaluate_answers(answers, store.labels(), "Faithfulness").mean() == {"Faithfulness": 0}


def test_several_measures_are_evaluated_at_once():
    record = AnswerRecord("q", "Why?", "It rains.", (Context("c", "It rains."),))
    judge, items = RuleJudge(), [Item("answer-context", "q", "It rains.", "It rains.")]
    names = ["Faithfulness", "Contradicted", "Faithfulness"]
    ev = evaluate_answers(AnswerSet("a", (record,)), judge.judge(items), names)
    assert ev.mean() == {"Faithfulness": 1.0, "Contradicted": 0.0}
