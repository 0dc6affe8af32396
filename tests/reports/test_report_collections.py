"""Descriptions of collections as text."""

import csv
import io
import json

import pytest

from rankgauge import Collection, UnknownName, describe_collection, sample_path
from rankgauge.reports import render

INFO = describe_collection(sample_path("qrels.txt").parent)
CLEAN = describe_collection(Collection.of({"d": "a"}, {"q": "b"}), {"q": {"d": 1}})


def test_json_and_csv_hold_every_number():
    found = json.loads(render(INFO, "json"))
    assert (found["documents"], found["queries"]) == (66, 30)
    assert found["judged_share"] == INFO.judged_documents / 66
    rows = {row["what"]: row for row in csv.DictReader(io.StringIO(render(INFO, "csv")))}
    for name, spread in INFO.spreads.items():
        assert float(rows[f"{name}: p95"]["value"]) == spread.p95
        assert float(rows[f"{name}: min"]["value"]) == spread.least
    for one in INFO.findings:
        assert int(rows[one.message]["value"]) == one.evidence.count


def test_a_table_says_what_each_remark_does_to_numbers():
    text = render(INFO)
    assert f"{INFO.judged_share:.1%} of the documents are judged" in text
    for one in INFO.findings:
        assert f"{one.message}: {one.effect}" in text


def test_an_empty_report_has_a_sentence():
    assert "no quality problems found" in render(CLEAN)
    assert ("no quality problems found" in render(INFO, "markdown")) == (not INFO.findings)


def test_an_unknown_form_is_refused():
    with pytest.raises(UnknownName, match="'xml'"):
        render(INFO, "xml")
