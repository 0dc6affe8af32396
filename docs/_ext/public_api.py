"""Resolve references to a name in its module to the documented public name.

Docstrings in the code refer to ``rankgauge.evaluation.evaluation.evaluate``; the pages document
``rankgauge.evaluate``, the name that users import (likewise ``rankgauge.retrievers.BM25``). A short
name (``gate``, ``Run.of``) resolves to a documented name that ends with it.
"""

from typing import TYPE_CHECKING

import rankgauge

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment


def public_name(words: list[str]) -> str | None:
    """Return the public name for the path of a name in its module, or None if it is not public."""
    for package in (rankgauge, getattr(rankgauge, words[1], None)):
        names = set(getattr(package, "__all__", ()))
        public = next((n for n, word in enumerate(words) if word in names), None)
        if public:
            return ".".join([package.__name__, *words[public:]])
    return None


def to_public_name(
    app: "Sphinx", env: "BuildEnvironment", node: "pending_xref", text: "nodes.TextElement"
) -> "nodes.reference | None":
    """Return a link to the public name of an unresolved target, or None if there is none."""
    words = node.get("reftarget", "").split(".")
    if node.get("refdomain") != "py" or words == ["rankgauge"]:
        return None
    if words[0] == "rankgauge":
        target = public_name(words)
    else:
        ending = "." + ".".join(words)
        found = [full for full in env.domains["py"].objects if full.endswith(ending)]
        # Prefer a function of the public API to a method with the same name.
        target = min(found, key=lambda full: (full.count("."), full), default=None)
    if target is None:
        return None
    return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, node["reftype"], target, node, text)


def setup(app: "Sphinx") -> dict[str, bool]:
    """Register the handler of missing references."""
    app.connect("missing-reference", to_public_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
