"""``convert()``: judgments, runs, and texts from one format into another."""

from rankgauge.conversion.conversion import Conversion, convert

__all__ = ["Conversion", "convert"]
