"""Histories from before migrations, invalid versions, and evaluations without judgments."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("alembic", reason="without Alembic no migration is tested")

from sqlalchemy import text

from rankgauge import Evaluation, History, InputError, evaluate
from rankgauge.core.database import Database
from rankgauge.history.history import SCHEMA

QRELS = {"q1": {"d1": 1}, "q2": {"d1": 1}}
EVALUATION = evaluate(QRELS, {"q1": ["d1"], "q2": ["x", "d1"]}, "RR")
VERSIONS = "rankgauge_history_version"


def keep(where):
    with History.open(where) as history:
        return history.add(EVALUATION, QRELS)


def opened(where):
    """Return the database of a history."""
    return Database(where, SCHEMA, patience=5)


def undo(where, *statements):
    with opened(where).writing() as connection:
        for each in statements:
            connection.execute(text(each))


def old_version(where):
    """Create a history as before migrations existed."""
    keep(where)
    undo(
        where,
        f"DROP TABLE {VERSIONS}",
        "CREATE TABLE rankgauge_schema (name VARCHAR(40) PRIMARY KEY, version INTEGER NOT NULL)",
        "INSERT INTO rankgauge_schema VALUES ('history', 1)",
    )


def test_a_history_from_before_migrations_is_read_as_it_is(where):
    old_version(where)
    before = Path(where).read_bytes() if "://" not in where else b""
    with History.open(where) as history:
        assert history.load(1) == EVALUATION
    assert before == (Path(where).read_bytes() if "://" not in where else b"")


def test_a_history_from_before_migrations_is_adopted_by_the_first_write(where):
    old_version(where)
    assert keep(where).id == 2
    with History.open(where) as history:
        assert [entry.id for entry in history.entries()] == [1, 2]
        assert history.load(1) == EVALUATION
        with opened(where).reading() as connection:
            assert connection.scalar(text(f"SELECT version_num FROM {VERSIONS}")) == "0001"


@pytest.mark.parametrize("version", ["'abc'", "''"])
def test_an_invalid_version_means_a_damaged_file(version, where):
    keep(where)
    undo(where, f"UPDATE {VERSIONS} SET version_num = {version}")
    with pytest.raises(InputError, match="this history is damaged: its version is"):
        keep(where)


def test_alembic_is_loaded_only_to_migrate(tmp_path):
    keep(tmp_path / "h.db")
    code = (
        "import sys\n"
        "from rankgauge import History, evaluate\n"
        "with History.open(sys.argv[1]) as history:\n"
        "    history.add(evaluate({'q1': {'d'}}, {'q1': ['d']}, 'RR'))\n"
        "    assert len(history.entries()) == 2\n"
        "print('alembic' in sys.modules)\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "h.db")]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "False\n"


# ---- evaluations without judgments and runs


def test_an_evaluation_saved_without_judgments_claims_nothing_about_them(where):
    other = evaluate(QRELS, {"q1": ["x", "d1"], "q2": ["d1"]}, "RR")
    with History.open(where) as history:
        first, second = history.add(EVALUATION), history.add(other)
        known = history.add(other, QRELS)
        assert (first.qrels, first.ranking) == (None, None)
        assert history.load(first) == EVALUATION
        note = f"judgments were not compared: they are unknown for {first.id} and {second.id}"
        assert note in history.compare(first, second).notes
        note = f"judgments were not compared: they are unknown for {first.id}"
        assert note in history.compare(first, known).notes
        assert history.trend("RR").breaks == ()


def test_external_values_are_saved_and_compared(where):
    ids = [f"q{n}" for n in range(30)]
    one = Evaluation.from_values("one", ids, {"RR": [0.5] * 30})
    other = Evaluation.from_values("other", ids, {"RR": [0.5 + n % 3 / 10 for n in range(30)]})
    with History.open(where) as history:
        kept = [history.add(each) for each in (one, other)]
        assert [history.load(each) for each in kept] == [one, other]
        assert history.compare(*kept).differences[0].verdict == "better"
        assert len(history.trend("RR").points) == 2
