"""Rank-biased overlap: similarity of two rankings without judgments.

A common document counts from the deeper of its two ranks on. Therefore all sums of the paper are
sums over common documents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from rankgauge.core.arguments import integer
from rankgauge.core.ids import Id, IntArray, freeze, id_bytes, show_id
from rankgauge.core.policies import Order
from rankgauge.core.text import Ratio, many, some
from rankgauge.data.alignment import align
from rankgauge.data.join import ranked
from rankgauge.data.judged_run import Values
from rankgauge.data.run import Run
from rankgauge.errors import InputError, MismatchError
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table, by_column


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
        return Table(
            *by_column(
                ("query", self.query_ids),
                ("RBO", self.ext.tolist()),
                ("RBO_min", self.low.tolist()),
                ("residual", self.residual.tolist()),
                (f"common@{self.k}", self.common.tolist()),
            ),
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
        >>> overlap = rbo({"q1": ["a", "b", "c"]}, {"q1": ["b", "a", "c", "d"]}, p=0.5)
        >>> round(overlap.value("q1"), 4)
        0.5
    """
    patience = _persistence(p)
    k = integer("k", k)
    if depth is not None:
        depth = integer("depth", depth)
    first = ranked(Run.of(run_a), ties=ties, depth=depth)
    second = ranked(Run.of(run_b), ties=ties, depth=depth)
    known = dict.fromkeys([*first.query_index, *second.query_index])
    if first.query_index.keys().isdisjoint(second.query_index):
        raise MismatchError(
            f"the runs have no query in common: {first.name} has {some(first.query_ids)}, "
            f"{second.name} has {some(second.query_ids)}",
            fix="use the same query ids in both (check the columns, prefixes, leading zeros)",
        )
    shared = find_common_documents(first, second, list(known))
    ext, low, residual = compute_rbo(shared, patience)
    common, _ = shared.top(k)
    longest = np.minimum(shared.lengths.max(axis=1), k)
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

    lengths: IntArray  # (Q, 2) number of documents in each run per query
    query: IntArray  # (n,) query number of each common document, ascending
    ranks: IntArray  # (n, 2) rank in each run

    def top(self, k: int) -> tuple[IntArray, IntArray]:
        """Count common documents in the first k, and those at the same rank, each (Q,)."""
        queries = len(self.lengths)
        inside = (self.ranks <= k).all(axis=1)
        alike = inside & (self.ranks[:, 0] == self.ranks[:, 1])
        return (np.bincount(self.query[inside], minlength=queries), np.bincount(self.query[alike], minlength=queries))

    def same_top(self, k: int) -> npt.NDArray[np.bool_]:
        """Return whether the first k documents of both runs are the same in the same order (Q,)."""
        _, alike = self.top(k)
        same: npt.NDArray[np.bool_] = (np.minimum(self.lengths, k) == alike[:, None]).all(axis=1)
        return same

    def upto(self, depth: int) -> CommonDocuments:
        """Restrict both rankings to the first ranks."""
        kept = (self.ranks <= depth).all(axis=1)
        return CommonDocuments(np.minimum(self.lengths, depth), self.query[kept], self.ranks[kept])


def find_common_documents(run_a: Run, run_b: Run, queries: Sequence[bytes]) -> CommonDocuments:
    """Find the documents that two runs in rank order (see `ranked`) have in common."""
    aligned = align([run_a, run_b])
    number_of = {query: number for number, query in enumerate(queries)}
    numbers = np.array([number_of.get(query, -1) for query in aligned.queries.tolist()], dtype=np.int64)
    lengths = np.zeros((len(queries), 2), dtype=np.int64)
    lengths[numbers[numbers >= 0]] = aligned.retrieved[numbers >= 0]
    owner = np.repeat(np.arange(len(numbers)), np.diff(aligned.offsets))
    common = np.flatnonzero((aligned.rows >= 0).all(axis=1) & (numbers[owner] >= 0))
    owner = owner[common]
    order = np.argsort(numbers[owner], kind="stable")
    ranks = aligned.rows[common] - aligned.starts[owner] + 1
    return CommonDocuments(lengths, numbers[owner][order], ranks[order])


def compute_rbo(shared: CommonDocuments, p: float) -> tuple[Values, Values, Values]:
    """Return extrapolated RBO (equation 32), RBO_min, and the residual (equation 30), each (Q,)."""
    short, long = shared.lengths.min(axis=1), shared.lengths.max(axis=1)
    queries, of = len(long), shared.query
    # Rank at which a common document has appeared in both rankings; sorted, so that sums are
    # reproducible.
    since = shared.ranks.max(axis=1)
    order = np.lexsort((since, of))
    of, since = of[order], since[order]
    seen = np.bincount(of, minlength=queries)
    seen_short = np.bincount(of[since <= short[of]], minlength=queries)
    # Beyond this depth both rankings would be the same set if all unseen documents were common.
    full = long + short - seen
    # Sums of p^(d-1) and of p^(d-1) / d over ranks 1 to n, indexed by n.
    terms = [p ** (rank - 1) for rank in range(1, int(full.max(initial=0)) + 1)]
    powers = np.array([0.0, *accumulate(terms)])
    shares = np.array([0.0, *accumulate(term / rank for rank, term in enumerate(terms, start=1))])
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


def _persistence(p: Any) -> float:
    number = isinstance(p, int | float | np.number) and not isinstance(p, bool)
    if not number or not 0 < p < 1:
        raise InputError(f"p={p!r:.40} is not valid", where="rbo", fix="pass a number above 0 and below 1, such as 0.9")
    return float(p)


def _notes(run_a: Run, run_b: Run) -> Iterator[str]:
    for one, other in ((run_a, run_b), (run_b, run_a)):
        alone = [show_id(query) for query in one.query_index if query not in other.query_index]
        if alone:
            yield f"{many(len(alone), 'query')} only in {one.name}, an empty ranking in {other.name}: {some(alone)}"
