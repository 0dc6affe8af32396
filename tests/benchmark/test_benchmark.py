"""Retrievers on a collection: calls, invalid input, and counts."""

import asyncio
import contextlib
import sys
import threading

import pytest
from counting import DOCUMENTS, QRELS, QUERIES, Words

import rankgauge
from rankgauge import Benchmark, Collection, InputError, Limits, RankgaugeError, UnknownName, evaluate
from rankgauge.retrievers import Hybrid


def test_a_run_evaluates_as_the_same_rankings_do(collection):
    bench = Benchmark(collection, k=5)
    run = bench.run("words", Words(), timed=0)
    rankings = {q: [f"d{q[1:]}"] for q in QUERIES}
    assert run.run["q3"] == {"d3": 1.0}
    mine, theirs = run.evaluate(["RR", "P@5"]), evaluate(QRELS, rankings, ["RR", "P@5"])
    assert mine.mean() == theirs.mean()
    assert run.tally.queries == 10
    assert run.index is not None
    assert run.latency is None
    assert run.notes == ()


def test_an_added_query_is_searched_with_those_of_the_collection(collection):
    bench = Benchmark(collection, k=5)
    bench.add_query("mine", "word15", {"d15": 2})
    bench.add_query(7, "word16", ["d16"])
    run = bench.run("words", Words(), timed=0)
    assert len(bench.queries) == 12
    assert run.evaluate("RR").value("7", "RR") == 1.0
    assert run.qrels["mine"] == {"d15": 2.0}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("q1", "text", ["d1"]), "already exists"),
        (("new", 7, ["d1"]), "for the text"),
        (("new", "text", "d1"), "relevant documents"),
        (("new", "text", None), "relevant documents"),
        (("new", "text", {"d1": "high"}), "high"),
    ],
    ids=["twice", "no text", "a single id", "nothing", "no grade"],
)
def test_a_query_that_does_not_fit_is_refused(collection, given, said):
    with pytest.raises(InputError, match=said):
        Benchmark(collection).add_query(*given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"timed": "a"}, "timed='a'"),
        ({"timed": -1}, "timed=-1"),
        ({"prices": [1]}, "for prices"),
        ({"prices": {"tokens": "x"}}, "='x' is not"),
        ({"prices": {"tokens": float("nan")}}, "=nan is not"),
        ({"settings": [1]}, "for settings"),
        ({"limits": {"concurrency": 2}}, "for limits"),
    ],
    ids=str,
)
def test_wrong_types_are_refused_before_any_search(collection, given, said):
    asked = []
    with pytest.raises(InputError, match=said):
        Benchmark(collection).run("x", asked.append, **given)
    assert asked == []


@pytest.mark.parametrize("given", [{"store": 5}, {"limits": {"rate": 2}}], ids=str)
def test_a_benchmark_of_the_wrong_kind_is_refused(collection, given):
    with pytest.raises(InputError, match=next(iter(given))):
        Benchmark(collection, **given)


def test_an_invalid_query_id_is_refused():
    with pytest.raises(InputError, match=r"query id \[1\]"):
        Benchmark().add_query([1], "late fees", ["d1"])


def test_a_class_is_refused_before_a_journal_is_made(collection, tmp_path):
    with pytest.raises(InputError, match="the class Words"):
        Benchmark(collection, store=tmp_path).run("x", Words)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_benchmark_is_refused():
    with pytest.raises(InputError, match="none with judgments"):
        Benchmark().run("words", lambda text: [])


def test_queries_without_text_or_judgments_are_skipped_and_reported(collection):
    queries = {**QUERIES, "bare": "word1"}
    qrels = {**QRELS, "silent": {"d1": 1}}
    given = Collection.load(None, documents=DOCUMENTS, queries=queries, qrels=qrels)
    bench = Benchmark(given, k=5)
    retriever = Words()
    run = bench.run("words", retriever, timed=0)
    assert sorted(retriever.asked) == sorted(QUERIES)
    assert run.evaluate("RR").mean() == {"RR": 1.0}
    assert len(bench.notes) == 2
    assert "'silent'" in bench.notes[0]


def test_a_retriever_that_indexes_needs_documents():
    bench = Benchmark(k=5)
    bench.add_query("q1", "word1", ["d1"])
    with pytest.raises(InputError, match="indexes documents"):
        bench.run("words", Words())


def test_a_failing_index_is_reported_with_its_own_error(collection):
    class Broken(Words):
        def index(self, documents):
            raise ValueError("disk on fire")

    with pytest.raises(rankgauge.RankgaugeError, match="ValueError: disk on fire") as caught:
        Benchmark(collection).run("broken", Broken())
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"rerun": "some"}, UnknownName),
        ({"name": ""}, InputError),
        ({"name": 7}, InputError),
        ({"settings": {"a": object()}}, InputError),
        ({"settings": {"a": float("nan")}}, InputError),
        ({"timed": -1}, InputError),
        ({"timed": "all"}, InputError),
        ({"prices": {"tokens": "2e-8"}}, InputError),
        ({"prices": 2e-8}, InputError),
        ({"prices": {"tokens": -1}}, InputError),
    ],
    ids=[
        "rerun",
        "no name",
        "a number as name",
        "settings of objects",
        "settings of NaN",
        "timed below 0",
        "timed in words",
        "a price in words",
        "a price of nothing",
        "a price below 0",
    ],
)
def test_invalid_choices_are_refused(collection, given, error):
    with pytest.raises(error):
        Benchmark(collection).run(given.pop("name", "words"), Words(), **given)


@pytest.mark.parametrize("k", [0, -1, 1.5, "5", True])
def test_k_is_a_positive_whole_number(k):
    with pytest.raises(InputError, match="k="):
        Benchmark(k=k)


# ---- content of responses


def test_repeats_hits_below_k_and_unknown_documents_are_left_out_or_counted(collection):
    def retrieve(text):
        n = int(text.removeprefix("word"))
        return [f"d{n}", f"d{n}", "elsewhere", "d19", "d18", "d17"] if n else []

    run = Benchmark(collection, k=3).run("odd", retrieve, timed=0)
    tally = run.tally
    assert (tally.repeated, tally.beyond, tally.unknown, tally.empty) == (9, 18, 9, 1)
    assert run.run["q1"] == {"d1": 3.0, "elsewhere": 2.0, "d19": 1.0}
    message = " ".join(run.notes)
    for words in (
        "9 hits removed: a higher-ranked document repeated",
        "18 hits removed: ranked below k",
        "not in the collection",
        "no results for 1 query",
    ):
        assert words in message


def test_rising_scores_are_reported_as_distances(collection):
    run = Benchmark(collection, k=3).run("distances", lambda text: [("d1", 0.1), ("d2", 0.2), ("d3", 0.3)], timed=0)
    assert run.tally.ascending == 10
    assert "reversed" in " ".join(run.notes)
    assert list(run.run["q1"]) == ["d3", "d2", "d1"]


def test_failures_are_refused_or_counted_as_empty_and_retried_alone(collection, tmp_path):
    calls = []
    for broken in ("word3", "word4"):
        (tmp_path / broken).touch()

    def retrieve(text):
        calls.append(text)
        if (tmp_path / text).exists():
            raise ConnectionError("down")
        return [f"d{text.removeprefix('word')}"]

    bench = Benchmark(collection, k=5, store=tmp_path / "store", limits=Limits(retries=0))
    run = bench.run("flaky", retrieve, timed=0)
    assert [(f.query, f.kind) for f in run.failures] == [("q3", "error"), ("q4", "error")]
    for refused in (lambda: run.run, lambda: run.evaluate("RR"), lambda: list(run.blocks())):
        with pytest.raises(InputError, match="2 of 10 queries failed; q3: ConnectionError: down"):
            refused()
    assert run.evaluate("RR", errors="empty").mean() == {"RR": 0.8}
    assert run.ranked("empty")["q3"] == {}
    assert "2 of 10 queries failed" in run.notes[0]

    (tmp_path / "word3").unlink()
    again = bench.run("flaky", retrieve, rerun="failed", timed=0)
    assert calls[10:] == ["word3", "word4"]
    assert [f.query for f in again.failures] == ["q4"]
    assert again.tally.reused == 8
    assert again.evaluate("RR", errors="empty").mean() == {"RR": 0.9}


def test_a_retriever_that_always_fails_is_abandoned_and_reported(collection):
    def retrieve(text):
        raise ConnectionError("down")

    run = Benchmark(collection, limits=Limits(stop_after=3, retries=0)).run("dead", retrieve)
    assert (run.tally.failed, run.tally.missing) == (3, 7)
    with pytest.raises(InputError, match="7 were not sent"):
        run.evaluate("RR")


# ---- retrievers that modify their input or end the process


class Reverses(Words):
    """Reverses the queries in place if it can."""

    def search(self, queries, k):
        found = super().search(queries, k)
        with contextlib.suppress(AttributeError, TypeError):
            queries.reverse()
        for query in queries:
            with contextlib.suppress(TypeError):
                query.fields.pop("lang")
        return found


@pytest.mark.parametrize(
    "whole", [lambda one: one, lambda one: Hybrid([one, Words(x=2)])], ids=["itself", "part of a hybrid"]
)
def test_a_retriever_cannot_modify_the_queries(whole):
    queries = {name: {"text": text, "lang": "en"} for name, text in QUERIES.items()}
    bench = Benchmark(Collection.load(None, documents=DOCUMENTS, queries=queries, qrels=QRELS), k=5)
    run = bench.run("reverses", whole(Reverses()), timed=0)
    assert run.evaluate("RR").mean() == {"RR": 1.0}
    assert {query.fields["lang"] for query in bench.queries.values()} == {"en"}


class Ends(Words):
    """Tries to end the process."""

    def __init__(self, where):
        super().__init__(where=where)
        self.where = where

    def index(self, documents):
        if self.where == "index":
            sys.exit(3)
        super().index(documents)

    def search(self, queries, k):
        if self.where == "search":
            sys.exit(3)
        return super().search(queries, k)

    def usage(self):
        if self.where == "usage":
            sys.exit(3)
        return {"tokens": float("nan") if self.where == "amount" else 1}

    @property
    def size(self):
        return sys.exit(3) if self.where == "size" else 1


def test_a_retriever_that_ends_the_process_while_it_indexes_has_failed(collection):
    bench = Benchmark(collection, k=5)
    before = bench.run("words", Words(), timed=0)
    with pytest.raises(RankgaugeError, match="indexing failed: SystemExit: 3"):
        bench.run("ends", Ends("index"), timed=0)
    assert before.evaluate("RR").mean() == {"RR": 1.0}
    assert list(bench.runs) == ["words"]


def test_a_retriever_that_ends_the_process_while_it_searches_has_failed_queries(collection):
    run = Benchmark(collection, k=5, limits=Limits(retries=0)).run("ends", Ends("search"), timed=0)
    assert {failure.error for failure in run.failures} == {"SystemExit: 3"}
    assert run.tally.failed == 10


@pytest.mark.parametrize("where", ["usage", "amount", "size"])
def test_failing_settings_of_a_retriever_lose_no_ranking(collection, where):
    run = Benchmark(collection, k=5).run("ends", Ends(where), timed=0, prices={"tokens": 1.0})
    assert run.evaluate("RR").mean() == {"RR": 1.0}
    if where != "size":
        assert run.cost is None
        assert "the cost of the queries is unknown: usage() failed" in run.notes[0]


def test_settings_that_cannot_be_read_are_an_error_of_that_retriever(collection):
    class Unsettled(Words):
        @property
        def settings(self):
            raise OSError("no such file")

        @settings.setter
        def settings(self, value):
            pass

    with pytest.raises(InputError, match="reading its settings failed: OSError: no such file"):
        Benchmark(collection, k=5).run("mine", Unsettled(), timed=0)


@pytest.mark.parametrize("kind", ["sync", "async", "async that holds up the loop"])
def test_indexing_respects_a_given_time_limit(collection, kind):
    release, ended = threading.Event(), []

    class Slow(Words):
        def index(self, documents):
            if kind == "sync":
                ended.append(release.wait(60))
                return None
            return self.later()

        async def later(self):
            while not release.is_set():
                if kind == "async":
                    await asyncio.sleep(0.05)
                else:
                    ended.append(release.wait(60))

    bench = Benchmark(collection, k=5, limits=Limits(index_timeout=0.2))
    slow = Slow()
    with pytest.raises(RankgaugeError, match=r"longer than 0\.2 s .*\n.*index_timeout"):
        bench.run("slow", slow, timed=0)
    assert not ended
    with pytest.raises(InputError, match="still indexing documents"):
        bench.run("hybrid", Hybrid([slow, Words(x=1)]), timed=0)

    async def later(text):
        return [f"d{text.removeprefix('word')}"]

    assert bench.run("other", later, timed=0).evaluate("RR").mean() == {"RR": 1.0}
    release.set()


def test_indexing_within_its_time_limit_gives_the_same_result(collection):
    bench = Benchmark(collection, k=5, limits=Limits(index_timeout=20.0))
    assert bench.run("words", Words(), timed=0).evaluate("RR").mean() == {"RR": 1.0}
    with pytest.raises(RankgaugeError, match="indexing failed: SystemExit: 3"):
        bench.run("ends", Ends("index"), timed=0)
