"""The store of verdicts is append-only and durable; the latest verdict counts."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from rankgauge import RankgaugeError
from rankgauge.answers import Claim, Verdict, VerdictStore

ADD = """
import sys
from rankgauge.answers import Verdict, VerdictStore
store = VerdictStore(sys.argv[1])
for n in range(100_000):
    store.add([Verdict(f"k{n}-{part}", "supported", "ann") for part in "ab"])
    print(n, flush=True)
"""


def test_the_latest_verdict_of_a_judge_counts_and_none_is_removed(where):
    with VerdictStore(where) as store:
        store.add([Verdict("k", "supported", "ann"), Verdict("k", "contradicted", "bob")])
        store.add([Verdict("k", "not stated", "ann", quote="so", reason="why", quoted=True)])
        assert [v.label for v in store.verdicts()] == ["supported", "contradicted", "not stated"]
        assert store.labels("ann") == {"k": "not stated"}
        assert store.labels("bob") == {"k": "contradicted"}
    with VerdictStore(where) as store:
        last = store.verdicts("ann")[-1]
        assert (last.quote, last.reason, last.quoted) == ("so", "why", True)
        assert last.time.endswith("+00:00")


def test_texts_of_any_kind_are_stored(where):
    quote = "\u202e Ελλάδα 水 🙂 ' \" ; DROP TABLE x; --\n"
    with VerdictStore(where) as store:
        store.add([Verdict("k", "supported", "añn 水", quote=quote)])
        store.add_claims({quote: [Claim(quote, vital=False)]}, "rules")
        assert store.verdicts("añn 水")[0].quote == quote
        assert store.claims([quote, "other"], "rules") == {quote: (Claim(quote, vital=False),)}
        store.add_claims({quote: [Claim("another")]}, "rules")
        assert store.claims([quote], "rules") == {quote: (Claim(quote, vital=False),)}


def test_no_verdict_is_stored_if_one_is_invalid(where):
    with VerdictStore(where) as store:
        store.add([Verdict("k1", "supported", "ann")])
        with pytest.raises(Exception, match=r"(?s).+"):
            store.add([Verdict("k2", "supported", "ann"), Verdict(None, "supported", "ann")])
        assert list(store.labels()) == ["k1"]


def test_a_store_that_does_not_exist_is_empty_and_not_made_by_reading(tmp_path):
    store = VerdictStore(tmp_path / "none.db")
    assert store.verdicts() == []
    assert store.labels() == {}
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("content", ["foreign", "text"])
def test_a_file_of_another_format_is_refused_and_not_changed(tmp_path, content):
    path = tmp_path / "x.db"
    if content == "text":
        path.write_text("question,answer\n" * 99)
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE mine (x)")
        connection.close()
    before = path.read_bytes()
    with VerdictStore(path) as store, pytest.raises(RankgaugeError):
        store.add([Verdict("k", "supported", "ann")])
    assert path.read_bytes() == before


def test_a_locked_store_is_reported(tmp_path):
    path = tmp_path / "v.db"
    with VerdictStore(path) as store:
        store.add([Verdict("k", "supported", "ann")])
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        with VerdictStore(path, wait=0.1) as store, pytest.raises(RankgaugeError):
            store.add([Verdict("k", "not stated", "ann")])
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_after_kill_9_every_group_that_was_confirmed_is_there_and_none_in_part(tmp_path):
    path = tmp_path / "v.db"
    process = subprocess.Popen([sys.executable, "-c", ADD, str(path)], stdout=subprocess.PIPE, text=True)
    for _ in range(20):
        process.stdout.readline()
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    confirmed = 20 + process.communicate(timeout=30)[0].count("\n")
    with VerdictStore(path) as store:
        keys = list(store.labels())
        assert len(keys) % 2 == 0
        assert len(keys) // 2 in {confirmed, confirmed + 1}
        store.add([Verdict("more", "supported", "ann")])
        assert "more" in store.labels()


def test_a_store_that_is_created_in_a_block_lets_readers_and_a_writer_work_at_once(tmp_path):
    with VerdictStore(tmp_path / "store.db") as store:
        store.create()
        with closing(sqlite3.connect(tmp_path / "store.db")) as other:
            assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
