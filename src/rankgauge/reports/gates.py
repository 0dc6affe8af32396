"""Reports on gates: terminal, HTML, Markdown, JUnit XML, GitHub annotations, JSON."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

from rankgauge.core.escaping import templates
from rankgauge.core.text import keep, many
from rankgauge.gates.result import UNSURE, GateCheck, GateResult, GateVerdict
from rankgauge.reports.registry import MOST, Annotation, Options, Report, annotation_lines
from rankgauge.reports.sections import Section, page

_KINDS: dict[GateVerdict, str] = {
    "FAIL": "error",
    "NOT COMPARABLE": "error",
    "INCONCLUSIVE": "warning",
    "PASS unless rare collapse": "warning",
    "IDENTICAL": "notice",
    "PASS": "notice",
}


def gate_page(result: GateResult) -> str:
    """Return the result of a gate as one self-contained HTML file without scripts.

    It has the verdict with reasons, the next step, the checks, the queries that lost, and, with
    ``rankgauge[plots]``, a plot of the gains.

    Args:
        result: Returned by :func:`rankgauge.gate`.

    Example:
        >>> import rankgauge
        >>> before = rankgauge.Baseline.from_run({"q": {"d": 1}}, {"q": ["d"]})
        >>> page = gate_page(rankgauge.gate({"q": {"d": 1}}, {"q": ["d"]}, baseline=before))
        >>> page.splitlines()[0], "<dt>Verdict</dt><dd>IDENTICAL" in page
        ('<!DOCTYPE html>', True)
    """
    return page(
        "base.html",
        title=f"Gate of {result.run_name}",
        date="",
        facts=[result.verdict, many(len(result.checks), "check")],
        bottom_line=tuple(_bottom_line(result)),
        warnings=result.warnings,
        sections=tuple(_sections(result)),
    )


def _bottom_line(result: GateResult) -> tuple[tuple[str, str], ...]:
    limits = (("Limitation", text) for text in result.limits()[:1])
    return ("Verdict", result.sentences()[0]), *limits, ("Next step", result.next_step())


def _sections(result: GateResult) -> tuple[Section, ...]:
    table, losers = result.table(), result.losers_table()
    # The bottom line shows the first sentence and the first limit.
    said = (*result.limits()[1:], *result.sentences()[1:])
    compared = any(check.numbers for check in result.checks)
    plots = (result.plot(),) if compared and find_spec("matplotlib") else ()
    # A single check needs no column of its own.
    first = 1 if len({row[0] for row in losers.rows}) == 1 else 0
    shown = replace(losers.part(columns=range(first, len(losers.columns))), title="")
    return keep(
        Section("Checks", (replace(table, title="", notes=said), *plots)),
        losers.rows and Section(losers.title, (shown,)),
        Section("Method", result.notes),
    )


def _github(result: GateResult, options: Options) -> str:
    verdicts = list(_KINDS)
    # Failures come first, sorted by loss relative to the margin.
    worst_first = sorted(
        result.checks,
        key=lambda check: (
            verdicts.index(check.verdict),
            0.0 if check.numbers is None else check.numbers.gain / check.numbers.margin,
        ),
    )
    annotations = (
        Annotation(
            "error" if options.strict and check.verdict in UNSURE else _KINDS[check.verdict],
            f"rankgauge {check.kind} {check.name}",
            f"{check.verdict}: {_text(check)}",
        )
        for check in worst_first
        if check.verdict != "PASS" or check.note
    )
    return annotation_lines(annotations, "rankgauge", ", see the summary of this step")


def _text(check: GateCheck) -> str:
    return check.sentence + (f"; {check.note}" if check.note else "")


_JUNIT = """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="rankgauge" tests="{{ cases|length }}" failures="{{ failures }}" errors="{{ errors }}">
<testsuite name="rankgauge gate {{ run }}" tests="{{ cases|length }}" failures="{{ failures }}" errors="{{ errors }}" skipped="{{ skipped }}">
{%- for case in cases %}
<testcase classname="rankgauge.gate.{{ case.kind }}" name="{{ case.name }}">
{%- if case.as %}<{{ case.as }} message="{{ case.text }}"{% if case.as != "skipped" %} type="{{ case.verdict }}"{% endif %}>{{ case.more }}</{{ case.as }}>{% endif -%}
<system-out>{{ case.verdict }}: {{ case.text }}</system-out></testcase>
{%- endfor %}
</testsuite>
</testsuites>
"""  # noqa: E501 - as it is printed


def _junit(result: GateResult, options: Options) -> str:
    cases = [_case(check, strict=options.strict) for check in result.checks]
    counts = [case["as"] for case in cases]
    return (
        templates(keep_trailing_newline=True)
        .from_string(_JUNIT)
        .render(
            run=result.run_name,
            cases=cases,
            failures=counts.count("failure"),
            errors=counts.count("error"),
            skipped=counts.count("skipped"),
        )
    )


def _case(check: GateCheck, *, strict: bool) -> dict[str, str]:
    how = {"FAIL": "failure", "NOT COMPARABLE": "error"} | dict.fromkeys(UNSURE, "failure" if strict else "skipped")
    lost = () if check.numbers is None else check.numbers.losers[: MOST - 1]
    return {
        "kind": check.kind,
        "name": check.name,
        "verdict": check.verdict,
        "as": how.get(check.verdict, ""),
        "text": _text(check),
        "more": "".join(f"\n{q.query}: {q.before:.3f} to {q.after:.3f} {q.moved}" for q in lost),
    }


REPORTS = {"GateResult": Report(formats={"junit": _junit, "github": _github})}
