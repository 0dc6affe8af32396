"""Which writer a file gets, by its name or by a word; the whole of it is written or nothing."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, cast

import numpy as np

from rankgauge.errors import InputError, MissingExtra, UnknownName
from rankgauge.formats.layout import JUDGMENTS, Layout
from rankgauge.formats.lines import Source, source_name
from rankgauge.formats.trec import trec_lines
from rankgauge.ids import show_id
from rankgauge.table import PairTable

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TARGETS", "packer_of", "target_format", "write_table", "written"]

# What can be written, and the ends of names that say so.
TARGETS = (
    "trec", "csv", "tsv", "json", "jsonl", "parquet", "arrow", "msmarco", "beir", "rank-eval",
    "opensearch", "quepid",
)  # fmt: skip
_SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow",
    ".ipc": "arrow",
}  # fmt: skip
# Smaller by a few percent and four times as slow beyond it.
_LEVEL = 6
# Without any grade these have no place for a query.
_BY_ROWS = tuple(form for form in TARGETS if form not in {"json", "rank-eval", "opensearch"})

_Packer: TypeAlias = Callable[[BinaryIO], contextlib.AbstractContextManager[Any]]


def packer_of(name: str) -> str:
    """How a file of this name is packed: its last suffix, or nothing."""
    end = os.path.splitext(name)[1].lower()  # noqa: PTH122 - a name, and pathlib takes long to load
    return end if end in _PACKERS else ""


def target_format(name: str) -> str | None:
    """The format that the name of a file to be written stands for; None if it says nothing."""
    packed = packer_of(name)
    plain = name[: len(name) - len(packed)]
    return _SUFFIXES.get(os.path.splitext(plain)[1].lower())  # noqa: PTH122 - as above


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
        form: One of `TARGETS`; by the name, else TREC, if left out.

    Raises:
        UnknownName: If there is no such format.
        InputError: If the file cannot be written, or the format cannot hold what is to be written.
        MissingExtra: If a library that it needs is not installed.
    """
    name = source_name(target)
    form = form or (None if target == "-" else target_format(name)) or "trec"
    if form not in TARGETS:
        fix = f"choose one of: {', '.join(TARGETS)}"
        raise UnknownName(f"no format is called {form!r}", where="format", fix=fix)
    empty = np.flatnonzero(np.diff(table.offsets) == 0)
    if layout is JUDGMENTS and len(empty) and form in _BY_ROWS:
        raise InputError(
            f"query '{show_id(table.queries[int(empty[0])])}' has no judgment, so it has no line",
            where=name,
            fix="drop the query, or write JSON: give a path that ends in .json",
        )
    if form in {"parquet", "arrow"}:
        from rankgauge.formats.columnar import write_columns

        if packer_of(name):
            fix = f"leave {packer_of(name)} off the name"
            raise InputError(f"{form} is packed inside, column by column", where=name, fix=fix)
        with written(target) as stream:
            write_columns(table, layout, form, stream)
        return
    with written(target) as stream:
        stream.writelines(_chunks(table, layout, form, (tag, name)))


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
    packed = packer_of(name)
    with path.open("wb") as raw:
        if packed:
            with _PACKERS[packed](raw) as stream:
                yield stream
        else:
            yield raw
        raw.flush()
        if path.is_file():
            os.fsync(raw.fileno())


def _gzip(raw: BinaryIO) -> contextlib.AbstractContextManager[Any]:
    from gzip import GzipFile

    # No time and no name inside, so that the same run gives the same bytes.
    return GzipFile("", "wb", _LEVEL, raw, mtime=0)


def _xz(raw: BinaryIO) -> contextlib.AbstractContextManager[Any]:
    from lzma import LZMAFile

    return LZMAFile(raw, "wb", preset=2)


def _bzip2(raw: BinaryIO) -> contextlib.AbstractContextManager[Any]:
    from bz2 import BZ2File

    return BZ2File(raw, "wb")


def _zstd(raw: BinaryIO) -> contextlib.AbstractContextManager[Any]:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore] # Python 3.14
    except ImportError:
        zstandard = _library("zstandard", "zstd")
        return cast("Any", zstandard.ZstdCompressor().stream_writer(raw, closefd=False))
    return cast("Any", zstd.ZstdFile(raw, "wb"))


def _lz4(raw: BinaryIO) -> contextlib.AbstractContextManager[Any]:
    return cast("Any", _library("lz4.frame", "lz4").open(raw, "wb"))


def _library(name: str, what: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra(
            f"packing with {what} needs the library {name.partition('.')[0]}",
            fix='pip install "rankgauge[packed]", or write .gz',
        ) from None


_PACKERS: dict[str, _Packer] = {
    ".gz": _gzip, ".xz": _xz, ".bz2": _bzip2, ".zst": _zstd, ".lz4": _lz4,
}  # fmt: skip


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
