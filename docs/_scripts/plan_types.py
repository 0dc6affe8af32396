"""The types of retrievers in a project file and their options, in Markdown, from signatures and docstrings.

    python docs/_scripts/plan_types.py           print the section
    python docs/_scripts/plan_types.py --write   write it into docs/reference/project-file.md

A test compares the page with it.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from page_tables import write_section

from rankgauge import retrievers

PAGE = Path(__file__).resolve().parents[1] / "reference" / "project-file.md"
BEGIN = "<!-- written by docs/_scripts/plan_types.py -->\n"
END = "<!-- end -->\n"
KINDS = (("Retrievers", "search"), ("Encoders", "encode_queries"), ("Rerankers", "rerank"), ("Chunkers", "__call__"))
_ROLE = re.compile(r":\w+:`[~!]?(?:[a-z_]\w*\.)*([\w.]+)`")
_ARGUMENT = re.compile(r"(?m)^(\w+): (.*(?:\n(?: {4}.*)?)*)")


def lines() -> Iterator[str]:
    """Yield the lines of the section."""
    remaining = {word: getattr(retrievers, name) for word, name in retrievers.TYPES.items()}
    for title, method in KINDS:
        yield f"### {title}"
        yield ""
        for word in [word for word, made in remaining.items() if hasattr(made, method)]:
            yield from type_lines(word, remaining.pop(word))
    if remaining:
        sys.exit(f"retriever types without a section: {', '.join(remaining)}")


def type_lines(word: str, made: Any) -> Iterator[str]:
    """Yield the lines of one type."""
    yield f"#### {word}"
    yield ""
    first = inspect.getdoc(made).splitlines()[0]
    yield f"`{made.__name__}`. {plain(first)}"
    yield ""
    docs = parameter_docs(made)
    yield "| option | default | meaning |"
    yield "|---|---|---|"
    for name, parameter in inspect.signature(made).parameters.items():
        yield f"| `{name}` | {default(parameter)} | {docs[name]} |"
    yield ""


def parameter_docs(made: Any) -> dict[str, str]:
    """Return the documentation of each parameter, including those of base classes."""
    meant: dict[str, str] = {}
    for above in reversed(inspect.getmro(made)):
        found = re.search(r"(?ms)^Args:\n(.*?)(?=^\w+:$|\Z)", inspect.getdoc(above) or "")
        if found:
            text = inspect.cleandoc(found[1])
            meant |= {name: plain(" ".join(s.split())) for name, s in _ARGUMENT.findall(text)}
    return meant


def default(parameter: inspect.Parameter) -> str:
    """Return the default value as TOML."""
    value = parameter.default
    if value is inspect.Parameter.empty:
        return "*required*"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{list(value)}`".replace("'", '"')
    return f"`'{value}'`" if "\\" in str(value) else f"`{value!r}`".replace("'", '"')


def plain(text: str) -> str:
    """Return a docstring's markup as Markdown."""
    return _ROLE.sub(r"`\1`", text).replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    write_section(lines(), PAGE, BEGIN, END)
