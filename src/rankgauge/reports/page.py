"""Reports as single self-contained HTML files."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from rankgauge.answers import AnswerDiagnosis, AnswerEvaluation
from rankgauge.comparison.comparison import COMPARED, Comparison, compare
from rankgauge.comparison.conclusions import units
from rankgauge.comparison.differences import corrected_means
from rankgauge.core.findings import Finding, explaining
from rankgauge.core.grouping import group_values
from rankgauge.core.recommendations import next_step
from rankgauge.core.text import keep, many
from rankgauge.corpus.collection import Collection
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.data.subsets import keep_queries
from rankgauge.diagnosis.diagnosis import Diagnosis, diagnose
from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation.context import make_plan, prepare_judgments
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.evaluation.input_checks import collection_findings
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure
from rankgauge.rendering.plot_drawing import Plot
from rankgauge.rendering.plots import PLOTS, plot, plot_measures
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table
from rankgauge.reports.answers import answer_conclusions, answer_sections
from rankgauge.reports.catalogue import summary
from rankgauge.reports.evaluations import notes_of
from rankgauge.reports.queries import Queries
from rankgauge.reports.sections import (
    Details,
    Part,
    Section,
    asset,
    comparison_result,
    deciding_difference,
    diagnosis_section,
    page,
)

_ENDS = ("best", "worst")
_SURE = ("better", "worse")
_LOOKED = 10
_DRAWS = 100
_CURVES = tuple(kind for kind, of in PLOTS.items() if of.needs)


def html_report(  # noqa: PLR0913 - a page has many parts, all by keyword
    qrels: Any,
    runs: Mapping[str, Any] | Iterable[Any] | None = None,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    result: Evaluation | Comparison | None = None,
    baseline: str | None = None,
    collection: Any = None,
    diagnosed: str | None = None,
    title: str = "",
    date: str = "",
    sections: Iterable[Section] = (),
    plots: bool | None = None,
) -> str:
    """Return a report as one HTML file: conclusions, tables, plots, queries, and provenance.

    The page is self-contained: it loads no scripts, fonts, or images. Tables can be sorted; the
    page follows the light or dark mode of the system, and can be printed. The same input gives the
    same bytes: the only date is `date`.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` accepts. Or, without `runs`, an
            evaluation, several evaluations of the same queries, a comparison, or a diagnosis of
            answers.
        runs: One or more: a mapping of name to run, or named runs (a path is named after its file).
            Each is anything that :meth:`Run.of` accepts.
        measures: Measures; the first is the primary one. Default: those of `compare`.
        result: Result of `evaluate` (for one run) or `compare` for these runs, to use other
            settings; it determines measures and baseline.
        baseline: Name of the run that the others are compared with; default: the first.
        collection: Texts: a :class:`Collection` or the path of its folder.
        diagnosed: Name of a run to diagnose by the primary measure; ``best`` and ``worst`` select
            the run with the best or the worst mean.
        title: Heading; default: the names of the runs.
        date: Date to print.
        sections: Additional sections for the end of the page.
        plots: Whether to include plots, which need ``rankgauge[plots]``. By default, plots are
            included if it is installed; otherwise a note says so.

    Returns:
        A complete HTML page.

    Raises:
        MissingExtra: If plots are requested and matplotlib is not installed.
        InputError: If an input is invalid.

    Example:
        >>> qrels, runs = {"q1": {"d1"}, "q2": {"d2"}}, {"mine": {"q1": ["d1"], "q2": ["d1"]}}
        >>> page = html_report(qrels, runs, "RR", plots=False)
        >>> page.splitlines()[0], "<h1>mine</h1>" in page
        ('<!DOCTYPE html>', True)
    """
    if runs is None:
        if any(other is not None for other in (measures, result, collection, diagnosed)):
            raise InputError(
                "there are no runs",
                where="html_report",
                fix="pass judgments and runs; or evaluations alone, without measures, result, collection, "
                "and diagnosed",
            )
        report = _report_of_values(qrels, baseline)
    else:
        if result is not None and (measures is not None or baseline is not None):
            raise InputError(
                "measures and baseline are those of the result",
                where="html_report",
                fix="omit them, or pass them to compare()",
            )
        judged = prepare_judgments(qrels, make_plan(COMPARED if measures is None else measures).reads)
        truth, sources = Qrels.of(judged), _named(runs)
        named = {name: run for name, (_, run) in sources.items()}
        if result is None and len(named) > 1:
            result = compare(judged, named, measures, baseline=baseline)
        elif result is None:
            ((name, run),) = named.items()
            if baseline not in {None, name}:
                raise InputError(
                    f"there is one run, {name!r}, and nothing to compare with {baseline!r}",
                    where="baseline",
                    fix="pass both runs, or omit the baseline",
                )
            result = evaluate(judged, run, COMPARED if measures is None else measures)
        read = collection if isinstance(collection, Collection) else collection and Collection.read(collection)
        runs_read = (
            (f"run {name}", *_file(source), len(run), len(run.table)) for name, (source, run) in sources.items()
        )
        inputs = Table(
            ("input", "file", "SHA-256", "queries", "lines"),
            (("judgments", *_file(qrels), len(truth), len(truth.table)), *runs_read),
        )
        report = _Report(result, inputs, truth, named, read or Collection())
        report.check()
    drawn = find_spec("matplotlib") is not None if plots is None else plots
    report = replace(report, plots=drawn, lacking=plots is None and not drawn)
    name = "" if diagnosed is None else report.named(diagnosed)
    why = [diagnosis_section(report.diagnosed(name))] if name else []
    return report.page(title=title or report.heading, date=date, sections=(*why, *sections), diagnosed=name)


def _report_of_values(values: Any, baseline: str | None) -> _Report:
    """Return a report on evaluations without judgments and runs."""
    answers = values if isinstance(values, AnswerDiagnosis) else None
    texts = Collection.of(
        {}, {judged.record.id: judged.record.question for judged in answers.answers.judged} if answers else {}
    )
    if answers:
        values = answers.answers
    results = tuple(values) if isinstance(values, Iterable) and not isinstance(values, Result) else (values,)
    result: Any = results[0] if len(results) == 1 else compare(results, baseline=baseline)
    evaluations = result.evaluations if isinstance(result, Comparison) else (result,)
    if not all(isinstance(evaluation, Evaluation) for evaluation in evaluations):
        raise InputError(
            f"got {type(values).__name__} without runs",
            where="html_report",
            fix="pass html_report(qrels, runs), or evaluations",
        )
    rows = tuple((e.run_name, len(e.query_ids), len(e.measures)) for e in evaluations)
    inputs = Table(("evaluation", "queries", "measures"), rows)
    return _Report(result, inputs, Qrels.of({}), {}, texts, answers)


def _named(runs: Any) -> dict[str, tuple[Any, Run]]:
    """Return sources and runs by name; files of the same name are distinguished by their full path."""
    entries: list[tuple[str, Any, Run]] = []
    if isinstance(runs, Mapping):
        entries = [(str(name), source, Run.of(source, name=str(name))) for name, source in runs.items()]
    elif isinstance(runs, Iterable) and not isinstance(runs, str | bytes | os.PathLike):
        entries = [(run.name, source, run) for source in runs for run in (Run.of(source),)]
        names = [name for name, *_ in entries]
        own = (os.fspath(at) if names.count(name) > 1 and _is_path(at) else name for name, at, _ in entries)
        entries = [(name, source, Run.of(run, name=name)) for name, (_, source, run) in zip(own, entries, strict=True)]
    if not entries:
        raise InputError(
            f"got {type(runs).__name__}, expected runs", where="runs", fix='pass them by name: {"bm25": run_a}'
        )
    by_name = {name: (source, run) for name, source, run in entries}
    if len(by_name) < len(entries):
        twice = next(name for name in by_name if [n for n, *_ in entries].count(name) > 1)
        raise InputError(
            f"duplicate run name {twice!r}", where="runs", fix='name them: {"first": run_a, "second": run_b}'
        )
    return by_name


def _is_path(source: Any) -> bool:
    return isinstance(source, str | os.PathLike)


def _file(source: Any) -> tuple[str, str]:
    """Return name and checksum of a file; empty for streams and other sources."""
    if not _is_path(source) or not Path(source).is_file():
        return "", ""
    with Path(source).open("rb") as stream:
        return Path(source).name, hashlib.file_digest(stream, "sha256").hexdigest()


def _merged(warnings: Iterable[str], runs: Sequence[str]) -> Iterator[str]:
    """Yield warnings; a warning shared by several runs is given once, with their names."""
    named = ((text, next((name for name in runs if text.startswith(f"{name}: ")), "")) for text in warnings)
    runs_of = group_values((text.removeprefix(f"{run}: "), run) for text, run in named)
    for text, names in runs_of.items():
        yield f"{', '.join(names)}: {text}" if names[0] else text


@dataclass(frozen=True)
class _Report:
    """Content of a page."""

    result: Evaluation | Comparison
    inputs: Table
    truth: Qrels
    runs: Mapping[str, Run]
    texts: Collection
    answers: AnswerDiagnosis | None = None
    plots: bool = False
    lacking: bool = False

    @property
    def comparison(self) -> Comparison | None:
        return self.result if isinstance(self.result, Comparison) else None

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        return self.result.evaluations if isinstance(self.result, Comparison) else (self.result,)

    def check(self) -> None:
        """Reject a result of other runs or judgments."""
        lacking = [e.run_name for e in self.evaluations if e.run_name not in self.runs]
        if lacking:
            raise InputError(
                f"the result is of a run {lacking[0]!r}, which was not given",
                where="runs",
                fix=f"given runs: {', '.join(self.runs)}",
            )
        strange = [q for e in self.evaluations for q in e.query_ids if q not in self.truth]
        if strange:
            raise InputError(
                f"the result is of a query {strange[0]!r}, which is not judged",
                where="judgments",
                fix="pass the judgments that the result was made with",
            )

    @property
    def primary(self) -> Measure:
        return self.comparison.primary if self.comparison else self.evaluations[0].measures[0]

    @property
    def base(self) -> str:
        return self.comparison.baseline if self.comparison else self.evaluations[0].run_name

    @property
    def heading(self) -> str:
        names = [e.run_name for e in self.evaluations]
        return f"{many(len(names) - 1, 'run')} against {self.base}" if len(names) > 2 else " and ".join(names)

    def named(self, wanted: str) -> str:
        """Resolve the name of a run; ``best`` and ``worst`` refer to the means."""
        names = [e.run_name for e in self.evaluations]
        if wanted in _ENDS and wanted not in names:
            wanted = self._end(wanted)
        if wanted not in names:
            raise UnknownName.of("run", wanted, names)
        return wanted

    def _end(self, which: str) -> str:
        """Return the run with the best or the worst mean; of ties, the first."""
        sign = -1 if self.primary.declaration.better == "lower" else 1
        by_run, _ = corrected_means(self.evaluations)
        means = {run: sign * row[str(self.primary)] for run, row in by_run.items()}
        return (max if which == "best" else min)(means, key=means.__getitem__)

    def diagnosed(self, name: str) -> Diagnosis:
        """Return the diagnosis of a run by the primary measure."""
        evaluation = next(e for e in self.evaluations if e.run_name == name)
        same = len(evaluation.query_ids) == len(self.truth)
        best = self._end("best")
        return diagnose(
            self.truth if same else keep_queries(self.truth, evaluation.query_ids),
            self.runs[name],
            self.texts if self.texts.documents or self.texts.queries else None,
            measure=self.primary,
            also=self.runs[best] if name != best else None,
        )

    def _bottom_line(self, diagnosed: str) -> Iterator[tuple[str, str]]:
        """Yield result, reason, and next step, each with its heading."""
        yield "Result", self._result()
        if self._withheld:
            finding = self._withheld[0][1]
            fix = finding.fix or f"rankgauge check shows the documents and queries of {finding.code}"
            yield "Next step", f"Fix the input first: {fix}" if finding.code else fix
        elif self.answers:
            yield from answer_conclusions(self.answers)
        elif self.runs:
            yield from self._cause(diagnosed)
        elif isinstance(self.evaluations[0], AnswerEvaluation):
            yield "Next step", next_step("report of answers")
        else:
            yield "Next step", next_step("report of evaluations")

    def _cause(self, diagnosed: str) -> Iterator[tuple[str, str]]:
        """Yield why the run with the worst mean is worse, and what to do."""
        try:
            diagnosis = self.diagnosed(self._end("worst"))
        except (InputError, UnknownName):
            return  # the measure has no better direction
        name = diagnosis.run_name
        pair = None if self.comparison is None else deciding_difference(self.comparison)
        sure = pair is not None and pair.verdict in _SURE
        if pair is not None and sure and name in {pair.run, pair.baseline}:
            heading = f"Why {name} is worse"
        else:
            heading = f"Likely cause in {name}" if self.comparison else "Likely cause"
        step = "" if pair is None or sure else "Judge more queries before choosing a run. "
        if diagnosis.first_causes or diagnosis.failing:
            yield heading, diagnosis.conclusion
            where = f"Diagnosis of {name} below" if diagnosed == name else "rankgauge diagnose"
            fixes = [f"Suggested fix for {name}: {total.cause.fix}" for total in diagnosis.first_causes[:1]]
            step += f"{fixes[0] if fixes else f'Read the worst queries of {name}'} (evidence: {where})"
        if step:
            yield "Next step", step.rstrip()

    @property
    def _withheld(self) -> tuple[tuple[str, Finding], ...]:
        """Findings that invalidate a run, so that there is no verdict on it."""
        if self.comparison:
            return self.comparison.withheld
        return tuple((e.run_name, finding) for e in self.evaluations for finding in explaining(e.findings))

    def page(self, *, title: str, date: str, sections: Sequence[Section], diagnosed: str) -> str:
        queries = Queries(self.evaluations, self.base, self.primary, self.truth, self.runs, self.texts)
        details = list(self._details(queries))
        own = answer_sections(self.answers) if self.answers else ()
        if self.lacking:  # plots are not available
            drawable = [[part for part in section.parts if not isinstance(part, Plot)] for section in sections]
            sections = [replace(s, parts=tuple(parts)) for s, parts in zip(sections, drawable, strict=True)]
        design = None if self.comparison is None else self.comparison.design
        test = (
            {}
            if design is None
            else {
                "baseline": design.baseline,
                "tested measures": ", ".join(map(str, design.tested)),
                "method": design.describe(),
            }
        )
        return page(
            "page.html",
            script=asset("page.js"),
            title=title,
            date=date,
            facts=self._facts(),
            bottom_line=list(self._bottom_line(diagnosed)),
            warnings=list(self._warnings()),
            sections=[
                *own,
                *self._sections(),
                *sections,
            ],
            queries=queries.table([query["id"] for _, _, shown in details for query in shown]),
            details=details,
            inputs=self.inputs,
            policies=self.evaluations[0].policies.describe(),
            settings=[(e.run_name, dict(e.settings)) for e in self.evaluations if e.settings],
            test=test,
            notes=notes_of(self.evaluations),
            measures=list(self._measures()),
        )

    def _measures(self) -> Iterator[tuple[str, str]]:
        """Yield descriptions; measures that differ only in the cut-off share one."""
        for alike in group_values((m.family, m) for m in self.evaluations[0].measures).values():
            declared = alike[0].declaration
            text = summary(declared).replace("`", "")
            parts = keep(
                f"{text[0].upper()}{text[1:]}.",
                declared.better == "lower" and "Lower is better.",
                declared.mean != "arithmetic" and f"Mean: {declared.mean}.",
            )
            yield ", ".join(map(str, alike)), " ".join(parts)

    def _facts(self) -> list[str]:
        queries = len(self.evaluations[0].query_ids)
        if all(isinstance(e, AnswerEvaluation) for e in self.evaluations):
            facts = [many(queries, "question"), many(len(self.evaluations), "system")]
        else:
            facts = [many(queries, "query"), many(len(self.evaluations), "run")]
        if self.comparison:
            facts.append(f"baseline {self.base}")
        stamps = dict.fromkeys(e.stamp for e in self.evaluations if isinstance(e, AnswerEvaluation))
        return [*facts, f"primary measure {self.primary}", *(f"judge: {stamp}" for stamp in stamps)]

    def _result(self) -> str:
        """Return the conclusion in one sentence, or why there is no verdict."""
        if self.comparison:
            return comparison_result(self.comparison)
        (evaluation,) = self.evaluations
        if self._withheld:
            return f"{evaluation.run_name} cannot be evaluated: {self._withheld[0][1].message}"
        mean, interval, by_judge = evaluation.mean()[str(self.primary)], evaluation.mean_interval(self.primary), ""
        if isinstance(evaluation, AnswerEvaluation):
            best, interval, _ = evaluation.estimates()[str(self.primary)]
            mean, by_judge = (mean, ", by the labels of the judge") if best is None else (best, "")
        unit = "question" if isinstance(evaluation, AnswerEvaluation) else "query"
        queries = many(len(evaluation.query_ids), unit)
        if math.isnan(mean):
            return f"{self.primary} of {evaluation.run_name} is undefined for all of {queries}"
        known = [v for v in evaluation.counted(self.primary).tolist() if not math.isnan(v)]
        queries = many(len(known), unit)
        sure = f" (95% CI {interval[0]:.3f} to {interval[1]:.3f})" if interval and interval[0] <= interval[1] else ""
        return f"{evaluation.run_name}: {self.primary} is {mean:.4f} over {queries}{sure}{by_judge}"

    def _warnings(self) -> Iterator[str]:
        """Yield limitations, missing texts, and missing plots."""
        if self.comparison:
            yield from _merged(self.comparison.warnings, [e.run_name for e in self.evaluations])
        else:
            known = {f"WARNING: {finding}" for _, finding in self._withheld}
            marked = [n for n in self.evaluations[0].notes if n.startswith("WARNING")]
            yield from (n.removeprefix("WARNING").lstrip(": ") for n in marked if n not in known)
        if self.texts.documents:
            docs = (d for run in self.runs.values() for q in run for d in islice(run[q], _LOOKED))
            yield from map(str, collection_findings(docs, self.texts.documents))
        if self.lacking:
            yield "without plots: matplotlib is not installed (pip install 'rankgauge[plots]')"

    # ---- sections

    def _sections(self) -> Iterator[Section]:
        if self.comparison:
            means = self.comparison.table()
            legend = ("★ best run",) if means.best else ()
            table = replace(means, title="Means by measure and run", notes=(*legend, *means.notes))
            yield Section("Means", (table, *self._plots("means")))
            conclusions = self.comparison.sentences[len(self.comparison.withheld_sentences) :]
            # For two runs, the result at the top contains the first two sentences.
            more = (Details("Conclusions in sentences", conclusions),) if len(conclusions) > 2 else ()
            plots = self._plots("differences", "per-query")
            every = self.comparison.design.pairs == "all"
            title = "Differences of every pair" if every else f"Differences from {self.base}"
            notes = tuple(units(self.evaluations[0].measures))
            full = replace(self.comparison.differences_table(), title=title, notes=notes)
            tested = [place for place, d in enumerate(self.comparison.differences) if d.verdict is not None]
            differences: tuple[Part, ...] = (full,)
            if len(self.evaluations) > 2 and len(tested) < len(full.rows):
                folded = Details(f"All {len(full.rows)} differences, tested or not", differences)
                differences = (full.part(rows=tested), folded)
            yield Section("Differences", (*differences, *more, *plots))
        else:
            table = replace(self.evaluations[0].table(), title="Means by measure", notes=())
            yield Section("Means", (table, *self._plots("means")))
        if self.plots and self.runs:
            yield Section("Ranks of relevant documents", tuple(self._curves()))
        if self.plots and self.comparison:
            yield Section("Values by query and run", tuple(self._plots("heat-map")))

    def _plots(self, *kinds: str) -> Iterator[Plot]:
        if self.plots:
            for kind in kinds:
                yield plot(self.comparison or self.evaluations, kind)

    def _curves(self) -> Iterator[Plot]:
        """Yield plots that need more measures, evaluated on the same queries and policies."""
        # As bytes: the displayed text of an escaped id does not match the id.
        ids = dict(zip(self.truth.query_ids, self.truth.table.queries.tolist(), strict=True))
        wanted = [name for kind in _CURVES for name in plot_measures(kind)]
        curves = [
            evaluate(
                self.truth,
                self.runs[e.run_name],
                wanted,
                ties=e.policies.ties,
                queries=[ids[query] for query in e.query_ids],
                duplicates=e.policies.duplicates,
                undefined=e.policies.undefined,
                unjudged=e.policies.unjudged,
                # Curves may need measures without a closed form even if the report has none.
                draws=e.policies.draws or (_DRAWS if e.policies.ties == "mean" else 0),
                seed=e.policies.seed,
            )
            for e in self.evaluations
        ]
        named = [replace(f, run_name=e.run_name) for f, e in zip(curves, self.evaluations, strict=True)]
        for kind in _CURVES:
            yield plot(named, kind)

    def _details(self, queries: Queries) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
        """Yield headings with example queries."""
        if not self.runs:
            return
        lost = queries.losses()
        if lost:
            text = "Sorted by the loss of the run that loses most."
            yield f"Largest losses against {self.base}", text, queries.details(lost)
        hard = queries.hard(lost)
        if hard and self.comparison:
            text = "Every run is below its mean. Lowest values first."
            yield "Hard for every run", text, queries.details(hard)
        elif hard:
            yield "Lowest values", "Below the mean, lowest first.", queries.details(hard)
        others, left = queries.others([*lost, *hard])
        if others:
            text = f"{many(left, 'query')} left out: the page would be larger than 10 MB." if left else ""
            yield "Other queries", text, others
