"""Which responses in a journal belong to a retriever, so that they are reused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rankgauge.benchmark.code_hash import code_fingerprint
from rankgauge.benchmark.journal import Journal
from rankgauge.errors import InputError
from rankgauge.retrievers.protocol import settings_of

Again: TypeAlias = Literal["missing", "failed", "resume", "all"]


@dataclass(frozen=True)
class Identity:
    """What a retriever is."""

    # Its settings as plain values; without any, the name of the callable and the run. What its code
    # is, :func:`code_fingerprint` says.
    settings: Mapping[str, Any]
    declared: bool  # whether it, or the caller, declared settings
    word: str  # a readable word that can be part of a file name


def identify(retriever: Any, settings: Mapping[str, Any] | None, run: str) -> Identity:
    """Return what a retriever declares, together with the settings that the caller gives.

    Example:
        >>> identify(len, {"model": "e5"}, "dense").settings
        {'model': 'e5'}
        >>> identify(lambda text: [], None, "mine").declared
        False
    """
    named = retriever if hasattr(retriever, "__qualname__") else type(retriever)
    name = f"{named.__module__}.{named.__qualname__}"
    own = settings_of(retriever)
    if own is None and settings is None:
        return Identity({"callable": name, "run": run}, declared=False, word=_word(name))
    try:
        text = json.dumps({**(own or {}), **(settings or {})}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the settings of the retriever are not plain values: {error}", where=name,
            fix="use text, finite numbers, lists and mappings",
        ) from None  # fmt: skip
    plain = json.loads(text)
    return Identity(plain, declared=True, word=_word(str(plain.get("type", name))))


def _word(name: str) -> str:
    last = name.replace(".<lambda>", "lambda").rpartition(".")[2]
    return re.sub(r"[^A-Za-z0-9]+", "-", last).strip("-")[:40].lower() or "retriever"


class Reuse:
    """Decides whether the responses in an open journal may be used again.

    The journal of a retriever with settings has only responses of the same settings: all are used.
    Without settings they are used if the run was not finished and the code is the same, else set
    aside; ``again="resume"`` uses them all the same.

    Attributes:
        code: The digest of the code; empty for a retriever with settings.
        reason: Why responses are used again.
        remark: Why they are not; empty if they are, or there were none.
    """

    def __init__(self, retriever: Any, journal: Journal, again: Again, *, declared: bool) -> None:
        self._retriever, self._journal, self._declared = retriever, journal, declared
        self.code = self.remark = self._first = ""
        self.reason = "same settings (declared)"
        if declared:
            return
        found = code_fingerprint(retriever)
        self.code = self._first = found.digest
        resumed = again == "resume"
        self.reason = 'requested (again="resume")' if resumed else "unfinished run of the same code"
        if resumed:
            journal.take_back()
        elif journal.resumed:
            known = journal.head.get("code") or []
            why = ""
            if found.digest not in known:
                why = "its code, or a value that it uses, has changed"
                if found.opaque:
                    why = f"it uses {found.opaque}, which cannot be compared between processes"
            elif journal.head.get("finished") and again == "missing":
                why = "it declares no settings, and the run was finished"
            if not why:
                self._first = known[0]
                return
            journal.set_aside()
            self.remark = (
                f"every query was run again: {why}; give it settings, or use "
                'again="resume" (--resume) where the earlier responses are right'
            )

    def note_code(self, *, changed: bool = False) -> None:
        """Record the hash of the code before and after: queries may have changed its values."""
        if not self._declared:
            now = code_fingerprint(self._retriever).digest if changed else self.code
            self._journal.note(code=[self._first, now])
