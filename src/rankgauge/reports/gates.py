"""A gate's result for people and for machines: terminal, Markdown, JUnit XML, GitHub, JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

from rankgauge.core.escaping import templates
from rankgauge.core.grammar import unknown
from rankgauge.gates.result import GateCheck, GateResult, GateVerdict
from rankgauge.rendering.tables import render
from rankgauge.reports.annotations import MOST, annotation

__all__ = ["report_gate"]

GateForm: TypeAlias = Literal["table", "markdown", "html", "json", "junit", "github"]

_SUMMARY = 1 << 20
_CUT = "\n\n(cut here: the summary of a step may have 1 MiB)\n"
_KINDS: dict[GateVerdict, str] = {
    "FAIL": "error",
    "NOT COMPARABLE": "error",
    "INCONCLUSIVE": "warning",
    "PASS": "notice",
}


def report_gate(
    result: GateResult,
    form: str = "table",
    *,
    strict: bool = False,
    color: bool = False,
    room: int = _SUMMARY,
) -> str:
    """A result as text.

    Args:
        result: Made by :func:`gate`.
        form: ``table`` (for a terminal), ``markdown`` (for the summary of a step), ``html``,
            ``json``, ``junit`` (XML, one case a check) or ``github`` (annotations, at most ten of
            a kind).
        strict: Whether JUnit and annotations show INCONCLUSIVE as a failure.
        color: Whether a table may use the colours of a terminal.
        room: How many bytes Markdown may take.

    Raises:
        UnknownName: For another form.

    Example:
        >>> from rankgauge import Baseline, gate
        >>> qrels = {"q1": {"d1"}, "q2": {"d1"}}
        >>> old = Baseline.from_run(qrels, {"q1": ["d1"], "q2": ["d1"]})
        >>> result = gate(qrels, {"q1": ["x"], "q2": ["d1"]}, baseline=old)
        >>> print(report_gate(result, "github").split(":")[2].split("=")[1])
        rankgauge baseline nDCG@10
    """
    match form:
        case "json":
            return result.to_json()
        case "junit":
            return _junit(result, strict=strict)
        case "github":
            return "".join(f"{line}\n" for line in _annotations(result, strict=strict))
        case "table" | "markdown" | "html":
            losers = result.losers_table()
            tables = [result.table()] + ([losers] if losers.rows else [])
            text = "\n".join(render(table, form, color=color) for table in tables)
            return _fitting(text, room) if form == "markdown" else text
        case _:
            raise unknown("form", form, get_args(GateForm))


def _fitting(text: str, room: int) -> str:
    whole = text.encode()
    if len(whole) <= room:
        return text
    kept = whole[: max(0, room - len(_CUT.encode()))].decode("utf-8", "ignore")
    # At the end of a line, so that no table and no escape is torn.
    kept = kept[: kept.rfind("\n") + 1]
    return kept + _CUT if len((kept + _CUT).encode()) <= room else ""


def _annotations(result: GateResult, *, strict: bool) -> Iterator[str]:
    by_kind: dict[str, list[GateCheck]] = {}
    for check in _worst_first(result):
        kind = _KINDS[check.verdict]
        if strict and check.verdict == "INCONCLUSIVE":
            kind = "error"
        if check.verdict != "PASS" or check.note:
            by_kind.setdefault(kind, []).append(check)
    for kind, checks in by_kind.items():
        shown = checks if len(checks) <= MOST else checks[: MOST - 1]
        for check in shown:
            title = f"rankgauge {check.kind} {check.name}"
            text = check.sentence + (f"; {check.note}" if check.note else "")
            yield annotation(kind, title, f"{check.verdict}: {text}")
        if len(checks) > len(shown):
            more = f"+{len(checks) - len(shown)} more, see the summary of this step"
            yield annotation(kind, "rankgauge", more)


def _worst_first(result: GateResult) -> list[GateCheck]:
    """Failures first; among them what lost most in units of its margin."""

    def key(check: GateCheck) -> tuple[int, float]:
        order = ("FAIL", "NOT COMPARABLE", "INCONCLUSIVE", "PASS").index(check.verdict)
        return order, 0.0 if check.numbers is None else check.numbers.gain / check.numbers.margin

    return sorted(result.checks, key=key)


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


def _junit(result: GateResult, *, strict: bool) -> str:
    cases = [_case(check, strict=strict) for check in result.checks]
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
    how = {
        "FAIL": "failure",
        "NOT COMPARABLE": "error",
        "INCONCLUSIVE": "failure" if strict else "skipped",
        "PASS": "",
    }
    text = check.sentence + (f"; {check.note}" if check.note else "")
    lost = () if check.numbers is None else check.numbers.losers[: MOST - 1]
    return {
        "kind": check.kind,
        "name": check.name,
        "verdict": check.verdict,
        "as": how[check.verdict],
        "text": text,
        "more": "".join(f"\n{q.query}: {q.before:.3f} to {q.after:.3f} {q.moved}" for q in lost),
    }
