"""check(): what is wrong with judgments and runs, what it does to the numbers, what mends it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rankgauge.checking.judgments import judgment_problems
from rankgauge.checking.problems import KINDS, Problem
from rankgauge.checking.reading import given_qrels, given_runs
from rankgauge.checking.result import CheckResult
from rankgauge.errors import UnknownName
from rankgauge.kernels.measure import Measure, parse_all

__all__ = ["check"]

_DEFAULT = "nDCG@10"


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
        >>> found = check([("q1", "d1", 1), ("q1", "d1", 2)])
        >>> found.codes
        ('J102',)
    """
    chosen = _measures(measures)
    ignored = _codes(ignore)
    judged = given_qrels(qrels)
    given = given_runs(runs)
    problems: list[Problem] = [*judgment_problems(judged, chosen, scale)]
    del collection
    kept = tuple(found for found in problems if found.kind.code not in ignored)
    return CheckResult(
        problems=kept,
        inputs=(judged.source, *(run.source for run in given)),
        measures=tuple(map(str, chosen)),
    )


def _measures(given: str | Measure | Iterable[str | Measure] | None) -> tuple[Measure, ...]:
    if given is None:
        given = _DEFAULT
    names = (given,) if isinstance(given, str | Measure) else tuple(given)
    found = tuple(dict.fromkeys(measure for name in names for measure in parse_all(name)))
    return found or _measures(None)


def _codes(given: Iterable[str]) -> frozenset[str]:
    codes = frozenset([given] if isinstance(given, str) else given)
    unknown = sorted(codes - KINDS.keys())
    if unknown:
        raise UnknownName(
            f"no problem has the code {unknown[0]!r}",
            where="ignore",
            fix=f"codes are {', '.join(KINDS)}",
        )
    return codes
