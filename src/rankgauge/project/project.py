"""`Project`: what is evaluated, and what was measured."""

from __future__ import annotations

import math
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from rankgauge.benchmark.plan import BenchmarkPlan, PlanBuilder, load_collection
from rankgauge.benchmark.plan_execution import PlanOutcome, run_plan
from rankgauge.comparison.comparison import Comparison, compare
from rankgauge.core.policies import Ties
from rankgauge.core.project_file import ProjectFile
from rankgauge.core.project_names import PROJECT_FILE, find_project_file
from rankgauge.core.recommendations import next_step
from rankgauge.core.text import Ratio, many
from rankgauge.corpus.collection import Collection, Query
from rankgauge.corpus.loading import unjudged_error
from rankgauge.data.qrels import Qrels, fingerprint
from rankgauge.data.run import Run
from rankgauge.diagnosis.diagnosis import Diagnosis, diagnose
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.evaluation.questions import question_fields
from rankgauge.evaluation.result import Evaluation
from rankgauge.gates.release_gate import gate
from rankgauge.gates.result import GateResult
from rankgauge.gates.rules import GateRules
from rankgauge.judging.export import export_judgments
from rankgauge.judging.planning import judging_status
from rankgauge.judging.project import JudgingProject
from rankgauge.measures.measure import parse_all
from rankgauge.production.log import EventLog
from rankgauge.production.monitor import Alerts, find_alerts
from rankgauge.production.online import online_metrics
from rankgauge.project.sections import alert_thresholds, judging_settings
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table
from rankgauge.store.database import NothingStored
from rankgauge.store.entries import HistoryEntries, HistoryEntry
from rankgauge.store.history import History

Which: TypeAlias = int | str | HistoryEntry
_JUDGED = 10  # ranks
_SETTINGS = {"draws": (int,), "seed": (int,), "weights": (str,), "mix_origins": (bool,)}
_REEVALUATED = ("ties", "duplicates", "undefined", "unjudged", "draws", "seed")


@dataclass(frozen=True)
class CollectedGrades:
    """Grades of the judges in a store for the documents of a question.

    Attributes:
        graded: Grades given in tasks, which show neither systems nor ranks.
        in_sight: Grades given in sight of systems and ranks, for other documents.
        chosen: Grades by the relevance from choices, for other documents.
    """

    graded: Mapping[str, float]
    in_sight: Mapping[str, float]
    chosen: Mapping[str, float]

    def beside(self, others: Mapping[str, float]) -> dict[str, float]:
        """Return these grades and those of another source, which count before choices only."""
        return {**self.chosen, **others, **self.in_sight, **self.graded}


class Project:
    """A project: a folder with ``rankgauge.toml`` and a store of what was measured.

    Evaluations are named by a short name: ``bm25#3`` (run and number), ``bm25@latest``,
    ``@latest``, ``@baseline``.

    Attributes:
        file: The project file.
    """

    def __init__(self, folder: str | os.PathLike[str] = ".", *, trust: bool = False) -> None:
        """Open the project of a folder, or of the nearest folder above it.

        Args:
            folder: The folder, or a project file.
            trust: Whether to run the code of a project file that belongs to another user.

        Raises:
            InputError: If there is no project.
            FormatError: If its file is not valid.
        """
        path = os.fspath(folder) if pathlib.Path(folder).is_file() else None
        if pathlib.Path(folder).is_dir():
            path = find_project_file(folder)
        if path is None:
            raise InputError(
                f"there is no {PROJECT_FILE} in this folder or above it",
                where=os.fspath(folder),
                fix="create one: rankgauge init",
            )
        self.file = ProjectFile.read(path)
        self._trust = trust

    def __repr__(self) -> str:
        return f"<Project {self.file.folder}>"

    # ---- contents

    @cached_property
    def plan(self) -> BenchmarkPlan:
        """The retrievers and how to run them."""
        return BenchmarkPlan.read(self.file.path, trust=self._trust)

    @cached_property
    def rules(self) -> GateRules:
        """The rules of the gate."""
        return GateRules.of(self.file.path)

    @cached_property
    def evaluations(self) -> History:
        """The saved evaluations."""
        return History(self.file.store, baseline=self.file.baseline)

    @cached_property
    def judging(self) -> JudgingProject:
        """Questions, pools, judges, and their choices; see `rankgauge judge create`."""
        return JudgingProject(self.file.store)

    def open_judging(self) -> JudgingProject:
        """Return :attr:`judging`; where nobody judged yet, create it with the settings of the file."""
        try:
            self.judging.settings  # noqa: B018 - reads the store
        except NothingStored:
            JudgingProject.create(self.file.store, judging_settings(self.file)).close()
        return self.judging

    @cached_property
    def collection(self) -> Collection:
        """Documents, questions with those written or tried on pages, and their judgments."""
        collection = load_collection(self.file)
        written = {}
        with suppress(NothingStored):
            questions = self.judging.questions.values()
            written = {q.id: Query(q.id, q.text) for q in questions if q.origin == "page" and not q.withdrawn}
        return replace(collection, queries={**collection.queries, **written}) if written else collection

    @property
    def judgments(self) -> Qrels:
        """The judgments of the collection, and those of judges in the store.

        If both exist and judges chose documents, without grades, a chosen document gets grade 1: the
        scale of the collection is unknown. For a document that has several, grades given in tasks
        count first, then grades given in sight of systems and ranks (on the page of a comparison),
        then those of the collection, and choices last.

        Raises:
            InputError: If there are none.
        """
        given = self.collection.qrels
        collected = self.collected(beside_others=given is not None)
        if given is not None and not collected:
            return given
        judged: dict[str, Mapping[str, float]] = {} if given is None else {**given}
        for query, grades in collected.items():
            judged[query] = grades.beside(judged.get(query, {}))
        if not judged:
            if state := self._judging_status()[1]:
                raise InputError("nothing is judged yet", where=str(self.file.path), fix=next_step(state))
            raise unjudged_error(self.collection, self.file.folder)
        return Qrels.of(judged)

    def collected(self, *, beside_others: bool) -> dict[str, CollectedGrades]:
        """Return the grades of the judges in the store, by question.

        Args:
            beside_others: Whether there are judgments of another source, whose scale is unknown: then
                a document chosen, without a grade, gets grade 1.
        """
        try:
            if not self.judging.judgments():
                return {}
            export = export_judgments(self.judging)
        except InputError:  # nobody judges here, or nothing is finished
            return {}
        kinds = {(q, document): kind for kind in ("in_sight", "graded") for q, document in export.about[kind]}
        highest = 1 if beside_others else math.inf
        collected: dict[str, CollectedGrades] = {}
        for query, grades in export.grades.items():
            parts: dict[str, dict[str, float]] = {"graded": {}, "in_sight": {}, "chosen": {}}
            for document, grade in grades.items():
                kind = kinds.get((query, document), "chosen")
                parts[kind][document] = min(grade, highest) if kind == "chosen" else grade
            collected[query] = CollectedGrades(**parts)
        return collected

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures, of which the first decides."""
        with self.file.at("measures"):
            return tuple(str(measure) for name in self.file.value([], "measures") for measure in parse_all(name))

    def settings(self, ties: Ties = "trec", questions: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return arguments of :func:`evaluate` from the table ``[evaluation]``.

        Args:
            ties: The policy; orders are drawn only for ``mean``.
            questions: Fields of the questions, by id; default: those of the collection.

        Raises:
            FormatError: If a value is not valid.
        """
        table = self.file.inside("evaluation").checked("evaluation", _SETTINGS)
        settings = {key: value for key, value in table.items() if ties == "mean" or key not in {"draws", "seed"}}
        weights = settings.get("weights")
        if weights and (path := self.file.folder / weights).is_file():
            settings["weights"] = {query: row.get("weight") for query, row in question_fields(path).items()}
        elif weights:
            settings["questions"] = (
                {query.id: query.fields for query in self.collection.queries.values()}
                if questions is None
                else questions
            )
        return settings

    # ---- measuring

    def build_retrievers(self) -> dict[str, Any]:
        """Create the retrievers of the file, by name.

        Raises:
            InputError: If the collection cannot be loaded, or a retriever cannot be created.
        """
        self.plan.check()
        builder = PlanBuilder(self.plan, self.plan.load(self.collection, progress=False))
        return {planned.name: builder.named(planned.name) for planned in self.plan.selected()}

    def bench(
        self,
        only: Iterable[str] = (),
        *,
        rerun: Literal["missing", "failed", "resume", "all"] = "missing",
        timed: int | None = None,
    ) -> PlanOutcome:
        """Run the retrievers, and save an evaluation of each.

        Args:
            only: Names of the retrievers to run; default: all.
            rerun: The queries to send, as for :meth:`Benchmark.run`.
            timed: The number of queries to time; default: that of the file.

        Raises:
            InputError: If the collection cannot be loaded, or no query has judgments.
        """
        bench = self.plan.load(self.collection, self.judgments)
        outcome = run_plan(self.plan, only=only, rerun=rerun, timed=timed, bench=bench)
        for run in outcome.bench.runs.values():
            self.save(run.evaluate(self.measures or None), run.qrels, run.ranked())
        return outcome

    def evaluate(self, run: Any, *, save: bool = True) -> Evaluation:
        """Evaluate a run on the judgments of the project, and save the evaluation.

        Args:
            run: Anything that :meth:`Run.of` accepts.
            save: Whether to save the evaluation.
        """
        judgments, ranked = self.judgments, Run.of(run)
        evaluation = evaluate(judgments, ranked, self.measures or None, **self.settings())
        if save:
            self.save(evaluation, judgments, ranked)
        return evaluation

    def save(
        self,
        evaluation: Evaluation,
        judgments: Qrels,
        run: Run,
        *,
        label: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> HistoryEntry:
        """Save an evaluation with its judgments, which may have changed since, its ranking, and texts."""
        return self.evaluations.add(
            evaluation,
            judgments,
            run=run,
            collection=self.collection,
            texts=self.file.texts,
            label=label,
            settings=settings,
        )

    def evaluate_again(self) -> list[HistoryEntry]:
        """Evaluate all saved runs on the current judgments, and save the evaluations.

        Policies and weights are those of the latest evaluation of each run. A run is left out if
        that evaluation is on these judgments, or has none of their queries.

        Returns:
            The new evaluations.
        """
        judgments = self.judgments
        entries = []
        for entry, saved in self._outdated(judgments, self.evaluations.entries()):
            run = self.evaluations.run(entry)
            judged = [query for query in saved.query_ids if query in judgments]
            given = entry.policies.queries == "given" or saved.weights is not None
            evaluation = reevaluate(saved, judgments, run, judged if given else entry.policies.queries)
            entries.append(self.save(evaluation, judgments, run, label=entry.label, settings=entry.settings))
        return entries

    def _outdated(self, judgments: Qrels, entries: Iterable[HistoryEntry]) -> Iterator[tuple[HistoryEntry, Evaluation]]:
        """Yield the latest evaluation of each run if it is of other judgments of these queries."""
        current = fingerprint(judgments)
        latest = {(entry.run, entry.ranking): entry for entry in entries if entry.ranking is not None}
        for entry in latest.values():
            if entry.qrels != current:
                saved = self.evaluations.load(entry)
                if any(query in judgments for query in saved.query_ids):
                    yield entry, saved

    # ---- what was measured

    def compare(self, *names: Which) -> Comparison:
        """Compare saved evaluations with the first of them.

        Raises:
            MismatchError: If their judgments or policies differ.
        """
        return compare(self.evaluations.comparable(names))

    def gate(self, name: Which) -> GateResult:
        """Compare the run of a saved evaluation with the baseline file by the rules of the project."""
        saved = self.evaluations
        return gate(saved.qrels(name), saved.run(name), self.rules, baseline=self.rules.baseline)

    def diagnose(self, name: Which = "@latest") -> Diagnosis:
        """Find likely causes of the errors of the run of a saved evaluation."""
        saved = self.evaluations
        return diagnose(saved.qrels(name), saved.run(name), saved.collection(name))

    def status(self) -> ProjectStatus:
        """Return what is there, and the next step; no code is imported.

        Raises:
            InputError: If the store cannot be read, or a threshold is invalid.
        """
        thresholds, alerts = alert_thresholds(self.file), None
        facts: dict[str, str] = {}
        state = ""
        try:
            collection = self.collection
            facts["documents"] = f"{len(collection.documents):,}"
            facts["questions"] = f"{len(collection.queries):,}"
            judgments = self.judgments
            judged = sum(query in judgments for query in collection.queries)
            facts["judgments"] = f"{len(judgments.table):,}, for {many(judged, 'question')}"
        except InputError as error:
            facts["judgments" if facts else "documents"] = error.what
            missing = "project: no judgments" if facts.get("questions", "0") != "0" else "project: no questions"
            state = self._judging_status()[1] or missing
            if state == "project: no candidates" and facts.get("documents") == "0":
                state = "project: no questions"
            judgments = None
        for fact, (text, next_state) in {
            "evaluations": self._evaluation_status(judgments),
            "judging": self._judging_status(),
            "log": self._log_status(),
        }.items():
            if text:
                facts[fact] = text
            state = state or next_state
        if self.file.log is not None or thresholds:
            try:
                alerts = self.alerts()
                facts["alerts"] = alerts.summary()
            except RankgaugeError as error:
                facts["alerts"] = f"not checked: {error.what}"
        return ProjectStatus(self.file.folder.name, facts, next_step(state or "project: evaluated"), alerts)

    def alerts(self) -> Alerts:
        """Return the alerts of the production log, with the thresholds of the file.

        Raises:
            InputError: If there is no log, it cannot be read, or a threshold is invalid.
            MissingExtra: If DuckDB is not installed.
        """
        thresholds = alert_thresholds(self.file)
        if self.file.log is None:
            raise self.file.error("there is no production log", "alerts", fix='name it: log = "FOLDER"')
        return find_alerts(online_metrics(self.file.log, by="week"), thresholds)

    def _evaluation_status(self, judgments: Qrels | None) -> tuple[str, str]:
        """Return the latest evaluation with its verdict, and the state that it leads to."""
        try:
            entries = self.evaluations.entries()
        except NothingStored:
            entries = HistoryEntries()
        if not entries:
            return "none", "project: no evaluation"
        latest = entries[-1]
        measure, mean = next(iter(latest.named_means().items()))
        text = f"{len(entries)}, the latest {latest.name}: {measure} {mean:.4f}"
        if latest.coverage:
            k, share = max(latest.coverage.items(), key=lambda item: (item[0] <= _JUDGED, item[0]))
            text += f", {Ratio(share):.0%} of the first {k} judged"
        if judgments is not None and any(self._outdated(judgments, entries)):
            return f"{text}; the judgments have changed since", "project: judgments changed"
        try:
            baseline = self.evaluations.entry("@baseline")
            difference = self.compare(baseline, latest).differences[0] if baseline.id != latest.id else None
        except InputError:  # no baseline, or not comparable
            return text, ""
        if difference is None or difference.verdict is None:
            return text, ""
        text += (
            f"; {difference.verdict} than {baseline.short_name}" if difference.verdict in {"better", "worse"} else ""
        )
        return text, "project: worse" if difference.verdict == "worse" else ""

    def _judging_status(self) -> tuple[str, str]:
        """Return the tasks of judges, and the state that they lead to."""
        try:
            status = judging_status(self.judging)
        except InputError:  # nobody judges here
            return "", ""
        text = f"{many(status.judged, 'task')} judged, {status.left} left"
        if not status.candidates:
            return text, "project: no candidates"
        return text, "project: tasks left" if status.left else ""

    def _log_status(self) -> tuple[str, str]:
        """Return the period of the log."""
        if self.file.log is None:
            return "", ""
        try:
            return EventLog(self.file.log).summary().summary(), ""
        except RankgaugeError as error:
            return error.what, ""


def reevaluate(evaluation: Evaluation, judgments: Qrels, run: Run, queries: Any = "all") -> Evaluation:
    """Evaluate a run on other judgments, by the measures, policies, and weights of an evaluation."""
    policies: Any = {name: getattr(evaluation.policies, name) for name in _REEVALUATED}
    if evaluation.weights is not None:
        policies["weights"] = dict(zip(evaluation.query_ids, evaluation.weights, strict=True))
    profile = None if evaluation.profile is None else evaluation.profile.name
    measures = list(evaluation.measures)
    result = evaluate(judgments, run, measures, queries=queries, profile=profile, **policies)
    return replace(result, run_name=evaluation.run_name)


@dataclass(frozen=True)
class ProjectStatus(Result):
    """What a project has. Returned by :meth:`Project.status`.

    Attributes:
        folder: The name of the folder.
        facts: What is there, with numbers.
        next_step: The most useful next step.
        alerts: The alerts of the log; None if there is no log or it cannot be read.
    """

    _attributes = "folder facts next_step alerts=alerts.to_dict"

    folder: str
    facts: Mapping[str, str]
    next_step: str
    alerts: Alerts | None = None

    def table(self) -> Table:
        """Return one row for each fact."""
        found = self.alerts
        alerts = () if found is None else (*(f"ALERT: {alert.text}" for alert in found.alerts), *found.notes())
        return Table(
            ("what", "status"),
            tuple(self.facts.items()),
            title=self.folder,
            notes=(*alerts, f"next step: {self.next_step}"),
        )

    def exit_code(self) -> int:
        """Return 1 if there is an alert, 4 if the log or a threshold cannot be checked, else 0."""
        return 4 * ("alerts" in self.facts) if self.alerts is None else self.alerts.exit_code()

    def summary(self) -> str:
        """Return the next step."""
        return f"{self.folder}: next step: {self.next_step}"
