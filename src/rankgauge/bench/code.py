"""A fingerprint of the code that answers, and of the values that it uses.

It is made of what decides an answer and can be compared between processes: code, defaults,
closures, attributes, the globals that are named, and the source of modules that are not installed
packages. What cannot be compared, such as a connection, has a token that no other process has.
"""

from __future__ import annotations

import copyreg
import dis
import enum
import functools
import hashlib
import importlib.util
import secrets
import sys
import threading
import types
import weakref
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, NamedTuple

from rankgauge.errors import RankgaugeError
from rankgauge.retriever import has_index, settings_of

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
    "__abstractmethods__", "__annotations__", "__dataclass_fields__", "__dataclass_params__",
    "__dict__", "__doc__", "__firstlineno__", "__module__", "__orig_bases__", "__parameters__",
    "__qualname__", "__static_attributes__", "__weakref__", "_abc_impl",
})  # fmt: skip
_OWN = __name__.partition(".")[0]


class CodeFingerprint(NamedTuple):
    """What code is.

    Attributes:
        digest: Equal for equal code that uses equal values.
        opaque: The class of a value that cannot be compared between processes; empty if all can.
    """

    digest: str
    opaque: str


def code_fingerprint(retriever: Any) -> CodeFingerprint:
    """What answers, as far as that can be seen.

    Example:
        >>> one, other = (code_fingerprint(functools.partial(max, n)) for n in (1, 2))
        >>> one == other
        False
    """
    walk = _Walk(retriever)
    try:
        digest = walk.of(retriever)
    except Exception:  # noqa: BLE001 - it goes through objects of any make, which may refuse it
        digest = walk.unknown(retriever)
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
    """A word that this object has for as long as it lives; empty if it cannot be held weakly."""
    known = _TOKENS.get(id(value))
    if known is not None and known[0]() is value:
        return known[1]
    try:
        held = weakref.ref(value)
    except TypeError:
        return ""
    token = secrets.token_hex(8)
    _TOKENS[id(value)] = (held, token)
    return token


class _Walk:
    """Goes through a value and what it refers to, each object once."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = _MOST
        self._known: dict[int, bytes] = {}
        self._held: list[Any] = []  # so that no id is given away
        self._above: list[Any] = []
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
        self._known[id(value)] = _hash("circle", str(len(self._above)))
        self._held.append(value)
        self._above.append(value)
        try:
            found = self._parts(value)
            made = _ARGUMENTS.get(id(value))
            if made is not None and made[0]() is value:
                found = _hash("made with", found, self.of(made[1]))
        finally:
            self._above.pop()
        self._known[id(value)] = found
        return found

    def unknown(self, value: Any) -> bytes:
        """What cannot be compared: nothing but the same object is equal to it."""
        kind = type(value)
        self.opaque = self.opaque or (
            f"{kind.__module__}.{kind.__qualname__}" if self._left >= 0
            else f"more than {_MOST:,} values"
        )  # fmt: skip
        for one in (value, *reversed(self._above)):
            # A method that is bound lives for the one call only.
            if not isinstance(one, types.MethodType) and (token := _token(one)):
                return _hash("unknown", token)
        return _hash("unknown", secrets.token_hex(8))

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
            return self._module(value.__name__)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, property):
            return self._all("property", (value.fget, value.fset))
        if isinstance(value, staticmethod | classmethod):
            return self._all(kind.__name__, (value.__func__,))
        if isinstance(value, _C_FUNCTIONS):
            owner = getattr(value, "__self__", None)
            whose = "" if isinstance(owner, types.ModuleType) else self.of(owner)
            return _hash("C", str(getattr(value, "__module__", "")), value.__qualname__, whose)
        if kind in _LOCKS:
            return _hash("lock")
        return self._object(value)

    def _code(self, code: types.CodeType) -> bytes:
        said = (code.co_code, code.co_names, code.co_varnames, code.co_exceptiontable)
        return self._all("code", (*said, code.co_flags, code.co_consts))

    def _function(self, function: types.FunctionType) -> bytes:
        if _library(function.__module__):
            return self._named(function)
        cells = []
        for cell in function.__closure__ or ():
            try:
                cells.append(cell.cell_contents)
            except ValueError:  # nothing was put into it yet
                cells.append(None)
        named = {
            name: function.__globals__[name]
            for name in sorted(_steps(function.__code__, {"LOAD_GLOBAL", "LOAD_NAME"}))
            if name in function.__globals__
        }
        return _hash(
            "function",
            self._all("parts", (function.__code__, function.__defaults__, function.__kwdefaults__)),
            self._all("closure", cells),
            self._items(named),
            self._items(vars(function)),
            self._module(function.__module__),
            *map(_source_of, sorted(_steps(function.__code__, {"IMPORT_NAME"}))),
        )

    def _class(self, kind: type) -> bytes:
        if _library(kind.__module__):
            return self._named(kind)
        own = {
            name: value for name, value in vars(kind).items()
            if name not in _NO_STATE and not isinstance(value, _DESCRIPTORS)
        }  # fmt: skip
        return _hash(
            "class", kind.__qualname__, self._items(own), self._all("bases", kind.__bases__),
            self._module(kind.__module__),
        )  # fmt: skip

    def _module(self, name: str | None) -> bytes:
        """The source of a module of one's own, and of those that it uses; of others the version."""
        module = sys.modules.get(name or "")
        if module is None or _library(name):
            return _hash("module", str(name), _version(name))
        known = self._known.get(id(module))
        if known is not None and module not in self._above:
            return known
        self._known[id(module)] = _hash("module", str(name))
        used = set()
        for value in list(vars(module).values()):
            inner = value if isinstance(value, types.ModuleType) else None
            if isinstance(value, types.FunctionType | type):
                inner = sys.modules.get(value.__module__ or "")
            if inner is not None and inner is not module and not _library(inner.__name__):
                used.add(inner.__name__)
        parts = [self._module(other) for other in sorted(used)]
        found = _hash("module", str(name), _source(module), *parts)
        self._known[id(module)] = found
        return found

    def _named(self, value: Any) -> bytes:
        return _hash("named", value.__module__, value.__qualname__, _version(value.__module__))

    def _object(self, value: Any) -> bytes:  # noqa: PLR0911 - as above
        """An instance of a class."""
        kind = type(value)
        if isinstance(value, enum.Enum):
            return _hash("enum", self.of(kind), value.name)
        if value is not self._root and (said := _declared(value)) is not None:
            return _hash("declared", kind.__qualname__, self._items(said))
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


def _steps(code: types.CodeType, wanted: AbstractSet[str]) -> set[str]:
    """The names that steps of these kinds have, in code and in the functions inside it."""
    found = {str(step.argval) for step in dis.get_instructions(code) if step.opname in wanted}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _steps(constant, wanted)
    return found


def _source_of(name: str) -> bytes:
    """The source of a module that a function imports when it is called, perhaps for the first time.

    Of a package its ``__init__``, without an import of it.
    """
    top = name.partition(".")[0]
    try:
        spec = None if not top or _library(top) else importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    place = None if spec is None else spec.origin
    return _hash(name) if place is None or _installed(place) else _hash(name, _read(place))


def _filled(slot: types.MemberDescriptorType, value: Any) -> bool:
    try:
        slot.__get__(value)
    except AttributeError:
        return False
    return True


def _declared(value: Any) -> Mapping[str, Any] | None:
    """The settings of a part that declares them: a retriever, or one of our other objects."""
    if not has_index(value) and type(value).__module__.partition(".")[0] != _OWN:
        return None
    try:
        return settings_of(value)
    except RankgaugeError:
        return None


def _library(name: str | None) -> bool:
    """Whether a module is of Python, of an installed package, or of this one."""
    top = (name or "").partition(".")[0]
    if top == _OWN or top in sys.stdlib_module_names:
        return True
    return _installed(getattr(sys.modules.get(name or ""), "__file__", None) or "")


def _installed(place: str) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(place).parts)


def _version(name: str | None) -> str:
    top = (name or "").partition(".")[0]
    if top in sys.stdlib_module_names:
        return sys.version
    return str(getattr(sys.modules.get(top), "__version__", ""))


def _source(module: types.ModuleType) -> bytes:
    place = getattr(module, "__file__", None)
    return _read(place) if place else b""


def _read(place: str) -> bytes:
    try:
        return hashlib.blake2b(Path(place).read_bytes()).digest()
    except OSError:
        return b""
