"""Rules of a gate: measures with margins, contracts, and limits, read from TOML."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rankgauge.core.files import read_toml
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
# Below [tool.rankgauge] in pyproject.toml.
_TABLES = ("gate", "bands")


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
        source: Path of the rules file.

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
            source: None (the defaults), a mapping with the keys of the file, the path of a TOML
                file (in ``pyproject.toml``, the table ``[tool.rankgauge.gate]``), or rules.

        Raises:
            FormatError: If the file is not valid TOML.
            InputError: If the file or table does not exist, or a value is invalid.
            UnknownName: If a key or measure is unknown.
        """
        if isinstance(source, GateRules):
            return source
        if source is None or isinstance(source, Mapping):
            return _rules(source or {}, _Place("rules"), Path())
        if isinstance(source, str | os.PathLike):
            path = Path(source)
            return _rules(_table(path), _Place(str(path)), path.parent)
        raise InputError(
            f"got {type(source).__name__} for the rules",
            where="rules",
            fix='pass a path or a mapping: {"measures": {"nDCG@10": {"margin": 0.02}}}',
        )

    @classmethod
    def find(cls, folder: str | os.PathLike[str] = ".") -> GateRules:
        """Read the rules in the ``pyproject.toml`` of a folder, or return the defaults.

        Raises:
            UnknownName: If ``[tool.rankgauge]`` has an unknown table, such as ``gates``.
        """
        path = Path(folder) / "pyproject.toml"
        if path.is_file() and _inner(_read(path), path) is not None:
            return cls.of(path)
        return cls.of()


@dataclass(frozen=True)
class _Place:
    """A location in the rules, for messages."""

    name: str
    keys: tuple[str, ...] = ()

    def at(self, *keys: str) -> _Place:
        return _Place(self.name, (*self.keys, *keys))

    def __str__(self) -> str:
        return f"{self.name}, {'.'.join(self.keys)}" if self.keys else self.name


def _read(path: Path) -> Mapping[str, Any]:
    return read_toml(
        path,
        missing="check the path of the rules",
        fix='fix the line; names with signs need quotes: "nDCG@10" = { margin = 0.02 }',
    )


def _inner(whole: Mapping[str, Any], path: Path) -> Any:
    """Return the table ``[tool.rankgauge.gate]``; None if it does not exist."""
    tools = whole.get("tool", {})
    ours = tools.get("rankgauge", {}) if isinstance(tools, Mapping) else {}
    place = _Place(str(path), ("tool", "rankgauge"))
    tables = _mapping(ours, place, "[tool.rankgauge.gate]")
    for name in tables:
        # If the table were misnamed, the gate would silently use the defaults.
        if name not in _TABLES:
            raise UnknownName.of("table of [tool.rankgauge]", name, _TABLES, where=str(place))
    return tables.get("gate")


def _table(path: Path) -> Any:
    whole = _read(path)
    if path.name != "pyproject.toml":
        return whole
    found = _inner(whole, path)
    if found is None:
        raise InputError(
            "there is no table [tool.rankgauge.gate]",
            where=str(path),
            fix='add one: [tool.rankgauge.gate.measures], then "nDCG@10" = { margin = 0.02 }',
        )
    return found


def _mapping(value: Any, place: _Place, example: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _impossible(value, place, f"write a table: {example}")
    return {str(key): entry for key, entry in value.items()}


def _known(table: Mapping[str, Any], names: Iterable[str], place: _Place) -> None:
    known = list(names)
    for key in table:
        if key not in known:
            raise UnknownName.of("key of the rules", key, known, where=str(place))


def _impossible(value: Any, place: _Place, fix: str) -> InputError:
    return InputError(f"{value!r:.60} is not valid", where=str(place), fix=fix)


def _number(value: Any, place: _Place, fix: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _impossible(value, place, fix)
    return float(value)


def _rules(given: Any, place: _Place, folder: Path) -> GateRules:
    table = _mapping(given, place, "measures = { ... }")
    _known(table, [name for name in GateRules.__dataclass_fields__ if name != "source"], place)
    example = '[measures], then "nDCG@10" = { margin = 0.02 }'
    here = place.at("measures")
    measures = _mapping(table.get("measures", {_DEFAULT_MEASURE: {}}), here, example)
    here = place.at("max_failed")
    failed = _number(table.get("max_failed", MAX_FAILED), here, "write a share such as 0.05")
    if not 0 <= failed < 1:
        raise _impossible(failed, here, "write a share of at least 0, below 1")
    here = place.at("contracts")
    contracts = _list(table.get("contracts", ()), here, 'write [[contracts]], then query = "q1", ...')
    baseline = _path(table, "baseline", place, folder)
    return GateRules(
        measures=_gated(measures, place.at("measures")),
        contracts=tuple(_contract(entry, here.at(str(number))) for number, entry in enumerate(contracts, start=1)),
        queries=_choice(table, "queries", ("same", "intersection"), place),
        depth=_choice(table, "depth", ("same", "any"), place),
        max_failed=failed,
        latency=_latency(table.get("latency", {}), place.at("latency")),
        baseline=baseline or str(folder / _DEFAULT_BASELINE),
        anchor=_path(table, "anchor", place, folder),
        source=place.name if given else "defaults",
    )


def _choice(table: Mapping[str, Any], key: str, choices: tuple[str, ...], place: _Place) -> Any:
    """Return one of the choices; the first is the default."""
    value = table.get(key, choices[0])
    if value not in choices:
        raise _impossible(value, place.at(key), f"choose one of: {', '.join(choices)}")
    return value


def _path(table: Mapping[str, Any], key: str, place: _Place, folder: Path) -> str | None:
    """Return a path relative to the rules file."""
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise _impossible(value, place.at(key), 'write a path: "gate-baseline.json"')
    return str(folder / value)


def _gated(table: Mapping[str, Any], place: _Place) -> tuple[GatedMeasure, ...]:
    if not table:
        raise InputError("no measure is gated", where=str(place), fix='write "nDCG@10" = { margin = 0.02 }')
    found: dict[Measure, GatedMeasure] = {}
    for name, entry in table.items():
        here = place.at(name)
        try:
            measure = parse(name)
        except RankgaugeError as error:
            raise UnknownName(error.what, where=str(here), fix=error.fix) from None
        if measure in found:
            raise InputError(f"duplicate measure {measure}", where=str(here), fix="remove one")
        values = _mapping(entry, here, f'"{name}" = {{ margin = 0.02 }}')
        found[measure] = _gated_measure(measure, values, here)
    return tuple(found.values())


def _gated_measure(measure: Measure, entry: Mapping[str, Any], place: _Place) -> GatedMeasure:
    _known(entry, ("margin", "floor"), place)
    declared = measure.declaration
    if declared.mean == "geometric":
        raise InputError(
            f"{measure} has a geometric mean: it is not a mean of differences per query",
            where=str(place),
            fix="gate AP instead",
        )
    if declared.better == "neither":
        raise InputError(f"{measure} has no better direction", where=str(place), fix="gate nDCG@10 instead")
    low, high = declared.bounds
    usual = declared.better == "higher" and (low, high) == (0.0, 1.0)
    if "margin" not in entry and not usual:
        why = "lower is better" if declared.better == "lower" else "it may be above 1"
        raise InputError(
            f"{measure} needs an explicit margin ({why})",
            where=str(place),
            fix=f'write the accepted loss, as in "{measure}" = {{ margin = 1.5 }}',
        )
    margin = _number(entry.get("margin", _MARGIN), place.at("margin"), "write a number: 0.02")
    most = (high - low) / 2
    if not 0 < margin <= most:
        wanted = "" if math.isinf(most) else f", at most {most:g}, usually 0.01 to 0.05"
        percent = f"; for {margin:g}% write {margin / 100:g}" if 1 <= margin <= 100 * most else ""
        raise InputError(
            f"a margin of {margin:g} is not valid: a margin is the loss of the mean that you "
            f"accept, and {measure} is between {low:g} and {high:g}",
            where=str(place.at("margin")),
            fix=f"write a number above 0{wanted}{percent}",
        )
    floor = entry.get("floor")
    if floor is not None:
        floor = _number(floor, place.at("floor"), "write a number: 0.5")
        if not low <= floor <= high:
            fix = f"{measure} is between {low:g} and {high:g}"
            raise _impossible(floor, place.at("floor"), fix)
    return GatedMeasure(measure, margin, floor)


def _contract(entry: Any, place: _Place) -> Contract:
    table = _mapping(entry, place, '[[contracts]], then query = "q1", must_include = ["d1"]')
    _known(table, Contract.__dataclass_fields__, place)
    if "query" not in table:
        raise InputError("the contract has no query", where=str(place), fix='write query = "q1"')
    here = place.at("must_rank_at_most")
    ranks = _mapping(table.get("must_rank_at_most", {}), here, '{ "d1" = 3 }')
    found = Contract(
        query=_id(table["query"], place.at("query")),
        must_rank_at_most={doc: _rank(rank, here.at(doc)) for doc, rank in ranks.items()},
        must_include=_ids(table, "must_include", place),
        forbidden=_ids(table, "forbidden", place),
        k=_rank(table.get("k", _K), place.at("k")),
    )
    if not (found.must_rank_at_most or found.must_include or found.forbidden):
        raise InputError(
            "the contract has no condition", where=str(place), fix="write must_rank_at_most, must_include, or forbidden"
        )
    both = set(found.forbidden) & (set(found.must_include) | set(found.must_rank_at_most))
    if both:
        raise InputError(
            f"document {min(both)!r} is both required and forbidden", where=str(place), fix="remove one of the two"
        )
    return found


def _list(given: Any, place: _Place, fix: str) -> Iterable[Any]:
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping):
        raise _impossible(given, place, fix)
    return given


def _id(value: Any, place: _Place) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise _impossible(value, place, 'write an id: "q1"')
    return str(value)


def _ids(table: Mapping[str, Any], key: str, place: _Place) -> tuple[str, ...]:
    here = place.at(key)
    given = _list(table.get(key, ()), here, 'write a list of ids: ["d1", "d2"]')
    return tuple(_id(value, here) for value in given)


def _rank(value: Any, place: _Place) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_K:
        raise _impossible(value, place, "write a whole number of 1 or more")
    return value


def _latency(given: Any, place: _Place) -> Mapping[str, float]:
    table = _mapping(given, place, "[latency], then p95 = 1.1")
    _known(table, _QUANTILES, place)
    limits = {}
    for name, value in table.items():
        limit = _number(value, place.at(name), "write a ratio: 1.1 is 10% slower")
        if not 1 < limit <= _MOST_RATIO:
            raise InputError(
                f"a limit of {limit:g} is not valid: a limit is the ratio of the new latency to that of the baseline",
                where=str(place.at(name)),
                fix=f"write a number above 1, at most {_MOST_RATIO:g}: 1.1 is 10% slower",
            )
        limits[name] = limit
    return limits
