"""Evaluation of a run: :func:`evaluate`, profiles of other tools, sensitivity to ties and to unjudged documents."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.evaluation.context import read_judgments as read_judgments
    from rankgauge.evaluation.evaluation import evaluate as evaluate
    from rankgauge.evaluation.groups import GroupMean as GroupMean, GroupMeans as GroupMeans, group_means as group_means
    from rankgauge.evaluation.profile_deviations import Case as Case, Deviation as Deviation, Profile as Profile
    from rankgauge.evaluation.profiles import PROFILES as PROFILES, profile_of as profile_of
    from rankgauge.evaluation.questions import question_fields as question_fields, split_origins as split_origins
    from rankgauge.evaluation.result import AppliedProfile as AppliedProfile, Evaluation as Evaluation
    from rankgauge.evaluation.sensitivity import (
        LeftOut as LeftOut,
        Reliability as Reliability,
        TieReport as TieReport,
        TieSpan as TieSpan,
        reliability as reliability,
        tie_report as tie_report,
    )
    from rankgauge.evaluation.unjudged import (
        Bootstrapped as Bootstrapped,
        Drawing as Drawing,
        UnjudgedReport as UnjudgedReport,
        unjudged_report as unjudged_report,
    )
