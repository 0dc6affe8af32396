"""The list of measures, and the description of one."""

import csv
import io

import pytest
from command import run

import rankgauge
from rankgauge import UnknownName
from rankgauge.production.metrics import METRICS
from rankgauge.rendering import render_table
from rankgauge.reports import describe, measures_table


def test_every_measure_is_listed():
    text = render_table(measures_table(), "table")
    for reads in ("", "verdicts", "answers"):
        for measure in rankgauge.list_measures(reads):
            assert measure.name in text
    for name in METRICS:
        assert name in text


def test_an_online_metric_is_explained_with_its_command():
    text = describe("idk_rate")
    assert text.startswith("idk_rate: abstentions (I don't know) / all answers")
    assert text.endswith("Computed by: rankgauge logs metrics LOG -m idk_rate\n")


def test_the_list_of_the_command_line_is_grouped_by_command():
    lines = run("measures").stdout.splitlines()
    titles = [line for line in lines if line.startswith("computed by")]
    assert titles == [f"computed by rankgauge {name}" for name in ("evaluate", "answers evaluate", "logs metrics")]
    rare = ("NERR8", "NERR11", "GMBpref", "PairAcc")
    assert not any(line.startswith(rare) for line in lines)
    assert all(name in run("measures", "--full").stdout for name in rare)
    rows = list(csv.DictReader(io.StringIO(run("measures", "--as", "csv").stdout)))
    by_name = {row["measure"]: row["computed by"] for row in rows}
    assert by_name["ContextRelevance"] == by_name["TokenF1"] == "answers evaluate"
    assert (by_name["nDCG"], by_name["thumbs_ratio"]) == ("evaluate", "logs metrics")


@pytest.mark.parametrize("name", [measure.name for measure in rankgauge.list_measures()])
def test_every_measure_is_explained_whole(name):
    text = describe(name)
    assert text.startswith(f"{name}: ")
    for part in ("Use:", "Beware:", "Source:", "Range:", "Parameters:", "Name in trec_eval:"):
        if (
            part != "Parameters:"
            or rankgauge.parse(rankgauge.reports.catalogue.example(getattr(rankgauge.measures, name))).declaration.words
        ):
            assert part in text


def test_a_measure_is_found_by_any_of_its_names():
    assert describe("ndcg_cut_10") == describe("nDCG@5") == describe("NDCG")


def test_an_unknown_measure_shows_the_nearest():
    with pytest.raises(UnknownName, match="did you mean nDCG"):
        describe("ndgc")


def test_a_measure_shows_what_other_tools_call_it():
    text = describe("nDCG")
    assert "  ranx                   ndcg@k, ndcg_burges@k = nDCG(gain=exp)@k\n" in text
    assert "  mteb                   ndcg_at_k\n" in text
    assert "  people                 " in text
    assert "rbp.95 = RBP(p=0.95)" in describe("RBP")
    assert "Names elsewhere" not in describe("FirstRel")


@pytest.mark.parametrize(
    ("name", "message"),
    {
        "SetP": "Equal scores: their order never changes the value.",
        "P": "Equal scores: the mean over all orders is exact.",
        "nDCG": "but with ideal=topk; with ideal=topk a better order may have a lower value.",
        "ERR": "no exact mean over all orders; it can be estimated from random orders",
        "infAP": "random orders; a better order may have a lower value.",
        "INST": "random orders; with residual=True a better order may have a higher value.",
    }.items(),
)
def test_a_measure_says_what_ties_do_to_it(name: str, message: str) -> None:
    assert message in " ".join(describe(name).split())
    assert "Equal scores" not in describe(name, full=False)


def test_a_measure_says_which_implementations_it_lacks() -> None:
    parts = ["compiled core", "SQL", "steps of means over ties"]
    assert f"Optional parts: {', '.join(parts)}; missing: none." in describe("P")
    missing = f"Optional parts: none; missing: {', '.join(parts)}."
    assert missing in " ".join(describe("YAAP").split())
