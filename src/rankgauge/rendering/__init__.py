"""Tables and plots for terminals, Markdown, LaTeX, HTML, CSV, JSON, and SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.rendering.plot_drawing import Panel as Panel, Plot as Plot, Series as Series
    from rankgauge.rendering.plots import (
        PLOTS as PLOTS,
        PlotKind as PlotKind,
        plot as plot,
        plot_history as plot_history,
        plot_measures as plot_measures,
    )
    from rankgauge.rendering.result import Result as Result
    from rankgauge.rendering.tables import Table as Table, render_table as render_table

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "plots": "PLOTS PlotKind plot plot_history plot_measures",
        "plot_drawing": "Panel Plot Series",
        "result": "Result",
        "tables": "Table render_table",
    },
)
