"""Asking a retriever deeper and deeper, until enough of what it gives is of use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from rankgauge.corpus.collection import Query
from rankgauge.retrievers.protocol import Hits, Retriever, search

__all__ = ["Ranking", "ask_deeper"]

Ranking: TypeAlias = list[tuple[str, float]]
_STEP = 4


def ask_deeper(
    retriever: Retriever | Callable[..., object],
    queries: Sequence[Query],
    k: int,
    *,
    depth: int,
    most: int,
    kept: Callable[[Query, Hits], Ranking],
) -> list[Ranking]:
    """The first k that are kept of each query.

    Asked for are ``k * depth`` hits; where fewer than k of them are kept four times as many, and so
    on, until the retriever gives fewer than were asked for.

    Args:
        retriever: Any retriever.
        queries: The queries.
        k: How many are wanted.
        depth: How many are asked for at first, for each that is wanted.
        most: How many there are at all.
        kept: What is of use of the hits of a query, best first.
    """
    found: list[Ranking] = [[] for _ in queries]
    waiting = list(range(len(queries))) if most else []
    asked = min(k * depth, most)
    while waiting:
        answers = search(retriever, [queries[place] for place in waiting], asked)
        still = []
        for place, hits in zip(waiting, answers, strict=True):
            found[place] = kept(queries[place], hits)[:k]
            ended = len(hits) + hits.repeated < asked or asked >= most
            if len(found[place]) < k and not ended:
                still.append(place)
        waiting, asked = still, min(asked * _STEP, most)
    return found
