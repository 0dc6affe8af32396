"""Read documents and topics with TREC markup: XML, or SGML with optional closing tags."""

from __future__ import annotations

import html
import itertools
import math
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeAlias

from rankgauge.errors import FormatError
from rankgauge.formats.lines import decoded, shorten

# Tags of documents and topics, and delimiters of sections, within which such tags are ignored.
_MARK = re.compile(rb"<(/?)(doc|topic|top)(?=[\s/>])|<!--|-->|<!\[CDATA\[|\]\]>", re.IGNORECASE)
_COMMENT = b"<!--"
_SECTION_ENDS = {_COMMENT: b"-->", b"<![CDATA[": b"]]>"}
# A longer section within a document is treated as unclosed.
_LONGEST_SECTION = 1 << 20
# The beginning of a tag or delimiter at the end of a partial line.
_CUT = re.compile(rb"(<[^\s<>]{0,7}|--?|\]\]?)\Z")
_LONGEST_MARK = 8
# Allowed between documents besides comments and blanks; old files end with Ctrl-Z.
_DOCTYPE = re.compile(rb"<!doctype\b[^\[>]*(?:\[.*?\]\s*)?>", re.IGNORECASE | re.DOTALL)
_BETWEEN = re.compile(rb"</?[a-z][^<>]*>|<[!?][^<>]*>|[\s\x1a]+", re.IGNORECASE)
_LONGEST_GAP = 1 << 16
_LONGEST_STRAY = 80
_OUTSIDE = re.compile(rb"\s*<(\?xml|!|topics?\b|top\b|doc\b|docs\b|root\b|webtrack|xml\b)", re.IGNORECASE)
_ATTRIBUTES = re.compile(r"""(?<![\w-])([\w-]+)\s*=\s*("[^"]*"|'[^']*')""")
_NAME = r"[^\W\d][\w.:-]*"
# HTML attributes without a value.
_BARE = "checked|compact|declare|defer|disabled|ismap|multiple|nohref|noresize|noshade|nowrap|readonly"
_TAG = re.compile(
    rf"""<(/?)({_NAME})
    (?:(?:\s+|(?<=["']))(?:[\w.:-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'|[^\s"'<>]+)|(?:{_BARE}|selected)(?=[\s/>])))*
    \s*(/?)>""",
    re.IGNORECASE | re.VERBOSE,
)
_DECLARATION = re.compile(r"<!(?:doctype|element|attlist|entity|notation)\b[^<>]*>|<\?[a-z][^<>]*>", re.IGNORECASE)
# HTML elements that occur within running text, closed or not.
_RUNNING = frozenset(
    """a abbr acronym address b basefont bdo big blink blockquote body br caption center cite code
    col colgroup dd del dfn dir div dl dt em fieldset font form frame frameset h1 h2 h3 h4 h5 h6 hr
    html i iframe img input ins kbd label legend li map menu nobr noframes noscript ol optgroup
    option p param pre q s samp select small span strike strong sub sup table tbody td textarea
    tfoot th thead tr tt u ul var wbr""".split()  # noqa: SIM905 - words
)
# Other HTML and TREC elements that are recognized even if not closed.
_ELEMENTS = _RUNNING | frozenset(
    """area base link meta object script style
    doc docs docid dochdr docno head headline hl lp leadpara text title ttl
    con def desc description dom fac nat narr narrative num query question smry subtopic top topic
    topics""".split()  # noqa: SIM905 - words
)
_ENDS = {"<!--": "-->", "<![CDATA[": "]]>"}
_SECTION = re.compile("|".join(map(re.escape, _ENDS)))
_BLANKS = re.compile(r"[ \t]+")
_DOCNO, _TITLE, _TEXT = (
    {
        name: (re.compile(rf"<{name}(?:\s[^<>]*)?>", re.IGNORECASE), re.compile(rf"</{name}\s*>", re.IGNORECASE))
        for name in names
    }
    for names in (("docno",), ("title", "headline", "hl", "head", "ttl", "h3"), ("text", "body", "leadpara", "lp"))
)
_TEXT_BEGINS = re.compile(r"<(?:text|body|leadpara|lp)(?:\s[^<>]*)?>", re.IGNORECASE)
_PART = re.compile(
    r"<(num|title|desc|narr|query|question|description|narrative|head|dom|smry|con|fac|nat|def)"
    r"(?:\s[^<>]*)?>",
    re.IGNORECASE,
)
# Labels at the beginning of parts in old topics.
_LABEL = re.compile(r"^\s*(Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)
_NAMES = {"desc": "description", "narr": "narrative"}
# Patterns of the opening and closing tag by name.
_Tags: TypeAlias = dict[str, tuple[re.Pattern[str], re.Pattern[str]]]
_FIX = "use <DOC><DOCNO>d1</DOCNO><TEXT>...</TEXT></DOC>, or JSON lines"
_FIX_TOPIC = "use <top><num>1</num><title>...</title></top>, or JSON lines"


def begins(line: bytes) -> bool:
    """Return whether a file that begins with this line has TREC markup."""
    return _OUTSIDE.match(line) is not None


@dataclass(frozen=True, slots=True)
class _Token:
    """A tag, a delimiter, or the bytes between two of them, with its line number and offset."""

    number: int
    offset: int
    data: bytes
    mark: re.Match[bytes] | None = None

    @property
    def kind(self) -> bytes:
        """Element name or delimiter in upper case; empty for other content."""
        return b"" if self.mark is None else (self.mark[2] or self.mark[0]).upper()

    @property
    def is_element(self) -> bool:
        """Whether this is an opening or closing tag of a document or topic."""
        return self.mark is not None and self.mark[2] is not None

    @property
    def closes(self) -> bool:
        """Whether this is a closing tag."""
        return self.mark is not None and bool(self.mark[1])


def pieces(lines: Iterable[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the line number, offset, and bytes of each document or topic, including its tags.

    Each ends with its closing tag, anywhere in a line; tags in comments and CDATA are ignored.
    Faults for :func:`parts_of` to refuse are also yielded: an element not closed before the next
    one, a closing tag without an opening one, an unclosed comment, and text between documents.
    """
    tokens = _Tokens(lines)
    opened: _Token | None = None
    closed = False
    while True:
        if opened is None:
            between, opened = _between(tokens, closed=closed)
            yield from between
            if opened is None:
                return
        begun = opened
        if begun.closes:
            piece, opened = begun.data + b">", None
        else:
            piece, opened = _element(begun, tokens)
        closed = True
        yield begun.number, begun.offset, piece


def _between(tokens: _Tokens, *, closed: bool) -> tuple[list[tuple[int, int, bytes]], _Token | None]:
    """Return faults before the next document or topic, as pieces, and its opening tag."""
    gap: list[_Token] = []
    size = 0
    for token in tokens:
        if token.is_element:
            # Text before a closing tag belongs to the element that was closed too early.
            return [] if token.closes else list(_stray(gap, closed=closed)), token
        if token.kind == _COMMENT:
            if not any(later.kind == _SECTION_ENDS[_COMMENT] for later in tokens):
                comment = (token.number, token.offset, _COMMENT)
                return [*_stray(gap, closed=closed), comment], None
        elif size < _LONGEST_GAP and (gap or not token.data.isspace()):
            gap.append(token)
            size += len(token.data)
    return list(_stray(gap, closed=closed)), None


def _element(begun: _Token, tokens: _Tokens) -> tuple[bytes, _Token | None]:
    """Return a document or topic, and the next opening tag if it comes before the closing tag."""
    kept = [begun.data]
    for token in tokens:
        if token.is_element and token.kind == begun.kind:
            if token.closes:
                return b"".join([*kept, token.data, b">"]), None
            return b"".join(kept), token
        kept.append(token.data)
        if token.kind in _SECTION_ENDS:
            kept += tokens.section(token)
    return b"".join(kept), None


class _Tokens:
    """Iterator over tags and the content between them, with lookahead."""

    def __init__(self, lines: Iterable[tuple[int, int, bytes]]) -> None:
        self._new = _tokens(lines)
        self._again: deque[_Token] = deque()
        # Offsets before which sections of a kind are unclosed.
        self._unclosed = dict.fromkeys(_SECTION_ENDS, 0.0)

    def __iter__(self) -> Iterator[_Token]:
        return self

    def __next__(self) -> _Token:
        return self._again.popleft() if self._again else next(self._new)

    def section(self, first: _Token) -> list[bytes]:
        """Consume and return the rest of this section with its end; empty if it is not closed.

        A section is treated as unclosed if it is very long, or if another one begins after a
        document tag: each document then has its own.
        """
        if first.offset < self._unclosed[first.kind]:
            return []
        ahead: list[_Token] = []
        element = False
        bound = math.inf
        for token in self:
            ahead.append(token)
            if token.kind == _SECTION_ENDS[first.kind]:
                return [one.data for one in ahead]
            element |= token.is_element
            if (element and token.kind == first.kind) or token.offset - first.offset > _LONGEST_SECTION:
                bound = token.offset
                break
        self._unclosed[first.kind] = bound
        self._again.extendleft(reversed(ahead))
        return []


def _tokens(lines: Iterable[tuple[int, int, bytes]]) -> Iterator[_Token]:
    tail = b""
    number = end = 0
    for number, offset, line in lines:
        data, first, at = tail + line, offset - len(tail), 0
        for mark in _MARK.finditer(data):
            if mark.start() > at:
                yield _Token(number, first + at, data[at : mark.start()])
            yield _Token(number, first + mark.start(), mark[0], mark)
            at = mark.end()
        cut = _CUT.search(data, max(at, len(data) - _LONGEST_MARK))
        tail = b"" if cut is None else cut[0]
        end = offset + len(line)
        if at < len(data) - len(tail):
            yield _Token(number, first + at, data[at : len(data) - len(tail)])
    if tail:
        yield _Token(number, end - len(tail), tail)


def _stray(gap: list[_Token], *, closed: bool) -> Iterator[tuple[int, int, bytes]]:
    """Yield stray text between documents as a piece, if any."""
    data = b"".join(token.data for token in gap)
    data = _DOCTYPE.sub(lambda found: b" " * len(found[0]), data, count=1)
    at = data.find(b">") + 1 if closed and data.lstrip().startswith(b">") else 0
    while (blank := _BETWEEN.match(data, at)) is not None:
        at = blank.end()
    part = data[at : at + _LONGEST_STRAY]
    for token in gap:
        if part and at < len(token.data):
            yield token.number, token.offset + at, part
            return
        at -= len(token.data)


def parts_of(piece: bytes, name: str, number: int) -> tuple[str, str, str, dict[str, Any]]:
    """Return id, title, text, and fields of a document or topic."""
    mark = _MARK.match(piece)
    what = fix = element = ""
    if mark is not None and mark[0] == _COMMENT:
        what, fix = "the comment that begins here is not closed", "close it: -->"
    elif mark is None or mark[2] is None:
        what = f"text outside of documents and topics: {shorten(piece)}"
        fix = "move it into a document or topic, or make it a comment: <!-- ... -->"
    else:
        element = mark[2].decode()
        if mark[1]:
            what = f"</{element}> closes nothing: no <{element}> is open"
            fix = f"remove it, or write &lt;/{element}&gt; if it is part of the text"
        elif not piece.rstrip().lower().endswith(b"</" + mark[2].lower() + b">"):
            what = f"<{element}> is not closed before the next one, or at all"
            fix = f"close it: </{element}>; if it is part of the text, write &lt;{element}&gt;"
    if what:
        raise FormatError(what, path=name, line=number, fix=fix)
    head, _, body = _without_sections(decoded(piece, name, number)).partition(">")
    body = body[: body.rfind("<")]
    if element.lower() == "doc":
        return _document(body, name, number)
    return _topic(head, body, name, number)


def _without_sections(text: str) -> str:
    """Remove comments and escape the content of CDATA; leave unclosed sections unchanged."""
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
    """An element: its start and end in the text, and its content."""

    start: int
    end: int
    text: str


def _parts(text: str, tags: _Tags) -> Iterator[_Part]:
    """Yield the elements with these tags, in order; unclosed ones are ignored.

    Opening and closing tags are searched separately: one pattern for both would scan to the end of
    the text for each unclosed tag.
    """
    at = 0
    opened = {name: pair[0].search(text) for name, pair in tags.items()}
    while True:
        for name, found in opened.items():
            if found is not None and found.start() < at:
                opened[name] = tags[name][0].search(text, at)
        first = min(((found.start(), name) for name, found in opened.items() if found is not None), default=None)
        if first is None:
            return
        begun = opened[first[1]]
        ended = None if begun is None else tags[first[1]][1].search(text, begun.end())
        if begun is None or ended is None:
            # If one is not closed, later ones are not either.
            opened[first[1]] = None
            continue
        at = ended.end()
        yield _Part(begun.start(), at, text[begun.end() : ended.start()])


def _document(text: str, name: str, number: int) -> tuple[str, str, str, dict[str, Any]]:
    keys = list(_parts(text, _DOCNO))
    if len(keys) != 1:
        what = "there is no <DOCNO>" if not keys else f"got {len(keys)} <DOCNO>, expected one"
        raise FormatError(what, path=name, line=number, fix=_FIX)
    key = html.unescape(keys[0].text.strip())
    names = _tag_names(text)
    rest = text[: keys[0].start] + text[keys[0].end :]
    bodies = list(_parts(rest, _TEXT))
    unclosed = _TEXT_BEGINS.search(rest, bodies[-1].end if bodies else 0)
    if unclosed is not None:
        bodies.append(_Part(unclosed.start(), len(rest), rest[unclosed.end() :]))
    titles: list[str] = []
    fields: dict[str, str] = {}
    parts: list[str] = []
    starts = [0, *(body.end for body in bodies)]
    ends = [*(body.start for body in bodies), len(rest)]
    for start, end in zip(starts, ends, strict=True):
        outside = rest[start:end]
        if bodies:
            outside = _taken(outside, list(_parts(outside, _TITLE)), titles)
            outside = _without_elements(outside, fields, names)
        parts.append(outside)
    inside = [body.text for body in bodies]
    # If a document has no title outside its text, use the first one within it.
    for texts in () if titles else (inside, parts):
        for at, one in enumerate(texts):
            if not titles:
                texts[at] = _taken(one, list(itertools.islice(_parts(one, _TITLE), 1)), titles)
    made = [_plain(parts[0], names)]
    for body, outside in zip(inside, parts[1:], strict=True):
        made += [_plain(body, names), _plain(outside, names)]
    heading = " ".join(" ".join(_plain(title, names) for title in titles).split())
    return key, heading, "\n".join(filter(None, made)), fields


def _topic(head: str, body: str, name: str, number: int) -> tuple[str, str, str, dict[str, Any]]:
    names = _tag_names(body)
    fields = {word: html.unescape(value[1:-1]) for word, value in _ATTRIBUTES.findall(head)}
    key = fields.pop("number", "")
    body = _without_elements(body, fields, names, kept=_PART)
    tags = list(_PART.finditer(body))
    before = _plain(body[: tags[0].start()] if tags else body, names)
    if before:
        raise FormatError(
            f"text of the topic is outside of elements: {shorten(before.encode())}",
            path=name,
            line=number,
            fix=_FIX_TOPIC,
        )
    ends = [*(tag.start() for tag in tags[1:]), len(body)][: len(tags)]
    parts: dict[str, str] = {}
    for tag, end in zip(tags, ends, strict=True):
        word = _NAMES.get(tag[1].lower(), tag[1].lower())
        text = " ".join(_plain(_LABEL.sub("", body[tag.end() : end]), names).split())
        if word == "num" and parts.get(word):
            raise FormatError(
                f"the topic has two numbers: {parts[word]} and {text}", path=name, line=number, fix=_FIX_TOPIC
            )
        parts[word] = f"{parts.get(word, '')} {text}".strip()
    key = parts.pop("num", "") or key
    wanted = next((w for w in ("title", "query", "question", "description") if parts.get(w)), None)
    if not key or wanted is None:
        lacks = "number" if not key else "title"
        raise FormatError(f"the topic has no {lacks}", path=name, line=number, fix=_FIX_TOPIC)
    asked = parts.pop(wanted)
    for word, text in parts.items():
        _join(fields, word, text)
    return key.strip(), "", asked, dict(fields)


def _taken(text: str, parts: list[_Part], taken: list[str]) -> str:
    """Return the text without these parts, and append their content to `taken`."""
    taken += [part.text for part in parts]
    starts = [0, *(part.end for part in parts)]
    ends = [*(part.start for part in parts), len(text)]
    return " ".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def _without_elements(
    text: str, fields: dict[str, str], names: AbstractSet[str], *, kept: re.Pattern[str] | None = None
) -> str:
    """Return the text without elements that are fields, and add those to `fields`.

    Elements of running text are not fields, nor are elements that match `kept` or contain a match.
    """
    tags = list(_TAG.finditer(text))
    closing: dict[str, list[re.Match[str]]] = {}
    for tag in tags:
        if tag[1]:
            closing.setdefault(tag[2].lower(), []).append(tag)
    held = [] if kept is None else [tag.start() for tag in kept.finditer(text)]
    found: list[_Part] = []
    at = 0
    for tag in tags:
        word = tag[2].lower()
        if tag.start() < at or tag[1] or tag[3] or word in _RUNNING:
            continue
        ends = closing.get(word, [])
        place = bisect_left(ends, tag.end(), key=re.Match.start)
        if place == len(ends):
            continue
        part = _Part(tag.start(), ends[place].end(), text[tag.end() : ends[place].start()])
        if word != "subtopic" and bisect_left(held, part.start) < bisect_left(held, part.end):
            continue
        _join(fields, word, _plain(part.text, names))
        found.append(part)
        at = part.end
    return _taken(text, found, [])


def _join(fields: dict[str, str], word: str, text: str) -> None:
    """Append text to a field, which may have text already; ignore empty text."""
    if text:
        fields[word] = f"{fields[word]}\n{text}" if fields.get(word) else text


def _tag_names(text: str) -> AbstractSet[str]:
    """Return the element names of a text: those of HTML and TREC, and those both opened and closed.

    Anything else in angle brackets is text, such as a comparison or a type parameter.
    """
    tags = [(found[1], found[2].lower()) for found in _TAG.finditer(text)]
    opened = {word for slash, word in tags if not slash}
    return _ELEMENTS | opened.intersection(word for slash, word in tags if slash)


def _plain(text: str, names: AbstractSet[str]) -> str:
    """Remove tags with these names and empty elements, and resolve entities."""

    def blank(tag: re.Match[str]) -> str:
        return " " if tag[3] or tag[2].lower() in names else tag[0]

    text = _DECLARATION.sub(" ", _TAG.sub(blank, text))
    return _BLANKS.sub(" ", html.unescape(text)).strip()
