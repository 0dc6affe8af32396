"""Workloads: measures, and judgments and runs of any size from a seed.

A workload is a table: for each query distinct documents, best first, their scores, and judgments.
Mappings, data frames, and files are made from the same table, so their means are equal. Numbers
come from integer arithmetic alone, so they are the same on every machine and with every version of
every library.
"""

from __future__ import annotations

import gzip
import shutil
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

# NumPy is imported late, since the process that starts a timed command must be small.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MEASURES = (
    "nDCG@10",
    "nDCG@100",
    "AP",
    "RR",
    "P@1",
    "P@3",
    "P@5",
    "P@10",
    "P@20",
    "R@1",
    "R@3",
    "R@5",
    "R@10",
    "R@20",
    "R@100",
    "Success@1",
    "Success@5",
    "Success@10",
    "RR@10",
    "ERR@20",
)
# The measures that all engines have, so that all do the same work.
SHARED = tuple(name for name in MEASURES if name not in {"RR@10", "ERR@20"})
# Ten more measures that every peer has.
MORE = ("nDCG@5", "nDCG@20", "P@15", "P@30", "P@100", "R@15", "R@30", "R@50", "Success@3", "Success@20")

Judgments = dict[str, dict[str, int]]
Rankings = dict[str, dict[str, float]]

_DOCS = 23  # numbers of documents have this many bits
_MADE = 1  # version of the files; increment it to remake those on disk


@dataclass(frozen=True)
class Work:
    """A workload.

    Attributes:
        queries: Number of queries.
        docs: Documents retrieved for each query.
        judged: Documents judged for each query; half of them, rounded up, are retrieved.
        shape: ``simple`` (ids up to eight characters, scores with six decimals), ``real`` (ids with
            36 characters, tabs, signed scores with 17 digits), or ``mixed`` (simple, in random
            order: documents in mappings, all lines in files).
        gz: Whether the run file is compressed.
        large: Whether it takes minutes.
    """

    queries: int
    docs: int
    judged: int
    shape: str = "simple"
    gz: bool = False
    large: bool = False

    def __str__(self) -> str:
        more = {"real": ", real shapes", "mixed": ", random order"}.get(self.shape, "")
        return f"{self.queries:,} × {self.docs:,}{more}{', gzip' if self.gz else ''}"

    @property
    def key(self) -> str:
        """Return the name of its files."""
        return f"{self.queries}x{self.docs}-{self.judged}-{self.shape}-{_MADE}"

    @cached_property
    def table(self) -> Table:
        """Return its numbers."""
        return Table(self)


class Table:
    """The numbers of a workload.

    Attributes:
        docs: (queries, docs) the documents of each query, best first; in random order if mixed.
        scores: (queries, docs) their scores; about one in a hundred equals that of its neighbor.
        judged: (queries, judged) the judged documents.
        grades: (queries, judged) their grades, 0 to 3.
    """

    def __init__(self, work: Work) -> None:
        import numpy as np

        self.work = work
        seed = work.queries * 31 + work.docs * 7 + work.judged
        rows = np.arange(work.queries)
        inside = (work.judged + 1) // 2
        places = np.arange(work.docs + work.judged - inside)
        ids = _scattered(rows[:, None], places[None, :], seed)
        self.docs, outside = ids[:, : work.docs], ids[:, work.docs :]
        cells = rows[:, None] * work.docs + np.arange(work.docs)[None, :]
        scores = -np.sort(4 - 34 * _share(cells, seed + 1), axis=1)
        if work.shape != "real":
            scores = scores.round(6)
        own = np.where(_share(cells, seed + 2) < 0.01, 0, np.arange(work.docs))
        self.scores = np.take_along_axis(scores, np.maximum.accumulate(own, axis=1), axis=1)
        shuffled = np.argsort(_share(cells, seed + 3), axis=1)
        found = np.take_along_axis(self.docs, shuffled[:, :inside], axis=1)
        self.judged = np.concatenate([found, outside], axis=1)
        cells = rows[:, None] * work.judged + np.arange(work.judged)[None, :]
        self.grades = (_share(cells, seed + 4) * 4).astype(np.int64)
        if work.shape == "mixed":
            self.docs = np.take_along_axis(self.docs, shuffled, axis=1)
            self.scores = np.take_along_axis(self.scores, shuffled, axis=1)

    @property
    def queries(self) -> list[str]:
        """Return the ids of the queries."""
        return [str(1_000_000 + row) for row in range(self.work.queries)]

    def names(self, docs: npt.NDArray[np.int64]) -> list[str]:
        """Return the ids of documents, in order."""
        numbers = docs.ravel().tolist()
        if self.work.shape != "real":
            return list(map(str, numbers))
        return [f"{n:08x}-{n % 65521:04x}-4{n % 4093:03x}-a000-{n * 7919:012x}" for n in numbers]


def _mixed(numbers: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.uint64]:
    """Return 64 distinct bits for each number (the finalizer of MurmurHash3)."""
    import numpy as np

    bits = (numbers + (seed % 1_000_003 << 40)).astype(np.uint64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        bits ^= bits >> np.uint64(33)
        bits *= np.uint64(factor)
    return bits ^ (bits >> np.uint64(33))


def _share(cells: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.float64]:
    """Return a number in [0, 1) for each cell."""
    return (_mixed(cells, seed) >> 11) * 2.0**-53


def _scattered(rows: npt.NDArray[np.int64], places: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.int64]:
    """Return distinct document numbers for each row."""
    own = _mixed(rows, seed).astype("int64")
    most = (1 << _DOCS) - 1
    # Adding, multiplying by an odd number, and xor with its own upper bits are all invertible.
    ids = (places * (own | 1) + (own >> 24)) & most
    ids ^= ids >> 12
    return (ids * 0x2C1B3C6D) & most


def mappings(work: Work) -> tuple[Judgments, Rankings]:
    """Return judgments and a run as dicts of dicts."""
    table = work.table
    run, qrels = (
        {
            query: dict(zip(names, row, strict=True))
            for query, names, row in zip(
                table.queries, _cut(table.names(docs), docs.shape[1]), values.tolist(), strict=True
            )
        }
        for docs, values in ((table.docs, table.scores), (table.judged, table.grades))
    )
    return qrels, run


def _cut(names: list[str], size: int) -> list[list[str]]:
    return [names[start : start + size] for start in range(0, len(names), size)]


def columns(work: Work) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return judgments and a run as columns query_id, doc_id, and relevance or score."""
    table = work.table
    found = []
    for docs, values, last in ((table.judged, table.grades, "relevance"), (table.docs, table.scores, "score")):
        queries = [query for query in table.queries for _ in range(docs.shape[1])]
        found.append({"query_id": queries, "doc_id": table.names(docs), last: values.ravel()})
    return found[0], found[1]


def files(work: Work, folder: Path) -> tuple[Path, Path]:
    """Return judgments and a run as TREC files in a folder; make them if they do not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    qrels, run = folder / f"{work.key}.qrels", folder / f"{work.key}.run"
    if not run.exists():
        _write(work, qrels, run)
    if not work.gz:
        return qrels, run
    packed = run.with_suffix(".run.gz")
    if not packed.exists():
        part = packed.with_suffix(".part")
        with run.open("rb") as source, gzip.open(part, "wb", compresslevel=6) as target:
            shutil.copyfileobj(source, target)
        part.rename(packed)
    return qrels, packed


def _write(work: Work, qrels: Path, run: Path) -> None:
    """Write both files, the run last and renamed when complete."""
    table = work.table
    with qrels.open("w", encoding="ascii") as stream:
        names = iter(table.names(table.judged))
        for query, row in zip(table.queries, table.grades.tolist(), strict=True):
            stream.writelines(f"{query} 0 {next(names)} {grade}\n" for grade in row)
    part = run.with_suffix(".part")
    with part.open("w", encoding="ascii") as stream:
        if work.shape == "mixed":
            stream.writelines(_in_random_order(table))
        else:
            # Write blocks of queries: text takes ten times the memory of numbers.
            for start in range(0, work.queries, 1000):
                stream.writelines(_lines(table, start, min(start + 1000, work.queries)))
    part.rename(run)


def _lines(table: Table, start: int, stop: int) -> list[str]:
    """Return the lines of some queries, best documents first."""
    real = table.work.shape == "real"
    apart = "\t" if real else " "
    pattern = apart.join(("%s", "Q0", "%s", "%d", "%r" if real else "%.6f", "run\n"))
    queries = [query for query in table.queries[start:stop] for _ in range(table.work.docs)]
    ranks = [*range(1, table.work.docs + 1)] * (stop - start)
    scores = table.scores[start:stop].ravel().tolist()
    names = table.names(table.docs[start:stop])
    return list(map(str.__mod__, repeat(pattern), zip(queries, names, ranks, scores, strict=True)))


def _in_random_order(table: Table) -> list[str]:
    import numpy as np

    best = replace(table.work, shape="simple").table
    lines = _lines(best, 0, table.work.queries)
    return [lines[n] for n in np.argsort(_share(np.arange(len(lines)), 5)).tolist()]
