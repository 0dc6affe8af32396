"""Reports: results as tables and pages in every format."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.reports.benchmarks import benchmark_section as benchmark_section
    from rankgauge.reports.catalogue import describe as describe, measures_table as measures_table
    from rankgauge.reports.checks import explain_problem as explain_problem, finding_kinds_table as finding_kinds_table
    from rankgauge.reports.evaluations import notes_of as notes_of
    from rankgauge.reports.gates import gate_page as gate_page
    from rankgauge.reports.page import html_report as html_report
    from rankgauge.reports.production import drift_page as drift_page
    from rankgauge.reports.registry import FORMATS as FORMATS, Options as Options, render as render
    from rankgauge.reports.sections import (
        Details as Details,
        Section as Section,
        comparison_result as comparison_result,
        diagnosis_section as diagnosis_section,
        environment as environment,
        html_page as html_page,
        readable as readable,
        trend_section as trend_section,
    )
