"""The store: saved responses, reuse, and costs."""

import functools
import gc
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
import typing
import zlib

import pytest
from counting import DOCUMENTS, QRELS, QUERIES, Priced, Words, worse

from rankgauge import Benchmark, Collection, InputError, Limits
from rankgauge.benchmark import retriever_run
from rankgauge.retrievers import Dense, HashingEncoder, Hybrid


def test_only_responses_of_declared_settings_are_reused(collection, tmp_path):
    first = Benchmark(collection, k=5, store=tmp_path).run("a", Words(k1=1), timed=0)
    again, other, deeper = Words(k1=1), Words(k1=2), Words(k1=1)
    reused = Benchmark(collection, k=5, store=tmp_path).run("b", again, timed=0)
    assert (again.asked, again.indexed, reused.tally.reused) == ([], 0, 10)
    assert reused.run["q3"] == first.run["q3"]
    message = f"10 of 10 responses reused from {reused.journal.folder}: same settings (declared)"
    assert reused.notes == (message,)
    Benchmark(collection, k=5, store=tmp_path).run("a", other, timed=0)
    Benchmark(collection, k=6, store=tmp_path).run("a", deeper, timed=0)
    assert len(other.asked) == len(deeper.asked) == 10


def test_changed_documents_or_queries_are_searched_again(collection, tmp_path):
    Benchmark(collection, k=5, store=tmp_path).run("a", Words(), timed=0)
    changed = Collection.load(None, documents={**DOCUMENTS, "d0": "another text"}, queries=QUERIES, qrels=QRELS)
    retriever = Words()
    Benchmark(changed, k=5, store=tmp_path).run("a", retriever, timed=0)
    assert len(retriever.asked) == 10

    asked_otherwise = Collection.load(None, documents=DOCUMENTS, queries={**QUERIES, "q3": "word7"}, qrels=QRELS)
    retriever = Words()
    run = Benchmark(asked_otherwise, k=5, store=tmp_path).run("a", retriever, timed=0)
    assert retriever.asked == ["q3"]
    assert list(run.run["q3"]) == ["d7"]


def test_an_undeclared_function_is_called_again_unless_interrupted(collection, tmp_path):
    calls = []

    def retrieve(text):
        calls.append(text)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return ["d1"]

    bench = Benchmark(collection, k=5, store=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run("mine", retrieve, timed=0)
    run = bench.run("mine", retrieve, timed=0)
    assert (len(calls), run.tally.reused) == (5 + 6, 4)
    run = bench.run("mine", retrieve, timed=0)
    assert (len(calls), run.tally.reused) == (5 + 6 + 10, 0)
    declared = bench.run("mine", retrieve, settings={"model": "a"}, timed=0)
    declared = bench.run("mine", retrieve, settings={"model": "a"}, timed=0)
    assert declared.tally.reused == 10


def test_only_failed_queries_of_a_function_are_retried(collection, tmp_path):
    calls = []

    def retrieve(text):
        calls.append(text)
        if text == "word3":
            raise LookupError(text)
        return ["d1"]

    bench = Benchmark(collection, k=5, store=tmp_path)
    bench.run("mine", retrieve, timed=0)
    run = bench.run("mine", retrieve, timed=0)
    assert (len(calls), run.tally.reused, run.tally.failed) == (10, 10, 1)
    assert run.evaluate("RR", errors="empty").mean() == {"RR": 0.1}


def test_functions_of_one_factory_are_distinguished_by_run_name(collection, tmp_path):
    def make(name):
        return lambda text: [name]

    bench = Benchmark(collection, k=5, store=tmp_path)
    one, two = (bench.run(n, make(n), timed=0) for n in ("d1", "d2"))
    assert list(one.run["q0"]) == ["d1"]
    assert list(two.run["q0"]) == ["d2"]


class Shifted:
    """Finds the document whose number is that of the query plus `by`; fails for word3."""

    def __init__(self, by):
        self.by = by

    def __call__(self, text):
        return shifted(text, self.by)

    def find(self, text):
        return shifted(text, self.by)


def shifted(text, by):
    if text == "word3":
        raise LookupError(text)
    return [f"d{int(text[4:]) + by}"]


FACTORIES = {
    "a closure": lambda by: lambda text: shifted(text, by),
    "a partial": lambda by: functools.partial(shifted, by=by),
    "an object": Shifted,
    "a bound method": lambda by: Shifted(by).find,
}


@pytest.mark.parametrize("again", ["missing", "failed"])
@pytest.mark.parametrize("kind", FACTORIES)
def test_responses_of_another_object_are_not_reused(collection, tmp_path, kind, again):
    limits = Limits(retries=0)
    bench = Benchmark(collection, k=5, store=tmp_path, limits=limits)
    first = bench.run("mine", FACTORIES[kind](0), timed=0)
    assert first.evaluate("RR", errors="empty").mean() == {"RR": 0.9}
    retriever = FACTORIES[kind](1)
    # Another benchmark of this process knows the object, too.
    for one in (bench, Benchmark(collection, k=5, store=tmp_path, limits=limits)):
        other = one.run("mine", FACTORIES[kind](1), rerun=again, timed=0)
        assert other.evaluate("RR", errors="empty").mean() == {"RR": 0.0}
        assert other.tally.reused == 0
        assert any("they are those of another object" in note for note in other.notes)
    bench.run("mine", retriever, timed=0)
    same = bench.run("mine", retriever, rerun=again, timed=0)
    assert same.tally.reused == (10 if again == "missing" else 9)
    assert "unfinished run of the same object" in " ".join(same.notes)


def test_a_bound_method_is_the_same_if_its_owner_is(collection, tmp_path):
    owner = Shifted(0)
    bench = Benchmark(collection, k=5, store=tmp_path, limits=Limits(retries=0))
    bench.run("mine", owner.find, timed=0)
    assert bench.run("mine", owner.find, timed=0).tally.reused == 10
    bench.run("one", owner.find, settings={"by": 0}, timed=0)
    assert bench.run("other", owner.find, settings={"by": 0}, timed=0).tally.reused == 10


PROGRAM = """
    import sys
    from rankgauge import Benchmark
    import mine

    bench = Benchmark(k=5, store="store", limits=__import__("rankgauge").Limits(retries=0))
    for n in range(4):
        bench.add_query(f"q{n}", f"word{n}", {f"d{n}"})
    run = bench.run("mine", mine.make(), rerun=sys.argv[1], timed=0)
    print(run.tally.reused, [next(iter(run.ranked("empty")[q]), "-") for q in run.queries])
    print(*run.notes, sep="\\n", file=sys.stderr)
"""

MODULE = """
    import helpers

    def make():
        def retrieve(text):
            if text == "word3":
                raise ValueError(text)
            return [f"d{{helpers.half(2 * int(text[4:])) + {shift}}}"]
        return retrieve
"""
HELPERS = "def half(n):\n    return n // 2\n"
WHOLE = "['d0', 'd1', 'd2', '-']"


PARTIAL = PROGRAM.replace("mine.make()", "__import__('functools').partial(mine.make())")


def in_processes(tmp_path, again="missing", *, program=PROGRAM, **sources):
    """Return the output of a program run with these modules in its folder."""
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
    done = subprocess.run(
        [sys.executable, "-B", "program.py", again],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        cwd=tmp_path,
    )
    return done.stdout.strip(), done.stderr


@pytest.mark.slow
def test_another_process_resumes_only_if_the_file_of_the_retriever_is_unchanged(tmp_path):
    assert in_processes(tmp_path, mine=MODULE.format(shift=0), helpers=HELPERS)[0] == f"0 {WHOLE}"
    said, notes = in_processes(tmp_path, helpers=f"{HELPERS}# changed")
    assert said == f"4 {WHOLE}"
    assert "mine.py and the main script are unchanged (nothing else was compared)" in notes
    said, notes = in_processes(tmp_path, mine=MODULE.format(shift=1))
    assert said == "0 ['d1', 'd2', 'd3', '-']"
    assert "run again: mine.py, which defines it, or the main script has changed" in notes
    said, notes = in_processes(tmp_path, "failed", mine=MODULE.format(shift=2))
    assert said == "0 ['d2', 'd3', 'd4', '-']"
    assert "--resume" in notes
    said, notes = in_processes(tmp_path, "resume", mine=MODULE.format(shift=3))
    assert said == "3 ['d2', 'd3', 'd4', '-']"
    assert 'requested (rerun="resume")' in notes


@pytest.mark.slow
def test_another_process_does_not_resume_if_more_may_have_changed(tmp_path):
    assert in_processes(tmp_path, mine=MODULE.format(shift=0), helpers=HELPERS)[0] == f"0 {WHOLE}"
    # The main script, and a library that calls the function.
    for program in (PROGRAM.replace("mine.make()", "(mine.make())"), PARTIAL, PARTIAL):
        said, notes = in_processes(tmp_path, program=program)
        assert said == f"0 {WHOLE}"
    assert "the file that defines it is unknown, has just changed, or belongs to a library" in notes


@pytest.mark.usefixtures("main_script")
def test_code_hashes_of_earlier_versions_are_not_reused(collection, tmp_path):
    def retrieve(text):
        return shifted(text, 0)

    bench = Benchmark(collection, k=5, store=tmp_path, limits=Limits(retries=0))
    journal = bench.run("mine", retrieve, timed=0).journal
    with journal:
        journal.open()
        journal.note(code=["0" * 32, "1" * 32], stamp="another process")
    run = bench.run("mine", retrieve, timed=0)
    assert run.tally.reused == 0
    assert "test_store.py, which defines it, or the main script has changed" in " ".join(run.notes)


def test_the_same_object_continues_in_its_process(collection, tmp_path):
    class Client:
        def __init__(self):
            self.socket = socket.socket()
            self.asked = 0

        def __call__(self, text):
            self.asked += 1
            if self.asked == 5:
                raise KeyboardInterrupt
            return ["d1"]

    bench = Benchmark(collection, k=5, store=tmp_path)
    for client in (Client(), Client()):
        with client.socket, pytest.raises(KeyboardInterrupt):
            bench.run("mine", client, timed=0)
    run = bench.run("mine", client, timed=0)
    assert run.tally.reused == 4


def test_archived_answers_are_reused_on_request(collection, tmp_path):
    def make(document, ends):
        def retrieve(text):
            if int(text[4:]) == ends:
                raise KeyboardInterrupt
            return [document]

        return retrieve

    bench = Benchmark(collection, k=5, store=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run("mine", make("d1", 6), timed=0)
    with pytest.raises(KeyboardInterrupt):
        bench.run("mine", make("d2", 3), timed=0)
    run = bench.run("mine", make("d3", None), rerun="resume", timed=0)
    assert [next(iter(run.run[f"q{n}"])) for n in (0, 2, 3, 5, 6, 9)] == ["d2", "d2", "d1", "d1", "d3", "d3"]
    assert run.tally.reused == 6
    assert not list(tmp_path.glob("*/responses-earlier.jsonl"))


def test_a_finished_run_is_reused_on_request(collection, tmp_path):
    bench = Benchmark(collection, k=5, store=tmp_path)
    bench.run("mine", lambda text: ["d1"], timed=0)
    run = bench.run("mine", lambda text: ["d2"], rerun="resume", timed=0)
    assert (run.tally.reused, list(run.run["q0"])) == (10, ["d1"])


def test_answers_depend_on_the_order_of_documents(tmp_path):
    turned = dict(reversed(DOCUMENTS.items()))
    for documents in (DOCUMENTS, turned, turned):
        collection = Collection.load(None, documents=documents, queries=QUERIES, qrels=QRELS)
        bench = Benchmark(collection, k=5, store=tmp_path)
        run = bench.run("tied", Tied(), timed=0)
        assert list(run.run["q0"]) == list(documents)[:5]
    assert run.tally.reused == 10


class Tied(Words):
    """Scores all documents equally and returns the first ones indexed."""

    def search(self, queries, k):
        return [[(name, 1.0) for name in self.texts][:k] for _ in queries]


def test_a_damaged_journal_gives_no_empty_ranking(collection, tmp_path):
    run = Benchmark(collection, k=5, store=tmp_path).run("a", Words(), timed=0)
    path = run.journal.folder / "responses.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"d3"', b'"d4"'))
    with pytest.raises(InputError, match="1 response cannot be read"):
        run.evaluate("RR")
    again = Benchmark(collection, k=5, store=tmp_path).run("a", Words(), timed=0)
    assert again.evaluate("RR").mean() == {"RR": 1.0}
    assert again.tally.reused == 9
    assert "1 damaged line" in again.notes[0]


def test_a_line_with_a_wrong_key_answers_no_query(collection, tmp_path):
    bench = Benchmark(collection, k=5, store=tmp_path)
    bench.run("mine", lambda text: ["d1"], settings={"model": "a"}, timed=0)
    path = next(tmp_path.glob("*/responses.jsonl"))
    changed = []
    for line in path.read_bytes().splitlines():
        row = json.loads(line)
        del row["sum"]
        body = json.dumps({**row, "query": row["query"].replace("q3", "q9")}).encode()[:-1]
        changed.append(body + b',"sum":"%08x"}\n' % zlib.crc32(body))
    path.write_bytes(b"".join(changed))
    run = bench.run("mine", lambda text: ["d2"], settings={"model": "a"}, timed=0)
    assert run.tally.reused == 9
    assert [list(run.run[query]) for query in ("q2", "q3", "q9")] == [["d1"], ["d2"], ["d1"]]


def test_a_run_is_not_mixed_with_a_restarted_journal(collection, tmp_path):
    bench = Benchmark(collection, k=5, store=tmp_path)
    old = bench.run("a", Words(), timed=0)
    bench.run("a", Words(), rerun="all", timed=0)
    with pytest.raises(InputError, match="replaced by a later run"):
        old.evaluate("RR")
    new = bench.run("a", Words(), timed=0)
    shutil.rmtree(tmp_path)
    with pytest.raises(InputError, match="deleted"):
        new.evaluate("RR")


def test_a_fresh_run_searches_all_queries(collection, tmp_path):
    bench = Benchmark(collection, k=5, store=tmp_path)
    bench.run("a", Words(), timed=0)
    retriever = Words()
    assert bench.run("a", retriever, rerun="all", timed=0).tally.reused == 0
    assert len(retriever.asked) == 10


def test_a_temporary_store_is_removed_after_use(collection):
    bench = Benchmark(collection)
    run = bench.run("a", Words(), timed=0)
    store = bench.store
    del bench
    assert run.evaluate("RR").mean() == {"RR": 1.0}
    del run
    gc.collect()
    assert not store.exists()


def test_a_retriever_that_is_part_of_several_is_indexed_once(collection):
    shared = Words()
    from rankgauge.retrievers import Hybrid

    bench = Benchmark(collection, k=5)
    bench.run("words", shared, timed=0)
    bench.run("hybrid", Hybrid([shared, Words(x=1)]), timed=0)
    assert shared.indexed == 1


def test_parts_that_were_indexed_before_count_in_the_time_of_the_whole(collection):
    class Slow(Words):
        def index(self, documents):
            time.sleep(0.2)
            super().index(documents)

    from rankgauge.retrievers import Hybrid

    shared = Slow()
    bench = Benchmark(collection, k=5)
    bench.run("words", shared, timed=0)
    before = bench.run("hybrid", Hybrid([shared, Words(x=1)]), timed=0).index
    nested = bench.run("nested", Hybrid([Hybrid([shared, Words(x=2)]), Words(x=3)]), timed=0).index
    assert shared.indexed == 1
    assert (before.peak, nested.peak) == (None, None), "nobody knows it any more"
    whole = Hybrid([shared, Words(x=4)])
    bench.run("whole", whole, timed=0)
    outer = bench.run("outer", Hybrid([whole, Words(x=5)]), timed=0).index
    for cost in (before, nested, outer):
        assert 0.2 <= cost.seconds < 2 * bench.runs["words"].index.seconds


def test_two_benchmarks_can_share_a_retriever(collection):
    turned = {name: DOCUMENTS[f"d{19 - n}"] for n, name in enumerate(DOCUMENTS)}
    other = Collection.load(None, documents=turned, queries=QUERIES, qrels=QRELS)
    shared = Words()
    first, second = Benchmark(collection, k=5), Benchmark(other, k=5)
    assert first.run("words", shared, timed=0).evaluate("RR").mean() == {"RR": 1.0}
    assert second.run("words", shared, timed=0).evaluate("RR").mean() == {"RR": 0.0}
    assert first.run("words", shared, rerun="all").evaluate("RR").mean() == {"RR": 1.0}
    assert shared.indexed == 3


def test_usage_before_an_interrupt_is_counted(collection, tmp_path):
    bench = Benchmark(collection, k=5, store=tmp_path, limits=Limits(batch=1))
    with pytest.raises(KeyboardInterrupt):
        bench.run("words", Priced(ends=4), timed=0)
    run = bench.run("words", Priced(), prices={"tokens": 1.0}, timed=0)
    assert run.tally.reused == 4
    assert run.usage == {"tokens": 500}
    assert (run.asked, run.cost) == (10, 50_000)


def test_the_price_of_a_query_is_averaged_over_searched_queries(tmp_path):
    runs = []
    for names in (list(QUERIES)[:6], list(QUERIES)[6:]):
        part = Collection.load(
            None, documents=DOCUMENTS, queries={q: QUERIES[q] for q in names}, qrels={q: QRELS[q] for q in names}
        )
        bench = Benchmark(part, k=5, store=tmp_path)
        runs.append(bench.run("words", Priced(), prices={"tokens": 1.0}))
        assert runs[-1].latency.seconds.keys() == set(names)
        bench.run("other", worse)
        found = bench.compare("RR").cost_table()
        assert found.rows[0][found.columns.index("tokens/query")] == "50.0"
    assert [run.cost for run in runs] == [50_000, 50_000]
    assert [run.asked for run in runs] == [6, 10]


def test_a_configuration_without_settings_is_searched_again(collection, tmp_path):
    def configured(place, ends):
        calls = []

        def retrieve(text):
            calls.append(text)
            if len(calls) == ends:
                raise KeyboardInterrupt
            return [f"d{place}"]

        return retrieve

    bench = Benchmark(collection, k=5, store=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.runner(timed=0)("1", configured(3, 5))
    run, seconds = bench.runner(timed=0)("1", configured(7, None))
    assert {name for query in run for name in run[query]} == {"d7"}
    assert seconds is None


SCRIPT = """
    import sys, time
    from rankgauge import Benchmark, Collection, Limits

    collection = Collection.load(
        None, documents={{"d1": "x"}},
        queries={{f"q{{n}}": f"word{{n}}" for n in range(200)}},
        qrels={{f"q{{n}}": {{f"d{{n % 7}}": 1}} for n in range(200)}},
    )

    def retrieve(text):
        time.sleep({seconds})
        n = int(text.removeprefix("word"))
        return [(f"d{{n % 5}}", 0.1 + n / 7), ("d6", 0.1)]

    bench = Benchmark(collection, store=sys.argv[1], limits=Limits({limits}))
    run = bench.run("mine", retrieve, settings={{"version": 1}}, timed=0)
    print(run.tally.reused, run.evaluate(["RR", "nDCG@10"]).mean())
"""


def script(seconds, limits=""):
    return textwrap.dedent(SCRIPT).format(seconds=seconds, limits=limits)


@pytest.mark.slow
@pytest.mark.parametrize("limits", ["", "concurrency=4, timeout=60"], ids=["in order", "threads"])
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
def test_a_killed_process_resumes_with_the_same_numbers(tmp_path, end, limits):
    killed = subprocess.Popen(
        [sys.executable, "-c", script(0.02, limits), str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        written = [f.read_bytes().count(b"\n") for f in tmp_path.glob("*/responses.jsonl")]
        if written and written[0] >= 20:
            break
        time.sleep(0.01)
    killed.send_signal(end)
    killed.wait(30)
    kept = sum(f.read_bytes().count(b"\n") for f in tmp_path.glob("*/responses.jsonl"))
    assert 20 <= kept < 200

    def finished(store):
        done = subprocess.run(
            [sys.executable, "-c", script(0, limits), str(store)],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        reused, _, values = done.stdout.partition(" ")
        return int(reused), values

    reused, values = finished(tmp_path)
    assert reused == kept
    assert values == finished(tmp_path / "whole")[1]


class Metered:
    """A retriever that reports its usage and is interrupted once."""

    settings: typing.ClassVar = {"type": "metered"}

    def __init__(self, after):
        self.calls = 0
        self.after = after

    def index(self, documents):
        pass

    def search(self, queries, k):
        self.calls += len(queries)
        if self.calls == self.after:
            raise KeyboardInterrupt
        return [["d1"] for _ in queries]

    def usage(self):
        return {"tokens": 10 * self.calls}


def test_the_usage_of_an_interrupted_run_is_counted(collection, tmp_path):
    bench = Benchmark(collection, store=tmp_path, limits=Limits(batch=1))
    with pytest.raises(KeyboardInterrupt):
        bench.run("mine", Metered(8), prices={"tokens": 0.5}, timed=0)
    run = bench.run("mine", Metered(0), prices={"tokens": 0.5}, timed=0)
    assert run.tally.reused == 7
    asked = len(run.queries)
    assert run.usage == {"tokens": 10 * (asked + 1)}, "the one that was in flight is paid for, too"
    assert run.asked == asked
    assert run.cost == pytest.approx(10 * (asked + 1) * 0.5 / asked * 1000)


def test_the_cost_is_that_of_the_answers_whose_price_is_known(collection, tmp_path):
    bench = Benchmark(collection, store=tmp_path, limits=Limits(batch=1))
    with pytest.raises(KeyboardInterrupt):
        bench.run("mine", Metered(8), timed=0)
    head = next(tmp_path.glob("*/run.json"))
    kept = json.loads(head.read_text())
    # State after a process is killed before it could record anything.
    head.write_text(json.dumps({"stamp": kept["stamp"]}))
    run = bench.run("mine", Metered(0), prices={"tokens": 0.5}, timed=0)
    assert run.asked == len(run.queries) - 7
    assert run.cost == pytest.approx(10 * 0.5 * 1000)


def test_usage_is_recorded_during_the_run(collection, tmp_path, monkeypatch):
    monkeypatch.setattr(retriever_run, "_RECORD_EVERY", 0.0)
    noted = []

    class Watched(Metered):
        def search(self, queries, k):
            noted.append(json.loads(next(tmp_path.glob("*/run.json")).read_text()).get("asked", 0))
            return super().search(queries, k)

    Benchmark(collection, store=tmp_path, limits=Limits(batch=1)).run("mine", Watched(0), timed=0)
    assert noted == list(range(len(noted)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of files are a thing of POSIX")
def test_a_full_disk_loses_no_answer(tmp_path):
    limited = (
        "import resource, signal, sys\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "sys.dont_write_bytecode = True\n"  # it would be cut off, too
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))\n"
    )
    full = subprocess.run(
        [sys.executable, "-c", limited + script(0), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "the journal cannot be written" in full.stderr
    assert "continues where it stopped" in full.stderr
    done = subprocess.run(
        [sys.executable, "-c", script(0), str(tmp_path)], capture_output=True, text=True, check=True, timeout=120
    )
    assert int(done.stdout.partition(" ")[0]) > 5


def _first(text):
    return ["d1"]


def _second(text):
    return ["d2"]


def _ranked(text, best):
    return [best]


class _Engine:
    def __init__(self, best):
        self.best, self.calls = best, []

    def find(self, text):
        self.calls.append(text)
        return [self.best]

    def find_reversed(self, text):
        return [self.best[::-1]]

    def __call__(self, text):
        return self.find(text)


def _closure(best):
    return lambda text: [best]


_ENGINE = _Engine("d1")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda text: ["d1"], lambda text: ["d2"]),
        (_closure("d1"), _closure("d2")),
        (_closure("d1"), _closure("d1")),
        (functools.partial(_ranked, best="d1"), functools.partial(_ranked, best="d2")),
        (_Engine("d1").find, _Engine("d2").find),
        (_Engine("d1"), _Engine("d2")),
        (Hybrid([_first, _second]), Hybrid([_first, _ENGINE])),
        (Words(), Words()),
    ],
    ids=[
        "lambdas",
        "closures",
        "equal closures",
        "partials",
        "bound methods",
        "callable objects",
        "members",
        "objects that declare settings",
    ],
)
def test_functions_with_equal_settings_share_no_responses(collection, tmp_path, one, other):
    settings = {"model": "e5"}
    bench = Benchmark(collection, k=5, store=tmp_path)
    first = bench.run("one", one, settings=settings, timed=0)
    with pytest.raises(InputError, match="same settings as run 'one'") as caught:
        bench.run("other", other, settings=settings, timed=0)
    assert caught.value.where == "run 'other'"
    # With the fix of the message, both have their own.
    second = bench.run("other", other, settings={**settings, "variant": 2}, timed=0)
    assert (first.tally.reused, second.tally.reused) == (0, 0)
    # The same object shares, also if its values have changed since its first run.
    assert bench.run("again", one, settings=settings, timed=0).tally.reused == 10


@pytest.mark.parametrize(("one", "other"), [(_first, _second), (_ENGINE.find, _ENGINE.find_reversed)])
def test_functions_of_other_names_have_responses_of_their_own(collection, tmp_path, one, other):
    bench = Benchmark(collection, k=5, store=tmp_path)
    bench.run("one", one, settings={"model": "e5"}, timed=0)
    assert bench.run("other", other, settings={"model": "e5"}, timed=0).tally.reused == 0


def test_included_retrievers_with_equal_settings_share_responses(collection, tmp_path):
    words = Words()
    bench = Benchmark(collection, k=5, store=tmp_path)
    for name in ("one", "other"):
        for make in (lambda: Dense(HashingEncoder(8)), lambda: Hybrid([words, Dense(HashingEncoder(8))])):
            run = bench.run(name, make(), timed=0)
        assert run.tally.reused == (10 if name == "other" else 0)


def test_a_configuration_may_equal_a_run_but_not_another_configuration(collection, tmp_path):
    bench = Benchmark(collection, k=5, store=tmp_path)
    bench.run("today", Words(k1=1), timed=0)
    for _ in range(2):
        run = bench.runner(timed=0)
        run("1", Words(k1=1))
        with pytest.raises(InputError, match="same settings as run '1'"):
            run("2", Words(k1=1))
