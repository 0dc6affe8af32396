"""The production log: its views, and invalid logs."""

import re
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from tests.online_loops import Event, write_events

from rankgauge.errors import FormatError, InputError
from rankgauge.production import COLUMNS, KINDS, QUESTION_COLUMNS, EventLog
from rankgauge.production.events import ACTIONS, as_mapping

duckdb = pytest.importorskip("duckdb")

ROWS = """
    ('q1', 'question', '2026-05-01 12:00:00+00', 'q1', 's1', 'u1', 'Late  fees?', NULL, NULL, NULL),
    ('r1', 'retrieval', '2026-05-01 12:00:01+00', 'q1', 's1', NULL, NULL, ['a', 'b', 'c'],
        [1, 2, 3], NULL),
    ('i1', 'impression', '2026-05-01 12:00:02+00', 'q1', 's1', NULL, NULL, ['a', 'b'], [1, 2],
        NULL),
    ('c1', 'click', '2026-05-01 12:00:03+00', 'q1', 's1', NULL, NULL, ['b'], [2], NULL),
    ('c2', 'click', '2026-05-01 12:00:04+00', 'q1', 's1', NULL, NULL, ['a'], [1], NULL),
    ('c3', 'click', '2026-05-01 12:00:05+00', 'q1', 's1', NULL, NULL, ['a'], [1], NULL),
    ('t1', 'thumbs', '2026-05-01 12:00:06+00', 'q1', 's1', NULL, NULL, NULL, NULL, -1),
    ('t2', 'thumbs', '2026-05-01 12:00:07+00', 'q1', 's1', NULL, NULL, NULL, NULL, 1),
    ('q2', 'question', '2026-05-01 12:00:30.5+00', 'q2', 's1', 'u1', 'fees late', NULL, NULL, NULL),
    ('c9', 'click', '2026-05-01 12:00:31+00', 'q9', 's1', NULL, NULL, ['a'], [1], NULL)
"""


def write(path, rows=ROWS):
    names = "event_id, kind, time, question_id, session_id, user_id, text, documents, ranks, value"
    duckdb.connect().execute(
        f"COPY (SELECT * REPLACE (time::TIMESTAMPTZ AS time) FROM (VALUES {rows}) AS t({names})) "
        f"TO '{path}' (FORMAT parquet)"
    )
    return path


def questions(log):
    with EventLog(log).connection() as connection:
        found = connection.sql("SELECT * FROM questions ORDER BY question_id")
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize(
    ("one", "other", "cosine"),
    [
        ("late fees", "Fees, late?", 1),
        ("late fees", "late", 0.5**0.5),
        ("a b c d", "d e f g", 0.25),
        ("late", "wifi", 0),
        ("", "late", None),
        ("?!", "late", None),
        (None, "late", None),
    ],
)
def test_words_of_two_questions_are_compared(tmp_path, one, other, cosine):
    with EventLog(write(tmp_path / "log.parquet")).connection() as connection:
        query = "SELECT word_similarity(?::VARCHAR, ?::VARCHAR)"
        (found,) = connection.execute(query, [one, other]).fetchone()
    assert found == (None if cosine is None else pytest.approx(cosine))


def test_questions_have_one_row_for_each_question(tmp_path):
    first, second = questions(write(tmp_path / "log.parquet"))
    assert first["retrieved"] == 3
    assert (first["impressions"], first["clicks"], first["clicked_results"]) == (2, 3, 2)
    assert (first["first_click_rank"], first["click_rr"]) == (2, 1.0)
    assert (first["thumbs_up"], first["thumbs_down"]) == (1, 0)
    assert first["cluster"] == "u1"
    assert first["next_question_seconds"] == 30.5
    assert first["next_text"] == second["text"]
    assert second["retrieved"] is None
    assert second["next_question_seconds"] is None
    assert not second["answered"]


def test_columns_of_a_question_follow_their_rules_where_events_repeat_or_disagree(tmp_path):
    made = []

    def add(kind, seconds, **fields):
        time = datetime(2026, 5, 1, 12, tzinfo=UTC) + timedelta(seconds=seconds)
        made.append(Event(f"e{len(made)}", kind, time, "q1", **fields))

    add("retrieval", -2, documents=("a", "b"), latency_ms=30, attributes={"language": "de"})
    add("question", 0, text="Fees?", attributes={"language": "en"})
    add("retrieval", 1, documents=("a", "b", "c", "d", "e"), latency_ms=900)
    add("answer", 2, text="apples", latency_ms=500)
    add("answer", 4, text="zebras", latency_ms=450)
    add("citation", 5)  # one citation, whatever it refers to
    add("citation", 6, documents=("a", "b"))
    for second, document in enumerate("aab"):
        add("citation click", 7 + second, documents=(document,))
    add("click", 12, documents=("c",), ranks=(3,))
    add("click", 13, documents=("a",), ranks=(1,))
    add("click", 14, documents=("b",), ranks=(2,))
    add("thumbs", 15, value=1)
    add("thumbs", 16, value=0)
    add("preference", 17, value=1)
    add("preference", 18, label="both bad")
    add("label", 19, value=1)
    add("label", 20, value=0)
    (found,) = questions(write_events(tmp_path / "log.parquet", made[::-1]))
    assert f"{found['time']:%H:%M:%S}" == "12:00:00"
    assert found["attributes"] == {"language": "en"}
    assert (found["retrieved"], found["latency_ms"]) == (5, 500)
    assert found["answer_text"] == "zebras"
    assert (found["citations_shown"], found["citations_clicked"]) == (3, 2)
    assert (found["clicks"], found["first_click_rank"], found["click_rr"]) == (3, 3, 1)
    assert (found["thumbs_up"], found["thumbs_down"]) == (0, 0)
    assert (found["preference"], found["preference_label"]) == (None, "both bad")
    assert found["answerable"] is False


def test_the_next_question_of_a_session_is_that_of_its_time_not_of_its_name(tmp_path):
    start = datetime(2026, 5, 1, tzinfo=UTC)
    made = [
        Event(name, "question", start + timedelta(seconds=at), name, session_id=session, text=name)
        for name, at, session in (
            ("c", 0, "s"),
            ("a", 60, "s"),
            ("b", 90, "s"),
            ("d", 30, "t"),
            ("e", 40, None),
            ("f", 50, None),
        )
    ]
    found = questions(write_events(tmp_path / "log.parquet", made))
    following = {q["question_id"]: (q["next_text"], q["next_question_seconds"]) for q in found}
    none = (None, None)
    assert following == {"c": ("a", 60), "a": ("b", 30), "b": none, "d": none, "e": none, "f": none}


def test_clicks_are_compared_with_what_was_shown_once_each(tmp_path):
    start = datetime(2026, 5, 1, tzinfo=UTC)
    rows = [
        ("impression", "q1", ("a", "b")),
        ("impression", "q1", ("b", "a")),
        ("click", "q1", ("a",)),
        ("click", "q1", ("a",)),
        ("click", "q1", ("x",)),
        ("click", "q2", ("a",)),
    ]
    made = [Event(f"e{n}", kind, start, name, documents=documents) for n, (kind, name, documents) in enumerate(rows)]
    joins = EventLog(write_events(tmp_path / "log.parquet", made)).joins()
    # 2 of 4 clicks are on shown documents; q2 has only a click.
    assert (joins["clicks"], joins["unseen_clicks"]) == (4, 2)
    assert (joins["total"], joins["questions"], joins["joined"]) == (6, 1, 5)
    assert (joins["orphans"], joins["orphan_clicks"]) == (1, 1)


def test_views_have_the_documented_columns(tmp_path):
    with EventLog(write(tmp_path / "log.parquet")).connection() as connection:
        for view, columns in (
            ("events", COLUMNS),
            ("questions", {name: kind for name, (kind, _) in QUESTION_COLUMNS.items()}),
        ):
            described = connection.sql(f"DESCRIBE {view}").fetchall()
            assert {name: kind for name, kind, *_ in described} == columns | {"time": "TIMESTAMP"}


def test_a_click_alone_is_no_question(tmp_path):
    assert [each["question_id"] for each in questions(write(tmp_path / "log.parquet"))] == ["q1", "q2"]


def test_a_pattern_names_several_files(tmp_path):
    first, second = ROWS.split("('q2'")
    write(tmp_path / "1.parquet", first.rstrip().rstrip(","))
    write(tmp_path / "2.parquet", "('q2'" + second)
    assert questions(tmp_path / "*.parquet") == questions(write(tmp_path / "all.parq"))


def test_the_summary_counts_events_by_kind(tmp_path):
    summary = EventLog(write(tmp_path / "log.parquet")).summary()
    assert summary.kinds == {"question": 2, "retrieval": 1, "impression": 1, "click": 4, "thumbs": 2}
    assert summary.questions == 2
    assert f"{summary.last:%H:%M:%S}" == "12:00:31"


def test_an_invalid_log_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such log"):
        EventLog(tmp_path / "none.parquet")
    with pytest.raises(InputError, match=r"no manifest\.json"):
        EventLog(tmp_path)
    (tmp_path / "text.parquet").write_text("hello")
    with pytest.raises(FormatError, match="this is not a log"):
        EventLog(tmp_path / "text.parquet").summary()
    duckdb.connect().execute(f"COPY (SELECT 1 AS a) TO '{tmp_path}/other.parquet'")
    with pytest.raises(FormatError, match="no column 'event_id'"):
        EventLog(tmp_path / "other.parquet").summary()


def test_the_page_of_logs_has_the_columns_kinds_and_mappings_as_they_are():
    page = (Path(__file__).parents[2] / "docs/reference/logs.md").read_text(encoding="utf-8")
    for name, (kind, meaning) in QUESTION_COLUMNS.items():
        assert f"| `{name}` | {kind} | {meaning} |" in page
    for name in (*COLUMNS, *KINDS, *ACTIONS):
        assert f"`{name}`" in page
    for example in re.findall(r"(?ms)^```toml\n(.*?)^```", page):
        assert as_mapping(tomllib.loads(example)).columns["time"]
