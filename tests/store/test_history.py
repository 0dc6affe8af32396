"""The store: saved evaluations are read back exactly, from a file and from a server."""

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from growth import assert_linear
from hypothesis import given, strategies as st

import rankgauge
from rankgauge import Evaluation, Finding, History, InputError, MismatchError, Policies, Run, evaluate, parse
from rankgauge.answers import (
    AnswerEvaluation,
    AnswerRecord,
    AnswerSet,
    Context,
    evaluate_answers,
    items_of,
    sentence_claims,
)
from rankgauge.comparison import trend_of

QRELS = {f"q{n}": {"d1": 1, "d2": 3} for n in range(6)} | {"empty": {"d1": 0}}
RUN = Run.of({f"q{n}": ["d2", "x", "d1"][n % 3 :] for n in range(6)}, name="mine", settings={"k1": [0.9]})
MEASURES = ["nDCG@10", "RR", "GMAP", "NumRet", "FirstRel"]


def made(**choices) -> Evaluation:
    return evaluate(QRELS, RUN, MEASURES, **choices)


def full() -> Evaluation:
    ids = list(QRELS)
    return made(
        weights={query: 0.1 * (n + 1) for n, query in enumerate(ids)},
        groups={query: f"gröup {n % 2}" for n, query in enumerate(ids)},
        undefined="skip",
        ties="input",
    )


def bits(evaluation: Evaluation) -> bytes:
    return np.ascontiguousarray(evaluation.per_query).tobytes()


def test_an_evaluation_round_trips_bit_for_bit(where):
    with History(where) as history:
        for evaluation in (made(), full()):
            entry = history.add(evaluation, QRELS, run=RUN)
            back = history.load(entry.id)
            assert back == evaluation
            assert bits(back) == bits(evaluation)
            assert back.to_json() == evaluation.to_json()
            assert back.mean() == evaluation.mean()


def of_answers():
    """Return an evaluation of five answers: one is judged, one partly, and one is undefined."""
    texts = ("It is 1 meters high. It is old.", "It is 2 meters high. It is new.", "", "It is 4 meters high.", None)
    records = tuple(
        AnswerRecord(f"q{n}", "How high?", text, (Context("d", "It is 1 meters high."),), group="g")
        for n, text in enumerate(texts)
    )
    items = [i for record in records for i in items_of(record, sentence_claims(record))]
    labels = {
        item.key: "supported"
        for item in items
        if item.relation == "answer-context" and (item.record, item.row) in {("q0", 0), ("q0", 1), ("q1", 0)}
    }
    return evaluate_answers(
        AnswerSet("a", records), labels, ["Faithfulness", "NotStated", "TokenF1"], judge={"name": "ann", "person": True}
    )


def test_bounds_and_missing_verdicts_of_answers_are_saved(where):
    saved = of_answers()
    assert saved.missing() == {"Faithfulness": 2, "NotStated": 2, "TokenF1": 0}
    with History(where) as history:
        entry = history.add(saved)
        back = history.load(entry)
        assert isinstance(back, AnswerEvaluation)
        assert back == saved
        assert back.bounds()["Faithfulness"] == saved.bounds()["Faithfulness"] == (0.5, 1.0)
        assert (back.missing(), back.stamp) == (saved.missing(), "ann, a person")
        assert str(back) == str(saved)
        assert back.to_json() == saved.to_json()


def test_answers_that_an_earlier_version_saved_have_their_values_alone(tmp_path):
    saved = of_answers()
    with History(tmp_path / "h.db") as history:
        entry = history.add(saved)
        with closing(sqlite3.connect(tmp_path / "h.db")) as connection, connection:
            connection.execute("DELETE FROM rankgauge_values WHERE kind = 'own'")
        back = history.load(entry)
    assert type(back) is Evaluation
    assert bits(back) == bits(saved)


@pytest.mark.parametrize(
    "body", [b"[]", b'{"scores": [[1]], "judge": {}}', b'{"scores": 1, "judge": {}}', b'{"sc', b"3"]
)
def test_scores_that_are_not_those_of_the_values_are_damage(tmp_path, body):
    with History(tmp_path / "h.db") as history:
        entry = history.add(of_answers())
        with closing(sqlite3.connect(tmp_path / "h.db")) as connection, connection:
            connection.execute("UPDATE rankgauge_values SET body = ? WHERE kind = 'own'", [zlib.compress(body)])
        with pytest.raises(InputError, match="damaged"):
            history.load(entry)


def test_metadata_of_an_evaluation_are_those_given(where):
    moment = datetime(2026, 1, 5, 12, 30, tzinfo=timezone(timedelta(hours=2)))
    with History(where) as history:
        entry = history.add(
            full(),
            QRELS,
            run=RUN,
            label="release 2.1",
            settings={"latency_ms": 12.5, "models": ["e5", "bge"]},
            time=moment,
        )
        assert history.entry(entry.id) == entry == history.entries()[0]
    assert entry.time == datetime(2026, 1, 5, 10, 30, tzinfo=UTC)
    assert (entry.run, entry.label, entry.queries, entry.weighted) == ("mine", "release 2.1", 7, True)
    assert dict(entry.settings) == {"latency_ms": 12.5, "models": ["e5", "bge"]}
    assert dict(entry.run_settings) == {"k1": [0.9]}
    assert dict(entry.means) == full().mean()
    assert entry.policies == Policies(ties="input", undefined="skip")
    assert entry.notes == full().notes
    assert entry.qrels == rankgauge.data.fingerprint(rankgauge.Qrels.of(QRELS))
    assert entry.ranking == rankgauge.data.fingerprint(RUN)
    assert set(entry.versions) == {"rankgauge", "python", "numpy"}


def test_numbers_count_up_and_are_not_used_again(where):
    with History(where) as history:
        ids = [history.add(made(), QRELS).id for _ in range(3)]
        gone = history.delete(ids[-1])
        assert gone.id == ids[-1]
        assert history.add(made(), QRELS).id == ids[-1] + 1
        assert [entry.id for entry in history.entries()] == [1, 2, 4]
        with pytest.raises(InputError, match="there is no evaluation 3 among the 3 saved"):
            history.load(3)


def test_entries_keep_the_order_in_which_they_were_saved_whatever_the_clock_says(where):
    with History(where) as history:
        for day in (3, 1, 1, 2):
            history.add(made(), QRELS, time=datetime(2026, 1, day))  # noqa: DTZ001 - taken as UTC
        history.add(made(), QRELS)
        entries = history.entries()
        assert [entry.id for entry in entries] == [1, 2, 3, 4, 5]
        assert [entry.time.day for entry in entries[:4]] == [3, 1, 1, 2]
        trend = trend_of(history, "RR")
        assert [point.entry.id for point in trend.points] == [1, 2, 3, 4, 5]
        assert [row[0] for row in trend.table(1).rows] == [5]
        shown = rankgauge.reports.render(entries, "csv", rankgauge.reports.Options(last=2)).splitlines()
        assert [line.split(",")[0] for line in shown] == ["id", "4", "5"]


def test_a_time_may_be_a_datetime_a_date_or_text(where):
    with History(where) as history:
        for time in (
            datetime(2026, 1, 5, tzinfo=UTC),
            datetime(2026, 1, 5),  # noqa: DTZ001 - taken as UTC
            datetime(2026, 1, 5, 2, tzinfo=timezone(timedelta(hours=2))),
            date(2026, 1, 5),
            "2026-01-05",
            "2026-01-05T02:00:00+02:00",
        ):
            entry = history.add(made(), QRELS, time=time)
            assert entry.time == datetime(2026, 1, 5, tzinfo=UTC)
            assert history.entry(entry.id) == entry


@pytest.mark.parametrize("given", ["yesterday", 1767571200, "2026-13-01", "", "0001-01-01T00:00:00+02:00"])
def test_an_invalid_time_is_refused_with_valid_forms(tmp_path, given):
    with (
        History(tmp_path / "store.db") as history,
        pytest.raises(InputError, match="expected a time\\nfix: pass a datetime, a date, or ISO text"),
    ):
        history.add(made(), QRELS, time=given)


def test_entries_can_be_filtered_by_run_and_measure(where):
    with History(where) as history:
        history.add(replace(made(), run_name="a\x00\udcff'; --"), QRELS)
        history.add(evaluate(QRELS, RUN, "AP"), QRELS)
        assert [entry.id for entry in history.entries(run="a\x00\udcff'; --")] == [1]
        assert history.load(1).run_name == "a\x00\udcff'; --"
        assert [entry.id for entry in history.entries(measure="map")] == [2]
        assert history.entries(run="nobody") == ()


def test_queries_are_stored_once_for_all_their_evaluations(tmp_path):
    path = tmp_path / "store.db"
    with History(path) as history:
        first, second = (history.add(made(), QRELS) for _ in range(2))
        other = history.add(evaluate(QRELS, RUN, "RR", queries=["q1", "q2"]), QRELS)
        assert first.query_set == second.query_set != other.query_set
        assert rows(path, "rankgauge_queries") == 2
        history.delete(other)
        assert rows(path, "rankgauge_queries") == 1
        assert history.load(first) == made()


def rows(path, table: str) -> int:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    finally:
        connection.close()


# No measure exceeds this, and sums of a few values are still finite.
VALUES = st.floats(-1e100, 1e100) | st.just(np.nan)


@pytest.mark.slow
@given(
    st.lists(st.lists(VALUES, min_size=2, max_size=2), min_size=1, max_size=6),
    st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text(), max_size=3),
)
def test_any_evaluation_comes_back_as_it_was(tmp_path_factory, values, settings):
    array = np.array(values, dtype=np.float64)
    evaluation = Evaluation(
        run_name="any",
        query_ids=tuple(f"q{n}" for n in range(len(values))),
        measures=(parse("nDCG@10"), parse("P(rel=2)@5")),
        per_query=array,
        policies=Policies(),
        counts={"queries": len(values)},
        settings=settings,
        findings=(Finding("", "info", "one \ud800 note"),),
    )
    with History(tmp_path_factory.mktemp("any") / "store.db") as history:
        back = history.load(history.add(evaluation, QRELS, settings=settings))
    assert back == evaluation
    assert bits(back) == bits(evaluation)


@pytest.mark.parametrize(
    "settings",
    [{"a": (1, 2)}, {1: "a"}, {"a": float("nan")}, {"a": {1, 2}}, {"a": object()}],
    ids=["a tuple", "a key that is a number", "NaN", "a set", "an object"],
)
def test_settings_that_do_not_round_trip_are_refused(settings, tmp_path):
    with History(tmp_path / "store.db") as history:
        with pytest.raises(InputError, match="the settings cannot be stored"):
            history.add(made(), QRELS, settings=settings)
        with pytest.raises(InputError, match="the settings of the run cannot be stored"):
            history.add(replace(made(), settings=settings), QRELS)
    assert not (tmp_path / "store.db").exists()


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"label": "two\nlines"}, "for the label"),
        ({"label": 3}, "for the label"),
        ({"label": "x" * 201}, "for the label"),
        ({"settings": ["a"]}, "for the settings"),
    ],
)
def test_a_label_is_a_line_and_settings_are_a_mapping(choices, said, tmp_path):
    with History(tmp_path / "h.db") as history, pytest.raises(InputError, match=said):
        history.add(made(), QRELS, **choices)


def test_only_evaluations_are_saved(tmp_path):
    with History(tmp_path / "h.db") as history, pytest.raises(InputError, match="got dict"):
        history.add(made().mean(), QRELS)


def test_judgments_that_lack_a_query_are_not_those_it_was_made_with(tmp_path):
    history = History(tmp_path / "h.db")
    with pytest.raises(MismatchError, match="query 'q0' of the evaluation is not in these"):
        history.add(made(), {"q1": {"d1": 1}})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", [3, b"h.db", ["h.db"]])
def test_a_place_is_a_path_or_a_url(where):
    with pytest.raises(InputError, match="expected a path or a URL"):
        History(where)


def test_a_measure_unknown_to_this_version_keeps_its_stored_definition(tmp_path):
    path = tmp_path / "h.db"
    with History(path) as history:
        entry = history.add(evaluate(QRELS, RUN, "RR"), QRELS)
        connection = sqlite3.connect(path)
        ((moment, head),) = connection.execute("SELECT time, head FROM rankgauge_evaluations")
        head = head.replace('"RR"', '"Rx"')
        seal = hashlib.sha256(f"{moment}\n{head}".encode()).hexdigest()
        connection.execute("UPDATE rankgauge_evaluations SET head = ?, seal = ?", (head, seal))
        connection.commit()
        connection.close()
        assert list(history.entries()[0].means) == ["Rx"]
        with pytest.raises(rankgauge.UnknownName, match="unknown measure 'Rx'"):
            history.load(entry.id)


def test_grades_of_records_are_part_of_their_judgments(tmp_path):
    # d2 has a grade and is not relevant: only measures of gains read it.
    kept = [
        rankgauge.Records.of(
            [{"id": "q", "retrieved": ["d1", "d2"], "relevant": {"d1"}, "relevance_scores": {"d1": 1, "d2": top}}]
        )
        for top in (2, 3)
    ]
    assert rankgauge.data.fingerprint(kept[0].qrels) == rankgauge.data.fingerprint(kept[1].qrels)
    with History(tmp_path / "h.db") as history:
        one, other = (history.add(evaluate(each, measures="RR"), each) for each in kept)
    assert one.qrels != other.qrels


def test_records_are_judgments_and_run_at_once(tmp_path):
    records = rankgauge.Records.of([("q", ["d1", "d2"], {"d2"})])
    with History(tmp_path / "h.db") as history:
        entry = history.add(evaluate(records, measures="RR"), records)
    assert entry.qrels == rankgauge.data.fingerprint(records.qrels)
    assert entry.ranking == rankgauge.data.fingerprint(records.run)


@pytest.mark.parametrize("which", [0, -1, 99, 2**40, True, "run", "#0", "other#1", "other@latest", 1.0, None])
def test_an_invalid_number_is_reported(which, tmp_path):
    with History(tmp_path / "h.db") as history:
        history.add(made(), QRELS)
        with pytest.raises(InputError, match="evaluation"):
            history.load(which)


def test_the_default_place_is_a_folder_of_ours_or_what_the_variable_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANKGAUGE_STORE", raising=False)
    with History() as history:
        assert history.where == ".rankgauge/store.db"
        assert not (tmp_path / ".rankgauge").exists()
        history.add(made(), QRELS)
    assert (tmp_path / ".rankgauge" / "store.db").exists()
    monkeypatch.setenv("RANKGAUGE_STORE", str(tmp_path / "own.db"))
    assert History().where == str(tmp_path / "own.db")
    assert History("other.db").where == "other.db"


def test_no_more_files_stay_than_the_one(tmp_path):
    with History(tmp_path / "store.db") as history:
        history.add(made(), QRELS)
        history.entries()
    assert {path.name for path in tmp_path.iterdir()} == {"store.db", "store.db.artifacts"}


# ---- concurrency and sudden ends

SAVES = """
import sys
from rankgauge import History, evaluate
qrels = {f"q{n}": {"d1": 1} for n in range(5)}
with History(sys.argv[1]) as history:
    for number in range(int(sys.argv[2])):
        run = {f"q{n}": ["x"] * 0 + ["d1"] for n in range(5)}
        history.add(evaluate(qrels, run, ["RR", "AP"]), qrels, settings={"by": sys.argv[3]})
        print(number, flush=True)
"""


def writer(where: str, number: int, name: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", SAVES, where, str(number), name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_two_writers_lose_nothing(where):
    processes = [writer(where, 50, name) for name in "ab"]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    with History(where) as history:
        entries = history.entries()
        assert sorted(entry.settings["by"] for entry in entries) == ["a"] * 50 + ["b"] * 50
        assert sorted(entry.id for entry in entries) == list(range(1, 101))
        assert history.load(entries[0]).mean() == {"RR": 1.0, "AP": 1.0}


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9")
def test_a_kill_during_a_save_leaves_a_good_store(tmp_path):
    path = tmp_path / "store.db"
    told = 0
    for attempt in range(8):
        process = writer(str(path), 10_000, "a")
        process.stdout.readline()
        told += 1
        time.sleep(0.013 * attempt)
        process.send_signal(signal.SIGKILL)
        told += len(process.stdout.readlines())
        process.stderr.close()
        process.stdout.close()
        process.wait()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    with History(path) as history:
        entries = history.entries()
        # Everything reported as saved is there, plus at most one more for each kill.
        assert told <= len(entries) <= told + 8
        assert all(history.load(entry).mean() == {"RR": 1.0, "AP": 1.0} for entry in entries)


@pytest.mark.slow
def test_a_list_of_ten_thousand_takes_linear_time(tmp_path):
    """Rows are copied inside the database."""
    path = tmp_path / "store.db"
    with History(path) as history:
        history.add(made(), QRELS, run=RUN)

    def fill(count):
        connection = sqlite3.connect(path)
        connection.execute("DELETE FROM rankgauge_evaluations WHERE id > 1")
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
            "INSERT INTO rankgauge_evaluations SELECT n.i, time, run, queries, head, seal "
            "FROM rankgauge_evaluations, n",
            (count,),
        )
        connection.commit()
        connection.close()
        return count

    def entries(count):
        with History(path) as history:
            assert len(history.entries()) == count

    assert_linear(fill, entries, 1250)


def test_json_of_an_evaluation_from_the_store_is_by_the_schema(tmp_path):
    with History(tmp_path / "h.db") as history:
        text = history.load(history.add(full(), QRELS)).to_json()
    assert json.loads(text)["schema"] == "rankgauge/evaluation/1"
    assert Evaluation.from_json(text) == full()


def test_the_default_store_is_that_of_the_project_above_with_its_baseline(tmp_path, monkeypatch):
    (tmp_path / "rankgauge.toml").write_text('store = "kept/own.db"\nbaseline = "bm25"\n', encoding="utf-8")
    (tmp_path / "kept").mkdir()
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.delenv("RANKGAUGE_STORE", raising=False)
    with History() as history:
        for run in ("bm25", "dense"):
            history.add(replace(made(), run_name=run), QRELS)
        assert (tmp_path / "below" / history.where).resolve() == tmp_path / "kept" / "own.db"
        assert history.entry("@baseline").short_name == "bm25#1"
        assert history.entry("@latest").short_name == history.entry("dense@latest").short_name == "dense#2"
    with History(tmp_path / "kept" / "own.db", baseline="dense#2") as history:
        assert history.entry("@baseline").run == "dense"
    with pytest.raises(InputError, match="there is no baseline"):
        History(tmp_path / "kept" / "own.db").entry("@baseline")


def test_a_new_folder_of_a_project_is_private_and_ignored_by_git(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANKGAUGE_STORE", raising=False)
    History().add(made(), QRELS)
    assert (tmp_path / ".rankgauge").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / ".rankgauge" / ".gitignore").read_text(encoding="utf-8") == "*\n"
