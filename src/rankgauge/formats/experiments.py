"""Read datasets and experiments of Phoenix, Langfuse, and LangSmith as flat records.

A dataset has examples: an input, the expected output, and metadata. An experiment has the output of a system for each
example. Values are texts, objects, JSON, or columns such as ``input.question``; each tool has its own names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rankgauge.formats.frames import is_null, listed
from rankgauge.formats.mappings import is_list
from rankgauge.formats.spans import ANSWER, QUESTION, first_of, is_span, json_value, parsed_cell, text_of

_INPUT, _OUTPUT = ("input", "inputs"), ("output", "outputs")
_EXPECTED = ("expectedoutput", "referenceoutput", "reference")
_BESIDE_INPUT = (*_OUTPUT, *_EXPECTED, "metadata")
_ID = ("exampleid", "datasetitemid", "id")
# Fields of examples of a dataset, whose output is the expected one, and of the rows of an experiment.
_OF_DATASET, _OF_EXPERIMENT = ("datasetid", "nodeid"), ("exampleid", "referenceoutput")
# Names of other parts of an expected output; the contexts of an answer have the same names.
_RENAMED = dict.fromkeys(("contexts", "context", "documents", "docs", "passages"), "reference_contexts")


def is_example(row: Mapping[str, Any]) -> bool:
    """Return whether a row is an example of a dataset, with or without outputs of a system, or contains examples."""
    example = next(iter(_examples(row)), row)
    at = _folded(example)
    names = at.keys()
    has_objects = any(isinstance(at.get(name), Mapping) for name in _INPUT) and not names.isdisjoint(_BESIDE_INPUT)
    if has_objects or not (names.isdisjoint(_INPUT) or names.isdisjoint((*_OF_DATASET, *_OF_EXPERIMENT))):
        return not is_span({key: value for key, value in example.items() if key != "runs"})
    return False


def records_of_example(row: Mapping[str, Any], *, answers: bool = True) -> Iterator[dict[str, Any]]:
    """Yield the records of such a row: ``id``, ``question``, ``reference``, ``answer``, and other parts of its objects.

    Args:
        row: A row for which :func:`is_example` is true.
        answers: Whether an output is an answer if the row does not say so; else it is the expected one.
    """
    for example in _examples(row) or [row]:
        yield from _records(_folded(example), answers=answers)


def _records(at: Mapping[str, Any], *, answers: bool) -> Iterator[dict[str, Any]]:
    asked, expected, output = (first_of(at, names) for names in (_INPUT, _EXPECTED, _OUTPUT))
    runs = [_object(run) for run in _list(at.get("runs"))]
    is_dataset = not runs and expected is None and not (answers and at.keys().isdisjoint(_OF_DATASET))
    if runs or is_dataset:
        expected = output if expected is None else expected
    known = {
        **_object(at.get("metadata")),
        **{_RENAMED.get(key, key): value for key, value in _beside(expected, ANSWER)},
        **dict(_beside(asked, QUESTION)),
        "id": None if (own := first_of(at, _ID)) is None else str(own),
        "question": _text(asked, QUESTION),
        "reference": _text(expected, ("reference", *ANSWER)),
    }
    known = {key: value for key, value in known.items() if not is_null(value)}
    is_dataset |= at.keys().isdisjoint((*_OUTPUT, *_OF_EXPERIMENT)) and not runs
    if is_dataset or not answers:
        yield known
        return
    for run in runs or [{"outputs": output}]:
        answer = run.get("outputs")
        system = {"system": str(run.get("session_id"))} if len(runs) > 1 else {}
        yield known | dict(_beside(answer, ANSWER)) | {"answer": _text(answer, ANSWER)} | system


def _examples(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the examples in a page of an API, a dataset, or an experiment; empty for other rows."""
    page = row.get("data", row)
    if isinstance(page, Mapping):
        page = next((page[key] for key in ("examples", "item_results") if is_list(page.get(key))), ())
    return [example for part in _list(page) if (example := _object(part))]


def _folded(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row, and of its example if that is an object of its own, by plain names."""
    at = _columns(row)
    # The SDKs return the example beside the output, or beside the run.
    if own := _columns(_object(at.pop("item", None) or at.pop("example", None))):
        own["referenceoutput"] = first_of(own, (*_EXPECTED, *_OUTPUT))
        own["runs"] = [at.pop("run")] if "run" in at else None
        return {key: value for key, value in own.items() if key not in _OUTPUT} | at
    return at


def _columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row by plain names; columns such as ``input.question`` become an object again."""
    at: dict[str, Any] = {}
    for key, cell in row.items():
        head, dot, name = str(key).partition(".")
        plain, value = head.replace("_", "").lower(), _value(cell)
        if is_null(value) or (dot and value == ""):
            continue
        if dot and plain in {*_INPUT, *_BESIDE_INPUT}:
            part = at.setdefault(plain, {})
            if isinstance(part, dict):
                part[name] = value
        else:
            at[plain + dot + name] = value
    return at


def _value(cell: Any) -> Any:
    """Return an object, a list, or a text, to which older versions of Langfuse add JSON quotes in CSV."""
    text = json_value(cell) if isinstance(cell, str) and cell[:1] + cell[-1:] == '""' else None
    return text if isinstance(text, str) else parsed_cell(cell)


def _list(value: Any) -> list[Any]:
    return listed(value) if is_list(value) else []


def _object(value: Any) -> Mapping[str, Any]:
    """Return a mapping, or the attributes of an object of an SDK; empty for other values."""
    if isinstance(value, Mapping):
        return value
    return {name: part for name, part in getattr(value, "__dict__", {}).items() if not name.startswith("_")}


def _beside(value: Any, names: tuple[str, ...]) -> list[tuple[str, Any]]:
    """Return the parts of an object other than its main text, which has one of these names."""
    return [(key, part) for key, part in _object(value).items() if key not in names]


def _text(value: Any, names: tuple[str, ...]) -> Any:
    """Return the text of an object under one of these names, its last message, or its only text; None without one."""
    if not isinstance(value, Mapping):
        return value
    whole = json.dumps(value, default=str, skipkeys=True)
    text = text_of({"": whole}, "", names)
    texts = [part for part in value.values() if isinstance(part, str)]
    return text if text != whole else texts[0] if len(texts) == 1 else None
