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

# Elements that are a document or a topic; a comment hides those in it.
_MARK = re.compile(rb"<(/?)(doc|topic|top)(?=[\s/>])|<!--", re.IGNORECASE)
_COMMENT = b"<!--"
# What ends the element or the comment that is open, by its name, or begins another of its kind.
_WITHIN = {
    name: re.compile(rb"<(/?)(" + name + rb")(?=[\s/>])", re.IGNORECASE)
    for name in (b"doc", b"topic", b"top")
} | {b"": _MARK, _COMMENT: re.compile(rb"-->")}
# The beginning of a mark, where a part of a line ends.
_CUT = re.compile(rb"(<[^\s<>]{0,6}|--?)\Z")
_LONGEST_MARK = 8
_OUTSIDE = re.compile(
    rb"\s*<(\?xml|!|topics?\b|top\b|doc\b|docs\b|root\b|webtrack|xml\b)", re.IGNORECASE
)
_ATTRIBUTES = re.compile(r"""(?<![\w-])([\w-]+)\s*=\s*("[^"]*"|'[^']*')""")
# "<" is that of a tag where a name follows at once: in "5 < 6 and 7 > 3" there is no tag.
_TAG = re.compile(r"</?[^\W\d][\w.:-]*(?:\s[^<>]*)?/?>|<[!?][^<>]*>")
_ENDS = {"<!--": "-->", "<![CDATA[": "]]>"}
_SECTION = re.compile("|".join(map(re.escape, _ENDS)))
_BLANKS = re.compile(r"[ \t]+")
_DOCNO, _TITLE, _TEXT, _SUBTOPIC = (
    {
        name: (
            re.compile(rf"<{name}(?:\s[^<>]*)?>", re.IGNORECASE),
            re.compile(rf"</{name}\s*>", re.IGNORECASE),
        )
        for name in names
    }
    for names in (
        ("docno",),
        ("title", "headline", "head", "ttl", "h3"),
        ("text", "body", "leadpara", "lp"),
        ("subtopic",),
    )
)
_PART = re.compile(
    r"<(num|title|desc|narr|query|question|description|narrative)(?:\s[^<>]*)?>", re.IGNORECASE
)
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
    """Each document or topic with its tags: the line and the byte where it begins, and it.

    It ends with its closing tag, wherever in a line. What :func:`parts_of` refuses is a piece,
    too: an element that is not closed before the next one, a closing tag without an element, and a
    comment that is not closed.

    Args:
        lines: The number and the offset of each line or part of a line, and it.
    """
    inside = tail = b""
    kept: list[bytes] = []
    begun = (0, 0)
    for number, offset, line in lines:
        data, first, at = tail + line, offset - len(tail), 0
        while (mark := _WITHIN[inside].search(data, at)) is not None:
            place = (number, first + mark.start())
            if inside == _COMMENT:
                inside = b""
            elif inside and mark[1]:
                yield (*begun, b"".join([*kept, data[at : mark.end()], b">"]))
                inside = b""
            elif inside:
                yield (*begun, b"".join([*kept, data[at : mark.start()]]))
                begun, kept = place, [mark[0]]
            elif mark[1]:
                yield (*place, mark[0] + b">")
            else:
                inside, begun, kept = (mark[2] or _COMMENT).lower(), place, [mark[0]]
            at = mark.end()
        cut = _CUT.search(data, max(at, len(data) - _LONGEST_MARK))
        tail = b"" if cut is None else cut[0]
        if inside and inside != _COMMENT:
            kept.append(data[at : len(data) - len(tail)])
    if inside:
        yield (*begun, b"".join([*kept, tail]))


def parts_of(piece: bytes, name: str, number: int) -> tuple[str, str, str, dict[str, Any]]:
    """Id, title, text and fields of a document or a topic.

    Raises:
        FormatError: If it has no id or, a topic, no text; if it is not closed, or not UTF-8.
    """
    mark = _MARK.match(piece)
    what = fix = element = ""
    if mark is None or mark[0] == _COMMENT:
        what, fix = "the comment that begins here is not closed", "close it: -->"
    else:
        element = mark[2].decode()
        if mark[1]:
            what = f"</{element}> closes nothing: no <{element}> is open"
            fix = f"remove it, or write &lt;/{element}&gt; where it belongs to the text"
        elif not piece.rstrip().lower().endswith(b"</" + mark[2].lower() + b">"):
            what = f"<{element}> is not closed before the next one, or at all"
            fix = f"close it: </{element}>; where it belongs to the text, write &lt;{element}&gt;"
    if what:
        raise FormatError(what, path=name, line=number, fix=fix)
    text = _without_sections(decoded(piece, name, number))
    if element.lower() == "doc":
        return _document(text, name, number)
    return _topic(text, name, number)


def _without_sections(text: str) -> str:
    """Without comments, and the content of CDATA as escaped text; what is not closed stays."""
    made: list[str] = []
    unclosed: set[str] = set()
    at = 0
    for found in _SECTION.finditer(text):
        kind = found[0]
        if found.start() < at or kind in unclosed:
            continue
        end = text.find(_ENDS[kind], found.end())
        if end < 0:
            unclosed.add(kind)
            continue
        content = " " if kind == "<!--" else html.escape(text[found.end() : end], quote=False)
        made += [text[at : found.start()], content]
        at = end + len(_ENDS[kind])
    return "".join([*made, text[at:]])


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
