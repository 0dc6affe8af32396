"""Production: event logs, online metrics, experiments, drift of the evaluation set, sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.production.clusters import (
        Addition as Addition,
        Outlier as Outlier,
        QuestionCluster as QuestionCluster,
    )
    from rankgauge.production.drift import (
        VERDICTS as VERDICTS,
        Detectable as Detectable,
        Distinction as Distinction,
        DriftReport as DriftReport,
        QuestionPoint as QuestionPoint,
        ReweightedMeans as ReweightedMeans,
        measure_drift as measure_drift,
        reweight as reweight,
    )
    from rankgauge.production.events import COLUMNS as COLUMNS, KINDS as KINDS, Event as Event
    from rankgauge.production.log import (
        QUESTION_COLUMNS as QUESTION_COLUMNS,
        EventLog as EventLog,
        LogSummary as LogSummary,
    )
    from rankgauge.production.personal_data import scrub as scrub
    from rankgauge.production.question_sets import QuestionSet as QuestionSet, Traits as Traits

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "clusters": "Addition Outlier QuestionCluster",
        "drift": "VERDICTS Detectable Distinction DriftReport QuestionPoint ReweightedMeans "
        "measure_drift reweight",
        "events": "COLUMNS KINDS Event",
        "log": "QUESTION_COLUMNS EventLog LogSummary",
        "personal_data": "scrub",
        "question_sets": "QuestionSet Traits",
    },
)
