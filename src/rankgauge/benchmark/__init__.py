"""Benchmarks of retrievers: runs over a collection, journal, limits, latency, and comparison."""

from rankgauge.benchmark.benchmark import Benchmark
from rankgauge.benchmark.calls import Limits
from rankgauge.benchmark.comparison import BenchmarkComparison
from rankgauge.benchmark.exploration import Exploration, Trial, explore
from rankgauge.benchmark.journal import Response
from rankgauge.benchmark.latency import Latency, Quantile
from rankgauge.benchmark.live import LiveRanking, LiveRetriever, answer_queries
from rankgauge.benchmark.plan import BenchmarkPlan, PlannedRetriever
from rankgauge.benchmark.plan_execution import PlanOutcome, explore_plan, repeat_plan, run_plan
from rankgauge.benchmark.run import BenchmarkRun, Failure, IndexCost, Tally, write_benchmark_run

__all__ = [
    "Benchmark",
    "BenchmarkComparison",
    "BenchmarkPlan",
    "BenchmarkRun",
    "Exploration",
    "Failure",
    "IndexCost",
    "Latency",
    "Limits",
    "LiveRanking",
    "LiveRetriever",
    "PlanOutcome",
    "PlannedRetriever",
    "Quantile",
    "Response",
    "Tally",
    "Trial",
    "answer_queries",
    "explore",
    "explore_plan",
    "repeat_plan",
    "run_plan",
    "write_benchmark_run",
]
