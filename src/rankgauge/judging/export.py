"""Export of the judgments of a project as qrels, preferences, or sampled judgments."""

from __future__ import annotations

import hashlib
import json
import math
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args
from xml.sax.saxutils import quoteattr

from rankgauge.core.arguments import choice as one_of
from rankgauge.core.files import write_atomically
from rankgauge.core.text import keep, many
from rankgauge.corpus import convert
from rankgauge.data import PreferenceQrels, Qrels, SampledQrels
from rankgauge.errors import InputError
from rankgauge.evaluation.questions import STATEMENT
from rankgauge.judging.events import Judgment
from rankgauge.judging.pools import pool_warning
from rankgauge.judging.project import JudgingProject
from rankgauge.judging.questions import advice
from rankgauge.judging.relevance import SPLIT, DocumentRelevance, measure_relevance
from rankgauge.rendering import Result, Table

CUTS = (0.5, 0.8, 0.95)
Rule: TypeAlias = Literal["share", "fit", "grade"]
Target: TypeAlias = Literal["qrels", "preferences", "sampled"]
_RULES = {
    "share": "documents never chosen for a question get grade 0, the others 1, 2, ... by ascending "
    "share chosen/shown; equal shares get equal grades",
    "fit": "by the probability of being preferred to none in the Plackett-Luce fit: below 0.5 "
    "grade 0, from 0.5 grade 1, from 0.8 grade 2, from 0.95 grade 3",
    "grade": "the median of the grades that people gave; for an even number of grades, the lower "
    "of the two middle grades. In a ranking, the first place has the highest grade and each "
    "further place 1 less; documents that were not ranked get no grade; if none answers the question, "
    "all get 0",
}
_PREFERENCES = (
    "each choice is a group: a chosen document is preferred to all others shown with it; in a "
    "ranking, each document is preferred to those ranked below it and those not ranked. Grade 1: "
    "not chosen; grade 0: none of these answers it"
)
_FIT_SCALE = (
    "none is preferred to it",
    "preferred to none with probability 0.5",
    "with probability 0.8",
    "with probability 0.95",
)
# Formats that contain query texts, because their tools do not know our identifiers.
_BY_TEXT = frozenset({"quepid", "opensearch"})
_LABEL_STUDIO = """<View>
  <Header value="$question"/>
  <Text name="text" value="$text"/>
  <Choices name="grade" toName="text" choice="single" required="true">
{choices}
  </Choices>
  <TextArea name="comment" toName="text" placeholder="Comment"/>
</View>
"""
_Grades: TypeAlias = dict[str, dict[str, int]]


@dataclass(frozen=True, eq=False)
class JudgmentExport(Result):
    """Judgments of a project, with their provenance.

    Returned by :func:`export_judgments`.

    Attributes:
        judgments: The judgments, without documents that were never shown.
        about: Guideline, criteria, scale, rule, and counts, as returned by `to_dict` and written by
            :meth:`write`.
        grades: Grades by question and document; for preferences, the highest grade.
        texts: Question texts by identifier.
    """

    judgments: Qrels | PreferenceQrels | SampledQrels
    about: Mapping[str, Any]
    grades: Mapping[str, Mapping[str, int]]
    texts: Mapping[str, str]

    _schema = "rankgauge/judging-export/1"
    _attributes = "*=about"

    def table(self) -> Table:
        """Return the number of documents by grade, under the numbers of questions and judgments, and the rule."""
        about, rule = self.about, self.about["relevance"]
        judged = sum(row["documents"] for row in about["scale"])
        by = f", grades by {'median' if rule == 'grade' else rule}" if rule else ""
        versions = ", ".join(entry["version"] for entry in about["guidelines"] if entry["version"] != "0")
        return Table(
            ("grade", "means", "documents"),
            tuple((row["grade"], row["means"], row["documents"]) for row in about["scale"]),
            title=f"{many(about['questions'], 'question')}, {many(judged, 'judged document')}{by}; "
            f"{many(about['unjudged'], 'document')} of the pools unjudged",
            notes=keep(
                *(f"WARNING: {text}" for text in about["warnings"]),
                versions and f"guideline: version {versions}",
                *about["notes"],
            ),
        )

    def write(self, target: str | os.PathLike[str], format: str | None = None) -> tuple[str, ...]:
        """Write the judgments, and their provenance to ``TARGET.about.json``.

        Args:
            target: The file, whose name determines the format (:func:`rankgauge.convert`); ``-``
                for standard output, without the second file.
            format: A format of :func:`rankgauge.convert` for qrels; ``trec``, ``csv``, ``tsv``,
                ``json``, or ``jsonl`` for preferences and sampled judgments. ``quepid`` and
                ``opensearch`` files contain question texts instead of identifiers.

        Returns:
            Notes on content that the format cannot hold.

        Raises:
            InputError: If the file cannot be written, or cannot hold the judgments.
        """
        notes: tuple[str, ...] = ()
        if isinstance(self.judgments, Qrels):
            done = convert(self._by_text() if format in _BY_TEXT else self.judgments, target, target_format=format)
            # This note is about query texts, which these files contain.
            notes = done.losses + (() if format in _BY_TEXT else done.notes)
        else:
            self.judgments.write(target, format)
        if os.fspath(target) != "-":
            with write_atomically(f"{os.fspath(target)}.about.json") as stream:
                stream.write(self.to_json().encode() + b"\n")
        return notes

    def _by_text(self) -> Qrels:
        by_text: dict[str, Mapping[str, int]] = {}
        for question, grades in self.grades.items():
            text = self.texts.get(question) or question
            if text in by_text:
                raise InputError(
                    f"two questions have the text {text!r:.80}",
                    where="questions",
                    fix="change one of them, or choose a format with identifiers, such as trec",
                )
            by_text[text] = grades
        return Qrels.of(by_text)


def export_judgments(
    project: JudgingProject,
    to: Target = "qrels",
    *,
    relevance: Rule | None = None,
    drop_unsure: bool = False,
    documents: Iterable[str] | None = None,
) -> JudgmentExport:
    """Return the judgments of a project for an evaluation.

    Args:
        project: The project.
        to: ``qrels``; ``preferences``, one group for each choice; or ``sampled``, with the pool and
            the random documents from outside it as strata (for ``infNDCG`` and ``xinfAP``).
        relevance: The rule for grades. ``share``: 0 for documents never chosen, 1, 2, ... for the
            others by ascending chosen/shown. ``fit``: 0 below 0.5, 1 below 0.8, 2 below 0.95, else
            3. ``grade``: the median of the grades of people, or of the places in rankings, the
            first place highest. If None, ``grade`` if all judged documents have grades, else
            ``share``. Documents that were shown in rankings but never ranked are not exported.
        drop_unsure: With ``fit``, whether to leave documents unjudged if their relevance is
            uncertain: their interval contains 0.5.
        documents: For ``sampled``, the identifiers of all documents in the collection.

    Raises:
        InputError: If the project has no judgments of this type.

    Example:
        >>> import tempfile
        >>> from rankgauge.judging import Candidate, Choice, JudgingProject, Question, Source
        >>> project = JudgingProject.create(tempfile.mkdtemp() + "/judging.db")
        >>> project.add_questions([Question("q1", "How are ties broken?")])
        >>> project.add_candidates([Candidate("q1", d, (Source("bm25"),)) for d in "ab"], [])
        2
        >>> ann, _ = project.add_judge("Ann")
        >>> task = project.next_task(ann.id).presentation
        >>> project.record(Choice("c1", task.id, ann.id, "chosen", ("a",)))
        True
        >>> export_judgments(project).judgments["q1"]
        {'a': 1.0, 'b': 0.0}
    """
    one_of("to", to, get_args(Target))
    judgments = project.judgments()
    relevances = measure_relevance(judgments, project.pools).documents
    texts = {name: question.text for name, question in project.questions.items()}
    if to == "preferences":
        preferences = preferences_of(judgments)
        grades: _Grades = {}
        for question, groups in preferences.items():
            own = grades[question] = {}
            for group in groups.values():
                own |= {document: max(grade, own.get(document, 0)) for document, grade in group.items()}
        about = _about(project, judgments, grades, relevances) | {
            "judgments": to,
            "relevance": None,
            "rule": _PREFERENCES,
            "cuts": None,
            "in_sight": [],
            "graded": [],
            "unsure": [],
            "scale": _scale(grades, ("none of these answers it", "shown, not chosen", "chosen")),
        }
        return JudgmentExport(PreferenceQrels.of(preferences), about, grades, texts)
    judged = [document for document in relevances if document.judged]
    if relevance is None:
        blind = any(document.shown or document.grades for document in judged)
        graded = all(len(document.grades) >= document.shown for document in judged)
        relevance = "grade" if judged and graded and (blind or project.settings.mode == "graded") else "share"
    rule: Rule = one_of("relevance", relevance, _RULES)  # type: ignore[assignment] # one of them
    grades, unsure = grades_of(relevances, rule)
    if not grades:
        raise InputError(
            f"no {'grades' if rule == 'grade' else 'choices'} of people are counted yet",
            where=project.where,
            fix=f"judge some tasks: rankgauge serve{project.flag}",
        )
    dropped = [document for document in unsure if drop_unsure and document.fit_low < CUTS[0] <= document.fit_high]
    for document in dropped:
        del grades[document.question][document.document]
    grades = {question: own for question, own in grades.items() if own}
    if not grades:
        raise InputError(
            "all intervals contain 0.5: no document is clearly relevant or not",
            where=project.where,
            fix="judge more tasks, or export all documents: without --drop-unsure",
        )
    exported: Qrels | SampledQrels = Qrels.of(grades)
    if to == "sampled":
        exported = SampledQrels.of(_strata(project, grades, documents))
    about = _about(project, judgments, grades, relevances) | {
        "judgments": to,
        "relevance": rule,
        "rule": _RULES[rule],
        "cuts": list(CUTS) if rule == "fit" else None,
        "in_sight": [
            [document.question, document.document]
            for document in judged
            if document.in_sight and not _given(document, rule)
        ],
        "graded": [[document.question, document.document] for document in judged if _given(document, rule)],
        "unsure": [
            {
                "question": document.question,
                "document": document.document,
                "relevance": document.fit,
                "interval": [document.fit_low, document.fit_high],
                "judged": document not in dropped,
            }
            for document in unsure
        ],
        "scale": _scale(grades, _labels(project, rule, judgments)),
    }
    if unsure:
        about["notes"].append(
            f"{many(len(unsure), 'document')} whose interval contains a threshold: more judgments "
            "may change the grade" + (f"; {len(dropped)} left unjudged" if drop_unsure else "")
        )
    return JudgmentExport(exported, about, grades, texts)


def write_label_studio(project: JudgingProject, target: str | os.PathLike[str]) -> int:
    """Write the documents of the pools as tasks of Label Studio, and their labeling configuration.

    Each task shows a question and a document, and asks for a grade on the scale of the project;
    documents of a question are in random order. :func:`import_judgments` reads the exports.

    Args:
        project: The project.
        target: The file of tasks for the import. The configuration is written to ``TARGET.xml``.

    Returns:
        The number of tasks.

    Raises:
        InputError: If the pools are empty, or a file cannot be written.
    """
    pairs = [(question, document) for question, pool in project.pools.items() for document in pool]
    if not pairs:
        raise InputError("the pools are empty", where=project.where, fix="add documents: rankgauge judge pool")
    stored = project.documents({document for _, document in pairs})
    order = {pair: hashlib.sha256("\0".join(pair).encode()).digest() for pair in pairs}
    tasks = []
    for question, document in sorted(pairs, key=lambda pair: (pair[0], order[pair])):
        fields = stored[document].fields.values() if document in stored else ()
        text = "\n\n".join(fields) or document
        data = {"query": question, "question": project.questions[question].text, "document": document, "text": text}
        tasks.append({"data": data})
    choices = "\n".join(f"    <Choice value={quoteattr(label)}/>" for label in project.settings.grades)
    with write_atomically(target) as stream:
        stream.write(json.dumps(tasks, ensure_ascii=False, indent=1).encode() + b"\n")
    with write_atomically(f"{os.fspath(target)}.xml") as stream:
        stream.write(_LABEL_STUDIO.format(choices=choices).encode())
    return len(tasks)


def grades_of(documents: Iterable[DocumentRelevance], rule: Rule) -> tuple[_Grades, list[DocumentRelevance]]:
    """Return the grades of judged documents, and the documents whose interval contains a threshold.

    Args:
        documents: Documents with their counts and fit.
        rule: ``share``, ``fit``, or ``grade``; see :func:`export_judgments`. The median of the grades
            that people gave in sight of systems and ranks counts before share and fit, since these
            are relative to the documents shown, and after grades that people gave blind unless judges
            are split. Other split documents have no grade.
    """
    grades: _Grades = defaultdict(dict)
    unsure: list[DocumentRelevance] = []
    shares: dict[str, set[Fraction]] = defaultdict(set)
    documents = list(documents)
    for document in documents:
        if document.shown:
            shares[document.question].add(Fraction(document.chosen, document.shown))
    for document in documents:
        own = document.in_sight if document.split else _given(document, rule) or document.in_sight
        if own:
            grades[document.question][document.document] = statistics.median_low(own)
        elif document.split or rule == "grade":
            continue
        elif document.shown and rule == "share":
            share = Fraction(document.chosen, document.shown)
            # Grade = position among the distinct shares above 0.
            grades[document.question][document.document] = sum(
                0 < other <= share for other in shares[document.question]
            )
        elif document.shown and not math.isnan(document.fit):
            grades[document.question][document.document] = sum(document.fit >= cut for cut in CUTS)
            if any(document.fit_low < cut <= document.fit_high for cut in CUTS):
                unsure.append(document)
    return dict(grades), unsure


def _given(document: DocumentRelevance, rule: Rule) -> tuple[int, ...]:
    """Return the grades given in tasks if they count: by the rule, or for a document without choices."""
    return document.grades if rule == "grade" or not document.shown else ()


def preferences_of(judgments: Iterable[Judgment]) -> dict[str, dict[str, dict[str, int]]]:
    """Return grades by question, presentation, and document, for counted choices between documents.

    The chosen document has grade 2; the m documents of a ranking have m + 1, ..., 2. Other
    documents shown have grade 1, or 0 if the judge chose none.

    Raises:
        InputError: If nobody has chosen between documents.
    """
    preferences: dict[str, dict[str, dict[str, int]]] = defaultdict(dict)
    for judgment in judgments:
        shown, choice = judgment.presentation, judgment.choice
        if not judgment.counted or choice is None or len(shown.documents) == 1 or choice.grades:
            continue
        grades = dict.fromkeys(shown.documents, 1 if choice.documents else 0)
        grades |= {document: grade for grade, document in enumerate(reversed(choice.documents), 2)}
        preferences[shown.question][shown.id] = grades
    if not preferences:
        raise InputError(
            "nobody has chosen between documents yet",
            where="preferences",
            fix="judge some tasks of the mode choice or ranking; measures of preferences read qrels, too: export those",
        )
    return dict(preferences)


def _strata(
    project: JudgingProject, grades: _Grades, documents: Iterable[str] | None
) -> dict[str, dict[str, dict[str, int]]]:
    """Return grades by question, stratum, and document; -1 means not judged."""
    pools: dict[str, dict[str, str]] = defaultdict(dict)
    with project.reading() as stored:
        for candidate in stored.candidates(grades):
            certain = any(source.kind != "random" for source in candidate.sources)
            pools[candidate.question][candidate.document] = (
                "1" if certain else f"{candidate.sources[0].probability:.12g}"
            )
    everything = None if documents is None else list(dict.fromkeys(documents))
    by_question: dict[str, dict[str, dict[str, int]]] = {}
    for question, own in grades.items():
        pool = pools[question] | {document: "1" for document in own if document not in pools[question]}
        tails = {stratum for stratum in pool.values() if stratum != "1"}
        if not tails:
            raise InputError(
                f"no document from outside the pool was drawn for question {question!r}",
                where=project.where,
                fix=f"draw some: rankgauge judge pool --collection FOLDER --random 10{project.flag}; or export qrels",
            )
        if everything is None:
            raise InputError(
                "the collection from which the random documents were drawn is unknown",
                where=project.where,
                fix="pass the collection: --collection FOLDER",
            )
        strata: dict[str, dict[str, int]] = defaultdict(dict)
        for document, stratum in pool.items():
            strata[stratum][document] = own.get(document, -1)
        strata[min(tails)] |= {document: -1 for document in everything if document not in pool}
        by_question[question] = dict(strata)
    return by_question


def _labels(project: JudgingProject, rule: Rule, judgments: Iterable[Judgment]) -> tuple[str, ...]:
    if rule == "grade":
        choices = [judgment.choice for judgment in judgments if judgment.counted and judgment.choice]
        if not choices or any(choice.grades for choice in choices):
            return project.settings.grades
        places = range(max(len(choice.documents) for choice in choices), 0, -1)
        return ("none of these answers it", *(f"place {place}" for place in places))
    return _FIT_SCALE if rule == "fit" else ("never chosen", "chosen, by ascending share")


def _scale(grades: _Grades, labels: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the meaning of each grade and the number of documents with it."""
    count = Counter(grade for own in grades.values() for grade in own.values())
    most = max(len(labels) - 1, *count)
    return [
        {"grade": grade, "means": labels[min(grade, len(labels) - 1)], "documents": count[grade]}
        for grade in range(most + 1)
    ]


def _about(
    project: JudgingProject, judgments: Iterable[Judgment], grades: _Grades, relevances: Iterable[DocumentRelevance]
) -> dict[str, Any]:
    """Return the provenance of an export: judges, guidelines, and counts."""
    counted = [judgment for judgment in judgments if judgment.counted]
    versions = Counter(judgment.presentation.guideline for judgment in counted)
    reasons = Counter(judgment.choice.reason for judgment in counted if judgment.choice is not None)
    reasons.pop("", None)
    with project.reading() as stored:
        kinds = {source.kind for candidate in stored.candidates() for source in candidate.sources}
        texts = {number: stored.version("guideline", number) for number in versions}
    settings, questions = project.settings, project.questions
    judged = {(question, document) for question, own in grades.items() for document in own}
    unjudged = [document for document in relevances if (document.question, document.document) not in judged]
    unranked = sum("not ranked" in document.excluded for document in unjudged)
    split = [document for document in unjudged if document.split]
    origins = Counter(questions[name].origin for name in grades if name in questions)
    generated = origins["generated"]
    sighted = [document for document in relevances if document.in_sight]
    both = [document for document in sighted if document.grades]
    same = sum(statistics.median_low(document.grades) == statistics.median_low(document.in_sight) for document in both)
    agree = f": {same} of {len(both)} as graded blind, which counts" if both else ""
    return {
        "project": settings.title,
        "mode": settings.mode,
        "questions": len(grades),
        "origins": dict(origins),
        "unjudged": len(unjudged),
        "guidelines": [
            {"version": str(number), "judgments": count, "text": (texts[number] or (0, ""))[1]}
            for number, count in sorted(versions.items())
        ],
        "criteria": [
            {"name": name, "decided": reasons[name]}
            for name in dict.fromkeys([*(name for _, name in settings.reasons), *reasons])
        ],
        "judges": len({judgment.presentation.judge for judgment in counted}),
        "split": [[document.question, document.document] for document in split],
        "statuses": dict(Counter(judgment.status for judgment in judgments)),
        "warnings": list(
            keep(
                pool_warning(kinds),
                generated and f"{generated} of {len(grades)} questions were generated by a model: {STATEMENT}",
            )
        ),
        "notes": list(
            keep(
                split and f"{many(len(split), 'document')} split: {SPLIT}",
                unranked and f"{many(unranked, 'document')} shown but never ranked: unjudged",
                advice(len(grades)) and f"{many(len(grades), 'question')}: {advice(len(grades))}",
                sighted
                and f"{many(len(sighted), 'document')} graded in sight of systems and ranks, which can bias{agree}",
                0 in versions and f"{many(versions[0], 'imported judgment')}; their guideline is unknown",
            )
        ),
    }
