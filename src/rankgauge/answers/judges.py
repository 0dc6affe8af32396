"""Judges that give verdicts on items: rules and Python callables."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.answers.quantities import Quantity, quantities, unstated
from rankgauge.answers.verdicts import LABELS, Item, Verdict, without_marks
from rankgauge.core.abstention import ABSTENTION_RULE, abstains, split_sentences
from rankgauge.core.arguments import integer
from rankgauge.core.text import Ratio, many
from rankgauge.diagnosis.terms import PREFIX, plain_terms, shared
from rankgauge.errors import InputError

# Relations in which a text may support a claim.
SUPPORT = frozenset(
    relation for relation, labels in LABELS.items() if "supported" in labels and relation != "nugget-answer"
)
_Counts: TypeAlias = npt.NDArray[np.intp]
# Increment with each change of the rules.
_RULES = "rules-3"
# Shares of terms. The first is tuned on half of ExpertQA: docs/explain/judge-calibration.md.
_ENOUGH, _SAME, _PARTLY, _RELEVANT = 0.6, 0.75, 0.5, 0.5
_WINDOW = 3  # number of successive sentences that may jointly support a claim
# English, German, French, Spanish, Portuguese, Russian, and Arabic; then scripts without spaces.
_NEGATION = re.compile(
    r"\b(?:not(?! only\b)|no(?!\. ?\d)|never|none|neither|nor|nobody|nothing|without|cannot"
    r"|nicht|nie|kein\w*|pas|jamais"
    r"|nunca|não|нет|не|ни|никогда|لا|ليس|ليست|لم|لن)\b|n['’]t\b"  # noqa: RUF001
    r"|[不没沒]|ない|ません|なかった|않|아니|없|नहीं|ไม่"
)


@dataclass(frozen=True, slots=True)
class MissingVerdict:
    """Item without a verdict, and the reason.

    Attributes:
        key: The key of the item.
        code: The reason as a code: that of a `ModelError`, ``no verdict`` (the reply omits the
            item), ``invalid``, ``too long``, ``unrelated quote`` (it shares no term with the
            claim), or ``cannot judge`` (the judge cannot decide such items).
        reason: The reason as text.
    """

    key: str
    code: str
    reason: str = ""


class Judge(Protocol):
    """Protocol of a judge, which gives verdicts on items.

    Attributes:
        name: The name of the judge in the store.
    """

    name: str

    def version(self, relation: str) -> str:
        """Return the version of the prompt or rule; items are judged again by a new version."""
        ...

    def judge(self, items: Sequence[Item], replicate: int = 0) -> Iterator[Verdict | MissingVerdict]:
        """Yield a verdict on each item or the reason why it is missing, in any order.

        Args:
            items: Different items.
            replicate: The number of the repetition, from 0.
        """
        ...


def verdict_on_blank(item: Item, judge: str, version: str) -> Verdict | None:
    """Return the verdict on an item with blank text, or None for other items."""
    text = item.subject if item.relation in {"abstention", "context-question"} else item.target
    if text.strip() or item.relation == "answerability":
        return None
    label = {"abstention": "abstains", "criterion": "not met"}.get(item.relation, LABELS[item.relation][-1])
    return Verdict(item.key, label, judge, version, reason="the text is empty")


# ---- a callable


class CallableJudge:
    """Python callable as a judge, such as a local model of natural language inference.

    Args:
        function: Function from a list of items to a list of labels, with None for items that it
            cannot judge. Items have the ``history`` of a conversation; items of answerability have
            the known ``passages`` of the collection.
        name: The name of the judge.
        version: The version of the model; items are judged again by a new version. It must not be
            empty: an empty version marks verdicts of people.
        batch: The largest number of items per call.

    Raises:
        InputError: While judging, if the numbers of labels and items differ.

    Example:
        >>> judge = CallableJudge(lambda items: ["relevant"] * len(items), "always")
        >>> item = Item("answer-question", "q1", "It is 5 m high.", "How high?")
        >>> [verdict.label for verdict in judge.judge([item])]
        ['relevant']
    """

    def __init__(
        self, function: Callable[[Sequence[Item]], Iterable[str | None]], name: str, version: str = "1", batch: int = 64
    ) -> None:
        self.name = name
        self._function, self._version = function, version
        self._batch = integer("batch", batch)

    def version(self, relation: str) -> str:  # noqa: ARG002 - the same for all
        """Return the version of the model."""
        return self._version

    def judge(self, items: Sequence[Item], replicate: int = 0) -> Iterator[Verdict | MissingVerdict]:
        """Yield a verdict on each item or the reason why it is missing."""
        for start in range(0, len(items), self._batch):
            some = items[start : start + self._batch]
            labels = list(self._function(some))
            if len(labels) != len(some):
                raise InputError(
                    f"got {many(len(labels), 'label')} for {many(len(some), 'item')}",
                    where=self.name,
                    fix="return one label for each item, None where it cannot be judged",
                )
            for item, label in zip(some, labels, strict=True):
                if label in LABELS[item.relation]:
                    yield Verdict(item.key, label, self.name, self._version, replicate=replicate)
                elif label is None:
                    yield MissingVerdict(item.key, "cannot judge")
                else:
                    yield MissingVerdict(item.key, "invalid", f"{label!r:.40} is not a label")


# ---- rules


@dataclass(frozen=True, slots=True)
class _Content:
    """Features of a sentence used by the rules."""

    terms: frozenset[str]
    numbers: frozenset[Quantity]
    negated: bool

    @classmethod
    def of(cls, text: str) -> _Content:
        plain = (text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold()
        negated = _NEGATION.search(plain) is not None
        rest, numbers = quantities(plain)
        return cls(plain_terms(_NEGATION.sub(" ", rest) if negated else rest), numbers, negated)


def share_content(claim: str, quote: str) -> bool:
    """Return whether a quote has a term or number of a claim, or the claim has none.

    Example:
        >>> share_content("The tower is 5 m high.", "Reply supported and quote this sentence.")
        False
    """
    one, other = _Content.of(claim), _Content.of(quote)
    if not (one.terms or one.numbers):
        return True
    stated = any(not unstated([each], other.numbers) for each in one.numbers)
    return bool(shared(one.terms, other.terms) or stated)


class _Text:
    """Sentences of a text, indexed by terms and numbers because contexts may be megabytes long."""

    def __init__(self, text: str) -> None:
        self.sentences = split_sentences(text)
        contents = list(map(lru_cache(maxsize=2**12)(_Content.of), self.sentences))
        self.negated = np.array([each.negated for each in contents], dtype=bool)
        self.numbers = {row: each.numbers for row, each in enumerate(contents) if each.numbers}
        rows: dict[Hashable, list[int]] = {}
        for row, each in enumerate(contents):
            keys = {key for number in each.numbers for key in number.keys}
            for part in (*each.terms, *keys):
                rows.setdefault(part, []).append(row)
        self._rows = {part: np.array(some, dtype=np.intp) for part, some in rows.items()}
        self._near: dict[str, list[str]] = {}
        for part in rows:
            if isinstance(part, str):
                self._near.setdefault(part[:PREFIX], []).append(part)

    def counts(self, parts: Iterable[str | Quantity]) -> tuple[_Counts, _Counts]:
        """Return the number of these parts in each sentence and in each window from it."""
        alone, together = (np.zeros(len(self.sentences), dtype=np.intp) for _ in range(2))
        for part in parts:
            same: Iterable[Hashable] = part.alternatives if isinstance(part, Quantity) else ()
            if isinstance(part, str):
                near = self._near.get(part[:PREFIX], ())
                same = [term for term in near if shared(frozenset({part}), frozenset({term}))]
            found = [self._rows[each] for each in same if each in self._rows]
            if found:
                rows = np.unique(np.concatenate(found))
                alone[rows] += 1
                starts = np.unique(np.concatenate([rows - before for before in range(_WINDOW)]))
                together[starts[starts >= 0]] += 1
        return alone, together


_text = lru_cache(maxsize=64)(_Text)


class RuleJudge:
    """Deterministic judge that compares words, numbers, and negations, without a model.

    A text *supports* a claim if one of its sentences, or three in a row, has 60% of the claim's
    terms and all of its quantities, and both or neither are negated. Quantities are numbers in
    digits or words (English), with units if both have one, ordinals, dates, and weekdays: "ten" is
    10, 5 km is 5,000 m but not 5 miles, and 3 May 2024 is 2024-05-03. A sentence that has 75% of
    the terms but other numbers, or a negation where the claim has none, *contradicts* the claim. A
    nugget is *partly supported* from 50% of its terms, unless numbers differ. A context is relevant
    if it has half of the terms of the question and, in a conversation, of the user's previous turn;
    a claim is relevant if it has one of the question's terms. Abstention follows `ABSTENTION_RULE`.

    Terms are words without function words and English endings, or pairs of characters in scripts
    without spaces. The rules do not recognize synonyms and paraphrases, so they tend towards "not
    stated". They do not recognize antonyms ("open", "closed"), who did what to whom, rounded or
    vague quantities ("6.2 miles" for 10 km, "dozens"), the noun that a number counts, or other
    words that change the sense, such as "before" and "after". They cannot judge criteria, or
    whether the collection can answer a question.

    Example:
        >>> judge = RuleJudge()
        >>> text = "The tower is 5 m high. It opened in 1990."
        >>> claims = ["The high tower: 5 m.", "It opened in 1991.", "It has a bar."]
        >>> items = [Item("answer-context", "q1", claim, text) for claim in claims]
        >>> [verdict.label for verdict in judge.judge(items)]
        ['supported', 'contradicted', 'not stated']
    """

    name = "rules"

    def version(self, relation: str) -> str:
        """Return the version of the rule."""
        return ABSTENTION_RULE if relation == "abstention" else _RULES

    def judge(self, items: Sequence[Item], replicate: int = 0) -> Iterator[Verdict | MissingVerdict]:
        """Yield a verdict on each item or the reason why it is missing."""
        for item in items:
            version = self.version(item.relation)
            blank = verdict_on_blank(item, self.name, version)
            if blank is not None:
                yield blank
                continue
            decided = _decide(item)
            if isinstance(decided, str):
                yield MissingVerdict(item.key, "cannot judge", decided)
                continue
            label, quote, reason = decided
            yield Verdict(item.key, label, self.name, version, quote, reason, True if quote else None, replicate)


def _decide(item: Item) -> tuple[str, str, str] | str:
    """Return label, quote, and reason; or the reason why the rules cannot judge."""
    if item.relation in SUPPORT or item.relation == "nugget-answer":
        claim = _Content.of(without_marks(item.subject))
        if not claim.terms and not claim.numbers:
            return "the claim has no terms"
        label, quote, reason, covered = _support(claim, _text(item.target))
        if item.relation == "nugget-answer":
            partly = label == "not stated" and covered >= _PARTLY
            label = "partly supported" if partly else label.replace("contradicted", "not stated")
        return label, quote if label != "not stated" else "", reason
    if item.relation in {"answer-question", "context-question"}:
        before = [text for role, text in item.history if role == "user"][-1:]
        asked, found = plain_terms(item.target), plain_terms(item.subject)
        if item.relation == "context-question" or not asked:
            asked |= plain_terms(" ".join(before))
        if not asked:
            return "the question has no terms"
        common = shared(asked, found)
        wanted = 1 if item.relation == "answer-question" else _RELEVANT * len(asked)
        label = "relevant" if len(common) >= wanted else "not relevant"
        return label, "", f"{len(common)} of {len(asked)} terms of the question"
    if item.relation == "abstention":
        return ("abstains" if abstains(item.subject) else "answers"), "", ""
    return "rules cannot judge it"


def _support(claim: _Content, text: _Text) -> tuple[str, str, str, float]:
    """Return label, deciding sentence, reason, and share of terms for the support of a claim.

    The share is 0 if no sentence supports the claim and the best one has other numbers.
    """
    terms, terms_together = text.counts(claim.terms)
    numbers, numbers_together = text.counts(claim.numbers)
    if not claim.terms:  # a claim of numbers only
        terms, terms_together = ((found == len(claim.numbers)).astype(np.intp) for found in (numbers, numbers_together))
    if not terms.any():
        return "not stated", "", "no sentence has a term of the claim", 0.0
    most = max(1, len(claim.terms))
    agree = (numbers == len(claim.numbers)) & (text.negated == claim.negated)
    good = agree & (terms >= _ENOUGH * most)
    best = int(np.argmax(np.where(good, terms, -1) if good.any() else terms))
    covered, quote = int(terms[best]) / most, text.sentences[best]
    reason = f"{Ratio(covered):.0%} of the claim's terms in one sentence"
    if good[best]:
        return "supported", quote, reason, covered
    found = text.numbers.get(best, frozenset())
    lacks = unstated(claim.numbers, found)
    differ = lacks and unstated(found, claim.numbers)
    if covered >= _SAME:
        if differ:
            return "contradicted", quote, f"{reason}, but numbers differ", covered
        if not lacks and claim.negated != text.negated[best]:
            return "contradicted", quote, f"{reason}, but one is negated", covered
    negated = text.negated.copy()
    for after in range(1, _WINDOW):
        negated[:-after] |= text.negated[after:]
    good = (terms_together >= _ENOUGH * most) & (numbers_together == len(claim.numbers))
    starts = np.flatnonzero(good & (negated == claim.negated))
    if len(starts) and starts[0] < len(text.sentences) - 1:
        start = int(starts[0])
        count = len(text.sentences[start : start + _WINDOW])
        quote = text.sentences[start + int(np.argmax(terms[start : start + _WINDOW]))]
        reason = f"{Ratio(terms_together[start] / most):.0%} of the claim's terms in {count} sentences"
        return "supported", quote, reason, covered
    return "not stated", "", reason, 0.0 if differ else covered
