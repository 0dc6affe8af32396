"""Annotations of GitHub: lines of a log that are shown beside the code and on top of a run."""

from __future__ import annotations

import re

__all__ = ["MOST", "annotation", "escaped", "shown_plainly"]

# GitHub shows ten annotations of a kind a step and drops the others without a word.
MOST = 10
_MESSAGE = 4000
_TITLE = 200


def annotation(kind: str, title: str, message: str, *, file: str = "", line: int = 0) -> str:
    """A workflow command, escaped by its rules.

    Args:
        kind: ``error``, ``warning`` or ``notice``.
        title: What it is about.
        message: What there is to say.
        file: The file it is about, if any.
        line: Its line, 0 for none.

    Example:
        >>> annotation("error", "R101 twice", "d1, d1", file="a,b.run", line=3)
        '::error file=a%2Cb.run,line=3,title=R101 twice::d1, d1'
    """
    words = [f"file={escaped(shown_plainly(file), ':,')}"] if file else []
    words += [f"line={line}"] if file and line else []
    words += [f"title={escaped(shown_plainly(title)[:_TITLE], ':,')}"]
    return f"::{kind} {','.join(words)}::{escaped(shown_plainly(message)[:_MESSAGE])}"


def escaped(text: str, signs: str = "") -> str:
    """Text for a workflow command; in a property `signs` are escaped, too."""
    for sign in ("%", "\r", "\n", *signs):
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


def shown_plainly(text: str) -> str:
    """Without what XML 1.0 cannot hold, nor any log show."""
    return re.sub(
        "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]",
        lambda found: ascii(found[0])[1:-1],
        text,
    )
