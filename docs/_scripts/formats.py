"""The table of formats in Markdown, from the declarations in ``rankgauge/formats/registry.py``.

    python docs/_scripts/formats.py           print the table
    python docs/_scripts/formats.py --write   write it into docs/reference/formats.md

A test compares the page with it.
"""

from collections.abc import Iterator
from pathlib import Path

from page_tables import write_section

from rankgauge.formats.registry import FORMATS, Format

PAGE = Path(__file__).resolve().parents[1] / "reference" / "formats.md"
BEGIN = "<!-- written by docs/_scripts/formats.py -->\n"
END = "<!-- end -->\n"
WORDS = {"qrels": "judgments", "run": "runs"}


def lines() -> Iterator[str]:
    """Yield the lines of the table, with a row for each format."""
    yield "| format | content | recognized by | read as | written as |"
    yield "|---|---|---|---|---|"
    for form in FORMATS:
        shown = (f"`{form.name}`", form.example, form.known_by, kinds(form, "reads"))
        yield f"| {' | '.join(shown)} | {kinds(form, 'writes')} |"
    yield ""


def kinds(form: Format, direction: str) -> str:
    """List the kinds of data read from (or written in) a format."""
    return ", ".join(WORDS.get(content, content) for content in getattr(form, direction))


if __name__ == "__main__":
    write_section(lines(), PAGE, BEGIN, END)
