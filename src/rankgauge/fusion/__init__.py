"""``fuse()``: several runs combined into one, with or without tuning."""

from rankgauge.fusion.fusion import FUSION_METHODS, FUSION_NORMS, Fusion, fuse
from rankgauge.fusion.tuning import Fold, TunedFusion, tune_fusion, weight_grid

__all__ = [
    "FUSION_METHODS", "FUSION_NORMS", "Fold", "Fusion", "TunedFusion", "fuse", "tune_fusion",
    "weight_grid",
]  # fmt: skip
