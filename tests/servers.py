"""Temporary PostgreSQL servers on Unix sockets."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


def installed_programs():
    """Return the folder of the newest initdb and pg_ctl, None if not installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    named = shutil.which("initdb")
    if named:
        folders.append(Path(named).resolve().parent)
    return next((f for f in reversed(folders) if (f / "initdb").exists()), None)


def _user():
    """Return a user to run the server, since PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    if shutil.which("runuser") is None:
        pytest.skip("no runuser here: PostgreSQL is not tested")
    return "postgres"


@contextlib.contextmanager
def postgres_of(programs):
    """Yield the URL of a temporary server; skip the test if it cannot run."""
    pytest.importorskip("psycopg", reason="without psycopg PostgreSQL is not tested")
    if programs is None or not hasattr(os, "geteuid"):
        pytest.skip("no initdb here: PostgreSQL is not tested")
    user = _user()
    # A socket path is limited to 107 bytes, so it cannot be in the folder of the tests.
    with tempfile.TemporaryDirectory(prefix="rg", dir="/tmp") as folder:
        if user is not None:
            try:
                shutil.chown(folder, user)
            except LookupError:
                pytest.skip(f"no user called {user} here: PostgreSQL is not tested")
        made = ["-D", f"{folder}/data", "-U", "tester", "-A", "trust", "-N", "-E", "UTF8"]
        subprocess.run([*_as(user), f"{programs}/initdb", *made], check=True, capture_output=True, cwd=folder)
        url = f"postgresql://tester@/postgres?host={folder}"
        control(programs, url, "start")
        try:
            yield url
        finally:
            control(programs, url, "stop", check=False)


def _as(user):
    return [] if user is None else ["runuser", "-u", user, "--"]


def control(programs, url, action, *, check=True):
    """Start the server of a URL, or stop it at once, as a crash does."""
    folder = url.partition("?host=")[2]
    more = ["-m", "immediate"] if action == "stop" else ["-o", f"-c listen_addresses='' -c fsync=off -k {folder}"]
    words = [f"{programs}/pg_ctl", "-D", f"{folder}/data", "-w", "-l", f"{folder}/log", *more, action]
    # Log to a file, since a pipe would stay open as long as the server runs.
    subprocess.run([*_as(_user()), *words], check=check, cwd=folder, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def database_of(server, nodeid):
    """Yield the URL of a database for one test."""
    import psycopg

    name = f"t{abs(hash(nodeid))}"
    with contextlib.closing(psycopg.connect(server, autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
