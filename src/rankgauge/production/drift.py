"""Drift of an evaluation set: its difference from the questions that users ask."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
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
    find_outliers,
    marking_words,
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
from rankgauge.stats.two_sample import LabelScores, TwoSampleTest

_FEWEST, _MOST = 10, 20_000  # distinct questions of either set
# Smallest cluster shares and smallest area within clusters for a verdict.
_MISSING, _SEPARATED, _WITHIN = 0.05, 0.25, 0.58
# A difference is due to words if at most this part of it (area - 0.5) remains without them.
_LEFT = 0.3
# Words are not removed if more than 20% of the questions would keep fewer than 2 words.
_REST, _EMPTIED = 2, 0.2
# "mixed" requires that a missing topic of this size would have been detected.
_MIXED = 0.2
# Shares of simulated missing topics for the power, and the number of draws.
_LOSSES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
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
    under the ROC curve is compared with its permutation distribution. Clusters of the pooled
    questions explain the result. A question in both sets counts as an evaluation question in the
    test. The weights and the questions to add depend on the frequencies in the log. Sets of more
    than 20,000 distinct questions are sampled at random.

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
        ('missing', 0.002)
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
    rng = np.random.Generator(np.random.PCG64([seed, 3]))
    permuted = np.stack([pooled.labels, *(rng.permutation(pooled.labels) for _ in range(permutations))], axis=1)
    question_clusters, numbered = describe_clusters(assign_clusters(pooled.rows, clusters, seed), pooled, permuted)
    detectable = _detectable(pooled, scores, test, seed)
    within = scores.area_within(pooled.labels, numbered)
    words = marking_words(pooled) if test.p <= ALPHA else ()
    same_words = _test_without(words, pooled, encoder, permutations=permutations, seed=seed)
    outliers, far = find_outliers(pooled)
    asked = pooled.traffic[: len(evaluation)]
    plane = principal_components(pooled.rows, 2)
    plane = np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))
    distinctions = tuple(
        Distinction(classifier, area.value, area.low, area.high, z)
        for classifier, area, z in zip(CLASSIFIERS, test.areas, test.z, strict=True)
    )
    return DriftReport(
        verdict=_verdict(
            test.p,
            distinctions,
            question_clusters,
            within,
            detected_from=detected_from(detectable),
            same_words=same_words,
        ),
        evaluation=Traits.of(evaluation),
        log=Traits.of(logged),
        shared=int((asked > 0).sum()),
        shared_traffic=float(asked.sum()) / sum(question.count for question in logged),
        encoder=pooled.embedding.name,
        distinctions=distinctions,
        p=test.p,
        permutations=permutations,
        within=within,
        words=words,
        p_without_words=math.nan if same_words is None else same_words.p,
        detectable=detectable,
        clusters=question_clusters,
        additions=choose_additions(question_clusters, numbered, pooled, additions),
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
    traffic = [counts.get(question.key, 0) for question in questions]
    return PooledQuestions(
        texts,
        tuple(question.ids for question in questions),
        len(evaluation),
        np.array(traffic, float),
        embed(texts, encoder, seed),
    )


def _sampled(questions: Sequence[DistinctQuestion], seed: int) -> Sequence[DistinctQuestion]:
    if len(questions) <= _MOST:
        return questions
    rng = np.random.Generator(np.random.PCG64([seed, 2]))
    return [questions[place] for place in sorted(rng.permutation(len(questions))[:_MOST].tolist())]


def _detectable(pooled: PooledQuestions, scores: LabelScores, test: TwoSampleTest, seed: int) -> tuple[Detectable, ...]:
    """Return the power of the test for missing topics.

    A topic is a question with its nearest neighbors. Labels are drawn from all questions outside
    the topic, so that projections, neighbors, and the permutation distribution of the test are
    computed only once.
    """
    rng = np.random.Generator(np.random.PCG64([seed, 4]))
    rows, size = pooled.rows, pooled.evaluation
    planted = []
    for share in _LOSSES:
        topic = round(share * (len(rows) - size))
        for _ in range(_DRAWS):
            near = np.argsort(-(rows @ rows[rng.integers(len(rows))]), kind="stable")
            column = np.zeros(len(rows), dtype=bool)
            column[rng.choice(near[topic:], size, replace=False)] = True
            planted.append(column)
    detected = test.p_values(scores.areas(np.stack(planted, axis=1))) <= ALPHA
    power = detected.reshape(len(_LOSSES), _DRAWS).mean(axis=1)
    return tuple(Detectable(share, float(of)) for share, of in zip(_LOSSES, power, strict=True))


def _test_without(
    words: Sequence[MarkingWord], pooled: PooledQuestions, encoder: Any, *, permutations: int, seed: int
) -> TwoSampleTest | None:
    """Repeat the test without some words; return None if the remaining texts are too short."""
    left = without_words(pooled.texts, words)
    emptied = sum(len(rest.split()) < _REST <= len(text.split()) for rest, text in zip(left, pooled.texts, strict=True))
    if not words or emptied > _EMPTIED * len(left):
        return None
    return LabelScores(embed(left, encoder, seed).points, seed).test(pooled.labels, permutations, seed)


def _verdict(
    p: float,
    distinctions: Sequence[Distinction],
    clusters: Sequence[QuestionCluster],
    within: float,
    *,
    detected_from: float | None,
    same_words: TwoSampleTest | None,
) -> str:
    if p > ALPHA:
        return "mixed" if detected_from is not None and detected_from <= _MIXED else "cannot tell"
    if same_words is not None and (
        max(area.value for area in same_words.areas) - 0.5
        <= _LEFT * max(distinction.area - 0.5 for distinction in distinctions)
    ):
        return "reworded"
    foreign = [cluster for cluster in clusters if cluster.too_many]
    missing = [cluster for cluster in clusters if cluster.too_few]
    # Separated: clusters of evaluation questions that are rare in the log; missing: the reverse.
    ours = math.fsum(cluster.evaluation_share for cluster in foreign)
    separated = math.fsum(cluster.log_share for cluster in foreign) / ours if ours >= _SEPARATED else math.inf
    lacking = math.fsum(cluster.evaluation_share for cluster in missing)
    enough = math.fsum(cluster.excess for cluster in missing) >= _MISSING
    lost = lacking / math.fsum(cluster.log_share for cluster in missing) if enough else math.inf
    if min(separated, lost) < math.inf:
        return "separated" if separated < lost else "missing"
    if within >= _WITHIN:
        return "reworded"
    return "mixed" if max(distinction.area for distinction in distinctions) < SMALL else "cannot tell"


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
