"""Rules of a gate: measures with margins, contracts, and limits, read from a project file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rankgauge.core.arguments import integer, of_kind, option
from rankgauge.core.project_file import ProjectFile
from rankgauge.measures.measure import Measure, parse, parse_all

_MARGIN = 0.02
MAX_FAILED = 0.05
_K = 10
_DEFAULT_MEASURE = "nDCG@10"
_DEFAULT_BASELINE = "gate-baseline.json"
_MOST_K = 10**9
_QUANTILES = ("p50", "p95")
_MOST_RATIO = 2.0
_KEYS = {
    "measures": (dict,),
    "contracts": (list, tuple),
    "queries": (str,),
    "depth": (str,),
    "max_failed": (float,),
    "latency": (dict,),
    "baseline": (str,),
    "anchor": (str,),
}
_CONTRACT = {
    "query": (str, int),
    "must_rank_at_most": (dict,),
    "must_include": (list, tuple),
    "forbidden": (list, tuple),
    "k": (int,),
}


@dataclass(frozen=True)
class GatedMeasure:
    """A measure that may not lose more than its margin.

    Attributes:
        measure: Measure.
        margin: Accepted loss of the mean, in units of the measure.
        floor: Lowest accepted mean (highest if lower is better); None for no floor.
    """

    measure: Measure
    margin: float
    floor: float | None


@dataclass(frozen=True)
class Contract:
    """A condition on one query, independent of the means.

    Attributes:
        query: Query id.
        must_rank_at_most: Largest accepted rank by document.
        must_include: Documents that must be in the first `k` ranks.
        forbidden: Documents that must not be in the first `k` ranks.
        k: Cut-off for `must_include` and `forbidden`; default: 10.
    """

    query: str
    must_rank_at_most: Mapping[str, int]
    must_include: tuple[str, ...]
    forbidden: tuple[str, ...]
    k: int


@dataclass(frozen=True)
class GateRules:
    """Rules of :func:`gate`, to be written before looking at the data.

    Attributes:
        measures: Gated measures; default: nDCG@10 with a margin of 0.02.
        contracts: Requirements for single queries.
        queries: ``same``: baseline and run must have the same queries; ``intersection``: only
            common queries are compared.
        depth: ``same``: rankings must be cut at the same depth; ``any``: their lengths may differ.
        max_failed: Largest accepted share of queries without a ranking; default: 0.05.
        latency: Largest accepted ratio, new to baseline, by quantile of the latency (``p50``,
            ``p95``).
        baseline: Path of the baseline.
        anchor: Path of a second, fixed baseline, such as the last release.
        source: Path of the project file.

    Example:
        >>> rules = GateRules.of({"measures": {"nDCG@10": {"margin": 0.03}, "R@100": {}}})
        >>> [(str(gated.measure), gated.margin) for gated in rules.measures]
        [('nDCG@10', 0.03), ('R@100', 0.02)]
    """

    measures: tuple[GatedMeasure, ...]
    contracts: tuple[Contract, ...]
    queries: Literal["same", "intersection"]
    depth: Literal["same", "any"]
    max_failed: float
    latency: Mapping[str, float]
    baseline: str
    anchor: str | None
    source: str

    @classmethod
    def of(cls, source: Any = None) -> GateRules:
        """Read rules from any source.

        Args:
            source: None (the defaults), the path of a project file with a table ``[gate]`` (without
                it, the defaults), a mapping with the keys of this table, or rules.

        Raises:
            FormatError: If the file is not a valid project file.
            InputError: If the file does not exist, or a value is invalid.
            UnknownName: If a key or measure is unknown.
        """
        if isinstance(source, GateRules):
            return source
        if isinstance(source, str | os.PathLike):
            file = ProjectFile.read(source)
            with file.at("measures"):
                shown = [measure for name in file.value([], "measures") for measure in parse_all(name)]
            return _rules(file.inside("gate"), str(shown[0] if shown else _DEFAULT_MEASURE))
        of_kind(
            "the rules",
            source,
            Mapping | None,
            'pass a path or a mapping: {"measures": {"nDCG@10": {"margin": 0.02}}}',
            where="rules",
        )
        return _rules(ProjectFile(Path("rules"), source or {}), _DEFAULT_MEASURE)


def _rules(rules: ProjectFile, measure: str) -> GateRules:
    """Return rules; without gated measures, `measure` is gated."""
    table = rules.checked("the rules", _KEYS)
    for key, choices in (("queries", ("same", "intersection")), ("depth", ("same", "any"))):
        with rules.at(key):
            option(key, table.get(key, "same"), choices)
    failed = table.get("max_failed", MAX_FAILED)
    if not 0 <= failed < 1:
        raise rules.error(f"{failed:g} is not valid", "max_failed", fix="write a share of at least 0, below 1")
    folder, anchor = rules.path.parent, table.get("anchor")
    return GateRules(
        measures=_gated(rules.inside("measures"), table.get("measures", {measure: {}})),
        contracts=tuple(
            _contract(rules.inside("contracts", str(number)))
            for number in range(1, len(table.get("contracts", ())) + 1)
        ),
        queries=table.get("queries", "same"),
        depth=table.get("depth", "same"),
        max_failed=float(failed),
        latency=_latency(rules.inside("latency")),
        baseline=str(folder / table.get("baseline", _DEFAULT_BASELINE)),
        anchor=str(folder / anchor) if anchor else None,
        source=str(rules.path) if table else "defaults",
    )


def _gated(entry: ProjectFile, measures: Mapping[str, Any]) -> tuple[GatedMeasure, ...]:
    if not measures:
        raise entry.error("no measure is gated", fix='write "nDCG@10" = { margin = 0.02 }')
    gated: dict[Measure, GatedMeasure] = {}
    for name in measures:
        with entry.at(name):
            measure = parse(name)
        if measure in gated:
            raise entry.error(f"duplicate measure {measure}", name, fix="remove one")
        gated[measure] = _gated_measure(measure, entry.inside(name))
    return tuple(gated.values())


def _gated_measure(measure: Measure, entry: ProjectFile) -> GatedMeasure:
    table = entry.checked("a gated measure", {"margin": (float,), "floor": (float,)})
    declared = measure.declaration
    if declared.mean == "geometric":
        raise entry.error(
            f"{measure} has a geometric mean: it is not a mean of differences per query", fix="gate AP instead"
        )
    if declared.better == "neither":
        raise entry.error(f"{measure} has no better direction", fix="gate nDCG@10 instead")
    low, high = declared.bounds
    usual = declared.better == "higher" and (low, high) == (0.0, 1.0)
    if "margin" not in table and not usual:
        why = "lower is better" if declared.better == "lower" else "it may be above 1"
        raise entry.error(
            f"{measure} needs an explicit margin ({why})",
            fix=f'write the accepted loss, as in "{measure}" = {{ margin = 1.5 }}',
        )
    margin, floor = float(table.get("margin", _MARGIN)), table.get("floor")
    most = (high - low) / 2
    if not 0 < margin <= most:
        wanted = "" if math.isinf(most) else f", at most {most:g}, usually 0.01 to 0.05"
        percent = f"; for {margin:g}% write {margin / 100:g}" if 1 <= margin <= 100 * most else ""
        raise entry.error(
            f"a margin of {margin:g} is not valid: a margin is the loss of the mean that you "
            f"accept, and {measure} is between {low:g} and {high:g}",
            "margin",
            fix=f"write a number above 0{wanted}{percent}",
        )
    if floor is not None and not low <= floor <= high:
        raise entry.error(f"{floor:g} is not valid", "floor", fix=f"{measure} is between {low:g} and {high:g}")
    return GatedMeasure(measure, margin, floor if floor is None else float(floor))


def _contract(entry: ProjectFile) -> Contract:
    table = entry.checked("a contract", _CONTRACT)
    if table.get("query", "") == "":
        raise entry.error("the contract has no query", fix='write query = "q1"')
    with entry.at("must_rank_at_most"):
        ranks = {str(d): integer(str(d), rank, most=_MOST_K) for d, rank in table.get("must_rank_at_most", {}).items()}
    with entry.at("k"):
        k = integer("k", table.get("k", _K), most=_MOST_K)
    contract = Contract(str(table["query"]), ranks, _ids(entry, "must_include"), _ids(entry, "forbidden"), k)
    required = {*contract.must_include, *ranks}
    if not (required or contract.forbidden):
        raise entry.error("the contract has no condition", fix="write must_rank_at_most, must_include, or forbidden")
    both = required.intersection(contract.forbidden)
    if both:
        raise entry.error(f"document {min(both)!r} is both required and forbidden", fix="remove one of the two")
    return contract


def _ids(entry: ProjectFile, key: str) -> tuple[str, ...]:
    ids = entry.value([], key, kinds=(list, tuple))
    if any(isinstance(name, bool) or not isinstance(name, str | int) or name == "" for name in ids):
        raise entry.error(f"got {ids!r:.60}", key, fix='write a list of ids: ["d1", "d2"]')
    return tuple(map(str, ids))


def _latency(entry: ProjectFile) -> Mapping[str, float]:
    limits = entry.checked("the latency", dict.fromkeys(_QUANTILES, (float,)))
    for name, limit in limits.items():
        if not 1 < limit <= _MOST_RATIO:
            raise entry.error(
                f"a limit of {limit:g} is not valid: a limit is the ratio of the new latency to that of the baseline",
                name,
                fix=f"write a number above 1, at most {_MOST_RATIO:g}: 1.1 is 10% slower",
            )
    return {name: float(limit) for name, limit in limits.items()}
