"""Judgments of preference between documents, and runs joined with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from rankgauge.core.grouping import group_values
from rankgauge.core.ids import Ids, IntArray, show_id
from rankgauge.core.pair_table import FloatArray, distinct
from rankgauge.core.text import many
from rankgauge.data.join import Joined
from rankgauge.data.judged_run import BoolArray, Cached, JudgedRun
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.data.special_qrels import SpecialQrels, as_mapping
from rankgauge.errors import InputError
from rankgauge.formats.extra_columns import Wide, WideRows
from rankgauge.formats.lines import Source
from rankgauge.formats.registry import InFormat

_ONLY = b"0"
_MAPPING = '{"q1": {"group": {"d1": 2, "d2": 1}}}'


def _rows_of(data: Mapping[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield rows of query -> group -> subgroup -> document -> grade; subgroups are optional."""
    for query, groups in data.items():
        for group, own in as_mapping(groups, f"query {query!r}", "groups", _MAPPING).items():
            where = f"query {query!r}, group {group!r}"
            for name, value in as_mapping(own, where, "documents", _MAPPING).items():
                if isinstance(value, Mapping):
                    for doc, grade in value.items():
                        yield query, group, name, doc, grade
                else:
                    yield query, group, _ONLY.decode(), name, value


class _Group(NamedTuple):
    """The preferences of one group."""

    docs: IntArray  # (n,) its documents, numbered within the query
    grade: FloatArray  # (n,) their grades; the highest if there are several subgroups
    # (n, n) whether row document is preferred to column document; None if grades determine this.
    over: BoolArray | None

    def matrix(self) -> BoolArray:
        """Return whether each document is preferred to each other one, (n, n)."""
        return self.grade[:, None] > self.grade[None, :] if self.over is None else self.over


@dataclass(frozen=True, eq=False, repr=False)
class PreferenceQrels(SpecialQrels):
    """Preferences: query id to group to subgroup to document to grade. Immutable.

    In a *subgroup*, a document with a higher grade is preferred to each with a lower one; only the
    order of grades matters, except that 0 means not relevant. A *group* is the information need of
    one person at one time: the preferences of its subgroups are combined, and closed under
    transitivity (A over B in one and B over C in another imply A over C). Groups may contradict
    each other. Create it with :meth:`of`. Subgroups are optional in a mapping; columns and rows are
    ``query_id, group_id, subgroup_id, doc_id, relevance``. Ordinary judgments are preferences with
    one group per query.

    A document with a negative grade was not judged and is in no preference.

    Example:
        >>> judged = PreferenceQrels.of({"q1": {"ann": {"d1": 2, "d2": 1}, "bob": {"d2": 1}}})
        >>> judged["q1"]["ann"], judged.qrels["q1"]
        ({'0': {'d1': 2.0, 'd2': 1.0}}, {'d1': 2.0, 'd2': 1.0})
    """

    reads = "preferences"
    labeled = "preferences"
    note = "judged by preference; ordinary measures read the highest grade of each document"
    nesting = ("group", "subgroup", "document")
    judged_once = ("group", "subgroup")
    layout = Wide(
        words="preferences",
        fields=("query", "group", "subgroup", "document", "grade"),
        columns={
            "group": ("group_id", "group", "judgment_group", "jg", "assessor", "assessor_id"),
            "subgroup": ("subgroup_id", "subgroup", "sub_group", "judgment_sub_group", "jsg"),
        },
        example="q1 ann 1 d1 2",
        mapping=_MAPPING,
        rows_of=_rows_of,
    )
    # Kernels process each query group by group, without an array axis for groups.
    width = 1

    @classmethod
    def of(cls, source: Any) -> Self:
        """Convert preferences or ordinary judgments; like :meth:`SubtopicQrels.of`."""
        if isinstance(source, cls | Run):
            return super().of(source)
        if isinstance(source, Qrels) or hasattr(type(source), "reads"):
            return cls._of_ordinary(Qrels.of(source))
        return cls.read(source)

    @classmethod
    def read(cls, path: Any, form: str | None = None) -> Self:
        """Read preferences from a file, or ordinary judgments as preferences."""
        try:
            return super().read(path, form)
        except InputError as error:
            try:
                ordinary = Qrels.of(path if form is None else InFormat(path, form))
            except InputError:
                # The original error is more specific.
                raise error from None
            return cls._of_ordinary(ordinary)

    @classmethod
    def _of_ordinary(cls, qrels: Qrels) -> Self:
        table = qrels.table
        query = table.query_numbers()
        only = Ids.of([_ONLY]).take(np.zeros(len(table), dtype=np.int64))
        rows = WideRows(
            table.queries.take(query),
            table.docs,
            table.values,
            {"group": only, "subgroup": only},
            table.source or "judgments",
            table.lines,
        )
        note = (
            f"{rows.source}: ordinary judgments read as preferences: of two documents the one of the higher grade "
            "is preferred"
        )
        return cls._made(rows, query, table.queries, *table.notes, note)

    @classmethod
    def _made(cls, rows: WideRows, query: IntArray, queries: Ids, *notes: str) -> Self:
        judgments = super()._made(rows, query, queries, *notes)
        judgments.by_group  # noqa: B018 - made now: a contradiction is refused where it is read
        return judgments

    def __repr__(self) -> str:
        groups = sum(map(len, self.by_group))
        return f"<PreferenceQrels: {many(len(self), 'query')}, {many(groups, 'group')}, {many(len(self.row), 'grade')}>"

    @cached_property
    def by_group(self) -> tuple[tuple[_Group, ...], ...]:
        """Groups of each query, with preferences closed under transitivity.

        Raises:
            InputError: If a group contradicts itself.
        """
        group, subgroup = (labels.unique()[0] for labels in self.labels)
        firsts = self.qrels.table.offsets.tolist()
        groups = []
        for number, (start, stop) in enumerate(zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True)):
            judged = start + np.flatnonzero(self.grade[start:stop] >= 0)
            parts = np.split(judged, np.flatnonzero(np.diff(group[judged])) + 1)
            groups.append(tuple(self._group(part, subgroup[part], firsts[number]) for part in parts if len(part)))
        return tuple(groups)

    def _group(self, part: IntArray, subgroup: IntArray, first: int) -> _Group:
        """Build a group from its entries."""
        row, grade = self.row[part], self.grade[part]
        ends = np.append(np.flatnonzero(np.diff(subgroup)) + 1, len(part))
        if len(ends) == 1:
            return _Group(row - first, grade, None)
        docs = distinct(row)
        place = np.searchsorted(docs, row)
        over = np.zeros((len(docs), len(docs)), dtype=bool)
        highest, lowest = np.full(len(docs), -np.inf), np.full(len(docs), np.inf)
        np.maximum.at(highest, place, grade)
        np.minimum.at(lowest, place, grade)
        start = 0
        for end in ends.tolist():
            inside, own = place[start:end], grade[start:end]
            over[inside[:, None], inside[None, :]] |= own[:, None] > own[None, :]
            start = end
        for middle in range(len(docs)):
            over |= over[:, middle, None] & over[middle]
        names = self.qrels.table.docs.take(docs).shown()
        both = np.argwhere(over & over.T)
        if len(both):
            document, other = (names[place] for place in both[both[:, 0] < both[:, 1]][0].tolist())
            raise self._contradiction(part, f"'{document}' and '{other}' are each preferred to the other")
        unsure = np.flatnonzero((lowest == 0) & (highest > 0))
        if len(unsure):
            raise self._contradiction(part, f"'{names[int(unsure[0])]}' has both grade 0 and a higher one")
        return _Group(docs - first, highest, over)

    def _contradiction(self, part: IntArray, what: str) -> InputError:
        table, entry = self.qrels.table, int(part[0])
        query = int(np.searchsorted(self.offsets, entry, side="right")) - 1
        return InputError(
            f"group '{show_id(self.labels[0][entry])}' of query '{show_id(table.queries[query])}' "
            f"contradicts itself: {what}",
            where=table.source or "judgments",
            fix="put contradictory preferences into separate groups",
        )

    def _seen(self, block: JudgedRun, queries: IntArray) -> PreferenceRun:
        firsts = self.qrels.table.offsets
        ranked = []
        for number, query in enumerate(queries.tolist()):
            rows = block.grade[number][block.in_qrels[number]].astype(np.int64)
            # Documents that were not retrieved follow.
            place = np.full(int(firsts[query + 1] - firsts[query]), -1, dtype=np.int64)
            place[rows - firsts[query]] = np.arange(len(rows))
            missing = np.flatnonzero(place < 0)
            place[missing] = len(rows) + np.arange(len(missing))
            ranked.append(_Ranked(self.by_group[query], place, len(rows)))
        return PreferenceRun(tuple(ranked))

    def tied(self, joined: Joined) -> IntArray:
        """Return the queries with a tie between documents whose grades differ."""
        # Documents in no preference have no effect.
        return replace(joined, grade=self._kinds[joined.rows]).tied(2)

    @cached_property
    def _kinds(self) -> FloatArray:
        """A number for each row, equal if the grades in all subgroups are; -1 without grades."""
        group, subgroup = (labels.ascending() for labels in self.labels)
        place = (group * len(self.row) + subgroup).tolist()
        preferences = group_values(
            (row, (where, grade))
            for row, where, grade in zip(self.row.tolist(), place, self.grade.tolist(), strict=True)
            if grade >= 0
        )
        known: dict[tuple[tuple[int, float], ...], int] = {}
        kinds = np.full(len(self.qrels.table), -1.0)
        for row, grades in preferences.items():
            kinds[row] = known.setdefault(tuple(grades), len(known))
        return kinds


class _Ranked(NamedTuple):
    """The groups of one query, and the positions of their documents in a run."""

    groups: tuple[_Group, ...]  # groups of the query
    # (N,) position of each document, from 0; documents that were not retrieved follow all others,
    # by ascending id.
    place: IntArray
    retrieved: int  # number of documents retrieved

    def ordered(self, group: _Group) -> tuple[_Group, int]:
        """Return a group with its documents in ranked order, and the number retrieved."""
        place = self.place[group.docs]
        order = np.argsort(place)
        over = None if group.over is None else group.over[order[:, None], order[None, :]]
        there = int(np.count_nonzero(place < self.retrieved))
        return _Group(group.docs[order], group.grade[order], over), there


@dataclass(frozen=True, eq=False)
class PreferenceRun(Cached):
    """A run joined with preferences: the input of preference measures.

    A run *satisfies* a preference if the preferred document is ranked above the other one, or if
    only the preferred one was retrieved.

    Attributes:
        ranked: (Q,) the groups of each query, with the ranks of their documents.
    """

    ranked: tuple[_Ranked, ...]

    def __len__(self) -> int:
        return len(self.ranked)

    def groups(self) -> IntArray:
        """Return the number of groups of each query, (Q,)."""
        return np.array([len(ranking.groups) for ranking in self.ranked], dtype=np.int64)

    def counts(self) -> IntArray:
        """Return counts of preferences in each group, (Q, G, 5); 0 for missing groups.

        The counts are: satisfied with both documents retrieved, satisfied with one retrieved, all
        with both retrieved, all with one, and all with none.
        """
        return self.once("counts", lambda: self._by_group(_counted, 5))

    def balanced_counts(self) -> IntArray:
        """Return counts among equal numbers of relevant and nonrelevant documents, (Q, G, 4).

        The counts are: satisfied preferences and all preferences; then both again for preferences
        with both documents retrieved.
        """
        return self.once("balanced_counts", lambda: self._by_group(_balanced_counts, 4))

    def pairs(self) -> FloatArray:
        """Return the counts of document pairs, (Q, 5): each pair counts once over all groups.

        If groups contradict each other, a pair is satisfied in part.
        """
        return self.once("pairs", lambda: np.array([_paired(ranking) for ranking in self.ranked]))

    def _by_group(self, count: Callable[[_Group, int], Iterable[int]], width: int) -> IntArray:
        most = max(1, int(self.groups().max(initial=1)))
        counts = np.zeros((len(self), most, width), dtype=np.int64)
        for number, ranking in enumerate(self.ranked):
            for place, group in enumerate(ranking.groups):
                counts[number, place] = tuple(count(*ranking.ordered(group)))
        return counts


def _counted(group: _Group, there: int) -> tuple[int, int, int, int, int]:
    """Return `PreferenceRun.counts` of a group whose first `there` documents were retrieved."""
    over = group.matrix()
    both, one = over[:there, :there], over[:there, there:]
    kept = int(np.count_nonzero(np.triu(both))), int(np.count_nonzero(one))
    lost = int(np.count_nonzero(over[there:, :there]))
    none = int(np.count_nonzero(over[there:, there:]))
    return *kept, int(np.count_nonzero(both)), kept[1] + lost, none


def _balanced_counts(group: _Group, there: int) -> tuple[int, int, int, int]:
    """Return `PreferenceRun.balanced_counts` of a group, counted as trec_eval does."""
    kept_both, kept_one, both, one, none = _counted(group, there)
    relevant = group.grade > 0
    good, rest = int(relevant.sum()), int((~relevant).sum())
    good_there, rest_there = int(relevant[:there].sum()), int((~relevant[:there]).sum())
    if good >= rest:
        kept = kept_both + kept_one + good_there * (good - rest)
        whole = both + one + none + good * (good - rest)
    else:
        few = _counted(*_with(group, there, good))
        kept, whole = few[0] + few[1], sum(few[2:])
        if group.over is None:
            # Remaining nonrelevant documents count as if they were preferred to these.
            kept += sum(min(above, rest_there) for above in range(good))
            whole += rest * good
    if good_there >= rest_there:
        kept_both += good_there * (good_there - rest_there)
        return kept, whole, kept_both, both + good * (good_there - rest_there)
    few = _counted(*_with(group, there, good_there if group.over is None else good))
    kept_both, both = few[0], few[2]
    if group.over is None:
        kept_both += good_there * (good_there - 1) // 2
        both += rest_there * good_there
    return kept, whole, kept_both, both


def _with(group: _Group, there: int, most: int) -> tuple[_Group, int]:
    """Return a group with only its first `most` nonrelevant documents."""
    relevant = group.grade > 0
    chosen = np.flatnonzero(relevant | (np.cumsum(~relevant) <= most))
    over = None if group.over is None else group.over[chosen[:, None], chosen[None, :]]
    return _Group(group.docs[chosen], group.grade[chosen], over), int((chosen < there).sum())


def _paired(ranked: _Ranked) -> tuple[float, ...]:
    """Return `PreferenceRun.pairs` of a query."""
    if len(ranked.groups) <= 1:
        counts = [_counted(*ranked.ordered(group)) for group in ranked.groups] or [(0,) * 5]
        return tuple(map(float, counts[0]))
    there, size = ranked.retrieved, len(ranked.place)
    over = np.zeros((size, size), dtype=np.int64)
    for group in ranked.groups:
        place = ranked.place[group.docs]
        over[place[:, None], place[None, :]] += group.matrix()
    kept, lost = np.triu(over), np.tril(over).T
    judged = np.triu(kept + lost) > 0
    both, one = judged[:there, :there], judged[:there, there:]
    return (
        _shares(kept[:there, :there][both], lost[:there, :there][both]),
        _shares(kept[:there, there:][one], lost[:there, there:][one]),
        float(np.count_nonzero(both)),
        float(np.count_nonzero(one)),
        float(np.count_nonzero(judged[there:, there:])),
    )


def _shares(kept: IntArray, lost: IntArray) -> float:
    """Return the sum of kept / (kept + lost), exactly rounded and thus independent of order."""
    return math.fsum((kept / (kept + lost)).tolist())


def read_preference_qrels(path: Source, *, format: str | None = None) -> PreferenceQrels:
    r"""Read preferences from a file.

    Args:
        path: A file in the format ``prefs`` of trec_eval (``query group subgroup document grade``),
            CSV, TSV, or JSON lines with a header or keys (``query_id, group_id, subgroup_id,
            doc_id, relevance``), or JSON (query to group to document to grade), also compressed;
            ``-`` for standard input; or ordinary judgments, whose grades determine the preferences.
        format: ``trec``, ``csv``, ``tsv``, ``json``, or ``jsonl``, if name and first line are
            ambiguous.

    Raises:
        FormatError: With path and line, if a line is invalid.
        InputError: If the file does not exist, or a group contradicts itself.
    """
    return PreferenceQrels.read(path, format)
