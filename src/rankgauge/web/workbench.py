"""`Workbench`: the saved evaluations of a project, as pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from rankgauge.comparison import Comparison, DecidingDocuments, compare, deciding_documents
from rankgauge.corpus import Collection, Document, Query
from rankgauge.data import Qrels, ranked
from rankgauge.diagnosis import Diagnosis, diagnose
from rankgauge.errors import InputError
from rankgauge.evaluation import Evaluation
from rankgauge.gates import GateNumbers, GateResult, values_fingerprint
from rankgauge.judging import Question, build_pool
from rankgauge.measures import parse
from rankgauge.project import CollectedGrades, Project, reevaluate
from rankgauge.store import Gates, HistoryEntry, StoredGate, obstacles
from rankgauge.web.pages import Results

OF_ANSWERS = ("verdicts", "answers")  # what measures of answers read
_DEPTH = 10  # ranks in which unjudged documents are looked for
_CLOSE = 1e-9  # difference of equal means


@dataclass(frozen=True)
class Regraded:
    """A comparison of saved evaluations, and what the grades given since change.

    Attributes:
        entries: The evaluations; the others are compared with the first.
        saved: The comparison as saved.
        current: The comparison with the grades that judges gave since.
        grades: The current grades of each query whose grades changed.
        in_sight: Whether some of these grades were given in sight of the rankings.
        reason: Why the grades given since have no effect; empty if they have.
    """

    entries: tuple[HistoryEntry, ...]
    saved: Comparison
    current: Comparison
    grades: Mapping[str, Mapping[str, float]]
    in_sight: bool = False
    reason: str = ""


def of_answers(entry: HistoryEntry) -> bool:
    """Return whether an evaluation is one of answers."""
    return any(parse(name).declaration.reads in OF_ANSWERS for name in entry.means)


class Workbench:
    """The saved evaluations of a project, with comparisons that are computed once.

    Args:
        project: The project, whose store has the evaluations and the judges.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.history = project.evaluations
        self.gates = Gates(project.file.store)
        self.results, self._values = Results(), Results(1_000)

    def evaluation(self, entry: HistoryEntry) -> Evaluation:
        """Return the values of a saved evaluation."""
        return self.results.get(("evaluation", entry.id), lambda: self.history.load(entry))

    def measure(self, entry: HistoryEntry, name: str) -> Evaluation:
        """Return the values of one measure of a saved evaluation."""
        return self._values.get(("measure", entry.id, name), lambda: self.history.load(entry, name))

    def latest_answers(self) -> HistoryEntry | None:
        """Return the latest evaluation of answers; None without one."""
        return next(filter(of_answers, reversed(self.history.entries())), None)

    def baseline(self, entry: HistoryEntry) -> HistoryEntry | None:
        """Return the evaluation to compare with: the baseline, or the latest of another run."""
        try:
            named = [self.history.entry("@baseline")]
        except InputError:
            named = []
        others = [*named, *reversed([other for other in self.history.entries() if other.id < entry.id])]
        return next(
            (
                other
                for other in others
                if other.run != entry.run
                and other.means.keys() & entry.means.keys()
                and not any(obstacles(other, entry))
            ),
            None,
        )

    def gate(self, stored: StoredGate) -> GateResult:
        """Return a stored result of a gate."""
        return self._values.get(("gate", stored.sequence), lambda: GateResult.from_json(stored.body))

    def gated(self, numbers: GateNumbers) -> tuple[HistoryEntry, ...]:
        """Return the latest evaluations of the baseline and the run of a gate that can be compared, or none."""
        measure, name = numbers.measure, str(numbers.measure)

        def found(mean: float, fingerprint: str) -> list[HistoryEntry]:
            return [
                entry
                for entry in reversed(self.history.entries(measure=name))
                if (entry.ranking or of_answers(entry)) and abs(entry.means[name] - mean) < _CLOSE
                for values in (self.measure(entry, name).per_query[:, 0],)
                if fingerprint == values_fingerprint(self.measure(entry, name).query_ids, measure.counted(values))
            ]

        pairs = product(
            found(numbers.baseline_mean, numbers.baseline_fingerprint), found(numbers.mean, numbers.fingerprint)
        )
        return next((pair for pair in pairs if pair[0].id != pair[1].id and not obstacles(*pair)), ())

    def known_queries(self, most: int) -> frozenset[str]:
        """Return the queries of the latest evaluations."""
        latest = {entry.query_set: entry for entry in self.history.entries()[-most:]}
        return frozenset(
            query for entry in latest.values() for query in self.measure(entry, next(iter(entry.means))).query_ids
        )

    def comparison(self, entries: Sequence[HistoryEntry], measure: str = "") -> Regraded:
        """Compare evaluations with the first of them, as saved and with the grades given since.

        Raises:
            MismatchError: If their judgments or policies differ.
        """
        ids = tuple(entry.id for entry in entries)

        def saved() -> Comparison:
            return compare(self.history.comparable(ids), tested=measure or None)

        def regraded() -> Regraded:
            before = self.results.get(("saved", ids, measure), saved)
            grades: dict[str, dict[str, float]] = {}
            try:
                grades = self._changed_grades(entries[0])
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
                after = before.updated(parts)
            except InputError as error:  # saved without the run, or with other judgments than grades
                return Regraded(tuple(entries), before, before, {}, reason=error.what if grades else "")
            collected = self._collected()
            in_sight = any(collected[query].in_sight for query in grades)
            return Regraded(tuple(entries), before, after, grades, in_sight)

        return self.results.get(("regraded", ids, measure), regraded, self._position)

    def _position(self) -> tuple[int, ...]:
        return self.project.judging.position

    def _collected(self) -> dict[str, CollectedGrades]:
        """Return the grades of judges, by every question that they judged."""

        def compute() -> dict[str, CollectedGrades]:
            asked = (judgment.presentation.question for judgment in self.project.judging.judgments())
            return dict.fromkeys(asked, CollectedGrades({}, {}, {})) | self.project.collected(beside_others=True)

        return self.results.get("collected", compute, self._position)

    def _saved_grades(self, entry: HistoryEntry, queries: Iterable[str]) -> Qrels:
        """Return the grades of an evaluation; of special judgments, the highest of each document."""
        if not queries or not entry.qrels:
            return Qrels.of({})
        saved = self.history.qrels(entry, queries=queries)
        return saved if isinstance(saved, Qrels) else saved.qrels

    def special(self, entry: HistoryEntry) -> str:
        """Return the kind of the judgments of an evaluation, such as ``subtopics``; empty for grades."""

        def compute() -> str:
            saved = self.history.qrels(entry, queries=self.evaluation(entry).query_ids[:1])
            return "" if isinstance(saved, Qrels) else saved.reads

        return self.results.get(("special", entry.qrels), compute) if entry.qrels else ""

    def grades(self, entry: HistoryEntry, query: str) -> dict[str, float]:
        """Return the current grades of a query: those of judges, beside those of the collection.

        If the collection is gone, those of the evaluation.
        """
        return self._current_grades(entry, self._saved_grades(entry, [query])).get(query, {})

    def _current_grades(
        self, entry: HistoryEntry, saved: Mapping[str, Mapping[str, float]]
    ) -> dict[str, dict[str, float]]:
        """Return the current grades of queries from those that were saved."""
        collected = {} if self.special(entry) else self._collected()
        judged: Mapping[str, Mapping[str, float]] = {}
        with suppress(InputError):  # the collection is gone
            judged = self.project.collection.qrels or {}
        return {
            query: collected[query].beside(judged.get(query, own)) if query in collected else {**own}
            for query, own in saved.items()
        }

    def _changed_grades(self, entry: HistoryEntry) -> dict[str, dict[str, float]]:
        """Return the current grades of each query of an evaluation whose grades changed since."""
        evaluated = {*self.evaluation(entry).query_ids}
        saved = self._saved_grades(entry, evaluated & self._collected().keys())
        current = self._current_grades(entry, saved)
        return {query: own for query, own in current.items() if own != saved[query]}

    def deciding(self, before: HistoryEntry, after: HistoryEntry, measure: str) -> DecidingDocuments:
        """Return the unjudged documents in the first ranks that could change a difference.

        Only queries with new grades are computed anew.

        Raises:
            InputError: If there are no bounds for the measure, the judgments, or the policies.
        """
        evaluation, pair = self.evaluation(before), (before, after)
        policies = evaluation.policies
        usual = (policies.undefined, policies.unjudged, evaluation.weights, evaluation.profile)
        if self.special(before) or usual != ("zero", "not relevant", None, None):
            raise InputError(
                "bounds require grades, plain means, and unjudged documents that count as not relevant",
                where=before.short_name,
                fix="evaluate with the default policies",
            )

        def bounds(judgments: object, queries: Iterable[str] | None, grades: Iterable[float]) -> DecidingDocuments:
            baseline, run = (replace(self.history.run(entry, queries), name=entry.short_name) for entry in pair)
            order = order_of(before)
            return deciding_documents(judgments, baseline, run, measure, depth=_DEPTH, ties=order, grades=grades)

        def as_saved(grades: Iterable[float]) -> DecidingDocuments:
            queries = evaluation.query_ids if policies.queries == "given" else None
            return bounds(self.history.qrels(before, queries), None, grades)

        def current() -> DecidingDocuments:
            graded = self._changed_grades(before)
            given = {grade for own in graded.values() for grade in own.values()}
            possible = tuple(sorted(given | self.possible_grades(before)))
            key = ("bounds", before.id, after.id, measure, possible)
            result = self.results.get(key, lambda: as_saved(possible))
            return result.updated(bounds(graded, graded, possible)) if graded else result

        return self.results.get(("deciding", before.id, after.id, measure), current, self._position)

    def add_queue(self, before: HistoryEntry, after: HistoryEntry, measure: str) -> None:
        """Add the documents of :meth:`deciding` to the tasks of the judges, blind and in random order.

        Raises:
            InputError: If no document can change the difference, or the texts were not saved.
        """
        queue, judging = self.deciding(before, after, measure).queue(), self.project.judging
        documents: dict[str, Document] = {}
        queries = {query: Query(query, query) for query in queue}
        for entry in (before, after):
            texts = self.texts(entry, {document for ranking in queue.values() for document in ranking}, queue)
            documents |= texts.documents
            queries |= {query: texts.queries[query] for query in queue if query in texts.queries}
        if not documents:
            raise InputError(
                "no text of these documents was saved", where="queue", fix="evaluate in a project with texts = true"
            )
        known = judging.questions
        judging.add_questions(Question(query, text.text) for query, text in queries.items() if query not in known)
        build_pool(judging, Collection(documents, queries), [queue], k=max(map(len, queue.values())))

    def possible_grades(self, entry: HistoryEntry) -> set[float]:
        """Return the grades that occur in the judgments of an evaluation."""

        def compute() -> set[float]:
            return {*self._saved_grades(entry, self.evaluation(entry).query_ids).table.values.tolist()}

        return self.results.get(("grades", entry.qrels, entry.query_set), compute)

    def ranked(self, entry: HistoryEntry, query: str) -> list[str]:
        """Return the ranking of a query in the order in which it was evaluated; empty if the run was not saved."""
        try:
            run = self.history.run(entry, queries=[query])
        except InputError:
            return []
        return list(ranked(run, ties=order_of(entry)).get(query, {}))

    def diagnosis(self, entry: HistoryEntry, query: str = "") -> Diagnosis:
        """Return the likely causes of the errors of a saved run; with a query, only those seen in it alone."""
        queries = [query] if query else None

        def compute() -> Diagnosis:
            judgments, run = self.history.qrels(entry, queries), self.history.run(entry, queries)
            documents = {*run.get(query, ()), *self._saved_grades(entry, [query]).get(query, ())} if query else None
            texts = self.texts(entry, documents, queries)
            return diagnose(judgments, run, texts if texts.documents or texts.queries else None)

        return self.results.get(("diagnosis", entry.id, query), compute)

    def texts(
        self, entry: HistoryEntry, documents: Iterable[str] | None = (), queries: Iterable[str] | None = ()
    ) -> Collection:
        """Return the texts of these documents and queries (None: all), as far as they were saved."""
        try:
            return self.history.collection(entry, documents, queries)
        except InputError:
            return Collection({}, {})

    def queries(self, entry: HistoryEntry) -> Mapping[str, str]:
        """Return the texts of the queries of an evaluation; empty if none were saved."""

        def compute() -> dict[str, str]:
            if not of_answers(entry):
                return {name: query.text for name, query in self.texts(entry, (), None).queries.items()}
            with suppress(InputError):  # saved without answers
                return {name: row["question"] for name, row in self.history.answers(entry).items()}
            return {}

        return self.results.get(("queries", entry.query_set, entry.collection), compute)

    def judged_as(self, entry: HistoryEntry, query: str, document: str) -> list[str]:
        """Return each special judgment of a document as text: its subtopic, group, or stratum, and its grade."""
        saved = self.history.qrels(entry, queries=[query])
        if isinstance(saved, Qrels):
            return []
        documents, names = saved.qrels.table.docs.shown(), saved.layout.columns
        return [
            ", ".join([*map("{} {}".format, names, labels), f"grade {grade:g}"])
            for row, grade, *labels in zip(saved.row, saved.grade, *(ids.shown() for ids in saved.labels), strict=True)
            if documents[row] == document
        ]

    def given(self, query: str, document: str) -> list[dict[str, str]]:
        """Return the judgments of people on a document, in the order of presentation.

        Each has a ``judge``, with ``name``; a ``status``, ``in sight`` beside the rankings; what the judge ``said``,
        a grade or a choice; and the ``day``.
        """
        judges = self.project.judging.judges
        rows = []
        for judgment in self.project.judging.judgments():
            shown, choice = judgment.presentation, judgment.choice
            if shown.question != query or document not in shown.documents or choice is None or not choice.finished:
                continue
            said = choice.outcome
            if choice.grades:
                said = f"grade {choice.grades[shown.documents.index(document)]}"
            elif choice.documents:
                said = "chosen" if document in choice.documents else "not chosen"
            name = judges[shown.judge].name if shown.judge in judges else shown.judge
            about = {"judge": shown.judge, "name": name, "status": judgment.status}
            rows.append(about | {"said": said, "day": choice.time[:10]})
        return rows


def order_of(entry: HistoryEntry) -> Literal["trec", "input"]:
    """Return the order of equal scores; for a mean over all orders, that of trec_eval."""
    return "input" if entry.policies.ties == "input" else "trec"
