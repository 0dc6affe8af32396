"""Which writer a file gets, by its name; the whole of a file is written or nothing."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from rankgauge.errors import InputError
from rankgauge.formats.layout import JUDGMENTS, Layout
from rankgauge.formats.lines import Source, source_name
from rankgauge.formats.naming import format_of
from rankgauge.formats.trec import trec_lines
from rankgauge.ids import show_id
from rankgauge.table import PairTable

__all__ = ["write_table"]

# Smaller by a few percent and four times as slow beyond it.
_LEVEL = 6


def write_table(table: PairTable, target: Source, layout: Layout, tag: str = "") -> None:
    """Write a file: the whole of it or, if something fails, nothing.

    The name decides: ``.csv``, ``.tsv``, ``.json``, ``.jsonl``, else TREC; ``.gz`` behind any.
    ``-`` is standard output, in TREC format.

    Raises:
        InputError: If the file cannot be written, or the format cannot carry an id.
    """
    import secrets
    from pathlib import Path

    empty = np.flatnonzero(np.diff(table.offsets) == 0)
    if layout is JUDGMENTS and len(empty) and format_of(source_name(target)) != "json":
        raise InputError(
            f"query '{show_id(table.queries[int(empty[0])])}' has no judgment, so it has no line",
            where=source_name(target),
            fix="drop the query, or write JSON: give a path that ends in .json",
        )
    if target == "-":
        # All of it is made before the first byte goes out: ids may not fit.
        sys.stdout.buffer.writelines(list(_chunks(table, layout, None, tag)))
        return
    path = Path(target)
    if path.is_file():
        path = path.resolve()  # through a link, to what it points at
    if path.is_dir():
        raise InputError("this is a folder", where=source_name(target), fix="name a file in it")
    chunks = _chunks(table, layout, format_of(source_name(target)), tag)
    packed = source_name(target).lower().endswith(".gz")
    # Beside the target, so that the last step is one rename. Pipes and devices are not replaced.
    whole = not path.exists() or path.is_file()
    writable = path.with_name(f".{secrets.token_hex(8)}.part") if whole else path
    try:
        with writable.open("wb") as raw:
            _pour(chunks, raw, packed=packed)
            if whole:
                raw.flush()
                os.fsync(raw.fileno())
        if whole:
            writable.replace(path)
    except InputError as error:
        raise InputError(error.what, where=source_name(target), fix=error.fix) from None
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


def _pour(chunks: Iterator[bytes], raw: BinaryIO, *, packed: bool) -> None:
    if not packed:
        raw.writelines(chunks)
        return
    from gzip import GzipFile

    # No time and no name inside, so that the same run gives the same bytes.
    with GzipFile("", "wb", _LEVEL, raw, mtime=0) as stream:
        stream.writelines(chunks)


def _chunks(table: PairTable, layout: Layout, form: str | None, tag: str) -> Iterator[bytes]:
    if form is None:
        return trec_lines(table, layout, tag)
    from rankgauge.formats.tables import delimited_text, json_lines_text, json_text

    match form:
        case "csv" | "tsv":
            texts = delimited_text(table, layout, form)
        case "jsonl":
            texts = json_lines_text(table, layout)
        case _:
            texts = json_text(table)
    return (text.encode() for text in texts)
