"""Runs the Python sessions (`>>>`) in Markdown pages, as `--doctest-modules` runs those in code."""

import doctest
import os
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Tests run side by side: threads of linear algebra in each of them would wait for one another.
for _library in ("OPENBLAS", "OMP"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

collect_ignore = ["docs/conf.py", "docs/_ext"]  # they belong to the builder of the pages


def pytest_collect_file(file_path: "Path", parent: pytest.Collector) -> "Page | None":
    """Take the Markdown pages that pytest was asked for."""
    return Page.from_parent(parent, path=file_path) if file_path.suffix == ".md" else None


class Page(pytest.File):
    """A Markdown page; its sessions share their names, from top to bottom."""

    def collect(self) -> "Iterator[Session]":
        """One item, or none for a page without a session."""
        text = re.sub(r"(?m)^ *(```|~~~).*$", "", self.path.read_text(encoding="utf-8"))
        page = doctest.DocTestParser().get_doctest(text, {}, self.name, str(self.path), 0)
        if page.examples:
            yield Session.from_parent(self, name=self.name, page=page)


class Session(pytest.Item):
    """The examples of one page."""

    def __init__(self, *, page: doctest.DocTest, **rest: object) -> None:
        super().__init__(**rest)
        self.page = page

    def runtest(self) -> None:
        """Run them all; show every one that prints something else than the page says."""
        said: list[str] = []
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        if doctest.DocTestRunner(optionflags=flags).run(self.page, out=said.append).failed:
            pytest.fail("".join(said), pytrace=False)
