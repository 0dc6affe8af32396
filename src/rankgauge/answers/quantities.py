"""Numbers, quantities with units, ordinals, dates, and weekdays in comparable form (English).

A quantity is a set of keys. A text states a quantity of a claim if the keys of the text include one
of the `alternatives` of the quantity: "5,000 m" and a plain "5" state "5 km", but "5 miles" does
not; "3 May 2024" states "2024", but not the other way around.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import NamedTuple

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
    keys = {key for each in stated for key in each.keys}
    return any(keys.isdisjoint(each.alternatives) for each in wanted)


def quantities(text: str) -> tuple[str, frozenset[Quantity]]:
    """Return a text in lower case without its quantities, and the quantities.

    Example:
        >>> rest, found = quantities("twenty-five km on may 3, 2024")
        >>> rest.split(), len(found)
        (['km', 'on', 'may'], 2)
    """
    found: set[Quantity] = set()

    def date(match: re.Match[str]) -> str:
        iso, month, day, early, early_month, year, late_month, late, late_year, last, last_year = match.groups()
        name = early_month or late_month or last
        number = _MONTH[name] if name else int(month)
        years = [int(each) for each in (iso, year, late_year, last_year) if each]
        days = [int(each) for each in (day, early, late) if each]
        if not 1 <= number <= len(_MONTHS):
            return match[0]
        exact = (number, tuple(days), tuple(years))
        keys = (exact, (number, (), exact[2]), (number, exact[1], ()))
        found.add(Quantity((*keys, *(("any", float(each)) for each in years)), (exact,)))
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
        found.add(Quantity((key,), (key,)))
        return " "

    def weekday(match: re.Match[str]) -> str:
        first, last = (_DAYS.index(each or match[1]) for each in match.groups())
        for n in range(first, last + 1 + 7 * (last < first)):
            found.add(Quantity((("weekday", n % 7),), (("weekday", n % 7),)))
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
        found |= {_quantity(minus * value, own) for value in _values(match[0])}
        unit, before = own, match.start()
    return _NUMBER.sub(" ", text), frozenset(found)


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
    return " ".join(f"{each:.15g}" for each in [*numbers, total + current])
