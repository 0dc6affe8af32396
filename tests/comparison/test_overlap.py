"""Rank-biased overlap compared with a slow loop from the definition and with published examples."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import rankgauge
from rankgauge import InputError, MismatchError, Run, rbo
from rankgauge.comparison.overlap import find_common_documents
from rankgauge.data import ranked

LETTERS = "abcdefghij"
RANKINGS = st.lists(st.sampled_from(LETTERS), unique=True, max_size=8)
PATIENCE = st.floats(0.05, 0.97)


def common(one, other, depth):
    """Return the number of documents that the first `depth` ranks of both share."""
    return len(set(one[:depth]) & set(other[:depth]))


def summed(agreements, p):
    """Return the definition: (1 - p) times the sum of p^(d-1) A_d over depths d from 1 on."""
    return (1 - p) * math.fsum(p ** (d - 1) * a for d, a in enumerate(agreements, start=1))


def deep(p):
    """Return a depth beyond which the remaining weight is below float precision."""
    return 30 + int(40 / -math.log(p))


def slow_least(one, other, p):
    """No unseen document is common: the overlap stays constant below the end of the rankings."""
    return summed([common(one, other, d) / d for d in range(1, deep(p))], p)


def slow_most(one, other, p):
    """Every unseen document is common if possible."""
    ends = (len(one), len(other))
    agreements = []
    for d in range(1, deep(p)):
        unseen = sum(max(0, d - end) for end in ends)
        agreements.append(min(d, common(one, other, d) + unseen) / d)
    return summed(agreements, p)


def slow_extrapolated(one, other, p):
    """Extrapolate the agreement at the end of the shorter ranking, plus that of the tail.

    Between both ends, unseen documents of the shorter ranking count as common at the rate of its
    seen ones; below both ends, the agreement is constant.
    """
    short, long = sorted((one, other), key=len)
    if not short:
        return 0.0 if long else math.nan
    s, longest = len(short), len(long)
    rate = common(one, other, s) / s

    def agreement(d):
        at = min(d, longest)
        if at <= s:
            return common(one, other, at) / at
        return (common(one, other, at) + rate * (at - s)) / at

    return summed([agreement(d) for d in range(1, deep(p))], p)


@given(RANKINGS, RANKINGS, PATIENCE)
def test_it_is_the_sum_of_the_definition(one, other, p):
    found = rbo({"q": one}, {"q": other}, p)
    if not one and not other:
        assert math.isnan(found.ext[0])
    else:
        assert found.ext[0] == pytest.approx(slow_extrapolated(one, other, p), abs=1e-12)
    assert found.low[0] == pytest.approx(slow_least(one, other, p), abs=1e-12)
    assert found.low[0] + found.residual[0] == pytest.approx(slow_most(one, other, p), abs=1e-12)


def test_the_example_of_the_paper_agrees_depth_by_depth():
    """Webber et al., figure 3: agreements 0, 0, 2/3, 2/4, 2/5, 2/6, 2/7."""
    one, other = list("abcdefg"), list("zcavwxy")
    agreements = [0, 0, 2 / 3, 2 / 4, 2 / 5, 2 / 6, 2 / 7]
    p = 0.9
    seen = sum((1 - p) * p**d * agreement for d, agreement in enumerate(agreements))
    found = rbo({"q": one}, {"q": other}, p)
    assert found.ext[0] == pytest.approx(seen + p**7 * 2 / 7, abs=1e-15)


def test_the_first_ten_ranks_carry_86_percent_of_the_weight_at_p_of_nine_tenths():
    """Webber et al., section 4.3: RBO_min of ten equal ranks and nothing in common below.

    RBO_min also counts these ten below rank 10; without that, the weight of ten ranks remains.
    """
    ten = [f"d{n}" for n in range(10)]
    one = ten + [f"x{n}" for n in range(3000)]
    other = ten + [f"y{n}" for n in range(3000)]
    assert rbo({"q": one}, {"q": other}, 0.9).low[0] == pytest.approx(0.8556, abs=1e-4)


def test_values_agree_with_manual_calculations():
    """a b c with b a c d at p = 1/2: agreements 0, 1, 1, 3/4 seen, 1 assumed from rank 4 on."""
    found = rbo({"q": list("abc")}, {"q": list("bacd")}, 0.5)
    assert found.ext[0] == pytest.approx(1 / 4 + 1 / 8 + 1 / 16 + 1 / 16, abs=1e-15)
    assert found.common[0] == 0.75


@pytest.mark.parametrize(
    ("one", "other", "p", "said"),
    [
        ("abcde", "bcdae", 0.9, 0.8280000000000001),
        ("abcdefghij", "cazb", 0.98, 0.7284993333333333),
        ("ab", "xyzabcd", 0.5, 0.037797619047619045),
        ("abcdefgh", "hgfedcba", 0.8, 0.33111283809523817),
    ],
)
def test_another_package_gives_the_same_values(one, other, p, said):
    """`rbo_ext` of the package rbo 0.1.3."""
    assert rbo({"q": list(one)}, {"q": list(other)}, p).ext[0] == pytest.approx(said, abs=1e-14)


@given(RANKINGS, RANKINGS, PATIENCE)
def test_it_stays_between_its_bounds_and_is_the_same_both_ways(one, other, p):
    found, back = rbo({"q": one}, {"q": other}, p), rbo({"q": other}, {"q": one}, p)
    for name in ("ext", "low", "residual", "common"):
        assert np.array_equal(getattr(found, name), getattr(back, name), equal_nan=True)
    assert 0 <= found.low[0] <= 1
    if one or other:
        assert found.low[0] - 1e-12 <= found.ext[0] <= found.low[0] + found.residual[0] + 1e-12


@given(RANKINGS.filter(bool), PATIENCE)
def test_a_ranking_against_itself_is_1(ranking, p):
    assert rbo({"q": ranking}, {"q": ranking}, p).ext[0] == 1.0
    renamed = [f"a longer name of {doc}" for doc in ranking]
    assert rbo({"q": ranking}, {"q": renamed}, p).ext[0] == 0.0


@given(st.permutations(LETTERS), st.permutations(LETTERS))
def test_names_of_documents_do_not_matter(one, other):
    renamed = {doc: f"{ord(doc) * 7919 % 101}" for doc in LETTERS}
    again = rbo({"q": [renamed[d] for d in one]}, {"q": [renamed[d] for d in other]})
    assert rbo({"q": one}, {"q": other}).ext[0] == again.ext[0]


def test_p_near_the_ends_of_its_range_gives_finite_values():
    """Near 0 only the first rank counts, near 1 only the assumed agreement far below."""
    one, other = {"q": list("abc")}, {"q": list("adbe")}
    low, high = rbo(one, other, 5e-324), rbo(one, other, 1 - 2**-53)
    assert (low.ext[0], low.low[0], low.residual[0]) == (1.0, 1.0, 0.0)
    assert high.ext[0] == pytest.approx((2 + 2 / 3) / 4, abs=1e-12)
    assert high.low[0] == pytest.approx(0, abs=1e-12)
    assert high.residual[0] == pytest.approx(1, abs=1e-12)


def test_queries_are_independent_and_the_mean_is_over_all():
    one = {"q1": ["a", "b"], "q2": ["c"], "q3": []}
    other = {"q3": [], "q2": ["c", "d"], "q1": ["b", "a"], "q9": ["e"]}
    found = rbo(one, other)
    assert found.query_ids == ("q1", "q2", "q3", "q9")
    assert math.isnan(found.value("q3"))
    assert found.value("q9") == 0.0
    for query in ("q1", "q2"):
        assert found.value(query) == rbo({"q": one[query]}, {"q": other[query]}).value("q")
    assert found.mean() == math.fsum([found.value("q1"), found.value("q2"), 0.0]) / 3
    assert found.notes == ("1 query only in run, an empty ranking in run: 'q9'",)


def test_a_depth_cuts_both_rankings():
    one, other = list("abcdef"), list("bafedcgh")
    cut = rbo({"q": one}, {"q": other}, depth=3)
    assert cut.ext[0] == rbo({"q": one[:3]}, {"q": other[:3]}).ext[0]
    assert cut.depth == 3


def test_rankings_are_those_of_the_scores_under_the_tie_policy():
    one, other = {"q": {"a": 1, "b": 2, "c": 1}}, {"q": ["b", "c", "a"]}
    assert rbo(one, other).ext[0] == 1.0
    assert rbo(one, other, ties="input").ext[0] < 1.0


def test_common_documents_are_a_share_of_the_longer_of_both_tops():
    found = rbo({"q": list("abcdef")}, {"q": list("fab")}, k=4)
    assert found.common[0] == 2 / 4


@pytest.mark.parametrize(
    ("act", "error", "said"),
    [
        (lambda: rbo({"q": ["a"]}, {"q": ["a"]}, 1.0), InputError, "p=1.0 is not valid"),
        (lambda: rbo({"q": ["a"]}, {"q": ["a"]}, 0), InputError, "above 0 and below 1"),
        (lambda: rbo({"q": ["a"]}, {"q": ["a"]}, "x"), InputError, "p='x' is not valid"),
        (lambda: rbo({"q": ["a"]}, {"q": ["a"]}, math.nan), InputError, "p=nan"),
        (lambda: rbo({"q": ["a"]}, {"q": ["a"]}, k=0), InputError, "k=0 is not valid"),
        (lambda: rbo({"q": ["a"]}, {"q": ["a"]}, depth=1.5), InputError, "depth=1.5"),
        (lambda: rbo({"q": ["a"]}, {"1": ["a"]}), MismatchError, "no query in common"),
        (lambda: rbo({}, {}), MismatchError, "run has none"),
        (lambda: rbo({"q": ["a"]}, {"q": ["a"]}).value("q2"), InputError, "has query 'q2'"),
    ],
)
def test_bad_input_is_refused(act, error, said):
    with pytest.raises(error) as caught:
        act()
    assert said in str(caught.value)


def test_it_has_a_short_repr_and_a_table():
    found = rbo(Run.of({"q": ["a"]}, name="old"), Run.of({"q": ["<b>"]}, name="new"))
    assert repr(found) == "<Overlap: old and new: mean RBO 0.0000 over 1 query>"
    assert "<table" in found._repr_html_()
    assert found.table().columns == ("query", "RBO", "RBO_min", "residual", "common@10")


def test_real_runs_agree_with_the_slow_loop(data_folder):
    folder = data_folder / "cranfield" / "runs"
    one, other = (Run.of(folder / f"{name}.run.gz") for name in ("bm25-coarse-scores", "minilm-l6-v2-cosine"))
    found = rbo(one, other, depth=100)
    ranked_one, ranked_other = (rankgauge.data.ranked(run, depth=100) for run in (one, other))
    for query in found.query_ids[:20]:
        wanted = slow_extrapolated(list(ranked_one[query]), list(ranked_other[query]), 0.9)
        assert found.value(query) == pytest.approx(wanted, abs=1e-12)


def test_a_ranking_and_its_beginning_are_not_the_same_top():
    short, long = ranked(Run.of({"q": ["a"]})), ranked(Run.of({"q": ["a", "b"]}))
    for one, other in ((short, long), (long, short)):
        both = find_common_documents(one, other, [b"q"])
        assert (both.same_top(1).tolist(), both.same_top(2).tolist()) == ([True], [False])
