"""Judgments as old collections and learning-to-rank tools keep them.

* SMART (CISI, CACM, MED, CRAN): ``query document 0 0.000000``: a pair that is there is relevant.
* NPL (``rlv-ass``): a line with the number of the query, lines of document numbers, a line ``/``.
* LETOR, SVMlight: ``grade qid:query feature:value ... # document``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rankgauge.core.ids import Ids
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import FormatError
from rankgauge.formats.layout import JUDGMENTS, finite_numbers, read_number, table_of
from rankgauge.formats.lines import shorten

__all__ = ["begins_letor", "begins_npl", "begins_smart", "read_classic"]

_Lines = Iterable[tuple[int, bytes]]
_Row = tuple[int, bytes, bytes, float]
_SMART = 4
_END = b"/"


def begins_smart(line: bytes) -> bool:
    """Whether this line is one of SMART: for TREC it would speak of a document called 0."""
    fields = line.split()
    return len(fields) == _SMART and fields[2] == b"0" and fields[3].strip(b"0") == b"."


def begins_npl(line: bytes) -> bool:
    """Whether this line holds a number and nothing else."""
    return line.strip().isdigit()


def begins_letor(line: bytes) -> bool:
    """Whether this line begins with a grade and the number of a query behind ``qid:``."""
    fields = line.split(None, 2)
    return len(fields) > 1 and fields[1].startswith(b"qid:")


def read_classic(lines: _Lines, name: str, form: str) -> PairTable:
    """Judgments in one of these formats: ``smart``, ``npl`` or ``letor``.

    Raises:
        FormatError: With the first line that does not fit.
    """
    reader, said = {
        "smart": (_smart, "read as SMART judgments: a pair that is there is relevant (grade 1)"),
        "npl": (_npl, "read as rlv-ass judgments: a document that is named is relevant (grade 1)"),
        "letor": (_letor, "read as LETOR judgments: the document is what stands behind #"),
    }[form]
    rows = list(reader(lines, name))
    if not rows:
        raise FormatError("there is no judgment to read", path=name, fix="give at least one")
    numbers = [row[0] for row in rows]

    def blame(row: int, what: str, fix: str) -> FormatError:
        return FormatError(what, path=name, line=numbers[row], fix=fix)

    table = table_of(
        Ids.of([row[1] for row in rows], "query id", blame),
        Ids.of([row[2] for row in rows], "document id", blame),
        finite_numbers([row[3] for row in rows], JUDGMENTS, blame),
        JUDGMENTS,
        source=name,
        lines=numbers,
    )
    return table.said(f"{name}: {said}", source=name)


def _smart(lines: _Lines, name: str) -> Iterator[_Row]:
    for number, line in lines:
        fields = line.split()
        if not fields:
            continue
        if len(fields) != _SMART or b"".join(fields[2:]).strip(b"0.") != b"":
            raise FormatError(
                f"got {len(fields)} fields, wanted: query document 0 0.000000",
                path=name, line=number, text=shorten(line),
                fix="give lines of SMART only, or judgments of TREC: q1 0 d1 2",
            )  # fmt: skip
        yield number, fields[0], fields[1], 1.0


def _npl(lines: _Lines, name: str) -> Iterator[_Row]:
    query = b""
    begun = 0
    for number, line in lines:
        fields = line.split()
        if not fields:
            continue
        if not query and len(fields) == 1 and fields[0] != _END:
            query, begun = fields[0], number
        elif query and fields == [_END]:
            query = b""
        elif query:
            yield from ((number, query, doc, 1.0) for doc in fields)
        else:
            raise FormatError(
                f"got {len(fields)} fields where the number of a query was wanted",
                path=name, line=number, text=shorten(line),
                fix="give a line with the query, lines of its documents, and a line with /",
            )  # fmt: skip
    if query:
        raise FormatError(
            "what begins here is not closed by a line with /", path=name, line=begun,
            fix="write / behind the documents; judgments of TREC have lines such as: q1 0 d1 2",
        )  # fmt: skip


def _letor(lines: _Lines, name: str) -> Iterator[_Row]:
    for number, line in lines:
        said, mark, behind = line.partition(b"#")
        fields = said.split(None, 2)
        if not fields:
            continue
        doc = _letor_document(behind) if mark else b""
        if not begins_letor(said) or not fields[1][4:] or not doc:
            raise FormatError(
                "there is no document behind #" if begins_letor(said) and not doc
                else "the line has no query: qid:1",
                path=name, line=number, text=shorten(line),
                fix="give lines such as: 2 qid:1 1:0.5 # d1",
            )  # fmt: skip
        try:
            grade = read_number(fields[0])
        except ValueError:
            raise FormatError(
                f"grade {shorten(fields[0])!r} is not a number",
                path=name, line=number, column=1, text=shorten(line),
                fix="give every grade as a number",
            ) from None  # fmt: skip
        yield number, fields[1][4:], doc, grade


def _letor_document(behind: bytes) -> bytes:
    """The first word of a comment, or what it calls docid: ``#docid = G1 inc = 1``."""
    words = behind.replace(b"=", b" = ").split()
    if words[:2] == [b"docid", b"="]:
        words = words[2:]
    return words[0] if words else b""
