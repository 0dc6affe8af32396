"""check(): what is wrong with judgments and runs, what it does to the numbers, what mends it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rankgauge.checks.effects import Look
from rankgauge.checks.judgments import Scale, judgment_problems, one_each
from rankgauge.checks.pairs import pair_problems
from rankgauge.checks.problems import Problem
from rankgauge.checks.readers import Given, NotInBlocks, given_qrels, given_runs, read_whole
from rankgauge.checks.result import CheckResult
from rankgauge.checks.runs import run_notes, run_problems, same_runs
from rankgauge.checks.survey import Survey, survey
from rankgauge.core.findings import FINDING_KINDS, Effect
from rankgauge.core.text import many
from rankgauge.data.model import Qrels, Run
from rankgauge.errors import InputError, UnknownName
from rankgauge.measures.measure import Measure, parse_all

__all__ = ["check"]

_DEFAULT = "nDCG@10"
_READ = "without these lines"


def check(
    qrels: Any,
    runs: Any = (),
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    collection: Any = None,
    ignore: Iterable[str] = (),
    scale: str | None = None,
) -> CheckResult:
    """Look for what makes numbers wrong: in judgments, in runs, and between them.

    Everything that is found says what it does to the numbers, measured by evaluating twice: as the
    data are, and as they would be if mended.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` takes.
        runs: A run (anything that :meth:`Run.of` takes), several in a list, or a mapping of name to
            run. May be left out.
        measures: By which effects are measured; ``nDCG@10`` if left out.
        collection: A collection, whose texts are looked at too: anything that a
            :class:`Collection` is made of.
        ignore: Codes that are not looked for.
        scale: The scale of the grades, such as ``"0..3"``.

    Returns:
        The problems, the worst first.

    Raises:
        InputError: If an input cannot be read at all.
        UnknownName: For a measure or a code nobody knows.

    Example:
        >>> found = check({"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 1}}, {"q1": ["d1", "d2"]})
        >>> found.codes
        ('P104',)
        >>> effect = found.problems[0].effects[0]
        >>> effect.measure, effect.now, effect.then, effect.by
        ('nDCG@10', 0.5, 1.0, 'queries=intersection')
    """
    chosen = _measures(measures)
    ignored = _codes(ignore)
    grades = None if scale is None else Scale.of(scale)
    judged = given_qrels(qrels)
    truth = Qrels(one_each(judged.whole))
    if not len(truth):
        raise InputError("the judgments hold no query", where=judged.source, fix="give one")
    given = given_runs(runs)
    looks = [Look.at(_surveyed(run, truth, several=len(given) > 1), truth, chosen) for run in given]
    problems: list[Problem] = [
        *_of_file(
            judged, [one for look in looks for one in look.refused(_READ)], graded=True
        ),
        *judgment_problems(
            judged.whole, judged.source, looks, chosen,
            scale=grades, asked=measures is not None,
        ),
        *_single(measures, chosen),
    ]  # fmt: skip
    for look in looks:
        problems += _of_file(look.survey.given, look.refused(_READ))
        problems += _strange(look.source, len(look.survey.strange))
        of_run = list(run_problems(look))
        turned = any(found.kind.code == "R104" for found in of_run)
        problems += [*of_run, *pair_problems(look, turned=turned)]
    problems += same_runs(looks)
    if collection is not None:
        problems += _of_texts(collection, truth, looks, chosen)
    return CheckResult(
        problems=tuple(found for found in problems if found.kind.code not in ignored),
        inputs=(judged.source, *(run.source for run in given)),
        measures=tuple(map(str, chosen)),
        notes=tuple(note for look in looks for note in run_notes(look.survey)),
    )


def _of_texts(
    collection: Any, truth: Qrels, looks: Sequence[Look], measures: Sequence[Measure]
) -> Iterator[Problem]:
    """What the texts of a collection say; only here runs are read as a whole."""
    from rankgauge.checks.texts import collection_of, text_problems

    given = [look.survey.given for look in looks]
    runs = {one.source: Run(one.whole, name=one.name) for one in given}
    yield from text_problems(collection_of(collection, truth), truth, runs, measures)


def _surveyed(given: Given, qrels: Qrels, *, several: bool) -> Survey:
    """One pass through a run; a file that cannot be read in blocks is read as a whole."""
    try:
        return survey(given, qrels, several=several)
    except NotInBlocks:
        return survey(read_whole(given), qrels, several=several)


def _of_file(given: Given, effects: Iterable[Effect], *, graded: bool = False) -> Iterator[Problem]:
    """Lines that cannot be read."""
    faults = given.faults
    if faults is None:
        return
    # Judgments have no code of their own for a grade that is no number.
    lines, firsts = faults.lines, faults.first_lines
    locations = faults.line_locations(given.source)
    if graded:
        lines, firsts = lines + faults.numbers, [*firsts, *faults.first_numbers]
        locations = (*locations, *faults.number_locations(given.source))
    if lines:
        first = firsts[0]
        yield Problem(
            FINDING_KINDS["F101"], given.source,
            f"{many(lines, 'line')} not readable: {first.what}",
            lines, lines + len(given.whole), "line", locations,
            tuple(effects), FINDING_KINDS["F101"].fix,
        )  # fmt: skip


def _strange(source: str, count: int) -> Iterator[Problem]:
    if count:
        yield Problem(
            FINDING_KINDS["F102"], source, f"{many(count, 'id')} not in UTF-8", count,
            mend=FINDING_KINDS["F102"].fix,
        )  # fmt: skip


def _single(given: Any, measures: tuple[Measure, ...]) -> Iterator[Problem]:
    if given is not None and len(measures) == 1:
        yield Problem(
            FINDING_KINDS["M101"], "measures", f"{measures[0]} is the only measure", 1, 1,
            mend=FINDING_KINDS["M101"].fix,
        )  # fmt: skip


def _measures(given: str | Measure | Iterable[str | Measure] | None) -> tuple[Measure, ...]:
    if given is None:
        given = _DEFAULT
    names = (given,) if isinstance(given, str | Measure) else tuple(given)
    found = tuple(dict.fromkeys(measure for name in names for measure in parse_all(name)))
    return found or _measures(None)


def _codes(given: Iterable[str]) -> frozenset[str]:
    codes = frozenset([given] if isinstance(given, str) else given)
    unknown = sorted(codes - FINDING_KINDS.keys())
    if unknown:
        raise UnknownName(
            f"no problem has the code {unknown[0]!r}",
            where="ignore",
            fix=f"codes are {', '.join(FINDING_KINDS)}",
        )
    return codes
