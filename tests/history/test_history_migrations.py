"""Migrations in SQLite and PostgreSQL: creating, adopting, migrating, and rejecting databases."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("alembic", reason="without Alembic no migration is tested")

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Integer, Table, text

from rankgauge import Evaluation, History, InputError, evaluate
from rankgauge.core.database import Database, Schema
from rankgauge.history.history import SCHEMA

QRELS = {"q1": {"d1": 1}, "q2": {"d1": 1}}
EVALUATION = evaluate(QRELS, {"q1": ["d1"], "q2": ["x", "d1"]}, "RR")
VERSIONS = "rankgauge_history_version"

FIRST = """
from alembic import op
from sqlalchemy import Column, Integer
revision, down_revision = "0001", None
def upgrade():
    op.create_table("rankgauge_things", Column("id", Integer, primary_key=True))
"""
SECOND = """
from alembic import op
from sqlalchemy import Column, Integer
revision, down_revision = "0002", "0001"
def upgrade():
    op.add_column("rankgauge_things", Column("size", Integer))
"""
FAILING = SECOND + "    raise OSError(28, 'No space left on device')\n"


def keep(where):
    with History.open(where) as history:
        return history.add(EVALUATION, QRELS)


def opened(where):
    """Return the database of a history."""
    return Database(where, SCHEMA, patience=5, missing="")


def undo(where, *statements):
    with opened(where).writing() as connection:
        for each in statements:
            connection.execute(text(each))


def test_migrations_make_the_tables_that_the_code_reads_and_writes(where):
    keep(where)
    with opened(where).reading() as connection:
        options = {"version_table": VERSIONS, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, SCHEMA.tables) == []


def test_the_revision_in_the_code_is_the_latest_of_the_migrations():
    script = ScriptDirectory(str(SCHEMA.migrations), version_locations=[str(SCHEMA.migrations)])
    assert script.get_heads() == [SCHEMA.revision]
    revisions = [each.revision for each in script.walk_revisions()]
    assert sorted(revisions, reverse=True) == revisions


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


def database(where, folder, revision, *columns, **scripts):
    folder.mkdir(exist_ok=True)
    for name, script in scripts.items():
        (folder / f"{name}.py").write_text(script)

    def define(tables):
        Table("rankgauge_things", tables, Column("id", Integer, primary_key=True), *columns)

    schema = Schema("test", define, folder, revision)
    return Database(where, schema, patience=5, missing="write first")


def old_and_new(where, tmp_path, second=SECOND):
    """Create a database of the first revision with a row, and the code of the second revision."""
    first = database(where, tmp_path / "old", "0001", first=FIRST)
    with first.writing() as connection:
        connection.execute(text("INSERT INTO rankgauge_things VALUES (7)"))
    size = Column("size", Integer)
    return first, database(where, tmp_path / "new", "0002", size, first=FIRST, second=second)


@pytest.mark.parametrize("how", ["reading", "writing"])
def test_an_older_database_is_migrated_with_what_is_in_it(where, how, tmp_path):
    first, second = old_and_new(where, tmp_path)
    with getattr(second, how)() as connection:
        rows = connection.execute(text("SELECT id, size FROM rankgauge_things"))
        assert list(map(tuple, rows)) == [(7, None)]
    with (
        pytest.raises(InputError, match="is of version 0002; this rankgauge knows") as told,
        first.reading(),
    ):
        pass
    assert "pip install --upgrade rankgauge" in str(told.value)


def test_a_migration_that_fails_changes_nothing(where, tmp_path):
    first, second = old_and_new(where, tmp_path, FAILING)
    with pytest.raises(InputError, match="No space left"), second.writing():
        pass
    with first.reading() as connection:
        assert connection.scalar(text("SELECT version_num FROM rankgauge_test_version")) == "0001"
        found = connection.execute(text("SELECT * FROM rankgauge_things"))
        assert list(found.keys()) == ["id"]


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
