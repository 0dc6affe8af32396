"""An unusable store: a clear message, and nothing overwritten."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from rankgauge import History, InputError, MissingExtra, evaluate
from rankgauge.store.schema import SCHEMA

QRELS = {"q1": {"d1": 1}, "q2": {"d1": 1}}
EVALUATION = evaluate(QRELS, {"q1": ["d1"], "q2": ["x", "d1"]}, ["RR", "AP"])


def save(where, **choices):
    with History(where, **choices) as history:
        return history.add(EVALUATION, QRELS)


def read(where, **choices):
    with History(where, **choices) as history:
        return [history.load(entry) for entry in history.entries()]


def refused(act, where, said, **choices) -> str:
    """Return the message after checking that the file is unchanged."""
    path = Path(where)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(InputError) as caught:
        act(where, **choices)
    text = str(caught.value)
    assert said in text
    assert str(where) in text
    assert "\nfix: " in text
    assert (path.read_bytes() if path.is_file() else None) == before
    return text


BOTH = pytest.mark.parametrize("act", [save, read])


# ---- files


def test_reading_a_missing_history_creates_no_file(tmp_path):
    refused(read, tmp_path / "no.db", "there is no store yet")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_an_empty_history(tmp_path):
    (tmp_path / "h.db").touch()
    refused(read, tmp_path / "h.db", "there is no store yet")
    assert save(tmp_path / "h.db").id == 1


@BOTH
def test_a_file_that_is_no_database_is_not_changed(act, tmp_path):
    path = tmp_path / "run.txt"
    path.write_text("q1 Q0 d1 1 2.5 bm25\n" * 100, encoding="utf-8")
    refused(act, path, "not an SQLite database")


@BOTH
def test_a_database_of_another_application_is_not_changed(act, tmp_path):
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE customers (name TEXT)")
    connection.commit()
    connection.close()
    refused(act, path, "this is another kind of database: it contains 'customers'")
    assert [each.name for each in tmp_path.iterdir()] == ["shop.db"]


@BOTH
def test_a_newer_version_is_not_changed(act, tmp_path):
    path = tmp_path / "h.db"
    save(path)
    change(path, "UPDATE rankgauge_version SET version_num = '9999'")
    message = f"this store is of version 9999; this rankgauge knows versions up to {SCHEMA.revision}"
    text = refused(act, path, message)
    assert "pip install --upgrade rankgauge" in text


@BOTH
def test_missing_tables_are_reported(act, tmp_path):
    path = tmp_path / "h.db"
    save(path)
    change(path, "DROP TABLE rankgauge_values")
    refused(act, path, "this store is damaged: tables are missing")


def change(path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


@BOTH
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.9999])  # the last: within the last page
def test_a_truncated_file_is_reported_and_not_changed(act, share, tmp_path):
    path = tmp_path / "h.db"
    for _ in range(3):
        save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    refused(act, path, "damaged")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rankgauge_evaluations SET head = replace(head, '0.75', '0.95')",
        "UPDATE rankgauge_evaluations SET head = '{'",
        "UPDATE rankgauge_evaluations SET time = '2020-01-01T00:00:00+00:00'",
        "UPDATE rankgauge_values SET body = substr(body, 1, 5)",
        "UPDATE rankgauge_values SET body = (SELECT ids FROM rankgauge_queries)",
        "DELETE FROM rankgauge_values WHERE name = 'AP'",
        "DELETE FROM rankgauge_queries",
        "UPDATE rankgauge_queries SET ids = (SELECT body FROM rankgauge_values)",
        "UPDATE rankgauge_version SET version_num = '0'",
        "UPDATE rankgauge_version SET version_num = 'one'",
    ],
)
def test_a_changed_row_is_reported(statement, tmp_path):
    path = tmp_path / "h.db"
    save(path)
    change(path, statement)
    refused(read, path, "damaged")


@pytest.mark.slow
def test_every_single_flipped_byte_is_reported_or_harmless(tmp_path):
    """Whatever happens to a byte, no changed value is returned, and nothing crashes."""
    path = tmp_path / "h.db"
    save(path)
    whole = path.read_bytes()
    told = 0
    for place in range(0, len(whole), 97):
        broken = bytearray(whole)
        broken[place] ^= 0x15
        path.write_bytes(broken)
        try:
            found = read(path)
        except InputError:
            told += 1
        else:
            assert found in ([EVALUATION], []), place
    assert told


@pytest.mark.skipif(os.name == "nt", reason="rights of files are those of POSIX")
def test_a_new_file_and_its_log_are_readable_by_their_owner_only(tmp_path):
    path = tmp_path / "h.db"
    save(path)
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("SELECT * FROM rankgauge_evaluations").fetchall()
        save(path)
        modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
    assert modes == {"h.db": 0o600, "h.db-wal": 0o600, "h.db-shm": 0o600, "h.db.artifacts": 0o700}
    # The rights that somebody has given are kept.
    path.chmod(0o640)
    save(path)
    assert path.stat().st_mode & 0o777 == 0o640


@BOTH
def test_a_folder_is_no_store(act, tmp_path):
    refused(act, tmp_path, "this is a folder")


def test_a_missing_folder_is_reported_and_not_created(tmp_path):
    refused(save, tmp_path / "gone" / "h.db", "there is no folder")
    refused(read, tmp_path / "gone" / "h.db", "there is no store yet")
    assert list(tmp_path.iterdir()) == []


@BOTH
def test_an_impossible_path_is_reported(act, tmp_path):
    for where in ("", "a\0b", str(tmp_path / ("x" * 5000))):
        with pytest.raises(InputError):
            act(where)


def test_names_with_marks_of_urls_are_only_names(tmp_path):
    for name in ("a?mode=memory", "b%20c#d", "é ü.db", ":memory:"):
        save(str(tmp_path / name))
        assert (tmp_path / name).is_file()
        assert read(str(tmp_path / name)) == [EVALUATION]


def test_a_url_of_a_file_is_the_file(tmp_path):
    save(f"sqlite:///{tmp_path}/h.db")
    assert read(tmp_path / "h.db") == [EVALUATION]


def test_a_lock_is_waited_for_and_then_reported(tmp_path):
    path = tmp_path / "h.db"
    save(path)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    text = refused(save, path, "another program is writing to this store", wait=0.3)
    assert "did not finish within 0.3 seconds" in text
    # Readers do not wait for a writer.
    assert read(path, wait=0.3) == [EVALUATION]
    timer = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    timer.start()
    assert save(path).id == 2
    timer.join()
    other.close()


def test_an_exclusive_lock_is_reported_to_readers_too(tmp_path):
    path = tmp_path / "h.db"
    save(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(InputError, match="another program"):
        read(path, wait=0.2)
    other.close()


@pytest.mark.skipif(os.name == "nt", reason="rights of folders are those of POSIX")
def test_a_folder_without_the_right_to_write_can_be_read_from_but_not_written_to():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "h.db")
        save(path)
        assert read(path) == [EVALUATION]
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        said = as_nobody(lambda: [read(path) == [EVALUATION], told(save, path)])
        Path(folder).chmod(0o755)
    assert said[0] is True
    assert said[1].startswith(f"{path}: cannot be written: ")
    assert said[1].endswith("\nfix: check that the file and its folder are writable")


def told(act, where) -> str:
    with pytest.raises(InputError) as caught:
        act(where)
    return str(caught.value)


def as_nobody(act):
    """Return the result of `act` in a process without root privileges."""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            os.write(into, json.dumps(act()).encode())
        except BaseException as error:  # noqa: BLE001 - the parent says it
            os.write(into, json.dumps(repr(error)).encode())
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out) as stream:
        found = json.load(stream)
    os.waitpid(child, 0)
    return found


# ---- URLs and servers


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://me:secret@host/db", "this kind of database is not supported"),
        ("postgresql+asyncpg://me:secret@host/db", "this kind of database is not supported"),
        ("http://me:secret@host/db", "this kind of database is not supported"),
        ("postgresql://me:secret@host:port/db", "this URL cannot be parsed"),
        ("postgresql://me:se/cret@x:y@host/db", "this URL cannot be parsed"),
        ("postgresql://me:s@cret/s@cret@host/db", "this URL cannot be parsed"),
        ("postgresql://me:p@secret@host/db", "this URL cannot be parsed"),
        ("postgresql://me@server:p@12/secret@host/db", "this URL cannot be parsed"),
        ("postgresql://me:p@host?options=secret@host/db", "this URL cannot be parsed"),
        ("sqlite://", "this URL names no file"),
        ("sqlite:///:memory:", "this URL names no file"),
    ],
)
def test_a_wrong_url_is_reported_without_its_password(url, said):
    with pytest.raises(InputError) as caught:
        History(url)
    text = str(caught.value)
    assert said in text
    assert "\nfix: " in text
    assert "secret" not in text
    assert "cret" not in text.replace("secret", "")


@BOTH
def test_a_url_with_a_missing_slash_is_reported_without_its_password(act):
    with pytest.raises(InputError) as caught:
        act("postgresql:/me:secret@host/db")
    assert "secret" not in str(caught.value) + History("postgresql:/me:secret@host/db").where


@BOTH
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cr3t@127.0.0.1:1/db?connect_timeout=2",
        "postgres://me@127.0.0.1:1/db?password=s3cr3t",
        "postgresql://me@server:a%40s3cr3t@127.0.0.1:1/db?connect_timeout=2",
        "postgresql://me:a/s3cr3t#@127.0.0.1:1/db?connect_timeout=2",
        "postgresql+psycopg://me:s3cr3t@/db?host=/no/such/folder",
    ],
)
def test_an_unreachable_server_is_reported_without_the_password(act, url):
    pytest.importorskip("psycopg")
    with pytest.raises(InputError) as caught:
        act(url)
    text = str(caught.value)
    assert "the server cannot be reached" in text
    assert "\nfix: check host, port" in text
    assert "s3cr3t" not in text
    assert "s3cr3t" not in History(url).where
    assert "s3cr3t" not in repr(History(url))


@BOTH
def test_a_database_missing_on_the_server_is_reported(act, postgres):
    url = postgres.replace("/t", "/nosuch", 1)
    with pytest.raises(InputError, match=r"cannot be reached: .*nosuch.* does not exist"):
        act(url)


def test_a_server_without_a_history_has_none_yet_and_keeps_its_other_tables(postgres):
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    with pytest.raises(InputError, match="there is no store yet"):
        read(postgres)
    assert save(postgres).id == 1
    with psycopg.connect(postgres) as connection:
        assert connection.execute("SELECT count(*) FROM customers").fetchone() == (0,)


@BOTH
def test_a_newer_version_on_a_server_is_not_changed(act, postgres):
    import psycopg

    save(postgres)
    with psycopg.connect(postgres) as connection:
        connection.execute("UPDATE rankgauge_version SET version_num = '9999'")
    with pytest.raises(InputError, match="this store is of version 9999"):
        act(postgres)


def test_a_lock_on_a_server_is_waited_for_and_then_reported(postgres):
    import psycopg

    save(postgres)
    with psycopg.connect(postgres) as connection:
        connection.execute("LOCK TABLE rankgauge_evaluations IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(InputError, match="another program is writing to this store"):
            save(postgres, wait=0.3)
    assert save(postgres).id > 1


def test_missing_rights_to_create_tables_are_reported(postgres):
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    try:
        with pytest.raises(InputError, match="the server denies permission"):
            save(postgres.replace("tester@", "guest@"))
    finally:
        with psycopg.connect(postgres) as connection:
            connection.execute("DROP ROLE guest")


# ---- libraries

WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
from rankgauge import History, MissingExtra, evaluate
try:
    with History(sys.argv[2]) as history:
        history.add(evaluate({"q1": {"d"}}, {"q1": ["d"]}, "RR"))
except MissingExtra as error:
    print(error)
"""


def test_a_missing_driver_is_named_with_the_line_that_installs_it(tmp_path):
    words = [sys.executable, "-c", WITHOUT, "psycopg", "postgresql://me:secret@host/db"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "fix: pip install 'rankgauge[postgres]'" in done.stdout
    assert "secret" not in done.stdout


def test_missing_extra_is_an_import_error():
    assert issubclass(MissingExtra, ImportError)
