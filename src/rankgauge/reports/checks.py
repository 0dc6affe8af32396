"""Reports on checks (for people, for programs, and as annotations) and on collections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace

from rankgauge.checks.check_inputs import FINDING_KINDS, CheckResult
from rankgauge.core.escaping import for_terminal
from rankgauge.core.findings import COMPARISON_KINDS, Effect, Finding, Location, Severity
from rankgauge.core.text import Ratio, many
from rankgauge.corpus.description import PARTS, CollectionInfo
from rankgauge.errors import UnknownName
from rankgauge.rendering.tables import Cell, Table, wrapped
from rankgauge.reports.registry import Annotation, Options, Report, annotation_lines

_INDENT = " " * 11
_LOCATIONS = 3
_EFFECTS = 6
_ID = 40
_COLORS: dict[Severity, str] = {"error": "31;1", "warning": "33;1", "info": "36;1"}
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
        lines += _filled(text, f"{label:<8}")
    return "\n".join(lines) + "\n"


# ---- for people


def _check_blocks(result: CheckResult, options: Options) -> Iterator[Table | str]:
    """Yield the table or, for a terminal, the findings as text."""
    if options.quiet:
        columns = ("code", "name", "source", "count", "of")
        found = result.to_columns()
        yield Table(columns, tuple(zip(*(found[name] for name in columns), strict=True)))
        return
    if not options.on_terminal:
        yield result.table()
        return
    yield "".join(f"{line}\n" for line in _text(result, options))


def _text(result: CheckResult, options: Options) -> Iterator[str]:
    """Yield findings by input, most severe first, then their counts."""
    by_source: dict[str, list[Finding]] = {source: [] for source in result.inputs}
    for found in result.findings:
        by_source.setdefault(found.evidence.source, []).append(found)
    for source, findings in by_source.items():
        if findings:
            yield _styled(source, "1", options)
            yield ""
            for found in findings:
                yield from _of_finding(found, options)
                if options.full or found.severity == "error":
                    yield ""
            if not options.full and findings[-1].severity != "error":
                yield ""
    yield f"{result.summary()} in {many(len(result.inputs), 'input')}"
    clean = [source for source, found in by_source.items() if not found]
    for text in _closing(result, clean, full=options.full):
        yield from _filled(text, "• ")


def _closing(result: CheckResult, clean: Sequence[str], *, full: bool) -> Iterator[str]:
    """Yield the closing lines: what was checked, fixes, and the next step."""
    if not result.findings:
        yield f"inputs: {', '.join(result.inputs)}"
        yield f"checked: {len(FINDING_KINDS)} kinds of findings (rankgauge check --list)"
    elif clean:
        yield f"no problems found in {', '.join(clean)}"
    if full and any(found.evidence.effects for found in result.findings):
        yield "effect: the mean now → the mean after the change named in parentheses"
    yield from result.notes
    safe, asked = (
        ", ".join(code for code in result.codes if FINDING_KINDS[code].automatic == word)
        for word in ("safe", "on request")
    )
    if safe:
        yield f"--fix FOLDER writes a copy in which {safe} is fixed"
    if asked:
        yield f"--fix FOLDER --fix-also CODE writes a copy in which {asked} is also fixed"
    if result.findings:
        yield f"details: rankgauge check --explain {result.findings[0].code}"
    if not full and any(found.severity != "error" for found in result.findings):
        yield "fixes of warnings, and all effects: --full (full=True)"


def _of_finding(found: Finding, options: Options) -> Iterator[str]:
    """Yield a finding, its effect, and its fix; short unless it is an error."""
    kind = FINDING_KINDS[found.code]
    level = _styled(f"{kind.severity:<7}", _COLORS[kind.severity], options)
    yield f"  {level}  {_styled(f'{kind.code} {kind.name}', '1', options)}"
    yield from _filled(found.message)
    effects = list(_effects(found))
    short = not options.full and found.severity != "error"
    where = _places(found.evidence.locations)
    if where and not (short and not any(at.line for at in found.evidence.locations)):
        yield from _labelled("at", where)
    if short:
        for text in effects[:1]:
            yield from _labelled("effect", text)
        return
    for text in effects[:_EFFECTS]:
        yield from _labelled("effect", text)
    if len(effects) > _EFFECTS:
        yield from _labelled("effect", f"and {len(effects) - _EFFECTS} more")
    yield from _labelled("fix", found.fix)


def _effects(found: Finding) -> Iterator[str]:
    """Yield the changed measures of each run, or a sentence if nothing changes."""
    groups: dict[tuple[str, str], list[Effect]] = {}
    for effect in found.evidence.effects:
        groups.setdefault((effect.run, effect.condition), []).append(effect)
    several = len({run for run, _ in groups}) > 1
    parts = []
    for (run, condition), effects in groups.items():
        changes = [effect.change() for effect in effects if effect.changes()]
        if changes:
            parts.append((f"{run}: " if several else "") + f"{', '.join(changes)} ({condition})")
    yield from parts
    if groups and not parts:
        names = ", ".join(dict.fromkeys(effect.measure for effect in found.evidence.effects))
        conditions = ", ".join(dict.fromkeys(condition for _, condition in groups))
        yield f"{names}: no change in four decimals ({conditions})"


def _places(locations: Sequence[Location]) -> str:
    shown = [_place(location) for location in locations[:_LOCATIONS]]
    more = len(locations) > _LOCATIONS
    return "; ".join(shown) + ("; ..." if more else "")


def _place(location: Location) -> str:
    """Format a location as ``path:line``, as editors expect, with the ids."""
    ids = [
        f"{word} {_cut(value)}" for word, value in (("query", location.query), ("document", location.document)) if value
    ]
    text = ", ".join(ids)
    if not location.line:
        return text or location.source
    return f"{location.source}:{location.line}" + (f" ({text})" if text else "")


def _cut(text: str) -> str:
    plain = for_terminal(text)
    return plain if len(plain) <= _ID else f"{plain[: _ID // 2]}…{plain[-_ID // 2 :]}"


def _filled(text: str, first: str = _INDENT) -> Iterator[str]:
    yield from wrapped(for_terminal(text), first=first, indent=" " * len(first))


def _labelled(label: str, text: str) -> list[str]:
    return list(_filled(text, f"{_INDENT}{label:<8}"))


def _styled(text: str, code: str, options: Options) -> str:
    plain = for_terminal(text)
    return f"\x1b[{code}m{plain}\x1b[0m" if options.color else plain


# ---- for machines


def _annotation(found: Finding) -> Annotation:
    """Return a finding as an annotation at its first line."""
    lined = next((location for location in found.evidence.locations if location.line), None)
    # A source without line numbers may not be a file.
    what = found.message if lined else f"{found.evidence.source}: {found.message}"
    parts = [what, *list(_effects(found))[:_EFFECTS], f"fix: {found.fix}"]
    return Annotation(
        _KINDS[found.severity],
        f"{found.code} {FINDING_KINDS[found.code].name}",
        "; ".join(parts),
        "" if lined is None else lined.source,
        0 if lined is None else lined.line,
    )


def _github(result: CheckResult, _options: Options) -> str:
    return annotation_lines(map(_annotation, result.findings), "rankgauge check")


# ---- collections

_GRADES, _CHARACTERS = "judgments of grade", "characters"  # rows that only a full report shows
_PROBLEMS = 2


def _collection_blocks(info: CollectionInfo, options: Options) -> Iterator[Table]:
    """Yield counts, lengths, and quality problems; short on a terminal."""
    notes = list(info.notes)
    if info.judgments is None:
        notes.append("no judgments were given: checks that need them were skipped")
    elif info.documents:
        notes.append(f"{Ratio(info.judged_share):.1%} of the documents are judged for some query")
    if not info.documents:
        notes.append("no documents were given: checks that need them were skipped")
    if not info.findings:
        notes.append("no quality problems found: checked for empty and duplicate texts, missing ids, leaks")
    counts = [row for row in info.counts().items() if not (options.short and row[0].startswith(_GRADES))]
    lengths: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *astuple(spread))
        for name, spread in info.spreads.items()
        if not (options.short and name.startswith(_CHARACTERS))
    )
    found: tuple[tuple[Cell, ...], ...] = tuple(
        (one.message, one.evidence.count, one.evidence.of, ", ".join(one.evidence.examples)) for one in info.findings
    )
    effects = [f"{one.message}: {one.effect} ({one.code})" for one in info.findings]
    notes = [*effects[: _PROBLEMS if options.short else None], *notes]
    if options.short and len(effects) > _PROBLEMS:
        notes.append(f"{len(effects) - _PROBLEMS} more effects: --full (full=True)")
    if options.short:
        notes.append("judgments by grade, characters: --full (full=True)")
    heads = ("length", *PARTS)
    *tables, last = (
        table
        for table in (
            Table(("what", "number"), tuple(counts), title=info.name),
            Table(heads, lengths, title="" if options.short else "lengths", digits=1),
            Table(("what", "number", "of", "such as"), found, title="quality problems", shortened=frozenset({3})),
        )
        if table.rows
    )
    yield from tables
    yield replace(last, notes=tuple(notes))


REPORTS = {
    CheckResult: Report(_check_blocks, formats={"github": _github}),
    CollectionInfo: Report(_collection_blocks),
}
