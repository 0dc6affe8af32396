"""Rewrite the two sample runs from the sample corpus and queries.

Run it manually, from any folder:

    pip install bm25s PyStemmer
    python scripts/make_sample_runs.py

It writes ``runs/keyword.run`` and ``runs/bm25.run`` (TREC run format, depth 20, documents with a
score of zero excluded) next to the sample corpus. The output is deterministic: documents with
equal scores are ordered by id.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import bm25s
import Stemmer

SAMPLE = Path(__file__).resolve().parents[1] / "src" / "rankgauge" / "sample"
DEPTH = 20


def read_jsonl(name: str) -> dict[str, str]:
    """Read ``id -> text`` from a sample file; a title, if any, precedes the text."""
    lines = (SAMPLE / name).read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return {r["_id"]: f"{r.get('title', '')} {r['text']}".strip() for r in records}


def keyword_scores(docs: dict[str, str], query: str) -> dict[str, float]:
    """Count the distinct words of the query that occur in each document."""
    words = set(re.findall(r"\w+", query.lower()))
    return {d: len(words & set(re.findall(r"\w+", text.lower()))) for d, text in docs.items()}


def write_run(tag: str, scores: dict[str, dict[str, float]]) -> None:
    """Write the best ``DEPTH`` documents of every query to ``runs/<tag>.run``."""
    lines = []
    for query_id, by_doc in scores.items():
        found = [(doc_id, score) for doc_id, score in by_doc.items() if score > 0]
        found.sort(key=lambda pair: (-pair[1], pair[0]))
        for rank, (doc_id, score) in enumerate(found[:DEPTH], start=1):
            value = f"{score:.6f}" if isinstance(score, float) else str(score)
            lines.append(f"{query_id} Q0 {doc_id} {rank} {value} {tag}\n")
    path = SAMPLE / "runs" / f"{tag}.run"
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def rank_bm25(docs: dict[str, str], queries: dict[str, str]) -> dict[str, dict[str, float]]:
    """Return rounded BM25 scores of all documents for each query."""
    stemmer = Stemmer.Stemmer("english")
    index = bm25s.BM25(k1=1.2, b=0.75)
    tokens = bm25s.tokenize(list(docs.values()), stopwords="en_plus", stemmer=stemmer, show_progress=False)
    index.index(tokens, show_progress=False)
    bm25: dict[str, dict[str, float]] = {}
    for query_id, text in queries.items():
        [words] = bm25s.tokenize([text], stopwords="en_plus", stemmer=stemmer, return_ids=False, show_progress=False)
        known = [word for word in words if word in index.vocab_dict]
        values = index.get_scores(known) if known else [0.0] * len(docs)
        # Round before sorting, so that the order in the file follows the printed scores.
        bm25[query_id] = {d: round(float(v), 6) for d, v in zip(docs, values, strict=True)}
    return bm25


def main() -> None:
    """Write both runs."""
    docs = read_jsonl("corpus.jsonl")
    queries = read_jsonl("queries.jsonl")
    write_run("keyword", {q: keyword_scores(docs, text) for q, text in queries.items()})
    write_run("bm25", rank_bm25(docs, queries))


if __name__ == "__main__":
    main()
