"""Clusters of evaluation and log questions, with shares, terms, and questions to add."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.core.libraries import library
from rankgauge.production.distinct_questions import Embedding
from rankgauge.stats.arrays import BoolArray, FloatArray
from rankgauge.stats.intervals import wilson_interval
from rankgauge.stats.two_sample import permutation_p, unit_rows

ALPHA = 0.05  # significance level
_TOO_FEW = 2 / 3  # a verdict requires at most this ratio of the two shares
_PER_CLUSTER = 40  # mean number of questions of a cluster
_FEWEST, _MOST = 2, 20  # number of clusters, of which half and twice as many are tested too
_STARTS = 2  # restarts of k-means
_TYPICAL, _TERMS = 3, 5
_NEAR = 0.9  # cosine of near-duplicates
_CANDIDATES = 400  # candidates for questions to add, per cluster
_FAR = 0.99  # quantile of the nearest-neighbor distances of log questions
_SAMPLED = 2000  # log questions used for this quantile
_ROWS = 500
_LEVEL = 0.95
_ROUNDING = 1e-9
_MARKING, _CLEAR = 0.05, 4.0  # smallest difference of word shares, absolute and in standard errors
_WORD = re.compile(r"\w+")
# Phrasing words, which do not name a topic.
_PHRASING_WORDS = """
a about advise after all also am an and any anybody anyone are as ask at be because been before being both but by
can could did do does each explain explanation find for from get give had has have hello help here hey hi how i if
in information into is it its just kindly know learn let like list looking many may me mean means might more most
much must my need no not of off on one only or other our out over pls please question regarding same several
should show so some somebody someone such tell than thank thanks that the their them then there these they this
those through to too under until up us used very wanna want was we were what whats when where which while who whom
whose why will with without wonder wondering would you your
"""
_PHRASING = frozenset(_PHRASING_WORDS.split())


@dataclass(frozen=True, eq=False)
class PooledQuestions:
    """Distinct evaluation questions, followed by questions that are only in the log.

    Attributes:
        texts: The n questions.
        ids: The identifiers of each question, as several may share a text.
        evaluation: The number of evaluation questions.
        traffic: (n,) number of times each question was asked in the log.
        embedding: The questions as vectors.
    """

    texts: tuple[str, ...]
    ids: tuple[tuple[str, ...], ...]
    evaluation: int
    traffic: FloatArray
    embedding: Embedding

    @cached_property
    def labels(self) -> BoolArray:
        """(n,) array, True for evaluation questions."""
        return np.arange(len(self.texts)) < self.evaluation

    @cached_property
    def rows(self) -> FloatArray:
        """(n, d) points, scaled to length 1."""
        return unit_rows(self.embedding.points)


@dataclass(frozen=True)
class QuestionCluster:
    """A cluster of evaluation and log questions.

    Attributes:
        number: Number of the cluster, from 1, by descending share of the log.
        terms: Words that are more frequent in the cluster than elsewhere.
        evaluation: The number of distinct evaluation questions.
        log: The number of distinct log questions.
        evaluation_share: The share of evaluation questions that are in the cluster.
        evaluation_interval: The Wilson interval of this share, with Bonferroni correction over all
            shares.
        log_share: The share of distinct log questions that are in the cluster.
        log_interval: The interval of this share, computed in the same way.
        traffic_share: The share of all questions asked that are in the cluster, including
            repetitions.
        p: p-value of the test for equal shares, corrected for the number of clusters (max-T); for the
            clearest difference, that of a test of the sets as a whole if it is smaller.
        typical_evaluation: The evaluation questions nearest to the center.
        typical_log: The log questions nearest to the center.
    """

    number: int
    terms: tuple[str, ...]
    evaluation: int
    log: int
    evaluation_share: float
    evaluation_interval: tuple[float, float]
    log_share: float
    log_interval: tuple[float, float]
    traffic_share: float
    p: float
    typical_evaluation: tuple[str, ...]
    typical_log: tuple[str, ...]

    @property
    def excess(self) -> float:
        """The difference `log_share` - `evaluation_share`."""
        return self.log_share - self.evaluation_share

    @property
    def too_few(self) -> bool:
        """Whether the evaluation share is significantly lower, and at most 2/3 of the log share."""
        return self.p <= ALPHA and self.evaluation_share <= _TOO_FEW * self.log_share

    @property
    def too_many(self) -> bool:
        """Whether the log share is significantly lower, and at most 2/3 of the evaluation share."""
        return self.p <= ALPHA and self.log_share <= _TOO_FEW * self.evaluation_share


@dataclass(frozen=True)
class MarkingWord:
    """A frequent word whose share differs between the two sets.

    Attributes:
        word: The word.
        evaluation: The share of evaluation questions with the word.
        log: The share of log questions with the word.
        phrasing: Whether the word is treated as phrasing: it is on a list of English words that do not
            name topics, or it explains the difference together with other words that mark one set.
    """

    word: str
    evaluation: float
    log: float
    phrasing: bool


@dataclass(frozen=True)
class Addition:
    """A log question to add to the evaluation set.

    Attributes:
        text: The question.
        asked: The number of times it was asked.
        cluster: The number of its cluster.
    """

    text: str
    asked: int
    cluster: int


@dataclass(frozen=True)
class Outlier:
    """An evaluation question that is far from all log questions.

    Attributes:
        id: The identifier of the question.
        text: The question.
        distance: 1 - cosine similarity to the nearest log question.
    """

    id: str
    text: str
    distance: float


def assign_clusters(rows: FloatArray, count: int | None, seed: int) -> list[IntArray]:
    """Assign (n, d) unit vectors to clusters by k-means, for several numbers of clusters.

    Topics of different sizes need different numbers of clusters.

    Args:
        rows: The vectors.
        count: The only number of clusters; None for a number that depends on n, its half, and its double.
        seed: Seed of k-means.

    Raises:
        MissingExtra: If scikit-learn is not installed.
    """
    cluster = library("sklearn.cluster", extra="production", of="clusters of questions")
    usual = min(_MOST, max(_FEWEST, len(rows) // _PER_CLUSTER))
    different = len(np.unique(np.round(rows, 6), axis=0))
    counts = (usual, max(_FEWEST, usual // 2), 2 * usual) if count is None else (count,)
    return [
        np.asarray(cluster.KMeans(wanted, n_init=_STARTS, random_state=seed).fit_predict(rows), dtype=np.int64)
        for wanted in dict.fromkeys(min(wanted, different) for wanted in counts)
    ]


def describe_clusters(
    assignments: Sequence[IntArray], pooled: PooledQuestions, permuted: BoolArray, whole: float
) -> tuple[tuple[QuestionCluster, ...], IntArray]:
    """Describe the clusters with the largest significant differences, or else the first ones.

    Args:
        assignments: (n,) cluster of each question, for several numbers of clusters.
        pooled: The questions.
        permuted: (n, B) permuted labels of evaluation questions, observed labels first.
        whole: p-value of the test that the sets do not differ as a whole.

    Returns:
        The clusters, and the cluster number of each question.
    """
    rows, texts, ours = pooled.rows, pooled.texts, pooled.evaluation
    sizes = (ours, len(texts) - ours)
    p_all = equal_shares(memberships(assignments), permuted[:, :1], permuted)[:, 0]
    # If the sets differ as a whole, so does the cluster with the clearest difference.
    p_all[p_all.argmin()] = min(p_all.min(), whole)
    choices = []
    ends = np.cumsum([len(np.unique(assigned)) for assigned in assignments])
    for assigned, p_values in zip(assignments, np.split(p_all, ends[:-1]), strict=True):
        names = np.unique(assigned)
        differing = [
            abs((assigned[:ours] == name).mean() - (assigned[ours:] == name).mean())
            for name in names[p_values <= ALPHA]
        ]
        choices.append((math.fsum(differing), assigned, names, p_values))
    _, assigned, names, p_values = max(choices, key=itemgetter(0))
    order = np.argsort([-(assigned[ours:] == name).mean() for name in names], kind="stable")
    numbers = np.empty(names.max() + 1, dtype=np.int64)
    numbers[names[order]] = np.arange(1, len(names) + 1)
    numbered = numbers[assigned]
    terms = _terms(texts, numbered)
    level = 1 - (1 - _LEVEL) / (2 * len(names))
    clusters = []
    for number, at in enumerate(order, start=1):
        members = np.flatnonzero(numbered == number)
        near = members[np.argsort(-(rows[members] @ rows[members].mean(axis=0)), kind="stable")]
        counts = int((members < ours).sum()), int((members >= ours).sum())
        low, high = wilson_interval(counts, sizes, level)
        clusters.append(
            QuestionCluster(
                number=number,
                terms=terms[number - 1],
                evaluation=counts[0],
                log=counts[1],
                evaluation_share=counts[0] / sizes[0],
                evaluation_interval=(float(low[0]), float(high[0])),
                log_share=counts[1] / sizes[1],
                log_interval=(float(low[1]), float(high[1])),
                traffic_share=float(pooled.traffic[members].sum() / pooled.traffic.sum()),
                p=float(p_values[at]),
                typical_evaluation=tuple(texts[row] for row in near[near < ours][:_TYPICAL]),
                typical_log=tuple(texts[row] for row in near[near >= ours][:_TYPICAL]),
            )
        )
    return tuple(clusters), numbered


def memberships(assignments: Sequence[IntArray]) -> FloatArray:
    """Return (r, n) array, 1 where a question is in a cluster, with one row for each cluster of each assignment."""
    return np.vstack([np.unique(assigned)[:, None] == assigned for assigned in assignments]).astype(np.float64)


def equal_shares(members: FloatArray, labels: BoolArray, permuted: BoolArray) -> FloatArray:
    """Test for each cluster whether its shares of both samples are equal; return p-values.

    The likelihood ratio of different shares inside and outside of a cluster is compared with the
    permutation distribution of the largest one over all clusters (scan statistic, Kulldorff 1997).

    Args:
        members: (r, n) array, 1 where a point is in a cluster; clusters may overlap.
        labels: (n, C) labelings to test, all with the same number of labeled points.
        permuted: (n, B) permuted labels, observed labels first.

    Returns:
        (r, C) p-values.

    Example:
        >>> labels = np.array([[True, True], [True, False], [False, True], [False, False]])
        >>> equal_shares(memberships([np.array([0, 0, 1, 1])]), labels[:, :1], labels).tolist()
        [[0.5], [0.5]]
    """
    divergence = library("scipy.special", extra="production", of="a test of shares").rel_entr
    n, drawn = len(permuted), int(permuted[:, 0].sum())
    sizes, share = members.sum(axis=1)[:, None], drawn / n

    def ratios(columns: BoolArray) -> FloatArray:
        inside = members @ columns
        others = sizes - inside
        ratio = divergence(inside, sizes * share) + divergence(others, sizes * (1 - share))
        ratio += divergence(drawn - inside, (n - sizes) * share)
        return np.asarray(ratio + divergence(n - drawn - others, (n - sizes) * (1 - share)))

    return permutation_p(ratios(labels), np.sort(ratios(permuted[:, 1:]).max(axis=0)))


def equal_means(points: FloatArray, labels: BoolArray, permuted: BoolArray) -> FloatArray:
    """Test whether the means of both samples are equal, by their distance; return p-values.

    The test is more powerful than `equal_shares` if a topic is spread over many clusters. The distance of
    means is the maximum mean discrepancy with the linear kernel (Gretton et al. 2012).

    Args:
        points: (n, d) coordinates.
        labels: (n, C) labelings to test, all with the same number of labeled points.
        permuted: (n, B) permuted labels, observed labels first.

    Returns:
        (C,) p-values.

    Example:
        >>> labels = np.array([[True, True], [True, False], [False, True], [False, False]])
        >>> equal_means(np.array([[1.0], [1.0], [0.0], [0.0]]), labels[:, :1], labels).tolist()
        [0.5]
    """
    centered = points - points.mean(axis=0)
    distances, drawn = (((centered.T @ columns) ** 2).sum(axis=0) for columns in (labels, permuted[:, 1:]))
    return permutation_p(distances, np.sort(drawn))


def choose_additions(
    clusters: Sequence[QuestionCluster], numbered: IntArray, pooled: PooledQuestions, count: int
) -> tuple[Addition, ...]:
    """Choose log questions for clusters with too few evaluation questions.

    Additions are divided among the clusters in proportion to the number of evaluation questions
    missing for their share of the traffic. Within a cluster, questions are chosen greedily to
    maximize the sum, over all questions asked there, of the cosine similarity to the nearest chosen
    question. Near-duplicates of evaluation questions (cosine 0.9 or more) are excluded.
    """
    ours, rows = pooled.evaluation, pooled.rows
    lacking = np.array(
        [
            max(0.0, ours * cluster.traffic_share - cluster.evaluation) * (cluster.p <= 1 - _LEVEL)
            for cluster in clusters
        ]
    )
    additions: list[Addition] = []
    for cluster, wanted in zip(clusters, _shared_out(lacking, count), strict=True):
        members = np.flatnonzero(numbered == cluster.number)
        known, asked = rows[members[members < ours]], members[members >= ours]
        asked = asked[np.argsort(-pooled.traffic[asked], kind="stable")[:_CANDIDATES]]
        if not wanted or not len(asked):
            continue
        near = rows[asked] @ rows[asked].T
        covered = (rows[asked] @ known.T).max(axis=1, initial=0)
        free = covered < _NEAR
        for _ in range(wanted):
            if not free.any():
                break
            gains = pooled.traffic[asked] @ np.maximum(near - covered[:, None], 0)
            best = int(np.where(free, gains, -1.0).argmax())
            row = int(asked[best])
            additions.append(Addition(pooled.texts[row], int(pooled.traffic[row]), cluster.number))
            covered = np.maximum(covered, near[:, best])
            free &= near[best] < _NEAR
            free[best] = False
    return tuple(additions)


def marking_words(pooled: PooledQuestions) -> tuple[MarkingWord, ...]:
    """Return frequent words with different shares in the two sets, largest difference first.

    The words occur in at least 5% of the questions of one set, and their shares differ by at least
    5 percentage points and 4 standard errors.
    """
    words = [set(_WORD.findall(text.casefold())) for text in pooled.texts]
    ours, theirs = words[: pooled.evaluation], words[pooled.evaluation :]
    own = Counter(word for row in ours for word in row)
    others = Counter(word for row in theirs for word in row)
    markers = []
    for word in own | others:
        first, second = own[word] / len(ours), others[word] / len(theirs)
        share = (own[word] + others[word]) / len(words)
        error = math.sqrt(share * (1 - share) * (1 / len(ours) + 1 / len(theirs)))
        if abs(first - second) >= max(_MARKING, _CLEAR * error):
            markers.append(MarkingWord(word, first, second, word in _PHRASING))
    return tuple(sorted(markers, key=lambda marker: (-abs(marker.evaluation - marker.log), marker.word)))


def without_words(texts: Sequence[str], words: Sequence[MarkingWord]) -> tuple[str, ...]:
    """Return texts without these and all English phrasing words; a text without others becomes a question mark."""
    left_out = _PHRASING.union(marker.word for marker in words)
    rows = ([word for word in _WORD.findall(text.casefold()) if word not in left_out] for text in texts)
    return tuple(" ".join(row) or "?" for row in rows)


def find_outliers(pooled: PooledQuestions) -> tuple[tuple[Outlier, ...], float]:
    """Return evaluation questions far from the log, farthest first, and the threshold.

    A question is far if its distance (1 - cosine) to the nearest question that is only in the log
    exceeds the 99th percentile of the nearest-neighbor distances among these (from a sample of
    2,000). Evaluation questions that users asked verbatim are never far.
    """
    ours, count = pooled.evaluation, len(pooled.texts)
    some = np.unique(np.linspace(ours, count - 1, min(_SAMPLED, count - ours)).astype(int))
    asked = np.concatenate([np.arange(ours), some])
    whole, logged = pooled.embedding.whole, pooled.embedding.whole[ours:].T
    distances = np.empty(len(asked))
    for start in range(0, len(asked), _ROWS):
        part = asked[start : start + _ROWS]
        near = whole[part] @ logged
        near = np.array(near.toarray() if hasattr(near, "toarray") else near)
        inside = np.flatnonzero(part >= ours)
        near[inside, part[inside] - ours] = -np.inf
        distances[start : start + _ROWS] = 1 - near.max(axis=1)
    limit = float(np.quantile(distances[ours:], _FAR))
    far = np.flatnonzero((distances[:ours] > limit + _ROUNDING) & (pooled.traffic[:ours] == 0))
    far = far[np.argsort(-distances[far], kind="stable")]
    return tuple(Outlier(pooled.ids[n][0], pooled.texts[n], float(distances[n])) for n in far), limit


def _shared_out(amounts: FloatArray, count: int) -> list[int]:
    """Return integers proportional to the amounts with sum `count` (largest remainders)."""
    if not amounts.any():
        return [0] * len(amounts)
    exact = amounts / amounts.sum() * count
    whole = np.floor(exact).astype(int)
    for place in np.argsort(whole - exact, kind="stable")[: count - int(whole.sum())]:
        whole[place] += 1
    return [int(number) for number in whole]


def _terms(texts: Sequence[str], numbered: IntArray) -> list[tuple[str, ...]]:
    """Return the terms of each cluster: the words with the largest share times log ratio."""
    words = [set(_WORD.findall(text.casefold())) for text in texts]
    everywhere = Counter(word for row in words for word in row)
    terms = []
    for number in range(1, int(numbered.max()) + 1):
        members = np.flatnonzero(numbered == number)
        here = Counter(word for row in members for word in words[row])
        lifts = {word: count * len(texts) / (len(members) * everywhere[word]) for word, count in here.items()}
        scores = {word: here[word] / len(members) * math.log(lift) for word, lift in lifts.items() if lift > 1}
        terms.append(tuple(sorted(scores, key=lambda word: (-scores[word], word))[:_TERMS]))
    return terms
