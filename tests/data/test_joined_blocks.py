"""The compiled core joins run files as NumPy joins their blocks."""

import random
from contextlib import suppress

import numpy as np
import pytest

import rankgauge as rg
from rankgauge import InputError
from rankgauge.core import native
from rankgauge.core.ids import Ids
from rankgauge.core.policies import Policies
from rankgauge.data import joined_blocks
from rankgauge.data.joined_blocks import Judgments, join_file, map_file
from rankgauge.evaluation.blocks import measure_block, measure_joined, merge_blocks
from rankgauge.evaluation.context import make_context, make_plan
from rankgauge.formats import fast_trec, pieces
from rankgauge.formats.columns import RUN
from rankgauge.formats.pieces import PairFile

pytestmark = pytest.mark.skipif(native.core is None, reason="the compiled core was not built")
MEASURES = ("nDCG@3", "AP", "RR", "P@2", "R@5", "Judged@4", "RBP(p=0.8)")


def run_file(path, seed, *, queries=120, docs=30, line="q{} Q0 d{} {} {!r} tag\n"):
    """Write rankings with ties, some of unjudged queries; return the file and judgments."""
    rng = random.Random(seed)
    numbers = rng.sample(range(2 * queries), queries)
    scores = [0.5, 0.25, 3.0, -1.0, 1e-9, rng.random()]
    text = ""
    for query in numbers:
        ranked = sorted((rng.choice(scores) for _ in range(docs)), reverse=rng.random() < 0.8)
        found = rng.sample(range(2 * docs), rng.randint(1, docs))
        rows = enumerate(zip(found, ranked, strict=False), 1)
        text += "".join(line.format(query, doc, rank, score) for rank, (doc, score) in rows)
    path.write_text(text)
    judged = rng.sample(range(2 * queries), queries)
    pools = {
        f"q{query}": {f"d{doc}": rng.choice([-1, 0, 0, 1, 2]) for doc in range(rng.randint(1, docs))}
        for query in judged
    }
    return rg.Qrels.of(pools)


def measure_file(path, context, memory=None):
    """Return the results of the parts of a file, or None if the core declines it."""
    try:
        return join_file(PairFile(path, RUN, memory), context.judgments, lambda block: measure_joined(block, context))
    except InputError:
        return None


def judgments_of(qrels):
    return Judgments(qrels, qrels, Policies())


def outcome(parts):
    """Return all that the parts contribute to an evaluation."""
    measured, tied, summary, name, settings = merge_blocks(parts)
    tally = summary.tally
    flags = [bool(count) for count in (tally.longer, tally.uneven, tally.unpaired)]
    counts = (tally.documents, tally.removed, tally.unknown, tally.rising, tally.varied)
    return (
        [(column.shape, column.tobytes("A")) for column in measured],
        tied,
        summary.numbers.tolist(),
        summary.ends.tolist(),
        counts,
        flags,
        summary.unknown,
        summary.source,
        [(number, [*map(bytes, docs)]) for number, docs in summary.rankings.items()],
        dict(summary.notes),
        name,
        dict(settings),
    )


@pytest.mark.parametrize("ties", ["trec", "input", "best", "worst", "mean"])
@pytest.mark.parametrize("piece", [600, 5_000, 1 << 20])
def test_a_file_is_measured_as_its_blocks_are(tmp_path, monkeypatch, ties, piece):
    monkeypatch.setattr(fast_trec, "_PIECE", piece)
    monkeypatch.setattr(joined_blocks, "_AT_ONCE", 1 << 17 if piece > 600 else 100)
    path = tmp_path / "a.run"
    for seed in range(2):
        qrels = run_file(path, seed)
        context = make_context(qrels, make_plan(MEASURES), Policies(ties=ties), None)
        compiled = measure_file(path, context)
        assert compiled is not None
        assert (len(compiled) > 2) == (piece == 600)
        with monkeypatch.context() as patch:
            patch.setattr(native, "core", None)
            # Hashes of the judgments that the core made are not used without it.
            context = make_context(run_file(path, seed), make_plan(MEASURES), Policies(ties=ties), None)
            blocks = map_file(PairFile(path, RUN), lambda block, of=context: measure_block(block, of))
        assert outcome(compiled) == outcome(blocks)


@pytest.mark.parametrize(
    "line", ["q{}\tQ0\td{}\t{}\t{!r}\ttag\n", " q{}  Q0 d{} {} {!r} tag \r\n", "q{} Q0 d{} {} {!r}\n"]
)
def test_lines_of_other_forms_are_joined_alike(tmp_path, line):
    path = tmp_path / "a.run"
    qrels = run_file(path, 7, line=line)
    context = make_context(qrels, make_plan(MEASURES), Policies(), None)
    assert outcome(measure_file(path, context)) == outcome(
        map_file(PairFile(path, RUN), lambda block: measure_block(block, context))
    )


def test_a_query_with_more_lines_than_a_piece_gets_more_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(fast_trec, "_PIECE", 1_000)
    path = tmp_path / "a.run"
    path.write_text("".join(f"q1 Q0 d{rank} {rank} {900 - rank}.5 t\n" for rank in range(1, 800)))
    monkeypatch.setattr(joined_blocks, "DOCUMENTS", 2)
    found = join_file(PairFile(path, RUN), judgments_of(rg.Qrels.of({"q1": {"d790": 1}})), lambda block: block)
    assert found[0].joined().rank.tolist() == [790]
    assert found[0].summary.rankings == {0: [b"d1", b"d2"]}
    monkeypatch.setattr(fast_trec, "_BLOCK", 4_000)
    qrels = rg.Qrels.of({"q1": {"d790": 1}})
    assert join_file(PairFile(path, RUN), judgments_of(qrels), len) is None
    monkeypatch.undo()
    assert rg.evaluate(qrels, path, "RR").mean()["RR"] == 1 / 790


def as_table(path, kind, *, queries=str, odd=""):
    """Write the rows of a run file in another format, with `odd` appended to each document."""
    rows = [line.split() for line in path.read_text().splitlines()]
    names = [queries(row[0][1:]) if queries is int else row[0] for row in rows]
    docs, scores = [row[2] + odd for row in rows], [float(row[4]) for row in rows]
    target = path.with_suffix(f".{kind}")
    if kind == "csv":
        lines = [f"{q},{d},{s!r}" for q, d, s in zip(names, docs, scores, strict=True)]
        target.write_text("\n".join(["qid,doc_id,score", *lines]), encoding="utf-8")
        return target
    import pyarrow as pa
    from pyarrow import feather, parquet

    table = pa.table({"qid": names, "doc_id": docs, "score": scores})
    if kind == "arrow":
        table = table.set_column(0, "qid", table["qid"].dictionary_encode())
        feather.write_feather(table, target, compression="uncompressed")
    else:
        parquet.write_table(table, target, row_group_size=5_000)
    return target


@pytest.mark.parametrize("ties", ["trec", "input", "mean"])
@pytest.mark.parametrize("memory", [None, 10**8])
@pytest.mark.parametrize(
    ("kind", "queries", "odd"),
    [("parquet", str, ""), ("parquet", int, " é\n"), ("arrow", str, " "), ("csv", str, ""), ("csv", str, " é")],
)
def test_a_table_is_measured_as_its_blocks_are(tmp_path, monkeypatch, ties, memory, kind, queries, odd):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(pieces, "_LEAST", 1)
    monkeypatch.setattr(pieces, "_MOST", 100_000)
    monkeypatch.setattr(pieces, "_ROW", 1_000)
    monkeypatch.setattr(joined_blocks, "_AT_ONCE", 100)
    monkeypatch.setattr(fast_trec, "_PIECE", 8_000)
    plain = tmp_path / "a.run"
    qrels = run_file(plain, 3, queries=160)
    pools = {query[1:] if queries is int else query: qrels[query] for query in qrels}
    path = as_table(plain, kind, queries=queries, odd=odd)

    def make():
        qrels = rg.Qrels.of({q: {d + odd: g for d, g in pool.items()} for q, pool in pools.items()})
        return make_context(qrels, make_plan(MEASURES), Policies(ties=ties), None)

    compiled = measure_file(path, make(), memory)
    if kind == "csv" and odd and memory is None:
        assert compiled is None
        return
    assert len(compiled) > 2
    with monkeypatch.context() as patch:
        patch.setattr(native, "core", None)
        context = make()
        blocks = map_file(PairFile(path, RUN, memory), lambda block: measure_block(block, context))
    assert outcome(compiled) == outcome(blocks)


@pytest.mark.parametrize(
    "rows",
    [
        [("q1", "d1", 1), ("q2", "d1", 1), ("q1", "d2", 0)],
        [("q1", "d1", 1), ("q1", "d1", 0)],
        [("q1", "d1", float("nan"))],
    ],
)
def test_unusual_tables_are_read_in_blocks(tmp_path, monkeypatch, rows):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    monkeypatch.setattr(pieces, "_LEAST", 1)
    monkeypatch.setattr(pieces, "_ROW", 1 << 22)
    names = ("query_id", "doc_id", "score")
    parquet.write_table(pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), tmp_path / "a.parquet")
    qrels = rg.Qrels.of({"q1": {"d2": 1}})
    context = make_context(qrels, make_plan(MEASURES), Policies(), None)
    assert measure_file(tmp_path / "a.parquet", context) is None


LINE = "q2 Q0 d4 4 0.25 t\n"


@pytest.mark.parametrize(
    "more",
    [
        "q1 Q0 d9 9 0.1 t\n",
        "q3 Q0 d3 2 1 t\nq3 Q0 d3 3 0 t\n",
        "q3 Q0 d\xe9 1 1 t\n",
        "\nq3 Q0 d 1 1 t\n",
        "# end\nq3 Q0 d 1 1 t\n",
        "q3 Q0 d 1 nan t\n",
        "q3 Q0 d 1 x t\n",
        "q3 Q0 d 1 1\n",
        "q3 Q0 \x01 1 1 t\n",
    ],
)
def test_unusual_lines_are_left_to_the_table_reader(tmp_path, more):
    path = tmp_path / "a.run"
    path.write_text("q1 Q0 d1 1 1.5 t\nq1 Q0 d2 2 0.5 t\nq2 Q0 d3 3 0.5 t\n" + LINE + more)
    qrels = rg.Qrels.of({"q1": {"d2": 1}, "q2": {"d3": 1}})
    assert join_file(PairFile(path, RUN), judgments_of(qrels), len) is None
    with suppress(InputError):
        assert rg.evaluate(qrels, path, "RR") == rg.evaluate(qrels, rg.Run.of(path), "RR")


def test_the_first_documents_of_the_lowest_numbers_are_kept_in_any_order(tmp_path, monkeypatch):
    monkeypatch.setattr(joined_blocks, "RANKINGS", 5)
    monkeypatch.setattr(joined_blocks, "DOCUMENTS", 1)
    path = tmp_path / "a.run"
    numbers = random.Random(3).sample(range(40), 40)
    path.write_text("".join(f"q{n} Q0 d{n} 1 1 t\nq{n} Q0 x{n} 2 0 t\n" for n in numbers))
    qrels = rg.Qrels.of({f"q{n}": {"d1": 1} for n in range(30)})
    (found,) = join_file(PairFile(path, RUN), judgments_of(qrels), lambda block: block)
    assert found.summary.rankings == {n: [b"d%d" % n] for n in range(5)}
    assert [*found.summary.unknown] == sorted(b"q%d" % n for n in range(30, 40))


def lines_run(*names):
    return native.core.lines_run(*Ids.of(names).columns(), 1, 1)


def test_wrong_columns_of_a_table_are_refused():
    qrels = rg.Qrels.of({"q1": {"d1": 1}})
    names, docs = Ids.of(["q1"]).columns(), Ids.of(["d1", "d2"]).columns()
    values, offsets = np.array([1.0, 0.5]), np.array([0, 2])
    good = (names, docs, values, offsets)
    assert native.core.join_table(lines_run("q1"), qrels.judged, *good, 1) == 2
    infinite = (names, docs, np.array([1.0, np.inf]), offsets)
    assert native.core.join_table(lines_run("q1"), qrels.judged, *infinite, 1) is None
    for place, wrong in [
        (0, (names[0], names[1] + 99, names[2])),
        (1, (docs[0], docs[1], docs[2] + 99)),
        (1, (docs[0], -docs[1] - 1, docs[2])),
        (2, values[:1]),
        (3, np.array([0, 3])),
        (3, np.array([0, 1, 2])),
        (3, np.array([2, 0])),
    ]:
        columns = [*good]
        columns[place] = wrong
        with pytest.raises(ValueError, match="invalid table"):
            native.core.join_table(lines_run("q1"), qrels.judged, *columns, 1)
    with pytest.raises(ValueError, match="invalid table"):
        native.core.join_table(lines_run("q1", "q2"), qrels.judged, *good, 1)


def test_wrong_arguments_are_refused():
    qrels = rg.Qrels.of({"q1": {"d1": 1}})
    with pytest.raises(ValueError, match="duplicate query"):
        lines_run("q1", "q1")
    data, starts, lengths = Ids.of(["q1"]).columns()
    with pytest.raises(ValueError, match="invalid ids"):
        native.core.lines_run(data, starts + len(data), lengths, 1, 1)
    run = lines_run("q1", "q2")
    text = np.frombuffer(b"q1 Q0 d1 1 1 t\n" + bytes(32), np.uint8)
    fields = (6, 0, 2, 4, -1)
    for judged_run, stop, shape in (
        (run, 15, fields),
        (lines_run("q1"), 40, fields),
        (lines_run("q1"), 15, (6, 0, 2, 9, -1)),
    ):
        with pytest.raises(ValueError, match="invalid text range"):
            native.core.join_lines(judged_run, qrels.judged, text, 0, stop, shape, 1, 1)
