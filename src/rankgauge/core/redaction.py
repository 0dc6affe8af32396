"""Removal of secrets and personal data from text: messages, logs, journals, reports.

Two kinds of secrets are replaced by ``***``:

* registered secrets of clients (:class:`Secrets`), in every form in which servers and libraries
  repeat them: in upper or lower case, percent-encoded, in base64 or hex, escaped for JSON, HTML, or
  Python, and split by a line break;
* unregistered secrets that their context reveals: passwords of URLs, values after a name such as
  ``api_key`` or after ``Bearer``, and keys of a well-known form.

A value of fewer than 8 characters may be an ordinary word. :func:`redact` replaces it only where a
value is expected: in quotes, after the name of its header or parameter, after ``key``, ``token``,
``password``, and similar words, or after an authentication scheme. In messages of the client's own
server (:meth:`Secrets.redact`), a value of at least 4 characters is replaced wherever it is a whole
word. Personal data is replaced on request only, by :func:`scrub`.
"""

from __future__ import annotations

import json
import re
import threading
import weakref
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

_MARK = "***"
_LONG, _WORD = 8, 4

# Names of parameters, headers and fields that hold secrets.
SECRET_NAME = re.compile(
    r"(?i)((^|[\W_]|api|app|user|access|account|auth)key|token|secret|passw(or)?d|passphrase|"
    r"auth(orization)?|credential|cookie|signature|^code|"
    r"(^|[\W_])(pass|pwd|pin|cred|sig|hmac|sas|pat|jwt|bearer|nonce|sid|session|app_?id|webhook|"
    r"licen[cs]e))s?$"
)
# No pattern scans any part of a text more than a fixed number of times: error bodies are long.
_URL_PASSWORD = re.compile(r"(:/{1,3}[^\s/?#@:\"'<>]{0,300}):(?!\d{1,5}(?:[/?#\"'<>\s]|$))[^\s\"'<>]{1,300}@")
_URL_TOKEN = re.compile(r"(?i)(https?://)[^\s/?#@:\"'<>]+@")
_PARAMETER = re.compile(r"([?&;#] ?([\w.~-]{1,60})=)(?!\.\.\.)[^&;#\s\"'<>\\)]+")
_QUOTE = r"(?:\\*[\"']|&(?:quot|apos|\#\w{2,4});|%2[27])"
_NAMED = re.compile(
    rf"""(?ix)
    (
        (?: (?:api|app|user|access|account|auth|subscription|session|private|secret|functions
            |master|admin|shared|license)[_-]?key
        | (?<!unexpected\ )token (?![ \t]*[:=][ \t]*\d{{1,6}}(?:[\s,.;)]|$))  # a word, or a count
        | secret | passw(?:or)?d | passphrase | pwd(?!=/) | credentials? | authorization | cookie
        | jwt | bearer | \b(?:auth|pass|sig|signature)(?==)
        )
        {_QUOTE}? [ \t]*
        (?: : | =>? | %3[ad] | ,(?=[ \t]*(?:b["']|["'](?:bearer|basic)[ ])) ) [ \t]*
        (?: (?:bearer|basic|digest|apikey|token)[ \t]+ | [bfru]{{1,2}}(?=["']) )?
    )
    (?! \.\.\. | (?:none|null|true|false)\b )
    (?: (?P<quote>{_QUOTE}) (?: (?!(?P=quote)) (?:\\+.|.) )+
    | [\w.]{{0,40}} [(\[] [^)\]\n]{{1,300}} [)\]]?  # a call, or several values
    | [^&;#\s"'<>\\)]* [^&;#\s"'<>\\),.:]
    )"""
)
# A generated part of a path: a UUID, or mixed letters and digits.
_RANDOM = re.compile(r"(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{16,}")
_PATH_WORD = re.compile(r"[A-Za-z]?[a-z_-]{0,15}|v\d{1,3}")
# After a scheme, text that does not look like a natural-language word is a key.
_SCHEME = re.compile(
    r"\b((?i:bearer|basic)[ \t]+)"
    r"(?=[\w.~+/-]{20}|[\w.~+/-]{0,20}(?:[\d=]|[a-z][A-Z]))[\w.~+/=-]{8,}"
)
_KEY_SHAPE = re.compile(
    r"\b(?:(?:s|r|gs|pcs)k[-_](?=[\w-]{0,40}\d)(?=[\w-]{0,40}[A-Za-z])[\w-]{8,}|gh[a-z]_\w{8,}|"
    r"github_pat_\w{8,}|glpat-[\w-]{8,}|A[KS]IA[A-Z0-9]{12,}|xox[a-z]-[\w-]{8,}|hf_\w{16,}|"
    r"AIza[\w-]{16,}|(?<!-)eyJ[\w-]{8,}(?:\.[\w-]*){1,2})"
)
# An escape sequence, whitespace, plain ASCII text, or another character.
_UNIT = re.compile(
    r"(?i)%(?:25)*(?P<percent>[0-9a-f]{2})"
    r"|\\+u(?P<unicode>[0-9a-f]{4})"
    r"|\\+x(?P<hex>[0-9a-f]{2})"
    r"|(?P<gap>\\+[nrt]|\\+|\s+)"
    r"|(?P<entity>&(?:#\d{1,7}|#x[0-9a-f]{1,6}|amp|lt|gt|quot|apos);)"
    r"|(?P<plain>(?-i:[!-$'-\[\]-\x7f\0-\x08\x0e-\x1b]+))|[\s\S]"
)
_VALUE_FOLLOWS = (
    r"(?i:{}|key|token|secret|passw(?:or)?d|pwd|credentials?|auth\w*|signature|bearer|basic)"
    r"(?:[\s\"'\\:=,(\[]|%\w\w|&#?\w+;){{0,8}}(?:b['\"])?$"
)
_BLANK = b" \t\r\n\\"

_lock = threading.Lock()
_known: weakref.WeakSet[Secrets] = weakref.WeakSet()


class Secrets:
    """Secrets of one client. :func:`redact` removes them for the lifetime of the object.

    Example:
        >>> secrets = Secrets()
        >>> secrets.add("s3cr3t/word", "api-key")
        >>> redact("no access with api-key=s3cr3t%2Fword")
        'no access with api-key=***'
    """

    def __init__(self) -> None:
        # Values in normalized form, with the names they are sent under.
        self._values: dict[bytes, set[str]] = {}
        with _lock:
            _known.add(self)

    def __repr__(self) -> str:
        return f"<{len(self._values)} secrets>"

    def add(self, value: str, *names: str) -> None:
        """Register a secret and the names it is sent under."""
        if not value.strip():
            return
        words = value.split()
        forms = [value, *(word for word in words if len(words) > 1 and len(word) >= _LONG)]
        forms += [form for text in forms for form in _forms(text)]
        with _lock:
            for form in forms:
                plain = _plain(form)[0]
                if plain:
                    self._values.setdefault(plain, set()).update(names)

    def add_login(self, user: str, password: str) -> None:
        """Register a password, and the user and password as encoded by ``Basic``."""
        if password:
            self.add(password, user)
            self.add(f"{user}:{password}", "authorization")

    def redact(self, text: str) -> str:
        """Return a message of the client's own server without the secrets of the client."""
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
    """Return a text without the secrets of all clients and anything that looks like a secret.

    Args:
        text: The text.
        patterns: Whether to replace unregistered secrets, too: passwords in URLs, values after
            names such as ``token``, and keys of a well-known form.

    Example:
        >>> redact("cannot reach https://me:pa@ss@example.org/search?token=abc&lang=en")
        'cannot reach https://me:***@example.org/search?token=***&lang=en'
        >>> redact("refused: {'api-key': 'abc', 'k': 3}")
        "refused: {'api-key': '***', 'k': 3}"
    """
    with _lock:
        known = list(_known)
    text = _replaced(text, (span for secrets in known for span in secrets._found(text, own=False)))  # noqa: SLF001 - one module
    return _without_patterns(text) if patterns else text


def looks_secret(text: str) -> bool:
    """Return whether a part of a text looks like a secret, registered or not."""
    return _without_patterns(text) != text


def secret_parts(path: str) -> set[str]:
    """Return the parts of a URL path that may be secret.

    These are parts that follow the name of a secret and are not words, that look like a key, or
    that look random.

    Example:
        >>> sorted(secret_parts("/v1/token/abc7/gpt-4o-2024-08-06/T0X9Q2A7B1C3D5E8F/search"))
        ['T0X9Q2A7B1C3D5E8F', 'abc7']
    """
    parts = path.split("/")
    return {
        part
        for name, part in pairwise(parts)
        if _RANDOM.search(part) or looks_secret(part) or (SECRET_NAME.search(name) and not _PATH_WORD.fullmatch(part))
    }


def _without_patterns(text: str) -> str:
    text = _URL_TOKEN.sub(rf"\1{_MARK}@", _URL_PASSWORD.sub(rf"\1:{_MARK}@", text))
    text = _NAMED.sub(rf"\1\g<quote>{_MARK}", text)
    text = _PARAMETER.sub(lambda match: match[1] + _MARK if SECRET_NAME.search(match[2]) else match[0], text)
    return _KEY_SHAPE.sub(_MARK, _SCHEME.sub(rf"\1{_MARK}", text))


def _replaced(text: str, spans: Iterator[tuple[int, int]]) -> str:
    parts: list[str] = []
    done = -1
    for start, end in sorted(set(spans)):
        if start >= done:
            parts += [text[max(done, 0) : start], _MARK]
        done = max(done, end)
    return "".join([*parts, text[max(done, 0) :]])


def _forms(value: str) -> Iterator[str]:
    """Yield encoded forms of a secret."""
    import base64
    from urllib.parse import quote, quote_plus

    yield from (quote(value, safe="", errors="replace"), quote_plus(value, errors="replace"))
    yield from (json.dumps(value)[1:-1], repr(value)[1:-1], ascii(value)[1:-1])
    for raw in {text.encode("utf-8", "replace") for text in (value, value.strip())}:
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            encoded = encode(raw).decode()
            yield from (encoded, encoded.rstrip("="))  # some servers remove the padding
        yield raw.hex()


def _plain(text: str) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the normalized bytes of a text, with the source position of each byte.

    Escapes are resolved, whitespace is removed, and case is folded: line breaks and changes of case
    cannot hide a secret.
    """
    plain = bytearray()
    places: list[tuple[int, int]] = []
    for unit in _UNIT.finditer(text):
        start, end = unit.span()
        if unit["plain"]:
            raw = unit["plain"].encode()
            places += [(at, at + 1) for at in range(start, end)]
        else:
            decoded = unit["percent"] or unit["hex"]
            if decoded:
                raw = bytes.fromhex(decoded).strip(_BLANK)
            elif unit["unicode"]:
                raw = _utf8(chr(int(unit["unicode"], 16))).strip(_BLANK)
            elif unit["entity"]:
                from html import unescape

                raw = _utf8(unescape(unit["entity"].lower())).strip(_BLANK)
            else:
                raw = b"" if unit["gap"] else _utf8(unit[0])
            places += [(start, end)] * len(raw)
        plain += raw
    return _folded(bytes(plain), places)


def _folded(raw: bytes, places: list[tuple[int, int]]) -> tuple[bytes, list[tuple[int, int]]]:
    """Return case-folded bytes with their source positions."""
    if raw.isascii():
        return raw.lower(), places
    result = bytearray()
    origins: list[tuple[int, int]] = []
    at = 0
    for char in raw.decode("utf-8", "surrogateescape"):
        size = len(char.encode("utf-8", "surrogateescape"))
        folded = char.casefold().encode("utf-8", "surrogateescape")
        result.extend(folded)
        origins.extend([(places[at][0], places[at + size - 1][1])] * len(folded))
        at += size
    return bytes(result), origins


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _is_word(before: str, after: str, *beside: bytes) -> bool:
    """Return whether a value is a whole word, in the text with or without its escapes."""
    sides = zip((before[-1:], after[:1]), beside, strict=True)
    return not any(char.isalnum() and byte.isalnum() for char, byte in sides)


def _is_value(text: str, start: int, end: int, names: tuple[str, ...]) -> bool:
    """Return whether a short value is in quotes, or follows its name or a word for a secret."""
    before, after = text[max(start - 60, 0) : start], text[end : end + 1]
    quoted = before.endswith(("'", '"')) and after in {"'", '"', "\\"}
    return quoted or _value_follows(names).search(before) is not None


@lru_cache(maxsize=256)
def _value_follows(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(_VALUE_FOLLOWS.format("|".join(map(re.escape, names)) or "key"))


# Patterns and replacements, in search order. Lengths are limited to avoid quadratic time.
_PERSONAL_DATA = (
    (re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"), "[email]"),
    (re.compile(r"\b(?:https?://|www\.)[^\s<>\"']{1,2000}", re.IGNORECASE), "[url]"),
    (re.compile(r"\b[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){3,7}(?: ?[A-Za-z0-9]{1,3})?\b"), "[iban]"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"), "[ip address]"),
    (re.compile(r"\b[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){7}\b"), "[ip address]"),
)
_NUMBER = re.compile(r"(?<![\w.])\+?\(?\d(?:[ ()./-]{0,2}\d){6,30}(?!\w)")
_DATE = re.compile(r"\d{4}([./-])\d{1,2}\1\d{1,2}|\d{1,2}([./-])\d{1,2}\2\d{4}|\d{4} ?[/-] ?\d{4}")


def scrub(text: str) -> str:
    """Replace personal data with a recognizable format: addresses, numbers, and secrets.

    E-mail addresses become ``[email]``, links ``[url]``, account numbers ``[iban]``, IP addresses
    ``[ip address]``, numbers of eight digits or more (telephones, cards, customers) ``[number]``,
    and keys and passwords ``***``. Dates are kept. Names of people and places cannot be recognized
    and are kept.

    Example:
        >>> scrub("refund for jo@example.org, call +44 20 7946 0958 before 2026-03-01")
        'refund for [email], call [number] before 2026-03-01'
    """
    for pattern, mark in _PERSONAL_DATA:
        text = pattern.sub(mark, text)
    return redact(_NUMBER.sub(_number, text))


def _number(match: re.Match[str]) -> str:
    whole = match.group()
    digits = sum(character.isdigit() for character in whole)
    # Numbers of telephones, customers, and cards have at least 8 digits; 7 after a plus sign.
    return whole if _DATE.fullmatch(whole) or digits < 8 - whole.startswith("+") else "[number]"
