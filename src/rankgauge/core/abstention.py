"""Rule-based detection of abstentions: answers that say that no answer is possible."""

from __future__ import annotations

import re

# Every verdict records the version of the rule; change it whenever a pattern changes.
ABSTENTION_RULE = "abstention-2"
# Counts on labeled MTRAG answers: (detected, all) abstentions; (passed, all) other answers.
RULE_SENSITIVITY, RULE_SPECIFICITY = (13, 15), (453, 456)
_ABBREVIATIONS = frozenset(
    {
        "al",
        "approx",
        "art",
        "cf",
        "ch",
        "col",
        "corp",
        "dept",
        "dr",
        "ed",
        "eq",
        "est",
        "etc",
        "fig",
        "gen",
        "gov",
        "inc",
        "jr",
        "ltd",
        "mr",
        "mrs",
        "ms",
        "mt",
        "no",
        "nos",
        "op",
        "p",
        "pp",
        "prof",
        "pt",
        "ref",
        "rep",
        "rev",
        "sec",
        "sen",
        "sr",
        "st",
        "tab",
        "vol",
        "vs",
    }
)
# End of a sentence, with closing quotes, brackets, and citation marks, before whitespace. No
# pattern here scans a run of equal characters more than once: texts may have millions of them.
_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?:\s*+\[\d+(?:\s*,\s*\d+)*\])*(?=\s)|[。！？]+[」』”]*|\n+"  # noqa: RUF001
)
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_WORD = re.compile(r"(?<!\w)\w{1,6}$")
_NUMBER = re.compile(r"[ \t]*+[0-9]++")
# The answer continues if the last match captures the group.
_TURN = re.compile(r"\b(?:(however|nevertheless|but)|not|cannot)\b|n't\b", re.IGNORECASE)
_ABSTAINS = re.compile(
    r"""^\W*+(
        (?:i(?:'m|\s+am)\s+(?:sorry|afraid)|sorry|unfortunately|apologies)\b.{0,80}?
        )?\W*+(?:
        i\s+(?:don'?t|do\s+not)\s+know\b
        |i\s+(?:(?:don'?t|do\s+not)\s+have|have\s+no)\s+(?:\w+\s+){0,3}
            (?:information|knowledge|details|context|answer|access)\b
        |i\s+(?:can(?:not|'t|\s+not)|am\s+(?:unable|not\s+able)\s+to|'m\s+(?:unable|not\s+able)\s+to)
            \s+(?:answer|find|determine|provide|say|tell)
        |(?:the|this)\s+(?:provided\s+|given\s+)?
            (?:context|documents?|information|passages?|sources?|text)\s+
            (?:provided\s+|given\s+)?(?:do(?:es)?\s*(?:not|n't)|cannot|can't|lacks?)\b
        |(?:there\s+is|there's)\s+(?:no|not\s+enough|insufficient)\s+
            (?:information|context|evidence|mention)
        |no\s+(?:information|answer|relevant\s+\w+)\s+(?:is|was|were|could\s+be)\b
        |(?:insufficient|not\s+enough)\s+(?:information|context)
        |(?:it\s+is\s+)?not\s+(?:stated|mentioned|specified|answerable)\b
        |unanswerable\b|unknown\W*$|n/?a\W*$|no\s+answer\W*$
        )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
# The rule in RE2 syntax, which databases support. It matches every text with a letter that
# abstains. RE2 character classes are ASCII only: \W matches more, and \w is widened. List marks may
# precede the sentence; the end of the sentence is not checked.
ABSTENTION_RE2 = "(?is)" + (
    re.sub(r"\s+", "", _ABSTAINS.pattern)
    .replace("*+", "*")  # RE2 has no possessive quantifiers
    .replace(r"^\W*(", r"^\W*(?:\w{1,3}[.)]\W+)*(", 1)
    .replace(r"\W*$", "")
    .replace(r"\s", r"\W")
    .replace(r"\w+", r"[\w\x{80}-\x{10ffff}]+")
    .replace("'", "['’]")  # noqa: RUF001 - the rule replaces typographic apostrophes
)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, without list marks.

    A sentence ends with a period, question mark, or exclamation mark before whitespace, with a
    Chinese or Japanese full stop, or at a line break. A period after an abbreviation or a single
    letter, or within a number, does not end a sentence.

    Example:
        >>> split_sentences("Dr. Lee found 3.5 mg. It helped [1, 2]. Why?")
        ['Dr. Lee found 3.5 mg.', 'It helped [1, 2].', 'Why?']
    """
    parts, start = [], 0
    for end in _END.finditer(text):
        if end.group() == "." and end.start() > start:
            word = _WORD.search(text[max(start, end.start() - 7) : end.start()])
            last = word.group().lower() if word else ""
            if last in _ABBREVIATIONS or (len(last) == 1 and last.isalpha()):
                continue
            if _NUMBER.fullmatch(text, start, end.start()):
                continue  # "1. " begins an item of a list
        parts.append(text[start : end.end()])
        start = end.end()
    parts.append(text[start:])
    sentences = (_ITEM.sub("", part).strip() for part in parts)
    return [part for part in sentences if any(char.isalnum() for char in part)]


def abstains(answer: str) -> bool:
    """Return whether an answer abstains according to the rule `ABSTENTION_RULE` (English).

    An abstention says in its first sentence that it cannot answer, and has at most one more
    sentence, which does not go on to answer ("However, ..."). An empty answer abstains.

    Example:
        >>> abstains("I'm sorry, but the context does not mention it."), abstains("No, it is not.")
        (True, False)
    """
    sentences = split_sentences(answer.replace("’", "'"))  # noqa: RUF001
    if not sentences:
        return True
    return len(sentences) <= 2 and _ABSTAINS.match(sentences[0]) is not None and not any(map(_goes_on, sentences))


def _goes_on(sentence: str) -> bool:
    turns = [turn[1] for turn in _TURN.finditer(sentence)]
    return bool(turns and turns[-1])
