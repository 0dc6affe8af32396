"""Secrets removed from texts that leave the process: messages, logs, journals, reports.

Two kinds of secrets are replaced by ``***``:

* values that a client was given (:class:`Secrets`), in every form in which servers and libraries
  repeat them: as they are, percent-encoded, in base64, with the escapes of JSON, HTML and Python,
  and split by a line break;
* values that nobody registered, where the text itself says what they are: passwords of URLs, and
  parameters such as ``?token=``.

A value of fewer than 8 characters may be a word of any text. :func:`redact` replaces it only in the
position of a value: in quotes, or behind the name of its header or parameter, behind ``key``,
``token``, ``password`` and the like, or behind an authentication scheme. In what the client's own
server says (:meth:`Secrets.redact`), from 4 characters on, it is replaced wherever it is a whole
word.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Iterator
from functools import lru_cache

__all__ = ["SECRET_NAME", "Secrets", "redact"]

_MARK = "***"
_LONG, _WORD = 8, 4

# Names of parameters, headers and fields that hold secrets.
SECRET_NAME = re.compile(
    r"(?i)((api|access|auth|account|subscription|session|private)[_-]?key|^key|token|secret|"
    r"passw(or)?d|passphrase|^pass|pwd|auth|authorization|credential|cookie|^sig|signature)s?$"
)
_URL_PASSWORD = re.compile(r"(:/{1,3}[^\s/?#@:\"'<>]*):(?!\d{1,5}(?:[/?#\"'<>\s]|$))[^\s\"'<>]+@")
_URL_TOKEN = re.compile(r"(?i)(https?://)[^\s/?#@:\"'<>]+@")
_PARAMETER = re.compile(
    r"(?i)([?&;][\w.-]{0,40}?(?:(?:api|access|auth)[_-]?key|token|secret|passw(?:or)?d|credential|"
    r"signature)=|[?&;](?:key|sig|auth|pwd)=|\b(?:ssl)?pass(?:word|wd)?=)"
    r"(?!\.\.\.)[^&;#\s\"'<>\\)]+"
)
# One unit of a text that stands for a character: an escape, or the character itself.
_UNIT = re.compile(
    r"%(?:25)*(?P<percent>[0-9A-Fa-f]{2})"
    r"|\\+u(?P<unicode>[0-9A-Fa-f]{4})"
    r"|\\+x(?P<hex>[0-9A-Fa-f]{2})"
    r"|(?P<gap>\\+[nrt]|\\+|\s+)"
    r"|(?P<entity>&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos);)"
)
_VALUE_FOLLOWS = (
    r"(?i:{}|key|token|secret|passw(?:or)?d|pwd|credentials?|auth\w*|signature|bearer|basic)"
    r"(?:[\s\"'\\:=,(\[]|%\w\w|&#?\w+;){{0,8}}(?:b['\"])?$"
)
_BLANK = b" \t\r\n\\"
_BEFORE = 60  # characters in front of a short value in which its name is looked for

_lock = threading.Lock()
_known: weakref.WeakSet[Secrets] = weakref.WeakSet()


class Secrets:
    """The secrets of one client. :func:`redact` knows them as long as the client is there.

    Example:
        >>> secrets = Secrets()
        >>> secrets.add("s3cr3t/word", "api-key")
        >>> redact("no access with api-key=s3cr3t%2Fword")
        'no access with api-key=***'
    """

    def __init__(self) -> None:
        # The value in its plain form, and the names it is sent under.
        self._values: dict[bytes, set[str]] = {}
        with _lock:
            _known.add(self)

    def __repr__(self) -> str:
        return f"<{len(self._values)} secrets>"

    def add(self, value: str, *names: str) -> None:
        """Register a value.

        Args:
            value: What must not be shown; nothing if it is empty. Of several lines or words, each
                long one is a secret of its own.
            names: The headers or parameters that it is sent in.
        """
        if not value.strip():
            return
        words = value.split()
        found = [value, *(word for word in words if len(words) > 1 and len(word) >= _LONG)]
        found += [form for one in found for form in _forms(one)]
        with _lock:
            for form in found:
                plain = _plain(form)[0]
                if plain:
                    self._values.setdefault(plain, set()).update(names)

    def add_login(self, user: str, password: str) -> None:
        """Register a password, and the pair of user and password as ``Basic`` sends it."""
        if password:
            self.add(password, user)
            self.add(f"{user}:{password}", "authorization")

    def redact(self, text: str) -> str:
        """What the client's own server said, without the secrets of this client."""
        return _replaced(text, self._found(text, own=True))

    def _found(self, text: str, *, own: bool) -> Iterator[tuple[int, int]]:
        with _lock:
            values = [(value, tuple(names)) for value, names in self._values.items()]
        if not values:
            return
        plain, places = _plain(text)
        for value, names in values:
            at = plain.find(value)
            while at >= 0:
                start, end = places[at][0], places[at + len(value) - 1][1]
                beside = plain[at - 1 : at] if at else b"", plain[at + len(value) :][:1]
                if len(value) >= _LONG or (
                    _is_word(text[:start], text[end:], *beside)
                    and ((own and len(value) >= _WORD) or _is_value(text, start, end, names))
                ):
                    yield start, end
                at = plain.find(value, at + 1)


def redact(text: str, *, patterns: bool = True) -> str:
    """A text without the secrets of all clients, and without what looks like a secret.

    Args:
        text: Any text.
        patterns: Whether passwords of URLs and parameters such as ``?token=`` are replaced, too.

    Example:
        >>> redact("cannot reach https://me:pa@ss@example.org/search?token=abc&lang=en")
        'cannot reach https://me:***@example.org/search?token=***&lang=en'
    """
    with _lock:
        known = list(_known)
    text = _replaced(text, (span for one in known for span in one._found(text, own=False)))  # noqa: SLF001 - one module
    if patterns and ":/" in text:
        text = _URL_TOKEN.sub(rf"\1{_MARK}@", _URL_PASSWORD.sub(rf"\1:{_MARK}@", text))
    return _PARAMETER.sub(rf"\1{_MARK}", text) if patterns and "=" in text else text


def _replaced(text: str, spans: Iterator[tuple[int, int]]) -> str:
    parts: list[str] = []
    done = -1
    for start, end in sorted(set(spans)):
        if start >= done:
            parts += [text[max(done, 0) : start], _MARK]
        done = max(done, end)
    return "".join([*parts, text[max(done, 0) :]])


def _forms(value: str) -> Iterator[str]:
    """Further forms in which a value may come back."""
    import base64
    import json
    from urllib.parse import quote, quote_plus

    yield from (quote(value, safe="", errors="replace"), quote_plus(value, errors="replace"))
    yield from (json.dumps(value)[1:-1], repr(value)[1:-1], ascii(value)[1:-1])
    for raw in {text.encode("utf-8", "replace") for text in (value, value.strip())}:
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(raw).decode().rstrip("=")


def _plain(text: str) -> tuple[bytes, list[tuple[int, int]]]:
    """A text with its escapes resolved, without whitespace; for each byte where it came from.

    Without whitespace, so that a line break within a secret hides nothing.
    """
    found = bytearray()
    places: list[tuple[int, int]] = []

    def put(raw: bytes, start: int, end: int) -> None:
        found.extend(raw)
        places.extend([(start, end)] * len(raw))

    def put_text(start: int, end: int) -> None:
        part = text[start:end]
        if part.isascii():
            found.extend(part.encode())
            places.extend((at, at + 1) for at in range(start, end))
            return
        for at in range(start, end):
            put(_utf8(text[at]), at, at + 1)

    done = 0
    for unit in _UNIT.finditer(text):
        start, end = unit.span()
        put_text(done, start)
        done = end
        if unit["percent"] or unit["hex"]:
            put(bytes.fromhex(unit["percent"] or unit["hex"]).strip(_BLANK), start, end)
        elif unit["unicode"]:
            put(_utf8(chr(int(unit["unicode"], 16))).strip(_BLANK), start, end)
        elif unit["entity"]:
            from html import unescape

            put(_utf8(unescape(unit["entity"])).strip(_BLANK), start, end)
    put_text(done, len(text))
    return bytes(found), places


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _is_word(before: str, after: str, *beside: bytes) -> bool:
    """Whether a value is not a part of a longer word, as the text has it or without its escapes."""
    sides = zip((before[-1:], after[:1]), beside, strict=True)
    return not any(char.isalnum() and byte.isalnum() for char, byte in sides)


def _is_value(text: str, start: int, end: int, names: tuple[str, ...]) -> bool:
    """Whether a short value is in quotes, or follows its name or a word for a secret."""
    before, after = text[max(start - _BEFORE, 0) : start], text[end : end + 1]
    quoted = before.endswith(("'", '"')) and after in {"'", '"', "\\"}
    return quoted or _value_follows(names).search(before) is not None


@lru_cache(maxsize=256)
def _value_follows(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(_VALUE_FOLLOWS.format("|".join(map(re.escape, names)) or "key"))
