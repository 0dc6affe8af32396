"""Reports on diagnoses: quality, likely causes, and suggested fixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from rankgauge.core.text import inflect, many
from rankgauge.diagnosis.causes import CAUSES, GAP, IGNORED, UNJUDGED, QueryDiagnosis, first_step
from rankgauge.diagnosis.diagnosis import Diagnosis
from rankgauge.diagnosis.fixes import FIXES
from rankgauge.diagnosis.quality import ENOUGH, OWN_CUTS, Slice
from rankgauge.rendering.tables import Cell, Table, shorten
from rankgauge.reports.registry import Options, Report

_FULL = Options(full=True)
_SHOWN = 5
_NEXT = "gain of each fix, the worst queries, other cut-offs, thresholds: --full (full=True)"
_SCORES = (
    "one threshold for all queries needs comparable scores: cosine similarities may be, BM25 "
    "scores and fused ranks are not"
)
_KINDS = (
    "at most: these documents in the best order that the judgments allow; if retrieved: exactly "
    "these documents at the top, not an upper bound; measured: computed from this run; judged "
    "only: sensitivity to unjudged documents"
)
_WIDTH = 60
_OF_TERMS = (GAP.name, IGNORED.name)
_FIX_OF = {cause.name: cause.fix for cause in CAUSES}


def diagnosis_tables(found: Diagnosis, options: Options = _FULL) -> Iterator[Table]:
    """Yield quality, causes, worst queries, and fixes, then gains, cut-offs, and slices."""
    if found.withheld:
        yield _withheld(found)
        return
    if not options.full:
        yield from _short(found)
        return
    yield _quality(found)
    yield _causes(found)
    yield from (_query(found, finding) for finding in found.worst)
    yield _fixes(found)
    yield _potential(found)
    yield _cutoffs(found)
    if found.sweep.thresholds:
        yield _thresholds(found)
    yield _difficulty(found)
    yield _slices(found, found.slices)


def _withheld(found: Diagnosis) -> Table:
    """Return the means and the findings that invalidate them."""
    texts = [f"no diagnosis of {found.run_name}: {one}" for one in found.withheld]
    return Table(
        columns=("measure", "mean"),
        rows=tuple((str(one.measure), one.mean) for one in found.qualities),
        title="; ".join(texts),
        notes=(
            "causes, fixes, and bands are withheld: fix the input first",
            *(note for note in found.notes if not note.startswith("WARNING: ")),
        ),
    )


def _short(found: Diagnosis) -> Iterator[Table]:
    """Return quality, causes, and the suggested fix on one screen."""
    quality, causes = _quality(found), _causes(found)
    lines = found.precision_recall.sentences
    # The last sentence is about drift.
    yield replace(quality, notes=lines[:1] if found.drift is None else (lines[0], lines[-1]))
    warnings = [note for note in found.notes if note.startswith("WARNING: ")]
    notes = [found.summary(), *warnings[:1], *(f"not checked: {t}" for t in found.not_checked)]
    asked = tuple(one for one in found.slices if one.by not in OWN_CUTS)
    table = replace(causes, notes=tuple(filter(None, notes)))
    if asked:
        yield table
        table = _slices(found, asked)
        table = replace(table, notes=table.notes[:1])
    yield replace(table, notes=(*table.notes, _NEXT))


def _quality(found: Diagnosis) -> Table:
    rows = tuple((str(one.measure), one.mean, one.level, one.attainable, one.highest) for one in found.qualities)
    notes = [*found.precision_recall.sentences]
    notes += [
        f"{one.measure} cannot exceed {one.attainable:.2f} ({one.highest}) with these judgments, whatever is retrieved"
        for one in found.qualities
        if one.highest not in {None, "Excellent"}
    ]
    notes.append(
        "bands are a rule of thumb, lower bounds inclusive; attainable is the mean of the best "
        "rankings that the judgments allow"
    )
    return Table(
        columns=("measure", "mean", "band", "attainable", "attainable band"),
        rows=rows,
        title=f"Diagnosis of {found.run_name}: quality",
        notes=tuple(notes),
    )


def _causes(found: Diagnosis) -> Table:
    rows = tuple(
        (total.cause.name, total.queries, total.primary, total.documents, total.cause.fix)
        for total in found.totals
        if total.queries
    )
    first = found.first_causes
    named = f", primary: {first_step(first)[0]}" if first else ""
    title = (
        f"likely causes of {len(found.diagnoses)} of {many(found.queries, 'query')}{named} "
        f"({found.failing} {inflect(found.failing or 0, 'misses', 'miss')} a relevant document "
        f"in the first {found.k})"
    )
    if not rows and not found.failing:
        title = f"likely causes: none in {many(found.queries, 'query')}"
    unjudged = [len(finding.unjudged) for finding in found.diagnoses if finding.unjudged]
    notes = [f"not checked: {text}" for text in found.not_checked]
    none = sum(not one.causes for one in found.diagnoses)
    if none:
        notes.insert(0, f"{many(none, 'query')} without a cause: only ranks below have a worse order")
    if unjudged:
        notes.insert(
            0,
            f"unjudged in the first {found.k}: {many(sum(unjudged), 'document')} of "
            f"{many(len(unjudged), 'query')} with something to fix; judge these first",
        )
    absent = [t.cause.name for t in found.totals if not t.queries and t.checked]
    if absent:
        notes.append(f"also checked: {', '.join(absent)}")
    return Table(
        columns=("cause", "queries", "primary in", "documents", "suggested fix"),
        rows=rows or (("none", 0, 0, 0, ""),),
        title=title,
        notes=tuple(notes),
    )


def _query(found: Diagnosis, finding: QueryDiagnosis) -> Table:
    """Return one of the worst queries as a table."""
    shown = finding.missed[:_SHOWN]
    rows: list[tuple[Cell, ...]] = [
        (
            doc.doc_id,
            f"{doc.grade:g}",
            doc.rank,
            # The rank has its own column.
            "; ".join(text for text in doc.evidence if text != f"rank {doc.rank}"),
        )
        for doc in shown
    ]
    notes = list(finding.evidence)
    if len(finding.missed) > len(shown):
        counts = Counter(name for doc in finding.missed for name in doc.causes)
        message = ", ".join(f"{counts[c.name]} {c.name}" for c in CAUSES if counts[c.name])
        notes.append(f"of {many(len(finding.missed), 'missed document')}: {message}")
    if finding.unjudged and UNJUDGED.name not in finding.causes:
        few = ", ".join(finding.unjudged[:_SHOWN])
        notes.append(f"unjudged in the first {found.k}: {few}")
    if finding.primary:
        first = f"primary cause: {finding.primary}; suggested fix: {_FIX_OF[finding.primary]}"
        if finding.terms and any(name in finding.causes for name in _OF_TERMS):
            first += f"; query terms: {', '.join(finding.terms)}"
        notes.append(first)
    else:
        notes.append(f"no fault in the first {found.k}: {found.measure} is lost below")
    text = " ".join(finding.text.split())
    asked = f" “{shorten(text, _WIDTH)}”" if text else ""
    return Table(
        columns=("missed", "grade", "rank", "evidence") if rows else ("missed",),
        rows=tuple(rows) or (("nothing",),),
        title=(
            f"{finding.query_id}{asked}: {found.measure} {finding.value:.2f}, "
            f"{finding.found} of {finding.relevant} relevant in the first {found.k}"
        ),
        notes=tuple(notes),
        right=frozenset({1, 2} if rows else ()),
    )


def _potential(found: Diagnosis) -> Table:
    shown = list(dict.fromkeys([str(found.measure), f"P@{found.k}", f"R@{found.k}"]))
    names = [name for name in shown if name in found.now]
    rows: list[tuple[Cell, ...]] = [("now", *(found.now[name] for name in names), "")]
    rows += [(one.what, *(one.means[name] for name in names), one.kind) for one in found.gains]
    return Table(
        columns=("potential gain", *names, "kind"), rows=tuple(rows), notes=("each row is an evaluation",), digits=2
    )


def _fixes(found: Diagnosis) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for number, fix in enumerate(found.fixes, start=1):
        reasons = fix.evidence or ("no evidence in this run",)
        rows.append((f"{number}. {fix.name}", reasons[0]))
        rows += [("", text) for text in reasons[1:]]
    # Judging more and removing duplicates do not change the retriever, but their effect is measured
    # too.
    name = str(found.measure)
    for one in found.gains:
        if one.fix not in FIXES:
            gain = f"{name} {found.now[name]:.2f} to {one.means[name]:.2f} ({one.kind})"
            rows.append((f"– {one.fix}", f"{one.what}: {gain}"))
    return Table(columns=("fix", "evidence"), rows=tuple(rows), title="suggested fixes", notes=(_KINDS,))


def _cutoffs(found: Diagnosis) -> Table:
    rows = tuple((row.k, row.precision, row.recall, row.success) for row in found.cutoffs)
    return Table(columns=("k", "P", "R", "Success"), rows=rows, title="other cut-offs")


def _thresholds(found: Diagnosis) -> Table:
    best = found.sweep.best
    return Table(
        columns=("score at least", "documents shown", "precision", "recall", "F1", "no results"),
        rows=tuple(
            (f"{row.score:.4g}", f"{row.shown:.1f}", row.precision, row.recall, row.f, row.empty)
            for row in found.sweep.thresholds
        ),
        title=f"a threshold on the score, in the first {found.k}",
        right=frozenset({0, 1}),
        best=frozenset((place, 4) for place, row in enumerate(found.sweep.thresholds) if row == best),
        digits=2,
        notes=(_SCORES, "the highest F1 was chosen on these queries: it is optimistic"),
    )


def _difficulty(found: Diagnosis) -> Table:
    hard = found.difficulty
    nowhere = (
        f"no relevant document in the first {found.k}: {many(hard.nothing_at_k, 'query')}; at "
        f"any rank: {hard.nothing_at_all}"
    )
    notes = [nowhere]
    if hard.undefined:
        notes.append(f"{many(hard.undefined, 'query')} without a value: no relevant document is judged")
    most = max(hard.counts, default=0)
    rows = (
        tuple(
            (f"{place / 10:.1f} to {(place + 1) / 10:.1f}", count, "█" * round(30 * count / most))
            for place, count in enumerate(hard.counts)
        )
        if most
        else ()
    )
    return Table(
        columns=(str(found.measure), "queries", ""), rows=rows, title="distribution over queries", notes=tuple(notes)
    )


def _slices(found: Diagnosis, shown: Iterable[Slice]) -> Table:
    rows = tuple(
        (
            one.by,
            one.label,
            one.queries,
            one.mean,
            "too few" if one.queries < ENOUGH else _interval(one.low, one.high),
        )
        for one in shown
    )
    notes = [f"too few: groups of fewer than {ENOUGH} queries have no interval", *found.notes]
    if not found.sweep.thresholds:
        notes.insert(1, f"no threshold on the score: {found.sweep.why_not}")
    return Table(
        columns=("by", "group", "queries", str(found.measure), "95% interval"),
        rows=rows,
        title="groups of queries",
        notes=tuple(notes),
        digits=2,
    )


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.2f} to {high:.2f}"


REPORTS = {Diagnosis: Report(diagnosis_tables)}
