"""Values of a measure from another source: one per query, or only the mean."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rankgauge.core.arguments import to_float
from rankgauge.core.text import many
from rankgauge.errors import FormatError, InputError, RankgaugeError
from rankgauge.evaluation.result import Evaluation
from rankgauge.formats.delimited import named_cells
from rankgauge.formats.json_files import objects
from rankgauge.formats.lines import opened, read_bytes, source_name
from rankgauge.measures.measure import Measure, parse

_QUERY = {"query_id", "query", "qid", "query-id", "queryid", "q_id", "topic", "id", "_id"}
_MEASURE = {"measure", "metric", "measure_name"}
_VALUE = {"value", "score", "result"}
_MEANS = {"all", "mean", "average", "avg", "amean"}
# Numbers with more decimals are taken as not rounded, but possibly 32-bit floats.
_EXACT, _SINGLE = 6, 1e-6
_OURS = "rankgauge/evaluation/1"
_WANTED = "a value of each query: lines of trec_eval -q or ir_measures, CSV, TSV, JSON, or JSON lines"


class _Row(NamedTuple):
    """A value from the source; query and measure are empty if unknown."""

    query: str
    measure: str
    value: Any
    line: int = 0


@dataclass(frozen=True)
class GivenValues:
    """Values from another source: one per query, or only the mean.

    Attributes:
        source: The name of the source.
        values: The values by query; empty if only the mean is known.
        mean: The given mean, or the mean of the values.
        slack: The rounding error of a value: half a unit of the last decimal.
        digits: The number of decimals.
        notes: Notes on choices made, one sentence each.

    Example:
        >>> GivenValues.of({"q1": 0.5, "q2": 0.25}, "AP").mean
        0.375
        >>> GivenValues.of(0.41, "AP").slack
        0.005
    """

    source: str
    values: Mapping[str, float]
    mean: float
    slack: float
    digits: int
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: Any, measure: str | Measure) -> GivenValues:
        """Convert any supported source to values.

        Args:
            source: A mapping of query to value, or of query to measure to value (as from
                pytrec_eval); an evaluation; the mean as a number or, to preserve its decimals, as
                text; or the path of a file, compressed or not: output of ``trec_eval -q`` or
                ir_measures, CSV, TSV, JSON, or JSON lines.
            measure: The measure to use if the source has several.

        Raises:
            InputError: If `source` is of another type or has no values of the measure.
            FormatError: If a line is invalid; the message has the path and line.
        """
        wanted = parse(measure)
        if isinstance(source, GivenValues):
            return source
        number = _number(source)
        if number is not None:
            return cls("the given mean", {}, number, *_slack([source]), tuple(_beyond([number], wanted)))
        if isinstance(source, Evaluation):
            names = [str(measure) for measure in source.measures]
            table = zip(source.query_ids, source.per_query.tolist(), strict=True)
            rows = [_Row(query, name, value) for query, row in table for name, value in zip(names, row, strict=True)]
            return _chosen(rows, wanted, source.run_name)
        if isinstance(source, str | os.PathLike):
            return _chosen(_of_file(source), wanted, os.path.basename(source_name(source)))  # noqa: PTH119 - a path may be text
        if isinstance(source, Mapping | list):
            return _chosen(list(_of_json(source)), wanted, "the given values")
        raise InputError(
            f"got {type(source).__name__} for the values",
            where="values",
            fix="pass a mapping of query to value, the mean, or the path of a file",
        )


def _number(value: Any) -> float | None:
    """Return a finite number, or None."""
    number = math.nan if isinstance(value, bool) else to_float(value)
    return number if math.isfinite(number) else None


def _slack(values: Iterable[Any]) -> tuple[float, int]:
    """Return the rounding error of values and their number of decimals."""
    digits = max((_decimals(value) for value in values), default=0)
    return (_SINGLE if digits > _EXACT else 0.5 * 10.0**-digits), digits


def _decimals(value: Any) -> int:
    text = value if isinstance(value, str) else repr(float(value))
    base, _, power = text.strip().lower().partition("e")
    after = base.partition(".")[2]
    return max(len(after) - int(power or 0), 0)


def _chosen(rows: Sequence[_Row], measure: Measure, source: str) -> GivenValues:
    """Return the values of the requested measure."""
    names = list(dict.fromkeys(row.measure for row in rows))
    fitting = [name for name in names if not name or name == measure.trec_name() or _measure_of(name) == measure]
    notes: list[str] = []
    if not fitting and len(names) == 1:
        notes.append(f"{source} has values of {names[0]}, read as {measure}")
        fitting = names
    kept = [row for row in rows if row.measure in fitting[:1]]
    if not kept:
        raise InputError(
            f"there are no values of {measure}" if rows else "there are no values",
            where=source,
            fix=f"it has: {', '.join(names[:6])}" if rows else f"pass {_WANTED}",
        )
    values: dict[str, float] = {}
    mean, numbers = None, [row.value for row in kept if _number(row.value) is not None]
    for row in kept:
        value = _number(row.value)
        if value is None:
            _refuse_words(row, source)
        elif row.query.lower() in _MEANS or not row.query:
            mean = value
        elif row.query in values:
            raise InputError(f"query {row.query!r} occurs twice", where=source, fix="keep one")
        else:
            values[row.query] = value
    if len(values) + (mean is not None) < len(kept):
        notes.append("values that are not numbers (undefined) were skipped")
    if not values and mean is None:
        raise InputError("there are no numbers", where=source, fix=f"pass {_WANTED}")
    notes += _beyond(values.values() if values else [mean or 0.0], measure)
    own = measure.mean(list(values.values())) if values else mean
    return GivenValues(source, values, float(own or 0.0), *_slack(numbers), tuple(notes))


def _beyond(values: Iterable[float], measure: Measure) -> Iterator[str]:
    """Yield a note if values are outside the range of the measure."""
    low, high = measure.declaration.bounds
    if measure.declaration.mean == "sum":
        high = math.inf
    wrong = [value for value in values if not low - _SINGLE <= value <= high + _SINGLE]
    if wrong:
        yield (
            f"{many(len(wrong), 'value')} {'is' if len(wrong) == 1 else 'are'} outside the "
            f"range of {measure} ({low:g} to {high:g}), such as {wrong[0]:g}: percentages, "
            "another measure, or a sum?"
        )


def _refuse_words(row: _Row, source: str) -> None:
    """Raise an error for text that neither is a number nor marks an undefined value."""
    if row.value is None or str(row.value).strip().lower() in {"", "nan", "null", "none", "–", "-"}:
        return
    heads = "if this is the header, name its columns query_id and the measure"
    fix = heads if row.line == 1 else f"pass {_WANTED}"
    raise FormatError(f"{str(row.value)[:40]!r} is not a value", path=source, line=row.line, fix=fix)


def _measure_of(name: str) -> Measure | None:
    """Return the measure of a name; None if there is none."""
    try:
        return parse(name)
    except RankgaugeError:
        return None


# ---- from files


def _of_file(path: str | os.PathLike[str]) -> list[_Row]:
    name = source_name(path)
    with opened(path) as stream:
        content = read_bytes(stream, name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError("not UTF-8", path=name, fix="save it as UTF-8") from None
    if text.lstrip()[:1] in {"{", "["}:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            numbered = enumerate(text.encode().splitlines(), start=1)
            data = [row for _, row in objects(numbered, name)]
        return list(_of_json(data))
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.startswith("#")
    ]
    for mark in (",", "\t", ";") if lines else ():
        head = [cell.strip().lower() for cell in lines[0][1].split(mark)]
        if len(head) > 1 and head[0] in _QUERY | _MEASURE:
            table = named_cells(((at, f"{line}\n".encode()) for at, line in lines), name, mark)
            return [row for at, record in table for row in _of_record(record, at)]
    return list(_of_lines(lines, name))


def _of_record(record: Mapping[str, Any], line: int = 0) -> Iterator[_Row]:
    """Yield the values of a record with named fields."""
    query = next((record[key] for key in record if key.strip().lower() in _QUERY), "")
    named = next((record[key] for key in record if key.strip().lower() in _MEASURE), None)
    for key, value in record.items():
        plain = key.strip().lower()
        if plain in _QUERY | _MEASURE:
            continue
        if plain in _VALUE or named is not None:
            if plain in _VALUE:
                yield _Row(str(query), str(named or ""), value, line)
        elif isinstance(value, Mapping):
            for name, inner in value.items():
                yield _Row(str(query), str(name), inner, line)
        else:
            yield _Row(str(query), key.strip(), value, line)


def _of_lines(lines: Sequence[tuple[int, str]], name: str) -> Iterator[_Row]:
    """Yield rows of trec_eval -q, ir_measures (query, measure, value), or two columns."""
    split = [(number, line.replace(",", " ").split()) for number, line in lines]
    first_is_measure = sum(_is_measure(cells[0]) for _, cells in split[:50])
    second_is_measure = sum(_is_measure(cells[1]) for _, cells in split[:50] if len(cells) > 2)
    of_trec = first_is_measure > second_is_measure
    for number, cells in split:
        if len(cells) not in {2, 3}:
            raise FormatError(
                f"got {many(len(cells), 'field')}, expected two or three", path=name, line=number, fix=f"pass {_WANTED}"
            )
        first, second = cells[0], cells[1] if len(cells) == 3 else ""
        measure, query = (first, second) if of_trec else (second, first)
        yield _Row(query, measure, cells[-1], number)


def _is_measure(text: str) -> bool:
    return _measure_of(text) is not None or text in {"runid", "num_q"}


# ---- from objects in memory


def _of_json(data: Any) -> Iterator[_Row]:
    """Yield the values of records, nested mappings in either order, or saved evaluations."""
    if isinstance(data, list):
        for record in data:
            if isinstance(record, Mapping):
                yield from _of_json(record) if _is_ours(record) else _of_record({str(k): v for k, v in record.items()})
            elif isinstance(record, list | tuple) and len(record) in {2, 3}:
                query, *name, value = record
                yield _Row(str(query), str(name[0]) if name else "", value)
    elif _is_ours(data):
        names = [measure["name"] for measure in data["measures"]]
        for query, values in zip(data["query_ids"], data["values"], strict=True):
            yield from (_Row(query, name, value) for name, value in zip(names, values, strict=True))
    elif isinstance(data, Mapping) and isinstance(data.get("per_query"), Mapping):
        yield from _of_json(data["per_query"])
    elif isinstance(data, Mapping) and any(str(key).lower() in _QUERY for key in data):
        yield from _of_record({str(key): value for key, value in data.items()})
    elif isinstance(data, Mapping):
        yield from _of_mapping(data)


def _is_ours(data: Any) -> bool:
    return isinstance(data, Mapping) and data.get("schema") == _OURS


def _of_mapping(data: Mapping[Any, Any]) -> Iterator[_Row]:
    turned = all(_is_measure(str(key)) for key in data)
    for key, inner in data.items():
        values = inner if isinstance(inner, Mapping) else {"": inner}
        for other, value in values.items():
            query, measure = (other, key) if turned else (key, other)
            yield _Row(str(query), str(measure), value)
