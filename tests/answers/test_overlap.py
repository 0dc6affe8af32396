"""Overlap and similarity compared with definitions, slow loops, and stored values."""

import collections
import gzip
import json
import math
import re
import string
from functools import cache

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankgauge import list_measures
from rankgauge.answers import AnswerRecord, AnswerSet, Citation, Context, evaluate_answers, read_answers
from rankgauge.answers.overlap import OVERLAPS, SIMILARITIES
from rankgauge.errors import InputError
from rankgauge.retrievers import HashingEncoder


def value(name, record):
    return OVERLAPS[name](record).value


def answered(answer, reference, *alternatives):
    return AnswerRecord("q", "Why?", answer, reference=reference, alternatives=alternatives)


# ---- independent checks, from the definitions


def squad_normalize(text):
    kept = "".join(char for char in text.lower() if char not in set(string.punctuation))
    words = re.sub(r"\b(a|an|the)\b", " ", kept).split()
    return " ".join(words)


def squad_f1(prediction, truth):
    one, other = squad_normalize(prediction).split(), squad_normalize(truth).split()
    left = collections.Counter(other)
    common = 0
    for word in one:
        if left[word] > 0:
            left[word] -= 1
            common += 1
    if not common:
        return 0.0
    precision, recall = common / len(one), common / len(other)
    return 2 * precision * recall / (precision + recall)


def slow_rouge_l(prediction, truth):
    one = re.sub(r"[^a-z0-9]+", " ", prediction.lower()).split()
    other = re.sub(r"[^a-z0-9]+", " ", truth.lower()).split()

    @cache
    def longest(i, j):
        if i == len(one) or j == len(other):
            return 0
        if one[i] == other[j]:
            return 1 + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1))

    common = longest(0, 0)
    if not common:
        return 0.0
    precision, recall = common / len(one), common / len(other)
    return 2 * precision * recall / (precision + recall)


WORDS = st.lists(
    st.sampled_from(["the", "a", "Nile", "nile", "is", "long.", "5", "km,", "an", "not"]), min_size=1, max_size=12
).map(" ".join)


@given(WORDS, WORDS)
def test_overlap_is_that_of_the_definitions(answer, reference):
    record = answered(answer, reference)
    assert value("RougeL", record) == pytest.approx(slow_rouge_l(answer, reference), abs=1e-12)
    same = squad_normalize(answer) == squad_normalize(reference)
    assert value("NormalizedMatch", record) == same
    assert value("ExactMatch", record) == (answer == reference)
    if squad_normalize(answer) and squad_normalize(reference):
        assert value("TokenF1", record) == pytest.approx(squad_f1(answer, reference), abs=1e-12)


def test_values_agree_with_manual_calculations():
    record = answered("The cat sat on the mat!", "the cat on a mat")
    # cat, on, mat: of "cat sat on mat" and of "cat on mat", so 3/4 and 3/3.
    assert value("TokenF1", record) == pytest.approx(2 * 0.75 / 1.75)
    # "the cat on mat": of six words and of five.
    assert value("RougeL", record) == pytest.approx(8 / 11)
    assert value("NormalizedMatch", answered("The cat.", "a CAT")) == 1.0
    assert value("ExactMatch", answered(" cat\n", "cat")) == 1.0


def test_words_of_scripts_without_blanks_are_characters():
    # Four of five characters, in the same order.
    record = answered("尼罗河很长", "尼罗河长")
    assert value("TokenF1", record) == pytest.approx(8 / 9)
    assert value("RougeL", record) == pytest.approx(8 / 9)
    assert value("TokenF1", answered("Нил длинный", "нил")) == pytest.approx(2 / 3)


def test_the_best_of_several_references_counts():
    assert value("TokenF1", answered("a seer", "the soothsayer", "a seer")) == 1.0


def test_a_question_without_an_answer_counts_zero_and_one_without_a_reference_is_undefined():
    for name in ("ExactMatch", "NormalizedMatch", "TokenF1", "RougeL"):
        assert value(name, answered(None, "Rain.")) == 0.0
        assert value(name, answered("", "Rain.")) == 0.0
        for reference in (None, "", "  "):
            score = OVERLAPS[name](answered("Rain.", reference))
            assert math.isnan(score.value)
            assert score.reason == "there is no reference answer"


def test_rouge_l_of_mtrag_is_that_stored_there(data_folder):
    path = data_folder / "rag/mtrag/answers.jsonl.gz"
    stored = {
        row["id"]: row["scores"]["rouge_l"] for row in map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    }
    for answers in read_answers(path):
        found = evaluate_answers(answers, {}, "RougeL")
        pairs = [(found.value(one, "RougeL"), stored[one]) for one in found.query_ids]
        if answers.system == "reference":  # compared with itself
            assert {value for pair in pairs for value in pair} == {1.0}
        else:
            assert np.mean([own for own, _ in pairs]) < 0.5
            # rouge-score drops letters that are not ASCII; few answers contain any.
            assert max(abs(own - theirs) for own, theirs in pairs) < 0.002


def test_k_precision_is_the_share_of_words_in_the_contexts():
    record = AnswerRecord("q", "Why?", "It rains and rains today.", (Context("a", "It rains."), Context("b", "Today")))
    assert value("KPrecision", record) == pytest.approx(4 / 5)
    assert value("KPrecision", AnswerRecord("q", "Why?", "It rains.")) == 0.0
    assert math.isnan(value("KPrecision", AnswerRecord("q", "Why?", "")))


def test_quotations_are_searched_in_the_contexts():
    answer = 'It says "the longest river in Africa", “never a long river” and "the end".'
    record = AnswerRecord("q", "Why?", answer, (Context("a", "The longest river: in Africa."),))
    assert value("QuotePrecision", record) == 0.5
    assert OVERLAPS["QuotePrecision"](answered("No.", "No.")).reason == "the answer quotes nothing"


def test_identifiers_of_contexts_are_counted_once():
    contexts = tuple(Context(key, "text") for key in ("a", "a", "a", "b"))
    record = AnswerRecord("q", "Why?", "Yes.", contexts, gold=("a", "c"))
    assert value("ContextIdPrecision", record) == 0.5
    assert value("ContextIdRecall", record) == 0.5
    none = AnswerRecord("q", "Why?", "Yes.", gold=("a",))
    assert value("ContextIdRecall", none) == 0.0
    assert math.isnan(value("ContextIdPrecision", none))
    assert math.isnan(value("ContextIdRecall", AnswerRecord("q", "Why?", "Yes.", contexts)))


def test_a_longer_context_with_the_gold_sentence_has_full_recall():
    """Edit distance gives 0, since the context is far longer than the sentence."""
    row = {
        "question": "Why?",
        "answer": "Rain.",
        "reference_contexts": ["It rains in Rome."],
        "retrieved_contexts": ["Sun.", "Many words before. It rains in Rome. " + "And more. " * 50],
    }
    assert value("ContextIdRecall", AnswerSet.of([row]).records[0]) == 1.0


def test_similarity_is_the_cosine_of_embeddings():
    record = AnswerRecord(
        "q",
        "Why is it wet?",
        "It rains.",
        (Context("a", "It is wet."), Context("b", "Sun.")),
        "Since it rains.",
        alternatives=("Rain.",),
    )
    encoder = HashingEncoder()
    found = evaluate_answers(AnswerSet("s", (record,)), {}, SIMILARITIES, encoder=encoder).mean()

    def cosine(one, other):
        one, other = (encoder.encode_documents([text])[0].astype(float) for text in (one, other))
        return float(sum(x * y for x, y in zip(one, other, strict=True))) / math.sqrt(
            float(sum(x * x for x in one)) * float(sum(y * y for y in other))
        )

    assert found["AnswerSimilarity"] == pytest.approx(
        max(cosine("It rains.", "Since it rains."), cosine("It rains.", "Rain.")), abs=1e-6
    )
    assert found["QuestionSimilarity"] == pytest.approx(cosine("Why is it wet?", "It rains."))
    contexts = [cosine("Why is it wet?", text) for text in ("It is wet.", "Sun.")]
    assert found["ContextSimilarity"] == pytest.approx(sum(contexts) / 2)


def test_similarity_without_texts_is_undefined_and_without_an_encoder_an_error():
    answers = AnswerSet("s", (AnswerRecord("q", "Why?", "", (Context("a", ""),), ""),))
    found = evaluate_answers(answers, {}, SIMILARITIES, encoder=HashingEncoder())
    assert np.isnan(found.per_query).all()
    with pytest.raises(InputError, match="AnswerSimilarity needs an encoder"):
        evaluate_answers(answers, {}, SIMILARITIES)


def test_every_measure_of_texts_has_a_function():
    declared = {measure.name for measure in list_measures("answers")}
    assert declared == {*OVERLAPS, *SIMILARITIES}


def test_overlap_is_shown_next_to_judged_values_where_defined():
    record = AnswerRecord("q", "Why?", "Rain.", reference="Rain.", citations=(Citation("x"),))
    names = [str(each) for each in evaluate_answers(AnswerSet("s", (record,)), {}).measures]
    assert names[0] == "AnswerCorrectness"
    assert {"TokenF1", "RougeL", "KPrecision"} <= set(names)
    assert not {"ContextIdRecall", "QuotePrecision"} & set(names)


def test_a_long_text_is_undefined_by_rouge_l():
    score = OVERLAPS["RougeL"](answered("word " * 20_001, "word"))
    assert score.reason == "a text has more than 20000 words"
