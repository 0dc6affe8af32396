"""One case from a seed and its number: a target, and the malformed file or name that it gets."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fuzzing.breaking import broken, broken_text, drawn_out
from fuzzing.seeds import MEASURES, PACKERS, SEEDS

__all__ = ["Case", "Target", "case_of"]

Target: TypeAlias = Literal[
    "run", "qrels", "evaluate", "records", "queries", "documents", "ids", "collection", "result",
    "name", "check", "convert",
]  # fmt: skip

# How often each target is asked, and by which inputs. The last three take longest.
_TARGETS: tuple[tuple[Target, int, tuple[str, ...]], ...] = (
    (
        "run",
        22,
        ("run", "three", "table", "json lines", "mapping", "ratings", "columns", "archive"),
    ),
    (
        "qrels",
        20,
        ("qrels", "three", "table", "json lines", "mapping", "ratings", "columns", "archive"),
    ),
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
    "a", "a.run", "a.txt", "a.csv", "a.tsv", "a.json", "a.jsonl", "a.parquet", "a.zip", "a.gz",
    "a.run.xz", "a.trec", "qrels", "a.arrow", "a.xml", "a.run.zst",
)  # fmt: skip
_SHARES = {
    "bomb": 0.004,
    "named otherwise": 0.12,
    "packed": 0.06,
    "broken when packed": 0.5,
    "random": 0.01,
    "drawn out": 0.004,
}


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        number: Its number.
        target: What is asked of it.
        name: The name of the file.
        data: What the file holds.
        text: The name of a measure, for the target ``name``.
        plain: Whether the file is not packed, and named as what it was before it was broken.
        kind: What it was before it was broken.
    """

    number: int
    target: Target
    name: str = ""
    data: bytes = b""
    text: str = ""
    plain: bool = False
    kind: str = ""


def case_of(seed: int, number: int, only: Target | None = None) -> Case:
    """The case of this number: always the same one.

    Args:
        seed: Another seed, other cases.
        number: Which of them.
        only: The target, where it is not to be drawn.
    """
    draw = random.Random(f"{seed}:{number}")  # noqa: S311 - nothing secret
    shares = [share for _, share, _ in _TARGETS]
    target, _, kinds = draw.choices(_TARGETS, shares)[0]
    if only is not None:
        target, _, kinds = next(one for one in _TARGETS if one[0] == only)
    if target == "name":
        return Case(number, target, text=broken_text(draw.choice(MEASURES), draw))
    kind = "bomb" if draw.random() < _SHARES["bomb"] else draw.choice(kinds)
    name, data = SEEDS[kind](draw)
    if kind == "bomb":
        return Case(number, target, name, data, kind=kind)
    name, data, packed = _spoilt(name, data, draw)
    plain = not packed
    if draw.random() < _SHARES["named otherwise"]:
        name, plain = draw.choice(_NAMES), False
    return Case(number, target, name, data, plain=plain, kind=kind)


def _spoilt(name: str, data: bytes, draw: random.Random) -> tuple[str, bytes, bool]:
    """The name and the bytes of what was whole, and whether it is packed."""
    if draw.random() < _SHARES["random"]:
        data = draw.randbytes(draw.randrange(400))
    _, other = SEEDS[draw.choice(list(SEEDS)[:-3])](draw)
    packer = draw.choice(list(PACKERS)) if draw.random() < _SHARES["packed"] else ""
    inside = bool(packer) and draw.random() < _SHARES["broken when packed"]
    if not inside:
        data = broken(data, other, draw)
    if draw.random() < _SHARES["drawn out"]:
        data = drawn_out(data, draw)
    if packer:
        data = PACKERS[packer](data)
    if inside:
        data = broken(data, other, draw)
    return name + packer, data, bool(packer)
