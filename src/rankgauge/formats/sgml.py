"""Documents and topics as TREC marks them up: SGML that need not close its tags, and XML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from rankgauge.errors import FormatError
from rankgauge.formats.lines import decoded

__all__ = ["begins", "parts_of", "pieces"]

_OPENING = re.compile(rb"\s*<(doc|topic|top)(?=[\s>])", re.IGNORECASE)
_CLOSING = re.compile(rb"</(doc|topic|top)\s*>", re.IGNORECASE)
_OUTSIDE = re.compile(
    rb"\s*<(\?xml|!|topics?\b|top\b|doc\b|docs\b|root\b|webtrack|xml\b)", re.IGNORECASE
)
_ATTRIBUTES = re.compile(r"""(?<![\w-])([\w-]+)\s*=\s*("[^"]*"|'[^']*')""")
_TAG = re.compile(r"<[^<>]*>")
_BLANKS = re.compile(r"[ \t]+")
_DOCNO, _TITLE, _TEXT, _SUBTOPIC = (
    {
        name: (
            re.compile(rf"<{name}{end}", re.IGNORECASE),
            re.compile(rf"</{name}\s*>", re.IGNORECASE),
        )
        for name in names
    }
    for names, end in (
        (("docno",), ">"),
        (("title", "headline", "head", "ttl", "h3"), ">"),
        (("text", "body", "leadpara", "lp"), ">"),
        (("subtopic",), r"\b"),
    )
)
_PART = re.compile(r"<(num|title|desc|narr|query|question|description|narrative)>", re.IGNORECASE)
# What old topics write before each part.
_LABEL = re.compile(r"^\s*(Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)
_NAMES = {"desc": "description", "narr": "narrative"}
# Of each name the tag that opens and the one that closes.
_Tags: TypeAlias = dict[str, tuple[re.Pattern[str], re.Pattern[str]]]
_FIX = "give <DOC><DOCNO>d1</DOCNO><TEXT>...</TEXT></DOC>, or JSON lines"
_FIX_TOPIC = "give <top><num>1</num><title>...</title></top>, or JSON lines"


def begins(line: bytes) -> bool:
    """Whether a file that begins with this line is marked up as we know it."""
    return _OUTSIDE.match(line) is not None


def pieces(lines: Iterable[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    """Each document or topic with its tags: the line and the byte where it begins, and it."""
    kept: list[bytes] = []
    number = offset = 0
    for at, place, line in lines:
        if not kept:
            if _OPENING.match(line) is None:
                continue
            number, offset = at, place
        elif _OPENING.match(line) is not None:
            yield number, offset, b"".join(kept)
            kept, number, offset = [], at, place
        kept.append(line)
        if _CLOSING.search(line):
            yield number, offset, b"".join(kept)
            kept = []
    if kept:
        yield number, offset, b"".join(kept)


def parts_of(piece: bytes, name: str, number: int) -> tuple[str, str, str, dict[str, Any]]:
    """Id, title, text and fields of a document or a topic.

    Raises:
        FormatError: If it has no id or, a topic, no text; if it is not closed, or not UTF-8.
    """
    if not _CLOSING.search(piece):
        raise FormatError(
            "what begins here is not closed before the next one, or at all", path=name, line=number,
            fix="close it: </DOC>, </top>, </topic>",
        )  # fmt: skip
    text = decoded(piece, name, number)
    begin = _OPENING.match(piece)
    if begin is not None and begin[1].lower() == b"doc":
        return _document(text, name, number)
    return _topic(text, name, number)


@dataclass(frozen=True, slots=True)
class _Part:
    """What stands between two tags: where they begin and end, and it."""

    start: int
    end: int
    text: str


def _parts(text: str, tags: _Tags) -> Iterator[_Part]:
    """What stands between these tags, in order; one that is not closed is none.

    One search for both tags would look to the end of the text for each that is not closed.
    """
    at = 0
    opened = {name: pair[0].search(text) for name, pair in tags.items()}
    while True:
        for name, found in opened.items():
            if found is not None and found.start() < at:
                opened[name] = tags[name][0].search(text, at)
        first = min(
            ((found.start(), name) for name, found in opened.items() if found is not None),
            default=None,
        )
        if first is None:
            return
        begun = opened[first[1]]
        ended = None if begun is None else tags[first[1]][1].search(text, begun.end())
        if begun is None or ended is None:
            # What is not closed from here on is not closed further on.
            opened[first[1]] = None
            continue
        at = ended.end()
        yield _Part(begun.start(), at, text[begun.end() : ended.start()])


def _document(text: str, name: str, number: int) -> tuple[str, str, str, dict[str, Any]]:
    key = next(_parts(text, _DOCNO), None)
    if key is None:
        raise FormatError("there is no <DOCNO>", path=name, line=number, fix=_FIX)
    rest = text[: key.start] + text[key.end :]
    title = next(_parts(rest, _TITLE), None)
    bodies = [found.text for found in _parts(rest, _TEXT)]
    if not bodies:
        bodies = [rest if title is None else rest[: title.start] + rest[title.end :]]
    heading = "" if title is None else " ".join(_plain(title.text).split())
    return key.text.strip(), heading, "\n".join(map(_plain, bodies)).strip(), {}


def _topic(text: str, name: str, number: int) -> tuple[str, str, str, dict[str, Any]]:
    head, _, body = text.partition(">")
    fields: dict[str, Any] = {key: value[1:-1] for key, value in _ATTRIBUTES.findall(head)}
    key = fields.pop("number", "")
    cuts = [0, *(at for part in _parts(body, _SUBTOPIC) for at in (part.start, part.end))]
    ends = [*cuts[1:], len(body)]
    body = " ".join(body[a:b] for a, b in zip(cuts[::2], ends[::2], strict=True))
    tags = list(_PART.finditer(body))
    ends = [*(tag.start() for tag in tags[1:]), len(body)][: len(tags)]
    parts: dict[str, str] = {}
    for tag, end in zip(tags, ends, strict=True):
        word = tag[1].lower()
        said = " ".join(_plain(_LABEL.sub("", body[tag.end() : end])).split())
        parts.setdefault(_NAMES.get(word, word), said)
    key = parts.pop("num", "") or key
    wanted = next((w for w in ("title", "query", "question", "description") if parts.get(w)), None)
    if not key or wanted is None:
        lacks = "number" if not key else "title"
        raise FormatError(f"the topic has no {lacks}", path=name, line=number, fix=_FIX_TOPIC)
    asked = parts.pop(wanted)
    return key.strip(), "", asked, fields | {word: said for word, said in parts.items() if said}


def _plain(text: str) -> str:
    """Without tags, and with what entities stand for."""
    return _BLANKS.sub(" ", html.unescape(_TAG.sub(" ", text))).strip()
