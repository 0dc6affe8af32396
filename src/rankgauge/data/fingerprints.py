"""Fingerprints of judgments and runs: equal for equal content, independent of its source."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from rankgauge.core.pair_table import PairTable
from rankgauge.data.qrels import Qrels


def fingerprint(source: Any) -> str:
    """Return the SHA-256 of the content of judgments or a run, as 64 hexadecimal digits.

    It does not depend on the file format, on the order of queries or rows, or on the name and
    settings of a run. It changes with any id, grade, or score, and with a query that has no
    documents. Scores are the 64-bit floats that were read. The order of documents with equal scores
    does not matter.

    The hashed bytes are: a line that names the kind; the number of queries and of rows; for the
    queries in ascending order of their bytes the lengths, the numbers of rows, and the ids; then
    for the rows, sorted by query, descending document id, and score, the lengths, the ids, and the
    numbers. All are little-endian 64-bit integers and floats, and -0 becomes 0. For judgments with
    more than a grade, a row id is the document, a NUL, and its labels.

    Args:
        source: Judgments (`Qrels`, or special ones such as `SubtopicQrels`) or a run.

    Example:
        >>> one = Qrels.of({"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 2}})
        >>> other = Qrels.of([("q2", "d1", 2), ("q1", "d2", 0), ("q1", "d1", 1)])
        >>> fingerprint(one) == fingerprint(other) != fingerprint(Qrels.of({"q1": {"d1": 1}}))
        True
    """
    if hasattr(type(source), "reads"):
        return _digest(b"rankgauge judgments of %b 1\n" % source.reads.encode(), source.keyed)
    kind = b"rankgauge judgments 1\n" if isinstance(source, Qrels) else b"rankgauge run 1\n"
    return _digest(kind, source.table)


def _digest(kind: bytes, table: PairTable) -> str:
    queries = table.queries.tolist()
    order = sorted(range(len(queries)), key=queries.__getitem__)
    place = np.empty(len(queries), dtype=np.int64)
    place[order] = np.arange(len(queries))
    rows = np.argsort(table.values, kind="stable")
    groups = place[table.query_numbers()[rows]]
    rows = rows[table.docs.descending(rows, groups)]
    docs = table.docs.take(rows)
    counts = np.diff(table.offsets)[order]
    digest = hashlib.sha256(kind)
    for numbers in ([len(queries), len(table)], [len(queries[number]) for number in order], counts):
        digest.update(np.asarray(numbers, dtype="<i8").tobytes())
    digest.update(b"".join(queries[number] for number in order))
    digest.update(docs.lengths.astype("<i8").tobytes())
    digest.update(b"".join(docs.tolist()))
    digest.update((table.values[rows] + 0.0).astype("<f8").tobytes())
    return digest.hexdigest()
