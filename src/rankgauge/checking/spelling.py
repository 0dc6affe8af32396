"""Ids that mean the same and are written differently: which way, and which id is which."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias
from urllib.parse import unquote

import numpy as np

from rankgauge.ids import Ids
from rankgauge.table import PairTable, offsets_of

__all__ = ["Spelling", "Way", "renamed", "spelled", "way_of"]

# Fewer than one new id in so many that met already is taken for chance.
_CHANCE = 50
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_POINT = re.compile(r"^(-?\d+)\.0+$")
_PREFIX = re.compile(r"^.*[_:/#|\-\s](?=[^_:/#|\-\s]+$)")
_SUFFIX = re.compile(r"(?<=[^_:/#|\-\s.])[_:/#|\-\s.][^_:/#|\-\s.]+$")
_ROUGH = re.compile(r"[^0-9a-z\x80-\U0010ffff]")

_Turn: TypeAlias = Callable[[str], str]


@dataclass(frozen=True)
class Way:
    """A way in which ids can be written differently.

    Attributes:
        by: What makes them equal, in words: ``"without leading zeros"``.
        turn: Makes it of an id.
        both: Whether it is done to the ids of both sides; else to those of one side.
    """

    by: str
    turn: _Turn
    both: bool = True


@dataclass(frozen=True)
class Spelling:
    """Ids of a run and those of the judgments that they mean.

    Attributes:
        by: What makes them equal, in words.
        names: Id of the run to the id of the judgments.
        one_to_one: Whether no two ids mean the same.
    """

    by: str
    names: Mapping[bytes, bytes]
    one_to_one: bool


def _strip(text: str) -> str:
    return text.strip().strip("\"'").strip()


def _zeros(text: str) -> str:
    return _ZEROS.sub("", text)


def _point(text: str) -> str:
    return _POINT.sub(r"\1", text)


def _all(text: str) -> str:
    return _zeros(_point(_strip(unquote(text)))).casefold()


_WAYS = (
    Way("without blanks or quotes around them", _strip),
    Way("in one case", str.casefold),
    Way("without leading zeros", _zeros),
    Way("without .0 at the end", _point),
    Way("without %-escapes", unquote),
    Way("without blanks, case, leading zeros, .0 and %-escapes", _all),
    Way("without the prefix", lambda text: _PREFIX.sub("", text), both=False),
    Way("without the suffix", lambda text: _SUFFIX.sub("", text), both=False),
)


def way_of(run_ids: Collection[bytes], judged_ids: Collection[bytes]) -> Way | None:
    """The way in which most ids meet that do not meet as they are; None if there is none.

    Args:
        run_ids: Ids of the run, or some of them.
        judged_ids: Those of the judgments.
    """
    ours, theirs = set(run_ids), set(judged_ids)
    met = len(ours & theirs)
    ours, theirs = ours - theirs, theirs - ours
    if not ours or not theirs or _plain(ours, theirs):
        return None
    least = max(1, met // _CHANCE)
    best, most = None, 0
    for way in _likely(ours, theirs):
        found = len(_pairs(way, ours, theirs))
        if found >= least and found > most:
            best, most = way, found
    # What takes a part of the id away meets by chance; it has to explain nearly all.
    if best is not None and not best.both and most <= met:
        return None
    return best


def _plain(ours: Iterable[bytes], theirs: Iterable[bytes]) -> bool:
    """Whether all are whole numbers without leading zeros: then none can mean another."""
    return all(
        all(map(bytes.isdigit, ids)) and not any(value.startswith(b"0") for value in ids)
        for ids in (ours, theirs)
    )


def _likely(ours: set[bytes], theirs: set[bytes]) -> Iterator[Way]:
    """The ways that are worth a look."""
    rough = set(map(_rough, theirs))
    if not rough.isdisjoint(map(_rough, ours)):
        yield from (way for way in _WAYS if way.both)
    yield from (way for way in _WAYS if not way.both)


def _rough(value: bytes) -> str:
    """An id without all that any way takes away from both sides, and more."""
    return _ROUGH.sub("", _all(_text(value)))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _pairs(way: Way, ours: Iterable[bytes], theirs: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    """Every id of ours with each of theirs that it means."""
    known: dict[str, list[bytes]] = {}
    for value in theirs:
        for key in (
            {_text(value), way.turn(_text(value))} if not way.both else (way.turn(_text(value)),)
        ):
            known.setdefault(key, []).append(value)
    found = []
    for value in ours:
        text = _text(value)
        turned = way.turn(text)
        if way.both:
            found += [(value, other) for other in known.get(turned, ())]
            continue
        # Of one side only: both without a part would meet by chance.
        found += [(value, other) for other in known.get(turned, ()) if _text(other) == turned]
        found += [(value, other) for other in known.get(text, ()) if _text(other) != text]
    return found


def spelled(way: Way, run_ids: Iterable[bytes], judged_ids: Collection[bytes]) -> Spelling:
    """Which id of a run means which of the judgments.

    Args:
        way: How they are written differently.
        run_ids: All ids of the run.
        judged_ids: All ids of the judgments.
    """
    judged = set(judged_ids)
    every = set(run_ids)
    # In order, so that the same is said each time.
    pairs = sorted(_pairs(way, every - judged, judged))
    names: dict[bytes, bytes] = {}
    for ours, theirs in pairs:
        names.setdefault(ours, theirs)
    meant = set(names.values())
    one_to_one = len(pairs) == len(names) == len(meant) and meant.isdisjoint(every)
    return Spelling(way.by, names, one_to_one)


def renamed(table: PairTable, queries: Spelling | None, docs: Spelling | None) -> PairTable:
    """A table of a run with the ids of the judgments; of equal documents the best."""
    if docs is not None:
        names = docs.names
        table = replace(
            table,
            docs=Ids.of([names.get(value, value) for value in table.docs.tolist()], "document id"),
            unique=table.unique and docs.one_to_one,
        )
    if queries is None:
        return table
    known = queries.names
    named = [known.get(value, value) for value in table.queries.tolist()]
    if len(set(named)) == len(named):
        return replace(table, queries=Ids.of(named, "query id"))
    codes, names_left = Ids.of(named, "query id").unique()
    rows = codes[table.query_numbers()]
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=len(names_left))
    kept = table.keep(np.arange(len(table)))
    return PairTable(
        names_left, offsets_of(counts), kept.docs.take(order), kept.values[order],
        source=table.source,
        lines=None if kept.lines is None else kept.lines[order],
        ranks=None if kept.ranks is None else kept.ranks[order],
    )  # fmt: skip
