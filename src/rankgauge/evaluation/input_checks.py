"""Cheap checks of judgments and runs: mismatched ids, distances as scores, empty rankings.

Every evaluation runs these checks. `rankgauge check` uses the same codes, examines the input in
more detail, and measures the effect of each problem on the values.
"""

from __future__ import annotations

import math
import os
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rankgauge.core.findings import INPUT_KINDS, Finding, Severity
from rankgauge.core.grouping import group_values
from rankgauge.core.ids import Ids, IntArray, near_match, renumbered, show_id
from rankgauge.core.text import inflect, many, some
from rankgauge.data.joined_blocks import Ends, InputSummary
from rankgauge.data.qrels import Qrels
from rankgauge.errors import MismatchError
from rankgauge.formats.columns import JUDGMENTS, RUN

if TYPE_CHECKING:
    # Only needed if ids do not match.
    from rankgauge.data.id_spelling import Way

# Query id and document id.
Pair: TypeAlias = tuple[bytes, bytes]

# Number of judged ids that are compared with the ids of a run without judged documents.
SAMPLE = 10_000
# Number of top ranks in which judged documents are counted.
_TOP = 10
# A run of a real retriever has more than this share of the judged documents that could be in the
# top ten. Ids are compared only below this share, which spares other evaluations the cost.
_FEW_MET = 0.2
# With a smaller share of the judged documents at any rank, ids may be written differently. Ids that
# are off by one match other documents by chance: a sample decides whether to check all.
_FEW_MATCHED = 0.4
# Ratio of the density of judged documents in the top ten to the density in whole rankings: above
# 1.3 if mismatched ids match similar documents by chance, below 0.7 if the order is reversed.
_DENSER, _THINNER = 1.3, 0.7
_GLANCE = 5
_IDS = 5_000
# Matches must exceed chance by three standard deviations and by 50%.
_DEVIATIONS, _BETTER = 3, 1.5
# With fewer queries, having no judged document in common with the judgments is plausible.
_QUERIES = 10
_LEAST_QUERIES = 5
# Above one half, empty rankings dominate the mean.
_EMPTY, _MOSTLY_EMPTY = 0.1, 0.5
_MISSPELLED = 0.1
# A different spelling must match this many documents, and this share of all judged documents that are
# matched. Below the second share, it is a warning: it does not explain the numbers.
_FEW_PAIRS, _OF_ALL, _EXPLAINS = 5, 0.05, 0.25
# A share of matches that cannot be due to chance.
_MOST_MET = 0.5
# With a larger share of judged documents in the top ten, few ids can be written differently.
_NEARLY_ALL = 0.9
_ODD = 0.05
_NAMES = bytes(value for value in range(128) if chr(value).isalnum())
# The id without digits; without letters and digits; whether it starts with 0.
_SHAPES: tuple[Callable[[bytes], object], ...] = (
    lambda doc: doc.translate(None, b"0123456789"),
    lambda doc: doc.translate(None, _NAMES),
    lambda doc: doc.startswith(b"0"),
)
# Relevant documents at the end of rankings: at least 3 queries, 4 times as many as queries with
# relevant documents at the top, twice the reciprocal rank (as in `rankgauge check`), and a
# probability below 1 in 10,000. Rankings must have at least ten documents.
_LONG = 10
# Share of rankings whose scores must increase in input order to be considered distances.
_MOST = 0.9
_UNNAMED = {"", JUDGMENTS.name, RUN.name}  # sources that are not paths
_REVERSED, _TIMES, _GAIN, _UNLIKELY = 3, 4, 2, 3.7


@dataclass(eq=False)
class InputChecks:
    """Cheap checks of one evaluation.

    Counts that are computed anyway decide whether anything is examined in more detail.
    """

    qrels: Qrels
    summary: InputSummary

    def __post_init__(self) -> None:
        self.judged = _JudgedDocuments(self.qrels)
        self.any_matches = np.count_nonzero(self.summary.ends[:, 1]) > 0
        # Checked now: the file may be gone when the findings are read.
        self._paths = ["QRELS", "RUN"]
        for place, source in enumerate((self.qrels.table.source, self.summary.source)):
            named = source not in _UNNAMED and "\0" not in source
            if named and os.path.isfile(source):  # noqa: PTH113 - no path of ours
                self._paths[place] = shlex.quote(source)

    @cached_property
    def pairs(self) -> list[Pair]:
        """Pairs of a judged query of the run and one of its first documents."""
        return self._first(len(self.summary.rankings))

    def _first(self, queries: int) -> list[Pair]:
        first = islice(self.summary.rankings.items(), queries)
        named = ((self.qrels.table.queries[number], docs) for number, docs in first)
        return [(query, doc if isinstance(doc, bytes) else doc.encode()) for query, docs in named for doc in docs]

    def refuse_near_misses(self) -> None:
        """Raise an error if no document is judged and ids differ only in zeros, spaces, or case."""
        if self.any_matches or not self.pairs:
            return
        near = near_match((doc for _, doc in self.pairs), self._judged_sample().tolist())
        if near is not None:
            ours, theirs = map(show_id, near)
            raise MismatchError(
                f"no retrieved document is judged: the run has '{ours}', the judgments have "
                f"'{theirs}', which differ only in leading zeros, spaces, or case",
                fix=f"use the same document ids in both: {self._copy_command()}",
            )

    def no_matches(self) -> tuple[Finding, ...]:
        """Return a warning if no document is judged and no problem was detected."""
        if self.any_matches or not self.pairs:
            return ()
        message = (
            "no retrieved document is judged for its query: the run has "
            f"{some(show_id(doc) for _, doc in self.pairs)}, the judgments have "
            f"{some(self._judged_sample().shown())}; check that both use the same document ids"
        )
        return (Finding("", "warning", message),)

    def _judged_sample(self) -> Ids:
        return self.qrels.table.docs.take(slice(SAMPLE))

    def mismatches(self, judged: float, queries: int, missing: IntArray) -> Iterator[Finding]:
        """Yield mismatched ids and scores that look like distances, the most severe first."""
        yield from self._query_ids(queries, missing)
        documents, matched = self.summary.ends[:, :2].sum(axis=0).tolist()
        if not documents:
            return
        depth = documents / len(self.qrels)
        pool = self.qrels.judgments / len(self.qrels)
        density = matched / documents
        reachable = min(1, pool / _TOP)
        odd = judged < _NEARLY_ALL * reachable and self._looks_mixed()
        if judged < _FEW_MET * reachable:
            few = matched < _FEW_MATCHED * min(pool, depth) * len(self.qrels)
            if few or odd or (judged > _DENSER * density and self._looks_shifted()):
                yield from self._document_ids(spelled=few or odd)
        elif odd:
            spelled = self._different_spelling()
            if spelled is not None:
                yield spelled
        finding = self._reversed() if judged < _THINNER * density or depth <= 2 * _TOP else None
        finding = finding or self._rising()
        if finding is not None:
            yield finding

    def _looks_shifted(self) -> bool:
        """Return whether ids one higher or lower match more judged documents in a small sample."""
        first = {query: number for number, (query, _) in reversed([*enumerate(self.pairs)])}
        pairs = [
            pair
            for start in first.values()
            for pair in self.pairs[start : start + _GLANCE]
            if pair[0] == self.pairs[start][0]
        ]
        now = sum(map(self.judged.has, pairs))
        return any(shifted > now + 1 for shifted, _, _ in shifted_matches(pairs, self.judged.has))

    def _looks_mixed(self) -> bool:
        """Return whether many ids of a sample contain marks, letters, or zeros that others lack."""
        pairs = self._first(_GLANCE)
        ours = [doc for _, doc in pairs]
        theirs = [doc for query in {query for query, _ in pairs} for doc in self.judged[query]]
        for shape in _SHAPES:
            run, known = Counter(map(shape, ours)), Counter(map(shape, theirs))
            for counts, other, size in ((run, known, len(ours)), (known, run, len(theirs))):
                most = max((n for own, n in counts.items() if own not in other), default=0)
                if most >= _ODD * size:
                    return True
        return False

    def empty_rankings(self, queries: int, without: int, missing: int) -> tuple[Finding, ...]:
        """Return a finding about evaluated queries without results."""
        empty = without - missing
        # Queries missing from a run are counted in a separate note.
        explains = without > _MOSTLY_EMPTY * queries and queries >= _LEAST_QUERIES
        if not explains and empty <= _EMPTY * queries:
            return ()
        parts = [f"{missing} not in the run"] if missing else []
        parts += [f"{empty} with an empty ranking"] if empty else []
        fix = "check why nothing was retrieved"
        if missing:
            fix = "run the missing queries, or exclude them (queries=intersection)"
        have = inflect(without, "has", "have")
        message = f"{without} of {many(queries, 'query')} {have} no results ({', '.join(parts)})"
        return (_finding("P104", message, fix, "error" if explains else "warning"),)

    def _query_ids(self, queries: int, missing: IntArray) -> Iterator[Finding]:
        least = _MISSPELLED * queries
        if len(missing) <= least or self.summary.without_judgments <= least:
            return
        from rankgauge.data.id_spelling import matches, named, way_of

        theirs = self.qrels.table.queries.take(missing[:_IDS]).tolist()
        ours = self.summary.unknown
        way = way_of(ours, theirs)
        if way is None:
            return
        met = list(matches(way, ours, theirs))
        if len(met) > least:
            yield _finding(
                "P103",
                f"{len(met)} of {many(queries, 'query id')} "
                f"{inflect(len(met), 'matches', 'match')} only {named(way, met)}: "
                f"{_example(*met[0])}",
                self._copy_command(),
            )

    def _document_ids(self, *, spelled: bool) -> Iterator[Finding]:
        if not self.pairs:
            return
        now = sum(map(self.judged.has, self.pairs))
        finding = self._different_spelling() if spelled else None
        finding = finding or self._shifted(now)
        if finding is not None:
            yield finding
        elif not self.any_matches and len(self.summary.numbers) >= _QUERIES:
            ours, docs = [doc for _, doc in self.pairs], self.qrels.table.docs
            # Documents judged for other queries show that the ids are correct.
            if not len(self.qrels.likely_judged(Ids.of(ours, "document id"))):
                yield _finding(
                    "P102",
                    f"no retrieved document is judged: the run has {some(map(show_id, ours))}, the "
                    f"judgments have {some(docs.take(slice(3)).shown())}",
                    "check that both use the same document ids",
                )

    def _different_spelling(self) -> Finding | None:
        """Return a finding if ids differ only by a prefix, a suffix, their case, and so on."""
        spelling = document_way(self.pairs, self.qrels)
        if spelling is None:
            return None
        from rankgauge.data.id_spelling import in_python, named

        way, met = spelling
        now = sum(map(self.judged.has, self.pairs))
        code = in_python(met) if self._paths[1] == "RUN" else ""
        fix = f"use {code} as the document id" if code else self._copy_command()
        if len({doc for _, doc in met}) < len({doc for doc, _ in met}):
            fix = "write ids of documents instead of chunks, each at its best rank" + (f": {code}" if code else "")
        only = "" if now * _BETTER > len(met) else "only "
        return _finding(
            "P103",
            f"document ids match the judgments {only}{named(way, met)}: {_example(*met[0])}; "
            f"{self._evidence(now, now + len(met))}",
            fix,
            "error" if len(met) >= _EXPLAINS * (now + len(met)) else "warning",
        )

    def _shifted(self, now: int) -> Finding | None:
        """Return a finding if one side numbers ids from 0 and the other from 1."""
        for met, unit, word in shifted_matches(self.pairs, self.judged.has):
            if met >= _BETTER * now and met - now > _DEVIATIONS * math.sqrt(met + now):
                return _finding(
                    "P109",
                    f"more {unit} ids match the judgments if those of the run are one {word}: "
                    f"{self._evidence(now, met)}",
                    f"number both from 0 or both from 1; {self._command()} shows the effect",
                )
        return None

    def _evidence(self, now: int, then: int) -> str:
        return f"{then} instead of {now} of {len(self.pairs)} top-ranked documents would be judged"

    def _reversed(self) -> Finding | None:
        """Return a finding if relevant documents are at the end of rankings, as with distances."""
        ends = self.summary.ends[self.summary.ends[:, 0] >= _LONG]
        relevant, others = ends[:, 2].sum(), ends[:, 4].sum()
        first = ends[ends[:, 2] > 0]
        better, worse = _nearer(first)
        top, end = (math.fsum((1 / ranks).tolist()) for ranks in (first[:, 6], first[:, 7]))
        if better < _REVERSED or better < _TIMES * worse or end < _GAIN * top:
            return None
        depth, depth_of_others = (math.fsum(((ends[:, n + 1] - ends[:, n] / 2) / ends[:, 0]).tolist()) for n in (2, 4))
        # In a random order, the mean position is the middle; positions have a uniform variance.
        if depth - relevant / 2 <= _UNLIKELY * math.sqrt(relevant / 12):
            return None
        # If all judged documents are at the end, the cause is unjudged documents, not the order.
        if others and depth / relevant <= depth_of_others / others:
            return None
        return self._distances(_nearer_to_the_end(better, worse))

    def _rising(self) -> Finding | None:
        """Return a finding if scores increase in input order, unless relevant documents disagree.

        If rows are sorted by a score that is not a distance, most relevant documents are at the
        end.
        """
        tally = self.summary.tally
        if not tally.rising or tally.rising < _MOST * tally.varied:
            return None
        ends = self.summary.ends
        better, worse = _nearer(ends[(ends[:, 0] > 1) & (ends[:, 2] > 0)])
        paired = not tally.unpaired
        sure = tally.varied >= _LEAST_QUERIES and (better > worse or (paired and better == worse))
        if not sure and not paired:
            return None
        text = f"they increase in input order in {tally.rising} of {many(tally.varied, 'ranking')}"
        if better:
            text += f", and {_nearer_to_the_end(better, worse)}"
        return self._distances(text, "error" if sure else "warning")

    def _distances(self, evidence: str, severity: Severity = "error") -> Finding:
        return _finding(
            "R104",
            f"the scores look like distances (lower is better): {evidence}",
            "negate the scores if they are distances: "
            f"{self._command('--fix fixed --fix-also R104')} writes such a copy",
            severity,
        )

    def _copy_command(self) -> str:
        """Return the command that writes a copy with matching ids."""
        return f"{self._command('--fix fixed')} writes a copy with matching ids"

    def _command(self, options: str = "") -> str:
        """Return the command for a detailed check, with the paths of the files."""
        return " ".join(filter(None, ["rankgauge check", *self._paths, options]))


def collection_findings(docs: Iterable[str], known: Collection[str]) -> tuple[Finding, ...]:
    """Return findings about documents of a run that are not in a collection.

    A collection may contain only some of the documents; containing none of them is an error.
    """
    from rankgauge.data.id_spelling import matches, named, way_of

    ours = list(dict.fromkeys(docs))[:_IDS]
    if not ours or sum(doc in known for doc in ours) >= _FEW_MET * len(ours):
        return ()
    coded = [doc.encode("utf-8", "surrogateescape") for doc in ours]
    theirs = [doc.encode("utf-8", "surrogateescape") for doc in known]
    way = way_of(coded, theirs)
    met = [] if way is None else list(matches(way, coded, theirs))
    if way is None or len(met) < 2:
        if any(doc in known for doc in ours):
            return ()
        return (
            _finding(
                "T104",
                f"none of the {len(ours)} documents of the run is in the collection, such as "
                f"{ours[0]!r}: the texts are not used",
                "pass the collection that was searched",
            ),
        )
    return (
        _finding(
            "T104",
            f"document ids match the collection only {named(way, met)}: {_example(*met[0], 'collection')}",
            "write the ids the same way in run, judgments, and collection",
        ),
    )


def _nearer(ends: Ends) -> tuple[int, int]:
    """Count queries whose first relevant document is nearer to the end, and nearer to the top."""
    top, end = ends[:, 6], ends[:, 7]
    return int(np.count_nonzero(end < top)), int(np.count_nonzero(top < end))


def _nearer_to_the_end(better: int, worse: int) -> str:
    return (
        f"the first relevant document is nearer to the end of the ranking for {better} of "
        f"{many(better + worse, 'query')}"
    )


class _JudgedDocuments(dict[bytes, Collection[bytes]]):
    """Judged documents of single queries, looked up when they are first read."""

    def __init__(self, qrels: Qrels) -> None:
        self.qrels = qrels

    def __missing__(self, query: bytes) -> Collection[bytes]:
        docs: Sequence[bytes] = ()
        number = self.qrels.number_of(query)
        if number is not None:
            start, stop = self.qrels.table.offsets[number : number + 2].tolist()
            docs = self.qrels.table.docs.take(slice(start, stop)).tolist()
        self[query] = known = dict.fromkeys(docs)
        return known

    def has(self, pair: Pair) -> bool:
        query, doc = pair
        return doc in self[query]


def _pairs_that_match(way: Way, retrieved: Mapping[bytes, Sequence[bytes]], judged: _JudgedDocuments) -> Iterator[Pair]:
    """Yield pairs of a retrieved and a judged document whose ids match in another spelling.

    A judged document that is also retrieved under its own id is not matched: the other is a copy.
    """
    from rankgauge.data.id_spelling import matches

    for query, docs in retrieved.items():
        known = judged[query]
        own = {doc for doc in docs if doc in known}
        others = [doc for doc in docs if doc not in own]
        if others:
            yield from matches(way, others, [doc for doc in known if doc not in own])


def document_way(pairs: Sequence[Pair], qrels: Qrels) -> tuple[Way, list[Pair]] | None:
    """Return the difference in spelling of document ids and the matching pairs, or None.

    The spelling that matches most judged documents is used if it matches clearly more than for
    shuffled queries. Pairs whose document is judged as written do not count.
    """
    from rankgauge.data.id_spelling import way_of

    judged = _JudgedDocuments(qrels)
    by_query = group_values(pairs)
    theirs = set(islice((doc for query in by_query for doc in judged[query]), _IDS))
    way = way_of(
        {doc for _, doc in pairs}, theirs, lambda way: sum(1 for _ in _pairs_that_match(way, by_query, judged))
    )
    if way is None:
        return None
    met = list(_pairs_that_match(way, by_query, judged))
    # Documents that are judged for another query, as written in the run, do not count.
    as_written = set(qrels.likely_judged(Ids.of([doc for doc, _ in met], "document id")).tolist())
    met = [pair for row, pair in enumerate(met) if row not in as_written]
    now = sum(map(judged.has, pairs))
    possible = sum(min(len(docs), len(judged[query])) for query, docs in by_query.items())
    if len(met) < max(min(_FEW_PAIRS, 2 + now), _OF_ALL * (now + len(met))):
        return None
    if len(met) >= _MOST_MET * (possible - now):
        return way, met
    # The rankings, each with the judgments of another query.
    queries = [*by_query]
    shuffled = dict(zip([*queries[1:], queries[0]], by_query.values(), strict=True))
    chance = sum(1 for _ in _pairs_that_match(way, shuffled, judged))
    enough = len(met) >= _BETTER * chance and len(met) - chance > _DEVIATIONS * math.sqrt(chance)
    return (way, met) if enough else None


def _example(ours: bytes, theirs: bytes, other: str = "judgments") -> str:
    have = "has" if other == "collection" else "have"
    return f"the run has '{show_id(ours)}', the {other} {have} '{show_id(theirs)}'"


def shifted_matches(pairs: Sequence[Pair], has: Callable[[Pair], bool]) -> Iterator[tuple[int, str, str]]:
    """Yield the number of judged pairs if document ids, then query ids, are one higher or lower.

    The number is followed by the unit, ``document`` or ``query``, and ``higher`` or ``lower``. Ids
    that are not all whole numbers are left out.
    """
    for place, unit in ((1, "document"), (0, "query")):
        if not all(pair[place].isdigit() for pair in pairs):
            continue
        for step, word in ((1, "higher"), (-1, "lower")):
            moved = {value: renumbered(value, step) for value in {pair[place] for pair in pairs}}
            shifted = ((query, moved[doc]) if place else (moved[query], doc) for query, doc in pairs)
            yield sum(map(has, shifted)), unit, word


def _finding(code: str, message: str, fix: str, severity: Severity = "error") -> Finding:
    return Finding(code, severity, message, INPUT_KINDS[code].effect, fix)
