"""The judge of answers, as the settings of an evaluation describe it, and the correction of its errors."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from rankgauge.core.findings import Finding
from rankgauge.core.text import many
from rankgauge.data.judged_run import Values
from rankgauge.evaluation.result import Evaluation, of_answers
from rankgauge.measures.measure import Measure

JudgeState: TypeAlias = Literal["not calibrated", "not usable", "usable"]
# Questions with labels of people from which they give a verdict: docs/explain/judge-calibration.md
FEWEST_LABELED = 20


def judge_name(settings: Mapping[str, Any]) -> str | None:
    """Return the name and prompt of the judge of answers; None if unknown."""
    judge = settings.get("judge")
    if isinstance(judge, Mapping):
        judge = " ".join(str(judge[part]) for part in ("name", "prompt") if judge.get(part))
    return str(judge) if judge else None


def calibration_finding(
    settings: Mapping[str, Any], measure: Measure, queries: Collection[str], other: Mapping[str, Any] | None = None
) -> Finding | None:
    """Return a finding if the judge of a measure of answers is not calibrated or not usable.

    Labels of people on enough questions take the place of a usable judge.

    Args:
        settings: Settings of the evaluation.
        measure: The measure.
        queries: Questions with a value; with `other`, in both.
        other: Settings of an evaluation that it is compared with: the labels are on the same
            questions.
    """
    judge = _judge_of(settings)
    about = about_judge(settings, measure)
    state = about.get("state", "not calibrated")
    if measure.declaration.reads != "verdicts" or judge.get("person") or state == "usable":
        return None
    labeled = _labeled(measure, settings, settings if other is None else other)
    count = sum(query in labeled for query in queries)
    if count >= FEWEST_LABELED:
        return None
    name = judge.get("name")
    why = about.get("reason") or (f"judged by {name}" if name else "it is not known who judged")
    if other is not None and len(about.get("people", ())) >= FEWEST_LABELED:
        why += f", and people labeled only {many(count, 'question')} with a value in both"
    fix = "calibrate another judge or prompt, or label more answers"
    if state == "not calibrated":
        fix = (
            "label answers (rankgauge serve), compare the judge with the labels (rankgauge "
            "answers calibrate), and evaluate with the calibration"
        )
    return Finding("", "error", f"the judge of {measure} is {state}: {why}", fix=fix)


def about_judge(settings: Mapping[str, Any], measure: Measure) -> Mapping[str, Any]:
    """Return the state and the errors of the judge of a measure; empty if unknown."""
    measures = _judge_of(settings).get("measures")
    about = measures.get(str(measure)) if isinstance(measures, Mapping) else None
    return about if isinstance(about, Mapping) else {}


def _judge_of(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the attributes of the judge of answers; empty if unknown, or if only its name is known."""
    judge = settings.get("judge")
    return judge if isinstance(judge, Mapping) else {}


def corrected_mean(settings: Mapping[str, Any], measure: Measure, mean: float) -> float:
    """Return the mean corrected for errors of the judge of answers; NaN if that is not possible.

    The mean by people, or by a measure without a judge, needs no correction.
    """
    if not measure.judged_by_model(settings):
        return mean
    return float(about_judge(settings, measure).get("corrected", [math.nan])[0])


def comparable_means(
    measure: Measure, settings: Iterable[Mapping[str, Any]], means: Sequence[float]
) -> tuple[list[float], bool]:
    """Return means of the same kind, and whether they are those by the judge of answers.

    They are corrected for the errors of the judge if that is possible for all; otherwise, they are
    the given ones.
    """
    corrected = [
        corrected_mean(run_settings, measure, mean) for run_settings, mean in zip(settings, means, strict=True)
    ]
    if any(math.isnan(value) and not math.isnan(mean) for value, mean in zip(corrected, means, strict=True)):
        return list(means), True
    return corrected, False


def valued_queries(evaluation: Evaluation, measure: Measure) -> frozenset[str]:
    """Return the queries with a value."""
    return frozenset(evaluation.query_ids[n] for n in np.flatnonzero(~np.isnan(evaluation.column(measure))))


def _labeled(measure: Measure, run: Mapping[str, Any], baseline: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return the values by people of the questions that they labeled in both evaluations."""
    mine, theirs = (about_judge(settings, measure).get("people", {}) for settings in (run, baseline))
    return {query: (value, theirs[query]) for query, value in mine.items() if query in theirs}


@dataclass(frozen=True)
class JudgeCorrection:
    """Correction of the differences between two systems for the errors of the judge.

    Attributes:
        values: One difference for each query, or for each conversation of several questions, whose
            mean is the mean difference of the questions; with labels of people, the
            prediction-powered mean.
        counted: The differences to count as wins, ties, and losses: those by people where they
            labeled a question, otherwise those by the judge.
        units: The query or conversation of each of the values.
        gain: Sensitivity + specificity - 1 of the judge, with the bounds of its interval: a true
            difference shows in `values` as this share of its size.
        unseen: Largest effect of an unobserved question or conversation, relative to one of average
            size: the number of questions per labeled question, or the relative size of the largest
            conversation.
        condition: The assumption of the correction; empty without correction.
    """

    values: Values
    counted: Values
    units: Sequence[str]
    gain: tuple[float, float, float] = (1.0, 1.0, 1.0)
    unseen: float = 1.0
    condition: str = ""


def correct_differences(
    measure: Measure,
    differences: Values,
    queries: Sequence[str],
    *,
    run: Mapping[str, Any],
    baseline: Mapping[str, Any],
) -> JudgeCorrection:
    """Return the differences between two evaluations of answers, with their correction.

    Labels of people on the same questions of both systems are valid whatever the errors of the
    judge. Without them, a usable judge must err as often on both systems. The questions of a
    conversation depend on each other, so they have one value.

    Args:
        measure: The measure.
        differences: (Q,) differences of the judge's values; NaN for excluded questions.
        queries: The questions.
        run: Settings of the first evaluation.
        baseline: Settings of the second evaluation.
    """
    labeled = _labeled(measure, run, baseline)
    known = [n for n, query in enumerate(queries) if not np.isnan(differences[n])]
    people = [labeled.get(queries[n]) for n in known]
    count = sum(pair is not None for pair in people)
    # The first question of the conversation of each later question.
    talks = _judge_of(run).get("conversations") or _judge_of(baseline).get("conversations", {})
    if count >= FEWEST_LABELED:
        from rankgauge.stats import prediction_powered_values

        by_people = np.array([np.nan if pair is None else pair[0] - pair[1] for pair in people])
        clusters = [talks.get(queries[n], queries[n]) for n in known]
        values = prediction_powered_values(differences[known], by_people, clusters)
        counted = np.where(np.isnan(by_people), differences[known], by_people)
        if len(values) < len(counted):
            counted = np.bincount(np.unique(clusters, return_inverse=True)[1], counted)
        condition = (
            f"corrected by labels of people on {count} questions (prediction-powered), which is "
            "valid for any errors of the judge"
        )
        return JudgeCorrection(values, counted, sorted(set(clusters)), unseen=len(known) / count, condition=condition)
    unseen = 1.0
    if talks and known:
        first, places = np.unique([talks.get(query, query) for query in queries], return_inverse=True)
        queries = first.tolist()
        sizes = np.bincount(places[known], minlength=places.max() + 1)
        weight = np.count_nonzero(sizes) / len(known)
        totals = np.bincount(places, np.nan_to_num(differences)) * weight
        differences, unseen = np.where(sizes > 0, totals, np.nan), float(sizes.max() * weight)
    both = [about_judge(settings, measure).get("gain", (1.0, 1.0, 1.0)) for settings in (run, baseline)]
    value, low, high = min(both, key=lambda gain: gain[1])
    if value == low == high:
        return JudgeCorrection(differences, differences, queries, unseen=unseen)
    condition = (
        "assuming that the judge errs as often on both systems (sensitivity + specificity - 1: "
        f"{value:.2f} [{low:.2f}, {high:.2f}])"
    )
    return JudgeCorrection(differences, differences, queries, (value, low, high), unseen, condition)


def settings_change(evaluation: Evaluation, settings: Mapping[str, Any], before: str, after: str) -> Finding | None:
    """Return a finding about changed settings of answers, or None.

    Returns None without a change, for unknown settings, and for runs: the settings of two
    retrievers have little in common.

    Args:
        evaluation: The later evaluation.
        settings: Settings of the earlier evaluation.
        before: Name of the earlier evaluation.
        after: Name of the later evaluation.

    Returns:
        A finding of severity ``info`` if one setting changed; ``warning`` if the judge or several
        settings changed, so that their effects cannot be separated.
    """
    if not settings or not of_answers(evaluation):
        return None
    now = dict(evaluation.settings) | {"judge": judge_name(evaluation.settings)}
    settings = dict(settings) | {"judge": judge_name(settings)}
    names = [n for n in dict.fromkeys([*settings, *now]) if settings.get(n) != now.get(n)]
    if not names:
        return None
    text = ", ".join(f"{n} ({settings.get(n, 'none')} → {now.get(n, 'none')})" for n in names)
    if len(names) == 1 and names != ["judge"]:
        return Finding("", "info", f"from {before} to {after}, one setting changed: {text}")
    if len(names) == 1:
        return Finding(
            "C112",
            "warning",
            f"from {before} to {after}, the judge changed: {text}: the difference may come from it",
            fix="use the same judge for both",
        )
    return Finding(
        "C112",
        "warning",
        f"from {before} to {after}, {len(names)} things changed: {text}: the difference cannot be "
        "attributed to one of them",
        fix="change one thing at a time",
    )
