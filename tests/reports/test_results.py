"""Every result of a public function prints, shows, and exports itself in the same way."""

import csv
import importlib
import inspect
import json
import math
import pkgutil
from datetime import UTC, datetime

import numpy as np
import pytest
from production_logs import write_clicks

import rankgauge
from rankgauge import judging, production
from rankgauge.comparison import trend_of
from rankgauge.core.escaping import dump_json, plain
from rankgauge.distributed.comparison import compare_sums
from rankgauge.distributed.worker import PairSums, sum_of
from rankgauge.llm import Usage
from rankgauge.rendering import Result
from rankgauge.reports import FORMATS, Options, render
from rankgauge.sample import sample_path

QRELS = rankgauge.read_qrels(sample_path("qrels.txt"))
BM25 = rankgauge.read_run(sample_path("runs/bm25.run"))
KEYWORD = rankgauge.read_run(sample_path("runs/keyword.run"))
COLLECTION = sample_path("qrels.txt").parent


class Retriever:
    """A run as a retriever."""

    def __init__(self, run):
        self._run = run

    def index(self, documents):
        """Do nothing."""

    def search(self, queries, k):
        return [list(self._run[query.id].items())[:k] for query in queries]


def benchmark(folder):
    made = rankgauge.Benchmark(COLLECTION, store=folder)
    made.run("bm25", Retriever(BM25))
    made.run("keyword", Retriever(KEYWORD))
    return made


def history(folder):
    made = rankgauge.History(folder / "h.db")
    for run in (BM25, KEYWORD):
        made.add(rankgauge.evaluate(QRELS, run, "nDCG@10"), QRELS)
    return made


def project(folder):
    """A judging project of the sample with a pool and one choice."""
    made = judging.JudgingProject.create(folder / "j.db")
    made.add_questions(judging.load_questions(sample_path("queries.jsonl")))
    judging.build_pool(made, COLLECTION, [sample_path("runs/bm25.run")], k=3)
    ann, _ = made.add_judge("Ann")
    shown = made.next_task(ann.id).presentation
    made.record(judging.Choice("c1", shown.id, ann.id, "chosen", shown.documents[:1]))
    return made


def log(folder):
    """A production log with answers and ratings."""
    pytest.importorskip("duckdb", reason="logs need DuckDB")
    pytest.importorskip("pyarrow", reason="logs need pyarrow")
    from tests.online_loops import random_events, write_events

    return write_events(folder / "log.parquet", random_events(1))


def clicks(folder):
    """A log of interleaved results with clicks, in two arms."""
    pytest.importorskip("duckdb", reason="logs need DuckDB")
    return write_clicks(folder / "clicks.parquet")


def answers():
    """Two manually judged answers; one of them abstains."""
    given = [("q1", "It is so.", "It is so."), ("q2", "I don't know.", "It is not.")]
    made = rankgauge.answers.AnswerSet(
        "a",
        tuple(
            rankgauge.answers.AnswerRecord(
                name, "Is it?", text, (rankgauge.answers.Context("d", "So it is."),), known, gold=("d",)
            )
            for name, text, known in given
        ),
    )
    judged = [rankgauge.answers.items_of(one, rankgauge.answers.sentence_claims(one)) for one in made]
    return made, {item.key: "supported" for items in judged for item in items}


def calibrated():
    """The answers, with verdicts of a judge and of a person on all items."""
    made, _ = answers()
    answered = rankgauge.answers
    keys = {item.key: item.relation for one in made for item in answered.items_of(one, answered.sentence_claims(one))}
    given = [
        [
            answered.Verdict(key, answered.verdicts.LABELS[relation][(at + shift) % 2], name)
            for at, (key, relation) in enumerate(keys.items())
        ]
        for shift, name in enumerate(("judge", "person"))
    ]
    return made, *given


PACKAGES = [
    importlib.import_module(f"rankgauge.{found.name}")
    for found in pkgutil.iter_modules(rankgauge.__path__)
    if found.ispkg
]


def distributed_comparison():
    """Two runs compared from sums of their values for four queries."""
    a, b = np.array([0.5, 1.0, 0.0, 0.25]), np.array([1.0, 1.0, 0.5, 0.25])
    values = {("a", "RR"): sum_of("RR", a), ("b", "RR"): sum_of("RR", b)}
    sums = {("b", "a", "RR"): PairSums.of(b - a)}
    design = rankgauge.comparison.Design(("RR",), "a", test="t", interval="t")
    return compare_sums(("a", "b"), design, values, sums, {}, skip_undefined=False)


def ubi_log(folder):
    """A question, and an invalid row."""
    row = {"query_id": "q", "user_query": "why?", "timestamp": "2026-05-01T12:00:00Z"}
    (folder / "ubi.jsonl").write_text(json.dumps(row) + "\n{}\n", encoding="utf-8")
    return folder / "ubi.jsonl"


def drift():
    queries = rankgauge.Collection.read(COLLECTION).queries
    asked = [f"{first} {second}" for first in "abcde" for second in ("one", "two", "three")]
    return production.measure_drift(queries, asked, permutations=19)


def project_with_a_run(folder):
    """Return a project over the sample with a saved evaluation."""
    text = f"[collection]\nsource = '{sample_path('corpus.jsonl').parent}'\n"
    (folder / "rankgauge.toml").write_text(text, encoding="utf-8")
    found = rankgauge.Project(folder)
    found.evaluate(BM25)
    return found


RESULTS = {
    "AnswerDiagnosis": lambda _: rankgauge.answers.diagnose_answers(rankgauge.answers.evaluate_answers(*answers())),
    "AnswerEvaluation": lambda _: rankgauge.answers.evaluate_answers(*answers()),
    "AnswerJudging": lambda folder: rankgauge.answers.judge_answers(
        answers()[0], rankgauge.answers.RuleJudge(), rankgauge.answers.VerdictStore(folder / "verdicts.db")
    ),
    "ClaimExtraction": lambda _: rankgauge.answers.ClaimExtraction(
        "small claims-1", 3, 1, {"server": 1}, Usage(calls=1)
    ),
    "Blame": lambda _: rankgauge.answers.diagnose_answers(rankgauge.answers.evaluate_answers(*answers())).blame,
    "Calibration": lambda _: rankgauge.answers.calibrate(*calibrated()),
    "CorrectedMeans": lambda _: rankgauge.answers.correct_means(*calibrated()),
    "Evaluation": lambda _: rankgauge.evaluate(QRELS, BM25),
    "DistributedComparison": lambda _: distributed_comparison(),
    "Comparison": lambda _: rankgauge.compare(QRELS, [BM25, KEYWORD]),
    "RunDiff": lambda _: rankgauge.diff(QRELS, BM25, KEYWORD),
    "Overlap": lambda _: rankgauge.rbo(BM25, KEYWORD),
    "Diagnosis": lambda _: rankgauge.diagnose(QRELS, BM25),
    "DriftReport": lambda _: drift(),
    "ReweightedMeans": lambda _: drift().reweight(rankgauge.evaluate(QRELS, BM25)),
    "GateResult": lambda _: rankgauge.gate(QRELS, KEYWORD, baseline=rankgauge.Baseline.from_run(QRELS, BM25)),
    "CheckResult": lambda _: rankgauge.check(QRELS, [BM25]),
    "Explanation": lambda _: rankgauge.explain(QRELS, BM25, "nDCG@10"),
    "Reconciliation": lambda _: rankgauge.reconcile(QRELS, BM25, "nDCG@10", "beir"),
    "Reproduction": lambda _: rankgauge.reproduce(QRELS, BM25, "nDCG@10", 0.6390),
    "TieReport": lambda _: rankgauge.tie_report(QRELS, BM25),
    "DecidingDocuments": lambda _: rankgauge.comparison.deciding_documents(QRELS, BM25, KEYWORD),
    "UnjudgedReport": lambda _: rankgauge.unjudged_report(QRELS, BM25),
    "Reliability": lambda _: rankgauge.reliability(QRELS, [BM25, KEYWORD]),
    "BenchmarkRun": lambda folder: benchmark(folder).runs["bm25"],
    "BenchmarkComparison": lambda folder: benchmark(folder).compare(),
    "Exploration": lambda _: rankgauge.explore(dict, lambda *_: (BM25, None), QRELS, {"k": [1, 2]}, start={"k": 1}),
    "TunedFusion": lambda _: rankgauge.tune_fusion(QRELS, [BM25, KEYWORD], folds=2),
    "CollectionInfo": lambda _: rankgauge.describe_collection(COLLECTION),
    "HistoryEntries": lambda folder: history(folder).entries(),
    "HistoryEntry": lambda folder: history(folder).entry(1),
    "Trend": lambda folder: trend_of(history(folder), "nDCG@10"),
    "Conversion": lambda folder: rankgauge.convert(sample_path("qrels.txt"), folder / "qrels.csv"),
    "JudgingAgreement": lambda folder: judging.measure_agreement(project(folder).judgments(), {}),
    "JudgingPlan": lambda _: judging.plan_judging(0.05, sd=0.2),
    "JudgmentExport": lambda folder: judging.export_judgments(project(folder)),
    "JudgmentImport": lambda folder: judging.import_judgments(project(folder), sample_path("qrels.txt")),
    "ExperimentResult": lambda folder: production.compare_arms(clicks(folder), primary="search_ctr"),
    "ImplicitJudgments": lambda folder: production.implicit_judgments(clicks(folder)),
    "InterleavingResult": lambda folder: production.analyze_interleaving(clicks(folder)),
    "LogSummary": lambda _: rankgauge.production.LogSummary(
        "log", {"question": 2, "click": 1}, 2, datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 2, tzinfo=UTC)
    ),
    "LogImport": lambda folder: rankgauge.production.import_log(ubi_log(folder), folder / "log"),
    "ModelJudging": lambda _: judging.ModelJudging(
        judging.Judge("m", "model", kind="model"), 3, 1, {"none": 1}, {"server": 1}, 0, Usage()
    ),
    "Alerts": lambda folder: production.find_alerts(
        production.online_metrics(log(folder), by="week"),
        [production.Threshold("thumbs_ratio", above=True, number=0.1)],
    ),
    "OnlineMetrics": lambda folder: rankgauge.production.online_metrics(
        log(folder), thresholds=["thumbs_ratio < 0.5"], by="day"
    ),
    "PoolReport": lambda folder: judging.build_pool(project(folder), COLLECTION, [sample_path("runs/keyword.run")]),
    "ProductionHealth": lambda folder: rankgauge.production.production_health(
        log(folder), [(datetime(2026, 5, 1, tzinfo=UTC), 0.5)]
    ),
    "ProjectStatus": lambda folder: project_with_a_run(folder).status(),
    "JudgingStatus": lambda folder: judging.judging_status(project(folder)),
    "Relevance": lambda folder: judging.measure_relevance(project(folder).judgments()),
    "VoteReport": lambda folder: judging.vote_report(project(folder)),
    "GeneratedQuestions": lambda _: production.GeneratedQuestions(
        (production.ProposedQuestion("d1", "late fees", longest_run=2, overlap=0.1),),
        "model",
        {"question": "question-1"},
        0,
        1,
        10,
        "BM25",
        Usage(),
        "2026-05-01",
    ),
    "GroupMeans": lambda _: rankgauge.evaluation.group_means(
        rankgauge.evaluate(QRELS, BM25, "RR", groups=dict.fromkeys(QRELS.query_ids, "all of them"))
    ),
    "QuestionSample": lambda _: production.sample_questions(sample_path("queries.jsonl"), 3),
    "QuestionSet": lambda _: production.QuestionSet.read(sample_path("queries.jsonl")),
    "SetRefresh": lambda _: production.QuestionSet().refresh(
        production.QuestionSet.read(sample_path("queries.jsonl")).questions
    ),
    "SpanScores": lambda _: rankgauge.corpus.span_scores(
        {"q": [rankgauge.corpus.Span("d", 0, 5)]}, {"q": [rankgauge.corpus.Span("d", 2, 9)]}
    ),
}


NO_TABLE = {"CheckResult", "Conversion"}  # texts


@pytest.fixture(params=RESULTS, scope="module")
def result(request, tmp_path_factory):
    made = RESULTS[request.param](tmp_path_factory.mktemp("result"))
    assert type(made).__name__ == request.param
    return made


def test_a_result_is_printed_shown_and_written(result):
    pytest.importorskip("pandas", reason="data frames need pandas")
    assert isinstance(result, Result)
    printed = str(result)
    assert printed.strip()
    assert not printed.endswith("\n")
    assert printed in render(result) or type(result).__name__ == "Conversion"
    rendered = {format: render(result, format) for format in FORMATS}
    assert all(text.endswith("\n") for text in rendered.values())
    assert "<table" in rendered["html"]
    assert result._repr_html_().startswith(result.to_html())
    assert result.to_html() == rendered["html"] == result._repr_html_() or isinstance(
        result, rankgauge.comparison.Comparison
    )
    assert "|" in result.to_markdown()
    assert "\\begin{tabular}" in result.to_latex()
    assert result.to_csv().count("\n") >= 1
    if not isinstance(result, rankgauge.Evaluation | rankgauge.benchmark.BenchmarkRun | rankgauge.store.HistoryEntries):
        assert list(result.to_frame().columns) == next(csv.reader(result.to_csv().splitlines()))
    assert len(result.to_frame().columns) >= 1
    summary = result.summary()
    assert summary
    assert "\n" not in summary
    assert len(summary) < 500


def test_a_result_has_a_short_repr_and_prints_its_table(result):
    assert len(repr(result)) < 200
    assert "\n" not in repr(result)
    printed = str(result)
    assert type(result).__name__ + "(" not in printed
    # Every table has a line below its header.
    assert "───" in printed or type(result).__name__ in NO_TABLE
    if not isinstance(result, rankgauge.corpus.Conversion):
        # Except for the path of a file.
        wide = (line for line in printed.splitlines() if len(line) > 80)
        assert all(max(map(len, line.split())) > 40 for line in wide)
        assert render(result).removesuffix("\n") == printed


def test_json_is_the_dict_and_has_no_nan(result):
    data = result.to_dict()
    assert isinstance(data, dict)
    assert json.loads(result.to_json(), parse_constant=pytest.fail) == data
    assert render(result, "json") == result.to_json() + "\n"


def test_every_class_of_results_is_here():
    found = set()
    for module in PACKAGES:
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isclass(value) and issubclass(value, Result) and value is not Result:
                found.add(name)
    assert found == set(RESULTS)


def test_every_class_with_json_or_a_table_is_a_result():
    """Only results have methods for the common output formats."""
    for module in PACKAGES:
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if not inspect.isclass(value) or issubclass(value, Result):
                continue
            assert not hasattr(value, "table") or name == "Change", name
            assert "_repr_html_" not in vars(value) or name == "Plot", name


def test_several_results_are_one_report():
    runs = [rankgauge.evaluate(QRELS, run, "RR") for run in (BM25, KEYWORD)]
    assert render(runs).splitlines()[2].startswith("bm25")
    assert render(runs, "json").count("\n") == 2
    assert "q01" in render(runs, "table", Options(per_query=True))


def test_what_json_does_not_have_is_null_or_text():
    given = {"a": math.nan, "b": (math.inf, 1), "m": rankgauge.parse("nDCG@10"), 3: {1.5}}
    assert plain(given) == {"a": None, "b": [None, 1], "m": "nDCG@10", "3": [1.5]}
    assert dump_json(["a\x9b"]) == '["a\\u009b"]'
