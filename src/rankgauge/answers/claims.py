"""Claims without a model: sentences, citation marks, and answers that abstain."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rankgauge.answers.records import AnswerRecord, Citation, Context
from rankgauge.answers.verdicts import Claim, ClaimSet
from rankgauge.core.abstention import abstains, split_sentences

_MARK = re.compile(r"(?<!\s)\s*+\[(\d+(?:\s*,\s*\d+)*)\]")
_MOST_DIGITS = 9  # of the number of a context


def without_marks(sentence: str) -> str:
    """Return a sentence without citation marks such as ``[1, 2]``.

    Example:
        >>> without_marks("It rains [2].")
        'It rains.'
    """
    return _MARK.sub("", sentence)


def cited(answer: str, contexts: Sequence[Context]) -> tuple[Citation, ...]:
    """Return the citations ``[1]``, ``[2, 3]`` of an answer; numbers count the contexts from 1.

    A number without a context is a citation to nothing: its context is the number itself.

    Example:
        >>> cited("It rains [2].", [Context("a", ""), Context("b", "")])
        (Citation(context='b', text='It rains.'),)
    """
    found = []
    for sentence in split_sentences(answer):
        text = without_marks(sentence)
        for mark in _MARK.finditer(sentence):
            for digits in map(str.strip, mark.group(1).split(",")):
                number = int(digits) if len(digits) <= _MOST_DIGITS else 0
                known = 1 <= number <= len(contexts)
                to = contexts[number - 1].id if known else f"[{number or digits}]"
                found.append(Citation(to, text))
    return tuple(found)


def sentence_claims(record: AnswerRecord) -> ClaimSet:
    """Return the sentences of answer and reference as claims; an abstention makes none."""

    def claims(text: str | None) -> tuple[Claim, ...] | None:
        if text is None:
            return None
        if abstains(text):
            return ()
        return tuple(Claim(without_marks(sentence)) for sentence in split_sentences(text))

    reference = claims(record.reference)
    return ClaimSet(claims(record.answer), reference, reference)
