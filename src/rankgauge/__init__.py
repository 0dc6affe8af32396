"""rankgauge measures retrieval: what a retriever returned against what it should have returned.

This module is the door: every public name, loaded when it is first used. Importing it loads the
standard library only.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankgauge.asked import read_judgments as read_judgments
    from rankgauge.bench.benchmark import Benchmark as Benchmark
    from rankgauge.bench.compared import BenchmarkComparison as BenchmarkComparison
    from rankgauge.bench.explorations import Exploration as Exploration
    from rankgauge.bench.explorations import Trial as Trial
    from rankgauge.bench.exploring import explore as explore
    from rankgauge.bench.journal import Answer as Answer
    from rankgauge.bench.limits import Limits as Limits
    from rankgauge.bench.metadata import write_benchmark_run as write_benchmark_run
    from rankgauge.bench.outcome import BenchmarkRun as BenchmarkRun
    from rankgauge.bench.outcome import Failure as Failure
    from rankgauge.bench.outcome import IndexCost as IndexCost
    from rankgauge.bench.outcome import Tally as Tally
    from rankgauge.bench.plan import BenchmarkPlan as BenchmarkPlan
    from rankgauge.bench.plan import PlannedRetriever as PlannedRetriever
    from rankgauge.bench.planned import PlanOutcome as PlanOutcome
    from rankgauge.bench.planned import repeat_plan as repeat_plan
    from rankgauge.bench.planned import run_plan as run_plan
    from rankgauge.bench.timing import Latency as Latency
    from rankgauge.bench.timing import Quantile as Quantile
    from rankgauge.bench.tutorial import RetrievalBenchmark as RetrievalBenchmark
    from rankgauge.bench.varied import explore_plan as explore_plan
    from rankgauge.checking.checkup import check as check
    from rankgauge.checking.fixes import Mended as Mended
    from rankgauge.checking.fixes import mend as mend
    from rankgauge.checking.problems import Effect as Effect
    from rankgauge.checking.problems import Problem as Problem
    from rankgauge.checking.problems import Spot as Spot
    from rankgauge.checking.result import CheckResult as CheckResult
    from rankgauge.collection import Collection as Collection
    from rankgauge.collection import Document as Document
    from rankgauge.collection import Query as Query
    from rankgauge.collection import read_documents as read_documents
    from rankgauge.collection import read_queries as read_queries
    from rankgauge.comparison import Comparison as Comparison
    from rankgauge.comparison import compare as compare
    from rankgauge.comparison import compare_evaluations as compare_evaluations
    from rankgauge.conversion import Conversion as Conversion
    from rankgauge.conversion import convert as convert
    from rankgauge.diagnosing.bands import Band as Band
    from rankgauge.diagnosing.bands import Bands as Bands
    from rankgauge.diagnosing.causes import CAUSES as CAUSES
    from rankgauge.diagnosing.causes import Cause as Cause
    from rankgauge.diagnosing.causes import Finding as Finding
    from rankgauge.diagnosing.causes import Missed as Missed
    from rankgauge.diagnosing.diagnosis import Diagnosis as Diagnosis
    from rankgauge.diagnosing.diagnosis import diagnose as diagnose
    from rankgauge.differences import Design as Design
    from rankgauge.differences import Difference as Difference
    from rankgauge.errors import FormatError as FormatError
    from rankgauge.errors import InputError as InputError
    from rankgauge.errors import MismatchError as MismatchError
    from rankgauge.errors import MissingExtra as MissingExtra
    from rankgauge.errors import RankgaugeError as RankgaugeError
    from rankgauge.errors import UnknownName as UnknownName
    from rankgauge.evaluation import Evaluation as Evaluation
    from rankgauge.evaluation import evaluate as evaluate
    from rankgauge.evaluator import RetrievalEvaluator as RetrievalEvaluator
    from rankgauge.explaining.explanation import Explanation as Explanation
    from rankgauge.explaining.explanation import Other as Other
    from rankgauge.explaining.explanation import explain as explain
    from rankgauge.explaining.given import GivenValues as GivenValues
    from rankgauge.explaining.listing import Listed as Listed
    from rankgauge.explaining.listing import Listing as Listing
    from rankgauge.explaining.reconciliation import Contribution as Contribution
    from rankgauge.explaining.reconciliation import Moved as Moved
    from rankgauge.explaining.reconciliation import Reconciliation as Reconciliation
    from rankgauge.explaining.reconciliation import Target as Target
    from rankgauge.explaining.reconciliation import reconcile as reconcile
    from rankgauge.explaining.reproduction import Fit as Fit
    from rankgauge.explaining.reproduction import Reproduction as Reproduction
    from rankgauge.explaining.reproduction import reproduce as reproduce
    from rankgauge.explaining.working import IdealRow as IdealRow
    from rankgauge.explaining.working import Worked as Worked
    from rankgauge.explaining.working import Working as Working
    from rankgauge.findings import PROBLEM_KINDS as PROBLEM_KINDS
    from rankgauge.findings import ProblemKind as ProblemKind
    from rankgauge.fingerprints import fingerprint as fingerprint
    from rankgauge.formats.naming import QRELS_FORMATS as QRELS_FORMATS
    from rankgauge.formats.naming import RUN_FORMATS as RUN_FORMATS
    from rankgauge.formats.naming import TARGET_FORMATS as TARGET_FORMATS
    from rankgauge.formats.naming import InFormat as InFormat
    from rankgauge.fusion import FUSION_METHODS as FUSION_METHODS
    from rankgauge.fusion import FUSION_NORMS as FUSION_NORMS
    from rankgauge.fusion import Fusion as Fusion
    from rankgauge.fusion import fuse as fuse
    from rankgauge.gating.baseline import Baseline as Baseline
    from rankgauge.gating.checks import GateCheck as GateCheck
    from rankgauge.gating.checks import GateNumbers as GateNumbers
    from rankgauge.gating.checks import QueryChange as QueryChange
    from rankgauge.gating.rules import GateRules as GateRules
    from rankgauge.gating.verdict import GateResult as GateResult
    from rankgauge.gating.verdict import gate as gate
    from rankgauge.history import Change as Change
    from rankgauge.history import Entry as Entry
    from rankgauge.history import History as History
    from rankgauge.history import Point as Point
    from rankgauge.history import Step as Step
    from rankgauge.history import Trend as Trend
    from rankgauge.inspecting import CollectionInfo as CollectionInfo
    from rankgauge.inspecting import Remark as Remark
    from rankgauge.inspecting import Spread as Spread
    from rankgauge.inspecting import describe_collection as describe_collection
    from rankgauge.join import ranked as ranked
    from rankgauge.judged import JudgedRun as JudgedRun
    from rankgauge.kernels.measure import Measure as Measure
    from rankgauge.kernels.measure import Metric as Metric
    from rankgauge.kernels.measure import measures as measures
    from rankgauge.kernels.measure import parse as parse
    from rankgauge.model import Qrels as Qrels
    from rankgauge.model import Run as Run
    from rankgauge.model import read_qrels as read_qrels
    from rankgauge.model import read_run as read_run
    from rankgauge.model import write_qrels as write_qrels
    from rankgauge.model import write_run as write_run
    from rankgauge.overlap import Overlap as Overlap
    from rankgauge.overlap import rbo as rbo
    from rankgauge.plots import PLOTS as PLOTS
    from rankgauge.plots import PlotKind as PlotKind
    from rankgauge.plots import plot as plot
    from rankgauge.plots import plot_history as plot_history
    from rankgauge.plots import plot_measures as plot_measures
    from rankgauge.plotting import Panel as Panel
    from rankgauge.plotting import Plot as Plot
    from rankgauge.plotting import Series as Series
    from rankgauge.policies import Policies as Policies
    from rankgauge.pooling import LeftOut as LeftOut
    from rankgauge.pooling import Reliability as Reliability
    from rankgauge.pooling import reliability as reliability
    from rankgauge.preferences import PreferenceQrels as PreferenceQrels
    from rankgauge.preferences import PreferenceRun as PreferenceRun
    from rankgauge.preferences import read_preference_qrels as read_preference_qrels
    from rankgauge.profiled import AppliedProfile as AppliedProfile
    from rankgauge.profiles.deviations import Case as Case
    from rankgauge.profiles.deviations import Deviation as Deviation
    from rankgauge.profiles.deviations import Profile as Profile
    from rankgauge.profiles.known import PROFILES as PROFILES
    from rankgauge.profiles.known import profile_of as profile_of
    from rankgauge.records import Records as Records
    from rankgauge.redaction import redact as redact
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
    from rankgauge.retriever import Hits as Hits
    from rankgauge.retriever import Retriever as Retriever
    from rankgauge.retriever import hits_of as hits_of
    from rankgauge.rundiff import QueryDiff as QueryDiff
    from rankgauge.rundiff import RunDiff as RunDiff
    from rankgauge.rundiff import diff as diff
    from rankgauge.sample import sample_path as sample_path
    from rankgauge.sampled import SampledQrels as SampledQrels
    from rankgauge.sampled import SampledRun as SampledRun
    from rankgauge.sampled import read_sampled_qrels as read_sampled_qrels
    from rankgauge.sidebyside import Place as Place
    from rankgauge.spans import QuerySpans as QuerySpans
    from rankgauge.spans import Span as Span
    from rankgauge.spans import SpanScores as SpanScores
    from rankgauge.spans import read_spans as read_spans
    from rankgauge.spans import span_scores as span_scores
    from rankgauge.subsets import cut as cut
    from rankgauge.subsets import keep_queries as keep_queries
    from rankgauge.subsets import sample_queries as sample_queries
    from rankgauge.subtopics import SubtopicQrels as SubtopicQrels
    from rankgauge.subtopics import SubtopicRun as SubtopicRun
    from rankgauge.subtopics import read_subtopic_qrels as read_subtopic_qrels
    from rankgauge.testing import RetrieverCheck as RetrieverCheck
    from rankgauge.testing import check_retriever as check_retriever
    from rankgauge.tied import TieReport as TieReport
    from rankgauge.tied import TieSpan as TieSpan
    from rankgauge.tied import tie_report as tie_report
    from rankgauge.tuning import Fold as Fold
    from rankgauge.tuning import TunedFusion as TunedFusion
    from rankgauge.tuning import tune_fusion as tune_fusion
    from rankgauge.tuning import weight_grid as weight_grid
    from rankgauge.unjudged import Bootstrapped as Bootstrapped
    from rankgauge.unjudged import Drawing as Drawing
    from rankgauge.unjudged import UnjudgedReport as UnjudgedReport
    from rankgauge.unjudged import unjudged_report as unjudged_report
    from rankgauge.usecases import USE_CASES as USE_CASES
    from rankgauge.usecases import UseCase as UseCase
    from rankgauge.usecases import use_case as use_case

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
    "asked": ("read_judgments",),
    "bench.benchmark": ("Benchmark",),
    "bench.compared": ("BenchmarkComparison",),
    "bench.explorations": ("Exploration", "Trial"),
    "bench.exploring": ("explore",),
    "bench.journal": ("Answer",),
    "bench.limits": ("Limits",),
    "bench.metadata": ("write_benchmark_run",),
    "bench.outcome": ("BenchmarkRun", "Failure", "IndexCost", "Tally"),
    "bench.plan": ("BenchmarkPlan", "PlannedRetriever"),
    "bench.planned": ("PlanOutcome", "repeat_plan", "run_plan"),
    "bench.timing": ("Latency", "Quantile"),
    "bench.tutorial": ("RetrievalBenchmark",),
    "bench.varied": ("explore_plan",),
    "checking.checkup": ("check",),
    "checking.fixes": ("Mended", "mend"),
    "checking.problems": ("Effect", "Problem", "Spot"),
    "checking.result": ("CheckResult",),
    "collection": ("Collection", "Document", "Query", "read_documents", "read_queries"),
    "comparison": ("Comparison", "compare", "compare_evaluations"),
    "conversion": ("Conversion", "convert"),
    "diagnosing.bands": ("Band", "Bands"),
    "diagnosing.causes": ("CAUSES", "Cause", "Finding", "Missed"),
    "diagnosing.diagnosis": ("Diagnosis", "diagnose"),
    "differences": ("Design", "Difference"),
    "errors": (
        "FormatError", "InputError", "MismatchError", "MissingExtra", "RankgaugeError",
        "UnknownName",
    ),
    "evaluation": ("Evaluation", "evaluate"),
    "evaluator": ("RetrievalEvaluator",),
    "explaining.explanation": ("Explanation", "Other", "explain"),
    "explaining.given": ("GivenValues",),
    "explaining.listing": ("Listed", "Listing"),
    "explaining.reconciliation": (
        "Contribution", "Moved", "Reconciliation", "Target", "reconcile",
    ),
    "explaining.reproduction": ("Fit", "Reproduction", "reproduce"),
    "explaining.working": ("IdealRow", "Worked", "Working"),
    "findings": ("PROBLEM_KINDS", "ProblemKind"),
    "fingerprints": ("fingerprint",),
    "formats.naming": ("QRELS_FORMATS", "RUN_FORMATS", "TARGET_FORMATS", "InFormat"),
    "fusion": ("FUSION_METHODS", "FUSION_NORMS", "Fusion", "fuse"),
    "gating.baseline": ("Baseline",),
    "gating.checks": ("GateCheck", "GateNumbers", "QueryChange"),
    "gating.rules": ("GateRules",),
    "gating.verdict": ("GateResult", "gate"),
    "history": ("Change", "Entry", "History", "Point", "Step", "Trend"),
    "inspecting": ("CollectionInfo", "Remark", "Spread", "describe_collection"),
    "join": ("ranked",),
    "judged": ("JudgedRun",),
    "kernels.measure": ("Measure", "Metric", "measures", "parse"),
    "model": ("Qrels", "Run", "read_qrels", "read_run", "write_qrels", "write_run"),
    "overlap": ("Overlap", "rbo"),
    "plots": ("PLOTS", "PlotKind", "plot", "plot_history", "plot_measures"),
    "plotting": ("Panel", "Plot", "Series"),
    "policies": ("Policies",),
    "preferences": ("PreferenceQrels", "PreferenceRun", "read_preference_qrels"),
    "profiled": ("AppliedProfile",),
    "profiles.known": ("PROFILES", "profile_of"),
    "profiles.deviations": ("Case", "Deviation", "Profile"),
    "pooling": ("LeftOut", "Reliability", "reliability"),
    "records": ("Records",),
    "redaction": ("redact",),
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
    "retriever": ("Hits", "Retriever", "hits_of"),
    "rundiff": ("QueryDiff", "RunDiff", "diff"),
    "sample": ("sample_path",),
    "sampled": ("SampledQrels", "SampledRun", "read_sampled_qrels"),
    "sidebyside": ("Place",),
    "spans": ("QuerySpans", "Span", "SpanScores", "read_spans", "span_scores"),
    "subsets": ("cut", "keep_queries", "sample_queries"),
    "subtopics": ("SubtopicQrels", "SubtopicRun", "read_subtopic_qrels"),
    "testing": ("RetrieverCheck", "check_retriever"),
    "tied": ("TieReport", "TieSpan", "tie_report"),
    "tuning": ("Fold", "TunedFusion", "tune_fusion", "weight_grid"),
    "unjudged": ("Bootstrapped", "Drawing", "UnjudgedReport", "unjudged_report"),
    "usecases": ("USE_CASES", "UseCase", "use_case"),
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
        value = importlib.import_module("rankgauge.kernels.measure").Measure(name)
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
