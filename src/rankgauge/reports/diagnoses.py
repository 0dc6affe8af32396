"""Reports on diagnoses: quality, likely causes, and suggested fixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rankgauge.core.text import inflect, many
from rankgauge.diagnosis.causes import CAUSES, GAP, IGNORED, UNJUDGED, QueryDiagnosis, first_step
from rankgauge.diagnosis.diagnosis import Diagnosis
from rankgauge.diagnosis.fixes import FIXES
from rankgauge.diagnosis.quality import ENOUGH, OWN_CUTS
from rankgauge.rendering.tables import Cell, Detail, Table, shorten
from rankgauge.reports.registry import Report

_SHOWN = 5
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


def diagnosis_tables(found: Diagnosis) -> Iterator[Table]:
    """Yield quality, causes, gains, and fixes, then cut-offs and groups, and the worst queries."""
    if found.withheld:
        texts = [f"no diagnosis of {found.run_name}: {one}" for one in found.withheld]
        yield Table(
            columns=("measure", "mean"),
            rows=tuple((str(one.measure), one.mean) for one in found.qualities),
            title="; ".join(texts),
            notes=(
                "causes, fixes, and bands are withheld: fix the input first",
                *(note for note in found.notes if not note.startswith("WARNING: ")),
            ),
        )
        return
    yield _quality(found)
    yield _causes(found)
    yield _potential(found)
    yield _fixes(found)
    cutoffs = tuple((row.k, row.precision, row.recall, row.success) for row in found.cutoffs)
    yield Table(columns=("k", "P", "R", "Success"), rows=cutoffs, title=Detail("other cut-offs"))
    if found.sweep.thresholds:
        yield _thresholds(found)
    yield _difficulty(found)
    yield _slices(found)
    yield from (_query(found, finding) for finding in found.worst)


def _quality(found: Diagnosis) -> Table:
    sentences = found.precision_recall.sentences
    # The last sentence is about drift.
    main = {0} if found.drift is None else {0, len(sentences) - 1}
    limits = (
        f"{one.measure} cannot exceed {one.attainable:.2f} ({one.highest}) with these judgments, whatever is retrieved"
        for one in found.qualities
        if one.highest not in {None, "Excellent"}
    )
    return Table(
        columns=("measure", "mean", "band", "attainable", "attainable band"),
        rows=tuple((str(one.measure), one.mean, one.level, one.attainable, one.highest) for one in found.qualities),
        title=f"Diagnosis of {found.run_name}: quality",
        notes=(
            *(text if place in main else Detail(text) for place, text in enumerate(sentences)),
            *map(Detail, limits),
            Detail(
                "bands are a rule of thumb, lower bounds inclusive; attainable is the mean of the best "
                "rankings that the judgments allow"
            ),
        ),
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
    notes = [
        found.summary(),
        *(note for note in found.notes if note.startswith("WARNING: ")),
        *(f"not checked: {text}" for text in found.not_checked),
    ]
    unjudged = [len(finding.unjudged) for finding in found.diagnoses if finding.unjudged]
    if unjudged:
        text = f"{many(sum(unjudged), 'document')} of {many(len(unjudged), 'query')} with something to fix"
        notes.append(Detail(f"unjudged in the first {found.k}: {text}; judge these first"))
    none = sum(not one.causes for one in found.diagnoses)
    if none:
        notes.append(Detail(f"{many(none, 'query')} without a cause: only ranks below have a worse order"))
    absent = [t.cause.name for t in found.totals if not t.queries and t.checked]
    if absent:
        notes.append(Detail(f"also checked: {', '.join(absent)}"))
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
        title=Detail(
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
        columns=("change", *names, "kind"),
        rows=tuple(rows),
        title=Detail("potential gain"),
        notes=("each row is an evaluation",),
        digits=2,
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
    return Table(columns=("fix", "evidence"), rows=tuple(rows), title=Detail("suggested fixes"), notes=(_KINDS,))


def _thresholds(found: Diagnosis) -> Table:
    best = found.sweep.best
    return Table(
        columns=("score at least", "documents shown", "precision", "recall", "F1", "no results"),
        rows=tuple(
            (f"{row.score:.4g}", f"{row.shown:.1f}", row.precision, row.recall, row.f, row.empty)
            for row in found.sweep.thresholds
        ),
        title=Detail(f"a threshold on the score, in the first {found.k}"),
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
        columns=(str(found.measure), "queries", ""),
        rows=rows,
        title=Detail("distribution over queries"),
        notes=tuple(notes),
    )


def _slices(found: Diagnosis) -> Table:
    """Return the groups of queries; details, unless groups were passed."""
    named = {one.by for one in found.slices} - {*OWN_CUTS}
    rows = (
        (
            one.by if one.by in named else Detail(one.by),
            one.label,
            one.queries,
            one.mean,
            "too few"
            if one.queries < ENOUGH
            else "–"
            if one.low is None or one.high is None
            else f"{one.low:.2f} to {one.high:.2f}",
        )
        for one in found.slices
    )
    notes = [f"too few: groups of fewer than {ENOUGH} queries have no interval"]
    if not found.sweep.thresholds:
        notes.append(Detail(f"no threshold on the score: {found.sweep.why_not}"))
    title = "groups of queries"
    return Table(
        columns=("by", "group", "queries", str(found.measure), "95% interval"),
        rows=tuple(rows),
        title=title if named else Detail(title),
        notes=(*notes, *(Detail(note) for note in found.notes if not note.startswith("WARNING: "))),
        digits=2,
        unit="group",
    )


REPORTS = {Diagnosis: Report(lambda diagnosis, _: diagnosis_tables(diagnosis))}
