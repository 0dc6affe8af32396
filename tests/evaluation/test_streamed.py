"""A run read in blocks of whole queries evaluates like one read as a whole."""

import gzip
import os
import random
import threading
import tracemalloc

import numpy as np
import pytest

from rankgauge import MismatchError, Qrels, RankgaugeError, Run, compare, diff, evaluate, gate, read_qrels, read_run
from rankgauge.core.ids import Ids
from rankgauge.data import cut, joined_blocks
from rankgauge.formats import fast_trec
from rankgauge.formats.columns import RUN
from rankgauge.formats.fast_trec import NotInBlocksError
from rankgauge.formats.pieces import PairFile
from rankgauge.gates import Baseline

MEASURES = ["nDCG@10", "AP", "RR", "P@5", "Bpref", "Judged@10", "infAP"]


def written(tmp_path, rows, name="a.run"):
    path = tmp_path / name
    path.write_text("".join(rows), encoding="utf-8")
    return path


def rows_of(queries, docs, seed=1, places=3):
    rng = random.Random(seed)
    for query in range(queries):
        ids = rng.sample(range(10_000), docs)
        scores = sorted((round(rng.uniform(-3, 9), places) for _ in ids), reverse=True)
        for rank, (doc, score) in enumerate(zip(ids, scores, strict=True), 1):
            yield f"q{query} Q0 d{doc} {rank} {score} t\n"


@pytest.fixture
def qrels(tmp_path):
    rng = random.Random(2)
    path = tmp_path / "qrels.txt"
    with path.open("w") as stream:
        for query in range(40):
            for doc in rng.sample(range(10_000), 400):
                stream.write(f"q{query} 0 d{doc} {rng.choice([-1, 0, 1, 2])}\n")
    return read_qrels(path)


@pytest.fixture
def small_blocks(monkeypatch):
    """Use blocks of two or three queries, read in pieces of a few lines."""
    monkeypatch.setattr(fast_trec, "_BLOCK", 6000)
    monkeypatch.setattr(fast_trec, "_PIECE", 700)


@pytest.fixture
def blocks(monkeypatch):
    """Disable joining while reading, which `tests/data/test_joined_blocks.py` tests."""
    monkeypatch.setattr(joined_blocks, "join_file", lambda *_, **__: None)


@pytest.fixture
def streamed(monkeypatch, blocks):
    """Record whether a file was read in blocks to its end."""
    seen, blocks_of = [], PairFile.blocks

    def watched(file):
        ended = False
        try:
            yield from blocks_of(file)
            ended = True
        finally:
            seen.append(ended)

    monkeypatch.setattr(PairFile, "blocks", watched)
    return seen


@pytest.mark.parametrize("queries", [1, 2, 7, 60])
@pytest.mark.parametrize("places", [0, 6])
@pytest.mark.usefixtures("small_blocks")
def test_blocks_give_the_same_evaluation_to_the_last_bit(tmp_path, qrels, streamed, queries, places):
    path = written(tmp_path, rows_of(queries, 90, places=places))
    one, other = evaluate(qrels, path, MEASURES), evaluate(qrels, read_run(path), MEASURES)
    assert streamed == [True]
    assert one == other
    assert one.notes == other.notes
    assert one.counts == other.counts
    assert one.run_name == other.run_name == "a"


@pytest.mark.parametrize("ties", ["input", "best", "worst", "mean"])
@pytest.mark.usefixtures("small_blocks")
def test_blocks_give_the_same_evaluation_by_every_policy_of_ties(tmp_path, qrels, streamed, ties):
    measures = [name for name in MEASURES if name != "infAP"]
    path = written(tmp_path, rows_of(30, 90, places=0))
    one = evaluate(qrels, path, measures, ties=ties)
    read = read_run(path)
    assert streamed == [True]
    assert one.counts["tied"] > 20
    assert one == evaluate(qrels, read, measures, ties=ties)
    dicts = {query: dict(read[query]) for query in read}
    of_dicts = evaluate(qrels, dicts, measures, ties=ties).per_query
    assert np.array_equal(one.per_query, of_dicts, equal_nan=True)


@pytest.mark.usefixtures("small_blocks")
def test_a_query_larger_than_a_block_makes_it_grow(tmp_path, qrels, streamed):
    path = written(tmp_path, rows_of(3, 2000))
    assert evaluate(qrels, path, MEASURES) == evaluate(qrels, read_run(path), MEASURES)
    assert streamed == [True]


@pytest.mark.usefixtures("small_blocks")
def test_runs_with_interleaved_queries_are_read_whole(tmp_path, qrels, streamed):
    rows = list(rows_of(20, 50))
    random.Random(3).shuffle(rows)
    path = written(tmp_path, rows)
    assert evaluate(qrels, path, MEASURES) == evaluate(qrels, read_run(path), MEASURES)
    assert streamed == [False]


@pytest.mark.usefixtures("small_blocks")
def test_partial_results_are_dropped_when_a_query_reappears(tmp_path, qrels, streamed):
    rows = list(rows_of(20, 50))
    rows.append(rows.pop(3))
    path = written(tmp_path, rows)
    with pytest.raises(NotInBlocksError):
        list(PairFile(path, RUN).blocks())
    streamed.clear()
    assert evaluate(qrels, path, MEASURES) == evaluate(qrels, read_run(path), MEASURES)
    assert streamed == [False]


@pytest.mark.parametrize("bits", [0, 3])
@pytest.mark.usefixtures("small_blocks", "blocks")
def test_constant_hashes_change_no_number(tmp_path, qrels, monkeypatch, bits):
    path = written(tmp_path, rows_of(5, 60))
    expected = evaluate(qrels, read_run(path), MEASURES)
    monkeypatch.setattr(Ids, "hashes", lambda self: (self.lengths & ((1 << bits) - 1)).astype("u8"))
    assert evaluate(read_qrels(tmp_path / "qrels.txt"), path, MEASURES) == expected
    twice = written(tmp_path, [*rows_of(5, 60), ROWS[0].replace("q0", "q4")], "twice.run")
    evaluate(read_qrels(tmp_path / "qrels.txt"), twice, MEASURES)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name are a thing of POSIX")
@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "in any order"])
@pytest.mark.usefixtures("small_blocks")
def test_a_pipe_is_read_once(tmp_path, qrels, shuffled):
    rows = list(rows_of(20, 50))
    if shuffled:
        random.Random(3).shuffle(rows)
    pipe = tmp_path / "pipe"
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("".join(rows)), daemon=True)
    writer.start()
    found = evaluate(qrels, pipe, MEASURES)
    writer.join(10)
    assert found.mean() == evaluate(qrels, read_run(written(tmp_path, rows)), MEASURES).mean()


@pytest.mark.parametrize("queries", [3, 60])
@pytest.mark.usefixtures("small_blocks")
def test_a_packed_file_is_read_in_blocks(tmp_path, qrels, streamed, queries):
    rows = list(rows_of(queries, 400))
    path = tmp_path / "a.run.gz"
    path.write_bytes(gzip.compress("".join(rows).encode()))
    whole = evaluate(qrels, read_run(written(tmp_path, rows)), MEASURES)
    assert evaluate(qrels, path, MEASURES) == whole
    assert streamed == [True]


@pytest.mark.parametrize("cut", [1, 9, 300, 3000])
@pytest.mark.usefixtures("small_blocks")
def test_a_truncated_compressed_file_is_reported_as_when_read_whole(tmp_path, qrels, cut):
    path = tmp_path / "a.run.gz"
    packed = gzip.compress("".join(rows_of(40, 100)).encode())
    path.write_bytes(packed[: len(packed) - cut])
    with pytest.raises(RankgaugeError) as whole:
        read_run(path)
    with pytest.raises(RankgaugeError) as found:
        evaluate(qrels, path, MEASURES)
    assert str(found.value) == str(whole.value)


@pytest.mark.usefixtures("small_blocks")
def test_a_line_longer_than_a_piece_is_read_whole(tmp_path, qrels, streamed, monkeypatch):
    parts = []
    read = fast_trec.read_into
    monkeypatch.setattr(fast_trec, "read_into", lambda *args: parts.append(read(*args)) or parts[-1])
    rows = [*rows_of(3, 20), f"q2 Q0 d{'x' * 60_000} 99 -9 t\n"]
    path = written(tmp_path, rows)
    assert evaluate(qrels, path, MEASURES) == evaluate(qrels, read_run(path), MEASURES)
    assert streamed == [False]
    assert len(parts) < 16


def spoilt(rows, place, line):
    return [*rows[:place], line, *rows[place:]]


ROWS = list(rows_of(20, 50))
FAULTS = {
    "too few fields": spoilt(ROWS, 900, "q18 Q0 d1 1 0.5\n"),
    "no number": spoilt(ROWS, 900, "q18 Q0 dx 1 0.5x t\n"),
    "not finite": spoilt(ROWS, 900, "q18 Q0 dx 1 nan t\n"),
    "a document twice": spoilt(ROWS, 40, ROWS[3]),
    "twice, and a fault behind it": spoilt(spoilt(ROWS, 40, ROWS[3]), 990, "q19 Q0 d1\n"),
    "a NUL in an id": spoilt(ROWS, 500, "q10 Q0 d\0 1 0.5 t\n"),
    "other queries": [row.replace("q", "x", 1) for row in ROWS],
    "other documents": [row.replace(" d", " e", 1) for row in ROWS],
    "nothing": [],
    "comments only": ["# nothing\n"],
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.usefixtures("small_blocks")
def test_faults_are_reported_as_when_the_run_is_read_whole(tmp_path, qrels, fault):
    path = written(tmp_path, FAULTS[fault])

    def said(run):
        try:
            return evaluate(qrels, run(), MEASURES).to_json()
        except RankgaugeError as error:
            return type(error), str(error)

    assert said(lambda: path) == said(lambda: read_run(path))


@pytest.mark.parametrize(
    "choice",
    [
        {"duplicates": "first"},
        {"duplicates": "best"},
        {"queries": "intersection"},
        {"queries": ["q1", "q3"]},
        {"ties": "input"},
        {"undefined": "skip"},
    ],
    ids=str,
)
@pytest.mark.usefixtures("small_blocks")
def test_policies_are_those_of_a_run_read_whole(tmp_path, qrels, choice):
    path = written(tmp_path, spoilt(ROWS, 40, ROWS[3]) if "duplicates" in choice else ROWS)
    one, other = (evaluate(qrels, run, MEASURES, **choice) for run in (path, read_run(path)))
    assert one == other
    assert one.counts == other.counts


@pytest.mark.usefixtures("small_blocks")
def test_the_sample_of_ids_that_a_mismatch_shows_outlives_its_block(tmp_path):
    rows = list(rows_of(20, 50))
    judged = {row.split()[0]: {row.split()[2][1:]: 1} for row in rows}
    path = written(tmp_path, (row.replace(" d", " 00", 1) for row in rows))
    with pytest.raises(MismatchError) as one:
        evaluate(judged, path, "RR")
    with pytest.raises(MismatchError) as other:
        evaluate(judged, read_run(path), "RR")
    assert str(one.value) == str(other.value)


def peak_of(call):
    """Return the peak of a call in bytes, beyond the memory before it."""
    tracemalloc.start()
    try:
        found = call()
        return tracemalloc.get_traced_memory()[1], found
    finally:
        tracemalloc.stop()


@pytest.fixture
def pair(tmp_path):
    """Write judgments, and two runs with the same documents in different orders."""
    qrels = {f"q{query}": {f"d{doc}": doc % 3 for doc in range(20)} for query in range(90)}
    paths = []
    for seed in (1, 2):
        rng = random.Random(seed)
        lines = [
            f"q{query} Q0 d{doc} 0 {rng.random():.3f} tag\n"
            for query in range(90)
            for doc in rng.sample(range(400), 300)
        ]
        paths.append(written(tmp_path, lines, f"run{seed}.run"))
    return qrels, *paths


RULES = {"measures": {"nDCG@10": {"margin": 0.001}}, "contracts": [{"query": "q3", "must_include": ["d1"], "k": 300}]}
OF_FILES = {
    "compare": lambda qrels, a, b: compare(qrels, {"a": a, "b": b}, ["nDCG@10", "AP"], draws=100),
    "compare common": lambda qrels, a, b: compare(qrels, {"a": a, "b": b}, "AP", draws=100, queries="intersection"),
    "gate": lambda qrels, a, b: gate(qrels, b, RULES, baseline=Baseline.from_run(qrels, a, RULES)),
    "diff": lambda qrels, a, b: diff(qrels, a, b, n=2),
    "cut": lambda qrels, a, b: cut(a, 10),
}


@pytest.mark.parametrize("name", OF_FILES)
@pytest.mark.usefixtures("small_blocks")
def test_results_of_files_in_blocks_are_those_of_runs_in_memory(pair, name):
    qrels, a, b = pair
    made = OF_FILES[name](*pair), OF_FILES[name](qrels, read_run(a), read_run(b))
    one, other = (x if isinstance(x, Run) else x.to_json() for x in made)
    assert one == other


@pytest.mark.parametrize("name", OF_FILES)
def test_a_run_in_a_file_is_never_in_memory_as_a_whole(pair, name, monkeypatch):
    qrels, a, b = pair
    OF_FILES[name](qrels, a, b)  # import what it needs
    whole, _ = peak_of(lambda: read_run(a))
    monkeypatch.setattr(fast_trec, "_BLOCK", 60_000)
    monkeypatch.setattr(fast_trec, "_PIECE", 7000)
    peak, _ = peak_of(lambda: OF_FILES[name](Qrels.of(qrels), a, b))
    assert peak < 0.7 * whole
