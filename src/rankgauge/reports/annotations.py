"""GitHub annotations: workflow commands that show messages next to the code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rankgauge.core.escaping import for_annotation

# GitHub shows ten annotations of each kind per step and silently drops the others.
MOST = 10
_MESSAGE = 4000
_TITLE = 200


class Annotation(NamedTuple):
    """An annotation, printed as an escaped workflow command.

    Example:
        >>> print(Annotation("error", "R101 twice", "d1, d1", "a,b.run", 3))
        ::error file=a%2Cb.run,line=3,title=R101 twice::d1, d1
    """

    kind: str  # ``error``, ``warning``, or ``notice``
    title: str  # title
    message: str  # text
    file: str = ""  # file, if any
    line: int = 0  # line; 0 if unknown

    def __str__(self) -> str:
        words = [f"file={for_annotation(self.file, is_property=True)}"] if self.file else []
        words += [f"line={self.line}"] if self.file and self.line else []
        words += [f"title={for_annotation(self.title[:_TITLE], is_property=True)}"]
        return f"::{self.kind} {','.join(words)}::{for_annotation(self.message[:_MESSAGE])}"


def annotation_lines(found: Iterable[Annotation], title: str, hint: str = "") -> str:
    """Return the annotations up to GitHub's limit per kind; the last one counts the rest."""
    by_kind: dict[str, list[Annotation]] = {}
    for each in found:
        by_kind.setdefault(each.kind, []).append(each)
    for kind, own in by_kind.items():
        if len(own) > MOST:
            more = f"+{len(own) - MOST + 1} more{hint}"
            own[MOST - 1 :] = [Annotation(kind, title, more)]
    return "".join(f"{each}\n" for own in by_kind.values() for each in own)
