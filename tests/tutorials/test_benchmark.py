"""The tutorial's benchmark class: signatures, text output, and correct values."""

import inspect
import json

import pytest
from ir_measures import RR, P, R, Success, iter_calc, nDCG

from rankgauge import InputError, RetrievalBenchmark, UnknownName

RELEVANT = {f"q{n}": [f"d{n}", f"e{n}"] for n in range(12)}


def bench():
    made = RetrievalBenchmark()
    for query, docs in RELEVANT.items():
        made.add_query(query, f"text {query}", docs)
    return made


def good(text):
    n = text.removeprefix("text q")
    return [f"d{n}", "x", f"e{n}", "y", "z", "too deep"]


def bad(text):
    n = text.removeprefix("text q")
    return ["x", "y", "z", f"d{n}"]


def test_the_signatures_are_those_of_the_tutorial():
    for name, wanted in {
        "add_query": ["self", "query_id", "query_text", "relevant_docs"],
        "run_evaluation": ["self", "retriever_name", "retriever_fn", "k"],
        "compare_retrievers": ["self"],
    }.items():
        assert list(inspect.signature(getattr(RetrievalBenchmark, name)).parameters) == wanted
    assert inspect.signature(RetrievalBenchmark.run_evaluation).parameters["k"].default == 5


def test_queries_and_results_are_readable():
    made = bench()
    made.add_query("graded", "text graded", {"a": 2, "b": 0})
    assert [query["id"] for query in made.queries] == [*RELEVANT, "graded"]
    assert made.queries[0] == {"id": "q0", "text": "text q0", "relevant": {"d0": 1, "e0": 1}}
    assert made.queries[-1]["relevant"] == {"a": 2, "b": 0}
    assert made.results == {}
    made = bench()
    results = [made.run_evaluation("good", good), made.run_evaluation("bad", bad, k=1)]
    assert made.results == {"good": results[0], "bad": results[1]}


@pytest.mark.parametrize("k", [1, 3, 5])
def test_the_values_are_those_of_ir_measures(k):
    result = bench().run_evaluation("good", good, k=k)
    assert list(result) == ["retriever", "mrr", f"p@{k}", f"r@{k}", "hit_rate", "ndcg"]
    assert type(result) is dict
    assert json.loads(json.dumps(result)) == result
    assert f"p@{k}" in result
    assert result.get(f"r@{k}") == result[f"r@{k}"]
    assert result.get("p@99") is None
    qrels = {q: dict.fromkeys(docs, 1) for q, docs in RELEVANT.items()}
    run = {q: {d: -float(n) for n, d in enumerate(good(f"text {q}"))} for q in RELEVANT}
    wanted = {"mrr": RR, f"p@{k}": P @ k, f"r@{k}": R @ k, "hit_rate": Success @ 99, "ndcg": nDCG @ k}
    for key, measure in wanted.items():
        values = [m.value for m in iter_calc([measure], qrels, run)]
        assert len(values) == 12
        assert result[key] == pytest.approx(sum(values) / 12, abs=1e-12)
    assert result["retriever"] == "good"


def test_mrr_and_hit_rate_are_over_all_that_was_returned():
    found = bench().run_evaluation("bad", bad, k=2)
    assert (found["mrr"], found["hit_rate"], found["p@2"]) == (0.25, 1.0, 0.0)


def test_a_retriever_that_takes_k_is_asked_for_k():
    asked = set()

    def with_k(text, k):
        asked.add(k)
        return bad(text)[:k]

    found = bench().run_evaluation("with k", with_k, k=2)
    assert asked == {2}
    assert (found["mrr"], found["hit_rate"]) == (0.0, 0.0)


def test_the_text_names_the_winner_and_the_measure():
    made = bench()
    made.run_evaluation("bad", bad)
    made.run_evaluation("good", good)
    text = made.compare_retrievers()
    assert text.startswith("# Retriever Comparison\n")
    rows = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    assert [row.split("|")[1].strip() for row in rows] == ["Retriever", "good", "bad"]
    assert "**Winner: good** by MRR (1.0000), before bad (0.2500)." in text
    assert "noise" not in text


def test_a_lead_that_may_be_chance_is_noted():
    made = bench()
    made.run_evaluation("good", good)
    made.run_evaluation("nearly", lambda text: bad(text) if text.endswith("q3") else good(text))
    text = made.compare_retrievers()
    assert "**Winner: good**" in text
    assert "with 12 queries this difference is not distinguishable from noise" in text


def test_equal_retrievers_have_no_winner():
    made = bench()
    made.run_evaluation("one", good)
    made.run_evaluation("two", good)
    assert "**No winner**: one and two have the same MRR." in made.compare_retrievers()


def test_different_k_are_shown_with_the_names():
    made = bench()
    made.run_evaluation("one", good, k=3)
    made.run_evaluation("two", bad, k=5)
    text = made.compare_retrievers()
    assert "one (k = 3)" in text
    assert "P@k" in text


def test_no_results_and_no_queries_are_distinguished():
    assert RetrievalBenchmark().compare_retrievers() == "No results to compare."
    assert bench().compare_retrievers() == "No results to compare."
    with pytest.raises(InputError, match="none with judgments"):
        RetrievalBenchmark().run_evaluation("good", good)


def test_invalid_input_is_an_error():
    made = bench()
    with pytest.raises(InputError, match="already exists"):
        made.add_query("q1", "again", ["d1"])
    with pytest.raises(InputError, match="12 of 12 queries failed; q0: ZeroDivisionError"):
        made.run_evaluation("broken", lambda text: 1 / 0)
    with pytest.raises(UnknownName, match="k=0"):
        made.run_evaluation("good", good, k=0)
    made.run_evaluation("good", good)
    made.add_query("late", "text", ["d1"])
    with pytest.raises(InputError, match="queries were added after 'good' was run"):
        made.compare_retrievers()


def test_async_and_scored_retrievers_are_taken_too():
    async def scored(text):
        return [(name, 1 / (n + 1)) for n, name in enumerate(good(text))]

    made = bench()
    assert dict(made.run_evaluation("scored", scored)) == dict(made.run_evaluation("good", good), retriever="scored")
