"""Reports on answers: retrieval and generation, limiting causes, and the worst answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rankgauge.answers import (
    AnswerDiagnosis,
    AnswerEvaluation,
    Blame,
    BlamedAnswer,
    JudgedAnswer,
    items_of,
)
from rankgauge.answers.diagnosis import CAUSES, JUDGE_NOTE, RULES_NOTE, most_frequent
from rankgauge.comparison.comparison import compare
from rankgauge.core.recommendations import next_step
from rankgauge.core.text import lower_first, many
from rankgauge.errors import RankgaugeError
from rankgauge.evaluation.result import Evaluation
from rankgauge.rendering.tables import Cell, Table, shorten
from rankgauge.reports import evaluations
from rankgauge.reports.registry import Options, Report
from rankgauge.reports.sections import Details, Part, Section, comparison_result

# Measures of answers in a short report.
_FIRST = (
    "AnswerCorrectness",
    "Faithfulness",
    "AnswerRelevance",
    "Completeness",
    "Contradicted",
    "NotStated",
    "TokenF1",
    "KPrecision",
)
_BY_JUDGE = " (by judge)"
_RETRIEVAL = ("R@", "nDCG@")  # measures of rankings in a short comparison of systems
_CAUSES = 3  # causes in a short report
_WORST = 3  # examples per cause
_BAR = 12
_TEXT = 1_200  # characters of an answer or context
_ROWS = 40  # claims per answer
# The first of these labels that any context has decides on the claim.
_DECIDING = ("supported", "contradicted", "not stated")


def answer_sections(found: AnswerDiagnosis) -> Iterator[Section]:
    """Yield the sections of a report on answers: both stages, causes, groups, and worst answers.

    Args:
        found: Returned by :func:`rankgauge.answers.diagnose_answers`.
    """
    yield Section("Retrieval and generation", (_stages(found),))
    parts: list[Part] = [_causes(found.blame)]
    if len(found.blame.by_group()) > 1:
        parts.append(_groups(found.blame))
    yield Section("Causes of failures", tuple(parts))
    worst = tuple(_examples(found))
    if worst:
        yield Section("Worst answers by cause", worst)


def answer_conclusions(found: AnswerDiagnosis) -> Iterator[tuple[str, str]]:
    """Yield headings and conclusions of a diagnosis of answers, ending with the next step."""
    yield "Limiting stage", "; ".join((found.summary(), *found.retrieval_first[1:]))
    yield "Next step", _next_step(found)


def _stages(found: AnswerDiagnosis) -> Table:
    # The head of the page names the judge.
    _, *doubts = _doubts(found)
    return replace(found.table(), title="Measures of both stages", notes=tuple(doubts))


def _doubts(found: AnswerDiagnosis) -> Iterator[str]:
    yield found.answers.judge_note
    judge = found.answers.judge
    if found.blame.stages() and not judge.get("person"):
        yield RULES_NOTE if judge.get("name") == "rules" else JUDGE_NOTE
    if found.retrieval is None:
        yield "rankings were not measured: no documents with the answer are known (gold)"
    for one in found.answers.findings:
        if one.severity == "warning" and not one.message.startswith(("judge: ", "verdicts are ")):
            yield one.note
    missing = {name: count for name, count in found.answers.missing().items() if count}
    if missing:
        name, count = max(missing.items(), key=lambda pair: pair[1])
        low, high = found.answers.bounds()[name]
        most = f"{many(count, 'verdict')} missing for {name}: if all were judged,"
        yield f"{most} {low:.3f} to {high:.3f}"


def _causes(blame: Blame) -> Table:
    """Return the causes with a bar for the number of questions."""
    most = max(blame.totals().values(), default=1)
    rows = tuple((*row[:3], "█" * math.ceil(_BAR * int(str(row[2])) / most), *row[3:]) for row in blame.table().rows)
    return Table(
        columns=("cause", "stage", "questions", "", "gain at most", "suggested fix"),
        rows=rows,
        title=f"First step that failed, of {many(len(blame.answers), 'question')}",
        notes=("gain at most: of mean answer correctness, if all answers with this cause were correct",),
        digits=3,
    )


def _groups(blame: Blame) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for group, totals in blame.by_group().items():
        known = [each.correctness for each in blame.answers if each.group == group and not math.isnan(each.correctness)]
        mean = math.fsum(known) / len(known) if known else None
        faults = {cause: count for cause, count in totals.items() if cause in CAUSES}
        first = most_frequent(faults)
        cause = f"tie of {many(len(first), 'cause')}" if len(first) > 1 else "".join(first)
        rows.append((group or "none", sum(totals.values()), mean, sum(faults.values()), cause))
    return Table(
        columns=("group", "questions", "correctness", "with a fault", "most frequent cause"),
        rows=tuple(rows),
        title="By group",
        digits=3,
    )


def _examples(found: AnswerDiagnosis) -> Iterator[Details]:
    """Yield the worst answers for each cause: question, answer, contexts, claims, and verdicts."""
    judged = {each.record.id: each for each in found.judged}
    for cause in found.blame.totals():
        if cause not in CAUSES:
            continue
        for each in found.blame.worst(cause, _WORST):
            known = "" if math.isnan(each.correctness) else f"; correctness {each.correctness:.2f}"
            yield Details(
                f"{cause}: {each.question} {_short(each.text, 90)}{known}",
                tuple(_example(found, each, judged.get(each.question))),
            )


def _example(found: AnswerDiagnosis, blamed: BlamedAnswer, judged: JudgedAnswer | None) -> Iterator[Part]:
    if blamed.evidence:
        yield f"Why: {blamed.evidence}"
    if judged is None:
        return
    record = judged.record
    for role, text in record.history:
        yield f"Before ({role}): {_short(text)}"
    yield f"Question: {_short(record.question)}"
    yield f"Answer: {_short(record.answer) if record.answer else 'none'}"
    if record.reference:
        yield f"Reference: {_short(record.reference)}"
    if record.contexts:
        yield Table(
            columns=("context", "text"),
            rows=tuple((each.id, _short(each.text)) for each in record.contexts),
            title="Contexts",
        )
    rows = tuple(_claim_rows(found, judged))
    if rows:
        more = len(rows) - _ROWS
        yield Table(
            columns=("claim", "of", "verdict", "source", "quote", "reason"),
            rows=rows[:_ROWS],
            title="Claims and verdicts",
            notes=(f"{many(more, 'claim')} more",) if more > 0 else (),
        )


def _claim_rows(found: AnswerDiagnosis, judged: JudgedAnswer) -> Iterator[tuple[Cell, ...]]:
    """Yield for each claim the deciding verdict with its context and quote."""
    contexts = judged.record.contexts
    for name, relation in (("answer", "answer-context"), ("reference", "reference-context")):
        rows: dict[int, list[tuple[str | None, int, str]]] = {}
        claims: dict[int, str] = {}
        every = items_of(judged.record, judged.claims)
        items = [item for item in every if item.relation == relation]
        for item, label in zip(items, judged.labels.get(relation, ()), strict=True):
            rows.setdefault(item.row, []).append((label, item.column, item.key))
            claims[item.row] = item.subject
        for row, verdicts in rows.items():
            chosen = next((v for want in _DECIDING for v in verdicts if v[0] == want), None)
            label, column, key = chosen or (None, 0, "")
            verdict = found.verdicts.get(key)
            decides = label in _DECIDING[:2]
            yield (
                _short(claims[row], 300),
                name,
                label or "not judged",
                contexts[column].id if decides else "",
                verdict.quote if verdict and decides else "",
                verdict.reason if verdict else "",
            )


def _short(text: str, most: int = _TEXT) -> str:
    return shorten(" ".join(text[: 4 * most].split()), most)


# ---- terminal


def _blocks(several: Sequence[AnswerDiagnosis], options: Options) -> Iterator[Table | str]:
    """Yield one system, or several side by side and, for full reports, each system in detail."""
    if len(several) == 1:
        yield from _one(several[0], options)
        return
    yield from _side_by_side(several, options)
    if not options.short:
        for found in several:
            yield from _one(found, options)


def _one(found: AnswerDiagnosis, options: Options) -> Iterator[Table]:
    if options.on_terminal:
        yield _text(f"{found.summary()}.")
        yield from _screen(found, full=options.full)
        yield _next(found, "Next step", options)
        return
    yield replace(found.table(), notes=(found.summary(), *_doubts(found)))
    yield found.blame.table()
    if len(found.blame.by_group()) > 1:
        yield _groups(found.blame)


def _text(text: str) -> Table:
    return Table((), (), title=text)


def _next(found: AnswerDiagnosis, what: str, options: Options) -> Table:
    more = "" if options.full else "; --full shows all measures, causes, and groups"
    return _text(f"{what}: {lower_first(_next_step(found))}{more}")


def _screen(found: AnswerDiagnosis, *, full: bool) -> Iterator[Table]:
    table = found.table()
    retrieval = [row for row in table.rows if row[0] == "retrieval"]
    generation = [row for row in table.rows if row[0] != "retrieval"]
    some = [row for row in generation if row[1] in _FIRST]
    shown = retrieval + (generation if full or not some else some)
    # Without a column for the means by the judge, which would be too wide.
    yield replace(
        table,
        columns=(*table.columns[1:4], *table.columns[5:]),
        rows=tuple(
            (*row[1:4], *row[5:])
            if row[4] is None or row[2] is not None
            else (row[1], row[4], _BY_JUDGE.strip(), *row[5:])
            for row in shown
        ),
        notes=tuple(_doubts(found)),
    )
    causes = [row for row in found.blame.table().rows if row[1]]
    causes.sort(key=lambda row: -int(str(row[2])))
    if causes:
        columns = ("cause", "stage", "questions", "gain at most")
        yield Table(columns, tuple(row[:4] for row in causes[: None if full else _CAUSES]), digits=3)
        if full:
            yield Table(("cause", "fix"), tuple((row[0], row[4]) for row in causes))
    if full and len(found.blame.by_group()) > 1:
        yield _groups(found.blame)


def _side_by_side(several: Sequence[AnswerDiagnosis], options: Options) -> Iterator[Table]:
    """Yield the means of each system, the verdict, and the limits of each system."""
    answers = [found.answers for found in several]
    means = [dict(found.retrieval.mean() if found.retrieval else {}) | _means(found.answers) for found in several]
    if options.short:
        means = [
            {k: v for k, v in mean.items() if k.removesuffix(_BY_JUDGE) in _FIRST or k.startswith(_RETRIEVAL)}
            for mean in means
        ]
    notes = (
        *(f"{found.answers.run_name}: {lower_first(found.summary())}" for found in several),
        *dict.fromkeys(each.judge_note for each in answers),
    )
    result, best = _verdict(answers)
    yield from _means_tables(answers, means, (result, *notes), options)
    if options.on_terminal:
        chosen = next(found for found in several if found.answers.run_name == best)
        yield _next(chosen, f"Next step for {best}", options)


def _means_tables(
    systems: Sequence[AnswerEvaluation], means: Sequence[Mapping[str, float]], notes: Sequence[str], options: Options
) -> Iterator[Table]:
    """Yield the means of the systems side by side, and the conclusion, which is the first note."""
    table = Table(
        columns=("measure", *(each.run_name for each in systems)),
        rows=tuple(
            (name, *(mean.get(name) for mean in means)) for name in dict.fromkeys(itertools.chain.from_iterable(means))
        ),
        title=" and ".join(dict.fromkeys(many(len(each.query_ids), "question") for each in systems)),
        digits=3,
    )
    if options.on_terminal:
        yield _text(f"{notes[0]}.")
    yield replace(table, notes=tuple(notes[options.on_terminal :]))


def _means(answers: AnswerEvaluation) -> dict[str, float]:
    """Return the mean of each measure; one that is not corrected is named as that of the judge."""
    found = {}
    for name, (mean, _, judged) in answers.estimates().items():
        if mean is not None:
            found[name] = mean
        elif judged is not None:
            found[f"{name}{_BY_JUDGE}"] = judged
    return found


def _verdict(systems: Sequence[AnswerEvaluation]) -> tuple[str, str]:
    """Return the conclusion of the comparison, and the system with the best mean."""
    try:
        compared = compare(systems)
    except RankgaugeError as error:
        return f"no verdict: {error.what}", systems[0].run_name
    means = [row[str(compared.primary)] for row in compared.means().values()]
    best = compared.primary.best(means) or (0,)
    return comparison_result(compared), systems[best[0]].run_name


def _next_step(found: AnswerDiagnosis) -> str:
    if found.retrieval_first:
        return next_step("answers: retrieval limits")
    totals = {cause: n for cause, n in found.blame.totals().items() if cause in CAUSES}
    if not totals:
        return next_step("answers: no cause")
    steps = []
    for stage in found.blame.limiting():
        own = {cause: count for cause, count in totals.items() if CAUSES[cause][0] == stage}
        steps += [f"{CAUSES[cause][1]} ({cause}: {many(own[cause], 'answer')})" for cause in most_frequent(own)]
    text = "; ".join(steps)
    return f"{text[:1].upper()}{text[1:]}"


# ---- evaluations of one or more systems


def _compared(systems: Sequence[AnswerEvaluation], options: Options) -> Iterable[Table | str]:
    """Report one system with its intervals, or several side by side."""
    if options.per_query:
        return _PLAIN.blocks(systems, options)
    if len(systems) == 1:
        return [_short_table(systems[0]) if options.on_terminal else systems[0].table()]
    notes = evaluations.notes_of(systems)
    if options.on_terminal:
        notes = list(dict.fromkeys(one.note for each in systems for one in each.findings if one.severity != "info"))
        if any(each.undefined.any() for each in systems):
            notes.append("measures that are undefined for some questions: --as markdown")
    return _means_tables(systems, [_means(each) for each in systems], (_verdict(systems)[0], *notes), options)


def _short_table(found: AnswerEvaluation) -> Table:
    """Return means with warnings; other formats explain undefined values."""
    table = found.table()
    notes = [one.note for one in found.findings if one.severity != "info"]
    notes += [note for note in table.notes if note.startswith("judge: ")]
    if any(row[-1] != len(found.query_ids) for row in table.rows):
        notes.append("fewer questions: the others have no value (reasons: --as markdown)")
    return replace(table, notes=tuple(notes))


def _diagnosis_data(several: Sequence[AnswerDiagnosis], _options: Options) -> Table:
    """Return the rows of all systems, with a column for the system if there are several."""
    tables = [found.data_table() for found in several]
    if len(tables) == 1:
        return tables[0]
    rows = [(found.answers.run_name, *row) for found, table in zip(several, tables, strict=True) for row in table.rows]
    return Table(("system", *tables[0].columns), tuple(rows))


_PLAIN = evaluations.REPORTS[Evaluation]


REPORTS = {
    AnswerDiagnosis: Report(_blocks, _diagnosis_data, several=True),
    AnswerEvaluation: replace(_PLAIN, blocks=_compared),
}
