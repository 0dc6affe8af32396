"""Functions and classes with the names that tutorials use: thin wrappers of ``evaluate()``."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.tutorials.comparison import (
        RetrievalBenchmark as RetrievalBenchmark,
        RetrieverComparison as RetrieverComparison,
        RetrieverValues as RetrieverValues,
    )
    from rankgauge.tutorials.evaluator import (
        GradedRetrievalMetrics as GradedRetrievalMetrics,
        GradedRetrievalResult as GradedRetrievalResult,
        MetricValues as MetricValues,
        QueryEvaluation as QueryEvaluation,
        RetrievalEvaluator as RetrievalEvaluator,
        RetrievalMetrics as RetrievalMetrics,
        RetrievalResult as RetrievalResult,
    )
    from rankgauge.tutorials.functional import (
        average_precision as average_precision,
        calculate_ndcg_at_k as calculate_ndcg_at_k,
        calculate_precision_recall as calculate_precision_recall,
        dcg as dcg,
        dcg_at_k as dcg_at_k,
        evaluate_retrieval as evaluate_retrieval,
        expected_reciprocal_rank as expected_reciprocal_rank,
        f1_at_k as f1_at_k,
        hit_rate as hit_rate,
        hit_rate_at_k as hit_rate_at_k,
        mean_hit_rate as mean_hit_rate,
        mean_reciprocal_rank as mean_reciprocal_rank,
        mrr as mrr,
        ndcg as ndcg,
        ndcg_at_k as ndcg_at_k,
        precision_at_k as precision_at_k,
        recall_at_k as recall_at_k,
        reciprocal_rank as reciprocal_rank,
        success_at_k as success_at_k,
    )
