"""``diff()`` and its result: how each query changed between two runs.

Values of all queries are in arrays; only the queries to show are converted to text.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rankgauge.comparison.differences import query_differences
from rankgauge.comparison.overlap import compute_rbo, find_common_documents, mean_known
from rankgauge.core.arguments import integer
from rankgauge.core.escaping import visible
from rankgauge.core.findings import Finding
from rankgauge.core.grouping import group_values
from rankgauge.core.ids import Id, freeze, id_bytes, show_id
from rankgauge.core.policies import Order, Policies, order_of
from rankgauge.core.text import Ratio, inflect, keep, many
from rankgauge.corpus.collection import Collection
from rankgauge.data.join import ranked
from rankgauge.data.joined_blocks import read_part
from rankgauge.data.judged_run import Values
from rankgauge.data.qrels import Qrels, judged_number
from rankgauge.data.run import Run, joined_run, name_of, readable_again
from rankgauge.data.subsets import only
from rankgauge.errors import InputError
from rankgauge.evaluation.evaluation import evaluate_blocks
from rankgauge.evaluation.input_checks import collection_findings
from rankgauge.evaluation.notes import ties_note
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table, by_column

_WARNING = "WARNING: "
_P = 0.9
# With p = 0.9, deeper ranks weigh less than 1/10,000.
_RBO_DEPTH = 100


@dataclass(frozen=True)
class DocumentDiff:
    """A document in one of two rankings, with its rank in the other.

    Attributes:
        rank: Rank in this ranking.
        document: Id, as text.
        grade: Grade; None if unjudged.
        other_rank: Rank in the other ranking; None if not retrieved there.
        move: Change from A to B: ``same``, ``up``, ``down``, ``new`` (only retrieved by B), or
            ``gone`` (only retrieved by A).
        text: Title or beginning of the text on one printable line; empty if unknown.
    """

    rank: int
    document: str
    grade: float | None
    other_rank: int | None
    move: Literal["same", "up", "down", "new", "gone"]
    text: str = ""


@dataclass(frozen=True)
class QueryDiff:
    """A query in both runs.

    Attributes:
        query: Id, as text.
        text: Text of the query on one printable line; empty if unknown.
        value_a: Value of A; NaN if undefined.
        value_b: Value of B; NaN if undefined.
        change: B minus A.
        rbo: Rank-biased overlap of both rankings; NaN if both are empty.
        first_a: Rank of the first relevant document in A; None if none was retrieved.
        first_b: Rank of the first relevant document in B.
        retrieved_a: Number of documents retrieved by A; None if the query is missing from A.
        retrieved_b: Number of documents retrieved by B.
        ranking_a: First documents of A.
        ranking_b: First documents of B.
        gained: Relevant documents among the first of B but not of A.
        lost: Relevant documents among the first of A but not of B.
    """

    query: str
    text: str
    value_a: float
    value_b: float
    change: float
    rbo: float
    first_a: int | None
    first_b: int | None
    retrieved_a: int | None
    retrieved_b: int | None
    ranking_a: tuple[DocumentDiff, ...]
    ranking_b: tuple[DocumentDiff, ...]
    gained: tuple[DocumentDiff, ...]
    lost: tuple[DocumentDiff, ...]


@dataclass(frozen=True, eq=False, repr=False)
class RunDiff(Result):
    """Changes of every query from run A to run B.

    Returned by :func:`diff`. Its printed form includes the rankings.

    Attributes:
        run_a: The name of the first run.
        run_b: The name of the second run.
        measure: The measure.
        mean_a: Mean of A.
        mean_b: Mean of B.
        level: Lowest grade that counts as relevant: `rel` of the measure, or 1.
        k: Number of ranks shown.
        ties: Order of documents with equal scores.
        query_ids: (Q,) judged queries, as text.
        values: (Q, 2) values of A and B; NaN where undefined.
        changes: (Q,) B minus A. An undefined value counts as 0; if the measure excludes undefined
            values from its mean, the change is NaN.
        rbo: (Q,) rank-biased overlap (p = 0.9, first 100 ranks); NaN if both rankings are empty.
        first_relevant: (Q, 2) rank of the first relevant document in A and B; NaN without one.
        same_top: (Q,) bool, whether the first `k` documents are the same in the same order.
        shown: Queries shown: the largest losses, then the largest gains, or the selected queries.
        notes: Notes on interpretation, one sentence each.
        findings: Findings of the fast input checks, each with its run. A finding of severity
            ``error`` invalidates the numbers of the run.
    """

    _schema = "rankgauge/diff/1"

    run_a: str
    run_b: str
    measure: Measure
    mean_a: float
    mean_b: float
    level: float
    k: int
    ties: Order
    query_ids: tuple[str, ...]
    values: Values
    changes: Values
    rbo: Values
    first_relevant: Values
    same_top: npt.NDArray[np.bool_]
    shown: tuple[QueryDiff, ...]
    notes: tuple[str, ...]
    findings: tuple[tuple[str, Finding], ...] = ()

    def __post_init__(self) -> None:
        freeze(self.values, self.changes, self.rbo, self.first_relevant, self.same_top)

    @property
    def wins(self) -> int:
        """Number of queries in which B has the better value."""
        return int((self.measure.improvements(self.changes) > 0).sum())

    @property
    def losses(self) -> int:
        """Number of queries in which A has the better value."""
        return int((self.measure.improvements(self.changes) < 0).sum())

    @property
    def unchanged(self) -> int:
        """Number of queries with the same value in both runs."""
        return int((self.measure.improvements(self.changes) == 0).sum())

    @property
    def loss_share(self) -> float:
        """Share of the total loss in the queries shown; NaN without a loss."""
        return _share(-self.measure.improvements(self.changes), _shown_rows(self))

    @property
    def gain_share(self) -> float:
        """Share of the total gain in the queries shown; NaN without a gain."""
        return _share(self.measure.improvements(self.changes), _shown_rows(self))

    def query(self, query_id: Id) -> QueryDiff:
        """Return the details of a shown query.

        Raises:
            InputError: If the query is not shown.
        """
        wanted = show_id(id_bytes(query_id, "query id"))
        for query in self.shown:
            if query.query == wanted:
                return query
        raise InputError(f"query {wanted!r} is not among those shown", fix=f"diff(..., queries=[{wanted!r}])")

    def table(self) -> Table:
        """Return one row for each query, shown or not."""
        first_a, first_b = (map(_rank, ranks) for ranks in self.first_relevant.T.tolist())
        return Table(
            *by_column(
                ("query", self.query_ids),
                (self.run_a, self.values[:, 0].tolist()),
                (self.run_b, self.values[:, 1].tolist()),
                ("change", self.changes.tolist()),
                ("RBO", self.rbo.tolist()),
                (f"first relevant in {self.run_a}", first_a),
                (f"first relevant in {self.run_b}", first_b),
            ),
            title=self.title(),
            notes=self.notes,
        )

    def title(self) -> str:
        """Return a title with the runs and the measure."""
        return f"{self.run_a} → {self.run_b} by {self.measure}"

    def _data(self) -> dict[str, Any]:
        columns = (self.values, self.changes, self.rbo, self.first_relevant, self.same_top)
        rows = zip(self.query_ids, *(column.tolist() for column in columns), strict=True)
        return {
            "runs": [self.run_a, self.run_b],
            "measure": str(self.measure),
            "means": [self.mean_a, self.mean_b],
            "level": self.level,
            "k": self.k,
            "ties": self.ties,
            "rbo": {"p": _P, "depth": _RBO_DEPTH, "mean": mean_known(self.rbo.tolist())},
            "wins": self.wins,
            "unchanged": self.unchanged,
            "losses": self.losses,
            "loss_share": self.loss_share,
            "gain_share": self.gain_share,
            "queries": [
                {
                    "query": query,
                    "values": values,
                    "change": change,
                    "rbo": overlap,
                    "first_relevant": [_rank(first) for first in firsts],
                    "same_top": same,
                }
                for query, values, change, overlap, firsts, same in rows
            ],
            "shown": [
                {
                    "query": query.query,
                    "text": query.text,
                    "values": [query.value_a, query.value_b],
                    "change": query.change,
                    "rbo": query.rbo,
                    "first_relevant": [query.first_a, query.first_b],
                    "retrieved": [query.retrieved_a, query.retrieved_b],
                    "rankings": [query.ranking_a, query.ranking_b],
                    "gained": [at.document for at in query.gained],
                    "lost": [at.document for at in query.lost],
                }
                for query in self.shown
            ],
            "notes": list(self.notes),
            "findings": [{"run": run, **finding.to_dict()} for run, finding in self.findings],
        }

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        losses = f"{self.losses} {inflect(self.losses, 'loss', 'losses')}"
        counts = f"{many(self.wins, 'win')}, {many(self.unchanged, 'tie')}, {losses}"
        return f"{self.title()}: {self.mean_a:.4f} to {self.mean_b:.4f}, {counts}"


def diff(
    qrels: Any,
    run_a: Any,
    run_b: Any,
    measure: str | Measure = "nDCG@10",
    *,
    collection: Collection | str | os.PathLike[str] | None = None,
    queries: Id | Iterable[Id] | None = None,
    n: int = 5,
    k: int = 10,
    ties: Order = "trec",
) -> RunDiff:
    """Compare two runs query by query and document by document.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` accepts.
        run_a: Old run: anything that :meth:`Run.of` accepts.
        run_b: New run.
        measure: Measure of gains and losses.
        collection: Texts of queries and documents to show, or their folder.
        queries: Queries to show; default: those that changed most.
        n: Number of largest losses, and of largest gains, to show; equal changes are ordered by
            query id.
        k: Number of ranks to show.
        ties: Order of documents with equal scores: ``trec`` (document id descending) or ``input``
            (input order).

    Returns:
        Values of every judged query in both runs, and both rankings of the queries shown. A query
        that is missing from a run has an empty ranking.

    Raises:
        UnknownName: For an unknown measure.
        MismatchError: If a run has no judged query, or a query to show is not judged.
        InputError: If an input is invalid; the message names the location.

    Example:
        >>> judgments = {"q1": {"d1": 1}, "q2": {"d5": 2}}
        >>> old, new = {"q1": ["d1", "d2"], "q2": ["d5"]}, {"q1": ["d3", "d1"], "q2": ["d5"]}
        >>> result = diff(judgments, old, new, "RR")
        >>> result.wins, result.unchanged, result.losses
        (0, 1, 1)
        >>> [(at.rank, at.document, at.move, at.other_rank) for at in result.query("q1").ranking_b]
        [(1, 'd3', 'new', None), (2, 'd1', 'down', 1)]
    """
    measured = parse(measure)
    k, n = integer("k", k), integer("n", n, least=0)
    truth = Qrels.of(qrels)
    sources = readable_again(run_a), readable_again(run_b)
    names = _names(sources)
    texts = _collection(collection)
    level = 1.0 if measured.level is None else measured.level
    first = parse("FirstRel")(rel=level)
    wanted = list(dict.fromkeys([measured, first]))
    deepest = max(k, _RBO_DEPTH)

    def top(block: Run) -> Run:
        best = ranked(block, ties=ties, depth=deepest)
        return replace(best, table=best.table.compact())

    (a, tops_a), (b, tops_b) = (
        evaluate_blocks(truth, source, wanted, top, name=name, policies=Policies(ties=order_of(ties)))
        for source, name in zip(sources, names, strict=True)
    )
    top_a, top_b = joined_run(tops_a), joined_run(tops_b)
    column = wanted.index(measured), wanted.index(first)
    values, firsts = (np.stack([e.per_query[:, at] for e in (a, b)], axis=1) for at in column)
    changed = query_differences(b, a, measured)
    chosen = _chosen(queries, truth, changes=measured.improvements(changed), n=n)
    shared = find_common_documents(top_a, top_b, truth.table.queries.tolist())
    result = RunDiff(
        run_a=names[0],
        run_b=names[1],
        measure=measured,
        mean_a=a.mean()[str(measured)],
        mean_b=b.mean()[str(measured)],
        level=level,
        k=k,
        ties=ties,
        query_ids=a.query_ids,
        values=values,
        changes=changed,
        rbo=compute_rbo(shared.upto(_RBO_DEPTH), _P)[0],
        first_relevant=firsts,
        same_top=shared.same_top(k),
        shown=(),
        notes=(),
        findings=tuple(_findings((top_a, top_b), (a, b), texts)),
    )
    ids = [truth.table.queries[row] for row in chosen]
    # Reading a few rankings again takes less memory than keeping all of them.
    whole = tuple(read_part(source, lambda block: ranked(only(block, ids), ties=ties)) for source in sources)
    shown = tuple(_query_diff(result, truth, whole, texts=texts, row=row) for row in chosen)
    result = replace(result, shown=shown)
    return replace(result, notes=_notes(result, (a, b), texts))


def _findings(
    runs: Iterable[Run], evaluations: Iterable[Evaluation], texts: Collection
) -> Iterator[tuple[str, Finding]]:
    """Yield findings about the inputs, each with the name of its run."""
    for run, evaluation in zip(runs, evaluations, strict=True):
        findings = evaluation.input_findings
        if texts.documents:
            docs = (doc for query in run for doc in islice(run[query], 10))
            findings += collection_findings(docs, texts.documents)
        yield from ((run.name, finding) for finding in findings)


def _query_diff(result: RunDiff, qrels: Qrels, runs: Sequence[Run], *, texts: Collection, row: int) -> QueryDiff:
    """Return the details of one query; `runs` contain whole rankings in rank order."""
    query, name = qrels.table.queries[row], result.query_ids[row]
    ranks = [_ranks(run, query) for run in runs]
    retrieved_a, retrieved_b = (None if known is None else len(known) for known in ranks)
    rows = np.arange(qrels.table.offsets[row], qrels.table.offsets[row + 1])
    grades = dict(zip(qrels.table.docs.take(rows).tolist(), qrels.table.values[rows].tolist(), strict=True))
    a, b = (known or {} for known in ranks)

    def documents(own: Mapping[bytes, int], other: Mapping[bytes, int]) -> Iterator[DocumentDiff]:
        for doc, rank in islice(own.items(), result.k):
            text = texts.documents.get(show_id(doc))
            yield DocumentDiff(
                rank=rank,
                document=show_id(doc),
                grade=grades.get(doc),
                other_rank=other.get(doc),
                move=_move(a.get(doc), b.get(doc)),
                text=_one_line(text.snippet()) if text else "",
            )

    ranking_a, ranking_b = tuple(documents(a, b)), tuple(documents(b, a))
    known = texts.queries.get(name)
    first_a, first_b = result.first_relevant[row].tolist()
    value_a, value_b = result.values[row].tolist()
    return QueryDiff(
        query=name,
        text=_one_line(known.text) if known else "",
        value_a=value_a,
        value_b=value_b,
        change=float(result.changes[row]),
        rbo=float(result.rbo[row]),
        first_a=_rank(first_a),
        first_b=_rank(first_b),
        retrieved_a=retrieved_a,
        retrieved_b=retrieved_b,
        ranking_a=ranking_a,
        ranking_b=ranking_b,
        gained=_crossed(ranking_b, result),
        lost=_crossed(ranking_a, result),
    )


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))


def _move(old: int | None, new: int | None) -> Literal["same", "up", "down", "new", "gone"]:
    if old is None:
        return "new"
    if new is None:
        return "gone"
    return "same" if old == new else "up" if new < old else "down"


def _ranks(run: Run, query: bytes) -> dict[bytes, int] | None:
    """Return document to rank; None if the query is missing from the run."""
    number = run.query_index.get(query)
    if number is None:
        return None
    rows = np.arange(run.table.offsets[number], run.table.offsets[number + 1])
    return {doc: rank for rank, doc in enumerate(run.table.docs.take(rows).tolist(), start=1)}


def _crossed(ranking: Iterable[DocumentDiff], result: RunDiff) -> tuple[DocumentDiff, ...]:
    """Return the relevant documents that are not among the first of the other ranking."""
    return tuple(
        at
        for at in ranking
        if at.grade is not None and at.grade >= result.level and (at.other_rank is None or at.other_rank > result.k)
    )


def _names(sources: Sequence[Any]) -> list[str]:
    """Return the names of both runs, made distinct if necessary."""
    names = [name_of(source) for source in sources]
    if len({*names}) < len(names) and not any(isinstance(source, Run) for source in sources):
        names = [os.fsdecode(source) for source in sources]
    return names if len({*names}) == len(names) else [f"{names[0]} A", f"{names[1]} B"]


def _collection(source: Any) -> Collection:
    if source is None:
        return Collection()
    if isinstance(source, str | os.PathLike):
        return Collection.read(source)
    if isinstance(source, Collection):
        return source
    raise InputError(
        f"got {type(source).__name__} for the collection",
        where="collection",
        fix="pass a folder, or Collection.of(documents, queries)",
    )


def _chosen(queries: Id | Iterable[Id] | None, qrels: Qrels, *, changes: Values, n: int) -> list[int]:
    """Return the rows of the queries to show: selected, or the largest losses and gains."""
    if queries is not None:
        names = (queries,) if isinstance(queries, str | int | bytes) else queries
        if not isinstance(names, Iterable):
            raise InputError(f"got {queries!r:.60} for the queries", where="queries", fix="pass a list of ids")
        chosen = list(dict.fromkeys(judged_number(qrels, query) for query in names))
        if not chosen:
            raise InputError("the list of queries is empty", where="queries", fix="pass at least one")
        return chosen
    ids = qrels.table.queries
    moved = sorted(
        np.flatnonzero(np.nan_to_num(changes, nan=0.0)).tolist(), key=lambda row: (-abs(changes[row]), ids[row])
    )
    losses = [row for row in moved if changes[row] < 0][:n]
    return losses + [row for row in moved if changes[row] > 0][:n]


def _notes(diff: RunDiff, evaluations: tuple[Evaluation, Evaluation], texts: Collection) -> tuple[str, ...]:
    warnings = {f"{_WARNING}{finding}" for _, finding in diff.findings}
    gain, lose = inflect(diff.wins, "gains", "gain"), inflect(diff.losses, "loses", "lose")
    undefined = int(np.isnan(diff.changes).sum())
    same = int(diff.same_top.sum())
    shown = {at.document for query in diff.shown for at in (*query.ranking_a, *query.ranking_b)}
    unknown = len(shown - texts.documents.keys()) if texts.documents else 0
    return keep(
        *(f"{_WARNING}{run}: {finding}" for run, finding in diff.findings),
        *(
            f"{_WARNING}{evaluation.run_name}: {note.removeprefix(_WARNING)}"
            for evaluation in evaluations
            for note in evaluation.notes
            if note.startswith(_WARNING) and note not in warnings
        ),
        f"{diff.measure}: {diff.mean_a:.4f} in {diff.run_a}, {diff.mean_b:.4f} in "
        f"{diff.run_b} ({diff.mean_b - diff.mean_a:+.4f})",
        f"{many(len(diff.query_ids), 'query')}: {diff.wins} {gain}, {diff.unchanged} unchanged, {diff.losses} {lose}",
        undefined and f"{many(undefined, 'query')} left out: {diff.measure} is undefined in one run or both",
        diff.measure.declaration.better == "neither"
        and f"{diff.measure} has no better direction: increases are shown as gains",
        *_shares(diff),
        f"mean RBO {Ratio(mean_known(diff.rbo.tolist())):.3f} (p={_P:g}, first {_RBO_DEPTH} "
        f"ranks); the top {diff.k} is identical for {many(same, 'query')}",
        *_inputs(evaluations),
        unknown and f"{many(unknown, 'document')} shown without text: not in {texts.name}",
    )


def _inputs(evaluations: tuple[Evaluation, Evaluation]) -> Iterator[str]:
    """Yield notes on missing queries and ties."""
    for evaluation in evaluations:
        missing = evaluation.counts["missing_from_run"]
        if missing:
            yield f"{many(missing, 'judged query')} missing from {evaluation.run_name}: counted as an empty ranking"
    runs_of = group_values((str(ties_note(e.counts["tied"], e.policies.ties)), e.run_name) for e in evaluations)
    for note, names in runs_of.items():
        yield note if len(names) > 1 else f"{names[0]}: {note}"


def _shown_rows(result: RunDiff) -> list[int]:
    row_of = {query: row for row, query in enumerate(result.query_ids)}
    return [row_of[query.query] for query in result.shown]


def _shares(result: RunDiff) -> Iterator[str]:
    gains = result.measure.improvements(result.changes)[_shown_rows(result)]
    for share, word, noun, amounts in (
        (result.loss_share, "lost", "loss", -gains),
        (result.gain_share, "gained", "gain", gains),
    ):
        number = int((amounts > 0).sum())
        if number:
            which = "query shown that" if number == 1 else f"{number} queries shown that"
            account = "accounts" if number == 1 else "account"
            yield f"the {which} {word} {account} for {Ratio(share):.0%} of the total {noun}"


def _share(amounts: Values, rows: Sequence[int]) -> float:
    """Return the share of these rows in the sum of all positive amounts."""
    total = math.fsum(amount for amount in amounts.tolist() if amount > 0)
    part = math.fsum(amount for amount in amounts[list(rows)].tolist() if amount > 0)
    return part / total if total else math.nan


def _rank(value: float) -> int | None:
    return None if math.isnan(value) else int(value)
