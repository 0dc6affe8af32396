"""``compare()`` and its result: means of runs, differences, tests, and conclusions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from rankgauge.comparison.conclusions import (
    Outline,
    findings_of_evaluations,
    findings_of_inputs,
    no_verdicts,
    sentences,
    units,
    withheld_runs,
    withhold_verdict,
)
from rankgauge.comparison.differences import (
    Computation,
    Correction,
    Design,
    Difference,
    Method,
    Pairing,
    Test,
    corrected_means,
    select,
)
from rankgauge.core.escaping import for_html
from rankgauge.core.findings import Finding
from rankgauge.core.ids import show_id
from rankgauge.core.lazy import registered
from rankgauge.core.policies import Duplicates, Policies, Ties, Undefined
from rankgauge.core.text import many, some
from rankgauge.core.threads import check_jobs, map_in_threads
from rankgauge.data.joined_blocks import map_blocks
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import named_sources
from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation.answer_judge import settings_change
from rankgauge.evaluation.blocks import build_evaluation, measure_run
from rankgauge.evaluation.context import make_plan, prepare_judgments, read_context
from rankgauge.evaluation.evaluation import Queries, read_queries
from rankgauge.evaluation.result import Evaluation, mean_cell
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Detail, Table
from rankgauge.stats.resampling import SignFlips

if TYPE_CHECKING:
    from rankgauge.rendering.plot_drawing import Plot

COMPARED = (
    "nDCG@10",
    *(f"{name}@{k}" for name in ("P", "R", "Success", "nDCG") for k in (1, 3, 5)),
    *(f"{name}@10" for name in ("P", "R", "Success")),
    "RR",
)
# Number of measures in a short table, if there are more than fit on a screen.
_MOST, _FITTING = 6, 9
_AT_ONCE = 4  # runs, since each may be held in memory
_MARKS: Mapping[str | None, str] = {"better": "†", "worse": "‡"}
_COLUMNS = (
    "run",
    "baseline",
    "measure",
    "mean",
    "baseline_mean",
    "difference",
    "low",
    "high",
    "effect",
    "sd",
    "queries",
    "wins",
    "ties",
    "losses",
    "p",
    "corrected",
    "verdict",
    "detectable",
    "by_judge",
)


@dataclass(frozen=True, repr=False)
class PairedComparison(Result):
    """Means of runs and their differences from each other.

    Base class of comparisons with and without the values of each query.

    Attributes:
        design: What is compared and how differences are tested.
        differences: One for each pair of runs and each measure, grouped by pair.
        sentences: Conclusions and limitations.
        findings: Properties of the inputs that limit the conclusions.
    """

    design: Design
    differences: tuple[Difference, ...]
    sentences: tuple[str, ...]
    findings: tuple[Finding, ...]

    def means(self) -> dict[str, dict[str, float]]:
        """Return the means as run to measure to mean, in the order given."""
        raise NotImplementedError

    @property
    def measures(self) -> tuple[Measure, ...]:
        """All measures, tested or not."""
        return tuple(dict.fromkeys(d.measure for d in self.differences))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The findings as text, except informational findings."""
        return tuple(str(finding) for finding in self.findings if finding.severity != "info")

    @property
    def withheld_sentences(self) -> tuple[str, ...]:
        """The first of `sentences`: runs without a verdict, with the reasons."""
        return ()

    def _may_be_better(self, measure: Measure) -> bool:  # noqa: ARG002 - of a subclass
        """Return whether faults of the input may hide a better run."""
        return False

    @property
    def _by_judge(self) -> frozenset[str]:
        """Measures whose means are not corrected for the errors of the judge."""
        return frozenset()

    @property
    def baseline(self) -> str:
        """Name of the run that the others are compared with."""
        return self.design.baseline

    @property
    def tested(self) -> tuple[Measure, ...]:
        """Measures whose differences are tested."""
        return self.design.tested

    @property
    def primary(self) -> Measure:
        """The first tested measure."""
        return self.design.tested[0]

    def difference(self, run: str, measure: str | Measure | None = None, *, baseline: str | None = None) -> Difference:
        """Return the difference between a run and the baseline.

        Args:
            run: The run.
            measure: The measure; default: the primary one.
            baseline: Another run to compare with, if all pairs were compared.

        Raises:
            InputError: If the comparison has no such pair or measure.
        """
        wanted = self.primary if measure is None else parse(measure)
        against = self.baseline if baseline is None else baseline
        for difference in self.differences:
            if difference.measure != wanted:
                continue
            if (difference.run, difference.baseline) == (run, against):
                return difference
            if (difference.run, difference.baseline) == (against, run):
                return difference.mirrored()
        runs = ", ".join(dict.fromkeys(difference.run for difference in self.differences))
        raise InputError(
            f"no difference between {run!r} and {against!r} by {wanted} in this comparison",
            fix=f"compared: {runs}, by {', '.join(map(str, self.measures))}",
        )

    def __getitem__(self, key: Any) -> Any:
        raise TypeError(f"comparison[{key!r:.60}] is not possible\nfix: {self._reading('')}")

    def _reading(self, name: str) -> str:  # noqa: ARG002 - of another class
        last = f"{next(reversed(self.means()))!r}", f"{str(self.primary)!r}"
        return (
            f"comparison.means()[{last[0]}][{last[1]}] is a mean, comparison.difference({', '.join(last)}) has "
            "difference, low, high, p, corrected, and verdict, and comparison.to_frame() has all"
        )

    def table(self, *, transposed: bool = False) -> Table:
        """Return the means, one row for each measure; the best value is marked.

        Args:
            transposed: Whether to return one row for each run instead.
        """
        means, measures = self.means(), self.measures
        names = tuple(means)
        rows = [[mean_cell(measure, means[name][str(measure)]) for name in names] for measure in measures]
        # The best run is not known if a run may be better than its numbers.
        best = {
            (place, column)
            for place, (measure, row) in enumerate(zip(measures, rows, strict=True))
            if not self._may_be_better(measure)
            for column in measure.best(row)
        }
        marks = {
            (measures.index(d.measure), names.index(d.run)): _MARKS[d.verdict]
            for d in self.differences
            if d.verdict in _MARKS and d.baseline == self.baseline
        }
        main, by_judge = main_measures(measures, self.tested), self._by_judge
        heads = tuple((str if m in main else Detail)(f"{m}{' (by judge)' * (str(m) in by_judge)}") for m in measures)
        marked = [f"{mark} {word}" for word, mark in _MARKS.items() if mark in marks.values()]
        corner, across, down = "measure", names, heads
        if transposed:
            rows = [list(column) for column in zip(*rows, strict=True)]
            best = {(column, place) for place, column in best}
            marks = {(column, place): mark for (place, column), mark in marks.items()}
            corner, across, down = "run", heads, names
        return Table(
            columns=(corner, *across),
            rows=tuple((name, *row) for name, row in zip(down, rows, strict=True)),
            title="; ".join(self.withheld_sentences),
            notes=(f"{', '.join(marked)} than {self.baseline}: interval and corrected p agree",) if marked else (),
            best=frozenset((place, column + 1) for place, column in best),
            starred=True,
            unit="measure",
            marks={(place, column + 1): mark for (place, column), mark in marks.items()},
        )

    def differences_table(self) -> Table:
        """Return one row for each pair of runs and measure, with the conclusions below.

        Measures that are not tested, and most notes, are details.
        """
        every = self.design.pairs == "all"
        # The table of means already shows the withheld verdicts.
        said = self.sentences[len(self.withheld_sentences) :]
        # For two runs, the second sentence names the better run and the difference.
        main = 1 if len(self.means()) == 2 and len(said) > 1 else 0
        return Table(
            columns=(
                "run",
                *(("against",) if every else ()),
                "measure",
                "Δ",
                "95% CI",
                "dz",
                "W/T/L",
                self.design.p_label,
                "verdict",
            ),
            rows=tuple((d.run, *((d.baseline,) if every else ()), *_cells(d)) for d in self.differences),
            title="all pairs of runs" if every else f"compared with {self.baseline}",
            notes=(
                *(text if place == main else Detail(text) for place, text in enumerate(said)),
                *(f"WARNING: {text}" for text in self.warnings),
                *(Detail(finding) for finding in self.findings if finding.severity == "info"),
                *map(Detail, units(self.measures)),
                Detail(self.design.describe()),
            ),
            unit="difference",
        )

    def tables(self) -> tuple[Table, ...]:
        """Return the means and the differences."""
        return self.table(), self.differences_table()

    def data_table(self) -> Table:
        """Return one row for each pair of runs and measure with unformatted numbers."""
        differences = map(difference_object, self.differences)
        return Table(_COLUMNS, tuple(tuple(d[name] for name in _COLUMNS) for d in differences))


def main_measures(measures: Sequence[Measure], tested: Sequence[Measure]) -> Sequence[Measure]:
    """Return the measures of a short table: if there are many, the tested ones and some with the same or no cut-off."""
    if len(measures) <= _FITTING:
        return measures
    cutoffs = {dict(tested[0].params).get("k"), None}
    near = [m for m in measures if m not in tested and dict(m.params).get("k") in cutoffs]
    return [*tested, *near[: max(0, _MOST - len(tested))]]


@dataclass(frozen=True, repr=False)
class Comparison(PairedComparison):
    """Means of runs, their differences, and conclusions.

    Returned by :func:`compare`. Notebooks display it as tables, with its report collapsed below.

    Attributes:
        evaluations: One evaluation for each run, in the order given.
        design: What is compared and how differences are tested.
        differences: One for each pair of runs and each measure, grouped by pair.
        sentences: Conclusions and limitations.
        findings: Properties of the inputs that limit the conclusions.
    """

    _schema = "rankgauge/comparison/1"

    evaluations: tuple[Evaluation, ...]
    _inputs: tuple[Finding, ...] = field(repr=False, compare=False)
    _work: Computation = field(repr=False, compare=False)

    def _repr_html_(self) -> str:
        page = for_html(registered("html_report")(self))
        style = "width: 100%; height: 40em; border: 1px solid #8888"
        # The page stays in a frame of its own, since its styles and scripts are for a whole page.
        frame = f'<iframe title="report" sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'
        return f"{self.to_html()}<details><summary>Report</summary>{frame}</details>\n"

    def means(self) -> dict[str, dict[str, float]]:
        """Return the means as run to measure to mean, in the order given.

        Means of answers are corrected for the errors of the judge if that is possible for all runs.
        """
        return corrected_means(self.evaluations)[0]

    @property
    def _by_judge(self) -> frozenset[str]:
        return corrected_means(self.evaluations)[1]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """All measures, tested or not."""
        return self.evaluations[0].measures

    @property
    def withheld(self) -> tuple[tuple[str, Finding], ...]:
        """Runs without a verdict by the primary measure, each with the reason."""
        return tuple(withheld_runs(self.evaluations, self.primary, self.differences))

    @property
    def withheld_sentences(self) -> tuple[str, ...]:
        """The first of `sentences`: runs without a verdict, with the reasons."""
        return tuple(no_verdicts(self.withheld))

    def _may_be_better(self, measure: Measure) -> bool:
        withheld = withheld_runs(self.evaluations, measure, self.differences)
        return bool(withheld) or str(measure) in self._by_judge

    def with_findings(self, found: Mapping[str, Iterable[Finding]]) -> Comparison:
        """Return the comparison with more findings about the input, by name of the run."""
        evaluations = [
            e.with_findings(more) if (more := tuple(found.get(e.run_name, ()))) else e for e in self.evaluations
        ]
        return _compared(evaluations, self.design, self._inputs, earlier=self._work.flips)

    def updated(self, evaluations: Iterable[Evaluation]) -> Comparison:
        """Return the comparison with other values of some queries, without drawing again.

        Means, differences, intervals, p-values, verdicts, and sentences are those of a new comparison
        of all values. Findings about the input, such as Judged@k, remain those of this comparison.

        Args:
            evaluations: The changed queries of one or more runs, evaluated with the same policies by
                at least the measures of this comparison.

        Raises:
            InputError: If an evaluation has other policies, unknown queries, or not all measures.
            UnknownName: If this comparison has no run of that name.

        Example:
            >>> ids = [f"q{n}" for n in range(8)]
            >>> old, new = (Evaluation.from_values(name, ids, {"RR": [0.5] * 8}) for name in ("old", "new"))
            >>> comparison = compare([old, new])
            >>> graded = Evaluation.from_values("new", ["q3"], {"RR": [1.0]})
            >>> comparison.updated([graded]).difference("new").difference
            0.0625
        """
        changed, names = dict(self._work.named), self._work.names
        rows = {query: row for row, query in enumerate(self.evaluations[0].query_ids)}
        for part in evaluations:
            name = _baseline(names, part.run_name)
            changed[name] = _replaced_rows(changed[name], part, rows)
        return _compared(list(changed.values()), self.design, self._inputs, earlier=self._work.flips)

    def plot(self, kind: str = "means", *, measure: str | Measure | None = None) -> Plot:
        """Plot the comparison with :func:`rankgauge.plot` (needs ``rankgauge[plots]``).

        Raises:
            InputError: If the kind of plot needs measures that were not compared.
        """
        from rankgauge.rendering.plots import plot

        return plot(self, kind, measure=measure)

    def _data(self) -> dict[str, Any]:
        means = self.means()
        return {
            "queries": len(self.evaluations[0].query_ids),
            "policies": self.evaluations[0].policies.describe(),
            "design": design_object(self.design),
            "measures": [str(measure) for measure in self.measures],
            "runs": [
                {
                    "name": e.run_name,
                    "means": means[e.run_name],
                    "findings": [finding.to_dict() for finding in e.input_findings],
                }
                for e in self.evaluations
            ],
            "differences": [difference_object(d) for d in self.differences],
            "sentences": list(self.sentences),
            "warnings": list(self.warnings),
            "findings": [finding.to_dict() for finding in self.findings],
        }


def _cells(difference: Difference) -> tuple[str | float | None, ...]:
    return (
        Detail(difference.name) if difference.verdict is None else difference.name,
        f"{difference.difference:+.{difference.digits}f}",
        difference.interval_text(),
        f"{difference.effect:+.2f}",
        f"{difference.wins}/{difference.ties}/{difference.losses}",
        None if difference.corrected is None else f"{difference.corrected:.4f}",
        difference.verdict or "",
    )


def design_object(design: Design) -> dict[str, Any]:
    """Return a design as a dictionary."""
    return asdict(design) | {"tested": [str(measure) for measure in design.tested]}


def difference_object(d: Difference) -> dict[str, Any]:
    """Return a difference as a dictionary."""
    return asdict(d) | {
        "measure": str(d.measure),
        "detectable": None if d.verdict is None else d.detectable,
    }


def compare(  # noqa: PLR0913 - each is a decision of its own, made by keyword
    qrels: Any,
    runs: Mapping[str, Any] | Iterable[Any] | None = None,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    baseline: str | None = None,
    pairs: Pairing = "baseline",
    tested: str | Measure | Iterable[str | Measure] | None = None,
    test: Test = "randomization",
    correction: Correction = "holm",
    interval: Method = "conservative",
    draws: int = 10_000,
    ties: Ties = "trec",
    queries: Queries = "all",
    duplicates: Duplicates = "error",
    undefined: Undefined = "zero",
    jobs: int = 1,
) -> Comparison:
    """Compare runs or evaluations with a baseline, or all pairs of them, query by query.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` accepts. Or, without `runs`, at least
            two evaluations with the same policies, from any source; findings about judgments and
            rankings (depth, Judged@k) are then not available.
        runs: At least two: a mapping of name to run, or named runs. Each is anything that
            :meth:`Run.of` accepts.
        measures: The measures to show. Default: those of all evaluations; for runs, P, R, Success,
            and nDCG at 1, 3, 5, and 10, and RR.
        baseline: The name of the run that the others are compared with; default: the first.
        pairs: ``baseline`` (every run with the baseline) or ``all`` (every pair of runs).
        tested: The measures whose differences are tested, declared in advance; default: only the
            first of `measures` (nDCG@10).
        test: ``randomization`` (sign flips, exhaustive if few queries differ; assumes symmetric
            differences), ``t``, ``wilcoxon`` (which does not test the mean), or ``tukey-hsd``
            (randomized over all runs at once; includes a correction for their number).
        correction: ``holm``, ``bonferroni``, ``benjamini-hochberg``, or ``max-t``, over pairs and
            tested measures.
        interval: ``conservative``, the wider of paired t and a Bayesian bootstrap that allows for a
            query worse than all observed ones; ``t``; or a bootstrap, ``percentile`` or ``bca``,
            whose coverage is below 95% with fewer than about 100 queries. There is no interval if
            fewer than 8 queries differ, all by the same amount, or one more query could move the
            mean further than half its width.
        draws: Number of random draws of tests and bootstraps.
        ties: As for :func:`evaluate`; ``mean`` supports only measures with a closed form.
        queries: As for :func:`evaluate`; ``intersection`` uses queries that are judged and in every
            run, or those of all evaluations.
        duplicates: As for :func:`evaluate`.
        undefined: As for :func:`evaluate`.
        jobs: Number of threads that read and evaluate runs; the results do not depend on it.

    Raises:
        InputError: With fewer than two runs, two runs of the same name, fewer than two queries, or
            evaluations of different queries or policies, or without a common measure.
        UnknownName: For an unknown baseline, measure, or option.

    Example:
        >>> qrels = {f"q{n}": {"d1": 1} for n in range(8)}
        >>> a = {f"q{n}": ["d1", "x"] for n in range(8)}
        >>> b = {f"q{n}": ["x", "d1"] for n in range(8)}
        >>> comparison = compare(qrels, {"old": b, "new": a}, "RR")
        >>> comparison.difference("new").difference, comparison.difference("new").verdict
        (0.5, 'better')
        >>> compare(comparison.evaluations).difference("new").p
        0.0078125
    """
    shown = None if measures is None else make_plan(measures).measures
    declared = None if tested is None else make_plan(tested).measures
    check_jobs(jobs)
    if runs is None:
        if (ties, duplicates, undefined) != ("trec", "error", "zero") or queries not in {"all", "intersection"}:
            raise InputError(
                "policies come from the evaluations",
                where="compare",
                fix="omit ties, duplicates, and undefined; queries is all or intersection",
            )
        evaluations = _comparable(qrels, common=queries == "intersection")
        named, shown = [(e.run_name, e) for e in evaluations], shown or _shared_measures(evaluations)
    else:
        named, shown = named_sources(runs), shown or make_plan(COMPARED).measures
    declared = declared or shown[:1]
    design = Design(
        tested=declared,
        baseline=_baseline([name for name, _ in named], baseline),
        pairs=pairs,
        test=test,
        correction=correction,
        interval=interval,
        draws=draws,
    )
    wanted = tuple(dict.fromkeys([*declared, *shown]))
    if runs is None:
        return _compared([select(e, wanted) for e in evaluations], design)
    judged = prepare_judgments(qrels, make_plan(wanted).reads)
    truth = Qrels.of(judged)
    policy, ids = read_queries(queries)
    at_once = min(_AT_ONCE, len(named), jobs)
    if policy == "intersection":
        # The common queries must be known before the first run is evaluated.
        outlines = list(
            map_in_threads(lambda pair: Outline.joined(map_blocks(pair[1], Outline.of, pair[0])), named, at_once)
        )
        policy, ids = "given", _common(truth, outlines)
    policies = Policies(ties=ties, queries=policy, duplicates=duplicates, undefined=undefined)

    def evaluated(named_run: tuple[str, Any]) -> tuple[Evaluation, Outline]:
        name, run = named_run
        context = read_context(judged, make_plan(wanted), policies, ids)
        result = measure_run(run, context, jobs=jobs // at_once)._replace(name=name)
        return build_evaluation(result, context), Outline.measured(result, truth)

    pairs_of = list(map_in_threads(evaluated, named, at_once))
    evaluations, outlines = [e for e, _ in pairs_of], [outline for _, outline in pairs_of]
    _check_common(truth, outlines)
    inputs = tuple(findings_of_inputs(truth, outlines, evaluations, declared[0]))
    return _compared(evaluations, design, inputs)


def _comparable(source: Any, *, common: bool) -> list[Evaluation]:
    """Validate evaluations passed instead of judgments and runs; with `common`, keep only their common queries."""
    evaluations = list(source) if isinstance(source, Iterable) else [source]
    if not all(isinstance(evaluation, Evaluation) for evaluation in evaluations):
        raise InputError(
            "judgments without runs", where="compare", fix="compare(qrels, runs), or compare([evaluation, other])"
        )
    if len(evaluations) < 2:
        raise InputError(
            f"got {many(len(evaluations), 'run')}, expected two or more",
            where="evaluations",
            fix="pass at least one more",
        )
    if common:
        in_all = set(evaluations[0].query_ids).intersection(*(evaluation.query_ids for evaluation in evaluations))
        evaluations = [_common_queries(evaluation, in_all) for evaluation in evaluations]
    first = evaluations[0]
    for other in evaluations:
        for what in ("policies", "profile", "query_ids", "weights"):
            if getattr(other, what) != getattr(first, what):
                raise InputError(
                    f"{other.run_name!r} and {first.run_name!r} differ in their {what.replace('_', ' ')}",
                    where="evaluations",
                    fix="compare their common queries: queries='intersection' (--queries intersection)"
                    if what == "query_ids"
                    else "evaluate both with the same judgments and policies",
                )
        if other.left_out is not None:
            raise InputError(
                f"{other.run_name!r} averages its measures over different queries",
                where="evaluations",
                fix="compare measures that the profile averages over the same queries",
            )
    return evaluations


def _common_queries(evaluation: Evaluation, common: AbstractSet[str]) -> Evaluation:
    """Return the part of an evaluation with these queries, in the order of their ids."""
    rows = {query: row for row, query in enumerate(evaluation.query_ids) if query in common}
    selected = select(evaluation, evaluation.measures, [rows[query] for query in sorted(rows)])
    return replace(selected, policies=replace(selected.policies, queries="intersection"))


def _replaced_rows(evaluation: Evaluation, part: Evaluation, rows: Mapping[str, int]) -> Evaluation:
    """Return an evaluation with the values of the queries of another one."""
    part = select(part, evaluation.measures)
    unknown = [query for query in part.query_ids if query not in rows]
    if unknown or part.policies != evaluation.policies:
        what = f"unknown queries {some(unknown)}" if unknown else "other policies"
        raise InputError(
            f"the new values of {part.run_name!r} have {what}",
            where="evaluations",
            fix="evaluate queries of the comparison with its policies",
        )
    chosen = [rows[query] for query in part.query_ids]
    per_query = evaluation.per_query.copy()
    per_query[chosen] = part.per_query
    return replace(evaluation, per_query=per_query)


def _shared_measures(evaluations: Sequence[Evaluation]) -> tuple[Measure, ...]:
    shared = [m for m in evaluations[0].measures if all(m in other.measures for other in evaluations)]
    if not shared:
        raise InputError(
            "the evaluations have no measure in common",
            where="evaluations",
            fix="evaluate both by the same measures; they have "
            + "; and ".join(", ".join(map(str, evaluation.measures)) for evaluation in evaluations),
        )
    return tuple(shared)


def _compared(
    evaluations: Sequence[Evaluation],
    design: Design,
    inputs: tuple[Finding, ...] = (),
    *,
    earlier: SignFlips | None = None,
) -> Comparison:
    """Compare evaluations; `inputs` are findings about judgments and rankings."""
    if len(evaluations[0].query_ids) < 2:
        raise InputError("one query is too few for a comparison", where="judgments", fix="judge more queries")
    work = Computation(evaluations, design, earlier=earlier)
    named = work.named
    run_differences = tuple(withhold_verdict(d, named[d.run], named[d.baseline]) for d in work.differences())
    own = findings_of_evaluations(evaluations, design, run_differences)
    before = named[design.baseline]
    settings = (
        settings_change(e, before.settings, design.baseline, e.run_name) for e in evaluations if e is not before
    )
    changes = list(filter(None, settings))
    several = [change for change in changes if change.severity == "warning"]
    comparison = Comparison(
        evaluations=tuple(evaluations),
        design=design,
        differences=run_differences,
        sentences=(),
        findings=tuple(dict.fromkeys([*own, *several, *inputs])),
        _inputs=inputs,
        _work=work,
    )
    single_changes = (str(change) for change in changes if change.severity == "info")
    return replace(
        comparison,
        sentences=(*comparison.withheld_sentences, *sentences(work, run_differences), *single_changes),
    )


def _check_common(truth: Qrels, runs: Sequence[Outline]) -> None:
    """Refuse a run that shares no judged query with another run."""
    judged = [[q for q in run.queries if q in truth.query_index] for run in runs]
    having = Counter(chain(*judged))
    for run, mine in zip(runs, judged, strict=True):
        others = having.keys() - set(mine)
        if mine and others and all(having[q] == 1 for q in mine):
            ours, theirs = (some(sorted(map(show_id, part))) for part in (mine, others))
            raise InputError(
                f"{run.name!r} has no judged query in common with another run: it has {ours}, others have {theirs}",
                where="runs",
                fix="run all systems on the same queries",
            )


def _common(truth: Qrels, runs: Sequence[Outline]) -> list[bytes]:
    """Return the queries that are judged and in every run."""
    in_all = set(truth.query_index).intersection(*(run.queries for run in runs))
    common = [query for query in truth.query_index if query in in_all]
    if not common:
        raise InputError(
            "no judged query is in all runs",
            where="queries",
            fix="use the same query ids in all runs, or queries='all'",
        )
    return common


def _baseline(names: Sequence[str], wanted: str | None) -> str:
    """Return the baseline among distinct names, by default the first."""
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"duplicate run name {name!r}", where="runs", fix='name them: {"first": run_a, "second": run_b}'
            )
    if wanted is not None and wanted not in names:
        raise UnknownName(f"unknown run {wanted!r}", fix=f"runs are: {', '.join(names)}")
    return names[0] if wanted is None else wanted
