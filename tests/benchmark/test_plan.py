"""Benchmarks from plan files, and errors in plans."""

import sys
import textwrap
from pathlib import Path

import pytest

import rankgauge
from rankgauge import BenchmarkPlan, InputError, RankgaugeError, sample_path
from rankgauge.benchmark import run_plan
from rankgauge.benchmark.plan import PlanBuilder

SAMPLE = sample_path("rankgauge.toml")
HEAD = f"collection = '{SAMPLE.parent}'\n"
THREE = f"""
    {HEAD}
    timed = 0
    [retrievers.bm25]
    type = "bm25"
    [retrievers.dense]
    type = "dense"
    encoder = {{ type = "hashing" }}
    [retrievers.hybrid]
    type = "hybrid"
    of = ["bm25", "dense"]
"""


@pytest.fixture
def write(tmp_path):
    def written(text):
        path = tmp_path / "rankgauge.toml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return written


def test_the_shipped_plan_runs_and_says_what_ran(tmp_path):
    plan = BenchmarkPlan.read(SAMPLE)
    outcome = run_plan(plan, store=tmp_path, progress=False)
    assert list(outcome.bench.runs) == [planned.name for planned in plan.retrievers]
    assert not outcome.failed
    assert outcome.bench.runs["bm25"].settings["retriever"]["stemmer"] == "english"
    assert {len(run.queries) for run in outcome.bench.runs.values()} == {30}
    found = outcome.bench.compare(plan.measures)
    assert str(found.comparison.primary) == "nDCG@10"


def test_only_named_retrievers_run_and_parts_of_others_are_built(write, tmp_path):
    plan = BenchmarkPlan.read(write(THREE))
    outcome = run_plan(plan, only=["hybrid"], store=tmp_path, progress=False)
    assert list(outcome.bench.runs) == ["hybrid"]
    with pytest.raises(rankgauge.UnknownName, match="'hybird'"):
        run_plan(plan, only=["hybird"], store=tmp_path)


def test_parts_of_several_retrievers_are_the_same_objects(write, tmp_path):
    plan = BenchmarkPlan.read(write(THREE))
    build = PlanBuilder(plan, plan.load(store=tmp_path)).named
    names = {name for name, value in vars(build("hybrid")).items() if build("bm25") in _items(value)}
    assert names


def _items(value):
    return list(value) if isinstance(value, list | tuple) else [value]


def test_a_shared_index_counts_in_full_for_each_retriever(write):
    runs = run_plan(BenchmarkPlan.read(write(THREE)), progress=False).bench.runs
    parts = runs["bm25"].index.seconds + runs["dense"].index.seconds
    assert parts * 0.9 <= runs["hybrid"].index.seconds < 3 * parts
    assert runs["hybrid"].index.peak is None


def test_false_means_none_for_optional_settings(write):
    plan = BenchmarkPlan.read(
        write(f"""
        {HEAD}
        timed = 0
        [retrievers.plain]
        type = "bm25"
        stemmer = false
        """)
    )
    run = run_plan(plan, progress=False).bench.runs["plain"]
    assert run.settings["retriever"]["stemmer"] is None


def test_the_configurations_of_the_shipped_plan_are_explored(tmp_path):
    found, bench = rankgauge.benchmark.explore_plan(BenchmarkPlan.read(SAMPLE), store=tmp_path, timed=0)
    assert [t.configuration["encoder.dimensions"] for t in found.trials] == [256, 512, 1024, 2048, 4096]
    assert found.trials[0].name == "before"
    assert found.values["best"] > found.values["before"]
    assert len(bench.queries) == 30
    assert bench.runs == {}
    said = rankgauge.reports.render(found, "table", rankgauge.reports.Options(collection=bench.collection, full=True))
    assert "before and best, 15 queries" in said
    again, _ = rankgauge.benchmark.explore_plan(BenchmarkPlan.read(SAMPLE), store=tmp_path, timed=0)
    assert [t.value for t in again.trials] == [t.value for t in found.trials]


def test_options_inside_parts_are_explored(write):
    plan = BenchmarkPlan.read(
        write(f"""
        {THREE}
        [explore]
        retriever = "hybrid"
        measure = "RR"
        [explore.space]
        "of.0.b" = [0.1, 0.9]
        "of.1.encoder.dimensions" = [64]
        method = ["rrf", "combsum"]
        """)
    )
    found, _ = rankgauge.benchmark.explore_plan(plan, timed=0)
    assert len(found.trials) == 5
    assert found.before.configuration == {"of.0.b": 0.4, "of.1.encoder.dimensions": 2048, "method": "rrf"}, (
        "today's is what the plan leaves to its defaults"
    )
    assert str(found.measure) == "RR"


@pytest.mark.parametrize(
    ("explore", "said"),
    [
        ("", "no retriever and space"),
        ("[explore]\nretriever = 'bm25'", "no retriever and space"),
        ("[explore]\nretriver = 'bm25'", "'retriver'"),
        ("[explore]\nretriever = 'bm52'\nspace = { b = [1] }", "'bm52'"),
        ("[explore]\nretriever = 'bm25'\nspace = { b = 0.5 }", "list of values"),
        ("[explore]\nretriever = 'bm25'\nspace = { b = [] }", "list of values"),
        ("[explore]\nretriever = 'hybrid'\nspace = { 'of.7.b' = [1] }", "not part"),
        ("[explore]\nretriever = 'bm25'\nspace = { bb = [1] }", "'bb'"),
        ("[explore]\nretriever = 'bm25'\nmethod = 'x'\nspace = { b = [1] }", "'x'"),
    ],
    ids=["none", "no space", "key", "retriever", "value", "empty", "part", "option", "method"],
)
def test_faults_of_a_search_are_named(write, explore, said):
    plan = BenchmarkPlan.read(write(textwrap.dedent(THREE) + explore))
    with pytest.raises(RankgaugeError) as caught:
        rankgauge.benchmark.explore_plan(plan, timed=0)
    assert said in str(caught.value)


def test_every_key_is_read(write):
    plan = BenchmarkPlan.read(
        write(f"""
        k = 7
        measures = ["RR", "P@3"]
        baseline = "mine"
        timed = 0
        {HEAD}
        [limits]
        concurrency = 3
        timeout = 2
        [retrievers.bm25]
        type = "bm25"
        part = true
        [retrievers.mine]
        type = "rerank"
        retriever = "bm25"
        reranker = {{ type = "python", call = "math:prod" }}
        limits = {{ retries = 0 }}
        prices = {{ tokens = 1e-5 }}
        """)
    )
    assert (plan.k, plan.measures, plan.baseline, plan.timed) == (7, ("RR", "P@3"), "mine", 0)
    assert plan.limits == rankgauge.Limits(concurrency=3, timeout=2)
    bm25, mine = plan.retrievers
    assert bm25.part
    assert mine.limits.retries == 0
    assert mine.prices == {"tokens": 1e-5}
    assert plan.selected() == (mine,)
    assert plan.selected(["bm25"]) == (bm25,)


def test_false_disables_an_option_that_is_a_name_otherwise(write, tmp_path):
    plan = BenchmarkPlan.read(
        write(f"""
        {HEAD}
        [retrievers.words]
        type = "bm25"
        stemmer = false
        stop_words = false
        [retrievers.english]
        type = "filtered"
        retriever = "words"
        field = "draft"
        value = false
        """)
    )
    build = PlanBuilder(plan, plan.load(store=tmp_path)).named
    settings = build("words").settings
    assert (settings["stemmer"], settings["stop_words"]) == (None, [])
    assert build("english").settings["value"] is False
    empty = write(f'{HEAD}[retrievers.a]\ntype = "bm25"\nstemmer = ""\n')
    with pytest.raises(rankgauge.UnknownName, match="stemmer"):
        run_plan(BenchmarkPlan.read(empty), progress=False)


def test_responses_are_in_the_private_folder_of_the_project(write, tmp_path):
    run_plan(BenchmarkPlan.read(write(f'{HEAD}timed = 0\n[retrievers.a]\ntype = "random"\n')), progress=False)
    assert list((tmp_path / ".rankgauge" / "runs").iterdir())
    assert (tmp_path / ".rankgauge").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / ".rankgauge" / ".gitignore").read_text() == "*\n"


def test_a_user_function_is_called(write, tmp_path):
    (tmp_path / "mine_for_the_plan.py").write_text(
        textwrap.dedent("""
        def search(text, k):
            return [("loans-periods", 1.0)]

        class Fixed:
            def __init__(self, name):
                self.name = name

            def __call__(self, text):
                return [self.name]
        """)
    )
    plan = BenchmarkPlan.read(
        write(
            f"""
        {HEAD}
        timed = 0
        [retrievers.one]
        type = "python"
        call = "mine_for_the_plan:search"
        settings = {{ version = 1 }}
        [retrievers.two]
        type = "python"
        call = "mine_for_the_plan:Fixed"
        arguments = {{ name = "fees" }}
        """.replace("timed = 0", "").replace(HEAD, "timed = 0\n" + HEAD)
        )
    )
    runs = run_plan(plan, progress=False).bench.runs
    assert set(runs["one"].run["q01"]) == {"loans-periods"}
    assert set(runs["two"].run["q01"]) == {"fees"}
    assert runs["one"].settings["retriever"] == {"version": 1}
    again = run_plan(plan, progress=False).bench.runs
    assert (again["one"].tally.reused, again["two"].tally.reused) == (30, 0)


def test_changed_arguments_of_a_plan_are_not_reused(write, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "interrupted_retriever", raising=False)
    (tmp_path / "interrupted_retriever.py").write_text(
        textwrap.dedent("""
        def make(best, key):
            asked = []

            def search(text):
                asked.append(text)
                if len(asked) == 5 and best == "fees":
                    raise KeyboardInterrupt
                return [best]

            return search
        """)
    )

    def plan(best):
        return BenchmarkPlan.read(
            write(f"""
            timed = 0
            {HEAD}
            [retrievers.one]
            type = "python"
            call = "interrupted_retriever:make"
            arguments = {{ best = "{best}", key = "not-for-the-journal" }}
            """)
        )

    with pytest.raises(KeyboardInterrupt):
        run_plan(plan("fees"), progress=False)
    other = run_plan(plan("hours"), rerun="resume", progress=False).bench.runs["one"]
    assert (other.tally.reused, set(other.run["q01"])) == (0, {"hours"})
    assert other.settings["retriever"]["arguments"]
    assert "not-for-the-journal" not in str(other.settings)


def test_an_oracle_gets_the_judgments_of_the_benchmark(write):
    plan = BenchmarkPlan.read(
        write(f"""
        timed = 0
        {HEAD}
        [retrievers.best]
        type = "oracle"
        [retrievers.lots]
        type = "random"
        """)
    )
    bench = run_plan(plan, progress=False).bench
    assert bench.runs["best"].evaluate("nDCG").mean() == {"nDCG": 1.0}
    assert bench.runs["lots"].evaluate("nDCG@10").mean()["nDCG@10"] < 0.3


CIRCLE = "b = { type = 'hybrid', of = ['a'] }"
WRONG = {
    "no TOML": ("k = ", "not valid TOML"),
    "no collection": ("k = 5", "no collection"),
    "no retrievers": (HEAD, "no retriever"),
    "unknown key": (f"{HEAD}measure = ['RR']\n[retrievers.a]\ntype = 'random'", "'measure'"),
    "unknown key of the collection": (
        "[collection]\nsource = '.'\nsplits = 'x'\n[retrievers.a]\ntype = 'random'",
        "'splits'",
    ),
    "k is text": (f"k = '5'\n{HEAD}[retrievers.a]\ntype = 'random'", "whole number"),
    "k is true": (f"k = true\n{HEAD}[retrievers.a]\ntype = 'random'", "whole number"),
    "no type": (f"{HEAD}[retrievers.a]\nk1 = 2", "type is missing"),
    "unknown type": (f"{HEAD}[retrievers.a]\ntype = 'bm52'", "'bm52'"),
    "unknown limit": (f"{HEAD}[limits]\ntimeouts = 1\n[retrievers.a]\ntype = 'random'", "timeouts"),
    "bad limit": (f"{HEAD}[limits]\ntimeout = -1\n[retrievers.a]\ntype = 'random'", "timeout"),
    "limits of a retriever": (f"{HEAD}[retrievers.a]\ntype = 'random'\nlimits = 7", "retrievers.a.limits"),
    "unknown baseline": (f"baseline = 'x'\n{HEAD}[retrievers.a]\ntype = 'random'", "'x'"),
    "unknown option": (f"{HEAD}[retrievers.a]\ntype = 'bm25'\nk11 = 2", "'k11'"),
    "bad option": (f"{HEAD}[retrievers.a]\ntype = 'bm25'\nb = 7", "retrievers.a"),
    "missing option": (f"{HEAD}[retrievers.a]\ntype = 'hybrid'", "of"),
    "unknown part": (f"{HEAD}[retrievers.a]\ntype = 'hybrid'\nof = ['b', 'c']", "'b'"),
    "circle": (f"{HEAD}[retrievers]\na = {{ type = 'hybrid', of = ['b'] }}\n{CIRCLE}", "contain each other"),
    "unknown encoder": (f"{HEAD}[retrievers.a]\ntype = 'dense'\nencoder = {{ type = 'hash' }}", "'hash'"),
    "nothing to import": (f"{HEAD}[retrievers.a]\ntype = 'python'\ncall = 'no_such_module:f'", "no_such_module"),
    "no name to import": (f"{HEAD}[retrievers.a]\ntype = 'python'\ncall = 'math:f'", "math:f"),
    "k is nothing": (f"k = 0\n{HEAD}[retrievers.a]\ntype = 'random'", "k=0"),
    "timed is below nothing": (f"timed = -1\n{HEAD}[retrievers.a]\ntype = 'random'", "timed=-1"),
    "a price is text": (f"{HEAD}[retrievers.a]\ntype = 'random'\nprices = {{ tokens = 'a' }}", "retrievers.a"),
    "unknown measure": (f"measures = ['nDGC']\n{HEAD}[retrievers.a]\ntype = 'random'", "'nDGC'"),
    "parts only": (f"{HEAD}[retrievers.a]\ntype = 'random'\npart = true", "all retrievers are parts"),
    "an encoder that is no table": (
        f"{HEAD}[retrievers.a]\ntype = 'dense'\nencoder = 'hashing'",
        'encoder = { type = "hashing" }',
    ),
    "unknown option of a function": (f"{HEAD}[retrievers.a]\ntype = 'python'\ncal = 'math:sqrt'", "'cal'"),
    "arguments that are no table": (
        f"{HEAD}[retrievers.a]\ntype = 'python'\ncall = 'math:sqrt'\narguments = 3",
        "got 3",
    ),
    "arguments that are not taken": (
        f"{HEAD}[retrievers.a]\ntype = 'python'\ncall = 'queue:Queue'\narguments = {{ a = 1 }}",
        "calling Queue failed",
    ),
    "a module that fails": (
        f"{HEAD}[retrievers.a]\ntype = 'python'\ncall = 'fails_for_the_plan:f'",
        "ZeroDivisionError",
    ),
    "no call": (f"{HEAD}[retrievers.a]\ntype = 'python'", "cannot be imported"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_faults_of_a_plan_are_named_with_its_file(write, wrong):
    text, said = WRONG[wrong]
    path = write("")
    path.write_text(text)
    path.with_name("fails_for_the_plan.py").write_text("1 / 0\n")
    with pytest.raises(RankgaugeError) as caught:
        run_plan(BenchmarkPlan.read(path), progress=False)
    assert said in str(caught.value)
    assert str(path) in caught.value.where
    assert caught.value.fix


def test_a_class_that_is_named_in_a_plan_is_made_an_object(write, tmp_path):
    (tmp_path / "class_for_the_plan.py").write_text(
        "class Fixed:\n    def __call__(self, text):\n        return ['fees']\n"
    )
    plan = BenchmarkPlan.read(
        write(f"""
        timed = 0
        {HEAD}
        [retrievers.one]
        type = "python"
        call = "class_for_the_plan:Fixed"
        """)
    )
    assert set(run_plan(plan, progress=False).bench.runs["one"].run["q01"]) == {"fees"}


def test_a_missing_plan_is_named():
    with pytest.raises(InputError, match="there is no such file"):
        BenchmarkPlan.read("no-such-rankgauge.toml")


def test_a_retriever_that_cannot_run_does_not_stop_the_others(write):
    plan = BenchmarkPlan.read(
        write(f"""
        timed = 0
        {HEAD}
        [retrievers.gone]
        type = "saved-run"
        run = "no-such.run"
        [retrievers.lots]
        type = "random"
        """)
    )
    outcome = run_plan(plan, progress=False)
    assert list(outcome.bench.runs) == ["lots"]
    assert list(outcome.failed) == ["gone"]


def test_each_chunked_retriever_has_its_own_inner_retriever(write):
    plan = BenchmarkPlan.read(
        write(f"""
        timed = 0
        {HEAD}
        [retrievers.bm25]
        type = "bm25"
        [retrievers.passages]
        type = "chunked"
        retriever = "bm25"
        chunker = {{ type = "fixed", size = 200 }}
        [retrievers.both]
        type = "hybrid"
        of = ["bm25", "passages"]
        [retrievers.turned]
        type = "hybrid"
        of = ["passages", "bm25"]
        """)
    )
    outcome = run_plan(plan, progress=False)
    assert not outcome.failed
    assert [run.notes for run in outcome.bench.runs.values()] == [()] * 4
    both, turned = (outcome.bench.runs[name].evaluate("RR").mean() for name in ("both", "turned"))
    assert both == turned


def test_again_and_prices_are_passed_to_the_runs(write, tmp_path):
    (tmp_path / "counting_retriever.py").write_text(
        textwrap.dedent("""
        class Counting:
            calls = 0

            def __call__(self, text):
                Counting.calls += 1
                return ["x"]

            def usage(self):
                return {"calls": Counting.calls}
        """)
    )
    plan = BenchmarkPlan.read(
        write(f"""
        timed = 0
        {HEAD}
        [retrievers.counts]
        type = "python"
        call = "counting_retriever:Counting"
        arguments = {{}}
        settings = {{ version = 1 }}
        prices = {{ calls = 0.5 }}
        """)
    )
    first, second, third = (
        run_plan(plan, rerun=again, progress=False).bench.runs["counts"] for again in ("missing", "missing", "all")
    )
    assert (first.cost, second.cost, third.cost) == (500.0, 500.0, 500.0)
    assert [run.tally.reused for run in (first, second, third)] == [0, 30, 0]


@pytest.mark.parametrize("failure", ['OSError("disk full")', "SystemExit(3)"])
def test_a_retriever_that_cannot_index_does_not_stop_the_others(write, tmp_path, failure, monkeypatch):
    monkeypatch.delitem(sys.modules, "failing_retriever", raising=False)
    (tmp_path / "failing_retriever.py").write_text(
        textwrap.dedent(f"""
        class Fails:
            def index(self, documents):
                raise {failure}

            def search(self, queries, k):
                return []
        """)
    )
    plan = BenchmarkPlan.read(
        write(f"""
        timed = 0
        {HEAD}
        [retrievers.fails]
        type = "python"
        call = "failing_retriever:Fails"
        arguments = {{}}
        [retrievers.lots]
        type = "random"
        """)
    )
    outcome = run_plan(plan, progress=False)
    assert list(outcome.bench.runs) == ["lots"]
    message = failure.replace('("', ": ").replace('")', "").replace("(3)", ": 3")
    assert f"indexing failed: {message}" in str(outcome.failed["fails"])


def test_repeats_count_the_queries_whose_value_changes(write, tmp_path):
    (tmp_path / "shifting_retriever.py").write_text(
        textwrap.dedent("""
        import itertools

        turn = itertools.count()

        def search(text):
            return [f"x{next(turn)}"]
        """)
    )
    plan = BenchmarkPlan.read(
        write(f"""
        timed = 0
        {HEAD}
        [retrievers.shifts]
        type = "python"
        call = "shifting_retriever:search"
        """)
    )
    made = run_plan(plan, progress=False).bench
    (said,) = rankgauge.benchmark.repeat_plan(plan, made, 2, "RR")
    assert said.endswith("between 0.0000 and 0.0000 in 2 repetitions; its value differs for 0 of 30 queries")


def test_the_path_of_a_saved_run_is_relative_to_the_plan(write, tmp_path):
    rankgauge.write_run({"q01": {"loans-periods": 1.0}}, tmp_path / "old.run")
    plan = BenchmarkPlan.read(
        write(f"""
        {HEAD}
        [retrievers.old]
        type = "saved-run"
        run = "old.run"
        missing = "empty"
        """)
    )
    run = run_plan(plan, progress=False).bench.runs["old"]
    assert (run.tally.empty, run.latency) == (29, None)


def test_repeats_report_values_that_do_not_change(write, tmp_path):
    (tmp_path / "wavering_retriever.py").write_text(
        textwrap.dedent("""
        import itertools

        turn = itertools.count()

        def search(text):
            return ["loans-periods", "x"] if next(turn) % 3 else ["x", "loans-periods"]
        """)
    )
    plan = BenchmarkPlan.read(
        write(f"""
        timed = 0
        {HEAD}
        [retrievers.lots]
        type = "random"
        [retrievers.wavers]
        type = "python"
        call = "wavering_retriever:search"
        """)
    )
    made = run_plan(plan, progress=False).bench
    said = list(rankgauge.benchmark.repeat_plan(plan, made, 3, "RR"))
    assert said[0] == "lots: the same rankings and scores in 3 repetitions"
    assert said[1].startswith("wavers: ")
    assert not list(Path(made.store).glob("repeat-*"))
    with pytest.raises(InputError, match="repeat"):
        list(rankgauge.benchmark.repeat_plan(plan, made, 1, "RR"))


def test_a_fault_in_the_last_table_is_found_before_any_retriever_is_built(write, tmp_path):
    (tmp_path / "made_for_the_plan.py").write_text(
        "import pathlib\n\nclass Made:\n    def __init__(self):\n"
        "        pathlib.Path(__file__).with_name('made').touch()\n"
    )
    plan = BenchmarkPlan.read(
        write(f"""
        {HEAD}
        [retrievers.first]
        type = "python"
        call = "made_for_the_plan:Made"
        [retrievers.last]
        type = "dense"
        encoder = {{ type = "hashing", dimension = 64 }}
        """)
    )
    with pytest.raises(rankgauge.UnknownName, match="'dimension'") as caught:
        run_plan(plan, progress=False)
    assert "retrievers.last.encoder" in str(caught.value)
    assert not (tmp_path / "made").exists()
