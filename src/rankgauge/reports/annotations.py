"""Annotations of GitHub: lines of a log that are shown next to the code and on top of a run."""

from __future__ import annotations

from rankgauge.core.escaping import for_annotation

# GitHub shows ten annotations of a kind a step and drops the others without a word.
MOST = 10
_MESSAGE = 4000
_TITLE = 200


def annotation(kind: str, title: str, message: str, *, file: str = "", line: int = 0) -> str:
    """A workflow command, escaped by its rules.

    Args:
        kind: ``error``, ``warning`` or ``notice``.
        title: What it is about.
        message: The text.
        file: The file it is about, if any.
        line: Its line, 0 for none.

    Example:
        >>> annotation("error", "R101 twice", "d1, d1", file="a,b.run", line=3)
        '::error file=a%2Cb.run,line=3,title=R101 twice::d1, d1'
    """
    words = [f"file={for_annotation(file, is_property=True)}"] if file else []
    words += [f"line={line}"] if file and line else []
    words += [f"title={for_annotation(title[:_TITLE], is_property=True)}"]
    return f"::{kind} {','.join(words)}::{for_annotation(message[:_MESSAGE])}"
