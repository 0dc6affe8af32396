"""Match ids that are written differently in a run and in judgments."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import unquote

import numpy as np

from rankgauge.core.grouping import group_values
from rankgauge.core.ids import Ids
from rankgauge.core.pair_table import PairTable

_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_POINT = re.compile(r"^(-?\d+)\.0+$")
_PREFIX = re.compile(r"^.*[_:/#|\-\s](?=[^_:/#|\-\s]+$)")
# The part of an id up to its last separator.
_HEAD = re.compile(rb".*[_:/#|\-\s.]", re.DOTALL)
_SUFFIX = re.compile(r"(?<=[^_:/#|\-\s.])[_:/#|\-\s.][^_:/#|\-\s.]+$")
# Chunk numbers: 12_chunk_5, 12.md::5, 12#5, 12-5.
_CHUNK = re.compile(r"(?<=.)(?:\.[A-Za-z]\w{0,4})?(?:[_:/#|\-.]chunk[_:#|\-.]?|::|#|-)\d+$")
_PART = re.compile(r"(?<=.)(?:[_:/#|\-.]+(?:chunk|part)[_:#|\-.=]?|::|#|-)\d+$")
_NUMBER = re.compile(r"(?<=[^\d])\d+$")
# A word directly before a number: DOC486.
_WORD = re.compile(r"^[A-Za-z]+(?=[0-9]+$)")
_quoted = partial(json.dumps, ensure_ascii=False)
# Patterns that ids, one per line, must contain for a transformation to change any of them.
_BLANKS = re.compile(r"[^\S\n]|[\"']")
_POINTS = re.compile(r"(?m)^-?\d+\.0+$")
_MARKS = re.compile(r"[_:/#|\-.]|[^\S\n]")
_WORDS = re.compile(r"(?m)^[A-Za-z]+[0-9]+$")
_NUMBERS = re.compile(r"(?m)^[0-9]+$")


@dataclass(frozen=True)
class Way:
    """A transformation that removes a difference in spelling."""

    by: str  # description: `"without leading zeros"`
    turn: Callable[[str], str]  # transforms an id
    # Whether it can change any of these ids, one per line; checked first, since most ids are
    # spelled in one way only.
    possible: Callable[[str], object] = lambda _: True
    both: bool = True  # whether it is applied to ids of both sides, or only to one side
    # Whether even a few matches are conclusive: nobody uses `7` and `007` for different documents.
    sure: bool = False
    # Whether it removes a prefix or suffix shared by all ids of one side; `by` names it.
    shared: bool = False


@dataclass(frozen=True)
class Spelling:
    """Ids of a run and the matching ids of the judgments."""

    by: str
    names: Mapping[bytes, bytes]
    one_to_one: bool


def id_change(run_ids: Iterable[str], known: Iterable[str], item: str = "") -> tuple[str, int]:
    """Return how to change ids so that most match known ids, in Python, and the number that match.

    Args:
        run_ids: The ids to change.
        known: The ids to match.
        item: The id of a document in Python, to return arguments of an adapter; else an expression
            is returned.

    Example:
        >>> ids = ["/home/a/x.md#1", "/home/a/b/y.md#2"]
        >>> id_change(ids, ["x.md", "b/y.md"], "doc.id")
        ('base="/home/a", id=lambda doc: doc.id.rsplit("#", 1)[0]', 2)
    """
    ours, theirs = ({text.encode("utf-8", "surrogateescape") for text in ids} for ids in (run_ids, known))
    way = way_of(ours, theirs)
    found = {}
    if way is not None:
        known_as = _known(way, theirs)
        found = {value: _candidates(way, known_as, value) for value in sorted(ours - theirs)}
    # If files in several folders have the same name, an id without a folder is ambiguous.
    ambiguous = any(len(others) > 1 for others in found.values())
    pairs = [] if ambiguous else [(value, others[0]) for value, others in found.items() if others]
    met = len(ours & theirs)
    # Ids that match unchanged may no longer match.
    text = in_python(pairs, item) if len(pairs) > met else ""
    return text, len(pairs) if text else met


def in_python(pairs: Collection[tuple[bytes, bytes]], item: str = "") -> str:
    """Return how to turn the first id of each pair into the second, as for `id_change`; empty if it varies."""
    changes = [_difference(_text(ours), _text(theirs)) for ours, theirs in pairs]
    # Ids without a part are not changed by its removal.
    parts = [{_NUMBER.sub("\0", change[place]) for change in changes} - {""} for place in range(4)]
    if not all(map(any, changes)) or max(map(len, parts)) != 1 or (any(parts[:2]) and any(parts[2:])):
        return ""
    before, behind, start, end = (part.pop() if part else "" for part in parts)
    # An id without this part would lose a part of its name.
    cut = behind.removesuffix("\0")
    if cut and any(cut in _text(ours) for (ours, _), change in zip(pairs, changes, strict=True) if not change[1]):
        return ""
    based = bool(item) and len(before) > 1 and before.endswith("/")
    code = item or "doc_id"
    code += f".removeprefix({_quoted(before)})" if before and not based else ""
    cut = f".removesuffix({_quoted(cut)})" if cut == behind else f".rsplit({_quoted(cut)}, 1)[0]"
    code = (
        (f"{_quoted(start)} + " if start else "")
        + code
        + (cut if behind else "")
        + (f" + {_quoted(end)}" if end else "")
    )
    if not item:
        return code
    changed = "" if code == item else f"id=lambda {item.partition('.')[0]}: {code}"
    return ", ".join(filter(None, [f"base={_quoted(before[:-1])}" if based else "", changed]))


def _difference(ours: str, theirs: str) -> tuple[str, str, str, str]:
    """Return the text before and after `theirs` in `ours`, and the reverse; empty if neither contains the other."""
    before, found, behind = ours.rpartition(theirs)
    if found:
        return before, behind, "", ""
    before, found, behind = theirs.rpartition(ours)
    return ("", "", before, behind) if found else ("", "", "", "")


def _strip(text: str) -> str:
    return text.strip().strip("\"'").strip()


_zeros, _point = partial(_ZEROS.sub, ""), partial(_POINT.sub, r"\1")


_WAYS = (
    Way("without surrounding spaces or quotes", _strip, _BLANKS.search, sure=True),
    Way("in the same case", str.casefold, lambda ids: ids.casefold() != ids),
    Way("without leading zeros", _zeros, _ZEROS.search, sure=True),
    Way("without .0 at the end", _point, _POINTS.search, sure=True),
    Way("without %-escapes", unquote, re.compile("%").search, sure=True),
    Way(
        "without spaces, case, leading zeros, .0, and %-escapes",
        lambda text: _zeros(_point(_strip(unquote(text)))).casefold(),
        # Without escapes and spaces, a single one of the other differences is removed by its own transformation.
        lambda ids: (
            "%" in ids
            or _BLANKS.search(ids)
            or sum(map(bool, (ids.casefold() != ids, _ZEROS.search(ids), _POINTS.search(ids)))) > 1
        ),
    ),
    Way("without the prefix", partial(_PREFIX.sub, ""), _MARKS.search, both=False),
    Way(
        "without the word before the number",
        partial(_WORD.sub, ""),
        lambda ids: _WORDS.search(ids) and _NUMBERS.search(ids),
        both=False,
    ),
    Way("without the chunk number", partial(_CHUNK.sub, ""), _MARKS.search, both=False),
    Way("without the chunk number", partial(_PART.sub, ""), _MARKS.search, both=False),
    Way("without the suffix", partial(_SUFFIX.sub, ""), _MARKS.search, both=False),
    Way("without prefix and suffix", lambda text: _SUFFIX.sub("", _PREFIX.sub("", text)), _MARKS.search, both=False),
)


def way_of(
    run_ids: Collection[bytes], judged_ids: Collection[bytes], worth: Callable[[Way], int] | None = None
) -> Way | None:
    """Return the transformation under which most unmatched ids match; None if there is none."""
    ours, theirs = set(run_ids), set(judged_ids)
    met = len(ours & theirs)
    ours, theirs = ours - theirs, theirs - ours
    if not ours or not theirs:
        return None
    # Integers without leading zeros have only one spelling.
    if all(value.isdigit() and not value.startswith(b"0") for value in ours | theirs):
        return None
    best, most = None, 0
    texts = [*map(_text, ours | theirs)]
    every = "\n".join(texts)
    ways = [way for way in _WAYS if way.both]
    # A part of ids that only one side has makes them longer.
    if len({*map(len, texts)}) > 1:
        ways += [*_shared(ours, theirs), *_folders(ours, theirs), *(way for way in _WAYS if not way.both)]
    for way in ways:
        if not way.possible(every):
            continue
        if worth is not None:
            best, most = max((best, most), (way, worth(way)), key=lambda pair: pair[1])
            continue
        known = _known(way, theirs)
        # A result shared by many ids identifies none of them: 12#3 and 47#3 without a prefix.
        matched = len({other for value in ours for other in _candidates(way, known, value)})
        # Matches of fewer new ids than a fraction of those already matching count as chance.
        least = 1 if way.sure else max(1, met // 50)
        if matched >= least and matched > most:
            best, most = way, matched
    # Removing parts of ids can match by chance; it must explain nearly all ids.
    if worth is None and best is not None and not best.both and most <= met:
        return None
    return best


def _shared(ours: Collection[bytes], theirs: Collection[bytes]) -> Iterator[Way]:
    """Yield the removal of a prefix or suffix up to a separator that only one side's ids share."""
    if min(len(ours), len(theirs)) < 2:
        return
    heads = [_head(ids) for ids in (ours, theirs)]
    tails = [_head([value[::-1] for value in ids])[::-1] for ids in (ours, theirs)]
    for side, other in ((0, 1), (1, 0)):
        prefix = _text(heads[side].removesuffix(heads[other]))
        suffix = _text(tails[side].removeprefix(tails[other]))
        if prefix:
            yield _without(prefix, "")
        if suffix:
            yield _without("", suffix)
        if prefix and suffix:
            yield _without(prefix, suffix)


def _folders(ours: Collection[bytes], theirs: Collection[bytes]) -> Iterator[Way]:
    """Yield the removal of the most common folder of the run, with and without chunk numbers."""
    known = {_text(value) for value in theirs}
    for part in (None, _PART, _CHUNK):
        heads: Counter[str] = Counter()
        for text in map(_text, ours):
            tail = whole = part.sub("", text) if part else text
            while tail and tail not in known:
                tail = tail.partition("/")[2]
            heads[whole.removesuffix(tail)] += bool(tail)
        ((folder, found),) = heads.most_common(1)
        if folder and found:
            yield _without(folder, "", part)


def _head(ids: Collection[bytes]) -> bytes:
    """Return the part up to the last separator of the prefix that all ids share."""
    head = _HEAD.match(os.path.commonprefix([*ids]) or b"")  # noqa: RUF071 - not of paths
    return head[0] if head else b""


def _without(prefix: str, suffix: str, part: re.Pattern[str] | None = None) -> Way:
    parts = ["the chunk number"] if part else []
    parts += [f"the prefix '{prefix}'"] if prefix else []
    parts += [f"the suffix '{suffix}'"] if suffix else []

    def turn(text: str) -> str:
        text = text if part is None else part.sub("", text)
        rest = text.removeprefix(prefix).removesuffix(suffix)
        return rest if len(rest) == len(text) - len(prefix) - len(suffix) and rest else text

    return Way(f"without {' and '.join(parts)}", turn, both=False, shared=True)


def named(way: Way, pairs: Iterable[tuple[bytes, bytes]]) -> str:
    """Describe the transformation, with the prefix or suffix of the ids that match by it.

    Example:
        >>> way = way_of([b"x/1", b"y/2"], [b"1", b"2"])
        >>> named(way, [(b"x/1", b"1"), (b"y/2", b"2")])
        "without the prefix, such as 'x/'"
        >>> named(way, [(b"x/1", b"1"), (b"x/2", b"2")])
        "without the prefix 'x/'"
    """
    if way.both or way.shared:
        return way.by
    parts = dict.fromkeys(
        " and ".join(f"'{part}'" for part in _difference(*map(_text, pair)) if part) for pair in pairs
    )
    first = next(iter(parts), "")
    if not first:
        return way.by
    return f"{way.by} {first}" if len(parts) == 1 else f"{way.by}, such as {first}"


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _known(way: Way, theirs: Iterable[bytes]) -> dict[str, list[bytes]]:
    """Index the ids of the judgments by their transformed text."""
    texts = ((_text(value), value) for value in theirs)
    known = group_values(
        (key, value) for text, value in texts for key in ({way.turn(text)} if way.both else {text, way.turn(text)})
    )
    # An empty result does not identify an id.
    known.pop("", None)
    return known


def _candidates(way: Way, known: Mapping[str, list[bytes]], value: bytes) -> list[bytes]:
    """Return the ids of the judgments that an id can match."""
    text = _text(value)
    turned = way.turn(text)
    if way.both:
        return known.get(turned, [])
    # Only one of the two is transformed: with parts removed from both, they would match by chance.
    return [
        *(other for other in known.get(turned, ()) if _text(other) == turned),
        *(other for other in known.get(text, ()) if _text(other) != text),
    ]


def matches(way: Way, run_ids: Iterable[bytes], judged_ids: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield ids of a run that match judged ids only when transformed, with their first match."""
    judged = list(dict.fromkeys(judged_ids))
    known, there = _known(way, judged), set(judged)
    for value in run_ids:
        candidates = () if value in there else _candidates(way, known, value)
        if candidates:
            yield value, candidates[0]


def spelled(way: Way, run_ids: Iterable[Ids], judged_ids: Collection[bytes]) -> Spelling:
    """Map ids of a run to the ids of the judgments that they match."""
    judged = set(judged_ids)
    known = _known(way, judged)
    there: set[bytes] = set()
    candidates: set[tuple[bytes, bytes]] = set()
    for ids in run_ids:
        different = set(ids.tolist())
        there |= different & judged
        for value in different - judged:
            candidates.update((value, other) for other in _candidates(way, known, value))
    # Sorted for reproducible messages.
    pairs = sorted(candidates)
    names: dict[bytes, bytes] = {}
    for ours, theirs in pairs:
        names.setdefault(ours, theirs)
    meant = set(names.values())
    one_to_one = len(pairs) == len(names) == len(meant) and meant.isdisjoint(there)
    return Spelling(named(way, names.items()), names, one_to_one)


def renamed(table: PairTable, queries: Spelling | None, docs: Spelling | None) -> PairTable:
    """Rename the ids of a run to those of the judgments."""
    if docs is not None:
        ids, names = table.docs, docs.names
        renamed_hashes = np.unique(Ids.of(list(names)).hashes())
        rows = np.flatnonzero(np.isin(ids.hashes(), renamed_hashes))
        changed = [names.get(value, value) for value in ids.take(rows).tolist()]
        places = np.arange(len(ids))
        places[rows] = len(ids) + np.arange(len(rows))
        ids = Ids.joined([ids, Ids.of(changed or [b"-"])]).take(places)
        table = replace(table, docs=ids, unique=table.unique and docs.one_to_one)
    if queries is None:
        return table
    named = [queries.names.get(value, value) for value in table.queries.tolist()]
    if len(set(named)) == len(named):
        return replace(table, queries=Ids.of(named, "query id"))
    column = Ids.of(named, "query id").take(table.query_numbers())
    grouped = PairTable.of_rows(column, table.docs, table.values, lines=table.lines, ranks=table.ranks)
    return replace(grouped, source=table.source)
