"""`blame()` and `diagnose_answers()`: the step and the stage of a RAG system that limit the answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from rankgauge.answers.evaluation import AnswerEvaluation, mean_intervals, span
from rankgauge.answers.scores import JudgedAnswer, score
from rankgauge.core.arguments import number
from rankgauge.core.recommendations import next_step
from rankgauge.core.text import Ratio, inflect, keep, lower_first, many
from rankgauge.diagnosis.quality import Bands, Quality, qualities
from rankgauge.errors import InputError
from rankgauge.evaluation.answer_judge import corrected_mean
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import parse
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Cell, Detail, Table, first_rows

#: Causes with stage and fix, in the order of the steps: the first failed step is the cause.
CAUSES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "answered though unanswerable": ("generation", 'tell the model to say "I don\'t know"'),
        "not in the collection": ("collection", "add documents that answer it"),
        "not retrieved": ("retrieval", "improve retrieval: rankgauge diagnose QRELS RUN"),
        "retrieved but cut": ("retrieval", "rerank, or pass more contexts"),
        "abstained though answerable": ("generation", "tell the model to answer from the contexts"),
        "used but contradicted": ("generation", "use a stronger model, or ask for citations"),
        "does not address the question": ("generation", "repeat the question in the prompt"),
        "in the context but not used": ("generation", "pass fewer contexts, or the best first"),
        "partly used": ("generation", "ask for a complete answer in the prompt"),
        "unsupported claims": ("generation", "tell the model to use only the contexts"),
    }
)
# From simulations: docs/explain/diagnosis-accuracy.md.
RULES_NOTE = (
    "causes by rules: 83% to 91% were right in tests with seeded faults; 17% to 58% of answers "
    "without a fault got one (docs/explain/diagnosis-accuracy.md)"
)
JUDGE_NOTE = (
    "causes follow from single labels of the judge, which no calibration corrects: with sensitivity "
    "0.95 and specificity 0.9, 66% to 81% were right in tests with seeded faults, and 27% to 28% of "
    "answers without a fault got one (docs/explain/diagnosis-accuracy.md)"
)
# Measures of a short report.
MAIN_MEASURES = frozenset(
    {
        "AnswerCorrectness",
        "Faithfulness",
        "AnswerRelevance",
        "Completeness",
        "Contradicted",
        "NotStated",
        "TokenF1",
        "KPrecision",
    }
)
_SHOWN, _BAR = 3, 12  # causes in a short report, and the length of the longest bar
_GOOD = "no fault"
_UNKNOWN = "not judged"


@dataclass(frozen=True, slots=True)
class BlamedAnswer:
    """Question with the cause that limits its answer.

    Attributes:
        question: The identifier of the question.
        text: The question.
        cause: One of `CAUSES`, ``no fault``, or ``not judged`` if verdicts are missing.
        evidence: The evidence for the cause.
        correctness: The answer correctness, from 0 to 1; NaN if unknown.
        group: The group of the question.
    """

    question: str
    text: str
    cause: str
    evidence: str
    correctness: float
    group: str = ""

    @property
    def stage(self) -> str:
        """``collection``, ``retrieval``, or ``generation``; empty without a fault."""
        return CAUSES[self.cause][0] if self.cause in CAUSES else ""


@dataclass(frozen=True, eq=False)
class Blame(Result):
    """First step that failed for each question, with totals and potential gains.

    Attributes:
        answers: One entry for each question, in the order of the evaluation.
        system: The name of the system.
    """

    answers: tuple[BlamedAnswer, ...]
    system: str = ""

    def totals(self) -> dict[str, int]:
        """Return the number of questions by cause, in the order of the steps."""
        count = Counter(answer.cause for answer in self.answers)
        return {name: count[name] for name in (*CAUSES, _UNKNOWN, _GOOD) if count[name]}

    def stages(self) -> dict[str, int]:
        """Return the number of questions by limiting stage, most questions first."""
        return dict(Counter(answer.stage for answer in self.answers if answer.stage).most_common())

    def limiting(self) -> tuple[str, ...]:
        """Return the stages that limit the most questions; several if tied."""
        return most_frequent(self.stages())

    def by_group(self) -> dict[str, dict[str, int]]:
        """Return the totals of each group of questions."""
        counts: dict[str, Counter[str]] = {}
        for answer in self.answers:
            counts.setdefault(answer.group, Counter())[answer.cause] += 1
        return {group: dict(count) for group, count in counts.items()}

    def worst(self, cause: str, count: int = 3) -> tuple[BlamedAnswer, ...]:
        """Return the answers with this cause, lowest correctness first."""
        some = [answer for answer in self.answers if answer.cause == cause]
        some.sort(key=lambda answer: (math.isnan(answer.correctness), answer.correctness))
        return tuple(some[:count])

    def gain(self, cause: str) -> float:
        """Return the gain in mean answer correctness if answers with this cause were correct.

        The gain is an upper bound; NaN if no answer with this cause has a known correctness.
        """
        known = [answer for answer in self.answers if not math.isnan(answer.correctness)]
        lost = [1 - answer.correctness for answer in known if answer.cause == cause]
        if not known or (not lost and any(answer.cause == cause for answer in self.answers)):
            return math.nan
        return math.fsum(lost) / len(known)

    _attributes = "system totals stages limiting groups=by_group answers"
    _columns = "answers question group stage cause correctness evidence"

    def table(self) -> Table:
        """Return one row for each cause, most frequent first, with a bar; rare causes and fixes are details."""
        totals = self.totals()
        most = max(totals.values(), default=1)
        rows = (
            (cause, stage, count, "█" * math.ceil(_BAR * count / most), self.gain(cause) if stage else None, fix)
            # Answers without a known fault come last.
            for cause, count in sorted(totals.items(), key=lambda item: (item[0] not in CAUSES, -item[1]))
            for stage, fix in [CAUSES.get(cause, ("", ""))]
        )
        return Table(
            columns=("cause", "stage", "questions", "", "gain at most", Detail("suggested fix")),
            rows=tuple(first_rows(rows, _SHOWN)),
            title=f"{self.system}: first failed step of {many(len(self.answers), 'question')}".removeprefix(": "),
            notes=(Detail("gain at most: of mean answer correctness, if all answers with this cause were correct"),),
            digits=3,
            unit="cause",
        )

    def tables(self) -> tuple[Table, ...]:
        """Return the causes, and as a detail the groups of questions if there are several."""
        return (self.table(), self.group_table()) if len(self.by_group()) > 1 else (self.table(),)

    def group_table(self) -> Table:
        """Return one row for each group of questions."""
        rows: list[tuple[Cell, ...]] = []
        for group, totals in self.by_group().items():
            known = [a.correctness for a in self.answers if a.group == group and not math.isnan(a.correctness)]
            mean = math.fsum(known) / len(known) if known else None
            faults = {cause: count for cause, count in totals.items() if cause in CAUSES}
            first = most_frequent(faults)
            cause = f"tie of {many(len(first), 'cause')}" if len(first) > 1 else "".join(first)
            rows.append((group or "none", sum(totals.values()), mean, sum(faults.values()), cause))
        return Table(
            columns=("group", "questions", "correctness", "with a fault", "most frequent cause"),
            rows=tuple(rows),
            title=Detail(f"{self.system}: groups of questions".removeprefix(": ")),
            digits=3,
        )

    def summary(self) -> str:
        """Return a sentence about the stages at fault, most questions first."""
        stages, answers = self.stages(), many(len(self.answers), "answer")
        first = next(iter(stages), "")
        if not first:
            unknown = self.totals().get(_UNKNOWN)
            return f"no fault was found in {answers}" + (f", of which {unknown} cannot be judged" if unknown else "")
        rest = "".join(f", {stage} in {stages[stage]}" for stage in list(stages)[1:])
        return f"{first} is at fault in {stages[first]} of {answers}{rest}"

    def _data(self) -> dict[str, Any]:
        gain = {cause: self.gain(cause) for cause in CAUSES}
        return super()._data() | {"gain": gain}


def most_frequent(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the names with the highest count, in the given order."""
    most = max(counts.values(), default=0)
    return tuple(name for name, count in counts.items() if count == most)


def blame(judged: Sequence[JudgedAnswer], system: str = "") -> Blame:
    """Find the first step that failed for each question.

    The steps are: the collection can answer the question; a document with the answer is retrieved
    and is among the contexts; the system answers; no claim is contradicted; the answer addresses
    the question, uses the content of the contexts completely, and adds nothing to it. Retrieval
    counts as successful if the contexts support all claims of the reference, even without a known
    document (`gold`), and as failed if they support none, even with one. Otherwise, if documents
    are known, one of them must be among the contexts. If the answer has every claim that the
    contexts support and is still incomplete, retrieval limits it.

    With true verdicts, all seeded faults are found; wrong verdicts lead to wrong causes, also for
    answers without a fault (docs/explain/diagnosis-accuracy.md).

    Args:
        judged: Records with claims and verdicts (`AnswerEvaluation.judged`).
        system: The name of the system.

    Raises:
        InputError: If there are no answers.
    """
    if not judged:
        raise InputError(
            "there are no answers", where="blame", fix="pass at least one; an evaluation read from a file has none"
        )
    blamed = []
    for answer in judged:
        correctness = score(parse("AnswerCorrectness"), answer).value
        record = answer.record
        blamed.append(BlamedAnswer(record.id, record.question, *_cause(answer), correctness, record.group))
    return Blame(tuple(blamed), system)


def _cause(judged: JudgedAnswer) -> tuple[str, str]:
    record = judged.record
    abstains = 1.0 if record.answer is None else score(parse("Abstention"), judged).value
    if record.answerable is False or "not answerable" in judged.labels.get("answerability", ()):
        return _cause_if_unanswerable(judged, abstains)
    retrieval = _retrieval_fault(judged)
    if retrieval is not None:
        return retrieval
    if abstains == 1.0:
        return "abstained though answerable", "the contexts have the answer"
    return _generation_fault(judged)


def _cause_if_unanswerable(judged: JudgedAnswer, abstains: float) -> tuple[str, str]:
    if math.isnan(abstains):
        return _UNKNOWN, "no verdict on whether it abstains"
    if not abstains:
        return "answered though unanswerable", "the collection cannot answer it"
    if (judged.record.reference or "").strip():
        return "not in the collection", "there is an answer, but not in the collection"
    return _GOOD, "abstained, and the collection cannot answer it"


def _retrieval_fault(judged: JudgedAnswer) -> tuple[str, str] | None:
    """Return the cause and its evidence if no context has the answer, else None."""
    record = judged.record
    gold = set(record.gold)
    recall = score(parse("ContextRecall"), judged)
    if recall.low == 1.0:  # perhaps another document than the known ones has the answer
        return None
    count = len(judged.claims.reference or ())
    none = f"the contexts have a known document, but support none of {many(count, 'reference claim')}"
    if gold:
        context_ids = [context.id for context in record.contexts]
        if gold & set(context_ids):
            return ("retrieved but cut", none) if recall.high == 0.0 else None
        ranks = [rank for rank, document in enumerate(record.ranking, 1) if document in gold]
        if ranks:
            contexts = f"{many(len(context_ids), 'context')} {inflect(len(context_ids), 'was', 'were')} given"
            return "retrieved but cut", f"at rank {ranks[0]}; {contexts}"
        return "not retrieved", f"none of {many(len(gold), 'known document')} was retrieved"
    if not record.contexts and (record.reference or "").strip():
        return "not retrieved", "no contexts"
    return ("not retrieved", none) if recall.high == 0.0 else None


def _generation_fault(judged: JudgedAnswer) -> tuple[str, str]:
    names = ("Contradicted", "AnswerRelevance", "ContextUtilization", "Completeness", "NotStated", "AnswerCorrectness")
    scores = [score(parse(name), judged) for name in names]
    contradicted, relevance, used, complete, not_stated, correct = scores
    recall = score(parse("ContextRecall"), judged)
    labels = judged.labels.get("answer-reference", ())
    wrong = sum(label == "contradicted" for label in labels) / max(len(labels), 1)
    record = judged.record
    missing = set(record.gold) - {context.id for context in record.contexts}
    cut = record.gold and (not missing or missing & set(record.ranking))
    # A fault is certain if no missing verdict could change it; comparisons with NaN are false.
    steps = (
        (
            contradicted.low > 0,
            "used but contradicted",
            f"contexts contradict {Ratio(contradicted.low):.0%} of its claims",
        ),
        (wrong > 0, "used but contradicted", f"the reference contradicts {Ratio(wrong):.0%} of its claims"),
        (relevance.high == 0, "does not address the question", "no claim addresses the question"),
        (used.high == 0, "in the context but not used", "it has no claim of the reference"),
        (
            complete.high < 1 and used.low == 1,
            "retrieved but cut" if cut else "not retrieved",  # the contexts have a part of the answer
            f"it has all claims of the contexts, {Ratio(complete.high):.0%} of the reference claims",
        ),
        (complete.high < 1, "partly used", f"it has {Ratio(complete.high):.0%} of the reference claims"),
        (not_stated.low > 0, "unsupported claims", f"no context states {Ratio(not_stated.low):.0%} of its claims"),
        (correct.high == 0, "in the context but not used", "it has no claim that the reference supports"),
        (
            recall.low == 0 < recall.high or any(value.missing and value.low != value.high for value in scores),
            _UNKNOWN,
            "verdicts are missing",
        ),
    )
    return next(((cause, why) for fails, cause, why in steps if fails), (_GOOD, ""))


@dataclass(frozen=True, eq=False)
class AnswerDiagnosis(Result):
    """Measures of retrieval and generation, and the stage to fix first.

    Returned by :func:`diagnose_answers`.

    Attributes:
        answers: The evaluation of the answers.
        retrieval: The evaluation of the rankings; None if no documents with the answer are known.
        qualities: The means of the measures of rankings, with bands and attainable values.
        blame: The first step that failed for each question.
        retrieval_first: The reason to fix retrieval before the prompt or the model, or empty.
    """

    _schema = "rankgauge/answer-diagnosis/1"
    _attributes = "system=answers.run_name retrieval_first retrieval answers qualities blame"

    answers: AnswerEvaluation
    retrieval: Evaluation | None
    qualities: tuple[Quality, ...]
    blame: Blame
    retrieval_first: tuple[str, ...]

    def table(self) -> Table:
        """Return the measures of both stages, retrieval first; most measures of generation are details."""
        estimates = self.answers.estimates()
        intervals = mean_intervals(self.retrieval) if self.retrieval else {}
        retrieval = (
            (
                "retrieval",
                str(quality.measure),
                quality.mean,
                span(intervals[str(quality.measure)]),
                None,
                _band(quality),
                f"{Ratio(quality.mean / most):.0%} of {most:.3f}" if (most := quality.attainable) > 0 else None,
            )
            for quality in self.qualities
        )
        generation = (
            (
                "generation",
                name if name in MAIN_MEASURES or estimates.keys().isdisjoint(MAIN_MEASURES) else Detail(name),
                best,
                span(ends),
                judged,
                None,
                None,
            )
            for name, (best, ends, judged) in estimates.items()
        )
        return Table(
            columns=(Detail("stage"), "measure", "mean", "95% CI", "by judge", "band", Detail("of attainable")),
            rows=(*retrieval, *generation),
            title=f"{self.answers.run_name}: {lower_first(self.summary())}",
            digits=3,
            notes=tuple(self._notes()),
            unit="measure",
        )

    def tables(self) -> tuple[Table, ...]:
        """Return the measures with the conclusion, the causes, the groups of questions, and the next step."""
        step = f"{self.answers.run_name}: next step: {lower_first(self.next_step())}"
        return self.table(), *self.blame.tables(), Table((), (), title=step)

    def _notes(self) -> Iterable[str]:
        note, judge = self.answers.judge_note, self.answers.judge
        by_model = self.blame.stages() and not judge.get("person")
        yield from keep(
            Detail(note) if judge.get("person") else note,
            by_model and (RULES_NOTE if judge.get("name") == "rules" else JUDGE_NOTE),
            self.retrieval is None and "rankings were not measured: no documents with the answer are known (gold)",
            *(
                finding.note
                for finding in self.answers.findings
                if finding.severity == "warning" and not finding.message.startswith(("judge: ", "verdicts are "))
            ),
        )
        name, count = max(self.answers.missing().items(), key=lambda pair: pair[1], default=("", 0))
        if count:
            low, high = self.answers.bounds()[name]
            yield f"{many(count, 'verdict')} missing for {name}: if all were judged, {low:.3f} to {high:.3f}"

    def next_step(self) -> str:
        """Return the next step: the fixes of the most frequent causes of the limiting stages."""
        if self.retrieval_first:
            return next_step("answers: retrieval limits")
        totals = {cause: n for cause, n in self.blame.totals().items() if cause in CAUSES}
        if not totals:
            return next_step("answers: no cause")
        steps = []
        for stage in self.blame.limiting():
            own = {cause: count for cause, count in totals.items() if CAUSES[cause][0] == stage}
            steps += [f"{CAUSES[cause][1]} ({cause}: {many(own[cause], 'answer')})" for cause in most_frequent(own)]
        text = "; ".join(steps)
        return f"{text[:1].upper()}{text[1:]}"

    def data_table(self) -> Table:
        """Return the rows of `table`, with interval bounds in separate columns."""
        both = {} if self.retrieval is None else mean_intervals(self.retrieval)
        both |= {name: ends for name, (_, ends, _) in self.answers.estimates().items()}
        rated = {str(quality.measure): (quality.level, quality.attainable) for quality in self.qualities}
        return Table(
            columns=("stage", "measure", "mean", "low", "high", "by judge", "band", "attainable"),
            rows=tuple(
                (*row[:3], *both[str(row[1])], row[4], *rated.get(str(row[1]), (None, None)))
                for row in self.table().rows
            ),
        )

    def summary(self) -> str:
        """Return the stage to fix first and the reason."""
        if self.retrieval_first:
            return f"Fix retrieval before the prompt or the model: {self.retrieval_first[0]}"
        states = {calibrated["state"] for calibrated in self.answers.judge.get("measures", {}).values()}
        unsure = (f" (judge {state})" for state in ("not calibrated", "not usable") if state in states)
        text = self.blame.summary() + next(unsure, "")
        return text[:1].upper() + text[1:]


def _band(quality: Quality) -> str | None:
    """Return the band and, unless it is Excellent, the best value that the judgments allow."""
    if quality.highest in {None, "Excellent"}:
        return quality.level
    return f"{quality.level} (best: {quality.highest})"


def diagnose_answers(
    evaluation: AnswerEvaluation, *, bands: Any = None, attainable: float = 0.5, k: int = 5
) -> AnswerDiagnosis:
    """Measure retrieval and generation, and determine which of them limits the answers.

    Retrieval has priority if mean P@k is below the share `attainable` of the best P@k possible with
    these judgments, or if R@k or Success@k is Poor: no prompt can compensate for a missing context.
    Without known `gold`, it has priority if ContextRecall, corrected for the errors of the judge, is
    Poor.

    Args:
        evaluation: Returned by :func:`evaluate_answers`. Rankings are measured for questions with
            known `gold`.
        bands: Bands of the measures of rankings, as for :func:`rankgauge.diagnose`.
        attainable: The share of the attainable P@k below which retrieval has priority.
        k: The cut-off.

    Raises:
        InputError: If the evaluation was read from a file, which has no answers.
    """
    number("attainable", attainable, high=1.0)
    blamed = blame(evaluation.judged, evaluation.run_name)
    records = [judged.record for judged in evaluation.judged if judged.record.gold]
    chosen = Bands.of(bands, k=k)
    if not records:
        return AnswerDiagnosis(evaluation, None, (), blamed, _poor_contexts(evaluation, chosen))
    names = [str(measure) for measure in chosen.measures]
    qrels = {record.id: dict.fromkeys(record.gold, 1) for record in records}
    run = {
        record.id: list(dict.fromkeys(record.ranking or [context.id for context in record.contexts]))
        for record in records
    }
    retrieval = replace(evaluate(qrels, run, names), run_name=evaluation.run_name)
    best = evaluate(qrels, {query: list(gold) for query, gold in qrels.items()}, names)
    rated = qualities(retrieval.mean(), best.mean(), chosen)
    return AnswerDiagnosis(evaluation, retrieval, rated, blamed, tuple(_retrieval_first(rated, attainable)))


def _retrieval_first(rated: Iterable[Quality], attainable: float) -> Iterable[str]:
    for quality in rated:
        if quality.measure.name == "P" and quality.mean < attainable * quality.attainable:
            best = f"{quality.attainable:.2f} attainable"
            yield f"{quality.measure} is {quality.mean:.2f} of {best}, below {attainable:.0%}"
        elif quality.measure.name in {"R", "Success"} and quality.level == "Poor":
            yield f"{quality.measure} is {quality.mean:.2f}: Poor"


def _poor_contexts(evaluation: AnswerEvaluation, bands: Bands) -> tuple[str, ...]:
    """Return the reason to fix retrieval first, from claims if relevant documents are unknown."""
    measure = parse("ContextRecall")
    recall = corrected_mean(evaluation.settings, measure, evaluation.mean().get(str(measure), math.nan))
    band = next((band for band in bands if band.measure.name == "R"), None)
    if band is None or band.level(recall) != "Poor":
        return ()
    return (f"the contexts support {Ratio(recall):.0%} of the claims of the references: Poor",)
