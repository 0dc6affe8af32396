"""Fingerprint of the code of a retriever and the values that it uses.

It covers everything reachable that can be compared between processes: code, defaults, closures,
attributes, the globals that the code uses, and all contents of modules among them that are not
libraries. Code that may read anything else, such as a file or the environment, is opaque: its
fingerprint is valid only for one object in one process.
"""

from __future__ import annotations

import contextlib
import copyreg
import dis
import functools
import hashlib
import secrets
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rankgauge.errors import RankgaugeError
from rankgauge.retrievers.protocol import settings_of

_MAX_VALUES = 200_000  # values; larger objects are not compared
_MAX_BYTES = 64 << 20  # bytes of an array
_ATOMS = frozenset({bool, int, float, complex, str, bytes, type(None), type(...)})
_LOCKS = frozenset({type(threading.Lock()), type(threading.RLock())})
_C_FUNCTIONS = (types.BuiltinFunctionType, types.MethodWrapperType)
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
# Values that are determined by their parts.
_PARTS: dict[type, Callable[[Any], Iterable[Any]]] = {
    tuple: tuple,
    list: tuple,
    dict: lambda found: [part for item in list(found.items()) for part in item],
    types.MappingProxyType: lambda found: (dict(found),),
    types.MethodType: lambda method: (method.__func__, method.__self__),
    types.CodeType: lambda code: (
        code.co_code, code.co_names, code.co_varnames, code.co_exceptiontable, code.co_flags,
        code.co_consts,
    ),
    property: lambda found: (found.fget, found.fset),
    staticmethod: lambda method: (method.__func__,),
    classmethod: lambda method: (method.__func__,),
    functools.partial: lambda found: (found.func, found.args, found.keywords),
}  # fmt: skip
# Classes written in C whose state is visible in their items or their repr().
_TEXTS_AND_NUMBERS = (str, bytes, int, float, complex)
_TRANSPARENT = frozenset({object, bool, *_TEXTS_AND_NUMBERS, list, tuple, dict, set, frozenset})
# Names in classes and modules that the import system creates, or that are only descriptive.
_NO_STATE = frozenset({
    "__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations__",
    "__annotations_cache__", "__builtins__", "__cached__", "__dataclass_fields__",
    "__dataclass_params__", "__dict__", "__doc__", "__file__", "__firstlineno__", "__loader__",
    "__module__", "__orig_bases__", "__parameters__", "__path__", "__qualname__", "__slotnames__",
    "__spec__", "__static_attributes__", "__weakref__", "_abc_impl",
})  # fmt: skip
_OWN = __name__.partition(".")[0]
# Libraries whose results depend only on their arguments, the time, or random numbers; without the
# underscores of names such as _functools.
_PURE = frozenset({
    "abc", "array", "base64", "binascii", "bisect", "builtins", "collections", "contextlib", "copy",
    "copyreg", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools",
    "future", "hashlib", "heapq", "html", "itertools", "json", "logging", "math", "numbers",
    "numpy", "operator", "random", "re", "reprlib", "statistics", "string", "textwrap", "thread",
    "threading", "time", "types", "typing", "typing_extensions", "unicodedata", "zlib",
})  # fmt: skip
_PURE_OWN = frozenset(
    f"{_OWN}.{name}" for name in (
        "corpus.chunking", "errors", "fusion.fusion", "retrievers.base", "retrievers.bm25",
        "retrievers.chunked", "retrievers.dense", "retrievers.encoders", "retrievers.filtered",
        "retrievers.hits", "retrievers.hybrid", "retrievers.protocol", "retrievers.rerank",
    )
)  # fmt: skip
# Names that give access to hidden state, even in the libraries above.
_READERS = frozenset({
    "__annotations__", "__builtins__", "__doc__", "__globals__", "__import__", "__subclasses__",
    "environ", "eval", "exec", "fromfile", "fromregex", "genfromtxt", "getenv", "globals",
    "import_module", "input", "load", "loadtxt", "memmap", "open", "open_memmap",
})  # fmt: skip


class CodeFingerprint(NamedTuple):
    """The fingerprint of code."""

    digest: str  # equal for equal code with equal values
    # Something used by the code that cannot be compared between processes, such as ``os``, or
    # empty. If not empty, digests are equal for the same object only.
    opaque: str


def code_fingerprint(retriever: Any) -> CodeFingerprint:
    """Return the fingerprint of a retriever.

    Example:
        >>> one, other = (code_fingerprint(functools.partial(max, n)) for n in (1, 2))
        >>> one == other
        False
    """
    walk = _Walk()
    try:
        digest = walk.of(retriever)
    except Exception:  # noqa: BLE001 - arbitrary objects may raise anything
        digest = walk.unknown(retriever)
    if walk.opaque:
        owner = retriever
        while type(owner) is types.MethodType:  # a bound method lives only for the call
            owner = owner.__self__
        token = _TOKENS.get(owner) or secrets.token_hex(8)
        _TOKENS.keep(owner, token)
        digest = _hash("opaque", digest, token)
    return CodeFingerprint(digest.hex(), walk.opaque)


def first_fingerprint(retriever: Any) -> CodeFingerprint:
    """Return the fingerprint that an object had when it was first passed to this function.

    Its values may have changed since then: it may count or cache queries.
    """
    if type(retriever) is types.MethodType:  # lives only for the call
        function, owner = map(first_fingerprint, (retriever.__func__, retriever.__self__))
        digest = _hash("method", *(bytes.fromhex(part.digest) for part in (function, owner)))
        return CodeFingerprint(digest.hex(), function.opaque or owner.opaque)
    found: CodeFingerprint = _FIRST.get(retriever) or code_fingerprint(retriever)
    _FIRST.keep(retriever, found)
    return found


class _IdentityMap:
    """Values by object identity, kept as long as the object lives."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def get(self, owner: Any) -> Any:
        known = self._values.get(id(owner))
        return known[1] if known is not None and known[0]() is owner else None

    def keep(self, owner: Any, value: Any) -> None:
        with contextlib.suppress(TypeError):  # no weak reference
            self._values[id(owner)] = (weakref.ref(owner), value)


_TOKENS = _IdentityMap()
_ARGUMENTS = _IdentityMap()
_FIRST = _IdentityMap()


def remember_arguments(made: Any, arguments: Any) -> None:
    """Include the arguments with which a plan created an object in its fingerprint.

    Their effect on the object may not be visible.
    """
    _ARGUMENTS.keep(made, arguments)


class _Walk:
    """Traversal of a value and the objects it refers to, each once."""

    def __init__(self) -> None:
        self._left = _MAX_VALUES
        self._known: dict[int, bytes] = {}
        self._alive: list[Any] = []  # keeps objects alive, so that ids are not reused
        self._depth = 0
        self.opaque = ""

    def of(self, value: Any) -> bytes:
        kind = type(value)
        if kind in _ATOMS:
            self._left -= 1 + (len(value) >> 6 if kind is str or kind is bytes else 0)
            return _hash(kind.__name__, repr(value))
        found = self._known.get(id(value))
        if found is not None:
            return found
        if self._left < 0:
            return self.unknown(value)
        self._left -= 1
        self._known[id(value)] = _hash("circle", str(self._depth))
        self._alive.append(value)
        self._depth += 1
        try:
            found = self._hash_value(value)
            # What our own objects declare is complete.
            if _declared(value) is None and (arguments := _ARGUMENTS.get(value)) is not None:
                found = _hash("made with", found, self.of(arguments))
        finally:
            self._depth -= 1
        self._known[id(value)] = found
        return found

    def unknown(self, value: Any) -> bytes:
        """Return the hash of a value that cannot be compared, and record it as opaque."""
        kind = type(value)
        few = self._left >= 0
        self._mark_opaque(
            f"{kind.__module__}.{kind.__qualname__}" if few else f"more than {_MAX_VALUES:,} values"
        )
        return _hash("unknown")

    def _mark_opaque(self, name: str) -> None:
        self.opaque = self.opaque or name

    def _all(self, word: str, values: Iterable[Any]) -> bytes:
        return _hash(word, *(self.of(value) for value in values))

    def _set(self, values: Iterable[Any]) -> bytes:
        return _hash("set", *sorted(map(self.of, values)))

    def _hash_value(self, value: Any) -> bytes:  # noqa: C901, PLR0911 - one branch per kind of value
        kind = type(value)
        if kind in _PARTS:
            return self._all(kind.__name__, _PARTS[kind](value))
        if kind is set or kind is frozenset:
            return self._set(value)
        if kind in _LOCKS:
            return _hash("lock")
        if kind is types.FunctionType:
            return self._function(value)
        if isinstance(value, types.ModuleType):
            return self._module(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, _C_FUNCTIONS):
            owner = getattr(value, "__self__", None)
            if owner is not None and not isinstance(owner, types.ModuleType):
                return _hash("C", value.__qualname__, self.of(owner))
            return self._named(str(value.__module__), value.__qualname__)
        if (declared := _declared(value)) is not None:
            members = getattr(value, "members", ())
            return self._all(f"declared {kind.__qualname__}", (dict(declared), members))
        library = _is_library(kind.__module__)
        wrapped = getattr(value, "__wrapped__", None) if library else None
        if isinstance(wrapped, types.FunctionType):  # such as functools.cache
            return self._all(f"wrapped {kind.__qualname__}", (wrapped,))
        if (buffer := self._buffer(value)) is not None:
            return buffer
        top = kind.__module__.partition(".")[0]
        if top in sys.stdlib_module_names:
            return self._reduced(value)
        return self.unknown(value) if library and top != _OWN else self._instance(value)

    def _function(self, function: types.FunctionType) -> bytes:
        # A library's decorator gives its wrapper the __module__ of the wrapped function.
        module = str(function.__globals__.get("__name__"))
        cells = []
        for cell in function.__closure__ or ():
            try:
                cells.append(cell.cell_contents)
            except ValueError:  # the cell is empty
                cells.append(None)
        held = self._all("held", (cells, vars(function)))
        if _is_library(module):
            return _hash("function", self._named(module, function.__qualname__), held)
        codes = list(_codes(function.__code__))
        found = function.__globals__
        names = sorted({name for code in codes for name in code.co_names if name in found})
        used = {name: found[name] for name in names}
        defaults = (function.__defaults__, function.__kwdefaults__)
        parts = self._all("parts", (function.__code__, *defaults, used))
        for code in codes:
            for name in [*sorted(_READERS.intersection(code.co_names)), *_impure_imports(code)]:
                self._mark_opaque(name)
        return _hash("function", parts, _source(module), held)

    def _class(self, kind: type) -> bytes:
        if _is_library(kind.__module__):
            return self._named(kind.__module__, kind.__qualname__)
        own = {
            name: value for name, value in vars(kind).items()
            if name not in _NO_STATE and not isinstance(value, _DESCRIPTORS)
        }  # fmt: skip
        parts = self._all(f"class {kind.__qualname__}", (own, kind.__bases__, type(kind)))
        return _hash(parts, _source(kind.__module__))

    def _module(self, module: types.ModuleType) -> bytes:
        """Hash a module by its source and contents; a library by its version."""
        name = module.__name__
        if _is_library(name):
            return self._named(name, "")
        held = {key: value for key, value in sorted(vars(module).items()) if key not in _NO_STATE}
        return _hash("module", name, _source(name), self.of(held))

    def _named(self, module: str, name: str) -> bytes:
        """Hash a library object by name and version."""
        if not _is_pure(module) or name in _READERS:
            self._mark_opaque(f"{module}.{name}" if name else module)
        top = module.partition(".")[0]
        version = getattr(sys.modules.get(top), "__version__", "")
        return _hash(
            "named", module, name, sys.version if top in sys.stdlib_module_names else str(version)
        )

    def _instance(self, value: Any) -> bytes:
        kind = type(value)
        if any(not base.__flags__ & (1 << 9) and base not in _TRANSPARENT for base in kind.__mro__):
            return self.unknown(value)  # a class written in C with hidden state
        # The default state, attributes and slots, even if the class pickles something else.
        parts = [self.of(kind), self.of(object.__getstate__(value))]
        if isinstance(value, dict):
            parts.append(self.of(dict(value)))
        elif isinstance(value, list | tuple):
            parts.append(self.of(list(value)))
        elif isinstance(value, set | frozenset):
            parts.append(self._set(value))
        atom = next((one for one in _TEXTS_AND_NUMBERS if isinstance(value, one)), None)
        return _hash("instance", *parts, "" if atom is None else atom.__repr__(value))

    def _buffer(self, value: Any) -> bytes | None:
        """Hash the bytes of an array or buffer; None for other values."""
        try:
            with memoryview(value) as view:
                if "O" in view.format or view.nbytes > _MAX_BYTES:
                    return self.unknown(value)
                content = hashlib.blake2b(view.tobytes()).digest()
                return _hash(
                    "buffer", type(value).__qualname__, view.format, str(view.shape), content
                )
        except (TypeError, ValueError, BufferError, NotImplementedError):
            return None

    def _reduced(self, value: Any) -> bytes:
        """Hash an instance of a standard-library class by its pickled state."""
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            reduced = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except Exception:  # noqa: BLE001 - objects that cannot be pickled raise various errors
            return self.unknown(value)
        if isinstance(reduced, str):
            return _hash("global", type(value).__qualname__, reduced)
        parts = [list(part) if isinstance(part, Iterator) else part for part in reduced]
        return self._all("reduced", parts)


def _hash(*parts: bytes | str) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.digest()


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object and those of its inner functions."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _impure_imports(code: types.CodeType) -> Iterator[str]:
    """Yield the impure modules that code imports at run time; relative imports start with a dot."""
    steps = list(dis.get_instructions(code))
    for place, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            # The level and the imported names are loaded before this instruction.
            name = step.argval if steps[place - 2].argval == 0 else f".{step.argval}"
            if not _is_pure(name):
                yield name


def _declared(value: Any) -> Mapping[str, Any] | None:
    """Return the settings of our own objects; those of other objects may be incomplete."""
    if type(value).__module__.partition(".")[0] != _OWN:
        return None
    with contextlib.suppress(RankgaugeError):
        found = settings_of(value)
        return found if found and "type" in found else None  # those of a run only describe it
    return None


def _is_library(name: str | None) -> bool:
    """Return whether a module belongs to Python, an installed package, or this package."""
    top = (name or "").partition(".")[0]
    if top == _OWN or top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(name or ""), "__file__", None) or ""
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


def _is_pure(name: str) -> bool:
    """Return whether the code of a library or our own module depends on no hidden state."""
    return name.partition(".")[0].strip("_") in _PURE or name in _PURE_OWN


def _source(name: str) -> bytes:
    file = getattr(sys.modules.get(name), "__file__", None)
    try:
        return hashlib.blake2b(Path(file).read_bytes()).digest() if file else b""
    except OSError:
        return b""
