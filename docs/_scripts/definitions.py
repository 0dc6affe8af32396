"""Definitions of answer measures and of online metrics, in Markdown, from their declarations.

    python docs/_scripts/definitions.py           print the tables
    python docs/_scripts/definitions.py --write   write them into their pages

A test compares the pages with it.
"""

from collections.abc import Iterator
from pathlib import Path

from page_tables import write_section

from rankgauge import list_measures
from rankgauge.production import METRICS

DOCS = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- {} from docs/_scripts/definitions.py -->\n", "<!-- end -->\n"
PAGES = {
    "verdicts": DOCS / "reference" / "answer-measures.md",
    "answers": DOCS / "reference" / "answer-measures.md",
    "metrics": DOCS / "explain" / "online-metrics.md",
}
PARAMETERS = {"minutes": 10, "similarity": 0.5}


def lines(name: str) -> Iterator[str]:
    """Yield the lines of a table."""
    if name == "metrics":
        yield "| metric | unit | numerator | definition |"
        yield "|---|---|---|---|"
        for m in METRICS.values():
            defined = m.definition.format(**PARAMETERS)
            yield f"| `{m.name}` | {m.unit} | {m.numerator} | {defined} |"
    else:
        yield "| measure | better | definition |"
        yield "|---|---|---|"
        for measure in list_measures(name):
            yield f"| `{measure}` | {measure.declaration.better} | {measure.declaration.doc} |"
    yield ""


if __name__ == "__main__":
    for name, page in PAGES.items():
        write_section(lines(name), page, BEGIN.format(name), END)
