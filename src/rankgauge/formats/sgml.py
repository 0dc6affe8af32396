"""Read documents and topics with TREC markup: XML, or SGML with optional closing tags."""

from __future__ import annotations

import html
import itertools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set as AbstractSet
from typing import Any, NamedTuple

from rankgauge.core.grouping import group_values
from rankgauge.errors import FormatError
from rankgauge.formats.lines import decoded, shorten

# Tags of documents and topics, and delimiters of comments.
_MARK = re.compile(rb"<(/?)(doc|topic|top)(?=[\s/>])|<!--|-->", re.IGNORECASE)
_COMMENT, _COMMENT_END = b"<!--", b"-->"
# The beginning of a tag or delimiter at the end of a partial line.
_CUT = re.compile(rb"(<[^\s<>]{0,7}|--?)\Z")
# Allowed between documents besides comments and blanks; old files end with Ctrl-Z.
_DOCTYPE = re.compile(rb"<!doctype\b[^\[>]*(?:\[.*?\]\s*)?>", re.IGNORECASE | re.DOTALL)
_BETWEEN = re.compile(rb"</?[a-z][^<>]*>|<[!?][^<>]*>|[\s\x1a]+", re.IGNORECASE)
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
_TITLE, _TEXT = (
    frozenset({"title", "headline", "hl", "head", "ttl", "h3"}),
    frozenset({"text", "body", "leadpara", "lp"}),
)
_PART = re.compile(
    r"<(num|title|desc|narr|query|question|description|narrative|head|dom|smry|con|fac|nat|def)"
    r"(?:\s[^<>]*)?>",
    re.IGNORECASE,
)
# Labels at the beginning of parts in old topics.
_LABEL = re.compile(r"^\s*(Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)
_NAMES = {"desc": "description", "narr": "narrative"}
_FIX = "use <DOC><DOCNO>d1</DOCNO><TEXT>...</TEXT></DOC>, or JSON lines"
_FIX_TOPIC = "use <top><num>1</num><title>...</title></top>, or JSON lines"


def begins(line: bytes) -> bool:
    """Return whether a file that begins with this line has TREC markup."""
    return _OUTSIDE.match(line) is not None


class _Token(NamedTuple):
    """A tag, a delimiter, or the bytes between two of them, with its line number and offset."""

    number: int
    offset: int
    data: bytes
    mark: re.Match[bytes] | None = None

    @property
    def element(self) -> bytes:
        """The name of a document or topic in lower case, if this is one of its tags."""
        return (self.mark[2] or b"").lower() if self.mark else b""

    @property
    def closes(self) -> bool:
        """Whether this is a closing tag."""
        return self.mark is not None and bool(self.mark[1])


def pieces(lines: Iterable[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the line number, offset, and bytes of each document or topic, including its tags.

    Each ends with its first closing tag, anywhere in a line; tags in comments between documents are
    ignored. Faults for :func:`parts_of` to refuse are also yielded: an element not closed before the
    next one, a closing tag without an opening one, an unclosed comment, and text between documents.
    """
    begun: _Token | None = None
    comment: _Token | None = None
    closed = False
    # Content of the open element, or of the gap after the last one.
    kept: list[_Token] = []
    size = 0
    for token in _tokens(lines):
        if comment is not None:
            comment = None if token.data == _COMMENT_END else comment
        elif begun is None and token.data == _COMMENT:
            comment = token
        elif not token.element or token.element != (token if begun is None else begun).element:
            # Of a gap, the beginning is enough for a message.
            if begun is not None or (size < 1 << 16 and (kept or not token.data.isspace())):
                kept.append(token)
                size += len(token.data)
        elif begun is not None:
            yield _piece(begun, kept, token.data + b">" if token.closes else b"")
            begun, kept, size = None if token.closes else token, [], 0
        else:
            # Text before a closing tag belongs to the element that was closed too early.
            yield from () if token.closes else _stray(kept, closed=closed)
            if token.closes:
                yield token.number, token.offset, token.data + b">"
            begun, kept, size, closed = None if token.closes else token, [], 0, True
    if begun is not None:
        yield _piece(begun, kept, b"")
        return
    yield from _stray(kept, closed=closed)
    if comment is not None:
        yield comment.number, comment.offset, comment.data


def _piece(begun: _Token, kept: Iterable[_Token], end: bytes) -> tuple[int, int, bytes]:
    return begun.number, begun.offset, b"".join([begun.data, *(token.data for token in kept), end])


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
        cut = _CUT.search(data, max(at, len(data) - 8))
        tail = b"" if cut is None else cut[0]
        end = offset + len(line)
        if at < len(data) - len(tail):
            yield _Token(number, first + at, data[at : len(data) - len(tail)])
    if tail:
        yield _Token(number, end - len(tail), tail)


def _stray(gap: list[_Token], *, closed: bool) -> Iterator[tuple[int, int, bytes]]:
    """Yield stray text between documents as a piece, if any."""
    data = b"".join(token.data for token in gap)
    data = _DOCTYPE.sub(lambda match: b" " * len(match[0]), data, count=1)
    at = data.find(b">") + 1 if closed and data.lstrip().startswith(b">") else 0
    while (blank := _BETWEEN.match(data, at)) is not None:
        at = blank.end()
    part = data[at : at + 80]
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
    return _document(body, name, number) if element.lower() == "doc" else _topic(head, body, name, number)


def _without_sections(text: str) -> str:
    """Remove comments and escape the content of CDATA; leave unclosed sections unchanged."""
    pieces: list[str] = []
    last = {kind: text.rfind(end) for kind, end in _ENDS.items()}
    at = 0
    for section in _SECTION.finditer(text):
        kind = section[0]
        if at <= section.start() and section.end() <= last[kind]:
            end = text.index(_ENDS[kind], section.end())
            content = " " if kind == "<!--" else html.escape(text[section.end() : end], quote=False)
            pieces += [text[at : section.start()], content]
            at = end + len(_ENDS[kind])
    return "".join([*pieces, text[at:]])


class _Part(NamedTuple):
    """An element: its start and end in the text, its content, and its name."""

    start: int
    end: int
    text: str
    name: str


def _elements(
    text: str, names: AbstractSet[str] | None = None, held: Sequence[int] = (), *, most: int | None = None
) -> list[_Part]:
    """Return the first closed elements with these names, by default those outside of running text.

    Elements that contain a position in `held`, except subtopics, are not elements of interest, but
    their content may have some.
    """
    tags = list(_TAG.finditer(text))
    closing = group_values((tag[2].lower(), tag) for tag in tags if tag[1])
    elements: list[_Part] = []
    for tag in tags:
        word = tag[2].lower()
        inside = bool(elements) and tag.start() < elements[-1].end
        if inside or tag[1] or tag[3] or (word in _RUNNING if names is None else word not in names):
            continue
        ends = closing.get(word, [])
        place = bisect_left(ends, tag.end(), key=re.Match.start)
        if place == len(ends):
            continue
        part = _Part(tag.start(), ends[place].end(), text[tag.end() : ends[place].start()], word)
        if word == "subtopic" or bisect_left(held, part.start) == bisect_left(held, part.end):
            elements.append(part)
    return elements[:most]


def _document(text: str, name: str, number: int) -> tuple[str, str, str, dict[str, Any]]:
    keys = _elements(text, {"docno"})
    if len(keys) != 1:
        what = "there is no <DOCNO>" if not keys else f"got {len(keys)} <DOCNO>, expected one"
        raise FormatError(what, path=name, line=number, fix=_FIX)
    key = html.unescape(keys[0].text.strip())
    names = _tag_names(text)
    rest = text[: keys[0].start] + text[keys[0].end :]
    bodies = _elements(rest, _TEXT)
    later = _TAG.finditer(rest, bodies[-1].end if bodies else 0)
    unclosed = next((tag for tag in later if not tag[1] and tag[2].lower() in _TEXT), None)
    if unclosed is not None:
        bodies.append(_Part(unclosed.start(), len(rest), rest[unclosed.end() :], "text"))
    titles: list[_Part] = []
    fields: dict[str, str] = {}
    outside = _between(rest, bodies)
    for at, passage in enumerate(outside if bodies else ()):
        elements = _elements(passage, _TITLE)
        titles += elements
        outside[at] = _without_fields(" ".join(_between(passage, elements)), fields, names)
    inside = [body.text for body in bodies]
    # If a document has no title outside its text, use the first one within it.
    for texts in (inside, outside):
        for at, passage in enumerate(texts):
            if not titles:
                titles = _elements(passage, _TITLE, most=1)
                texts[at] = " ".join(_between(passage, titles))
    passages = [outside[0], *itertools.chain.from_iterable(zip(inside, outside[1:], strict=True))]
    heading = " ".join(" ".join(_plain(title.text, names) for title in titles).split())
    return key, heading, "\n".join(filter(None, (_plain(part, names) for part in passages))), fields


def _topic(head: str, body: str, name: str, number: int) -> tuple[str, str, str, dict[str, Any]]:
    names = _tag_names(body)
    fields = {word: html.unescape(value[1:-1]) for word, value in _ATTRIBUTES.findall(head)}
    key = fields.pop("number", "")
    body = _without_fields(body, fields, names, held=[part.start() for part in _PART.finditer(body)])
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


def _between(text: str, parts: Sequence[_Part]) -> list[str]:
    """Return the texts before, between, and after these parts."""
    starts = [0, *(part.end for part in parts)]
    ends = [*(part.start for part in parts), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _without_fields(text: str, fields: dict[str, str], names: AbstractSet[str], held: Sequence[int] = ()) -> str:
    """Return the text without elements that are fields, and add those to `fields`."""
    elements = _elements(text, held=held)
    for part in elements:
        _join(fields, part.name, _plain(part.text, names))
    return " ".join(_between(text, elements))


def _join(fields: dict[str, str], word: str, text: str) -> None:
    """Append text to a field, which may have text already; ignore empty text."""
    if text:
        fields[word] = f"{fields[word]}\n{text}" if fields.get(word) else text


def _tag_names(text: str) -> AbstractSet[str]:
    """Return the element names of a text: those of HTML and TREC, and those both opened and closed.

    Anything else in angle brackets is text, such as a comparison or a type parameter.
    """
    tags = [(tag[1], tag[2].lower()) for tag in _TAG.finditer(text)]
    opened = {word for slash, word in tags if not slash}
    return _ELEMENTS | opened.intersection(word for slash, word in tags if slash)


def _plain(text: str, names: AbstractSet[str]) -> str:
    """Remove tags with these names and empty elements, and resolve entities."""

    def blank(tag: re.Match[str]) -> str:
        return " " if tag[3] or tag[2].lower() in names else tag[0]

    return _BLANKS.sub(" ", html.unescape(_DECLARATION.sub(" ", _TAG.sub(blank, text)))).strip()
