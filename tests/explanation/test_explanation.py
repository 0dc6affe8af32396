"""explain(): queries, additional information, and output formats."""

import json

import jsonschema
import pytest
from schemas import strict

import rankgauge
from rankgauge import InputError, UnknownName, explain, read_run, sample_path
from rankgauge.formats import fast_trec
from rankgauge.reports import Options, render

QRELS = sample_path("qrels.txt")
BM25 = sample_path("runs/bm25.run")
FULL = Options(full=True)


@pytest.fixture(scope="module")
def found():
    return explain(QRELS, BM25, "nDCG@10")


def test_without_a_query_an_instructive_one_is_chosen_with_a_reason(found):
    evaluation = rankgauge.evaluate(QRELS, BM25, ["nDCG@10", "NumRelRet@10"])
    hits = evaluation.value(found.query, "NumRelRet@10")
    assert 2 <= hits <= 5
    assert 0 < found.value < 1
    assert "two to five relevant documents in the first 10" in found.why
    assert found.mean == evaluation.mean()["nDCG@10"]
    nearest = min(
        abs(evaluation.value(query, "nDCG@10") - found.mean)
        for query in evaluation.query_ids
        if 2 <= evaluation.value(query, "NumRelRet@10") <= 5
    )
    assert abs(found.value - found.mean) == pytest.approx(nearest)


def test_others_are_named_the_lowest_the_middle_and_the_highest(found):
    values = rankgauge.evaluate(QRELS, BM25, "nDCG@10").per_query[:, 0]
    by_name = {other.what: other.value for other in found.others}
    assert by_name["lowest"] == values.min()
    assert by_name["highest"] == values.max()


def test_without_an_instructive_query_any_is_chosen():
    assert explain({"q": {"a": 0}}, {"q": ["a"]}, "AP").query == "q"
    assert explain({"q": {"a": 1}}, {"q": ["a"]}, "AP").why.startswith("of the only query")


def test_a_query_that_the_run_lacks_has_an_empty_ranking():
    found = explain({"q": {"a"}, "p": {"a"}}, {"p": ["a"]}, "AP", "q")
    assert found.rows == ()
    assert found.value == 0
    text = render(found)
    assert "this query is not in the run: an empty ranking" in text
    assert text.startswith("AP = 0 for query q")


def test_ranks_that_the_measure_ignores_are_omitted():
    ranking = [f"d{n:02}" for n in range(40)]
    found = explain({"q": {"d00", "d30"}}, {"q": ranking}, "P@5", "q")
    assert "4 more documents" in render(found)
    text = render(found, "table", FULL)
    assert "not listed: ranks 6 to 40 (below the cut-off), 1 relevant, at 31" in text
    assert "d05" not in text


def test_omitted_ranks_are_notes():
    ranking = [f"d{n:02}" for n in range(40)]
    found = explain({"q": {"d00", "d30"}}, {"q": ranking}, "AP", "q")
    assert "9 more documents" in render(found)
    lines = render(found, "table", FULL).splitlines()
    assert "• not listed: ranks 11 to 30, none relevant" in lines
    assert "• not listed: ranks 32 to 40, none relevant" in lines


def test_a_long_id_is_cut_in_the_middle_so_that_a_line_has_80_columns():
    name = "http://example.org/" + "x" * 200 + "-7"
    run = {"q": [name, "d2"]}
    text = render(explain({"q": {name: 1}}, run, "AP", "q"))
    rows = text.split("\n\n")[0].splitlines()[1:]
    assert max(map(len, rows)) <= 80
    assert "x-7" in text


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_every_form_has_the_same_content(form, found):
    text = render(found, form)
    assert found.steps[-1] in text
    assert "was chosen" in text
    assert "\x1b" not in text


def test_html_is_escaped():
    found = explain({"q": {"<b>": 1}}, {"q": ["<b>"]}, "RR", "q")
    assert "<b>" not in render(found, "html").replace("<strong>", "")
    assert "&lt;b&gt;" in found._repr_html_()


def test_json_is_by_the_published_schema(found):
    undefined = explain({"q": {"a": 0}}, {"q": ["a"]}, "nDCG@10")
    for one in (found, undefined, explain(QRELS, BM25, "IPrecAvg")):
        data = json.loads(one.to_json())
        jsonschema.validate(data, strict("explanation-1"))
        assert len(data["rows"]) == len(one.rows)
    assert json.loads(render(undefined, "json"))["value"] is None


def test_policies_are_those_of_evaluate():
    qrels = {"q": {"a": 1}, "p": {"a": 1}}
    twice = rankgauge.Run.of([("q", "b", 3.0), ("q", "a", 2.0), ("q", "b", 1.0)])
    with pytest.raises(InputError, match="duplicates"):
        explain(qrels, twice, "RR", "q")
    assert explain(qrels, twice, "RR", "q", duplicates="first").value == 0.5
    only = explain(qrels, twice, "RR", duplicates="first", queries=["q"])
    assert (only.mean, only.queries) == (0.5, 1)
    assert explain(qrels, twice, "RR", duplicates="first", queries="intersection").mean == 0.5


def test_a_query_that_is_left_out_is_refused():
    with pytest.raises(InputError, match="is excluded"):
        explain({"q": {"a"}, "p": {"a"}}, {"p": ["a"]}, "AP", "q", queries="intersection")


def test_an_unjudged_query_is_refused_with_judged_ones_listed():
    with pytest.raises(InputError, match="judged queries include: 'q01'"):
        explain(QRELS, BM25, "AP", "q99")


def test_an_unknown_form_is_refused(found):
    with pytest.raises(UnknownName, match="markdown"):
        render(found, "markdwon")


@pytest.mark.parametrize("ties", ["trec", "mean"])
@pytest.mark.parametrize("query", [None, "q07"])
def test_a_run_in_a_file_is_explained_as_one_in_memory(ties, query, monkeypatch):
    monkeypatch.setattr(fast_trec, "_BLOCK", 6000)
    monkeypatch.setattr(fast_trec, "_PIECE", 700)
    found = explain(QRELS, BM25, "nDCG@10", query, ties=ties)
    assert str(found) == str(explain(QRELS, read_run(BM25), "nDCG@10", query, ties=ties))
