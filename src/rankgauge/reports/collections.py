"""What is in a collection, as text."""

from __future__ import annotations

from collections.abc import Iterator

from rankgauge.corpus.description import CollectionInfo
from rankgauge.rendering.tables import Cell, Table
from rankgauge.reports.registry import Options, Report


def _counts(info: CollectionInfo) -> Iterator[tuple[str, Cell]]:
    yield "documents", info.documents
    yield "queries", info.queries
    if info.judgments is None:
        return
    yield "judgments", info.judgments
    for grade, count in info.grades.items():
        yield f"judgments of grade {grade:g}", count
    if info.documents:
        yield "judged documents", info.judged_documents


def _plain(info: CollectionInfo) -> Iterator[tuple[Cell, ...]]:
    for name, value in _counts(info):
        yield name, value, "", ""
    for name, spread in info.spreads.items():
        for what, number in _numbers(spread).items():
            yield f"{name}: {what}", number, "", ""
    for found in info.findings:
        evidence = found.evidence
        yield found.message, evidence.count, evidence.of, "; ".join(evidence.examples)


def _data(info: CollectionInfo, _options: Options) -> Table:
    return Table(("what", "value", "of", "examples"), tuple(_plain(info)))


def _numbers(spread: object) -> dict[str, float]:
    names = {"least": "min", "median": "median", "mean": "mean", "p95": "p95", "most": "max"}
    return {shown: getattr(spread, name) for name, shown in names.items()}


def _blocks(info: CollectionInfo, _format: str, _options: Options) -> Iterator[Table]:
    notes = list(info.notes)
    if info.judgments is None:
        notes.append("no judgments were given: what they would show was not looked at")
    elif info.documents:
        notes.append(f"{info.judged_share:.1%} of the documents are judged for some query")
    if not info.documents:
        notes.append("no documents were given: what they would show was not looked at")
    yield Table(("what", "number"), tuple(_counts(info)), title=info.name, notes=tuple(notes))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *_numbers(spread).values()) for name, spread in info.spreads.items()
    )
    if rows:
        yield Table(
            ("how long", "min", "median", "mean", "p95", "max"), rows, title="lengths", digits=1
        )
    found: tuple[tuple[Cell, ...], ...] = tuple(
        (one.message, one.evidence.count, one.evidence.of, ", ".join(one.evidence.examples))
        for one in info.findings
    )
    if found:
        yield Table(
            ("what", "number", "of", "such as"), found, title="quality problems",
            notes=tuple(f"{one.message}: {one.effect} ({one.code})" for one in info.findings),
        )  # fmt: skip
    else:
        yield Table(
            ("what",), (("none found",),), title="quality problems",
            notes=("looked for: empty and repeated texts, ids that are not there, leaks",),
        )  # fmt: skip


REPORTS = {CollectionInfo: Report(_blocks, _data)}
