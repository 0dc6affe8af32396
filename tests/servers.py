"""Throw-away servers to test with: PostgreSQL on a Unix socket of its own."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


def installed_programs():
    """The folder of initdb and pg_ctl, the newest there is; None without."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name)
    )
    named = shutil.which("initdb")
    if named:
        folders.append(Path(named).resolve().parent)
    return next((f for f in reversed(folders) if (f / "initdb").exists()), None)


def _user():
    """Who runs the server: PostgreSQL refuses to be run by root."""
    if os.geteuid() != 0:
        return None
    if shutil.which("runuser") is None:
        pytest.skip("no runuser here: PostgreSQL is not tested")
    return "postgres"


@contextlib.contextmanager
def postgres_of(programs):
    """The URL of a server of our own; skips aloud where there can be none."""
    pytest.importorskip("psycopg", reason="without psycopg PostgreSQL is not tested")
    if programs is None or os.name == "nt":
        pytest.skip("no initdb here: PostgreSQL is not tested")
    user = _user()
    words = [] if user is None else ["runuser", "-u", user, "--"]
    # A socket's path may have 107 bytes: not under the folder of the tests.
    with tempfile.TemporaryDirectory(prefix="rg", dir="/tmp") as folder:
        if user is not None:
            try:
                shutil.chown(folder, user)
            except LookupError:
                pytest.skip(f"no user called {user} here: PostgreSQL is not tested")
        data = f"{folder}/data"
        control = [*words, f"{programs}/pg_ctl", "-D", data, "-w", "-l", f"{folder}/log"]
        options = f"-c listen_addresses='' -c fsync=off -k {folder}"
        made = [f"{programs}/initdb", "-D", data, "-U", "tester", "-A", "trust", "-N", "-E", "UTF8"]
        subprocess.run([*words, *made], check=True, capture_output=True, cwd=folder)
        # Its output goes to the log, or the pipe would stay open as long as the server runs.
        quiet = {"cwd": folder, "stdout": subprocess.DEVNULL}
        subprocess.run([*control, "-o", options, "start"], check=True, **quiet)
        try:
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=False, **quiet)


@contextlib.contextmanager
def database_of(server, nodeid):
    """The URL of a database of a test's own."""
    import psycopg

    name = f"t{abs(hash(nodeid))}"
    with contextlib.closing(psycopg.connect(server, autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
