"""Fusion of several runs into one, with or without tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.fusion.fusion import (
        FUSION_METHODS as FUSION_METHODS,
        FUSION_NORMS as FUSION_NORMS,
        Fusion as Fusion,
        fuse as fuse,
        fuse_files as fuse_files,
    )
    from rankgauge.fusion.tuning import (
        Fold as Fold,
        TunedFusion as TunedFusion,
        tune_fusion as tune_fusion,
        weight_grid as weight_grid,
    )

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fusion": "FUSION_METHODS FUSION_NORMS Fusion fuse fuse_files",
        "tuning": "Fold TunedFusion tune_fusion weight_grid",
    },
)
