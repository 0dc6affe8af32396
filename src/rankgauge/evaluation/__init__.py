"""Evaluation of a run: :func:`evaluate` returns a value for each query and measure."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.evaluation.context import read_judgments as read_judgments
    from rankgauge.evaluation.evaluation import evaluate as evaluate
    from rankgauge.evaluation.groups import GroupMean as GroupMean, GroupMeans as GroupMeans, group_means as group_means
    from rankgauge.evaluation.origins import question_fields as question_fields, split_origins as split_origins
    from rankgauge.evaluation.result import AppliedProfile as AppliedProfile, Evaluation as Evaluation
