"""Print the tables of a page, or write them into the page between its marks."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rankgauge.rendering.tables import Table, to_markdown

__all__ = ["write_tables"]


def write_tables(tables: Callable[[Path], Iterator[tuple[str, Table]]], path: Path) -> None:
    """Print the tables that are made of the test data; with `--write`, put them into the page."""
    data = os.environ.get("RANKGAUGE_TEST_DATA", "")
    if not data:
        sys.exit("set RANKGAUGE_TEST_DATA to the folder of the collections")
    page = path.read_text(encoding="utf-8") if "--write" in sys.argv else ""
    for name, table in tables(Path(data)):
        text = to_markdown(table)
        sys.stdout.write(f"{name}\n\n{text}\n")
        if page:
            marks = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
            page, times = marks.subn(lambda m, text=text: f"{m[1]}\n{text}\n{m[2]}", page)
            if times != 1:
                sys.exit(f"the page has {times} places for the table {name}")
    if page:
        path.write_text(page, encoding="utf-8")
