"""Fusion compared with loops written from the papers in exact fractions, and its invariants."""

import itertools
import math
import random
import statistics
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from strategies import few_scores, ids

from rankgauge import InputError, Run, UnknownName, fuse, write_run
from rankgauge.core.ids import Ids
from rankgauge.data import ranked
from rankgauge.formats import fast_trec
from rankgauge.retrievers import FUSION_METHODS, FUSION_NORMS, Fusion, fuse_files

READS_SCORES = ("combsum", "combmnz", "combanz", "combmin", "combmax", "combmed", "wsum")
READS_RANKS = ("rrf", "isr", "rbc", "borda", "condorcet")
WEIGHTED = ("wsum", "rrf", "rbc", "borda", "condorcet")

# ---- independent checks: one query, runs as dictionaries of document to score


def ranking(scores):
    """Rank as trec_eval does: score descending, then document id descending by its bytes."""
    return sorted(scores, key=lambda doc: (scores[doc], doc.encode()), reverse=True)


def ranks(scores):
    return {doc: place for place, doc in enumerate(ranking(scores), start=1)}


def normed(scores, norm):
    """Return the scores of one query of one run, in exact fractions (except for the root)."""
    exact = {doc: Fraction(score) for doc, score in scores.items()}
    if norm == "none" or not exact:
        return exact
    n, low, high = len(exact), min(exact.values()), max(exact.values())
    if norm == "rank":
        return {doc: 1 - Fraction(rank - 1, n) for doc, rank in ranks(scores).items()}
    if norm == "min-max":
        return {d: (s - low) / (high - low) if high > low else Fraction(1) for d, s in exact.items()}
    whole = sum(s - low for s in exact.values())
    if norm == "sum":
        return {d: (s - low) / whole if whole else Fraction(1, n) for d, s in exact.items()}
    mean = sum(exact.values()) / n
    variance = sum((s - mean) ** 2 for s in exact.values()) / n
    # The root to 200 digits.
    root = Fraction(math.isqrt(int(variance * 10**400)), 10**200) or Fraction(1)
    return {d: (s - mean) / root for d, s in exact.items()}


def comb(combine):
    def fused(runs, words):
        columns = [normed(scores, words.norm) for scores in runs]
        docs = set().union(*columns)
        return {doc: combine([c[doc] for c in columns if doc in c]) for doc in docs}

    return fused


def added(term):
    """Return a sum over the runs that retrieved a document."""

    def fused(runs, words):
        result = {}
        for scores, weight in zip(runs, words.weights, strict=True):
            column = normed(scores, words.norm) if words.norm else {}
            for doc, rank in ranks(scores).items():
                more = term(column[doc] if column else rank, words)
                result[doc] = result.get(doc, 0) + Fraction(weight) * more
        return result

    return fused


def isr(runs, _):
    places = [ranks(scores) for scores in runs]
    found = {doc: [p[doc] for p in places if doc in p] for doc in set().union(*places)}
    return {doc: len(at) * sum(Fraction(1, r * r) for r in at) for doc, at in found.items()}


def borda(runs, words):
    """Aslam and Montague 2001: c, c - 1, ... points; unranked documents share the rest."""
    docs = set().union(*runs)
    result = dict.fromkeys(docs, Fraction(0))
    for scores, weight in zip(runs, words.weights, strict=True):
        if not scores:
            continue
        points = list(range(len(docs), 0, -1))
        for doc in ranking(scores):
            result[doc] += Fraction(weight) * points.pop(0)
        for doc in docs - set(scores):
            result[doc] += Fraction(weight) * Fraction(sum(points), len(points))
    return result


def majority(runs, weights):
    """Montague and Aslam 2002: a beats b by the runs ranking it higher; unranked is last."""
    docs = sorted(set().union(*runs))
    places = [ranks(scores) for scores in runs]

    def beats(a, b):
        votes = Fraction(0)
        for place, weight in zip(places, weights, strict=True):
            mine, theirs = place.get(a, math.inf), place.get(b, math.inf)
            votes += Fraction(repr(weight)) * ((mine < theirs) - (mine > theirs))
        return votes > 0

    return docs, {(a, b): beats(a, b) for a in docs for b in docs if a != b}


def condorcet(runs, words):
    docs, beats = majority(runs, words.weights)
    return {a: Fraction(sum(beats[a, b] - beats[b, a] for b in docs if b != a)) for a in docs}


BY_LOOP = {
    "rrf": added(lambda rank, words: 1 / (Fraction(words.k) + rank)),
    "isr": isr,
    "rbc": added(lambda rank, words: (1 - Fraction(words.phi)) * Fraction(words.phi) ** (rank - 1)),
    "borda": borda,
    "condorcet": condorcet,
    "combsum": comb(sum),
    "combmnz": comb(lambda found: sum(found) * len(found)),
    "combanz": comb(lambda found: sum(found) / len(found)),
    "combmin": comb(min),
    "combmax": comb(max),
    "combmed": comb(statistics.median),
    "wsum": added(lambda score, _: score),
}

# ---- runs

# Unprintable characters are shown escaped, so such an id could not be found in the output.
_ids = ids.filter(str.isprintable)
_scores = st.one_of(few_scores, st.floats(-1000, 1000, width=32, allow_subnormal=False))


@st.composite
def several(draw, scores=_scores):
    """Two to five runs of a few queries on the same few documents; some queries are missing."""
    docs = draw(st.lists(_ids, min_size=1, max_size=8, unique=True))
    result = []
    for _ in range(draw(st.integers(2, 5))):
        run = {}
        for query in draw(st.lists(st.sampled_from(["q1", "q2", "é3"]), unique=True, min_size=1)):
            found = draw(st.lists(st.sampled_from(docs), unique=True, min_size=1))
            run[query] = {doc: draw(scores) for doc in found}
        result.append(run)
    return result


_weights = st.sampled_from((0.1, 0.2, 0.3, 0.5, 1.0, 2.5))


@st.composite
def tasks(draw, methods=tuple(BY_LOOP)):
    runs = draw(several())
    method = draw(st.sampled_from(methods))
    words = {}
    if method in READS_SCORES:
        words["norm"] = draw(st.sampled_from(tuple(FUSION_NORMS)))
    if method == "wsum" or (method in WEIGHTED and draw(st.booleans())):
        words["weights"] = tuple(draw(_weights) for _ in runs)
    if method == "rrf":
        words["k"] = draw(st.sampled_from((0, 1, 60, 0.5, 1000)))
    if method == "rbc":
        words["phi"] = draw(st.sampled_from((0.25, 0.5, 0.8, 0.99)))
    return runs, method, words


def expected(runs, method, words):
    """Return query to document to exact score."""
    defaults = {"norm": None, "weights": [1.0] * len(runs), "k": 60, "phi": 0.8}
    full = SimpleNamespace(**(defaults | words))
    queries = set().union(*runs)
    return {q: BY_LOOP[method]([run.get(q, {}) for run in runs], full) for q in queries}


def plain(run):
    return {query: dict(docs) for query, docs in run.items()}


def same(found, wanted):
    assert set(found) == set(wanted)
    for query, docs in wanted.items():
        assert set(found[query]) == set(docs)
        for doc, score in docs.items():
            assert found[query][doc] == pytest.approx(float(score), rel=1e-12, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("method", BY_LOOP)
@given(data=st.data())
def test_every_method_and_norm_agrees_with_its_loop(method, data):
    # All methods in turn: random draws would rarely test some of the twelve.
    runs, method, words = data.draw(tasks((method,)))
    same(fuse(runs, method, **words), expected(runs, method, words))


def test_all_methods_and_norms_have_a_loop():
    assert set(BY_LOOP) == set(FUSION_METHODS)
    assert set(READS_RANKS) | set(READS_SCORES) == set(FUSION_METHODS)


@given(tasks(methods=("rrf", "isr", "borda", "condorcet")))
def test_methods_of_ranks_are_the_exact_fractions_rounded_once(task):
    runs, method, words = task
    found, wanted = fuse(runs, method, **words), expected(runs, method, words)
    for query, docs in wanted.items():
        assert dict(found[query]) == {doc: float(score) for doc, score in docs.items()}


def test_equal_sums_of_different_fractions_are_ties():
    """1/70 + 1/105 = 1/84 + 1/84, but their float sums differ in the last bit."""
    first = [f"a{n:02}" for n in range(1, 50)]
    second = list(first)
    first[9], second[44] = "x", "x"  # ranks 10 and 45
    first[23], second[23] = "y", "y"  # rank 24 twice
    found = fuse([{"q": first}, {"q": second}])["q"]
    assert found["x"] == found["y"] == 1 / 42


@given(tasks(), st.randoms(use_true_random=False))
def test_the_order_of_runs_queries_and_documents_changes_nothing(task, rng):
    runs, method, words = task
    order = list(range(len(runs)))
    rng.shuffle(order)
    shuffled = []
    for number in order:
        queries = list(runs[number].items())
        rng.shuffle(queries)
        shuffled.append({q: dict(rng.sample(list(d.items()), len(d))) for q, d in queries})
    other = dict(words)
    if "weights" in words:
        other["weights"] = [words["weights"][number] for number in order]
    found, again = fuse(runs, method, **words), fuse(shuffled, method, **other)
    assert {q: list(docs.items()) for q, docs in found.items()} == {q: list(docs.items()) for q, docs in again.items()}


@given(tasks())
def test_it_is_written_in_rank_order_and_equal_scores_by_id_descending(task):
    runs, method, words = task
    found = fuse(runs, method, **words)
    assert ranked(found) == found
    for docs in found.values():
        keys = [(score, doc.encode()) for doc, score in docs.items()]
        assert keys == sorted(keys, reverse=True)


@given(tasks())
def test_queries_are_independent(task):
    runs, method, words = task
    whole = fuse(runs, method, **words)
    for query in whole:
        alone = [{q: docs for q, docs in run.items() if q == query} for run in runs]
        assert fuse(alone, method, **words)[query] == whole[query]


@given(tasks(methods=READS_RANKS))
def test_methods_of_ranks_see_ranks_only(task):
    runs, method, words = task
    steps = [{q: ranking(docs) for q, docs in run.items()} for run in runs]
    assert plain(fuse(runs, method, **words)) == plain(fuse(steps, method, **words))


@given(tasks(methods=READS_SCORES), st.sampled_from((0.25, 2.0, 1024.0)))
def test_another_scale_changes_nothing_once_normalized(task, factor):
    runs, method, words = task
    assume(words["norm"] != "none")
    wider = [{q: {d: s * factor for d, s in docs.items()} for q, docs in r.items()} for r in runs]
    assert plain(fuse(wider, method, **words)) == plain(fuse(runs, method, **words))


@given(tasks())
def test_a_prefix_to_all_ids_changes_no_score(task):
    runs, method, words = task
    renamed = [{q: {"p-" + d: s for d, s in docs.items()} for q, docs in r.items()} for r in runs]
    found, again = fuse(runs, method, **words), fuse(renamed, method, **words)
    for query, docs in found.items():
        assert {"p-" + doc: score for doc, score in docs.items()} == again[query]


@given(tasks(methods=WEIGHTED))
def test_a_run_of_weight_0_takes_no_part(task):
    runs, method, words = task
    weights = words.get("weights", (1.0,) * len(runs))
    more = [*runs, {"q1": {"only-here": 1.0}, "q9": {"d": 1.0}}]
    found = fuse(more, method, **{**words, "weights": (*weights, 0)})
    wanted = fuse(runs, method, **{**words, "weights": weights})
    assert {q: docs for q, docs in found.items() if docs} == plain(wanted)


@given(several())
def test_a_condorcet_winning_set_ranks_above_all_others(runs):
    """The strongly connected components of the majority graph (ties: both ways) stay in order."""
    for query, found in fuse(runs, "condorcet").items():
        docs, beats = majority([run.get(query, {}) for run in runs], [1.0] * len(runs))
        reach = {(a, b): a == b or not beats.get((b, a)) for a in docs for b in docs}
        for middle, a, b in itertools.product(docs, repeat=3):
            reach[a, b] |= reach[a, middle] and reach[middle, b]
        for a, b in itertools.permutations(docs, 2):
            if not reach[b, a]:
                assert found[a] > found[b]


@given(several())
def test_bounds_of_the_methods(runs):
    for method in ("combanz", "combmin", "combmax", "combmed"):
        for docs in fuse(runs, method).values():
            assert all(0 <= score <= 1 for score in docs.values())
    for docs in fuse(runs, "combsum").values():
        assert all(0 <= score <= len(runs) for score in docs.values())
    for docs in fuse(runs, "rrf").values():
        assert all(0 < score <= len(runs) / 61 for score in docs.values())


# ---- manual examples


def test_a_cycle_of_majorities_is_a_tie_above_its_followers():
    runs = [{"q": ["a", "b", "c", "z"]}, {"q": ["b", "c", "a", "z"]}, {"q": ["c", "a", "b", "z"]}]
    assert dict(fuse(runs, "condorcet")["q"]) == {"c": 1.0, "b": 1.0, "a": 1.0, "z": -3.0}
    assert list(fuse(runs, "condorcet")["q"]) == ["c", "b", "a", "z"]


def test_votes_count_weights_as_they_are_written():
    """0.1 + 0.2 is above 0.3 in binary, but as votes they are equal."""
    runs = [{"q": ["a", "b"]}, {"q": ["a", "b"]}, {"q": ["b", "a"]}]
    assert dict(fuse(runs, "condorcet", weights=(0.1, 0.2, 0.3))["q"]) == {"b": 0.0, "a": 0.0}


def test_votes_of_many_digits_are_counted_exactly():
    runs = [{"q": ["a", "b"]}, {"q": ["a", "b"]}, {"q": ["b", "a"]}]
    even = fuse(runs, "condorcet", weights=(0.1234567, 1000.1, 1000.2234567))["q"]
    assert dict(even) == {"b": 0.0, "a": 0.0}
    more = fuse(runs, "condorcet", weights=(0.1234568, 1000.1, 1000.2234567))["q"]
    assert dict(more) == {"a": 1.0, "b": -1.0}


def test_borda_splits_the_points_that_are_left_among_the_unranked():
    runs = [{"q": ["a", "b", "c", "d", "e"]}, {"q": ["e"]}]
    assert dict(fuse(runs, "borda")["q"]) == {"a": 7.5, "b": 6.5, "e": 6.0, "c": 5.5, "d": 4.5}


def test_a_query_that_a_run_lacks_is_fused_from_the_others():
    found = fuse([{"q1": ["a"], "q2": ["b", "c"]}, {"q1": ["a", "d"]}], "borda")
    assert dict(found["q2"]) == {"b": 2.0, "c": 1.0}
    assert list(found) == ["q1", "q2"]


@pytest.mark.parametrize(("norm", "score"), [("min-max", 1.0), ("z-score", 0.0), ("sum", 0.5), ("none", 3.0)])
def test_equal_scores_are_normalized_as_documented(norm, score):
    found = fuse([{"q": {"a": 3, "b": 3}}, {"q": {"c": 1, "d": 0}}], "combmax", norm=norm)["q"]
    assert found["a"] == found["b"] == score


def test_ranks_in_a_run_are_those_of_the_policy():
    runs = [{"q": {"a": 1.0, "b": 1.0}}, {"q": {"a": 1.0, "b": 1.0}}]
    assert list(fuse(runs)["q"]) == ["b", "a"]
    assert list(fuse(runs, ties="input")["q"]) == ["a", "b"]


def test_scores_that_nearly_vanish_or_overflow_are_still_normalized():
    for scale in (5e-324, 1e-300, 1e100):
        runs = [{"q": {"a": scale, "b": 0.0}}, {"q": {"a": scale, "b": -scale}}]
        for norm in ("min-max", "sum", "z-score"):
            found = fuse(runs, "combsum", norm=norm)["q"]
            assert found == {"a": 2.0, "b": -2.0 if norm == "z-score" else 0.0}


def test_a_score_beyond_1e100_is_refused_by_methods_that_add_scores():
    runs = [{"q": {"a": 1e200}}, {"q": {"a": -1e300}}]
    with pytest.raises(InputError, match="beyond 1e\\+100"):
        fuse(runs, "combsum")
    assert fuse(runs)["q"] == {"a": 2 / 61}


def test_ids_with_equal_hashes_are_distinguished(monkeypatch):
    monkeypatch.setattr(Ids, "hashes", lambda ids: np.zeros(len(ids), dtype=np.uint64))
    one, two = "x" * 140 + "1", "x" * 140 + "2"
    plainer = {one: "1", two: "2", "d": "d"}
    runs = [{"q": [one, "d", two], "p": [one]}, {"q": [two, one, "d"], "p": [two]}]
    renamed = [{q: [plainer[doc] for doc in docs] for q, docs in run.items()} for run in runs]
    found, wanted = fuse(runs), fuse(renamed)
    for query, docs in found.items():
        assert {plainer[doc]: score for doc, score in docs.items()} == wanted[query]


def test_many_queries_come_out_as_one_by_one():
    """More rows than one block has."""
    rng = np.random.default_rng(3)

    def some():
        docs = [f"d{doc}" for doc in rng.permutation(900)[:400]]
        return dict(zip(docs, rng.random(400).tolist(), strict=True))

    runs = [{f"q{n}": some() for n in rng.permutation(200)} for _ in range(2)]
    whole = fuse(runs, "combmnz")
    for query in ("q0", "q99", "q199"):
        alone = fuse([{query: run[query]} for run in runs], "combmnz")
        assert list(alone[query].items()) == list(whole[query].items())


def test_the_run_records_its_method_and_sources():
    runs = {"bm25": {"q": ["a"]}, "dense": {"q": ["b"]}}
    found = fuse(runs, "CombSUM", norm="zmuv", name="both")
    assert found.name == "both"
    assert found.settings["fusion"] == {"method": "combsum", "norm": "z-score", "runs": ["bm25", "dense"]}
    assert fuse(runs, weights={"dense": 1, "bm25": 2}).settings["fusion"]["weights"] == [2.0, 1.0]
    assert fuse(runs).name == "rrf"


A, B = {"q": ["a", "b"]}, {"q": ["b", "c"]}


@pytest.mark.parametrize(
    ("runs", "words", "error", "said"),
    [
        ([A], {}, InputError, "got 1 run, expected two or more"),
        ([], {}, InputError, "got 0 runs"),
        ("a.run", {}, InputError, "got str, expected runs"),
        (7, {}, InputError, "got int"),
        ([A, B], {"method": "rff"}, UnknownName, "did you mean rrf"),
        ([A, B], {"method": None}, UnknownName, "unknown fusion method"),
        ([A, B], {"method": "combsum", "norm": "minmax2"}, UnknownName, "did you mean min-max"),
        ([A, B], {"norm": "min-max"}, InputError, "rrf has no parameter norm"),
        ([A, B], {"method": "combsum", "k": 10}, InputError, "combsum has no parameter k"),
        ([A, B], {"method": "combmnz", "weights": (1, 2)}, InputError, "has no parameter weights"),
        ([A, B], {"method": "wsum"}, InputError, "wsum needs a weight for each run"),
        ([A, B], {"weights": (1,)}, InputError, "got 1 weight for 2 runs"),
        ([A, B], {"weights": (0, 0)}, InputError, "all weights are 0"),
        ([A, B], {"weights": (1, -1)}, InputError, "a weight=-1 is not valid"),
        ([A, B], {"weights": (1, math.nan)}, InputError, "a weight=nan"),
        ([A, B], {"weights": (1, "x")}, InputError, "a weight='x'"),
        ([A, B], {"weights": 3}, InputError, "got 3 for the weights"),
        ([A, B], {"weights": {"a": 1}}, InputError, "duplicate run name 'run'"),
        ({"a": A, "b": B}, {"weights": {"a": 1}}, InputError, "pass one for each of: a, b"),
        ([A, B], {"method": "condorcet", "weights": (1e-9, 1e90)}, InputError, "as votes"),
        ([A, B], {"k": -1}, InputError, "k=-1 is not valid"),
        ([A, B], {"k": "sixty"}, InputError, "k='sixty'"),
        ([A, B], {"method": "rbc", "phi": 1}, InputError, "phi=1 is not valid"),
        ([A, B], {"ties": "best"}, UnknownName, "ties='best'"),
        ([[("q", "d", 1.0), ("q", "d", 2.0)], B], {}, InputError, "occurs twice for query 'q'"),
    ],
)
def test_impossible_fusions_are_refused(runs, words, error, said):
    with pytest.raises(error, match=said.replace("(", r"\(")):
        fuse(runs, **words)


def test_runs_without_common_queries_or_documents_are_combined():
    found = fuse([{"q1": ["a"]}, {"q2": ["b"]}])
    assert plain(found) == {"q1": {"a": 1 / 61}, "q2": {"b": 1 / 61}}


@pytest.mark.slow
def test_it_agrees_with_the_stored_fusion_of_another_program(data_folder):
    """Reciprocal ranks of BM25 and MiniLM on Cranfield, k=60, fused by another program."""
    folder = data_folder / "cranfield" / "runs"
    names = ("bm25-lucene-k0.9-b0.4-stem", "minilm-l6-v2-cosine")
    theirs = Run.of(folder / "rrf-bm25-minilm-k60.run.gz")
    ours = fuse([folder / f"{name}.run.gz" for name in names], ties="input")
    assert set(ours) == set(theirs)
    for query, docs in theirs.items():
        for doc, score in docs.items():
            assert ours[query][doc] == pytest.approx(score, rel=1e-12)


def test_the_median_of_two_scores_is_between_them():
    made = fuse([{"q": {"a": 1.0}}, {"q": {"a": 4.0}}], "combmed", norm="none")
    assert dict(made["q"]) == {"a": 2.5}


@pytest.mark.parametrize("method", ["rrf", "combsum", "borda", "rbc"])
@pytest.mark.parametrize("seed", range(6))
def test_files_are_fused_some_queries_at_a_time_as_runs_in_memory(method, seed, tmp_path, monkeypatch):
    dice = random.Random(seed)
    monkeypatch.setattr(fast_trec, "_BLOCK", 2000)
    monkeypatch.setattr(fast_trec, "_PIECE", 400)
    paths = []
    for name in ("a", "b", "c"):
        queries = [q for q in range(60) if dice.random() < 0.8]
        if seed % 3 == 1:  # in other orders
            dice.shuffle(queries)
        lines = [
            f"q{q} Q0 d{doc} 1 {dice.randrange(9)} {name}\n"
            for q in queries
            for doc in dice.sample(range(20), dice.randrange(1, 15))
        ]
        if seed == 5 and name == "b":  # a query in two places
            lines.append(f"{lines[0].split()[0]} Q0 e1 1 0.5 b\n")
        paths.append(tmp_path / f"{name}.run")
        paths[-1].write_text("".join(lines))
    how, queries = fuse_files(paths, tmp_path / "streamed.run", Fusion(method))
    made = fuse([Run.of(path) for path in paths], method)
    write_run(made, tmp_path / "whole.run")
    assert (tmp_path / "streamed.run").read_bytes() == (tmp_path / "whole.run").read_bytes()
    assert (how.method, queries) == (method, len(made))


def test_a_document_twice_in_a_file_is_named_with_its_lines(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("q Q0 d 1 2 t\nq Q0 e 2 1 t\nq Q0 d 3 0.5 t\n")
    with pytest.raises(InputError, match="lines 1 and 3"):
        fuse_files([tmp_path / "a", tmp_path / "b"], tmp_path / "out.run")
    assert not (tmp_path / "out.run").exists()
