"""Queries of a report: a table of all queries, and examples with rankings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.corpus.collection import Collection
from rankgauge.data.join import ranked
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure
from rankgauge.rendering.plots import counted
from rankgauge.rendering.tables import Cell, Table, shorten

_DEPTH = 10
_MOST_MISSED = 12
_MOST_COLUMNS = 2
_DIGITS = 4
# Maximum number of values on the page: beyond it, only values of the primary measure.
_MOST_VALUES = 400_000
_ROWS = 50
_TITLE = 90


@dataclass(frozen=True)
class Queries:
    """Values and rankings of runs by query, for one measure."""

    evaluations: Sequence[Evaluation]  # one for each run, all of the same queries
    base: str  # name of the baseline
    measure: Measure  # primary measure
    truth: Qrels  # judgments
    runs: Mapping[str, Run]  # runs by name
    texts: Collection  # texts of queries and documents; may be empty

    @property
    def ids(self) -> tuple[str, ...]:
        """Query ids."""
        return self.evaluations[0].query_ids

    @property
    def sign(self) -> float:
        """-1 if lower is better, otherwise 1."""
        return -1.0 if self.measure.declaration.better == "lower" else 1.0

    def losses(self, most: int) -> list[str]:
        """Return the queries with the largest losses against the baseline, largest first."""
        found: dict[int, float] = {}
        columns = {e.run_name: counted(e, self.measure) for e in self.evaluations}
        base = columns.pop(self.base)
        for place, (value, *others) in enumerate(zip(base, *columns.values(), strict=True)):
            apart = [self.sign * (v - value) for v in others if not math.isnan(v - value)]
            if apart and min(apart) < -TOLERANCE:
                found[place] = min(apart)
        return [self.ids[p] for p in sorted(found, key=lambda p: (found[p], p))[:most]]

    def hard(self, most: int, but: Sequence[str] = ()) -> list[str]:
        """Return the queries in which every run is below its mean, worst first, except `but`."""
        columns = [counted(e, self.measure) for e in self.evaluations]
        means = [e.mean()[str(self.measure)] for e in self.evaluations]
        # An undefined value counts as 0 in the mean, but has nothing to show.
        undefined = [e.undefined[:, e.measures.index(self.measure)] for e in self.evaluations]
        best: dict[int, float] = {}
        for place, query in enumerate(self.ids):
            gains = [self.sign * (column[place] - mean) for column, mean in zip(columns, means, strict=True)]
            known = query not in but and not any(column[place] for column in undefined)
            if known and max(gains) < -TOLERANCE:
                best[place] = max(self.sign * column[place] for column in columns)
        return [self.ids[p] for p in sorted(best, key=lambda p: (best[p], p))[:most]]

    def details(self, queries: Sequence[str]) -> list[dict[str, Any]]:
        """Return the queries with the first documents of every run, for the template of the page."""
        orders = {e.run_name: self._orders(e, queries) for e in self.evaluations}
        return [self._details_of(query, orders) for query in queries]

    def table(self) -> dict[str, Any]:
        """Return the values of every query, with the largest losses or lowest values first.

        The table has the first rows; all values are for the script of the page.
        """
        names = [e.run_name for e in self.evaluations]
        origin = names.index(self.base)
        others = [n for n in range(len(names)) if n != origin]
        apart = others if len(others) <= _MOST_COLUMNS else []
        columns = [counted(e, self.measure) for e in self.evaluations]
        order = self._first(columns, origin, others)
        texts = [self._text(query) for query in self.ids] if self.texts.queries else []
        heads = ("query", *(["text"] if texts else []), *names, *(f"{names[n]} − {self.base}" for n in apart))
        rows = tuple(
            (
                self.ids[p],
                *([texts[p]] if texts else []),
                *(self._cell(column[p]) for column in columns),
                *(self._cell(columns[n][p] - columns[origin][p]) for n in apart),
            )
            for p in order[:_ROWS]
        )
        common = [m for m in self.evaluations[0].measures if all(m in e.measures for e in self.evaluations)]
        few = len(self.ids) * len(names) * len(common) <= _MOST_VALUES
        shown = common if few else [self.measure]
        data = {
            "measures": list(map(str, shown)),
            "measure": str(self.measure),
            "digits": [_digits(m) for m in shown],
            "queries": list(self.ids),
            "texts": texts,
            "order": order,
            "values": [self._in_units(m, origin, apart) for m in shown],
        }
        left = "" if few else f"of {self.measure} only: all would make the page too large"
        return {"table": Table(heads, rows, digits=_DIGITS), "data": _script_safe(data), "embedded": left}

    def _cell(self, value: float) -> Cell:
        if math.isnan(value):
            return None
        return value if _digits(self.measure) else int(value)

    def _in_units(self, measure: Measure, origin: int, apart: Sequence[int]) -> list[list[int | None]]:
        """Return values and differences as integers, in units of the last digit shown.

        This is compact, and the script need not round.
        """
        columns = [counted(e, measure) for e in self.evaluations]
        minus = [[v - base for v, base in zip(columns[n], columns[origin], strict=True)] for n in apart]
        digits = _digits(measure)
        return [[_units(value, digits) for value in column] for column in (*columns, *minus)]

    def _first(self, columns: Sequence[Sequence[float]], origin: int, others: Sequence[int]) -> list[int]:
        """Return the query positions in order of interest."""

        def key(place: int) -> tuple[float, int]:
            value = columns[others[0] if others else origin][place]
            apart = value - columns[origin][place] if others else value
            return (math.inf if math.isnan(apart) else self.sign * apart, place)

        return sorted(range(len(self.ids)), key=key)

    def _text(self, query: str) -> str:
        known = self.texts.queries.get(query)
        line = " ".join(known.text.split()) if known else ""
        return shorten(line, _TITLE)

    def _orders(self, evaluation: Evaluation, queries: Sequence[str]) -> dict[str, list[str]]:
        run = self.runs[evaluation.run_name]
        part = {query: run[query] for query in queries if query in run}
        if not part:
            return {}
        # Other tie policies define no order without judgments: show the default order.
        order = ranked(Run.of(part), ties="input" if evaluation.policies.ties == "input" else "trec")
        return {query: list(order[query]) for query in part}

    def _details_of(self, query: str, orders: Mapping[str, Mapping[str, list[str]]]) -> dict[str, Any]:
        grades = self.truth.get(query, {})
        found = [orders[e.run_name].get(query, []) for e in self.evaluations]
        deep = min(_DEPTH, max(map(len, found)))
        relevant = sorted((d for d, g in grades.items() if g > 0), key=lambda d: (-grades[d], d))
        places = [{doc: rank for rank, doc in enumerate(order, start=1)} for order in found]
        known = self.texts.queries.get(query)
        values = (f"{e.run_name} {_format_value(e.value(query, self.measure))}" for e in self.evaluations)
        return {
            "id": query,
            "text": known.text if known else "",
            "shown_values": f"{self.measure}: {', '.join(values)}",
            "runs": [e.run_name for e in self.evaluations],
            "lines": [
                [self._hit(order[rank], grades) if rank < len(order) else None for order in found]
                for rank in range(deep)
            ],
            # Relevant documents with their rank in each run.
            "missed": [
                (self._hit(doc, grades), [ranks.get(doc) for ranks in places]) for doc in relevant[:_MOST_MISSED]
            ],
            "relevant": len(relevant),
        }

    def _hit(self, doc: str, grades: Mapping[str, float]) -> dict[str, str]:
        """Return a document of a ranking: its id and title, its grade as text, and the CSS class of its mark."""
        document = self.texts.documents.get(doc)
        hit = {"id": doc, "title": document.snippet(_TITLE) if document else ""}
        grade = grades.get(doc)
        # A negative grade means pooled but unjudged.
        if grade is None or grade < 0:
            return {**hit, "shown": "not judged", "kind": "unjudged"}
        return {**hit, "shown": f"grade {grade:g}", "kind": "relevant" if grade > 0 else "irrelevant"}


def _script_safe(data: object) -> str:
    """Return JSON that cannot close its script element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")


def _format_value(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.{_DIGITS}f}"


def _digits(measure: Measure) -> int:
    return 0 if measure.declaration.mean == "sum" else _DIGITS


def _units(value: float, digits: int) -> int | None:
    return None if math.isnan(value) else int(f"{value:.{digits}f}".replace(".", ""))
