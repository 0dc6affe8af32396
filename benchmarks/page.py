"""Tables in Markdown, printed and put into a page between two comments that name them.

<!-- table: dicts -->
<!-- end -->
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """A table; the first columns, so many as there are words, stand left, numbers right."""
    lines = [head, [*["---"] * words, *["---:"] * (len(head) - words)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float) -> str:
    """Two or three figures, or all before the point: 0.012, 0.12, 1.23, 12.3, 1,234."""
    if value == 0 or value >= 99.95:
        return f"{value:,.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.0995 else f"{value:.2g}"


def put(page: Path, name: str, text: str) -> None:
    """Put a text between the marks of this name.

    Raises:
        ValueError: If the page has no such marks, or has them twice.
    """
    said = page.read_text(encoding="utf-8")
    marks = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    said, times = marks.subn(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", said)
    if times != 1:
        raise ValueError(f"{page}: marks of the table '{name}' stand there {times} times, not once")
    page.write_text(said, encoding="utf-8")
