"""``gate()`` and what it returns: may this run replace the one before?"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any, Literal

from rankgauge.comparison.differences import SAME
from rankgauge.core.escaping import for_json, for_terminal
from rankgauge.core.findings import INPUT_KINDS, Finding
from rankgauge.core.text import many, some
from rankgauge.data.model import Qrels, Run
from rankgauge.data.ranking import ranked
from rankgauge.errors import InputError, MismatchError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.gates.baseline import Baseline, faults
from rankgauge.gates.checks import VERDICTS, GateCheck, Verdict
from rankgauge.gates.comparison import Reference, loss_checks, refusal
from rankgauge.gates.contracts import contract_checks
from rankgauge.gates.latency import latency_checks
from rankgauge.gates.noise import Noise
from rankgauge.gates.rules import GatedMeasure, GateRules
from rankgauge.rendering.tables import Cell, Table, to_html

__all__ = ["GateResult", "gate"]

_SCHEMA = "rankgauge/gate/1"
_CODES: dict[Verdict, int] = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 0, "NOT COMPARABLE": 4}
_STRICT_INCONCLUSIVE = 3
_FEW_QUERIES = 25
_HOLES = 0.05
_SHOWN = 9


@dataclass(frozen=True, repr=False)
class GateResult:
    """The verdict of a gate, and every check that it rests on.

    Made by :func:`gate`. Shows itself as tables in a notebook.

    Attributes:
        run_name: The run.
        checks: What was held, in order.
        notes: What was done, and what a reviewer has to know.
        warnings: What speaks against taking the verdict as it stands.
    """

    run_name: str
    checks: tuple[GateCheck, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst among the checks; from bad to good FAIL, NOT COMPARABLE, INCONCLUSIVE, PASS."""
        return max((check.verdict for check in self.checks), key=VERDICTS.index)

    def exit_code(self, *, strict: bool = False) -> int:
        """0 for PASS, 1 FAIL, 4 NOT COMPARABLE; INCONCLUSIVE is 0, or 3 if `strict`."""
        if strict and self.verdict == "INCONCLUSIVE":
            return _STRICT_INCONCLUSIVE
        return _CODES[self.verdict]

    def explanation(self) -> str:
        """The verdict and its reasons, for a reviewer without statistics."""
        lines = [f"{self.verdict}: {self.run_name}"]
        lines += [f"- {text}" for text in self.sentences()]
        lines += [f"- WARNING: {text}" for text in self.warnings]
        return "\n".join(map(for_terminal, lines))

    def sentences(self) -> list[str]:
        """What was found, the worst first; contracts that hold are counted only."""
        kept = sum(c.kind == "contract" and c.verdict == "PASS" for c in self.checks)
        said = [
            f"{check.verdict}: {check.sentence}" + (f"; {check.note}" if check.note else "")
            for check in sorted(self.checks, key=lambda c: -VERDICTS.index(c.verdict))
            if check.kind != "contract" or check.verdict != "PASS"
        ]
        return said + ([f"PASS: {many(kept, 'contract')} kept"] if kept else [])

    def table(self) -> Table:
        """One line for each check, with the reasons below."""
        return Table(
            columns=(
                "check", "verdict", "before", "now", "gain", "between", "margin", "win/tie/loss",
            ),
            rows=tuple(_row(check) for check in self.checks),
            title=f"{self.verdict}: {self.run_name}",
            notes=(*self.sentences(), *(f"WARNING: {text}" for text in self.warnings), *self.notes),
        )  # fmt: skip

    def losers_table(self, most: int = _SHOWN) -> Table:
        """The queries that lost most, for each measure that did not pass."""
        rows: list[tuple[Cell, ...]] = []
        for check in self.checks:
            if check.numbers is None or check.verdict == "PASS":
                continue
            rows += [
                (f"{check.kind} {check.name}", q.query, q.before, q.after, q.moved)
                for q in check.numbers.losers[:most]
            ]
        columns = ("check", "query", "before", "now", "relevant documents that fell")
        return Table(columns, tuple(rows), title="Queries that lost most", digits=3)

    def to_json(self) -> str:
        """The result as JSON; what is no number is null."""
        data = {
            "schema": _SCHEMA,
            "rankgauge": metadata.version("rankgauge"),
            "run": self.run_name,
            "verdict": self.verdict,
            "checks": [_plain(check) for check in self.checks],
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }
        return for_json(json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)) + "\n"

    def _repr_html_(self) -> str:
        return to_html(self.table()) + to_html(self.losers_table())

    def __repr__(self) -> str:
        return f"<GateResult {self.run_name!r}: {self.verdict}, {many(len(self.checks), 'check')}>"


def _row(check: GateCheck) -> tuple[Cell, ...]:
    name = f"{check.kind} {check.name}"
    n = check.numbers
    if n is None:
        return (name, check.verdict, None, None, None, None, None, None)
    bounds = f"{n.lower:+.3f} and {n.upper:+.3f}" if math.isfinite(n.lower) else None
    return (
        name, check.verdict, f"{n.baseline_mean:.3f}", f"{n.mean:.3f}", f"{n.gain:+.3f}", bounds,
        f"{n.margin:g}", f"{n.wins}/{n.ties}/{n.losses}",
    )  # fmt: skip


def _plain(check: GateCheck) -> dict[str, Any]:
    data = asdict(check)
    if check.numbers is not None:
        data["numbers"] = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in data["numbers"].items()
        } | {"measure": str(check.numbers.measure)}
    return data


def gate(
    qrels: Any,
    run: Any,
    rules: Any = None,
    *,
    baseline: Baseline | str | os.PathLike[str] | None,
    anchor: Baseline | str | os.PathLike[str] | None = None,
    noise: Iterable[Any] = (),
    latency: tuple[Any, Any] | None = None,
) -> GateResult:
    """Hold a run against rules and a baseline: PASS, FAIL or INCONCLUSIVE, or NOT COMPARABLE.

    First the contracts of single queries, then the floors of means, then non-inferiority: PASS if
    the one-sided 95 % lower bound of the mean paired gain (t) is above minus the margin; otherwise
    FAIL if its upper bound (99 %, Holm over all measures and references) is below 0; otherwise
    INCONCLUSIVE, with the number of queries or the margin that would decide.

    Before all that the input is checked: where ids do not match the judgments, or scores look like
    distances, the run is NOT COMPARABLE, and nothing else is looked at.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` takes.
        run: The run: anything that :meth:`Run.of` takes.
        rules: Anything that :meth:`GateRules.of` takes; without, nDCG@10 with a margin of 0.02.
        baseline: What the run is held against, or its path. None holds contracts and floors only.
        anchor: A second baseline that stays where it is, so that small losses cannot add up.
        noise: Repeated runs of the system of the baseline, two or more: a margin within what they
            differ by is refused.
        latency: Latencies of baseline and new run, measured in the same job (see the rules).

    Raises:
        InputError: If a margin is within the noise, there is nothing to hold the run against, or
            an input cannot be worked with.

    References:
        Piaggio et al.: Reporting of noninferiority and equivalence randomized trials, JAMA 2012.
        Holm: A simple sequentially rejective multiple test procedure, 1979.

    Example:
        >>> qrels = {f"q{n}": {"d1": 1} for n in range(30)}
        >>> old = Baseline.from_run(qrels, {q: ["d1"] for q in qrels})
        >>> gate(qrels, {q: ["d1", "d2"] for q in qrels}, {"depth": "any"}, baseline=old)
        <GateResult 'run': PASS, 1 check>
        >>> result = gate(qrels, {q: ["x", "d1"] for q in qrels}, {"depth": "any"}, baseline=old)
        >>> result.verdict, result.exit_code()
        ('FAIL', 1)
    """
    wanted = GateRules.of(rules)
    truth, found = Qrels.of(qrels), Run.of(run)
    given: dict[Literal["baseline", "anchor"], Baseline] = {}
    if baseline is not None:
        given["baseline"] = _stored(baseline)
    if anchor is not None:
        given["anchor"] = _stored(anchor)
    floors = [gated for gated in wanted.measures if gated.floor is not None]
    if not (given or floors or wanted.contracts or wanted.latency):
        raise InputError(
            "there is no baseline, no floor and no contract: nothing to hold the run against",
            where="gate", fix="give baseline=Baseline.from_run(qrels, run_in_use)",
        )  # fmt: skip
    try:
        evaluation = evaluate(truth, found, [gated.measure for gated in wanted.measures])
    except MismatchError as error:
        return GateResult(found.name, (_mismatch(error),))
    new = Baseline.seen(evaluation, truth, found, top=10)
    repeats = [Run.of(repeat) for repeat in noise]
    measures = [gated.measure for gated in wanted.measures]
    known = Noise.of(truth, repeats, measures) if repeats else _noise_of(given)
    _refuse_within(known, wanted)
    empty = new.empty()
    if len(empty) > wanted.max_failed * len(new.queries):
        return GateResult(found.name, (_failed(empty, new, wanted),))
    explained = faults(evaluation)
    if explained:
        return GateResult(found.name, tuple(map(_fault, explained)))
    order = ranked(found)
    checks = contract_checks(wanted.contracts, truth, order)
    checks += [_floor(gated, new) for gated in floors]
    references = []
    for kind, stored in given.items():
        why = refusal(kind, stored, new, wanted)
        if why:
            checks.append(GateCheck(kind, stored.run_name, "NOT COMPARABLE", why))
            continue
        queries = tuple(query for query in new.queries if query in stored.queries)
        references.append(Reference(kind, stored, queries))
    checks += loss_checks(references, new, wanted, noise=known, truth=truth, run=order)
    checks += latency_checks(wanted.latency, latency)
    return GateResult(
        run_name=found.name,
        checks=tuple(checks),
        notes=tuple(_notes(references, new, wanted, known)),
        warnings=tuple(_warnings(references, new, truth)),
    )


def _stored(given: Any) -> Baseline:
    if isinstance(given, Baseline):
        return given
    if isinstance(given, str | os.PathLike):
        return Baseline.read(given)
    raise InputError(
        f"got {type(given).__name__} where a baseline was wanted", where="gate",
        fix="give a path, or Baseline.from_run(qrels, run_in_use)",
    )  # fmt: skip


def _noise_of(given: dict[Literal["baseline", "anchor"], Baseline]) -> Noise | None:
    return given["baseline"].noise if "baseline" in given else None


def _refuse_within(noise: Noise | None, rules: GateRules) -> None:
    """A margin that the baseline's own jitter passes or breaks decides nothing."""
    for gated in rules.measures:
        band = 0.0 if noise is None else noise.bands.get(str(gated.measure), 0.0)
        if noise is not None and gated.margin <= band:
            raise InputError(
                f"the margin of {gated.measure} is {gated.margin:g}, but {noise.runs} runs of the "
                f"same system differ by up to {band:.4f} (95 % band): by chance alone the gate "
                "could pass or fail",
                where=rules.source,
                fix=f"write a margin above {band:.4f}, make the retriever more stable, or judge "
                "more queries",
            )


def _failed(empty: list[str], new: Baseline, rules: GateRules) -> GateCheck:
    share = len(empty) / len(new.queries)
    return GateCheck(
        kind="run",
        name="queries without a ranking",
        verdict="NOT COMPARABLE",
        sentence=(
            f"{many(len(empty), 'query')} of {len(new.queries)} have no ranking ({share:.1%}: "
            f"{some(empty)}), more than max_failed = {rules.max_failed:g} allows: the run is "
            "broken or incomplete, and nothing else was looked at"
        ),
    )


def _fault(found: Finding) -> GateCheck:
    return GateCheck(
        kind="run",
        name=INPUT_KINDS[found.code].name,
        verdict="NOT COMPARABLE",
        sentence=f"{found}; nothing else was looked at",
    )


def _mismatch(error: MismatchError) -> GateCheck:
    return GateCheck(
        kind="run",
        name="ids-do-not-match",
        verdict="NOT COMPARABLE",
        sentence="; ".join(filter(None, (error.what, error.fix, "nothing else was looked at"))),
    )


def _floor(gated: GatedMeasure, new: Baseline) -> GateCheck:
    mean, floor = new.mean(gated.measure), gated.floor or 0.0
    lower = gated.measure.declaration.better == "lower"
    short = mean > floor + SAME if lower else mean < floor - SAME
    said = f"{mean:.4f}, {'within' if not short else 'above' if lower else 'below'}"
    if math.isnan(mean):
        short, said = True, "undefined in every query, so not within"
    return GateCheck(
        kind="floor",
        name=str(gated.measure),
        verdict="FAIL" if short else "PASS",
        sentence=f"{gated.measure} is {said} the floor of {floor:g} in the rules",
    )


def _notes(
    references: list[Reference], new: Baseline, rules: GateRules, noise: Noise | None
) -> Iterator[str]:
    for reference in references:
        stored = reference.stored
        text = f"{reference.kind}: {stored.run_name}, {many(len(reference.queries), 'query')}"
        left = len(new.queries) - len(reference.queries)
        gone = len(stored.queries) - len(reference.queries)
        if left or gone:
            text += f" in both ({left} new and {gone} gone ones left out: queries=intersection)"
        if stored.version != metadata.version("rankgauge"):
            text += f"; made by rankgauge {stored.version}"
        if stored.depth != new.depth:
            text += f"; longest ranking {stored.depth}, now {new.depth}"
        yield text
    empty = new.empty()
    if empty:
        yield f"{many(len(empty), 'query')} without a ranking, counted as found nothing"
    if references:
        yield (
            f"rules: {rules.source}; paired t, one-sided: PASS if the lower bound (95 %) is above "
            "minus the margin, else FAIL if the upper bound (99 %, Holm over "
            f"{many(len(references) * len(rules.measures), 'check')}) is below 0"
        )
    if noise is not None:
        bands = ", ".join(f"{name} {band:.4f}" for name, band in noise.bands.items())
        yield (
            f"{noise.runs} runs of one system differ by up to: {bands} (95 % band of means); "
            "queries that differ by less than these runs do count as ties"
        )


def _warnings(references: list[Reference], new: Baseline, truth: Qrels) -> Iterator[str]:
    for reference in references:
        queries = reference.queries
        if len(queries) < _FEW_QUERIES:
            yield (
                f"{many(len(queries), 'query')} in common with the {reference.kind} are few: "
                "one query weighs much"
            )
        before, now = (_judged(baseline, queries, truth) for baseline in (reference.stored, new))
        if now < before - _HOLES:
            yield (
                f"of the first documents {now:.0%} are judged, in the {reference.kind} "
                f"{before:.0%}: what is not judged counts as not relevant, so a loss may be a "
                "lack of judgments"
            )


def _judged(baseline: Baseline, queries: Iterable[str], truth: Qrels) -> float:
    """The share of first documents that are judged."""
    judged = shown = 0
    for query in queries:
        grades, top = truth[query], baseline.queries[query].top
        judged += sum(doc in grades for doc in top)
        shown += len(top)
    return judged / shown if shown else 1.0
