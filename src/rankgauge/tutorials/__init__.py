"""Functions and classes that tutorials use, thin over ``evaluate()``."""

from rankgauge.tutorials.benchmark import BenchmarkResult, RetrievalBenchmark
from rankgauge.tutorials.evaluator import QueryEvaluation, RetrievalEvaluator, RetrievalMetrics

__all__ = [
    "BenchmarkResult",
    "QueryEvaluation",
    "RetrievalBenchmark",
    "RetrievalEvaluator",
    "RetrievalMetrics",
]
