"""Clients of language models and embeddings at OpenAI-compatible endpoints.

A failed call is a missing result with a reason (:class:`ModelError`), never a default value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.llm.chat import ChatModel as ChatModel
    from rankgauge.llm.endpoints import EmbeddingEndpoint as EmbeddingEndpoint
    from rankgauge.llm.replies import (
        ChatRequest as ChatRequest,
        ModelError as ModelError,
        Reply as Reply,
        Usage as Usage,
    )

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "chat": "ChatModel",
        "endpoints": "EmbeddingEndpoint",
        "replies": "ChatRequest ModelError Reply Usage",
    },
)
