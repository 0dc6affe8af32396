"""rankgauge measures retrieval: what a retriever returned against what it should have returned.

This module is the public API: every name is loaded when it is first used. Importing it loads the
standard library only.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankgauge.benchmark.benchmark import Benchmark as Benchmark
    from rankgauge.benchmark.comparison import BenchmarkComparison as BenchmarkComparison
    from rankgauge.benchmark.exploration import explore as explore
    from rankgauge.benchmark.exploration_result import Exploration as Exploration
    from rankgauge.benchmark.exploration_result import Trial as Trial
    from rankgauge.benchmark.journal import Answer as Answer
    from rankgauge.benchmark.latency import Latency as Latency
    from rankgauge.benchmark.latency import Quantile as Quantile
    from rankgauge.benchmark.limits import Limits as Limits
    from rankgauge.benchmark.metadata import write_benchmark_run as write_benchmark_run
    from rankgauge.benchmark.plan import BenchmarkPlan as BenchmarkPlan
    from rankgauge.benchmark.plan import PlannedRetriever as PlannedRetriever
    from rankgauge.benchmark.plan_exploration import explore_plan as explore_plan
    from rankgauge.benchmark.plan_run import PlanOutcome as PlanOutcome
    from rankgauge.benchmark.plan_run import repeat_plan as repeat_plan
    from rankgauge.benchmark.plan_run import run_plan as run_plan
    from rankgauge.benchmark.run import BenchmarkRun as BenchmarkRun
    from rankgauge.benchmark.run import Failure as Failure
    from rankgauge.benchmark.run import IndexCost as IndexCost
    from rankgauge.benchmark.run import Tally as Tally
    from rankgauge.checks.fixes import Mended as Mended
    from rankgauge.checks.fixes import mend as mend
    from rankgauge.checks.inputs import check as check
    from rankgauge.checks.problems import Problem as Problem
    from rankgauge.checks.result import CheckResult as CheckResult
    from rankgauge.comparison.comparison import Comparison as Comparison
    from rankgauge.comparison.comparison import compare as compare
    from rankgauge.comparison.comparison import compare_evaluations as compare_evaluations
    from rankgauge.comparison.differences import Design as Design
    from rankgauge.comparison.differences import Difference as Difference
    from rankgauge.comparison.overlap import Overlap as Overlap
    from rankgauge.comparison.overlap import rbo as rbo
    from rankgauge.comparison.run_diff import QueryDiff as QueryDiff
    from rankgauge.comparison.run_diff import RunDiff as RunDiff
    from rankgauge.comparison.run_diff import diff as diff
    from rankgauge.comparison.side_by_side import Place as Place
    from rankgauge.conversion.conversion import Conversion as Conversion
    from rankgauge.conversion.conversion import convert as convert
    from rankgauge.core.findings import FINDING_KINDS as FINDING_KINDS
    from rankgauge.core.findings import Effect as Effect
    from rankgauge.core.findings import Evidence as Evidence
    from rankgauge.core.findings import Finding as Finding
    from rankgauge.core.findings import FindingKind as FindingKind
    from rankgauge.core.findings import Location as Location
    from rankgauge.core.policies import Policies as Policies
    from rankgauge.core.redaction import redact as redact
    from rankgauge.core.use_cases import USE_CASES as USE_CASES
    from rankgauge.core.use_cases import UseCase as UseCase
    from rankgauge.core.use_cases import use_case as use_case
    from rankgauge.corpus.collection import Collection as Collection
    from rankgauge.corpus.collection import Document as Document
    from rankgauge.corpus.collection import Query as Query
    from rankgauge.corpus.collection import read_documents as read_documents
    from rankgauge.corpus.collection import read_queries as read_queries
    from rankgauge.corpus.description import CollectionInfo as CollectionInfo
    from rankgauge.corpus.description import Remark as Remark
    from rankgauge.corpus.description import Spread as Spread
    from rankgauge.corpus.description import describe_collection as describe_collection
    from rankgauge.corpus.spans import QuerySpans as QuerySpans
    from rankgauge.corpus.spans import Span as Span
    from rankgauge.corpus.spans import SpanScores as SpanScores
    from rankgauge.corpus.spans import read_spans as read_spans
    from rankgauge.corpus.spans import span_scores as span_scores
    from rankgauge.data.fingerprints import fingerprint as fingerprint
    from rankgauge.data.judged_run import JudgedRun as JudgedRun
    from rankgauge.data.model import Qrels as Qrels
    from rankgauge.data.model import Run as Run
    from rankgauge.data.model import read_qrels as read_qrels
    from rankgauge.data.model import read_run as read_run
    from rankgauge.data.model import write_qrels as write_qrels
    from rankgauge.data.model import write_run as write_run
    from rankgauge.data.preferences import PreferenceQrels as PreferenceQrels
    from rankgauge.data.preferences import PreferenceRun as PreferenceRun
    from rankgauge.data.preferences import read_preference_qrels as read_preference_qrels
    from rankgauge.data.ranking import ranked as ranked
    from rankgauge.data.records import Records as Records
    from rankgauge.data.sampled import SampledQrels as SampledQrels
    from rankgauge.data.sampled import SampledRun as SampledRun
    from rankgauge.data.sampled import read_sampled_qrels as read_sampled_qrels
    from rankgauge.data.subsets import cut as cut
    from rankgauge.data.subsets import keep_queries as keep_queries
    from rankgauge.data.subsets import sample_queries as sample_queries
    from rankgauge.data.subtopics import SubtopicQrels as SubtopicQrels
    from rankgauge.data.subtopics import SubtopicRun as SubtopicRun
    from rankgauge.data.subtopics import read_subtopic_qrels as read_subtopic_qrels
    from rankgauge.diagnosis.bands import Band as Band
    from rankgauge.diagnosis.bands import Bands as Bands
    from rankgauge.diagnosis.causes import CAUSES as CAUSES
    from rankgauge.diagnosis.causes import Cause as Cause
    from rankgauge.diagnosis.causes import Missed as Missed
    from rankgauge.diagnosis.causes import QueryDiagnosis as QueryDiagnosis
    from rankgauge.diagnosis.diagnosis import Diagnosis as Diagnosis
    from rankgauge.diagnosis.diagnosis import diagnose as diagnose
    from rankgauge.errors import FormatError as FormatError
    from rankgauge.errors import InputError as InputError
    from rankgauge.errors import MismatchError as MismatchError
    from rankgauge.errors import MissingExtra as MissingExtra
    from rankgauge.errors import RankgaugeError as RankgaugeError
    from rankgauge.errors import UnknownName as UnknownName
    from rankgauge.evaluation.arguments import read_judgments as read_judgments
    from rankgauge.evaluation.evaluation import evaluate as evaluate
    from rankgauge.evaluation.result import AppliedProfile as AppliedProfile
    from rankgauge.evaluation.result import Evaluation as Evaluation
    from rankgauge.explanation.explanation import Explanation as Explanation
    from rankgauge.explanation.explanation import Other as Other
    from rankgauge.explanation.explanation import explain as explain
    from rankgauge.explanation.given_values import GivenValues as GivenValues
    from rankgauge.explanation.listing import Listed as Listed
    from rankgauge.explanation.listing import Listing as Listing
    from rankgauge.explanation.reconciliation import Contribution as Contribution
    from rankgauge.explanation.reconciliation import Moved as Moved
    from rankgauge.explanation.reconciliation import Reconciliation as Reconciliation
    from rankgauge.explanation.reconciliation import Target as Target
    from rankgauge.explanation.reconciliation import reconcile as reconcile
    from rankgauge.explanation.reproduction import Fit as Fit
    from rankgauge.explanation.reproduction import Reproduction as Reproduction
    from rankgauge.explanation.reproduction import reproduce as reproduce
    from rankgauge.explanation.working import IdealRow as IdealRow
    from rankgauge.explanation.working import Worked as Worked
    from rankgauge.explanation.working import Working as Working
    from rankgauge.formats.registry import QRELS_FORMATS as QRELS_FORMATS
    from rankgauge.formats.registry import RUN_FORMATS as RUN_FORMATS
    from rankgauge.formats.registry import TARGET_FORMATS as TARGET_FORMATS
    from rankgauge.formats.registry import InFormat as InFormat
    from rankgauge.fusion.fusion import FUSION_METHODS as FUSION_METHODS
    from rankgauge.fusion.fusion import FUSION_NORMS as FUSION_NORMS
    from rankgauge.fusion.fusion import Fusion as Fusion
    from rankgauge.fusion.fusion import fuse as fuse
    from rankgauge.fusion.tuning import Fold as Fold
    from rankgauge.fusion.tuning import TunedFusion as TunedFusion
    from rankgauge.fusion.tuning import tune_fusion as tune_fusion
    from rankgauge.fusion.tuning import weight_grid as weight_grid
    from rankgauge.gates.baseline import Baseline as Baseline
    from rankgauge.gates.checks import GateCheck as GateCheck
    from rankgauge.gates.checks import GateNumbers as GateNumbers
    from rankgauge.gates.checks import QueryChange as QueryChange
    from rankgauge.gates.rules import GateRules as GateRules
    from rankgauge.gates.verdict import GateResult as GateResult
    from rankgauge.gates.verdict import gate as gate
    from rankgauge.history import Change as Change
    from rankgauge.history import Entry as Entry
    from rankgauge.history import History as History
    from rankgauge.history import Point as Point
    from rankgauge.history import Step as Step
    from rankgauge.history import Trend as Trend
    from rankgauge.measures.measure import Measure as Measure
    from rankgauge.measures.measure import Metric as Metric
    from rankgauge.measures.measure import list_measures as list_measures
    from rankgauge.measures.measure import parse as parse
    from rankgauge.profiles.deviations import Case as Case
    from rankgauge.profiles.deviations import Deviation as Deviation
    from rankgauge.profiles.deviations import Profile as Profile
    from rankgauge.profiles.registry import PROFILES as PROFILES
    from rankgauge.profiles.registry import profile_of as profile_of
    from rankgauge.rendering.charts import PLOTS as PLOTS
    from rankgauge.rendering.charts import PlotKind as PlotKind
    from rankgauge.rendering.charts import plot as plot
    from rankgauge.rendering.charts import plot_history as plot_history
    from rankgauge.rendering.charts import plot_measures as plot_measures
    from rankgauge.rendering.plotting import Panel as Panel
    from rankgauge.rendering.plotting import Plot as Plot
    from rankgauge.rendering.plotting import Series as Series
    from rankgauge.reports.benchmarks import benchmark_section as benchmark_section
    from rankgauge.reports.benchmarks import report_benchmark as report_benchmark
    from rankgauge.reports.benchmarks import report_costs as report_costs
    from rankgauge.reports.catalogue import describe as describe
    from rankgauge.reports.catalogue import report_measures as report_measures
    from rankgauge.reports.checks import explain_problem as explain_problem
    from rankgauge.reports.checks import report_check as report_check
    from rankgauge.reports.checks import report_problem_kinds as report_problem_kinds
    from rankgauge.reports.collections import report_collection as report_collection
    from rankgauge.reports.comparisons import report_comparison as report_comparison
    from rankgauge.reports.diagnoses import report_diagnosis as report_diagnosis
    from rankgauge.reports.diffs import report_diff as report_diff
    from rankgauge.reports.evaluations import FORMS as FORMS
    from rankgauge.reports.evaluations import report as report
    from rankgauge.reports.evaluations import report_notes as report_notes
    from rankgauge.reports.explanations import report_explanation as report_explanation
    from rankgauge.reports.explorations import report_exploration as report_exploration
    from rankgauge.reports.fusions import report_tuning as report_tuning
    from rankgauge.reports.gates import report_gate as report_gate
    from rankgauge.reports.histories import report_change as report_change
    from rankgauge.reports.histories import report_entries as report_entries
    from rankgauge.reports.histories import report_entry as report_entry
    from rankgauge.reports.histories import report_trend as report_trend
    from rankgauge.reports.judgments import report_reliability as report_reliability
    from rankgauge.reports.judgments import report_unjudged as report_unjudged
    from rankgauge.reports.page import html_report as html_report
    from rankgauge.reports.reconciliations import report_reconciliation as report_reconciliation
    from rankgauge.reports.reproductions import report_reproduction as report_reproduction
    from rankgauge.reports.sections import Details as Details
    from rankgauge.reports.sections import Section as Section
    from rankgauge.reports.sections import diagnosis_section as diagnosis_section
    from rankgauge.reports.sections import trend_section as trend_section
    from rankgauge.reports.ties import report_ties as report_ties
    from rankgauge.retrievers.protocol import Hits as Hits
    from rankgauge.retrievers.protocol import Retriever as Retriever
    from rankgauge.retrievers.protocol import hits_of as hits_of
    from rankgauge.sample import sample_path as sample_path
    from rankgauge.sensitivity.pool_reliability import LeftOut as LeftOut
    from rankgauge.sensitivity.pool_reliability import Reliability as Reliability
    from rankgauge.sensitivity.pool_reliability import reliability as reliability
    from rankgauge.sensitivity.ties import TieReport as TieReport
    from rankgauge.sensitivity.ties import TieSpan as TieSpan
    from rankgauge.sensitivity.ties import tie_report as tie_report
    from rankgauge.sensitivity.unjudged import Bootstrapped as Bootstrapped
    from rankgauge.sensitivity.unjudged import Drawing as Drawing
    from rankgauge.sensitivity.unjudged import UnjudgedReport as UnjudgedReport
    from rankgauge.sensitivity.unjudged import unjudged_report as unjudged_report
    from rankgauge.testing import RetrieverCheck as RetrieverCheck
    from rankgauge.testing import check_retriever as check_retriever
    from rankgauge.tutorials.benchmark import RetrievalBenchmark as RetrievalBenchmark
    from rankgauge.tutorials.evaluator import RetrievalEvaluator as RetrievalEvaluator

    AP: Measure
    AP_IA: Measure
    BPM: Measure
    BPMres: Measure
    Bpref: Measure
    Compat: Measure
    DCG: Measure
    ERR: Measure
    ERR_IA: Measure
    F: Measure
    FirstRel: Measure
    G: Measure
    GMAP: Measure
    GMBpref: Measure
    INSQ: Measure
    INSQres: Measure
    INST: Measure
    INSTres: Measure
    IPrec: Measure
    IPrecAvg: Measure
    Judged: Measure
    NCG: Measure
    NERR10: Measure
    NERR11: Measure
    NERR8: Measure
    NERR9: Measure
    NRBP: Measure
    NumNonrelRet: Measure
    NumRel: Measure
    NumRelRet: Measure
    NumRet: Measure
    P: Measure
    P_IA: Measure
    PairAcc: Measure
    R: Measure
    RBP: Measure
    RBPres: Measure
    RR: Measure
    RelP: Measure
    RnDCG: Measure
    Rprec: Measure
    RprecMult: Measure
    SDCG: Measure
    SDCGres: Measure
    SetAP: Measure
    SetF: Measure
    SetP: Measure
    SetR: Measure
    SetRelP: Measure
    StRecall: Measure
    Success: Measure
    Unjudged: Measure
    Utility: Measure
    YAAP: Measure
    alpha_DCG: Measure
    alpha_nDCG: Measure
    binG: Measure
    infAP: Measure
    infNDCG: Measure
    nDCG: Measure
    nDCGrel: Measure
    nERR: Measure
    nERR_IA: Measure
    nNRBP: Measure
    prefs_avgjg: Measure
    prefs_avgjg_Rnonrel: Measure
    prefs_avgjg_Rnonrel_ret: Measure
    prefs_avgjg_imp: Measure
    prefs_avgjg_ret: Measure
    prefs_num_prefs_ful: Measure
    prefs_num_prefs_ful_ret: Measure
    prefs_num_prefs_poss: Measure
    prefs_pair: Measure
    prefs_pair_imp: Measure
    prefs_pair_ret: Measure
    prefs_simp: Measure
    prefs_simp_imp: Measure
    prefs_simp_ret: Measure
    xinfAP: Measure

_HOMES = {
    "evaluation.arguments": ("read_judgments",),
    "benchmark.benchmark": ("Benchmark",),
    "benchmark.comparison": ("BenchmarkComparison",),
    "benchmark.exploration_result": ("Exploration", "Trial"),
    "benchmark.exploration": ("explore",),
    "benchmark.journal": ("Answer",),
    "benchmark.limits": ("Limits",),
    "benchmark.metadata": ("write_benchmark_run",),
    "benchmark.run": ("BenchmarkRun", "Failure", "IndexCost", "Tally"),
    "benchmark.plan": ("BenchmarkPlan", "PlannedRetriever"),
    "benchmark.plan_run": ("PlanOutcome", "repeat_plan", "run_plan"),
    "benchmark.latency": ("Latency", "Quantile"),
    "tutorials.benchmark": ("RetrievalBenchmark",),
    "benchmark.plan_exploration": ("explore_plan",),
    "checks.inputs": ("check",),
    "checks.fixes": ("Mended", "mend"),
    "checks.problems": ("Problem",),
    "checks.result": ("CheckResult",),
    "corpus.collection": ("Collection", "Document", "Query", "read_documents", "read_queries"),
    "comparison.comparison": ("Comparison", "compare", "compare_evaluations"),
    "conversion.conversion": ("Conversion", "convert"),
    "diagnosis.bands": ("Band", "Bands"),
    "diagnosis.causes": ("CAUSES", "Cause", "Missed", "QueryDiagnosis"),
    "diagnosis.diagnosis": ("Diagnosis", "diagnose"),
    "comparison.differences": ("Design", "Difference"),
    "errors": (
        "FormatError", "InputError", "MismatchError", "MissingExtra", "RankgaugeError",
        "UnknownName",
    ),
    "evaluation.evaluation": ("evaluate",),
    "tutorials.evaluator": ("RetrievalEvaluator",),
    "explanation.explanation": ("Explanation", "Other", "explain"),
    "explanation.given_values": ("GivenValues",),
    "explanation.listing": ("Listed", "Listing"),
    "explanation.reconciliation": (
        "Contribution", "Moved", "Reconciliation", "Target", "reconcile",
    ),
    "explanation.reproduction": ("Fit", "Reproduction", "reproduce"),
    "explanation.working": ("IdealRow", "Worked", "Working"),
    "core.findings": (
        "FINDING_KINDS", "Effect", "Evidence", "Finding", "FindingKind", "Location",
    ),
    "data.fingerprints": ("fingerprint",),
    "formats.registry": ("QRELS_FORMATS", "RUN_FORMATS", "TARGET_FORMATS", "InFormat"),
    "fusion.fusion": ("FUSION_METHODS", "FUSION_NORMS", "Fusion", "fuse"),
    "gates.baseline": ("Baseline",),
    "gates.checks": ("GateCheck", "GateNumbers", "QueryChange"),
    "gates.rules": ("GateRules",),
    "gates.verdict": ("GateResult", "gate"),
    "history": ("Change", "Entry", "History", "Point", "Step", "Trend"),
    "corpus.description": ("CollectionInfo", "Remark", "Spread", "describe_collection"),
    "data.ranking": ("ranked",),
    "data.judged_run": ("JudgedRun",),
    "measures.measure": ("Measure", "Metric", "list_measures", "parse"),
    "data.model": ("Qrels", "Run", "read_qrels", "read_run", "write_qrels", "write_run"),
    "comparison.overlap": ("Overlap", "rbo"),
    "rendering.charts": ("PLOTS", "PlotKind", "plot", "plot_history", "plot_measures"),
    "rendering.plotting": ("Panel", "Plot", "Series"),
    "core.policies": ("Policies",),
    "data.preferences": ("PreferenceQrels", "PreferenceRun", "read_preference_qrels"),
    "evaluation.result": ("AppliedProfile", "Evaluation"),
    "profiles.registry": ("PROFILES", "profile_of"),
    "profiles.deviations": ("Case", "Deviation", "Profile"),
    "sensitivity.pool_reliability": ("LeftOut", "Reliability", "reliability"),
    "data.records": ("Records",),
    "core.redaction": ("redact",),
    "reports.benchmarks": ("benchmark_section", "report_benchmark", "report_costs"),
    "reports.catalogue": ("describe", "report_measures"),
    "reports.checks": ("explain_problem", "report_check", "report_problem_kinds"),
    "reports.collections": ("report_collection",),
    "reports.comparisons": ("report_comparison",),
    "reports.diagnoses": ("report_diagnosis",),
    "reports.diffs": ("report_diff",),
    "reports.evaluations": ("FORMS", "report", "report_notes"),
    "reports.explanations": ("report_explanation",),
    "reports.explorations": ("report_exploration",),
    "reports.fusions": ("report_tuning",),
    "reports.gates": ("report_gate",),
    "reports.histories": ("report_change", "report_entries", "report_entry", "report_trend"),
    "reports.judgments": ("report_reliability", "report_unjudged"),
    "reports.page": ("html_report",),
    "reports.reconciliations": ("report_reconciliation",),
    "reports.reproductions": ("report_reproduction",),
    "reports.sections": ("Details", "Section", "diagnosis_section", "trend_section"),
    "reports.ties": ("report_ties",),
    "retrievers.protocol": ("Hits", "Retriever", "hits_of"),
    "comparison.run_diff": ("QueryDiff", "RunDiff", "diff"),
    "sample": ("sample_path",),
    "data.sampled": ("SampledQrels", "SampledRun", "read_sampled_qrels"),
    "comparison.side_by_side": ("Place",),
    "corpus.spans": ("QuerySpans", "Span", "SpanScores", "read_spans", "span_scores"),
    "data.subsets": ("cut", "keep_queries", "sample_queries"),
    "data.subtopics": ("SubtopicQrels", "SubtopicRun", "read_subtopic_qrels"),
    "testing": ("RetrieverCheck", "check_retriever"),
    "sensitivity.ties": ("TieReport", "TieSpan", "tie_report"),
    "fusion.tuning": ("Fold", "TunedFusion", "tune_fusion", "weight_grid"),
    "sensitivity.unjudged": ("Bootstrapped", "Drawing", "UnjudgedReport", "unjudged_report"),
    "core.use_cases": ("USE_CASES", "UseCase", "use_case"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MEASURES = (
    "AP", "AP_IA", "BPM", "BPMres", "Bpref", "Compat", "DCG", "ERR", "ERR_IA", "F", "FirstRel",
    "G", "GMAP", "GMBpref", "INSQ", "INSQres", "INST", "INSTres", "IPrec", "IPrecAvg", "Judged",
    "NCG", "NERR10", "NERR11", "NERR8", "NERR9", "NRBP", "NumNonrelRet", "NumRel", "NumRelRet",
    "NumRet", "P", "P_IA", "PairAcc", "R", "RBP", "RBPres", "RR", "RelP", "RnDCG", "Rprec",
    "RprecMult", "SDCG", "SDCGres", "SetAP", "SetF", "SetP", "SetR", "SetRelP", "StRecall",
    "Success", "Unjudged", "Utility", "YAAP", "alpha_DCG", "alpha_nDCG", "binG", "infAP",
    "infNDCG", "nDCG", "nDCGrel", "nERR", "nERR_IA", "nNRBP", "prefs_avgjg",
    "prefs_avgjg_Rnonrel", "prefs_avgjg_Rnonrel_ret", "prefs_avgjg_imp", "prefs_avgjg_ret",
    "prefs_num_prefs_ful", "prefs_num_prefs_ful_ret", "prefs_num_prefs_poss", "prefs_pair",
    "prefs_pair_imp", "prefs_pair_ret", "prefs_simp", "prefs_simp_imp", "prefs_simp_ret",
    "xinfAP",
)  # fmt: skip

_MODULES = ("functional", "retrievers")

__all__ = ["__version__", *_MODULES, *_HOME_OF, *_MEASURES]  # noqa: PLE0604 - all are text


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(importlib.import_module(f"rankgauge.{_HOME_OF[name]}"), name)
    elif name in _MEASURES:
        value = importlib.import_module("rankgauge.measures.measure").Measure(name)
    elif name in _MODULES:
        value = importlib.import_module(f"rankgauge.{name}")
    elif name == "__version__":
        value = importlib.import_module("importlib.metadata").version("rankgauge")
    else:
        raise AttributeError(f"module 'rankgauge' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
