"""Reports of a check: for people, for programs, and for lines of files."""

import json
import math
import re

import jsonschema
import pytest
from schemas import strict

from rankgauge import UnknownName, check
from rankgauge.checks import FINDING_KINDS, CheckResult
from rankgauge.core import Effect, Location
from rankgauge.core.findings import COMPARISON_KINDS
from rankgauge.rendering import render_table
from rankgauge.reports import Options, explain_problem, finding_kinds_table, render

NASTY = "50 %\r\nbad: a,b <i>&\"' \x00\x1b[31m \ud800 \ufffe \U0001f600 |x| "
SCHEMA = strict("check-1")


def problem(code="P103", source="a.run", **words):
    words = {"message": "12 ids are written otherwise", "count": 12, "of": 40, **words}
    return FINDING_KINDS[code].finding(source=source, **words)


def result(*problems, inputs=("qrels.txt", "a.run"), notes=()):
    return CheckResult(tuple(problems), inputs, ("nDCG@10",), notes)


def effect(run="a", now=0.0, then=0.352):
    return Effect(run, "nDCG@10", now, then, "ids without leading zeros")


FULL = problem(
    locations=(Location("a.run", 3, "q1", "007"), Location("a.run", 0, "q2"), Location("a.run")),
    effects=(effect(),),
    fix="write the ids as in qrels.txt",
    unit="document",
)


def test_a_problem_has_a_message_a_location_an_effect_and_a_fix():
    lines = render(result(FULL), "table", Options(full=True)).splitlines()
    assert lines[0] == "a.run"
    assert [line.split(maxsplit=1) for line in lines[3:7]] == [
        ["error", "P103 ids-written-differently: 12 ids are written otherwise"],
        ["at", "a.run:3 (query q1, document 007); query q2; a.run"],
        ["effect", "nDCG@10 0.0000 → 0.3520 (ids without leading zeros)"],
        ["fix", "write the ids as in qrels.txt"],
    ]
    assert lines[8:] == [
        "1 error in 2 inputs",
        "• no problems found in qrels.txt",
        "• effect: the mean now → the mean after the change named in parentheses",
        "• --fix FOLDER writes a copy in which P103 is fixed",
        "• details: rankgauge check --explain P103",
    ]


def test_a_warning_is_short_unless_everything_is_wanted():
    found = result(problem("J103", effects=(effect(), effect(now=0.1)), fix="judge more"))
    short, full = render(found), render(found, "table", Options(full=True))
    assert (short.count("effect  "), full.count("effect  ")) == (1, 1)
    assert "judge more" in full
    assert "judge more" not in short
    assert "1 more line, 1 more note hidden; show with --full" in short


def test_problems_are_sorted_by_input_and_severity():
    found = result(problem("P105"), problem("R101"), problem("J103", "qrels.txt"), problem("J101", "qrels.txt"))
    heads = re.findall(r"(?m)^((?:qrels.txt|a.run|error|warning|info|2 errors)\b.*)$", render(found))
    assert [head.split()[:2] for head in heads[:6]] == [
        ["qrels.txt"],
        ["error", "J101"],
        ["warning", "J103"],
        ["a.run"],
        ["error", "R101"],
        ["info", "P105"],
    ]
    assert heads[6] == "2 errors, 1 warning, 1 info in 2 inputs"


def test_fixes_on_request_are_distinguished():
    said = render(result(problem("R104"), problem("R101"), problem("R105")))
    assert "• --fix FOLDER --fix-also CODE writes a copy in which R101, R104 is also fixed" in said
    assert "--fix FOLDER writes a copy" not in said


def test_a_collection_has_its_own_heading():
    found = result(problem("T101", "texts"))
    assert render(found).splitlines()[3].startswith("warning    T101 empty-text")


def test_a_report_without_problems_lists_what_was_checked():
    said = render(result(notes=("no collection was given",)))
    assert said == (
        "no problems found in 2 inputs\n• inputs: qrels.txt, a.run\n"
        f"• checked: {len(FINDING_KINDS)} kinds of findings (rankgauge check --list)\n"
        "• no collection was given\n"
    )


def test_effects_name_their_run_where_there_are_several():
    found = result(problem("J103", effects=(effect("a"), effect("b"))), inputs=("q", "a", "b"))
    assert "effect     a: nDCG@10" in render(found)
    assert "effect     b: nDCG@10" in render(found, "table", Options(full=True))
    many = tuple(effect(f"r{n}") for n in range(10))
    assert "4 more lines, 1 more note hidden; show with --full" in render(result(problem(effects=many)))


def test_effects_on_measures_are_columns_without_unchanged_ones():
    effects = [
        Effect("a", name, 0.25, then, by)
        for by, values in (("this", (0.5, 0.25, 0.75)), ("that", (0.25, 0.25, 0.25)))
        for name, then in zip(("P@5", "R@5", "AP"), values, strict=True)
    ]
    said = render(result(problem(effects=tuple(effects))))
    assert "effect     P@5 0.2500 → 0.5000, AP 0.2500 → 0.7500 (this)\n" in said
    assert "that" not in said.split("fix ")[0]
    assert "R@5" not in said
    said = render(result(problem(effects=tuple(effects[3:]))))
    assert "effect     P@5, R@5, AP: no change in four decimals (that)\n" in said


def test_an_undefined_mean_is_a_dash_in_tables_and_null_in_json():
    found = result(problem(effects=(effect(now=math.nan),)))
    assert "nDCG@10 – → 0.3520" in render(found)
    assert json.loads(found.to_json())["findings"][0]["effects"][0]["before"] is None


def test_the_default_fix_is_that_of_the_kind():
    assert FINDING_KINDS["R106"].fix.split()[0] in render(result(problem("R106")))


def test_no_line_is_wider_than_a_terminal_and_no_control_sign_gets_through():
    long = problem(
        message=NASTY * 20,
        fix=NASTY * 20,
        source=NASTY,
        locations=(Location(NASTY * 9, 1, NASTY * 9, NASTY * 9),),
        effects=(effect(NASTY),),
    )
    said = render(result(long, inputs=("q", NASTY)))
    assert "\x1b" not in said
    assert "\x00" not in said
    words = max(len(word) for word in said.split())
    assert all(len(line) <= max(88, words + 20) for line in said.splitlines())


def test_colours_are_only_where_they_are_asked_for():
    plain, coloured = render(result(FULL)), render(result(FULL), "table", Options(color=True))
    assert "\x1b[" not in plain
    assert coloured.count("\x1b[31;1m") == 1
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


def test_annotations_have_file_and_line_and_are_escaped():
    (line,) = render(result(FULL), "github").splitlines()
    assert line == (
        "::error file=a.run,line=3,title=P103 ids-written-differently::12 ids are written "
        "otherwise; nDCG@10 0.0000 → 0.3520 (ids without leading zeros); fix: write the ids as "
        "in qrels.txt"
    )
    nasty = problem(source="x", message=NASTY, locations=(Location("a,b:c%.run", 2),), fix="m")
    (line,) = render(result(nasty), "github").splitlines()
    assert line.startswith("::error file=a%2Cb%3Ac%25.run,line=2,title=P103")
    assert "50 %25%0D%0Abad: a,b" in line
    assert "\x1b" not in line


def test_annotations_of_a_level_have_a_kind_and_are_at_most_ten():
    found = result(*[problem("P103")] * 25, *[problem("R105")] * 10, problem("P105", locations=(Location("a.run"),)))
    lines = render(found, "github").splitlines()
    assert [sum(line.startswith(f"::{kind} ") for line in lines) for kind in ("error", "warning", "notice")] == [
        10,
        10,
        1,
    ]
    assert lines[9] == "::error title=rankgauge check::+16 more"
    assert lines[-1].startswith("::notice title=P105 query-without-judgments::a.run: 12 ids ")


def test_json_is_by_the_schema_whatever_is_in_it():
    nasty = problem(
        source=NASTY, message=NASTY, locations=(Location(NASTY, 0, NASTY),), effects=(effect(NASTY, math.inf),)
    )
    for found in (result(), result(FULL), result(nasty, problem("M101"), notes=(NASTY,))):
        text = render(found, "json")
        text.encode()
        jsonschema.validate(json.loads(text), SCHEMA)


def test_json_has_all_that_was_found():
    data = json.loads(render(result(FULL, notes=("n",)), "json"))
    assert (data["inputs"], data["measures"], data["notes"]) == (["qrels.txt", "a.run"], ["nDCG@10"], ["n"])
    (found,) = data["findings"]
    assert (found["code"], found["severity"], found["automatic"]) == ("P103", "error", "safe")
    assert (found["count"], found["of"], found["unit"]) == (12, 40, "document")
    assert found["locations"][0] == {"source": "a.run", "line": 3, "query": "q1", "document": "007"}
    assert found["locations"][1]["line"] is None
    assert found["effects"] == [
        {"run": "a", "measure": "nDCG@10", "before": 0.0, "after": 0.352, "condition": "ids without leading zeros"}
    ]


def test_tables_have_a_line_for_each_problem_and_escape_every_text():
    found = result(problem(message=NASTY), problem("P105"))
    assert len(render(found, "csv").splitlines()) >= 3
    assert "\\<i>" in render(found, "markdown")
    for page in (render(found, "html"), found._repr_html_()):
        assert "<i>" not in page
        assert page.count("<tr>") == 5
    assert found.to_columns()["code"] == ["P103", "P105"]
    assert len({len(column) for column in found.to_columns().values()}) == 1


def test_another_form_is_refused():
    with pytest.raises(UnknownName, match="table"):
        render(result(), "pdf")


def test_at_least_a_level_counts_the_worse_ones_too():
    found = result(problem("P105"), problem("R105"), problem("R101"))
    assert [len(found.at_least(level)) for level in ("error", "warning", "info")] == [1, 2, 3]


@pytest.mark.parametrize("code", [*FINDING_KINDS, *COMPARISON_KINDS])
def test_every_code_is_explained(code):
    kind = {**FINDING_KINDS, **COMPARISON_KINDS}[code]
    message = " ".join(explain_problem(code.lower()).split())
    for text in (kind.description, kind.effect, kind.fix):
        assert text in message
    assert explain_problem(kind.name) == explain_problem(code)
    assert ("--fix-also" in message) == (kind.automatic == "on request")


def test_an_unknown_code_shows_the_nearest():
    with pytest.raises(UnknownName, match="J107"):
        explain_problem("J170")


def test_the_list_has_every_code():
    said = render_table(finding_kinds_table(), "table")
    assert all(f"{code} " in said for code in FINDING_KINDS)
    assert all(len(line) <= 100 for line in said.splitlines())


def test_a_result_shows_itself_in_words():
    found = check([("q1", "d1", 1), ("q1", "d1", 2)])
    assert repr(found) == "<CheckResult: 1 error, 1 info>"
