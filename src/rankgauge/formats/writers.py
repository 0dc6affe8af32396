"""Write judgments, runs, and collections atomically."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from rankgauge.core.arguments import option
from rankgauge.core.files import write_atomically
from rankgauge.core.ids import show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import InputError
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout
from rankgauge.formats.lines import Source, source_name
from rankgauge.formats.registry import (
    TARGET_FORMATS,
    Format,
    description_of,
    ending,
    format_named,
    load,
    packing_of,
    target_format,
)

# Extensions of formats that are not text; a text file must not have such a name.
_NOT_WRITTEN = frozenset(
    {
        ".7z",
        ".avro",
        ".db",
        ".duckdb",
        ".h5",
        ".hdf5",
        ".npy",
        ".npz",
        ".ods",
        ".orc",
        ".pickle",
        ".pkl",
        ".rar",
        ".sqlite",
        ".tar",
        ".tgz",
        ".xls",
        ".xlsx",
        ".zip",
    }
)
# The earliest date in a zip archive; a fixed date makes output reproducible.
_DATE = (1980, 1, 1, 0, 0, 0)


def refuse_ending(target: Source, form: str | None) -> None:
    """Refuse a file name whose extension indicates a format that cannot be written."""
    name = source_name(target)
    end = ending(name)
    if end not in _NOT_WRITTEN or (form is not None and end != ".zip"):
        return
    fix = "use a name that ends in .csv, .json, or .parquet, or pass the format: --to (in Python target_format=...)"
    if end == ".zip":
        fix = "only a collection can be a .zip; use .gz, .xz, or .zst for a single file"
    raise InputError(f"files that end in {end} are not written", where=name, fix=fix)


def write_table(table: PairTable, target: Source, layout: Layout, tag: str = "", *, form: str | None = None) -> None:
    """Write a table to a file atomically."""
    write_tables([table], target, layout, tag, form=form)


def write_tables(
    tables: Iterable[PairTable], target: Source, layout: Layout, tag: str = "", *, form: str | None = None
) -> None:
    """Write tables with different queries to one file atomically."""
    name = source_name(target)
    form = form or (None if target == "-" else target_format(name)) or "trec"
    option("format", form, TARGET_FORMATS)
    if form not in {"parquet", "arrow"}:
        with written(target) as stream:
            # Not every compressor has `writelines`.
            for chunk in pair_lines(tables, layout, form, name=name, tag=tag):
                stream.write(chunk)
        return
    from rankgauge.formats.parquet import write_columns

    packing = packing_of(name)
    if packing is not None:
        fix = f"remove {packing.suffix} from the name"
        raise InputError(f"{form} is already compressed", where=name, fix=fix)
    with written(target) as stream:
        write_columns(_checked_tables(tables, layout, format_named(form), name), layout, form, stream)


def copy_description(source: str, target: Source) -> None:
    """Copy the description of judgments, so that evaluations of the copy print it, too.

    If there is none, remove that of the judgments that were replaced.
    """
    if target == "-":
        return
    known, path = description_of(source), Path(f"{source_name(target)}.about.json")
    if not known:
        path.unlink(missing_ok=True)
        return
    text = Path(known).read_bytes()
    with write_atomically(path) as copy:
        copy.write(text)


def pair_lines(tables: Iterable[PairTable], layout: Layout, form: str, *, name: str, tag: str = "") -> Iterator[bytes]:
    """Yield the encoded lines of a text file of judgments or of a run."""
    declared = format_named(form)
    held = _checked_tables(tables, layout, declared, name)
    if form == "opensearch" and ".csv" in name.lower():
        declared = format_named("quepid")
    chunks: Iterable[bytes | str] = load(declared.writer)(held, layout, tag)
    return (chunk if isinstance(chunk, bytes) else chunk.encode() for chunk in chunks)


def _checked_tables(tables: Iterable[PairTable], layout: Layout, form: Format, name: str) -> Iterator[PairTable]:
    """Yield the tables; refuse those that the format cannot represent."""
    if ("run" if layout is RUN else "qrels") not in form.writes:
        got, holds = ("a run", "judgments") if layout is RUN else ("judgments", "runs")
        raise InputError(
            f"{form.name} cannot store {got}, only {holds}",
            fix="choose another format, such as trec, csv, json, or parquet",
        )
    for table in tables:
        _refuse_losses(table, layout, form, name)
        yield table


def _refuse_losses(table: PairTable, layout: Layout, form: Format, name: str) -> None:
    empty = np.flatnonzero(np.diff(table.offsets) == 0)
    if layout is JUDGMENTS and len(empty) and not form.empty_queries:
        raise InputError(
            f"query '{show_id(table.queries[int(empty[0])])}' has no judgment, so it has no line",
            where=name,
            fix="drop the query, or write JSON: use a path that ends in .json",
        )
    if form.largest_grade:
        _refuse_grades(table, form)
    repeats = table.repeats() if form.unique else []
    if repeats:
        fix = f"keep one of them, or write another format than {form.name}"
        raise table.repeat_error(repeats[0], fix=fix)


def _refuse_grades(table: PairTable, form: Format) -> None:
    """Refuse non-integer grades in formats for integers; rounding would change them."""
    values = table.values
    # -0.0 is not an integer either: it would lose its sign.
    beyond = (values != np.trunc(values)) | (np.abs(values) > form.largest_grade)
    bad = np.flatnonzero(beyond | ((values == 0) & np.signbit(values)))
    if not len(bad):
        return
    row = int(bad[0])
    query = table.queries[int(table.query_numbers()[row])]
    others = f" ({len(bad)} grades do not fit)" if len(bad) > 1 else ""
    raise InputError(
        f"{form.name} stores integer grades up to {form.largest_grade}, got "
        f"{float(values[row])!r} for document '{show_id(table.docs[row])}' of query "
        f"'{show_id(query)}'{others}",
        fix="multiply the grades so that all are integers, or write csv, json, parquet, or trec",
    )


@contextmanager
def written(target: Source, *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces the target if the block ends without an error.

    Only the owner can read a `private` file.
    """
    if target == "-":
        import tempfile

        with tempfile.TemporaryFile() as made:
            yield cast("BinaryIO", made)
            made.seek(0)
            shutil.copyfileobj(made, sys.stdout.buffer)
        return
    name = source_name(target)
    packing = packing_of(name)
    try:
        with write_atomically(target, private=private) as raw:
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


def write_collection(target: Source, parts: Mapping[str, Iterable[bytes]]) -> None:
    """Write the files of a collection in the BEIR layout: all of them or nothing."""
    if source_name(target).lower().endswith(".zip"):
        _write_zip(target, parts)
    else:
        _write_folder(Path(target), parts)


def _write_zip(target: Source, parts: Mapping[str, Iterable[bytes]]) -> None:
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

    with written(target) as stream, ZipFile(stream, "w") as archive:
        for name, chunks in parts.items():
            member = ZipInfo(name, _DATE)
            member.compress_type = ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            with archive.open(member, "w", force_zip64=True) as inside:
                for chunk in chunks:
                    inside.write(chunk)


def _write_folder(target: Path, parts: Mapping[str, Iterable[bytes]]) -> None:
    import secrets

    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise InputError("the target already exists", where=str(target), fix="name a new folder, or empty this one")
    # A sibling of the target, so that the last step is a rename.
    made = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        for name, chunks in parts.items():
            path = made / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as stream:
                for chunk in chunks:
                    stream.write(chunk)
        if target.exists():
            target.rmdir()
        made.replace(target)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}",
            where=str(target),
            fix="check that the parent folder exists and is writable",
        ) from None
    finally:
        shutil.rmtree(made, ignore_errors=True)
