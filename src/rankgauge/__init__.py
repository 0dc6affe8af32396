"""Evaluate retrieval: compare returned documents with relevance judgments.

This module is the public API: names are loaded when first used. Importing it loads only the
standard library. Other names are in their packages, such as ``rankgauge.measures.BPM`` and
``rankgauge.gates.GateResult``.
"""

from __future__ import annotations

from typing import Any

from rankgauge.core.lazy import lazy_imports, register

with lazy_imports(globals()):
    from rankgauge import (
        benchmark as benchmark,
        checks as checks,
        comparison as comparison,
        core as core,
        corpus as corpus,
        data as data,
        diagnosis as diagnosis,
        evaluation as evaluation,
        explanation as explanation,
        formats as formats,
        functional as functional,
        gates as gates,
        measures as measures,
        project as project,
        rendering as rendering,
        reports as reports,
        retrievers as retrievers,
        stats as stats,
        store as store,
        testing as testing,
        tutorials as tutorials,
    )
    from rankgauge.benchmark import (
        Benchmark as Benchmark,
        BenchmarkPlan as BenchmarkPlan,
        Limits as Limits,
        explore as explore,
    )
    from rankgauge.checks import check as check
    from rankgauge.comparison import compare as compare, diff as diff, rbo as rbo
    from rankgauge.core import Finding as Finding, Policies as Policies
    from rankgauge.core.provenance import __version__ as __version__
    from rankgauge.corpus import (
        Collection as Collection,
        Document as Document,
        Query as Query,
        convert as convert,
        describe_collection as describe_collection,
    )
    from rankgauge.data import (
        PreferenceQrels as PreferenceQrels,
        Qrels as Qrels,
        Records as Records,
        Run as Run,
        SampledQrels as SampledQrels,
        SubtopicQrels as SubtopicQrels,
        cut as cut,
        keep_queries as keep_queries,
        read_qrels as read_qrels,
        read_run as read_run,
        sample_queries as sample_queries,
        write_qrels as write_qrels,
        write_run as write_run,
    )
    from rankgauge.diagnosis import diagnose as diagnose
    from rankgauge.errors import (
        FormatError as FormatError,
        InputError as InputError,
        MismatchError as MismatchError,
        MissingExtra as MissingExtra,
        RankgaugeError as RankgaugeError,
        UnknownName as UnknownName,
    )
    from rankgauge.evaluation import (
        Evaluation as Evaluation,
        evaluate as evaluate,
        reliability as reliability,
        tie_report as tie_report,
        unjudged_report as unjudged_report,
    )
    from rankgauge.explanation import explain as explain, reconcile as reconcile, reproduce as reproduce
    from rankgauge.gates import Baseline as Baseline, GateRules as GateRules, gate as gate
    from rankgauge.measures import (
        AP as AP,
        AP_IA as AP_IA,
        DCG as DCG,
        ERR as ERR,
        ERR_IA as ERR_IA,
        GMAP as GMAP,
        P_IA as P_IA,
        RBP as RBP,
        RR as RR,
        Bpref as Bpref,
        F as F,
        FirstRel as FirstRel,
        IPrec as IPrec,
        Judged as Judged,
        Measure as Measure,
        NumRel as NumRel,
        NumRelRet as NumRelRet,
        NumRet as NumRet,
        P as P,
        R as R,
        Rprec as Rprec,
        SetAP as SetAP,
        SetF as SetF,
        SetP as SetP,
        SetR as SetR,
        StRecall as StRecall,
        Success as Success,
        alpha_DCG as alpha_DCG,
        alpha_nDCG as alpha_nDCG,
        infAP as infAP,
        list_measures as list_measures,
        nDCG as nDCG,
        nERR as nERR,
        nERR_IA as nERR_IA,
        parse as parse,
    )
    from rankgauge.project import Project as Project
    from rankgauge.rendering import plot as plot
    from rankgauge.reports import html_report as html_report
    from rankgauge.retrievers import Hits as Hits, Retriever as Retriever, fuse as fuse, tune_fusion as tune_fusion
    from rankgauge.sample import sample_path as sample_path
    from rankgauge.store import History as History
    from rankgauge.tutorials import RetrievalBenchmark as RetrievalBenchmark, RetrievalEvaluator as RetrievalEvaluator


def _render(result: Any, format: str) -> str:
    from rankgauge.reports.registry import render

    return str(render(result, format))


def _html_report(result: Any) -> str:
    from rankgauge.reports.page import html_report

    return html_report(result, plots=False)


def _answer_evaluation() -> Any:
    from rankgauge.answers.evaluation import AnswerEvaluation

    return AnswerEvaluation


def _read_answers(*args: Any, **options: Any) -> Any:
    from rankgauge.answers.loading import read_answers

    return read_answers(*args, **options)


# Lower layers print results, load saved evaluations, and convert answers with these.
register(render=_render, html_report=_html_report, answer_evaluation=_answer_evaluation, read_answers=_read_answers)
