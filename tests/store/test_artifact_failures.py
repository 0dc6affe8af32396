"""Damaged, half-written, and collected artifacts; several processes; full disks and lost servers."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from artifact_kills import check, save
from sqlalchemy import text

from rankgauge import History, InputError, Run, evaluate
from rankgauge.errors import StorageError
from rankgauge.store.database import Database
from rankgauge.store.schema import SCHEMA

PROGRAM = Path(__file__).parent.parent / "artifact_kills.py"


def files(where):
    """The files of artifacts beside an SQLite file."""
    return sorted(path for path in Path(f"{where}.artifacts").glob("*/*"))


def sql(where, statement, **values):
    """Execute a statement in the store, and return the first column of its rows."""
    with Database(str(where), SCHEMA, patience=5).writing() as connection:
        done = connection.execute(text(statement), values)
        return done.scalars().all() if done.returns_rows else []


READS = {
    "run": History.run,
    "judgments": History.qrels,
    "questions": History.collection,
    "documents": History.collection,
}


@pytest.mark.parametrize("kind", READS)
def test_a_flipped_byte_is_damage(tmp_path, kind):
    where = tmp_path / "store.db"
    with History(where) as history:
        save(history, 1)
        (name,) = sql(where, "SELECT name FROM rankgauge_artifacts WHERE kind = :kind", kind=kind)
        (path,) = [path for path in files(where) if path.name == name]
        whole, told = path.read_bytes(), []
        for place in np.linspace(0, len(whole) - 1, 40).astype(int).tolist():
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
            try:
                READS[kind](history, 1)
            except InputError as error:
                told.append(str(error))
            else:
                assert check(history) == {"1"}  # a byte that is not read
        assert len(told) > 30
        assert all("this store is damaged: " in message and name[:8] in message for message in told)
        for content in (whole[:-1], whole[:30], b""):
            path.write_bytes(content)
            with pytest.raises(InputError, match="this store is damaged"):
                READS[kind](history, 1)
        path.unlink()
        with pytest.raises(InputError, match=f"this store is damaged: artifact {name[:8]} is missing"):
            READS[kind](history, 1)


@pytest.mark.parametrize("change", ["body = 'x'", "number = number + 7", "artifact = replace(artifact, 'a', 'b')"])
def test_changed_rows_are_damage(postgres, change):
    with History(postgres) as history:
        save(history, 1)
        sql(postgres, f"UPDATE rankgauge_blocks SET {change}")
        for read in READS.values():
            with pytest.raises(InputError, match="this store is damaged"):
                read(history, 1)


def test_saving_again_replaces_artifacts_that_are_missing(tmp_path):
    where = tmp_path / "store.db"
    with History(where) as history:
        save(history, 1)
        for path in files(where):
            path.unlink()
        save(history, 1)
        assert check(history) == {"1"}


def test_artifacts_are_readable_by_their_owner_only(tmp_path):
    with History(tmp_path / "store.db") as history:
        save(history, 1)
    for path in files(tmp_path / "store.db"):
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert path.parent.parent.stat().st_mode & 0o777 == 0o700


def test_a_link_to_the_store_has_the_same_artifacts(tmp_path):
    where, link = tmp_path / "store.db", tmp_path / "link.db"
    with History(where) as history:
        save(history, 1)
    link.symlink_to(where)
    with History(link) as history:
        save(history, 2)
        assert check(history) == {"1", "2"}
    assert not Path(f"{link}.artifacts").exists()


@pytest.mark.skipif(os.name == "nt", reason="rights of folders are those of POSIX")
def test_a_folder_without_the_right_to_write_is_reported_and_can_be_read(tmp_path):
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder, "store.db")
        with History(where) as history:
            save(history, 1)
        subprocess.run(["chown", "-R", "65534", folder], check=True)
        kept = Path(f"{where}.artifacts")
        for path in (kept, *kept.iterdir()):
            path.chmod(0o500)
        code = (
            "import os, sys; sys.path.insert(0, sys.argv[2]); from artifact_kills import *\n"
            "from rankgauge import InputError\n"
            "history = History(sys.argv[1])\n"
            "save(History(sys.argv[3]), 1)\n"  # imports what it needs
            "os.geteuid() or os.setuid(65534)\n"
            "assert check(history) == {'1'}\n"
            "try:\n    save(history, 2)\nexcept InputError as error:\n    print(error)\n"
            "assert check(history) == {'1'}\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, where, PROGRAM.parent, tmp_path / "other.db"],
            capture_output=True,
            text=True,
            check=False,
        )
        for path in (kept, *kept.iterdir()):
            path.chmod(0o700)
    assert done.returncode == 0, done.stderr
    assert "cannot be written: Permission denied" in done.stdout
    assert "\nfix: " in done.stdout


def test_a_full_disk_leaves_nothing_half(tmp_path):
    resource = pytest.importorskip("resource", reason="limits of files are those of POSIX")
    where = tmp_path / "store.db"
    with History(where) as history:
        save(history, 1)
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); from artifact_kills import *\n"
        "run = Run.from_columns(['q'] * 100000, list(range(100000)), np.random.default_rng(1).normal(size=100000))\n"
        "History(sys.argv[1]).add(evaluate({'q': {'1': 1}}, run, 'RR'), run=run)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, where, PROGRAM.parent],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000)),
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "cannot be written: File too large" in done.stderr
    with History(where) as history:
        assert check(history) == {"1"}
    assert not list(Path(f"{where}.artifacts").glob("*/.*"))


def test_garbage_collection_deletes_what_nothing_uses_and_what_was_left_over(tmp_path):
    where = tmp_path / "store.db"
    with History(where) as history:
        save(history, 1)
        save(history, 2)
        names = {path.name for path in files(where)}
        folder = files(where)[0].parent
        old, new, unnamed = folder / ".0.part", folder / ".1.part", folder / "0"
        for path in (old, new, unnamed):
            path.write_bytes(b"half")
        for path in (old, unnamed):
            os.utime(path, (time.time() - 7200,) * 2)
        history.delete(2)
        left = {path.name for path in files(where)} - {new.name}
        assert new.exists()
        assert left < names
        assert check(history) == {"1"}
        history.delete(1)
        assert [path.name for path in files(where)] == [new.name]
        assert history.sizes() == {"values": 0}


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [9])
def test_a_save_survives_garbage_collection_at_any_moment(where, rounds):
    stop = threading.Event()
    with History(where) as history:
        save(history, 0)

    def collect():
        with History(where) as history:
            while not stop.is_set():
                history.collect_garbage()

    other = threading.Thread(target=collect)
    other.start()
    try:
        with History(where) as history:
            for number in range(1, rounds):
                save(history, number)
                if number % 2:
                    history.delete(history.entries()[-1])
            assert check(history) == {str(number) for number in range(rounds) if not number % 2}
    finally:
        stop.set()
        other.join()


def test_two_processes_that_save_the_same_at_once_store_it_once(where):
    with History(where) as history:
        save(history, 1)
        sizes = history.sizes()
        history.delete(1)
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); from artifact_kills import *\n"
        "with History(sys.argv[1]) as history:\n"
        "    inputs(1); print(flush=True); sys.stdin.readline()\n"
        "    save(history, 1)\n"
    )
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code, where, PROGRAM.parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    for process in both:
        with process.stdout as ready:
            ready.readline()
    for process in both:
        process.stdin.close()
    assert [process.wait(60) for process in both] == [0, 0]
    with History(where) as history:
        assert len(history.entries()) == 2
        assert check(history) == {"1"}
        assert {kind: size for kind, size in history.sizes().items() if kind != "values"} == {
            kind: size for kind, size in sizes.items() if kind != "values"
        }


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="processes are forked")
def test_killed_processes_lose_nothing_and_leave_nothing_half(where):
    kills = "200" if "ROUNDS" in os.environ else "60"  # of make test-stores, or make test-slow
    done = subprocess.run([sys.executable, PROGRAM, where, kills, "34"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10
    with History(where) as history:
        check(history)


@pytest.mark.slow
def test_a_server_that_is_lost_in_the_middle_is_reported_and_nothing_is_half(postgres, postgres_server):
    import psycopg

    with History(postgres) as history:
        save(history, 1)
        docs = np.arange(1_500_000) % 900_000
        run = Run.from_columns(np.arange(1_500_000) // 1000, docs, np.random.default_rng(2).normal(size=1_500_000))
        qrels = {"1": {"1": 1}}
        evaluation = evaluate(qrels, run, "RR")
        raised = []

        def add():
            with pytest.raises(StorageError) as told:
                history.add(evaluation, qrels, run=run)
            raised.append(str(told.value))

        saving = threading.Thread(target=add)
        before = sql(postgres, "SELECT count(*) FROM rankgauge_blocks")[0]
        saving.start()
        while sql(postgres, "SELECT count(*) FROM rankgauge_blocks")[0] < before + 3:
            time.sleep(0.005)
        name = psycopg.conninfo.conninfo_to_dict(postgres)["dbname"]
        with psycopg.connect(postgres_server, autocommit=True) as server:
            server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            saving.join()
            server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert "the server cannot be reached" in raised[0]
        assert check(history) == {"1"}
        # What was left over does not disturb the next attempt.
        entry = history.add(evaluation, qrels, run=run)
        assert history.run(entry) == run
        history.delete(entry)
        assert sql(postgres, "SELECT count(*) FROM rankgauge_blocks")[0] == before
