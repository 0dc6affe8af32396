"""`Workbench`: the saved evaluations of a project, as pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rankgauge.comparison import Comparison, DecidingDocuments, RunDiff, compare, deciding_documents, diff
from rankgauge.corpus import Collection, Document, Query
from rankgauge.data import Qrels, ranked
from rankgauge.diagnosis import Diagnosis, diagnose
from rankgauge.errors import InputError
from rankgauge.evaluation import Evaluation
from rankgauge.judging import IN_SIGHT, Question, build_pool
from rankgauge.project import Project, reevaluate
from rankgauge.store import HistoryEntry, obstacles
from rankgauge.web.pages import Results

_DEPTH = 10  # ranks in which unjudged documents are looked for


@dataclass(frozen=True)
class Regraded:
    """A comparison of saved evaluations, and what the grades given since change.

    Attributes:
        entries: The evaluations; the others are compared with the first.
        saved: The comparison as saved.
        current: The comparison with the grades that judges gave since.
        grades: The current grades of each query whose grades changed.
    """

    entries: tuple[HistoryEntry, ...]
    saved: Comparison
    current: Comparison
    grades: Mapping[str, Mapping[str, float]]


class Workbench:
    """The saved evaluations of a project, with comparisons that are computed once.

    Args:
        project: The project, whose store has the evaluations and the judges.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.history = project.evaluations
        self.results = Results()

    def evaluation(self, entry: HistoryEntry) -> Evaluation:
        """Return the values of a saved evaluation."""
        return self.results.get(("evaluation", entry.id), lambda: self.history.load(entry))

    def measure(self, entry: HistoryEntry, name: str) -> Evaluation:
        """Return the values of one measure of a saved evaluation."""
        return self.results.get(("measure", entry.id, name), lambda: self.history.load(entry, name))

    def baseline(self, entry: HistoryEntry) -> HistoryEntry | None:
        """Return the evaluation to compare with: the baseline, or the latest of another run."""
        try:
            named = [self.history.entry("@baseline")]
        except InputError:
            named = []
        others = [*named, *reversed([other for other in self.history.entries() if other.id < entry.id])]
        return next((other for other in others if other.run != entry.run and not any(obstacles(other, entry))), None)

    def comparison(self, entries: Sequence[HistoryEntry], measure: str = "") -> Regraded:
        """Compare evaluations with the first of them, as saved and with the grades given since.

        Raises:
            MismatchError: If their judgments or policies differ.
        """
        ids = tuple(entry.id for entry in entries)

        def saved() -> Comparison:
            return compare(self.history.comparable(ids), tested=measure or None)

        position = self.project.judging.position

        def regraded() -> Regraded:
            before = self.results.get(("saved", ids, measure), saved)
            grades = self._changed_grades(entries[0], before)
            if not grades:
                return Regraded(tuple(entries), before, before, grades)
            parts = [
                reevaluate(
                    evaluation,
                    Qrels.of(grades),
                    self.history.run(entry, queries=grades),
                    list(grades) if evaluation.policies.queries == "given" else evaluation.policies.queries,
                )
                for entry, evaluation in zip(entries, before.evaluations, strict=True)
            ]
            return Regraded(tuple(entries), before, before.updated(parts), grades)

        return self.results.get(("regraded", ids, measure, position), regraded)

    def _changed_grades(self, entry: HistoryEntry, comparison: Comparison) -> dict[str, dict[str, float]]:
        """Return the current grades of the queries with other grades than those of the evaluation."""
        collected = self.project.collected(beside_others=True)
        evaluated = set(comparison.evaluations[0].query_ids)
        collected = {query: grades for query, grades in collected.items() if query in evaluated}
        saved: Mapping[str, Mapping[str, float]] = self.history.qrels(entry, queries=collected) if collected else {}
        current = {query: grades.beside(saved.get(query, {})) for query, grades in collected.items()}
        return {query: grades for query, grades in current.items() if grades != {**saved.get(query, {})}}

    def deciding(self, before: HistoryEntry, after: HistoryEntry, measure: str) -> DecidingDocuments:
        """Return the unjudged documents in the first ranks that could change a difference."""

        def compute() -> DecidingDocuments:
            baseline, run = (replace(self.history.run(entry), name=entry.short_name) for entry in (before, after))
            return deciding_documents(self._judgments(before), baseline, run, measure, depth=_DEPTH)

        return self.results.get(("deciding", before.id, after.id, measure, self.project.judging.position), compute)

    def add_queue(self, before: HistoryEntry, after: HistoryEntry, measure: str) -> None:
        """Add the documents of :meth:`deciding` to the tasks of the judges, blind and in random order."""
        queue, judging = self.deciding(before, after, measure).queue(), self.project.judging
        documents: dict[str, Document] = {}
        queries: dict[str, Query] = {}
        for entry in (before, after):
            texts = self.texts(entry, {document for ranking in queue.values() for document in ranking})
            documents |= texts.documents
            queries |= {query: texts.queries.get(query, Query(query, query)) for query in queue}
        known = judging.questions
        judging.add_questions(Question(query, text.text) for query, text in queries.items() if query not in known)
        build_pool(judging, Collection(documents, queries), [queue], k=max(map(len, queue.values())))

    def _judgments(self, entry: HistoryEntry) -> Qrels:
        """Return the judgments of an evaluation with the grades given since."""
        saved = self.history.qrels(entry)
        if not isinstance(saved, Qrels):
            raise InputError(
                f"{entry.short_name} has judgments without a grade for each document",
                where=entry.short_name,
                fix="compare evaluations of measures that read grades",
            )
        collected = self.project.collected(beside_others=True)
        changed = {query: grades.beside(saved[query]) for query, grades in collected.items() if query in saved}
        return Qrels.of({**saved, **changed}) if changed else saved

    def grades(self, entry: HistoryEntry, query: str) -> dict[str, float]:
        """Return the current grades of a query: those of an evaluation, and those given since."""
        saved = {**self.history.qrels(entry, queries=[query]).get(query, {})}
        key = ("collected", self.project.judging.position)
        collected = self.results.get(key, lambda: self.project.collected(beside_others=True)).get(query)
        return saved if collected is None else collected.beside(saved)

    def highest_grade(self, entry: HistoryEntry) -> float:
        """Return the highest grade of the judgments of an evaluation."""
        return self.results.get(
            ("highest", entry.qrels), lambda: max(max(grades.values()) for grades in self.history.qrels(entry).values())
        )

    def rank(self, entry: HistoryEntry, query: str, document: str) -> int | None:
        """Return the rank of a document for a query in a saved run; None if it was not retrieved."""
        try:
            ranking = ranked(self.history.run(entry, queries=[query])).get(query, {})
        except InputError:  # saved without its run
            return None
        return next((rank for rank, name in enumerate(ranking, 1) if name == document), None)

    def query(self, pair: Sequence[HistoryEntry], query: str, measure: str, depth: int) -> RunDiff:
        """Compare the rankings of a query, with its current grades.

        Raises:
            InputError: If the query has no judgments.
        """
        grades = self.grades(pair[0], query)
        if not grades:
            raise InputError(f"query {query!r:.60} has no judgments", where="query", fix="choose another query")
        runs = [replace(self.history.run(entry, queries=[query]), name=entry.short_name) for entry in pair]
        return diff({query: grades}, runs[0], runs[1], measure, queries=[query], k=depth)

    def diagnosis(self, entry: HistoryEntry) -> Diagnosis:
        """Return the likely causes of the errors of a saved run."""

        def compute() -> Diagnosis:
            try:
                texts = self.history.collection(entry)
            except InputError:  # saved without texts
                texts = None
            return diagnose(self.history.qrels(entry), self.history.run(entry), texts)

        return self.results.get(("diagnosis", entry.id), compute)

    def texts(self, entry: HistoryEntry, documents: Iterable[str] | None = ()) -> Collection:
        """Return the texts of queries and of these documents (None: all), as far as they were saved."""
        try:
            return self.history.collection(entry, documents)
        except InputError:
            return Collection({}, {})

    def queries(self, entry: HistoryEntry) -> Mapping[str, str]:
        """Return the texts of the queries of an evaluation; empty if none were saved."""
        queries = self.results.get(("queries", entry.query_set, entry.collection), lambda: self.texts(entry).queries)
        return {name: query.text for name, query in queries.items()}

    def given(self, query: str, document: str) -> list[tuple[str, str, str, str]]:
        """Return who judged a document: name, whether in sight, what was said, and when."""
        names = {judge.id: judge.name for judge in self.project.judging.judges.values()}
        rows = []
        for judgment in self.project.judging.judgments():
            shown, choice = judgment.presentation, judgment.choice
            if shown.question != query or document not in shown.documents or choice is None or not choice.finished:
                continue
            place = shown.documents.index(document)
            said = f"grade {choice.grades[place]}" if choice.grades else choice.outcome
            if choice.documents:
                said = "chosen" if document in choice.documents else "not chosen"
            seen = "in sight of the rankings" if judgment.status == IN_SIGHT else f"blind ({judgment.status})"
            rows.append((names.get(shown.judge, shown.judge), seen, said, choice.time[:10]))
        return rows
