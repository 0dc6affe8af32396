"""Pages of answers: the limiting stage, each answer with its verdicts, and verdicts of people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from rankgauge.answers import (
    CAUSES,
    LABELS,
    AnswerDiagnosis,
    AnswerSet,
    Item,
    JudgedAnswer,
    RuleJudge,
    Verdict,
    VerdictStore,
    blame,
    diagnose_answers,
    evaluate_answers,
    items_of,
    score,
)
from rankgauge.errors import InputError
from rankgauge.store import HistoryEntry
from rankgauge.web.evaluations import saved_entry, workbench_of
from rankgauge.web.pages import JUDGES, LEADS, READERS, PageError, Visit, address, in_words, see_other, visited

# Question, and names of subject and target, by relation; the first two decide most causes.
_PROMPTS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "answer-context": ("Does the context support the claim?", "Claim", "Context"),
        "reference-answer": ("Does the answer support the claim?", "Claim", "Answer"),
        "reference-context": ("Does the context support the claim?", "Claim", "Context"),
        "answer-reference": ("Does the reference support the claim?", "Claim", "Reference"),
        "answer-question": ("Does the claim address the question?", "Claim", ""),
        "nugget-answer": ("Does the answer support the nugget?", "Nugget", "Answer"),
        "citation-context": ("Does the cited context support the sentence?", "Sentence", "Context"),
        "context-question": ("Is the context relevant to the question?", "Context", ""),
        "abstention": ("Does the answer say that it cannot answer?", "Answer", ""),
        "answerability": ("Can the collection answer the question?", "", "Passages found for it"),
        "criterion": ("Does the answer meet the criterion?", "Question and answer", "Criterion"),
    }
)
# What is judged, in the order of a page; people judge the relations named by default.
_TITLES: Mapping[str, str] = MappingProxyType(
    {
        "answer-context": "Claims of the answer in the contexts",
        "reference-answer": "Claims of the reference in the answer",
        "reference-context": "Claims of the reference in the contexts",
        "answer-reference": "Claims of the answer in the reference",
        "answer-question": "Claims of the answer and the question",
        "nugget-answer": "Nuggets in the answer",
        "citation-context": "Citations",
        "context-question": "Contexts and the question",
        "abstention": "Abstention",
        "answerability": "Answerability",
        "criterion": "Criteria",
    }
)
_DEFAULT = ("answer-context", "reference-answer", "criterion")
# The prompt of corrections. They are not labels for a calibration: people choose what to correct, and see a verdict.
_IN_SIGHT = "in sight"
_DECIDING = 2  # relations that are not collapsed


def _saved(visit: Visit) -> tuple[HistoryEntry, AnswerSet]:
    """Return an evaluation with the answers that were saved with it."""
    workbench, entry = workbench_of(visit), saved_entry(visit, visit.request.path_params["id"])

    def read() -> AnswerSet:
        answers = AnswerSet.saved(workbench.history, entry.id)
        return replace(answers, criteria=workbench.evaluation(entry).settings.get("criteria", {}))

    try:
        return entry, workbench.results.get(("answers", entry.id), read)
    except InputError as error:
        raise PageError(404, "No answers were saved with this evaluation.", where=entry.name, fix=error.fix) from None


def _store(visit: Visit) -> VerdictStore:
    return VerdictStore(workbench_of(visit).project.file.store)


def _diagnosis(visit: Visit, entry: HistoryEntry, answers: AnswerSet) -> AnswerDiagnosis:
    """Return the diagnosis by the verdicts of the judge of an evaluation."""

    def compute() -> AnswerDiagnosis:
        saved = workbench_of(visit).evaluation(entry)
        known = saved.settings.get("judge", {})
        judge = {key: known[key] for key in ("name", "person") if key in known}
        rules = RuleJudge()
        verdicts: Iterable[Any] = _store(visit).verdicts()
        if judge.get("name") == rules.name:
            verdicts = rules.judge([*{item.key: item for item in answers.items()}.values()])
        elif judge.get("person"):
            verdicts = (verdict for verdict in verdicts if not verdict.prompt)
        else:
            verdicts = (verdict for verdict in verdicts if verdict.judge == judge.get("name"))
        counted = [verdict for verdict in verdicts if isinstance(verdict, Verdict)]
        measures = [str(measure) for measure in saved.measures if measure.declaration.reads == "verdicts"]
        return diagnose_answers(evaluate_answers(answers, counted, measures or None, judge=judge))

    return workbench_of(visit).results.get(("answer diagnosis", entry.id), compute)


def _people(visit: Visit, diagnosis: AnswerDiagnosis) -> dict[str, Verdict]:
    """Return the last verdict of a person on each item, without those of the judge of the evaluation."""
    judge = diagnosis.answers.judge
    if judge.get("person"):
        return {}
    every = _store(visit).verdicts()
    people = (verdict for verdict in every if verdict.prompt in {"", _IN_SIGHT})
    return {verdict.key: verdict for verdict in people if verdict.judge != judge.get("name")}


def _show_all(visit: Visit) -> Response:
    entry, answers = _saved(visit)
    diagnosis = _diagnosis(visit, entry, answers)
    if visit.request.query_params.get("format") == "json":
        return Response(diagnosis.to_json(), media_type="application/json")
    people = _people(visit, diagnosis)
    own = {judged.record.id: {*chain(*judged.keys.values())} & people.keys() for judged in diagnosis.answers.judged}
    causes = diagnosis.blame.totals()
    cause = visit.request.query_params.get("cause", "")
    chosen = [cause] if cause in causes else causes
    return visit.render(
        "answers.html",
        entry=entry,
        diagnosis=diagnosis,
        judge_name=_judge_name(visit, diagnosis),
        causes=[
            (name, stage, in_words(fix), count, diagnosis.blame.gain(name))
            for name, count in sorted(causes.items(), key=lambda cause: (cause[0] not in CAUSES, -cause[1]))
            for stage, fix in [CAUSES.get(name, ("", ""))]
        ],
        cause=cause if cause in causes else "",
        rows=[
            (answer, len(own[answer.question]))
            for name in chosen
            for answer in diagnosis.blame.worst(name, len(answers))
        ],
        corrected=sum(map(bool, own.values())),
    )


def _show(visit: Visit) -> Response:
    entry, answers = _saved(visit)
    diagnosis = _diagnosis(visit, entry, answers)
    judged = _answer(visit, diagnosis)
    people, record = _people(visit, diagnosis), judged.record
    labels = dict(zip(chain(*judged.keys.values()), chain(*judged.labels.values()), strict=True))
    given = {key: label for key, label in labels.items() if label} | {key: v.label for key, v in people.items()}
    corrected = JudgedAnswer.of(record, judged.claims, given, answers.criteria)
    ids = [answer.record.id for answer in diagnosis.answers.judged]
    place = ids.index(record.id)
    groups: dict[str, list[Any]] = {}
    for item in items_of(record, judged.claims, answers.criteria):
        verdict = diagnosis.answers.verdicts.get(item.key)
        groups.setdefault(item.relation, []).append((item, labels[item.key], verdict, people.get(item.key)))
    return visit.render(
        "answer.html",
        entry=entry,
        record=record,
        causes=[blame([one]).answers[0] for one in (judged, corrected)],
        values=[(str(m), score(m, judged).value, score(m, corrected).value) for m in diagnosis.answers.measures],
        changed=any(item.key in people for rows in groups.values() for item, *_ in rows),
        groups=[
            (name, _TITLES[name], *_PROMPTS[name], LABELS[name], groups[name]) for name in _TITLES if name in groups
        ],
        open=_DECIDING,
        judge_name=_judge_name(visit, diagnosis),
        before=ids[place - 1] if place else "",
        after=ids[place + 1] if place + 1 < len(ids) else "",
    )


def _judge_name(visit: Visit, diagnosis: AnswerDiagnosis) -> str:
    judge = diagnosis.answers.judge
    name = str(judge.get("name", "the judge"))
    return visit.named(name) if judge.get("person") else name


def _answer(visit: Visit, diagnosis: AnswerDiagnosis) -> JudgedAnswer:
    name = visit.request.path_params["query"]
    for judged in diagnosis.answers.judged:
        if judged.record.id == name:
            return judged
    raise PageError(404, f"There is no answer to {name:.60}.", where="answers", fix="Choose one from the list.")


def _correct(visit: Visit) -> Response:
    """Store a verdict given in sight of that of the judge."""
    entry, answers = _saved(visit)
    judged = _answer(visit, _diagnosis(visit, entry, answers))
    item = _add(visit, items_of(judged.record, judged.claims, answers.criteria), _IN_SIGHT)
    return see_other(address("evaluations", entry.id, "answers", judged.record.id) + f"#{item.relation}")


def _add(visit: Visit, items: Iterable[Item], prompt: str = "") -> Item:
    """Store the verdict of a form on one of these items."""
    item = next((item for item in items if item.key == visit.form.get("key")), None)
    label = visit.form.get("label", "")
    if item is None or label not in LABELS[item.relation]:
        raise PageError(400, "The verdict was not stored.", where="form", fix="Reload the page and repeat the verdict.")
    _store(visit).add([Verdict(item.key, label, visit.judge.name, prompt)])
    return item


# ---- verdicts without those of the judge


def _to_label(visit: Visit) -> dict[str, Item]:
    """Return the items that people judge, in an arbitrary order that is the same for all people."""
    _, answers = _saved(visit)
    chosen = visit.request.query_params.getlist("relation") or _DEFAULT
    return {item.key: item for item in sorted(answers.items(), key=lambda item: item.key) if item.relation in chosen}


def _label(visit: Visit) -> Response:
    entry, answers = _saved(visit)
    items = _to_label(visit)
    own = _store(visit).verdicts(visit.judge.name)
    known = {verdict.key: verdict.label for verdict in own if verdict.key in items and not verdict.prompt}
    key = visit.request.query_params.get("item") or next((key for key in items if key not in known), "")
    if key and key not in items:
        raise PageError(404, "There is no such item.", where="verdicts", fix="Go to the start page.")
    item = items.get(key)
    home, relations = ("evaluations", entry.id, "label"), visit.request.query_params.getlist("relation")
    last = visit.request.query_params.get("last", "")
    return visit.render(
        "verdict.html",
        home=address(*home, relation=relations),
        again=address(*home, relation=relations, item=last),
        done=len(known),
        count=len(items),
        item=item,
        record=next((record for record in answers if item and record.id == item.record), None),
        prompt=_PROMPTS[item.relation] if item else (),
        labels=LABELS[item.relation] if item else (),
        texts=[] if item is None else [*filter(None, [passage.text for passage in item.passages] or [item.target])],
        chosen=known.get(key, ""),
        last=last if last in items else "",
    )


def _add_label(visit: Visit) -> Response:
    item = _add(visit, _to_label(visit).values())
    relations = visit.request.query_params.getlist("relation")
    return see_other(
        address("evaluations", visit.request.path_params["id"], "label", relation=relations, last=item.key)
    )


routes = [
    Route("/evaluations/{id}/answers", visited(_show_all, roles=READERS)),
    Route("/evaluations/{id}/answers/{query:path}", visited(_show, roles=READERS)),
    Route("/evaluations/{id}/answers/{query:path}", visited(_correct, roles=LEADS), methods=["POST"]),
    Route("/evaluations/{id}/label", visited(_label, roles=JUDGES)),
    Route("/evaluations/{id}/label", visited(_add_label, roles=JUDGES), methods=["POST"]),
]
