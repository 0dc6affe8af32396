"""The kinds of plots: values of runs as panels and series of numbers."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from rankgauge.core.grouping import group_values
from rankgauge.core.text import inflect, many
from rankgauge.errors import InputError, UnknownName
from rankgauge.measures.measure import Measure, one_of, parse
from rankgauge.rendering.plot_drawing import Panel, Plot, Series

_CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
_MOST_BARS = 40
_MOST_CELLS = 40
_MOST_PANELS = 6
_MOST_LINES = 40
_MOST_DATES = 10
_BINS = {
    "1": (1, 1),
    "2": (2, 2),
    "3": (3, 3),
    "4–5": (4, 5),
    "6–10": (6, 10),
    "11–20": (11, 20),
    "21–100": (21, 100),
    "over 100": (101, math.inf),
}
_UNIT = (0.0, 1.0)


Evaluated: TypeAlias = Any  # an Evaluation, which is in a higher layer


@dataclass(frozen=True)
class _PlotData:
    """Data of a plot: runs, baseline, and primary measure."""

    kind: str
    runs: tuple[Evaluated, ...]
    base: str
    measure: Measure | None
    differences: Sequence[Any]

    @property
    def primary(self) -> Measure:
        measure = self.runs[0].measures[0] if self.measure is None else self.measure
        for run in self.runs:
            one_of(measure, run.measures, f"run {run.run_name!r}")
        return measure

    def refused(self, what: str) -> InputError:
        """Return the error for measures that the plot needs but that were not evaluated."""
        return InputError(
            f"the plot {self.kind!r} needs {what}, which was not evaluated",
            fix=f"evaluate(judgments, run, rankgauge.rendering.plot_measures({self.kind!r}))",
        )

    def aligned(self) -> tuple[str, ...]:
        """Return the common queries of all runs, or raise an error if they differ."""
        queries = self.runs[0].query_ids
        other = next((run.run_name for run in self.runs if run.query_ids != queries), None)
        if other is not None:
            raise InputError(
                f"{self.runs[0].run_name} and {other} were evaluated on different queries",
                where=f"plot {self.kind!r}",
                fix="evaluate both with the same queries=[...]",
            )
        return queries


@dataclass(frozen=True)
class PlotKind:
    """A kind of plot.

    Attributes:
        title: Content of the plot.
        needs: Measures that it needs; empty if it shows all evaluated measures.
    """

    title: str
    needs: tuple[str, ...] = ()


PLOTS: Mapping[str, PlotKind] = MappingProxyType(
    {
        "means": PlotKind("Means with their intervals"),
        "differences": PlotKind("Differences from the baseline with their intervals"),
        "per-query": PlotKind("Differences from the baseline by query, sorted"),
        "precision-recall": PlotKind("Interpolated precision over recall", ("IPrec",)),
        "cutoffs": PlotKind(
            "Recall and nDCG over the cut-off", tuple(f"{name}@{k}" for name in ("R", "nDCG") for k in _CUTOFFS)
        ),
        "first-ranks": PlotKind("Rank of the first relevant document", ("FirstRel",)),
        "heat-map": PlotKind("Values by query and run"),
    }
)


def plot(
    source: Any, kind: str = "means", *, measure: str | Measure | None = None, baseline: str | None = None
) -> Plot:
    """Plot evaluations or a comparison.

    Args:
        source: A comparison, an evaluation, or several evaluations.
        kind: One of `PLOTS`: ``means`` (bars with 95% intervals), ``differences`` (of a
            comparison, with its intervals), ``per-query`` (sorted differences),
            ``precision-recall``, ``cutoffs``, ``first-ranks``, or ``heat-map``.
        measure: Measure of ``per-query`` and ``heat-map``; default: the primary or first measure.
        baseline: Run that the others are compared with; default: the baseline of the comparison, or
            the first run.

    Returns:
        A plot. Notebooks display it, and ``.save("means.svg")`` writes it to a file.

    Raises:
        UnknownName: For an unknown kind or run.
        InputError: If the kind needs measures that were not evaluated (see :func:`plot_measures`).

    Example:
        >>> from rankgauge import evaluate
        >>> ev = evaluate({"q1": {"d1"}, "q2": {"d2"}}, {"q1": ["d1"], "q2": ["x", "d2"]}, "RR")
        >>> plot(ev).alt
        'Bars. RR: run 0.750.'
    """
    if kind not in PLOTS:
        raise UnknownName.of("plot", kind, PLOTS)
    compared = hasattr(source, "differences")
    several = source.evaluations if compared else source
    runs = tuple(several) if isinstance(several, Iterable) else (several,)
    if not runs or not all(isinstance(getattr(run, "run_name", None), str) for run in runs):
        raise InputError("there is no evaluation to plot", fix="pass the result of evaluate() or compare()")
    base = (source.baseline if compared else runs[0].run_name) if baseline is None else baseline
    names = [run.run_name for run in runs]
    if base not in names:
        raise UnknownName.of("run", base, names)
    chosen = (source.primary if compared else None) if measure is None else parse(measure)
    differences = source.differences if compared else ()
    return _DRAWN[kind](_PlotData(kind, runs, base, chosen, differences))


def plot_measures(kind: str) -> tuple[str, ...]:
    """Return the measures that a kind of plot needs; empty if it shows all evaluated measures.

    Raises:
        UnknownName: For an unknown kind.

    Example:
        >>> plot_measures("first-ranks")
        ('FirstRel',)
    """
    if kind not in PLOTS:
        raise UnknownName.of("plot", kind, PLOTS)
    return PLOTS[kind].needs


def plot_history(
    dates: Sequence[Any],
    means: Sequence[float],
    low: Sequence[float] = (),
    high: Sequence[float] = (),
    *,
    measure: str = "value",
    breaks: Sequence[int] = (),
) -> Plot:
    """Plot the trend of a mean over time, with its intervals.

    Args:
        dates: Dates or texts, oldest first. ISO dates are spaced by time, others evenly.
        means: Mean at each date.
        low: Lower bounds of the intervals; may be empty.
        high: Upper bounds.
        measure: Name of the measure.
        breaks: Positions of means that are not comparable with the previous mean: the line has a
            gap there.

    Raises:
        InputError: If the lists are empty or differ in length.

    Example:
        >>> plot_history(["2024-01-01", "2024-02-01"], [0.5, 0.75], measure="RR").alt
        'A line. RR was 0.500 (2024-01-01), then went to 0.750 (2024-02-01).'
    """
    sizes = {len(dates), len(means), len(low) or len(means), len(high) or len(means)}
    if len(sizes) > 1 or not len(dates) or bool(len(low)) != bool(len(high)):
        raise InputError(
            f"got {len(dates)} dates, {len(means)} means, {len(low)} and {len(high)} bounds",
            where="history",
            fix="pass one mean per date, and both bounds of each interval or none",
        )
    texts = [str(date) for date in dates]
    places = _moments(texts)
    step = -(-len(texts) // _MOST_DATES)
    # NaN interrupts the line.
    gaps = sorted({place for place in breaks if 0 < place < len(means)}, reverse=True)
    columns = [list(map(float, column)) for column in (means, places, low, high)]
    for gap in gaps:
        for column in filter(None, columns):
            column.insert(gap, column[gap] if column is columns[1] else math.nan)
    y, x, lows, highs = map(tuple, columns)
    panel = Panel(
        "lines",
        (Series(measure, y, x, lows, highs),),
        down=measure,
        ticks=tuple(texts[::-1][::step][::-1]),
        at=tuple(places[::-1][::step][::-1]),
    )
    alt = f"A line. {measure} was {means[0]:.3f} ({texts[0]})"
    if len(texts) > 1:
        alt += f", then went to {means[-1]:.3f} ({texts[-1]})"
    caption = "The band is the 95% interval of each mean." if len(low) else ""
    if gaps:
        alt += f"; it is broken {len(gaps)} times" if len(gaps) > 1 else "; it is broken once"
        caption += " Where the line is broken, values cannot be compared across the gap."
    return Plot("history", f"{measure} over time", f"{alt}.", (panel,), caption.strip())


def _moments(texts: Sequence[str]) -> tuple[float, ...]:
    """Return days since the first date; 0, 1, 2, ... if the texts are not ascending dates."""
    evenly = tuple(float(place) for place in range(len(texts)))
    try:
        moments = [dt.datetime.fromisoformat(text) for text in texts]
        days = tuple((m - moments[0]) / dt.timedelta(days=1) for m in moments)
    except (ValueError, TypeError):  # not dates, or only some have a time zone
        return evenly
    return days if len(set(days)) == len(days) and days == tuple(sorted(days)) else evenly


# ---- values


def _common(runs: Sequence[Evaluated]) -> list[Measure]:
    return [m for m in runs[0].measures if all(m in run.measures for run in runs)]


def _number(value: float) -> str:
    """Format a value in few characters."""
    if math.isnan(value):
        return "–"
    if value in {0.0, 1.0}:
        return f"{value:.0f}"
    return f"{value:.2f}".removeprefix("0") if 0 < value < 1 else f"{value:.3g}"


# ---- the kinds


def _means(shown: _PlotData) -> Plot:
    measures = _common(shown.runs)
    alike = [m for m in measures if m.declaration.bounds == _UNIT] or measures[:1]
    drawn = alike[: max(1, _MOST_BARS // len(shown.runs))]
    if not drawn:
        raise InputError("the runs have no measure in common", where=f"plot {shown.kind!r}")
    # Means by a judge of answers are not corrected for its errors here.
    by_judge = {m for m in drawn if any(m.judged_by_model(run.settings) for run in shown.runs)}
    series = []
    for run in shown.runs:
        mean = run.mean()
        y = tuple(mean[str(m)] for m in drawn)
        # A missing interval is drawn with zero width.
        ends = [(None if m in by_judge else run.mean_interval(m)) or (at, at) for m, at in zip(drawn, y, strict=True)]
        low, high = zip(*ends, strict=True)
        texts = tuple("–" if math.isnan(v) else f"{v:.3f}" for v in y)
        series.append(Series(run.run_name, y, low=low, high=high, texts=texts))
    panel = Panel(
        "bars",
        tuple(series),
        across="mean over queries",
        ticks=tuple(f"{m} (by judge)" if m in by_judge else str(m) for m in drawn),
        limits=(0.0, 1.12) if drawn[0].declaration.bounds == _UNIT else None,
    )
    text = "; ".join(f"{m}: " + ", ".join(f"{s.name} {s.texts[n]}" for s in series) for n, m in enumerate(drawn))
    left = _drawn(len(drawn), len(measures), "measure")
    caption = f"Whiskers are 95% intervals of each mean; they say nothing about a difference.{left}"
    return Plot("means", PLOTS["means"].title, f"Bars. {text}.", (panel,), caption)


def _differences(shown: _PlotData) -> Plot:
    if not shown.differences:
        raise InputError(
            "a plot of differences shows a comparison", where=f"plot {shown.kind!r}", fix="pass the result of compare()"
        )
    alike = [d for d in shown.differences if d.measure.declaration.bounds == _UNIT]
    chosen = alike or [d for d in shown.differences if d.measure == shown.primary]
    if len(chosen) > _MOST_LINES:
        chosen = [d for d in chosen if d.verdict is not None]
    drawn = chosen[:_MOST_LINES]
    runs = list(dict.fromkeys(d.run for d in drawn))
    measures = list(dict.fromkeys(d.measure for d in drawn))
    ticks = tuple(
        str(d.measure) if len(runs) == 1 else d.run if len(measures) == 1 else f"{d.run}: {d.measure}" for d in drawn
    )
    series = Series(
        "difference",
        tuple(d.difference for d in drawn),
        low=tuple(d.low for d in drawn),
        high=tuple(d.high for d in drawn),
        texts=tuple(f"{d.difference:+.3f} {d.verdict or ''}".rstrip() for d in drawn),
    )
    subject = runs[0] if len(runs) == 1 else "run"
    panel = Panel("intervals", (series,), across=f"{subject} minus {shown.base}", ticks=ticks)
    text = "; ".join(f"{tick} {d.difference:+.3f}, {d.interval_text()}" for tick, d in zip(ticks, drawn, strict=True))
    left = _drawn(len(drawn), len(shown.differences), "difference")
    caption = f"An interval (95%) that crosses the line is compatible with no difference.{left}"
    of = f" in {measures[0]}" if len(measures) == 1 else ""
    title = f"Differences from {shown.base}{of} with their intervals"
    return Plot("differences", title, f"Points with intervals. {text}.", (panel,), caption)


def _per_query(shown: _PlotData) -> Plot:
    shown.aligned()
    measure = shown.primary
    base = next(run for run in shown.runs if run.run_name == shown.base)
    others = [run for run in shown.runs if run.run_name != shown.base]
    if not others:
        raise InputError(
            "differences by query need two runs",
            where=f"plot {shown.kind!r}",
            fix="pass two evaluations, or a comparison",
        )
    words = ("higher", "lower") if measure.declaration.better == "neither" else ("better", "worse")
    above, below = reversed(words) if measure.declaration.better == "lower" else words
    drawn = []
    for run in others[:_MOST_PANELS]:
        skipped = "skip" in {run.policies.undefined, base.policies.undefined}
        apart = measure.differences(run.column(measure), base.column(measure), skip_undefined=skipped)
        gains = sorted((gain for gain in apart.tolist() if not math.isnan(gain)), reverse=True)
        up, down = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
        texts = (
            f"{above} in {many(up, 'query')}",
            f"{below} in {many(down, 'query')}, the same in {len(gains) - up - down}",
        )
        drawn.append(Series(run.run_name, tuple(gains), texts=texts))
    reach = max((abs(gain) for series in drawn for gain in series.y), default=0.0) or 1.0
    panels = tuple(
        Panel(
            "steps",
            (series,),
            title=series.name,
            across=f"{many(len(series.y), 'query')}, sorted",
            down=f"difference in {measure}",
            limits=(-1.15 * reach, 1.15 * reach),
        )
        for series in drawn
    )
    notes = "; ".join(f"{series.name} is {', '.join(series.texts)}" for series in drawn)
    subject = drawn[0].name if len(drawn) == 1 else "each run"
    title = f"Difference in {measure} by query, {subject} minus {shown.base}"
    left = _drawn(len(drawn), len(others), "run")
    caption = f"Each query is one step, the largest gain at the left.{left}"
    return Plot("per-query", title, f"An area. {notes}.", panels, caption)


def _precision_recall(shown: _PlotData) -> Plot:
    points = [m for m in _common(shown.runs) if m.name == "IPrec"]
    points = sorted((m for m in points if m.rel == points[0].rel), key=lambda m: _parameter(m, "recall"))
    if len(points) < 2:
        raise shown.refused("IPrec at several levels of recall")
    at = tuple(_parameter(m, "recall") for m in points)
    series = _curves(shown.runs, points, at)
    panel = Panel(
        "lines",
        series,
        across="recall",
        down="interpolated precision",
        limits=(-0.02, 1.03),
        ticks=tuple(f"{x:g}" for x in at),
        at=at,
    )
    middle = min(range(len(at)), key=lambda n: abs(at[n] - 0.5))
    text = ", ".join(f"{s.name} {s.y[middle]:.3f}" for s in series)
    return Plot(
        "precision-recall",
        PLOTS["precision-recall"].title,
        f"Falling lines. Precision at recall {at[middle]:g}: {text}.",
        (panel,),
        "Mean over queries of the highest precision at any rank with that recall.",
    )


def _curves(runs: Sequence[Evaluated], points: Sequence[Measure], at: Sequence[float]) -> tuple[Series, ...]:
    """Return the means of each run at several values of a parameter."""
    means = [(run.run_name, run.mean()) for run in runs]
    return tuple(Series(name, tuple(mean[str(m)] for m in points), tuple(at)) for name, mean in means)


def _parameter(measure: Measure, name: str) -> float:
    return float(dict(measure.params)[name])  # type: ignore[arg-type] # it is a number


def _cutoffs(shown: _PlotData) -> Plot:
    families = group_values((str(m.family), m) for m in _common(shown.runs) if m.cutoff is not None)
    several = {name: of for name, of in families.items() if len(of) > 1}
    chosen = [name for name in ("R", "nDCG") if name in several] or list(several)[:2]
    if not chosen:
        raise shown.refused("a measure at several cut-offs")
    panels, notes = [], []
    for name in chosen:
        points = sorted(several[name], key=lambda m: _parameter(m, "k"))
        at = tuple(_parameter(m, "k") for m in points)
        panel = Panel(
            "lines",
            _curves(shown.runs, points, at),
            title=f"{name}@k",
            across="cut-off k",
            ticks=_thinned(at),
            at=at,
            log=at[-1] / at[0] >= 10,
            limits=(0.0, 1.03) if points[0].declaration.bounds == _UNIT else None,
        )
        panels.append(panel)
        ends = ", ".join(f"{s.name} {s.y[0]:.3f} to {s.y[-1]:.3f}" for s in panel.series)
        notes.append(f"{points[0]} to {points[-1]}: {ends}")
    title = f"{' and '.join(chosen)} over the cut-off"
    return Plot("cutoffs", title, f"Lines. {'; '.join(notes)}.", tuple(panels))


def _thinned(places: Sequence[float]) -> tuple[str, ...]:
    """Return labels of cut-offs, without those too close on a logarithmic axis."""
    names, last = [], 0.0
    for place in places:
        near = last and place / last < (places[-1] / places[0]) ** 0.05
        names.append("" if near else f"{place:g}")
        last = last if near else place
    return tuple(names)


def _first_ranks(shown: _PlotData) -> Plot:
    measure = next((m for m in _common(shown.runs) if m.name == "FirstRel"), None)
    if measure is None:
        raise shown.refused("FirstRel")
    ranks = [run.column(measure).tolist() for run in shown.runs]
    counts = {
        name: [sum(low <= rank <= high for rank in of_run) for of_run in ranks] for name, (low, high) in _BINS.items()
    }
    # Omit the deep ranks that no run reaches.
    while len(counts) > 1 and not any(counts[[*counts][-1]]):
        counts.popitem()
    counts["none"] = [sum(map(math.isnan, of_run)) for of_run in ranks]
    series = tuple(
        Series(run.run_name, tuple(map(float, column)), texts=tuple(map(str, column)))
        for run, column in zip(shown.runs, zip(*counts.values(), strict=True), strict=True)
    )
    ticks = tuple(counts)
    panel = Panel("columns", series, across="rank of the first relevant document", down="queries", ticks=ticks)
    text = "; ".join(f"{s.name}: " + ", ".join(f"{t} {n}" for t, n in zip(ticks, s.texts, strict=True)) for s in series)
    caption = "“none”: no relevant document was retrieved."
    return Plot("first-ranks", PLOTS["first-ranks"].title, f"Columns, queries by rank. {text}.", (panel,), caption)


def _heat_map(shown: _PlotData) -> Plot:
    queries, measure = shown.aligned(), shown.primary
    columns = [run.counted(measure).tolist() for run in shown.runs]
    known = {
        place: values
        for place, row in enumerate(zip(*columns, strict=True))
        if (values := [value for value in row if not math.isnan(value)])
    }
    level = {place: math.fsum(values) / len(values) for place, values in known.items()}
    widest = sorted(known, key=lambda p: (min(known[p]) - max(known[p]), level[p], p))[:_MOST_CELLS]
    drawn = sorted(widest, key=lambda p: (level[p], p))
    series = tuple(
        Series(run.run_name, tuple(column[p] for p in drawn), texts=tuple(_number(column[p]) for p in drawn))
        for run, column in zip(shown.runs, columns, strict=True)
    )
    panel = Panel(
        "grid",
        series,
        across="query",
        ticks=tuple(queries[p] for p in drawn),
        limits=_UNIT if measure.declaration.bounds == _UNIT else None,
    )
    which = "where runs differ most" if len(shown.runs) > 1 else "with the lowest values"
    left = _drawn(len(drawn), len(queries), "query", f": those {which}")
    caption = f"Stronger colors are higher values; the query with the lowest mean over runs is first.{left}"
    lows = ", ".join(panel.ticks[:3])
    alt = f"A grid of {many(len(drawn), 'query')} and {many(len(series), 'run')}. Lowest: {lows}."
    return Plot("heat-map", f"{measure} by query and run", alt, (panel,), caption)


_DRAWN: Mapping[str, Callable[[_PlotData], Plot]] = {
    "means": _means,
    "differences": _differences,
    "per-query": _per_query,
    "precision-recall": _precision_recall,
    "cutoffs": _cutoffs,
    "first-ranks": _first_ranks,
    "heat-map": _heat_map,
}


def _drawn(number: int, whole: int, noun: str, which: str = "") -> str:
    """Return a sentence on what is drawn, unless it is everything."""
    return f" {number} of {many(whole, noun)} {inflect(number, 'is', 'are')} drawn{which}." if number < whole else ""
