"""Migrations of each store in SQLite and PostgreSQL, with a later revision than today's."""

import ast
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("alembic", reason="without Alembic no migration is tested")

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Integer, text
from stores import DATABASES, STORES

from rankgauge import InputError
from rankgauge.answers.store import SCHEMA as VERDICTS
from rankgauge.core.database import Database
from rankgauge.history.history import SCHEMA as HISTORY
from rankgauge.judging.store import SCHEMA as JUDGING

SCHEMAS = {"judging": JUDGING, "history": HISTORY, "verdicts": VERDICTS}
# The table of each store that gets the column of the later revision.
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


@pytest.fixture(params=DATABASES)
def kind(request):
    """The name of a store."""
    return request.param


def database(where, schema):
    return Database(where, schema, patience=5)


def later(kind, folder, script=LATER):
    """Return the schema of a store with one more revision, which adds the column ``size``."""
    schema, table = SCHEMAS[kind], TABLES[kind]
    names = {"latest": schema.revision, "later": f"{int(schema.revision) + 1:04}", "table": table}
    shutil.copytree(schema.migrations, folder)
    (folder / "later.py").write_text(script.format(**names), encoding="utf-8")

    def define(tables):
        schema.define(tables)
        tables.tables[table].append_column(Column("size", Integer))

    return replace(schema, define=define, migrations=folder, revision=names["later"]), table


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


def test_migrations_make_the_tables_that_the_code_reads_and_writes(where, kind):
    with_data(kind, where)
    schema = SCHEMAS[kind]
    with database(where, schema).reading() as connection:
        options = {"version_table": schema.version_table, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        names = {table.name for table in schema.tables.sorted_tables}
        assert names <= set(context.connection.dialect.get_table_names(connection))
        assert compare_metadata(context, schema.tables) == []


def test_the_revision_in_the_code_is_the_latest_of_the_migrations(kind):
    schema = SCHEMAS[kind]
    script = ScriptDirectory(str(schema.migrations), version_locations=[str(schema.migrations)])
    assert script.get_heads() == [schema.revision]
    revisions = [each.revision for each in script.walk_revisions()]
    assert sorted(revisions, reverse=True) == revisions


def test_migrations_never_read_the_definitions_of_today(kind):
    for path in Path(SCHEMAS[kind].migrations).glob("*_[0-9]*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", None), *(each.name for each in node.names)]
                assert not any(str(name).startswith("rankgauge") for name in names), path


def test_a_new_store_of_a_later_revision_has_its_tables(where, kind, tmp_path):
    schema, table = later(kind, tmp_path / "later")
    with database(where, schema).writing() as connection:
        assert connection.execute(text(f"SELECT size FROM {table}")).fetchall() == []


@pytest.mark.parametrize("how", ["reading", "writing"])
def test_a_store_of_today_is_migrated_with_what_is_in_it(where, kind, how, tmp_path):
    written = with_data(kind, where)
    schema, table = later(kind, tmp_path / "later")
    with getattr(database(where, schema), how)() as connection:
        sizes = connection.execute(text(f"SELECT size FROM {table}")).fetchall()
        assert [size for (size,) in sizes] == [None] * len(written)
        version = text(f"SELECT version_num FROM {schema.version_table}")
        assert connection.scalar(version) == schema.revision
    # The program of today refuses it and says what to do.
    with pytest.raises(InputError, match=f"is of version {schema.revision}; this rankgauge knows") as told:
        STORES[kind].ids(where)
    assert "pip install --upgrade rankgauge" in str(told.value)
    with database(where, schema).writing() as connection:
        version = SCHEMAS[kind].revision
        connection.execute(text(f"UPDATE {schema.version_table} SET version_num = '{version}'"))
    assert set(written) <= STORES[kind].ids(where)


def test_a_migration_that_fails_changes_nothing(where, kind, tmp_path):
    written = with_data(kind, where)
    schema, _ = later(kind, tmp_path / "later", FAILING)
    with pytest.raises(InputError, match="No space left"), database(where, schema).writing():
        pass
    assert set(written) <= STORES[kind].ids(where)
