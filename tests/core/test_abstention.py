"""The rule of abstentions, compared with labels."""

import gzip
import json
from collections import Counter

import pytest
from growth import assert_linear

from rankgauge.core.abstention import RULE_SENSITIVITY, RULE_SPECIFICITY, abstains, split_sentences


def test_errors_of_the_rule_on_mtrag_are_those_that_are_printed(data_folder):
    found = Counter()
    with gzip.open(data_folder / "rag/mtrag/answers.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            if row["answerability"] == "conversational":
                continue
            # 1: abstained where the question is unanswerable, otherwise answered.
            right = row["scores"]["conditional_idk"] == 1
            declined = right == (row["answerability"] == "unanswerable")
            found[declined, abstains(row["answer"])] += 1
    assert (found[True, True], found[True, True] + found[True, False]) == RULE_SENSITIVITY
    assert (found[False, False], found[False, True] + found[False, False]) == RULE_SPECIFICITY


@pytest.mark.parametrize(
    "answer",
    [
        "I am sorry I don't have any specific knowledge about it.",
        "I don\u2019t know.",
        "I have no information on it.",
        "I don't have information. However, it is not known either.",
        "Sorry, for the branch that you ask about the provided documents do not list any hours.",
        "I don't know who J. Smith is. Sorry about that.",
        "1. I don't know.\n2. Ask a librarian.",
        "I cannot say. Not even approx. values are known.",
        "",
        "...",
    ],
)
def test_ways_to_abstain(answer):
    assert abstains(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know the fee, but it is low.",
        "I have no doubt.",
        "I know it.",
        "The fee is 2 euros. I don't know more.",
        "I don't know. It may be low. Ask a librarian.",
        "I do not know it exactly. But it is low.",
    ],
)
def test_answers_that_go_on_do_not_abstain(answer):
    assert not abstains(answer)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("J. Smith came. He left.", ["J. Smith came.", "He left."]),
        ("See p. 3 or fig. 4. It is there.", ["See p. 3 or fig. 4.", "It is there."]),
        ("It is 3.5 mg. No. 7 is out!", ["It is 3.5 mg.", "No. 7 is out!"]),
        ("1. Pay. 2. Leave.", ["Pay.", "Leave."]),
        ("- one\n- two\n\n12) three", ["one", "two", "three"]),
        ('He said "no." Then?! Wait... yes', ['He said "no."', "Then?!", "Wait...", "yes"]),
        ("It helps. [1] So [2, 3]. [4][5] Done.", ["It helps. [1]", "So [2, 3]. [4][5]", "Done."]),
        ("今天休息。明天开门。", ["今天休息。", "明天开门。"]),
        (" ... \n ?! ", []),
    ],
)
def test_sentences_end_where_the_rule_says(text, sentences):
    assert split_sentences(text) == sentences


def test_long_answers_take_time_in_proportion_to_their_length():
    assert_linear(lambda count: "I don't know, " + "but " * count + "not.", abstains, 20_000)
