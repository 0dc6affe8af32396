"""Evaluate retrieval: compare returned documents with relevance judgments.

This module is the public API: names are loaded when first used. Importing it loads only the
standard library. Other names are in their packages, such as ``rankgauge.measures.BPM`` and
``rankgauge.gates.GateResult``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge import (
        benchmark as benchmark,
        checks as checks,
        comparison as comparison,
        conversion as conversion,
        core as core,
        corpus as corpus,
        data as data,
        diagnosis as diagnosis,
        evaluation as evaluation,
        explanation as explanation,
        formats as formats,
        functional as functional,
        fusion as fusion,
        gates as gates,
        history as history,
        measures as measures,
        profiles as profiles,
        rendering as rendering,
        reports as reports,
        retrievers as retrievers,
        sensitivity as sensitivity,
        stats as stats,
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
    from rankgauge.conversion import convert as convert
    from rankgauge.core import Finding as Finding, Policies as Policies
    from rankgauge.corpus import (
        Collection as Collection,
        Document as Document,
        Query as Query,
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
    from rankgauge.evaluation import Evaluation as Evaluation, evaluate as evaluate
    from rankgauge.explanation import (
        explain as explain,
        reconcile as reconcile,
        reproduce as reproduce,
    )
    from rankgauge.fusion import fuse as fuse, tune_fusion as tune_fusion
    from rankgauge.gates import Baseline as Baseline, GateRules as GateRules, gate as gate
    from rankgauge.history import History as History
    from rankgauge.measures import (
        Measure as Measure,
        list_measures as list_measures,
        parse as parse,
    )
    from rankgauge.rendering import plot as plot
    from rankgauge.reports import html_report as html_report
    from rankgauge.retrievers import Hits as Hits, Retriever as Retriever
    from rankgauge.sample import sample_path as sample_path
    from rankgauge.sensitivity import (
        reliability as reliability,
        tie_report as tie_report,
        unjudged_report as unjudged_report,
    )
    from rankgauge.tutorials import (
        RetrievalBenchmark as RetrievalBenchmark,
        RetrievalEvaluator as RetrievalEvaluator,
    )

    AP: Measure
    AP_IA: Measure
    Bpref: Measure
    DCG: Measure
    ERR: Measure
    ERR_IA: Measure
    F: Measure
    FirstRel: Measure
    GMAP: Measure
    IPrec: Measure
    Judged: Measure
    NumRel: Measure
    NumRelRet: Measure
    NumRet: Measure
    P: Measure
    P_IA: Measure
    R: Measure
    RBP: Measure
    RR: Measure
    Rprec: Measure
    SetAP: Measure
    SetF: Measure
    SetP: Measure
    SetR: Measure
    StRecall: Measure
    Success: Measure
    alpha_DCG: Measure
    alpha_nDCG: Measure
    infAP: Measure
    nDCG: Measure
    nERR: Measure
    nERR_IA: Measure

__all__, _load, __dir__ = lazy_names(
    __name__,
    {
        "benchmark": "Benchmark BenchmarkPlan Limits explore",
        "checks": "check",
        "comparison": "compare diff rbo",
        "conversion": "convert",
        "core": "Finding Policies",
        "corpus": "Collection Document Query describe_collection",
        "data": (
            "PreferenceQrels Qrels Records Run SampledQrels SubtopicQrels cut keep_queries "
            "read_qrels read_run sample_queries write_qrels write_run"
        ),
        "diagnosis": "diagnose",
        "errors": "FormatError InputError MismatchError MissingExtra RankgaugeError UnknownName",
        "evaluation": "Evaluation evaluate",
        "explanation": "explain reconcile reproduce",
        "formats": "",
        "functional": "",
        "fusion": "fuse tune_fusion",
        "gates": "Baseline GateRules gate",
        "history": "History",
        "measures": (
            "Measure list_measures parse "
            "AP AP_IA Bpref DCG ERR ERR_IA F FirstRel GMAP IPrec Judged NumRel NumRelRet "
            "NumRet P P_IA R RBP RR Rprec SetAP SetF SetP SetR StRecall Success alpha_DCG "
            "alpha_nDCG infAP nDCG nERR nERR_IA"
        ),
        "profiles": "",
        "rendering": "plot",
        "reports": "html_report",
        "retrievers": "Hits Retriever",
        "sample": "sample_path",
        "sensitivity": "reliability tie_report unjudged_report",
        "stats": "",
        "testing": "",
        "tutorials": "RetrievalBenchmark RetrievalEvaluator",
    },
)
__all__ += ["__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("rankgauge")
    return _load(name)
