"""Fingerprints: equal for equal content, independent of the source."""

import gzip
import hashlib
import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankgauge import Qrels, Run, read_qrels, read_run, write_qrels, write_run
from rankgauge.data import fingerprint

ROWS = [("q2", "d1", 2.0), ("q1", "d2", 0.0), ("q1", "d10", 1.0), ("q1", "é", 3.0)]


def slow(kind: bytes, rows: list[tuple[str, str, float]]) -> str:
    """Return the fingerprint from its docstring, with one struct.pack for each number."""
    by_query: dict[bytes, list[tuple[bytes, float]]] = {}
    for query, doc, value in rows:
        by_query.setdefault(query.encode(), []).append((doc.encode(), value))
    queries = sorted(by_query)
    ordered = []
    for query in queries:
        docs = sorted(by_query[query], key=lambda row: row[1])
        ordered += sorted(docs, key=lambda row: row[0], reverse=True)
    data = kind + struct.pack("<qq", len(queries), len(rows))
    data += b"".join(struct.pack("<q", len(query)) for query in queries)
    data += b"".join(struct.pack("<q", len(by_query[query])) for query in queries)
    data += b"".join(queries)
    data += b"".join(struct.pack("<q", len(doc)) for doc, _ in ordered)
    data += b"".join(doc for doc, _ in ordered)
    data += b"".join(struct.pack("<d", value + 0.0) for _, value in ordered)
    return hashlib.sha256(data).hexdigest()


def test_it_is_the_hash_of_the_bytes_that_its_page_names():
    assert fingerprint(Qrels.of(ROWS)) == slow(b"rankgauge judgments 1\n", ROWS)
    assert fingerprint(Run.of(ROWS)) == slow(b"rankgauge run 1\n", ROWS)


@given(st.permutations(ROWS))
def test_the_order_of_rows_and_queries_changes_nothing(rows):
    assert fingerprint(Qrels.of(rows)) == fingerprint(Qrels.of(ROWS))
    assert fingerprint(Run.of(rows)) == fingerprint(Run.of(ROWS))


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.json", "a.jsonl", "a.txt.gz"])
def test_the_format_of_the_file_changes_nothing(name, tmp_path):
    qrels, run = Qrels.of(ROWS), Run.of(ROWS, name="mine", settings={"k1": 0.9})
    write_qrels(qrels, tmp_path / name)
    assert fingerprint(read_qrels(tmp_path / name)) == fingerprint(qrels)
    write_run(run, tmp_path / name)
    assert fingerprint(read_run(tmp_path / name)) == fingerprint(run)


def test_name_and_settings_of_a_run_are_not_part_of_it():
    assert fingerprint(Run.of(ROWS, name="a")) == fingerprint(Run.of(ROWS, settings={"b": 1}))


def test_any_change_changes_it():
    base = {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 1}}
    changed = [
        {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}},
        {"q1": {"d1": 1}, "q2": {"d1": 1}},
        {"q1": {"d1": 1, "d3": 0}, "q2": {"d1": 1}},
        {"q1": {"d1": 1, "d2": 0}, "q3": {"d1": 1}},
        {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 1}, "q3": {}},
        {"q1": {"d1": 0, "d2": 1}, "q2": {"d1": 1}},
        {"q1": {"d1": 1}, "q2": {"d1": 1, "d2": 0}},
    ]
    prints = [fingerprint(Qrels.of(each)) for each in [base, *changed]]
    assert len(set(prints)) == len(prints)
    assert fingerprint(Run.of(base)) != prints[0]


def test_where_an_id_ends_is_part_of_it():
    assert fingerprint(Qrels.of([("q", "ab", 1), ("q", "c", 1)])) != fingerprint(
        Qrels.of([("q", "a", 1), ("q", "bc", 1)])
    )


def test_minus_zero_is_zero_and_whole_ids_are_text():
    assert fingerprint(Qrels.of([(1, 2, -0.0)])) == fingerprint(Qrels.of([("1", "2", 0)]))


def test_a_duplicate_document_counts_twice_in_any_order():
    one = Run.from_columns(["q", "q"], ["d", "d"], [1.0, 2.0])
    other = Run.from_columns(["q", "q"], ["d", "d"], [2.0, 1.0])
    assert fingerprint(one) == fingerprint(other) != fingerprint(Run.of([("q", "d", 2.0)]))


def test_very_long_ids_are_distinguished():
    ids = ["x" * 300 + end for end in "abc"]
    rows = [("q", doc, 1.0) for doc in ids]
    assert fingerprint(Qrels.of(rows)) == slow(b"rankgauge judgments 1\n", rows)
    assert fingerprint(Qrels.of(rows[::-1])) == fingerprint(Qrels.of(rows))


def test_judgments_of_a_real_collection_have_one_fingerprint_in_any_order(data_folder, tmp_path):
    with gzip.open(next((data_folder / "cranfield" / "runs").glob("bm25-lucene*.gz")), "rt") as f:
        lines = f.readlines()
    order = np.random.default_rng(1).permutation(len(lines))
    (tmp_path / "a.run").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "b.run").write_text("".join(lines[n] for n in order), encoding="utf-8")
    assert fingerprint(read_run(tmp_path / "a.run")) == fingerprint(read_run(tmp_path / "b.run"))
