"""Rank-biased overlap: similarity of two rankings without judgments.

A common document counts from the deeper of its two ranks on. Therefore all sums of the paper are
sums over common documents, and the join of judgments and runs finds them: run B takes the place of
the judgments, with ranks as grades.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from rankgauge.core.arguments import integer
from rankgauge.core.ids import Id, IntArray, freeze, id_bytes, show_id
from rankgauge.core.pair_table import FloatArray
from rankgauge.core.policies import Order
from rankgauge.core.text import Ratio, many, some
from rankgauge.data.join import join
from rankgauge.data.judged_run import Values
from rankgauge.data.qrels import Qrels
from rankgauge.data.ranking import ranked
from rankgauge.data.run import Run
from rankgauge.errors import InputError, MismatchError
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table


@dataclass(frozen=True, eq=False, repr=False)
class Overlap(Result):
    """Similarity of the rankings of two runs, for each query.

    Returned by :func:`rbo`. Notebooks display it as a table.

    Attributes:
        run_a: Name of the first run.
        run_b: Name of the second run.
        p: Persistence.
        k: Cut-off of `common`.
        depth: Depth of the comparison; None for whole rankings.
        query_ids: (Q,) queries of either run: those of the first run, then those only in the second
            run.
        ext: (Q,) extrapolated RBO, the value to report.
        low: (Q,) RBO_min, the lower bound for any continuation of the rankings.
        residual: (Q,) the upper bound minus `low`.
        common: (Q,) common documents in the first k, as a share of the longer ranking.
        notes: Notes on interpretation, one sentence each.
    """

    run_a: str
    run_b: str
    p: float
    k: int
    depth: int | None
    query_ids: tuple[str, ...]
    ext: Values
    low: Values
    residual: Values
    common: Values
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self.ext, self.low, self.residual, self.common)

    def mean(self) -> float:
        """Return the mean of `ext` over the queries; NaN if all values are undefined."""
        return mean_known(self.ext.tolist())

    def value(self, query_id: Id) -> float:
        """Return the extrapolated RBO of one query; NaN if neither run returned anything.

        Raises:
            InputError: If neither run has the query.
        """
        wanted = show_id(id_bytes(query_id, "query id"))
        if wanted not in self.query_ids:
            raise InputError(f"neither run has query {wanted!r}", fix=f"queries include: {some(self.query_ids)}")
        return float(self.ext[self.query_ids.index(wanted)])

    def table(self) -> Table:
        """Return one row for each query."""
        columns = zip(
            self.query_ids,
            self.ext.tolist(),
            self.low.tolist(),
            self.residual.tolist(),
            self.common.tolist(),
            strict=True,
        )
        return Table(
            columns=("query", "RBO", "RBO_min", "residual", f"common@{self.k}"),
            rows=tuple(columns),
            title=f"{self.run_a} and {self.run_b}",
            notes=(f"mean RBO {Ratio(self.mean()):.4f} (p={self.p:g})", *self.notes),
        )

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        return (
            f"{self.run_a} and {self.run_b}: mean RBO {Ratio(self.mean()):.4f} over "
            f"{many(len(self.query_ids), 'query')}"
        )


def rbo(
    run_a: Any, run_b: Any, p: float = 0.9, *, k: int = 10, depth: int | None = None, ties: Order = "trec"
) -> Overlap:
    r"""Compute the rank-biased overlap of two runs, query by query.

    With :math:`X_d` documents common to the first d ranks of both runs,

    .. math:: RBO = (1 - p) \sum_{d \ge 1} p^{d-1} X_d / d

    It ranges from 0 (no document in common) to 1 (the same ranking). The model is a user who
    continues from each rank to the next with probability p: for p = 0.9, the first ten ranks have
    86% of the weight. Rankings are finite: `ext` extrapolates the observed overlap, also for
    rankings of different lengths (equation 32 of the paper); `low` is the lower bound (RBO_min),
    and `low` + `residual` the upper bound (RBO_max).

    If one ranking is empty, `ext` is 0. If both are empty, `ext` is NaN and excluded from the mean.

    Ties are broken by `ties`, as in an evaluation. Breaking ties by document id gives the same
    order in both runs, so with many ties, RBO overstates their similarity. Variants of RBO for ties
    are not supported.

    Args:
        run_a: First run: anything that :meth:`Run.of` accepts.
        run_b: Second run.
        p: Persistence, above 0 and below 1; higher values give more weight to deep ranks.
        k: Cut-off of the share of common documents, `Overlap.common`.
        depth: Maximum number of ranks to compare; default: all.
        ties: Order of documents with equal scores: ``trec`` (document id descending) or ``input``
            (input order).

    Returns:
        Values per query and their mean. A query that is missing from a run has an empty ranking.

    Raises:
        InputError: If p, k, or depth is out of range, or a document occurs twice in a ranking.
        MismatchError: If the runs have no query in common.

    Source:
        Webber, Moffat, and Zobel (2010), A similarity measure for indefinite rankings, ACM TOIS
        28(4). On ties: Corsi and Urbano (2024), The treatment of ties in rank-biased overlap,
        SIGIR.

    Example:
        >>> found = rbo({"q1": ["a", "b", "c"]}, {"q1": ["b", "a", "c", "d"]}, p=0.5)
        >>> round(found.value("q1"), 4)
        0.5
    """
    patience = _persistence(p)
    k = integer("k", k)
    if depth is not None:
        depth = integer("depth", depth)
    first = ranked(Run.of(run_a), ties=ties, depth=depth)
    second = ranked(Run.of(run_b), ties=ties, depth=depth)
    known = dict.fromkeys([*first.query_index, *second.query_index])
    _check_common_queries(first, second)
    shared = find_common_documents(first, second, list(known))
    ext, low, residual = compute_rbo(shared, patience)
    common, _ = shared.top(k)
    longest = np.minimum(np.maximum(shared.length_a, shared.length_b), k)
    return Overlap(
        run_a=first.name,
        run_b=second.name,
        p=patience,
        k=k,
        depth=depth,
        query_ids=tuple(map(show_id, known)),
        ext=ext,
        low=low,
        residual=residual,
        common=np.where(longest > 0, common / np.maximum(longest, 1), np.nan),
        notes=tuple(_notes(first, second)),
    )


@dataclass(frozen=True, eq=False)
class CommonDocuments:
    """Documents that two runs have in common, with their ranks in both."""

    length_a: IntArray  # (Q,) number of documents in the first run per query
    length_b: IntArray  # (Q,) number of documents in the second run per query
    query: IntArray  # (n,) query number of each common document, ascending
    rank_a: IntArray  # (n,) rank in the first run
    rank_b: IntArray  # (n,) rank in the second run

    def top(self, k: int) -> tuple[IntArray, IntArray]:
        """Count common documents in the first k, and those at the same rank, each (Q,)."""
        queries = len(self.length_a)
        inside = (self.rank_a <= k) & (self.rank_b <= k)
        alike = inside & (self.rank_a == self.rank_b)
        return (np.bincount(self.query[inside], minlength=queries), np.bincount(self.query[alike], minlength=queries))

    def same_top(self, k: int) -> npt.NDArray[np.bool_]:
        """Return whether the first k documents of both runs are the same in the same order (Q,)."""
        _, alike = self.top(k)
        shown_a, shown_b = np.minimum(self.length_a, k), np.minimum(self.length_b, k)
        return (alike == shown_a) & (alike == shown_b)

    def upto(self, depth: int) -> CommonDocuments:
        """Restrict both rankings to the first ranks."""
        kept = (self.rank_a <= depth) & (self.rank_b <= depth)
        return CommonDocuments(
            length_a=np.minimum(self.length_a, depth),
            length_b=np.minimum(self.length_b, depth),
            query=self.query[kept],
            rank_a=self.rank_a[kept],
            rank_b=self.rank_b[kept],
        )


def find_common_documents(run_a: Run, run_b: Run, queries: Sequence[bytes]) -> CommonDocuments:
    """Find the documents that two runs in rank order (see `ranked`) have in common."""
    number_of = {query: number for number, query in enumerate(queries)}
    first, second = run_a.table, run_b.table
    starts = np.repeat(second.offsets[:-1], np.diff(second.offsets))
    ranks = (np.arange(1, len(second) + 1) - starts).astype(np.float64)
    joined = join(Qrels(replace(second, values=ranks)), run_a, ties="input", table=first)
    of_b = _numbers(run_b, number_of)[np.repeat(joined.numbers, np.diff(joined.offsets))]
    kept = np.flatnonzero(of_b >= 0)
    kept = kept[np.argsort(of_b[kept], kind="stable")]
    return CommonDocuments(
        length_a=_lengths(run_a, number_of),
        length_b=_lengths(run_b, number_of),
        query=of_b[kept],
        rank_a=joined.rank[kept],
        rank_b=joined.grade[kept].astype(np.int64),
    )


def compute_rbo(shared: CommonDocuments, p: float) -> tuple[Values, Values, Values]:
    """Return extrapolated RBO (equation 32), RBO_min, and the residual (equation 30), each (Q,)."""
    short = np.minimum(shared.length_a, shared.length_b)
    long = np.maximum(shared.length_a, shared.length_b)
    queries, of = len(long), shared.query
    # Rank at which a common document has appeared in both rankings; sorted, so that sums are
    # reproducible.
    since = np.maximum(shared.rank_a, shared.rank_b)
    order = np.lexsort((since, of))
    of, since = of[order], since[order]
    seen = np.bincount(of, minlength=queries)
    seen_short = np.bincount(of[since <= short[of]], minlength=queries)
    # Beyond this depth both rankings would be the same set if all unseen documents were common.
    full = long + short - seen
    powers, shares = _weights(p, int(full.max(initial=0)))
    power = np.power(np.float64(p), np.stack([short, long, full]))
    weight = 1 - p
    rest = -math.log1p(-p) / p
    gathered = np.bincount(of, weights=shares[long[of]] - shares[since - 1], minlength=queries)
    reach = seen_short / np.maximum(short, 1)
    tail = reach * (powers[long] - powers[short] - short * (shares[long] - shares[short]))
    last = (seen - seen_short) / np.maximum(long, 1) + reach
    ext = weight * (gathered + tail) + last * power[1]
    # If both rankings agree at every depth, the result must be exact.
    since_all = np.bincount(of, weights=since, minlength=queries)
    ext[(seen == long) & (since_all == long * (long + 1) / 2)] = 1.0
    ext[long == 0] = np.nan
    low = weight * (gathered + seen * (rest - shares[long]))
    open_ = short * (shares[full] - shares[short]) + long * (shares[full] - shares[long])
    residual = power.sum(axis=0) - 2 * power[2] - weight * (open_ + seen * (rest - shares[full]))
    return np.clip(ext, 0, 1), np.clip(low, 0, 1), np.clip(residual, 0, 1)


def mean_known(values: Sequence[float]) -> float:
    """Return the mean of the values other than NaN."""
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def _weights(p: float, depth: int) -> tuple[FloatArray, FloatArray]:
    """Return the sums of p^(d-1) and of p^(d-1) / d over ranks 1 to n, indexed by n."""
    powers = [p ** (rank - 1) for rank in range(1, depth + 1)]
    shares = [power / rank for rank, power in enumerate(powers, start=1)]
    return np.array([0.0, *accumulate(powers)]), np.array([0.0, *accumulate(shares)])


def _persistence(p: Any) -> float:
    number = isinstance(p, int | float | np.number) and not isinstance(p, bool)
    if not number or not 0 < p < 1:
        raise InputError(f"p={p!r:.40} is not valid", where="rbo", fix="pass a number above 0 and below 1, such as 0.9")
    return float(p)


def _numbers(run: Run, number_of: dict[bytes, int]) -> IntArray:
    """Return the number of each query of a run among the selected ones; -1 if not selected."""
    return np.array([number_of.get(query, -1) for query in run.query_index], dtype=np.int64)


def _lengths(run: Run, number_of: dict[bytes, int]) -> IntArray:
    lengths = np.zeros(len(number_of), dtype=np.int64)
    numbers = _numbers(run, number_of)
    wanted = numbers >= 0
    lengths[numbers[wanted]] = np.diff(run.table.offsets)[wanted]
    return lengths


def _check_common_queries(run_a: Run, run_b: Run) -> None:
    if run_a.query_index.keys() & run_b.query_index.keys():
        return
    raise MismatchError(
        f"the runs have no query in common: {run_a.name} has {some(run_a.query_ids)}, "
        f"{run_b.name} has {some(run_b.query_ids)}",
        fix="use the same query ids in both (check the columns, prefixes, leading zeros)",
    )


def _notes(run_a: Run, run_b: Run) -> list[str]:
    notes = []
    for one, other in ((run_a, run_b), (run_b, run_a)):
        missing = one.query_index.keys() - other.query_index.keys()
        alone = [show_id(query) for query in one.query_index if query in missing]
        if alone:
            count = many(len(alone), "query")
            notes.append(f"{count} only in {one.name}, an empty ranking in {other.name}: {some(alone)}")
    return notes
