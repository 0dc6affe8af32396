"""Stores to test with: a file of SQLite, and a throw-away server of PostgreSQL."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="without SQLAlchemy there is no history to test")


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl, the newest there is."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name)
    )
    named = shutil.which("initdb")
    if named:
        folders.append(Path(named).resolve().parent)
    return next((f for f in reversed(folders) if (f / "initdb").exists()), None)


def _as_somebody(words: list[str]) -> list[str]:
    """PostgreSQL refuses to be run by root."""
    if os.geteuid() != 0:
        return words
    return ["runuser", "-u", "postgres", "--", *words]


@pytest.fixture(scope="session")
def postgres_server():
    """The URL of a server of our own on a Unix socket; skips aloud where there is none."""
    pytest.importorskip("psycopg", reason="without psycopg PostgreSQL is not tested")
    programs = None if os.name == "nt" else _programs()
    if programs is None:
        pytest.skip("no initdb here: PostgreSQL is not tested")
    # A socket's path may have 107 bytes: not under the folder of the tests.
    with tempfile.TemporaryDirectory(prefix="rg", dir="/tmp") as folder:
        if os.geteuid() == 0:
            if shutil.which("runuser") is None:
                pytest.skip("no runuser here: PostgreSQL is not tested")
            try:
                shutil.chown(folder, "postgres")
            except LookupError:
                pytest.skip("no user called postgres here: PostgreSQL is not tested")
        data = f"{folder}/data"
        log = Path(folder, "log")
        quiet = {"capture_output": True, "cwd": folder}
        subprocess.run(
            _as_somebody(
                [
                    f"{programs}/initdb",
                    "-D",
                    data,
                    "-U",
                    "tester",
                    "-A",
                    "trust",
                    "-N",
                    "-E",
                    "UTF8",
                ]
            ),
            check=True,
            **quiet,
        )
        options = f"-c listen_addresses='' -c fsync=off -k {folder}"
        control = [f"{programs}/pg_ctl", "-D", data, "-w", "-l", str(log)]
        # Its output goes to the log, or the pipe would stay open as long as the server runs.
        subprocess.run(
            _as_somebody([*control, "-o", options, "start"]),
            check=True,
            cwd=folder,
            stdout=subprocess.DEVNULL,
        )
        try:
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            subprocess.run(
                _as_somebody([*control, "-m", "immediate", "stop"]),
                check=False,
                cwd=folder,
                stdout=subprocess.DEVNULL,
            )


@pytest.fixture
def postgres(postgres_server, request):
    """The URL of a database of this test's own."""
    import psycopg

    name = f"t{abs(hash(request.node.nodeid))}"
    with contextlib.closing(psycopg.connect(postgres_server, autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield postgres_server.replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    """A place for a store: once a file, once a database."""
    if request.param == "sqlite":
        return str(tmp_path / "history.db")
    return request.getfixturevalue("postgres")
