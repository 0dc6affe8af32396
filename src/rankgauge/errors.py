"""All errors that this package raises on purpose.

* RankgaugeError                 base class of all errors
  x InputError (ValueError)      invalid data
    + FormatError                a file cannot be parsed: path, line, text of the line
    + MismatchError              judgments and run do not match: ids of each side
    + StorageError               a database or temporary file cannot be used (locked, disk full)
  x UnknownName (ValueError)     unknown measure, parameter, or choice: the nearest names
  x MissingExtra (ImportError)   a library of an extra is not installed: the install command

A message has three parts: *what* was found (and expected), *where*, and one edit or command that
fixes it (*fix*). The command line prints it and exits with code 2. Secrets are removed from all
three parts (`core/redaction.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rankgauge.core.escaping import for_terminal
from rankgauge.core.text import either, shortened

__all__ = [
    "FormatError",
    "InputError",
    "MismatchError",
    "MissingExtra",
    "RankgaugeError",
    "StorageError",
    "UnknownName",
]


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
        # Imported by the first error, not at startup.
        from rankgauge.core.redaction import redact

        self.what = _printable(redact(what))
        super().__init__(self.what)
        self.where = _printable(redact(where))
        # A fix may contain an example of a URL with a password.
        self.fix = _printable(redact(fix, patterns=False))

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\nfix: {self.fix}" if self.fix else text

    def __reduce__(self) -> tuple[Any, ...]:
        # BaseException pickles only positional arguments; ours are keywords.
        return (_rebuild, (type(self), self.__dict__.copy()))


def _printable(text: str) -> str:
    """Escape text for a terminal, on one line of limited length."""
    return for_terminal(shortened(text))


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
        line: Line number, from 1; 0 if no single line is affected.
        column: Column (field) number, from 1; 0 if the whole line is affected.
        text: Text of the line, shortened.
    """

    def __init__(self, what: str, *, path: str, line: int = 0, column: int = 0, text: str = "", fix: str = "") -> None:
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
    """Judgments and run do not match."""


class StorageError(InputError):
    """A database cannot be used: it is locked, its disk is full, or its server is unreachable.

    Writing failed; previously stored data is unchanged.
    """


class UnknownName(RankgaugeError, ValueError):  # noqa: N818 - a name in the field's words
    """An unknown name; the message lists the nearest known names."""

    @classmethod
    def of(cls, what: str, got: str, known: Iterable[str], *, where: str = "") -> UnknownName:
        """Return the error for an unknown name, with the nearest known names."""
        import difflib

        names = list(known)
        lowered = {name.lower(): name for name in names}
        near = difflib.get_close_matches(got.lower()[:60], lowered, n=3, cutoff=0.5)
        fix = f"did you mean {either([lowered[name] for name in near])}?" if near else f"known: {', '.join(names)}"
        return cls(f"unknown {what} {got[:60]!r}", where=where, fix=fix)


class MissingExtra(RankgaugeError, ImportError):  # noqa: N818 - a name in the field's words
    """A library is not installed; the message gives the install command."""
