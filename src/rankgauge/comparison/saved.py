"""Query-by-query comparison of two saved evaluations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankgauge.comparison.comparison import main_measures
from rankgauge.comparison.conclusions import no_verdicts, units, withheld_runs, withhold_verdict, withholding
from rankgauge.comparison.differences import Design, Difference, describe_difference, differences, seed_of, select
from rankgauge.core.text import many
from rankgauge.errors import InputError, MismatchError
from rankgauge.evaluation.result import Evaluation, settings_change
from rankgauge.measures.measure import Measure, parse, parse_all
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Detail, Table
from rankgauge.store.entries import HistoryEntry
from rankgauge.store.history import History

# Both evaluations may be of the same run: name them by their order instead.
_BEFORE, _AFTER = "before", "after"
_LEVEL = 0.95


@dataclass(frozen=True, repr=False)
class HistoryComparison(Result):
    """Comparison of two saved evaluations. Returned by :meth:`History.compare`.

    Attributes:
        before: The first evaluation, the baseline of the differences.
        after: The second evaluation.
        differences: Differences of the measures over the shared queries; the first is tested, the
            others are only described.
        differs: Reasons why the two are not comparable; empty unless the comparison was forced.
        notes: Notes on interpretation.
    """

    before: HistoryEntry
    after: HistoryEntry
    differences: tuple[Difference, ...]
    differs: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Conclusion for the first measure."""
        first = self.differences[0]
        spread = first.difference_text()
        pair = f"{self.after.name} against {self.before.name} by {first.measure}"
        match first.verdict:
            case "identical":
                return f"{pair}: identical in every query"
            case "better" | "worse" | "higher" | "lower":
                return f"{pair}: {first.verdict}, difference {spread}"
            case "withheld":
                return f"{pair}: no verdict, difference {spread}"
            case _:
                return f"{pair}: difference {spread}: cannot tell"

    def table(self) -> Table:
        """Return one row for each measure, with the sentences below; most measures and notes are details."""
        main = main_measures([d.measure for d in self.differences], [self.differences[0].measure])
        return Table(
            columns=("measure", str(self.before.id), str(self.after.id), "Δ", "95% CI", "W/T/L", "p", "verdict"),
            rows=tuple(
                (
                    d.name if d.measure in main else Detail(d.name),
                    d.baseline_mean,
                    d.mean,
                    f"{d.difference:+.3f}",
                    d.interval_text(),
                    f"{d.wins}/{d.ties}/{d.losses}",
                    None if d.p is None else f"{d.p:.4f}",
                    d.verdict or "",
                )
                for d in self.differences
            ),
            title=f"{self.after.name} against {self.before.name}",
            notes=(
                *(f"WARNING: not comparable: {text}" for text in self.differs),
                self.sentence,
                *(note if note.startswith("no verdict") else Detail(note) for note in self.notes),
            ),
            unit="measure",
        )

    def data_table(self) -> Table:
        """Return one row for each measure with unformatted numbers."""
        ids, differs = (self.before.id, self.after.id), "; ".join(self.differs)
        return Table(
            columns=(
                "measure",
                "before_id",
                "after_id",
                "queries",
                "before",
                "after",
                "difference",
                "low",
                "high",
                "p",
                "wins",
                "ties",
                "losses",
                "verdict",
                "by_judge",
                "differs",
            ),
            rows=tuple(
                (
                    str(d.measure),
                    *ids,
                    d.queries,
                    d.baseline_mean,
                    d.mean,
                    d.difference,
                    d.low,
                    d.high,
                    d.p,
                    d.wins,
                    d.ties,
                    d.losses,
                    d.verdict or "",
                    d.by_judge,
                    differs,
                )
                for d in self.differences
            ),
        )

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        return self.sentence


def obstacles(before: HistoryEntry, after: HistoryEntry) -> Iterator[str]:
    """Yield differences that make two evaluations incomparable: judgments, policies, weights."""
    if before.qrels and after.qrels and before.qrels != after.qrels:
        yield (f"different judgments ({before.qrels[:8]} in {before.id}, {after.qrels[:8]} in {after.id})")
    # The queries policy may differ: only shared queries are compared.
    for name in ("ties", "duplicates", "undefined", "unjudged", "draws", "seed"):
        old, new = getattr(before.policies, name), getattr(after.policies, name)
        if old != new:
            yield f"different policies ({name}={old} in {before.id}, {name}={new} in {after.id})"
    named = ["ours" if e.profile is None else e.profile.name for e in (before, after)]
    if named[0] != named[1]:
        yield f"different profiles ({named[0]} in {before.id}, {named[1]} in {after.id})"
    if before.weighted != after.weighted:
        plain, weighted = (before, after) if after.weighted else (after, before)
        yield f"means of {weighted.id} are weighted by query, those of {plain.id} are not"


def compare_saved(
    history: History,
    before: int | HistoryEntry,
    after: int | HistoryEntry,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    force: bool = False,
) -> HistoryComparison:
    """Compare two saved evaluations on their shared queries.

    Args:
        history: The store.
        before: The number or the metadata of the first evaluation.
        after: The second evaluation, compared with the first.
        measures: The measures to compare; the first is tested, the others are only described. If
            omitted, all shared measures, nDCG@10 first if available.
        force: Whether to compare even if judgments, policies, or definitions differ; the result
            then reports the differences.

    Raises:
        MismatchError: If judgments, policies, or definitions differ.
        InputError: If the evaluations share fewer than two queries or no measure.

    Example:
        >>> import tempfile
        >>> from rankgauge import evaluate
        >>> qrels = {f"q{n}": {"d1": 1} for n in range(8)}
        >>> history = History(tempfile.mkdtemp() + "/store.db")
        >>> for ranking in (["x", "d1"], ["d1", "x"]):
        ...     entry = history.add(evaluate(qrels, {query: ranking for query in qrels}, "RR"), qrels)
        >>> difference = compare_saved(history, 1, 2).differences[0]
        >>> difference.difference, difference.verdict
        (0.5, 'better')
    """
    wanted = [measures] if isinstance(measures, str | Measure) else measures
    if wanted is not None:
        wanted = list(wanted)
        if not wanted:
            raise InputError("no measure was given", where="measures", fix='name one: "nDCG@10"')
    first, second = ((entry, history.load(entry)) for entry in map(history.entry, (before, after)))
    (before, old), (after, new) = first, second
    pairs = list(_measure_pairs(before, after, wanted))
    differs = [
        *obstacles(before, after),
        *(f"different definitions ({own} in {before.id}, {its} in {after.id})" for own, its in pairs if own != its),
    ]
    if differs and not force:
        raise MismatchError(
            f"evaluations {before.id} and {after.id} are not comparable: {'; '.join(differs)}",
            where="history",
            fix="evaluate both runs on the same judgments; or compare the queries they share with --force (force=True)",
        )
    tested = pairs[0][0]
    design = Design((tested,), _BEFORE)
    compared: list[Difference] = []
    withheld: list[str] = []
    for own, its in pairs:
        sides = _aligned(old, new, own, its)
        if compared:
            compared.append(describe_difference(sides[1], sides[0], own, _LEVEL))
        else:
            design = replace(design, seed=seed_of(sides, [own]))
            compared.append(withhold_verdict(next(differences(sides, design)), *sides))
            withheld = no_verdicts(withheld_runs(sides, own, compared))
        if compared[-1].queries < 2:
            raise InputError(
                f"the two evaluations share {many(compared[-1].queries, 'query')} with a value of {own}",
                where="history",
                fix="compare evaluations that share two queries or more",
            )
    notes = (*withheld, *_notes(first, second, compared), design.describe())
    return HistoryComparison(before, after, tuple(compared), tuple(differs), notes)


def _measure_pairs(
    before: HistoryEntry, after: HistoryEntry, wanted: Iterable[str | Measure] | None
) -> Iterator[tuple[Measure, Measure]]:
    """Yield each measure to compare, as defined in the first and in the second evaluation."""
    if wanted is None:
        shared = [name for name in before.means if name in after.means]
        if not shared:
            raise InputError(
                f"evaluations {before.id} and {after.id} have no measure in common",
                where="history",
                fix=f"they have {', '.join(before.means)}; and {', '.join(after.means)}",
            )
        # The first shared measure of the first evaluation is tested, or nDCG@10 if available.
        shared.sort(key=lambda name: name != "nDCG@10")
        yield from ((parse(name), parse(name)) for name in shared)
        return
    for measure in (parsed for name in wanted for parsed in parse_all(name)):
        yield _nearest(before, measure), _nearest(after, measure)


def _nearest(entry: HistoryEntry, wanted: Measure) -> Measure:
    """Return the measure, or the only one with the same name and cut-off but other parameters."""
    if str(wanted) in entry.means:
        return wanted
    cut = dict(wanted.params).get("k")
    others = [parse(name) for name in entry.means]
    near = [m for m in others if m.name == wanted.name and dict(m.params).get("k") == cut]
    if len(near) != 1:
        raise InputError(
            f"{wanted} was not evaluated in {entry.id}", where="history", fix=f"evaluated: {', '.join(entry.means)}"
        )
    return near[0]


def _aligned(old: Evaluation, new: Evaluation, own: Measure, its: Measure) -> tuple[Evaluation, Evaluation]:
    """Restrict both evaluations to one measure and the shared queries, without weights.

    Every query counts the same in a difference.
    """
    rows = {new.query_ids[row]: row for row in _counted(new, its)}
    shared = [(row, rows[query]) for row in _counted(old, own) if (query := old.query_ids[row]) in rows]
    parts = ((old, own, _BEFORE), (new, its, _AFTER))
    before, after = (
        replace(
            select(whole, [measure], [pair[side] for pair in shared]),
            run_name=name,
            measures=(own,),
            weights=None,
            groups=None,
            left_out=None,
        )
        for side, (whole, measure, name) in enumerate(parts)
    )
    return before, after


def _counted(whole: Evaluation, measure: Measure) -> Sequence[int]:
    """Return the rows of the queries that count in the mean of a measure."""
    if whole.left_out is None:
        return range(len(whole.query_ids))
    rows: list[int] = np.flatnonzero(~whole.left_out[:, whole.measures.index(measure)]).tolist()
    return rows


def difference_between(old: Evaluation, new: Evaluation, measure: Measure, level: float = _LEVEL) -> Difference | None:
    """Return the untested difference (second minus first) by one measure.

    None if fewer than two shared queries have a value, or the judge of answers is not usable.
    """
    before, after = _aligned(old, new, measure, measure)
    if any(withholding(mine, measure, theirs) for mine, theirs in ((before, after), (after, before))):
        return None
    difference = describe_difference(after, before, measure, level)
    return None if difference.queries < 2 else difference


def _notes(
    first: tuple[HistoryEntry, Evaluation], second: tuple[HistoryEntry, Evaluation], compared: Sequence[Difference]
) -> Iterator[str]:
    (before, old), (after, new) = first, second
    shared = len(set(old.query_ids) & set(new.query_ids))
    if old.query_ids != new.query_ids and shared < max(before.queries, after.queries):
        yield (
            f"{many(shared, 'query')} in common, of {before.queries} in {before.id} and "
            f"{after.queries} in {after.id}: only these are compared"
        )
    blind = [str(entry.id) for entry in (before, after) if entry.qrels is None]
    if blind:
        yield f"judgments were not compared: they are unknown for {' and '.join(blind)}"
    if before.weighted or after.weighted:
        yield "weights of queries are ignored: every query counts the same here"
    yield from units([d.measure for d in compared])
    change = settings_change(new, old.settings, str(before.id), str(after.id))
    if change:
        yield change.note
    fewer = [f"{d.measure} {d.queries}" for d in compared if d.queries < shared]
    if fewer:
        yield (f"queries without a value in one or both evaluations are excluded; queries compared: {', '.join(fewer)}")
    if before.ranking is not None and before.ranking == after.ranking:
        yield "both are evaluations of the same ranking"
    versions = [str(entry.versions.get("rankgauge", "?")) for entry in (before, after)]
    releases = [".".join(version.split(".")[:2]) for version in versions]
    if releases[0] != releases[1]:
        yield (f"saved by rankgauge {releases[0]} and {releases[1]}: the changelog lists changed numbers")
