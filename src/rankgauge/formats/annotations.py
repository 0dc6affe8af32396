"""Rows of judgments in exports of annotation tools: Label Studio and Argilla."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from rankgauge.errors import FormatError

_ANSWERS = ".responses"
# A question, the judge, and the answer.
_Answer: TypeAlias = tuple[str, Any, Any]


def annotation_rows(items: Iterable[Mapping[str, Any]], name: str = "annotations") -> Iterator[dict[str, Any]]:
    """Yield a row for each annotation: the data of the task, the answers by question, and the ``annotator``.

    Skipped tasks, drafts, and suggestions of models are not annotations.

    Args:
        items: Tasks of Label Studio (``JSON`` or ``JSON_MIN``), or records of Argilla 2
            (``to_json``, or ``to_list``, flattened or not). Other objects are rows themselves.
        name: The name of the file, for messages.

    Raises:
        FormatError: If an item has other parts than these tools write.

    Example:
        >>> task = {
        ...     "data": {"query": "q1", "document": "d1"},
        ...     "annotations": [
        ...         {"completed_by": 7, "result": [{"from_name": "grade", "value": {"rating": 3}}]}
        ...     ],
        ... }
        >>> list(annotation_rows([task]))
        [{'query': 'q1', 'document': 'd1', 'grade': 3, 'annotator': 7}]
    """
    for number, item in enumerate(items, 1):
        try:
            rows = list(_rows_of(item))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FormatError(
                f"record {number} is not as Label Studio or Argilla writes it: {type(error).__name__} {error}"[:200],
                path=name,
                fix="export it again as JSON, or write CSV with a column of annotators",
            ) from None
        yield from rows


def _rows_of(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if isinstance(item.get("annotations"), list) and isinstance(item.get("data"), dict):
        yield from _joined(item["data"], _of_label_studio(item["annotations"]))
    elif isinstance(item.get("responses"), dict) and isinstance(item.get("fields"), dict):
        yield from _joined({**item["fields"], **(item.get("metadata") or {})}, _of_argilla(item["responses"]))
    elif any(key.endswith(_ANSWERS) for key in item):
        yield from _joined({key: value for key, value in item.items() if "." not in key}, _of_flattened(item))
    else:
        yield {key: _single(value) for key, value in item.items()}


def _joined(data: Mapping[str, Any], answers: Iterable[_Answer]) -> Iterator[dict[str, Any]]:
    rows: dict[Any, dict[str, Any]] = defaultdict(dict)
    for question, judge, answer in answers:
        rows[judge] |= {question: _single(answer), "annotator": judge}
    yield from ({**data, **row} for row in rows.values())


def _of_label_studio(annotations: Iterable[Mapping[str, Any]]) -> Iterator[_Answer]:
    for annotation in annotations:
        judge = annotation.get("completed_by")
        judge = judge.get("email") or judge["id"] if isinstance(judge, dict) else judge
        for part in () if annotation.get("was_cancelled") else annotation["result"]:
            # Relations between regions have no name.
            if "from_name" in part:
                yield part["from_name"], judge, part["value"]


def _of_argilla(questions: Mapping[str, Iterable[Mapping[str, Any]]]) -> Iterator[_Answer]:
    for question, responses in questions.items():
        yield from (
            (question, response.get("user_id"), response["value"])
            for response in responses
            if response.get("status") in {None, "submitted"}
        )


def _of_flattened(item: Mapping[str, Any]) -> Iterator[_Answer]:
    for key, values in item.items():
        if key.endswith(_ANSWERS) and values:
            given = zip(item[f"{key}.users"], values, item[f"{key}.status"], strict=True)
            yield from (
                (key.removesuffix(_ANSWERS), judge, value) for judge, value, state in given if state == "submitted"
            )


def _single(value: Any) -> Any:
    """Return the only value in lists and mappings of one: ``[{"rating": 3}]`` is 3."""
    while isinstance(value, list | dict) and len(value) == 1:
        (value,) = value.values() if isinstance(value, dict) else value
    return value
