"""Pages of evaluations: overview, list, details, comparisons, queries, documents, and explanations."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from rankgauge import judging
from rankgauge.comparison import diff
from rankgauge.corpus import Document
from rankgauge.errors import InputError
from rankgauge.evaluation import Evaluation, group_means
from rankgauge.explanation import explain
from rankgauge.measures import Measure, parse
from rankgauge.rendering import Table, shorten
from rankgauge.reports import Section, comparison_result, html_report
from rankgauge.stats import t_interval
from rankgauge.store import HistoryEntry
from rankgauge.web.judging import start
from rankgauge.web.pages import (
    LEADS,
    READERS,
    DisplayedDocument,
    PageError,
    Visit,
    compared,
    displayed,
    see_other,
    visited,
)
from rankgauge.web.workbench import OF_ANSWERS, Regraded, Workbench, of_answers, order_of

ROWS, _RECENT, _WORST = 50, 5, 10  # rows of a page, of the overview, and of the worst queries
_DEPTHS = (10, 20, 50, 100)
_ORDERS = ("losses", "gains", "id")
_ONLY = ("all", "changed", "graded")
_MOST = 10  # evaluations of a comparison
_AS_SAVED = "Grades have changed since these evaluations were saved. This page shows them as saved."
_BINARY = ("not relevant", "relevant")
_LENGTHS = ((7, "7 and more words"), (4, "4 to 6 words"), (1, "1 to 3 words"))
_ENOUGH = 8  # queries of a slice with an interval
_DIAGNOSED = 500  # queries that are diagnosed together for the cause of one: a few seconds
_MOST_TEXT = 100_000  # characters of a document
_MOST_IMAGE = 20_000_000  # bytes
_IMAGES = {  # types by the first bytes
    rb"\x89PNG\r\n\x1a\n": "image/png",
    rb"\xff\xd8\xff": "image/jpeg",
    rb"GIF8[79]a": "image/gif",
    rb"RIFF....WEBP": "image/webp",
}


def workbench_of(visit: Visit) -> Workbench:
    """Return the saved evaluations of the project."""
    workbench: Workbench = visit.request.app.state.workbench
    return workbench


def saved_entry(visit: Visit, number: str) -> HistoryEntry:
    """Return a saved evaluation by its number in an address."""
    try:
        return workbench_of(visit).history.entry(int(number))
    except (InputError, ValueError):
        raise PageError(
            404, f"There is no evaluation {number:.40}.", where="evaluations", fix="Choose one from the list."
        ) from None


def _option(visit: Visit, name: str, known: Sequence[Any]) -> Any:
    """Return a value of the query string if it is known, else the first one."""
    text = visit.request.query_params.get(name, "")
    return next((value for value in known if str(value) == text), known[0])


def _mean(entry: HistoryEntry, evaluation: Evaluation, measure: Measure) -> tuple[str, str, str]:
    """Return the name of a measure, its mean with the digits that its interval justifies, and the interval."""
    label, mean = list(entry.named_means().items())[list(entry.means).index(str(measure))]
    # Means of answers are corrected for the errors of the judge, or named as those of the judge: no t interval holds.
    interval = None if measure.declaration.reads in OF_ANSWERS else evaluation.mean_interval(measure)
    low, high = interval or (0.0, 0.0)
    if high <= low:
        return label, f"{mean:.3f}", ""
    digits = min(4, max(2, 1 - math.floor(math.log10(high - low))))
    return label, f"{mean:.{digits}f}", f"{low:.{digits}f} to {high:.{digits}f}"


def _rows(workbench: Workbench, entries: Sequence[HistoryEntry], shown: int) -> list[dict[str, Any]]:
    """Return the latest evaluations with their primary measure and its history, the latest first."""
    rows = []
    for place in range(len(entries) - 1, max(-1, len(entries) - 1 - shown), -1):
        entry = entries[place]
        name = next(iter(entry.means))
        earlier = [other.means.get(name) for other in entries[: place + 1] if other.run == entry.run]
        values = [value for value in earlier[-20:] if value is not None and not math.isnan(value)]
        try:
            label, mean, interval = _mean(entry, workbench.measure(entry, name), parse(name))
        except InputError:  # its values are damaged
            label, mean, interval = name, f"{entry.means[name]:.3f}", ""
        rows.append({"entry": entry, "measure": label, "mean": mean, "interval": interval, "line": _line(values)})
    return rows


def _line(values: Sequence[float]) -> str:
    """Return the points of a small plot, 60 by 16; empty for a single value."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if len(values) < 2:
        return ""
    span = high - low or 1.0
    return " ".join(
        f"{60 * n / (len(values) - 1):.1f},{14 - 12 * (value - low) / span:.1f}" for n, value in enumerate(values)
    )


# ---- overview, list, and details


def _overview(visit: Visit) -> Response:
    if visit.judge.role == "judge":
        return start(visit)
    workbench = workbench_of(visit)
    entries = workbench.history.entries()
    # The verdict is on a ranking, if there is one; answers have a page of their own.
    latest = next((entry for entry in reversed(entries) if not of_answers(entry)), entries[-1] if entries else None)
    return visit.render(
        "overview.html",
        watched=visit.judge.role in LEADS and visit.request.app.state.log is not None,
        latest=latest,
        answers=workbench.latest_answers(),
        other=None if latest is None else workbench.baseline(latest),
        rows=_rows(workbench, entries, _RECENT),
        total=len(entries),
        progress=visit.project.progress(visit.judge.id),
        warnings=[] if latest is None else [finding.message for finding in latest.findings if finding.fix],
    )


def _evaluations(visit: Visit) -> Response:
    workbench = workbench_of(visit)
    entries = workbench.history.entries()
    page = page_of(visit, len(entries))
    rows = _rows(workbench, entries[: len(entries) - ROWS * (page - 1)], ROWS)
    return visit.render("evaluations.html", rows=rows, page=page, pages=page_count(len(entries)))


def page_of(visit: Visit, rows: int) -> int:
    """Return the number of the page in an address, at most the last one."""
    text = visit.request.query_params.get("page", "1")
    return min(page_count(rows), max(1, int(text[:6]) if text.isascii() and text.isdecimal() else 1))


def page_count(rows: int) -> int:
    """Return the number of pages of a table."""
    return max(1, math.ceil(rows / ROWS))


def _evaluation(visit: Visit) -> Response:
    workbench, entry = workbench_of(visit), saved_entry(visit, visit.request.path_params["id"])
    evaluation = workbench.evaluation(entry)
    if visit.request.query_params.get("format") == "json":
        return Response(evaluation.to_json(), media_type="application/json")
    measure: Measure = _option(visit, "m", evaluation.measures)
    sign = -1 if measure.declaration.better == "lower" else 1
    values = evaluation.counted(measure).tolist()
    worst = sorted(range(len(values)), key=lambda row: (math.isnan(values[row]), sign * values[row], row))[:_WORST]
    texts = workbench.queries(entry)
    queries = [(evaluation.query_ids[row], values[row]) for row in worst]
    return visit.render(
        "evaluation.html",
        entry=entry,
        measure=measure,
        means=[(str(measure), *_mean(entry, evaluation, measure)) for measure in evaluation.measures],
        worst=[(query, texts.get(query, ""), f"{value:.3f}") for query, value in queries],
        groups=None if evaluation.groups is None else group_means(evaluation).table(),
        other=workbench.baseline(entry),
        of_answers=of_answers(entry),
        findings=evaluation.findings,
    )


def _causes(visit: Visit) -> Response:
    """Return the likely causes of an evaluation, or of one of its queries, which take longer than the page."""
    entry, query = saved_entry(visit, visit.request.path_params["id"]), visit.request.path_params.get("query", "")
    alone = query if entry.queries > _DIAGNOSED else ""
    try:
        diagnosis, reason = workbench_of(visit).diagnosis(entry, alone), ""
    except InputError as error:
        diagnosis, reason = None, error.what
    return visit.render("causes.html", entry=entry, query=query, alone=alone, diagnosis=diagnosis, reason=reason)


# ---- comparisons


def _pair(visit: Visit) -> tuple[list[HistoryEntry], Measure]:
    """Return the evaluations of a comparison, the baseline first, and the measure that decides."""
    values = visit.request.query_params if visit.request.method == "GET" else visit.form
    names = [values.get("a", "")]
    names += visit.request.query_params.getlist("b") if visit.request.method == "GET" else [values.get("b", "")]
    entries = list({entry.id: entry for entry in (saved_entry(visit, name) for name in names if name)}.values())
    if not values.get("a"):  # the oldest is the baseline
        entries.sort(key=lambda entry: entry.id)
    if not 2 <= len(entries) <= _MOST:
        raise PageError(
            400, f"A comparison needs 2 to {_MOST} evaluations.", where="compare", fix="Choose some from the list."
        )
    shared = [name for name in entries[0].means if all(name in entry.means for entry in entries)]
    wanted = values.get("m", "")
    if not shared:
        raise PageError(400, "These evaluations have no measure in common.", where="compare", fix="Choose others.")
    return entries, parse(wanted if wanted in shared else shared[0])


def _verdicts(regraded: Regraded, measure: Measure) -> list[dict[str, Any]]:
    """Return the difference of each run from the first one, as saved and with the grades given since."""
    rows = []
    for entry in regraded.entries[1:]:
        saved, current = (
            comparison.difference(entry.short_name, measure) for comparison in (regraded.saved, regraded.current)
        )
        sign = {"better": "good", "worse": "bad"}.get(current.verdict or "", "open")  # a CSS class
        rows.append({"entry": entry, "saved": saved, "current": current, "class": sign})
    return rows


def _verdict(visit: Visit) -> Response:
    """Return the verdict on an evaluation, which takes longer than the page."""
    entries, measure = _pair(visit)
    try:
        regraded = workbench_of(visit).comparison(entries, str(measure))
    except InputError as error:  # not comparable
        return visit.render("verdict_part.html", reason=error.what, regraded=None)
    return visit.render(
        "verdict_part.html",
        reason="",
        regraded=regraded,
        sentence=comparison_result(regraded.current),
        verdicts=_verdicts(regraded, measure),
        entries=entries,
        measure=measure,
    )


def _comparison(visit: Visit) -> Response:
    workbench = workbench_of(visit)
    entries, measure = _pair(visit)
    regraded = workbench.comparison(entries, str(measure))
    form = visit.request.query_params.get("format", "")
    if form == "json":
        return Response(regraded.current.to_json(), media_type="application/json")
    if form == "html":
        return _download(workbench, entries, regraded)
    texts = workbench.queries(entries[0])
    order, only = _option(visit, "order", _ORDERS), _option(visit, "only", _ONLY)
    find = visit.request.query_params.get("find", "").strip().casefold()
    rows = [
        row
        for row in _query_rows(regraded, measure, order)
        if (only == "all" or (row[0] in regraded.grades if only == "graded" else row[3]))
        and (find in row[0].casefold() or find in texts.get(row[0], "").casefold())
    ]
    page = page_of(visit, len(rows))
    return visit.render(
        "comparison.html",
        entries=entries,
        measure=measure,
        measures=[name for name in entries[0].means if all(name in entry.means for entry in entries)],
        regraded=regraded,
        sentence=comparison_result(regraded.current),
        verdicts=_verdicts(regraded, measure),
        table=regraded.current.table(),
        differences=regraded.current.differences_table(),
        slices=_slices(regraded, measure, texts),
        rows=rows[ROWS * (page - 1) : ROWS * page],
        texts=texts,
        total=len(rows),
        page=page,
        pages=page_count(len(rows)),
        chosen={"order": order, "only": only, "find": visit.request.query_params.get("find", "")},
        orders=_ORDERS,
        only=_ONLY,
    )


def _query_rows(regraded: Regraded, measure: Measure, order: str) -> list[tuple[str, float, float, float]]:
    """Return each query with the values of the first two runs and the improvement, in an order."""
    first, second = regraded.current.evaluations[:2]
    values = (each.counted(measure).tolist() for each in (first, second))
    sign = -1 if measure.declaration.better == "lower" else 1
    rows = [
        (query, before, after, sign * (after - before))
        for query, before, after in zip(first.query_ids, *values, strict=True)
    ]
    if order == "id":
        return sorted(rows)
    return sorted(rows, key=lambda row: (math.isnan(row[3]), row[3] if order == "losses" else -row[3], row[0]))


def _slices(regraded: Regraded, measure: Measure, texts: Mapping[str, str]) -> Table | None:
    """Return the improvement by group and length of the query; None where the mean is not that of the queries."""
    first, second = regraded.current.evaluations[:2]
    if first.weights is not None or measure.declaration.mean != "arithmetic" or measure.declaration.reads in OF_ANSWERS:
        return None
    groups = dict(zip(first.query_ids, first.groups or (), strict=False))
    slices: dict[str, list[float]] = {}
    for query, *_, change in _query_rows(regraded, measure, "id"):
        length = len(texts.get(query, "").split())
        names = [groups.get(query, ""), next((label for least, label in _LENGTHS if length >= least), "")]
        for name in () if math.isnan(change) else names:
            slices.setdefault(name, []).append(change)
    rows = []
    for name in [*dict.fromkeys(groups.values()), *reversed([label for _, label in _LENGTHS])]:
        if own := slices.get(name):
            interval = t_interval(own) if len(own) >= _ENOUGH else None
            shown = "–" if interval is None else f"[{interval.low:+.3f}, {interval.high:+.3f}]"
            rows.append((name, len(own), f"{math.fsum(own) / len(own):+.3f}", shown))
    return Table(
        ("queries", "number", "improvement", "95% CI"),
        tuple(rows),
        title=f"{measure}: improvement of {second.run_name} over {first.run_name}",
        right=frozenset({2}),
        notes=("The intervals are not corrected for the number of slices: test what you find on other queries.",),
    )


def _download(workbench: Workbench, entries: Sequence[HistoryEntry], regraded: Regraded) -> Response:
    """Return the comparison as a file: one page with everything."""
    history = workbench.history
    runs = {entry.short_name: history.run(entry) for entry in entries}
    text = html_report(
        history.qrels(entries[0]),
        runs,
        result=regraded.saved,
        sections=[Section("Changed grades", (_AS_SAVED,))] if regraded.grades else (),
        collection=workbench.texts(entries[0], None, None),
        title=" and ".join(runs),
    )
    name = "-".join(str(entry.id) for entry in entries)
    return Response(
        text,
        media_type="text/html",
        headers={"Content-Disposition": f'attachment; filename="comparison-{name}.html"'},
    )


def _deciding(visit: Visit) -> Response:
    """Return the bounds over unjudged documents, and the documents that could decide."""
    workbench = workbench_of(visit)
    entries, measure = _pair(visit)
    try:
        result = workbench.deciding(entries[0], entries[1], str(measure))
    except InputError as error:
        return visit.render("deciding.html", result=None, reason=error.what)
    return visit.render(
        "deciding.html",
        entries=entries,
        may_judge=visit.judge.role in LEADS and bool(workbench.queries(entries[0]) or workbench.queries(entries[1])),
        result=result,
        reason="",
        first=result.top(_WORST),
    )


def _add_queue(visit: Visit) -> Response:
    """Make tasks of the documents that could decide, for judges who see neither systems nor ranks."""
    entries, measure = _pair(visit)
    workbench = workbench_of(visit)
    if workbench.deciding(entries[0], entries[1], str(measure)):
        workbench.add_queue(entries[0], entries[1], str(measure))
    return see_other("/judge")


def _compared_query(visit: Visit) -> Response:
    """Show both rankings of a query, with texts and grades."""
    workbench = workbench_of(visit)
    entries, measure = _pair(visit)
    query, depth = visit.request.path_params["query"], _option(visit, "depth", _DEPTHS)
    regraded = workbench.comparison(entries[:2], str(measure))
    grades = workbench.grades(entries[0], query)
    if not grades:
        raise InputError(f"query {query!r:.60} has no judgments", where="query", fix="choose another query")
    special = workbench.special(entries[0])
    runs = [replace(workbench.history.run(entry, queries=[query]), name=entry.short_name) for entry in entries[:2]]
    # With special judgments, of the highest grade of each document.
    of_grades, ties = "nDCG@10" if special else measure, order_of(entries[0])
    result = diff({query: grades}, runs[0], runs[1], of_grades, queries=[query], k=depth, ties=ties)
    if visit.request.query_params.get("format") == "json":
        return Response(result.to_json(), media_type="application/json")
    shown, both = result.query(query), (regraded.saved, regraded.current)
    order = [row[0] for row in _query_rows(regraded, measure, "losses")]
    place = order.index(query) if query in order else None
    rankings = (shown.ranking_a, shown.ranking_b)
    documents = list(dict.fromkeys(at.document for ranking in rankings for at in ranking))
    missed = [name for name, grade in grades.items() if grade > 0 and name not in documents]
    selected = visit.request.query_params.get("doc", "")
    if not selected:
        unjudged = (at.document for ranking in reversed(rankings) for at in ranking if at.grade is None)
        selected = next(unjudged, documents[0] if documents else "")
    texts = workbench.texts(entries[0], [*documents, *missed, selected]).documents
    document, text = texts.get(selected), workbench.queries(entries[0]).get(query, "")
    return visit.render(
        "compared_query.html",
        entries=entries,
        measure=measure,
        query=query,
        text=text,
        shown=shown,
        rankings=rankings,
        titles={name: document.snippet(120) for name, document in texts.items()},
        missed=missed,
        moves=[(at.rank, at.other_rank) for at in shown.ranking_a if at.other_rank and at.other_rank <= depth],
        depth=depth,
        depths=_DEPTHS,
        selected=selected,
        document=None if document is None else _displayed(visit, document, text),
        given=_given(visit, query, selected),
        grade=grades.get(selected),
        unjudged_note={"not relevant": "counts as not relevant"}.get(entries[0].policies.unjudged, "left out"),
        scale=_scale(visit, entries[0]),
        values=[
            (str(name), *([evaluation.value(query, name) for evaluation in row.evaluations] for row in both))
            for name in regraded.saved.measures
        ],
        verdicts=_verdicts(regraded, measure),
        regraded=regraded,
        special=special,
        judged_as=workbench.judged_as(entries[0], query, selected) if special else [],
        before=order[place - 1] if place else None,
        after=order[place + 1] if place is not None and place + 1 < len(order) else None,
        place=place,
        total=len(order),
        may_grade=visit.judge.role in LEADS and not special,
    )


def _given(visit: Visit, query: str, document: str) -> list[dict[str, str]]:
    """Return the judgments of people on a document, with the names that the judge may see."""
    return [given | {"name": visit.named(given["name"])} for given in workbench_of(visit).given(query, document)]


def _displayed(visit: Visit, document: Document, question: str) -> DisplayedDocument:
    texts = {"title": document.title, "text": document.text, **document.fields}
    fields = {name: shorten(str(text), _MOST_TEXT) for name, text in texts.items()}
    return displayed(judging.Document(document.id, fields), visit.project.settings, question)


def _scale(visit: Visit, entry: HistoryEntry) -> Sequence[str]:
    """Return the names of the grades: those of the project, or two if the judgments have no others."""
    return _BINARY if max(workbench_of(visit).possible_grades(entry), default=0) <= 1 else visit.project.settings.grades


def _grade(visit: Visit) -> Response:
    """Store a grade given in sight of both rankings."""
    entries, measure = _pair(visit)
    query, form = visit.request.path_params["query"], visit.form
    workbench = workbench_of(visit)
    document, said = form.get("document", ""), form.get("grade", "")
    # Whether judges graded the document is asked last: it takes longest, and most documents are ranked.
    if (
        workbench.special(entries[0])
        or said not in {"undo", *map(str, range(len(_scale(visit, entries[0]))))}
        or (
            not any(document in workbench.ranked(entry, query) for entry in entries[:2])
            and document not in workbench.grades(entries[0], query)
        )
    ):
        raise InputError("unknown grade or document for this query", where="grade", fix="reload the page")
    visit.project.grade(visit.judge.id, query, document, None if said == "undo" else int(said))
    return see_other(compared(entries, measure, query, doc=document, depth=form.get("depth", "")))


# ---- a query, a document, and a value


def _query(visit: Visit) -> Response:
    """Show a query across evaluations."""
    workbench, query = workbench_of(visit), visit.request.path_params["query"]
    rows: list[tuple[HistoryEntry, str, str]] = []
    text, grades = "", dict[str, float]()
    entries = workbench.history.entries()
    name = visit.request.query_params.get("m", "")
    for entry in reversed(entries[-ROWS:]):
        own = name if name in entry.means else next(iter(entry.means))
        evaluation = workbench.measure(entry, own)
        if query in evaluation.query_ids:
            rows.append((entry, own, f"{evaluation.value(query, own):.3f}"))
            text = text or workbench.queries(entry).get(query, "")
            grades = grades or workbench.grades(entry, query)
    if not rows:
        what = f"None of the latest {ROWS} evaluations has the query {query:.60}."
        raise PageError(404, what, where="query", fix="Choose another query.")
    lines: dict[str, list[float]] = {}  # of values of the same run and measure, oldest first
    for entry, own, value in reversed(rows):
        if value != "nan":
            lines.setdefault(f"{own} of {entry.run}", []).append(float(value))
    relevant = sorted((name for name, grade in grades.items() if grade > 0), key=lambda name: -grades[name])
    titles = workbench.texts(rows[0][0], relevant).documents
    return visit.render(
        "query.html",
        query=query,
        text=text,
        rows=rows,
        lines={name: _line(values) for name, values in lines.items()},
        relevant=[(name, grades[name], titles[name].snippet(120) if name in titles else "") for name in relevant],
        judged=len(grades),
    )


def _document(visit: Visit) -> Response:
    """Show the text of a document, its grades for a query, and its ranks."""
    workbench, name = workbench_of(visit), visit.request.path_params["document"]
    query = visit.request.query_params.get("query", "")
    entries = workbench.history.entries()
    document: Document | None = None
    ranks = []
    rankings: dict[object, list[str]] = {}
    for entry in reversed(entries[-ROWS:]):
        key = (entry.ranking, entry.qrels, entry.collection, entry.policies.ties)
        if key not in rankings:
            document = document or workbench.texts(entry, [name]).documents.get(name)
            rankings[key] = workbench.ranked(entry, query) if query else []
        if name in rankings[key]:
            ranks.append((entry, rankings[key].index(name) + 1))
    if document is None and not ranks:
        what = f"None of the latest {ROWS} evaluations has the document {name:.60}."
        raise PageError(404, what, where="document", fix="Choose another document.")
    text = workbench.queries(entries[-1]).get(query, "")
    return visit.render(
        "document.html",
        name=name,
        query=query,
        text=text,
        document=None if document is None else _displayed(visit, document, text),
        given=_given(visit, query, name),
        grade=workbench.grades(entries[-1], query).get(name) if query else None,
        ranks=ranks,
    )


def _image(visit: Visit) -> Response:
    """Send an image of a document: a raster image in the folder of the collection that is not hidden."""
    file, data = workbench_of(visit).project.file, b""
    source = file.data.get("collection", {})
    with suppress(OSError, LookupError, ValueError):  # no folder, or no name of a file in it
        folder = (file.folder / (source["source"] if isinstance(source, dict) else source)).resolve()
        path = (folder / visit.request.path_params["image"]).resolve()
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            with path.open("rb") as stream:
                data = stream.read(_MOST_IMAGE)
    kind = next((kind for start, kind in _IMAGES.items() if re.match(start, data, re.DOTALL)), None)
    if kind is None:
        raise PageError(404, "There is no such image.", where="images", fix="Go to the start page.")
    return Response(data, media_type=kind)


def _explanation(visit: Visit) -> Response:
    """Show a value step by step."""
    workbench, entry = workbench_of(visit), saved_entry(visit, visit.request.path_params["id"])
    query = visit.request.path_params["query"]
    measure: Measure = _option(visit, "m", [*map(parse, entry.means)])
    policies, special = entry.policies, workbench.special(entry)
    result = (
        None
        if special == measure.declaration.reads
        else explain(
            {query: workbench.grades(entry, query)},
            workbench.history.run(entry, queries=[query]),
            measure,
            query,
            ties=policies.ties,
            duplicates=policies.duplicates,
            undefined=policies.undefined,
            unjudged=policies.unjudged,
        )
    )
    return visit.render("explanation.html", entry=entry, query=query, measure=measure, result=result, special=special)


routes = [
    Route("/", visited(_overview, roles=("judge", *READERS))),
    Route("/verdict", visited(_verdict, roles=READERS)),
    Route("/evaluations", visited(_evaluations, roles=READERS)),
    Route("/evaluations/{id}", visited(_evaluation, roles=READERS)),
    Route("/evaluations/{id}/causes", visited(_causes, roles=READERS, share=False)),
    Route("/evaluations/{id}/causes/{query:path}", visited(_causes, roles=READERS, share=False)),
    Route("/compare", visited(_comparison, roles=READERS)),
    Route("/deciding", visited(_deciding, roles=READERS, share=False)),
    Route("/deciding", visited(_add_queue, roles=LEADS), methods=["POST"]),
    Route("/compare/{query:path}", visited(_compared_query, roles=READERS)),
    Route("/compare/{query:path}", visited(_grade, roles=LEADS), methods=["POST"]),
    Route("/queries/{query:path}", visited(_query, roles=READERS)),
    Route("/images/{image:path}", visited(_image, roles=("judge", *READERS), share=False)),
    Route("/documents/{document:path}", visited(_document, roles=READERS)),
    Route("/explain/{id}/{query:path}", visited(_explanation, roles=READERS)),
]
