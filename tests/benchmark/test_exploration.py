"""Configurations chosen on some queries and tested on others."""

import random
import sys

import pytest
from overlapping import Overlapping

from rankgauge.benchmark.comparison import before_after
from rankgauge.benchmark.exploration import explore
from rankgauge.corpus.chunking import TokenChunker
from rankgauge.corpus.collection import Collection
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.data.subsets import sample_queries
from rankgauge.diagnosis.diagnosis import diagnose
from rankgauge.errors import InputError, MissingExtra, UnknownName
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.retrievers import Chunked
from rankgauge.retrievers.protocol import index_documents, search

QRELS = {f"q{n:02}": {"d": 1} for n in range(60)}
SPACE = {"depth": [3, 1, 0, 2], "noise": ["high", "low"]}


def run_at(configuration):
    """The settings determine the rank of the relevant document, equally for nearly all queries."""
    rng = random.Random(repr(sorted(configuration.items())))
    place = configuration["depth"] + (configuration.get("noise") == "high")
    return {query: [*"uvwxyz"[: place + (rng.random() < 0.2)], "d"] for query in QRELS}


def ran(name, configuration):
    return Run.of(run_at(configuration), name=name), 0.001 * (5 - configuration["depth"])


def explored(space=SPACE, **options):
    seen = []

    def run(name, configuration):
        seen.append((name, configuration))
        return ran(name, configuration)

    options = {"measure": "RR", **options}
    return explore(dict, run, QRELS, space, **options), seen


def test_the_grid_is_tried_as_a_whole_in_its_order():
    found, seen = explored()
    assert [tuple(c.values()) for _, c in seen] == [
        (depth, noise) for depth in (3, 1, 0, 2) for noise in ("high", "low")
    ]
    assert [name for name, _ in seen] == [str(n) for n in range(1, 9)]
    assert found.best.configuration == {"depth": 0, "noise": "low"}
    assert (found.before, found.comparison, found.points) == (None, None, 8)


def test_values_are_those_of_the_named_queries():
    found, _ = explored(start={"depth": 2, "noise": "high"})
    assert set(found.tuning).isdisjoint(found.test)
    assert set(found.tuning) | set(found.test) == set(QRELS)
    assert len(found.tuning) == len(found.test) == 30
    assert tuple(sorted(found.tuning)) == sample_queries(Qrels.of(QRELS), 30)
    for trial in found.trials:
        run = run_at(trial.configuration)
        assert trial.value == evaluate(QRELS, run, "RR", queries=list(found.tuning)).mean()["RR"]
    for name, trial in (("best", found.best), ("before", found.before)):
        run = run_at(trial.configuration)
        mean = evaluate(QRELS, run, "RR", queries=list(found.test)).mean()["RR"]
        assert found.values[name] == pytest.approx(mean, abs=1e-15)


def test_only_the_best_and_todays_are_compared_on_the_test_queries():
    found, _ = explored(start={"depth": 2, "noise": "high"})
    assert set(found.comparison.evaluations[0].query_ids) == set(found.test)
    difference = found.comparison.difference("best")
    assert difference.baseline == "before"
    assert difference.difference == pytest.approx(found.values["best"] - found.values["before"])
    assert difference.verdict == "better"
    assert set(found.runs["best"].query_ids) == set(found.test)
    assert found.qrels.query_ids == tuple(q for q in QRELS if q in found.test)


def test_the_split_is_that_of_the_seed_and_the_share():
    small, _ = explored(tuning_share=0.1, seed=3)
    large, _ = explored(tuning_share=0.6, seed=3)
    other, _ = explored(tuning_share=0.6, seed=4)
    assert (len(small.tuning), len(large.tuning)) == (6, 36)
    assert set(small.tuning) < set(large.tuning)
    assert set(other.tuning) != set(large.tuning)
    assert explored(tuning_share=0.0001)[0].tuning != ()
    assert explored(tuning_share=0.9999)[0].test != ()


def test_todays_is_tried_first_once_and_wins_a_tie():
    start = {"depth": 1, "noise": "low"}
    found, seen = explored({"depth": [1, 2], "noise": ["low", "high"]}, start=start)
    assert seen[0] == ("before", start)
    assert len(seen) == 4
    assert found.best is found.before
    assert found.comparison is None
    assert any("is the best of those tried" in text for text in found.sentences)
    both, _ = explored({"label": ["b", "a"], "depth": [1]}, start={"depth": 1, "label": "a"})
    assert len(both.trials) == 2


def test_the_first_of_equal_trials_is_the_best():
    found = explore(dict, lambda *_: (run_at({"depth": 1}), None), QRELS, {"label": ["b", "a"]}, start={"label": "a"})
    assert len({trial.value for trial in found.trials}) == 1
    assert found.best.name == "before"


def test_trials_count_todays_if_it_is_in_the_space():
    inside, _ = explored(start={"depth": 1, "noise": "low"}, trials=3)
    outside, _ = explored(start={"depth": 7, "noise": "low"}, trials=3)
    assert [trial.name for trial in inside.trials] == ["before", "2", "3"]
    assert [trial.name for trial in outside.trials] == ["before", "1", "2", "3"]
    assert outside.sentences[0].startswith("3 of 8 configurations and the current one tried")


def test_settings_outside_the_space_are_unchanged():
    found, seen = explored({"depth": [0, 1]}, start={"depth": 5, "noise": "low", "label": "x"})
    assert seen[0][1]["depth"] == 5
    assert all(c["noise"] == "low" and c["label"] == "x" for _, c in seen)
    assert len(found.trials) == 3


def test_lower_is_better_where_the_measure_says_so():
    found, _ = explored(measure="FirstRel")
    assert found.best.configuration == {"depth": 0, "noise": "low"}
    assert found.lower


def test_a_failed_configuration_is_recorded_with_its_error():
    def build(configuration):
        if configuration["depth"] == 1:
            raise RuntimeError("no such model\nlong trace")
        return configuration

    found = explore(build, ran, QRELS, SPACE, measure="RR")
    failed = [trial for trial in found.trials if trial.error]
    assert [trial.error for trial in failed] == ["RuntimeError: no such model"] * 2
    assert all(trial.value != trial.value for trial in failed)
    assert found.warnings[0].startswith("2 configurations failed; 3: RuntimeError: no such model")
    assert [row[0] for row in found.table().rows[-2:]] == ["3", "4"]


def test_a_failure_of_todays_configuration_does_not_stop_the_others():
    def build(configuration):
        if configuration["depth"] == 3:
            raise OSError("gone")
        return configuration

    found = explore(build, ran, QRELS, SPACE, measure="RR", start={"depth": 3, "noise": "low"})
    assert found.before is None
    assert found.trials[0].error == "OSError: gone"
    with pytest.raises(InputError, match="no current configuration"):
        found.before_after()


def test_if_all_configurations_fail_the_first_error_is_reported():
    def build(_):
        raise KeyError("api_key")

    with pytest.raises(InputError, match=r"none of 8 configurations .*KeyError: 'api_key'"):
        explore(build, ran, QRELS, SPACE)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "run",
        ({"q01": ["d"]},),
        ({"q01": ["d"]}, "fast"),
        ({"q01": ["d"]}, -1.0),
        ({"q01": ["d"]}, float("nan")),
        ({"zz": ["d"]}, 0.1),
        (7, 0.1),
    ],
    ids=["none", "text", "one", "text-latency", "negative", "nan", "other-queries", "no-run"],
)
def test_invalid_answers_are_failures_with_a_reason(answer):
    def run(name, configuration):
        return answer if configuration["depth"] == 1 else ran(name, configuration)

    found = explore(dict, run, QRELS, {"depth": [1, 2]}, measure="RR")
    assert (found.trials[0].error != "") or answer == ({"zz": ["d"]}, 0.1)
    assert found.best.configuration == {"depth": 2}


@pytest.mark.parametrize("method", ["grid", "optuna"])
def test_an_interruption_keeps_the_finished_trials(method):
    def run(name, configuration):
        if name == "3":
            raise KeyboardInterrupt
        return ran(name, configuration)

    found = explore(dict, run, QRELS, SPACE, measure="RR", method=method, trials=8)
    assert len(found.trials) == 2
    assert "not all were tried: interrupted in number 3" in found.sentences


def test_an_interruption_before_the_first_trial_propagates():
    def run(_name, _configuration):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explore(dict, run, QRELS, SPACE)


def test_no_trial_begins_after_the_budget(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("rankgauge.benchmark.exploration.time.monotonic", lambda: clock[0])

    def run(name, configuration):
        clock[0] += 10
        return ran(name, configuration)

    found = explore(dict, run, QRELS, SPACE, measure="RR", budget=25)
    assert len(found.trials) == 3
    assert "not all were tried: the budget of 25 s was used up" in found.sentences
    assert found.sentences[0].startswith("3 of 8 configurations tried (grid)")


# ---- Optuna


def test_optuna_tries_each_configuration_once_and_the_same_each_time():
    pytest.importorskip("optuna")
    space = {"depth": list(range(6)), "noise": ["high", "low"], "label": [{"type": "a"}, None]}
    first, seen = explored(space, method="optuna", trials=15, seed=7)
    again, _ = explored(space, method="optuna", trials=15, seed=7)
    assert [t.configuration for t in first.trials] == [t.configuration for t in again.trials]
    assert len({repr(c) for _, c in seen}) == len(seen) == 15
    assert first.points == 24


def test_optuna_stops_after_all_configurations():
    pytest.importorskip("optuna")
    found, seen = explored(method="optuna", trials=100, start={"depth": 0, "noise": "high"})
    assert len(seen) == 8
    assert found.best.configuration == {"depth": 0, "noise": "low"}


@pytest.mark.parametrize("measure", ["RR", "FirstRel"])
def test_optuna_uses_the_direction_of_the_measure(measure):
    """With 400 configurations it gets closer to the best than the first 30 points of a grid."""
    pytest.importorskip("optuna")
    space = {"depth": [5, 4, 3, 2, 1, 0], "noise": ["high", "low"], "label": list(range(30))}
    found, seen = explored(space, method="optuna", trials=40, measure=measure)
    depths = [c["depth"] for _, c in seen]
    assert found.best.configuration["depth"] == 0
    assert sum(depths[20:]) < sum(depths[:20])


def test_optuna_continues_after_failures_without_output(capfd):
    pytest.importorskip("optuna")

    def build(configuration):
        if configuration["depth"] > 1:
            raise RuntimeError("broken")
        return configuration

    found = explore(build, ran, QRELS, SPACE, measure="RR", method="optuna", trials=8)
    assert len(found.trials) == 8
    assert sum(bool(trial.error) for trial in found.trials) == 4
    assert capfd.readouterr() == ("", "")


def test_without_optuna_the_install_command_is_shown(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"rankgauge\[tuning\]"):
        explored(method="optuna", trials=2)


# ---- reports


def test_two_differing_settings_are_reported_with_intermediate_steps():
    found, _ = explored({"depth": [0], "noise": ["low"]}, start={"depth": 2, "noise": "high", "label": "x"})
    assert any("2 settings (depth and noise): their effects cannot be separated" in s for s in found.sentences)
    assert found.untried == ({"depth": 0, "noise": "high", "label": "x"}, {"depth": 2, "noise": "low", "label": "x"})
    assert any("try one setting at a time: depth=0, noise=high; depth=2, noise=low" in s for s in found.sentences)


def test_one_setting_that_differs_is_named():
    found, _ = explored({"depth": [0, 1]}, start={"depth": 2})
    assert "the best and the current configuration differ in one setting: depth" in found.sentences
    assert found.untried == ()


def test_three_differing_settings_are_changed_from_both_ends():
    found, _ = explored(
        {"depth": [0], "noise": ["low"], "label": ["a"]}, start={"depth": 1, "noise": "high", "label": "b"}
    )
    assert len(found.untried) == 6


def test_the_ablation_has_the_neighbours_of_the_best():
    found, _ = explored()
    table = found.ablation()
    assert [row[:3] for row in table.rows] == [
        ("depth", "0", "3"),
        ("depth", "0", "1"),
        ("depth", "0", "2"),
        ("noise", "low", "high"),
    ]
    for row in table.rows:
        trial = next(trial for trial in found.trials if trial.name == row[5])
        assert row[4] == f"{trial.value - found.best.value:+.4f}"
    few, _ = explored({"depth": [0, 1], "noise": ["low"]}, start={"depth": 2, "noise": "high"})
    assert few.ablation().notes[1] == "no neighboring value was tried for: noise"


def test_few_queries_are_a_warning():
    qrels = {query: QRELS[query] for query in list(QRELS)[:12]}
    found = explore(dict, ran, qrels, SPACE, measure="RR", start={"depth": 3, "noise": "low"})
    assert "6 tuning and 6 test queries are too few" in found.warnings[0]
    assert not explored()[0].warnings
    tiny = explore(dict, ran, dict(list(qrels.items())[:2]), SPACE, measure="RR", start={"depth": 3, "noise": "low"})
    assert tiny.comparison is None


def test_the_front_is_of_quality_and_latency():
    found, _ = explored()
    # High depths are fast here, but worse, so all depths without noise are on the front.
    assert [t.configuration["depth"] for t in found.pareto] == [3, 2, 1, 0]
    assert {t.configuration["noise"] for t in found.pareto} == {"low"}
    assert found.plot().kind == "pareto"
    assert found.plot().panels[0].series[0].texts[-1] == "depth=0, noise=low"
    still = explore(dict, lambda n, c: (ran(n, c)[0], None), QRELS, SPACE, measure="RR")
    assert still.pareto == ()
    assert "ms/query" not in still.table().columns


def test_the_table_has_the_best_first():
    found, _ = explored(start={"depth": 2, "noise": "high"})
    table = found.table()
    assert table.columns == ("configuration", "depth", "noise", "RR, tuning", "ms/query", "")
    assert table.rows[0][1:3] == ("0", "low")
    assert table.rows[0][5] == "best, Pareto front"
    values = [row[3] for row in table.rows]
    assert values == sorted(values, reverse=True)
    lower, _ = explored(measure="FirstRel")
    values = [row[3] for row in lower.table().rows]
    assert values == sorted(values)
    assert "depth=0, noise=low" in repr(found)
    assert found.warnings == ()
    assert "depth=0, noise=low" in found._repr_html_()


# ---- before and after


def test_failure_patterns_are_compared():
    found, _ = explored(start={"depth": 5, "noise": "low"}, measure="nDCG@10")
    table = found.before_after(k=1)
    rows = {row[0]: row[1:] for row in table.rows}
    old, new = (diagnose(found.qrels, found.runs[name], k=1) for name in ("before", "best"))
    assert rows["queries that miss a relevant document in the top 1"] == (
        old.failing,
        new.failing,
        f"{new.failing - old.failing:+d}",
    )
    below = {t.cause.name: t for t in old.totals}["ranked below k"]
    assert rows["ranked below k: queries"][0] == below.queries == 30
    assert rows["ranked below k: documents"][0] == below.documents
    assert rows["nDCG@10"][0] == pytest.approx(found.values["before"])
    assert rows["nDCG@10"][2].startswith("+")


def test_diagnoses_of_different_data_are_not_compared():
    one = diagnose({"q": {"d": 1}}, {"q": ["d"]}, k=1)
    with pytest.raises(InputError, match="k is 1 before and 2 after"):
        before_after(one, diagnose({"q": {"d": 1}}, {"q": ["d"]}, k=2))


# ---- bad input


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"space": {}}, "for the space"),
        ({"space": {"depth": []}}, "values of 'depth'"),
        ({"space": {"depth": 3}}, "values of 'depth'"),
        ({"space": {"depth": "123"}}, "values of 'depth'"),
        ({"start": {"depth": 1}}, "has no noise"),
        ({"start": 3}, "current configuration"),
        ({"trials": 0}, "trials=0"),
        ({"trials": True}, "trials=True"),
        ({"budget": 0}, "budget=0"),
        ({"budget": float("nan")}, "budget=nan"),
        ({"tuning_share": 1}, "tuning_share=1"),
        ({"tuning_share": "half"}, "tuning_share='half'"),
        ({"seed": 1.5}, "seed=1.5"),
        ({"measure": "NumRet"}, "no better direction"),
        ({"method": "optuna"}, "a search with Optuna needs a limit"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_impossible_arguments_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        explored(**{"space": SPACE, **options})


def test_an_unknown_method_or_measure_is_refused():
    with pytest.raises(UnknownName, match="random"):
        explored(method="random")
    with pytest.raises(UnknownName, match="nDCGG"):
        explored(measure="nDCGG")


def test_one_query_cannot_be_split():
    with pytest.raises(InputError, match="1 judged query cannot be split"):
        explore(dict, ran, {"q01": {"d": 1}}, SPACE)


# ---- the whole exploration


def test_chunk_sizes_of_a_retriever_can_be_explored():
    pytest.importorskip("chonkie", reason="without chonkie (NumPy 2) nothing is cut")
    texts = {f"d{n}": f"filler words of no use word{n} and others more " * 3 for n in range(30)}
    collection = Collection.of(texts, {f"q{n}": f"word{n} use" for n in range(30)})
    qrels = {f"q{n}": {f"d{n}": 1} for n in range(30)}
    queries = list(collection.queries.values())

    def build(configuration):
        return Chunked(Overlapping(), TokenChunker(configuration["size"]), roll_up=configuration["roll_up"])

    def run(name, retriever):
        index_documents(retriever, collection.documents.values())
        hits = search(retriever, queries, 5)
        pairs = {q.id: dict(h.pairs()) for q, h in zip(queries, hits, strict=True)}
        return Run.of(pairs, name=name), None

    space = {"size": [4, 50], "roll_up": ["max", "sum"]}
    found = explore(build, run, qrels, space, start={"size": 4, "roll_up": "max"})
    assert len(found.trials) == 4
    assert not any(trial.error for trial in found.trials)
    assert found.best.value == 1.0
