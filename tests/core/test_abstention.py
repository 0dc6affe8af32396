"""The rule of abstentions, compared with labels."""

import gzip
import json
from collections import Counter

from rankgauge.core.abstention import RULE_SENSITIVITY, RULE_SPECIFICITY, abstains


def test_errors_of_the_rule_on_mtrag_are_those_that_are_printed(data_folder):
    found = Counter()
    with gzip.open(data_folder / "rag/mtrag/answers.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            if row["answerability"] == "conversational":
                continue
            # 1: it declined where the question is unanswerable, else answered.
            right = row["scores"]["conditional_idk"] == 1
            declined = right == (row["answerability"] == "unanswerable")
            found[declined, abstains(row["answer"])] += 1
    assert (found[True, True], found[True, True] + found[True, False]) == RULE_SENSITIVITY
    assert (found[False, False], found[False, True] + found[False, False]) == RULE_SPECIFICITY
