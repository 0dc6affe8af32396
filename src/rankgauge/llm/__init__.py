"""Clients of language models and embeddings at OpenAI-compatible endpoints.

A failed call is a missing result with a reason (:class:`ModelError`), never a default value.
"""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.llm.chat import ChatModel as ChatModel
    from rankgauge.llm.endpoints import EmbeddingEndpoint as EmbeddingEndpoint
    from rankgauge.llm.replies import (
        ChatRequest as ChatRequest,
        ModelError as ModelError,
        Reply as Reply,
        Usage as Usage,
    )
