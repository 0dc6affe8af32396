"""Format Markdown tables, and write them into a page between two comments.

<!-- table: dicts -->
<!-- end -->
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """Return a table; the first `words` columns are left-aligned, the others right-aligned."""
    lines = [head, [*["---"] * words, *["---:"] * (len(head) - words)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float) -> str:
    """Format with two or three digits, or all digits before the point: 0.012, 1.23, 12.3, 1,234."""
    if value == 0 or value >= 99.95:
        return f"{value:,.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.0995 else f"{value:.2g}"


def put(page: Path, name: str, text: str) -> None:
    """Replace the text between the comments of this table.

    Raises:
        ValueError: If the page does not contain these comments exactly once.
    """
    content = page.read_text(encoding="utf-8")
    marks = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    content, times = marks.subn(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", content)
    if times != 1:
        raise ValueError(f"{page}: expected one section '{name}' between table comments, found {times}")
    page.write_text(content, encoding="utf-8")
