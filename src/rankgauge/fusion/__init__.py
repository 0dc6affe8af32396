"""Fusion of several runs into one, with or without tuning."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
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
