"""A search over configurations as text."""

import json

import pytest

from rankgauge.benchmark.exploration import explore
from rankgauge.errors import UnknownName
from rankgauge.reports import Options, render

QRELS = {f"q{n}": {"d": 1} for n in range(50)}


@pytest.fixture(scope="module")
def found():
    def run(_name, configuration):
        return {q: [*"xyz"[: configuration["place"]], "d"] for q in QRELS}, 0.002

    return explore(dict, run, QRELS, {"place": [2, 0, 1]}, measure="RR", start={"place": 3})


def test_it_has_trials_the_comparison_and_the_ablation(found):
    text = " ".join(render(found, "table", Options(full=True)).split())
    for said in (
        "3 of 3 configurations and the current one tried (grid), chosen by RR on 25 queries",
        "best and before on 25 test queries",
        "one setting changed at a time",
        "the best and the current configuration differ in one setting: place",
    ):
        assert said in text


@pytest.mark.parametrize("form", ["markdown", "latex", "html"])
def test_it_has_other_forms(found, form):
    assert "place" in render(found, form)


def test_programs_get_the_trials(found):
    rows = render(found, "csv").splitlines()
    assert rows[0] == 'configuration,place,"RR, tuning",ms/query,'
    assert rows[1].startswith("2,0,1.0,2.0,")
    assert len(rows) == 5
    assert json.loads(render(found, "json"))


def test_another_form_is_refused(found):
    with pytest.raises(UnknownName, match="pdf"):
        render(found, "pdf")
