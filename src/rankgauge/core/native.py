"""The compiled core, `native.c`: bit-for-bit the same results as NumPy, faster.

It is optional and built where a compiler is available. ``RANKGAUGE_NATIVE=0`` disables it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


# Increase when a function of the core changes; builds with another version are ignored.
_VERSION = 10


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
