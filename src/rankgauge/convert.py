"""``convert()``: judgments, runs and texts from one format into another."""

from __future__ import annotations

__all__: list[str] = []
