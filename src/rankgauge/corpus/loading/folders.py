"""Collections in a folder or an archive: as BEIR or TREC lay them out, or of plain files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from rankgauge.corpus.loading.parts import Loaded
from rankgauge.data.qrels import Qrels
from rankgauge.errors import InputError
from rankgauge.formats.folders import (
    ArchivePlace,
    FolderPlace,
    Place,
    documents_in,
    judgments_named,
    queries_in,
    splits_of,
)
from rankgauge.formats.pages import TEXTS
from rankgauge.formats.questions import read_questions
from rankgauge.formats.readers import read_judgments
from rankgauge.formats.texts import Faults, TextRow

__all__ = ["load_folder", "other_splits", "place_of"]


def place_of(path: Path) -> Place | None:
    """The folder or archive at a path; None for a plain file.

    Raises:
        InputError: If there is nothing.
    """
    if path.is_dir():
        return FolderPlace(path)
    if not path.is_file():
        raise InputError(
            "there is no such file or folder", where=os.fspath(path), fix="check the path"
        )
    return ArchivePlace.of(path) if path.suffix.lower() == ".zip" else None


def load_folder(
    place: Place, *, split: str | None = None, faults: Faults | None = None, judged: bool = True
) -> Loaded:
    """The parts of a collection that lie in one place.

    Args:
        place: A folder or an archive.
        split: Which judgments of ``qrels/``; ``test``, or the only ones, if left out.
        faults: Where given, lines and files that do not fit are counted there and passed over.
        judged: Whether judgments in files of their own are read.

    Raises:
        InputError: If no part is there, or the judgments of this split are not.
        FormatError: With the first line that does not fit.
    """
    documents, notes = documents_in(place, faults)
    asked = queries_in(place)
    if asked is None and not documents:
        if any(PurePosixPath(name).suffix.lower() in TEXTS for name in place.files):
            raise InputError(
                "files of text are not read from an archive", where=place.name,
                fix="unpack it, and name the folder",
            )  # fmt: skip
        raise InputError(
            "there are neither documents nor queries", where=place.name,
            fix="wanted corpus.jsonl and queries.jsonl (.gz, .tsv, .csv), documents and topics of "
            "TREC, or files of text (.md, .txt)",
        )  # fmt: skip
    queries: Mapping[str, TextRow] = {}
    qrels = None
    if asked is not None:
        queries, grades = read_questions(place.source(asked), documents, faults)
        qrels = None if grades is None else Qrels.of(grades)
    chosen = judgments_named(place, split) if judged else None
    if chosen is not None:
        qrels = Qrels(read_judgments(place.source(chosen)))
        if len(splits_of(place)) > 1 and len(qrels) < len(queries):
            mine = {key: row for key, row in queries.items() if key in qrels}
            notes += (f"{len(mine)} of {len(queries)} queries: those that are judged in {chosen}",)
            queries = mine
    beside = chosen is None and qrels is not None
    return Loaded(documents, queries, qrels, place.title, notes, beside)


def other_splits(place: Place, split: str | None) -> dict[str, Qrels]:
    """The judgments of the splits that were not chosen, by name."""
    chosen = judgments_named(place, split)
    return {
        name: Qrels(read_judgments(place.source(file)))
        for name, file in splits_of(place).items()
        if file != chosen
    }
