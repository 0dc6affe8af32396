"""Web application: pages on which people judge documents and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.web.app import judging_app as judging_app
    from rankgauge.web.server import serve as serve
    from rankgauge.web.verdicts import label_answers as label_answers, verdict_app as verdict_app

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {"app": "judging_app", "server": "serve", "verdicts": "label_answers verdict_app"},
)
