"""Declarations of the online metrics: unit, numerator, denominator, and definition."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rankgauge.core.arguments import known_name
from rankgauge.errors import InputError

# Reasons for undefined metrics, by missing kind of event.
_MISSING = {
    "question": "no questions were logged",
    "retrieval": "no retrievals were logged",
    "impression": "no impressions were logged",
    "click": "no clicks on results were logged",
    "answer": "no answers were logged",
    "citation": "no citations were logged",
    "citation click": "no clicks on citations were logged",
    "thumbs": "no thumbs were logged",
    "preference": "no preferences were logged",
    "abstention": "no abstentions were logged",
    "handover": "no handovers to a person were logged",
    "label": "no questions were labeled as answerable or not",
}


@dataclass(frozen=True)
class OnlineMetric:
    """A rate, mean, or quantile over the questions of a log.

    Attributes:
        name: The name.
        unit: The unit of the denominator, in the plural.
        numerator: A description of the numerator.
        definition: The metric in a sentence.
        better: ``higher`` or ``lower``; empty for a metric without a direction.
        kind: ``proportion``, ``mean``, or ``quantile``.
        needs: The required kinds of events; ``a|b`` requires one of them.
        y: The SQL expression of the numerator over the columns of ``questions``.
        x: The SQL expression of the denominator. A quantile is over the non-null values of `y`.
        bounds: The lowest and highest possible values.
        quantile: The level of a quantile; NaN for other metrics.
        per_session: Whether the unit is the session, with the smallest `y` of its questions.
    """

    name: str
    unit: str
    numerator: str
    definition: str
    better: Literal["higher", "lower", ""]
    kind: Literal["proportion", "mean", "quantile"]
    needs: tuple[str, ...]
    y: str
    x: str
    bounds: tuple[float, float] = (0.0, 1.0)
    quantile: float = math.nan
    per_session: bool = False

    def missing(self, kinds: set[str]) -> str:
        """Return why a log with these kinds of events lacks the metric, or an empty string."""
        for need in self.needs:
            if not kinds.intersection(need.split("|")):
                return ", ".join(_MISSING[kind] for kind in need.split("|"))
        return ""


_ACTED = "(clicks > 0 OR citations_clicked > 0 OR thumbs_up + thumbs_down > 0)"
_RATED = "thumbs_up + thumbs_down > 0"
_REPLIED = "(answered OR {abstains})"
_BOTH_BAD = "(preference IS NULL AND preference_label IS NOT NULL)"


def _metric(  # noqa: PLR0917 - a row of a table
    name: str,
    unit: str,
    numerator: str,
    definition: str,
    better: Literal["higher", "lower", ""],
    needs: tuple[str, ...],
    y: str,
    x: str,
) -> OnlineMetric:
    """Return a metric of the kind ``proportion``."""
    return OnlineMetric(
        name, unit, numerator, definition, better, "proportion", needs, f"(({x}) AND ({y}))::INT", f"({x})::INT"
    )


def _latency(percent: int) -> OnlineMetric:
    return OnlineMetric(
        f"latency_p{percent}",
        "questions",
        "milliseconds",
        f"{percent}th percentile of the latency of answers (or retrievals) in milliseconds",
        "lower",
        "quantile",
        (),
        "latency_ms",
        "latency_ms IS NOT NULL",
        (0.0, math.inf),
        percent / 100,
    )


_DECLARED = (
    _metric(
        "thumbs_ratio",
        "rated answers",
        "rated up",
        "thumbs up / (thumbs up + thumbs down); unrated answers are not counted",
        "higher",
        ("thumbs",),
        "thumbs_up > 0",
        _RATED,
    ),
    _metric(
        "feedback_rate",
        "answers",
        "rated",
        "rated answers / answers shown",
        "",
        ("answer", "thumbs"),
        _RATED,
        "answered",
    ),
    _metric(
        "idk_rate",
        "answers",
        "abstentions",
        "abstentions (I don't know) / all answers, abstentions included; a low rate alone is not good",
        "",
        ("answer|abstention",),
        "{abstains}",
        _REPLIED,
    ),
    _metric(
        "wrong_idk_rate",
        "answerable questions",
        "abstentions",
        "abstentions / answers to questions that can be answered",
        "lower",
        ("answer|abstention", "label"),
        "{abstains}",
        f"answerable AND {_REPLIED}",
    ),
    _metric(
        "right_idk_rate",
        "unanswerable questions",
        "abstentions",
        "abstentions / answers to questions that cannot be answered",
        "higher",
        ("answer|abstention", "label"),
        "{abstains}",
        f"NOT answerable AND {_REPLIED}",
    ),
    _metric(
        "reformulation_rate",
        "questions",
        "reformulated",
        "questions followed by a similar one (word cosine of {similarity:g} or more) in the same "
        "session within {minutes:g} minutes / questions in sessions",
        "lower",
        ("question",),
        # Words are compared only within the time limit.
        "CASE WHEN next_question_seconds <= {minutes} * 60 "
        "THEN coalesce(word_similarity(text, next_text) >= {similarity}, false) ELSE false END",
        "session_id IS NOT NULL",
    ),
    _metric(
        "abandonment_rate",
        "searches",
        "abandoned",
        "searches with results but no click, no rating, and no other question in the session "
        "within {minutes:g} minutes / searches with results; includes users whom the answer on the "
        "page satisfied",
        "",
        ("retrieval|impression", "click|citation click"),
        f"NOT {_ACTED} AND coalesce(next_question_seconds > {{minutes}} * 60, true)",
        "(retrieved > 0 OR impressions > 0)",
    ),
    _metric(
        "no_result_rate",
        "searches",
        "without a result",
        "searches that retrieved nothing / searches",
        "lower",
        ("retrieval",),
        "retrieved = 0",
        "retrieved IS NOT NULL",
    ),
    _metric(
        "search_ctr",
        "searches",
        "with a click",
        "searches with a click on a result / searches with a ranking or results shown",
        "higher",
        ("retrieval|impression", "click"),
        "clicks > 0",
        "(retrieved IS NOT NULL OR impressions > 0)",
    ),
    OnlineMetric(
        "result_ctr",
        "results",
        "clicked",
        "results clicked / results shown; repeated clicks on a result count once",
        "higher",
        "proportion",
        ("impression", "click"),
        "least(clicked_results, impressions)",
        "impressions",
    ),
    OnlineMetric(
        "click_mrr",
        "clicked searches",
        "sum of 1 / rank",
        "mean of 1 / the best clicked rank, over searches with a click of known rank",
        "higher",
        "mean",
        ("click",),
        "coalesce(click_rr, 0)",
        "(click_rr IS NOT NULL)::INT",
    ),
    OnlineMetric(
        "click_rank",
        "clicked searches",
        "sum of ranks",
        "mean rank of the first click, over searches with a click of known rank",
        "lower",
        "mean",
        ("click",),
        "coalesce(first_click_rank, 0)",
        "(first_click_rank IS NOT NULL)::INT",
        (1.0, math.inf),
    ),
    _metric(
        "citation_ctr",
        "cited answers",
        "with a click on one",
        "answers with a click on a citation / answers shown with citations",
        "higher",
        ("citation", "citation click"),
        "citations_clicked > 0",
        "citations_shown > 0",
    ),
    OnlineMetric(
        "citation_click_rate",
        "citations",
        "clicked",
        "citations clicked / citations shown; repeated clicks on a citation count once",
        "higher",
        "proportion",
        ("citation", "citation click"),
        "least(citations_clicked, citations_shown)",
        "citations_shown",
    ),
    OnlineMetric(
        "containment_rate",
        "sessions",
        "not handed over",
        "sessions not handed over to a person / sessions; a session may end with no solution",
        "higher",
        "proportion",
        ("handover",),
        "(NOT handed_over)::INT",
        "(session_id IS NOT NULL)::INT",
        per_session=True,
    ),
    OnlineMetric(
        "win_rate",
        "comparisons",
        "wins + ties / 2",
        "(first preferred + ties / 2) / comparisons, without those where both were bad",
        "",
        "proportion",
        ("preference",),
        "coalesce((preference + 1) / 2, 0)",
        "(preference IS NOT NULL)::INT",
    ),
    _metric(
        "both_bad_rate",
        "comparisons",
        "both bad",
        "comparisons where both were bad / comparisons",
        "lower",
        ("preference",),
        _BOTH_BAD,
        f"preference IS NOT NULL OR {_BOTH_BAD}",
    ),
    _latency(50),
    _latency(95),
)
#: The online metrics by name.
METRICS = {metric.name: metric for metric in _DECLARED}


def metrics_of(names: Iterable[str] | str | None) -> tuple[OnlineMetric, ...]:
    """Return the metrics with these names; if None, all metrics.

    Raises:
        UnknownName: If a name is not in `METRICS`.
        InputError: If `names` is empty.

    Example:
        >>> [metric.unit for metric in metrics_of(["thumbs_ratio", "idk_rate"])]
        ['rated answers', 'answers']
    """
    if names is None:
        return _DECLARED
    comma_separated = [names] if isinstance(names, str) else names
    wanted = dict.fromkeys(part.strip() for name in comma_separated for part in name.split(","))
    for name in wanted:
        known_name("online metric", name, METRICS)
    if not wanted:
        raise InputError("no metric was given", where="metrics", fix="name one, or omit it")
    return tuple(METRICS[name] for name in wanted)


def bound_thumbs(up: float, rated: float, unrated: float) -> tuple[float, float]:
    """Return a thumbs ratio if all unrated answers were rated down, and if all were rated up.

    Example:
        >>> bound_thumbs(6, 8, 2)
        (0.6, 0.8)
    """
    return up / (rated + unrated), (up + unrated) / (rated + unrated)


ThresholdVerdict: TypeAlias = Literal["PASS", "INCONCLUSIVE", "NOT DEFINED", "FAIL"]
_WRITTEN = re.compile(r"\s*(\w+)\s*([<>])\s*([-+.\deE]+)\s*")


@dataclass(frozen=True)
class Threshold:
    """A limit beyond which a metric fails.

    Attributes:
        metric: The name of the metric.
        above: Whether values above the limit fail; otherwise values below it fail.
        number: The limit.
    """

    metric: str
    above: bool
    number: float

    @classmethod
    def of(cls, text: str) -> Threshold:
        """Parse a threshold, such as ``"idk_rate > 0.2"``.

        Raises:
            InputError: If the text does not have this form.
            UnknownName: If the metric is unknown.

        Example:
            >>> Threshold.of("thumbs_ratio < .7")
            Threshold(metric='thumbs_ratio', above=False, number=0.7)
        """
        match = _WRITTEN.fullmatch(text)
        try:
            number = float(match[3]) if match else math.nan
        except ValueError:
            number = math.nan
        if match is None or not math.isfinite(number):
            raise InputError(f"got {text!r:.60}", where="threshold", fix="write NAME > NUMBER or NAME < NUMBER")
        metrics_of([match[1]])
        return cls(match[1], match[2] == ">", number)

    def __str__(self) -> str:
        return f"{self.metric} {'>' if self.above else '<'} {self.number:g}"


@dataclass(frozen=True)
class ThresholdCheck:
    """The result of a threshold.

    Attributes:
        threshold: The threshold.
        verdict: ``FAIL`` if the whole 95% interval is beyond the limit, ``PASS`` if none of it is,
            ``INCONCLUSIVE`` if it includes the limit or is unavailable, ``NOT DEFINED`` without a
            value.
        sentence: The verdict as a sentence.
    """

    threshold: Threshold
    verdict: ThresholdVerdict
    sentence: str
