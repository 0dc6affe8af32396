"""The kinds of findings that a check knows, in Markdown, from the code.

    python docs/_scripts/checks.py           print what the page should say
    python docs/_scripts/checks.py --write   put it into docs/reference/checks.md

A test holds the page against it.
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
    """A heading for each letter, and one for each code."""
    for letter, title in GROUPS.items():
        yield f"## {title}"
        yield ""
        for kind in (*rankgauge.checks.FINDING_KINDS.values(), *COMPARISON_KINDS.values()):
            if kind.code.startswith(letter):
                yield from of_kind(kind)


def of_kind(kind: rankgauge.core.FindingKind) -> Iterator[str]:
    """What it is, what it does, how to fix it."""
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
    """A few words as a sentence; names of measures keep their first letter."""
    first = text.split(maxsplit=1)[0]
    start = text[0].upper() if first.isalpha() and first.islower() else text[0]
    return f"{start}{text[1:]}."


if __name__ == "__main__":
    write_section(lines(), PAGE, BEGIN)
