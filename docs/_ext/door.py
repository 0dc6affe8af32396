"""References to where a name is at home lead to where it is documented: the door.

Docstrings in the code point to ``rankgauge.evaluation.evaluate``; the pages call it
``rankgauge.evaluate``, as users do.
"""

from typing import TYPE_CHECKING

import rankgauge

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment


def through_the_door(
    app: "Sphinx", env: "BuildEnvironment", node: "pending_xref", text: "nodes.TextElement"
) -> "nodes.reference | None":
    """The reference, if what is left without its module is a public name."""
    words = node.get("reftarget", "").split(".")
    public = next((n for n, word in enumerate(words) if word in rankgauge.__all__), None)
    if node.get("refdomain") != "py" or words[0] != "rankgauge" or not public:
        return None
    target = ".".join(["rankgauge", *words[public:]])
    where = node["refdoc"]
    return env.domains["py"].resolve_xref(
        env, where, app.builder, node["reftype"], target, node, text
    )


def setup(app: "Sphinx") -> dict[str, bool]:
    """Take part where a reference is not found."""
    app.connect("missing-reference", through_the_door)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
