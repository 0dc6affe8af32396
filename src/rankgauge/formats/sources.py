"""Where judgments and runs are read from: a file, a folder, an archive, or a dataset."""

from __future__ import annotations

import os

from rankgauge.core.pair_table import PairTable
from rankgauge.errors import InputError
from rankgauge.formats.layout import Layout
from rankgauge.formats.lines import Source, archive_of, is_zip, opened_bytes, source_name, start_of
from rankgauge.formats.readers import path_and_format, read_stream

__all__ = ["read_table"]

# How the ids of datasets begin.
_LIBRARIES = ("ir_datasets:", "hf:")


def read_table(
    source: Source,
    layout: Layout,
    form: str | None = None,
    *,
    split: str | None = None,
    ranks: bool = False,
) -> PairTable:
    """Read a file (``-`` is standard input), or find the judgments in what holds them.

    Args:
        source: The path, alone or with its format, of a file, a zip archive, or, for judgments, a
            folder of BEIR; ``archive.zip!member``; or the id of a dataset, as
            ``ir_datasets:NAME``, ``hf:NAME``.
        layout: Judgments or run.
        form: The format; found by name and first line if neither says it.
        split: Which judgments, where a collection has several.
        ranks: Whether ranks that stand beside the scores are wanted too, where that is quick.

    Raises:
        UnknownName: If there is no such format.
        InputError: If the file cannot be read.
    """
    source, form = path_and_format(source, layout, form)
    # Without pathlib, here and below: loading it takes longer than to read a small file.
    if isinstance(source, str) and source.startswith(_LIBRARIES) and not os.path.exists(source):  # noqa: PTH110
        from rankgauge.formats.libraries import read_library

        return read_library(source, layout, split)
    if os.path.isdir(source):  # noqa: PTH112
        from pathlib import Path

        from rankgauge.formats.judgment_files import read_folder

        return read_folder(Path(os.fsdecode(source)), layout, form, split)
    with opened_bytes(source) as stream:
        if is_zip(start_of(stream)):
            from rankgauge.formats.judgment_files import read_archive

            return read_archive(archive_of(stream, source), layout, form, split)
        if split is not None:
            raise InputError(
                f"got split={split!r}, and this is one file", where=source_name(source),
                fix="leave the split out, or name the folder that holds qrels/",
            )  # fmt: skip
        return read_stream(stream, source_name(source), layout, form, ranks=ranks)
