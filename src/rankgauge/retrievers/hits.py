"""Hits of a query, converted from any supported type of result.

No other module depends on the types of results.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, ItemsView, Iterable, KeysView, Mapping, Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from rankgauge.core.arguments import to_float
from rankgauge.core.ids import are_ids, id_bytes, id_text
from rankgauge.core.redaction import redact
from rankgauge.core.text import inflect, many
from rankgauge.errors import InputError
from rankgauge.formats.columns import RUN, lost_number

_IDS = ("id", "_id", "doc_id", "docno", "document_id", "docid")
_SCORES = ("score", "similarity", "relevance_score")
_SHAPES = "pass document ids, pairs (id, score), a mapping of id to score, or documents with an id, best first"
_MOST_HITS = 1_000_000
_TELLING = 3  # two ascending scores may be a coincidence
# Adapters for framework objects whose ids are not found under common names.
_ADAPTERS = {
    "haystack": "Haystack",
    "langchain": "LangChain",
    "langchain_core": "LangChain",
    "llama_index": "LlamaIndex",
    "pyterrier": "PyTerrier",
}


@dataclass(slots=True)
class Hits:
    """The documents retrieved for one query, best first, without duplicates.

    Attributes:
        ids: Document ids.
        scores: Scores, higher is better; ``len(ids), ..., 2, 1`` if the retriever returned none.
        scored: Whether the retriever returned scores.
        repeated: Number of duplicates removed.
        beyond: Number of hits removed below rank `k`.
        ascending: Whether the scores ascend in the original order, as distances do.
    """

    ids: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    scored: bool = False
    repeated: int = 0
    beyond: int = 0
    ascending: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    def pairs(self) -> list[tuple[str, float]]:
        """Return pairs of id and score, best first."""
        return list(zip(self.ids, self.scores, strict=True))


def hits_of(found: Any, k: int) -> Hits:
    """Convert the result of a retriever for one query to hits.

    Args:
        found: An iterable, best first, of document ids, of pairs ``(id, score)``, or of documents
            (objects or mappings with an id and optionally a score; or pairs of document and score);
            or a mapping of id to score.
        k: Number of hits to keep.

    Raises:
        InputError: For any other value, if only some hits have a score, or if a score is not a
            finite number.

    Example:
        >>> hits = hits_of(["d2", "d1", "d2"], 10)
        >>> hits.pairs(), hits.scored, hits.repeated
        ([('d2', 2.0), ('d1', 1.0)], False, 1)
        >>> hits_of({"d1": 0.25, "d2": 0.5}, 1).pairs()
        [('d2', 0.5)]
    """
    ids, scores = rows_of_hits(found, k)
    ascending = False
    if scores and any(late > early for early, late in itertools.pairwise(scores)):
        ascending = len(scores) >= _TELLING and all(late > early for early, late in itertools.pairwise(scores))
        # Scores decide the ranking, as for a run in a file.
        order = sorted(range(len(ids)), key=lambda place: -scores[place])
        ids, scores = [ids[place] for place in order], [scores[place] for place in order]
    repeated = 0
    if len(set(ids)) < len(ids):
        first: dict[str, int] = {}
        for place, name in enumerate(ids):
            first.setdefault(name, place)
        repeated = len(ids) - len(first)
        ids = list(first)
        scores = [scores[place] for place in first.values()] if scores else scores
    beyond = max(len(ids) - k, 0)
    if beyond:
        ids, scores = ids[:k], scores[:k]
    by_rank = map(float, range(len(ids), 0, -1))
    return Hits(ids, scores or list(by_rank), bool(scores), repeated, beyond, ascending)


def rows_of_hits(result: Any, k: int = 0) -> tuple[list[str], list[float]]:
    """Return all ids and scores in their original order; no scores if none were given."""
    if type(result) is list and all(type(item) is str and item for item in result):
        _check_ids(result)
        return result.copy(), []
    if type(result) is list and (pairs := _plain_pairs(result)) is not None:
        return pairs
    if isinstance(result, Mapping) and "ids" not in result:
        return _scored(listed_hits(result.items(), k))
    if fix := _unordered(result):
        raise InputError(f"the retriever returned {shown(result)}, which is not a ranking", fix=fix)
    if result is None or isinstance(result, str | bytes | Mapping) or not isinstance(result, Iterable):
        raise InputError(
            f"the retriever returned {shown(result)} for a query, expected a ranking",
            fix=adapter_hint(result) or f"return an empty list for nothing found; {_SHAPES}",
        )
    return _scored(listed_hits(result, k))


def listed_hits(result: Iterable[Any], k: int) -> list[Any]:
    """Return the hits as a list."""
    if type(result) in {list, tuple}:
        return list(result)
    most = _MOST_HITS + 2 * k
    rows = list(itertools.islice(result, most + 1))
    if len(rows) > most:
        raise InputError(
            f"the retriever returned more than {most:,} hits for one query and did not stop",
            fix="return at most k documents, best first",
        )
    return rows


def _unordered(result: Any) -> str:
    """Return the fix for a value that looks like a ranking but is not; else empty."""
    if isinstance(result, AbstractSet) and not isinstance(result, KeysView | ItemsView):
        return "return a list, best first: a set has no order"
    if hasattr(result, "columns"):
        return 'return its rows: list(zip(frame["docno"], frame["score"]))'
    if isinstance(result, tuple) and len(result) == 2 and _columns(*result):
        return "return pairs: list(zip(ids, scores))"
    return ""


def _columns(ids: Any, scores: Any) -> bool:
    """Return whether the values are a column of ids and a column of scores, not two hits."""
    if isinstance(ids, list) and isinstance(scores, list):
        whole = not any(isinstance(item, float) for item in ids)
        return whole and bool(scores) and all(isinstance(item, int | float) for item in scores)
    return bool(getattr(ids, "ndim", 0) == getattr(scores, "ndim", 0) == 1)


def _plain_pairs(rows: list[Any]) -> tuple[list[str], list[float]] | None:
    """Return ids and scores of pairs of text and float, the common case; None for other hits."""
    if not all(type(row) is tuple and len(row) == 2 for row in rows):
        return None
    ids, scores = [row[0] for row in rows], [row[1] for row in rows]
    plain = {*map(type, ids)} <= {str} and {*map(type, scores)} <= {float}
    if not plain or "" in ids or not all(map(math.isfinite, scores)):
        return None
    _check_ids(ids)
    return ids, scores


def _scored(rows: list[Any]) -> tuple[list[str], list[float]]:
    ids: list[str] = []
    scores: list[float] = []
    for row in rows:
        name, score = _hit(row)
        ids.append(name)
        if score is not None:
            scores.append(score)
    if scores and len(scores) < len(ids):
        raise InputError(
            f"{len(scores)} of {many(len(ids), 'hit')} {inflect(len(scores), 'has', 'have')} a score",
            fix="give every hit a score, or none",
        )
    return ids, scores


def _hit(row: Any) -> tuple[str, float | None]:
    """Return the id and the score of a hit; None without a score."""
    if isinstance(row, tuple | list) and len(row) == 2:
        return _id(row[0]), _score(row[1])
    score: Any = None
    if not isinstance(row, str | int | bytes):
        score = next((value for key in _SCORES if (value := _part(row, key)) is not None), None)
    return _id(row), None if score is None else _score(score)


def _id(value: Any) -> str:
    if type(value) is str and value:
        _check_ids((value,))
        return value
    if not isinstance(value, str | bytes | int) and not hasattr(value, "dtype"):
        inner = next((part for key in _IDS if (part := _part(value, key)) is not None), None)
        if inner is None:
            raise InputError(f"a hit is {shown(value)}, which has no id", fix=adapter_hint(value) or _SHAPES)
        value = inner
    raw = id_bytes(value, "document id")
    if not raw:
        raise InputError("the id of a hit is empty", fix=_SHAPES)
    if b"\0" in raw:
        id_text(raw, "document id")
    return raw.decode("utf-8", "backslashreplace")


def _part(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)


def _check_ids(ids: Collection[str]) -> None:
    if not are_ids("".join(ids), ids):
        for name in ids:
            id_text(name, "document id")


def _score(value: Any) -> float:
    score = to_float(value)
    if not math.isfinite(score) or isinstance(value, str | bytes | bool):
        raise InputError(
            f"the score of a hit is {shown(value)}, expected a finite number",
            fix="omit hits without a score, or return only ids, best first",
        )
    lost = lost_number(value, RUN)
    if lost is not None:
        raise InputError(lost[0], fix=lost[1])
    return score


def shown(value: Any) -> str:
    """Return a value for a message: its shortened repr without secrets, and its type."""
    text = " ".join(redact(repr(value)).split())
    return f"{text:.60} ({type(value).__name__})"


def relative_id(name: str, base: object) -> str:
    """Return a path or URL relative to a folder; one outside it, or without a folder, is unchanged.

    Example:
        >>> relative_id("/home/me/handbook/loans/renewing.md", "/home/me/handbook")
        'loans/renewing.md'
        >>> relative_id("https://example.org/loans", "https://example.org")
        'loans'
    """
    path, folder = name.replace("\\", "/"), str(base or "").replace("\\", "/").rstrip("/") + "/"
    inside = path.removeprefix(folder) if base else path
    return name if inside == path else inside


def adapter_hint(value: Any) -> str:
    """Return the fix for an object of a known framework; empty for others."""
    modules = (base.__module__.partition(".")[0] for base in type(value).__mro__)
    wrapper = next((_ADAPTERS[module] for module in modules if module in _ADAPTERS), "")
    return f"wrap the retriever: rankgauge.retrievers.{wrapper}(...)" if wrapper else ""
