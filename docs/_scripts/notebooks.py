"""Run the Python on the tutorial pages, and write pages and notebooks with its output.

A ``python`` or ``toml`` block is a cell; one with prompts (``>>>``) becomes a cell for
each example that prints. A block whose first line is ``# file: NAME`` is written to that file
instead of run. On pages without prompts, a ``text`` block right after a cell is its output.

    python docs/_scripts/notebooks.py           list the pages and notebooks that are out of date
    python docs/_scripts/notebooks.py --write   update them
"""

import doctest
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TUTORIALS = Path(__file__).resolve().parents[1] / "tutorial"
_BLOCK = re.compile(
    r"(?ms)^```(?P<kind>python|toml)\n(?P<source>.*?)^```\n(?P<printed>\n```text\n(?P<output>.*?)^```\n)?"
)
_FILE = re.compile(r"# file: (\S+)\n")
# Runs cells as a notebook does: the value of a final expression is shown.
_RUNNER = """
import ast, contextlib, io, json, sys
names, outputs = {"__name__": "__main__"}, []
for source in json.load(sys.stdin):
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(tree, "cell", "exec"), names)
        shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
        if shown is not None:
            print(repr(shown))
    outputs.append(out.getvalue())
json.dump(outputs, sys.stdout)
"""


@dataclass(frozen=True)
class Cell:
    """Markdown, or code to run."""

    kind: str
    source: str


def cells(text: str) -> Iterator[Cell]:
    """Yield the cells of a page in order."""
    end = 0
    for block in _BLOCK.finditer(text):
        yield Cell("markdown", text[end : block.start()])
        source, prompted = block["source"], ">>> " in block["source"]
        yield from _examples(source) if prompted else [Cell("code", source)]
        end = block.end() if not prompted else block.start("printed")
        end = block.end() if end == -1 else end
    yield Cell("markdown", text[end:])


def _examples(source: str) -> Iterator[Cell]:
    """Yield a cell for each example that prints, with the preceding examples."""
    waiting = ""
    for example in doctest.DocTestParser().get_examples(source):
        waiting += example.source
        if example.want:
            yield Cell("code", waiting)
            waiting = ""
    if waiting:
        yield Cell("code", waiting)


def run(text: str, folder: str) -> list[str]:
    """Write the files of a page and run its code in a folder; return the output of each cell."""
    code = [cell.source for cell in cells(text) if cell.kind == "code"]
    for source in code:
        if found := _FILE.match(source):
            Path(folder, found[1]).parent.mkdir(exist_ok=True)
            Path(folder, found[1]).write_text(source[found.end() :], encoding="utf-8")
    sources = ["" if _FILE.match(source) else source for source in code]
    done = subprocess.run(  # noqa: S603 - the code is that of our own pages
        [sys.executable, "-X", "utf8", "-c", _RUNNER],
        cwd=folder,
        input=json.dumps(sources),
        stdout=subprocess.PIPE,
        check=True,
        encoding="utf-8",
    )
    outputs: list[str] = json.loads(done.stdout)
    return ["".join(f"{x.rstrip()}\n" for x in output.splitlines()) for output in outputs]


def with_output(text: str, outputs: list[str]) -> str:
    """Return the page with the output of its cells; pages with prompts are doctests."""
    if ">>> " in text:
        return text
    left = iter(outputs)

    def block(found: re.Match[str]) -> str:
        printed = next(left)
        shown = f"\n```text\n{printed}```\n" if printed else ""
        return f"```{found['kind']}\n{found['source']}```\n{shown}"

    return _BLOCK.sub(block, text)


def notebook(text: str, outputs: list[str]) -> str:
    """Return the page as a notebook in JSON."""
    left, made = iter(outputs), []
    for number, cell in enumerate(cells(text)):
        source = _FILE.sub(r"%%writefile \1\n", cell.source).strip("\n")
        if not source.strip():
            continue
        rest: dict[str, object] = {}
        if cell.kind == "code":
            lines = next(left).splitlines(keepends=True)
            stream = {"name": "stdout", "output_type": "stream", "text": lines}
            rest = {"execution_count": None, "outputs": [stream] if lines else []}
        text_lines = source.splitlines(keepends=True)
        made.append({"cell_type": cell.kind, "id": f"cell-{number}", "metadata": {}, "source": text_lines} | rest)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": made,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def updated(page: Path) -> dict[Path, str]:
    """Return the current page and notebook."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        outputs = run(text, folder)
    text = with_output(text, outputs)
    return {page: text, page.with_suffix(".ipynb"): notebook(text, outputs)}


def main() -> int:
    """List or update pages and notebooks that are out of date."""
    stale = [
        (path, text)
        for page in sorted(TUTORIALS.glob("*.md"))
        for path, text in updated(page).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        sys.stdout.write(f"{path.name}\n")
        if "--write" in sys.argv:
            path.write_text(text, encoding="utf-8")
    return int(bool(stale) and "--write" not in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
