"""A collection as BEIR lays it out: a folder, or a zip archive of one; whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from rankgauge.errors import InputError
from rankgauge.formats.lines import Source, source_name
from rankgauge.formats.writers import written

__all__ = ["CORPUS", "QRELS", "QUERIES", "write_beir"]

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels/test.tsv"
# The first day that a zip archive can name: the same input gives the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


def write_beir(target: Source, parts: Mapping[str, Iterable[bytes]]) -> None:
    """Write the files of a collection.

    Args:
        target: A folder that is not there yet, or is empty; or an archive, by its name ``.zip``.
        parts: The bytes of each file, by its path inside.

    Raises:
        InputError: If there is something in that folder, or it cannot be written.
    """
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
        raise InputError(
            "there is something already", where=str(target), fix="name a new folder, or empty it"
        )
    # Beside the target, so that the last step is one rename.
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
            f"cannot be written: {error.strerror or error}", where=str(target),
            fix="check that the folder above is there and may be written to",
        ) from None  # fmt: skip
    finally:
        shutil.rmtree(made, ignore_errors=True)
