"""Drift of an evaluation set: its difference from the questions that users ask."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankgauge.core.arguments import integer
from rankgauge.core.ids import IntArray
from rankgauge.core.text import many
from rankgauge.errors import InputError
from rankgauge.production.clusters import (
    ALPHA,
    MarkingWord,
    PooledQuestions,
    QuestionCluster,
    assign_clusters,
    choose_additions,
    describe_clusters,
    equal_means,
    equal_shares,
    find_outliers,
    marking_words,
    memberships,
    without_words,
)
from rankgauge.production.distinct_questions import (
    DistinctQuestion,
    Traits,
    distinct_questions,
    embed,
    principal_components,
)
from rankgauge.production.drift_result import (
    CLASSIFIERS,
    SMALL,
    Detectable,
    Distinction,
    DriftReport,
    QuestionPoint,
    detected_from,
)
from rankgauge.stats.arrays import BoolArray
from rankgauge.stats.two_sample import RARE, LabelScores, TwoSampleTest

_FEWEST, _MOST = 10, 20_000  # distinct questions of either set
# Smallest missing share of the log, and share of evaluation questions unlike the log, for a verdict.
_MISSING, _SEPARATED = 0.01, 0.25
# A difference is due to words if without them at most this part of it (area - 0.5) remains, and less than SMALL.
_LEFT = 0.3
# Words are not removed if more than 20% of the questions would keep fewer than 2 words.
_REST, _EMPTIED = 2, 0.2
# "mixed" requires that a missing topic of this size would have been detected.
_MIXED = 0.1
# Shares of simulated missing topics for the power, their part that is next to each other, and the number of draws.
_LOSSES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
_TOGETHER = 1 / 3
_DRAWS = 40


def measure_drift(
    evaluation_questions: Any,
    log_questions: Any,
    *,
    encoder: Any = None,
    permutations: int = 499,
    seed: int = 0,
    clusters: int | None = None,
    additions: int = 20,
) -> DriftReport:
    """Test whether evaluation questions resemble the questions that users ask.

    The test is a classifier two-sample test: ridge regression (5-fold) and 10 nearest neighbors
    classify distinct questions as evaluation or log questions, and the larger standardized area
    under the ROC curve is compared with its permutation distribution. Shares of topics are tested
    in clusters of the pooled questions, without phrasing words that distinguish the sets. A
    question in both sets counts as an evaluation question in the test. The weights and the
    questions to add depend on the frequencies in the log. Sets of more than 20,000 distinct
    questions are sampled at random.

    Args:
        evaluation_questions: Texts, queries, a collection, or the path of a collection, a file of
            questions, or a text file with one question per line.
        log_questions: The same types, or an event log.
        encoder: ``tfidf`` (also None), an encoder of `rankgauge.retrievers`, or its name.
        permutations: The number of permutations of the labels.
        seed: The seed of the random numbers.
        clusters: The number of clusters; default: 2 to 20, depending on the number of questions.
        additions: The largest number of questions to add.

    Raises:
        MissingExtra: If scikit-learn or the library of an encoder is not installed.
        InputError: If a set has fewer than 10 distinct questions; in the log, evaluation questions
            are not counted.

    Example:
        >>> asked = [f"{verb} my {thing}" for verb in ("renew", "return", "lose", "reserve")
        ...          for thing in ("book", "card", "film", "key", "map", "game", "disc")]
        >>> report = measure_drift([f"define {word} theory" for word in
        ...          "set graph group game ring field proof number knot chaos".split()], asked)
        >>> report.verdict, report.p
        ('separated', 0.002)
    """
    integer("permutations", permutations, least=19)
    integer("additions", additions, least=0)
    integer("seed", seed, least=0)
    if clusters is not None:
        integer("clusters", clusters, least=2)
    evaluation = _sampled(distinct_questions(evaluation_questions, "evaluation"), seed)
    logged = distinct_questions(log_questions, "log")
    pooled = _pooled(evaluation, logged, encoder, seed)
    scores = LabelScores(pooled.embedding.points, seed)
    test = scores.test(pooled.labels, permutations, seed)
    topics, words, same_words = _without_phrasing(pooled, test, encoder, permutations=permutations, seed=seed)
    rng = np.random.Generator(np.random.PCG64([seed, 3]))
    permuted = np.stack([pooled.labels, *(rng.permutation(pooled.labels) for _ in range(permutations))], axis=1)
    assignments = assign_clusters(topics.rows, clusters, seed)
    # Two tests of the sets as a whole, with Bonferroni correction.
    whole = 2 * min((same_words or test).p, *equal_means(topics.embedding.points, permuted[:, :1], permuted).tolist())
    question_clusters, numbered = describe_clusters(assignments, topics, permuted, whole)
    simulated = _without_topics(topics, seed)
    p_values = (
        test.p_values(scores.areas(simulated)),
        2 * equal_means(topics.embedding.points, simulated, permuted),
        *equal_shares(memberships(assignments), simulated, permuted),
    )
    powers = (np.min(p_values, axis=0) <= ALPHA).reshape(len(_LOSSES), _DRAWS).mean(axis=1)
    detectable = tuple(Detectable(share, float(power)) for share, power in zip(_LOSSES, powers, strict=True))
    outliers, far = find_outliers(pooled)
    asked = pooled.traffic[: len(evaluation)]
    plane = principal_components(pooled.rows, 2)
    plane = np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))
    distinctions = tuple(
        Distinction(classifier, area.value, area.low, area.high, z)
        for classifier, area, z in zip(CLASSIFIERS, test.areas, test.z, strict=True)
    )
    return DriftReport(
        verdict=choose_verdict(
            test.p,
            question_clusters,
            kept=same_words is None and any(word.phrasing for word in words),
            separated=(same_words or test).apart >= _SEPARATED,
            detected_from=detected_from(detectable),
            reworded=same_words is not None and _explained(test, same_words),
        ),
        evaluation=Traits.of(evaluation),
        log=Traits.of(logged),
        shared=int((asked > 0).sum()),
        shared_traffic=float(asked.sum()) / sum(question.count for question in logged),
        encoder=pooled.embedding.name,
        distinctions=distinctions,
        p=test.p,
        permutations=permutations,
        within=scores.area_within(pooled.labels, numbered),
        words=words,
        p_without_words=math.nan if same_words is None else same_words.p,
        detectable=detectable,
        clusters=question_clusters,
        additions=choose_additions(question_clusters, numbered, topics, additions),
        outliers=outliers,
        far=far,
        query_weights=_weights(question_clusters, numbered, pooled),
        seed=seed,
        points=tuple(
            QuestionPoint(text, bool(ours), float(x), float(y), int(number))
            for text, ours, (x, y), number in zip(pooled.texts, pooled.labels, plane, numbered, strict=True)
        ),
    )


def _pooled(
    evaluation: Sequence[DistinctQuestion], logged: Sequence[DistinctQuestion], encoder: Any, seed: int
) -> PooledQuestions:
    """Return the distinct questions of both sets."""
    counts = {question.key: question.count for question in logged}
    known = {question.key for question in evaluation}
    own = [question for question in logged if question.key not in known]
    for size, name, what in (
        (len(evaluation), "evaluation", ""),
        (len(own), "log", " that the evaluation set does not have"),
    ):
        if size < _FEWEST:
            raise InputError(f"{many(size, 'distinct question')}{what}", where=name, fix=f"pass at least {_FEWEST}")
    questions = (*evaluation, *_sampled(own, seed))
    texts = tuple(question.text for question in questions)
    return PooledQuestions(
        texts,
        tuple(question.ids for question in questions),
        len(evaluation),
        np.array([counts.get(question.key, 0) for question in questions], float),
        embed(texts, encoder, seed),
    )


def _sampled(questions: Sequence[DistinctQuestion], seed: int) -> Sequence[DistinctQuestion]:
    if len(questions) <= _MOST:
        return questions
    rng = np.random.Generator(np.random.PCG64([seed, 2]))
    return [questions[place] for place in sorted(rng.permutation(len(questions))[:_MOST].tolist())]


def _without_topics(pooled: PooledQuestions, seed: int) -> BoolArray:
    """Return (n, B) labels of simulated evaluation sets that lack a topic, for all sizes of topics.

    A third of a topic are a question and its nearest neighbors, the rest random questions, since an
    encoder does not place all questions about a topic together. Labels are drawn from all
    questions outside the topic, so that projections, neighbors, and clusters do not change.
    """
    rng = np.random.Generator(np.random.PCG64([seed, 4]))
    rows, size = pooled.rows, pooled.evaluation
    planted = []
    for share in _LOSSES:
        topic = round(share * (len(rows) - size))
        for _ in range(_DRAWS):
            near = np.argsort(-(rows @ rows[rng.integers(len(rows))]), kind="stable")
            others = rng.permutation(near[round(_TOGETHER * topic) :])
            column = np.zeros(len(rows), dtype=bool)
            column[others[:size]] = True
            planted.append(column)
    return np.stack(planted, axis=1)


def _without_phrasing(
    pooled: PooledQuestions, test: TwoSampleTest, encoder: Any, *, permutations: int, seed: int
) -> tuple[PooledQuestions, tuple[MarkingWord, ...], TwoSampleTest | None]:
    """Remove phrasing words that distinguish the sets, and repeat the test.

    Other words that mark only one of the sets are treated as phrasing if that set, without them,
    resembles the other one, which keeps all its words and thus its topics. Words are kept if too
    little of the texts would remain.

    Returns:
        The questions as vectors without these words, all words that distinguish the sets, and the
        test without phrasing words, or None.
    """
    words = marking_words(pooled) if test.p <= ALPHA else ()
    topics, taken, same_words = pooled, words, None
    one_sided = len({word.evaluation > word.log for word in words if not word.phrasing}) == 1
    for every in (False, True) if one_sided else (False,):
        removed = [word for word in words if word.phrasing or every]
        left = without_words(pooled.texts, removed)
        emptied = sum(
            len(rest.split()) < _REST <= len(text.split()) for rest, text in zip(left, pooled.texts, strict=True)
        )
        if not removed or emptied > _EMPTIED * len(left):
            continue
        rest = replace(pooled, embedding=embed(left, encoder, seed))
        repeated = LabelScores(rest.embedding.points, seed).test(pooled.labels, permutations, seed)
        if every and not _explained(test, repeated):
            continue
        topics, same_words = rest, repeated
        taken = tuple(replace(word, phrasing=word.phrasing or every) for word in words)
    return topics, taken, same_words


def _explained(test: TwoSampleTest, same_words: TwoSampleTest) -> bool:
    """Return whether little of a difference remains without phrasing words."""
    whole, left = (max(area.value for area in areas) - 0.5 for areas in (test.areas, same_words.areas))
    return left <= min(_LEFT * whole, SMALL - 0.5)


def choose_verdict(
    p: float,
    clusters: Sequence[QuestionCluster],
    *,
    kept: bool,
    separated: bool,
    detected_from: float | None,
    reworded: bool,
) -> str:
    """Return the verdict: topics first, then phrasing, then whether a missing topic would have been detected.

    If phrasing words that distinguish the sets were kept, clusters may be those of the words.
    """
    if kept:
        return "cannot tell"
    if p <= ALPHA and separated:
        return "separated"
    lost = math.fsum(cluster.excess for cluster in clusters if cluster.too_few)
    # If the log lacks topics, the evaluation set has too few of all others.
    rare = [
        cluster for cluster in clusters if cluster.too_many and cluster.log_share <= RARE * cluster.evaluation_share
    ]
    if lost >= max(_MISSING, -math.fsum(cluster.excess for cluster in rare)):
        return "missing"
    if min(cluster.p for cluster in clusters) <= ALPHA or (p <= ALPHA and not reworded):
        return "cannot tell"
    if reworded:
        return "reworded"
    return "mixed" if detected_from is not None and detected_from <= _MIXED else "cannot tell"


def _weights(clusters: Sequence[QuestionCluster], numbered: IntArray, pooled: PooledQuestions) -> dict[str, float]:
    """Return the traffic share over the evaluation share, by identifier, scaled to mean 1."""
    place = {
        name: int(number)
        for names, number in zip(pooled.ids[: pooled.evaluation], numbered, strict=False)
        for name in names
    }
    sizes = Counter(place.values())
    raw = {name: clusters[number - 1].traffic_share / sizes[number] for name, number in place.items()}
    total = math.fsum(raw.values())
    return {name: value * len(raw) / total if total else 1.0 for name, value in raw.items()}
