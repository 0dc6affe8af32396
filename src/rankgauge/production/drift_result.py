"""`DriftReport`: the drift of an evaluation set from the questions that users ask."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter

import numpy as np

from rankgauge.core.findings import Evidence, Finding
from rankgauge.core.text import Ratio, keep, many, span
from rankgauge.errors import InputError
from rankgauge.evaluation.result import Evaluation
from rankgauge.production.clusters import ALPHA, Addition, MarkingWord, Outlier, QuestionCluster
from rankgauge.production.distinct_questions import Traits
from rankgauge.rendering import Panel, Plot, Result, Series, Table
from rankgauge.rendering.tables import Detail, first_rows

_POWER = 0.8
SMALL = 0.55  # areas: smaller differences are small
_SHOWN, _WORDS = 8, 4
CLASSIFIERS = ("ridge regression", "10 nearest neighbors")


@dataclass(frozen=True)
class Distinction:
    """The performance of a classifier that distinguishes evaluation questions from log questions.

    Attributes:
        classifier: The name of the classifier.
        area: The area under the ROC curve: 0.5 for random, 1 for perfect classification.
        low: The lower bound of the 95% interval.
        high: The upper bound of the interval.
        z: The area in standard deviations of its permutation distribution.
    """

    classifier: str
    area: float
    low: float
    high: float
    z: float


@dataclass(frozen=True)
class Detectable:
    """The power of the test to detect a missing topic.

    Attributes:
        share: The share of log questions about the topic, which the evaluation set lacks.
        power: The share of simulated evaluation sets without the topic that were detected.
    """

    share: float
    power: float


@dataclass(frozen=True)
class QuestionPoint:
    """A question in the plane of the first two principal components.

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
    """Drift of evaluation questions from user questions. Returned by :func:`measure_drift`.

    Attributes:
        verdict: ``mixed``, ``separated``, ``missing``, ``reworded``, or ``cannot tell``.
        evaluation: Simple properties of the evaluation questions.
        log: Simple properties of the log questions.
        shared: The number of evaluation questions that users asked verbatim.
        shared_traffic: The share of these questions among all questions asked.
        encoder: The encoder of questions.
        distinctions: The two classifiers.
        p: p-value of the test that both sets are samples from the same population.
        permutations: The number of permutations.
        within: The area of the linear classifier over pairs within a cluster; NaN without pairs.
        words: Frequent words that distinguish the sets, largest difference first.
        p_without_words: p-value after removing those treated as phrasing; NaN without such words, or if
            more than a fifth of the questions would keep fewer than two words.
        detectable: Power of the test of cluster shares for missing topics of several sizes.
        clusters: Clusters of the pooled questions without phrasing words, by descending share of the
            log.
        additions: Log questions to add.
        outliers: Evaluation questions far from all log questions, farthest first.
        far: The distance from which questions are outliers.
        query_weights: The weight of each evaluation question by identifier, for
            `rankgauge.evaluate(weights=)`: the traffic share of its cluster divided by its
            evaluation share, scaled to mean 1.
        seed: The seed of the random numbers.
        points: The questions in two dimensions.
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
    _attributes = (
        "verdict evaluation log shared shared_traffic encoder distinctions p permutations within words "
        "p_without_words detectable clusters additions outliers far query_weights seed summary "
        "effective_size uncovered detected_from finding=finding.to_dict"
    )

    @property
    def strongest(self) -> Distinction:
        """Classifier with the larger standardized area; its p-value is reported."""
        return max(self.distinctions, key=lambda distinction: distinction.z)

    @property
    def detected_from(self) -> float | None:
        """Smallest share of a missing topic detected with 80% power, or None."""
        return detected_from(self.detectable)

    @property
    def missing(self) -> tuple[QuestionCluster, ...]:
        """Clusters with too few evaluation questions."""
        return tuple(cluster for cluster in self.clusters if cluster.too_few)

    @property
    def foreign(self) -> tuple[QuestionCluster, ...]:
        """Clusters with too many evaluation questions."""
        return tuple(cluster for cluster in self.clusters if cluster.too_many)

    def mark(self, cluster: QuestionCluster) -> str:
        """Return ``too few`` or ``too many`` (evaluation questions), or an empty string."""
        return "too few" if cluster.too_few else "too many" if cluster.too_many else ""

    @property
    def uncovered(self) -> float:
        """Share of all questions asked that are in clusters without evaluation questions."""
        return math.fsum(cluster.traffic_share for cluster in self.clusters if not cluster.evaluation)

    @property
    def effective_size(self) -> float:
        """Effective sample size of the weights, (sum w)² / sum w² (Kish 1965)."""
        weights = list(self.query_weights.values())
        return math.fsum(weights) ** 2 / math.fsum(weight**2 for weight in weights)

    @property
    def finding(self) -> Finding:
        """Result as a finding, for :func:`rankgauge.diagnose`."""
        drifted = self.verdict in {"separated", "missing", "reworded"}
        fix = {
            "missing": "add the questions that rankgauge logs drift lists",
            "separated": "replace evaluation questions with questions of users",
            "reworded": "use questions from the log in their original wording",
            "cannot tell": "add questions from the log, and measure drift again",
        }
        return Finding(
            "",
            "warning" if drifted else "info",
            f"drift of the evaluation set: {self.verdict}: {self.sentences()[0].removesuffix('.')}",
            "the metrics do not describe what users experience" if drifted else "",
            fix.get(self.verdict, ""),
            Evidence("rankgauge logs drift", self.evaluation.questions, unit="query"),
        )

    def reweight(self, evaluation: Evaluation) -> ReweightedMeans:
        """Return the means of an evaluation weighted by production traffic.

        Raises:
            InputError: If the evaluation has none of the evaluation questions.
        """
        return reweight(evaluation, self.query_weights, self.uncovered)

    def plot(self) -> Plot:
        """Plot both sets in the plane of the first two principal components."""
        chosen = {
            name: [point for point in self.points if point.evaluation is ours]
            for name, ours in (("log", False), ("evaluation", True))
        }
        series = tuple(
            Series(f"{name} ({len(of):,})", tuple(p.y for p in of), tuple(p.x for p in of))
            for name, of in chosen.items()
        )
        return Plot(
            "drift",
            "Evaluation and log questions",
            f"Points. {self.summary()}",
            (Panel("scatter", series, across="component 1", down="component 2"),),
            "Nearby points are similar questions. The plot shows only part of the information that "
            "the test uses: rely on the test.",
        )

    def summary(self) -> str:
        """Return the verdict in one or two sentences."""
        area = f"AUC {Ratio(self.strongest.area):.2f}, p = {self.p:.3f}"
        return f"{self.verdict}: {' '.join(self.sentences())} ({area})"

    def sentences(self) -> tuple[str, ...]:
        """Return the conclusion, and which differences would not have been detected."""
        sides = (self.foreign, self.missing)
        ours = [math.fsum(cluster.evaluation_share for cluster in clusters) for clusters in sides]
        theirs = [math.fsum(cluster.log_share for cluster in clusters) for clusters in sides]
        differ = min(self.p, *(cluster.p for cluster in self.clusters)) <= ALPHA
        topic = "a further missing topic" if differ else "a missing topic"
        size = "even half" if self.detected_from is None else f"less than {self.detected_from:.0%}"
        found = f"{topic} of {self.detected_from or 1:.0%} of the log would have been found if the encoder places its "
        phrasing = ", ".join(f"{word.word!r:.30}" for word in self.words if word.phrasing)
        words = {
            "mixed": f"{'The difference is small' if differ else 'No difference was found'}, and {found}"
            "questions near each other.",
            "cannot tell": f"The sets differ in phrasing words ({phrasing:.60}), without which too little of the "
            "questions remains to compare topics."
            if phrasing and math.isnan(self.p_without_words)
            else "The sets differ, but neither their topics nor phrasing words explain how."
            if differ
            else "No difference was found, but the sets are too small to rule one out.",
            "reworded": f"Without phrasing words ({phrasing:.60}), evaluation and log questions have the "
            "same topics, as far as the encoder shows.",
            "separated": "Many evaluation questions differ from almost all of the log (AUC "
            f"{Ratio(self.strongest.area):.2f}), not only in phrasing words."
            if not self.foreign
            else f"{Ratio(ours[0]):.0%} of the evaluation questions, but "
            f"{Ratio(theirs[0]):.0%} of the log, are in clusters (treated as topics) of which the evaluation set has "
            "too many.",
            "missing": f"{Ratio(theirs[1]):.0%} of the log, but {Ratio(ours[1]):.0%} of the "
            "evaluation questions, are in clusters (treated as topics) of which the evaluation set has too few.",
        }
        return words[self.verdict], f"{topic.capitalize()} of {size} of the log may go undetected at this size."

    def tables(self) -> tuple[Table, ...]:
        """Return the clusters, and as details the questions to add, the outliers, and the power of the test."""
        more = (self.additions_table(), self.outliers_table(), self.power_table())
        return (self.table(), *(replace(table, title=Detail(table.title)) for table in more if table.rows))

    def table(self) -> Table:
        """Return one row for each cluster, significant differences first.

        Further clusters, intervals, p-values, and most typical questions are details.
        """
        marked = sorted(self.clusters, key=lambda cluster: (cluster.p > ALPHA, -abs(cluster.excess), cluster.number))
        rows = (
            (
                f"{cluster.number} {' '.join(cluster.terms)}",
                f"{Ratio(cluster.evaluation_share):.1%}",
                span(map(Ratio, cluster.evaluation_interval), ".1%"),
                f"{Ratio(cluster.log_share):.1%}",
                span(map(Ratio, cluster.log_interval), ".1%"),
                f"{Ratio(cluster.traffic_share):.1%}",
                f"{cluster.p:.3f}",
                self.mark(cluster),
                (cluster.typical_log or cluster.typical_evaluation)[0],
                " · ".join(cluster.typical_evaluation),
                " · ".join(cluster.typical_log),
            )
            for cluster in marked
        )
        return Table(
            (
                "cluster",
                "evaluation",
                Detail("95% CI"),
                "log",
                Detail("95% CI"),
                "asked",
                Detail("p"),
                "",
                "typical question",
                Detail("evaluation questions"),
                Detail("questions of users"),
            ),
            tuple(first_rows(rows, _SHOWN)),
            title="Evaluation and log questions by cluster",
            notes=(
                *self._notes(),
                Detail("intervals are simultaneous over all shares; p is corrected for the number of clusters"),
                Detail("asked: the share of what users asked, repeated questions included"),
            ),
            right=frozenset(range(1, 7)),
            shortened=frozenset({0, 8}),
            unit="cluster",
        )

    def _notes(self) -> tuple[str, ...]:
        areas = "; ".join(
            f"{distinction.classifier}: AUC {Ratio(distinction.area):.3f} "
            f"[{distinction.low:.3f}, {distinction.high:.3f}]"
            for distinction in self.distinctions
        )
        ours, theirs = self.evaluation, self.log
        words = ", ".join(
            f"{marker.word!r:.30} ({Ratio(marker.evaluation):.0%} / {Ratio(marker.log):.0%})"
            for marker in self.words[:_WORDS]
        )
        without = "" if math.isnan(self.p_without_words) else f"; without phrasing words p = {self.p_without_words:.3f}"
        return keep(
            f"{self.verdict.upper()}: {' '.join(self.sentences())}",
            f"{areas}; p = {self.p:.3f} by {self.permutations} permutations",
            f"evaluation / log: {ours.questions:,} / {theirs.questions:,} distinct questions, "
            f"{ours.words:.1f} / {theirs.words:.1f} words, {Ratio(ours.one_word):.0%} / "
            f"{Ratio(theirs.one_word):.0%} of one word, {Ratio(ours.asking):.0%} / "
            f"{Ratio(theirs.asking):.0%} phrased as a question",
            words and f"words that distinguish them: {words}{without}",
            self.outliers
            and f"{many(len(self.outliers), 'evaluation question')} far from every log question, "
            f"such as {self.outliers[0].text!r:.60}",
            f"weighted by traffic, the effective number of questions is {self.effective_size:.0f} "
            f"of {len(self.query_weights)}; {Ratio(self.uncovered):.0%} of the traffic is in "
            "clusters without evaluation questions",
            self.additions and f"add, for example: {self.additions[0].text!r:.70}",
            f"questions as vectors: {self.encoder}; seed {self.seed}",
        )

    def additions_table(self) -> Table:
        """Return the questions to add."""
        rows = tuple((addition.text, addition.asked, addition.cluster) for addition in self.additions)
        return Table(("question to add", "asked", "cluster"), rows, title="Questions to add", shortened=frozenset({0}))

    def outliers_table(self) -> Table:
        """Return the evaluation questions far from all log questions."""
        rows = tuple((outlier.id, outlier.text, outlier.distance) for outlier in self.outliers)
        note = f"1 - cosine to the nearest log question; above {self.far:.2f} for 1% of log questions"
        return Table(
            ("id", "evaluation question", "distance"),
            rows,
            digits=2,
            title="Evaluation questions far from every log question",
            notes=(note,),
            shortened=frozenset({1}),
        )

    def power_table(self) -> Table:
        """Return the power for missing topics of several sizes."""
        rows = tuple((f"{Ratio(topic.share):.0%}", f"{Ratio(topic.power):.0%}") for topic in self.detectable)
        return Table(
            ("topic missing, share of the log", "detected"),
            rows,
            right=frozenset({0, 1}),
            title="What this test can detect at this size",
        )

    def data_table(self) -> Table:
        """Return one row for each cluster, with all numbers."""
        names = [field.name for field in fields(QuestionCluster) if not field.name.endswith("interval")]
        rows = (
            (*attrgetter(*names)(cluster), *cluster.evaluation_interval, *cluster.log_interval)
            for cluster in self.clusters
        )
        return Table(
            (*names, "evaluation_low", "evaluation_high", "log_low", "log_high"),
            tuple(tuple("; ".join(cell) if isinstance(cell, tuple) else cell for cell in row) for row in rows),
        )


@dataclass(frozen=True)
class ReweightedMeans(Result):
    """Means of an evaluation, unweighted and weighted by production traffic.

    Attributes:
        run_name: The name of the run.
        plain: The unweighted mean of each measure.
        weighted: The weighted mean of each measure.
        queries: The number of queries with a weight.
        effective_size: The effective sample size (Kish 1965).
        uncovered: The share of traffic in clusters without evaluation questions.
    """

    run_name: str
    plain: Mapping[str, float]
    weighted: Mapping[str, float]
    queries: int
    effective_size: float
    uncovered: float

    def table(self) -> Table:
        """Return one row for each measure."""
        return Table(
            ("measure", "plain", "weighted", "Δ"),
            tuple(
                (name, value, self.weighted[name], self.weighted[name] - value) for name, value in self.plain.items()
            ),
            title=self.run_name,
            notes=keep(
                f"weighted by traffic, the effective number of queries is {self.effective_size:.0f} of "
                f"{self.queries} (Kish); {Ratio(self.uncovered):.0%} of the traffic is in clusters "
                "without evaluation questions, and not represented",
            ),
        )

    def summary(self) -> str:
        """Return the unweighted and weighted means of the first measure."""
        name = next(iter(self.plain))
        return (
            f"{self.run_name}: {name} is {self.plain[name]:.4f}, and {self.weighted[name]:.4f} "
            f"weighted to the traffic ({self.effective_size:.0f} effective queries)"
        )


def detected_from(detectable: Sequence[Detectable]) -> float | None:
    """Return the smallest share from which on all shares are detected."""
    least = None
    for topic in reversed(detectable):
        if topic.power < _POWER:
            break
        least = topic.share
    return least


def reweight(evaluation: Evaluation, weights: Mapping[str, float], uncovered: float = 0.0) -> ReweightedMeans:
    """Return unweighted and weighted means of an evaluation over the queries with a weight.

    The weighted mean is sum w x / sum w over the defined values x; the effective sample size is
    (sum w)² / sum w² (Kish 1965).

    Args:
        evaluation: The evaluation; undefined values are skipped.
        weights: Weights by query identifier, such as `DriftReport.query_weights`.
        uncovered: The share of traffic that the weights cannot represent.

    Raises:
        InputError: If none of the queries has a weight.

    Example:
        >>> from rankgauge.evaluation import evaluate
        >>> evaluation = evaluate({"a": {"d"}, "b": {"e"}}, {"a": ["d"], "b": ["x"]}, "P@1")
        >>> reweight(evaluation, {"a": 3.0, "b": 1.0}).weighted
        {'P@1': 0.75}
    """
    rows = [row for row, name in enumerate(evaluation.query_ids) if weights.get(name, 0) > 0]
    if not rows:
        raise InputError(
            "no query of the evaluation has a weight",
            where="weights",
            fix="use the identifiers of the evaluated queries in the evaluation questions",
        )
    chosen = np.array([weights[evaluation.query_ids[row]] for row in rows])
    plain, weighted = {}, {}
    for column, measure in enumerate(evaluation.measures):
        values = evaluation.per_query[rows, column]
        kept = np.isfinite(values)
        plain[str(measure)] = float(values[kept].mean()) if kept.any() else math.nan
        total = float(chosen[kept].sum())
        weighted[str(measure)] = float(chosen[kept] @ values[kept]) / total if total else math.nan
    return ReweightedMeans(
        evaluation.run_name,
        plain,
        weighted,
        queries=len(rows),
        effective_size=float(chosen.sum() ** 2 / (chosen @ chosen)),
        uncovered=uncovered,
    )
