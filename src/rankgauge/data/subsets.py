"""Subsets of runs and judgments: the top of each ranking, or some of the queries."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, TypeAlias, TypeVar, get_args, overload

import numpy as np

from rankgauge.core.arguments import integer, of_kind, option
from rankgauge.core.ids import IntArray, id_bytes, show_id
from rankgauge.core.pair_table import PairTable, offsets_of, ranges_of
from rankgauge.core.policies import Duplicates, Order, Policies, order_of
from rankgauge.core.text import inflect, many
from rankgauge.data.join import ranked
from rankgauge.data.joined_blocks import read_part
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError, MismatchError
from rankgauge.formats.readers import read_ids

Among: TypeAlias = Literal["intersection", "union"]
_T = TypeVar("_T", bound=Qrels | Run)


def cut(run: Any, k: int, *, ties: Order = "trec", duplicates: Duplicates = "error") -> Run:
    """Return the first k documents of each query of a run.

    Args:
        run: Anything that :meth:`Run.of` accepts.
        k: Number of ranks to keep.
        ties: Order of documents with equal scores.
        duplicates: Policy for duplicate documents in a ranking: ``error``, or keep the ``first`` or
            ``best`` one before counting ranks.

    Raises:
        UnknownName: If a policy is unknown.
        InputError: If k is not a positive integer, or a ranking has a duplicate document and the policy is ``error``.

    Example:
        >>> list(cut({"q1": {"d1": 0.5, "d2": 0.75, "d3": 0.5}}, 2)["q1"])
        ['d2', 'd3']
    """
    deepest = integer("k", k)
    Policies(ties=order_of(ties), duplicates=duplicates)

    def top(block: Run) -> Run:
        return ranked(block.without_repeats(duplicates), ties=ties, depth=deepest)

    return read_part(run, top)


def sample_queries(sources: Any, n: int, *, seed: int = 0, among: Among = "intersection") -> tuple[str, ...]:
    """Draw the same n queries for several runs and judgments.

    Queries are sorted by a SHA-256 of seed and id, and the first n are selected. The result is
    therefore the same on every machine and for files in any order, and a larger sample contains the
    smaller one.

    Args:
        sources: Judgments, a run, or several of them.
        n: Number of queries.
        seed: The seed.
        among: ``intersection`` draws from queries that all sources have, ``union`` from queries
            that any source has. Queries without results are missing from the file of a run: choose
            ``union`` to include them in a sample for several runs.

    Returns:
        The query ids, in ascending order.

    Raises:
        InputError: If there are fewer than n queries.

    Example:
        >>> runs = [Run.of({f"q{i}": ["d"] for i in range(9)}), Run.of({"q1": ["d"], "q7": ["d"]})]
        >>> sample_queries(runs[0], 3, seed=1)
        ('q0', 'q3', 'q7')
        >>> sample_queries(runs, 2)
        ('q1', 'q7')
    """
    whole = integer("n", n)
    integer("seed", seed, least=None)
    option("among", among, get_args(Among))
    listed: list[Any] = [sources] if isinstance(sources, Qrels | Run) else list(sources)
    if not listed or not all(isinstance(source, Qrels | Run) for source in listed):
        raise InputError(
            "queries are drawn from judgments and runs",
            where="sources",
            fix="pass the result of read_qrels, read_run, Qrels.of, or Run.of",
        )
    sets = [set(source.query_index) for source in listed]
    known = set.intersection(*sets) if among == "intersection" else set.union(*sets)
    if len(known) < whole:
        common = " in common" if len(listed) > 1 and among == "intersection" else ""
        raise InputError(
            f"{many(whole, 'query')} {inflect(whole, 'was', 'were')} requested, but there "
            f"{inflect(len(known), 'is', 'are')} only {len(known)}{common}",
            where="sample",
            fix=f"request at most {len(known)}" if known else "pass files of the same queries",
        )
    return tuple(show_id(query) for query in sorted(drawn(known, seed)[:whole]))


def drawn(ids: Iterable[bytes], seed: int) -> list[bytes]:
    """Return all ids in drawing order: by SHA-256 of seed and id."""
    return sorted(ids, key=lambda query: (hashlib.sha256(b"%d:" % seed + query).digest(), query))


@overload
def keep_queries(source: Qrels, queries: Any) -> Qrels: ...
@overload
def keep_queries(source: Run, queries: Any) -> Run: ...
def keep_queries(source: Qrels | Run, queries: Any) -> Qrels | Run:
    """Return judgments or a run restricted to some queries, in their original order.

    Args:
        source: Judgments or a run.
        queries: Query ids, or the path of a file with one id per line. Ids that the source does not
            have are ignored.

    Raises:
        InputError: If the source is of another type.
        MismatchError: If the source has none of them.

    Example:
        >>> keep_queries(Run.of({"q1": ["d1"], "q2": ["d2"]}, name="bm25"), ["q2", "q9"])
        <Run 'bm25': 1 query, 1 document>
    """
    of_kind("source", source, Qrels | Run, "pass the result of Qrels.of or Run.of")
    wanted = given_ids(queries)
    kept = only(source, wanted)
    if not len(kept):
        first = ", ".join(f"'{show_id(id_bytes(query))}'" for query in wanted[:3]) or "none"
        has = next(iter(source), None)
        raise MismatchError(
            f"it has none of the requested queries (requested: {first})",
            where=source.table.source,
            fix="pass ids that it has" + ("" if has is None else f": '{has}'"),
        )
    return kept


def only(source: _T, queries: Iterable[Any]) -> _T:
    """Restrict a source to these queries; the result may be empty."""
    wanted = list(queries)
    ids = {id_bytes(query, "query id") for query in wanted}
    # Ids that are displayed escaped can also be selected by that text.
    shown_ids = {query for query in wanted if isinstance(query, str)}
    numbers = [
        number
        for number, (query, shown) in enumerate(zip(source.query_index, source.query_ids, strict=True))
        if query in ids or shown in shown_ids
    ]
    if len(numbers) == len(source.query_ids):
        return source
    return replace(source, table=of_queries(source.table, np.array(numbers, dtype=np.int64)))


def given_ids(queries: Any) -> list[Any]:
    """Return ids as given, or read them from a file."""
    if isinstance(queries, os.PathLike):
        return list(read_ids(queries))
    if isinstance(queries, str | bytes) or not isinstance(queries, Iterable):
        raise InputError(
            f"got {queries!r:.60} for the queries",
            where="queries",
            fix="pass a list of ids, or the path of a file with one id per line",
        )
    return list(queries)


def of_queries(table: PairTable, numbers: IntArray) -> PairTable:
    """Return the rows of these queries, in this order."""
    sizes = np.diff(table.offsets)[numbers]
    rows = ranges_of(table.offsets[numbers], sizes)
    return replace(
        table,
        queries=table.queries.take(numbers),
        offsets=offsets_of(sizes),
        docs=table.docs.take(rows),
        values=table.values[rows],
        lines=None if table.lines is None else table.lines[rows],
    )
