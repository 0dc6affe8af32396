"""Migrations of the store in SQLite and PostgreSQL, with a later revision than today's."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("alembic", reason="without Alembic no migration is tested")

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Integer, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable
from stores import STORES

from rankgauge import InputError
from rankgauge.store import Jobs
from rankgauge.store.database import Database
from rankgauge.store.schema import SCHEMA

DEFINITIONS = Path(__file__).parent.parent / "golden" / f"store-{SCHEMA.revision}.sql"
# A table of each kind of records, which gets the column of the later revision.
TABLES = {
    "judging": "rankgauge_judging_choices",
    "history": "rankgauge_evaluations",
    "verdicts": "rankgauge_answers_verdicts",
}
LATER = """
from alembic import op
from sqlalchemy import Column, Integer
revision, down_revision = "{later}", "{latest}"
def upgrade():
    op.add_column("{table}", Column("size", Integer))
"""
FAILING = LATER + "    raise OSError(28, 'No space left on device')\n"


def database(where, schema=SCHEMA):
    return Database(where, schema, patience=5)


def later(kind, folder, script=LATER):
    """Return the schema with one more revision, which adds the column ``size``."""
    table = TABLES[kind]
    names = {"latest": SCHEMA.revision, "later": f"{int(SCHEMA.revision) + 1:04}", "table": table}
    shutil.copytree(SCHEMA.migrations, folder)
    (folder / "later.py").write_text(script.format(**names), encoding="utf-8")

    def define(tables):
        SCHEMA.define(tables)
        tables.tables[table].append_column(Column("size", Integer))

    return replace(SCHEMA, define=define, migrations=folder, revision=names["later"]), table


def with_data(kind, where):
    """Create a store of today's revision with records, and return them."""
    STORES[kind].prepare(where)
    written = []

    def confirm(record):
        written.append(record)
        if len(written) == 3:
            raise EOFError

    with pytest.raises(EOFError):
        STORES[kind].write(where, "one", confirm)
    return written


def test_the_tables_of_a_revision_do_not_change():
    tables = SCHEMA.tables.sorted_tables
    definitions = [CreateTable(table) for table in tables]
    definitions += [CreateIndex(index) for table in tables for index in sorted(table.indexes, key=lambda i: i.name)]
    written = "".join(f"{str(each.compile(dialect=sqlite.dialect())).strip()};\n" for each in definitions)
    # Changed tables need a migration, and the file of a new revision.
    assert written == DEFINITIONS.read_text(encoding="utf-8")


def test_a_new_store_has_the_tables_that_the_code_reads_and_writes(where):
    with_data("judging", where)
    with database(where).reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert set(SCHEMA.tables.tables) <= set(context.connection.dialect.get_table_names(connection))
        assert compare_metadata(context, SCHEMA.tables) == []


def test_the_revision_in_the_code_is_the_latest_of_the_migrations():
    script = ScriptDirectory(str(SCHEMA.migrations), version_locations=[str(SCHEMA.migrations)])
    assert script.get_heads() == [SCHEMA.revision]


def test_alembic_is_loaded_only_to_migrate(tmp_path):
    code = (
        "import sys\n"
        "from rankgauge import History, evaluate\n"
        "history = History(sys.argv[1])\n"
        "history.add(evaluate({'q': {'d': 1}}, {'q': ['d']}, 'RR'))\n"
        "assert history.load(1).mean() == {'RR': 1.0}\n"
        "assert 'alembic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "store.db")], check=True)


def test_a_store_of_the_first_revision_gets_the_tables_of_later_ones(tmp_path):
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((DEFINITIONS.parent / "store-0001.sql").read_text(encoding="utf-8"))
        connection.execute("INSERT INTO rankgauge_version VALUES ('0001')")
        connection.commit()
    assert Jobs(path).jobs() == []
    with database(str(path)).reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, SCHEMA.tables) == []


@pytest.mark.parametrize("name", ["history", "judging_project", "store_of_verdicts"])
def test_a_store_of_before_projects_is_refused(tmp_path, name):
    where, kind = str(tmp_path / "store.db"), "history"
    with_data(kind, where)
    with database(where).writing() as connection:
        connection.execute(text("DROP TABLE rankgauge_version"))
        connection.execute(text(f"CREATE TABLE rankgauge_{name}_version (version_num VARCHAR(32))"))
    with pytest.raises(InputError, match="an earlier development version wrote this store") as refusal:
        STORES[kind].ids(where)
    assert "fix: name a new store" in str(refusal.value)


def test_a_new_store_of_a_later_revision_has_its_tables(where, tmp_path):
    schema, table = later("judging", tmp_path / "later")
    with database(where, schema).writing() as connection:
        assert connection.execute(text(f"SELECT size FROM {table}")).fetchall() == []


@pytest.mark.parametrize("how", ["reading", "writing"])
def test_a_store_of_today_is_migrated_with_what_is_in_it(where, how, tmp_path):
    kind = "verdicts" if how == "reading" else "judging"
    written = with_data(kind, where)
    schema, table = later(kind, tmp_path / "later")
    with getattr(database(where, schema), how)() as connection:
        sizes = connection.execute(text(f"SELECT size FROM {table}")).fetchall()
        assert [size for (size,) in sizes] == [None] * len(written)
        version = text("SELECT version_num FROM rankgauge_version")
        assert connection.scalar(version) == schema.revision
    # The program of today refuses it and says what to do.
    with pytest.raises(InputError, match=f"is of version {schema.revision}; this rankgauge knows") as told:
        STORES[kind].ids(where)
    assert "pip install --upgrade rankgauge" in str(told.value)
    with database(where, schema).writing() as connection:
        connection.execute(text(f"UPDATE rankgauge_version SET version_num = '{SCHEMA.revision}'"))
    assert set(written) <= STORES[kind].ids(where)


def test_a_migration_that_fails_changes_nothing(where, tmp_path):
    kind = "history"
    written = with_data(kind, where)
    schema, _ = later(kind, tmp_path / "later", FAILING)
    with pytest.raises(InputError, match="No space left"), database(where, schema).writing():
        pass
    assert set(written) <= STORES[kind].ids(where)
