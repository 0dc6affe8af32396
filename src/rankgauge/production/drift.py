"""Drift of an evaluation set: do its questions look like those that users ask?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgauge.core.arguments import integer
from rankgauge.core.findings import Evidence, Finding
from rankgauge.core.text import many
from rankgauge.errors import InputError
from rankgauge.production.clusters import (
    Addition,
    BoolArray,
    IntArray,
    MarkingWord,
    Outlier,
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
    DistinctQuestions,
    Traits,
    embed,
    principal_components,
)
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Cell, Table
from rankgauge.stats.two_sample import LabelScores, TwoSampleTest

if TYPE_CHECKING:
    from rankgauge.evaluation import Evaluation
    from rankgauge.rendering.plot_drawing import Plot

_ALPHA = 0.05
_POWER = 0.8
_FEWEST = 10  # distinct questions of either set
_SMALL, _LARGE = 0.55, 0.65  # areas: below a small difference, above a large one
# A cluster has too few questions of a set if its share is at most this part of that of the other.
_TOO_FEW = 2 / 3
# Shares of such clusters and area within clusters from which a verdict is named.
_MISSING, _SEPARATED, _WITHIN = 0.05, 0.25, 0.58
# A difference is one of words if at most this part of it (area - 0.5) remains without them.
_LEFT = 0.3
# Words are not left out where that leaves fewer than this many of more than this share of
# questions.
_REST, _EMPTIED = 2, 0.2
# No difference is "mixed" only where the loss of such a topic would have been detected.
_MIXED = 0.2
# Lost topics that are planted to find what is detectable, and how often.
_LOSSES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
_PLANTED = 40
_SHOWN, _WORDS = 8, 4
_NAMES = ("ridge regression", "10 nearest neighbors")

VERDICTS: Mapping[str, str] = {
    "mixed": "each cluster has evaluation and log questions in similar shares",
    "separated": "evaluation questions are in clusters that users ask less about",
    "missing": "users ask about topics of which the evaluation set has few questions",
    "reworded": "the topics are the same, the questions are worded differently",
    "cannot tell": "the sets are too small to tell",
}


@dataclass(frozen=True)
class Distinction:
    """How well a classifier tells evaluation questions from log questions.

    Attributes:
        classifier: Its name.
        area: The area under the ROC curve: 0.5 if it cannot distinguish them, 1 if it always can.
        low: The lower bound of the 95% interval.
        high: The upper bound.
        z: The area in standard deviations of its permutation distribution.
    """

    classifier: str
    area: float
    low: float
    high: float
    z: float


@dataclass(frozen=True)
class Detectable:
    """How often a missing topic would have been detected.

    Attributes:
        share: The share of the log that the topic has; the evaluation set has none of it.
        power: The share of such evaluation sets, drawn from these questions, that were detected.
    """

    share: float
    power: float


@dataclass(frozen=True)
class QuestionPoint:
    """A question on the plane of the first two principal components.

    Attributes:
        text: The question.
        evaluation: Whether it is an evaluation question.
        x: The first coordinate.
        y: The second coordinate.
        cluster: The number of its cluster.
    """

    text: str
    evaluation: bool
    x: float
    y: float
    cluster: int


@dataclass(frozen=True, repr=False)
class DriftReport(Result):
    """Whether evaluation questions look like those of users, made by :func:`measure_drift`.

    Attributes:
        verdict: ``mixed``, ``separated``, ``missing``, ``reworded`` or ``cannot tell``.
        evaluation: Simple properties of the evaluation questions.
        log: Simple properties of the log questions.
        shared: The number of evaluation questions that users asked word for word.
        shared_traffic: Their share of what users asked.
        encoder: How questions were made vectors.
        distinctions: The two classifiers.
        p: The p-value that both sets are samples of the same questions.
        permutations: The number of permutations behind it.
        within: The area of the linear classifier over pairs of the same cluster; NaN without any.
        words: Frequent words that distinguish the sets, the largest difference first.
        p_without_words: The p-value without these words; NaN if there are none, or more than a
            fifth of the questions would be left with fewer than two words.
        detectable: How often missing topics of several sizes would have been detected.
        clusters: Clusters of the pooled questions, the largest share of the log first.
        additions: Log questions to add.
        outliers: Evaluation questions far from every log question, farthest first.
        far: The distance above which they are far.
        query_weights: The weight of each evaluation question by identifier, mean 1.
        seed: The seed of everything random.
        points: The questions on a plane.
    """

    verdict: str
    evaluation: Traits
    log: Traits
    shared: int
    shared_traffic: float
    encoder: str
    distinctions: tuple[Distinction, ...]
    p: float
    permutations: int
    within: float
    words: tuple[MarkingWord, ...]
    p_without_words: float
    detectable: tuple[Detectable, ...]
    clusters: tuple[QuestionCluster, ...]
    additions: tuple[Addition, ...]
    outliers: tuple[Outlier, ...]
    far: float
    query_weights: Mapping[str, float]
    seed: int
    points: tuple[QuestionPoint, ...] = field(default=(), repr=False)

    _schema = "rankgauge/drift/1"

    @property
    def strongest(self) -> Distinction:
        """The classifier with the larger standardized area, whose p-value is reported."""
        return max(self.distinctions, key=lambda each: each.z)

    @property
    def detected_from(self) -> float | None:
        """The smallest share of a missing topic detected with 80% power; None if none is."""
        return _detected_from(self.detectable)

    @property
    def missing(self) -> tuple[QuestionCluster, ...]:
        """Clusters of which the evaluation set has too few questions."""
        return tuple(filter(_is_missing, self.clusters))

    @property
    def foreign(self) -> tuple[QuestionCluster, ...]:
        """Clusters of which the evaluation set has too many questions."""
        return tuple(filter(_is_foreign, self.clusters))

    def mark(self, cluster: QuestionCluster) -> str:
        """Return whether evaluation questions are ``too few`` or ``too many``, or nothing."""
        return "too few" if _is_missing(cluster) else "too many" if _is_foreign(cluster) else ""

    @property
    def uncovered(self) -> float:
        """The share of what users asked in clusters without any evaluation question."""
        return math.fsum(each.traffic_share for each in self.clusters if not each.evaluation)

    @property
    def effective_size(self) -> float:
        """The effective sample size of weighted means, (sum w)² / sum w² (Kish 1965)."""
        weights = list(self.query_weights.values())
        return math.fsum(weights) ** 2 / math.fsum(weight**2 for weight in weights)

    @property
    def finding(self) -> Finding:
        """The result as a finding, for :func:`rankgauge.diagnose`."""
        drifted = self.verdict in {"separated", "missing", "reworded"}
        fix = {
            "missing": "add the questions that rankgauge logs drift lists",
            "separated": "replace evaluation questions with questions of users",
            "reworded": "use questions from the log in their original wording",
            "cannot tell": "add questions from the log, and measure drift again",
        }
        return Finding(
            "", "warning" if drifted else "info",
            f"drift of the evaluation set: {self.verdict}: {VERDICTS[self.verdict]}",
            "the metrics do not describe what users experience" if drifted else "",
            fix.get(self.verdict, ""),
            Evidence("rankgauge logs drift", self.evaluation.questions, unit="query"),
        )  # fmt: skip

    def weights(self) -> dict[str, float]:
        """Return the weight of each evaluation question, for `rankgauge.evaluate(weights=)`.

        A question has the share of the traffic of its cluster divided by the share of the
        evaluation questions, scaled to mean 1.
        """
        return dict(self.query_weights)

    def reweight(self, evaluation: Evaluation) -> ReweightedMeans:
        """Return means of an evaluation weighted to production traffic.

        Raises:
            InputError: If no query of the evaluation is among the evaluation questions.
        """
        return reweight(evaluation, self.query_weights, self.uncovered)

    def plot(self) -> Plot:
        """Return both sets on the plane of their first two principal components."""
        from rankgauge.rendering.plot_drawing import Panel, Plot, Series

        chosen = {
            name: [point for point in self.points if point.evaluation is ours]
            for name, ours in (("log", False), ("evaluation", True))
        }
        series = tuple(
            Series(f"{name} ({len(of):,})", tuple(p.y for p in of), tuple(p.x for p in of))
            for name, of in chosen.items()
        )
        panel = Panel("scatter", series, across="component 1", down="component 2")
        return Plot(
            "drift", "Evaluation and log questions", f"Points. {self.summary()}", (panel,),
            "Near points are similar questions. The plane shows a part of what the test uses: "
            "the test decides, not the picture.",
        )  # fmt: skip

    def summary(self) -> str:
        """Return the verdict in one or two sentences."""
        area = f"AUC {self.strongest.area:.2f}, p = {self.p:.3f}"
        return f"{self.verdict}: {' '.join(self.sentences())} ({area})"

    def sentences(self) -> tuple[str, ...]:
        """Return what follows from the numbers, the verdict first."""
        ours, theirs = (
            [math.fsum(getattr(each, share) for each in of) for of in (self.foreign, self.missing)]
            for share in ("evaluation_share", "log_share")
        )
        words = {
            "mixed": "No difference was found: evaluation and log questions are mixed.",
            "cannot tell": "No difference was found, but the sets are too small to rule one out.",
            "reworded": "Evaluation and log questions are worded differently: the difference is in "
            "the words, not in the topics.",
            "separated": f"{ours[0]:.0%} of the evaluation questions, but {theirs[0]:.0%} of the "
            "log, are in clusters of which the evaluation set has too many.",
            "missing": f"{theirs[1]:.0%} of the log, but {ours[1]:.0%} of the evaluation "
            "questions, are in clusters of which the evaluation set has too few.",
        }
        if self.p <= _ALPHA:
            words["mixed"] = "The sets differ, but the difference is small."
            words["cannot tell"] = "The sets differ, but they are too small to tell how."
        return words[self.verdict], self.limitation()

    def limitation(self) -> str:
        """Return which difference could not have been detected."""
        least = self.detected_from
        topic = "A further missing topic" if self.p <= _ALPHA else "A missing topic"
        if least is None:
            return f"{topic} of even half of the log may go undetected at this size."
        return f"{topic} of less than {least:.0%} of the log may go undetected at this size."

    def table(self, *, full: bool = False) -> Table:
        """One line for each cluster, those that differ first."""
        marked = sorted(
            self.clusters, key=lambda each: (each.p > _ALPHA, -abs(_excess(each)), each.number)
        )
        shown = marked if full else marked[:_SHOWN]
        rows = tuple(map(self._row, shown))
        return Table(
            ("cluster", "evaluation", "log", "asked", "", "typical question"),
            rows, title="Evaluation and log questions by cluster", notes=tuple(self._notes()),
            width=80, shortened=frozenset({0, 5}),
        )  # fmt: skip

    def _row(self, cluster: QuestionCluster) -> tuple[Cell, ...]:
        typical = cluster.typical_log or cluster.typical_evaluation
        name = f"{cluster.number} {' '.join(cluster.terms[:3])}"
        shares = (cluster.evaluation_share, cluster.log_share, cluster.traffic_share)
        return (name, *(f"{share:.0%}" for share in shares), self.mark(cluster), typical[0])

    def _notes(self) -> list[str]:
        areas = "; ".join(
            f"{each.classifier}: AUC {each.area:.3f} [{each.low:.3f}, {each.high:.3f}]"
            for each in self.distinctions
        )
        ours, theirs = self.evaluation, self.log
        notes = [
            f"{self.verdict.upper()}: {' '.join(self.sentences())}",
            f"{areas}; p = {self.p:.3f} by {self.permutations} permutations",
        ]
        notes.append(
            f"evaluation / log: {ours.questions:,} / {theirs.questions:,} distinct questions, "
            f"{ours.words:.1f} / {theirs.words:.1f} words, {ours.one_word:.0%} / "
            f"{theirs.one_word:.0%} of one word, {ours.asking:.0%} / {theirs.asking:.0%} phrased "
            "as a question"
        )
        if self.words:
            shown = (
                f"{each.word!r:.30} ({each.evaluation:.0%} / {each.log:.0%})"
                for each in self.words[:_WORDS]
            )
            without = f"; without these p = {self.p_without_words:.3f}"
            notes.append(
                f"words that distinguish them: {', '.join(shown)}"
                + ("" if math.isnan(self.p_without_words) else without)
            )
        if self.outliers:
            notes.append(
                f"{many(len(self.outliers), 'evaluation question')} far from every log question, "
                f"such as {self.outliers[0].text!r:.60}"
            )
        notes.append(
            f"weighted by traffic, the effective number of questions is {self.effective_size:.0f} "
            f"of {len(self.query_weights)}; {self.uncovered:.0%} of the traffic is in clusters "
            "without evaluation questions"
        )
        if self.additions:
            notes.append(f"add, for example: {self.additions[0].text!r:.70}")
        return [*notes, f"questions as vectors: {self.encoder}; seed {self.seed}"]

    def additions_table(self) -> Table:
        """The questions to add."""
        rows = tuple((each.text, each.asked, each.cluster) for each in self.additions)
        return Table(
            ("question to add", "asked", "cluster"), rows, title="Questions to add", width=80,
            shortened=frozenset({0}),
        )  # fmt: skip

    def outliers_table(self) -> Table:
        """The evaluation questions far from every log question."""
        rows = tuple((each.id, each.text, each.distance) for each in self.outliers)
        note = (
            f"1 - cosine to the nearest log question; above {self.far:.2f} for 1% of log questions"
        )
        return Table(
            ("id", "evaluation question", "distance"), rows, digits=2, width=80,
            title="Evaluation questions far from every log question", notes=(note,),
            shortened=frozenset({1}),
        )  # fmt: skip

    def power_table(self) -> Table:
        """How often missing topics would have been detected."""
        rows = tuple((f"{each.share:.0%}", f"{each.power:.0%}") for each in self.detectable)
        return Table(
            ("topic missing, share of the log", "detected"), rows, right=frozenset({0, 1}),
            title="What this test can detect at this size",
        )  # fmt: skip

    def data_table(self) -> Table:
        """One line for each cluster, every number."""
        names = [each.name for each in fields(QuestionCluster)]
        ends = ("evaluation_low", "evaluation_high", "log_low", "log_high")
        plain = [name for name in names if not name.endswith("interval")]
        rows: list[tuple[Cell, ...]] = []
        for each in self.clusters:
            values = [getattr(each, name) for name in plain]
            joined = ("; ".join(v) if isinstance(v, tuple) else v for v in values)
            rows.append((*joined, *each.evaluation_interval, *each.log_interval))
        return Table((*plain, *ends), tuple(rows))

    def _data(self) -> dict[str, Any]:
        parts = {each.name: getattr(self, each.name) for each in fields(self)}
        del parts["points"]
        return parts | {
            "summary": self.summary(),
            "effective_size": self.effective_size,
            "uncovered": self.uncovered,
            "detected_from": self.detected_from,
            "finding": self.finding.to_dict(),
        }


@dataclass(frozen=True)
class ReweightedMeans(Result):
    """Means of an evaluation, plain and weighted to production traffic.

    Attributes:
        run_name: The name of the run.
        plain: The mean of each measure with equal weights.
        weighted: The mean of each measure with the weights.
        queries: The number of queries with a weight.
        effective_size: The effective number of queries (Kish 1965).
        uncovered: The share of the traffic that no evaluation question is similar to.
    """

    run_name: str
    plain: Mapping[str, float]
    weighted: Mapping[str, float]
    queries: int
    effective_size: float
    uncovered: float

    def table(self) -> Table:
        """One line for each measure."""
        rows = tuple(
            (name, value, self.weighted[name], self.weighted[name] - value)
            for name, value in self.plain.items()
        )
        note = (
            f"weighted by traffic, the effective number of queries is {self.effective_size:.0f} of "
            f"{self.queries} (Kish); {self.uncovered:.0%} of the traffic is in clusters without "
            "evaluation questions, and not represented"
        )
        columns = ("measure", "plain", "weighted", "Δ")
        return Table(columns, rows, title=self.run_name, notes=(note,))

    def summary(self) -> str:
        """Return the first measure both ways."""
        name = next(iter(self.plain))
        return (
            f"{self.run_name}: {name} is {self.plain[name]:.4f}, and {self.weighted[name]:.4f} "
            f"weighted to the traffic ({self.effective_size:.0f} effective queries)"
        )


def measure_drift(
    evaluation_questions: Any,
    log_questions: Any,
    *,
    encoder: Any = None,
    permutations: int = 499,
    seed: int = 0,
    clusters: int | None = None,
    additions: int = 20,
    most: int = 20_000,
) -> DriftReport:
    """Say whether evaluation questions look like those that users ask.

    A classifier two-sample test decides: ridge regression (5-fold) and 10 nearest neighbors try to
    tell distinct evaluation questions from distinct log questions, and the larger standardized
    area under the ROC curve is compared with those of permuted labels. Clusters of the pooled
    questions explain the result. A question that is in both sets is an evaluation question in the
    test; how often questions were asked decides the weights and the questions to add.

    Args:
        evaluation_questions: Texts, queries, a collection, or the path of a collection, a file of
            questions, or a text file with a question on each line.
        log_questions: The same, or an event log.
        encoder: ``tfidf`` (also None), an encoder of `rankgauge.retrievers`, or its name.
        permutations: The number of permutations of the labels.
        seed: The seed of everything random.
        clusters: The number of clusters; 2 to 20 by the number of questions if left out.
        additions: How many questions to add are listed at most.
        most: Of more distinct questions in a set so many are drawn at random.

    Raises:
        MissingExtra: If scikit-learn or the library of an encoder is not installed.
        InputError: If a set has fewer than 10 distinct questions, or none of its own.

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
    integer("most", most, least=_FEWEST)
    integer("seed", seed, least=0)
    if clusters is not None:
        integer("clusters", clusters, least=2)
    evaluation = _at_most(DistinctQuestions.of(evaluation_questions, "evaluation"), most, seed)
    logged = DistinctQuestions.of(log_questions, "log")
    pooled = _pooled(evaluation, logged, most=most, encoder=encoder, seed=seed)
    scores = LabelScores(pooled.embedding.points, seed)
    test = scores.test(pooled.labels, permutations, seed)
    found, numbered = describe_clusters(
        assign_clusters(pooled.rows, clusters, seed), pooled,
        _permuted(pooled.labels, permutations, seed),
    )  # fmt: skip
    detectable = _detectable(pooled, scores, test, seed)
    within = scores.area_within(pooled.labels, numbered)
    words = marking_words(pooled) if test.p <= _ALPHA else ()
    same_words = _test_without(words, pooled, encoder, permutations=permutations, seed=seed)
    outliers, far = find_outliers(pooled)
    asked = pooled.traffic[: len(evaluation)]
    plane = principal_components(pooled.rows, 2)
    plane = np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))
    distinctions = tuple(
        Distinction(classifier, area.value, area.low, area.high, z)
        for classifier, area, z in zip(_NAMES, test.areas, test.z, strict=True)
    )
    return DriftReport(
        verdict=_verdict(
            test.p,
            distinctions,
            found,
            within,
            detected_from=_detected_from(detectable),
            same_words=same_words,
        ),
        evaluation=evaluation.traits(),
        log=logged.traits(),
        shared=int((asked > 0).sum()),
        shared_traffic=float(asked.sum()) / sum(logged.counts),
        encoder=pooled.embedding.name,
        distinctions=distinctions,
        p=test.p,
        permutations=permutations,
        within=within,
        words=words,
        p_without_words=math.nan if same_words is None else same_words.p,
        detectable=detectable,
        clusters=found,
        additions=choose_additions(found, numbered, pooled, additions),
        outliers=outliers,
        far=far,
        query_weights=_weights(found, numbered, pooled),
        seed=seed,
        points=tuple(
            QuestionPoint(text, bool(ours), float(x), float(y), int(number))
            for text, ours, (x, y), number in zip(
                pooled.texts, pooled.labels, plane, numbered, strict=True
            )
        ),
    )


def reweight(
    evaluation: Evaluation, weights: Mapping[str, float], uncovered: float = 0.0
) -> ReweightedMeans:
    """Return plain and weighted means of an evaluation over the queries that have a weight.

    The weighted mean is sum w x / sum w over the values x that count; the effective number of
    queries is (sum w)² / sum w² (Kish 1965).

    Args:
        evaluation: The evaluation. Undefined values are left out.
        weights: The weight of each query by identifier, such as `DriftReport.weights`.
        uncovered: The share of the traffic that the weights cannot represent.

    Raises:
        InputError: If no query of the evaluation has a weight.

    Example:
        >>> from rankgauge.evaluation import evaluate
        >>> found = evaluate({"a": {"d"}, "b": {"e"}}, {"a": ["d"], "b": ["x"]}, "P@1")
        >>> reweight(found, {"a": 3.0, "b": 1.0}).weighted
        {'P@1': 0.75}
    """
    rows = [row for row, name in enumerate(evaluation.query_ids) if weights.get(name, 0) > 0]
    if not rows:
        raise InputError(
            "no query of the evaluation has a weight", where="weights",
            fix="use the identifiers of the evaluated queries in the evaluation questions",
        )  # fmt: skip
    chosen = np.array([weights[evaluation.query_ids[row]] for row in rows])
    plain, weighted = {}, {}
    for column, measure in enumerate(evaluation.measures):
        values = evaluation.per_query[rows, column]
        kept = np.isfinite(values)
        plain[str(measure)] = float(values[kept].mean()) if kept.any() else math.nan
        total = float(chosen[kept].sum())
        weighted[str(measure)] = float(chosen[kept] @ values[kept]) / total if total else math.nan
    effective = float(chosen.sum() ** 2 / (chosen @ chosen))
    return ReweightedMeans(evaluation.run_name, plain, weighted, len(rows), effective, uncovered)


def _pooled(
    evaluation: DistinctQuestions, logged: DistinctQuestions, *, most: int, encoder: Any, seed: int
) -> PooledQuestions:
    """The questions of both sets, each once."""
    counts = dict(zip(logged.keys, logged.counts, strict=True))
    known = set(evaluation.keys)
    own = [row for row, key in enumerate(logged.keys) if key not in known]
    for size, name, what in (
        (len(evaluation), "evaluation", ""),
        (len(own), "log", " that the evaluation set does not have"),
    ):
        if size < _FEWEST:
            raise InputError(
                f"{many(size, 'distinct question')}{what}", where=name,
                fix=f"give at least {_FEWEST}",
            )  # fmt: skip
    log = _at_most(logged.subset(own), most, seed)
    texts = (*evaluation.texts, *log.texts)
    traffic = [*(counts.get(key, 0) for key in evaluation.keys), *log.counts]
    return PooledQuestions(
        texts, (*evaluation.ids, *log.ids), len(evaluation), np.array(traffic, float),
        embed(texts, encoder, seed),
    )  # fmt: skip


def _at_most(questions: DistinctQuestions, most: int, seed: int) -> DistinctQuestions:
    if len(questions) <= most:
        return questions
    rng = np.random.Generator(np.random.PCG64([seed, 2]))
    return questions.subset(sorted(rng.permutation(len(questions))[:most].tolist()))


def _permuted(labels: BoolArray, count: int, seed: int) -> BoolArray:
    rng = np.random.Generator(np.random.PCG64([seed, 3]))
    return np.stack([labels, *(rng.permutation(labels) for _ in range(count))], axis=1)


def _detectable(
    pooled: PooledQuestions, scores: LabelScores, test: TwoSampleTest, seed: int
) -> tuple[Detectable, ...]:
    """Power of the test where a topic is missing: one question and those nearest to it.

    Labels are drawn from all questions but those of the topic, so that projections, neighbors and
    the permutation distribution of the test serve for all of them.
    """
    rng = np.random.Generator(np.random.PCG64([seed, 4]))
    rows, size = pooled.rows, pooled.evaluation
    planted = []
    for share in _LOSSES:
        topic = round(share * (len(rows) - size))
        for _ in range(_PLANTED):
            near = np.argsort(-(rows @ rows[rng.integers(len(rows))]), kind="stable")
            column = np.zeros(len(rows), dtype=bool)
            column[rng.choice(near[topic:], size, replace=False)] = True
            planted.append(column)
    detected = test.p_values(scores.areas(np.stack(planted, axis=1))) <= _ALPHA
    power = detected.reshape(len(_LOSSES), _PLANTED).mean(axis=1)
    return tuple(Detectable(share, float(of)) for share, of in zip(_LOSSES, power, strict=True))


def _test_without(
    words: Sequence[MarkingWord],
    pooled: PooledQuestions,
    encoder: Any,
    *,
    permutations: int,
    seed: int,
) -> TwoSampleTest | None:
    """The test of the same questions without some words; None if too little is left of them."""
    left = without_words(pooled.texts, words)
    emptied = sum(
        len(rest.split()) < _REST <= len(text.split())
        for rest, text in zip(left, pooled.texts, strict=True)
    )
    if not words or emptied > _EMPTIED * len(left):
        return None
    points = embed(left, encoder, seed).points
    return LabelScores(points, seed).test(pooled.labels, permutations, seed)


def _detected_from(detectable: Sequence[Detectable]) -> float | None:
    """The smallest share from which on every larger one is detected."""
    least = None
    for each in reversed(detectable):
        if each.power < _POWER:
            break
        least = each.share
    return least


def _verdict(
    p: float,
    distinctions: Sequence[Distinction],
    clusters: Sequence[QuestionCluster],
    within: float,
    *,
    detected_from: float | None,
    same_words: TwoSampleTest | None,
) -> str:
    if p > _ALPHA:
        sure = detected_from is not None and detected_from <= _MIXED
        return "mixed" if sure else "cannot tell"
    if same_words is not None and (
        max(area.value for area in same_words.areas) - 0.5
        <= _LEFT * max(each.area - 0.5 for each in distinctions)
    ):
        return "reworded"
    foreign = [each for each in clusters if _is_foreign(each)]
    missing = [each for each in clusters if _is_missing(each)]
    # The set whose own clusters the other one has less of.
    ours, theirs = math.fsum(each.evaluation_share for each in foreign), _log_share(foreign)
    separated = theirs / ours if ours >= _SEPARATED else math.inf
    lacking = math.fsum(each.evaluation_share for each in missing)
    enough = math.fsum(map(_excess, missing)) >= _MISSING
    lost = lacking / _log_share(missing) if enough else math.inf
    if min(separated, lost) < math.inf:
        return "separated" if separated < lost else "missing"
    if within >= _WITHIN:
        return "reworded"
    return "mixed" if max(each.area for each in distinctions) < _SMALL else "cannot tell"


def _log_share(clusters: Sequence[QuestionCluster]) -> float:
    return math.fsum(each.log_share for each in clusters)


def _is_missing(cluster: QuestionCluster) -> bool:
    return cluster.p <= _ALPHA and cluster.evaluation_share <= _TOO_FEW * cluster.log_share


def _is_foreign(cluster: QuestionCluster) -> bool:
    return cluster.p <= _ALPHA and cluster.log_share <= _TOO_FEW * cluster.evaluation_share


def _excess(cluster: QuestionCluster) -> float:
    return cluster.log_share - cluster.evaluation_share


def _weights(
    clusters: Sequence[QuestionCluster], numbered: IntArray, pooled: PooledQuestions
) -> dict[str, float]:
    """The share of traffic over the share of evaluation questions, by identifier, mean 1."""
    place = {
        name: int(number)
        for names, number in zip(pooled.ids[: pooled.evaluation], numbered, strict=False)
        for name in names
    }
    held = Counter(place.values())
    raw = {
        name: clusters[number - 1].traffic_share / held[number] for name, number in place.items()
    }
    total = math.fsum(raw.values())
    return {name: value * len(raw) / total if total else 1.0 for name, value in raw.items()}
