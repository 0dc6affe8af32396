"""Comparisons: means side by side, then the differences; and reports of ties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rankgauge.comparison.comparison import Comparison
from rankgauge.rendering.tables import BEST, Table
from rankgauge.reports.registry import Options, Report
from rankgauge.sensitivity.tie_sensitivity import TieReport


def comparison_tables(found: Comparison, format: str, options: Options) -> Iterator[Table]:
    """The means, and the differences with what they say."""
    means = found.table(transposed=options.transposed)
    marks = (BEST,) if format == "table" and means.best else ()
    yield replace(means, notes=(*marks, *means.notes))
    yield found.differences_table(described=options.described)


def _data(found: Comparison, options: Options) -> Table:
    return found.data_table(described=options.described)


def _ties(found: TieReport, options: Options) -> Table:
    return found.table(per_query=options.per_query)


REPORTS = {
    Comparison: Report(comparison_tables, _data),
    TieReport: Report(lambda found, _format, options: (_ties(found, options),), _ties),
}
