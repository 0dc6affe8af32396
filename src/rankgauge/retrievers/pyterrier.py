"""PyTerrier transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankgauge.core.libraries import library
from rankgauge.corpus.collection import Query
from rankgauge.errors import InputError
from rankgauge.retrievers.frameworks import FrameworkRetriever


class PyTerrier(FrameworkRetriever):
    """A PyTerrier transformer or pipeline as a retriever.

    It receives a batch of queries as a data frame of ``qid`` and ``query``, and returns a frame of
    ``qid``, ``docno``, and ``score``. The existing index is used. Ties are broken by the column
    ``rank`` if present, else by the order of the rows. The transformer returns its configured
    number of documents (usually 1000), truncated to `k`.

    Query texts are passed unchanged. In Terrier's query language, quotes, brackets, ``+``, ``-``,
    ``^``, and ``:`` have a meaning, and many ordinary texts are invalid; put
    ``pt.rewrite.tokenise()`` in front of its retrievers. Empty queries have no results and are not
    passed on.

    Args:
        transformer: An object with ``transform``, such as ``pt.terrier.Retriever(index)`` or a
            pipeline.
        settings: Settings that identify this retriever; without them, results are not reused.

    Raises:
        InputError: If the object has no ``transform``.
        MissingExtra: If pandas is not installed.

    Example:
        >>> class Longest:
        ...     def transform(self, queries):
        ...         return queries.assign(docno="d7", score=0.5)
        >>> PyTerrier(Longest()).search([Query("q1", "opening hours")], 10)
        [[('d7', 0.5)]]
    """

    TYPE = "pyterrier"
    LIBRARY = "python-terrier"
    METHODS = ("transform",)
    WANTED = "a transformer, such as pt.terrier.Retriever(index)"

    def __init__(self, transformer: Any, *, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(transformer, settings=settings, options={})
        self._frame = library("pandas", extra="pyterrier", of="PyTerrier").DataFrame

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        """Return one ranking per query.

        Raises:
            InputError: If the result lacks a column, or contains an unknown query.
        """
        # Numbers as ids: a query may occur twice, and its id may be any text.
        numbers = [str(number) for number, query in enumerate(queries) if query.text.strip()]
        if not numbers:
            return [[] for _ in queries]
        texts = [queries[int(number)].text for number in numbers]
        found = self._source.transform(self._frame({"qid": numbers, "query": texts}))
        columns = list(getattr(found, "columns", ()))
        if not len(found):
            return [[] for _ in queries]
        missing = {"qid", "docno", "score"} - set(columns)
        if missing:
            raise InputError(
                f"the transformer returned no {', '.join(sorted(missing))}; columns: "
                f"{', '.join(map(str, columns)) or 'none'}",
                where="PyTerrier",
                fix="pass a transformer that retrieves documents for queries",
            )
        places = found["rank"].tolist() if "rank" in columns else range(len(found))
        rows: dict[str, list[tuple[float, float, str]]] = {number: [] for number in numbers}
        scored = zip(found["qid"].tolist(), found["docno"].tolist(), found["score"].tolist(), places, strict=True)
        for number, name, score, place in scored:
            if str(number) not in rows:
                raise InputError(
                    f"the transformer returned an unknown query: qid {number!r}",
                    where="PyTerrier",
                    fix="keep the qid of each query",
                )
            rows[str(number)].append((-float(score), place, str(name)))
        return [_best_places(rows.get(str(number), []), k) for number in range(len(queries))]


def _best_places(rows: list[tuple[float, float, str]], k: int) -> list[tuple[str, float]]:
    scores: dict[str, float] = {}
    for worse, _, name in sorted(rows):
        scores.setdefault(name, -worse)
    return list(scores.items())[:k]
