"""Retrievers of LlamaIndex."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers.frameworks import depth_of, named, options_told, ranking

__all__ = ["LlamaIndex"]

_IDS = ("document", "node")


class LlamaIndex:
    """A retriever of LlamaIndex, asked as one of ours.

    It returns nodes, which are documents or chunks of them; a document stands once, at the place of
    its best node. The index is as you made it. Where the retriever has a ``similarity_top_k``
    (which is 2 if nobody says), it is asked for `k`. Equal scores stand as the framework has them.
    An empty query finds nothing; it is not passed on, for a vector of nothing is an error there.

    Args:
        retriever: Anything with ``retrieve``, such as ``index.as_retriever()``.
        id_key: Where metadata hold the document id. Without it, the id of the document that a node
            was cut from, else the id of the node.
        ids: What is ranked: ``"document"``, or ``"node"`` for nodes by their own ids.
        depth: How many nodes to ask for, if more than `k`: fewer than `k` documents may come of
            `k` nodes.
        settings: What tells this one from others, such as the name of its model. Without them its
            results are not reused.

    Raises:
        InputError: If it has no ``retrieve``, or options do not go together.

    Example:
        >>> from types import SimpleNamespace as Object
        >>> node = Object(ref_doc_id="d7", node_id="d7-part-1", metadata={})
        >>> retriever = LlamaIndex(Object(retrieve=lambda text: [Object(node=node, score=0.5)]))
        >>> retriever.search([Query("q1", "opening hours")], 10)
        [[('d7', 0.5)]]
    """

    def __init__(
        self,
        retriever: Any,
        *,
        id_key: str | None = None,
        ids: str = "document",
        depth: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        if not hasattr(retriever, "retrieve"):
            raise InputError(
                f"got {type(retriever).__name__}, which has no retrieve()", where="LlamaIndex",
                fix="give a retriever: index.as_retriever()",
            )  # fmt: skip
        if ids not in _IDS:
            raise InputError(
                f"ids={ids!r:.60} is not possible", where="LlamaIndex",
                fix='choose "document" or "node"',
            )  # fmt: skip
        if ids == "node" and id_key is not None:
            raise InputError(
                "id_key names documents, and nodes are wanted", where="LlamaIndex",
                fix='leave out id_key, or ids="node"',
            )  # fmt: skip
        self._retriever = retriever
        self._id_key = id_key
        self._ids = ids
        self._depth = depth_of(depth, adapter="LlamaIndex")
        self.settings = options_told(
            "llama-index", settings, "llama-index-core",
            {"id_key": id_key, "ids": ids, "depth": depth},
        )  # fmt: skip

    def index(self, documents: Iterable[Document]) -> None:
        """Nothing: the index is as you made it."""

    def search(self, queries: Sequence[Query], k: int) -> list[Any]:
        """One ranking for each query.

        Raises:
            InputError: If a node has no id.
        """
        depth = max(k, self._depth or 0)
        asked = self._retriever
        if hasattr(asked, "similarity_top_k") and asked.similarity_top_k != depth:
            # A copy: the one that was given belongs to somebody else.
            asked = copy.copy(asked)
            asked.similarity_top_k = depth
        return [
            ranking([(self._id(hit.node), hit.score) for hit in asked.retrieve(query.text)], k)
            if query.text.strip()
            else []
            for query in queries
        ]

    def _id(self, node: Any) -> str:
        if self._ids == "node":
            return str(node.node_id)
        own = getattr(node, "ref_doc_id", None) or node.node_id
        return named(own, node.metadata, self._id_key, adapter="LlamaIndex")
