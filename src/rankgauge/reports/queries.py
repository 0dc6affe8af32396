"""Queries of a report: a table of all queries, and examples with rankings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.corpus.collection import Collection
from rankgauge.data.join import ranked
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure
from rankgauge.rendering.tables import Table, shorten

_DEPTH = 10
_MOST_LOOKED = 8
_MOST_MISSED = 12
_MOST_COLUMNS = 2
_DIGITS = 4
# Maximum number of values on the page: beyond it, only values of the primary measure.
_MOST_VALUES = 400_000
_ROWS = 50
_TITLE = 90
_TEXT = 240
_EACH = 180  # characters of markup
_MOST_SIZE = 8_000_000  # characters of details; with tables and plots, a page has at most 10 MB


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

    def losses(self) -> list[str]:
        """Return the queries with the largest losses against the baseline, largest first."""
        loss_of: dict[int, float] = {}
        columns = {e.run_name: e.counted(self.measure).tolist() for e in self.evaluations}
        base = columns.pop(self.base)
        for place, (value, *others) in enumerate(zip(base, *columns.values(), strict=True)):
            apart = [self.sign * (v - value) for v in others if not math.isnan(v - value)]
            if apart and min(apart) < -TOLERANCE:
                loss_of[place] = min(apart)
        return [self.ids[p] for p in sorted(loss_of, key=lambda p: (loss_of[p], p))[:_MOST_LOOKED]]

    def hard(self, but: Sequence[str]) -> list[str]:
        """Return the queries in which every run is below its mean, worst first, except `but`."""
        columns = [e.counted(self.measure).tolist() for e in self.evaluations]
        means = [e.mean()[str(self.measure)] for e in self.evaluations]
        # An undefined value counts as 0 in the mean, but has nothing to show.
        undefined = [e.undefined[:, e.measures.index(self.measure)] for e in self.evaluations]
        best: dict[int, float] = {}
        for place, query in enumerate(self.ids):
            gains = [self.sign * (column[place] - mean) for column, mean in zip(columns, means, strict=True)]
            known = query not in but and not any(column[place] for column in undefined)
            if known and max(gains) < -TOLERANCE:
                best[place] = max(self.sign * column[place] for column in columns)
        return [self.ids[p] for p in sorted(best, key=lambda p: (best[p], p))[:_MOST_LOOKED]]

    def details(self, queries: Sequence[str]) -> list[dict[str, Any]]:
        """Return the queries with the first documents of every run, for the template of the page."""
        orders = {e.run_name: self._orders(e, queries) for e in self.evaluations}
        return [self._details_of(query, orders) for query in queries]

    def others(self, but: Sequence[str]) -> tuple[list[dict[str, Any]], int]:
        """Return the details of the other queries, worst first, as many as fit the page; and how many do not."""
        rest = [query for query in (self.ids[place] for place in self._order) if query not in {*but}]
        shown: list[dict[str, Any]] = []
        size = 0
        for start in range(0, len(rest), _ROWS):
            shown += self.details(rest[start : start + _ROWS])
            size += sum(map(_size, shown[start:]))
            if size > _MOST_SIZE:
                break
        return shown, len(rest) - len(shown)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {query: place for place, query in enumerate(self.ids)}

    @cached_property
    def _order(self) -> list[int]:
        """The places of the queries, with the largest losses or lowest values first."""
        columns = {e.run_name: e.counted(self.measure).tolist() for e in self.evaluations}
        base = columns.pop(self.base)
        # Without a difference column, differences from the first other run decide.
        first = next(iter(columns.values()), None)
        gaps = base if first is None else [value - own for value, own in zip(first, base, strict=True)]
        return sorted(range(len(gaps)), key=lambda p: (math.inf if math.isnan(gaps[p]) else self.sign * gaps[p], p))

    def table(self, detailed: Sequence[str] = ()) -> dict[str, Any]:
        """Return the values of every query, with the largest losses or lowest values first.

        The table has the first rows; all values are for the script of the page.

        Args:
            detailed: The queries whose details are on the page.
        """
        names = [e.run_name for e in self.evaluations]
        origin = names.index(self.base)
        others = [n for n in range(len(names)) if n != origin]
        apart = others if len(others) <= _MOST_COLUMNS else []
        common = [m for m in self.evaluations[0].measures if all(m in e.measures for e in self.evaluations)]
        few = len(self.ids) * len(names) * len(common) <= _MOST_VALUES
        shown = common if few else [self.measure]
        values = {m: self._values(m, origin, apart) for m in {self.measure, *shown}}
        columns, texts = values[self.measure], [self._text(query) for query in self.ids] if self.texts.queries else []
        order = self._order
        digits = _digits(self.measure)
        table = Table(
            ("query", *(["text"] if texts else []), *names, *(f"{names[n]} − {self.base}" for n in apart)),
            tuple(
                (
                    self.ids[p],
                    *([texts[p]] if texts else []),
                    *(None if math.isnan(column[p]) else column[p] if digits else int(column[p]) for column in columns),
                )
                for p in order[:_ROWS]
            ),
            digits=_DIGITS,
        )
        data = {
            "measures": list(map(str, shown)),
            "measure": str(self.measure),
            "digits": [_digits(m) for m in shown],
            "queries": list(self.ids),
            "texts": texts,
            "order": order,
            "detailed": [*map(self._places.__getitem__, detailed)],
            # Integers in units of the last digit shown are compact, and the script need not round.
            "values": [
                [
                    [None if math.isnan(v) else int(f"{v:.{_digits(m)}f}".replace(".", "")) for v in column]
                    for column in values[m]
                ]
                for m in shown
            ],
        }
        # Texts cannot close the script element.
        safe = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")
        left = "" if few else f"of {self.measure} only: all would make the page too large"
        return {"table": table, "data": safe, "embedded": left}

    def _values(self, measure: Measure, origin: int, apart: Sequence[int]) -> list[list[float]]:
        """Return the values of each run by query, and the differences of some runs from the baseline."""
        columns = [e.counted(measure).tolist() for e in self.evaluations]
        return columns + [[v - base for v, base in zip(columns[n], columns[origin], strict=True)] for n in apart]

    def _text(self, query: str) -> str:
        known = self.texts.queries.get(query)
        return shorten(" ".join(known.text.split()), _TITLE) if known else ""

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
        rankings = [orders[e.run_name].get(query, []) for e in self.evaluations]
        deep = min(_DEPTH, max(map(len, rankings)))
        relevant = sorted((d for d, g in grades.items() if g > 0), key=lambda d: (-grades[d], d))
        places = [{doc: rank for rank, doc in enumerate(order, start=1)} for order in rankings]
        known = self.texts.queries.get(query)
        values = [(e.run_name, e.value(query, self.measure)) for e in self.evaluations]
        written = (f"{name} {'undefined' if math.isnan(value) else f'{value:.{_DIGITS}f}'}" for name, value in values)
        return {
            "id": query,
            "place": self._places[query],
            "text": known.text if known else "",
            "shown_values": f"{self.measure}: {', '.join(written)}",
            "runs": [e.run_name for e in self.evaluations],
            "lines": [
                [self._hit(order[rank], grades) if rank < len(order) else None for order in rankings]
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
        hit = {"id": doc, "title": "", "text": ""}
        if document:
            hit |= {"title": document.snippet(_TITLE), "text": shorten(" ".join(document.text.split()), _TEXT)}
        grade = grades.get(doc)
        # A negative grade means pooled but unjudged.
        if grade is None or grade < 0:
            return {**hit, "shown": "not judged", "kind": "unjudged"}
        return {**hit, "shown": f"grade {grade:g}", "kind": "relevant" if grade > 0 else "irrelevant"}


def _size(details: Mapping[str, Any]) -> int:
    """Return the approximate number of characters of the details of a query."""
    hits = [hit for line in details["lines"] for hit in line if hit] + [hit for hit, _ in details["missed"]]
    return _EACH * (len(hits) + 3) + sum(len(hit["title"]) + len(hit["text"]) for hit in hits)


def _digits(measure: Measure) -> int:
    return 0 if measure.declaration.mean == "sum" else _DIGITS
