"""The scripts behind pages of the documentation, as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def docs_script(name: str, folder: str = "_scripts") -> ModuleType:
    """A script as a module; skips the tests of a file that uses it where there are no pages."""
    if not DOCS.is_dir():
        pytest.skip("there are no pages beside these tests", allow_module_level=True)
    path = DOCS / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"docs_script_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module
