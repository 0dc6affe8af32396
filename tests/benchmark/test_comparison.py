"""Runs of a benchmark compared: quality, latency, cost, and provenance."""

import gzip
import json
import math

import pytest
from counting import QRELS, Priced, Words, worse
from hypothesis import given, strategies as st

import rankgauge
from rankgauge import Benchmark, InputError, Limits, Run, UnknownName
from rankgauge.benchmark.comparison import ParetoPoint, changed_settings, cost_table, pareto_front, plot_pareto
from rankgauge.benchmark.latency import Latency
from rankgauge.benchmark.run import BenchmarkRun, Tally


def test_runs_are_compared_by_quality_latency_and_cost(collection):
    bench = Benchmark(collection, k=5)
    bench.run("worse", worse)
    bench.run("words", Priced(), prices={"tokens": 1e-5})
    found = bench.compare(["RR", "P@1"])
    direct = rankgauge.compare(
        QRELS, {"worse": bench.runs["worse"].run, "words": bench.runs["words"].run}, ["RR", "P@1"]
    )
    assert repr(found.comparison.differences) == repr(direct.differences)  # NaN in both
    assert found.comparison.baseline == "worse"
    assert bench.compare(["RR"], baseline="words").comparison.baseline == "words"
    assert bench.runs["words"].cost == pytest.approx(50 * 1e-5 * 1000)
    table = found.cost_table()
    assert {"run", "p50 ms", "queries/s", "tokens/query", "cost/1,000"} <= set(table.columns)
    assert "0.500" in table.rows[1]
    data = json.loads(found.to_json())
    assert data["runs"][1]["cost_per_1000_queries"] == pytest.approx(0.5)
    assert data["comparison"]["schema"] == "rankgauge/comparison/1"


def test_a_large_benchmark_is_compared_by_its_values_alone(collection, monkeypatch):
    bench = Benchmark(collection, k=5)
    bench.run("worse", worse, timed=0)
    bench.run("words", Words(), timed=0)
    whole = bench.compare(["RR", "P@1"]).comparison
    monkeypatch.setattr("rankgauge.benchmark.comparison._IN_MEMORY", 10)
    monkeypatch.setattr("rankgauge.benchmark.run._BLOCK", 3)
    parts = bench.compare(["RR", "P@1"]).comparison
    assert repr(parts.differences) == repr(whole.differences)
    assert parts.evaluations == whole.evaluations


def test_two_differing_settings_are_reported(collection):
    bench = Benchmark(collection, k=5)
    bench.run("one", Words(k1=1, b=1, versions={"x": 1}), timed=0)
    bench.run("two", Words(k1=2, b=1, versions={"x": 2}), timed=0)
    assert not any("cannot be separated" in note for note in bench.compare("RR").notes)
    bench.run("three", Words(k1=2, b=2), timed=0)
    said = [note for note in bench.compare("RR").notes if "cannot be separated" in note]
    assert said == ["three and one differ in 2 settings (b, k1): their effects cannot be separated"]


def test_settings_of_parts_have_their_names_before_them():
    one = {"encoder": {"size": 1, "versions": {"x": 1}}, "size": 2, "type": "dense"}
    other = {"encoder": {"size": 2, "versions": {"x": 2}}, "size": 2, "type": "dense"}
    assert changed_settings(one, other) == ("encoder.size",)


def test_latency_is_shown_in_milliseconds():
    seconds = {f"q{n}": 0.025 for n in range(20)}
    run = BenchmarkRun("a", {}, rankgauge.Qrels.of(QRELS), Tally(queries=20), (), Latency(seconds))
    table = cost_table([run])
    shown = dict(zip(table.columns, table.rows[0], strict=True))
    assert shown == {"run": "a", "p50 ms": "25.0", "p95 ms": "25.0", "queries/s": "40.0"}


def test_the_pareto_front_needs_timings_of_all_runs(collection):
    bench = Benchmark(collection, k=5)
    bench.run("worse", worse)
    bench.run("words", Words())
    found = bench.compare("RR")
    assert "words" in found.pareto
    assert found.plot().panels
    bench.run("saved", bench.runs["words"].run)
    assert bench.compare("RR").pareto == ()
    with pytest.raises(InputError, match="quality and a latency"):
        bench.compare("RR").plot()


def test_one_run_or_runs_over_other_queries_are_not_compared(collection):
    bench = Benchmark(collection, k=5)
    with pytest.raises(InputError, match="expected two"):
        bench.compare()
    bench.run("one", Words(), timed=0)
    bench.add_query("late", "word15", ["d15"])
    bench.run("two", worse, timed=0)
    with pytest.raises(InputError, match="run on different queries"):
        bench.compare()
    bench.run("one", Words(), timed=0)
    assert len(bench.compare("RR").comparison.evaluations[0].query_ids) == 11
    with pytest.raises(UnknownName, match="'tow'"):
        bench.compare("RR", baseline="tow")


def test_a_saved_run_is_compared_with_retrievers(collection, tmp_path):
    path = tmp_path / "old.run"
    rankgauge.write_run({q: {"d1": 1.0} for q in list(QRELS)[:9]}, path)
    bench = Benchmark(collection, k=5)
    bench.run("words", Words(), timed=0)
    saved = bench.run("old", path)
    assert saved.latency is None
    assert saved.evaluate("RR").mean() == {"RR": 0.1}
    assert bench.run("again", Run.of(rankgauge.read_run(path))).tally.queries == 10
    assert len(bench.compare("RR").runs) == 3


def test_a_run_records_its_retriever_and_settings(collection, tmp_path):
    bench = Benchmark(collection, k=5, limits=Limits(concurrency=2))
    run = bench.run("words", Words(k1=0.9))
    settings = run.run.settings
    assert settings["retriever"] == {"type": "words", "k1": 0.9}
    assert settings["k"] == 5
    assert settings["collection"]["documents"] == 20
    assert len(settings["collection"]["fingerprint"]) == 64
    assert settings["limits"]["concurrency"] == 2
    assert {"rankgauge", "numpy", "python"} <= settings["versions"].keys()
    assert settings["timing"]["latency"]["queries"] == 10
    evaluation = run.evaluate("RR")
    assert rankgauge.Evaluation.from_json(evaluation.to_json()).settings == dict(evaluation.settings)
    with rankgauge.History(tmp_path / "history.db") as history:
        entry = history.add(evaluation, run.qrels, run=run.run)
        assert history.load(entry).settings["retriever"]["k1"] == 0.9


def test_a_run_file_has_a_header_that_our_reader_skips(collection, tmp_path):
    yaml = pytest.importorskip("yaml")
    run = Benchmark(collection, k=5).run("words", Words(k1=0.9, name="ä: #1\n"), timed=0)
    path, plain = tmp_path / "words.run", tmp_path / "plain.run"
    rankgauge.benchmark.write_benchmark_run(run, path)
    rankgauge.benchmark.write_benchmark_run(run, plain, head=False)
    assert rankgauge.read_run(path) == rankgauge.read_run(plain, name="words")
    packed = tmp_path / "words.run.gz"
    rankgauge.benchmark.write_benchmark_run(run, packed)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    lines = path.read_text().splitlines()
    assert lines[0] == "# ir_metadata.start"
    end = lines.index("# ir_metadata.end")
    assert lines[end + 1 :] == plain.read_text().splitlines()
    head = yaml.safe_load("\n".join(line[2:] for line in lines[1:end]))
    assert head["tag"] == "words"
    assert head["method"]["retrieval"][0]["parameters"]["name"] == "ä: #1\n"
    assert head["run"]["sha256"] == rankgauge.data.fingerprint(run.run)
    assert head["data"]["test_collection"]["documents"] == 20


def test_the_recall_of_approximate_search_is_shown_with_its_latency(collection, tmp_path):
    bench = Benchmark(collection, store=tmp_path, k=2)
    exact, loose = Marked(1.0), Marked(0.625)
    bench.run("exact", exact, timed=0)
    assert bench.runs["exact"].index.recall == 1.0
    made = bench.run("loose", loose, timed=0)
    assert made.index.recall == 0.625
    table = bench.compare("RR").cost_table()
    place = table.columns.index("recall@10")
    assert [row[place] for row in table.rows] == ["1.00", "0.625"]
    again = Benchmark(collection, store=tmp_path, k=2).run("loose", Marked(0.625), timed=0)
    assert again.index.recall == 0.625


class Marked:
    def __init__(self, recall):
        self.recall, self.settings = recall, {"type": "marked", "recall": recall}

    def index(self, documents):
        pass

    def search(self, queries, k):
        return [["d1"] for _ in queries]


_values = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, math.nan])
points = st.lists(st.tuples(_values, _values), max_size=12).map(
    lambda rows: [ParetoPoint(f"p{n}", *row) for n, row in enumerate(rows)]
)


@given(points=points, lower=st.booleans())
def test_the_front_has_all_undominated_runs(points, lower):
    sign = -1 if lower else 1
    known = [p for p in points if p.quality == p.quality and p.latency == p.latency]

    def dominated(p):
        return any(
            sign * o.quality >= sign * p.quality
            and o.latency <= p.latency
            and (o.quality != p.quality or o.latency != p.latency)
            for o in known
        )

    front = pareto_front(points, lower=lower)
    assert {p.name for p in front} == {p.name for p in known if not dominated(p)}
    assert [p.latency for p in front] == sorted(p.latency for p in front)


def test_it_is_drawn_with_the_front_joined():
    points = [ParetoPoint("a", 0.5, 0.001), ParetoPoint("b", 0.7, 0.1), ParetoPoint("c", 0.6, 0.2)]
    plot = plot_pareto(points, "nDCG@10")
    (panel,) = plot.panels
    assert [series.name for series in panel.series] == ["on the front", "others"]
    assert panel.series[0].x == (1.0, 100.0)
    assert panel.log
    assert "a: 0.500 in 1 ms; b: 0.700 in 100 ms" in plot.alt
    pytest.importorskip("matplotlib")
    svg = plot.svg()
    assert all(f">{name}<" in svg for name in ("a", "b", "c", "others"))


def test_without_latencies_there_is_nothing_to_draw():
    with pytest.raises(InputError, match="a quality and a latency"):
        plot_pareto([ParetoPoint("a", 0.5, math.nan)], "nDCG@10")
