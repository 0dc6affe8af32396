"""Text files read whole, with an error message that names the file."""

from __future__ import annotations

import os

from rankgauge.errors import FormatError, InputError

__all__ = ["read_text"]


def read_text(
    path: str | os.PathLike[str],
    *,
    missing: str = "there is no such file",
    fix: str = "check the path",
) -> str:
    """Return the text of a file in UTF-8.

    Args:
        path: The file.
        missing: What the message says if the file does not exist.
        fix: How to fix that.

    Raises:
        InputError: If the file does not exist or cannot be read.
        FormatError: If it is not UTF-8.
    """
    from pathlib import Path

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
