"""The store of a project: evaluations, judgments of people, and verdicts on answers in one database."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.store.copies import WholeStore as WholeStore
    from rankgauge.store.entries import (
        HistoryEntries as HistoryEntries,
        HistoryEntry as HistoryEntry,
        obstacles as obstacles,
    )
    from rankgauge.store.gates import Gates as Gates, StoredGate as StoredGate
    from rankgauge.store.history import History as History
    from rankgauge.store.jobs import Job as Job, Jobs as Jobs
