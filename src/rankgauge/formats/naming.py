"""The names of formats, and what the name of a file says."""

from __future__ import annotations

__all__ = ["FORMATS", "format_of"]

FORMATS = ("trec", "csv", "tsv", "json", "jsonl")
_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def format_of(name: str) -> str | None:
    """The format that a file name stands for, without ``.gz``; None if it says nothing."""
    if not any(suffix in name.lower() for suffix in _SUFFIXES):
        return None
    from pathlib import PurePath

    path = PurePath(name)
    if path.suffix.lower() == ".gz":
        path = path.with_suffix("")
    return _SUFFIXES.get(path.suffix.lower())
