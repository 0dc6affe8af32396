"""A run in a file is joined by the compiled core as its blocks are by NumPy."""

import random

import numpy as np
import pytest

import rankgauge as rg
from rankgauge.core import native
from rankgauge.core.policies import Policies
from rankgauge.data import file_runs
from rankgauge.data.run import map_blocks
from rankgauge.evaluation.blocks import make_context, measure_block, measure_file, merge_blocks
from rankgauge.evaluation.evaluation import make_plan
from rankgauge.formats import fast_trec

pytestmark = pytest.mark.skipif(native.core is None, reason="the compiled core was not built")
MEASURES = ("nDCG@3", "AP", "RR", "P@2", "R@5", "Judged@4", "RBP(p=0.8)")


def run_file(path, seed, *, queries=120, docs=30, line="q{} Q0 d{} {} {!r} tag\n"):
    """A file of rankings with ties, some of queries without judgments, and its judgments."""
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
        f"q{query}": {
            f"d{doc}": rng.choice([-1, 0, 0, 1, 2]) for doc in range(rng.randint(1, docs))
        }
        for query in judged
    }
    return rg.Qrels.of(pools)


def outcome(parts):
    """All that parts add to an evaluation."""
    measured, tied, summary, name, settings = merge_blocks(parts)
    flags = [bool(count) for count in summary.tally[5:]]
    return (
        [(column.shape, column.tobytes("A")) for column in measured], tied,
        summary.numbers.tolist(), summary.ends.tolist(), summary.tally[:5], flags,
        summary.unknown, summary.source,
        [(number, [*map(bytes, docs)]) for number, docs in summary.rankings.items()],
        dict(summary.notes), name, dict(settings),
    )  # fmt: skip


@pytest.mark.parametrize("ties", ["trec", "input", "best", "worst", "mean"])
@pytest.mark.parametrize("piece", [600, 5_000, 1 << 20])
def test_a_file_is_measured_as_its_blocks_are(tmp_path, monkeypatch, ties, piece):
    monkeypatch.setattr(fast_trec, "_PIECE", piece)
    monkeypatch.setattr(file_runs, "_AT_ONCE", 1 << 17 if piece > 600 else 100)
    path = tmp_path / "a.run"
    for seed in range(5):
        qrels = run_file(path, seed)
        context = make_context(qrels, make_plan(MEASURES), Policies(ties=ties), None)
        compiled = measure_file(path, context)
        assert compiled is not None
        assert (len(compiled) > 2) == (piece == 600)
        with monkeypatch.context() as patch:
            patch.setattr(native, "core", None)
            blocks = map_blocks(path, lambda block, of=context: measure_block(block, of))
        assert outcome(compiled) == outcome(blocks)


@pytest.mark.parametrize(
    "line",
    ["q{}\tQ0\td{}\t{}\t{!r}\ttag\n", " q{}  Q0 d{} {} {!r} tag \r\n", "q{} Q0 d{} {} {!r}\n"],
)
def test_lines_of_other_forms_are_joined_alike(tmp_path, line):
    path = tmp_path / "a.run"
    qrels = run_file(path, 7, line=line)
    context = make_context(qrels, make_plan(MEASURES), Policies(), None)
    assert outcome(measure_file(path, context)) == outcome(
        map_blocks(path, lambda block: measure_block(block, context))
    )


def test_a_query_with_more_lines_than_a_piece_gets_more_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(fast_trec, "_PIECE", 1_000)
    path = tmp_path / "a.run"
    path.write_text("".join(f"q1 Q0 d{rank} {rank} {900 - rank}.5 t\n" for rank in range(1, 800)))
    found = file_runs.join_file(
        rg.Qrels.of({"q1": {"d790": 1}}), path, lambda part: part, ties="trec", heads=(1, 2)
    )
    assert found[0].joined.rank.tolist() == [790]
    assert found[0].first_documents == {0: [b"d1", b"d2"]}
    monkeypatch.setattr(fast_trec, "_BLOCK", 4_000)
    qrels = rg.Qrels.of({"q1": {"d790": 1}})
    assert file_runs.join_file(qrels, path, len, ties="trec", heads=(1, 2)) is None
    assert rg.evaluate(qrels, path, "RR").mean()["RR"] == 1 / 790


LINE = "q2 Q0 d4 4 0.25 t\n"


@pytest.mark.parametrize(
    "more",
    ["q1 Q0 d9 9 0.1 t\n", "q3 Q0 d3 2 1 t\nq3 Q0 d3 3 0 t\n", "q3 Q0 d\xe9 1 1 t\n",
     "\nq3 Q0 d 1 1 t\n", "# end\nq3 Q0 d 1 1 t\n", "q3 Q0 d 1 nan t\n", "q3 Q0 d 1 x t\n",
     "q3 Q0 d 1 1\n", "q3 Q0 \x01 1 1 t\n"],
)  # fmt: skip
def test_what_is_unusual_is_left_to_the_readers_of_tables(tmp_path, more):
    path = tmp_path / "a.run"
    path.write_text("q1 Q0 d1 1 1.5 t\nq1 Q0 d2 2 0.5 t\nq2 Q0 d3 3 0.5 t\n" + LINE + more)
    qrels = rg.Qrels.of({"q1": {"d2": 1}, "q2": {"d3": 1}})
    assert file_runs.join_file(qrels, path, len, ties="trec", heads=(9, 9)) is None


def test_the_first_documents_of_the_lowest_numbers_are_kept_in_any_order(tmp_path):
    path = tmp_path / "a.run"
    numbers = random.Random(3).sample(range(40), 40)
    path.write_text("".join(f"q{n} Q0 d{n} 1 1 t\nq{n} Q0 x{n} 2 0 t\n" for n in numbers))
    qrels = rg.Qrels.of({f"q{n}": {"d1": 1} for n in range(30)})
    (found,) = file_runs.join_file(qrels, path, lambda part: part, ties="trec", heads=(5, 1))
    assert found.first_documents == {n: [b"d%d" % n] for n in range(5)}
    assert sorted(found.unknown) == sorted(b"q%d" % n for n in range(30, 40))


def test_wrong_arguments_are_refused():
    qrels = rg.Qrels.of({"q1": {"d1": 1}})
    with pytest.raises(ValueError, match="duplicate query"):
        native.core.lines_run([b"q1", b"q1"], 1, 1)
    run = native.core.lines_run([b"q1", b"q2"], 1, 1)
    text = np.frombuffer(b"q1 Q0 d1 1 1 t\n" + bytes(32), np.uint8)
    fields = (6, 0, 2, 4, -1)
    for judged_run, stop, shape in (
        (run, 15, fields),
        (native.core.lines_run([b"q1"], 1, 1), 40, fields),
        (native.core.lines_run([b"q1"], 1, 1), 15, (6, 0, 2, 9, -1)),
    ):
        with pytest.raises(ValueError, match="invalid text range"):
            native.core.join_lines(judged_run, qrels.judged, text, 0, stop, shape, 1, 1)
