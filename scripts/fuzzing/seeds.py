"""Small valid inputs of every format that is read, before mutation."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import zipfile
from collections.abc import Callable

import rankgauge as rg

__all__ = ["MEASURES", "PACKERS", "SEEDS", "Seed"]

Seed = tuple[str, bytes]
Rows = list[tuple[str, str, float]]

_IDS = ("d1", "d2", "d10", "D1", "007", "7", "é", "文書", "a-b", "x:y", "http://a/b", "clueweb12-00")
_PACKED_TEXT = b"q1 Q0 d1 1 2.5 mine\n"
MEASURES = (
    "nDCG@10",
    "P@5",
    "R@100",
    "AP",
    "RR@10",
    "nDCG(dcg='exp-log2')@10",
    "ERR(top=4)@20",
    "P(rel=2)@5",
    "RBP(p=0.8)",
    "map",
    "ndcg_cut_10",
    "recip_rank",
    "Judged@10",
    "MRR@10",
    "F1@5",
    "Bpref",
    "GMAP",
    "nDCG(gain={0: 0, 1: 3})@5",
    "F(beta=2)@5",
    "IPrec@0.5",
    "hit_rate@5",
    "NDCG@10",
    "success_1",
)


def _rows(draw: random.Random) -> Rows:
    docs = draw.sample(_IDS, draw.randint(1, 6))
    queries = draw.sample(("q1", "q2", "1", "2", "über"), draw.randint(1, 3))
    return [(q, d, round(draw.uniform(-3, 9), draw.randint(0, 4))) for q in queries for d in docs]


def _lines(rows: list[tuple[object, ...]], draw: random.Random, separator: str = " ") -> bytes:
    end = draw.choice(("\n", "\n", "\n", "\r\n", "\r"))
    text = end.join(separator.join(map(str, row)) for row in rows)
    return (text + draw.choice(("", end))).encode()


def _run(draw: random.Random) -> Seed:
    rows = [(q, "Q0", d, n, s, "mine") for n, (q, d, s) in enumerate(_rows(draw), 1)]
    return "a.run", _lines(rows, draw, draw.choice((" ", "\t", "  ")))


def _qrels(draw: random.Random) -> Seed:
    rows = [(q, 0, d, int(g)) for q, d, g in _rows(draw)]
    return draw.choice(("qrels.txt", "qrels")), _lines(rows, draw, draw.choice((" ", "\t")))


def _three(draw: random.Random) -> Seed:
    rows = [(q, d, n) for n, (q, d, _) in enumerate(_rows(draw), 1)]
    return draw.choice(("a.tsv", "a.txt")), _lines(rows, draw, "\t")


def _table(draw: random.Random) -> Seed:
    names = (
        draw.choice(("query_id", "qid", "query-id", "query")),
        draw.choice(("doc_id", "docno", "corpus-id", "docid")),
        draw.choice(("score", "relevance", "rel", "rating", "rank", "sim")),
    )
    end, separator = draw.choice((("csv", ","), ("tsv", "\t"), ("csv", ";")))
    return f"a.{end}", _lines([names, *_rows(draw)], draw, separator)


def _json_lines(draw: random.Random) -> Seed:
    key = draw.choice(("score", "relevance", "rating"))
    rows = [json.dumps({"query_id": q, "doc_id": d, key: s}) for q, d, s in _rows(draw)]
    return "a.jsonl", "\n".join(rows).encode()


def _mapping(draw: random.Random) -> Seed:
    found: dict[str, dict[str, float]] = {}
    for query, doc, score in _rows(draw):
        found.setdefault(query, {})[doc] = score
    data: object = found
    if draw.random() < 0.2:
        data = {query: list(docs) for query, docs in found.items()}
    if draw.random() < 0.1:
        data = {query: [[doc, s] for doc, s in docs.items()] for query, docs in found.items()}
    return "a.json", json.dumps(data, indent=draw.choice((None, 1))).encode()


def _ratings(draw: random.Random) -> Seed:
    """Judgments in the formats of search engines and their tools."""
    rows = _rows(draw)
    by_query: dict[str, list[tuple[str, float]]] = {}
    for query, doc, grade in rows:
        by_query.setdefault(query, []).append((doc, grade))
    shape = draw.randrange(4)
    if shape == 0:
        requests = [
            {"id": q, "ratings": [{"_index": "i", "_id": d, "rating": int(g)} for d, g in docs]}
            for q, docs in by_query.items()
        ]
        return "a.json", json.dumps({"requests": requests}).encode()
    if shape == 1:
        ratings = [
            {"query": q, "ratings": [{"docId": d, "rating": str(g)} for d, g in docs]} for q, docs in by_query.items()
        ]
        return "a.json", json.dumps({"name": "n", "judgmentRatings": ratings}).encode()
    if shape == 2:
        details = {
            q: {"hits": [{"hit": {"_index": "i", "_id": d, "_score": g}, "rating": 1} for d, g in docs]}
            for q, docs in by_query.items()
        }
        return "a.json", json.dumps({"details": details}).encode()
    return "a.csv", _lines([("query", "docid", "rating"), *rows], draw, ",")


def _records(draw: random.Random) -> Seed:
    rows = [
        json.dumps({"id": f"q{n}", "retrieved": draw.sample(_IDS, 3), "relevant": draw.sample(_IDS, 2)})
        for n in range(draw.randint(1, 3))
    ]
    return "records.jsonl", "\n".join(rows).encode()


def _texts(draw: random.Random) -> Seed:
    shape = draw.randrange(4)
    keys = draw.sample(_IDS, draw.randint(1, 4))
    if shape == 0:
        rows = [json.dumps({"_id": key, "title": "T", "text": "some words"}) for key in keys]
        return "corpus.jsonl", "\n".join(rows).encode()
    if shape == 1:
        return "queries.tsv", _lines([(key, "what is it") for key in keys], draw, "\t")
    if shape == 2:
        parts = [f"<top>\n<num> Number: {key}\n<title> a title\n</top>\n" for key in keys]
        return "topics.txt", "".join(parts).encode()
    parts = [f"<DOC>\n<DOCNO>{key}</DOCNO>\n<TEXT>\nwords\n</TEXT>\n</DOC>\n" for key in keys]
    return "docs.trec", "".join(parts).encode()


def _ids(draw: random.Random) -> Seed:
    return "ids.txt", "\n".join(draw.sample(("q1", "1", "q9", "q2"), draw.randint(1, 3))).encode()


def _columns(draw: random.Random) -> Seed:
    """Parquet and Arrow, if a library that writes them is installed."""
    try:
        import pyarrow as pa
        from pyarrow import feather, parquet
    except ImportError:
        return _table(draw)
    queries, docs, scores = map(list, zip(*_rows(draw), strict=True))
    table = pa.table({"query_id": queries, "doc_id": docs, "score": scores})
    sink = io.BytesIO()
    if draw.random() < 0.6:
        parquet.write_table(table, sink, compression=draw.choice(("none", "snappy", "zstd")))
        return "a.parquet", sink.getvalue()
    feather.write_feather(table, sink, compression="uncompressed")
    return "a.arrow", sink.getvalue()


def _archive(draw: random.Random) -> Seed:
    sink = io.BytesIO()
    kind = draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(sink, "w", kind) as archive:
        folder = draw.choice(("", "set/", "../", "/etc/", "a/b/c/"))
        if draw.random() < 0.5:
            archive.writestr(f"{folder}corpus.jsonl", b'{"_id": "d1", "text": "one"}\n')
            archive.writestr(f"{folder}queries.jsonl", b'{"_id": "q1", "text": "why"}\n')
        rows = _lines([("query-id", "corpus-id", "score"), *_rows(draw)], draw, "\t")
        archive.writestr(f"{folder}qrels/test.tsv", rows)
    return "set.zip", sink.getvalue()


def _result(draw: random.Random) -> Seed:
    rows = _rows(draw)
    judged = {query: {doc: 1 for _, doc, _ in rows} for query, _, _ in rows}
    ranked = {query: {doc: score for _, doc, score in rows} for query, _, _ in rows}
    return "a.json", rg.evaluate(judged, ranked, ["AP", "P@5"]).to_json().encode()


def _bomb(draw: random.Random) -> Seed:
    """A small file that unpacks to a large one."""
    text = draw.choice((b"\0", b" ", b"\n", b"a", _PACKED_TEXT)) * draw.choice((1 << 16, 1 << 20))
    pack = draw.choice((gzip.compress, bz2.compress, lzma.compress))
    return draw.choice(("a.run.gz", "a.run", "a.json.xz")), pack(text)


SEEDS: dict[str, Callable[[random.Random], Seed]] = {
    "run": _run,
    "qrels": _qrels,
    "three": _three,
    "table": _table,
    "json lines": _json_lines,
    "mapping": _mapping,
    "ratings": _ratings,
    "records": _records,
    "texts": _texts,
    "ids": _ids,
    "result": _result,
    "columns": _columns,
    "archive": _archive,
    "bomb": _bomb,
}

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, 1, mtime=0),
    ".xz": lambda data: lzma.compress(data, preset=0),
    ".bz2": lambda data: bz2.compress(data, 1),
}
