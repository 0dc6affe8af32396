"""Reports of a gate: formats of CI systems, within their limits."""

import json
import re
import xml.etree.ElementTree as ET
from importlib.util import find_spec

import jsonschema
import pytest
from schemas import strict

from rankgauge import Baseline, InputError, UnknownName, gate
from rankgauge.cli.gate import shorten
from rankgauge.gates import GateCheck, GateResult
from rankgauge.reports import Options, gate_page, render

QRELS = {f"q{n}": {"d"} for n in range(40)}
OLD = Baseline.from_run(QRELS, {q: ["d", "x"] for q in QRELS})
WORSE = gate(QRELS, {q: ["x", "d"] for q in QRELS}, baseline=OLD)
NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
NASTY = "50 %\r\nbad: a,b <i>&\"' \x00\x1b[31m \ud800 \ufffe \U0001f600"


def _many(number, verdict="FAIL", sentence="bad"):
    checks = tuple(GateCheck("contract", f"q{n}", verdict, sentence) for n in range(number))
    return GateResult("run", checks)


def test_a_page_begins_with_the_verdict_its_reason_and_the_next_step():
    page = gate_page(WORSE)
    for said in (WORSE.sentences()[0], WORSE.next_step(), "Queries with the largest losses"):
        assert said in page
    assert page.index("Verdict</dt>") < page.index("Next step</dt>") < page.index("<table")
    assert page.count(WORSE.sentences()[0]) == 1
    assert "script-src 'none'" in page
    assert set(re.findall(r"https?://[^\s\"'<]+", page)) <= NAMESPACES
    same = gate(QRELS, {q: ["d", "x"] for q in QRELS}, baseline=OLD)
    assert "Check that the run was made with the change" in gate_page(same)
    assert "largest losses" not in gate_page(same)


def test_a_page_shows_gains_in_units_of_their_margins():
    rules = {"measures": {"RR": {"margin": 0.1}, "FirstRel": {"margin": 2.0}}}
    before = Baseline.from_run(QRELS, {q: ["d", "x"] for q in QRELS}, rules)
    found = gate(QRELS, {q: ["x", "d"] for q in QRELS}, rules, baseline=before)
    plot = found.plot()
    (panel,) = plot.panels
    (series,) = panel.series
    # RR falls from 1 to 0.5; the first relevant document is one rank lower.
    assert series.y == pytest.approx((-5.0, -0.5))
    assert panel.ticks == ("baseline RR", "baseline FirstRel")
    assert panel.marks == (-1.0,)
    lower = [check.numbers.lower / check.numbers.margin for check in found.checks]
    assert series.low == pytest.approx(lower)
    if find_spec("matplotlib"):
        assert "to the right of it" in gate_page(found)
    assert "<svg" not in gate_page(_many(1))
    with pytest.raises(InputError, match="no measure was compared"):
        _many(1).plot()


def test_names_in_a_page_are_escaped():
    check = GateCheck("contract", NASTY, "FAIL", NASTY)
    assert "<i>" not in gate_page(GateResult(NASTY, (check,), warnings=(NASTY,)))


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("FAIL", "the checks that failed"),
        ("PASS", "make it the baseline"),
        ("INCONCLUSIVE", "Judge more"),
        ("NOT COMPARABLE", "or write a new one"),
        ("IDENTICAL", "made with the change"),
    ],
)
def test_each_verdict_has_a_next_step(verdict, said):
    assert said in _many(1, verdict).next_step()
    assert "next step: " in render(_many(1, verdict))


def test_annotations_are_at_most_ten_of_a_kind():
    lines = render(_many(25), "github").splitlines()
    assert len(lines) == 10
    assert lines[-1] == "::error title=rankgauge::+16 more, see the summary of this step"
    assert len(render(_many(10), "github").splitlines()) == 10
    both = GateResult("run", _many(25).checks + _many(12, "INCONCLUSIVE").checks)
    assert len(render(both, "github").splitlines()) == 20


def test_annotations_are_escaped_by_the_rules_of_workflow_commands():
    check = GateCheck("contract", NASTY, "FAIL", NASTY)
    (line,) = render(GateResult("run", (check,)), "github").splitlines()
    title, _, message = line.removeprefix("::error title=").partition("::")
    for sign in (":", ",", "\r", "\n"):
        assert sign not in title
    assert "50 %25%0D%0Abad: a,b" in message
    assert "50 %25%0D%0Abad%3A a%2Cb" in title
    assert "\x1b" not in line
    assert "\\x1b" in line


def test_annotations_put_failures_first_and_leave_out_what_passed():
    checks = (*_many(2, "PASS").checks, *_many(1, "INCONCLUSIVE").checks, *_many(1).checks)
    kinds = [line.split(" ")[0] for line in render(GateResult("r", checks), "github").splitlines()]
    assert kinds == ["::error", "::warning"]
    strict = render(GateResult("r", checks), "github", Options(strict=True))
    assert strict.count("::error") == 2


def test_junit_has_a_case_a_check_and_is_valid_xml():
    checks = (
        GateCheck("contract", NASTY, "FAIL", NASTY),
        GateCheck("baseline", "AP", "NOT COMPARABLE", "no"),
        GateCheck("baseline", "RR", "INCONCLUSIVE", "perhaps", "suspect"),
        *WORSE.checks,
        *_many(2, "PASS").checks,
    )
    root = ET.fromstring(render(GateResult(NASTY, checks), "junit"))
    suite = root.find("testsuite")
    assert {k: suite.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6",
        "failures": "2",
        "errors": "1",
        "skipped": "1",
    }
    cases = suite.findall("testcase")
    assert [len(case) for case in cases] == [2, 2, 2, 2, 1, 1]
    assert "50 %" in cases[0].find("failure").get("message")
    assert "\\x00\\x1b[31m \\ud800 \\ufffe \U0001f600" in cases[0].find("failure").get("message")
    assert "q0: 1.000 to 0.631" in cases[3].find("failure").text
    strict = ET.fromstring(render(GateResult("r", checks), "junit", Options(strict=True)))
    assert strict.find("testsuite").get("failures") == "3"


@pytest.mark.parametrize("room", [0, 10, 500, 5000])
def test_the_summary_of_a_step_stays_within_its_room(room):
    text = shorten(render(_many(200), "markdown"), room)
    assert len(text.encode()) <= room
    if room >= 500:
        assert text.endswith("(truncated: the summary of a step is limited to 1 MiB)\n")


def test_the_room_is_counted_in_bytes():
    result = _many(3, sentence="\u00fc" * 300)
    whole = render(result, "markdown")
    short = shorten(whole, len(whole))
    assert len(whole) < len(whole.encode())
    assert len(short.encode()) <= len(whole)


def test_markdown_holds_verdict_reasons_and_queries():
    text = render(WORSE, "markdown")
    assert text.startswith("**FAIL: run**")
    assert "Queries with the largest losses" in text
    assert "| q0 " in text


def test_html_is_escaped():
    nasty = GateResult("<script>", (GateCheck("contract", "<b>", "FAIL", "<i>"),))
    text = render(nasty, "html")
    assert "<script>" not in text
    assert "<i>" not in text


def test_json_is_that_of_the_result():
    assert render(WORSE, "json") == WORSE.to_json() + "\n"


def test_an_unknown_form_is_reported():
    with pytest.raises(UnknownName, match="did you mean junit"):
        render(WORSE, "junti")


def test_json_is_by_the_published_schema():
    schema = strict("gate-1")
    alone = {"measures": {"RR": {}}, "depth": "any"}
    one = Baseline.from_run({"q": {"d"}}, {"q": ["d"]}, alone)
    rules = {
        "measures": {"RR": {"floor": 0.9}, "FirstRel": {"margin": 1.0}},
        "contracts": [{"query": "q0", "must_include": ["d"]}],
        "latency": {"p50": 1.5},
        "depth": "any",
    }
    old = Baseline.from_run(QRELS, {q: ["d", "x"] for q in QRELS}, rules)
    half = {q: ["d"] if n % 2 else ["x", "d"] for n, q in enumerate(QRELS)}
    results = (
        WORSE,
        gate(QRELS, half, rules, baseline=old, anchor=old),
        gate({"q": {"d"}}, {"q": ["x", "d"]}, alone, baseline=one),
        gate(QRELS, {"q0": ["d"]}, baseline=OLD),
        gate({**QRELS, "new": {"d"}}, {q: ["d"] for q in [*QRELS, "new"]}, baseline=OLD),
    )
    assert {result.verdict for result in results} == {"FAIL", "INCONCLUSIVE", "NOT COMPARABLE"}
    for result in results:
        jsonschema.validate(json.loads(result.to_json(), parse_constant=pytest.fail), schema)
    numbers = json.loads(results[2].to_json())["checks"][0]["numbers"]
    assert (numbers["lower"], numbers["upper"], numbers["upper_level"]) == (None, None, None)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(WORSE.to_json()) | {"verdict": "perhaps"}, schema)
