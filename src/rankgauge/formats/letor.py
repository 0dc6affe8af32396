"""Read judgments for learning to rank (LETOR, SVMlight): ``2 qid:1 1:0.5 # d1``."""

from __future__ import annotations

from collections.abc import Iterable

from rankgauge.core.pair_table import PairTable
from rankgauge.formats.numbers import read_number, wrong_number
from rankgauge.formats.rows import Rows


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
        doc = _document(comment)
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
    note = f"{rows.name}: read as LETOR judgments: the document is the text after #"
    return rows.table().with_notes(note, source=rows.name)


def _document(comment: bytes) -> bytes:
    words = comment.replace(b"=", b" = ").split()
    if words[:2] == [b"docid", b"="]:
        words = words[2:]
    return words[0] if words else b""
