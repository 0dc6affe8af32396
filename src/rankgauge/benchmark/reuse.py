"""Reuse of stored responses: which retriever they belong to, and whether they are still valid."""

from __future__ import annotations

import inspect
import json
import re
import sys
import time
import types
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from rankgauge.benchmark.journal import Journal
from rankgauge.errors import InputError
from rankgauge.retrievers.protocol import settings_of

Rerun: TypeAlias = Literal["missing", "failed", "resume", "all"]
_STARTED = time.time()
_OWN = __name__.partition(".")[0]


class PartialSettings(dict[str, Any]):
    """Settings that do not identify a retriever completely, such as arguments of its factory.

    A change of these settings is noticed, but the retriever still counts as one without settings.
    """


@dataclass(frozen=True)
class Identity:
    """Identity of a retriever."""

    # Settings as plain values; without settings, the name of the callable and of the run.
    settings: Mapping[str, Any]
    declared: bool  # whether the retriever or the caller declared settings
    word: str  # a readable name for the folder


def identify(retriever: Any, settings: Mapping[str, Any] | None, run: str) -> Identity:
    """Return the identity of a retriever from its settings and those of the caller.

    Example:
        >>> identify(len, {"model": "e5"}, "dense").settings
        {'model': 'e5'}
        >>> identify(lambda text: [], None, "mine").declared
        False
    """
    named = retriever if hasattr(retriever, "__qualname__") else type(retriever)
    name = f"{named.__module__}.{named.__qualname__}"
    own = settings_of(retriever)
    partial = isinstance(settings, PartialSettings)
    if own is None and (settings is None or partial):
        found = {"callable": name, "run": run, **(settings or {})}
        return Identity(found, declared=False, word=_word(name))
    try:
        text = json.dumps({**(own or {}), **({} if partial else settings or {})}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the settings of the retriever are not plain values: {error}",
            where=name,
            fix="use text, finite numbers, lists, and mappings",
        ) from None
    plain = json.loads(text)
    return Identity(plain, declared=True, word=_word(str(plain.get("type", name))))


def _word(name: str) -> str:
    last = name.replace(".<lambda>", "lambda").rpartition(".")[2]
    return re.sub(r"[^A-Za-z0-9]+", "-", last).strip("-")[:40].lower() or "retriever"


class Source(NamedTuple):
    """The file that defines a retriever, and the main script, which may pass arguments to it."""

    name: str  # of the file
    digest: str  # hash of the contents of both


def source_of(retriever: Any) -> Source | None:
    """Return the file that defines a function, or the class of an object, and the main script.

    None without these files (in a notebook), if one has changed since this process started and may
    not be the code that runs, and for libraries, whose code is the same for different retrievers.

    Example:
        >>> source_of(max) is None
        True
    """
    try:
        found = inspect.unwrap(retriever)
        defined = found if inspect.isroutine(found) else type(found)
        path = Path(inspect.getsourcefile(defined) or "")
        main = Path(str(sys.modules["__main__"].__file__))
        files = [path, main] if main.is_file() else [path]  # not within rankgauge.exe
        top = defined.__module__.partition(".")[0]
        if (
            top == _OWN
            or top in sys.stdlib_module_names
            or {"site-packages", "dist-packages"}.intersection(path.parts)
            or any(file.stat().st_mtime > _STARTED for file in files)
        ):
            return None
        parts = [blake2b(file.read_bytes(), digest_size=16).digest() for file in files]
        return Source(path.name, blake2b(b"".join(parts), digest_size=16).hexdigest())
    except Exception:  # noqa: BLE001 - no file, or an object whose attributes raise anything
        return None


def undescribed(retriever: Any) -> list[Callable[[], Any]]:
    """Return weak references to the parts that settings may describe incompletely.

    The settings of our own classes are complete, except for their parts: other classes and callers
    may forget something. Two retrievers with equal settings and the same parts are the same.

    Example:
        >>> from rankgauge.retrievers import BM25, Hybrid
        >>> undescribed(Hybrid([BM25(), BM25(k1=1.2)]))
        []
    """
    own = type(retriever).__module__.partition(".")[0] == _OWN
    if own and settings_of(retriever) is not None:
        members = getattr(retriever, "members", ())
        return [reference for member in members for reference in undescribed(member)]
    try:
        if isinstance(retriever, types.MethodType):  # lives only for the call
            return [weakref.WeakMethod(retriever)]
        return [weakref.ref(retriever)]
    except TypeError:  # cannot be referenced weakly
        return [lambda: retriever]


def are_same(ones: list[Callable[[], Any]], others: list[Callable[[], Any]]) -> bool:
    """Return whether two lists of references refer to the same objects, which still exist."""
    return len(ones) == len(others) and all(
        one() is other() or (type(one()) is type(other()) is types.MethodType and one() == other())
        for one, other in zip(ones, others, strict=True)
    )


# Retrievers without settings whose responses this process stored or reused, by stamp of a journal.
_AUTHORS: dict[str, list[Callable[[], Any]]] = {}


class Reuse:
    """Decides whether the responses in an open journal can be reused.

    The journal of a retriever with settings contains only responses of the same settings, which are
    all reused. Without settings, responses are reused if the run was not finished, and they come
    from the same object in this process, or from another process in which the file that defines
    the retriever and the main script had the same contents. Other responses are set aside;
    ``rerun="resume"`` reuses them in any case.

    Attributes:
        code: The hash of these files for a retriever without settings; empty if unknown.
        reason: Why responses are reused.
        remark: Why responses are not reused; empty if they are, or there are none.
    """

    def __init__(self, retriever: Any, journal: Journal, rerun: Rerun, *, declared: bool) -> None:
        self.code = self.remark = ""
        self.reason = "same settings (declared)"
        if declared:
            return
        source, references = source_of(retriever), undescribed(retriever)
        self.code = source.digest if source else ""
        author, head = _AUTHORS.get(journal.head["stamp"]), journal.head
        why = ""
        if rerun == "resume":
            self.reason = 'requested (rerun="resume")'
            journal.take_back()
        elif head.get("finished") and rerun == "missing":
            why = "it declares no settings, and the run was finished"
        elif author is not None:
            self.reason = "unfinished run of the same object"
            why = "" if are_same(author, references) else "they are those of another object"
        elif source is None:
            why = "the file that defines it is unknown, has just changed, or belongs to a library"
        elif head.get("code") == source.digest:
            self.reason = f"unfinished run; {source.name} and the main script are unchanged (nothing else was compared)"
        else:
            why = f"{source.name}, which defines it, or the main script has changed"
        if why and journal.resumed:
            journal.set_aside()
            self.remark = (
                f"every query was run again: {why}; give it settings, or use "
                'rerun="resume" (--resume) if the earlier responses are still valid'
            )
        _AUTHORS[journal.head["stamp"]] = references
        journal.note(code=self.code)
