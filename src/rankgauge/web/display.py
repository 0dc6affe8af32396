"""Text of documents, questions, and guidelines as safe HTML, with everything escaped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from rankgauge.judging import Document, Settings

# Stop words, which are not highlighted.
_STOP_WORDS = """
a about after all am an and any are as at be been before but by can could did do does for from had
has have how i if in into is it its may me more most my no not of on or our should so some than that
the their them then there these they this to us was we were what when where which while who whom
whose why will with would you your
"""
_STOP = frozenset(_STOP_WORDS.split())
_WORD = re.compile(r"[^\W_]+")
_ENDINGS = ("ings", "ing", "ed", "es", "s", "e")
_MOST_TERMS = 50
_CODE = {"code", "source_code", "snippet"}


@dataclass(frozen=True, slots=True)
class DisplayedDocument:
    """Document as displayed on a page.

    Attributes:
        title: The field ``title``, if displayed.
        parts: Name, text, and whether the text is code, for each other field.
        image: The URL of an image, or None.
        link: The URL of the document, or None.
    """

    title: Markup
    parts: tuple[tuple[str, Markup, bool], ...]
    image: str | None
    link: str | None


def displayed(document: Document, settings: Settings, question: str) -> DisplayedDocument:
    """Return the displayed form of a document, with the terms of the question marked."""
    special = {settings.image, settings.link}
    names = settings.fields or [name for name in document.fields if name not in special]
    texts = {name: document.fields[name] for name in names if document.fields.get(name)}
    title = texts.pop("title", "")
    return DisplayedDocument(
        highlighted(title, question),
        tuple((name, highlighted(text, question), name in _CODE) for name, text in texts.items()),
        _address(document, settings.image),
        _address(document, settings.link),
    )


def _address(document: Document, field: str | None) -> str | None:
    """Return the URL in a field if it is http or https, else None."""
    text = document.fields.get(field or "", "").strip()
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if parts.scheme in {"http", "https"} and parts.netloc else None


def highlighted(text: str, question: str) -> Markup:
    """Return a text as HTML in which the words of a question, inflected or not, are marked.

    Example:
        >>> print(highlighted("Ties & <b>tied</b> scores", "How are ties broken?"))
        <mark>Ties</mark> &amp; &lt;b&gt;<mark>tied</mark>&lt;/b&gt; scores
    """
    pattern = _pattern(question)
    if pattern is None:
        return escape(text)
    parts: list[str] = []
    end = 0
    for found in pattern.finditer(text):
        parts += (escape(text[end : found.start()]), "<mark>", escape(found.group()), "</mark>")
        end = found.end()
    parts.append(escape(text[end:]))
    return Markup("".join(parts))  # noqa: S704 - all parts are escaped


@lru_cache(maxsize=256)
def _pattern(question: str) -> re.Pattern[str] | None:
    words = (word for word in _WORD.findall(question.casefold()) if word not in _STOP)
    stems = dict.fromkeys(_stem(word) for word in words if len(word) > 1 or word.isdecimal())
    if not stems:
        return None
    # Longest stems first, so that whole words are marked.
    ordered = sorted(list(stems)[:_MOST_TERMS], key=len, reverse=True)
    stems_or = "|".join(map(re.escape, ordered))
    return re.compile(rf"\b(?:{stems_or})(?:e|d|s|ed|es|er|ers|ing|ings)?\b", re.IGNORECASE)


def _stem(word: str) -> str:
    """Return a word without an English ending, if enough letters remain."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word.removesuffix(ending)
    return word.removesuffix("s") if len(word) == 4 and not word.endswith("ss") else word


@lru_cache(maxsize=32)
def guideline_html(text: str) -> Markup:
    """Convert a guideline from Markdown to HTML, escaping HTML and omitting images.

    Example:
        >>> print(guideline_html("**Correct** <script>alert(1)</script>"))
        <p><strong>Correct</strong> &lt;script&gt;alert(1)&lt;/script&gt;</p>
    """
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return Markup(reader.render(text).strip())  # noqa: S704 - the reader escapes HTML
