r"""Escaping of untrusted text for each output format.

Ids, names of runs and files, query texts, and library messages can contain any character: terminal
escape sequences, line feeds, tags, formulas. Every output passes them through the function for its
format. No function changes safe text.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

# GitHub executes text that begins with "::" (after any whitespace), and "##[" anywhere in a line.
_COMMAND = re.compile(r"(?<!\S)::|##\[")
# Characters that HTML and XML forbid, and bidirectional control characters.
_NO_MARKUP = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_NO_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_MARKDOWN = re.compile(r"[\\|*_`<\[~&$]|^(?:>|[-+#]+(?=\s|$))")
# Spreadsheets read a cell that begins like this as a formula, also after their own separator.
_FORMULA = re.compile("(?:^|(?<=;))(?=[=+@\uff0b\uff0d\uff1d\uff20-])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    # After the end of a row, LaTeX would read these two as arguments.
    "[": "{[}",
    "*": "{*}",
    "−": "$-$",
    "–": "\x00",
    "×": r"$\times$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "Δ": r"$\Delta$",
    "→": r"$\to$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "±": r"$\pm$",
    "·": r"$\cdot$",
    "─": "-",
    "█": r"\rule{0.6em}{1.5ex}",
    "°": r"$^\circ$",
    "²": r"\textsuperscript{2}",
    "•": r"\textbullet{}",
    "…": r"\dots{}",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
}
_MINUS = re.compile(r"(?<![\w$)}])-(?=[\d.])")


def visible(text: str) -> str:
    r"""Return text on one line, with nonprintable characters as Python escapes.

    Nonprintable are control characters, line feeds, lone surrogates, and bidirectional controls.

    Example:
        >>> print(visible("a\x1b[2J\nb"))
        a\x1b[2J\nb
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def for_terminal(text: str) -> str:
    r"""Return one line for a terminal or a log, without commands for CI services.

    Example:
        >>> print(for_terminal("run\r\n::error::x"))
        run\r\n::error::x
        >>> print(for_terminal("::error::x"))
        \x3a:error::x
    """
    if text.isprintable() and "::" not in text and "##[" not in text:
        return text
    return _COMMAND.sub(lambda match: f"\\x{ord(match[0][0]):02x}{match[0][1:]}", visible(text))


def for_markdown(text: str) -> str:
    r"""Return one line for a paragraph, list, or table cell in Markdown.

    Example:
        >>> print(for_markdown("a|b <i> *c*"))
        a\|b \<i> \*c\*
    """
    return _MARKDOWN.sub(r"\\\g<0>", for_terminal(text))


def for_latex(text: str) -> str:
    r"""Return one line for LaTeX.

    Example:
        >>> print(for_latex("50% of a_b"))
        50\% of a\_b
    """
    escaped = "".join(_LATEX.get(letter, letter) for letter in for_terminal(text))
    return _MINUS.sub("$-$", escaped).replace("--", "-{}-").replace("\x00", "--")


def for_html(text: str) -> str:
    """Escape text or an attribute value for HTML or XML; line feeds are kept.

    Example:
        >>> for_html("a <b>")
        'a &lt;b&gt;'
    """
    from html import escape

    shown = escape(_NO_MARKUP.sub(lambda match: visible(match[0]), text))
    return shown.replace("\n", "&#10;").replace("##[", "&#35;#[")


def templates(**options: Any) -> Environment:
    """Return a Jinja environment for HTML and XML that escapes every value with `for_html`.

    Example:
        >>> templates().from_string("<b>{{ x }}</b>").render(x="<i>")
        '<b>&lt;i&gt;</b>'
    """
    from jinja2 import Environment
    from markupsafe import Markup

    def finalized(value: Any) -> Any:
        plain = isinstance(value, str) and not hasattr(value, "__html__")
        return Markup(for_html(value)) if plain else value  # noqa: S704 - just escaped

    return Environment(autoescape=True, finalize=finalized, **options)


def for_annotation(text: str, *, is_property: bool = False) -> str:
    """Escape text for a GitHub workflow command, as GitHub's toolkit does.

    Example:
        >>> for_annotation("50%, a:b", is_property=True)
        '50%25%2C a%3Ab'
    """
    for sign in "%\r\n" + (":," if is_property else ""):
        text = text.replace(sign, f"%{ord(sign):02X}")
    return visible(text)


def for_csv(text: str) -> str:
    """Return one line for a spreadsheet cell that is not read as a formula.

    Example:
        >>> for_csv("=1+1"), for_csv("a=1")
        ("'=1+1", 'a=1')
    """
    return _FORMULA.sub("'", for_terminal(text))


def for_json(text: str) -> str:
    r"""Escape a complete JSON document so that it can be written anywhere.

    The values do not change. `json.dumps` alone escapes only ASCII control characters and no lone
    surrogates.

    Example:
        >>> print(for_json('"a\x9b"'))
        "a\u009b"
    """
    shown = _NO_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return shown.replace("##[", "#\\u0023[")


def plain(value: Any) -> Any:
    """Convert a value to JSON types: NaN and infinity become None, objects become dicts or text.

    Objects with `to_dict` are converted by it, dataclasses without their own ``__str__`` to their
    attributes, and all other objects to ``str``.

    Example:
        >>> plain({"mean": float("nan"), "k": (1, 2)})
        {'mean': None, 'k': [1, 2]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return _plain_object(value)


def _plain_object(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if hasattr(value, "to_dict"):
        return plain(getattr(value, "_part", value.to_dict)())
    if dataclasses.is_dataclass(value) and type(value).__str__ is object.__str__:
        return {part.name: plain(getattr(value, part.name)) for part in dataclasses.fields(value)}
    return str(value)


def dump_json(value: Any) -> str:
    """Return JSON text that is safe in every output (see `plain` and `for_json`)."""
    import json

    return for_json(json.dumps(plain(value), ensure_ascii=False, allow_nan=False))
