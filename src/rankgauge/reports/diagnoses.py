"""Reports on diagnoses: quality, likely causes, and suggested fixes."""

from __future__ import annotations

from collections import Counter

from rankgauge.core.text import keep, many
from rankgauge.diagnosis.causes import CAUSES, GAP, IGNORED, UNJUDGED, QueryDiagnosis
from rankgauge.diagnosis.diagnosis import Diagnosis
from rankgauge.diagnosis.fixes import FIXES
from rankgauge.diagnosis.quality import ENOUGH, OWN_CUTS
from rankgauge.rendering.tables import Detail, Table, first_rows, shorten
from rankgauge.reports.registry import Report

_SHOWN = 5
_SCORES = (
    "one threshold for all queries needs comparable scores: cosine similarities may be, BM25 "
    "scores and fused ranks are not"
)
_KINDS = (
    "at most: these documents in the best order that the judgments allow; as others: an assumption, "
    "which the change states; measured: computed from this run; judged only: without unjudged documents"
)
_WIDTH = 60
_OF_TERMS = (GAP.name, IGNORED.name)


def diagnosis_tables(diagnosis: Diagnosis) -> tuple[Table, ...]:
    """Return quality, causes, gains, and fixes, then cut-offs and groups, and the worst queries."""
    if diagnosis.withheld:
        texts = [f"no diagnosis of {diagnosis.run_name}: {finding}" for finding in diagnosis.withheld]
        withheld = Table(
            columns=("measure", "mean"),
            rows=tuple((str(quality.measure), quality.mean) for quality in diagnosis.qualities),
            title="; ".join(texts),
            notes=(
                "causes, fixes, and bands are withheld: fix the input first",
                *(note for note in diagnosis.notes if not note.startswith("WARNING: ")),
            ),
        )
        return (withheld,)
    cutoffs = tuple((row.k, row.precision, row.recall, row.success) for row in diagnosis.cutoffs)
    return keep(
        _quality(diagnosis),
        _causes(diagnosis),
        _potential(diagnosis),
        _fixes(diagnosis),
        Table(columns=("k", "P", "R", "Success"), rows=cutoffs, title=Detail("other cut-offs")),
        diagnosis.sweep.thresholds and _thresholds(diagnosis),
        _difficulty(diagnosis),
        _slices(diagnosis),
        *(_query(diagnosis, finding) for finding in diagnosis.worst),
    )


def _quality(diagnosis: Diagnosis) -> Table:
    sentences = diagnosis.precision_recall.sentences
    # The last sentence is about drift.
    main = {0} if diagnosis.drift is None else {0, len(sentences) - 1}
    limits = (
        f"{quality.measure} cannot exceed {quality.attainable:.2f} ({quality.highest}) with these judgments, "
        "whatever is retrieved"
        for quality in diagnosis.qualities
        if quality.highest not in {None, "Excellent"}
    )
    return Table(
        columns=("measure", "mean", "band", "attainable", "attainable band"),
        rows=tuple(
            (str(quality.measure), quality.mean, quality.level, quality.attainable, quality.highest)
            for quality in diagnosis.qualities
        ),
        title=f"Diagnosis of {diagnosis.run_name}: quality",
        notes=(
            *(text if place in main else Detail(text) for place, text in enumerate(sentences)),
            *map(Detail, limits),
            Detail(
                "bands are a rule of thumb, lower bounds inclusive; attainable is the mean of the best "
                "rankings that the judgments allow"
            ),
        ),
    )


def _causes(diagnosis: Diagnosis) -> Table:
    first = diagnosis.first_causes
    totals = [*first, *(total for total in diagnosis.totals if total.queries and total not in first)]
    rows = (
        (
            total.cause.name,
            total.queries,
            "–" if (gain := total.gain) is None else f"{gain.mean:+.2f} ({gain.low:+.2f} to {gain.high:+.2f})",
            total.cause.fix,
        )
        for total in totals
    )
    named = f", first: {first[0].cause.name}" if first else ""
    title = f"likely causes of {len(diagnosis.diagnoses)} of {many(diagnosis.queries, 'query')}{named}"
    if not totals and not diagnosis.failing:
        title = f"likely causes: none in {many(diagnosis.queries, 'query')}"
    unjudged = [len(finding.unjudged) for finding in diagnosis.diagnoses if finding.unjudged]
    none = sum(not query.causes for query in diagnosis.diagnoses)
    absent = ", ".join(total.cause.name for total in diagnosis.totals if not total.queries and total.checked)
    details = keep(
        unjudged
        and f"unjudged in the first {diagnosis.k}: {many(sum(unjudged), 'document')} of "
        f"{many(len(unjudged), 'query')} with something to fix; judge these first",
        none and f"{many(none, 'query')} without a cause: only ranks below have a worse order",
        absent and f"also checked: {absent}",
    )
    return Table(
        columns=("cause", "queries", f"Δ {diagnosis.measure} (97% CI)", Detail("suggested fix")),
        rows=tuple(first_rows(rows, 3)) or (("none", 0, "", ""),),
        title=title,
        notes=(
            diagnosis.summary(),
            *(note for note in diagnosis.notes if note.startswith("WARNING: ")),
            *(f"not checked: {text}" for text in diagnosis.not_checked),
            *map(Detail, details),
        ),
    )


def _query(diagnosis: Diagnosis, finding: QueryDiagnosis) -> Table:
    """Return one of the worst queries as a table."""
    k, shown = diagnosis.k, finding.missed[:_SHOWN]
    fixes = {total.cause.name: total.cause.fix for total in diagnosis.totals}
    rows = tuple(
        (
            doc.doc_id,
            f"{doc.grade:g}",
            doc.rank,
            # The rank has its own column.
            "; ".join(text for text in doc.evidence if text != f"rank {doc.rank}"),
        )
        for doc in shown
    )
    counts = Counter(name for doc in finding.missed for name in doc.causes)
    causes = ", ".join(f"{counts[cause.name]} {cause.name}" for cause in CAUSES if counts[cause.name])
    terms = ", ".join(finding.terms) if any(name in finding.causes for name in _OF_TERMS) else ""
    text = " ".join(finding.text.split())
    asked = f" “{shorten(text, _WIDTH)}”" if text else ""
    return Table(
        columns=("missed", "grade", "rank", "evidence") if rows else ("missed",),
        rows=rows or (("nothing",),),
        title=Detail(
            f"{finding.query_id}{asked}: {diagnosis.measure} {finding.value:.2f}, "
            f"{finding.found} of {finding.relevant} relevant in the first {k}"
        ),
        notes=keep(
            *finding.evidence,
            len(finding.missed) > len(shown) and f"of {many(len(finding.missed), 'missed document')}: {causes}",
            finding.unjudged
            and UNJUDGED.name not in finding.causes
            and f"unjudged in the first {k}: {', '.join(finding.unjudged[:_SHOWN])}",
            f"primary cause: {finding.primary}; suggested fix: {fixes[finding.primary]}"
            + (f"; query terms: {terms}" if terms else "")
            if finding.primary
            else f"no fault in the first {k}: {diagnosis.measure} is lost below",
        ),
        right=frozenset({1, 2} if rows else ()),
    )


def _potential(diagnosis: Diagnosis) -> Table:
    shown = list(dict.fromkeys([str(diagnosis.measure), f"P@{diagnosis.k}", f"R@{diagnosis.k}"]))
    names = [name for name in shown if name in diagnosis.now]
    rows: list[tuple[str | float, ...]] = [("now", *(diagnosis.now[name] for name in names), "")]
    rows += [(gain.what, *(gain.means[name] for name in names), gain.kind) for gain in diagnosis.gains]
    return Table(
        columns=("change", *names, "kind"),
        rows=tuple(rows),
        title=Detail("potential gain"),
        notes=("each row is an evaluation",),
        digits=2,
    )


def _fixes(diagnosis: Diagnosis) -> Table:
    name = str(diagnosis.measure)
    reasons = [
        ("" if place else f"{number}. {fix.name}", text)
        for number, fix in enumerate(diagnosis.fixes, start=1)
        for place, text in enumerate(fix.evidence or ("no evidence in this run",))
    ]
    # Faults of the input and judging are no changes of the retriever.
    listed = {*FIXES, *(cause.name for causes in FIXES.values() for cause in causes)}
    gains = (
        (
            f"– {gain.fix}",
            f"{gain.what}: {name} {diagnosis.now[name]:.2f} to {gain.means[name]:.2f} ({gain.kind})",
        )
        for gain in diagnosis.gains
        if gain.fix not in listed
    )
    return Table(
        columns=("fix", "evidence"),
        rows=(*reasons, *gains),
        title=Detail("suggested fixes"),
        notes=(_KINDS,),
    )


def _thresholds(diagnosis: Diagnosis) -> Table:
    best = diagnosis.sweep.best
    return Table(
        columns=("score at least", "documents shown", "precision", "recall", "F1", "no results"),
        rows=tuple(
            (f"{row.score:.4g}", f"{row.shown:.1f}", row.precision, row.recall, row.f, row.empty)
            for row in diagnosis.sweep.thresholds
        ),
        title=Detail(f"a threshold on the score, in the first {diagnosis.k}"),
        right=frozenset({0, 1}),
        best=frozenset((place, 4) for place, row in enumerate(diagnosis.sweep.thresholds) if row == best),
        digits=2,
        notes=(_SCORES, "the highest F1 was chosen on these queries: it is optimistic"),
    )


def _difficulty(diagnosis: Diagnosis) -> Table:
    hard = diagnosis.difficulty
    most = max(hard.counts, default=0)
    rows = (
        (f"{place / 10:.1f} to {(place + 1) / 10:.1f}", count, "█" * round(30 * count / most))
        for place, count in enumerate(hard.counts if most else ())
    )
    return Table(
        columns=(str(diagnosis.measure), "queries", ""),
        rows=tuple(rows),
        title=Detail("distribution over queries"),
        notes=keep(
            f"no relevant document in the first {diagnosis.k}: {many(hard.nothing_at_k, 'query')}; at "
            f"any rank: {hard.nothing_at_all}",
            hard.undefined and f"{many(hard.undefined, 'query')} without a value: no relevant document is judged",
        ),
    )


def _slices(diagnosis: Diagnosis) -> Table:
    """Return the groups of queries; details, unless groups were passed."""
    named = {group.by for group in diagnosis.slices} - {*OWN_CUTS}
    rows = (
        (
            group.by if group.by in named else Detail(group.by),
            group.label,
            group.queries,
            group.mean,
            "too few"
            if group.queries < ENOUGH
            else "–"
            if group.low is None or group.high is None
            else f"{group.low:.2f} to {group.high:.2f}",
        )
        for group in diagnosis.slices
    )
    title = "groups of queries"
    return Table(
        columns=("by", "group", "queries", str(diagnosis.measure), "95% interval"),
        rows=tuple(rows),
        title=title if named else Detail(title),
        notes=keep(
            f"too few: groups of fewer than {ENOUGH} queries have no interval",
            not diagnosis.sweep.thresholds and Detail(f"no threshold on the score: {diagnosis.sweep.why_not}"),
            *(Detail(note) for note in diagnosis.notes if not note.startswith("WARNING: ")),
        ),
        digits=2,
        unit="group",
    )


REPORTS = {"Diagnosis": Report(lambda diagnosis, _: diagnosis_tables(diagnosis))}
