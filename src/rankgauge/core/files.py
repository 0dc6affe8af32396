"""Atomic writes, private files, and reading of whole text files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from rankgauge.errors import FormatError, InputError, RankgaugeError

if TYPE_CHECKING:
    from pathlib import Path


@contextmanager
def write_atomically(target: str | os.PathLike[str], *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a binary stream that replaces the file when the block ends without an error.

    The content is written to a temporary file in the same folder, flushed to disk, and renamed: an
    error or a crash leaves an existing file unchanged. Symbolic links are followed. Pipes and
    devices are written to directly. A replaced file keeps its permissions.

    Args:
        target: The file.
        private: Whether only the owner may read the file, because it has personal data.

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
        raise InputError("cannot be written: this is a folder", where=os.fspath(target), fix="name a file in it")
    renames = not path.exists() or path.is_file()
    part = path.with_name(f".{secrets.token_hex(8)}.part") if renames else path
    mode = path.stat().st_mode & 0o777 if path.is_file() else 0o666
    opener = partial(os.open, mode=0o600 if private else mode)
    try:
        with open(part, "wb", opener=opener) as stream:
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
            fix="check that the folder exists and is writable",
        ) from None
    finally:
        if renames:
            with contextlib.suppress(OSError, ValueError):
                part.unlink(missing_ok=True)


def lock_file(file: int) -> bool:
    """Lock an open file until it is closed; return False if another process has locked it.

    On Windows, its first byte is locked, which no other process can read then.
    """
    try:
        import fcntl
    except ImportError:
        import msvcrt

        lock = partial(msvcrt.locking, file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    else:
        lock = partial(fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        lock()
    except OSError:
        return False
    return True


@contextmanager
def create_privately(target: Path) -> Iterator[Path]:
    """Yield an empty temporary file that becomes `target` when the block ends without an error.

    Only its owner can read it. An existing file is never replaced, not even one that another
    process has just created.

    Raises:
        FileExistsError: If `target` exists at the end.
        OSError: If the file cannot be created.
    """
    import secrets

    part = target.with_name(f".{secrets.token_hex(8)}.part")
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield part
        try:
            os.link(part, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if target.exists():
                raise FileExistsError(target) from None
            part.rename(target)
    finally:
        part.unlink(missing_ok=True)


def read_text(
    path: str | os.PathLike[str], *, missing: str = "there is no such file", fix: str = "check the path"
) -> str:
    """Return the text of a UTF-8 file."""
    from pathlib import Path

    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(missing, where=str(path), fix=fix) from None
    except UnicodeDecodeError:
        raise FormatError("not UTF-8", path=str(path), fix="save the file as UTF-8") from None
    except (OSError, ValueError) as error:  # a path with a NUL raises ValueError
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", where=str(path), fix="name a file") from None
