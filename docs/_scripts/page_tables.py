"""Print generated tables and sessions, or write them into a page."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from rankgauge.rendering.tables import Table, to_markdown

__all__ = ["fill_sessions", "write_section", "write_tables"]

_SESSION = re.compile(r"(?ms)^<!-- session: (?P<name>[\w-]+) -->\n```shell-session\n.*?^```$")


def write_tables(tables: Callable[[Path], Iterator[tuple[str, Table]]], path: Path) -> None:
    """Print tables computed from the test data; with `--write`, write them into the page."""
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
                sys.exit(f"expected one section for table {name} in the page, found {times}")
    if page:
        path.write_text(page, encoding="utf-8")


def write_section(lines: Iterable[str], path: Path, begin: str, end: str = "") -> None:
    """Print a section; with `--write`, write it after `begin`, up to `end` if given."""
    section = "\n".join(lines)
    if "--write" not in sys.argv:
        sys.stdout.write(section)
        return
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    after = f"\n{end}{rest.partition(end)[2]}" if end else ""
    path.write_text(f"{before}{begin}\n{section}{after}", encoding="utf-8")


def fill_sessions(page: str, sessions: Mapping[str, str]) -> str:
    """Return the page with new sessions, each a block of Markdown."""
    named = _SESSION.findall(page)
    if sorted(named) != sorted(sessions):
        sys.exit(f"the page has {sorted(named)}, expected {sorted(sessions)}")
    return _SESSION.sub(lambda part: sessions[part["name"]], page)
