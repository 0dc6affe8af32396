"""Readers and writers of files, mappings, data frames, and rows as ``PairTable``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.formats.registry import (
        QRELS_FORMATS as QRELS_FORMATS,
        RUN_FORMATS as RUN_FORMATS,
        TARGET_FORMATS as TARGET_FORMATS,
        InFormat as InFormat,
    )
    from rankgauge.formats.texts import Faults as Faults

__all__, __getattr__, __dir__ = lazy_names(
    __name__, {"registry": "InFormat QRELS_FORMATS RUN_FORMATS TARGET_FORMATS", "texts": "Faults"}
)
