"""Values gathered from a run, block of queries by block, and what there is to say about them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankgauge.core.findings import Finding, explaining
from rankgauge.core.ids import Ids, IntArray, id_bytes, near_match, show_id
from rankgauge.core.pair_table import PairTable, distinct, offsets_of
from rankgauge.core.policies import BY_GRADE, Policies
from rankgauge.core.text import SHOWN, many, some
from rankgauge.data.dict_runs import Mapped, mapped
from rankgauge.data.join import Joined, join
from rankgauge.data.judged_run import BoolArray, JudgedRun, Values
from rankgauge.data.model import Qrels, Run
from rankgauge.errors import InputError, MismatchError
from rankgauge.evaluation.input_checks import DEPTH, SAMPLED, InputChecks, Pair, Sample
from rankgauge.evaluation.notes import (
    Seen,
    draws_note,
    finding_notes,
    first_ranks_note,
    queries_note,
    ties_note,
    undefined_notes,
)
from rankgauge.evaluation.plan import JUDGED_AT, Plan
from rankgauge.measures.counts import judged_shares

if TYPE_CHECKING:
    # Loaded where a measure reads more than grades.
    from rankgauge.data.special_qrels import SpecialQrels

__all__ = ["Gathered", "Gathering", "Truth"]

_SAMPLE = 10_000
_FEW = 300


@dataclass(frozen=True)
class Gathered:
    """What came of a run.

    Attributes:
        run_name: What the run is called.
        settings: What made it.
        query_ids: (Q,) the queries evaluated, as text.
        ids: The same, as they are kept.
        values: (Q, M) the value of each measure, NaN where undefined.
        undefined: (Q, M) where it is.
        counts: What happened to how many queries and documents.
        coverage: The mean share of judged documents at each cut-off, and at 10.
        notes: The same in sentences.
        findings: What is wrong with the input.
    """

    run_name: str
    settings: Mapping[str, Any]
    query_ids: tuple[str, ...]
    ids: Ids
    values: Values
    undefined: BoolArray
    counts: Mapping[str, int]
    coverage: Mapping[int, float]
    notes: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class _Block:
    """One block of a run, joined.

    Attributes:
        joined: With the judgments that say what is relevant.
        graded: With those that have the grades, which are mostly the same.
        documents: How many documents it has.
        first: Its first queries, as they are shown.
        unknown: Its queries without judgments.
        sample: Makes pairs of its judged queries and their first documents.
        run: It itself, if there is a table of it.
        removed: How many documents were left out since they stood there before.
        constant: Whether every ranking has one score only.
        rising: Rankings whose scores rise in the order given, and all that could.
    """

    joined: Joined
    graded: Joined
    documents: int
    first: Sequence[str]
    unknown: Iterable[bytes]
    sample: Sample
    run: Run | None = None
    removed: int = 0
    constant: bool = False
    rising: tuple[int, int] = (0, 0)


class Truth(NamedTuple):
    """The judgments of an evaluation.

    Attributes:
        qrels: Those that say what is relevant.
        graded: Those that have the grades, which are mostly the same.
        detail: Those that say more, if a measure reads it; then `qrels` are its own.
    """

    qrels: Qrels
    graded: Qrels
    detail: SpecialQrels | None = None


class Gathering:
    """Values gathered block by block; the only mutable thing here, and it never leaves."""

    def __init__(self, truth: Truth, plan: Plan, policies: Policies) -> None:
        qrels, graded, self.detail = truth
        if not len(qrels):
            raise InputError(
                "the judgments hold no query", where="judgments", fix="give at least one"
            )
        self.qrels, self.graded, self.policies = qrels, graded, policies
        self.plan = plan
        # As they are calculated; they are named as they were asked for.
        self.condensed = policies.unjudged == "removed"
        self.measures = plan.condensed if self.condensed else plan.measures
        # Column after column: they are written and averaged one by one.
        self.values = np.full((len(qrels), len(plan.measures)), np.nan, order="F")
        self.judged = np.full((len(qrels), len(plan.depths)), np.nan, order="F")
        self.averaged = policies.ties == "mean"
        if policies.ties in BY_GRADE:
            plan.refuse_special(policies.ties)
        if self.averaged:
            plan.refuse_open(policies.draws)
        # The errors of what is estimated.
        drawn = plan.open if self.averaged else ()
        self.errors = {column: np.zeros(len(qrels)) for column in drawn}
        # A mean of ranks over all orders is no rank that a document stands at.
        firsts = () if self.averaged else plan.first_ranks
        self.first_ranks = [(first, np.full(len(qrels), np.nan)) for first in firsts]
        self.wanted = np.ones(len(qrels), dtype=bool)
        self.seen = np.zeros(len(qrels), dtype=bool)
        self.name, self.settings = "", dict[str, Any]()
        self.tied = self.removed = self.documents = self.depth = 0
        self.beyond = [0] * len(plan.recalls)
        self.constant = True
        self.unknown: set[bytes] = set()
        self.run_ids: list[str] = []
        self.checks = InputChecks(qrels)
        self.notes = [*qrels.table.notes]

    def select(self, queries: Iterable[Any]) -> None:
        """Keep only the given queries."""
        self.wanted[:] = False
        for query in queries:
            number = self.qrels.query_index.get(id_bytes(query, "query id"))
            if number is None:
                raise MismatchError(
                    f"query '{show_id(id_bytes(query, 'query id'))}' is not judged",
                    where="queries",
                    fix=f"judged are, among others: {some(self.qrels.query_ids)}",
                )
            self.wanted[number] = True
        if not self.wanted.any():
            raise InputError("the list of queries is empty", where="queries", fix="name some")

    def add(self, run: Any) -> None:
        """Evaluate one block of the run: anything that :meth:`Run.of` takes."""
        block = self._of_dicts(run) or self._of_table(Run.of(run))
        joined, graded = block.joined, block.graded
        again = joined.numbers[self.seen[joined.numbers]]
        if len(again):
            raise InputError(
                f"query {self.qrels.query_ids[int(again[0])]!r} stands in two blocks of the run",
                where="run",
                fix="yield all documents of a query in one block",
            )
        self.seen[joined.numbers] = True
        self._calculate(joined, graded, joined.numbers[self.wanted[joined.numbers]])
        # By grades alone, if that is what any measure reads.
        tied = self._tied(joined) if self.plan.columns else joined.numbers[:0]
        if graded is not joined:
            tied = distinct(np.append(tied, self._tied(graded)))
        if self.detail is not None:
            tied = distinct(np.append(tied, self.detail.tied(joined)))
        self.tied += int(self.wanted[tied].sum())
        self.unknown.update(block.unknown)
        self.removed += block.removed
        self.documents += block.documents
        source = "" if block.run is None else block.run.table.source
        self.checks.add(joined, block.sample, source)
        self.checks.add_order(
            *block.rising, paired=block.run is not None and block.run.table.paired
        )
        if self.depth < self.plan.deepest_asked and len(joined.retrieved):
            self.depth = max(self.depth, int(joined.retrieved.max()))
        self.constant = self.constant and block.constant
        if len(self.run_ids) < SHOWN:
            self.run_ids += block.first
        if block.run is not None:
            self.settings = self.settings or dict(block.run.settings)
            self.notes += [note for note in block.run.table.notes if note not in self.notes]
        self.name = self.name or (Run.name if block.run is None else block.run.name)
        self.last = (joined, graded)

    def _tied(self, joined: Joined) -> IntArray:
        """The queries in which a tie could change a value."""
        condensed = self.condensed and self.plan.all_condensed
        return joined.tied(judged_apart=self.plan.judged_apart, condensed=condensed)

    def _of_dicts(self, run: Any) -> _Block | None:
        """A run of plain dicts, of which no table is made; None for any other."""
        if self.graded is not self.qrels:
            return None
        found = mapped(self.qrels, run, ties=self.policies.ties)
        if found is None:
            return None
        # To compare a small float of NumPy with a large number warns.
        with np.errstate(all="ignore"):
            constant, rising = found.constant(), found.rising()
        return _Block(
            joined=found.joined,
            graded=found.joined,
            documents=found.documents(),
            first=found.first(SHOWN),
            unknown=found.unknown(),
            sample=partial(_pairs_of_dicts, found),
            constant=constant,
            rising=rising,
        )

    def _of_table(self, run: Run) -> _Block:
        table = run.without_repeats(self.policies.duplicates)
        joined = graded = join(self.qrels, run, ties=self.policies.ties, table=table)
        if self.graded is not self.qrels:
            graded = join(self.graded, run, ties=self.policies.ties, table=table)
        return _Block(
            joined=joined,
            graded=graded,
            documents=len(table),
            first=run.query_ids[:SHOWN],
            unknown=run.table.queries.take(joined.unknown_queries).tolist(),
            sample=_sample_of_table(table, self.qrels) if self.checks.wants_sample else _no_pairs,
            run=run,
            removed=len(run.table) - len(table),
            constant=_constant(table),
            rising=run.table.rising(),
        )

    def _calculate(self, joined: Joined, graded: Joined, rows: IntArray) -> None:
        plan = self.plan
        for source in (joined,) if graded is joined else (joined, graded):
            columns: Sequence[int] = plan.columns
            if graded is not joined:
                columns = plan.of_grades if source is graded else plan.of_judgments
            look = source is joined
            plain = (
                self._calculate_tied(source, rows, columns, look=look) if self.averaged else rows
            )
            for places, block in source.blocks(plain):
                at = plain[places]
                for column in columns:
                    self.values[:, column][at] = self.measures[column].values(block)
                if look:
                    self._look(block, at)
        if self.detail is not None:
            self._calculate_special(self.detail, joined, rows)

    def _calculate_tied(
        self, source: Joined, rows: IntArray, columns: Sequence[int], *, look: bool
    ) -> IntArray:
        """The means over all orders of equal scores; the queries without such are left, returned.

        What is in no tie has one order only, in which both ways give the same bits: a few such
        queries are quicker done with the others.
        """
        tied = source.touched(rows)
        if tied.any() and np.count_nonzero(~tied) < _FEW:
            tied[:] = True
        for places, block in source.blocks(rows[tied]):
            at = rows[tied][places]
            self._average(block, at, columns)
            if look:
                self._look(block.averaged(), at)
        return rows[~tied]

    def _calculate_special(self, detail: SpecialQrels, joined: Joined, rows: IntArray) -> None:
        """The values of measures that read more than a grade."""
        for places, block in detail.blocks(joined, rows):
            for column in self.plan.special:
                self.values[:, column][rows[places]] = self.measures[column].values(block)

    def _average(self, block: JudgedRun, at: IntArray, columns: Sequence[int]) -> None:
        """The means over all orders of a block's equal scores."""
        drawn = [column for column in columns if column in self.errors]
        for column in columns:
            if column not in self.errors:
                self.values[:, column][at] = self.measures[column].tie_mean(block)
        if drawn:
            from rankgauge.evaluation.tie_draws import Draws, estimate

            means, errors = estimate(
                block,
                self.qrels.table.queries.take(at).tolist(),
                [self.measures[column] for column in drawn],
                Draws(self.policies.draws, self.policies.seed),
            )
            for place, column in enumerate(drawn):
                self.values[:, column][at] = means[:, place]
                self.errors[column][at] = errors[:, place]

    def _look(self, block: JudgedRun, at: IntArray) -> None:
        """What the notes tell of a block, besides its values."""
        plan = self.plan
        self.judged[at] = judged_shares(block, plan.depths)
        for first, ranks in self.first_ranks:
            seen = first(judged_only=True) if self.condensed else first
            ranks[at] = seen.values(block)
        for number, recall in enumerate(plan.recalls):
            more = block.relevant(recall.rel) > recall.k  # type: ignore[arg-type, operator] # numbers
            self.beyond[number] += int(np.count_nonzero(more))

    def finished(self) -> Gathered:
        """The values of all blocks, and what there is to say about them."""
        if not (self.seen & self.wanted).any():
            raise self._mismatch()
        self._refuse_near_misses()
        missing = np.flatnonzero(self.wanted & ~self.seen)
        asked = int(np.count_nonzero(self.wanted))
        absent = missing
        if self.policies.queries == "intersection":
            self.wanted &= self.seen
            missing = missing[:0]
        if len(missing):
            self._calculate(*self.last, missing)
        # Kept with the judgments, so that the next run finds them made.
        query_ids, ids = self.qrels.query_ids, self.qrels.table.queries
        rows: IntArray | slice = slice(None)
        if not self.wanted.all():
            rows = np.flatnonzero(self.wanted)
            query_ids = tuple(map(query_ids.__getitem__, rows.tolist()))
            ids = ids.take(rows)
        values = self.values[rows]
        undefined = np.isnan(values)
        counts = {
            "queries": len(query_ids),
            "missing_from_run": len(missing),
            "without_judgments": len(self.unknown),
            "tied": self.tied,
            "documents": self.documents,
            "duplicates_removed": self.removed,
        }
        coverage = self._coverage(rows)
        top = coverage.get(JUDGED_AT, 0.0)
        findings = tuple(self.checks.mismatches(top, asked, absent, self.unknown))
        without = int(np.count_nonzero(np.isnan(self.judged[rows, 0])))
        explained = explaining(findings)
        empties = (
            () if explained else tuple(self.checks.empties(len(query_ids), without, len(missing)))
        )
        return Gathered(
            run_name=self.name,
            settings=self.settings,
            query_ids=query_ids,
            ids=ids,
            values=values,
            undefined=undefined,
            counts=counts,
            coverage=coverage,
            findings=findings + empties,
            notes=(
                *(f"WARNING: {found}" for found in findings),
                *(() if explained else self._fair_zero()),
                *(f"WARNING: {found}" for found in empties),
                queries_note(counts, self.policies),
                ties_note(counts, self.policies),
                *self._drawn(rows),
                *self._said(coverage, rows),
                *undefined_notes(
                    self.plan.measures,
                    undefined,
                    self.policies,
                    lacking=lambda level: self._lacking(level, rows),
                ),
                *finding_notes(self._seen(values)),
                *filter(None, (self.plan.alone,)),
                *self._said_of_inputs(),
            ),
        )

    def _mismatch(self) -> MismatchError:
        if not self.run_ids:
            return MismatchError(
                "the run holds no query", where="run", fix="give at least one ranking"
            )
        mine = [
            query for query, wanted in zip(self.qrels.query_ids, self.wanted, strict=True) if wanted
        ]
        known, theirs = ("judged", "the judgments have")
        if len(mine) < len(self.seen):
            known, theirs = ("asked for", "asked for were")
        return MismatchError(
            f"no query of the run is {known}: the run has {some(self.run_ids)}, "
            f"{theirs} {some(mine)}",
            fix="use the same query ids in both (check the columns, prefixes, leading zeros)",
        )

    def _refuse_near_misses(self) -> None:
        """No document is judged: a fair zero, unless ids that are meant to be equal are not."""
        if self.checks.matched or not self.checks.pairs:
            return
        docs = [doc for _, doc in self.checks.pairs]
        near = near_match(docs, self._judged_sample().tolist())
        if near is not None:
            ours, theirs = map(show_id, near)
            raise MismatchError(
                f"no retrieved document is judged: the run has '{ours}', the judgments have "
                f"'{theirs}', which differ only in leading zeros, blanks or case",
                fix=f"use the same document ids in both: {self.checks.copy_command()}",
            )

    def _fair_zero(self) -> Iterator[str]:
        """No document is judged, and nothing tells of a fault."""
        if not self.checks.matched and self.checks.pairs:
            yield (
                "WARNING: no retrieved document is among the judged ones of its query: the run has "
                f"{some(show_id(doc) for _, doc in self.checks.pairs)}, the judgments have "
                f"{some(self._judged_sample().shown())}; "
                "check that both use the same document ids"
            )

    def _drawn(self, rows: IntArray | slice) -> Iterator[str]:
        if not self.errors:
            return
        errors = {
            str(self.plan.measures[column]): math.sqrt(math.fsum((found[rows] ** 2).tolist()))
            / len(found[rows])
            for column, found in self.errors.items()
        }
        yield draws_note(errors, self.policies)

    def _said(self, coverage: Mapping[int, float], rows: IntArray | slice) -> Iterator[str]:
        if coverage:
            deepest = self.plan.deepest
            known = f"Judged@{deepest} = {coverage[deepest]:.3f}"
            code = " (P106)" if coverage[deepest] < 1 else ""
            done = "are removed from the rankings" if self.condensed else "count as not relevant"
            how = " (unjudged=removed)" if self.condensed else ""
            yield f"documents without a judgment {done}{how}; {known}{code}"
        for first, ranks in self.first_ranks:
            yield first_ranks_note(first, ranks[rows])

    def _said_of_inputs(self) -> Iterator[str]:
        low = self.qrels.low_grades
        pooled = int(np.count_nonzero(low < 0)) if len(low) else 0
        if pooled:
            yield f"{many(pooled, 'judgment')} with a negative grade: pooled but not judged"
        if self.removed:
            yield (
                f"{many(self.removed, 'repeated document')} removed from the rankings "
                f"(duplicates={self.policies.duplicates})"
            )
        yield from dict.fromkeys(self.notes)

    def _seen(self, values: Values) -> Seen:
        """What the findings that cost nothing are told from."""
        plan, low = self.plan, self.qrels.low_grades
        between = int(np.count_nonzero((low > 0) & (low < plan.level))) if len(low) else 0
        perfect = [
            str(plan.measures[column])
            for column in plan.whole
            # Of most runs the first look says it.
            if values[0, column] == 1 and (values[:, column] == 1).all()
        ]
        return Seen(
            queries=len(values),
            depth=self.depth,
            deepest=plan.deepest_asked,
            level=plan.level,
            between=between,
            beyond={str(m): n for m, n in zip(plan.recalls, self.beyond, strict=True) if n},
            perfect=perfect,
            constant=self.constant and bool(self.documents),
        )

    def _lacking(self, level: float, rows: IntArray | slice) -> BoolArray:
        """(Q,) the queries without a grade of this level or more."""
        table = self.qrels.table
        enough = table.query_numbers()[table.values >= level]
        return (np.bincount(enough, minlength=len(self.qrels)) == 0)[rows]

    def _coverage(self, rows: IntArray | slice) -> dict[int, float]:
        """The mean share of judged documents at each cut-off; empty if nothing was retrieved."""
        known = self.judged[rows]
        nothing = np.isnan(known[:, 0])
        if nothing.all():
            return {}
        if nothing.any():
            known = known[~nothing]
        columns = zip(self.plan.depths, known.T.tolist(), strict=True)
        return {depth: math.fsum(column) / len(column) for depth, column in columns}

    def _judged_sample(self) -> Ids:
        docs = self.qrels.table.docs
        return docs.take(np.arange(min(_SAMPLE, len(docs))))


def _pairs_of_dicts(found: Mapped, number: int) -> list[Pair]:
    """Pairs of the first judged queries and the first documents of each."""
    known = found.joined.qrels.query_index
    judged = (
        (coded, ranking)
        for query, ranking in zip(found.queries, found.rankings, strict=True)
        if (coded := query.encode()) in known
    )
    return [
        (query, doc.encode())
        for query, ranking in islice(judged, number)
        for doc in islice(ranking, DEPTH)
    ]


def _no_pairs(_number: int) -> list[Pair]:
    return []


def _sample_of_table(table: PairTable, qrels: Qrels) -> Sample:
    """The same of a table, kept when the table is gone."""
    numbers = range(len(table.queries))
    judged = islice((n for n in numbers if table.queries[n] in qrels.query_index), SAMPLED)
    chosen = np.fromiter(judged, np.int64)
    starts, sizes = table.offsets[chosen], np.minimum(np.diff(table.offsets)[chosen], DEPTH)
    rows = np.repeat(starts - offsets_of(sizes)[:-1], sizes) + np.arange(sizes.sum())
    docs, queries = table.docs.take(rows).compact(), table.queries.take(chosen).tolist()
    return partial(_pairs_of_columns, queries, sizes, docs)


def _pairs_of_columns(
    queries: Sequence[bytes], sizes: IntArray, docs: Ids, number: int
) -> list[Pair]:
    of_rows = chain.from_iterable(map(repeat, queries[:number], sizes[:number].tolist()))
    first = docs.take(np.arange(int(sizes[:number].sum())))
    return list(zip(of_rows, first.tolist(), strict=True))


def _constant(table: PairTable) -> bool:
    """Whether every ranking of two or more documents has one score only, and there is one."""
    values, longer = table.values, np.flatnonzero(np.diff(table.offsets) > 1)
    if not len(longer):
        return False
    # Of most runs the first look says it.
    first = int(table.offsets[longer[0]])
    if values[first] != values[first + 1]:
        return False
    numbers = table.query_numbers()
    return bool((values[1:] == values[:-1])[numbers[1:] == numbers[:-1]].all())
