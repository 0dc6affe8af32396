"""Bugs in rows that hold many documents, and in tables that came as mappings."""

from planted.bug import Bug

__all__ = ["BUGS"]

BUGS = (
    Bug(
        "nesting: the last of a list is the best",
        "formats/nested.py",
        "zip(held, range(len(held), 0, -1), strict=True)",
        "zip(held, range(len(held)), strict=True)",
    ),
    Bug(
        "nesting: a query may have two lists",
        "formats/nested.py",
        "if short(query) in self._ordered:",
        "if not query:",
    ),
    Bug(
        "nesting: what was found is read as judged",
        "formats/nested.py",
        '"judgments": ("judgments",',
        '"judgments": ("results", "judgments",',
    ),
    Bug(
        "nesting: columns of a mapping are queries",
        "formats/memory.py",
        "if columns is not None and _numbered(first):",
        "if columns is not None and not first:",
    ),
    Bug(
        "nesting: rows of a table are queries",
        "formats/memory.py",
        "columns_of(first, layout) is not None and _numbered(data):",
        "columns_of(first, layout) is not None and not data:",
    ),
    Bug(
        "nesting: a check forgets the format",
        "checking/reading.py",
        "Given(name or run_name(source), source, form=form)",
        "Given(name or run_name(source), source)",
    ),
    Bug(
        "nesting: a check takes any third column for scores",
        "checking/salvage.py",
        "unknown = layout is RUN and len(parts) == _THREE",
        "unknown = layout is RUN and len(parts) == 0",
    ),
)
