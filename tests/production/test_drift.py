"""Drift of the evaluation set: simulated truths, weights, questions to add, invalid input."""

import json
import math
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from schemas import strict
from sklearn.feature_extraction.text import CountVectorizer

import rankgauge
from rankgauge.errors import FormatError, InputError, UnknownName
from rankgauge.production import EventLog, drift, measure_drift, reweight
from rankgauge.production.clusters import assign_clusters, equal_means, equal_shares, memberships
from rankgauge.production.distinct_questions import distinct_questions, embed
from rankgauge.production.drift import Detectable, Distinction
from rankgauge.stats.two_sample import LabelScores, unit_rows

PLACES = (
    "oslo",
    "rome",
    "bern",
    "kyiv",
    "lima",
    "doha",
    "riga",
    "bonn",
    "cork",
    "nice",
    "graz",
    "ghent",
    "turin",
    "porto",
    "leeds",
)
VERBS = ("renew", "return", "reserve", "borrow", "extend", "cancel", "order", "print", "scan", "copy")
THINGS = ("book", "card", "film", "map", "game", "disc", "key", "bag", "lamp", "desk", "chair", "pass")


def library(count, seed=0):
    """Return questions about a library."""
    rng = np.random.default_rng(seed)
    every = [f"how do i {verb} a {thing} please" for verb in VERBS for thing in THINGS]
    return [every[n] for n in rng.permutation(len(every))[:count]]


def travel(count, seed=0):
    """Return questions about travel."""
    rng = np.random.default_rng(seed)
    every = [f"train from {one} to {two} station" for one in PLACES for two in PLACES if one != two]
    return [every[n] for n in rng.permutation(len(every))[:count]]


def halves(count, seed=0):
    """Return two samples of the same mixture of both."""
    rng = np.random.default_rng(seed)
    every = [*library(120), *travel(200)]
    order = rng.permutation(len(every))
    return [every[n] for n in order[:count]], [every[n] for n in order[count:]]


def quick(ours, theirs, **options):
    return measure_drift(ours, theirs, permutations=99, **options)


def test_samples_of_the_same_questions_are_mixed_and_the_limit_is_named():
    report = quick(*halves(120))
    assert report.verdict in {"mixed", "cannot tell"}
    assert report.p > 0.05
    assert "at this size" in report.summary()
    assert "no drift" not in str(report).lower()
    assert report.finding.severity == "info"
    assert report.additions == ()


def test_small_samples_cannot_tell():
    report = quick(*(half[:15] for half in halves(150)))
    assert report.verdict == "cannot tell"
    assert report.finding.fix


def test_a_topic_that_the_evaluation_set_lacks_is_missing_and_its_questions_are_to_be_added():
    ours = library(60)
    theirs = [*library(120)[60:], *travel(60)]
    report = quick(ours, theirs)
    assert report.verdict == "missing"
    assert {each.text for each in report.additions} <= set(travel(60))
    assert len({each.text for each in report.additions}) == len(report.additions) > 5
    assert sum(each.traffic_share for each in report.missing) == pytest.approx(0.5, abs=0.1)
    assert "but 0% of the evaluation questions" in report.summary()
    assert report.finding.severity == "warning"


def test_evaluation_questions_absent_from_the_log_are_separated():
    report = quick([*library(30), *travel(60)], library(120)[30:])
    assert report.verdict == "separated"
    assert sum(each.evaluation_share for each in report.foreign) == pytest.approx(2 / 3, abs=0.1)
    assert report.distinctions[0].area > 0.7


@pytest.mark.parametrize("encoder", ["tfidf", "hashing"])
def test_disjoint_topics_are_separated_although_other_words_are_shared(encoder):
    """Without the words that differ, which are the topics, nothing differs."""
    loans = [f"how do i {verb} a loan in {place}" for verb in VERBS for place in PLACES]
    others = [
        f"how do i {verb} a {thing} in {place}" for verb in VERBS for thing in ("book", "room") for place in PLACES
    ]
    report = quick(loans, others, encoder=encoder)
    assert report.verdict == "separated"
    assert report.additions


@pytest.mark.parametrize("encoder", ["tfidf", "hashing"])
def test_a_topic_is_missing_although_questions_are_worded_differently(encoder):
    report = quick(
        [f"please tell me {text}" for text in library(60)], [*library(120)[60:], *travel(60)], encoder=encoder
    )
    assert report.verdict == "missing"
    assert {word.word for word in report.words if word.phrasing} >= {"tell", "me"}


def test_unknown_words_of_one_set_are_phrasing_if_the_rest_resembles_the_other_set():
    ours, theirs = halves(120)
    report = quick([f"ahoj robotku {text}" for text in ours], theirs)
    assert report.verdict == "reworded"
    assert {word.word for word in report.words if word.phrasing} == {"ahoj", "robotku"}
    assert "('ahoj', 'robotku')" in report.summary()


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.05, "mixed"), (0.1, "mixed"), (0.15, "cannot tell"), (None, "cannot tell")]
)
def test_no_difference_is_reported_only_if_a_missing_tenth_of_the_log_would_have_been_found(share, verdict):
    report = quick(*halves(60))
    assert min(report.p, *(cluster.p for cluster in report.clusters)) > 0.05
    options = {"kept": False, "separated": False, "reworded": False, "detected_from": share}
    assert drift.choose_verdict(report.p, report.clusters, **options) == verdict
    said = replace(report, verdict=verdict, detectable=(Detectable(share or 0.5, 0.0 if share is None else 1.0),))
    assert ("would have been found" in said.finding.message) == (verdict == "mixed")
    assert verdict != "mixed" or f"a missing topic of {share:.0%} of the log would have been found" in said.summary()


@pytest.mark.parametrize(
    ("p", "apart", "missing", "foreign", "verdict"),
    [
        (0.01, True, 0.2, 0.0, "separated"),
        (0.06, True, 0.0, 0.0, "mixed"),
        (0.01, False, 0.2, 0.1, "missing"),
        (0.01, False, 0.1, 0.2, "cannot tell"),
        (0.01, False, 0.6, 1.0, "missing"),
        (0.06, False, 0.2, 0.0, "missing"),
        (0.06, False, 0.005, 0.0, "cannot tell"),
    ],
)
def test_a_topic_is_missing_if_more_of_the_log_than_of_the_evaluation_set_differs(p, apart, missing, foreign, verdict):
    cluster = quick(*halves(30)).clusters[0]
    clusters = [
        replace(cluster, evaluation_share=ours, log_share=theirs, p=0.01 if ours + theirs else 1.0)
        for ours, theirs in ((0.0, missing), (foreign, 1 - missing if foreign == 1 else 0.0))
    ]
    options = {"kept": False, "separated": apart, "reworded": False, "detected_from": 0.1}
    assert drift.choose_verdict(p, clusters, **options) == verdict


def test_how_often_questions_are_asked_does_not_change_the_verdict():
    ours, theirs = [*library(30), *travel(60)], [*library(120)[30:], *travel(65)[60:]]
    plain, busy = quick(ours, theirs), quick(ours, [*theirs, *travel(65)[60:] * 2_000])
    assert plain.verdict == busy.verdict == "separated"
    assert sum(each.traffic_share for each in busy.foreign) > 0.9


@pytest.mark.parametrize(
    ("evaluation", "log", "p", "mark"),
    [
        (0.5, 0.9, 0.05, "too few"),
        (0.7, 0.9, 0.05, ""),
        (0.5, 0.9, 0.06, ""),
        (0.9, 0.5, 0.05, "too many"),
        (0.9, 0.7, 0.05, ""),
        (0.9, 0.5, 0.06, ""),
        (0.0, 0.1, 0.01, "too few"),
        (0.1, 0.0, 0.01, "too many"),
    ],
)
def test_a_cluster_differs_if_one_share_is_at_most_two_thirds_of_the_other(evaluation, log, p, mark):
    report = quick(*halves(30))
    cluster = replace(report.clusters[0], evaluation_share=evaluation, log_share=log, p=p)
    assert report.mark(cluster) == mark
    found = replace(report, clusters=(cluster,))
    assert len(found.missing) == (mark == "too few")
    assert len(found.foreign) == (mark == "too many")


def test_detectable_shares_are_detected_at_every_larger_share():
    report = quick(*halves(30))
    shares = [0.05, 0.1, 0.2, 0.3]
    for powers, least in (([0.9, 0.7, 0.8, 1.0], 0.2), ([0.8] * 4, 0.05), ([0.9, 0.9, 0.9, 0.79], None)):
        found = tuple(map(Detectable, shares, powers))
        assert replace(report, detectable=found).detected_from == least


def test_the_classifier_that_differs_most_from_chance_is_reported():
    """In standard deviations of the permutations, not by the area."""
    report = quick(*halves(30))
    one, other = (Distinction("a", 0.7, 0.6, 0.8, 2.0), Distinction("b", 0.6, 0.5, 0.7, 3.0))
    assert replace(report, distinctions=(one, other)).strongest == other


def test_power_is_the_share_of_sets_without_a_topic_that_are_detected():
    """Sets are drawn without a third of the questions about a topic: one and its nearest neighbors."""
    ours, theirs = halves(100)
    report = quick(ours, theirs)
    points = embed([*ours, *theirs], None, 0).points
    scores, labels = LabelScores(points, 0), np.arange(len(points)) < 100
    test, unit = scores.test(labels, 99, 0), unit_rows(points)
    members = memberships(assign_clusters(unit, None, 0))
    rng, drawn = np.random.default_rng(77), 60
    permuted = np.stack([labels, *(rng.permutation(labels) for _ in range(99))], axis=1)
    slow = []
    for each in report.detectable:
        found = 0
        for _ in range(drawn):
            topic = unit @ unit[rng.integers(len(points))]
            left = sorted(range(len(points)), key=lambda n, of=topic: of[n])
            left = left[: len(points) - round(each.share * len(theirs) / 3)]
            column = np.isin(np.arange(len(points)), rng.permutation(left)[:100])[:, None]
            shares = equal_shares(members, column, permuted).min()
            means = 2 * equal_means(points, column, permuted).min()
            found += min(test.p_values(scores.areas(column))[0], shares, means) <= 0.05
        slow.append(found / drawn)
    assert max(slow) - min(slow) > 0.4
    power = [each.power for each in report.detectable]
    # Shares of 40 and of 60 sets: each difference has a standard error of at most 0.1.
    assert power == pytest.approx(slow, abs=0.3)
    assert np.mean(power) == pytest.approx(np.mean(slow), abs=0.1)


def test_the_same_questions_in_other_words_are_reworded():
    ours, theirs = halves(120)
    report = quick([f"could you kindly tell me {text}" for text in ours], theirs)
    assert report.verdict == "reworded"
    assert {each.word for each in report.words} >= {"could", "you", "kindly", "tell", "me"}
    assert report.words[0].evaluation == 1
    assert report.p <= 0.05 < report.p_without_words
    assert "'could' (100% / 0%)" in str(report)


def test_questions_of_one_word_do_not_keep_marking_words_from_being_left_out():
    """They have fewer than two words with and without the marking words, so nothing is removed."""
    ours, theirs = halves(120)
    words = [f"{chr(97 + n % 26)}{chr(97 + n // 26)}zq" for n in range(200)]
    report = quick([f"could you kindly tell me {text}" for text in ours] + words[:60], [*theirs, *words[60:]])
    assert "kindly" in {each.word for each in report.words}
    assert not math.isnan(report.p_without_words)


@pytest.mark.parametrize("encoder", ["tfidf", "hashing"])
def test_topics_are_not_compared_if_little_remains_without_marking_words(encoder):
    """Otherwise, the clusters are those of the words."""
    things = [f"{verb}{thing}" for verb in VERBS for thing in THINGS]
    ours, theirs = [f"can you please explain {each}" for each in things[::2]], [f"my {each}" for each in things[1::2]]
    report = quick(ours, theirs, encoder=encoder)
    assert report.verdict == "cannot tell"
    assert "The sets differ in phrasing words ('can', 'explain', 'my'" in report.summary()


def test_shares_of_marking_words_are_counted():
    ours, theirs = library(60), [*library(120)[60:], *travel(60)]
    (word,) = (each for each in quick(ours, theirs).words if each.word == "please")
    assert (word.evaluation, word.log) == (1.0, 0.5)


def test_questions_far_from_the_log_are_listed():
    ours = [*halves(100)[0], "zygomorphic quixotry"]
    report = quick(ours, halves(100)[1])
    assert report.outliers[0].text == "zygomorphic quixotry"
    assert len(report.outliers) < 5
    assert report.outliers[0].id == "q101"
    assert report.outliers[0].distance > report.far


def test_questions_in_both_sets_are_counted_and_not_compared_with_themselves():
    ours, theirs = halves(120)
    report = quick(ours, [*theirs, *(text.upper() for text in ours[:40]), ours[0]])
    assert report.shared == 40
    assert report.shared_traffic == pytest.approx(41 / (len(theirs) + 41))
    assert report.p > 0.05
    assert len(report.points) == len(ours) + len(theirs)


def test_repeated_questions_change_the_traffic_and_not_the_test():
    ours, theirs = halves(120)
    once = quick(ours, theirs)
    often = quick(ours, [*theirs, *[theirs[0]] * 10_000])
    assert (often.p, often.distinctions) == (once.p, once.distinctions)
    (busy,) = (each for each in often.clusters if each.traffic_share > 0.9)
    assert theirs[0] in {each.text for each in often.points if each.cluster == busy.number}
    assert often.log.asked == len(theirs) + 10_000
    assert often.effective_size < once.effective_size


def test_weights_are_the_share_of_traffic_over_that_of_the_evaluation_set():
    ours = {f"a{n}": text for n, text in enumerate([*library(60), *travel(20)])}
    theirs = [*library(120)[60:], *travel(150)[20:]]
    report = quick(ours, theirs)
    where = {point.text: point.cluster for point in report.points}
    for name, text in ours.items():
        cluster = report.clusters[where[text] - 1]
        alike = sum(where[other] == cluster.number for other in ours.values())
        asked = sum(where[other] == cluster.number for other in theirs) / len(theirs)
        assert cluster.traffic_share == pytest.approx(asked)
        raw = asked / (alike / len(ours))
        assert report.query_weights[name] == pytest.approx(raw / (1 - report.uncovered), rel=1e-6)
    weights = list(report.query_weights.values())
    assert np.mean(weights) == pytest.approx(1)
    assert report.effective_size == pytest.approx(sum(weights) ** 2 / sum(w * w for w in weights))
    assert report.query_weights["a70"] > report.query_weights["a0"]


def test_reweighted_means_are_weighted_sums_and_their_size_is_that_of_kish():
    qrels = {f"q{n}": {"d": 1} for n in range(4)}
    run = {"q0": ["d"], "q1": ["x", "d"], "q2": ["x"], "q3": ["d"]}
    evaluation = rankgauge.evaluate(qrels, run, ["P@1", "RR"])
    found = reweight(evaluation, {"q0": 2.0, "q1": 1.0, "q2": 1.0, "q9": 5.0}, 0.25)
    assert found.weighted == {"P@1": 0.5, "RR": pytest.approx(2.5 / 4)}
    assert found.plain == {"P@1": pytest.approx(1 / 3), "RR": pytest.approx(0.5)}
    assert (found.queries, found.effective_size) == (3, pytest.approx(16 / 6))
    weighted = rankgauge.evaluate(qrels, run, ["RR"], weights={"q0": 2, "q1": 1, "q2": 1, "q3": 0})
    assert weighted.mean()["RR"] == pytest.approx(found.weighted["RR"])
    with pytest.raises(InputError, match="no query of the evaluation has a weight"):
        reweight(evaluation, {"other": 1.0})
    with pytest.raises(InputError, match="no query of the evaluation has a weight"):
        reweight(evaluation, {"q0": 0.0})


def test_undefined_values_are_in_no_reweighted_mean():
    values = {"RR": [1.0, 0.5, math.nan], "P@1": [1.0, 0.0, 0.0]}
    evaluation = rankgauge.Evaluation.from_values("a", ["q0", "q1", "q2"], values)
    found = reweight(evaluation, {"q0": 3.0, "q1": 1.0, "q2": 4.0})
    assert found.weighted == {"RR": pytest.approx(3.5 / 4), "P@1": pytest.approx(3 / 8)}
    assert found.plain == {"RR": 0.75, "P@1": pytest.approx(1 / 3)}


def test_p_values_of_clusters_are_those_of_a_loop():
    rng = np.random.default_rng(2)
    clusters, labels = rng.integers(0, 3, 50), np.arange(50) < 20
    permuted = np.stack([labels, *(rng.permutation(labels) for _ in range(99))], axis=1)
    ratios = []
    for column in permuted.T:
        row = []
        for name in range(3):
            ratio = 0.0
            for place in (clusters == name, clusters != name):
                for label, share in ((True, 0.4), (False, 0.6)):
                    count = int((column[place] == label).sum())
                    ratio += count * math.log(count / (place.sum() * share)) if count else 0
            row.append(ratio)
        ratios.append(row)
    largest = [max(row) for row in ratios[1:]]
    wanted = [(1 + sum(each >= one - 1e-9 for each in largest)) / 100 for one in ratios[0]]
    assert equal_shares(memberships([clusters]), permuted[:, :1], permuted)[:, 0] == pytest.approx(wanted)


def test_the_p_value_of_means_is_that_of_a_loop():
    rng = np.random.default_rng(4)
    points, labels = rng.normal(size=(60, 3)), np.arange(60) < 20
    points[:20] += 0.5
    permuted = np.stack([labels, *(rng.permutation(labels) for _ in range(99))], axis=1)
    distances = [np.linalg.norm(points[column].mean(axis=0) - points[~column].mean(axis=0)) for column in permuted.T]
    wanted = (1 + sum(each >= distances[0] - 1e-9 for each in distances[1:])) / 100
    assert equal_means(points, permuted[:, :1], permuted) == pytest.approx([wanted])
    assert wanted < 0.1


def test_power_grows_with_the_lost_topic_and_with_the_number_of_questions():
    few, many = quick(*(half[:60] for half in halves(120))), quick(*halves(160))
    for report in (few, many):
        assert report.detectable[-1].power > report.detectable[0].power
    assert sum(each.power for each in many.detectable) > sum(each.power for each in few.detectable)


def test_the_same_seed_gives_the_same_report():
    ours, theirs = halves(60)
    assert quick(ours, theirs, seed=5).to_json() == quick(ours, theirs, seed=5).to_json()


def test_terms_and_typical_questions_name_a_cluster():
    report = quick(library(60), [*library(120)[60:], *travel(60)], clusters=2)
    (trains,) = (each for each in report.clusters if "train" in each.terms)
    assert trains.typical_log
    assert all(text.startswith("train from") for text in trains.typical_log)
    assert (trains.evaluation, trains.log) == (0, 60)
    assert trains.log_interval[0] < 0.5 < trains.log_interval[1]


@pytest.mark.parametrize(
    "encoder",
    [
        "hashing",
        rankgauge.retrievers.HashingEncoder(64),
        lambda texts: CountVectorizer().fit(library(120) + travel(200)).transform(texts).toarray(),
    ],
)
def test_any_encoder_finds_a_missing_topic(encoder):
    report = quick(library(60), [*library(120)[60:], *travel(60)], encoder=encoder)
    assert report.p == 0.01
    assert report.verdict == "missing"


@pytest.mark.parametrize("vector", [[math.nan], [[1.0]], None])
def test_encoders_that_return_no_vectors_are_refused(vector):
    with pytest.raises(InputError, match="the encoder returned"):
        quick(*halves(100), encoder=lambda texts: [vector] * len(texts))


def test_unknown_encoders_are_refused():
    with pytest.raises(UnknownName, match="unknown encoder 'bert'"):
        quick(*halves(100), encoder="bert")


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ([], library(50), "there are no questions"),
        (["  ", "\n"], library(50), "there are no questions"),
        (["one question"], library(50), "1 distinct question"),
        (["the same"] * 500, library(50), "1 distinct question"),
        (library(50), library(50), "0 distinct questions that the evaluation set does not have"),
        (library(50), 7, "got int for questions"),
        (library(50), [7] * 20, "got 7 for the text of a question"),
    ],
)
def test_too_few_questions_are_refused(ours, theirs, said):
    with pytest.raises(InputError, match=said):
        quick(ours, theirs)


def test_other_scripts_signs_and_very_long_questions_are_compared():
    ours = [f"{sign}借书证在哪里{n}\uff1f" for n, sign in enumerate("天地人水火山石田土木")]
    theirs = [f"كيف أجدد البطاقة {n}؟" for n in range(8)] + ["???", "!!!", "🙂", "x" * 20_000]
    report = quick(ours, theirs)
    assert report.evaluation.asking == 1
    assert report.p <= 0.05
    assert "كيف" in report.to_markdown()


def test_questions_of_long_sets_are_drawn_from_all_of_them(monkeypatch):
    monkeypatch.setattr(drift, "_MOST", 40)
    ours, theirs = halves(60)
    report = quick(ours, theirs)
    for own, evaluation in ((ours, True), (theirs, False)):
        places = [own.index(each.text) for each in report.points if each.evaluation is evaluation]
        assert len(places) == 40
        # The mean of 40 positions has a standard error of about a twentieth of the length.
        assert sum(places) / 40 / len(own) == pytest.approx(0.5, abs=0.15)


def test_long_logs_are_sampled(monkeypatch):
    monkeypatch.setattr(drift, "_MOST", 100)
    ours, theirs = halves(60)
    assert len(quick(ours, theirs).points) == 160


def test_questions_are_read_from_files_collections_and_logs(tmp_path):
    rows = [{"id": "a", "query": "late fees", "count": 3}, {"id": "b", "query": "wifi"}]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "log.csv").write_text("question,frequency\nlate fees,3\nLate fees,1\n")
    (tmp_path / "log.txt").write_text("late fees\nwifi\n\nLate  fees\n")
    read = {name: distinct_questions(tmp_path / name, "log") for name in ("log.jsonl", "log.csv", "log.txt")}
    assert [(each.count, each.ids) for each in read["log.jsonl"]] == [(3, ("a",)), (1, ("b",))]
    assert [each.count for each in read["log.csv"]] == [4]
    assert [each.count for each in read["log.txt"]] == [2, 1]
    collection = rankgauge.Collection.of({}, {"q": "late fees"})
    assert [each.ids for each in distinct_questions(collection, "evaluation")] == [("q",)]
    (tmp_path / "wrong.csv").write_text("question,count\nlate fees,often\n")
    with pytest.raises(FormatError, match="got 'often', expected a count"):
        distinct_questions(tmp_path / "wrong.csv", "log")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FormatError, match="there is no column for the question"):
        distinct_questions(tmp_path / "other.csv", "log")


def test_questions_are_read_from_an_event_log(tmp_path):
    import duckdb

    path = tmp_path / "events.parquet"
    duckdb.execute(
        "COPY (SELECT 'e' || i AS event_id, 'question' AS kind, TIMESTAMPTZ '2026-05-01' AS time, "
        "'q' || i AS question_id, CASE WHEN i < 3 THEN 'wifi' ELSE 'fees' END AS text "
        f"FROM range(4) t(i)) TO '{path}'"
    )
    for given in (EventLog(path), str(path)):
        found = distinct_questions(given, "log")
        assert {each.text: each.count for each in found} == {"fees": 1, "wifi": 3}


def test_the_json_follows_the_published_schema():
    missing = quick(library(60), [*library(120)[60:], *travel(60)])
    alike, small = quick(*halves(120)), quick(library(10), travel(10), additions=0)
    reworded = quick([text.replace("how do i", "need to") for text in library(60)], library(120)[60:])
    for report in (missing, alike, small, reworded):
        data = report.to_dict()
        jsonschema.validate(data, strict("drift-1"))
        assert "points" not in data
    assert alike.words == ()
    assert alike.to_dict()["p_without_words"] is None
    assert reworded.words
    diagnosis = rankgauge.diagnose({"q": {"d": 1}}, {"q": ["d"]}, drift=missing).to_dict()
    jsonschema.validate(diagnosis, strict("diagnosis-1"))
    assert diagnosis["drift"] == missing.to_dict()["finding"]


def test_the_table_fits_a_terminal_and_full_has_everything():
    report = quick(library(60), [*library(120)[60:], *travel(60)])
    lines = str(report).splitlines()
    assert max(map(len, lines)) <= 80
    full = rankgauge.reports.render(report, "table", rankgauge.reports.Options(full=True))
    assert report.additions[-1].text in full
    assert "What this test can detect" in full


def test_the_picture_has_both_sets():
    pytest.importorskip("matplotlib")
    report = quick(*halves(60))
    (panel,) = report.plot().panels
    assert [len(series.y) for series in panel.series] == [260, 60]
    assert report.plot().png().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["tfidf", "hashing"])
def test_topics_of_real_questions_are_separated_or_missing_and_shorter_questions_are_neither(data_folder, encoder):
    def read(path):
        return [json.loads(line)["text"] for line in (data_folder / path).read_text().splitlines()]

    web = [text for text in read("drift/no-drift-msmarco-halves/eval.jsonl") if text.startswith(("what is ", "how "))]
    planes = read("cranfield/queries.jsonl")
    verdicts = [
        quick(ours, theirs, encoder=encoder).verdict
        for ours, theirs in (
            (planes[:200], web[:600]),
            (web[:200], [*web[200:620], *planes[:180]]),
            (web[:300], [text.removeprefix("what is ").removeprefix("how ") for text in web[300:1200]]),
        )
    ]
    assert verdicts[:2] == ["separated", "missing"]
    assert verdicts[2] in {"reworded", "cannot tell"}


def page_rows(table):
    """Return the rows of a table of the page, as lists of cells."""
    page = Path(__file__).parents[2] / "docs" / "explain" / "drift.md"
    if not page.exists():
        pytest.skip("there are no pages beside these tests")
    section = page.read_text(encoding="utf-8").split(f"<!-- table: {table} -->")[1].split("<!--")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in (rows[0], *rows[2:])]


def test_the_page_says_that_false_alarms_are_rare():
    first, *others = page_rows("size")[1:]
    assert int(first[2]) >= 1000
    assert all(float(row[3].rstrip("%")) <= 6 for row in (first, *others))


def test_the_page_says_how_often_verdicts_are_right():
    heads, *rows = page_rows("verdicts")
    draws = [int(row[2]) for row in rows]
    rates = {
        (row[0], row[1]): dict(zip(heads[3:], (int(cell.rstrip("%")) for cell in row[3:]), strict=True)) for row in rows
    }
    encoders = {encoder for encoder, _ in rates}
    assert len(encoders) == 3
    assert min(draws) >= 20
    for each in encoders:
        same = rates[each, "same population"]
        assert same["missing"] + same["separated"] + same["reworded"] <= 8
        assert rates[each, "all of the evaluation set off topic"]["separated"] >= 95
        assert rates[each, "30% of the log missing"]["missing"] >= 90
        tenth = rates[each, "10% of the log missing"]
        assert tenth["missing"] >= 60
        assert tenth["missing"] + tenth["cannot tell"] >= 99
