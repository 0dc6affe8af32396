"""Pipelines and retrievers of Haystack."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from rankgauge.errors import InputError
from rankgauge.retrievers.frameworks import FrameworkRetriever, document_id, ranking_of


class Haystack(FrameworkRetriever):
    """A Haystack pipeline or component as a retriever.

    The document store is not changed. The order of the documents is the ranking; their scores are
    kept if they descend. Ties keep the order of the framework. An empty query finds nothing, and is
    not sent, because many components fail on it.

    Args:
        pipeline: A ``Pipeline``, or a component with ``run(query=...)`` such as
            ``InMemoryBM25Retriever``.
        input: The input for the text of a query: ``"component.input"``; a list if there are
            several, as for a hybrid pipeline. For a component, the name of its input.
        output: The output with the documents: ``"component.documents"``. For a component, the name
            of its output.
        top_k: The input for `k`, such as ``"retriever.top_k"``; a list if there are several. For a
            component ``top_k``, if it has one. Otherwise the pipeline returns its default number,
            truncated to `k`.
        id_key: The field of ``meta`` with the document id; default: the id of the document.
        depth: How many to request, if more than `k`: if documents are chunks with the id of their
            document in `id_key`, `k` chunks may have fewer than `k` documents.
        settings: Settings that identify this retriever. Without them, results are not reused.

    Raises:
        InputError: If the pipeline cannot be run, or a path does not have two names.

    Example:
        >>> from rankgauge import Query
        >>> class Retriever:
        ...     def run(self, query, top_k=10):
        ...         return {"documents": [Found()][:top_k]}
        >>> class Found:
        ...     id, meta, score = "d7", {}, 0.5
        >>> Haystack(Retriever()).search([Query("q1", "opening hours")], 10)
        [[('d7', 0.5)]]
    """

    TYPE = "haystack"
    LIBRARY = "haystack-ai"
    METHODS = ("run",)
    WANTED = "a pipeline, or a component such as InMemoryBM25Retriever"

    def __init__(
        self,
        pipeline: Any,
        *,
        input: str | Sequence[str] | None = None,  # noqa: A002 - what Haystack calls it
        output: str | None = None,
        top_k: str | Sequence[str] | None = None,
        id_key: str | None = None,
        depth: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        # Only a pipeline has components that are called by name.
        self._many = hasattr(pipeline, "add_component")
        run = getattr(pipeline, "run", None)
        if not self._many and top_k is None and _takes(run, "top_k"):
            top_k = "top_k"
        self._inputs = self._paths("input", input or ("retriever.query" if self._many else "query"))
        self._top_k = self._paths("top_k", top_k or ())
        default = "retriever.documents" if self._many else "documents"
        (self._output,) = self._paths("output", output or default)
        self._id_key = id_key
        options = {
            "input": [".".join(path) for path in self._inputs],
            "output": ".".join(self._output),
            "top_k": [".".join(path) for path in self._top_k],
            "id_key": id_key,
        }
        super().__init__(pipeline, settings=settings, options=options, depth=depth)

    def _paths(self, name: str, given: str | Sequence[str]) -> list[tuple[str, ...]]:
        paths = [tuple(path.split(".")) for path in ([given] if isinstance(given, str) else given)]
        wanted = 2 if self._many else 1
        wrong = next((path for path in paths if len(path) != wanted or not all(path)), None)
        if wrong is not None:
            example = f"retriever.{wrong[-1]}" if self._many else wrong[-1]
            raise InputError(
                f"{name}={'.'.join(wrong)!r} is not a path to "
                f"{'a component of the pipeline' if self._many else 'what a component has'}",
                where="Haystack", fix=f'write {name}="{example}"',
            )  # fmt: skip
        return paths

    def _ranking(self, asked: Any, text: str, depth: int, k: int) -> list[Any]:  # noqa: ARG002
        rows = (
            (document_id(hit.id, hit.meta, self._id_key, adapter="Haystack"), hit.score)
            for hit in self._documents(text, depth)
        )
        return ranking_of(rows, k)

    def _documents(self, text: str, depth: int) -> Any:
        values = [
            *((path, text) for path in self._inputs),
            *((path, depth) for path in self._top_k),
        ]
        if not self._many:
            found = self._source.run(**{name: value for (name,), value in values})
            return self._taken(found, self._output)
        data: dict[str, dict[str, Any]] = {}
        for (component, name), value in values:
            data.setdefault(component, {})[name] = value
        # Outputs that feed another component are dropped unless they are asked for.
        found = self._source.run(data, include_outputs_from={self._output[0]})
        return self._taken(found, self._output)

    @staticmethod
    def _taken(found: Any, path: Sequence[str]) -> Any:
        for name in path:
            if not isinstance(found, Mapping) or name not in found:
                there = ", ".join(found) if isinstance(found, Mapping) else type(found).__name__
                raise InputError(
                    f"there is no output {'.'.join(path)!r}; found: {there or 'nothing'}",
                    where="Haystack", fix='write output="component.documents"',
                )  # fmt: skip
            found = found[name]
        return found


def _takes(call: Any, name: str) -> bool:
    try:
        return name in inspect.signature(call).parameters
    except (TypeError, ValueError):  # some that are written in C do not say
        return False
