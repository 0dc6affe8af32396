"""Production: event logs, online metrics, experiments, drift of the evaluation set, sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.production.events import COLUMNS as COLUMNS, KINDS as KINDS, Event as Event
    from rankgauge.production.interleaving import (
        Interleaved as Interleaved,
        InterleavingResult as InterleavingResult,
        analyze_interleaving as analyze_interleaving,
        interleave as interleave,
    )
    from rankgauge.production.log import (
        QUESTION_COLUMNS as QUESTION_COLUMNS,
        EventLog as EventLog,
        LogSummary as LogSummary,
    )
    from rankgauge.production.log_import import (
        Fault as Fault,
        LogImport as LogImport,
        import_log as import_log,
    )
    from rankgauge.production.mappings import (
        LogMapping as LogMapping,
        read_mapping as read_mapping,
    )
    from rankgauge.production.personal_data import scrub as scrub

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "events": "COLUMNS KINDS Event",
        "interleaving": "Interleaved InterleavingResult analyze_interleaving interleave",
        "log": "QUESTION_COLUMNS EventLog LogSummary",
        "log_import": "Fault LogImport import_log",
        "mappings": "LogMapping read_mapping",
        "personal_data": "scrub",
    },
)
