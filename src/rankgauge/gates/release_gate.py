"""``gate()``: whether a run may replace the previous one."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rankgauge.comparison.differences import select
from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.findings import INPUT_KINDS, Finding
from rankgauge.core.text import Ratio, inflect, keep, many
from rankgauge.data.join import ranked
from rankgauge.data.joined_blocks import read_part
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run, name_of, readable_again
from rankgauge.data.subsets import only
from rankgauge.errors import InputError, MismatchError
from rankgauge.evaluation.answer_judge import about_judge, calibration_finding, comparable_means, settings_change
from rankgauge.evaluation.evaluation import evaluate, evaluate_blocks
from rankgauge.evaluation.notes import origins_of
from rankgauge.evaluation.result import Evaluation
from rankgauge.gates.baseline import Baseline, FirstDocuments, Noise, input_faults, is_baseline
from rankgauge.gates.latency import latency_checks
from rankgauge.gates.non_inferiority import RENEW, Reference, loss_checks
from rankgauge.gates.result import GateCheck, GateResult
from rankgauge.gates.rules import Contract, GatedMeasure, GateRules
from rankgauge.measures.measure import Measure, parse

_Kind: TypeAlias = Literal["baseline", "anchor"]
_FEW_QUERIES = 25
_HOLES = 0.05
_OTHER_FILE = "name another file: --baseline FILE"
_UPDATE_RANKGAUGE = "update rankgauge"
_UNUSED = "the anchor {} was not compared: {}; delete it, and repeat --update-baseline to write a new one"


def gate(
    qrels: Any,
    run: Any = None,
    rules: Any = None,
    *,
    baseline: Baseline | str | os.PathLike[str] | None,
    anchor: Baseline | str | os.PathLike[str] | None = None,
    noise: Iterable[Any] = (),
    latency: tuple[Any, Any] | None = None,
    allow_uncalibrated: bool = False,
) -> GateResult:
    """Check a run against rules and a baseline: PASS, FAIL, INCONCLUSIVE, or NOT COMPARABLE.

    Contracts of single queries are checked first, then floors of means, then non-inferiority: PASS
    if the one-sided 95% lower bound of the mean paired gain is above the negative margin; otherwise
    FAIL if its upper bound (99%, Holm over all measures, for baseline and anchor separately) is
    below 0; otherwise PASS unless rare collapse if only queries that fail completely and are too
    rare to be observed could cause a loss above the margin; otherwise INCONCLUSIVE, with the number
    of queries or the margin that would decide. Error rates are in docs/explain/gate-rates.md.

    Input faults take precedence: if ids do not match the judgments, or scores look like distances,
    the run is NOT COMPARABLE, and nothing else is checked.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` accepts. Or an :class:`Evaluation` from
            any source, without a run: its values decide, and the notes list the skipped checks.
        run: The run: anything that :meth:`Run.of` accepts.
        rules: Anything that :meth:`GateRules.of` accepts; default: nDCG@10 with a margin of 0.02.
        baseline: The baseline or its path. None checks only contracts and floors.
        anchor: A second, fixed baseline, so that small losses cannot add up. Default: that of the
            rules, else the file that :func:`update_baseline` wrote with the first baseline, if it
            is readable and comparable.
        noise: Two or more repeated runs of the baseline system, or their evaluations: a margin
            smaller than their differences is an error.
        latency: Latencies of baseline and new run, measured in the same job (see
            :class:`GateRules`).
        allow_uncalibrated: Whether to take the verdicts of a judge as true, with a warning, if it
            is not calibrated or not usable (:func:`rankgauge.answers.calibrate`); otherwise, such a
            judge is an error, and so is a floor without a mean corrected for its errors.

    Raises:
        InputError: If a margin is within the noise, there is nothing to compare the run with, the
            judge of answers is not calibrated or not usable, or an input is invalid.

    Source:
        Piaggio et al.: Reporting of noninferiority and equivalence randomized trials, JAMA 2012.
        Holm: A simple sequentially rejective multiple test procedure, 1979.

    Example:
        >>> qrels = {f"q{n}": {"d1": 1} for n in range(200)}
        >>> old = Baseline.from_run(qrels, {q: ["d1"] for q in qrels})
        >>> gate(qrels, {q: ["d1", "d2"] for q in qrels}, {"depth": "any"}, baseline=old)
        <GateResult: PASS: run. PASS: nDCG@10: the new run is between 0.015 worse and 0.023 better ...
        >>> result = gate(qrels, {q: ["x", "d1"] for q in qrels}, {"depth": "any"}, baseline=old)
        >>> result.verdict, result.exit_code()
        ('FAIL', 1)
    """
    wanted = GateRules.of(rules)
    measures = [gated.measure for gated in wanted.measures]
    baselines, own, unused = _read_baselines(baseline, anchor, wanted)
    floors = [gated for gated in wanted.measures if gated.floor is not None]
    if not (baselines or floors or wanted.contracts or wanted.latency):
        raise InputError(
            "there is no baseline, no floor, and no contract: nothing to compare the run with",
            where="gate",
            fix="pass baseline=Baseline.from_run(qrels, run_in_use)",
        )
    truth, source = None, None
    judge: list[str] = []
    firsts: list[FirstDocuments] = []
    try:
        if isinstance(qrels, Evaluation):
            evaluation = _alone(qrels, run, wanted)
            known_anchor = own is None or bool(unused) or allow_uncalibrated
            values = Baseline.of_values(evaluation)
            baselines, unused = (baselines, unused) if known_anchor else _known_anchor(values, wanted, baselines)
            judge = _unusable_judge(values, wanted, baselines.values(), allowed=allow_uncalibrated)
        else:
            truth, source = Qrels.of(qrels), readable_again(run)
            evaluation, firsts = evaluate_blocks(truth, source, measures, FirstDocuments.of)
    except MismatchError as error:
        why = "".join(f"{part}; " for part in (error.what, error.fix) if part)
        return GateResult(name_of(source), (_refused("ids-do-not-match", why),))
    new = Baseline.of_values(evaluation, truth, firsts)

    def rankings(queries: Collection[str]) -> Run:
        # Few queries are shown: reading the file again takes less memory than keeping it.
        return read_part(source, lambda block: ranked(only(block, queries)))

    repeats = [_repeat(repeat, truth, measures) for repeat in noise]
    known = Noise.of(repeats, measures, repeats[0].query_ids) if repeats else None
    if known is None and "baseline" in baselines:
        known = baselines["baseline"].noise
    _refuse_within(known, wanted)
    faulty = list(_faults(new, evaluation, wanted))
    if faulty:
        return GateResult(new.run_name, tuple(faulty))
    checks = list(_contracts(wanted.contracts, truth, rankings))
    checks += [_floor(gated, new) for gated in floors]
    references = []
    for kind, stored in baselines.items():
        reference = Reference(kind, stored, new)
        why = reference.refusal(wanted)
        if why and kind == "anchor" and own is not None:
            unused = why.partition(";")[0]
            continue
        if why:
            checks.append(GateCheck(kind, stored.run_name, "NOT COMPARABLE", why))
            continue
        references.append(reference)
    checks += loss_checks(references, wanted, noise=known, truth=truth, rankings=rankings)
    checks += latency_checks(wanted.latency, latency)
    settings = (
        settings_change(evaluation, reference.stored.settings, reference.stored.run_name, evaluation.run_name)
        for reference in references
    )
    changes = [*origins_of(evaluation.findings), *filter(None, settings)]
    return GateResult(
        run_name=new.run_name,
        checks=tuple(checks),
        notes=(
            *_notes(references, new, wanted, known),
            *([_UNUSED.format(own, unused)] if unused else []),
            *(str(c) for c in changes if c.severity == "info"),
        ),
        warnings=(*judge, *_warnings(references, truth), *(str(c) for c in changes if c.severity != "info")),
        unit=new.unit,
    )


def update_baseline(
    made: Baseline, path: str | os.PathLike[str], rules: Any = None, *, anchor: Any = None, force: bool = False
) -> str:
    """Write a baseline, unless it would replace a better baseline or another kind of file.

    The first baseline is also written as an anchor, such as `base.anchor.json` beside `base.json`,
    with which :func:`gate` compares all later runs. If a baseline exists without an anchor, it
    becomes the anchor when it is replaced, if both are comparable. An anchor is never replaced.

    Args:
        made: The new baseline.
        path: The file to write.
        rules: As in :func:`gate`; they decide whether the new baseline is worse than the old one.
        anchor: The path of another anchor, which is never replaced; default: that of the rules.
        force: Whether to replace a baseline although the gate fails.

    Returns:
        The verdict, with the old and the new means; empty if there was no baseline.

    Raises:
        InputError: If the file is the anchor or no baseline, or the gate fails without `force`.

    Example:
        >>> import pathlib, tempfile
        >>> rules = {"measures": {"RR": {}}}
        >>> qrels = {f"q{n}": {"d1": 1} for n in range(200)}
        >>> old = Baseline.from_run(qrels, {q: ["x", "d1"] for q in qrels}, rules)
        >>> new = Baseline.from_run(qrels, {q: ["d1", "x"] for q in qrels}, rules)
        >>> path = pathlib.Path(tempfile.mkdtemp(), "base.json")
        >>> update_baseline(old, path, rules), update_baseline(new, path, rules)
        ('', 'PASS: RR 0.5000 → 1.0000')
    """
    file, text, wanted, first = Path(path), "", GateRules.of(rules), made
    anchor = wanted.anchor if anchor is None else anchor
    named = isinstance(anchor, str | os.PathLike) and Path(anchor).absolute() == file.absolute()
    # An anchor beside its baseline, such as base.anchor.json.
    if named or (file.stem.endswith(".anchor") and file.exists()):
        raise InputError("this is the anchor, which is never updated", where=str(path), fix=_OTHER_FILE)
    if file.is_file() and file.stat().st_size:
        text, failed, first = _replaced(made, file, wanted)
        if failed and not force:
            raise InputError(
                f"the gate fails: {text}",
                where=f"run {made.run_name!r}",
                fix="keep the baseline, or add --force to replace it",
            )
    if anchor is None and not _anchor_path(file).exists():
        first.write(_anchor_path(file))
    made.write(path)
    return text


def _anchor_path(baseline: Path) -> Path:
    return baseline.with_suffix(f".anchor{baseline.suffix}")


def _known_anchor(
    new: Baseline, rules: GateRules, baselines: dict[_Kind, Baseline]
) -> tuple[dict[_Kind, Baseline], str]:
    """Return the references without an anchor whose judge is not usable, and the reason."""
    messages = [finding.message for _, finding in _judge_findings(new, rules, [baselines["anchor"]])]
    kept: dict[_Kind, Baseline] = {
        kind: baseline for kind, baseline in baselines.items() if not messages or kind != "anchor"
    }
    return kept, messages[0] if messages else ""


def _own_anchor(baseline: Any) -> Path | None:
    """Return the anchor beside a baseline file, if it has other contents."""
    if not isinstance(baseline, str | os.PathLike):
        return None
    file, anchor = Path(baseline), _anchor_path(Path(baseline))
    exists = file.is_file() and anchor.is_file()
    return anchor if exists and anchor.read_bytes() != file.read_bytes() else None


def _replaced(new: Baseline, file: Path, rules: GateRules) -> tuple[str, bool, Baseline]:
    """Return the verdict on a new baseline as text, whether it is FAIL, and the first baseline.

    The first baseline is the one in the file if both are comparable, otherwise the new one.
    """
    try:
        old = Baseline.read(file)
    except InputError as error:
        if not is_baseline(file):
            raise InputError(
                "the file is not a baseline and was not replaced", where=str(file), fix=_OTHER_FILE
            ) from None
        if error.fix.startswith(_UPDATE_RANKGAUGE):
            raise
        return f"replaced a baseline that cannot be compared: {error.what}", False, new
    reference = Reference("baseline", old, new)
    why = reference.refusal(rules)
    unusable = [finding.message for _, finding in _judge_findings(new, rules, [old])]
    verdict = "NOT COMPARABLE" if why else f"no verdict ({unusable[0]})" if unusable else ""
    if not verdict:
        checks = [
            *(_floor(gated, new) for gated in rules.measures if gated.floor is not None),
            *loss_checks([reference], rules, noise=old.noise, truth=None, rankings=Run.of),
        ]
        verdict = GateResult(new.run_name, tuple(checks)).verdict
    means = []
    for measure in (parse(name) for name in new.measures if name in old.measures):
        raw = [old.mean(measure), new.mean(measure)]
        (before, after), by_judge = comparable_means(measure, (old.settings, new.settings), raw)
        means.append(f"{measure}{' (by judge)' if by_judge else ''} {before:.4f} → {after:.4f}")
    return f"{verdict}: {', '.join(means)}", verdict == "FAIL", new if why else old


def _alone(evaluation: Evaluation, run: Any, rules: GateRules) -> Evaluation:
    """Return the gated measures of an evaluation given without judgments and run."""
    if run is not None or rules.contracts:
        raise InputError(
            f"{'a run' if run is not None else 'contracts'} and an evaluation",
            where="gate",
            fix="pass judgments and run; or, without contracts, an evaluation alone",
        )
    return select(evaluation, [gated.measure for gated in rules.measures])


def _faults(new: Baseline, evaluation: Evaluation, rules: GateRules) -> Iterator[GateCheck]:
    """Yield the faults that make a run not comparable."""
    failure = new.failure(evaluation, rules.max_failed)
    if failure:
        why = f"{failure}: the run is broken or incomplete, and "
        yield _refused("queries without a ranking", why)
        return
    queries = len(evaluation.query_ids)
    for gated in rules.measures:
        # For answers: a question without any verdict is excluded from the mean.
        unjudged = evaluation.counts.get(f"unjudged {gated.measure}", 0)
        if unjudged > rules.max_failed * queries:
            why = (
                f"{unjudged} of {many(queries, 'question')} {inflect(unjudged, 'has', 'have')} no "
                f"verdict for {gated.measure}, more than max_failed = {rules.max_failed:g} allows: "
                "judge the rest; "
            )
            yield _refused("questions without a verdict", why)
    for fault in input_faults(evaluation):
        yield _refused(INPUT_KINDS[fault.code].name, f"{fault}; ")


def _read_baselines(baseline: Any, anchor: Any, rules: GateRules) -> tuple[dict[_Kind, Baseline], Path | None, str]:
    """Return baseline and anchor, the path of the default anchor, and why it cannot be read."""
    if anchor is None and baseline is not None:
        anchor = rules.anchor
    references: dict[_Kind, Any] = {"baseline": baseline, "anchor": anchor}
    baselines = {kind: _stored(kind, reference) for kind, reference in references.items() if reference is not None}
    own = None if anchor is not None else _own_anchor(baseline)
    if own is not None:
        try:
            baselines["anchor"] = Baseline.read(own)
        except InputError as error:
            if error.fix.startswith(_UPDATE_RANKGAUGE):
                raise
            return baselines, own, error.what
    return baselines, own, ""


def _stored(kind: _Kind, source: Any) -> Baseline:
    if isinstance(source, Baseline):
        return source
    if isinstance(source, str | os.PathLike):
        try:
            return Baseline.read(source)
        except InputError as error:
            if kind == "baseline" or error.fix.startswith(_UPDATE_RANKGAUGE):
                raise
            raise InputError(error.what, where=str(source), fix=RENEW[kind]) from None
    raise InputError(
        f"got {type(source).__name__}, expected a baseline",
        where="gate",
        fix="pass a path, or Baseline.from_run(qrels, run_in_use)",
    )


def _repeat(source: Any, truth: Qrels | None, measures: Sequence[Measure]) -> Evaluation:
    """Return the evaluation of a repeated run."""
    if isinstance(source, Evaluation):
        return source
    if truth is None:
        raise InputError("repeated runs need the judgments", where="noise", fix="pass evaluations of them")
    return evaluate(truth, source, measures)


def _refuse_within(noise: Noise | None, rules: GateRules) -> None:
    """Refuse margins within the noise of the baseline."""
    if noise is None:
        return
    for gated in rules.measures:
        band = noise.bands.get(str(gated.measure), 0.0)
        if gated.margin <= band:
            raise InputError(
                f"the margin of {gated.measure} is {gated.margin:g}, but {noise.runs} runs of "
                f"the same system differ by about {band:.4f}: the gate could pass or fail by "
                "chance alone",
                where=rules.source,
                fix=f"write a margin above {band:.4f}, make the retriever more stable, or judge more queries",
            )


def _unusable_judge(new: Baseline, rules: GateRules, stored: Iterable[Baseline], *, allowed: bool) -> list[str]:
    """Return warnings about the judge; refuse one that is not usable unless this is allowed."""
    findings = list(_judge_findings(new, rules, list(stored)))
    if findings and not allowed:
        name, first = findings[0]
        raise InputError(
            first.message,
            where=f"run {name!r}",
            fix=f"{first.fix}; or pass --allow-uncalibrated (allow_uncalibrated=True) to take its labels as true",
        )
    messages = dict.fromkeys(finding.message for _, finding in findings)
    constant = {gated.measure: about_judge(new.settings, gated.measure).get("warning") for gated in rules.measures}
    return [
        *(
            f"a loss above the margin may pass, because the labels of the judge are taken as true: {m}"
            for m in messages
        ),
        *(f"the judge of {measure}: {why}" for measure, why in constant.items() if why),
    ]


def _judge_findings(new: Baseline, rules: GateRules, stored: Sequence[Baseline]) -> Iterator[tuple[str, Finding]]:
    """Yield findings about the judges of the new values and the baselines, with their runs."""
    mine = new.settings
    for gated in rules.measures:
        measure, queries = gated.measure, new.known(gated.measure)
        findings = [] if stored else [(new.run_name, calibration_finding(mine, measure, queries))]
        for baseline in stored:
            both = set(queries).intersection(baseline.known(measure))
            for name, settings, other in (
                (new.run_name, mine, baseline.settings),
                (baseline.run_name, baseline.settings, mine),
            ):
                findings.append((name, calibration_finding(settings, measure, both, other)))
        yield from ((name, finding) for name, finding in findings if finding is not None)
    for gated in rules.measures:
        if gated.floor is not None and comparable_means(gated.measure, [mine], [new.mean(gated.measure)])[1]:
            why = f"{gated.measure} has no mean corrected for the errors of the judge for its floor"
            yield (
                new.run_name,
                Finding("", "error", why, fix="label all items of at least 20 questions, or remove the floor"),
            )


def _refused(name: str, why: str) -> GateCheck:
    return GateCheck("run", name, "NOT COMPARABLE", f"{why}nothing else was checked")


def _contracts(
    contracts: Sequence[Contract], truth: Qrels | None, rankings: Callable[[Collection[str]], Run]
) -> Iterator[GateCheck]:
    """Check the contracts of single queries."""
    if truth is None or not contracts:
        return
    run = rankings({contract.query for contract in contracts})
    for contract in contracts:
        query = contract.query
        if query not in truth and query not in run:
            raise InputError(
                f"query {query!r} is neither judged nor in the run",
                where="contracts",
                fix="check its id, or remove the contract",
            )
        ranks = {doc: rank for rank, doc in enumerate(run.get(query, {}), start=1)}
        broken = "; ".join(_broken(contract, ranks))
        sentence = f"query {query!r}: {broken}" if broken else f"query {query!r} meets its contract"
        yield GateCheck("contract", query, "FAIL" if broken else "PASS", sentence)


def _broken(contract: Contract, ranks: dict[str, int]) -> Iterator[str]:
    def at(doc: str) -> str:
        return f"is at rank {ranks[doc]}" if doc in ranks else "was not retrieved"

    if not ranks:
        yield "it has no ranking"
    for doc, most in contract.must_rank_at_most.items():
        if ranks.get(doc, most + 1) > most:
            yield f"document {doc!r} {at(doc)}, but its contract requires {most} or better"
    for doc in contract.must_include:
        if ranks.get(doc, contract.k + 1) > contract.k:
            yield f"document {doc!r} {at(doc)}, but must be in the first {contract.k}"
    for doc in contract.forbidden:
        if ranks.get(doc, contract.k + 1) <= contract.k:
            yield f"document {doc!r} {at(doc)}, where it is forbidden"


def _floor(gated: GatedMeasure, new: Baseline) -> GateCheck:
    raw, floor = new.mean(gated.measure), gated.floor or 0.0
    (mean,), by_judge = comparable_means(gated.measure, [new.settings], [raw])
    name = f"{gated.measure} (by judge)" if by_judge else str(gated.measure)
    if mean != raw and not math.isnan(raw):
        name += f" ({raw:.4f} by the judge), corrected for its errors,"
    lower = gated.measure.declaration.better == "lower"
    short = mean > floor + TOLERANCE if lower else mean < floor - TOLERANCE
    message = f"{mean:.4f}, {'within' if not short else 'above' if lower else 'below'}"
    if math.isnan(mean):
        short, message = True, "undefined in every query, so not within"
    return GateCheck(
        kind="floor",
        name=str(gated.measure),
        verdict="FAIL" if short else "PASS",
        sentence=f"{name} is {message} the floor of {floor:g} in the rules",
        value=None if math.isnan(mean) else mean,
    )


def _notes(references: list[Reference], new: Baseline, rules: GateRules, noise: Noise | None) -> Iterator[str]:
    for reference in references:
        stored = reference.stored
        left = len(new.queries) - len(reference.queries)
        gone = len(stored.queries) - len(reference.queries)
        both = f" in both ({left} new and {gone} missing excluded: queries=intersection)" if left or gone else ""
        unknown = None in {stored.depth, new.depth}
        parts = keep(
            f"{reference.kind}: {stored.run_name}, {many(len(reference.queries), stored.unit)}{both}",
            stored.version != metadata.version("rankgauge") and f"made by rankgauge {stored.version}",
            unknown and stored.unit == "query" and "without judgments and rankings, comparability was not checked",
            not unknown and stored.depth != new.depth and f"longest ranking {stored.depth}, now {new.depth}",
            "bounds are one-sided (lower 95%, upper 99%), unlike the 95% CI of a comparison",
        )
        yield "; ".join(parts)
    empty = new.empty()
    named = "" if rules.source == "rules" else f" ({rules.source})"
    separately = ", for baseline and anchor separately" if len(references) > 1 else ""
    bands = noise and ", ".join(f"{name} {band:.4f}" for name, band in noise.bands.items())
    yield from keep(
        empty and f"{many(len(empty), 'query')} without a ranking, counted as empty",
        references
        and f"rules{named}: PASS if the lower bound of the mean gain (95%) is above the negative "
        "margin; otherwise FAIL if the upper bound (99%, Holm over "
        f"{many(len(rules.measures), 'measure')}{separately}) is below 0; otherwise 'PASS "
        "unless rare collapse' if only queries outside the sample could exceed the margin",
        noise
        and f"{noise.runs} runs of one system differ by about: {bands} (95% band of means if "
        "many queries vary independently; wider if they vary together); smaller differences "
        "between queries count as ties",
    )


def _warnings(references: list[Reference], truth: Qrels | None) -> Iterator[str]:
    for reference in references:
        queries = reference.queries
        if len(queries) < _FEW_QUERIES:
            yield (
                f"only {many(len(queries), reference.new.unit)} in common with the {reference.kind}: a "
                f"single {reference.new.unit} has a large weight"
            )
        if truth is None or reference.stored.depth is None:
            continue
        docs, ends = truth.table.docs.shown(), pairwise(truth.table.offsets.tolist())
        known = {q: {*docs[a:b]} for q, (a, b) in zip(truth.query_ids, ends, strict=True)}
        before, now = (_judged(baseline, queries, known) for baseline in (reference.stored, reference.new))
        if now < before - _HOLES:
            yield (
                f"{Ratio(now):.0%} of the top documents are judged, compared with "
                f"{Ratio(before):.0%} in the {reference.kind}: unjudged documents count as not "
                "relevant, so a loss may be due to missing judgments"
            )


def _judged(baseline: Baseline, queries: Iterable[str], known: Mapping[str, set[str]]) -> float:
    """Return the share of first documents that are judged."""
    judged = shown = 0
    for query in queries:
        top = baseline.queries[query].top or ()
        judged += sum(map(known[query].__contains__, top))
        shown += len(top)
    return judged / shown if shown else 1.0
