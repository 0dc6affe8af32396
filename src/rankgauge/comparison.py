"""``compare()`` and what it returns: which run is better, by how much, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from rankgauge import stats
from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation import Evaluation, evaluate
from rankgauge.kernels.measure import Measure, parse, parse_all
from rankgauge.model import Qrels, Run, Ties
from rankgauge.notes import many
from rankgauge.render import Table, to_html
from rankgauge.table import FloatArray

__all__ = ["COMPARED", "Comparison", "Difference", "compare"]

Test: TypeAlias = Literal["randomisation", "t", "wilcoxon"]
Correction: TypeAlias = Literal["holm", "bonferroni", "benjamini-hochberg"]
Verdict: TypeAlias = Literal["better", "worse", "cannot tell", "borderline", "identical"]

COMPARED = (
    "nDCG@10",
    *(f"{name}@{k}" for name in ("P", "R", "Success", "nDCG") for k in (1, 3, 5)),
    *(f"{name}@10" for name in ("P", "R", "Success")),
    "RR",
)
_ALPHA = 0.05
_FEW_QUERIES = 25
# With fewer changed queries no two-sided p can be below .05: the smallest is 2 / 2^m.
_FEW_CHANGES = 6
_HOLES = 0.05
_MOSTLY_ONE = 0.5
# Values are sums of a few products; what is nearer than this is the same value.
_SAME = 1e-12
_CORRECTIONS = {
    "holm": stats.holm,
    "bonferroni": stats.bonferroni,
    "benjamini-hochberg": stats.benjamini_hochberg,
}


@dataclass(frozen=True)
class Difference:
    """A run against the baseline by one measure, query by query.

    Attributes:
        run: The run.
        measure: The measure.
        mean: Its mean for the run.
        baseline_mean: Its mean for the baseline.
        difference: The mean of the differences per query, run minus baseline.
        low: Lower end of the 95 % confidence interval of the difference (paired t).
        high: Upper end.
        p: Two-sided p-value; None where the measure is only described.
        corrected: The same, corrected for everything that was tested.
        effect: Mean over standard deviation of the differences (d_z).
        wins: Queries in which the run has the better value.
        ties: Queries in which both have the same.
        losses: Queries in which the baseline has the better value.
        verdict: ``better``, ``worse``, ``cannot tell``, ``borderline`` (interval and p-value
            disagree about zero) or ``identical``; None where the measure is only described.
    """

    run: str
    measure: Measure
    mean: float
    baseline_mean: float
    difference: float
    low: float
    high: float
    p: float | None
    corrected: float | None
    effect: float
    wins: int
    ties: int
    losses: int
    verdict: Verdict | None


@dataclass(frozen=True, repr=False)
class Comparison:
    """Runs side by side, and what can be said about their differences.

    Made by :func:`compare`. Shows itself as tables in a notebook.

    Attributes:
        evaluations: One for each run, in the order given.
        baseline: The run the others are held against.
        tested: The measures whose differences are tested; the first is the primary one.
        differences: One for each other run and measure, by run.
        test: The test.
        correction: How p-values were corrected.
        seed: What random draws started from: derived from the values.
        draws: How many draws.
        sentences: What can be said, and what cannot.
        warnings: What speaks against taking the numbers as they stand.
    """

    evaluations: tuple[Evaluation, ...]
    baseline: str
    tested: tuple[Measure, ...]
    differences: tuple[Difference, ...]
    test: Test
    correction: Correction
    seed: int
    draws: int
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def primary(self) -> Measure:
        """The measure that decides."""
        return self.tested[0]

    def difference(self, run: str, measure: str | Measure | None = None) -> Difference:
        """One run against the baseline, by the primary measure if none is named.

        Raises:
            InputError: If there is no such run or measure in the comparison.
        """
        wanted = self.primary if measure is None else parse(measure)
        for found in self.differences:
            if found.run == run and found.measure == wanted:
                return found
        runs = ", ".join(dict.fromkeys(found.run for found in self.differences))
        raise InputError(
            f"{run!r} by {wanted} was not compared with {self.baseline!r}",
            fix=f"compared are {runs}, by {', '.join(map(str, self.evaluations[0].measures))}",
        )

    def table(self) -> Table:
        """Measures down, runs across, the best value of each measure marked."""
        means = [evaluation.mean() for evaluation in self.evaluations]
        measures = self.evaluations[0].measures
        rows = [[mean[str(measure)] for mean in means] for measure in measures]
        best = {
            (place, column + 1)
            for place, (measure, row) in enumerate(zip(measures, rows, strict=True))
            for column in _best(measure, row)
        }
        return Table(
            columns=("measure", *(evaluation.run_name for evaluation in self.evaluations)),
            rows=tuple((str(m), *row) for m, row in zip(measures, rows, strict=True)),
            best=frozenset(best) if len(means) > 1 else frozenset(),
        )

    def differences_table(self, *, described: bool = True) -> Table:
        """One line for each run and measure against the baseline, with the sentences below.

        Args:
            described: Whether measures that are not tested have a line, too.
        """
        rows = tuple(_line(d) for d in self.differences if described or d.verdict is not None)
        return Table(
            columns=(
                "run",
                "measure",
                "difference",
                "95 % interval",
                "effect",
                "win/tie/loss",
                f"p ({self.correction})",
                "verdict",
            ),
            rows=rows,
            title=f"against {self.baseline}",
            notes=(*self.sentences, *(f"WARNING: {text}" for text in self.warnings), self._how()),
        )  # fmt: skip

    def _how(self) -> str:
        names = ", ".join(map(str, self.tested))
        drawn = f", {self.draws:,} draws, seed {self.seed}" if self.test == "randomisation" else ""
        return (
            f"tested: {names}, two-sided, paired {self.test}{drawn}, corrected by "
            f"{self.correction}; the other measures are described only"
        )

    def _repr_html_(self) -> str:
        return to_html(self.table()) + to_html(self.differences_table())

    def __repr__(self) -> str:
        runs = ", ".join(evaluation.run_name for evaluation in self.evaluations)
        return f"<Comparison of {runs} by {self.primary}>"


def compare(
    qrels: Any,
    runs: Mapping[str, Any] | Iterable[Any],
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    baseline: str | None = None,
    tested: str | Measure | Iterable[str | Measure] | None = None,
    test: Test = "randomisation",
    correction: Correction = "holm",
    draws: int = 10_000,
    ties: Ties = "trec",
) -> Comparison:
    """Compare runs with a baseline, query by query.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` takes.
        runs: At least two: a mapping of name to run, or runs with names of their own. Each is
            anything that :meth:`Run.of` takes.
        measures: What is shown; P, R, Success and nDCG at 1, 3, 5, 10 and RR if left out.
        baseline: The name of the run the others are held against; the first if left out.
        tested: The measures whose differences are tested, declared before looking; the first of
            `measures` (nDCG@10) alone if left out.
        test: ``randomisation`` (sign flips; exact when few queries differ), ``t``, or
            ``wilcoxon`` (which does not test the mean).
        correction: ``holm``, ``bonferroni`` or ``benjamini-hochberg``, over runs and tested
            measures.
        draws: Random sign patterns of the randomisation test.
        ties: Order of documents with equal scores.

    Returns:
        Means side by side, differences with intervals and p-values, and sentences.

    Raises:
        InputError: With fewer than two runs, two of one name, or fewer than two queries.
        UnknownName: For a baseline, measure or choice nobody knows.

    Example:
        >>> qrels = {f"q{n}": {"d1": 1} for n in range(8)}
        >>> a = {f"q{n}": ["d1", "x"] for n in range(8)}
        >>> b = {f"q{n}": ["x", "d1"] for n in range(8)}
        >>> found = compare(qrels, {"old": b, "new": a}, "RR").difference("new")
        >>> found.difference, found.p, found.verdict
        (0.5, 0.0078125, 'better')
    """
    if test not in get_args(Test):
        raise UnknownName(
            f"test={test!r} is not possible", fix=f"choose one of: {', '.join(get_args(Test))}"
        )
    if correction not in _CORRECTIONS:
        raise UnknownName(
            f"correction={correction!r} is not possible",
            fix=f"choose one of: {', '.join(_CORRECTIONS)}",
        )
    truth = Qrels.of(qrels)
    named = _named(runs)
    shown = _measures(COMPARED if measures is None else measures)
    declared = (shown[0],) if tested is None else _measures(tested)
    wanted = tuple(dict.fromkeys([*declared, *shown]))
    evaluations = tuple(evaluate(truth, run, wanted, ties=ties) for run in named)
    names = [run.name for run in named]
    base = names[0] if baseline is None else baseline
    if base not in names:
        raise UnknownName(f"no run is called {base!r}", fix=f"runs are: {', '.join(names)}")
    if len(evaluations[0].query_ids) < 2:
        raise InputError(
            "one query is no ground for a comparison", where="judgments", fix="judge more queries"
        )
    seed = stats.seed_of(*(evaluation.per_query for evaluation in evaluations))
    work = _Pairs(evaluations, base, declared, test, correction, draws, seed)
    differences = tuple(work.differences())
    return Comparison(
        evaluations=evaluations,
        baseline=base,
        tested=declared,
        differences=differences,
        test=test,
        correction=correction,
        seed=seed,
        draws=draws,
        sentences=tuple(_sentences(evaluations, base, declared[0], differences)),
        warnings=tuple(_warnings(evaluations, base, declared[0], truth=truth, runs=named)),
    )


def _named(runs: Any) -> list[Run]:
    if isinstance(runs, Mapping):
        named = [Run.of(run, name=str(name)) for name, run in runs.items()]
    elif isinstance(runs, Iterable) and not isinstance(runs, str):
        named = [Run.of(run) for run in runs]
    else:
        raise InputError(
            f"got {type(runs).__name__} where runs were wanted",
            fix='give them by name: {"bm25": run_a, "dense": run_b}',
        )
    names = [run.name for run in named]
    if len(named) < 2:
        raise InputError(
            f"got {many(len(named), 'run')}, wanted two or more", where="runs", fix="give another"
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            f"two runs are called {twice!r}", where="runs",
            fix='name them: {"first": run_a, "second": run_b}',
        )  # fmt: skip
    return named


def _measures(given: str | Measure | Iterable[str | Measure]) -> tuple[Measure, ...]:
    names = (given,) if isinstance(given, str | Measure) else given
    found = tuple(dict.fromkeys(measure for name in names for measure in parse_all(name)))
    if not found:
        raise InputError("no measure was asked for", where="measures", fix='name one: "nDCG@10"')
    return found


def _paired(one: Evaluation, other: Evaluation, measure: Measure) -> FloatArray:
    """Differences by query, one minus other; undefined counts 0 as in the mean, or is left out."""
    column = one.measures.index(measure)
    apart = (one.per_query[:, column], other.per_query[:, column])
    if measure.declaration.undefined == "skip":
        both = ~np.isnan(apart[0]) & ~np.isnan(apart[1])
        result: FloatArray = apart[0][both] - apart[1][both]
    else:
        result = np.nan_to_num(apart[0], nan=0.0) - np.nan_to_num(apart[1], nan=0.0)
    result[np.abs(result) <= _SAME] = 0.0
    return result


@dataclass(frozen=True)
class _Pairs:
    """Every run against the baseline."""

    evaluations: tuple[Evaluation, ...]
    base: str
    tested: tuple[Measure, ...]
    test: Test
    correction: Correction
    draws: int
    seed: int

    def differences(self) -> Iterator[Difference]:
        base = next(e for e in self.evaluations if e.run_name == self.base)
        others = [e for e in self.evaluations if e.run_name != self.base]
        asked = [(other, measure) for other in others for measure in self.tested]
        raw = [self._p(_paired(other, base, measure)) for other, measure in asked]
        fixed = _CORRECTIONS[self.correction](raw).tolist()
        found = {
            (other.run_name, measure): (p, q)
            for (other, measure), p, q in zip(asked, raw, fixed, strict=True)
        }
        for other in others:
            for measure in base.measures:
                p, corrected = found.get((other.run_name, measure), (None, None))
                yield _difference(base, other, measure, p=p, corrected=corrected)

    def _p(self, apart: FloatArray) -> float:
        if len(apart) < 2 or not apart.any():
            return 1.0
        if self.test == "t":
            return stats.t_test(apart).p
        if self.test == "wilcoxon":
            return stats.wilcoxon(apart).p
        return float(stats.randomisation_test(apart, self.draws, self.seed).p[0])


def _difference(
    base: Evaluation,
    other: Evaluation,
    measure: Measure,
    *,
    p: float | None,
    corrected: float | None,
) -> Difference:
    apart = _paired(other, base, measure)
    gains = -apart if measure.declaration.better == "lower" else apart
    low = high = float(apart.mean()) if len(apart) else 0.0
    if len(apart) >= 2:
        interval = stats.t_interval(apart)
        low, high = interval.low, interval.high
    mean = math.fsum(apart.tolist()) / len(apart) if len(apart) else 0.0
    return Difference(
        run=other.run_name,
        measure=measure,
        mean=other.mean()[str(measure)],
        baseline_mean=base.mean()[str(measure)],
        difference=mean,
        low=low,
        high=high,
        p=p,
        corrected=corrected,
        effect=stats.effect_size(apart) if len(apart) >= 2 else 0.0,
        wins=int((gains > 0).sum()),
        ties=int((gains == 0).sum()),
        losses=int((gains < 0).sum()),
        verdict=None
        if corrected is None
        else _verdict(apart, gains, corrected, sure_by_interval=low > 0 or high < 0),
    )


def _verdict(
    apart: FloatArray, gains: FloatArray, corrected: float, *, sure_by_interval: bool
) -> Verdict:
    if not apart.any():
        return "identical"
    if (corrected < _ALPHA) != sure_by_interval:
        return "borderline"
    if not sure_by_interval:
        return "cannot tell"
    return "better" if gains.mean() > 0 else "worse"


def _best(measure: Measure, row: Sequence[float]) -> list[int]:
    better = measure.declaration.better
    known = [value for value in row if not math.isnan(value)]
    if better == "neither" or not known:
        return []
    best = max(known) if better == "higher" else min(known)
    return [place for place, value in enumerate(row) if abs(value - best) <= _SAME]


def _line(found: Difference) -> tuple[str | float | None, ...]:
    return (
        found.run,
        str(found.measure),
        f"{found.difference:+.3f}",
        f"{found.low:+.3f} to {found.high:+.3f}",
        f"{found.effect:+.2f}",
        f"{found.wins}/{found.ties}/{found.losses}",
        None if found.corrected is None else f"{found.corrected:.4f}",
        found.verdict or "",
    )


def _sentences(
    evaluations: Sequence[Evaluation], base: str, primary: Measure, found: Sequence[Difference]
) -> Iterator[str]:
    means = {e.run_name: e.mean()[str(primary)] for e in evaluations}
    names = list(means)
    best = [names[place] for place in _best(primary, list(means.values()))]
    word = "lowest" if primary.declaration.better == "lower" else "highest"
    which = " and ".join(best)
    verb = "has" if len(best) == 1 else "have"
    decisive = {d.run: d for d in found if d.measure == primary}
    unsure = [run for run, d in decisive.items() if d.verdict not in {"better", "worse"}]
    text = f"{which} {verb} the {word} {primary} ({means[best[0]]:.4f})"
    if base in best and unsure:
        text += f"; not distinguishable from {', '.join(run for run in unsure if run not in best)}"
    elif base not in best and all(run in unsure for run in best):
        text += f"; not distinguishable from {base}"
    yield text.removesuffix("; not distinguishable from ")
    for run, d in decisive.items():
        yield _said(run, base, d, len(evaluations[0].query_ids))


def _said(run: str, base: str, d: Difference, queries: int) -> str:
    spread = f"difference {d.difference:+.3f}, interval {d.low:+.3f} to {d.high:+.3f}"
    if d.verdict == "identical":
        return f"{run} and {base}: identical by {d.measure} in every query"
    if d.verdict in {"better", "worse"}:
        return f"{run} is {d.verdict} than {base} by {d.measure}: {spread}"
    word = (
        "borderline (interval and p-value disagree)" if d.verdict == "borderline" else "cannot tell"
    )
    text = f"{run} against {base} by {d.measure}: {spread}: {word}"
    sd = abs(d.difference / d.effect) if d.effect and math.isfinite(d.effect) else 0.0
    if sd:
        seen = stats.detectable_difference(sd, queries)
        text += f"; {many(queries, 'query')} show a difference of {seen:.3f} or more"
        if abs(d.difference) > _SAME:
            needed = stats.queries_needed(sd, abs(d.difference))
            text += f", one of this size needs about {needed:,} queries"
    return text


def _warnings(
    evaluations: Sequence[Evaluation],
    base: str,
    primary: Measure,
    *,
    truth: Qrels,
    runs: Sequence[Run],
) -> Iterator[str]:
    queries = len(evaluations[0].query_ids)
    if queries < _FEW_QUERIES:
        yield f"{many(queries, 'query')} are few: intervals are wide and one query weighs much"
    cut = int(dict(primary.params).get("k") or 10)  # type: ignore[arg-type] # k is a number
    depth = {run.name: int(np.diff(run.table.offsets).max(initial=0)) for run in runs}
    if len(set(depth.values())) > 1:
        said = ", ".join(f"{name} {most}" for name, most in depth.items())
        yield f"different depths ({said}): measures without a cut-off favour the deeper run"
    bounded = "k" in dict(primary.params)
    shallow = [name for name, most in depth.items() if bounded and most < cut]
    if shallow:
        yield f"{', '.join(shallow)}: no ranking reaches rank {cut}, where {primary} is cut"
    judged = {run.name: evaluate(truth, run, f"Judged@{cut}").mean() for run in runs}
    shares = {name: next(iter(mean.values())) for name, mean in judged.items()}
    if max(shares.values()) - min(shares.values()) > _HOLES:
        said = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
        yield (
            f"Judged@{cut} differs ({said}): what is not judged counts as not relevant, which is "
            "unfair to the run with more of it"
        )
    reference = next(e for e in evaluations if e.run_name == base)
    for evaluation in evaluations:
        if evaluation.run_name == base:
            continue
        apart = np.abs(_paired(evaluation, reference, primary))
        changed = int(np.count_nonzero(apart))
        if 0 < changed < _FEW_CHANGES:
            yield (
                f"{evaluation.run_name}: only {many(changed, 'query')} differ by {primary}; no "
                "test can be sure with so few: look at them one by one"
            )
        elif changed and apart.max() > _MOSTLY_ONE * math.fsum(apart.tolist()):
            query = evaluation.query_ids[int(apart.argmax())]
            yield f"{evaluation.run_name}: query {query!r} alone carries most of the difference"
