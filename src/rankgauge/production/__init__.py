"""Production: event logs, online metrics, experiments, drift of the evaluation set, sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.production.events import KINDS as KINDS, Event as Event
    from rankgauge.production.personal_data import scrub as scrub

__all__, __getattr__, __dir__ = lazy_names(
    __name__, {"events": "KINDS Event", "personal_data": "scrub"}
)
