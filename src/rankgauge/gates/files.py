"""The text of a file, or why it cannot be had."""

from __future__ import annotations

import os
from pathlib import Path

from rankgauge.errors import FormatError, InputError

__all__ = ["text_of"]


def text_of(
    path: str | os.PathLike[str],
    *,
    missing: str = "there is no such file",
    fix: str = "check the path",
) -> str:
    """The text of a file in UTF-8.

    Args:
        path: The file.
        missing: What to say if it is not there.
        fix: What mends that.

    Raises:
        InputError: If it is not there or cannot be read.
        FormatError: If it is no UTF-8.
    """
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(missing, where=str(path), fix=fix) from None
    except UnicodeDecodeError:
        raise FormatError(
            "this is no UTF-8", path=str(path), fix="save the file as UTF-8"
        ) from None
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", where=str(path), fix="name a file") from None
