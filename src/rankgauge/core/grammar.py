"""Grammar of measure names, ``Name(param=value)@k``, and the registry of parameters."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from rankgauge.errors import UnknownName

Value: TypeAlias = int | float | bool | str | tuple[tuple[float, float], ...] | None

# Values in examples of measures, by parameter that some measure requires.
EXAMPLES: Mapping[str, int | float | str] = {"k": 10, "mult": 0.4, "recall": 0.1, "name": "polite"}
_MAX_K = 10**9
_MOST_MULT = 1e6
_MAX_TOP = 60
# Far above any scale, and sums of many such values are still finite.
_MOST = 1e100


class Param(NamedTuple):
    """A parameter of measures."""

    name: str  # name
    meaning: str  # meaning, in one line
    domain: str  # allowed values, in words
    # Converts text or a Python value; raises ValueError if it is not allowed.
    read: Callable[[Any], Value]

    def check(self, value: Any, where: str) -> Value:
        """Return the converted value, or raise an error that names the allowed values."""
        try:
            return self.read(value)
        except (ValueError, TypeError, OverflowError):
            shown = value if isinstance(value, str) else repr(value)
            raise UnknownName(
                f"{self.name}={shown} is not valid", where=where, fix=f"{self.name} is {self.domain}: {self.meaning}"
            ) from None


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, str | numbers.Real):
        raise TypeError(value)
    if isinstance(value, str) and "_" in value:
        raise ValueError(value)
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    # Above 2^53 floats do not represent every integer, and float notation is shorter.
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _cutoff(value: Any) -> int | str:
    if isinstance(value, str) and value.strip()[-1:] in {"r", "R"}:
        mult = _between(0, _MOST_MULT)(value.strip()[:-1] or 1)
        return "R" if mult == 1 else f"{mult}R"
    number = _number(value)
    if not isinstance(number, int) or not 1 <= number <= _MAX_K:
        raise ValueError(value)
    return number


def _between(low: float, high: float, *, closed: bool = False) -> Callable[[Any], int | float]:
    def read(value: Any) -> int | float:
        number = _number(value)
        if not (low <= number <= high if closed else low < number < high):
            raise ValueError(value)
        return number

    return read


_worth = _between(-_MOST, _MOST, closed=True)


def _level(value: Any) -> int | float | str:
    if isinstance(value, str) and value.strip().lower() == "best":
        return "best"
    return _between(0, 1e300)(value)


def _recall(value: Any) -> float:
    return float(_between(0, 1, closed=True)(value))


def _flag(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _choice(*choices: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not isinstance(value, str) or value.replace(" ", "") not in choices:
            raise ValueError(value)
        return value.replace(" ", "")

    return read


def _word(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"\w[\w-]{0,60}", value):
        raise ValueError(value)
    return value


def _gain(value: Any) -> str | tuple[tuple[float, float], ...]:
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in {"linear", "log2"}:
            return "linear"
        if text.lower() in {"exp", "exponential", "exp-log2", "burges"}:
            return "exp"
        if not (text.startswith("{") and text.endswith("}")):
            raise ValueError(value)
        pairs = [part.split(":") for part in text[1:-1].split(",")]
        value = {_number(grade): gain for grade, gain in pairs}
    items = value.items() if isinstance(value, Mapping) else value
    gains = {float(_number(grade)): float(_number(gain)) for grade, gain in items}
    if not gains or min(gains) < 0 or not 0 <= min(gains.values()) <= max(gains.values()) <= _MOST:
        raise ValueError(value)
    return tuple(sorted(gains.items()))


VOCABULARY: Mapping[str, Param] = {
    param.name: param
    for param in (
        Param(
            "alpha",
            "the share of a subtopic covered by one relevant document, by which the gain of further ones is reduced",
            "a number from 0 to 1",
            _between(0, 1, closed=True),
        ),
        Param(
            "among",
            "the documents that form pairs",
            "judged (all judged documents) or retrieved (those in the ranking)",
            _choice("judged", "retrieved"),
        ),
        Param(
            "b",
            "the base of the logarithm that discounts gains, and the rank at which it starts",
            "a number > 1",
            _between(1, 1e6),
        ),
        Param(
            "count",
            "the units that are counted and averaged",
            "preferences, pairs (of documents), groups (of judgments), or balanced (groups, with "
            "as many other documents as relevant ones)",
            _choice("preferences", "pairs", "groups", "balanced"),
        ),
        Param("beta", "the weight of recall against precision", "a number > 0", _between(0, 1e6)),
        Param(
            "gain",
            "the gain of a grade",
            "linear (the grade), exp (2^grade - 1), or a map such as {1:1,2:5} (other grades are their own gain)",
            _gain,
        ),
        Param("goal", "the gain that the user wants to find", "a number > 0", _between(0, 1e6)),
        Param("hit", "the value of a relevant document retrieved", "a number", _worth),
        Param(
            "ideal",
            "the documents of the ideal ranking",
            "judged (every judged document), or, to reproduce other tools, retrieved (of the "
            "whole ranking) or topk (of the first k)",
            _choice("judged", "retrieved", "topk"),
        ),
        Param("judged_only", "whether unjudged documents are removed from the ranking first", "true or false", _flag),
        Param(
            "k",
            "the number of ranks that are evaluated",
            f"a whole number from 1 to {_MAX_K:,}, or a multiple of the number of relevant documents, such as 0.5R",
            _cutoff,
        ),
        Param(
            "like",
            "the tool whose definition is used",
            "ragas, deepeval, or ragchecker",
            _choice("ragas", "deepeval", "ragchecker"),
        ),
        Param("miss", "the value of a relevant document not retrieved", "a number", _worth),
        Param(
            "mult",
            "the number of ranks as a multiple of R, the number of relevant documents",
            "a number > 0",
            _between(0, _MOST_MULT),
        ),
        Param("name", "the name of a user-defined criterion", "letters, digits, hyphens, and underscores", _word),
        Param("noise", "the value of any other document retrieved", "a number", _worth),
        Param(
            "norm",
            "the divisor of the sum",
            "R (all relevant documents), min(k,R), k, or retrieved (the relevant documents retrieved)",
            _choice("R", "min(k,R)", "k", "retrieved"),
        ),
        Param("normalize", "whether the value is divided by its maximum", "true or false", _flag),
        Param(
            "p",
            "the persistence: the probability of continuing to the next rank",
            "a number between 0 and 1",
            _between(0, 1),
        ),
        Param(
            "points",
            "how a fractional number of relevant documents at a recall level is rounded",
            "up (as trec_eval up to version 9) or nearest (as trec_eval 10)",
            _choice("up", "nearest"),
        ),
        Param("recall", "the level of recall", "a number from 0 to 1", _recall),
        Param(
            "rel",
            "the grade from which a document counts as relevant",
            "a number > 0, or best (the highest grade of each query)",
            _level,
        ),
        Param(
            "residual",
            "whether to return the residual: the possible gain if all unjudged documents were relevant",
            "true or false",
            _flag,
        ),
        Param(
            "scope",
            "which preferences count: with how many of their two documents retrieved",
            "all, any (at least one), or both",
            _choice("all", "any", "both"),
        ),
        Param(
            "top",
            "the highest grade of the scale",
            f"a number from 1 to {_MAX_TOP}",
            _between(1, _MAX_TOP, closed=True),
        ),
    )
}


class ParsedName(NamedTuple):
    """A parsed name: ``nDCG(gain=exp)@10`` is ``nDCG``, ``{"gain": "exp"}``, ``"10"``."""

    name: str
    params: Mapping[str, str]
    at: str | None


_NAME = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][\w .-]*?)\s*(?:\((?P<params>.*)\))?\s*(?:@\s*(?P<at>[\w.+-]+))?\s*", re.ASCII
)
_PART = re.compile(
    r"""\s*(?P<word>\w+)\s*=\s*
    (?P<value>'[^']*'|"[^"]*"|\{[^{}]*\}|\w+\([^()]*\)|[^,(){}'"]+?)\s*(?:,|$)""",
    re.VERBOSE | re.ASCII,
)
# Longer than any sensible name; keeps hostile input from costing time.
LONGEST = 400


def split_name(text: str) -> ParsedName:
    """Parse a name.

    Example:
        >>> split_name("RR(rel=2)@10")
        ParsedName(name='RR', params={'rel': '2'}, at='10')
    """
    match = _NAME.fullmatch(text) if len(text) <= LONGEST else None
    inside = (match and match["params"]) or ""
    parts = list(_PART.finditer(inside))
    params = {part["word"]: part["value"].strip("'\"") for part in parts}
    if match is None or len(params) < len(parts) or "".join(part[0] for part in parts) != inside:
        shown = ascii(text)[1:-1]
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        raise UnknownName(
            f"{shown!r} is not the name of a measure",
            fix="write Name@k or Name(param=value)@k, such as nDCG@10 or RR(rel=2)@10",
        )
    return ParsedName(match["name"], params, match["at"])


def format_name(name: str, params: Iterable[tuple[str, Value]], at: str) -> str:
    """Format a measure name; `at` names the parameter written after ``@``.

    Example:
        >>> format_name("RR", [("k", 10), ("rel", 2)], "k")
        'RR(rel=2)@10'
    """
    inside, behind = [], ""
    for word, value in params:
        if word == at:
            behind = f"@{value}"
        else:
            if isinstance(value, tuple):
                value = "{" + ",".join(f"{_number(grade)}:{_number(gain)}" for grade, gain in value) + "}"  # noqa: PLW2901
            inside.append(f"{word}={value}")
    return name + (f"({','.join(inside)})" if inside else "") + behind


def plain_key(name: str) -> str:
    """Normalize a name: ``Hit Rate``, ``hit_rate``, and ``HitRate`` have the same key.

    Example:
        >>> plain_key("Hit Rate")
        'hitrate'
    """
    return re.sub(r"[\s_.-]+", "", name).lower()
