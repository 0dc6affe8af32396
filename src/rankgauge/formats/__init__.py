"""Readers and writers of files, mappings, data frames, and rows as ``PairTable``."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.formats.contents import content_of as content_of
    from rankgauge.formats.registry import (
        QRELS_FORMATS as QRELS_FORMATS,
        RUN_FORMATS as RUN_FORMATS,
        TARGET_FORMATS as TARGET_FORMATS,
        InFormat as InFormat,
    )
    from rankgauge.formats.texts import Faults as Faults
