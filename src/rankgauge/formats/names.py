"""The names of formats and of packers, and what the name of a file says."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "FORMATS",
    "PACKINGS",
    "QRELS_FORMATS",
    "RUN_FORMATS",
    "TARGET_FORMATS",
    "BrokenPackError",
    "InFormat",
    "Packing",
    "format_of",
    "packing_of",
    "unpacked",
]

# What is read and written.
FORMATS = ("trec", "csv", "tsv", "json", "jsonl")
# What is only read: judgments of old collections, and runs of three columns.
QRELS_FORMATS = (*FORMATS, "smart", "npl", "letor")
RUN_FORMATS = (*FORMATS, "msmarco", "trec3")
# What is written.
TARGET_FORMATS = (
    *FORMATS, "parquet", "arrow", "msmarco", "beir", "rank-eval", "opensearch", "quepid",
)  # fmt: skip
_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}
# What a block of bzip2 starts with, and the end of an empty file of it.
_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")


class Packing(NamedTuple):
    """A way to make one file smaller; ``formats/compression.py`` reads and writes it.

    Attributes:
        name: What it is called.
        suffix: How the names of its files end.
        starts: How its files start.
        program: What unpacks (``-d``) and checks (``-t``) them.
    """

    name: str
    suffix: str
    starts: tuple[bytes, ...]
    program: str


PACKINGS = (
    Packing("gzip", ".gz", (b"\x1f\x8b",), "gzip"),
    Packing(
        "bzip2", ".bz2", tuple(b"BZh%d" % n + block for n in range(1, 10) for block in _BLOCKS),
        "bzip2",
    ),
    Packing("xz", ".xz", (b"\xfd7zXZ\0",), "xz"),
    Packing("zstd", ".zst", (b"\x28\xb5\x2f\xfd",), "zstd"),
    Packing("lz4", ".lz4", (b'\x04"M\x18',), "lz4"),
)  # fmt: skip


class BrokenPackError(Exception):
    """What is packed cannot be unpacked any further: it is broken, or ends early.

    Attributes:
        what: What it is packed with.
        check: The command that checks a file.
    """

    def __init__(self, what: str, check: str) -> None:
        super().__init__(what, check)
        self.what = what
        self.check = check


def packing_of(name: str) -> Packing | None:
    """How a file of this name is packed."""
    lower = name.lower()
    return next((packing for packing in PACKINGS if lower.endswith(packing.suffix)), None)


def unpacked(name: str) -> str:
    """The name without the ending of a packer."""
    packing = packing_of(name)
    return name if packing is None else name[: -len(packing.suffix)]


@dataclass(frozen=True)
class InFormat(os.PathLike[str]):
    """A file together with its format, wherever a path may stand.

    Args:
        path: The file; ``-`` is standard input.
        format: What ``read_qrels`` and ``read_run`` take as `format`.

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
    """The format that a file name stands for, without ``.gz`` and the like; None if none."""
    if not any(suffix in name.lower() for suffix in _SUFFIXES):
        return None
    from pathlib import PurePath

    return _SUFFIXES.get(PurePath(unpacked(name)).suffix.lower())
