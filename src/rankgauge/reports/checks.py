"""Reports on checks (for people, for programs, and as annotations) and on collections."""

from __future__ import annotations

from collections.abc import Iterator

from rankgauge.checks.check_inputs import FINDING_KINDS, CheckResult
from rankgauge.core.escaping import for_terminal
from rankgauge.core.findings import COMPARISON_KINDS, Finding, Location, Severity
from rankgauge.core.grouping import group_values
from rankgauge.core.text import keep, many
from rankgauge.errors import UnknownName
from rankgauge.rendering.tables import Detail, Table, shorten, wrapped
from rankgauge.reports.registry import Annotation, Options, Report, annotation_lines

_LOCATIONS = 3
_EFFECTS = 6
_ID = 40
_KINDS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}
_FIXES = {
    "safe": "--fix FOLDER writes a fixed copy",
    "on request": "--fix FOLDER --fix-also {code} writes a fixed copy",
    "": "needs a manual decision",
}


def finding_kinds_table() -> Table:
    """Return all kinds of findings, one per row.

    Example:
        >>> finding_kinds_table().rows[0]
        ('F101', 'error', 'unreadable-line', 'on request')
    """
    kinds = (*FINDING_KINDS.values(), *COMPARISON_KINDS.values())
    rows = tuple((kind.code, kind.severity, kind.name, kind.automatic) for kind in kinds)
    notes = (
        "rankgauge check --explain CODE shows its meaning, effect, and fix",
        "codes that begin with C are found by rankgauge compare",
        "copy: fixed in a copy by --fix FOLDER (safe) or only with --fix-also CODE (on request)",
    )
    columns = ("code", "severity", "name", "copy")
    return Table(columns, rows, notes=notes)


def explain_problem(code: str) -> str:
    """Describe a kind of finding.

    Args:
        code: Code or name of the kind.

    Raises:
        UnknownName: For an unknown code or name.

    Example:
        >>> print(explain_problem("J107").splitlines()[0])
        J107 recall-out-of-reach (warning)
    """
    kinds = {**FINDING_KINDS, **COMPARISON_KINDS}
    names = {kind.name: kind for kind in kinds.values()}
    kind = kinds.get(code.upper()) or names.get(code.lower())
    if kind is None:
        raise UnknownName.of("finding", code, (*kinds, *names))
    parts = (
        ("what", kind.description),
        ("effect", kind.effect),
        ("fix", kind.fix),
        ("copy", _FIXES[kind.automatic].format(code=kind.code)),
    )
    lines = [f"{kind.code} {kind.name} ({kind.severity})", ""]
    for label, text in parts:
        lines += wrapped(for_terminal(text), first=f"{label:<8}", indent=" " * 8)
    return "\n".join(lines) + "\n"


# ---- for people


def _check_blocks(result: CheckResult, options: Options) -> Iterator[Table]:
    """Yield the findings of each input, most severe first, then their counts and the next step."""
    if options.quiet:
        columns = ("code", "name", "source", "count", "of")
        counts = result.to_columns()
        yield Table(columns, tuple(zip(*(counts[name] for name in columns), strict=True)))
        return
    findings = result.findings
    own_of = group_values((finding.evidence.source, finding) for finding in findings)
    by_source = {source: own_of.get(source, []) for source in dict.fromkeys((*result.inputs, *own_of))}
    for source, own in by_source.items():
        if own:
            rows = tuple(row for finding in own for row in _rows(finding))
            yield Table(("severity", "finding"), rows, title=source, unit="line")
    clean = ", ".join(source for source, own in by_source.items() if not own)
    safe, asked = (
        ", ".join(code for code in result.codes if FINDING_KINDS[code].automatic == word)
        for word in ("safe", "on request")
    )
    effects = any(finding.evidence.effects for finding in findings)
    notes = keep(
        not findings and f"inputs: {clean}",
        not findings and f"checked: {len(FINDING_KINDS)} kinds of findings (rankgauge check --list)",
        findings and clean and f"no problems found in {clean}",
        *result.notes,
        effects and Detail("effect: the mean now → the mean after the change named in parentheses"),
        safe and f"--fix FOLDER writes a copy in which {safe} is fixed",
        asked and f"--fix FOLDER --fix-also CODE writes a copy in which {asked} is also fixed",
        findings and f"details: rankgauge check --explain {findings[0].code}",
    )
    yield Table((), (), title=f"{result.summary()} in {many(len(result.inputs), 'input')}", notes=notes)


def _rows(finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield a finding, its locations, effects, and fix; unless it is an error, most are details."""
    kind = FINDING_KINDS[finding.code]
    error = finding.severity == "error"
    yield finding.severity, f"{kind.code} {kind.name}: {finding.message}"
    places = [_place(location) for location in finding.evidence.locations[:_LOCATIONS]]
    if places:
        lined = any(location.line for location in finding.evidence.locations)
        more = ["..."] if len(finding.evidence.locations) > _LOCATIONS else []
        yield "at" if error or lined else Detail("at"), "; ".join([*places, *more])
    for place, text in enumerate(_effects(finding)):
        yield "effect" if place < (_EFFECTS if error else 1) else Detail("effect"), text
    yield "fix" if error else Detail("fix"), finding.fix


def _effects(finding: Finding) -> list[str]:
    """Return the changed measures of each run, or a sentence if nothing changes."""
    groups: dict[tuple[str, str], list[str]] = {}
    for effect in finding.evidence.effects:
        groups.setdefault((effect.run, effect.condition), []).extend([effect.change()] if effect.changes() else [])
    several = len({run for run, _ in groups}) > 1
    parts = [
        (f"{run}: " if several else "") + f"{', '.join(changes)} ({condition})"
        for (run, condition), changes in groups.items()
        if changes
    ]
    if groups and not parts:
        names = ", ".join(dict.fromkeys(effect.measure for effect in finding.evidence.effects))
        conditions = ", ".join(dict.fromkeys(condition for _, condition in groups))
        return [f"{names}: no change in four decimals ({conditions})"]
    return parts


def _place(location: Location) -> str:
    """Format a location as ``path:line``, as editors expect, with the ids."""
    ids = [
        f"{word} {shorten(for_terminal(value), _ID, is_name=True)}"
        for word, value in (("query", location.query), ("document", location.document))
        if value
    ]
    text = ", ".join(ids)
    if not location.line:
        return text or location.source
    return f"{location.source}:{location.line}" + (f" ({text})" if text else "")


# ---- for machines


def _annotation(finding: Finding) -> Annotation:
    """Return a finding as an annotation at its first line."""
    lined = next((location for location in finding.evidence.locations if location.line), None)
    # A source without line numbers may not be a file.
    what = finding.message if lined else f"{finding.evidence.source}: {finding.message}"
    parts = [what, *_effects(finding)[:_EFFECTS], f"fix: {finding.fix}"]
    return Annotation(
        _KINDS[finding.severity],
        f"{finding.code} {FINDING_KINDS[finding.code].name}",
        "; ".join(parts),
        "" if lined is None else lined.source,
        0 if lined is None else lined.line,
    )


REPORTS = {
    "CheckResult": Report(
        _check_blocks,
        formats={"github": lambda result, _: annotation_lines(map(_annotation, result.findings), "rankgauge check")},
    )
}
