"""Evaluation of a run: :func:`evaluate` returns a value for each query and measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.evaluation.evaluation import (
        evaluate as evaluate,
        read_judgments as read_judgments,
    )
    from rankgauge.evaluation.groups import (
        GroupMean as GroupMean,
        GroupMeans as GroupMeans,
        group_means as group_means,
    )
    from rankgauge.evaluation.origins import (
        question_fields as question_fields,
        split_origins as split_origins,
    )
    from rankgauge.evaluation.result import (
        AppliedProfile as AppliedProfile,
        Evaluation as Evaluation,
    )

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "evaluation": "evaluate read_judgments",
        "groups": "GroupMean GroupMeans group_means",
        "origins": "question_fields split_origins",
        "result": "AppliedProfile Evaluation",
    },
)
