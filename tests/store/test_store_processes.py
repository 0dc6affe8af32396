"""Processes that use a store at the same time and end by signals: what was confirmed is stored.

`make test-stores` repeats the scenarios in every order of the signals, ROUNDS times each.
"""

import os
import re
import signal
import threading

import pytest
from stores import AT_ONCE, DATABASES, ORDERS, STORES, start, visit, wait_for

resource = pytest.importorskip("resource", reason="limits of files are those of POSIX")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="processes end by POSIX signals")]


@pytest.fixture(
    params=[
        (kind, where) for kind in STORES for where in ("sqlite", "postgres") if where == "sqlite" or kind in DATABASES
    ],
    ids="-".join,
)
def store(request, tmp_path):
    """Return the kind and the location of an empty store."""
    kind, where = request.param
    if where == "postgres":
        return kind, request.getfixturevalue("postgres")
    return kind, location(kind, tmp_path)


def location(kind, folder):
    return str(folder / ("store.db" if kind in (*DATABASES, "replies") else "store"))


class Writer:
    """A process that writes to a store, and the ids that it has confirmed."""

    def __init__(self, kind, where, name):
        self.process = start("write", kind, where, name)
        self.confirmed = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.confirmed.append(line.strip())

    def end(self, how=signal.SIGKILL):
        """End the process by a signal; it must not have ended by an error before."""
        if self.process.returncode is None:
            self.process.send_signal(how)
            self.process.wait(60)
            self._reader.join(60)
            errors = self.process.stderr.read()
            stopped = how == signal.SIGINT and re.search("KeyboardInterrupt|Query interrupt", errors)
            assert not errors or stopped, errors


@pytest.fixture
def started():
    """Return a function that starts a writer, which ends with the test at the latest."""
    writers = []

    def begin(*words):
        writers.append(Writer(*words))
        return writers[-1]

    yield begin
    for each in writers:
        each.end()
        each.process.stdout.close()
        each.process.stderr.close()


@pytest.mark.parametrize("signals", ORDERS)
def test_what_was_confirmed_is_there_whoever_else_used_the_store(store, signals, started, tmp_path):
    kind, where = store
    STORES[kind].prepare(where)
    one, two = (started(kind, where, name) for name in ("one", "two"))
    wait_for(lambda: one.confirmed or two.confirmed)
    before = {*one.confirmed, *two.confirmed}
    visit(kind, where, tmp_path / "visit")
    assert before <= STORES[kind].ids(where)
    # One ends while the other goes on; a store with one writer is free again.
    one.end(signals[0])
    reached = len(two.confirmed)
    wait_for(lambda: len(two.confirmed) > reached + AT_ONCE)
    two.end(signals[1])
    confirmed = {*one.confirmed, *two.confirmed}
    assert len(confirmed) == len(one.confirmed) + len(two.confirmed)
    assert confirmed <= STORES[kind].ids(where)
    # And it can be written to again.
    last = started(kind, where, "three")
    wait_for(lambda: last.confirmed)
    last.end(signals[2])
    assert {*confirmed, *last.confirmed} <= STORES[kind].ids(where)


@pytest.mark.parametrize("kind", STORES)
def test_a_full_disk_is_reported_and_loses_nothing(kind, started, tmp_path):
    where = location(kind, tmp_path)
    STORES[kind].prepare(where)
    size = max((each.stat().st_size for each in tmp_path.iterdir()), default=0)
    most = 2_000 if kind == "log" else size + 300_000  # each import writes new files
    full = start(
        "write",
        kind,
        where,
        "one",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # it would be cut off, too
    )
    out, errors = full.communicate(timeout=100)
    assert full.returncode == 1
    assert "InputError" in errors or "StorageError" in errors, errors
    assert "fix: " in errors
    confirmed = set(out.split())
    assert confirmed <= STORES[kind].ids(where)
    # With space again, writing goes on.
    last = started(kind, where, "two")
    wait_for(lambda: last.confirmed)
    last.end()
    assert {*confirmed, *last.confirmed} <= STORES[kind].ids(where)
