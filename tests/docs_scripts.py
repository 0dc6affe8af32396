"""Import the scripts of the documentation as modules."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def docs_script(name: str, folder: str = "_scripts") -> ModuleType:
    """Return a script as a module; skip the importing test file if there is no docs folder."""
    if not DOCS.is_dir():
        pytest.skip("there are no pages beside these tests", allow_module_level=True)
    path = DOCS / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"docs_script_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module
    spec.loader.exec_module(module)
    return module


def copies_of_the_sample(folder: Path, copies: int) -> list[str]:
    """Run the script of the page on scale; return the commands' files: judgments and two runs."""
    if not DOCS.is_dir():
        pytest.skip("there are no pages beside these tests")
    text = DOCS.joinpath("howto", "scale.md").read_text(encoding="utf-8")
    script = folder / "multiply.py"
    script.write_text(re.search(r"(?s)```python\n(.*?)```", text)[1], encoding="utf-8")
    subprocess.run([sys.executable, script, str(copies)], cwd=folder, check=True, timeout=60)
    return [str(folder / f"{name}.parquet") for name in ("qrels", "bm25", "keyword")]
