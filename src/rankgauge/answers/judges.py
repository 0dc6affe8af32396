"""Judges that give verdicts on items: rules and Python callables.

Rules compare terms, negations, and quantities (numbers with units, ordinals, dates, and weekdays in
English). A quantity is a set of keys. A text states a quantity of a claim if the keys of the text
include one of the `alternatives` of the quantity: "5,000 m" and a plain "5" state "5 km", but "5
miles" does not; "3 May 2024" states "2024", but not the other way around.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.answers.verdicts import LABELS, Item, Verdict, without_marks
from rankgauge.core.abstention import ABSTENTION_RULE, abstains, split_sentences
from rankgauge.core.arguments import integer
from rankgauge.core.grouping import group_values
from rankgauge.core.terms import PREFIX, plain_terms, shared
from rankgauge.core.text import Ratio, many
from rankgauge.errors import InputError

_UNITS = """
    m: m 1 meter 1 meters 1 metre 1 metres 1 km 1000 kilometer 1000 kilometers 1000 kilometre 1000
        kilometres 1000 cm .01 centimeter .01 centimeters .01 centimetre .01 centimetres .01 mm .001
        millimeter .001 millimeters .001 millimetre .001 millimetres .001 mile 1609.344
        miles 1609.344 mi 1609.344 ft .3048 foot .3048 feet .3048 inch .0254 inches .0254
        yard .9144 yards .9144
    g: g 1 gram 1 grams 1 kg 1000 kilogram 1000 kilograms 1000 kilo 1000 kilos 1000 mg .001
        milligram .001 milligrams .001 mcg 1e-6 μg 1e-6 microgram 1e-6 micrograms 1e-6
        lb 453.59237 lbs 453.59237 oz 28.349523125 ounce 28.349523125 ounces 28.349523125
        ton 1e6 tons 1e6 tonne 1e6 tonnes 1e6
    l: l 1 liter 1 liters 1 litre 1 litres 1 ml .001 milliliter .001 milliliters .001
        millilitre .001 millilitres .001 cl .01 dl .1 gallon 3.785411784 gallons 3.785411784
    s: s 1 sec 1 second 1 seconds 1 ms .001 millisecond .001 milliseconds .001 min 60 minute 60
        minutes 60 h 3600 hr 3600 hrs 3600 hour 3600 hours 3600 day 86400 days 86400 week 604800
        weeks 604800
    month: month 1 months 1 year 12 years 12
    byte: b 1 byte 1 bytes 1 kb 1e3 mb 1e6 gb 1e9 tb 1e12
    w: w 1 watt 1 watts 1 kw 1e3 mw 1e6 gw 1e9
    %: % 1 percent 1 pct 1
    °c: °c 1 celsius 1
    °f: °f 1 fahrenheit 1
    $: $ 1 usd 1 dollar 1 dollars 1
    €: € 1 eur 1 euro 1 euros 1
    £: £ 1 gbp 1
    am: am 1
    pm: pm 1
"""
_UNIT = {
    name: (kind.strip(), float(factor))
    for kind, _, names in (part.partition(": ") for part in re.split(r"\n    (?=\S)", _UNITS))
    for name, factor in zip(names.split()[::2], names.split()[1::2], strict=True)
}
_SMALL = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
""".split()  # noqa: SIM905
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905
_WORDS = {word: n for n, word in enumerate(_SMALL)} | {word: 10 * n for n, word in enumerate(_TENS, 2)}
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}
_FIRST = """
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth
""".split()  # noqa: SIM905
_ORDINALS = {word: n for n, word in enumerate(_FIRST, 1)} | {
    f"{word[:-1]}ieth": 10 * n for n, word in enumerate(_TENS, 2)
}
_ORDINALS |= {f"{word}th": n for word, n in _WORDS.items() if 13 <= n <= 19}
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH = {name[:length]: n for n, name in enumerate(_MONTHS, 1) for length in (3, len(name))}
_MONTH |= {"sept": 9}

_NAME = "|".join(sorted(_MONTH, key=len, reverse=True))
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"\b(?:(?P<iso>\d{{4}})-(\d\d)-(\d\d)"
    rf"|{_DAY}\s+(?:of\s+)?({_NAME})\b\.?(?:,?\s+(\d{{4}}))?"
    rf"|({_NAME})\b\.?\s+{_DAY}\b(?:,?\s+(\d{{4}}))?"
    rf"|({_NAME})\b\.?,?\s+(\d{{4}}))\b"
)
_ANY = "|".join((*_WORDS, *_SCALES))
# Number words, also after "a" or digits; the number in "twenty one-time codes" is 20, not 21.
_WRITTEN = re.compile(
    rf"\b(?:(?:an?|\d[\d.,]{{0,20}})\s+(?=(?:{'|'.join(_SCALES)})\b))?"
    rf"(?:{_ANY})(?:(?:-|\s+(?:and\s+)?)(?:{_ANY})\b(?!-(?!(?:{_ANY})\b)))*\b"
)
_ORDINAL = re.compile(rf"\b(?:(\d+)(?:st|nd|rd|th)|(?:({'|'.join(_TENS)})-)?({'|'.join(_ORDINALS)}))\b")
_DAYS = "mon tues wednes thurs fri satur sun".split()  # noqa: SIM905
_WEEKDAY = re.compile(r"\b({0})days?(?:\s*(?:-|–|to|through)\s*({0})days?)?\b".replace("{0}", "|".join(_DAYS)))
_TIMES = {"once": "1", "twice": "2", "thrice": "3"}
# "Once" can be a conjunction.
_HOW_OFTEN = re.compile(
    r"\b(?:twice|thrice|once(?=\s+(?:an?|per|every|each|daily|weekly|monthly)\b|\s*(?:[.!?;]|$)))\b"
)
_HALF_DAY = re.compile(r"(?<=\d)\s?([ap])\.m\b\.?")
_MINUS = re.compile(r"(?:^|[\s(])[-−]$")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_BEFORE = re.compile(r"[$€£]\s?$")
_AFTER = re.compile(r"[\s-]?(%|°[cf]|[$€£]|[a-zμ]+)")
_POINTED = re.compile(r"\b(?:the|its|his|her|their|our)\s$")
_RANGE = re.compile(r"\s*(?:-|–|to|and|or)\s*")


class Quantity(NamedTuple):
    """Number, ordinal, or date: the keys of a text that contains it, and the keys that state it."""

    keys: tuple[Hashable, ...]
    alternatives: tuple[Hashable, ...]


def unstated(wanted: Iterable[Quantity], stated: Iterable[Quantity]) -> bool:
    """Return whether one of the first quantities is missing from the second."""
    keys = {key for quantity in stated for key in quantity.keys}
    return any(keys.isdisjoint(quantity.alternatives) for quantity in wanted)


def quantities(text: str) -> tuple[str, frozenset[Quantity]]:
    """Return a text in lower case without its quantities, and the quantities.

    Example:
        >>> rest, found = quantities("twenty-five km on may 3, 2024")
        >>> rest.split(), len(found)
        (['km', 'on', 'may'], 2)
    """
    parsed: set[Quantity] = set()

    def date(match: re.Match[str]) -> str:
        iso, month, day, early, early_month, year, late_month, late, late_year, last, last_year = match.groups()
        name = early_month or late_month or last
        number = _MONTH[name] if name else int(month)
        years = [int(digits) for digits in (iso, year, late_year, last_year) if digits]
        days = [int(digits) for digits in (day, early, late) if digits]
        if not 1 <= number <= len(_MONTHS):
            return match[0]
        exact = (number, tuple(days), tuple(years))
        keys = (exact, (number, (), exact[2]), (number, exact[1], ()))
        parsed.add(Quantity((*keys, *(("any", float(year)) for year in years)), (exact,)))
        return f" {_MONTHS[number - 1]} "

    def ordinal(match: re.Match[str]) -> str:
        digits, tens, word = match.groups()
        if (
            word in {"first", "second"}
            and not tens
            and not _POINTED.search(text, max(0, match.start() - 6), match.start())
        ):
            return match[0]
        key = ("ordinal", int(digits) if digits else _WORDS.get(tens, 0) + _ORDINALS[word])
        parsed.add(Quantity((key,), (key,)))
        return " "

    def weekday(match: re.Match[str]) -> str:
        first, last = (_DAYS.index(name or match[1]) for name in match.groups())
        for n in range(first, last + 1 + 7 * (last < first)):
            parsed.add(Quantity((("weekday", n % 7),), (("weekday", n % 7),)))
        return " "

    text = _WEEKDAY.sub(weekday, _DATE.sub(date, text))
    text = _ORDINAL.sub(ordinal, text)
    text = _HOW_OFTEN.sub(lambda match: _TIMES[match[0]], _WRITTEN.sub(_digits, text))
    text = re.sub(r"\bminus (?=\d)", "-", _HALF_DAY.sub(r" \1m", text))
    unit, before = None, len(text)
    for match in reversed(list(_NUMBER.finditer(text))):
        after = _AFTER.match(text, match.end())
        sign = _BEFORE.search(text, max(0, match.start() - 2), match.start())
        own = _UNIT.get(after[1]) if after else None
        if own is None and sign is not None:
            own = _UNIT[sign[0][0]]
        if own is None and _RANGE.fullmatch(text, match.end(), before):
            own = unit  # "5 to 10 km"
        minus = -1 if _MINUS.search(text, max(0, match.start() - 2), match.start()) else 1
        parsed |= {_quantity(minus * value, own) for value in _values(match[0])}
        unit, before = own, match.start()
    return _NUMBER.sub(" ", text), frozenset(parsed)


def _quantity(value: float, unit: tuple[str, float] | None) -> Quantity:
    if unit is None:
        return Quantity((("any", value), ("plain", value)), (("any", value),))
    own = (unit[0], float(f"{value * unit[1]:.6g}"))
    return Quantity((("any", value), own), (own, ("plain", value)))


def _values(digits: str) -> list[float]:
    """Return the numbers in digits: 6,650 is 6650, and 3,5 is 3.5."""
    digits = digits.replace(",", "" if _THOUSANDS.fullmatch(digits) else ".")
    # Versions have several points: each part is a number.
    parts = digits.split(".") if digits.count(".") > 1 else [digits]
    return [float(part) for part in parts]


def _digits(match: re.Match[str]) -> str:
    """Return number words as digits, except a single "one", which can be a pronoun."""
    words = re.split(r"[\s-]+", match[0])
    if words == ["one"]:
        return match[0]
    numbers, total, current = [], 0.0, 0.0
    for word in words:
        if word in _SCALES:
            current = (current or 1) * _SCALES[word]
            if _SCALES[word] >= 1000:
                total, current = total + current, 0.0
        elif word in _WORDS:
            value = _WORDS[word]
            follows = not current % 100 or (value < 10 and current % 100 >= 20 and not current % 10)
            if not follows:
                numbers.append(total + current)
                total = current = 0.0
            current += value
        elif word[0].isdigit():
            current = _values(word.rstrip(".,"))[0]
    return " ".join(f"{number:.15g}" for number in [*numbers, total + current])


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
    wanted, quoted = _Content.of(claim), _Content.of(quote)
    if not (wanted.terms or wanted.numbers):
        return True
    if shared(wanted.terms, quoted.terms):
        return True
    return any(not unstated([number], quoted.numbers) for number in wanted.numbers)


class _Text:
    """Sentences of a text, indexed by terms and numbers because contexts may be megabytes long."""

    def __init__(self, text: str) -> None:
        self.sentences = split_sentences(text)
        contents = list(map(lru_cache(maxsize=2**12)(_Content.of), self.sentences))
        self.negated = np.array([content.negated for content in contents], dtype=bool)
        self.numbers = {row: content.numbers for row, content in enumerate(contents) if content.numbers}
        rows: dict[Hashable, list[int]] = group_values(
            (part, row)
            for row, content in enumerate(contents)
            for part in (*content.terms, *{key for number in content.numbers for key in number.keys})
        )
        self._rows = {part: np.array(some, dtype=np.intp) for part, some in rows.items()}
        self._near = group_values((part[:PREFIX], part) for part in rows if isinstance(part, str))

    def counts(self, parts: Iterable[str | Quantity]) -> tuple[_Counts, _Counts]:
        """Return the number of these parts in each sentence and in each window from it."""
        alone, together = (np.zeros(len(self.sentences), dtype=np.intp) for _ in range(2))
        for part in parts:
            same: Iterable[Hashable] = part.alternatives if isinstance(part, Quantity) else ()
            if isinstance(part, str):
                near = self._near.get(part[:PREFIX], ())
                same = [term for term in near if shared(frozenset({part}), frozenset({term}))]
            matches = [self._rows[key] for key in same if key in self._rows]
            if matches:
                rows = np.unique(np.concatenate(matches))
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
        asked, terms = plain_terms(item.target), plain_terms(item.subject)
        if item.relation == "context-question" or not asked:
            asked |= plain_terms(" ".join(before))
        if not asked:
            return "the question has no terms"
        common = shared(asked, terms)
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
        terms, terms_together = (
            (counts == len(claim.numbers)).astype(np.intp) for counts in (numbers, numbers_together)
        )
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
    stated = text.numbers.get(best, frozenset())
    lacks = unstated(claim.numbers, stated)
    differ = lacks and unstated(stated, claim.numbers)
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
