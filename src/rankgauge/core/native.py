"""The compiled core, `native.c`: the same results as NumPy, bit for bit, in less time.

It is built where a compiler is at hand, and not needed. ``RANKGAUGE_NATIVE=0`` in the environment
leaves it out.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


# One more when a function of it changes: one that was built before is left out.
_VERSION = 7


def _load() -> ModuleType | None:
    if os.environ.get("RANKGAUGE_NATIVE") == "0":
        return None
    try:
        from rankgauge.core import _native
    except ImportError:
        return None
    return _native if getattr(_native, "VERSION", None) == _VERSION else None


# None where it was not built, or is left out. Read when it is used, so that tests can change it.
core = _load()
