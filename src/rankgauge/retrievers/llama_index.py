"""LlamaIndex retrievers."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from rankgauge.core.arguments import choice
from rankgauge.errors import InputError
from rankgauge.retrievers.frameworks import FrameworkRetriever, document_id, ranking_of


class LlamaIndex(FrameworkRetriever):
    """A LlamaIndex retriever.

    It returns nodes, which are documents or chunks; a document occurs once, at the rank of its best
    node. The index is not changed. If the retriever has a ``similarity_top_k`` (by default 2), this
    option is set to `k`. Ties keep the order of the framework. Empty queries have no results and
    are not sent.

    Args:
        retriever: An object with ``retrieve``, such as ``index.as_retriever()``.
        id_key: The metadata field of the document id; default: the id of the source document of the
            node, else the id of the node.
        ids: The unit to rank: ``"document"``, or ``"node"`` for nodes with their own ids.
        depth: The number of nodes to request, if more than `k`: `k` nodes may belong to fewer than
            `k` documents.
        settings: Settings that identify this retriever, such as the name of its model; without
            them, results are not reused.

    Raises:
        InputError: If the object has no ``retrieve``, or options are incompatible.

    Example:
        >>> from types import SimpleNamespace as Object
        >>> from rankgauge import Query
        >>> node = Object(ref_doc_id="d7", node_id="d7-part-1", metadata={})
        >>> retriever = LlamaIndex(Object(retrieve=lambda text: [Object(node=node, score=0.5)]))
        >>> retriever.search([Query("q1", "opening hours")], 10)
        [[('d7', 0.5)]]
    """

    TYPE = "llama-index"
    LIBRARY = "llama-index-core"
    METHODS = ("retrieve",)
    WANTED = "a retriever: index.as_retriever()"

    def __init__(
        self,
        retriever: Any,
        *,
        id_key: str | None = None,
        ids: str = "document",
        depth: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        ids = choice("kind of ids", ids, ("document", "node"))
        if ids == "node" and id_key is not None:
            raise InputError(
                "id_key names documents, but nodes are requested", where="LlamaIndex", fix='omit id_key, or ids="node"'
            )
        super().__init__(retriever, settings=settings, options={"id_key": id_key, "ids": ids}, depth=depth)
        self._id_key = id_key
        self._ids = ids

    def _with_depth(self, depth: int) -> Any:
        found = self._source
        if hasattr(found, "similarity_top_k") and found.similarity_top_k != depth:
            # Copy the retriever rather than change the caller's object.
            found = copy.copy(found)
            found.similarity_top_k = depth
        return found

    def _ranking(self, asked: Any, text: str, depth: int, k: int) -> list[Any]:  # noqa: ARG002
        return ranking_of([(self._id(hit.node), hit.score) for hit in asked.retrieve(text)], k)

    def _id(self, node: Any) -> str:
        if self._ids == "node":
            return str(node.node_id)
        own = getattr(node, "ref_doc_id", None) or node.node_id
        return document_id(own, node.metadata, self._id_key, adapter="LlamaIndex")
