"""Mutations that turn a valid input into a malformed or unusual one."""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["lengthen", "mutate", "mutate_text"]

# Replacements for numbers, ids, lines, and markup.
_WORDS = (
    b"nan",
    b"NaN",
    b"-inf",
    b"Infinity",
    b"1e400",
    b"-1e400",
    b"1e-400",
    b"0x1p3",
    b"1_000",
    b"1,5",
    b"+1",
    b"--1",
    b"1.",
    b".5",
    b"1e",
    b"\xd9\xa1",
    b"9" * 400,
    b"0." + b"1" * 400,
    b"1e308",
    b"5e-324",
    b"-0",
    b"2147483648",
    b"18446744073709551616",
    b"-1",
    b"0",
    b"1",
    b"null",
    b"true",
    b"None",
    b"{}",
    b"[]",
    b'""',
    b"'",
    b'"',
    b"\\",
    b",",
    b";",
    b"|",
    b"\t",
    b" ",
    b"  ",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\x0b",
    b"\x0c",
    b"\x1c",
    b"\x85",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"\0",
    b"\xff",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\\u0000",
    b"#",
    b"# a comment\n",
    b"<",
    b">",
    b"</top>",
    b"<top>",
    b"<subtopic ",
    b"<DOCNO>",
    b"<title>",
    b"<DOC>",
    b"&amp;",
    b"&#0;",
    b"<![CDATA[",
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>",
    b"../../etc/passwd",
    b"C:\\x",
    b"%s",
    b"{0}",
    b"$(x)",
    b"q1 Q0 d1 1 1 t\n",
    b"q1 0 d1 1\n",
    b"q1\td1\t1\n",
    b'{"q1": {"d1": 1}}',
    b'{"q1": {"d1": 1}, "q1": {}}',
    b"query_id,doc_id,score\n",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"\xfd7zXZ\0",
    b"BZh9",
    b"\x28\xb5\x2f\xfd",
    b"PAR1",
    b"ARROW1",
    b"\x80\x04",
    b"SQLite format 3\0",
    b"=1+1",
    b"@",
    b"-",
    b"a" * 5000,
    b"1" * 5000,
    b"\xf0\x9f\x98\x80",
)
_NESTS = (b"[", b"{", b'{"a":', b"[[", b"(", b"<a>", b'{"requests":[')
_TEXT_WORDS = (
    "@",
    "(",
    ")",
    "=",
    ",",
    "'",
    '"',
    "@0",
    "@-1",
    "@1e9",
    "@99999999999999999999",
    "@10@10",
    "@1.5",
    "@nan",
    "(rel=0)",
    "(rel=nan)",
    "(rel=1e400)",
    "(p=1)",
    "(p=2)",
    "(gain={})",
    "(gain={0:0",
    "(top=0)",
    "rel=",
    "k=",
    "\0",
    "\ud800",
    "é",
    "٣",
    " ",
    "\n",
    "_",
    ".",
    "cut",
    "(((((",
    "{{{{",
    "9" * 400,
    "a" * 3000,
    "__class__",
    "lambda: 1",
    "nDCG",
    "map_cut",
    "%",
    "\\",
    "{",
    "}",
    ":",
    "True",
    "None",
    "dcg='exp-log2'",
    "norm",
    "judged_only=True",
)


def mutate(data: bytes, other: bytes, draw: random.Random) -> bytes:
    """Return the bytes after one to six mutations; `other` is another input to splice from."""
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        change = draw.choice(_CHANGES)
        data = change(data, draw) if change is not _spliced else _spliced(data + b"", draw, other)
    return data


def lengthen(data: bytes, draw: random.Random) -> bytes:
    """Return the bytes with a very long repetition inside."""
    start, stop = _span(data, draw)
    word = draw.choice((*_WORDS, *_NESTS, data[start:stop] or b"a", data))
    times = draw.choice((1 << 12, 1 << 16, 1 << 20)) // len(word)
    return data[:start] + word * max(times, 1) + data[start:]


def mutate_text(text: str, draw: random.Random) -> str:
    """Return a name after one to four mutations."""
    for _ in range(draw.choice((1, 1, 2, 4))):
        at = draw.randint(0, len(text))
        to = min(len(text), at + draw.choice((0, 0, 1, 3)))
        text = text[:at] + draw.choice((*_TEXT_WORDS, chr(draw.randrange(32, 0x3000)), "")) + text[to:]
    return text


def _span(data: bytes, draw: random.Random) -> tuple[int, int]:
    start = draw.randint(0, len(data))
    return start, min(len(data), start + draw.choice((0, 1, 1, 2, 4, 16, 64)))


def _flipped(data: bytes, draw: random.Random) -> bytes:
    if not data:
        return data
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]


def _removed(data: bytes, draw: random.Random) -> bytes:
    start, stop = _span(data, draw)
    return data[:start] + data[stop:]


def _worded(data: bytes, draw: random.Random) -> bytes:
    start, stop = _span(data, draw)
    return data[:start] + draw.choice(_WORDS) + data[stop if draw.random() < 0.5 else start :]


def _field(data: bytes, draw: random.Random) -> bytes:
    """Replace one field of one line; the rest of the line stays valid."""
    lines = data.split(b"\n")
    row = draw.randrange(len(lines))
    for separator in (b"\t", b",", b" "):
        cells = lines[row].split(separator)
        if len(cells) > 1:
            cells[draw.randrange(len(cells))] = draw.choice(_WORDS)
            lines[row] = separator.join(cells)
            break
    return b"\n".join(lines)


def _noise(data: bytes, draw: random.Random) -> bytes:
    start, stop = _span(data, draw)
    return data[:start] + draw.randbytes(draw.choice((1, 2, 8, 64))) + data[stop:]


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randint(0, len(data))]


def _repeated(data: bytes, draw: random.Random) -> bytes:
    start, stop = _span(data, draw)
    return data[:stop] + data[start:stop] * draw.choice((1, 2, 30, 400)) + data[stop:]


def _shuffled(data: bytes, draw: random.Random) -> bytes:
    lines = data.split(b"\n")
    draw.shuffle(lines)
    return b"\n".join(lines)


def _doubled(data: bytes, draw: random.Random) -> bytes:
    lines = data.split(b"\n")
    lines.insert(draw.randint(0, len(lines)), draw.choice(lines))
    return b"\n".join(lines)


def _nested(data: bytes, draw: random.Random) -> bytes:
    start, _ = _span(data, draw)
    return data[:start] + draw.choice(_NESTS) * draw.choice((3, 50, 2000)) + data[start:]


def _recoded(data: bytes, draw: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(draw.choice(("utf-16", "utf-16-le", "latin-1", "utf-7", "utf-8-sig")), "replace")


def _spliced(data: bytes, draw: random.Random, other: bytes = b"") -> bytes:
    return data[: draw.randint(0, len(data))] + other[draw.randint(0, len(other)) :]


def _line_ends(data: bytes, draw: random.Random) -> bytes:
    return data.replace(b"\n", draw.choice((b"\r\n", b"\r", b"\n\n", b"\n\r", b"\x85", b"")))


_CHANGES: tuple[Callable[..., bytes], ...] = (
    _flipped,
    _removed,
    _worded,
    _worded,
    _field,
    _field,
    _field,
    _noise,
    _cut,
    _repeated,
    _shuffled,
    _doubled,
    _nested,
    _recoded,
    _spliced,
    _line_ends,
)
