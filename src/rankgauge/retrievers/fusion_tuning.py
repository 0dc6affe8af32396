"""Tuning of fusion parameters on queries other than those to fuse."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from rankgauge.core.arguments import choice, integer, known_name, of_kind
from rankgauge.core.ids import IntArray, id_bytes, show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.core.policies import Order
from rankgauge.core.text import many
from rankgauge.data.alignment import Alignment, Block, align
from rankgauge.data.join import Joined, find_judged, join, ranked
from rankgauge.data.judged_run import Values
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.data.subsets import drawn, given_ids, of_queries, only
from rankgauge.errors import InputError, MismatchError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure, parse_directed
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table
from rankgauge.retrievers.fusion import (
    FUSION_NORMS,
    METHODS,
    Fusion,
    fuse_aligned,
    fused_scores,
    inputs_of,
    parameter_text,
    rank_runs,
)

_GRIDS: Mapping[str, list[Any]] = {
    "k": [60, 20, 100, 10, 200, 5, 500, 1],
    "phi": [0.8, 0.9, 0.7, 0.95, 0.6, 0.98, 0.5, 0.99],
    "norm": [norm for norm in FUSION_NORMS if norm != "none"],
}
_WORDS = ("norm", "weights", "k", "phi")
_MANY = 2000
_FEW = 20
_SHOWN = 10


@dataclass(frozen=True)
class Fold:
    """Queries that were fused with parameters chosen on other queries.

    Attributes:
        chosen: The parameters.
        train: The queries that the parameters were chosen on.
        test: The queries that were fused with the parameters.
        train_value: The mean over `train`, which is optimistic.
        test_value: The mean over `test`.
    """

    chosen: Fusion
    train: tuple[str, ...]
    test: tuple[str, ...]
    train_value: float
    test_value: float


@dataclass(frozen=True, repr=False)
class TunedFusion(Result):
    """A fused run whose parameters were chosen, for each query, on other queries.

    Returned by :func:`tune_fusion`. Notebooks display it as a table.

    Attributes:
        run: The fused run.
        measure: The measure that was optimized.
        candidates: All combinations of parameters, in the order of the grid.
        folds: The parameters chosen for each fold.
        seed: The seed of the folds; None for a fixed list of training queries.
        evaluation: The evaluation of the fused run over the test queries of all folds.
        others: The means of the first candidate and of each input run over the same queries, by
            name.
        sentences: Sentences on the tuning and the result.
        warnings: Warnings about the result.
    """

    run: Run
    measure: Measure
    candidates: tuple[Fusion, ...]
    folds: tuple[Fold, ...]
    seed: int | None
    evaluation: Evaluation
    others: Mapping[str, float]
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]

    def table(self) -> Table:
        """Return a table with a row per fold and the conclusions as notes."""
        return Table(
            columns=("fold", "train", "parameters", f"{self.measure}, train", "test", f"{self.measure}, test"),
            rows=tuple(
                (number, len(fold.train), str(fold.chosen), fold.train_value, len(fold.test), fold.test_value)
                for number, fold in enumerate(self.folds, start=1)
            ),
            title=self.run.name,
            notes=(*self.sentences, *(f"WARNING: {text}" for text in self.warnings)),
        )


def weight_grid(runs: int, step: float = 0.1) -> tuple[tuple[float, ...], ...]:
    """Return all weights that sum to 1 in equal steps, most uniform first.

    Args:
        runs: Number of runs.
        step: The step, 1 divided by an integer.

    Raises:
        InputError: If the step does not divide 1, or the grid would have more than 2,000 points.

    Example:
        >>> weight_grid(2, 0.25)
        ((0.5, 0.5), (0.75, 0.25), (0.25, 0.75), (1.0, 0.0), (0.0, 1.0))
    """
    parts = round(1 / step) if 0 < step <= 1 else 0
    if runs < 2 or not parts or abs(parts * step - 1) > 1e-9:
        raise InputError(
            f"no grid of weights for {many(runs, 'run')} in steps of {step}",
            where="grid",
            fix="pass two runs or more, and a step such as 0.1, 0.05, or 0.25",
        )
    points = math.comb(parts + runs - 1, runs - 1)
    if points > _MANY:
        raise InputError(
            f"{points:,} choices of weights for {runs} runs in steps of {step} are too many",
            where="grid",
            fix=f"take wider steps, or pass a list of at most {_MANY:,}",
        )
    places = parts + runs - 1
    # Bars among stars: the stars between two bars are the parts of a run.
    grid = [
        tuple(stop - start - 1 for start, stop in itertools.pairwise((-1, *bars, places)))
        for bars in itertools.combinations(range(places), runs - 1)
    ]
    grid.sort(key=lambda counts: (max(abs(count * runs - parts) for count in counts), [-count for count in counts]))
    return tuple(tuple(count / parts for count in counts) for counts in grid)


def tune_fusion(
    qrels: Any,
    runs: Mapping[str, Any] | Iterable[Any],
    measure: str | Measure = "nDCG@10",
    *,
    method: str = "rrf",
    grid: Mapping[str, Iterable[Any]] | None = None,
    folds: int = 5,
    train: Any = None,
    seed: int = 0,
    ties: Order = "trec",
) -> TunedFusion:
    """Fuse runs with parameters tuned on other queries.

    With cross-validation, the judged queries are split into folds; each fold is fused with the
    parameters that are best on the others. With `train`, parameters are chosen on these queries,
    and the fused run contains only the others. Unjudged queries are fused with the parameters that
    are best on all training queries.

    Folds depend on the query ids and the seed (by SHA-256), not on the order of queries. Among
    candidates with equal means, the first in the grid is chosen.

    Args:
        qrels: The judgments, in any form accepted by :meth:`Qrels.of`.
        runs: At least two runs, as for :func:`fuse`.
        measure: The measure to optimize.
        method: One of `FUSION_METHODS`.
        grid: Parameter (``norm``, ``weights``, ``k``, ``phi``) to the values to try, in every
            combination; a single value fixes the parameter. Defaults: for ``rrf``, k from 1 to 500;
            for ``rbc``, phi from 0.5 to 0.99; for ``wsum``, weights in steps of 0.1 (see
            :func:`weight_grid`); for the other score-based methods, all norms except ``none``.
        folds: Number of folds.
        train: The ids of the training queries, or the path of a file with one id per line; replaces
            cross-validation.
        seed: The seed of the folds.
        ties: Order of documents with equal scores.

    Raises:
        InputError: If the grid is empty, or there are too few queries for the folds.
        MismatchError: If judgments and runs have no query in common.
        UnknownName: For an unknown method, measure, or parameter.

    Example:
        >>> qrels = {f"q{n}": {"d1"} for n in range(6)}
        >>> good, bad = {q: ["d1", "x"] for q in qrels}, {q: ["x", "y", "d1"] for q in qrels}
        >>> tuned = tune_fusion(qrels, {"good": good, "bad": bad}, "RR", method="wsum", folds=2)
        >>> tuned.folds[0].chosen, tuned.evaluation.mean()
        (Fusion(method='wsum', norm='min-max', weights=(0.6, 0.4), k=None, phi=None), {'RR': 1.0})
    """
    truth = Qrels.of(qrels)
    wanted = parse_directed(measure)
    named = rank_runs(runs, ties)
    names = [run.name for run in named]
    candidates = _candidates(method, names, grid)
    if set().union(*(run.query_index for run in named)).isdisjoint(truth.query_index):
        raise MismatchError(
            "judgments and runs have no query in common",
            where="tune_fusion",
            fix="pass judgments of the queries that the runs have",
        )
    splits = _folds(truth, folds, seed) if train is None else [_fixed_split(truth, train)]
    search = _Search(truth, wanted, tuple(named), candidates)
    queries = [query for _, test in splits for query in test]
    others = {}
    for place, input_run in enumerate(named, start=1):
        label = f"{input_run.name} ({place})" if names.count(input_run.name) > 1 else input_run.name
        if not input_run.query_index.keys().isdisjoint(queries):
            (others[label],) = search.means(search.measured(join(truth, input_run, ties=ties))[:, None], queries)
    results = tuple(search.fold(*split) for split in splits)
    run, rest = search.run(results)
    evaluation = evaluate(truth, run, wanted, ties=ties, queries=sorted(queries, key=search.rows.__getitem__))
    others = {f"untuned {candidates[0]}": search.means(search.values, queries)[0], **others}
    mean = evaluation.mean()[str(wanted)]
    compared = ", ".join(f"{name} {value:.4f}" for name, value in others.items())
    return TunedFusion(
        run=run,
        measure=wanted,
        candidates=candidates,
        folds=results,
        seed=seed if train is None else None,
        evaluation=evaluation,
        others=others,
        sentences=(
            f"tried: {_grid_text(candidates)}",
            *_method_sentences(results, wanted, len(queries), seed if train is None else None),
            *([rest] if rest else []),
            f"{wanted} over {many(len(queries), 'query')} not used to choose it: {mean:.4f}; {compared}",
        ),
        warnings=(
            *_tuning_warnings(results, candidates),
            *(
                f"{name} has the higher {wanted} on the same queries"
                for name, value in others.items()
                if value != mean and wanted.best([mean, value]) == (1,)
            ),
        ),
    )


# ---- candidates


def _candidates(method: str, names: Sequence[str], grid: Any) -> tuple[Fusion, ...]:
    name = choice("fusion method", method, METHODS)
    of_kind("the grid", grid, Mapping | None, 'pass it as {"k": [10, 60, 100]}', where="grid")
    for word, values in (grid or {}).items():
        known_name("parameter of a fusion", word, _WORDS)
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InputError(
                f"got {values!r:.60} for {word}",
                where="grid",
                fix=f"pass a list; to fix the parameter, a list of one value: {{{word!r}: [...]}}",
            )
    lists = {word: list(values) for word, values in (grid or {}).items()}
    tuned = {"rrf": "k", "rbc": "phi", "wsum": "weights"}.get(name, "norm")
    tried: dict[str, list[Any]] = ({tuned: []} if tuned in METHODS[name].reads else {}) | lists
    if tuned in tried and tuned not in lists:
        tried[tuned] = [*weight_grid(len(names))] if tuned == "weights" else _GRIDS[tuned]
    if not tried:
        raise InputError(
            f"{name} has nothing to tune",
            where="tune_fusion",
            fix="pass a grid of weights" if "weights" in METHODS[name].reads else "fuse without tuning",
        )
    points = math.prod(len(values) for values in tried.values())
    if not 0 < points <= _MANY:
        raise InputError(f"the grid has {points:,} points", where="grid", fix=f"pass 1 to {_MANY:,} points")
    combinations = itertools.product(*tried.values())
    methods = [Fusion.of(name, names, dict(zip(tried, values, strict=True))) for values in combinations]
    return tuple(dict.fromkeys(methods))


# ---- folds


_Split: TypeAlias = tuple[list[bytes], list[bytes]]


def _folds(truth: Qrels, folds: int, seed: int) -> list[_Split]:
    """Return the training and test queries of each fold."""
    integer("folds", folds, least=None)
    integer("seed", seed, least=None)
    order = drawn(truth.query_index, seed)
    if not 2 <= folds <= len(order):
        some = f"from 2 to {len(order)}" if len(order) > 2 else "2"
        raise InputError(
            f"{many(len(order), 'judged query')} cannot be split into {many(folds, 'fold')}",
            where="tune_fusion",
            fix=f"choose {some} folds" if len(order) > 1 else "judge more queries",
        )
    return [
        ([query for place, query in enumerate(order) if place % folds != fold], order[fold::folds])
        for fold in range(folds)
    ]


def _fixed_split(truth: Qrels, train: Any) -> _Split:
    """Return the given training queries and all other judged queries."""
    training = {id_bytes(query, "query id") for query in given_ids(train)}
    chosen = [query for query in truth.query_index if query in training]
    others = [query for query in truth.query_index if query not in training]
    if not chosen or not others:
        text = "none of the training queries is judged" if not chosen else "no query is left"
        raise InputError(
            text if not chosen else f"{text} to fuse: all judged queries are training queries",
            where="train",
            fix=f"pass some, but not all, of the {len(truth)} judged queries",
        )
    return chosen, others


# ---- the search


@dataclass(frozen=True, eq=False)
class _Search:
    """Values of all candidate fusions of runs."""

    truth: Qrels
    measure: Measure
    runs: tuple[Run, ...]
    candidates: tuple[Fusion, ...]
    prepared: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def rows(self) -> dict[bytes, int]:
        """Row of each judged query in ``values``."""
        return {query: row for row, query in enumerate(self.truth.query_index)}

    @cached_property
    def judged(self) -> Alignment:
        """The runs restricted to judged queries."""
        return align([only(run, self.rows) for run in self.runs])

    @cached_property
    def values(self) -> Values:
        """(Q, C) value of each judged query for each candidate."""
        # Fused runs are ordered by score, then by id.
        joins = (
            join(self.truth, Run(self.fused(how)), ties="trec", judged=self.inputs(how)[2]) for how in self.candidates
        )
        return np.array([*map(self.measured, joins)]).T

    def fused(self, how: Fusion) -> PairTable:
        """Return the documents of judged queries with their fused scores."""
        aligned, inputs, _ = self.inputs(how)
        return aligned.table(fused_scores(inputs, how))

    def inputs(self, how: Fusion) -> tuple[Alignment, list[tuple[Block, Values]], tuple[IntArray, IntArray]]:
        """Return the used runs, their scores, and their judgments: the same for equal norms and used runs."""
        used = how.used(len(self.runs))
        key = how.norm, *used
        if key not in self.prepared:
            aligned = self.judged.of_runs(used)
            judged = find_judged(self.truth, aligned.table(np.zeros(len(aligned.docs))))
            self.prepared[key] = aligned, [*inputs_of(aligned, how.norm)], judged
        return self.prepared[key]

    def measured(self, joined: Joined) -> Values:
        """Return the value of each judged query."""
        values = np.empty(len(self.rows))
        for places, block in joined.blocks(np.arange(len(values))):
            values[places] = self.measure.values(block)
        return values

    def means(self, values: Values, queries: Iterable[bytes]) -> list[float]:
        """Return the mean of each column of (Q, C) values over these queries, in the order of the judgments."""
        rows = sorted(map(self.rows.__getitem__, queries))
        return [self.measure.mean(column, None, skip_undefined=False) for column in values[rows].T.tolist()]

    def best(self, means: Sequence[float]) -> int:
        """Return the number of the candidate with the best mean; the first of ties."""
        return int(np.argmax(np.nan_to_num(self.measure.improvements(np.array(means)), nan=-np.inf)))

    def fold(self, train: Sequence[bytes], test: Sequence[bytes]) -> Fold:
        means = self.means(self.values, train)
        best, names = self.best(means), dict(zip(self.rows, self.truth.query_ids, strict=True))
        return Fold(
            chosen=self.candidates[best],
            train=tuple(map(names.__getitem__, train)),
            test=tuple(map(names.__getitem__, test)),
            train_value=means[best],
            test_value=self.means(self.values, test)[best],
        )

    def run(self, folds: Sequence[Fold]) -> tuple[Run, str]:
        """Return the run of all folds, and a sentence about unjudged queries."""
        known = dict.fromkeys(query for run in self.runs for query in run.query_ids)
        trained = {query for fold in folds for query in fold.train}
        of_fold = {query: fold.chosen for fold in folds for query in fold.test}
        rest = [query for query in known if query not in trained and query not in of_fold]
        chosen, text = [fold.chosen for fold in folds], ""
        parts = [(how, self.fused(how)) for how in dict.fromkeys(chosen)]
        if rest:
            everything = [query for query in self.rows if show_id(query) in trained]
            overall = self.candidates[self.best(self.means(self.values, everything))]
            chosen.append(overall)
            of_fold |= dict.fromkeys(rest, overall)
            parts.append((overall, fuse_aligned(align([only(run, rest) for run in self.runs]), overall)))
            text = (
                f"{many(len(rest), 'query')} without judgments fused by {overall}, the best "
                f"on {many(len(everything), 'query')}"
            )
        row = itertools.count()
        numbered = ((how, query, next(row)) for how, part in parts for query in part.queries.shown())
        rows = {query: number for how, query, number in numbered if of_fold.get(query) is how}
        table = PairTable.joined([part for _, part in parts])
        table = of_queries(table, np.array([rows[query] for query in known if query in rows], dtype=np.int64))
        method = self.candidates[0].method
        settings = {
            "method": method,
            "tuned": str(self.measure),
            "chosen": [how.settings() for how in chosen],
            "runs": [run.name for run in self.runs],
        }
        return ranked(Run(replace(table, source=method), name=f"{method}-tuned", settings={"fusion": settings})), text


# ---- sentences


def _method_sentences(folds: Sequence[Fold], measure: Measure, tested: int, seed: int | None) -> Iterator[str]:
    if seed is None:
        yield (
            f"chosen on the {many(len(folds[0].train), 'query')} of --train; the run has only "
            "the others: evaluate it on these, not on all judged queries"
        )
    else:
        yield (
            f"{many(len(folds), 'fold')} of the {many(tested, 'judged query')}, seed {seed}: "
            f"each was fused with the best parameters by {measure} on the others, so no query "
            "was fused with parameters chosen on it"
        )
    if len(folds) > 1:
        counts = Counter(str(fold.chosen) for fold in folds)
        yield "chosen: " + ", ".join(f"{how} for {many(count, 'fold')}" for how, count in counts.most_common())


def _tuning_warnings(folds: Sequence[Fold], candidates: Sequence[Fusion]) -> Iterator[str]:
    fewest = min(len(fold.train) for fold in folds)
    if fewest < _FEW:
        yield f"{many(fewest, 'query')} are few for choosing parameters"
    for word in ("k", "phi"):
        tried = [getattr(how, word) for how in candidates]
        if len(set(tried)) < 2:
            continue
        ends = {min(tried), max(tried)} & {getattr(fold.chosen, word) for fold in folds}
        for end in sorted(ends):
            yield f"{word}={end:g} is an end of the grid: the best value may be outside"


def _grid_text(candidates: Sequence[Fusion]) -> str:
    """Describe the grid."""
    parts = []
    for word in _WORDS:
        values = dict.fromkeys(getattr(how, word) for how in candidates)
        shown = [parameter_text(value) for value in values if value is not None]
        if len(shown) > _SHOWN:
            shown = [*shown[:3], "...", shown[-1]]
        if shown:
            parts.append(f"{word} {', '.join(shown)}")
    return f"{many(len(candidates), 'choice')} for {candidates[0].method}: {'; '.join(parts)}"
