"""Every error this package raises on purpose.

* RankgaugeError                 catch this one to catch them all
  x InputError (ValueError)      the data is not what we can work with
    + FormatError                a file cannot be read: path, line, the line itself
    + MismatchError              judgments and run do not belong together: ids of each side
    + StorageError               a database or temporary file cannot be used (locked, disk full)
  x UnknownName (ValueError)     an unknown measure, parameter or choice: shows the nearest
  x MissingExtra (ImportError)   a library of an extra is not installed: shows the install line

A message has three parts: *what* was found (and what was expected), *where*, and the one edit or
command that fixes it (*fix*). The command line prints it and ends with exit code 2. Secrets are
removed from all three (`core/redaction.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rankgauge.core.escaping import for_terminal

__all__ = [
    "FormatError",
    "InputError",
    "MismatchError",
    "MissingExtra",
    "RankgaugeError",
    "StorageError",
    "UnknownName",
]

# Characters of a part of a message, and of its end where it is longer.
_MOST, _END = 1500, 200


class RankgaugeError(Exception):
    """Base of all errors of this package: what was found, where, and how to fix it.

    Args:
        what: What was found and what was expected, in one sentence.
        where: The location: a path with line and column, a query, or a parameter.
        fix: One edit or command that fixes it.

    Example:
        >>> print(RankgaugeError("k=0 is not possible", where="P@0", fix="write P@1"))
        P@0: k=0 is not possible
        fix: write P@1
    """

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        # Loaded by the first error, not by every start.
        from rankgauge.core.redaction import redact

        self.what = _printable(redact(what))
        super().__init__(self.what)
        self.where = _printable(redact(where))
        # A fix may show how a URL with a password is written.
        self.fix = _printable(redact(fix, patterns=False))

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\nfix: {self.fix}" if self.fix else text

    def __reduce__(self) -> tuple[Any, ...]:
        # BaseException pickles positional arguments only; ours are keywords.
        return (_rebuild, (type(self), self.__dict__.copy()))


def _printable(text: str) -> str:
    """The text as one line of a terminal, not longer than one reads."""
    if len(text) > _MOST:
        text = f"{text[: _MOST - _END]} ... {text[-_END:]}"
    return for_terminal(text)


def _rebuild(kind: type[RankgaugeError], state: dict[str, Any]) -> RankgaugeError:
    error = kind.__new__(kind, state["what"])
    error.__dict__.update(state)
    error.args = (state["what"],)
    return error


class InputError(RankgaugeError, ValueError):
    """The data is not valid."""


class FormatError(InputError):
    """A file does not have the expected format.

    Attributes:
        path: The file, ``<stdin>`` for standard input.
        line: The line number, from 1; 0 if no single line is affected.
        column: The column (field) number, from 1; 0 if the whole line is affected.
        text: The line itself, shortened.
    """

    def __init__(
        self,
        what: str,
        *,
        path: str,
        line: int = 0,
        column: int = 0,
        text: str = "",
        fix: str = "",
    ) -> None:
        where = path
        if line:
            where += f", line {line}"
        if column:
            where += f", column {column}"
        super().__init__(what, where=where, fix=fix)
        self.path = path
        self.line = line
        self.column = column
        self.text = text

    def __str__(self) -> str:
        shown = f"{self.where}: {self.what}"
        if self.text:
            shown += f"\nline: {_printable(self.text)}"
        return f"{shown}\nfix: {self.fix}" if self.fix else shown


class MismatchError(InputError):
    """Judgments and run do not belong together."""


class StorageError(InputError):
    """A database cannot be used now: it is locked, its disk is full, its server is not reached.

    Writing failed; what was stored before is unchanged.
    """


class UnknownName(RankgaugeError, ValueError):  # noqa: N818 - a name in the field's words
    """An unknown name; the message shows the nearest ones."""

    @classmethod
    def of(cls, what: str, got: str, known: Iterable[str], *, where: str = "") -> UnknownName:
        """Return the error for an unknown name, with the nearest known ones."""
        import difflib

        names = list(known)
        lowered = {name.lower(): name for name in names}
        near = difflib.get_close_matches(got.lower()[:60], lowered, n=3, cutoff=0.5)
        meant = f"did you mean {' or '.join(lowered[name] for name in near)}?"
        fix = meant if near else f"known: {', '.join(names)}"
        return cls(f"unknown {what} {got[:60]!r}", where=where, fix=fix)


class MissingExtra(RankgaugeError, ImportError):  # noqa: N818 - a name in the field's words
    """A library is not installed; the message is the line that installs it."""
