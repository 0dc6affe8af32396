"""Resolve references to a name in its module to the public name that is documented.

Docstrings in the code point to ``rankgauge.evaluation.evaluation.evaluate``; the pages call it
``rankgauge.evaluate``, as users do. So it is with the retrievers: ``rankgauge.retrievers.BM25``.
"""

from typing import TYPE_CHECKING

import rankgauge

if TYPE_CHECKING:
    from types import ModuleType

    from docutils import nodes
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment


def names(module: "ModuleType") -> set[str]:
    """The public names of a module, without those of modules."""
    return set(module.__all__) - {"functional", "retrievers"}


def to_public_name(
    app: "Sphinx", env: "BuildEnvironment", node: "pending_xref", text: "nodes.TextElement"
) -> "nodes.reference | None":
    """The reference, if what is left without its module is a public name."""
    words = node.get("reftarget", "").split(".")
    if node.get("refdomain") != "py" or words[0] != "rankgauge":
        return None
    for module in (rankgauge, rankgauge.retrievers):
        public = next((n for n, word in enumerate(words) if word in names(module)), None)
        if public:
            break
    else:
        return None
    target = ".".join([module.__name__, *words[public:]])
    where = node["refdoc"]
    return env.domains["py"].resolve_xref(
        env, where, app.builder, node["reftype"], target, node, text
    )


def setup(app: "Sphinx") -> dict[str, bool]:
    """Take part where a reference is not found."""
    app.connect("missing-reference", to_public_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
