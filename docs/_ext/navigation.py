"""Give the navigation the titles of pages only.

The theme asks for titles, but Sphinx first copies all entries of all pages, for each page that it
writes. The page of the API has thousands of them.
"""

import functools
from typing import TYPE_CHECKING

from sphinx import addnodes

if TYPE_CHECKING:
    from typing import Any

    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment


def title_entries(contents: "nodes.bullet_list") -> "nodes.bullet_list":
    """Return a copy of the contents of a page without its headings and objects."""
    copy = contents.deepcopy()
    for entry in copy.children:
        for rest in entry.children[1:]:
            rest[:] = list(rest.findall(addnodes.toctree))
            if not rest.children:
                entry.remove(rest)
    return copy


def shorten(app: "Sphinx", context: "dict[str, Any]") -> None:
    """Let the theme make the navigation of a page from titles."""
    toctree = context.get("toctree")
    if toctree is None:
        return

    def of_titles(**words: "Any") -> str:
        entries = app.env.tocs
        app.env.tocs = titles(app.env)
        try:
            return toctree(**words)
        finally:
            app.env.tocs = entries

    context["toctree"] = of_titles


@functools.cache
def titles(env: "BuildEnvironment") -> "dict[str, nodes.bullet_list]":
    """Return the title entries of all pages; cached, since each page needs them."""
    return {page: title_entries(contents) for page, contents in env.tocs.items()}


def setup(app: "Sphinx") -> dict[str, bool]:
    """Run before the theme, whose priority is 500."""
    app.connect("html-page-context", lambda app, _page, _template, context, _tree: shorten(app, context), priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
