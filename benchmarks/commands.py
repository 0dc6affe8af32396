"""What commands cost beside the evaluations they contain: prints a table in Markdown.

    python benchmarks/commands.py [--tiny] [--large] [--write PAGE]

Each command is a process of its own, from its start to its end, and follows an evaluation of the
same file; the ratio is that of the two. The second run has the documents of the first in another
order.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from page import number, put, table
from processes import Took, process
from workloads import Work, files

DATA = Path(__file__).parent.parent / "build" / "benchmarks"
SMALL, LARGE, TINY = Work(700, 1000, 2), Work(7000, 1000, 2), Work(50, 20, 4)
# Each command, how many evaluations it contains, its goals: CPU beside these evaluations, MiB.
COMMANDS: tuple[tuple[str, int, float, float], ...] = (
    ("compare {qrels} {a} {b}", 2, 2.5, 300),
    (
        "gate {qrels} {a} --rules {rules} --update-baseline --baseline {folder}/base.json",
        1,
        2.5,
        300,
    ),
    ("gate {qrels} {a} --rules {rules} --baseline {folder}/base.json", 1, 2.5, 300),
    ("diff {qrels} {a} {b}", 2, 2.5, 300),
    ("check {qrels} {a}", 1, 2.5, 300),
    ("cut {a} -k 10 -o {folder}/cut.run", 1, 2.5, 300),
    ("explain {qrels} {a} nDCG@10", 1, 2.5, 300),
    ("diagnose {qrels} {a}", 1, 6, 500),
    ("reliability {qrels} {a} {b}", 1, 6, 500),
    ("fuse {a} {b} -o {folder}/fused.run", 1, 6, 500),
    ("convert {a} {folder}/run.csv", 1, 6, 500),
    ("explain {qrels} {a} nDCG@10 --against-mean 0.5", 1, math.inf, math.inf),
)
RULES = "[measures]\nAP = { margin = 0.00001 }\n"


def second(run: Path, folder: Path) -> Path:
    """A run of the same documents: each pair of neighbors has changed places."""
    target = folder / "second.run"
    with run.open(encoding="ascii") as source, target.open("w", encoding="ascii") as sink:
        for line, other in zip(source, source, strict=True):
            one, two = line.split(), other.split()
            one[2], two[2] = two[2], one[2]
            sink.write(f"{' '.join(one)}\n{' '.join(two)}\n")
    return target


def _took(words: str) -> Took:
    return process([sys.executable, "-m", "rankgauge", *words.split()])


def rows(work: Work) -> Iterator[tuple[str, ...]]:
    """A row for each command."""
    qrels, run = files(work, DATA)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rules = folder / "rules.toml"
        rules.write_text(RULES, encoding="utf-8")
        given = {"qrels": qrels, "a": run, "b": second(run, folder), "rules": rules}
        for command, contains, goal, room in COMMANDS:
            one = _took(f"evaluate {qrels} {run}")
            took = _took(command.format(**given, folder=folder))
            shown = command.split(" -o ")[0].replace("{folder}/", "")
            for word in ("{", "}", " --rules rules", " --baseline base.json"):
                shown = shown.replace(word, "")
            ratio = took.cpu / (contains * one.cpu)
            text = f"{ratio:.1f}" + ("" if ratio <= goal else f" (goal: {goal:g})")
            peak = f"{took.peak:.0f}" + ("" if took.peak <= room else f" (goal: {room:g})")
            yield f"`{shown}`", str(contains), number(one.cpu), number(took.cpu), text, peak


HEAD = ("command", "evaluations", "one evaluation s", "command s", "ratio", "peak MiB")


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args(words)
    work = TINY if given.tiny else LARGE if given.large else SMALL
    said = table((f"{work}: {HEAD[0]}", *HEAD[1:]), rows(work))
    print(said)
    if given.write:
        put(given.write, "commands", said)


if __name__ == "__main__":
    main()
