"""Reference of the kinds of findings, in Markdown, from their declarations.

    python docs/_scripts/checks.py           print the reference
    python docs/_scripts/checks.py --write   write it into docs/reference/checks.md

A test compares the page with it.
"""

from collections.abc import Iterator
from pathlib import Path

from page_tables import write_section

import rankgauge
from rankgauge.core.findings import COMPARISON_KINDS

PAGE = Path(__file__).resolve().parents[1] / "reference" / "checks.md"
BEGIN = "<!-- written by docs/_scripts/checks.py -->\n"
GROUPS = {
    "F": "Files",
    "J": "Judgments",
    "R": "Runs",
    "P": "Judgments and runs together",
    "M": "Measures",
    "T": "Texts",
    "C": "Comparisons",
}
COPIES = {
    "safe": "`--fix` fixes it in a copy.",
    "on request": "`--fix` with `--fix-also {code}` fixes it in a copy.",
    "": "",
}


def lines() -> Iterator[str]:
    """Yield a heading for each letter and a section for each code."""
    for letter, title in GROUPS.items():
        yield f"## {title}"
        yield ""
        for kind in (*rankgauge.checks.FINDING_KINDS.values(), *COMPARISON_KINDS.values()):
            if kind.code.startswith(letter):
                yield from of_kind(kind)


def of_kind(kind: rankgauge.core.FindingKind) -> Iterator[str]:
    """Yield the section of one kind: description, effect, and fix."""
    yield f"### {kind.code} {kind.name}"
    yield ""
    yield f"{sentence(kind.description)} *({kind.severity})*"
    yield ""
    yield "Effect"
    yield f": {sentence(kind.effect)}"
    yield ""
    yield "Fix"
    yield f": {sentence(kind.fix)} {COPIES[kind.automatic].format(code=kind.code)}".rstrip()
    yield ""


def sentence(text: str) -> str:
    """Return the text as a sentence; names of measures keep their first letter."""
    first = text.split(maxsplit=1)[0]
    start = text[0].upper() if first.isalpha() and first.islower() else text[0]
    return f"{start}{text[1:]}."


if __name__ == "__main__":
    write_section(lines(), PAGE, BEGIN)
