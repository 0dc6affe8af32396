"""Interleaving: fairness by enumeration, simulated preferences, and slow marginalization."""

import itertools
import math
import random
import re
import statistics
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rankgauge.errors import InputError, RankgaugeError
from rankgauge.production import analyze_interleaving, interleave
from rankgauge.production.interleaving import impression_outcome
from rankgauge.stats import sign_test

duckdb = pytest.importorskip("duckdb")

METHODS = ["team-draft", "probabilistic"]
rankings = st.lists(st.sampled_from("abcdef"), max_size=5, unique=True)


class Coins(random.Random):
    """A source of predetermined coin flips."""

    def __init__(self, coins):
        super().__init__(0)
        self.coins = iter(coins)

    def random(self):
        return next(self.coins)


def all_drafts(a, b, k, monkeypatch):
    """Return every list that team-draft can produce, with its probability."""
    found = []
    flips = len(set(a) | set(b)) // 2 + 1
    for coins in itertools.product([0.0, 0.9], repeat=flips):
        monkeypatch.setattr("rankgauge.production.interleaving.random.Random", lambda _seed, c=coins: Coins(c))
        found.append(interleave(a, b, seed=1, k=k))
    return found


@given(rankings, rankings, st.integers(1, 6))
def test_team_draft_credits_both_equally_at_each_rank(a, b, k):
    """Over all coin flips, a user who clicks at random or by rank alone has no preference."""
    with pytest.MonkeyPatch.context() as patch:
        drafts = all_drafts(a, b, k, patch)
    for rank in range(k):
        teams = [each.teams[rank : rank + 1] for each in drafts]
        assert teams.count("A") == teams.count("B")


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_equal_rankings_are_credited_at_every_rank(size):
    ranking = list("abcd")[:size]
    for seed in range(20):
        found = interleave(ranking, ranking, seed=seed)
        assert found.documents == tuple(ranking)
        assert "-" not in found.teams
        assert abs(found.teams.count("A") - found.teams.count("B")) <= 1


def slow_probabilistic(a, b, k):
    """Return every list of probabilistic interleaving, its probability and shares, by the paper."""
    ranks = [{d: Fraction(1, r**3) for r, d in enumerate(own, 1)} for own in (a, b)]

    def go(shown, probability, shares):
        left = [{d: w for d, w in own.items() if d not in shown} for own in ranks]
        if len(shown) == k or not all(left):
            yield shown, probability, shares
            return
        chance = [{d: w / sum(own.values()) for d, w in own.items()} for own in left]
        for d in sorted(set(left[0]) | set(left[1])):
            one, other = (each.get(d, Fraction(0)) for each in chance)
            share = one / (one + other)
            yield from go([*shown, d], probability * (one + other) / 2, [*shares, share])

    yield from go([], Fraction(1), [])


@given(rankings, rankings, st.integers(1, 3))
def test_probabilistic_interleaving_shares_credit_equally_at_each_rank(a, b, k):
    lists = list(slow_probabilistic(a, b, k))
    assert sum(probability for _, probability, _ in lists) == 1
    for rank in range(k):
        at = [(p, shares[rank]) for _, p, shares in lists if rank < len(shares)]
        assert sum(p * share for p, share in at) == sum(p for p, _ in at) / 2


def test_probabilistic_interleaving_draws_as_often_as_its_definition_says():
    a, b = ["a", "b", "c"], ["c", "d"]
    expected = {
        tuple(shown): (float(p), [float(s) for s in shares]) for shown, p, shares in slow_probabilistic(a, b, 2)
    }
    draws = [interleave(a, b, method="probabilistic", seed=seed, k=2) for seed in range(6000)]
    for shown, (probability, shares) in expected.items():
        same = [each for each in draws if each.documents == shown]
        error = math.sqrt(probability * (1 - probability) / 6000)
        assert abs(len(same) / 6000 - probability) < 4.5 * error
        for each in same[:1]:
            assert each.shares == pytest.approx(shares)
    assert {each.documents for each in draws} <= set(expected)


@pytest.mark.parametrize("method", METHODS)
@given(a=rankings, b=rankings, seed=st.integers(0, 50))
def test_all_documents_are_shown_once_and_the_same_seed_gives_the_same_list(method, a, b, seed):
    found = interleave(a, b, method=method, seed=seed)
    assert sorted(found.documents) == sorted({*a, *b})
    assert len(found.teams) == len(found.documents)
    assert found == interleave(a, b, method=method, seed=seed)
    assert found.documents == interleave(a + a, b + b, method=method, seed=seed).documents


def test_documents_that_only_one_retriever_has_left_are_credited_to_neither():
    found = interleave(["a", "b", "c", "d"], ["x"], seed=1)
    assert found.teams.count("-") == 3
    assert sorted(found.teams[:2]) == ["A", "B"]


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_the_outcome_is_marginalized_over_all_assignments(shares):
    won = {1: 0.0, 0: 0.0, -1: 0.0}
    for teams in itertools.product([True, False], repeat=len(shares)):
        chance = math.prod(s if team else 1 - s for s, team in zip(shares, teams, strict=True))
        credit = sum(1 if team else -1 for team in teams)
        won[(credit > 0) - (credit < 0)] += chance
    assert impression_outcome(tuple(shares)) == pytest.approx((won[1], won[-1]))


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (5, 5), (9, 1), (40, 60), (700, 800)])
def test_the_sign_test_agrees_with_scipy(wins, losses):
    scipy_stats = pytest.importorskip("scipy.stats")
    expected = scipy_stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert sign_test(wins, losses) == pytest.approx(expected, rel=1e-9)


def test_interleaving_loads_no_library():
    code = (
        "import sys; from rankgauge.production import interleave; interleave(['a'], ['b'], seed=1);"
        "print([n for n in ('numpy', 'duckdb', 'pyarrow', 'sklearn') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("arguments", [{"method": "balanced"}, {"k": 0}, {"k": 1.5}])
def test_impossible_arguments_are_refused(arguments):
    with pytest.raises(RankgaugeError, match=r"balanced|k=[01]"):
        interleave(["a"], ["b"], seed=1, **arguments)


# ---- analysis


def write_log(path, events):
    """Write a log of these events: dicts with kind, question, user, documents, attributes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "event_id": str(number),
            "kind": each["kind"],
            "question_id": each["question"],
            "user_id": each.get("user"),
            "documents": each.get("documents"),
            "attributes": list(each.get("attributes", {}).items()),
        }
        for number, each in enumerate(events)
    ]
    types = {
        "event_id": pa.string(),
        "kind": pa.string(),
        "question_id": pa.string(),
        "user_id": pa.string(),
        "documents": pa.list_(pa.string()),
        "attributes": pa.map_(pa.string(), pa.string()),
    }
    table = pa.Table.from_pylist(rows, schema=pa.schema(types.items()))
    times = pa.array(np.datetime64("2026-03-01T10:00", "us") + np.arange(len(rows)), pa.timestamp("us", "UTC"))
    pq.write_table(table.append_column("time", times), path)
    return path


def simulated(rng, path, *, method, relevant, users=150, kind="click"):
    """Simulate users who read from the top, often stop early, and click relevant documents."""
    events = []
    a, b = [f"a{i}" for i in range(6)] + ["s1", "s2"], ["s1", *(f"b{i}" for i in range(6)), "s2"]
    for user in range(users):
        taste = rng.normal(0, 0.3)
        for number in range(1 + rng.poisson(2)):
            question = f"{user}-{number}"
            own = list(a), list(b)
            for each in own:
                rng.shuffle(each)
            shown = interleave(*own, method=method, seed=question, k=6)
            base = {"question": question, "user": f"u{user}"}
            events.append(
                base
                | {
                    "kind": "impression",
                    "documents": list(shown.documents),
                    "attributes": shown.attributes("old", "new"),
                }
            )
            for rank, document in enumerate(shown.documents):
                chance = relevant.get(document[0], 0.2) + 0.1 * taste
                if rng.random() < 0.9**rank * chance:
                    events.append(base | {"kind": kind, "documents": [document]})
                if rng.random() < 0.15:
                    break
    return write_log(path, events)


@pytest.mark.parametrize("method", METHODS)
def test_a_simulated_preference_is_found(tmp_path, method):
    rng = np.random.default_rng(5)
    log = simulated(rng, tmp_path / "log.parquet", method=method, relevant={"a": 0.1, "b": 0.5})
    found = analyze_interleaving(log)
    assert (found.a, found.b, found.methods) == ("old", "new", (method,))
    assert found.verdict == "worse"
    assert found.delta < -0.05
    assert "old is worse than new" in found.summary()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_no_preference_is_found_in_five_percent_at_most(tmp_path, method):
    rng, found = np.random.default_rng(6), []
    for _ in range(60):
        log = simulated(rng, tmp_path / "log.parquet", method=method, relevant={}, users=60)
        found.append(analyze_interleaving(log))
    assert sum(each.verdict != "cannot tell" for each in found) <= 6
    error = statistics.stdev(each.delta for each in found) / math.sqrt(len(found))
    assert abs(statistics.mean(each.delta for each in found)) < 3 * error


def shown(question, documents, teams, user=None, a="x", b="y", **more):
    attributes = {
        "interleaving": "team-draft",
        "interleaving.a": a,
        "interleaving.b": b,
        "interleaving.teams": teams,
        **more,
    }
    return {"kind": "impression", "question": question, "user": user, "documents": documents, "attributes": attributes}


def click(question, document, kind="click"):
    return {"kind": kind, "question": question, "documents": [document]}


def test_clicks_on_results_and_citations_are_credited_once(tmp_path):
    events = [
        shown("q1", ["d1", "d2", "d3"], "AB-", user="u"),
        click("q1", "d1"),
        click("q1", "d1"),
        click("q1", "d1", "citation click"),
        click("q1", "d3"),
        click("q1", "unknown"),
        shown("q2", ["d1", "d2"], "AB", user="u"),
        click("q2", "d2", "citation click"),
        shown("q3", ["d1", "d2"], "AB", user="v"),
        click("q3", "d1"),
        click("q3", "d2"),
        shown("q4", ["d1", "d2"], "AB", user="w"),
        shown("q5", ["d1", "d2"], "A", user="w"),
        click("q5", "d1"),
    ]
    found = analyze_interleaving(write_log(tmp_path / "log.parquet", events))
    assert (found.impressions, found.clicked, found.unusable) == (5, 3, 1)
    assert (found.wins_a, found.wins_b, found.delta) == (1, 1, 0)
    assert (found.users, found.users_a, found.users_b) == (2, 0, 0)
    assert (found.result_clicks, found.citation_clicks) == (3, 2)
    assert found.verdict == "cannot tell"


def preferences(path, rng, *, users, share):
    """Simulate users with impressions of one document of each side, and their clicks."""
    events, gains = [], []
    for user in range(users):
        own = []
        for number in range(rng.geometric(0.4)):
            clicked = [name for name, p in (("a", share), ("b", 0.3)) if rng.random() < p]
            name = f"{user}-{number}"
            events.append(shown(name, ["a", "b"], "AB", user=f"u{user}"))
            events += [click(name, each) for each in clicked]
            if clicked:
                own.append(("a" in clicked) - ("b" in clicked))
        gains += [own] if own else []
    return analyze_interleaving(write_log(path, events)), gains


def test_the_interval_is_that_of_a_slow_bootstrap_over_users(tmp_path):
    rng = np.random.default_rng(8)
    found, gains = preferences(tmp_path / "log.parquet", rng, users=90, share=0.5)
    assert found.users == len(gains)
    assert found.delta == pytest.approx(sum(map(sum, gains)) / sum(map(len, gains)) / 2)
    draws = []
    for _ in range(8000):
        drawn = [gains[n] for n in rng.integers(len(gains), size=len(gains))]
        draws.append(sum(map(sum, drawn)) / sum(map(len, drawn)) / 2)
    error = float(np.std(draws))
    low, high = np.quantile(draws, [0.025, 0.975])
    # With 2,000 draws the quantile has a standard error of 0.06 standard errors.
    assert found.low == pytest.approx(low, abs=0.2 * error)
    assert found.high == pytest.approx(high, abs=0.2 * error)


def test_the_users_that_are_needed_give_the_sign_test_its_power(tmp_path):
    scipy_stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(3)
    found, gains = preferences(tmp_path / "log.parquet", rng, users=60, share=0.36)
    assert found.verdict == "cannot tell"
    up, down = (sum(sign * sum(own) > 0 for own in gains) for sign in (1, -1))
    assert (found.users_a, found.users_b) == (up, down)
    (more,) = (
        int(re.search(r"about ([\d,]+) more", note)[1].replace(",", ""))
        for note in found.table().notes
        if "more" in note
    )
    decided = round((up + down) * (1 + more / len(gains)))
    share = max(up, down) / (up + down)
    reach = next(n for n in range(decided // 2, decided) if sign_test(n, decided - n) < 0.05)
    assert scipy_stats.binom.sf(reach - 1, decided, share) == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize(
    ("p", "low", "high", "verdict"),
    [
        (0.01, 0.1, 0.2, "better"),
        (0.01, -0.2, -0.1, "worse"),
        (0.01, -0.1, 0.2, "cannot tell"),
        (0.05, 0.1, 0.2, "cannot tell"),
        (0.01, 0.0, 0.2, "cannot tell"),
    ],
)
def test_the_test_and_the_interval_have_to_agree(tmp_path, p, low, high, verdict):
    events = [shown("q1", ["d1", "d2"], "AB"), click("q1", "d1")]
    found = analyze_interleaving(write_log(tmp_path / "log.parquet", events))
    assert replace(found, p=p, low=low, high=high).verdict == verdict


def test_an_impression_needs_a_share_for_each_document(tmp_path):
    more = {"interleaving": "probabilistic", "interleaving.shares": "0.75"}
    events = [
        shown("q1", ["d1", "d2"], "AB", **more),
        click("q1", "d2"),
        shown("q2", ["d1", "d2"], "AB"),
        click("q2", "d2"),
    ]
    found = analyze_interleaving(write_log(tmp_path / "log.parquet", events))
    assert (found.impressions, found.unusable, found.clicked) == (2, 1, 1)
    assert (found.wins_a, found.wins_b) == (0, 1)


def test_one_impression_event_for_each_document_is_the_same(tmp_path):
    events = [
        shown("q1", ["d1"], "A"),
        shown("q1", ["d2"], "B"),
        click("q1", "d2"),
        shown("q2", ["d3"], "A"),
        shown("q2", ["d4"], "B"),
        click("q2", "d3"),
        click("q2", "d4"),
    ]
    found = analyze_interleaving(write_log(tmp_path / "log.parquet", events))
    assert (found.impressions, found.wins_a, found.wins_b) == (2, 0, 1)
    assert found.delta == -0.25


def test_probabilistic_shares_divide_the_impression(tmp_path):
    more = {"interleaving": "probabilistic", "interleaving.shares": "0.75,0.5,nan"}
    events = [shown("q1", ["d1", "d2", "d3"], "AB-", **more), click("q1", "d1"), click("q1", "d3")]
    found = analyze_interleaving(write_log(tmp_path / "log.parquet", events))
    assert (found.wins_a, found.wins_b, found.delta) == (0.75, 0.25, 0.25)


def test_a_log_without_one_pair_of_retrievers_is_refused(tmp_path):
    path = tmp_path / "log.parquet"
    with pytest.raises(InputError, match="no impression of interleaved results"):
        analyze_interleaving(write_log(path, [click("q", "d")]))
    both = [shown("q1", ["d"], "A"), shown("q2", ["d"], "A", b="z"), click("q2", "d")]
    with pytest.raises(InputError, match="2 pairs were interleaved: x and y, x and z"):
        analyze_interleaving(write_log(path, both))
    assert analyze_interleaving(path, b="z").b == "z"
    with pytest.raises(InputError, match="no click on an interleaved document"):
        analyze_interleaving(path, b="y")
