"""Collections in a folder or an archive: as BEIR or TREC lay them out, or of plain files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from rankgauge.corpus.loading.loaded_collection import Loaded
from rankgauge.data.qrels import Qrels
from rankgauge.errors import InputError
from rankgauge.formats.archives import Archive
from rankgauge.formats.folders import (
    FileSet,
    documents_in,
    files_in_archive,
    files_in_folder,
    judgments_named,
    queries_in,
    splits_of,
)
from rankgauge.formats.pages import TEXTS
from rankgauge.formats.questions import read_questions
from rankgauge.formats.readers import read_judgments
from rankgauge.formats.texts import Faults, TextRow


def file_set(path: Path) -> FileSet | None:
    """The folder or archive at a path; None for a plain file."""
    if path.is_dir():
        return files_in_folder(path)
    if not path.is_file():
        raise InputError(
            "there is no such file or folder", where=os.fspath(path), fix="check the path"
        )
    name = os.fspath(path)
    return files_in_archive(Archive(name, name)) if path.suffix.lower() == ".zip" else None


def load_folder(
    files: FileSet, *, split: str | None = None, faults: Faults | None = None, judged: bool = True
) -> Loaded:
    """The parts of a collection in one folder or archive."""
    documents, notes = documents_in(files, faults)
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
        queries, grades = read_questions(files.source(asked), documents, faults)
        qrels = None if grades is None else Qrels.of(grades)
    chosen = judgments_named(files, split) if judged else None
    if chosen is not None:
        qrels = Qrels(read_judgments(files.source(chosen)))
        if len(splits_of(files)) > 1 and len(qrels) < len(queries):
            mine = {key: row for key, row in queries.items() if key in qrels}
            notes += (f"{len(mine)} of {len(queries)} queries: those judged in {chosen}",)
            queries = mine
    beside = chosen is None and qrels is not None
    return Loaded(documents, queries, qrels, files.title, notes, beside)


def other_splits(files: FileSet, split: str | None) -> dict[str, Qrels]:
    """The judgments of the splits that were not chosen, by name."""
    chosen = judgments_named(files, split)
    return {
        name: Qrels(read_judgments(files.source(file)))
        for name, file in splits_of(files).items()
        if file != chosen
    }
