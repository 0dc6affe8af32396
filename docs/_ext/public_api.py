"""References to where a name is at home lead to where it is documented: the door.

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


def names(door: "ModuleType") -> set[str]:
    """The public names of a module, without those of modules."""
    return set(door.__all__) - {"functional", "retrievers"}


def through_the_door(
    app: "Sphinx", env: "BuildEnvironment", node: "pending_xref", text: "nodes.TextElement"
) -> "nodes.reference | None":
    """The reference, if what is left without its module is a public name."""
    words = node.get("reftarget", "").split(".")
    if node.get("refdomain") != "py" or words[0] != "rankgauge":
        return None
    for door in (rankgauge, rankgauge.retrievers):
        public = next((n for n, word in enumerate(words) if word in names(door)), None)
        if public:
            break
    else:
        return None
    target = ".".join([door.__name__, *words[public:]])
    where = node["refdoc"]
    return env.domains["py"].resolve_xref(
        env, where, app.builder, node["reftype"], target, node, text
    )


def setup(app: "Sphinx") -> dict[str, bool]:
    """Take part where a reference is not found."""
    app.connect("missing-reference", through_the_door)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
