r"""Text from outside, written so that a format shows it and nothing acts on it.

Ids, names of runs and files, texts of queries and messages of libraries can hold any character:
escape sequences of a terminal, line feeds, tags, formulas. Every output passes them through the
function of its format. None of them changes text that is safe.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

# GitHub runs what begins with "::" (behind any blanks), and "##[" anywhere in a line.
_COMMAND = re.compile(r"(?<!\S)::|##\[")
# What no file of HTML or XML may hold, and what turns the order of the letters around it.
_NO_MARKUP = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_NO_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_MARKDOWN = re.compile(r"[\\|*_`<\[~&$]|^(?:>|[-+#]+(?=\s|$))")
# A spreadsheet takes a cell that begins like this as a formula, also behind its own separator.
_FORMULA = re.compile("(?:^|(?<=;))(?=[=+@\uff0b\uff0d\uff1d\uff20-])")
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "`": r"\textasciigrave{}",
    # Behind the end of a row these two would be taken for its arguments.
    "[": "{[}", "*": "{*}", "−": "$-$", "–": "\x00", "×": r"$\times$", "≥": r"$\geq$",
    "≤": r"$\leq$", "²": r"\textsuperscript{2}", "•": r"\textbullet{}", "…": r"\dots{}",
    "†": r"\dag{}", "‡": r"\ddag{}",
}  # fmt: skip
_MINUS = re.compile(r"(?<![\w$)}])-(?=[\d.])")


def visible(text: str) -> str:
    r"""One line of text: each character that is not printable becomes an escape of Python.

    Control characters, line feeds, lone surrogates, and what turns the order of letters around.

    Example:
        >>> print(visible("a\x1b[2J\nb"))
        a\x1b[2J\nb
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def for_terminal(text: str) -> str:
    r"""One line for a terminal or a log; also in the log of a CI job it is no command.

    Example:
        >>> print(for_terminal("run\r\n::error::x"))
        run\r\n::error::x
        >>> print(for_terminal("::error::x"))
        \x3a:error::x
    """
    if text.isprintable() and "::" not in text and "##[" not in text:
        return text
    return _COMMAND.sub(lambda found: f"\\x{ord(found[0][0]):02x}{found[0][1:]}", visible(text))


def for_markdown(text: str) -> str:
    r"""One line for a paragraph, a list or a cell of Markdown.

    Example:
        >>> print(for_markdown("a|b <i> *c*"))
        a\|b \<i> \*c\*
    """
    return _MARKDOWN.sub(r"\\\g<0>", for_terminal(text))


def for_latex(text: str) -> str:
    r"""One line for LaTeX.

    Example:
        >>> print(for_latex("50% of a_b"))
        50\% of a\_b
    """
    escaped = "".join(_LATEX.get(letter, letter) for letter in for_terminal(text))
    return _MINUS.sub("$-$", escaped).replace("--", "-{}-").replace("\x00", "--")


def for_html(text: str) -> str:
    """Text or the value of an attribute in HTML or XML; line feeds are kept.

    Example:
        >>> for_html("a <b>")
        'a &lt;b&gt;'
    """
    from html import escape

    shown = escape(_NO_MARKUP.sub(lambda found: visible(found[0]), text))
    return shown.replace("\n", "&#10;").replace("##[", "&#35;#[")


def templates(**options: Any) -> Environment:
    """An environment of Jinja for HTML and XML in which `for_html` writes every value.

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
    """Text for a workflow command of GitHub, by the rules of its toolkit.

    Example:
        >>> for_annotation("50%, a:b", is_property=True)
        '50%25%2C a%3Ab'
    """
    for sign in "%\r\n" + (":," if is_property else ""):
        text = text.replace(sign, f"%{ord(sign):02X}")
    return visible(text)


def for_csv(text: str) -> str:
    """One line for a cell of a spreadsheet, which is not a formula.

    Example:
        >>> for_csv("=1+1"), for_csv("a=1")
        ("'=1+1", 'a=1')
    """
    return _FORMULA.sub("'", for_terminal(text))


def for_json(text: str) -> str:
    r"""A whole JSON text, not one of its values: it keeps its meaning and can be written anywhere.

    `json.dumps` escapes the control characters of ASCII only, and no lone surrogates.

    Example:
        >>> print(for_json('"a\x9b"'))
        "a\u009b"
    """
    shown = _NO_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return shown.replace("##[", "#\\u0023[")
