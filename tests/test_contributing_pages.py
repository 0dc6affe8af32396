"""The pages on additions are true: each is followed literally in a copy of the source.

A block of code whose first line is ``# file: PATH`` becomes that file, or is added at its end.
``# file: PATH, in NAME`` adds it at the end of this function, class, block, or collection, and
``before NAME`` before it; words that are not a name stand for the first line with them. Shell
commands are run. All happens in the order of the page.
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
PAGES = sorted((ROOT / "docs" / "contributing").glob("add-*.md"))
BLOCK = re.compile(r"(?ms)^(````?)(\w+)\n(.*?)^\1$")
PLACE = re.compile(r"# file: (?P<path>[^\s,]+)(?:, (?P<where>in|before) (?P<name>.+))?\n+")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the commands are those of a POSIX shell")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_following_a_page_adds_code_that_passes_its_tests(page, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "build", "dist"))
    commands = 0
    for _, language, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if place := PLACE.match(block):
            path = source / place["path"]
            path.parent.mkdir(exist_ok=True)
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            code = block[place.end() :]
            after = added(before, code, place["where"], place["name"])
            path.write_text(after, encoding="utf-8")
        elif language == "sh":
            commands += 1
            run(block, source)
    assert commands
    run("lint-imports --no-logo", source)


def added(text: str, code: str, where: str | None, name: str | None) -> str:
    """Return the text of a file with this code at its end, or in or before what has this name."""
    if where is None:
        return f"{text}\n\n{code}" if text else code
    lines, after = text.splitlines(), []
    if not name.isidentifier():
        line = next(number for number, line in enumerate(lines) if name in line)
        indent = len(lines[line]) - len(lines[line].lstrip())
    else:
        [node] = [node for node in ast.walk(ast.parse(text)) if name in names(node)]
        line, indent = (node.lineno - 1, node.col_offset) if where == "before" else end(node)
        if isinstance(node, ast.Assign | ast.AnnAssign) and where == "in":
            code = f"{code.rstrip().removesuffix(',')},"
        after = ["", ""] if where == "before" else []
    lines[line:line] = [*textwrap.indent(code, " " * indent).splitlines(), *after]
    return "\n".join(lines) + "\n"


def names(node: ast.AST) -> list[str]:
    """Return the name of a function or class, of an assigned collection, or of a block."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return [name]
        case ast.With(items=[ast.withitem(context_expr=ast.Call(func=ast.Name(id=name)))]):
            return [name]
        case _:
            return []


def end(node: ast.AST) -> tuple[int, int]:
    """Return the line at which code is added to a node, and its indentation."""
    match node:
        case ast.FunctionDef(body=[*_, before, ast.Return()]) | ast.FunctionDef(body=[*_, before]):
            last = before
        case ast.ClassDef(body=body):
            last = [part for part in body if isinstance(part, ast.AnnAssign)][-1]
        case ast.With(body=[*_, last]):
            pass
        case _:
            kinds = ast.Dict | ast.Tuple | ast.List | ast.Set
            found = next(part for part in ast.walk(node.value) if isinstance(part, kinds))
            first = found.keys[0] if isinstance(found, ast.Dict) else found.elts[0]
            return found.end_lineno - 1, first.col_offset
    return last.end_lineno, last.col_offset


def run(commands: str, folder: Path) -> None:
    """Run commands with the copy of the package."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder / "src"),
    }
    done = subprocess.run(
        ["sh", "-ec", commands], cwd=folder, env=environment, capture_output=True, check=False, encoding="utf-8"
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout[-5000:]}{done.stderr[-2000:]}"
