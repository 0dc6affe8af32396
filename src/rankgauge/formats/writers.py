"""Which writer a file gets, by its name or by a word; the whole of it is written or nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import numpy as np

from rankgauge.core.files import write_atomically
from rankgauge.core.ids import show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import InputError, UnknownName
from rankgauge.formats.layout import JUDGMENTS, Layout
from rankgauge.formats.lines import Source, source_name
from rankgauge.formats.names import TARGET_FORMATS, packing_of, unpacked
from rankgauge.formats.trec import trec_lines

__all__ = ["refuse_ending", "target_format", "write_table", "written"]

# The ends of names of files to be written.
_SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow",
    ".ipc": "arrow",
}  # fmt: skip
# Names of what is no text: under them nobody would look for lines.
_NOT_WRITTEN = frozenset(
    {
        ".7z", ".avro", ".db", ".duckdb", ".h5", ".hdf5", ".npy", ".npz", ".ods", ".orc", ".pickle",
        ".pkl", ".rar", ".sqlite", ".tar", ".tgz", ".xls", ".xlsx", ".zip",
    }
)  # fmt: skip
# Without any grade these have no place for a query.
_BY_ROWS = tuple(form for form in TARGET_FORMATS if form not in {"json", "rank-eval", "opensearch"})


def target_format(name: str) -> str | None:
    """The format that the name of a file to be written stands for; None if it says nothing."""
    end = os.path.splitext(unpacked(name))[1]  # noqa: PTH122 - a name, and pathlib loads long
    return _SUFFIXES.get(end.lower())


def refuse_ending(target: Source, form: str | None) -> None:
    """Refuse a name that says another kind of file than can be written.

    Args:
        target: The file to be written.
        form: The format that was asked for, if any: but for an archive it may have any name.

    Raises:
        InputError: If its ending is that of an archive, a spreadsheet, a database, ...
    """
    name = source_name(target)
    end = os.path.splitext(unpacked(name))[1].lower()  # noqa: PTH122 - a name
    if end not in _NOT_WRITTEN or (form is not None and end != ".zip"):
        return
    fix = "end it in .csv, .json or .parquet, or say the format: --to (in Python target_format=...)"
    if end == ".zip":
        fix = "only a collection becomes a .zip; .gz, .xz or .zst packs a single file"
    raise InputError(f"files that end in {end} are not written", where=name, fix=fix)


def write_table(
    table: PairTable,
    target: Source,
    layout: Layout,
    tag: str = "",
    *,
    form: str | None = None,
) -> None:
    """Write a file: the whole of it or, if something fails, nothing.

    Args:
        table: What to write.
        target: The path; ``-`` is standard output. ``.gz``, ``.xz``, ``.bz2``, ``.zst`` or
            ``.lz4`` at the end of its name packs it.
        layout: Judgments or run.
        tag: The last column of a run in TREC format.
        form: One of `TARGET_FORMATS`; by the name, else TREC, if left out.

    Raises:
        UnknownName: If there is no such format.
        InputError: If the file cannot be written, or the format cannot hold what is to be written.
        MissingExtra: If a library that it needs is not installed.
    """
    name = source_name(target)
    form = form or (None if target == "-" else target_format(name)) or "trec"
    if form not in TARGET_FORMATS:
        fix = f"choose one of: {', '.join(TARGET_FORMATS)}"
        raise UnknownName(f"no format is called {form!r}", where="format", fix=fix)
    empty = np.flatnonzero(np.diff(table.offsets) == 0)
    if layout is JUDGMENTS and len(empty) and form in _BY_ROWS:
        raise InputError(
            f"query '{show_id(table.queries[int(empty[0])])}' has no judgment, so it has no line",
            where=name,
            fix="drop the query, or write JSON: give a path that ends in .json",
        )
    if form in {"parquet", "arrow"}:
        from rankgauge.formats.parquet_writers import write_columns

        packing = packing_of(name)
        if packing is not None:
            fix = f"leave {packing.suffix} off the name"
            raise InputError(f"{form} is packed inside, column by column", where=name, fix=fix)
        with written(target) as stream:
            write_columns(table, layout, form, stream)
        return
    with written(target) as stream:
        # Not every packer can write lines.
        for chunk in _chunks(table, layout, form, (tag, name)):
            stream.write(chunk)


@contextmanager
def written(target: Source) -> Iterator[BinaryIO]:
    """A stream into a file that is there, whole, when the block ends without an error.

    Args:
        target: The path; ``-`` is standard output, which gets nothing before all of it is made.

    Raises:
        InputError: If the file cannot be written.
        MissingExtra: If the library that packs it is not installed.
    """
    if target == "-":
        import shutil
        import tempfile

        with tempfile.TemporaryFile() as made:
            yield cast("BinaryIO", made)
            made.seek(0)
            shutil.copyfileobj(made, sys.stdout.buffer)
        return
    name = source_name(target)
    packing = packing_of(name)
    try:
        with write_atomically(target) as raw:
            if packing is None:
                yield raw
                return
            from rankgauge.formats.compression import packed

            with packed(raw, packing, name) as stream:
                yield stream
    except InputError as error:
        if error.where:
            raise
        raise InputError(error.what, where=name, fix=error.fix) from None


def _chunks(table: PairTable, layout: Layout, form: str, said: tuple[str, str]) -> Iterator[bytes]:
    tag, name = said
    match form:
        case "trec":
            return trec_lines(table, layout, tag)
        case "csv" | "tsv" | "json" | "jsonl":
            from rankgauge.formats import tables

            if form == "json":
                texts = tables.json_text(table, layout)
            elif form == "jsonl":
                texts = tables.json_lines_text(table, layout)
            else:
                texts = tables.delimited_text(table, layout, form)
            return (text.encode() for text in texts)
        case _:
            from rankgauge.formats.exchange import exchange_text

            return (text.encode() for text in exchange_text(table, layout, form, name))
