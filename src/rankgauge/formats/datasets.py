"""Read judgments from datasets of other libraries: ir_datasets and Hugging Face."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rankgauge.core.libraries import library
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout
from rankgauge.formats.mappings import from_rows

COLLECTION = "this collection"

TEST = "test"
_T = TypeVar("_T")
# Names of the part with judgments.
JUDGED = ("qrels", "default", "relevant_docs")
FETCHED = "check the network, or put the file where ir_datasets looks for it"


def read_dataset(source: str, layout: Layout, split: str | None = None) -> PairTable:
    """Read the judgments, and nothing else, of a dataset: ``ir_datasets:NAME``, ``hf:NAME``."""
    prefix, _, name = source.partition(":")
    if layout is RUN:
        raise InputError(
            "this is a dataset, which has judgments but no run",
            where=source,
            fix="pass the run: a file with a score for each retrieved document",
        )
    if prefix == "ir_datasets":
        table = from_rows(ir_rows(source, split), JUDGMENTS)
        text = "its judgments"
    else:
        hub = library("datasets", extra="huggingface", of=COLLECTION)
        configs = got_from(lambda: hub.get_dataset_config_names(name), source, "check the name")
        judged = hub_judgments(name, configs)
        table = judged_rows(one_split(judged, split, source, [TEST]))
        several = splits_in(judged)
        text = f"its judgments{f' of the split {split or TEST}' if len(several) > 1 else ''}"
        others = [other for other in several if other != (split or TEST)]
        text += f"; there are also: {', '.join(others)}" if len(several) > 1 else ""
    return table.with_notes(f"{source}: {text}", source=source)


def got_from(get: Callable[[], _T], what: str, fix: str) -> _T:
    """Call `get` and convert its exceptions to an InputError."""
    try:
        return get()
    except RankgaugeError:
        raise
    except (KeyError, ValueError, OSError, RuntimeError) as error:
        message = f"{type(error).__name__}: {error}".split("\n")[0][:300]
        raise InputError(f"cannot be loaded: {message}", where=what, fix=fix) from error


def ir_dataset(name: str, split: str | None) -> Any:
    """Load a dataset of ir_datasets."""
    no_split(name, split)
    datasets = library("ir_datasets", extra="ir-datasets", of=COLLECTION)
    return got_from(lambda: datasets.load(name), f"ir_datasets:{name}", "choose a name from https://ir-datasets.com")


def no_split(name: str, split: str | None) -> None:
    """Refuse a split for ir_datasets, where it is part of the name."""
    if split is not None:
        raise InputError(
            "ir_datasets has splits in the names of its collections",
            where=f"split={split!r}",
            fix=f"omit split, and use the name ir_datasets:{name or 'NAME'}/{split}",
        )


def ir_rows(source: str, split: str | None = None) -> list[Any]:
    """Return the judgments of a dataset of ir_datasets, with all their columns."""
    data = ir_dataset(source.partition(":")[2], split)
    if not hasattr(data, "qrels_iter"):
        raise InputError(
            "there are no judgments in this dataset",
            where=source,
            fix="choose a part with judgments, listed at https://ir-datasets.com",
        )
    return got_from(lambda: list(data.qrels_iter()), source, FETCHED)


def hub_judgments(name: str, configs: Sequence[str]) -> Any:
    """Load the judgments of a Hugging Face repository with these configurations.

    They are one of its configurations, or in a sibling repository whose name ends in ``-qrels``.
    """
    hub = library("datasets", extra="huggingface", of=COLLECTION)
    fix = "check the name, and that it has judgments"
    part = next((part for part in JUDGED if part in configs), None)
    if part is None and "corpus" not in configs and len(configs) == 1:
        part = configs[0]
    if part is not None:
        return got_from(lambda: hub.load_dataset(name, part), f"hf:{name}", fix)
    beside = f"{name}-qrels"
    return got_from(lambda: hub.load_dataset(beside), f"hf:{beside}", fix)


def splits_in(data: Any) -> tuple[str, ...]:
    """Return the splits of a DatasetDict; empty for a dataset or a plain mapping of judgments."""
    return tuple(data) if type(data).__module__.startswith("datasets") and isinstance(data, Mapping) else ()


def one_split(data: Any, split: str | None, where: str, usual: Sequence[str | None]) -> Any:
    """Return the named split of a DatasetDict, or else the first usual one or the only one."""
    splits = splits_in(data)
    if not splits:
        return data
    if split is None:
        split = next((name for name in usual if name in splits), None)
        split = splits[0] if split is None and len(splits) == 1 else split
    if split not in splits:
        raise InputError(
            f"it has several splits: {', '.join(splits)}"
            if split is None
            else f"there is no split {split!r}, only: {', '.join(splits)}",
            where=where,
            fix=f"choose one: split={splits[0]!r}",
        )
    return data[split]


def judged_rows(data: Any) -> PairTable:
    """Convert a Hugging Face dataset of judgments to a table."""
    names = [
        next((name for name in wanted if name in data.column_names), None)
        for wanted in (
            ("query-id", "query_id", "qid"),
            ("corpus-id", "corpus_id", "doc_id", "docid"),
            ("score", "relevance", "grade", "label"),
        )
    ]
    if None in names:
        raise InputError(
            f"the columns are {', '.join(data.column_names)}",
            where="judgments",
            fix="name the columns query-id, corpus-id, score",
        )
    query, doc, grade = names
    # Some datasets have ids as numbers in one part and as text in another.
    return from_rows(((str(row[query]), str(row[doc]), row[grade]) for row in data), JUDGMENTS)
