"""Documents and queries in the mark-up of SMART: ``.I 1``, ``.T``, ``.W``, a section to each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rankgauge.errors import FormatError
from rankgauge.formats.lines import decoded

__all__ = ["begins", "parts_of", "pieces"]

_SECTION = re.compile(r"^\.([A-Z])(?:[ \t]+(.*))?$", re.MULTILINE)
# Sections that say something of a text; others, such as references, are left.
_NAMES = {"A": "author", "B": "source", "K": "keywords", "N": "note"}


def begins(line: bytes) -> bool:
    """Whether a text begins with this line."""
    return line.startswith(b".I ")


def pieces(lines: Iterable[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    """Each text with its sections: the line and the byte where it begins, and it."""
    kept: list[bytes] = []
    number = offset = 0
    for at, place, line in lines:
        if begins(line):
            if kept:
                yield number, offset, b"".join(kept)
            kept, number, offset = [], at, place
        kept.append(line)
    if kept:
        yield number, offset, b"".join(kept)


def parts_of(piece: bytes, name: str, number: int) -> tuple[str, str, str, dict[str, str]]:
    """Id, title, text and fields.

    Raises:
        FormatError: If it has no id or no text, or is not UTF-8.
    """
    text = decoded(piece, name, number).replace("\r\n", "\n")
    found = list(_SECTION.finditer(text))
    ends = [one.start() for one in found[1:]] + [len(text)]
    parts: dict[str, str] = {}
    for one, end in zip(found, ends, strict=True):
        said = f"{one[2] or ''} {text[one.end() : end]}"
        parts.setdefault(one[1], " ".join(said.split()))
    key, body = parts.get("I", ""), parts.get("W", "")
    if not key or (not body and not parts.get("T")):
        raise FormatError(
            f"there is no {'text: .W' if key else 'id: .I 1'}", path=name, line=number,
            fix="give sections such as .I 1, .T title, .W text, or JSON lines",
        )  # fmt: skip
    fields = {_NAMES[letter]: said for letter, said in parts.items() if letter in _NAMES and said}
    return key, parts.get("T", ""), body, fields
