"""Haystack pipelines and components."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from rankgauge.errors import InputError
from rankgauge.retrievers.frameworks import FrameworkRetriever, document_id, ranking_of


class Haystack(FrameworkRetriever):
    """A Haystack pipeline or component as a retriever.

    The document store is not changed. The order of the documents is the ranking; their scores are
    kept if they descend. Ties keep the order of the framework. Empty queries have no results and
    are not sent, because many components fail on them.

    Args:
        pipeline: A ``Pipeline``, or a component with ``run(query=...)`` such as
            ``InMemoryBM25Retriever``.
        input: The input for the query text: ``"component.input"``, or a list of several, as for a
            hybrid pipeline. For a component, the name of its input.
        output: The output that contains the documents: ``"component.documents"``. For a component,
            the name of its output.
        top_k: The input for `k`, such as ``"retriever.top_k"``, or a list of several. Default for a
            component: its input ``top_k``, if present. Without such an input, the default number of
            documents is retrieved and truncated to `k`.
        id_key: The field of ``meta`` that contains the document id; default: the id of the
            document.
        depth: The number of hits to request, if more than `k`: if hits are chunks with their
            document id in `id_key`, `k` chunks may belong to fewer than `k` documents.
        settings: Settings that identify this retriever; without them, results are not reused.

    Raises:
        InputError: If the object has no ``run``, or a path is invalid.

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
        input: str | Sequence[str] | None = None,  # noqa: A002 - Haystack's name
        output: str | None = None,
        top_k: str | Sequence[str] | None = None,
        id_key: str | None = None,
        depth: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        # Only a pipeline has named components.
        self._many = hasattr(pipeline, "add_component")
        run = getattr(pipeline, "run", None)
        if not self._many and top_k is None and _has_parameter(run, "top_k"):
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
            last = wrong[-1] or {"input": "query", "output": "documents"}.get(name, name)
            example = f"retriever.{last}" if self._many else last
            raise InputError(
                f"{name}={'.'.join(wrong)!r} is not the name of "
                f"{'an input or output of a component' if self._many else 'an input or output'}",
                where="Haystack",
                fix=f'write {name}="{example}"',
            )
        return paths

    def _ranking(self, asked: Any, text: str, depth: int, k: int) -> list[Any]:  # noqa: ARG002
        rows = (
            (document_id(hit.id, hit.meta, self._id_key, adapter="Haystack"), hit.score)
            for hit in self._documents(text, depth)
        )
        return ranking_of(rows, k)

    def _documents(self, text: str, depth: int) -> Any:
        values = [*((path, text) for path in self._inputs), *((path, depth) for path in self._top_k)]
        if not self._many:
            found = self._source.run(**{name: value for (name,), value in values})
            return self._output_at(found, self._output)
        data: dict[str, dict[str, Any]] = {}
        for (component, name), value in values:
            data.setdefault(component, {})[name] = value
        # Outputs that feed another component are omitted unless requested.
        found = self._source.run(data, include_outputs_from={self._output[0]})
        return self._output_at(found, self._output)

    @staticmethod
    def _output_at(found: Any, path: Sequence[str]) -> Any:
        for name in path:
            if not isinstance(found, Mapping) or name not in found:
                there = ", ".join(found) if isinstance(found, Mapping) else type(found).__name__
                raise InputError(
                    f"there is no output {'.'.join(path)!r}; found: {there or 'nothing'}",
                    where="Haystack",
                    fix='write output="component.documents"',
                )
            found = found[name]
        return found


def _has_parameter(call: Any, name: str) -> bool:
    try:
        return name in inspect.signature(call).parameters
    except (TypeError, ValueError):  # some callables written in C have no signature
        return False
