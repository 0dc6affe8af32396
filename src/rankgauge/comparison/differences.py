"""Differences between runs over queries: size, confidence interval, test, and verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, combinations, product
from statistics import NormalDist
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from rankgauge import stats
from rankgauge.core.arguments import option
from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.pair_table import FloatArray
from rankgauge.core.text import inflect, many
from rankgauge.errors import InputError
from rankgauge.evaluation.answer_judge import JudgeCorrection, comparable_means, correct_differences
from rankgauge.evaluation.result import Evaluation, of_answers
from rankgauge.measures.measure import Measure, one_of, parse
from rankgauge.stats.intervals import interval_around
from rankgauge.stats.resampling import SignFlips, query_keys

Test: TypeAlias = Literal["randomization", "t", "wilcoxon", "tukey-hsd"]
Correction: TypeAlias = Literal["holm", "bonferroni", "benjamini-hochberg", "max-t"]
Method: TypeAlias = Literal["conservative", "t", "percentile", "bca"]
Pairing: TypeAlias = Literal["baseline", "all"]
Verdict: TypeAlias = Literal["better", "worse", "higher", "lower", "cannot tell", "identical", "withheld"]

ALPHA = 0.05
# With m changed queries, the smallest two-sided p is 2 / 2^m: below 6 it exceeds 0.05.
FEW_CHANGES = 6
# No verdict if so few more failing queries could reverse it: docs/explain/interval-coverage.md.
FAILING = 2
_LEVEL = 0.95
FEWEST_FOR_INTERVAL = 8  # differing queries: docs/explain/interval-coverage.md
_NARROW = 0.002  # width below which three decimals are not enough
_POWER = NormalDist().inv_cdf(0.8)
_SMALL = 1e-3  # in standard deviations; detecting it takes 8 million queries
CORRECTIONS = {"holm": stats.holm, "bonferroni": stats.bonferroni, "benjamini-hochberg": stats.benjamini_hochberg}
# Verdicts that say that runs differ.
SURE = ("better", "worse", "higher", "lower")
_MIRRORED: dict[Verdict | None, Verdict] = {"better": "worse", "worse": "better", "higher": "lower", "lower": "higher"}
_Key: TypeAlias = tuple[str, str, Measure]


@dataclass(frozen=True)
class Difference:
    """Difference between two runs by one measure.

    Attributes:
        run: The run.
        baseline: The run that it is compared with.
        measure: The measure.
        mean: Mean of the run.
        baseline_mean: Mean of the baseline.
        difference: Mean over queries of run minus baseline; of natural logarithms if the mean of
            the measure is geometric.
        low: Lower bound of the confidence interval of the difference (95% in a comparison); NaN
            without an interval, see `no_interval`. There is none if half its width is below the
            largest possible difference divided by `queries` + 1: one more query could move the mean
            further, and intervals that narrow contain the true mean too rarely
            (docs/explain/interval-coverage.md).
        high: Upper bound.
        p: Two-sided p-value; None if the measure is not tested.
        corrected: The p-value corrected for all tests.
        sd: Standard deviation of the differences.
        effect: Effect size d_z: mean of the differences divided by their standard deviation.
        queries: Number of queries compared.
        wins: Number of queries in which the run has the better value (the higher value if the
            measure has no better direction).
        ties: Number of queries in which both runs have the same value.
        losses: Number of queries in which the baseline has the better value.
        verdict: ``better`` or ``worse`` (``higher`` or ``lower`` if the measure has no better
            direction) if the corrected p-value is below 0.05, at least 6 queries differ, the
            interval, if any, excludes 0, and `reversed_by` is above 2; otherwise ``cannot tell``.
            ``identical`` if queries were compared and none differs; ``withheld`` if a fault of the
            input invalidates a run, or the judge of its answers is not calibrated or not usable;
            None if the measure is not tested.
        alpha: Significance level of this test: 0.05 divided by the number of tests.
        unit: Absolute value of all nonzero differences, such as 1 for Success; None if they vary.
        condition: The assumption under which the difference is corrected for errors of the judge of
            answers; empty if it is not corrected.
        scale: Factor by which the correction enlarges the difference of a single query: the number
            of questions per labeled question, or 1 divided by the gain of the judge.
        by_judge: Whether the means, and without `condition` the difference, are those by the judge
            of answers, not corrected for its errors.
    """

    run: str
    baseline: str
    measure: Measure
    mean: float
    baseline_mean: float
    difference: float
    low: float
    high: float
    p: float | None
    corrected: float | None
    sd: float
    effect: float
    queries: int
    wins: int
    ties: int
    losses: int
    verdict: Verdict | None
    alpha: float = ALPHA
    unit: float | None = None
    condition: str = ""
    scale: float = 1.0
    by_judge: bool = False

    @property
    def no_interval(self) -> str:
        """Reason why there is no interval; empty if there is one."""
        if not math.isnan(self.low):
            return ""
        changed = self.wins + self.losses
        if not changed:
            return "no query differs" if self.queries else "no query has both values"
        if changed >= FEWEST_FOR_INTERVAL:
            return f"too narrow for {many(self.queries, 'query')}" if self.sd else "no spread"
        return f"only {many(changed, 'query')} {inflect(changed, 'differs', 'differ')}"

    @property
    def digits(self) -> int:
        """Number of decimals in texts: 3, or more for a narrow interval."""
        width = self.high - self.low
        return 1 - math.floor(math.log10(width)) if 0 < width < _NARROW else 3

    def interval_text(self) -> str:
        """Return the interval for a table, or a dash with the reason why there is none."""
        why = self.no_interval.replace(" queries", "")
        digits = self.digits
        return f"– ({why})" if why else f"{self.low:+.{digits}f} to {self.high:+.{digits}f}"

    def difference_text(self) -> str:
        """Return the difference with its 95% interval, or with the reason why there is none."""
        why = f"no interval: {self.no_interval}" if self.no_interval else ""
        text = f"{self.difference:+.{self.digits}f} ({why or f'95% CI {self.interval_text()}'})"
        how = self.condition or ("by the labels of the judge, not corrected" if self.by_judge else "")
        return f"{text}, {how}" if how else text

    @property
    def name(self) -> str:
        """Name of the measure for a table; it says if the difference is that by the judge."""
        return f"{self.measure} (by judge)" if self.by_judge and not self.condition else str(self.measure)

    @cached_property
    def detectable(self) -> float | None:
        """Smallest true difference that is detectable with about 80% power at level `alpha`.

        Computed for the paired t test, the wider side of the interval, and `reversed_by`, with
        ``stats.planning_sd`` and the share of queries that differ. The power is about 80% on
        average over pairs of runs, and lower if most differences are small and a few are large
        (docs/explain/interval-coverage.md). None without variance, with six queries or fewer, or if
        no difference within the range of the measure is detectable.
        """
        if not self.sd or math.isinf(self._planning_sd):
            return None
        smallest = stats.detectable_difference(self._planning_sd, self.queries, alpha=self._level, changed=self._share)
        if math.isfinite(self.largest):
            smallest = max(smallest, self._reversal + _POWER * self._planning_sd / math.sqrt(self.queries))
        return smallest if smallest <= self.largest / self.scale else None

    @property
    def _reversal(self) -> float:
        """Largest difference that `FAILING` more failing queries would cancel or reverse."""
        return FAILING * self.largest / self.queries

    @property
    def reversed_by(self) -> int | None:
        """Number of further queries by which the better run would lose its lead.

        In each of them, it fails completely: it loses as much as the measure allows. Such queries
        may be too rare to be in the sample. None if the largest possible difference is unknown.
        """
        if math.isinf(self.largest):
            return None
        return math.ceil(self.queries * abs(self.difference) / self.largest - TOLERANCE)

    @property
    def largest(self) -> float:
        """Largest possible difference of a query, times `scale`.

        Infinite for logarithms and for values on another scale.
        """
        declaration = self.measure.declaration
        low, high = declaration.bounds
        means = (self.mean, self.baseline_mean)
        # Corrected means may be outside the bounds.
        inside = self.condition or all(low - TOLERANCE <= mean <= high + TOLERANCE for mean in means)
        return (high - low) * self.scale if inside and declaration.mean != "geometric" else math.inf

    @property
    def _planning_sd(self) -> float:
        return stats.planning_sd(self.sd, self.queries) if self.queries > 1 else math.inf

    @property
    def _wider(self) -> float:
        return max(self.difference - self.low, self.high - self.difference)

    @cached_property
    def _level(self) -> float:
        """Level of a t test that is as strict as test and interval together."""
        if self.no_interval:
            return self.alpha
        t = self._wider * math.sqrt(self.queries) / self.sd
        return min(self.alpha, 2 * stats.student_t_cdf(-t, self.queries - 1))

    @property
    def _share(self) -> float:
        return (self.wins + self.losses) / self.queries

    @cached_property
    def queries_needed(self) -> int | None:
        """Number of queries needed to detect a true difference of this size.

        Calculated for 80% power; 75% to 77% on average over pairs of runs, and lower if few queries
        differ (docs/explain/interval-coverage.md).
        None without a difference or variance, with six queries or fewer, or if millions were
        needed.
        """
        sd = self._planning_sd
        if not sd or abs(self.difference) <= max(TOLERANCE, _SMALL * sd):
            return None
        size = abs(self.difference)
        needed = stats.queries_needed(sd, size, alpha=self.alpha)
        # What the interval adds to the t interval decreases as 1 / queries.
        t = stats.student_t_quantile(1 - self.alpha / 2, self.queries - 1)
        added = 0.0 if self.no_interval else self._wider * self.queries - t * self.sd * math.sqrt(self.queries)
        queries = needed * (0.5 + math.sqrt(0.25 + max(added, 0.0) / (size * needed))) ** 2
        if math.isfinite(self.largest):
            half = _POWER * sd / 2
            root = half + math.sqrt(half**2 + FAILING * self.largest * size)
            queries = max(queries, (root / size) ** 2)
        return math.ceil(queries)

    @property
    def is_worse(self) -> bool:
        """Whether the whole interval is on the worse side of zero."""
        better = self.measure.declaration.better
        return self.low > 0 if better == "lower" else better == "higher" and self.high < 0

    def power(self, difference: float) -> float:
        """Return the probability of detecting a true difference of this size with these queries.

        Raises:
            InputError: With six queries or fewer.
        """
        power = stats.power(self._planning_sd, self.queries, difference, self._level, changed=self._share or 1.0)
        if not self.sd or math.isinf(self.largest):
            return power
        beyond = (abs(difference) - self._reversal) * math.sqrt(self.queries) / self._planning_sd
        return min(power, NormalDist().cdf(beyond))

    def mirrored(self) -> Difference:
        """Return the difference with the runs swapped."""
        return replace(
            self,
            run=self.baseline,
            baseline=self.run,
            mean=self.baseline_mean,
            baseline_mean=self.mean,
            difference=-self.difference,
            low=math.nan if self.no_interval else -self.high,
            high=math.nan if self.no_interval else -self.low,
            effect=-self.effect,
            wins=self.losses,
            losses=self.wins,
            verdict=_MIRRORED.get(self.verdict, self.verdict),
        )


@dataclass(frozen=True)
class Design:
    """Design of a comparison, chosen before seeing the results.

    Attributes:
        tested: The measures whose differences are tested, by name or as measures; the first is the
            primary one.
        baseline: The run that the others are compared with.
        pairs: ``baseline`` (every run with the baseline) or ``all`` (every pair of runs).
        test: ``randomization``, ``t``, ``wilcoxon``, or ``tukey-hsd``.
        correction: ``holm``, ``bonferroni``, ``benjamini-hochberg``, or ``max-t``.
        interval: Method of the intervals: ``conservative`` (the wider of paired t and a Bayesian
            bootstrap that allows for a worse query), ``t``, ``percentile``, or ``bca``.
        draws: Number of random draws of tests and bootstraps.
        seed: Seed of the draws. The signs of a query depend only on it and on the id of the query.

    Example:
        >>> Design(("nDCG@10", "AP"), baseline="bm25", pairs="all").tested[1]
        AP
    """

    tested: tuple[Measure, ...]
    baseline: str
    pairs: Pairing = "baseline"
    test: Test = "randomization"
    correction: Correction = "holm"
    interval: Method = "conservative"
    draws: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.tested:
            raise InputError("no measure was given to test", where="tested", fix='name one: "nDCG@10"')
        object.__setattr__(self, "tested", tuple(parse(measure) for measure in self.tested))
        choices = {"pairs": Pairing, "test": Test, "correction": Correction, "interval": Method}
        for name, allowed in choices.items():
            option(name, getattr(self, name), get_args(allowed))
        if self.correction == "max-t" and self.test != "randomization":
            raise InputError(
                f"max-t corrects the randomization test, not {self.test}",
                where="correction",
                fix="choose test='randomization', or correction='holm'",
            )

    def pairs_of(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """Return the (run, baseline) pairs to compare."""
        rest = [name for name in names if name != self.baseline]
        if self.pairs == "baseline":
            return [(name, self.baseline) for name in rest]
        return [(run, against) for against, run in combinations([self.baseline, *rest], 2)]

    def level_of(self, runs: int, pairs: int) -> float:
        """Return the Bonferroni level of each test, which does not depend on the other p-values."""
        number = runs * (runs - 1) // 2 if self.test == "tukey-hsd" else pairs
        return ALPHA / (number * len(self.tested))

    @property
    def correction_name(self) -> str:
        """Name of the correction in text."""
        return self.correction if self.correction == "max-t" else self.correction.title()

    @property
    def p_label(self) -> str:
        """Label of the corrected p-value, such as ``p (Holm)``."""
        return f"p ({'HSD' if self.test == 'tukey-hsd' else self.correction_name})"

    def describe(self) -> str:
        """Return tests, correction, and intervals in one sentence."""
        names = ", ".join(map(str, self.tested))
        drawn = f", {self.draws:,} draws, seed {self.seed}"
        by = {
            "conservative": "the wider of paired t and Bayesian bootstrap",
            "t": "paired t",
            "percentile": "percentile bootstrap",
            "bca": "BCa bootstrap",
        }
        text = f"tested: {names}, two-sided, "
        if self.test == "tukey-hsd":
            text += f"randomized Tukey HSD over all runs{drawn}"
            if len(self.tested) > 1:
                text += f", Bonferroni over {len(self.tested)} measures"
        else:
            text += f"paired {self.test}{drawn if self.test == 'randomization' else ''}"
            text += f", {self.correction_name}-corrected"
        if self.interval in {"percentile", "bca"} and self.test in {"t", "wilcoxon"}:
            by[self.interval] += drawn
        return f"{text}; 95% intervals by {by[self.interval]}; other measures are described only"


def describe_difference(run: Evaluation, baseline: Evaluation, measure: Measure, level: float) -> Difference:
    """Return the untested difference of two runs by one measure, with an interval of this level."""
    work = Computation((baseline, run), Design((measure,), baseline.run_name), level)
    return work.difference((run.run_name, baseline.run_name, measure), None, None)


def paired_differences(run: Evaluation, baseline: Evaluation, measure: Measure) -> FloatArray:
    """Return the differences of queries; undefined values count as 0 or exclude the query."""
    moved = query_differences(run, baseline, measure)
    return moved[~np.isnan(moved)]


def corrected_means(evaluations: Sequence[Evaluation]) -> tuple[dict[str, dict[str, float]], frozenset[str]]:
    """Return the means by run and measure, and the measures whose means are those by a judge.

    The means of a measure of answers are corrected for the errors of the judge if that is possible
    for all runs.
    """
    means = {e.run_name: e.mean() for e in evaluations}
    by_judge = set()
    for measure in evaluations[0].measures:
        name = str(measure)
        raw = [row[name] for row in means.values()]
        corrected, uncorrected = comparable_means(measure, [e.settings for e in evaluations], raw)
        for row, mean in zip(means.values(), corrected, strict=True):
            row[name] = mean
        if uncorrected:
            by_judge.add(name)
    return means, frozenset(by_judge)


def query_differences(run: Evaluation, baseline: Evaluation, measure: Measure) -> FloatArray:
    """Return the differences of all queries (Q,); NaN for excluded queries.

    For answers with labels of people, they are corrected by the labels. Conversations of several
    questions have one value each.
    """
    return corrected_differences(run, baseline, measure).values


def corrected_differences(run: Evaluation, baseline: Evaluation, measure: Measure) -> JudgeCorrection:
    """Return the differences of all queries with their correction for the errors of the judge."""
    values = measure.differences(
        run.column(measure), baseline.column(measure), skip_undefined=run.policies.undefined == "skip"
    )
    if not of_answers(run):
        return JudgeCorrection(values, values, run.query_ids)
    return correct_differences(measure, values, run.query_ids, run=run.settings, baseline=baseline.settings)


def select(evaluation: Evaluation, measures: Sequence[Measure], rows: Sequence[int] | None = None) -> Evaluation:
    """Return the evaluation of a subset of measures and, with `rows`, of queries.

    Raises:
        InputError: If a measure was not evaluated.
    """
    known = evaluation.measures
    columns = [known.index(one_of(measure, known, f"run {evaluation.run_name!r}")) for measure in measures]
    kept = range(len(evaluation.query_ids)) if rows is None else rows
    cells = np.ix_(kept, columns)
    return replace(
        evaluation,
        query_ids=tuple(evaluation.query_ids[row] for row in kept),
        measures=tuple(measures),
        per_query=evaluation.per_query[cells],
        weights=evaluation.weights and tuple(evaluation.weights[row] for row in kept),
        groups=evaluation.groups and tuple(evaluation.groups[row] for row in kept),
        left_out=None if evaluation.left_out is None else evaluation.left_out[cells],
    )


class _Table(NamedTuple):
    """Differences by measure, pair, and unit: a query, or a conversation of several questions."""

    units: tuple[str, ...]
    table: FloatArray
    columns: dict[tuple[str, str], int]


@lru_cache(maxsize=8)
def _keys(units: tuple[str, ...], seed: int) -> npt.NDArray[np.uint64]:
    return query_keys(map(str.encode, units), seed)


@dataclass(frozen=True)
class Computation:
    """Computation of the differences of a design.

    Attributes:
        evaluations: One evaluation for each run.
        design: What is compared and how differences are tested.
        level: Confidence level of the intervals.
        earlier: Sums of earlier values of the same queries: only changed queries are added again.
    """

    evaluations: Sequence[Evaluation]
    design: Design
    level: float = _LEVEL
    earlier: SignFlips | None = None

    @cached_property
    def names(self) -> list[str]:
        """Names of the runs."""
        return [evaluation.run_name for evaluation in self.evaluations]

    @cached_property
    def named(self) -> dict[str, Evaluation]:
        """Evaluations by name of the run."""
        return dict(zip(self.names, self.evaluations, strict=True))

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs to compare."""
        return self.design.pairs_of(self.names)

    @cached_property
    def means(self) -> tuple[dict[str, dict[str, float]], frozenset[str]]:
        """See `corrected_means`."""
        return corrected_means(self.evaluations)

    def differences(self) -> Iterator[Difference]:
        """Yield the difference of each pair by each measure."""
        keys = [(run, base, m) for run, base in self.pairs for m in self.design.tested]
        raw = self._raw(keys)
        chances = dict(zip(keys, zip(raw, self._corrected(keys, raw), strict=True), strict=True))
        for run, base in self.pairs:
            for measure in self.evaluations[0].measures:
                p, corrected = chances.get((run, base, measure), (None, None))
                yield self.difference((run, base, measure), p, corrected)

    def indistinct_runs(self, run: str) -> list[str]:
        """Return the runs without a verdict against this run, by max-T over all pairs of runs.

        The rules for the interval and for failing queries are those of all verdicts.
        """
        measure, flips = self.design.tested[0], self.flips
        excluded = np.isnan(self._tests.table[0]).any(axis=0)
        if excluded.any():
            table = self._tests.table[:1, :, ~excluded]
            flips = SignFlips.of(table, flips.keys[~excluded], self.design.draws)
        pairs = list(combinations(self.names, 2))
        p = flips.max_t([self._place((*pair, measure)) for pair in pairs])
        return [
            name
            for pair, chance in zip(pairs, p.tolist(), strict=True)
            for name in pair
            if run in pair
            and name != run
            and (chance >= ALPHA or self.difference((name, run, measure), chance, chance).verdict not in SURE)
        ]

    @cached_property
    def flips(self) -> SignFlips:
        """Sums of the tested differences under random signs."""
        units, table, _ = self._tests
        table, keys = np.nan_to_num(table), _keys(units, self.design.seed)
        earlier = self.earlier
        if earlier and earlier.whole.shape == table.shape and (earlier.keys == keys).all():
            return earlier.updated(table)
        return SignFlips.of(table, keys, self.design.draws)

    @cached_property
    def _tests(self) -> _Table:
        """The tested differences from the baseline; of all pairs, if they do not follow from these."""
        baseline = self.design.baseline
        tests = self._table(self.design.tested, [(name, baseline) for name in self.names if name != baseline])
        excluded = np.isnan(tests.table)
        linear = (excluded == excluded[:, :1]).all() and not of_answers(self.evaluations[0])
        return tests if linear else self._table(self.design.tested, self.pairs)

    def _table(self, measures: Sequence[Measure], pairs: Sequence[tuple[str, str]]) -> _Table:
        parts = [[corrected_differences(self.named[a], self.named[b], m) for a, b in pairs] for m in measures]
        distinct = dict.fromkeys(tuple(part.units) for part in chain(*parts))
        columns = {pair: column for column, pair in enumerate(pairs)}
        if len(distinct) == 1:
            return _Table(next(iter(distinct)), np.array([[part.values for part in row] for row in parts]), columns)
        numbers = {unit: number for number, unit in enumerate(dict.fromkeys(chain(*distinct)))}
        rows = {units: [numbers[unit] for unit in units] for units in distinct}
        table = np.full((len(measures), len(pairs), len(numbers)), math.nan)
        for group, column in np.ndindex(table.shape[:2]):
            part = parts[group][column]
            table[group, column, rows[tuple(part.units)]] = part.values
        return _Table(tuple(numbers), table, columns)

    def _place(self, key: _Key) -> tuple[int, int, int | None]:
        """Return the place of a pair by a tested measure in `flips`."""
        run, base, measure = key
        group, columns, baseline = self.design.tested.index(measure), self._tests.columns, self.design.baseline
        column = columns.get((run, base), columns.get((base, run)))
        if column is not None:
            return group, column, None
        return group, columns[run, baseline], columns[base, baseline]

    def _raw(self, keys: Sequence[_Key]) -> list[float]:
        """Return the uncorrected p-values (for Tukey HSD, corrected over all runs)."""
        design = self.design
        if design.test == "randomization":
            return [self.flips.p(self._place(key)) for key in keys]
        if design.test == "tukey-hsd":
            tables = {measure: self._hsd(measure) for measure in design.tested}
            return [tables[measure][run, base] for run, base, measure in keys]
        alone = stats.t_test if design.test == "t" else stats.wilcoxon
        # Sorted, so that p-values do not depend on the order of queries.
        columns = (np.sort(paired_differences(self.named[run], self.named[base], m)) for run, base, m in keys)
        return [alone(column).p if len(column) >= 2 and column.any() else 1.0 for column in columns]

    def _hsd(self, measure: Measure) -> dict[tuple[str, str], float]:
        """Return the p-values of randomized Tukey HSD by pair; 1 with fewer than two queries."""
        first, *rest = sorted(self.names)
        units, table, _ = self._table([measure], [(name, first) for name in rest])
        # Sorted, so that p-values do not depend on the order of queries and runs.
        values = np.insert(table[0].T[sorted(range(len(units)), key=units.__getitem__)], 0, 0.0, axis=1)
        values = values[~np.isnan(values).any(axis=1)]
        p = np.ones((len(self.names),) * 2)
        if len(values) >= 2:
            p = stats.tukey_hsd(values, self.design.draws, self.design.seed).p
        return dict(zip(product([first, *rest], [first, *rest]), p.ravel().tolist(), strict=True))

    def _corrected(self, keys: Sequence[_Key], raw: Sequence[float]) -> list[float]:
        design = self.design
        if design.test == "tukey-hsd":
            return [min(1.0, p * len(design.tested)) for p in raw]
        if design.correction != "max-t":
            return CORRECTIONS[design.correction](raw).tolist()
        excluded = np.isnan(self._tests.table)
        if (excluded != excluded[0, 0]).any():
            raise InputError(
                "max-t needs the same queries for all tests, but a tested measure excludes some",
                where="correction",
                fix="choose correction='holm'",
            )
        return self.flips.max_t([self._place(key) for key in keys]).tolist()

    def difference(self, key: _Key, p: float | None, corrected: float | None) -> Difference:
        """Return the difference of one pair by one measure."""
        run, base, measure = key
        means, by_judge = self.means
        correction = corrected_differences(self.named[run], self.named[base], measure)
        moved = np.sort(correction.values[~np.isnan(correction.values)])
        above, below = int((correction.counted > 0).sum()), int((correction.counted < 0).sum())
        mean, low, high, sd = self._interval(moved)
        # The judge of answers shows this share of a difference.
        gain, unit = correction.gain, unit_of(moved)
        if above + below < FEWEST_FOR_INTERVAL:
            low = high = math.nan
        elif not math.isnan(low):
            low, high = stats.ratio_interval(mean, low, high, gain)
        sample = DifferenceSample(
            mean=mean / gain[0],
            low=low,
            high=high,
            sd=sd / gain[0],
            queries=len(moved),
            above=above,
            below=below,
            unit=unit and unit / gain[0],
            condition=correction.condition,
            scale=correction.unseen / gain[0],
        )
        both = means[run][str(measure)], means[base][str(measure)]
        level = self.design.level_of(len(self.names), len(self.pairs))
        return replace(make_difference(key, both, sample, p, corrected, level), by_judge=str(measure) in by_judge)

    def _interval(self, moved: FloatArray) -> tuple[float, float, float, float]:
        """Return mean, interval bounds (NaN if too few queries differ), and standard deviation."""
        if len(moved) < 2:
            return float(moved[0]) if len(moved) else 0.0, math.nan, math.nan, 0.0
        design = self.design
        mean, sd = stats.moments(moved)
        if not sd or np.count_nonzero(moved) < FEWEST_FOR_INTERVAL:
            return mean, math.nan, math.nan, sd
        # The draws are the same for either baseline.
        gained = np.sort(-moved) if mean < 0 else moved
        if design.interval == "conservative":
            low, high = interval_around((abs(mean), sd), gained, self.level)
        elif design.interval == "t":
            _, low, high = astuple(stats.t_interval_from_moments(abs(mean), sd, len(gained), self.level))
        else:
            drawn = stats.bootstrap_interval(gained, self.level, design.draws, design.seed, method=design.interval)
            _, low, high = astuple(drawn)
        return (mean, -high, -low, sd) if mean < 0 else (mean, low, high, sd)


class DifferenceSample(NamedTuple):
    """Summary of the differences of a pair over queries.

    Attributes:
        mean: Mean.
        low: Lower bound of the interval of the mean; NaN if there is none.
        high: Upper bound.
        sd: Standard deviation.
        queries: Number of differences.
        above: Number of differences above 0.
        below: Number of differences below 0.
        unit: Unit, as in `Difference`.
        condition: Condition, as in `Difference`.
        scale: Scale, as in `Difference`.
    """

    mean: float
    low: float
    high: float
    sd: float
    queries: int
    above: int
    below: int
    unit: float | None
    condition: str = ""
    scale: float = 1.0


def make_difference(  # noqa: PLR0917 - all that it is made of
    key: _Key,
    means: tuple[float, float],
    sample: DifferenceSample,
    p: float | None,
    corrected: float | None,
    level: float,
) -> Difference:
    """Return the difference of a pair with its verdict.

    Args:
        key: Run, baseline, and measure.
        means: Means of the run and of the baseline.
        sample: Summary of the differences.
        p: The p-value; None if the measure is not tested.
        corrected: The corrected p-value.
        level: Significance level of each test.
    """
    run, base, measure = key
    mean, low, high, sd, queries, above, below, unit, condition, scale = sample
    lower = measure.declaration.better == "lower"
    difference = Difference(
        run=run,
        baseline=base,
        measure=measure,
        mean=means[0],
        baseline_mean=means[1],
        difference=mean,
        low=low,
        high=high,
        p=p,
        corrected=corrected,
        sd=sd,
        effect=mean / sd if sd else math.copysign(math.inf, mean) if mean else 0.0,
        queries=queries,
        wins=below if lower else above,
        ties=queries - above - below,
        losses=above if lower else below,
        verdict=None,
        alpha=ALPHA if p is None else level,
        unit=unit,
        condition=condition,
        scale=scale,
    )
    if (high - low) / 2 * (queries + 1) < difference.largest < math.inf:
        difference = replace(difference, low=math.nan, high=math.nan)
    return difference if corrected is None else replace(difference, verdict=_verdict(difference, corrected))


def _verdict(difference: Difference, corrected: float) -> Verdict:
    changed, mean = difference.wins + difference.losses, difference.difference
    if not changed and difference.queries:
        return "identical"
    if changed < FEW_CHANGES or corrected >= ALPHA or difference.low <= 0 <= difference.high:
        return "cannot tell"
    if difference.reversed_by is not None and difference.reversed_by <= FAILING:
        return "cannot tell"
    better = difference.measure.declaration.better
    if better == "neither":
        return "higher" if mean > 0 else "lower"
    return "better" if (mean > 0) == (better == "higher") else "worse"


def unit_of(moved: FloatArray) -> float | None:
    """Return the common absolute value of all nonzero differences; None if they vary.

    Args:
        moved: The differences; the extremes on both sides of 0 are enough.
    """
    sizes = np.abs(moved[moved != 0])
    equal = len(sizes) and float(np.ptp(sizes)) <= TOLERANCE * float(sizes.max())
    return float(sizes[0]) if equal else None
