"""Loading of collections: folders, archives, other libraries -> texts and judgments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankgauge.corpus.loading.folders import file_set, load_folder
from rankgauge.corpus.loading.libraries import load_hub, load_ir_datasets, load_mteb, rows_reader
from rankgauge.corpus.loading.loaded_collection import Loaded
from rankgauge.data.qrels import Qrels
from rankgauge.errors import InputError
from rankgauge.formats.questions import read_questions
from rankgauge.formats.texts import Faults, TextReader, TextSource, kept

__all__ = ["Loaded", "load"]

_LIBRARIES = {"ir_datasets": load_ir_datasets, "hf": load_hub, "mteb": load_mteb}
_FIX = (
    "give a folder, a .zip, a file of documents, ir_datasets:NAME, hf:NAME, mteb:NAME, or an "
    "object of these libraries"
)


def load(
    source: Any = None,
    *,
    documents: Any = None,
    queries: Any = None,
    qrels: Any = None,
    split: str | None = None,
    faults: Faults | None = None,
    judged: bool = True,
) -> Loaded:
    """Load a collection from any supported source; named parts replace its own."""
    found = _load(source, split, faults, judged=judged)
    if documents is not None:
        found = replace(found, documents=kept(_reader(documents, "documents"), faults))
    if queries is not None:
        asked, grades = _queries(queries, found, faults)
        # Judgments of other queries would be of no use.
        found = replace(found, queries=asked, qrels=grades)
    if qrels is not None:
        found = replace(found, qrels=Qrels.of(qrels))
    return found


def _load(source: Any, split: str | None, faults: Faults | None, *, judged: bool) -> Loaded:
    if source is None:
        return Loaded()
    if isinstance(source, str) and source.partition(":")[0] in _LIBRARIES and ":" in source:
        prefix, _, name = source.partition(":")
        return _LIBRARIES[prefix](name, split, faults)
    if isinstance(source, str | os.PathLike):
        return _from_path(source, split, faults, judged=judged)
    return _from_object(source, split, faults)


def _from_path(source: Any, split: str | None, faults: Faults | None, *, judged: bool) -> Loaded:
    path = Path(source)
    files = None if source == "-" else file_set(path)
    if files is not None:
        return load_folder(files, split=split, faults=faults, judged=judged)
    texts = kept(TextReader(TextSource.of(source)), faults)
    return Loaded(texts, name="collection" if source == "-" else path.name.split(".")[0])


def _from_object(source: Any, split: str | None, faults: Faults | None) -> Loaded:
    library = type(source).__module__.partition(".")[0]
    if hasattr(source, "docs_iter") or hasattr(source, "queries_iter"):
        return load_ir_datasets(source, split, faults)
    if library == "datasets" or (isinstance(source, Mapping) and "corpus" in source):
        return load_hub(source, split, faults)
    if hasattr(source, "metadata") and hasattr(source, "load_data"):
        return load_mteb(source, split, faults)
    raise InputError(
        f"got {type(source).__name__}, which is not a collection", where="collection", fix=_FIX
    )


def _reader(given: Any, what: str) -> Any:
    if isinstance(given, str | os.PathLike):
        return TextReader(TextSource.of(given))
    return rows_reader(given, what)


def _queries(given: Any, found: Loaded, faults: Faults | None) -> tuple[Any, Qrels | None]:
    if not isinstance(given, str | os.PathLike):
        return kept(_reader(given, "queries"), faults), None if found.beside else found.qrels
    asked, grades = read_questions(TextSource.of(given), found.documents, faults)
    if grades is None and not found.beside:
        return asked, found.qrels
    return asked, None if grades is None else Qrels.of(grades)
