"""Configurations of a planned retriever from the table [explore]."""

import textwrap

import pytest

from rankgauge import BenchmarkPlan, Qrels, RankgaugeError, evaluate, sample_path
from rankgauge.benchmark import explore_plan
from rankgauge.benchmark.plan import PlanBuilder

SAMPLE = sample_path("rankgauge.toml")
HEAD = f"collection = '{SAMPLE.parent}'\ntimed = 0\n"
PLANNED = """
    [retrievers.bm25]
    type = "bm25"
    k1 = 0.9

    [retrievers.both]
    type = "hybrid"
    of = ["bm25", { type = "random" }]
    depth = 20
"""


@pytest.fixture
def plan(tmp_path):
    def written(explore, retrievers=PLANNED):
        path = tmp_path / "rankgauge.toml"
        text = textwrap.dedent(retrievers) + textwrap.dedent(explore)
        path.write_text(HEAD + text, encoding="utf-8")
        return BenchmarkPlan.read(path)

    return written


def test_every_configuration_is_tried_with_that_of_today(plan):
    given = plan("""
        [explore]
        retriever = "both"
        measure = "RR"
        [explore.space]
        "of.0.k1" = [0.2, 0.9]
        depth = [5, 20, 50]
    """)
    before = given.options("both")
    found, bench = explore_plan(given, progress=False)
    tried = [(trial.configuration["of.0.k1"], trial.configuration["depth"]) for trial in found.trials]
    assert tried[0] == (0.9, 20)
    assert sorted(tried) == sorted({(k1, depth) for k1 in (0.2, 0.9) for depth in (5, 20, 50)})
    assert found.before.configuration == {"of.0.k1": 0.9, "depth": 20}
    assert str(found.measure) == "RR"
    assert not any(trial.error for trial in found.trials)
    # Each configuration has a separate journal.
    assert len(list(bench.store.glob("hybrid-*"))) == 6
    assert given.options("both") == before


def test_values_are_those_of_the_retriever_that_the_configuration_describes(plan):
    given = plan("""
        [explore]
        retriever = "bm25"
        measure = "nDCG@10"
        [explore.space]
        k1 = [0.9, 3.0]
        b = [0.0, 1.0]
    """)
    found, bench = explore_plan(given, progress=False)
    assert found.before.configuration == {"k1": 0.9, "b": 0.4}
    for trial in found.trials:
        retriever = PlanBuilder(given, bench).value("", {**given.options("bm25"), **trial.configuration}, "")
        run, _ = bench.runner(timed=0)("again", retriever)
        asked = {query: run[query] for query in found.tuning}
        qrels = Qrels.of({query: bench.qrels[query] for query in found.tuning})
        assert evaluate(qrels, asked, "nDCG@10").mean()["nDCG@10"] == trial.value


@pytest.mark.parametrize(
    ("explore", "said"),
    [
        ("", "no retriever and space"),
        ("[explore]\nretriever = 'bm25'", "no retriever and space"),
        ("[explore]\nretriever = 'bm52'\n[explore.space]\nk1 = [1]", "'bm52'"),
        ("[explore]\nretriver = 'bm25'\n[explore.space]\nk1 = [1]", "'retriver'"),
        ("[explore]\nretriever = 'bm25'\n[explore.space]\nk1 = 1", "explore.space.k1: got 1"),
        ("[explore]\nretriever = 'bm25'\n[explore.space]\nk1 = []", "explore.space.k1: got []"),
        ("[explore]\nretriever = 'both'\n[explore.space]\n'of.7.k1' = [1]", "'of.7' is not part of the retriever"),
        ("[explore]\nretriever = 'bm25'\n[explore.space]\nk11 = [1]", "k11"),
    ],
    ids=[
        "no table",
        "no space",
        "another retriever",
        "another key",
        "a number",
        "no values",
        "no such part",
        "no such option",
    ],
)
def test_a_configuration_that_does_not_fit_is_named(plan, explore, said):
    with pytest.raises(RankgaugeError) as caught:
        explore_plan(plan(explore), progress=False)
    assert said in str(caught.value)
