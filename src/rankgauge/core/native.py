"""The compiled core, `native.c`: the fast path of reading, joining, and common measures.

It is optional and built where a compiler is available. Without it, one plain path in Python and
NumPy gives the same digits; it is the reference of the core. ``RANKGAUGE_NATIVE=0`` disables the
core.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


# Increase when a function of the core changes; builds with another version are ignored.
_VERSION = 23


def _load() -> ModuleType | None:
    if os.environ.get("RANKGAUGE_NATIVE") == "0":
        return None
    try:
        from rankgauge.core import _native
    except ImportError:
        return None
    return _native if getattr(_native, "VERSION", None) == _VERSION else None


# None if it was not built or is disabled. Access as ``native.core``, so that tests can replace it.
core = _load()


@cache
def warn_if_missing() -> None:
    """Warn once if the core is missing, unless it is disabled."""
    if core is None and os.environ.get("RANKGAUGE_NATIVE") != "0":
        warnings.warn(
            "the compiled core of rankgauge is missing or outdated, so evaluations take longer; to build it, "
            "install a C compiler, and run: pip install --force-reinstall --no-cache-dir --no-deps "
            "rankgauge",
            stacklevel=2,
        )
