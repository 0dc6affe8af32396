"""`diagnose()` and its result: likely causes of the values of a run, and suggested fixes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from rankgauge.core.arguments import integer, number
from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.findings import Finding, explaining
from rankgauge.core.recommendations import next_step
from rankgauge.core.text import inflect, keep, many
from rankgauge.corpus.collection import Collection
from rankgauge.data.alignment import map_query_blocks
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import name_of, readable_again
from rankgauge.diagnosis.causes import (
    CAUSES,
    SUSPICIOUS,
    UNJUDGED,
    VISIBLE,
    CauseTotal,
    Examiner,
    QueryDiagnosis,
    first_causes,
    totals,
)
from rankgauge.diagnosis.fixes import Advice, PrecisionRecall, SuggestedFix
from rankgauge.diagnosis.gains import DEEPER, KEYWORDS, CutOff, PotentialGain, Simulation, Sweep, shared_fields
from rankgauge.diagnosis.quality import Bands, Difficulty, Quality, Slice, difficulty, qualities, slices
from rankgauge.diagnosis.ranked_queries import (
    RankedQuery,
    Rankings,
    find_patterns,
    ranked_queries,
    rankings_of,
)
from rankgauge.diagnosis.terms import Texts
from rankgauge.errors import InputError, MismatchError, UnknownName
from rankgauge.evaluation.evaluation import evaluate, evaluate_blocks
from rankgauge.evaluation.input_checks import collection_findings
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Cell, Table

_KINDS = {
    "lexical": ("bm25", "tantivy", "elasticsearch", "opensearch"),
    "dense": ("dense",),
    "hashing": ("hashing",),
}
# Tolerance for values equal to the best value.
_SAME = 1e-9
# Number of top-ranked documents of each query that are looked up in the collection.
_CHECKED = 10


@dataclass(frozen=True, repr=False)
class Diagnosis(Result):
    """Diagnosis of a run: quality bands, likely causes, and potential gains.

    Returned by :func:`diagnose`.

    Attributes:
        run_name: The name of the run.
        measure: The measure that orders the queries.
        k: The cut-off; relevant documents below it are missed.
        rel: The lowest grade of a relevant document.
        depth: The number of documents that a reranker receives.
        queries: The number of examined queries.
        qualities: Means with their bands and attainable values.
        precision_recall: The joint interpretation of precision and recall.
        diagnoses: The likely causes for each query, worst query first; queries with the best
            attainable value are left out.
        shown: The number of queries in `worst`.
        totals: The frequency of each cause.
        now: The means of the run, by measure.
        gains: The potential gains: means after changes of the rankings.
        cutoffs: Precision, recall, and success at several cut-offs.
        sweep: Thresholds on the score.
        fixes: The suggested fixes in the usual order, with evidence.
        difficulty: The distribution of values over queries.
        slices: Means by group, query length, and number of relevant documents.
        not_checked: Causes that the inputs cannot determine, with reasons.
        notes: Notes on interpretation.
        input_findings: Findings of the input checks. If one of severity ``error`` explains the
            numbers, `diagnoses`, `totals`, `gains`, and `fixes` are empty.
        drift: The finding about drift of the evaluation set; None if not measured.
    """

    _schema = "rankgauge/diagnosis/1"
    _attributes = (
        "run=run_name failing measure k rel depth queries qualities precision_recall diagnoses shown totals "
        "first_causes=_first_names now gains cutoffs sweep fixes difficulty slices not_checked notes "
        "input_findings drift"
    )

    run_name: str
    measure: Measure
    k: int
    rel: float
    depth: int
    queries: int
    qualities: tuple[Quality, ...]
    precision_recall: PrecisionRecall
    diagnoses: tuple[QueryDiagnosis, ...]
    shown: int
    totals: tuple[CauseTotal, ...]
    now: Mapping[str, float]
    gains: tuple[PotentialGain, ...]
    cutoffs: tuple[CutOff, ...]
    sweep: Sweep
    fixes: tuple[SuggestedFix, ...]
    difficulty: Difficulty
    slices: tuple[Slice, ...]
    not_checked: tuple[str, ...]
    notes: tuple[str, ...]
    input_findings: tuple[Finding, ...] = ()
    drift: Finding | None = None

    @property
    def withheld(self) -> tuple[Finding, ...]:
        """Findings that explain the numbers; if there are any, causes and fixes are withheld."""
        return explaining(self.input_findings)

    @property
    def worst(self) -> tuple[QueryDiagnosis, ...]:
        """The worst queries with something to fix."""
        return self.diagnoses[: self.shown]

    @property
    def failing(self) -> int | None:
        """Number of queries that miss a relevant document; None if causes are withheld."""
        return None if self.withheld else sum(bool(diagnosis.missed) for diagnosis in self.diagnoses)

    @property
    def first_causes(self) -> tuple[CauseTotal, ...]:
        """Causes whose fix has a significant gain, the one to fix first at the beginning; none if withheld.

        Faults of the run as a whole come first, then causes with a measured gain, then those whose gain
        rests on an assumption; the largest gain first.
        """
        return first_causes(self.totals)

    @property
    def _first_names(self) -> list[str]:
        return [total.cause.name for total in self.first_causes]

    def of(self, query_id: str) -> QueryDiagnosis | None:
        """Return the diagnosis of a query; None if unknown or at the best attainable value."""
        return next((diagnosis for diagnosis in self.diagnoses if diagnosis.query_id == query_id), None)

    def summary(self) -> str:
        """Return one sentence with the number of failing queries, the primary cause, and its fix.

        Drift of the evaluation set follows, if measured.
        """
        drifted = self.drift is not None and self.drift.severity != "info"
        return f"{self._summary()}; {self.drift}" if drifted else self._summary()

    @property
    def conclusion(self) -> str:
        """The number of failing queries, and the cause to fix first, or that none stands out."""
        first = self.first_causes
        return (
            f"{self.failing} of {many(self.queries, 'query')} of {self.run_name} "
            f"{inflect(self.failing or 0, 'misses', 'miss')} a relevant document in the top {self.k}; "
        ) + (
            f"likely cause: {first[0].sentence(str(self.measure))}"
            if first
            else f"no single cause stands out: no fix has a significant gain of {VISIBLE:g} or more"
        )

    def _summary(self) -> str:
        if self.withheld:
            return f"no diagnosis of {self.run_name}: {self.withheld[0]}"
        if self.first_causes:
            return f"{self.conclusion}; suggested fix: {self.first_causes[0].cause.fix}"
        if self.failing:
            return self.conclusion
        short = any(quality.measure.name == "R" and quality.attainable < 1 - TOLERANCE for quality in self.qualities)
        state, most = ("k is small", " that they can contain") if short else ("nothing missed", "")
        step = next_step(f"diagnose: {state}", k=str(self.k))
        return f"the first {self.k} of {self.run_name} have all relevant documents{most}: {step}"

    def table(self) -> Table:
        """Return a table with the mean and band of each measure."""
        return Table(
            ("measure", "mean", "band"),
            tuple((str(quality.measure), quality.mean, quality.level) for quality in self.qualities),
            title=self.run_name,
            notes=(self.summary(), *self.notes),
        )

    def data_table(self) -> Table:
        """Return every missed document, and queries without missed documents, with causes."""
        rows: list[tuple[Cell, ...]] = []
        for diagnosis in self.diagnoses:
            head = (diagnosis.query_id, diagnosis.value, diagnosis.attainable, diagnosis.primary)
            rows += [
                (*head, d.doc_id, d.grade, d.rank, "; ".join(d.causes), "; ".join(d.evidence)) for d in diagnosis.missed
            ]
            if diagnosis.evidence or not diagnosis.missed:
                rows.append((*head, "", None, None, "; ".join(diagnosis.causes), "; ".join(diagnosis.evidence)))
        return Table(
            columns=(
                "query",
                str(self.measure),
                "attainable",
                "primary cause",
                "document",
                "grade",
                "rank",
                "causes",
                "evidence",
            ),
            rows=tuple(rows),
        )


def diagnose(  # noqa: PLR0913 - each is a choice that is printed
    qrels: Any,
    run: Any,
    collection: Collection | None = None,
    *,
    measure: str | Measure = "nDCG@10",
    k: int = 5,
    rel: float = 1,
    worst: int = 5,
    depth: int = 100,
    bands: Any = None,
    group_by: str | None = None,
    also: Any = None,
    drift: Any = None,
) -> Diagnosis:
    """Find the likely causes of missed documents of a run, query by query.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` accepts.
        run: The run: anything that :meth:`Run.of` accepts.
        collection: The texts of documents and queries. Without them, only causes that ranks and
            judgments determine are checked; `not_checked` lists the others.
        measure: The measure that orders the queries.
        k: The cut-off. A relevant document below it is missed if a less relevant one is above it.
        rel: The lowest grade of a relevant document.
        worst: The number of worst queries to show.
        depth: The number of documents that a reranker receives.
        bands: Bounds that replace the defaults: anything that :meth:`Bands.of` accepts.
        group_by: A field of the queries, such as ``type``; adds means for each of its values.
        also: Another run, to measure the potential of both combined. If it is not deeper than
            `run`, depth is not considered a cause, because it cannot explain a difference.
        drift: A `Finding` about drift of the evaluation set, or a result with the attribute
            ``finding``, such as :class:`rankgauge.production.DriftReport`. A warning is reported as
            a failure mode besides low recall and low precision.

    Returns:
        Bands, causes with evidence, potential gains of fixes, and distributions over queries.

    Raises:
        InputError: If no query has a relevant document, or an argument is not valid.
        UnknownName: For an unknown measure, or one for which higher is not better.
        MismatchError: If judgments and run have no query in common.

    Example:
        >>> qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
        >>> run = {"q1": ["x", "y", "d1"], "q2": ["x", "y"]}
        >>> diagnosis = diagnose(qrels, run, k=2)
        >>> [(query.query_id, query.primary, query.missed[0].rank) for query in diagnosis.diagnoses]
        [('q2', 'not retrieved', None), ('q1', 'ranked below k', 3)]
    """
    by = _measure(measure)
    drifted = _drift(drift)
    k, depth, worst = integer("k", k), integer("depth", depth), integer("worst", worst, least=0)
    number("rel", rel, above=True)
    wanted = Bands.of(bands, k=k, rel=rel)
    precision, recall = Measure("P")(k=k, rel=rel), Measure("R")(k=k, rel=rel)
    measures = tuple(dict.fromkeys([by, precision, recall, *wanted.measures]))
    judged, source = Qrels.of(qrels), readable_again(run)
    texts = Texts(_collection(collection, group_by))
    filters = shared_fields(texts.collection)
    # Only metadata filters need the ids of unjudged documents at lower ranks.
    heads = max(DEEPER * k, KEYWORDS) if texts.collection.documents else k
    named = None if filters else heads
    second = None if also is None else readable_again(also)
    if second is None:
        evaluation, parts = evaluate_blocks(judged, source, measures, lambda block: rankings_of([block], judged, named))
    else:
        evaluation = evaluate(judged, source, measures)
        parts = map_query_blocks([source, second], lambda blocks: [rankings_of(runs, judged, named) for runs in blocks])
    rankings, *of_second = (
        dict(chain.from_iterable(part.items() for part in column)) for column in zip(*parts, strict=True)
    )
    # Use ids as text, like all rankings created here.
    judgments = {query: judged[query] for query in judged}
    truth = Qrels.of(judgments)
    queries = _ranked_queries(judgments, rankings, rel)
    other_name = "" if second is None else name_of(second)
    others = _others(judgments, of_second[0], rel, other_name) if of_second else {}
    # The last rank at which a cut can explain a low value, or a loss to another run.
    last_read = max(k, by.cutoff or depth)
    if others:
        last_read = min(last_read, max(len(query.docs) for query in others.values()) - 1)
    patterns = find_patterns(queries, texts, k, depth, last_read=last_read)
    simulation = Simulation(truth, queries, evaluation, k, depth, rel, texts, filters)
    column = measures.index(by)
    patterns = simulation.confirmed(patterns, column)
    examiner = Examiner(texts, k, queries, patterns, _retriever(evaluation.settings))
    values = _values(evaluation, by)
    diagnoses = _diagnoses(examiner, values, by, truth)
    effects = tuple(simulation.effects(diagnoses, examiner))
    gains = tuple(simulation.gains(effects))
    if others:
        gains += tuple(simulation.with_other(others))
    advice = Advice(
        measure=by,
        examiner=examiner,
        depth=depth,
        diagnoses=diagnoses,
        qualities=qualities(evaluation.mean(), simulation.attainable(), wanted),
        gains=gains,
        cutoffs=tuple(simulation.cutoffs()),
        sweep=simulation.sweep(),
        now=evaluation.mean(),
        others=others,
        other_name=other_name,
    )
    known = texts.collection.documents
    docs = (doc for query in evaluation.query_ids if query in rankings for doc in rankings[query][0][:_CHECKED])
    diagnosis = Diagnosis(
        run_name=evaluation.run_name,
        measure=by,
        k=k,
        rel=float(rel),
        depth=depth,
        queries=len(queries),
        qualities=advice.qualities,
        precision_recall=_with_drift(advice.precision_recall(precision, recall), drifted),
        diagnoses=diagnoses,
        shown=worst,
        totals=totals(diagnoses, examiner, {effect.cause.name: effect.gain(column) for effect in effects}),
        now=advice.now,
        gains=gains,
        cutoffs=advice.cutoffs,
        sweep=advice.sweep,
        fixes=advice.fixes(),
        difficulty=difficulty(queries, values, by, k),
        slices=slices(queries, values, texts, group_by, measure=by),
        not_checked=_not_checked(examiner, diagnoses),
        notes=evaluation.notes,
        input_findings=evaluation.input_findings + (collection_findings(docs, known) if known else ()),
        drift=drifted,
    )
    if not diagnosis.withheld:
        return diagnosis
    bands = replace(diagnosis.precision_recall, sentences=())
    return replace(diagnosis, diagnoses=(), totals=(), gains=(), fixes=(), precision_recall=bands)


def _retriever(settings: Any) -> str:
    """Return the kind of a retriever from its settings and those of its parts; empty if unknown."""
    parts = settings.values() if isinstance(settings, Mapping) else settings if isinstance(settings, list) else ()
    kinds = {_retriever(part) for part in parts} - {""}
    if isinstance(settings, Mapping) and "body" not in settings:
        kinds |= {kind for kind, types in _KINDS.items() if settings.get("type") in types}
    # Hashed words and n-grams have no meaning: their advice is not that of an embedding model.
    if "hashing" in kinds:
        kinds -= {"dense"}
        if kinds == {"hashing", "lexical"}:
            return "lexical"
    return kinds.pop() if len(kinds) == 1 else "hybrid" if kinds else ""


def _drift(drift: Any) -> Finding | None:
    finding = getattr(drift, "finding", drift)
    if finding is not None and not isinstance(finding, Finding):
        raise InputError(
            f"got {type(drift).__name__} for drift",
            where="drift",
            fix="pass the result of rankgauge.production.measure_drift()",
        )
    return finding


def _with_drift(precision_recall: PrecisionRecall, drift: Finding | None) -> PrecisionRecall:
    """Append a sentence about drift: precision and recall ignore questions outside the set."""
    if drift is None:
        return precision_recall
    sentence = drift.message
    if drift.severity != "info":
        sentence = f"the evaluation set differs from users' questions: {drift.message}; {drift.effect}"
        if precision_recall.kind == "both are high":
            sentence += "; values can be high while users complain: refresh the evaluation set"
    return replace(precision_recall, sentences=(*precision_recall.sentences, sentence))


def _measure(measure: str | Measure) -> Measure:
    by = parse(measure)
    if by.declaration.better != "higher":
        raise UnknownName(
            f"{by} is not better when higher: queries cannot be ordered by it",
            where="measure",
            fix="choose a measure for which higher is better, such as nDCG@10",
        )
    return by


def _collection(value: Any, group_by: str | None) -> Collection:
    if value is not None and not isinstance(value, Collection):
        raise InputError(
            f"got {type(value).__name__} for the collection",
            where="collection",
            fix="pass Collection.read(folder) or Collection.of(documents, queries)",
        )
    collection = Collection() if value is None else value
    if group_by is not None:
        names = sorted({name for query in collection.queries.values() for name in query.fields})
        if group_by not in names:
            raise UnknownName(
                f"no query has a field {group_by!r}",
                where="group_by",
                fix=f"the queries have: {', '.join(names)}"
                if names
                else "pass a collection whose queries have fields (queries.jsonl)",
            )
    return collection


def _ranked_queries(
    judgments: Mapping[str, Mapping[str, float]], rankings: Rankings, rel: float
) -> tuple[RankedQuery, ...]:
    queries = ranked_queries(judgments, rankings, rel)
    if not any(query.relevant for query in queries):
        raise InputError(
            f"no document has grade {rel:g} or more",
            where="judgments",
            fix="choose a lower relevance level, or check the column of grades",
        )
    return queries


def _others(
    judgments: Mapping[str, Mapping[str, float]], rankings: Rankings, rel: float, name: str
) -> dict[str, RankedQuery]:
    queries = {query.query_id: query for query in ranked_queries(judgments, rankings, rel) if query.docs}
    if not queries:
        raise MismatchError(f"no query of {name!r} is judged", where="also", fix="pass a run of the same queries")
    return queries


def _values(evaluation: Evaluation, by: Measure) -> dict[str, float]:
    return dict(zip(evaluation.query_ids, evaluation.column(by).tolist(), strict=True))


def _diagnoses(
    examiner: Examiner, values: Mapping[str, float], by: Measure, truth: Qrels
) -> tuple[QueryDiagnosis, ...]:
    """Return the diagnosis of each query below its best attainable value, worst query first."""
    best = _values(evaluate(truth, {q.query_id: q.ideal() for q in examiner.queries}, by), by)
    diagnoses = (
        examiner.diagnose(query, values[query.query_id], best[query.query_id])
        for query in examiner.queries
        if values[query.query_id] < best[query.query_id] - _SAME or query.missed(examiner.k)
    )
    # Undefined values (NaN) come last.
    return tuple(
        sorted(
            diagnoses,
            key=lambda diagnosis: (
                math.isnan(diagnosis.value),
                diagnosis.value if diagnosis.value == diagnosis.value else 0.0,
                -len(diagnosis.missed),
                diagnosis.query_id,
            ),
        )
    )


def _not_checked(examiner: Examiner, diagnoses: tuple[QueryDiagnosis, ...]) -> tuple[str, ...]:
    texts = examiner.texts
    documents, queries = texts.collection.documents, texts.collection.queries
    without = ", ".join(
        f"{c.name} (except for equal grades)" if c == SUSPICIOUS else c.name
        for c in CAUSES
        if c.name not in examiner.checked and c != UNJUDGED
    )
    silent = sum(not texts.query_terms(diagnosis.query_id) for diagnosis in diagnoses)
    bare = sum(not texts.length(doc.doc_id) for diagnosis in diagnoses for doc in diagnosis.missed)
    return keep(
        not documents and f"{without}: no texts of documents were given",
        documents and not queries and f"{without}: no texts of queries were given",
        documents and queries and silent and f"terms of {many(silent, 'query')}: no text, or only function words",
        UNJUDGED.name not in examiner.checked
        and f"{UNJUDGED.name}: the judgments list only relevant documents, so unjudged "
        "documents may be irrelevant or overlooked",
        documents and bare and f"terms and length of {many(bare, 'missed document')}: no text",
    )
