"""Fusion of several runs into one, with or without tuning."""

from rankgauge.fusion.fusion import FUSION_METHODS, FUSION_NORMS, Fusion, fuse, fuse_files
from rankgauge.fusion.tuning import Fold, TunedFusion, tune_fusion, weight_grid

__all__ = [
    "FUSION_METHODS", "FUSION_NORMS", "Fold", "Fusion", "TunedFusion", "fuse", "fuse_files",
    "tune_fusion", "weight_grid",
]  # fmt: skip
