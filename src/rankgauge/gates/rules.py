"""Rules of a gate: measures with margins, contracts, and limits, read from a project file."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rankgauge.core.arguments import is_number
from rankgauge.core.project_file import ProjectFile
from rankgauge.errors import InputError, RankgaugeError, UnknownName
from rankgauge.measures.measure import Measure, parse

_MARGIN = 0.02
MAX_FAILED = 0.05
_K = 10
_DEFAULT_MEASURE = "nDCG@10"
_DEFAULT_BASELINE = "gate-baseline.json"
_MOST_K = 10**9
_QUANTILES = ("p50", "p95")
_MOST_RATIO = 2.0


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
        if source is None or isinstance(source, Mapping):
            return _rules(_Entry(source or {}))
        if isinstance(source, str | os.PathLike):
            file = ProjectFile.read(source)
            return _rules(_Entry(file.value({}, "gate"), file, ("gate",)))
        raise InputError(
            f"got {type(source).__name__} for the rules",
            where="rules",
            fix='pass a path or a mapping: {"measures": {"nDCG@10": {"margin": 0.02}}}',
        )


@dataclass(frozen=True)
class _Entry:
    """A value of the rules, with its file and its keys for messages."""

    value: Any
    file: ProjectFile | None = None
    keys: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        if self.file is not None:
            return self.file.where(*self.keys)
        return ", ".join(filter(None, ("rules", ".".join(self.keys))))

    def at(self, key: str, value: Any) -> _Entry:
        return _Entry(value, self.file, (*self.keys, key))

    def invalid(self, fix: str) -> InputError:
        return InputError(f"{self.value!r:.60} is not valid", where=self.where, fix=fix)

    def table(self, example: str, defaults: Mapping[str, Any] | None = None) -> dict[str, _Entry]:
        """Return the entries of a table; with `defaults`, these keys and no others."""
        if not isinstance(self.value, Mapping):
            raise self.invalid(f"write a table: {example}")
        values = {str(key): value for key, value in self.value.items()}
        for key in values:
            if defaults is not None and key not in defaults:
                raise UnknownName.of("key of the rules", key, defaults, where=self.at(key, None).where)
        return {key: self.at(key, value) for key, value in {**(defaults or {}), **values}.items()}

    def values(self, fix: str) -> Iterable[Any]:
        if not isinstance(self.value, Iterable) or isinstance(self.value, str | bytes | Mapping):
            raise self.invalid(fix)
        return self.value

    def number(self, fix: str) -> float:
        if not is_number(self.value):
            raise self.invalid(fix)
        return float(self.value)

    def rank(self) -> int:
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_K:
            raise self.invalid("write a whole number of 1 or more")
        return value

    def id(self) -> str:
        if isinstance(self.value, bool) or not isinstance(self.value, str | int) or self.value == "":
            raise self.invalid('write an id: "q1"')
        return str(self.value)

    def ids(self) -> tuple[str, ...]:
        return tuple(replace(self, value=value).id() for value in self.values('write a list of ids: ["d1", "d2"]'))

    def choice(self, *choices: str) -> Any:
        if self.value not in choices:
            raise self.invalid(f"choose one of: {', '.join(choices)}")
        return self.value

    def path(self, folder: Path) -> str | None:
        """Return a path relative to the project file."""
        if self.value is None:
            return None
        if not isinstance(self.value, str) or not self.value:
            raise self.invalid('write a path: "gate-baseline.json"')
        return str(folder / self.value)


def _rules(rules: _Entry) -> GateRules:
    folder = Path() if rules.file is None else rules.file.path.parent
    measure = _DEFAULT_MEASURE if rules.file is None else next(iter(rules.file.value([], "measures")), _DEFAULT_MEASURE)
    defaults: dict[str, Any] = {
        "measures": {str(measure): {}},
        "contracts": (),
        "queries": "same",
        "depth": "same",
        "max_failed": MAX_FAILED,
        "latency": {},
        "baseline": None,
        "anchor": None,
    }
    table = rules.table("measures = { ... }", defaults)
    failed = table["max_failed"].number("write a share such as 0.05")
    if not 0 <= failed < 1:
        raise table["max_failed"].invalid("write a share of at least 0, below 1")
    contracts = table["contracts"]
    entries = contracts.values('write [[contracts]], then query = "q1", ...')
    return GateRules(
        measures=_gated(table["measures"]),
        contracts=tuple(_contract(contracts.at(str(place), entry)) for place, entry in enumerate(entries, start=1)),
        queries=table["queries"].choice("same", "intersection"),
        depth=table["depth"].choice("same", "any"),
        max_failed=failed,
        latency=_latency(table["latency"]),
        baseline=table["baseline"].path(folder) or str(folder / _DEFAULT_BASELINE),
        anchor=table["anchor"].path(folder),
        source="defaults" if not rules.value else str(rules.file.path) if rules.file else "rules",
    )


def _gated(entry: _Entry) -> tuple[GatedMeasure, ...]:
    table = entry.table('[measures], then "nDCG@10" = { margin = 0.02 }')
    if not table:
        raise InputError("no measure is gated", where=entry.where, fix='write "nDCG@10" = { margin = 0.02 }')
    gated: dict[Measure, GatedMeasure] = {}
    for name, values in table.items():
        try:
            measure = parse(name)
        except RankgaugeError as error:
            raise UnknownName(error.what, where=values.where, fix=error.fix) from None
        if measure in gated:
            raise InputError(f"duplicate measure {measure}", where=values.where, fix="remove one")
        gated[measure] = _gated_measure(measure, name, values)
    return tuple(gated.values())


def _gated_measure(measure: Measure, name: str, entry: _Entry) -> GatedMeasure:
    table = entry.table(f'"{name}" = {{ margin = 0.02 }}', {"margin": None, "floor": None})
    declared = measure.declaration
    if declared.mean == "geometric":
        raise InputError(
            f"{measure} has a geometric mean: it is not a mean of differences per query",
            where=entry.where,
            fix="gate AP instead",
        )
    if declared.better == "neither":
        raise InputError(f"{measure} has no better direction", where=entry.where, fix="gate nDCG@10 instead")
    low, high = declared.bounds
    usual = declared.better == "higher" and (low, high) == (0.0, 1.0)
    if table["margin"].value is None and not usual:
        why = "lower is better" if declared.better == "lower" else "it may be above 1"
        raise InputError(
            f"{measure} needs an explicit margin ({why})",
            where=entry.where,
            fix=f'write the accepted loss, as in "{measure}" = {{ margin = 1.5 }}',
        )
    margin = _MARGIN if table["margin"].value is None else table["margin"].number("write a number: 0.02")
    most = (high - low) / 2
    if not 0 < margin <= most:
        wanted = "" if math.isinf(most) else f", at most {most:g}, usually 0.01 to 0.05"
        percent = f"; for {margin:g}% write {margin / 100:g}" if 1 <= margin <= 100 * most else ""
        raise InputError(
            f"a margin of {margin:g} is not valid: a margin is the loss of the mean that you "
            f"accept, and {measure} is between {low:g} and {high:g}",
            where=table["margin"].where,
            fix=f"write a number above 0{wanted}{percent}",
        )
    floor = None if table["floor"].value is None else table["floor"].number("write a number: 0.5")
    if floor is not None and not low <= floor <= high:
        raise table["floor"].invalid(f"{measure} is between {low:g} and {high:g}")
    return GatedMeasure(measure, margin, floor)


def _contract(entry: _Entry) -> Contract:
    defaults: dict[str, Any] = {"query": None, "must_rank_at_most": {}, "must_include": (), "forbidden": (), "k": _K}
    table = entry.table('[[contracts]], then query = "q1", must_include = ["d1"]', defaults)
    if table["query"].value is None:
        raise InputError("the contract has no query", where=entry.where, fix='write query = "q1"')
    contract = Contract(
        query=table["query"].id(),
        must_rank_at_most={doc: rank.rank() for doc, rank in table["must_rank_at_most"].table('{ "d1" = 3 }').items()},
        must_include=table["must_include"].ids(),
        forbidden=table["forbidden"].ids(),
        k=table["k"].rank(),
    )
    required = {*contract.must_include, *contract.must_rank_at_most}
    if not (required or contract.forbidden):
        raise InputError(
            "the contract has no condition",
            where=entry.where,
            fix="write must_rank_at_most, must_include, or forbidden",
        )
    both = required.intersection(contract.forbidden)
    if both:
        raise InputError(
            f"document {min(both)!r} is both required and forbidden", where=entry.where, fix="remove one of the two"
        )
    return contract


def _latency(entry: _Entry) -> Mapping[str, float]:
    limits = {}
    for name, value in entry.table("[latency], then p95 = 1.1", dict.fromkeys(_QUANTILES)).items():
        if value.value is None:
            continue
        limit = limits[name] = value.number("write a ratio: 1.1 is 10% slower")
        if not 1 < limit <= _MOST_RATIO:
            raise InputError(
                f"a limit of {limit:g} is not valid: a limit is the ratio of the new latency to that of the baseline",
                where=value.where,
                fix=f"write a number above 1, at most {_MOST_RATIO:g}: 1.1 is 10% slower",
            )
    return limits
