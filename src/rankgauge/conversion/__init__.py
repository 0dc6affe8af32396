"""``convert()``: change the format of judgments, runs, and texts."""

from rankgauge.conversion.conversion import Conversion, convert

__all__ = ["Conversion", "convert"]
