"""Read the formats of older collections: judgments of SMART, NPL, and LETOR, and texts of SMART.

* SMART judgments (CISI, CACM, MED, CRAN): ``query document 0 0.000000``; each pair is relevant.
* NPL (``rlv-ass``): a line with the query number, lines of document numbers, a line ``/``.
* LETOR, SVMlight (learning to rank): ``2 qid:1 1:0.5 # d1``.
* SMART texts: sections ``.I 1``, ``.T``, ``.W``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rankgauge.core.pair_table import PairTable
from rankgauge.core.text import many
from rankgauge.errors import FormatError
from rankgauge.formats.columns import read_number, wrong_number
from rankgauge.formats.lines import decoded
from rankgauge.formats.rows import Rows

_END = b"/"
_SECTION = re.compile(r"^\.([A-Z])(?:[ \t]+(.*))?$", re.MULTILINE)
# Sections with text; others, such as references, are ignored.
_NAMES = {"A": "author", "B": "source", "K": "keywords", "N": "note"}


def begins_smart(line: bytes) -> bool:
    """Return whether this is a line of SMART judgments: in TREC format, its document would be 0."""
    fields = line.split()
    return len(fields) == 4 and fields[2] == b"0" and fields[3].strip(b"0") == b"."


def begins_npl(line: bytes) -> bool:
    """Return whether this line is a single number."""
    return line.strip().isdigit()


def read_smart(lines: Iterable[tuple[int, bytes]], rows: Rows) -> PairTable:
    """Read SMART judgments."""
    for number, line in lines:
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 4 or b"".join(fields[2:]).strip(b"0.") != b"":
            what = f"got {many(len(fields), 'field')}, expected: query document 0 0.000000"
            fix = "use lines of SMART only, or judgments of TREC: q1 0 d1 2"
            rows.refuse(number, what, fix, text=line)
            continue
        rows.add(number, fields[0], fields[1], 1.0)
    return rows.table().with_notes(f"{rows.name}: read as SMART judgments: each listed pair is relevant (grade 1)")


def read_npl(lines: Iterable[tuple[int, bytes]], rows: Rows) -> PairTable:
    """Read NPL judgments."""
    query, begun = b"", 0
    for number, line in lines:
        fields = line.split()
        if not fields:
            continue
        if not query and len(fields) == 1 and fields[0] != _END:
            query, begun = fields[0], number
        elif query and fields == [_END]:
            query = b""
        elif query:
            for doc in fields:
                rows.add(number, query, doc, 1.0)
        else:
            what = f"got {many(len(fields), 'field')}, expected a query number"
            fix = "use a line with the query, lines of its documents, and a line with /"
            rows.refuse(number, what, fix, text=line)
    if query:
        raise FormatError(
            "the entry that begins here is not closed by a line with /",
            path=rows.name,
            line=begun,
            fix="write / after the documents; judgments of TREC have lines such as: q1 0 d1 2",
        )
    return rows.table().with_notes(
        f"{rows.name}: read as rlv-ass judgments: each listed document is relevant (grade 1)"
    )


def begins_text(line: bytes) -> bool:
    """Return whether this line begins a text with SMART markup."""
    return line.startswith(b".I ")


def pieces(lines: Iterable[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the line number, offset, and bytes of each text with its sections."""
    kept: list[bytes] = []
    number = offset = 0
    for at, place, line in lines:
        if begins_text(line):
            if kept:
                yield number, offset, b"".join(kept)
            kept, number, offset = [], at, place
        kept.append(line)
    if kept:
        yield number, offset, b"".join(kept)


def parts_of(piece: bytes, name: str, number: int) -> tuple[str, str, str, dict[str, str]]:
    """Return id, title, text, and fields."""
    text = decoded(piece, name, number).replace("\r\n", "\n")
    sections = list(_SECTION.finditer(text))
    ends = [section.start() for section in sections[1:]] + [len(text)]
    parts: dict[str, str] = {}
    for section, end in zip(sections, ends, strict=True):
        raw = f"{section[2] or ''} {text[section.end() : end]}"
        parts.setdefault(section[1], " ".join(raw.split()))
    key, body = parts.get("I", ""), parts.get("W", "")
    if not key or (not body and not parts.get("T")):
        raise FormatError(
            f"there is no {'text: .W' if key else 'id: .I 1'}",
            path=name,
            line=number,
            fix="use sections such as .I 1, .T title, .W text, or JSON lines",
        )
    fields = {_NAMES[letter]: raw for letter, raw in parts.items() if letter in _NAMES and raw}
    return key, parts.get("T", ""), body, fields


def begins_letor(line: bytes) -> bool:
    """Return whether this line begins with a grade and ``qid:``."""
    fields = line.split(None, 2)
    return len(fields) > 1 and fields[1].startswith(b"qid:")


def read_letor(lines: Iterable[tuple[int, bytes]], rows: Rows) -> PairTable:
    """Read judgments; the document is the first word of the comment, or its ``docid =``."""
    for number, line in lines:
        features, _, comment = line.partition(b"#")
        fields = features.split(None, 2)
        if not fields:
            continue
        words = comment.replace(b"=", b" = ").split()
        if words[:2] == [b"docid", b"="]:
            words = words[2:]
        doc = words[0] if words else b""
        if not begins_letor(features) or not fields[1][4:] or not doc:
            bare = begins_letor(features) and not doc
            what = "there is no document after #" if bare else "the line has no query: qid:1"
            rows.refuse(number, what, "use lines such as: 2 qid:1 1:0.5 # d1", text=line)
            continue
        try:
            grade = read_number(fields[0])
        except ValueError:
            what, fix = wrong_number(fields[0].decode("utf-8", "replace"), rows.layout)
            rows.refuse(number, what, fix, column=1, text=line)
            continue
        rows.add(number, fields[1][4:], doc, grade)
    return rows.table().with_notes(f"{rows.name}: read as LETOR judgments: the document is the text after #")
