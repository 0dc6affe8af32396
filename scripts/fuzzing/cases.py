"""Generate a case from a seed and its number: a target with a malformed file or name."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fuzzing.mutations import lengthen, mutate, mutate_text
from fuzzing.seeds import MEASURES, PACKERS, SEEDS

__all__ = ["Case", "Target", "case_of"]

Target: TypeAlias = Literal[
    "run",
    "qrels",
    "evaluate",
    "records",
    "queries",
    "documents",
    "ids",
    "collection",
    "result",
    "name",
    "check",
    "convert",
]

# How often each target is tested, and with which inputs. The last three are the slowest.
_TARGETS: tuple[tuple[Target, int, tuple[str, ...]], ...] = (
    ("run", 22, ("run", "three", "table", "json lines", "mapping", "ratings", "columns", "archive")),
    ("qrels", 20, ("qrels", "three", "table", "json lines", "mapping", "ratings", "columns", "archive")),
    ("evaluate", 12, ("run", "run", "three", "table", "mapping")),
    ("records", 6, ("records", "json lines", "mapping")),
    ("queries", 7, ("texts", "json lines", "table")),
    ("documents", 6, ("texts", "json lines", "table")),
    ("ids", 1, ("ids", "run")),
    ("collection", 2, ("archive", "texts")),
    ("result", 2, ("result",)),
    ("name", 18, ("mapping",)),
    ("check", 2, ("run", "run", "table", "mapping", "three", "archive")),
    ("convert", 2, ("run", "qrels", "table", "mapping", "texts", "ratings", "columns")),
)
_NAMES = (
    "a",
    "a.run",
    "a.txt",
    "a.csv",
    "a.tsv",
    "a.json",
    "a.jsonl",
    "a.parquet",
    "a.zip",
    "a.gz",
    "a.run.xz",
    "a.trec",
    "qrels",
    "a.arrow",
    "a.xml",
    "a.run.zst",
)
_SHARES = {
    "bomb": 0.004,
    "other name": 0.12,
    "compressed": 0.06,
    "mutated when compressed": 0.5,
    "random": 0.01,
    "lengthened": 0.004,
}


@dataclass(frozen=True)
class Case:
    """One fuzz case.

    Attributes:
        number: Its number.
        target: The function under test.
        name: The name of the file.
        data: The content of the file.
        text: The name of a measure, for the target ``name``.
        plain: Whether the file is uncompressed and has the extension of its original format.
        kind: The kind of input before mutation.
    """

    number: int
    target: Target
    name: str = ""
    data: bytes = b""
    text: str = ""
    plain: bool = False
    kind: str = ""


def case_of(seed: int, number: int, only: Target | None = None) -> Case:
    """Return the case with this number; it is deterministic.

    Args:
        seed: The seed of all cases.
        number: The number of the case.
        only: The target; drawn at random if None.
    """
    draw = random.Random(f"{seed}:{number}")  # noqa: S311 - not for cryptography
    shares = [share for _, share, _ in _TARGETS]
    target, _, kinds = draw.choices(_TARGETS, shares)[0]
    if only is not None:
        target, _, kinds = next(one for one in _TARGETS if one[0] == only)
    if target == "name":
        return Case(number, target, text=mutate_text(draw.choice(MEASURES), draw))
    kind = "bomb" if draw.random() < _SHARES["bomb"] else draw.choice(kinds)
    name, data = SEEDS[kind](draw)
    if kind == "bomb":
        return Case(number, target, name, data, kind=kind)
    name, data, packed = _mutated(name, data, draw)
    plain = not packed
    if draw.random() < _SHARES["other name"]:
        name, plain = draw.choice(_NAMES), False
    return Case(number, target, name, data, plain=plain, kind=kind)


def _mutated(name: str, data: bytes, draw: random.Random) -> tuple[str, bytes, bool]:
    """Return a mutated name and content, and whether the file is compressed."""
    if draw.random() < _SHARES["random"]:
        data = draw.randbytes(draw.randrange(400))
    _, other = SEEDS[draw.choice(list(SEEDS)[:-3])](draw)
    packer = draw.choice(list(PACKERS)) if draw.random() < _SHARES["compressed"] else ""
    inside = bool(packer) and draw.random() < _SHARES["mutated when compressed"]
    if not inside:
        data = mutate(data, other, draw)
    if draw.random() < _SHARES["lengthened"]:
        data = lengthen(data, draw)
    if packer:
        data = PACKERS[packer](data)
    if inside:
        data = mutate(data, other, draw)
    return name + packer, data, bool(packer)
