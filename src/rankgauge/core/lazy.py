"""Names of a package that are imported when first used (PEP 562), functions of higher layers."""

from __future__ import annotations

import builtins
import importlib
from _thread import RLock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

_LOCK = RLock()
# Set by ``rankgauge/__init__.py``, which is above all layers.
_FROM_ABOVE: dict[str, Callable[..., Any]] = {}


def register(**functions: Callable[..., Any]) -> None:
    """Register functions of higher layers, for :func:`registered`."""
    _FROM_ABOVE.update(functions)


def registered(name: str) -> Callable[..., Any]:
    """Return a function of a higher layer."""
    return _FROM_ABOVE[name]


@contextmanager
def lazy_imports(namespace: dict[str, Any]) -> Iterator[None]:
    """Record the imports of this block, and carry out each when its name is first used.

    The block declares the public names of a package: it sets ``__all__``, ``__getattr__``, and
    ``__dir__``. Type checkers and tools that collect the modules of an application see plain
    imports. Imports of other modules and threads are not affected.

    Args:
        namespace: The ``globals()`` of the package.
    """
    package = namespace["__name__"]
    homes: dict[str, str] = {}

    def record(name: str, *context: Any, **named: Any) -> Any:
        # An import statement passes its globals, locals, names, and level.
        if not context or context[0] is not namespace:
            return original(name, *context, **named)
        names = dict.fromkeys(context[2])
        homes.update(dict.fromkeys(names, name))
        return SimpleNamespace(**names)

    def load(name: str) -> Any:
        module, home = f"{package}.{name}", homes.get(name)
        if home == package or module in modules:
            home = module
        elif home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            loaded = importlib.import_module(home)
        except AttributeError as error:
            # Python would report that the package has no such name.
            raise ImportError(f"{home} cannot be imported: {error}") from error
        namespace[name] = loaded if home == module else getattr(loaded, name)
        return namespace[name]

    with _LOCK:
        original, builtins.__import__ = builtins.__import__, record
        try:
            yield
        finally:
            builtins.__import__ = original
    for name in homes:
        del namespace[name]
    modules = {*homes.values()} - {package}
    names = [*namespace.get("__all__", ()), *(name for name in homes if homes[name] != package)]
    below = {home.removeprefix(f"{package}.") for home in modules} | homes.keys()
    shown = sorted({*names, *filter(str.isidentifier, below)})
    namespace.update(__all__=names, __getattr__=load, __dir__=lambda: shown)
