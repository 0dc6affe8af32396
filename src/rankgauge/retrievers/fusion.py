"""Fusion of runs by ranks or by scores."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from rankgauge.core.arguments import choice, to_float
from rankgauge.core.exact_sum import product, quotient, total
from rankgauge.core.grammar import plain_key
from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import FloatArray, PairTable, offsets_of
from rankgauge.core.policies import Order, order_of
from rankgauge.core.text import many
from rankgauge.data.alignment import Alignment, Block, align, map_query_blocks
from rankgauge.data.join import ranked
from rankgauge.data.run import Run, named_runs, named_sources
from rankgauge.errors import InputError
from rankgauge.formats.columns import RUN
from rankgauge.formats.lines import Source
from rankgauge.formats.writers import write_tables

# Far above any real score; sums of products of two such values are still finite.
_MOST = 1e100
# Votes are counted in 64 bits.
_VOTES = 2**62
# Number of pairs of documents compared at once.
_PAIRS = 1 << 18


@dataclass(frozen=True)
class Fusion:
    """A fusion method with its parameters; None for defaults and unused parameters.

    Attributes:
        method: One of `FUSION_METHODS`.
        norm: One of `FUSION_NORMS`.
        weights: The weight of each run, in the order of the runs.
        k: The rank constant of ``rrf``.
        phi: The persistence of ``rbc``.

    Example:
        >>> str(Fusion("rrf", k=60.0))
        'rrf(k=60)'
    """

    method: str
    norm: str | None = None
    weights: tuple[float, ...] | None = None
    k: float | None = None
    phi: float | None = None

    def __str__(self) -> str:
        parts = [f"{word}={parameter_text(value)}" for word, value in self.settings().items() if word != "method"]
        return self.method + (f"({', '.join(parts)})" if parts else "")

    @classmethod
    def of(cls, method: str, runs: Sequence[str], given: Mapping[str, Any]) -> Fusion:
        """Return a method with its parameters: the given values or the defaults.

        Args:
            method: The name of the method; case, hyphens, and underscores are ignored.
            runs: The names of the runs.
            given: The parameters ``norm``, ``weights``, ``k``, and ``phi``; None for defaults.

        Raises:
            UnknownName: For an unknown method or norm.
            InputError: For an invalid value, or a parameter that the method does not use.
        """
        name = choice("fusion method", method, METHODS)
        declared = METHODS[name]
        for word, value in given.items():
            if value is not None and word not in declared.reads:
                readers = ", ".join(other for other, m in METHODS.items() if word in m.reads)
                raise InputError(
                    f"{name} has no parameter {word}",
                    where="fuse",
                    fix=f"omit it, or choose a method that has it: {readers}",
                )
        weights = _weights(given.get("weights"), runs)
        if weights is None and name == "wsum":
            raise InputError(
                "wsum needs a weight for each run",
                where="fuse",
                fix=f"pass {len(runs)} weights, or use combsum, which weights all runs equally",
            )
        norm, k, phi = (given.get(word) for word in ("norm", "k", "phi"))
        if norm is None:
            norm = "min-max"
        elif isinstance(norm, str) and plain_key(norm) == "zmuv":
            norm = "z-score"
        return cls(
            method=name,
            norm=choice("norm", norm, FUSION_NORMS) if "norm" in declared.reads else None,
            weights=weights,
            k=_number("k", 60.0 if k is None else k, 0, _MOST) if "k" in declared.reads else None,
            phi=_phi(0.8 if phi is None else phi) if "phi" in declared.reads else None,
        )

    def used(self, runs: int) -> list[int]:
        """Return the numbers of the runs with a weight above 0."""
        return [run for run in range(runs) if self.weights is None or self.weights[run] > 0]

    def settings(self) -> dict[str, Any]:
        """Return the used parameters as plain values."""
        used = {word: value for word, value in asdict(self).items() if value is not None}
        return used if self.weights is None else used | {"weights": list(self.weights)}


def parameter_text(value: Any) -> str:
    """Return the value of a parameter of a fusion as text."""
    if isinstance(value, tuple | list):
        return "/".join(f"{weight:g}" for weight in value)
    return value if isinstance(value, str) else f"{value:g}"


def fuse(
    runs: Mapping[str, Any] | Iterable[Any],
    method: str = "rrf",
    *,
    norm: str | None = None,
    weights: Mapping[str, float] | Iterable[float] | None = None,
    k: float | None = None,
    phi: float | None = None,
    ties: Order = "trec",
    name: str | None = None,
) -> Run:
    """Fuse runs into one.

    For each query, every retrieved document gets a score, computed from its rank r or its
    normalized score s in each of the N runs that retrieved it:

    ============= ============================================ ======================
    method        score                                        source
    ============= ============================================ ======================
    ``rrf``       the sum of w / (k + r)                       Cormack et al. 2009
    ``isr``       N times the sum of 1 / r^2                   Mourão et al. 2014
    ``rbc``       the sum of w (1 - phi) phi^(r - 1)           Bailey et al. 2017
    ``borda``     the sum of w b, with b points for the rank   Aslam, Montague 2001
    ``condorcet`` documents it beats minus those that beat it  Montague, Aslam 2002
    ``combsum``   the sum of s                                 Fox, Shaw 1994
    ``combmnz``   N times the sum of s                         Fox, Shaw 1994
    ``combanz``   the sum of s / N                             Fox, Shaw 1994
    ``combmin``   the lowest s                                 Fox, Shaw 1994
    ``combmax``   the highest s                                Fox, Shaw 1994
    ``combmed``   the median of s                              Fox, Shaw 1994
    ``wsum``      the sum of w s                               Vogt, Cottrell 1999
    ============= ============================================ ======================

    *Documents missing from a run* get no score from it, for every method and norm, and are ignored
    by ``combmin``, ``combanz``, and ``combmed``. (With ``z-score``, where 0 is the average, they
    rank above documents with a score below average.) ``borda`` and ``condorcet`` rank them below
    all documents of the run. With n different documents in all runs, ``borda`` gives the first
    document of a run n points, the next n - 1, ..., and each missing document the mean of the
    remaining points. For ``condorcet``, a document beats another if the runs that rank it higher
    outweigh those that rank it lower; its score is the number of documents that it beats minus the
    number of those that beat it (Copeland).

    *Queries missing from a run* are fused from the other runs. *Ties*: ranks within a run follow
    the policy `ties`; ties of fused scores are broken by document id, descending. Sums are rounded
    once and do not depend on the order of runs, queries, or documents.

    Args:
        runs: At least two runs, or a mapping of name to run, in any form accepted by
            :meth:`Run.of`.
        method: One of `FUSION_METHODS`.
        norm: The normalization of the scores of each query in each run, for methods that use
            scores. ``min-max`` (the default): (s - min) / (max - min), 1 if all are equal.
            ``z-score``: (s - mean) / sd with the standard deviation of these n scores, 0 if all are
            equal. ``sum``: (s - min) / sum of (s - min), 1/n if all are equal. ``rank``: 1 - (r -
            1) / n. ``none``: scores unchanged.
        weights: A number >= 0 for each run, in order or by name; runs with weight 0 are ignored.
            For ``wsum``, ``rrf``, ``rbc``, ``borda``, and ``condorcet``.
        k: The rank constant of ``rrf``; default: 60.
        phi: The persistence of ``rbc``, between 0 and 1; default: 0.8.
        ties: Order of documents with equal scores within each run.
        name: The name of the fused run; default: the method.

    Raises:
        UnknownName: For an unknown method, norm, or policy.
        InputError: With fewer than two runs, a duplicate document in a ranking, or a parameter that
            the method does not use.

    Example:
        >>> run = fuse([{"q1": ["d1", "d2", "d3"]}, {"q1": ["d3", "d2"]}], k=1)
        >>> {doc: round(score, 4) for doc, score in run["q1"].items()}
        {'d3': 0.75, 'd2': 0.6667, 'd1': 0.5}
    """
    named = rank_runs(runs, ties)
    names = [run.name for run in named]
    how = Fusion.of(method, names, {"norm": norm, "weights": weights, "k": k, "phi": phi})
    called = how.method if name is None else name
    table = fuse_aligned(align(named), how, called)
    return ranked(Run(table, name=called, settings={"fusion": {**how.settings(), "runs": names}}))


def fuse_files(
    runs: Mapping[str, Any] | Iterable[Any],
    path: Source,
    how: Fusion = Fusion("rrf"),
    *,
    ties: Order = "trec",
    name: str | None = None,
) -> tuple[Fusion, int]:
    """Fuse runs into a file, like :func:`fuse` and :func:`write_run`, in blocks of queries.

    Neither the runs nor the result are kept in memory as a whole.

    Args:
        runs: At least two runs, as for :func:`fuse`.
        path: The file to write, as for :func:`write_run`.
        how: The method and its parameters.
        ties: Order of documents with equal scores within each run.
        name: The name of the fused run; default: the method.

    Returns:
        The method with all parameters, and the number of queries.

    Example:
        >>> import pathlib, tempfile
        >>> from rankgauge import sample_path
        >>> target = pathlib.Path(tempfile.mkdtemp()) / "hybrid.run"
        >>> how, queries = fuse_files([sample_path("runs/bm25.run")] * 2, target)
        >>> str(how), queries
        ('rrf(k=60)', 30)
    """
    order_of(ties)
    named = named_sources(runs)
    names = [run_name for run_name, _ in named]
    parameters = {word: getattr(how, word) for word in ("norm", "weights", "k", "phi")}
    how = Fusion.of(how.method, names, parameters)
    called = how.method if name is None else name

    def write(blocks: Iterator[list[Run]]) -> int:
        counts = [0]

        def fused(parts: Sequence[Run]) -> PairTable:
            aligned = align([ranked(part, ties=ties) for part in parts])
            counts.append(len(aligned.queries))
            return ranked(Run(fuse_aligned(aligned, how, called))).table

        write_tables(map(fused, blocks), path, RUN, called)
        return sum(counts)

    return how, map_query_blocks([source for _, source in named], write)


def rank_runs(runs: Any, ties: Order) -> list[Run]:
    """Return the runs, each in rank order."""
    return [ranked(run, ties=ties) for run in named_runs(runs)]


def fuse_aligned(aligned: Alignment, how: Fusion, source: str = "") -> PairTable:
    """Return the documents of aligned runs with their fused scores, not sorted."""
    used = aligned.of_runs(how.used(len(aligned.tables)))
    return used.table(fused_scores(inputs_of(used, how.norm), how), source)


def inputs_of(aligned: Alignment, norm: str | None) -> Iterator[tuple[Block, FloatArray]]:
    """Yield blocks with the (U, R) normalized scores."""
    columns = [] if norm is None else [_normalized(table, norm) for table in aligned.tables]
    for block in aligned.blocks():
        scores = np.zeros(block.rows.shape)  # 0 for documents missing from a run
        for column, values in enumerate(columns):
            present = block.present[:, column]
            scores[present, column] = values[block.rows[present, column]]
        yield block, scores


def fused_scores(inputs: Iterable[tuple[Block, FloatArray]], how: Fusion) -> FloatArray:
    """Return the fused score of each document of the runs with a weight above 0."""
    tasks = (_Task(block, scores, how) for block, scores in inputs)
    return np.concatenate([np.zeros(0), *map(METHODS[how.method].function, tasks)])


# ---- arguments


def _number(word: str, value: Any, low: float, high: float) -> float:
    number = math.nan if isinstance(value, bool | str) else to_float(value)
    if not low <= number <= high:
        raise InputError(
            f"{word}={value!r:.60} is not valid", where="fuse", fix=f"{word} is a number from {low:g} to {high:g}"
        )
    return number


def _phi(value: Any) -> float:
    phi = _number("phi", value, 0, 1)
    if phi in {0, 1}:
        raise InputError(f"phi={value!r} is not valid", where="fuse", fix="phi is a number between 0 and 1")
    return phi


def _weights(raw_weights: Any, runs: Sequence[str]) -> tuple[float, ...] | None:
    if raw_weights is None:
        return None
    if isinstance(raw_weights, Mapping):
        twice = next((name for name in runs if list(runs).count(name) > 1), None)
        if twice is not None:
            raise InputError(f"duplicate run name {twice!r}", where="weights", fix="pass weights in a list")
        if set(raw_weights) != set(runs):
            raise InputError(
                f"got weights for {', '.join(map(str, raw_weights)) or 'no run'}",
                where="weights",
                fix=f"pass one for each of: {', '.join(runs)}",
            )
        raw_weights = [raw_weights[name] for name in runs]
    if isinstance(raw_weights, str) or not isinstance(raw_weights, Iterable):
        raise InputError(
            f"got {raw_weights!r:.60} for the weights",
            where="weights",
            fix="pass a list of numbers, or {run name: number}",
        )
    weights = tuple(_number("a weight", weight, 0, _MOST) for weight in raw_weights)
    if len(weights) != len(runs):
        raise InputError(
            f"got {many(len(weights), 'weight')} for {many(len(runs), 'run')}",
            where="weights",
            fix=f"pass one for each of: {', '.join(runs)}",
        )
    if not any(weights):
        raise InputError("all weights are 0", where="weights", fix="give one run a weight above 0")
    return weights


# ---- normalization of scores


def _normalized(table: PairTable, norm: str) -> FloatArray:
    """Return the scores of a run in rank order, normalized per query."""
    values = table.values
    if len(values) and float(np.abs(values).max()) > _MOST:
        raise InputError(
            f"a score is beyond {_MOST:g}, where sums overflow",
            where=table.source,
            fix="use a smaller scale, or a method based on ranks, such as rrf",
        )
    if norm == "none":
        return values
    query = table.query_numbers()
    sizes = np.diff(table.offsets)
    if norm == "rank":
        place = np.arange(len(values)) - table.offsets[query]
        return 1 - place / sizes[query]
    lowest = values[table.offsets[query + 1] - 1]
    span = values[table.offsets[query]] - lowest
    flat = span == 0
    # Relative to the span, squares cannot underflow.
    shares = (values - lowest) / np.where(flat, 1.0, span)
    if norm == "min-max":
        return np.where(flat, 1.0, shares)
    totals = np.bincount(query, weights=shares, minlength=len(sizes))
    if norm == "sum":
        return np.where(flat, 1 / sizes[query], shares / np.where(flat, 1.0, totals[query]))
    apart = shares - (totals / np.maximum(sizes, 1))[query]
    squares = np.bincount(query, weights=apart * apart, minlength=len(sizes))
    deviation = np.sqrt(squares / np.maximum(sizes, 1))[query]
    return np.where(flat, 0.0, apart / np.where(flat, 1.0, deviation))


# ---- methods: from a block to a score per document


@dataclass(frozen=True, eq=False)
class _Task:
    """Input of a method."""

    block: Block
    scores: FloatArray  # (U, R) normalized scores
    how: Fusion

    @property
    def weights(self) -> FloatArray:
        """(R,) weights above 0."""
        return np.array([weight for weight in self.how.weights or [1.0] * self.scores.shape[1] if weight > 0])

    @property
    def count(self) -> IntArray:
        """(U,) number of runs that retrieved each document."""
        return np.count_nonzero(self.block.present, axis=1)

    @property
    def known(self) -> FloatArray:
        """(U, R) normalized scores; NaN for documents missing from a run."""
        return np.where(self.block.present, self.scores, np.nan)


def _rrf(task: _Task) -> FloatArray:
    ranks = np.arange(task.block.rank.max(initial=1) + 1) + float(task.how.k or 0)
    ranks[0] = 1
    high, low = quotient(task.weights, ranks[:, None])
    # Rank 0 represents a missing document.
    high[0] = low[0] = 0
    return total(high.take(task.block.cells), low.take(task.block.cells))


def _isr(task: _Task) -> FloatArray:
    present = task.block.present
    squares = np.where(present, task.block.rank, 1).astype(np.float64) ** 2
    return total(*quotient(present.astype(np.float64) * task.count[:, None], squares))


def _rbc(task: _Task) -> FloatArray:
    phi = float(task.how.phi or 0)
    # Rank 0 represents a missing document.
    terms = np.array([0.0, *((1 - phi) * phi**rank for rank in range(int(task.block.rank.max(initial=1))))])
    return total(terms[task.block.rank], weights=task.weights)


def _borda(task: _Task) -> FloatArray:
    block = task.block
    sizes = block.sizes[block.query][:, None]
    retrieved = block.retrieved[block.query]
    points = np.where(block.present, sizes - block.rank + 1.0, (sizes - retrieved + 1) / 2)
    # A run without the query has no vote.
    return total(np.where(retrieved > 0, points, 0.0), weights=task.weights)


def _condorcet(task: _Task) -> FloatArray:
    block = task.block
    votes = _votes(task.weights)
    ends = offsets_of(block.sizes).tolist()
    kind = np.int16 if block.rank.max(initial=0) < np.iinfo(np.int16).max else np.int32
    ranks = np.where(block.present, block.rank, np.iinfo(kind).max).astype(kind).T
    result = np.zeros(len(block.rank))
    for first, stop in itertools.pairwise(ends):
        inside = np.ascontiguousarray(ranks[:, first:stop])
        step = max(1, _PAIRS // max(1, stop - first))
        for start in range(0, stop - first, step):
            some = slice(start, min(start + step, stop - first))
            result[first + some.start : first + some.stop] = _pairwise_wins(inside, some, votes)
    return result


def _pairwise_wins(ranks: npt.NDArray[Any], some: slice, votes: npt.NDArray[Any]) -> IntArray:
    """Return the number of documents that each beats minus the number of those that beat it."""
    balance = np.zeros((some.stop - some.start, ranks.shape[1]), dtype=votes.dtype)
    for of_run, vote in zip(ranks, votes, strict=True):
        mine = of_run[some, None]
        ahead = (mine < of_run).view(np.int8) - (mine > of_run).view(np.int8)
        balance += vote * ahead
    return np.count_nonzero(balance > 0, axis=1) - np.count_nonzero(balance < 0, axis=1)


def _votes(weights: FloatArray) -> npt.NDArray[Any]:
    """Return integer weights in exact decimal proportion: 0.1 and 0.2 add up to 0.3."""
    parts = [Fraction(repr(weight)) for weight in weights.tolist()]
    scale = Fraction(math.lcm(*(part.denominator for part in parts)), math.gcd(*(part.numerator for part in parts)))
    whole = [int(part * scale) for part in parts]
    if sum(whole) >= _VOTES:
        raise InputError(
            "weights with this many digits cannot be counted as votes",
            where="weights",
            fix="round them to a few digits",
        )
    return np.array(whole, dtype=np.int8 if sum(whole) < 128 else np.int64)


@dataclass(frozen=True)
class _Method:
    """A method: its function, parameters, and description."""

    function: Callable[[_Task], FloatArray]
    reads: tuple[str, ...]
    meaning: str


METHODS: Mapping[str, _Method] = MappingProxyType(
    {
        "rrf": _Method(_rrf, ("weights", "k"), "the sum of 1 / (k + rank)"),
        "isr": _Method(_isr, (), "the sum of 1 / rank^2, times the number of runs that have the document"),
        "rbc": _Method(_rbc, ("weights", "phi"), "rank-biased centroids: the sum of phi^(rank - 1)"),
        "borda": _Method(_borda, ("weights",), "points by rank, one more for each higher rank"),
        "condorcet": _Method(_condorcet, ("weights",), "pairwise majority votes"),
        "combsum": _Method(lambda task: total(task.scores), ("norm",), "the sum of the scores"),
        "combmnz": _Method(
            lambda task: total(*product(task.scores, task.count[:, None].astype(np.float64))),
            ("norm",),
            "the sum of the scores times the number of runs that have the document",
        ),
        "combanz": _Method(
            lambda task: total(task.scores) / task.count,
            ("norm",),
            "the mean of the scores in the runs that have the document",
        ),
        "combmin": _Method(lambda task: np.nanmin(task.known, axis=1), ("norm",), "the lowest score"),
        "combmax": _Method(lambda task: np.nanmax(task.known, axis=1), ("norm",), "the highest score"),
        "combmed": _Method(lambda task: np.nanmedian(task.known, axis=1), ("norm",), "the median of the scores"),
        "wsum": _Method(
            lambda task: total(task.scores, weights=task.weights),
            ("norm", "weights"),
            "the weighted sum of the scores",
        ),
    }
)
FUSION_METHODS: Mapping[str, str] = MappingProxyType({name: method.meaning for name, method in METHODS.items()})
FUSION_NORMS: Mapping[str, str] = MappingProxyType(
    {
        "min-max": "from 0 for the lowest score to 1 for the highest",
        "z-score": "in standard deviations from the mean",
        "sum": "shares of the sum, after subtracting the lowest",
        "rank": "from 1 at the first rank, in equal steps down",
        "none": "unchanged",
    }
)
