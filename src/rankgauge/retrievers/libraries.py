"""Libraries that retrievers are made of: loaded when one is made, and named when one is missing."""

from __future__ import annotations

import importlib
from importlib import metadata
from types import ModuleType

from rankgauge.errors import MissingExtra

__all__ = ["library", "versions"]


def library(name: str, *, extra: str, of: str) -> ModuleType:
    """Load a library.

    Args:
        name: What is imported.
        extra: The extra of this package that installs it.
        of: What needs it.

    Raises:
        MissingExtra: If it cannot be imported.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        root = name.partition(".")[0]
        why = "is not installed" if error.name == root else f"cannot be imported: {error}"
        raise MissingExtra(
            f"{of} needs {root}, which {why}", fix=f"pip install 'rankgauge[{extra}]'"
        ) from error


def versions(*distributions: str) -> dict[str, str]:
    """The versions of libraries that are installed, for settings: another may rank otherwise."""
    return {name: metadata.version(name) for name in distributions}
