"""Judgments of a folder or an archive: which of its files they are, and how they are read."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from rankgauge.core.pair_table import PairTable
from rankgauge.errors import InputError
from rankgauge.formats.archives import Archive
from rankgauge.formats.folders import ArchivePlace, FolderPlace, Place
from rankgauge.formats.layout import JUDGMENTS, RUN, Layout
from rankgauge.formats.names import PACKINGS
from rankgauge.formats.readers import read_stream
from rankgauge.formats.texts import TextSource

__all__ = ["FLAT", "judgments_named", "read_archive", "read_folder", "read_judgments", "splits_of"]

_PACKED = ("", *(packing.suffix for packing in PACKINGS))
_JUDGED = tuple(
    form + pack
    for form in (".tsv", ".txt", ".trec", ".qrels", ".csv", ".jsonl", ".parquet")
    for pack in _PACKED
)
FLAT = tuple(f"qrels{end}" for end in (*_JUDGED, ""))
_FOLDER = "qrels"
_SPLIT = "test"
# What shows that an archive holds a collection.
_TEXTS = ("corpus.", "queries.", "documents.")


def splits_of(place: Place) -> dict[str, str]:
    """The judgments in ``qrels/``: name of the split to name of the file."""
    found = {}
    for name in sorted(place.files):
        path = PurePosixPath(name)
        end = next((end for end in _JUDGED if path.name.endswith(end)), None)
        if path.parent.as_posix() == _FOLDER and end is not None:
            found[path.name.removesuffix(end)] = name
    return found


def judgments_named(place: Place, split: str | None) -> str | None:
    """The file of judgments in a place: of this split, of ``test``, or the only one.

    Raises:
        InputError: If there is no such split, or several and none is called test.
    """
    splits = splits_of(place)
    if split is not None and split not in splits:
        raise InputError(
            f"there are no judgments of a split {split!r}", where=place.name,
            fix=f"there are: {', '.join(splits)}" if splits else f"give qrels/{split}.tsv",
        )  # fmt: skip
    if split is not None or _SPLIT in splits:
        return splits[split or _SPLIT]
    if len(splits) > 1:
        raise InputError(
            f"there are judgments of {len(splits)} splits, and none is called test",
            where=place.name, fix=f"choose one, as split=...: {', '.join(splits)}",
        )  # fmt: skip
    if splits:
        return next(iter(splits.values()))
    return next((name for name in FLAT if name in place.files), None)


def read_judgments(source: TextSource, form: str | None = None) -> PairTable:
    """Judgments from a file or from a member of an archive."""
    with source.open() as stream:
        return read_stream(stream, source.name, JUDGMENTS, form).said(source=source.name)


def read_folder(
    path: Path, layout: Layout, form: str | None = None, split: str | None = None
) -> PairTable:
    """The judgments in a folder of BEIR, or in its folder ``qrels``.

    Raises:
        InputError: If a run is wanted, or there are no judgments, or not of this split.
    """
    if layout is RUN:
        raise InputError("this is a folder", where=str(path), fix="name a file in it")
    whole = path.parent if path.resolve().name == _FOLDER else path
    place = FolderPlace(whole)
    chosen = judgments_named(place, split)
    if chosen is None:
        raise InputError(
            "this is a folder, and there are no judgments in it: neither qrels/test.tsv nor "
            "qrels.txt",
            where=place.name, fix="name a file in it",
        )  # fmt: skip
    return _chosen(place, chosen, form)


def read_archive(
    archive: Archive, layout: Layout, form: str | None = None, split: str | None = None
) -> PairTable:
    """The only file of an archive, or the judgments of the collection in it.

    Raises:
        InputError: If it holds several files, and none can be told to be it.
    """
    sole = archive.sole()
    place = ArchivePlace(archive)
    if sole is not None and split is None:
        shown = f"{archive.name}!{sole}"
        with archive.opened(sole) as stream:
            return read_stream(stream, shown, layout, form).said(source=shown)
    if layout is RUN:
        known = [name for name in place.files if name.startswith(_TEXTS)]
        if known:
            raise InputError(
                f"this is a collection ({', '.join(sorted(known))}): it holds judgments, and no "
                "run",
                where=archive.name, fix="give the run, a file with a score for each document found",
            )  # fmt: skip
        raise archive.several()
    chosen = judgments_named(place, split)
    if chosen is None:
        raise archive.several()
    return _chosen(place, chosen, form)


def _chosen(place: Place, chosen: str, form: str | None) -> PairTable:
    """The judgments of one file, with a word on which it is where there are others."""
    table = read_judgments(place.source(chosen), form)
    splits = {name: file for name, file in splits_of(place).items() if file != chosen}
    if not splits:
        return table.said(f"{place.name}: judgments from {chosen}")
    others = ", ".join(splits)
    return table.said(f"{place.name}: judgments from {chosen}; there are also: {others}")
