"""The page on other tools agrees with our values and with those of installed tools."""

import sys

import pytest
from docs_scripts import docs_script

import rankgauge

other_tools = docs_script("other_tools")
PAGE = other_tools.PAGE.read_text(encoding="utf-8")
KNOWN = other_tools.known_of(PAGE)
CASES = {case.title: case for case in other_tools.CASES}


def skipped(row):
    # ir_measures cannot parse names there.
    return row.tool == "ir_measures" and sys.version_info >= (3, 14)


@pytest.mark.parametrize("title", CASES)
def test_the_page_has_our_numbers_and_they_are_those_of_the_tool(title):
    for tool, name, measure in CASES[title].measures:
        says = KNOWN[title, tool, name]
        assert says != other_tools.UNKNOWN
        case = CASES[title]
        (ours,) = (
            other_tools.rankgauge.evaluate(case.qrels, case.run, other_tools.rankgauge.parse(measure), profile=tool)
            .mean()
            .values()
        )
        assert other_tools.shown(ours) == says, (tool, name)


def test_the_page_has_what_the_tools_say_that_are_installed():
    compared = set()
    for case in CASES.values():
        for row in other_tools.rows(case):
            if row.says != other_tools.UNKNOWN and not skipped(row):
                assert KNOWN[row[:3]] == row.says, row
                compared.add(row.tool)
    assert "pytrec_eval" in compared


def test_every_tool_of_a_profile_is_on_the_page():
    on_page = {tool for _, tool, _ in KNOWN}
    assert on_page == set(rankgauge.evaluation.PROFILES) - {"trec_eval-9", "trec_eval-10"}


def test_the_tables_are_those_that_the_script_makes():
    tables = PAGE.partition(other_tools.START)[2].partition("## Versions")[0]
    made = other_tools.run_again(PAGE).partition(other_tools.START)[2]
    assert made.partition("## Versions")[0] == tables
