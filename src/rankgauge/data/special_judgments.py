"""Judgments that say more than a grade, by what measures read of them.

Loaded only where a measure asks for such judgments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

from rankgauge.core.ids import IntArray
from rankgauge.data.join import Joined
from rankgauge.data.model import Qrels
from rankgauge.data.preferences import PreferenceQrels, read_preference_qrels
from rankgauge.data.sampled import SampledQrels, read_sampled_qrels
from rankgauge.data.subtopics import SubtopicQrels, read_subtopic_qrels
from rankgauge.formats.lines import Source

__all__ = ["Detailed", "detailed", "read_detailed"]


class Detailed(Protocol):
    """What all of them have in common."""

    reads: ClassVar[str]
    """What measures read here: `Declaration.reads`."""

    @property
    def qrels(self) -> Qrels:
        """The same as ordinary judgments, with which a run is joined."""

    def blocks(self, joined: Joined, queries: IntArray) -> Iterator[tuple[IntArray, Any]]:
        """What the kernels see of these queries, each with the places of its rows."""

    def tied(self, joined: Joined) -> IntArray:
        """Queries in which a tie could change a value."""


def detailed(reads: str, source: Any) -> Detailed:
    """The judgments that measures read, from whatever holds them.

    Args:
        reads: What the measures read: `Declaration.reads`.
        source: What the noun takes.

    Raises:
        InputError: If it holds no such judgments.
    """
    return _NOUNS[reads][0](source)


def read_detailed(reads: str, path: Source, form: str | None) -> Detailed:
    """The same out of a file."""
    return _NOUNS[reads][1](path, format=form)


_NOUNS: dict[str, tuple[Any, Any]] = {
    "preferences": (PreferenceQrels.of, read_preference_qrels),
    "samples": (SampledQrels.of, read_sampled_qrels),
    "subtopics": (SubtopicQrels.of, read_subtopic_qrels),
}
