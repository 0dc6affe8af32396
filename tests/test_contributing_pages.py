"""The pages on additions are true: each is followed literally in a copy of the source.

A block of code whose first line is ``# file: PATH`` becomes that file, or is added at its end.
``# file: PATH, in NAME`` adds it at the end of this function, block, or collection. Shell commands
are run. All happens in the order of the page.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    page for page in sorted((ROOT / "docs" / "contributing").glob("add-*.md"))
    if "# file: " in page.read_text(encoding="utf-8")
]  # fmt: skip
BLOCK = re.compile(r"(?ms)^```(\w+)\n(.*?)^```$")
PLACE = re.compile(r"# file: ([^\s,]+)(?:, in (\S+))?\n+")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the commands are those of a POSIX shell")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_following_a_page_adds_code_that_passes_its_tests(page, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "build", "dist"))
    commands = 0
    for language, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if place := PLACE.match(block):
            add(source / place[1], place[2], block[place.end() :])
        elif language == "sh":
            commands += 1
            run(block, source)
    assert commands
    run("lint-imports --no-logo", source)


def add(path: Path, name: str | None, code: str) -> None:
    """Add code to a file: at its end, or at the end of what has this name."""
    if name is None:
        path.parent.mkdir(exist_ok=True)
        before = f"{path.read_text(encoding='utf-8')}\n\n" if path.exists() else ""
        path.write_text(before + code, encoding="utf-8")
        return
    lines = path.read_text(encoding="utf-8").splitlines()
    line, indent = next(filter(None, (end(n, name) for n in ast.walk(ast.parse("\n".join(lines))))))
    lines.insert(line, textwrap.indent(code.rstrip(), " " * indent))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def end(node: ast.AST, name: str) -> tuple[int, int] | None:
    """Return the number of the last line inside of what has this name, and its indentation."""
    match node:
        case ast.FunctionDef(name=found, body=body) if found == name:
            return body[-1].end_lineno, body[-1].col_offset
        case ast.With(items=[ast.withitem(context_expr=ast.Call(func=ast.Name(id=found)))]) if (
            found == name
        ):
            return node.body[-1].end_lineno, node.body[-1].col_offset
        case (
            ast.Assign(targets=[ast.Name(id=found)]) | ast.AnnAssign(target=ast.Name(id=found))
        ) if found == name:
            [inner] = [
                part for part in ast.walk(node.value)
                if isinstance(part, ast.Dict | ast.Tuple | ast.List | ast.Set)
            ][:1]  # fmt: skip
            return inner.end_lineno - 1, node.col_offset + 4
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and key.value == name:
                    return value.end_lineno - 1, key.col_offset + 4
    return None


def run(commands: str, folder: Path) -> None:
    """Run commands with the copy of the package."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder / "src"),
    }
    done = subprocess.run(
        ["sh", "-ec", commands], cwd=folder, env=environment,
        capture_output=True, check=False, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, f"{commands}\n{done.stdout[-5000:]}{done.stderr[-2000:]}"
