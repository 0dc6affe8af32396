"""Files written atomically: the whole of a file or nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from rankgauge.errors import InputError, RankgaugeError

__all__ = ["write_atomically"]


@contextmanager
def write_atomically(target: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a stream whose content becomes the file when the block ends without an error.

    The content is written beside the target, brought to the disk, and renamed: an error or a crash
    leaves an earlier file as it was. A symbolic link is followed. Pipes and devices are written to
    directly.

    Args:
        target: The path of the file.

    Raises:
        InputError: If the file cannot be written, as on a full disk.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
        >>> with write_atomically(path) as stream:
        ...     _ = stream.write(b"content")
        >>> path.read_text()
        'content'
    """
    import secrets
    from pathlib import Path

    path = Path(target)
    if path.is_file():
        path = path.resolve()
    if path.is_dir():
        raise InputError(
            "cannot be written: this is a folder", where=os.fspath(target), fix="name a file in it"
        )
    renames = not path.exists() or path.is_file()
    part = path.with_name(f".{secrets.token_hex(8)}.part") if renames else path
    try:
        with part.open("wb") as stream:
            yield stream
            stream.flush()
            if renames:
                os.fsync(stream.fileno())
        if renames:
            part.replace(path)
    except RankgaugeError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot be written: {getattr(error, 'strerror', None) or error}",
            where=os.fspath(target),
            fix="check that the folder is there and may be written to",
        ) from None
    finally:
        if renames:
            with contextlib.suppress(OSError, ValueError):
                part.unlink(missing_ok=True)
