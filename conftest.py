"""Test Python sessions (`>>>`) in Markdown pages, as `--doctest-modules` does in modules."""

import atexit
import doctest
import gc
import os
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Test processes run in parallel; linear algebra threads in each would compete for the cores.
for _library in ("OPENBLAS", "OMP"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

collect_ignore = ["docs/conf.py", "docs/_ext"]  # files of the Sphinx build


def pytest_collect_file(file_path: "Path", parent: pytest.Collector) -> "Page | None":
    """Collect Markdown pages."""
    return Page.from_parent(parent, path=file_path) if file_path.suffix == ".md" else None


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection, which some libraries start in every call."""
    gc.freeze()
    atexit.register(gc.unfreeze)


class Page(pytest.File):
    """A Markdown page; its sessions share one namespace, from top to bottom."""

    def collect(self) -> "Iterator[Session]":
        """Yield one item, or none for a page without sessions."""
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
        """Run all examples; report every one whose output differs from the page."""
        output: list[str] = []
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        if doctest.DocTestRunner(optionflags=flags).run(self.page, out=output.append).failed:
            pytest.fail("".join(output), pytrace=False)
