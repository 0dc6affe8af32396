"""Ids that mean the same and are written differently: which way, and which id is which."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Ids, IntArray
from rankgauge.core.pair_table import PairTable, offsets_of

__all__ = ["Spelling", "Way", "matches", "named", "renamed", "spelled", "way_of"]

# Fewer than one new id in so many that met already is taken for chance.
_CHANCE = 50
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_POINT = re.compile(r"^(-?\d+)\.0+$")
_PREFIX = re.compile(r"^.*[_:/#|\-\s](?=[^_:/#|\-\s]+$)")
# The beginning of an id up to its last mark.
_HEAD = re.compile(rb".*[_:/#|\-\s.]", re.DOTALL)
_SUFFIX = re.compile(r"(?<=[^_:/#|\-\s.])[_:/#|\-\s.][^_:/#|\-\s.]+$")
# Numbers of chunks: 12_chunk_5, 12.md::5, 12#5, 12-5.
_CHUNK = re.compile(r"(?<=.)(?:\.[A-Za-z]\w{0,4})?(?:[_:/#|\-.]chunk[_:#|\-.]?|::|#|-)\d+$")
# Marks of the longest of them, which are cut off one by one.
_CHUNK_MARKS = 4
# A word hard before a number: DOC486.
_WORD = re.compile(r"^[A-Za-z]+(?=[0-9]+$)")
# Rows of a piece: what is made of them on the way takes a few megabytes.
_PIECE = 1 << 15
_NOT_ASCII = 128
_LONGEST = 256
_RANDOM = np.random.default_rng(7)
_WEIGHTS = _RANDOM.integers(0, 2**64, _LONGEST, dtype=np.uint64) | np.uint64(1)
# What some way takes away is worth nothing; a letter is worth the same in either case.
_WORTH = np.zeros(256, dtype=np.uint64)
_WORTH[list(b"123456789abcdefghijklmnopqrstuvwxyz")] = _RANDOM.integers(
    0, 2**64, 35, dtype=np.uint64
) | np.uint64(1)
_WORTH[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")] = _WORTH[list(b"abcdefghijklmnopqrstuvwxyz")]
_MARKS = np.zeros(256, dtype=bool)
_MARKS[list(b"_:/#|- \t\n\r\v\f\x1c\x1d\x1e\x1f")] = True
_NO_DIGITS = np.ones(256, dtype=bool)
_NO_DIGITS[list(b"0123456789")] = False
_POINTS = np.zeros(256, dtype=bool)
_POINTS[ord(".")] = True

_Turn: TypeAlias = Callable[[str], str]


@dataclass(frozen=True)
class Way:
    """A way in which ids can be written differently.

    Attributes:
        by: What makes them equal, in words: ``"without leading zeros"``.
        turn: Makes it of an id.
        both: Whether it is done to the ids of both sides; else to those of one side.
        sure: Whether even a few ids that meet by it mean the same: nobody writes ``7`` and ``007``
            for two documents.
        cut: How many bytes are cut off at the beginning and at the end, where all ids of one side
            share them.
    """

    by: str
    turn: _Turn
    both: bool = True
    sure: bool = False
    cut: tuple[int, int] | None = None


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
    Way("without blanks or quotes around them", _strip, sure=True),
    Way("in one case", str.casefold),
    Way("without leading zeros", _zeros, sure=True),
    Way("without .0 at the end", _point, sure=True),
    Way("without %-escapes", unquote, sure=True),
    Way("without blanks, case, leading zeros, .0 and %-escapes", _all),
    Way("without the prefix", lambda text: _PREFIX.sub("", text), both=False),
    Way("without the word before the number", lambda text: _WORD.sub("", text), both=False),
    Way("without the chunk number", lambda text: _CHUNK.sub("", text), both=False),
    Way("without the suffix", lambda text: _SUFFIX.sub("", text), both=False),
    Way(
        "without prefix and suffix",
        lambda text: _SUFFIX.sub("", _PREFIX.sub("", text)),
        both=False,
    ),
)


def way_of(
    run_ids: Collection[bytes],
    judged_ids: Collection[bytes],
    worth: Callable[[Way], int] | None = None,
) -> Way | None:
    """The way in which most ids meet that do not meet as they are; None if there is none.

    Args:
        run_ids: Ids of the run, or some of them.
        judged_ids: Those of the judgments.
        worth: How many matches a way yields, where ids alone do not tell; the caller decides
            whether they are enough.
    """
    ours, theirs = set(run_ids), set(judged_ids)
    met = len(ours & theirs)
    ours, theirs = ours - theirs, theirs - ours
    if not ours or not theirs or _plain(ours, theirs):
        return None
    best, most = None, 0
    for way, near in _likely(ours, theirs):
        if worth is not None:
            best, most = max((best, most), (way, worth(way)), key=lambda found: found[1])
            continue
        known = _known(way, theirs)
        # What many ids become is no id of each: 12#3 and 47#3 without a prefix.
        found = len({other for value in near for other in _meant(way, known, value)})
        least = 1 if way.sure else max(1, met // _CHANCE)
        if found >= least and found > most:
            best, most = way, found
    # What takes a part of the id away meets by chance; it has to explain nearly all.
    if worth is None and best is not None and not best.both and most <= met:
        return None
    return best


def _plain(ours: Iterable[bytes], theirs: Iterable[bytes]) -> bool:
    """Whether all are whole numbers without leading zeros: then none can mean another."""
    return all(
        all(map(bytes.isdigit, ids)) and not any(value.startswith(b"0") for value in ids)
        for ids in (ours, theirs)
    )


def _likely(ours: set[bytes], theirs: set[bytes]) -> Iterator[tuple[Way, list[bytes]]]:
    """The ways that are worth a look, each with those of our ids that can meet by it."""
    column = Ids.of(sorted(ours))
    near: dict[Any, list[bytes]] = {}
    of_both = [way for way in _WAYS if way.both]
    for way in (*of_both, *_shared(ours, theirs), *(way for way in _WAYS if not way.both)):
        kind = way.cut or way.both
        if kind not in near:
            near[kind] = column.take(_near(column, _keys(theirs, way), way)).tolist()
        if near[kind]:
            yield way, near[kind]


def _shared(ours: Collection[bytes], theirs: Collection[bytes]) -> Iterator[Way]:
    """Without what all ids of one side begin and end with, up to a mark, and the others do not."""
    if min(len(ours), len(theirs)) < 2:
        return
    heads, tails = ([_head(ids) for ids in (ours, theirs)], [_tail(ids) for ids in (ours, theirs)])
    for one, other in ((0, 1), (1, 0)):
        prefix = heads[one].removesuffix(heads[other])
        suffix = tails[one].removeprefix(tails[other])
        if prefix:
            yield _without(prefix, "")
        if suffix:
            yield _without("", suffix)
        if prefix and suffix:
            yield _without(prefix, suffix)


def _head(ids: Collection[bytes]) -> str:
    found = _HEAD.match(_common(min(ids), max(ids)))
    return _text(found[0] if found else b"")


def _tail(ids: Collection[bytes]) -> str:
    backwards = [value[::-1] for value in ids]
    found = _HEAD.match(_common(min(backwards), max(backwards)))
    return _text(found[0][::-1] if found else b"")


def _common(one: bytes, other: bytes) -> bytes:
    """The beginning that two ids share."""
    pairs = zip(one, other, strict=False)
    return one[: next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))]


def _without(prefix: str, suffix: str) -> Way:
    said = [f"the prefix '{prefix}'"] if prefix else []
    said += [f"the suffix '{suffix}'"] if suffix else []
    cut = (len(prefix.encode("utf-8", "surrogateescape")),
           len(suffix.encode("utf-8", "surrogateescape")))  # fmt: skip

    def turn(text: str) -> str:
        rest = text.removeprefix(prefix).removesuffix(suffix)
        return rest if len(rest) == len(text) - len(prefix) - len(suffix) and rest else text

    return Way(f"without {' and '.join(said)}", turn, both=False, cut=cut)


def _keys(judged: Collection[bytes], way: Way) -> npt.NDArray[np.uint64]:
    """What an id that can mean a judged one has one of: by a way for both sides, or for one."""
    if way.cut is not None:
        turns = [way.turn]
    else:
        turns = [_all] if way.both else [other.turn for other in _WAYS if not other.both]
    texts = [_text(value) for value in judged]
    turned = {turn(text).encode("utf-8", "surrogateescape") for turn in turns for text in texts}
    # What is nothing when turned, or holds a NUL (from %00), is the id of nothing.
    usable = {value for value in (*judged, *turned) if value and b"\0" not in value}
    wanted = Ids.of(sorted(usable))
    return np.unique(_rough(wanted) if way.both else wanted.hashes())


def _near(ids: Ids, keys: npt.NDArray[np.uint64], way: Way) -> IntArray:
    """The rows of ids that can mean a judged one; those that cannot are most of a long run."""
    rows = []
    for start in range(0, len(ids), _PIECE):
        part = ids.take(slice(start, start + _PIECE))
        if way.both:
            near = np.isin(_rough(part), keys)
        else:
            near = np.isin(part.hashes(), keys)
            cuts = [_cut(part, *way.cut)] if way.cut else [*_parted(part), *_heads(part)]
            for cut in cuts:
                near |= np.isin(cut.hashes(), keys)
        rows.append(np.flatnonzero(near | _free(part)) + start)
    return np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)


def _cut(ids: Ids, head: int, tail: int) -> Ids:
    """Ids without so many bytes at the beginning and at the end; those that are shorter whole."""
    longer = ids.lengths > head + tail
    return Ids(
        ids.data,
        np.where(longer, ids.starts + head, ids.starts),
        np.where(longer, ids.lengths - head - tail, ids.lengths),
    )


def _bytes_of(ids: Ids) -> tuple[npt.NDArray[np.uint8], IntArray]:
    """The bytes of ids without what stands between them, and where each begins."""
    offsets = offsets_of(ids.lengths)
    places = np.repeat(ids.starts - offsets[:-1], ids.lengths) + np.arange(offsets[-1])
    return ids.data[places], offsets


def _rough(ids: Ids) -> npt.NDArray[np.uint64]:
    """A number for each id that does not change with what the ways take away from both sides."""
    data, offsets = _bytes_of(ids)
    kept = np.concatenate([[0], np.cumsum(_WORTH[data] != 0)])
    place = kept[:-1] - np.repeat(kept[offsets[:-1]], np.diff(offsets))
    sums = np.zeros(len(data) + 1, dtype=np.uint64)
    np.cumsum(_WORTH[data] * _WEIGHTS[place % len(_WEIGHTS)], out=sums[1:])
    found: npt.NDArray[np.uint64] = sums[offsets[1:]] - sums[offsets[:-1]]
    return found


def _free(ids: Ids) -> npt.NDArray[np.bool_]:
    """Which ids hold a byte that says nothing without its neighbours: they are all looked at."""
    data, offsets = _bytes_of(ids)
    odd = np.concatenate([[0], np.cumsum((data == ord("%")) | (data >= _NOT_ASCII))])
    found: npt.NDArray[np.bool_] = odd[offsets[1:]] > odd[offsets[:-1]]
    return found


def _parted(ids: Ids) -> tuple[Ids, Ids, Ids, Ids]:
    """Each id up to its last mark between two parts, from there on, both, and its last number.

    A point is such a mark before a suffix, and none behind a prefix. Ids without one stay whole.
    """
    data, offsets = _bytes_of(ids)
    ends = offsets[1:] - 1

    def last(marks: npt.NDArray[np.bool_]) -> IntArray:
        places = np.maximum.accumulate(np.where(marks[data], np.arange(len(data)), -1))[ends]
        found: IntArray = places - offsets[:-1]
        return found

    before, behind = last(_MARKS | _POINTS), last(_MARKS)
    head = np.where(before > 0, before, ids.lengths)

    def rest(place: IntArray, stop: IntArray) -> Ids:
        gone = np.where((place >= 0) & (place < stop - 1), place + 1, 0)
        return Ids(ids.data, ids.starts + gone, stop - gone)

    whole = ids.lengths
    return (
        Ids(ids.data, ids.starts, head),
        rest(behind, whole),
        rest(behind, head),
        rest(last(_NO_DIGITS), whole),
    )


def _heads(ids: Ids) -> Iterator[Ids]:
    """Each id up to its last mark but one, but two, ..."""
    head = _parted(ids)[0]
    for _ in range(1, _CHUNK_MARKS):
        head = _parted(head)[0]
        yield head


def named(way: Way, pairs: Iterable[tuple[bytes, bytes]]) -> str:
    """What makes ids equal, in words, with the prefix or suffix of the ids that meet by it.

    Args:
        way: How they are written differently.
        pairs: Ids of the run, each with the id of the judgments that it means.

    Example:
        >>> way = way_of([b"x/1", b"y/2"], [b"1", b"2"])
        >>> named(way, [(b"x/1", b"1"), (b"y/2", b"2")])
        "without the prefix, such as 'x/'"
        >>> named(way, [(b"x/1", b"1"), (b"x/2", b"2")])
        "without the prefix 'x/'"
    """
    if way.both or way.cut is not None:
        return way.by
    parts = dict.fromkeys(_rest(*sorted(pair, key=len, reverse=True)) for pair in pairs)
    first = next(iter(parts), "")
    if not first:
        return way.by
    return f"{way.by} {first}" if len(parts) == 1 else f"{way.by}, such as {first}"


def _rest(longer: bytes, shorter: bytes) -> str:
    """What one id has before and behind the other, quoted."""
    before, found, behind = longer.rpartition(shorter)
    parts = [f"'{_text(part)}'" for part in (before, behind) if found and part]
    return " and ".join(parts)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _known(way: Way, theirs: Iterable[bytes]) -> dict[str, list[bytes]]:
    """The ids of the judgments by what makes them equal."""
    known: dict[str, list[bytes]] = {}
    for value in theirs:
        text = _text(value)
        for key in {way.turn(text)} if way.both else {text, way.turn(text)}:
            known.setdefault(key, []).append(value)
    return known


def _meant(way: Way, known: Mapping[str, list[bytes]], value: bytes) -> list[bytes]:
    """The ids of the judgments that an id can mean."""
    text = _text(value)
    turned = way.turn(text)
    if way.both:
        return known.get(turned, [])
    # Of one side only: both without a part would meet by chance.
    return [
        *(other for other in known.get(turned, ()) if _text(other) == turned),
        *(other for other in known.get(text, ()) if _text(other) != text),
    ]


def matches(
    way: Way, run_ids: Iterable[bytes], judged_ids: Iterable[bytes]
) -> Iterator[tuple[bytes, bytes]]:
    """The ids of a run that are no id of the judgments and mean one, each with the first it means.

    Args:
        way: How they are written differently.
        run_ids: Ids of the run.
        judged_ids: Those of the judgments.
    """
    judged = list(dict.fromkeys(judged_ids))
    known, there = _known(way, judged), set(judged)
    for value in run_ids:
        found = () if value in there else _meant(way, known, value)
        if found:
            yield value, found[0]


def spelled(way: Way, run_ids: Iterable[Ids], judged_ids: Collection[bytes]) -> Spelling:
    """Which id of a run means which of the judgments.

    Args:
        way: How they are written differently.
        run_ids: All ids of the run, in columns.
        judged_ids: All ids of the judgments.
    """
    judged = set(judged_ids)
    known = _known(way, judged)
    hashes = np.unique(Ids.of(sorted(judged)).hashes())
    keys = _keys(judged, way)
    there: set[bytes] = set()
    found: set[tuple[bytes, bytes]] = set()
    for ids in run_ids:
        there.update(ids.take(np.flatnonzero(np.isin(ids.hashes(), hashes))).tolist())
        for value in set(ids.take(_near(ids, keys, way)).tolist()) - judged:
            found.update((value, other) for other in _meant(way, known, value))
    # In order, so that the same is said each time.
    pairs = sorted(found)
    names: dict[bytes, bytes] = {}
    for ours, theirs in pairs:
        names.setdefault(ours, theirs)
    meant = set(names.values())
    one_to_one = len(pairs) == len(names) == len(meant) and meant.isdisjoint(there)
    return Spelling(named(way, names.items()), names, one_to_one)


def _replaced(ids: Ids, names: Mapping[bytes, bytes]) -> Ids:
    """A column with other names for some of its ids."""
    ours = np.unique(Ids.of(list(names)).hashes())
    rows = np.flatnonzero(np.isin(ids.hashes(), ours))
    old = ids.take(rows).tolist()
    both = Ids.joined([ids, Ids.of([names.get(value, value) for value in old] or [b"-"])])
    places = np.arange(len(ids))
    places[rows] = len(ids) + np.arange(len(rows))
    return both.take(places)


def renamed(table: PairTable, queries: Spelling | None, docs: Spelling | None) -> PairTable:
    """A table of a run with the ids of the judgments; of equal documents the best."""
    if docs is not None:
        names = docs.names
        table = replace(
            table,
            docs=_replaced(table.docs, names),
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
