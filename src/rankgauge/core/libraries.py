"""Loading of the libraries that retrievers use, with errors that name missing packages."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from rankgauge.errors import InputError, MissingExtra


def library(name: str, *, extra: str, of: str) -> ModuleType:
    """Import an optional library, or raise an error that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        root = name.partition(".")[0]
        why = "is not installed" if error.name == root else f"cannot be imported: {error}"
        raise MissingExtra(f"{of} needs {root}, which {why}", fix=f"pip install 'rankgauge[{extra}]'") from error


@contextmanager
def loading(model: str, of: str) -> Iterator[None]:
    """Replace the various errors of model hubs and files by one that names the model."""
    try:
        yield
    except (OSError, ValueError) as error:
        from rankgauge.core.redaction import redact

        why = next(iter(redact(str(error)).splitlines()), type(error).__name__)
        raise InputError(
            f"the model {model!r} cannot be loaded: {why:.200}",
            where=of,
            fix="pass the folder that holds it, or the name of one that can be fetched from here",
        ) from error


def versions(*distributions: str) -> dict[str, str]:
    """Return the versions of installed libraries for settings: rankings may depend on them."""
    from importlib.metadata import version

    return {name: version(name) for name in distributions}
