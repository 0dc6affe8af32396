"""The log of production: its views, and what is not a log."""

import re
import tomllib
from pathlib import Path

import pytest

from rankgauge.errors import FormatError, InputError
from rankgauge.production import COLUMNS, KINDS, QUESTION_COLUMNS, EventLog
from rankgauge.production.mappings import as_mapping
from rankgauge.production.translation import ACTIONS

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
        ("late fees", "Fees, late?", 1), ("late fees", "late", 0.5**0.5),
        ("a b c d", "d e f g", 0.25),
        ("late", "wifi", 0), ("", "late", None), ("?!", "late", None), (None, "late", None),
    ],
)  # fmt: skip
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


def test_views_have_the_documented_columns(tmp_path):
    with EventLog(write(tmp_path / "log.parquet")).connection() as connection:
        for view, columns in (
            ("events", COLUMNS),
            ("questions", {name: kind for name, (kind, _) in QUESTION_COLUMNS.items()}),
        ):
            described = connection.sql(f"DESCRIBE {view}").fetchall()
            assert {name: kind for name, kind, *_ in described} == columns | {"time": "TIMESTAMP"}


def test_a_click_alone_is_no_question(tmp_path):
    assert [each["question_id"] for each in questions(write(tmp_path / "log.parquet"))] == [
        "q1",
        "q2",
    ]


def test_a_pattern_names_several_files(tmp_path):
    first, second = ROWS.split("('q2'")
    write(tmp_path / "1.parquet", first.rstrip().rstrip(","))
    write(tmp_path / "2.parquet", "('q2'" + second)
    assert questions(tmp_path / "*.parquet") == questions(write(tmp_path / "all.parq"))


def test_the_summary_counts_events_by_kind(tmp_path):
    summary = EventLog(write(tmp_path / "log.parquet")).summary()
    assert summary.kinds == {
        "question": 2,
        "retrieval": 1,
        "impression": 1,
        "click": 4,
        "thumbs": 2,
    }
    assert summary.questions == 2
    assert f"{summary.last:%H:%M:%S}" == "12:00:31"


def test_what_is_no_log_is_refused(tmp_path):
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
