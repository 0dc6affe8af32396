"""Reports on answers: retrieval and generation, limiting causes, and the worst answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rankgauge.answers import (
    AnswerDiagnosis,
    AnswerEvaluation,
    BlamedAnswer,
    JudgedAnswer,
    items_of,
)
from rankgauge.answers.diagnosis import CAUSES, MAIN_MEASURES
from rankgauge.comparison.comparison import compare
from rankgauge.core.text import keep, lower_first, many
from rankgauge.errors import RankgaugeError
from rankgauge.rendering.tables import Cell, Detail, Table, shorten
from rankgauge.reports import evaluations
from rankgauge.reports.registry import Options, Report
from rankgauge.reports.sections import Details, Part, Section, comparison_result

_BY_JUDGE = " (by judge)"
_RETRIEVAL = ("R@", "nDCG@")  # measures of rankings in a short comparison of systems
_WORST = 3  # examples per cause
_TEXT = 1_200  # characters of an answer or context
_ROWS = 40  # claims per answer
# The first of these labels that any context has decides on the claim.
_DECIDING = ("supported", "contradicted", "not stated")


def answer_sections(diagnosis: AnswerDiagnosis) -> tuple[Section, ...]:
    """Return the sections of a report on answers: both stages, causes, groups, and worst answers.

    Args:
        diagnosis: Returned by :func:`rankgauge.answers.diagnose_answers`.
    """
    # The head of the page names the judge.
    stages, worst = diagnosis.table(), tuple(_examples(diagnosis))
    return keep(
        Section(
            "Retrieval and generation", (replace(stages, title="Measures of both stages", notes=stages.notes[1:]),)
        ),
        Section("Causes of failures", diagnosis.blame.tables()),
        worst and Section("Worst answers by cause", worst),
    )


def answer_conclusions(diagnosis: AnswerDiagnosis) -> tuple[tuple[str, str], ...]:
    """Yield headings and conclusions of a diagnosis of answers, ending with the next step."""
    stage = "; ".join((diagnosis.summary(), *diagnosis.retrieval_first[1:]))
    return ("Limiting stage", stage), ("Next step", diagnosis.next_step())


def _examples(diagnosis: AnswerDiagnosis) -> Iterator[Details]:
    """Yield the worst answers for each cause: question, answer, contexts, claims, and verdicts."""
    judged = {judged_answer.record.id: judged_answer for judged_answer in diagnosis.answers.judged}
    for cause in diagnosis.blame.totals():
        if cause not in CAUSES:
            continue
        for answer in diagnosis.blame.worst(cause, _WORST):
            known = "" if math.isnan(answer.correctness) else f"; correctness {answer.correctness:.2f}"
            yield Details(
                f"{cause}: {answer.question} {_short(answer.text, 90)}{known}",
                tuple(_example(diagnosis, answer, judged.get(answer.question))),
            )


def _example(diagnosis: AnswerDiagnosis, blamed: BlamedAnswer, judged: JudgedAnswer | None) -> Iterator[Part]:
    if blamed.evidence:
        yield f"Why: {blamed.evidence}"
    if judged is None:
        return
    record, rows = judged.record, tuple(_claim_rows(diagnosis, judged))
    more = len(rows) - _ROWS
    contexts = Table(
        columns=("context", "text"),
        rows=tuple((context.id, _short(context.text)) for context in record.contexts),
        title="Contexts",
    )
    claims = Table(
        columns=("claim", "of", "verdict", "source", "quote", "reason"),
        rows=rows[:_ROWS],
        title="Claims and verdicts",
        notes=keep(more > 0 and f"{many(more, 'claim')} more"),
    )
    yield from (f"Before ({role}): {_short(text)}" for role, text in record.history)
    yield from keep(
        f"Question: {_short(record.question)}",
        f"Answer: {_short(record.answer) if record.answer else 'none'}",
        record.reference and f"Reference: {_short(record.reference)}",
        record.contexts and contexts,
        rows and claims,
    )


def _claim_rows(diagnosis: AnswerDiagnosis, judged: JudgedAnswer) -> Iterator[tuple[Cell, ...]]:
    """Yield for each claim the deciding verdict with its context and quote."""
    contexts = judged.record.contexts
    every = list(items_of(judged.record, judged.claims))
    for name, relation in (("answer", "answer-context"), ("reference", "reference-context")):
        items = [item for item in every if item.relation == relation]
        labeled = zip(items, judged.labels.get(relation, ()), strict=True)
        for _, group in itertools.groupby(labeled, key=lambda pair: pair[0].row):
            verdicts = list(group)
            none = (verdicts[0][0], None)
            item, label = next((v for want in _DECIDING for v in verdicts if v[1] == want), none)
            verdict = None if label is None else diagnosis.answers.verdicts.get(item.key)
            decides = label in _DECIDING[:2]
            yield (
                _short(item.subject, 300),
                name,
                label or "not judged",
                contexts[item.column].id if decides else "",
                verdict.quote if verdict and decides else "",
                verdict.reason if verdict else "",
            )


def _short(text: str, most: int = _TEXT) -> str:
    return shorten(" ".join(text[: 4 * most].split()), most)


# ---- several systems side by side


def _blocks(several: Sequence[AnswerDiagnosis], _options: Options) -> Iterator[Table]:
    """Yield one system, or several side by side and, as details, each system."""
    if len(several) == 1:
        yield from several[0].tables()
        return
    answers = [diagnosis.answers for diagnosis in several]
    means = [
        dict(diagnosis.retrieval.mean() if diagnosis.retrieval else {}) | _means(diagnosis.answers)
        for diagnosis in several
    ]
    notes = (
        *(f"{diagnosis.answers.run_name}: {lower_first(diagnosis.summary())}" for diagnosis in several),
        *dict.fromkeys(evaluation.judge_note for evaluation in answers),
    )
    result, best = _verdict(answers)
    yield from _means_tables(answers, means, result, notes)
    for diagnosis in several:
        *tables, step = diagnosis.tables()
        yield from (replace(table, title=Detail(table.title)) for table in tables)
        yield step if diagnosis.answers.run_name == best else replace(step, title=Detail(step.title))


def _means_tables(
    systems: Sequence[AnswerEvaluation], means: Sequence[Mapping[str, float]], result: str, notes: Iterable[str]
) -> Iterator[Table]:
    """Yield the conclusion, and the means of the systems side by side."""
    yield Table((), (), title=f"{result}.")
    names = dict.fromkeys(itertools.chain.from_iterable(means))
    main = [name for name in names if name.removesuffix(_BY_JUDGE) in MAIN_MEASURES or name.startswith(_RETRIEVAL)]
    yield Table(
        columns=("measure", *(evaluation.run_name for evaluation in systems)),
        rows=tuple(
            (name if name in main or not main else Detail(name), *(mean.get(name) for mean in means)) for name in names
        ),
        title=" and ".join(dict.fromkeys(many(len(evaluation.query_ids), "question") for evaluation in systems)),
        digits=3,
        notes=tuple(notes),
        unit="measure",
    )


def _means(answers: AnswerEvaluation) -> dict[str, float]:
    """Return the mean of each measure; one that is not corrected is named as that of the judge."""
    means = {}
    for name, (mean, _, judged) in answers.estimates().items():
        known = judged if mean is None else mean
        if known is not None:
            means[name if mean is not None else f"{name}{_BY_JUDGE}"] = known
    return means


def _verdict(systems: Sequence[AnswerEvaluation]) -> tuple[str, str]:
    """Return the conclusion of the comparison, and the system with the best mean."""
    try:
        compared = compare(systems)
    except RankgaugeError as error:
        return f"no verdict: {error.what}", systems[0].run_name
    means = [row[str(compared.primary)] for row in compared.means().values()]
    best = compared.primary.best(means) or (0,)
    return comparison_result(compared), systems[best[0]].run_name


# ---- evaluations of one or more systems


def _compared(systems: Sequence[AnswerEvaluation], options: Options) -> Iterable[Table | str]:
    """Report one system with its intervals, or several side by side."""
    if options.per_query:
        return _PLAIN.blocks(systems, options)
    if len(systems) == 1:
        return systems[0].tables()
    notes = [note if "WARNING" in note else Detail(note) for note in evaluations.notes_of(systems)]
    return _means_tables(systems, [_means(evaluation) for evaluation in systems], _verdict(systems)[0], notes)


def _diagnosis_data(several: Sequence[AnswerDiagnosis], _options: Options) -> Table:
    """Return the rows of all systems, with a column for the system if there are several."""
    first = several[0].data_table()
    if len(several) == 1:
        return first
    rows = ((diagnosis.answers.run_name, *row) for diagnosis in several for row in diagnosis.data_table().rows)
    return Table(("system", *first.columns), tuple(rows))


_PLAIN = evaluations.REPORTS["Evaluation"]


REPORTS = {
    "AnswerDiagnosis": Report(_blocks, _diagnosis_data, several=True),
    "AnswerEvaluation": replace(_PLAIN, blocks=_compared),
}
