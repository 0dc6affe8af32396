"""The names of formats, and what the name of a file says."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["FORMATS", "QRELS_FORMATS", "RUN_FORMATS", "InFormat", "format_of"]

# What is read and written.
FORMATS = ("trec", "csv", "tsv", "json", "jsonl")
# What is only read: judgments of old collections, and runs of three columns.
QRELS_FORMATS = (*FORMATS, "smart", "npl", "letor")
RUN_FORMATS = (*FORMATS, "msmarco", "trec3")
_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}


@dataclass(frozen=True)
class InFormat(os.PathLike[str]):
    """A file together with its format, wherever a path may stand.

    Args:
        path: The file; ``-`` is standard input.
        format: What :func:`read_qrels` and :func:`read_run` take as `format`.

    Example:
        >>> from rankgauge import Run, sample_path
        >>> len(Run.of(InFormat(sample_path("runs/bm25.run"), "trec"))) > 0
        True
    """

    path: str | os.PathLike[str]
    format: str

    def __fspath__(self) -> str:
        return os.fspath(self.path)


def format_of(name: str) -> str | None:
    """The format that a file name stands for, without ``.gz``; None if it says nothing."""
    if not any(suffix in name.lower() for suffix in _SUFFIXES):
        return None
    from pathlib import PurePath

    path = PurePath(name)
    if path.suffix.lower() == ".gz":
        path = path.with_suffix("")
    return _SUFFIXES.get(path.suffix.lower())
