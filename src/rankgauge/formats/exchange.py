"""Shapes of other tools: MS MARCO, BEIR, Elasticsearch, OpenSearch, Quepid.

MS MARCO: ``query TAB document TAB rank``, runs only. BEIR: a TSV with the header ``query-id
corpus-id score`` and whole grades. Elasticsearch: the body of ``_rank_eval``, with whole ratings of
32 bits. OpenSearch: what its workbench imports as a list of judgments, ratings as text; by the name
``.csv`` the same table as Quepid. Quepid: a CSV with the header ``query,docid,rating``.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from rankgauge.core.ids import show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import InputError
from rankgauge.formats.layout import RUN, Layout, number_text
from rankgauge.formats.tables import by_query

__all__ = ["MOST_RATING", "RUNS_TOO", "exchange_text", "ranked_rows"]

# Of these shapes the one that holds runs; all others hold judgments, and it holds none.
RUNS_TOO = ("msmarco",)
# Elasticsearch keeps a rating in 32 bits, with a sign.
MOST_RATING = 2**31 - 1
_WHOLE = {"beir": 2**53, "rank-eval": MOST_RATING}
_INDEX = "documents"
_json = json.JSONEncoder(ensure_ascii=False).encode


def exchange_text(table: PairTable, layout: Layout, form: str, name: str) -> Iterator[str]:
    """The text of a file in one of these shapes, a query at a time.

    Args:
        table: What to write.
        layout: Judgments or run.
        form: ``msmarco``, ``beir``, ``rank-eval``, ``opensearch`` or ``quepid``.
        name: The name of the file.

    Raises:
        InputError: If the shape cannot hold it: a run or judgments at all, a grade, an id, a pair
            that stands twice.
    """
    _refuse_kind(layout, form)
    _refuse_grades(table, form)
    if form == "msmarco":
        return _msmarco(table)
    repeats = table.repeats()
    if repeats:
        raise table.repeat_error(repeats[0], fix="keep one judgment of each query and document")
    if form == "rank-eval":
        return _rank_eval(table, layout)
    if form == "beir":
        return _beir(table, layout)
    if form == "opensearch" and ".csv" not in name.lower():
        return _opensearch(table, layout)
    return _ratings(table, layout)


def ranked_rows(table: PairTable) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The rows in ranked order, query by query: equal scores by document id, descending.

    So a measure finds the same order in the ranks as it finds in the scores.
    """
    numbers = table.query_numbers()
    by_score = np.lexsort((-table.values, numbers))
    values, queries = table.values[by_score], numbers[by_score]
    new = np.ones(len(by_score), dtype=bool)
    new[1:] = (values[1:] != values[:-1]) | (queries[1:] != queries[:-1])
    if new.all():
        return by_score
    return by_score[table.docs.descending(by_score, np.cumsum(new))]


def _refuse_kind(layout: Layout, form: str) -> None:
    if (layout is RUN) == (form in RUNS_TOO):
        return
    got, holds = ("a run", "judgments") if layout is RUN else ("judgments", "runs")
    raise InputError(
        f"{form} holds {holds}, got {got}",
        fix="choose another format, such as trec, csv, json or parquet",
    )


def _refuse_grades(table: PairTable, form: str) -> None:
    """Refuse grades that are not whole where only whole ones fit; rounding would change them."""
    most = _WHOLE.get(form)
    if most is None:
        return
    values = table.values
    # A zero with a sign is no whole number, either: it would lose the sign.
    beyond = (values != np.trunc(values)) | (np.abs(values) > most)
    bad = np.flatnonzero(beyond | ((values == 0) & np.signbit(values)))
    if not len(bad):
        return
    row = int(bad[0])
    query = table.queries[int(table.query_numbers()[row])]
    others = f" ({len(bad)} grades do not fit)" if len(bad) > 1 else ""
    raise InputError(
        f"{form} holds whole grades up to {most}, got {float(values[row])!r} for document "
        f"'{show_id(table.docs[row])}' of query '{show_id(query)}'{others}",
        fix="multiply the grades so that all are whole, or write csv, json, parquet or trec",
    )


def _msmarco(table: PairTable) -> Iterator[str]:
    for what, ids in (("query id", table.queries), ("document id", table.docs)):
        for value in ids.tolist():
            if value.split() != [value]:
                raise InputError(
                    f"{what} '{show_id(value)}' cannot be written: blanks and tabs separate fields",
                    fix="rename it, or write JSON: give a path that ends in .json",
                )
    rows = ranked_rows(table)
    ordered = PairTable(table.queries, table.offsets, table.docs.take(rows), table.values[rows])
    for query, docs in by_query(ordered):
        yield "".join([f"{query}\t{doc}\t{rank}\n" for rank, (doc, _) in enumerate(docs, 1)])


def _rows_text(table: PairTable, layout: Layout, header: tuple[str, str, str], mark: str) -> Any:
    parts: list[str] = []
    # A cell is quoted if it holds a part of the line end: with this one, a lone return as well.
    sink = SimpleNamespace(write=lambda row: parts.append(row.removesuffix("\r\n") + "\n"))
    writer = csv.writer(sink, delimiter=mark, lineterminator="\r\n")
    writer.writerow(header)
    for query, docs in by_query(table):
        writer.writerows((query, doc, number_text(value, layout)) for doc, value in docs)
        yield "".join(parts)
        parts.clear()
    yield "".join(parts)


def _beir(table: PairTable, layout: Layout) -> Iterator[str]:
    yield from _rows_text(table, layout, ("query-id", "corpus-id", "score"), "\t")


def _ratings(table: PairTable, layout: Layout) -> Iterator[str]:
    yield from _rows_text(table, layout, ("query", "docid", "rating"), ",")


def _rank_eval(table: PairTable, layout: Layout) -> Iterator[str]:
    yield '{"requests": [\n'
    # Elasticsearch wants a query; which one only the user knows.
    asked = '"request": {"query": {"match_all": {}}}'
    between = ""
    for query, docs in by_query(table):
        start = f'    {{"_index": "{_INDEX}", "_id": '
        ratings = ",\n".join(
            [f'{start}{_json(doc)}, "rating": {number_text(v, layout)}}}' for doc, v in docs]
        )
        yield f'{between}  {{"id": {_json(query)}, {asked}, "ratings": [\n{ratings}\n  ]}}'
        between = ",\n"
    yield '\n], "metric": {"dcg": {"k": 10, "normalize": true}}}\n'


def _opensearch(table: PairTable, layout: Layout) -> Iterator[str]:
    yield '{"name": "judgments", "description": "", "type": "IMPORT_JUDGMENT",\n'
    yield '"judgmentRatings": [\n'
    between = ""
    for query, docs in by_query(table):
        ratings = ",\n".join(
            [f'    {{"docId": {_json(d)}, "rating": "{number_text(v, layout)}"}}' for d, v in docs]
        )
        yield f'{between}  {{"query": {_json(query)}, "ratings": [\n{ratings}\n  ]}}'
        between = ",\n"
    yield "\n]}\n"
