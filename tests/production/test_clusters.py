"""Clusters of questions, questions to add, and outliers, compared with slow loops."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats

from rankgauge.production.clusters import (
    PooledQuestions,
    assign_clusters,
    choose_additions,
    describe_clusters,
    find_outliers,
    marking_words,
)
from rankgauge.production.distinct_questions import Embedding

WORDS = ("fees", "hours", "cards", "wifi", "rooms", "maps")


def pooled_questions(seed, ours=40, theirs=110):
    """Return three topics, each with a word; the set has few questions of two of them."""
    rng = np.random.default_rng(seed)
    topics = np.concatenate([rng.choice(3, ours, p=[0.9, 0.06, 0.04]), rng.choice(3, theirs, p=[0.3, 0.3, 0.4])])
    points = np.eye(3, 6)[topics] * 2 + rng.normal(0, 0.45, (ours + theirs, 6))
    texts = tuple(
        f"{'about ' if n < ours or n % 3 == 0 else ''}{WORDS[topic]} {WORDS[3 + n % 3]} n{n}"
        for n, topic in enumerate(topics)
    )
    asked = rng.integers(1, 9, ours + theirs) * (1.0 + 2 * (topics == 1))
    asked[:ours] *= rng.random(ours) < 0.3
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    ids = tuple((f"q{n}",) for n in range(ours + theirs))
    return PooledQuestions(texts, ids, ours, asked, Embedding("x", unit, points)), topics


def described(pooled, found, seed=0, permutations=199, whole=1.0):
    rng = np.random.default_rng(seed)
    permuted = [pooled.labels, *(rng.permutation(pooled.labels) for _ in range(permutations))]
    return describe_clusters([found], pooled, np.stack(permuted, axis=1), whole)


def test_clusters_are_described_by_counts_of_their_questions():
    pooled, topics = pooled_questions(1)
    clusters, numbered = described(pooled, topics)
    # The largest share of the log comes first, whatever the evaluation set contains.
    order = sorted(range(3), key=lambda name: -(topics[40:] == name).sum())
    assert [order.index(topic) + 1 for topic in topics] == numbered.tolist()
    for each, name in zip(clusters, order, strict=True):
        members = np.flatnonzero(topics == name)
        counts = [int((members < 40).sum()), int((members >= 40).sum())]
        assert [each.evaluation, each.log] == counts
        assert each.evaluation_share == counts[0] / 40
        assert each.log_share == counts[1] / 110
        assert each.traffic_share == pytest.approx(sum(pooled.traffic[n] for n in members) / sum(pooled.traffic))
        # Six simultaneous intervals, so each has the level 1 - 0.05 / 6.
        for count, size, interval in zip(counts, (40, 110), (each.evaluation_interval, each.log_interval), strict=True):
            wilson = scipy_stats.binomtest(count, size).proportion_ci(1 - 0.05 / 6, "wilson")
            assert interval == pytest.approx((wilson.low, wilson.high))
        center = sum(pooled.rows[n] for n in members) / len(members)
        near = sorted(members, key=lambda n, c=center: -float(pooled.rows[n] @ c))
        assert each.typical_evaluation == tuple(pooled.texts[n] for n in near if n < 40)[:3]
        assert each.typical_log == tuple(pooled.texts[n] for n in near if n >= 40)[:3]


def test_the_clearest_cluster_differs_if_the_sets_differ_as_a_whole():
    pooled, _ = pooled_questions(1)
    found = np.where(np.arange(150) % 10 == 0, 1, np.arange(150) % 3 * 2)
    found[34:40] = 1
    before, after = (described(pooled, found, whole=whole)[0] for whole in (1.0, 0.005))
    clearest = min(before, key=lambda cluster: cluster.p)
    assert clearest.p > 0.05
    assert after == tuple(replace(each, p=0.005) if each == clearest else each for each in before)


def test_terms_have_the_largest_share_times_log_ratio():
    pooled, topics = pooled_questions(2)
    clusters, numbered = described(pooled, topics)
    rows = [set(text.split()) for text in pooled.texts]
    for each in clusters:
        inside = [row for row, number in zip(rows, numbered, strict=True) if number == each.number]
        scores = {}
        for word in set().union(*inside):
            here = sum(word in row for row in inside) / len(inside)
            everywhere = sum(word in row for row in rows) / len(rows)
            if here > everywhere:
                scores[word] = here * math.log(here / everywhere)
        best = sorted(scores, key=lambda word, of=scores: (-round(of[word], 12), word))
        assert each.terms == tuple(best[:5])


def slow_additions(clusters, numbered, pooled, count):
    """Choose questions to add as `choose_additions` documents, with cosines pair by pair."""
    lacking = {
        each.number: max(0.0, pooled.evaluation * each.traffic_share - each.evaluation)
        for each in clusters
        if each.p <= 0.05
    }
    exact = {name: amount / sum(lacking.values()) * count for name, amount in lacking.items()}
    wanted = {name: math.floor(amount) for name, amount in exact.items()}
    for name in sorted(exact, key=lambda name: wanted[name] - exact[name]):
        wanted[name] += sum(wanted.values()) < count
    found, cosine = [], (pooled.rows @ pooled.rows.T).tolist()
    for number, left in sorted(wanted.items()):
        members = [n for n, own in enumerate(numbered) if own == number]
        chosen = [n for n in members if n < pooled.evaluation]
        asked = [n for n in members if n >= pooled.evaluation]

        def covered(of, chosen):
            return sum(pooled.traffic[n] * max([0.0, *(cosine[n][c] for c in chosen)]) for n in of)

        for _ in range(left):
            free = [n for n in asked if all(cosine[n][c] < 0.9 for c in chosen)]
            if not free:
                break
            gains = {n: covered(asked, [*chosen, n]) - covered(asked, chosen) for n in free}
            best = max(gains, key=gains.get)
            chosen.append(best)
            found.append((pooled.texts[best], int(pooled.traffic[best]), number))
    return found


@pytest.mark.parametrize("seed", [3, 5, 6, 8])
@pytest.mark.parametrize("count", [1, 7, 40])
def test_additions_are_those_of_a_slow_greedy_choice(seed, count):
    pooled, topics = pooled_questions(seed)
    clusters, numbered = described(pooled, topics, seed)
    found = choose_additions(clusters, numbered, pooled, count)
    wanted = slow_additions(clusters, numbered, pooled, count)
    assert [(each.text, each.asked, each.cluster) for each in found] == wanted
    assert wanted
    assert count == 1 or len({number for *_, number in wanted}) == 2


def test_marking_words_differ_by_five_points_and_four_standard_errors():
    pooled, _ = pooled_questions(6, ours=90, theirs=400)
    found = {each.word: (each.evaluation, each.log) for each in marking_words(pooled)}
    rows, wanted = [set(text.split()) for text in pooled.texts], {}
    for word in set().union(*rows):
        one = sum(word in row for row in rows[:90]) / 90
        other = sum(word in row for row in rows[90:]) / 400
        share = sum(word in row for row in rows) / 490
        error = math.sqrt(share * (1 - share) / 90 + share * (1 - share) / 400)
        if abs(one - other) >= 0.05 and abs(one - other) >= 4 * error:
            wanted[word] = (one, other)
    assert found == wanted
    assert len(found) >= 3


def test_outliers_are_farther_from_the_log_than_99_percent_of_it():
    pooled, _ = pooled_questions(7)
    rows = pooled.rows.copy()
    rows[:5] = -np.abs(rows[:5])  # far from all others; the first may have been asked
    pooled = PooledQuestions(
        pooled.texts,
        pooled.ids,
        40,
        np.where(np.arange(150) == 0, 3.0, pooled.traffic * 1.0),
        Embedding("x", rows, rows),
    )

    def distance(n):
        return min(1 - float(rows[n] @ rows[other]) for other in range(40, 150) if other != n)

    far = float(np.quantile([distance(n) for n in range(40, 150)], 0.99))
    wanted = [n for n in range(40) if distance(n) > far and not pooled.traffic[n]]
    wanted.sort(key=lambda n: -distance(n))
    found, limit = find_outliers(pooled)
    assert limit == pytest.approx(far)
    assert [each.id for each in found] == [f"q{n}" for n in wanted]
    assert [each.distance for each in found] == pytest.approx([distance(n) for n in wanted])
    assert "q0" not in [each.id for each in found]
    assert len(found) >= 2


def test_there_are_at_most_20_clusters_of_40_questions_on_average_half_and_twice_as_many():
    rows = np.random.default_rng(1).normal(size=(900, 2))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for size, count in ((60, 2), (130, 3), (900, 20)):
        half, double = max(2, count // 2), 2 * count
        numbers = [len(np.unique(assigned)) for assigned in assign_clusters(rows[:size], None, 0)]
        assert numbers == list(dict.fromkeys((count, half, double)))
