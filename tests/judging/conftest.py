"""Judging projects to test with: in a file of SQLite, and in PostgreSQL."""

import pytest
from servers import database_of, installed_programs, postgres_of

pytest.importorskip("sqlalchemy", reason="without SQLAlchemy there is no project to test")


@pytest.fixture(scope="session")
def postgres_server():
    """The URL of a server of our own on a Unix socket; skips aloud where there is none."""
    with postgres_of(installed_programs()) as url:
        yield url


@pytest.fixture
def postgres(postgres_server, request):
    """The URL of a database of this test's own."""
    with database_of(postgres_server, request.node.nodeid) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    """A place for a project: once a file, once a database."""
    if request.param == "sqlite":
        return str(tmp_path / "judging.db")
    return request.getfixturevalue("postgres")
