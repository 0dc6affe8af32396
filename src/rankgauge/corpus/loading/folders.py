"""Collections in a folder or an archive: as BEIR or TREC lay them out, or of plain files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from rankgauge.corpus.loading.parts import Loaded
from rankgauge.corpus.loading.plain import TEXTS, PageReader, pages_of
from rankgauge.corpus.loading.questions import read_questions
from rankgauge.data.qrels import Qrels
from rankgauge.errors import InputError
from rankgauge.formats.archives import Archive
from rankgauge.formats.folders import (
    FLAT,
    FileSet,
    files_in_archive,
    files_in_folder,
    judgments_named,
    splits_of,
)
from rankgauge.formats.readers import read_judgments
from rankgauge.formats.registry import PACKINGS
from rankgauge.formats.texts import Faults, TextReader, TextRow, kept

__all__ = [
    "documents_in",
    "file_set",
    "load_folder",
    "other_splits",
    "queries_in",
]

_PACKED = ("", *(packing.suffix for packing in PACKINGS))
_ENDINGS = (
    *(form + pack for form in (".jsonl", ".tsv", ".csv") for pack in _PACKED), ".ndjson",
)  # fmt: skip
_MARKED = tuple(form + pack for form in (".sgml", ".xml", ".trec") for pack in _PACKED)
_PLAIN = tuple(f".txt{pack}" for pack in _PACKED)
_DOCUMENTS = (
    *(f"{stem}{end}" for stem in ("corpus", "documents", "docs", "collection") for end in _ENDINGS),
    *(f"{stem}{end}" for stem in ("corpus", "documents", "docs") for end in _MARKED),
)
_QUERIES = (
    *(f"{stem}{end}" for stem in ("queries", "questions", "topics") for end in _ENDINGS),
    *(f"topics{end}" for end in (*_MARKED, *_PLAIN)),
)


def file_set(path: Path) -> FileSet | None:
    """The folder or archive at a path; None for a plain file.

    Raises:
        InputError: If there is nothing.
    """
    if path.is_dir():
        return files_in_folder(path)
    if not path.is_file():
        raise InputError(
            "there is no such file or folder", where=os.fspath(path), fix="check the path"
        )
    name = os.fspath(path)
    return files_in_archive(Archive(name, name)) if path.suffix.lower() == ".zip" else None


def documents_in(files: FileSet) -> str | None:
    """The name of the file of documents, if there is one."""
    return next((name for name in _DOCUMENTS if name in files.names), None)


def queries_in(files: FileSet) -> str | None:
    """The name of the file of queries, if there is one."""
    return next((name for name in _QUERIES if name in files.names), None)


def load_folder(
    files: FileSet, *, split: str | None = None, faults: Faults | None = None
) -> Loaded:
    """The parts of a collection in one folder or archive.

    Args:
        files: Those of a folder or an archive.
        split: Which judgments of ``qrels/``; ``test``, or the only ones, if left out.
        faults: Where given, lines and files that do not fit are counted there and passed over.

    Raises:
        InputError: If no part is there, or the judgments of this split are not.
        FormatError: With the first line that does not fit.
    """
    documents, notes = _documents(files, faults)
    asked = queries_in(files)
    if asked is None and not documents:
        if any(PurePosixPath(name).suffix.lower() in TEXTS for name in files.names):
            raise InputError(
                "files of text are not read from an archive", where=files.name,
                fix="unpack it, and name the folder",
            )  # fmt: skip
        raise InputError(
            "there are neither documents nor queries", where=files.name,
            fix="wanted corpus.jsonl and queries.jsonl (.gz, .tsv, .csv), documents and topics of "
            "TREC, or files of text (.md, .txt)",
        )  # fmt: skip
    queries: Mapping[str, TextRow] = {}
    qrels = None
    if asked is not None:
        queries, qrels = read_questions(files.source(asked), documents, faults)
    chosen = judgments_named(files, split)
    if chosen is not None:
        qrels = Qrels(read_judgments(files.source(chosen)))
        if len(splits_of(files)) > 1 and len(qrels) < len(queries):
            mine = {key: row for key, row in queries.items() if key in qrels}
            notes += (f"{len(mine)} of {len(queries)} queries: those that are judged in {chosen}",)
            queries = mine
    beside = chosen is None and qrels is not None
    return Loaded(documents, queries, qrels, files.title, notes, beside)


def _documents(
    files: FileSet, faults: Faults | None
) -> tuple[Mapping[str, TextRow], tuple[str, ...]]:
    found = documents_in(files)
    if found is not None:
        return kept(TextReader(files.source(found)), faults), ()
    if files.folder is None:
        return {}, ()
    pages, others = pages_of(files.folder, {*_QUERIES, *FLAT})
    notes: tuple[str, ...] = ()
    if pages and others:
        kinds = ", ".join(sorted({PurePosixPath(name).suffix or name for name in others})[:5])
        notes = (f"{len(others)} files that are no text were passed over: {kinds}",)
    return (kept(PageReader(files.folder, pages), faults) if pages else {}), notes


def other_splits(files: FileSet, split: str | None) -> dict[str, Qrels]:
    """The judgments of the splits that were not chosen, by name."""
    chosen = judgments_named(files, split)
    return {
        name: Qrels(read_judgments(files.source(file)))
        for name, file in splits_of(files).items()
        if file != chosen
    }
