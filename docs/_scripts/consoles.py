"""Run the shell sessions of the pages, and compare or rewrite their output.

A session is a ``console`` block: a line that begins with ``$`` is a command, lines that begin with
``>`` continue it, and the other lines are its output (stdout and stderr). The sessions of a page
share a folder with copies of the bundled sample: ``sample``, which is a project, and ``handbook``,
which contains Markdown files and a table of questions. ``cd FOLDER`` holds for the rest of the page.
On a page that writes files in Python (see notebooks.py), the sessions run after its Python code in
the same folder.

    python docs/_scripts/consoles.py           list the pages that are out of date
    python docs/_scripts/consoles.py --write   update them

Further arguments, such as docs/howto/gate.md, limit both to these pages.
"""

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import notebooks

from rankgauge import Collection, sample_path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"(?ms)^```console\n(?P<session>.*?)^```$")
_COMMAND = re.compile(r"(?m)^\$ (?P<command>.*\n(?:> ?.*\n)*)")
# The table of latency and cost, up to the next empty line, and the latency among the means.
_TIMES = re.compile(r"(?ms)^latency and cost\n.*?(?=^$)|^p50 ms .*?\n")


def pages() -> list[Path]:
    """Return the pages with a session."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    # The pages for contributors are followed by a test of their own.
    found = [path for path in found if path.parent.name != "contributing"]
    return [path for path in found if _BLOCK.search(path.read_text(encoding="utf-8"))]


def run_again(text: str) -> str:
    """Return a page with the current output of its sessions."""
    with tempfile.TemporaryDirectory() as folder:
        sample = sample_path("qrels.txt").parent
        shutil.copytree(sample, Path(folder, "sample"))
        _write_markdown(Collection.load(sample), Path(folder, "handbook"))
        if "\n# file: " in text:
            notebooks.run(text, folder)
        places = [folder]  # the folder after each cd
        return _BLOCK.sub(lambda block: _session(block["session"], places), text)


def _write_markdown(collection: Collection, folder: Path) -> None:
    """Write a Markdown file for each document, and a table of the questions."""
    folder.mkdir()
    for name, document in collection.documents.items():
        (folder / f"{name}.md").write_text(f"# {document.title}\n\n{document.text}\n")
    with (folder / "questions.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["question", "relevant"])
        for query, grades in collection.qrels.items():
            relevant = ";".join(f"{name}.md" for name, grade in grades.items() if grade > 0)
            table.writerow([collection.queries[query].text, relevant])


def _session(session: str, places: list[str]) -> str:
    lines = []
    for found in _COMMAND.finditer(session):
        lines += [found[0], printed(re.sub(r"(?m)^> ?", "", found["command"]), places[-1])]
        if moved := re.fullmatch(r"cd (\S+)\n", found["command"]):
            places.append(str(Path(places[-1], moved[1])))
    return f"```console\n{_times_as_before(session, ''.join(lines))}```"


def exit_codes(text: str) -> list[list[str]]:
    """Return the exit codes of the commands of each session; empty if all succeed."""
    return [re.findall(r"(?m)^\(exit code \d+\)$", b["session"]) for b in _BLOCK.finditer(text)]


def _times_as_before(before: str, after: str) -> str:
    """Return the new text with the old times, since measured times vary."""
    old, new = _TIMES.findall(before), _TIMES.findall(after)
    if [_names(table) for table in old] != [_names(table) for table in new]:
        return after
    kept = iter(old)
    return _TIMES.sub(lambda _: next(kept), after)


def _names(table: str) -> list[str]:
    """Return the columns of a table of times and the names of its rows."""
    head, *rows = table.splitlines()[1:] or [""]
    return [" ".join(head.split()), *(row.partition(" ")[0].rstrip("°") for row in rows[1:])]


def printed(command: str, folder: str) -> str:
    """Return the output of a command (stdout and stderr) and its exit code if not 0."""
    here = str(Path(sys.executable).parent)
    done = subprocess.run(  # noqa: S602 - the commands are those of our own pages
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}", "PYTHONUTF8": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        encoding="utf-8",
    )
    if "Traceback (most recent call last)" in done.stdout:
        raise RuntimeError(f"{command}\n{done.stdout}")  # no page shows a traceback
    printed = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
    return printed + (f"(exit code {done.returncode})\n" if done.returncode else "")


def main() -> int:
    """Compare or rewrite all pages, or those given as arguments."""
    stale = 0
    chosen = {Path(name).resolve() for name in sys.argv[1:] if not name.startswith("--")}
    for path in pages():
        if chosen and path not in chosen:
            continue
        before = path.read_text(encoding="utf-8")
        after = run_again(before)
        if before != after:
            stale += 1
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")
            if "--write" in sys.argv:
                path.write_text(after, encoding="utf-8")
    return int(stale > 0 and "--write" not in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
