"""Which writer a file gets, by its name or by a word; the whole of it is written or nothing."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np

from rankgauge.core.ids import show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import InputError, MissingExtra, UnknownName
from rankgauge.formats.layout import JUDGMENTS, Layout
from rankgauge.formats.lines import Source, source_name
from rankgauge.formats.names import TARGET_FORMATS, packing_of, unpacked
from rankgauge.formats.trec import trec_lines

if TYPE_CHECKING:
    from pathlib import Path

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
    import secrets
    from pathlib import Path

    path = Path(target)
    if path.is_file():
        path = path.resolve()  # through a link, to what it points at
    if path.is_dir():
        raise InputError("this is a folder", where=source_name(target), fix="name a file in it")
    # Beside the target, so that the last step is one rename. Pipes and devices are not replaced.
    whole = not path.exists() or path.is_file()
    writable = path.with_name(f".{secrets.token_hex(8)}.part") if whole else path
    try:
        with _begun(writable, source_name(target)) as stream:
            yield stream
        if whole:
            writable.replace(path)
    except MissingExtra:
        raise
    except InputError as error:
        raise InputError(
            error.what, where=error.where or source_name(target), fix=error.fix
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot be written: {reason}",
            where=source_name(target),
            fix="check that the folder is there and may be written to",
        ) from None
    finally:
        if whole:
            with contextlib.suppress(OSError, ValueError):
                writable.unlink(missing_ok=True)


@contextmanager
def _begun(path: Path, name: str) -> Iterator[BinaryIO]:
    """The file itself, packed by what it will be called, on the disk when the block ends."""
    packing = packing_of(name)
    with path.open("wb") as raw:
        if packing is None:
            yield raw
        else:
            from rankgauge.formats.compression import packed

            with packed(raw, packing, name) as stream:
                yield stream
        raw.flush()
        if path.is_file():
            os.fsync(raw.fileno())


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
