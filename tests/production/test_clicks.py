"""Judgments from clicks: counts, unjudged documents, and simulated relevance."""

import json

import numpy as np
import pytest

import rankgauge
from rankgauge.errors import InputError, UnknownName
from rankgauge.production import implicit_judgments
from rankgauge.stats import fit_position_model

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("scipy")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write_log(path, events):
    """A log of rows (kind, question, text, documents, ranks)."""
    columns = list(zip(*events, strict=True))
    count = len(events)
    table = pa.table(
        {
            "event_id": [str(number) for number in range(count)],
            "kind": columns[0],
            "time": pa.array(np.datetime64("2026-03-01", "us") + np.arange(count), pa.timestamp("us", "UTC")),
            "question_id": columns[1],
            "text": pa.array(columns[2], pa.string()),
            "documents": pa.array(columns[3], pa.list_(pa.string())),
            "ranks": pa.array(columns[4], pa.list_(pa.int32())),
        }
    )
    pq.write_table(table, path)
    return path


def asked(question, text, documents, clicked=(), ranks=None):
    """Return the events of one question."""
    ranks = list(range(1, len(documents) + 1)) if ranks is None else ranks
    return [
        ("question", question, text, None, None),
        ("impression", question, None, list(documents), ranks),
        *(("click", question, None, [each], None) for each in clicked),
    ]


def simulated(rng, path, questions=4000):
    """Simulate users who examine rank r with probability 1/r and click relevant documents."""
    attraction = {f"d{i}": value for i, value in enumerate([0.9, 0.6, 0.3, 0.1, 0.02])}
    events = []
    for number in range(questions):
        order = rng.permutation(list(attraction)).tolist()
        clicked = [each for rank, each in enumerate(order, 1) if rng.random() < attraction[each] / rank]
        events += asked(f"q{number}", " Late  fees ", order, clicked)
    return write_log(path, events), attraction


@pytest.mark.parametrize("model", ["coec", "position"])
def test_simulated_relevance_is_graded_in_its_order(tmp_path, model):
    log, attraction = simulated(np.random.default_rng(3), tmp_path / "log.parquet")
    found = implicit_judgments(log, model=model)
    assert list(found.texts.values()) == ["late fees"]
    mean = np.mean(list(attraction.values()))
    expected = {d: sum(a / mean >= cut for cut in (0.5, 1, 2)) for d, a in attraction.items()}
    assert dict(found.judgments[found.questions[0]]) == expected
    planted = np.array([attraction[each] for each in found.documents]) / mean
    assert found.ratio == pytest.approx(planted, rel=0.1, abs=0.02)
    if model == "coec":
        assert np.isnan([found.low, found.high]).all()
        assert any("no intervals, because" in note for note in found.about["notes"])
    else:
        assert ((found.low <= planted) & (planted <= found.high)).all()


def test_the_position_model_finds_how_often_ranks_are_examined(tmp_path):
    log, _ = simulated(np.random.default_rng(3), tmp_path / "log.parquet")
    found = implicit_judgments(log, model="position")
    for rank, shown, _, examination, low, high in found.ranks:
        assert shown == 4000
        assert examination == pytest.approx(1 / rank, rel=0.15)
        assert rank == 1 or low <= examination <= high


def test_documents_never_or_rarely_shown_are_unjudged_not_irrelevant(tmp_path):
    events = []
    for number in range(100):
        shown = ["a", "b", "rare"] if number < 3 else ["a", "b"]
        events += asked(f"q{number}", "fees", shown, ["a"] if number % 2 else ["b", "never"])
    found = implicit_judgments(write_log(tmp_path / "log.parquet", events), model="coec")
    assert set(found.judgments[found.questions[0]]) == {"a", "b"}
    assert any("50 of 150 clicks not used" in note for note in found.about["notes"])


def test_a_document_counts_once_for_a_question_where_it_was_first_shown(tmp_path):
    events = []
    for number in range(40):
        events += asked(f"q{number}", "fees", ["a", "b"], ["a", "a"] if number < 30 else ["b"])
        events.append(("impression", f"q{number}", None, ["b", "a"], [1, 2]))
    found = implicit_judgments(write_log(tmp_path / "log.parquet", events), model="coec")
    assert found.documents == ("a", "b")
    assert found.shown.tolist() == [40, 40]
    assert found.clicks.tolist() == [30, 10]
    assert found.ranks[0][:3] == (1, 40, 0.75)
    # Each is clicked exactly as often as its rank predicts: grade 2 begins at a ratio of 1.
    assert found.ratio.tolist() == [1, 1]
    assert found.grades.tolist() == [2, 2]


def test_ten_impressions_and_one_expected_click_are_enough(tmp_path):
    """Two clicks in 200 impressions at rank 2: 100 impressions expect one click, 99 less."""
    events = []
    for n in range(200):
        first = "ten" if n < 10 else "nine" if n < 19 else "x"
        second = "hundred" if n < 100 else "fewer" if n < 199 else "one"
        clicked = [first] * (n % 2) + [second] * (n in {0, 150})
        events += asked(f"q{n}", "fees", [first, second], clicked)
    found = implicit_judgments(write_log(tmp_path / "log.parquet", events), model="coec")
    assert set(found.documents) == {"ten", "x", "hundred"}
    assert found.expected.tolist() == [1, 5, 90.5]


def test_expected_clicks_of_the_position_model_are_those_of_mean_attraction(tmp_path):
    rng, counts, events = np.random.default_rng(5), {}, []
    attraction = {"a": 0.8, "b": 0.3, "c": 0.1}
    for n in range(900):
        order = rng.permutation(["a", "b"] if n % 3 else ["b", "c", "a"]).tolist()
        clicked = [d for rank, d in enumerate(order, 1) if rng.random() < attraction[d] / rank]
        events += asked(f"q{n}", "fees", order, clicked)
        for rank, document in enumerate(order, 1):
            shown, clicks = counts.get((document, rank), (0, 0))
            counts[document, rank] = shown + 1, clicks + (document in clicked)
    found = implicit_judgments(write_log(tmp_path / "log.parquet", events), model="position")
    keys = sorted(counts)
    fit = fit_position_model(
        ["abc".index(document) for document, _ in keys],
        [rank for _, rank in keys],
        [counts[key][0] for key in keys],
        [counts[key][1] for key in keys],
    )
    examined = [
        sum(fit.examination[rank - 1] * counts[document, rank][0] for rank in (1, 2, 3) if (document, rank) in counts)
        for document in "abc"
    ]
    mean = sum(a * e for a, e in zip(fit.attraction, examined, strict=True)) / sum(examined)
    assert found.documents == ("a", "b", "c")
    assert found.expected == pytest.approx([mean * each for each in examined])
    assert found.ratio == pytest.approx(fit.attraction / mean)
    assert found.low == pytest.approx(fit.low / mean / 2)
    assert found.high == pytest.approx(fit.high / mean * 2)


def test_unused_impressions_are_counted(tmp_path):
    events = []
    for n in range(20):
        events += asked(f"q{n}", "fees", ["a", "b"], ["a"] if n % 2 else [])
    events += asked("none", None, ["a", "b"])
    events += asked("empty", "", ["a"])
    events += asked("zero", "fees", ["a", "b"], ["b"], ranks=[0, 1])
    events += [("click", "q1", None, ["never"], None)] * 3
    found = implicit_judgments(write_log(tmp_path / "log.parquet", events), model="coec")
    notes = " ".join(found.about["notes"])
    assert "1 of 45 impressions not used: without a rank" in notes
    assert "3 impressions not used: the text of the question is unknown" in notes
    # A document clicked three times counts once.
    assert "1 of 12 clicks not used" in notes
    assert dict(zip(found.documents, found.shown.tolist(), strict=True))["a"] == 20


def test_an_impression_without_a_rank_is_not_guessed(tmp_path):
    events = [*asked("q1", "fees", ["a"], ["a"], ranks=None)] * 1
    events += [("impression", "q2", None, ["a"], None), ("click", "q2", None, ["a"], [1])]
    log = write_log(tmp_path / "log.parquet", events)
    with pytest.raises(InputError, match="no document was shown at least 10 times"):
        implicit_judgments(log, model="coec")
    with pytest.raises(InputError, match="no impression with a rank"):
        implicit_judgments(write_log(tmp_path / "none.parquet", events[3:]))


def test_only_given_queries_are_judged_by_their_identifiers(tmp_path):
    events = []
    for number in range(60):
        text = "Late fees" if number % 2 else "opening hours"
        events += asked(f"q{number}", text, ["a", "b"], ["a"] if number % 4 else ["b"])
    log = write_log(tmp_path / "log.parquet", events)
    found = implicit_judgments(log, model="coec", queries={"q7": "late FEES", "q8": "loans"})
    assert found.texts == {"q7": "late fees"}
    assert list(found.judgments) == ["q7"]
    with pytest.raises(InputError, match="for one of the queries"):
        implicit_judgments(log, model="coec", queries={"q8": "loans"})


def test_unsure_documents_can_be_left_unjudged(tmp_path):
    events = []
    for number in range(600):
        clicked = [name for name, every in (("a", 3), ("b", 15)) if number % every == 0]
        events += asked(f"q{number}", "fees", ["a", "b"][:: 1 if number % 2 else -1], clicked)
    log = write_log(tmp_path / "log.parquet", events)
    assert set(implicit_judgments(log).documents) == {"a", "b"}
    found = implicit_judgments(log, drop_unsure=True)
    unsure = [d for d, low, high in zip(found.documents, found.low, found.high, strict=True) if low < 0.5 <= high]
    assert unsure == ["b"]
    assert set(found.judgments[found.questions[0]]) == {"a"}
    assert found.data_table().rows[1][-1] is None


def test_the_file_says_that_its_judgments_come_from_clicks(tmp_path):
    log, _ = simulated(np.random.default_rng(3), tmp_path / "log.parquet", questions=300)
    found = implicit_judgments(log)
    found.write(tmp_path / "clicks.qrels")
    about = json.loads((tmp_path / "clicks.qrels.about.json").read_text())
    assert about["origin"] == "clicks"
    line = json.loads((tmp_path / "clicks.qrels.queries.jsonl").read_text())
    assert line == {"_id": found.questions[0], "text": "late fees"}
    assert rankgauge.read_qrels(tmp_path / "clicks.qrels") == found.judgments
    run = {found.questions[0]: ["d0", "d1"]}
    notes = rankgauge.evaluate(str(tmp_path / "clicks.qrels"), run, ["nDCG@5"]).notes
    assert any("judged by clicks" in note for note in notes)
    assert not any("judged by clicks" in note for note in rankgauge.evaluate(found.judgments, run, ["nDCG@5"]).notes)


def test_impossible_arguments_are_refused(tmp_path):
    log = write_log(tmp_path / "log.parquet", asked("q", "t", ["a"]))
    with pytest.raises(UnknownName):
        implicit_judgments(log, model="cascade")
    with pytest.raises(InputError, match="min_shown=0"):
        implicit_judgments(log, min_shown=0)
    with pytest.raises(InputError, match="coec has no intervals"):
        implicit_judgments(log, model="coec", drop_unsure=True)
