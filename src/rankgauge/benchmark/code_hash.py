"""A fingerprint of the code of a retriever, and of the values that it uses.

It contains everything reachable that can be compared between processes: code, defaults, closures,
attributes, the globals that the code names, and all of the modules among them that are not
libraries. Code that may read anything else, such as a file or the environment, is opaque: its
fingerprint is that of the one object in the one process.
"""

from __future__ import annotations

import contextlib
import copyreg
import dis
import enum
import functools
import hashlib
import secrets
import sys
import threading
import types
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rankgauge.errors import RankgaugeError
from rankgauge.retrievers.protocol import settings_of

__all__ = ["CodeFingerprint", "code_fingerprint", "remember_arguments"]

_MOST = 200_000  # values; what has more is not compared
_LARGEST = 64 << 20  # bytes of an array
_ATOMS = frozenset({bool, int, float, complex, str, bytes, type(None), type(...)})
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_C_FUNCTIONS = (types.BuiltinFunctionType, types.MethodWrapperType)
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
# Classes written in C whose state is seen: in their items, or in what repr() says.
_SEEN = frozenset(
    {object, bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset}
)
_TEXTS_AND_NUMBERS = (str, bytes, int, float, complex)
_NO_STATE = frozenset({
    "__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations__",
    "__annotations_cache__", "__dataclass_fields__", "__dataclass_params__",
    "__dict__", "__doc__", "__firstlineno__", "__module__", "__orig_bases__", "__parameters__",
    "__qualname__", "__static_attributes__", "__weakref__", "_abc_impl",
})  # fmt: skip
_OF_IMPORT = frozenset({
    "__annotations__", "__builtins__", "__cached__", "__doc__", "__file__", "__loader__",
    "__path__", "__spec__",
})  # fmt: skip
_OWN = __name__.partition(".")[0]
# Libraries whose results depend on nothing but their arguments, a clock or a random number. The
# underscores of names such as _functools are left out.
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
        "retrievers.hybrid", "retrievers.protocol", "retrievers.rerank",
    )
)  # fmt: skip
# Names by which code gets at what is out of sight, also with the libraries above.
_READERS = frozenset({
    "__annotations__", "__builtins__", "__doc__", "__globals__", "__import__", "__subclasses__",
    "environ", "eval", "exec", "fromfile", "fromregex", "genfromtxt", "getenv", "globals",
    "import_module", "input", "load", "loadtxt", "memmap", "open", "open_memmap",
})  # fmt: skip


class CodeFingerprint(NamedTuple):
    """What code is.

    Attributes:
        digest: Equal for equal code that uses equal values.
        opaque: What it uses that cannot be compared between processes, such as ``os``; empty if
            there is nothing of the kind. The digest is then equal for the same object only.
    """

    digest: str
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
    except Exception:  # noqa: BLE001 - it goes through objects of any make, which may refuse it
        digest = walk.unknown(retriever)
    if walk.opaque:
        digest = _hash("opaque", digest, _token(retriever))
    return CodeFingerprint(digest.hex(), walk.opaque)


# With what arguments a plan made an object: what they decide may be out of sight.
_ARGUMENTS: dict[int, tuple[weakref.ref[Any], Any]] = {}


def remember_arguments(made: Any, arguments: Any) -> None:
    """Count the arguments that an object was made with as a part of it."""
    try:
        _ARGUMENTS[id(made)] = (weakref.ref(made), arguments)
    except TypeError:  # it cannot be held weakly
        return


_TOKENS: dict[int, tuple[weakref.ref[Any], str]] = {}


def _token(value: Any) -> str:
    """A word that an object keeps while it lives; each time another if it cannot be held weakly."""
    while isinstance(value, types.MethodType):  # which lives for the one call only
        value = value.__self__
    known = _TOKENS.get(id(value))
    if known is not None and known[0]() is value:
        return known[1]
    token = secrets.token_hex(8)
    with contextlib.suppress(TypeError):
        _TOKENS[id(value)] = (weakref.ref(value), token)
    return token


class _Walk:
    """Goes through a value and what it refers to, each object once."""

    def __init__(self) -> None:
        self._left = _MOST
        self._known: dict[int, bytes] = {}
        self._held: list[Any] = []  # so that no id is given away
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
        self._held.append(value)
        self._depth += 1
        try:
            found = self._parts(value)
            made = _ARGUMENTS.get(id(value))
            if made is not None and made[0]() is value:
                found = _hash("made with", found, self.of(made[1]))
        finally:
            self._depth -= 1
        self._known[id(value)] = found
        return found

    def unknown(self, value: Any) -> bytes:
        """A value that cannot be compared."""
        kind = type(value)
        self._cannot(
            f"{kind.__module__}.{kind.__qualname__}" if self._left >= 0
            else f"more than {_MOST:,} values"
        )  # fmt: skip
        return _hash("unknown")

    def _cannot(self, name: str) -> None:
        self.opaque = self.opaque or name

    def _all(self, word: str, values: Iterable[Any]) -> bytes:
        return _hash(word, *(self.of(value) for value in values))

    def _items(self, found: Mapping[Any, Any]) -> bytes:
        return self._all("items", (part for item in list(found.items()) for part in item))

    def _parts(self, value: Any) -> bytes:  # noqa: C901, PLR0911 - one kind of value after another
        kind = type(value)
        if kind is tuple or kind is list:
            return self._all(kind.__name__, value)
        if kind is dict or kind is types.MappingProxyType:
            return self._items(value)
        if kind is set or kind is frozenset:
            return _hash("set", *sorted(self.of(one) for one in value))
        if kind is types.CodeType:
            return self._code(value)
        if kind is types.FunctionType:
            return self._function(value)
        if kind is types.MethodType:
            return self._all("method", (value.__func__, value.__self__))
        if isinstance(value, types.ModuleType):
            return self._module(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, property):
            return self._all("property", (value.fget, value.fset))
        if isinstance(value, staticmethod | classmethod):
            return self._all(kind.__name__, (value.__func__,))
        if isinstance(value, _C_FUNCTIONS):
            return self._c_function(value)
        if kind in _LOCKS:
            return _hash("lock")
        return self._object(value)

    def _code(self, code: types.CodeType) -> bytes:
        said = (code.co_code, code.co_names, code.co_varnames, code.co_exceptiontable)
        return self._all("code", (*said, code.co_flags, code.co_consts))

    def _c_function(self, function: Any) -> bytes:
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, types.ModuleType):
            return _hash("C", function.__qualname__, self.of(owner))
        return self._named(str(function.__module__), function.__qualname__)

    def _function(self, function: types.FunctionType) -> bytes:
        # A decorator of a library gives its function the __module__ of the one inside.
        place = str(function.__globals__.get("__name__"))
        cells = []
        for cell in function.__closure__ or ():
            try:
                cells.append(cell.cell_contents)
            except ValueError:  # nothing was put into it yet
                cells.append(None)
        parts = [self._all("closure", cells), self._items(vars(function))]
        if _library(place):
            return _hash("function", self._named(place, function.__qualname__), *parts)
        codes = list(_codes(function.__code__))
        names = sorted(set().union(*map(_globals_of, codes)))
        found = function.__globals__
        used = self._items({name: found[name] for name in names if name in found})
        for code in codes:
            for name in sorted(_READERS.intersection(code.co_names)):
                self._cannot(name)
            for name in _imports_of(code):
                if not _pure(name):
                    self._cannot(name)
        return _hash(
            "function",
            self._all("parts", (function.__code__, function.__defaults__, function.__kwdefaults__)),
            used,
            _source(place),
            *parts,
        )

    def _class(self, kind: type) -> bytes:
        if _library(kind.__module__):
            return self._named(kind.__module__, kind.__qualname__)
        own = {
            name: value for name, value in vars(kind).items()
            if name not in _NO_STATE and not isinstance(value, _DESCRIPTORS)
        }  # fmt: skip
        return _hash(
            "class", kind.__qualname__, self._items(own), self._all("bases", kind.__bases__),
            self.of(type(kind)), _source(kind.__module__),
        )  # fmt: skip

    def _module(self, module: types.ModuleType) -> bytes:
        """A module by its source and all that it holds; a library by its version."""
        name = module.__name__
        if _library(name):
            return self._named(name, "")
        held = {
            key: value for key, value in sorted(vars(module).items())
            if key not in _OF_IMPORT
        }  # fmt: skip
        return _hash("module", name, _source(name), self._items(held))

    def _named(self, module: str, name: str) -> bytes:
        """Something of a library."""
        if not _pure(module) or name in _READERS:
            self._cannot(f"{module}.{name}" if name else module)
        return _hash("named", module, name, _version(module))

    def _object(self, value: Any) -> bytes:  # noqa: PLR0911 - as above
        """An instance of a class."""
        kind = type(value)
        if isinstance(value, enum.Enum):
            return _hash("enum", self.of(kind), value.name)
        if (said := _declared(value)) is not None:
            members = getattr(value, "members", ())
            return _hash("declared", kind.__qualname__, self._items(said), self.of(members))
        if isinstance(value, functools.partial):
            return self._all("partial", (value.func, value.args, value.keywords))
        wrapped = getattr(value, "__wrapped__", None) if _library(kind.__module__) else None
        if isinstance(wrapped, types.FunctionType):  # functools.cache and its like
            return _hash("wrapped", kind.__qualname__, self.of(wrapped))
        buffer = self._buffer(value)
        if buffer is not None:
            return buffer
        place = kind.__module__.partition(".")[0]
        if place in sys.stdlib_module_names:
            return self._reduced(value)
        if _library(kind.__module__) and place != _OWN:
            return self.unknown(value)
        return self._instance(value)

    def _instance(self, value: Any) -> bytes:
        kind = type(value)
        if any(not base.__flags__ & (1 << 9) and base not in _SEEN for base in kind.__mro__):
            return self.unknown(value)  # a class written in C, whose state is out of sight
        state: dict[str, Any] = dict(getattr(value, "__dict__", {}))
        for base in kind.__mro__:
            for name, slot in vars(base).items():
                if isinstance(slot, types.MemberDescriptorType):
                    state[name] = slot.__get__(value, kind) if _filled(slot, value) else None
        parts = [_hash("instance"), self.of(kind), self._items(state)]
        if isinstance(value, dict):
            parts.append(self._items(dict(value)))
        elif isinstance(value, list | tuple):
            parts.append(self._all("list", list(value)))
        elif isinstance(value, set | frozenset):
            parts.append(_hash("set", *sorted(self.of(one) for one in value)))
        atom = next((one for one in _TEXTS_AND_NUMBERS if isinstance(value, one)), None)
        return _hash(*parts, "" if atom is None else atom.__repr__(value))

    def _buffer(self, value: Any) -> bytes | None:
        """An array, or whatever else is bytes; None if it is none."""
        try:
            with memoryview(value) as view:
                if "O" in view.format:
                    return self.unknown(value)
                if view.nbytes > _LARGEST:
                    return self.unknown(value)
                return _hash("buffer", type(value).__qualname__, view.format, str(view.shape),
                             hashlib.blake2b(view.tobytes()).digest())  # fmt: skip
        except (TypeError, ValueError, BufferError, NotImplementedError):
            return None

    def _reduced(self, value: Any) -> bytes:
        """An instance of the standard library: as it would be pickled, if it can be."""
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            reduced = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except Exception:  # noqa: BLE001 - the ways in which objects refuse to be pickled are many
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
    """Code and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _globals_of(code: types.CodeType) -> set[str]:
    steps = dis.get_instructions(code)
    return {str(step.argval) for step in steps if step.opname in {"LOAD_GLOBAL", "LOAD_NAME"}}


def _imports_of(code: types.CodeType) -> Iterator[str]:
    """The modules that code imports while it runs, those of its own package with a dot."""
    steps = list(dis.get_instructions(code))
    for place, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            # Before it, the level and the names wanted of it are loaded.
            yield step.argval if steps[place - 2].argval == 0 else f".{step.argval}"


def _filled(slot: types.MemberDescriptorType, value: Any) -> bool:
    try:
        slot.__get__(value)
    except AttributeError:
        return False
    return True


def _declared(value: Any) -> Mapping[str, Any] | None:
    """The settings of an object of ours that declares them. Others may leave out what decides."""
    if type(value).__module__.partition(".")[0] != _OWN:
        return None
    try:
        said = settings_of(value)
    except RankgaugeError:
        return None
    return said if said and "type" in said else None  # those of a run only describe it


def _library(name: str | None) -> bool:
    """Whether a module is of Python, of an installed package, or of this one."""
    top = (name or "").partition(".")[0]
    if top == _OWN or top in sys.stdlib_module_names:
        return True
    return _installed(getattr(sys.modules.get(name or ""), "__file__", None) or "")


def _pure(name: str) -> bool:
    """Whether the code of a library, or of this one, depends on nothing that is out of sight."""
    return name.partition(".")[0].strip("_") in _PURE or name in _PURE_OWN


def _installed(place: str) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(place).parts)


def _version(name: str | None) -> str:
    top = (name or "").partition(".")[0]
    if top in sys.stdlib_module_names:
        return sys.version
    return str(getattr(sys.modules.get(top), "__version__", ""))


def _source(name: str) -> bytes:
    place = getattr(sys.modules.get(name), "__file__", None)
    return _read(place) if place else b""


def _read(place: str) -> bytes:
    try:
        return hashlib.blake2b(Path(place).read_bytes()).digest()
    except OSError:
        return b""
