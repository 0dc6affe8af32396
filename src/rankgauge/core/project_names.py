"""Names of a project: its file, and its saved evaluations. Every command loads this module."""

from __future__ import annotations

import os
import re

PROJECT_FILE = "rankgauge.toml"
# A saved evaluation: run and number, or the latest.
SHORT_NAME = re.compile(r"(?P<run>.*)(#(?P<number>\d{1,9})|@latest)", re.DOTALL)


def find_project_file(folder: str | os.PathLike[str] = ".") -> str | None:
    """Return the path of the project file in a folder, or in the nearest folder above it; None if there is none.

    Example:
        >>> import tempfile
        >>> find_project_file(tempfile.mkdtemp()) is None
        True
    """
    place, above = os.fspath(folder), os.path.realpath(folder).count(os.sep)
    paths = (os.path.normpath(os.path.join(place, *[".."] * up, PROJECT_FILE)) for up in range(above + 1))  # noqa: PTH118 - slow to load
    return next(filter(os.path.lexists, paths), None)


def is_short_name(text: str) -> bool:
    """Return whether a text names a saved evaluation.

    Example:
        >>> [is_short_name(text) for text in ("bm25#3", "@latest", "bm25.run")]
        [True, True, False]
    """
    return text == "@baseline" or SHORT_NAME.fullmatch(text) is not None
