"""Tables and plots for terminals, Markdown, LaTeX, HTML, CSV, JSON, and SVG."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.rendering.plot_drawing import Panel as Panel, Plot as Plot, Series as Series
    from rankgauge.rendering.plots import (
        PLOTS as PLOTS,
        PlotKind as PlotKind,
        plot as plot,
        plot_history as plot_history,
        plot_measures as plot_measures,
    )
    from rankgauge.rendering.result import Result as Result
    from rankgauge.rendering.tables import Table as Table, render_table as render_table, shorten as shorten
