"""Ways in and out: files, mappings, data frames and rows, each to and from a ``PairTable``.

Nothing here knows what judgments or runs mean; a :class:`~rankgauge.formats.layout.Layout` says
which words, columns and numbers the two kinds of input have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.formats.names import (
        QRELS_FORMATS as QRELS_FORMATS,
        RUN_FORMATS as RUN_FORMATS,
        TARGET_FORMATS as TARGET_FORMATS,
        InFormat as InFormat,
    )
    from rankgauge.formats.texts import Faults as Faults

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "names": "InFormat QRELS_FORMATS RUN_FORMATS TARGET_FORMATS",
        "texts": "Faults",
    },
)
