"""Seed faults into real data, find and fix them: the sessions of howto/wrong-numbers.md.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/wrong_numbers.py [--write]

Without ``--write``, print the sessions. The folder contains ``cranfield/trec/qrels.txt``,
``cranfield/runs/*.run.gz``, and ``npl/trec/qrels.txt``. Each session in the page follows a comment
with its name; a test compares the page with the output.
"""

import gzip
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from consoles import printed
from page_tables import fill_sessions

Row = list[str]

PAGE = Path(__file__).resolve().parents[1] / "howto" / "wrong-numbers.md"
BM25 = "bm25-lucene-k0.9-b0.4-stem"
DENSE = "minilm-l6-v2-cosine"

MEASURES = "-m nDCG@10 -m R@100"
# Keep only the lines about the fault.
QUIET = "| head -n 3"
SESSIONS = {
    "right": (f"rankgauge evaluate qrels.txt bm25.run dense.run {MEASURES} | head -n 4",),
    "shifted": (
        f"rankgauge evaluate qrels.txt shifted.run {MEASURES} {QUIET}",
        f"rankgauge check qrels.txt shifted.run {MEASURES}",
        "awk '{ $3 = $3 + 1; print }' shifted.run > fixed.run",
        f"rankgauge evaluate qrels.txt fixed.run {MEASURES} {QUIET}",
    ),
    "padded": (
        f"rankgauge evaluate qrels.txt padded.run {MEASURES} {QUIET}",
        f"rankgauge check qrels.txt padded.run {MEASURES} --fix fixed",
        f"rankgauge evaluate qrels.txt fixed/padded.run {MEASURES} {QUIET}",
    ),
    "distances": (
        f"rankgauge evaluate qrels.txt distances.run {MEASURES} {QUIET}",
        f"rankgauge check qrels.txt distances.run {MEASURES} --fix fixed --fix-also R104",
        f"rankgauge evaluate qrels.txt fixed/distances.run {MEASURES} {QUIET}",
    ),
    "duplicates": (
        f"rankgauge evaluate qrels.txt chunks.run {MEASURES}",
        f"rankgauge evaluate qrels.txt chunks.run {MEASURES} --duplicates first {QUIET}",
        f"rankgauge check qrels.txt chunks.run {MEASURES} --fix fixed --fix-also R101",
        f"rankgauge evaluate qrels.txt fixed/chunks.run {MEASURES} {QUIET}",
    ),
    "cut": (
        f"rankgauge evaluate qrels.txt bm25.run short.run {MEASURES} | head -n 4",
        f"rankgauge check qrels.txt bm25.run short.run {MEASURES}",
        "rankgauge evaluate qrels.txt bm25.run short.run -m nDCG@10 -m R@10 | head -n 4",
    ),
    "others": (
        f"rankgauge evaluate other-qrels.txt bm25.run {MEASURES} {QUIET}",
        f"rankgauge check other-qrels.txt bm25.run {MEASURES}",
        f"rankgauge evaluate qrels.txt bm25.run {MEASURES} {QUIET}",
    ),
}


def data() -> Path:
    """Return the folder with the data."""
    named = os.environ.get("RANKGAUGE_TEST_DATA")
    if not named:
        sys.exit("set RANKGAUGE_TEST_DATA to the folder that contains cranfield/ and npl/")
    return Path(named)


def rows(run: str) -> list[Row]:
    """Return the lines of a run: query, Q0, document, rank, score, tag."""
    path = data() / "cranfield" / "runs" / f"{run}.run.gz"
    return [line.split() for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def changed(lines: list[Row], change: Callable[[Row], Row | None]) -> Iterator[Row]:
    """Yield each changed line; lines changed to None are dropped."""
    for line in lines:
        found = change([*line])
        if found is not None:
            yield found


def numbered(by: Callable[[int], str]) -> Callable[[Row], Row]:
    """Return a change of document numbers."""

    def change(row: Row) -> Row:
        row[2] = by(int(row[2]))
        return row

    return change


def as_distance(row: Row) -> Row:
    """Turn a similarity into a distance, as vector stores return it: 1 - cosine."""
    row[4] = f"{1 - float(row[4]):.6f}"
    return row


def as_chunks(lines: list[Row]) -> Iterator[Row]:
    """Yield the best documents of each query as one or two chunks, as a retriever of chunks does.

    A second chunk is ranked slightly below the first.
    """
    by_query: dict[str, list[tuple[float, Row]]] = {}
    for row in lines:
        if int(row[3]) <= 100:
            found = by_query.setdefault(row[0], [])
            score = float(row[4])
            found.append((score, row))
            if int(row[2]) % 2:
                found.append((score * 0.97, row))
    for found in by_query.values():
        found.sort(key=lambda pair: -pair[0])
        for rank, (score, row) in enumerate(found[:200], start=1):
            yield [*row[:3], str(rank), f"{score:.6f}", row[5]]


def make(folder: Path) -> None:
    """Write the files of all sessions."""
    bm25, dense = rows(BM25), rows(DENSE)
    made = {
        "bm25": bm25,
        "dense": dense,
        "shifted": changed(bm25, numbered(lambda number: str(number - 1))),
        "padded": changed(bm25, numbered(lambda number: f"{number:04d}")),
        "distances": changed(dense, as_distance),
        "chunks": as_chunks(bm25),
        "short": changed(dense, lambda row: row if int(row[3]) <= 10 else None),
    }
    for name, lines in made.items():
        text = "".join(" ".join(line) + "\n" for line in lines)
        (folder / f"{name}.run").write_text(text, encoding="utf-8")
    for name, collection in (("qrels", "cranfield"), ("other-qrels", "npl")):
        text = (data() / collection / "trec" / "qrels.txt").read_text(encoding="utf-8")
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")


def sessions() -> dict[str, str]:
    """Return each session by name, as a block of Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        found = {}
        for name, commands in SESSIONS.items():
            lines = [f"$ {command}\n{printed(command, folder)}" for command in commands]
            found[name] = f"<!-- session: {name} -->\n```shell-session\n{''.join(lines)}```"
        return found


def main() -> None:
    """Print the sessions, or write them into the page."""
    if "--write" in sys.argv:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(fill_sessions(page, sessions()), encoding="utf-8")
        return
    sys.stdout.write("\n\n".join(sessions().values()) + "\n")


if __name__ == "__main__":
    main()
