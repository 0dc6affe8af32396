"""Resolve references to a name in its module to the public name that is documented.

Docstrings in the code point to ``rankgauge.evaluation.evaluation.evaluate``; the pages call it
``rankgauge.evaluate``, as users do. So it is with the retrievers: ``rankgauge.retrievers.BM25``. A
short name (``gate``, ``Run.of``) leads to a documented name that ends with it.
"""

from typing import TYPE_CHECKING

import rankgauge

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment


def public_name(words: list[str]) -> str | None:
    """Return the public name of what a module has by another path; None if it has none."""
    for package in (rankgauge, getattr(rankgauge, words[1], None)):
        names = set(getattr(package, "__all__", ()))
        public = next((n for n, word in enumerate(words) if word in names), None)
        if public:
            return ".".join([package.__name__, *words[public:]])
    return None


def to_public_name(
    app: "Sphinx", env: "BuildEnvironment", node: "pending_xref", text: "nodes.TextElement"
) -> "nodes.reference | None":
    """The reference, if what is left without its module is a public name."""
    words = node.get("reftarget", "").split(".")
    if node.get("refdomain") != "py" or words == ["rankgauge"]:
        return None
    if words[0] == "rankgauge":
        target = public_name(words)
    else:
        ending = "." + ".".join(words)
        found = [full for full in env.domains["py"].objects if full.endswith(ending)]
        # A function of the public API before a method of the same name.
        target = min(found, key=lambda full: (full.count("."), full), default=None)
    if target is None:
        return None
    return env.domains["py"].resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], target, node, text
    )


def setup(app: "Sphinx") -> dict[str, bool]:
    """Take part where a reference is not found."""
    app.connect("missing-reference", to_public_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
