"""Render formulas as MathML during the build: no script, font, or network access at runtime."""

import re
from typing import TYPE_CHECKING

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator


# The arguments of these commands are not formulas; two or more letters in a row are one name.
_TEXT = re.compile(r"(\\(?:text|mathrm|operatorname|begin|end)\{[^}]*\})")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")


def upright(formula: str) -> str:
    """Set words upright: DCG is not D times C times G."""
    pieces = _TEXT.split(formula)
    pieces[::2] = [_WORD.sub(r"\\mathrm{\g<0>}", piece) for piece in pieces[::2]]
    return "".join(pieces)


def mathml(node: nodes.math | nodes.math_block, display: str) -> str:
    """Return the formula of a node as MathML."""
    try:
        return convert(upright(node.astext()), display=display)
    except Exception as error:  # the converter raises arbitrary exceptions
        where = f"{node.source or 'a docstring'}, line {node.line or '?'}"
        message = f"{where}: cannot read this formula: {node.astext()!r} ({error!r})"
        raise ExtensionError(message) from error


def visit_inline(self: "HTML5Translator", node: nodes.math) -> None:
    """Write a formula inside a sentence."""
    self.body.append(mathml(node, "inline"))
    raise nodes.SkipNode


def visit_block(self: "HTML5Translator", node: nodes.math_block) -> None:
    """Write a displayed formula, with its number if it has one."""
    # MyST wraps a labelled formula in a container with the same id
    ids = [one for one in node["ids"] if one not in node.parent["ids"]]
    self.body.append(self.starttag({"ids": ids}, "div", CLASS="math"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({node["number"]})</span>')
    self.body.append(mathml(node, "block"))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: "Sphinx") -> dict[str, bool]:
    """Register the renderer that conf.py names."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
