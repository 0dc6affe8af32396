"""Names of measures in other tools, in Markdown, from the tables of the parser.

    python docs/_scripts/names.py           print the section
    python docs/_scripts/names.py --write   write it into docs/reference/names.md

A test compares the page with it.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from page_tables import write_section

import rankgauge
from rankgauge.measures.spellings import TOOLS
from rankgauge.measures.translation import ToolName, tool_names

PAGE = Path(__file__).resolve().parents[1] / "reference" / "names.md"
BEGIN = "<!-- written by docs/_scripts/names.py -->\n"
TITLES = {
    "trec_eval": "trec_eval, pytrec_eval",
    "beir": "BEIR",
    "mteb": "MTEB",
    "sklearn": "scikit-learn",
    "llama-index": "LlamaIndex",
    "haystack": "Haystack",
    "recbole": "RecBole",
    "rectools": "RecTools",
    "people": "Everyday usage",
}
REMARKS = {
    "ir_measures": "Nearly all names of ir_measures are the same here, with the same parameters; its measures "
    "themselves are accepted, too.",
    "sentence-transformers": "`cosine_` may be replaced by another similarity function, and "
    "preceded by the name of the data; the headers of CSV files (`cosine-Accuracy@1`) also work.",
    "ranx": "The suffix `-l2` means `(rel=2)`.",
    "mteb": "Names that begin with `nauc` are rejected like `nauc` (see below the table).",
    "people": "Case, spaces, `-`, and `_` are ignored; `at 5`, `_at_5`, and `_5` mean `@5`.",
}


def lines() -> Iterator[str]:
    """Yield a heading for each tool, a table of its names, and the names that are not measures."""
    for tool in TOOLS:
        if tool == "pytrec_eval":
            continue
        yield f"## {TITLES.get(tool, tool)}"
        yield ""
        if tool in REMARKS:
            yield REMARKS[tool]
            yield ""
        rows = list(tool_names([tool]))
        yield from table([*trec_names(tool), *(row for row in rows if row.means)])
        yield from rejected(row for row in rows if not row.means)


def trec_names(tool: str) -> Iterator[ToolName]:
    """Yield the names of trec_eval declared by the measures."""
    if tool != "trec_eval":
        return
    for bare in rankgauge.list_measures():
        declared = bare.declaration
        for trec_name, params in declared.trec.items():
            name = re.sub(r"\{\w+:[^}]*\}", "x", trec_name).replace("{", "").replace("}", "")
            means = str(bare(**params)) + (f"@{declared.at}" if "{" in trec_name else "")
            yield ToolName(tool, name, means, "")


def table(rows: Iterable[ToolName]) -> Iterator[str]:
    """Yield a table of name, measure, and the condition for equal numbers."""
    found = list(rows)
    if found:
        yield "| name | rankgauge | condition |"
        yield "|---|---|---|"
        for row in found:
            yield f"| `{row.name}` | `{row.means}` | {row.why} |"
        yield ""


def rejected(rows: Iterable[ToolName]) -> Iterator[str]:
    """Yield the names that are not measures here, by reason."""
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        by_reason.setdefault(row.why, []).append(row.name)
    for why, names in by_reason.items():
        reason = f"not a measure here, since {why}"
        if len(names) > 1:
            reason = f"not measures here, since each {why.removeprefix('it ')}"
        yield f"- {', '.join(f'`{name}`' for name in names)}: {reason}."
    if by_reason:
        yield ""


if __name__ == "__main__":
    write_section(lines(), PAGE, BEGIN)
