"""Relevance of documents from the choices of judges."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np

from rankgauge.core.text import Ratio, keep, many, span
from rankgauge.errors import InputError
from rankgauge.judging.events import IN_SIGHT, Judgment
from rankgauge.judging.tasks import CARELESS, QuestionState, fit_question, is_resolved, split_documents
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Detail, Table, by_column, first_rows
from rankgauge.stats import NoneRate, none_rates, wilson_interval

_ROWS = 8  # rows of a short table
# Smallest number of sets to compare observed and predicted rates of "none".
_SETS = 20
_WIDE, _SURE = 30.0, 0.99
_KEPT = 10_000  # questions
SPLIT = (
    "chosen more often by some judges than by others (p < 0.05; by chance in up to 5% of questions); "
    "no interval, and exported as unjudged until somebody grades it in the browser"
)


@dataclass(frozen=True, slots=True)
class DocumentRelevance:
    """Judgments of people on a document.

    Attributes:
        question: The identifier of the question.
        document: The identifier of the document.
        shown: Finished presentations to people, including those in which none was chosen, but not
            rankings in which others were ranked and the document was not: these are no evidence.
        chosen: The number of times it was chosen (in a ranking: ranked).
        share: chosen / shown; NaN if it was never shown for a choice.
        share_low: Lower bound of the Wilson interval of the share.
        share_high: Upper bound of the Wilson interval.
        fit: Probability from the Plackett-Luce fit that the document is preferred to none; NaN if
            it was never shown for a choice.
        fit_low: Lower bound of the interval of `fit`, which covers up to 20% random answers or 10%
            "none" without reading; NaN if the document is split.
        fit_high: Upper bound of the interval of `fit`.
        above: Posterior probability that `fit` is above 0.5 if no answer is careless.
        split: Whether some judges choose it more often than others (:func:`split_documents`).
        grades: The grades by people, in the order of presentation. In a project of rankings, the
            last place that anybody filled is grade 1, the place before it 2, and so on, so that the
            first place is highest; documents of which none answers the question get 0.
        excluded: Presentations that do not count, by status: ``cannot tell``, ``expired``,
            ``repeat``, ``model``, ``not ranked``, and so on.
        in_sight: The grades by people who saw systems and ranks, which can bias them.
    """

    question: str
    document: str
    shown: int
    chosen: int
    share: float
    share_low: float
    share_high: float
    fit: float
    fit_low: float
    fit_high: float
    above: float
    split: bool = False
    grades: tuple[int, ...] = ()
    excluded: Mapping[str, int] = field(default_factory=dict)
    in_sight: tuple[int, ...] = ()

    @property
    def judged(self) -> bool:
        """Whether a person judged the document."""
        return self.shown > 0 or bool(self.grades or self.in_sight)

    @property
    def mean_grade(self) -> float:
        """The mean grade, which does not depend on the number of judges; NaN without grades."""
        return math.fsum(self.grades) / len(self.grades) if self.grades else math.nan


@dataclass(frozen=True, eq=False)
class Relevance(Result):
    """Relevance of the documents of each question, by share and by fit.

    Returned by :func:`measure_relevance`.

    Attributes:
        documents: Documents by question, sorted by share, then `shown`, then identifier. Unjudged
            documents are last.
        resolved: Whether the relevance of all documents is known and none is split
            (:func:`is_resolved`; for graded documents: whether all have a grade), by question.
        counted: Number of judgments used.
        excluded: Number of judgments not used, by status.
        none_rates: Observed and predicted rates of "none" by the quality of the set, with 99%
            intervals. Predictions use a nearly flat prior (sd 30).
        level: Confidence level of the intervals.
        warning: Warning about the pool; see :func:`pool_warning`.
    """

    _attributes = "documents resolved counted excluded none_rates level warning"

    documents: tuple[DocumentRelevance, ...]
    resolved: Mapping[str, bool]
    counted: int
    excluded: Mapping[str, int]
    none_rates: tuple[NoneRate, ...]
    level: float
    warning: str = ""

    def question(self, question: str) -> tuple[DocumentRelevance, ...]:
        """Return the documents of one question.

        Raises:
            InputError: If the question is unknown.
        """
        if question not in self.resolved:
            raise InputError(
                f"there is no question {question!r:.60}",
                where="relevance",
                fix="use the identifier of a question with a pool or judgments",
            )
        return tuple(document for document in self.documents if document.question == question)

    def table(self) -> Table:
        """Return the documents of each question, best first.

        Documents after the top judged ones, the interval of chosen/shown, and the number of judgments that do not
        count are details.
        """
        graded = any(document.grades for document in self.documents)
        chosen = any(document.shown for document in self.documents) or not graded
        shown = [document for document in self.documents if document.judged]
        shown += [document for document in self.documents if not document.judged]
        judged = sum(document.judged for document in shown)
        level = f"{self.level:.0%} CI"
        columns, rows = by_column(
            ("question", (document.question for document in shown)),
            ("document", (document.document for document in shown)),
            chosen and ("chosen/shown", (f"{document.chosen}/{document.shown}" for document in shown)),
            chosen
            and (
                Detail(level),
                (span(map(Ratio, (document.share_low, document.share_high)), ".2f") for document in shown),
            ),
            chosen and ("relevance (fit)", (document.fit for document in shown)),
            chosen
            and (
                level,
                (
                    "split" if document.split else span(map(Ratio, (document.fit_low, document.fit_high)), ".2f")
                    for document in shown
                ),
            ),
            graded and (Detail("grades") if chosen else "grades", (len(document.grades) for document in shown)),
            graded and ("mean grade", (document.mean_grade for document in shown)),
            any(document.excluded for document in shown)
            and (Detail("not counted"), (_counts(document.excluded) for document in shown)),
        )
        return Table(
            columns,
            tuple(first_rows(rows, min(_ROWS, judged))),
            title=f"{many(self.counted, 'judgment')} of {many(judged, 'document')}; "
            f"{sum(self.resolved.values())} of {many(len(self.resolved), 'question')} resolved",
            digits=2,
            notes=self._notes(),
            right=frozenset({2} if chosen else ()),
            shortened=frozenset({0, 1}),
            unit="document",
        )

    def data_table(self) -> Table:
        """Return all documents as plain values, one row each."""
        *names, grades, excluded, in_sight = DocumentRelevance.__dataclass_fields__
        return Table(
            (*names, grades, in_sight, excluded),
            tuple(
                (
                    *attrgetter(*names)(document),
                    *(" ".join(map(str, values)) for values in (document.grades, document.in_sight)),
                    sum(document.excluded.values()),
                )
                for document in self.documents
            ),
        )

    def _data(self) -> dict[str, Any]:
        return {
            **super()._data(),
            "none_rates": [asdict(rate) | {"consistent": rate.consistent} for rate in self.none_rates],
        }

    def _notes(self) -> tuple[str, ...]:
        unjudged = [document for document in self.documents if not document.judged]
        ranked = any("not ranked" in document.excluded for document in self.documents)
        split = [document for document in self.documents if document.split]
        return keep(
            self.warning,
            unjudged and f"{many(len(unjudged), 'document')} never shown{' or ranked' * ranked}: unjudged",
            split and f"{many(len(split), 'document')} split: {SPLIT}",
            self.excluded and f"not counted: {_counts(self.excluded)}",
            any(document.shown for document in self.documents)
            and "chosen/shown is lower next to strong documents; only relevance (fit) is comparable across questions",
            *(
                f"The fit may be biased: of {rate.sets} sets for which it predicts none in "
                f"{Ratio(rate.predicted):.0%}, none was chosen in {Ratio(rate.observed):.0%}"
                for rate in self.none_rates
                if rate.sets >= _SETS and not rate.consistent
            ),
        )


def measure_relevance(
    judgments: Iterable[Judgment],
    pools: Mapping[str, Iterable[str]] | None = None,
    *,
    level: float = 0.95,
    warning: str = "",
) -> Relevance:
    """Compute the relevance of documents from judgments.

    Relevance is estimated in two ways: by the share chosen / shown with a Wilson interval, and by a
    Plackett-Luce model of all choices for the question, as the probability of being preferred to
    none (``rankgauge.stats.fit_plackett_luce``). Its interval contains the Laplace intervals of
    three fits: no answer is careless, 20% are random, or 10% are "none" without reading. It is
    withheld for documents on which judges are split (:func:`split_documents`). Only judgments with the
    status ``counted`` are used. Documents that were never shown (in rankings: never ranked)
    remain unjudged.

    Args:
        judgments: All judgments of a project (:meth:`JudgingProject.judgments`).
        pools: The documents of each question; if None, those that were shown.
        level: Confidence level of the intervals.
        warning: Warning about the pool; see :func:`pool_warning`.

    Example:
        >>> from rankgauge.judging import Choice, Judgment, Presentation
        >>> shown = Presentation("p1", "q1", ("a", "b"), "ann")
        >>> relevance = measure_relevance(
        ...     [Judgment(shown, Choice("c1", "p1", "ann", "chosen", ("b",)), "counted")]
        ... )
        >>> [(document.document, document.chosen, document.shown) for document in relevance.documents]
        [('b', 1, 1), ('a', 0, 1)]
    """
    by_question: dict[str, list[Judgment]] = {name: [] for name in pools or {}}
    in_sight: dict[str, dict[str, tuple[int, ...]]] = defaultdict(lambda: defaultdict(tuple))
    excluded: Counter[str] = Counter()
    for judgment in judgments:
        shown, choice = judgment.presentation, judgment.choice
        if judgment.status == IN_SIGHT and choice is not None:
            by_question.setdefault(shown.question, [])
            in_sight[shown.question][shown.documents[0]] += choice.grades
            continue
        # Votes are about answers, not documents.
        if shown.mode != "answers":
            by_question.setdefault(shown.question, []).append(judgment)
        if not judgment.counted:
            excluded[judgment.status] += 1
    choices = [
        judgment.choice for mine in by_question.values() for judgment in mine if judgment.counted and judgment.choice
    ]
    # Places and grades of people have different scales.
    graded = any(choice.grades for choice in choices)
    places = 0 if graded else max((len(choice.documents) for choice in choices), default=0)
    estimates = {
        question: _measure_question(
            question,
            tuple(mine),
            tuple((pools or {}).get(question, ())),
            tuple(in_sight[question].items()),
            level=level,
            places=places,
        )
        for question, mine in by_question.items()
    }
    return Relevance(
        documents=tuple(document for documents, *_ in estimates.values() for document in documents),
        resolved={question: resolved for question, (_, resolved, *_) in estimates.items()},
        counted=sum(judgment.counted for mine in by_question.values() for judgment in mine),
        excluded=dict(excluded),
        none_rates=none_rates(
            [rate for *_, predicted, _ in estimates.values() for rate in predicted],
            [none for *_, observed in estimates.values() for none in observed],
            level=_SURE,
        ),
        level=level,
        warning=warning,
    )


@lru_cache(maxsize=_KEPT)
def _measure_question(
    question: str,
    judgments: tuple[Judgment, ...],
    pool: tuple[str, ...],
    graded_in_sight: tuple[tuple[str, tuple[int, ...]], ...],
    *,
    level: float,
    places: int,
) -> tuple[list[DocumentRelevance], bool, list[float], list[bool]]:
    """Return documents, whether all are resolved, and predicted and observed "none" by choice.

    The result is kept until the question is judged again, since a fit takes a millisecond.
    """
    in_sight = dict(graded_in_sight)
    chosen: Counter[str] = Counter()
    grades: dict[str, list[int]] = defaultdict(list)
    excluded: dict[str, Counter[str]] = defaultdict(Counter)
    unranked: Counter[str] = Counter()
    sets = []
    judges = []
    for judgment in judgments:
        documents, choice = judgment.presentation.documents, judgment.choice
        if not judgment.counted or choice is None:
            for name in documents:
                excluded[name][judgment.status] += 1
        elif choice.outcome == "graded":
            for name, grade in zip(documents, choice.grades, strict=True):
                grades[name].append(grade)
        else:
            chosen.update(choice.documents)
            sets.append((documents, choice.documents))
            judges.append(judgment.presentation.judge)
            if judgment.presentation.mode != "ranking":
                continue
            for place, name in enumerate(choice.documents or documents):
                if places:
                    grades[name].append(places - place if choice.documents else 0)
            for name in {*documents} - {*(choice.documents or documents)}:
                excluded[name]["not ranked"] += 1
                unranked[name] += 1
    state = QuestionState(
        tuple(dict.fromkeys([*pool, *grades, *excluded, *in_sight])), tuple(sets), judges=tuple(judges)
    )
    names, fit = fit_question(state)
    split = split_documents(state)
    shown = state.shown - unranked
    trials = np.array([shown[name] for name in names])
    hits = np.array([chosen[name] for name in names])
    with np.errstate(invalid="ignore"):
        share = hits / trials
    low, high = wilson_interval(hits, trials, level)
    bounds = [fit_question(state, careless=careless)[1].relevance_interval(level) for careless in CARELESS]
    divided = np.isin(names, split)
    columns = {
        "share": share,
        "share_low": low,
        "share_high": high,
        "fit": fit.relevance,
        "fit_low": np.where(divided, np.nan, np.min([low for low, _ in bounds], axis=0)),
        "fit_high": np.where(divided, np.nan, np.max([high for _, high in bounds], axis=0)),
        "above": fit.probability_above(),
    }
    # Documents never shown get no estimate: 0 / 0 is undefined, and the fit is only the prior.
    numbers = {key: np.where(trials > 0, values, np.nan).tolist() for key, values in columns.items()}
    relevances = [
        DocumentRelevance(
            question=question,
            document=name,
            shown=shown[name],
            chosen=chosen[name],
            split=name in split,
            grades=tuple(grades.get(name, ())),
            excluded=dict(excluded.get(name, {})),
            in_sight=in_sight.get(name, ()),
            **{key: values[at] for key, values in numbers.items()},
        )
        for at, name in enumerate(names)
    ]
    index = {name: at for at, name in enumerate(names)}
    # The usual prior would move these predictions away from 0 and 1.
    wide = fit_question(state, prior_sd=_WIDE)[1]
    predicted = [float(wide.none_probability([[index[name] for name in documents]])[0]) for documents, _ in sets]
    tasks = tuple(name for name in names if name not in in_sight or name in {*pool, *grades, *excluded})
    resolved = is_resolved(QuestionState(tasks, state.judgments)) if sets else len(grades) == len(tasks)
    none = [not best for _, best in sets]
    return sorted(relevances, key=_order), bool(tasks) and resolved and not split, predicted, none


def _order(document: DocumentRelevance) -> tuple[bool, float, float, int, str]:
    """Return the sort key: share or mean grade, then `shown`; unjudged documents last."""
    share = 0.0 if math.isnan(document.share) else document.share
    grade = document.mean_grade if document.grades else -math.inf
    return not document.judged, -share, -grade, -document.shown, document.document


def _counts(excluded: Mapping[str, int]) -> str:
    return ", ".join(f"{status} ({number})" for status, number in excluded.items())
