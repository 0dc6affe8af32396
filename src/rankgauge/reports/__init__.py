"""What stands on each table and page; how it is drawn is the business of ``render``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.reports.benchmarks import (
        benchmark_section as benchmark_section,
        report_benchmark as report_benchmark,
        report_costs as report_costs,
    )
    from rankgauge.reports.catalogue import describe as describe, report_measures as report_measures
    from rankgauge.reports.checks import (
        explain_problem as explain_problem,
        report_check as report_check,
        report_problem_kinds as report_problem_kinds,
    )
    from rankgauge.reports.collections import report_collection as report_collection
    from rankgauge.reports.comparisons import report_comparison as report_comparison
    from rankgauge.reports.diagnoses import report_diagnosis as report_diagnosis
    from rankgauge.reports.diffs import report_diff as report_diff
    from rankgauge.reports.evaluations import (
        FORMS as FORMS,
        report as report,
        report_notes as report_notes,
    )
    from rankgauge.reports.explanations import report_explanation as report_explanation
    from rankgauge.reports.explorations import report_exploration as report_exploration
    from rankgauge.reports.fusions import report_tuning as report_tuning
    from rankgauge.reports.gates import report_gate as report_gate
    from rankgauge.reports.histories import (
        report_change as report_change,
        report_entries as report_entries,
        report_entry as report_entry,
        report_trend as report_trend,
    )
    from rankgauge.reports.judgments import (
        report_reliability as report_reliability,
        report_unjudged as report_unjudged,
    )
    from rankgauge.reports.page import html_report as html_report
    from rankgauge.reports.reconciliations import report_reconciliation as report_reconciliation
    from rankgauge.reports.reproductions import report_reproduction as report_reproduction
    from rankgauge.reports.sections import (
        Details as Details,
        Section as Section,
        diagnosis_section as diagnosis_section,
        trend_section as trend_section,
    )
    from rankgauge.reports.ties import report_ties as report_ties

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "benchmarks": "benchmark_section report_benchmark report_costs",
        "catalogue": "describe report_measures",
        "checks": "explain_problem report_check report_problem_kinds",
        "collections": "report_collection",
        "comparisons": "report_comparison",
        "diagnoses": "report_diagnosis",
        "diffs": "report_diff",
        "evaluations": "FORMS report report_notes",
        "explanations": "report_explanation",
        "explorations": "report_exploration",
        "fusions": "report_tuning",
        "gates": "report_gate",
        "histories": "report_change report_entries report_entry report_trend",
        "judgments": "report_reliability report_unjudged",
        "page": "html_report",
        "reconciliations": "report_reconciliation",
        "reproductions": "report_reproduction",
        "sections": "Details Section diagnosis_section trend_section",
        "ties": "report_ties",
    },
)
