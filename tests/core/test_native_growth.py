"""The compiled core needs N log N time, for all policies and chosen ids, and handles signals."""

import gc
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from growth import assert_linear

import rankgauge as rg
from rankgauge.core import native
from rankgauge.core.ids import Ids, _packed
from rankgauge.core.pair_table import offsets_of
from rankgauge.measures import compiled

pytestmark = pytest.mark.skipif(native.core is None, reason="the compiled core was not built")
SIZE = 2_000


def colliding_ids(count):
    """Return different ids of 16 bytes that have the same 64-bit hash."""
    lengths = np.uint64(16)
    first = np.arange(8 * count, dtype=np.uint64) + np.uint64(0x2121212121210021)
    with np.errstate(over="ignore"):
        mixed = (lengths * np.uint64(0x9E3779B97F4A7C15) ^ first) * np.uint64(0xD6E8FEB86659FD93)
        mixed ^= mixed >> np.uint64(32)
    pairs = np.stack([first, mixed ^ np.uint64(12345)], axis=1).view(np.uint8).reshape(-1, 16)
    chosen = pairs[((pairs > ord(" ")) & (pairs != ord("#"))).all(axis=1)][:count]
    assert len(chosen) == count
    return [row.tobytes() for row in chosen]


def check_growth(prepare):
    """Fail if the work that `prepare` returns for a size grows faster than N log N."""
    assert_linear(prepare, lambda work: work(), SIZE)


def scores(shape, count):
    draws = np.random.default_rng(0)
    return {
        "tied": np.ones(count),
        "pairs": np.repeat(np.arange(count, 0, -2.0), 2)[:count],
        "shuffled": draws.permutation(count).astype(float),
        "rising": np.arange(float(count)),
    }[shape].tolist()


@pytest.mark.parametrize("compiled_core", [True, False])
@pytest.mark.parametrize("shape", ["tied", "pairs", "shuffled", "rising"])
@pytest.mark.parametrize("ties", ["trec", "input", "best", "worst"])
def test_rankings_of_dicts(monkeypatch, ties, shape, compiled_core):
    if not compiled_core:
        monkeypatch.setattr(native, "core", None)

    def prepare(count):
        ids = [f"document-{n}" for n in range(count)]
        run = {"q": dict(zip(ids, scores(shape, count), strict=True))}
        qrels = rg.Qrels.of({"q": dict.fromkeys(ids[::2], 1)})
        return lambda: rg.evaluate(qrels, run, ["nDCG@10", "AP"], ties=ties)

    check_growth(prepare)


def joined_dict(ranking, pool):
    """Join a ranking with documents of grade 1; return also their rows and ranks."""
    ones, ends = np.ones(len(pool)), np.array([0, len(pool)])
    columns = (ones, ends, ones, ends, ones)
    none = np.zeros((0, 4))
    return native.core.measure_dicts({"q": ranking}, {"q": 0}, list(pool), columns, none, (0, 0), 0, 0)


def test_positions_of_judged_documents_are_those_of_a_loop():
    draws = np.random.default_rng(1)
    for size in (1, 7, 40, 300):
        for _ in range(20):
            values = draws.choice([0.0, -0.0, 1.0, 2.5, -3.0], size)
            run = {f"d{n}": float(value) for n, value in enumerate(values)}
            judged = tuple(draws.permutation([*run, "other"])[: size // 2 + 1].tolist())
            *_, rows, ranks = joined_dict(run, judged)
            expected = []
            for doc in judged:
                if doc in run:
                    place = list(run).index(doc)
                    above = sum(score > run[doc] for score in run.values())
                    upto = sum(score >= run[doc] for score in run.values())
                    before = sum(score == run[doc] for score in list(run.values())[:place])
                    expected.append([above + before + 1, above + 1, upto])
            retrieved = [place for place, doc in enumerate(judged) if doc in run]
            assert np.frombuffer(rows, np.int64).tolist() == retrieved
            assert np.frombuffer(ranks, np.int64).reshape(-1, 3).tolist() == expected


@pytest.mark.parametrize("compiled_core", [True, False])
@pytest.mark.parametrize("of", ["documents", "queries"])
def test_ids_with_one_hash(monkeypatch, tmp_path, of, compiled_core):
    if not compiled_core:
        monkeypatch.setattr(native, "core", None)
        monkeypatch.setattr(Ids, "hashes", lambda ids: np.zeros(len(ids), np.uint64))

    def prepare(count):
        ids = colliding_ids(count)
        assert len(set(Ids.of(ids).hashes().tolist())) == 1
        if of == "documents":
            run = {b"q": {doc: float(n) for n, doc in enumerate(ids)}}
            qrels = {b"q": dict.fromkeys(ids[::2], 1)}
        else:
            run = {query: {b"d": 1.0} for query in ids}
            qrels = {query: {b"d": 1} for query in ids[::2]}
        path = tmp_path / f"{count}.run"
        path.write_bytes(
            b"".join(
                b"%b Q0 %b 1 %f t\n" % (query, doc, score) for query, docs in run.items() for doc, score in docs.items()
            )
        )

        def work():
            judgments = rg.Qrels.of(qrels)
            found = rg.evaluate(judgments, rg.Run.of(run), ["NumRelRet"])
            assert found.per_query.sum() == len(ids[::2])
            assert rg.evaluate(judgments, path, ["NumRelRet"]).per_query.sum() == len(ids[::2])
            rg.fuse([rg.Run.of(run), rg.Run.of(run)], "rrf")

        return work

    check_growth(prepare)


def test_hashes_that_begin_their_search_at_one_place():
    def prepare(count):
        hashes = np.arange(count, dtype=np.uint64) << np.uint64(33)  # the low bits choose the place
        offsets = np.array([0, count])
        return lambda: native.core.all_differ(hashes, offsets)

    assert not prepare(SIZE)()
    assert prepare(100)()
    check_growth(prepare)


def column(count, width=8):
    """Return `count` equal ids; the columns need little memory."""
    ids = _packed(b"a" * width, [width])
    zeros = np.zeros(count, np.int64)
    return ids.data, zeros, zeros + width


def long_calls():
    """Yield calls that take several tenths of a second."""
    core, many = native.core, 4_000_000
    draws = np.random.default_rng(0)
    hashes = draws.integers(0, 2**63, many, dtype=np.uint64)
    everything = np.array([0, many])
    data, starts, lengths = column(many)
    different = _packed(np.arange(many, dtype=">u8").tobytes(), np.full(many, 8)).columns()
    values = draws.random(many)
    yield "number_ids, hashes", lambda: core.number_ids(None, *column(many, 400), hashes.copy())
    yield "number_ids", lambda: core.number_ids(core.numbering(), *different, np.zeros(many, np.int32))
    yield "all_differ", lambda: core.all_differ(hashes, everything)
    numbers = draws.permutation(many).astype(np.int32)
    into = np.empty(many)
    yield "group", lambda: core.group(numbers, np.arange(many), values, into)
    yield "rank_rows", lambda: core.rank_rows(data, starts, lengths, values, everything, 0)
    third = many // 3
    yield (
        "rank_rows, ties",
        lambda: core.rank_rows(
            *different[:1], *(column[:third] for column in different[1:]), np.ones(third), np.array([0, third]), 1
        ),
    )
    yield "judgments", lambda: core.judgments(*different, hashes, everything)
    yield ("row_lines", lambda: core.row_lines(data, starts, lengths, values, b"q Q0 ", b"\t", b" t\n", 1))
    ones = [1.0] * 200_000
    program = np.array([compiled.step("AP", None)] * 50)
    discounts = np.ones(len(ones) + 1)
    yield "measure_grades", lambda: core.measure_grades(ones, ones, discounts, program)
    run = {f"d{n}": 1.0 for n in range(1_000_000)}
    pool = tuple(list(run)[::2])
    yield "measure_dicts", lambda: joined_dict(run, pool)
    yield "pack_dicts", lambda: core.pack_dicts([run])
    text = b"".join(b"q%d Q0 d%d 1 %d t\n" % (n // 900, n, n) for n in range(many // 3))
    padded = text + bytes(31)
    rows = text.count(b"\n")
    arrays = [np.empty(rows, kind) for kind in ("i8", "i8", "u8", "f8", "i4", "f8")]
    yield ("scan", lambda: core.scan(core.numbering(), padded, 0, len(text), (6, 0, 2, 4, -1), 0, *arrays))
    docs = Ids.of([f"d{n}" for n in range(third)])
    columns = (*docs.columns(), docs.hashes())
    one, all_rows = np.zeros(2, np.int64), np.full(2, third)
    yield "align", lambda: core.align([columns, columns], one, all_rows)
    known = core.judgments(*columns, offsets_of([third]))
    yield "flip_signs", lambda: core.flip_signs(np.zeros(many), np.zeros(many, np.uint64), 0, np.zeros(640))
    yield "sum_terms", lambda: core.sum_terms(values, np.zeros(0), np.ones(4), np.zeros(many // 4))
    of_run = np.zeros(1, np.int64)
    yield ("join", lambda: core.join(known, *columns, np.ones(third), offsets_of([third]), of_run, 1))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_signals_are_handled_during_long_calls():
    handled = []
    if not hasattr(signal, "SIGALRM"):
        pytest.skip("needs timers that send signals")
    before = signal.signal(signal.SIGALRM, lambda *_: handled.append(time.perf_counter()))
    try:
        for name, call in long_calls():
            handled.clear()
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            begun = time.perf_counter()
            call()
            took = time.perf_counter() - begun
            signal.setitimer(signal.ITIMER_REAL, 0)
            # Pending signals are handled once, after a call that handles none.
            assert len(handled) > 2, (name, took)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for one process")
def test_ctrl_c_ends_a_call_in_a_process():
    code = (
        "import numpy as np\n"
        "from rankgauge.core import native\n"
        "from rankgauge.measures import compiled\n"
        "ones = [1.0] * 100_000\n"
        "program = np.array([compiled.step('AP', None)] * 1_000_000)\n"
        "print('begun', flush=True)\n"
        "native.core.measure_grades(ones, ones, np.ones(100_001), program)\n"
        "print('ended', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "begun\n"
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            out, error = process.communicate(timeout=30)  # the call takes several minutes
        finally:
            process.kill()
    assert out == ""
    assert "KeyboardInterrupt" in error


def test_a_handler_may_change_the_run(monkeypatch):
    """Ids of a long ranking are kept while a handler runs that removes them."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("no timers")
    run = {f"d{n}": 1.0 for n in range(600_000)}
    pool = tuple(f"d{n}" for n in range(0, 600_000, 2))

    def clear(*_):
        run.clear()
        gc.collect()

    if not hasattr(signal, "SIGALRM"):
        pytest.skip("needs timers that send signals")
    before = signal.signal(signal.SIGALRM, clear)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        joined_dict(run, pool)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not run
