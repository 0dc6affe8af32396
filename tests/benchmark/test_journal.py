"""A journal keeps all responses, however the process ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from hypothesis import given, strategies as st

from rankgauge import Hits, InputError, Query
from rankgauge.benchmark.journal import Journal, Response, query_key

HITS = st.builds(
    lambda ids, scored, repeated, beyond, ascending: Hits(
        ids,
        [1.0 / (n + 1) for n in range(len(ids))] if scored else [float(n) for n in range(len(ids), 0, -1)],
        scored,
        repeated,
        beyond,
        ascending,
    ),
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), unique=True),
    st.booleans(),
    st.integers(0, 5),
    st.integers(0, 5),
    st.booleans(),
)


def response(query, hits=None, **rest):
    return Response(query, query_key(Query(query, "text")), hits, **rest)


def everything(journal):
    return list(journal.responses(journal.known(failed=True)))


@given(
    st.lists(
        st.tuples(st.text(st.characters(exclude_categories=["Cs"])), HITS, st.integers(1, 4)),
        unique_by=lambda row: row[0],
    )
)
def test_a_journal_round_trips_bit_for_bit(tmp_path_factory, rows):
    kept = [response(query, hits, seconds=0.25, attempts=n) for query, hits, n in rows]
    with Journal(tmp_path_factory.mktemp("j") / "j") as journal:
        journal.open()
        for one in kept:
            journal.append(one)
        assert everything(journal) == kept
    assert everything(Journal(journal.folder)) == kept


def test_a_failure_round_trips_with_its_type_and_message(tmp_path):
    failed = response("q1", None, error="no response within 2 s", kind="timeout", attempts=3)
    with Journal(tmp_path) as journal:
        journal.open()
        journal.append(failed)
    assert everything(journal) == [failed]


def test_the_last_answer_to_a_query_counts(tmp_path):
    with Journal(tmp_path) as journal:
        journal.open()
        journal.append(response("q1", None, error="no", kind="error"))
        journal.append(response("q2", Hits(["d1"], [1.0])))
    keys = {q: (q, query_key(Query(q, "text"))) for q in ("q1", "q2")}
    assert journal.known(failed=True) == set(keys.values())
    assert journal.known(failed=False) == {keys["q2"]}
    with Journal(tmp_path) as journal:
        journal.open()
        journal.append(response("q1", Hits(["d9"], [1.0])))
        assert [(a.query, a.hits.ids) for a in everything(journal)] == [("q2", ["d1"]), ("q1", ["d9"])]
        assert len(journal.known(failed=False)) == 2


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_an_incomplete_line_is_cut_off(tmp_path, cut):
    with Journal(tmp_path) as journal:
        journal.open()
        journal.append(response("q1", Hits(["d1"], [1.0])))
        journal.append(response("q2", Hits(["d2"], [1.0])))
    path = tmp_path / "responses.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    with Journal(tmp_path) as journal:
        journal.open()
        journal.append(response("q3", Hits(["d3"], [1.0])))
        assert [a.query for a in everything(journal)] == ["q1", "q3"]


def test_a_long_incomplete_last_line_is_cut_off_whole(tmp_path):
    with Journal(tmp_path) as journal:
        journal.open()
        journal.append(response("q1", Hits(["d1"], [1.0])))
        journal.append(response("q2", Hits([f"document-{n}" for n in range(20_000)], [1.0] * 20_000)))
    path = tmp_path / "responses.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    with Journal(tmp_path) as journal:
        journal.open()
        assert [a.query for a in everything(journal)] == ["q1"]
    path.write_bytes(b"x" * 200_000)
    with Journal(tmp_path) as journal:
        journal.open()
        assert everything(journal) == []
        assert path.stat().st_size == 0


@pytest.mark.parametrize(
    "damage", [b"garbage\n", b"{}\n", b"[1]\n", b"\n", b'{"query":"q9"}\n', b"\xff\xfe\n", b"null\n"]
)
def test_a_damaged_line_is_ignored(tmp_path, damage):
    with Journal(tmp_path) as journal:
        journal.open()
        journal.append(response("q1", Hits(["d1"], [1.0])))
    path = tmp_path / "responses.jsonl"
    path.write_bytes(damage + path.read_bytes() + damage)
    assert [a.query for a in everything(Journal(tmp_path))] == ["q1"]


def test_only_one_process_writes_a_journal(tmp_path):
    with Journal(tmp_path) as journal:
        journal.open()
        with pytest.raises(InputError, match="another process is running"):
            Journal(tmp_path).open()
    with Journal(tmp_path) as journal:
        journal.open()


def test_a_new_journal_is_empty_and_has_another_stamp(tmp_path):
    with Journal(tmp_path) as journal:
        journal.open()
        journal.append(response("q1", Hits(["d1"], [1.0])))
        journal.note(finished=True)
        stamp = journal.stamp()
        journal.close()
        journal.open(fresh=True)
        assert everything(journal) == []
        assert "finished" not in journal.head
        assert journal.stamp() != stamp


def test_a_damaged_header_is_ignored_and_another_format_refused(tmp_path):
    with Journal(tmp_path) as journal:
        journal.open()
        journal.note(finished=True)
    head = tmp_path / "run.json"
    assert json.loads(head.read_text())["finished"] is True
    for version in (2, 4):
        head.write_text(json.dumps({"format": version}))
        with pytest.raises(InputError, match=f"format {version}, expected 3"):
            Journal(tmp_path).open()
    for damage in (
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"format": "2"}',
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    ):
        head.write_text(damage, encoding="latin-1")
        with Journal(tmp_path) as journal:
            journal.open()
            assert "finished" not in journal.head
            assert "run.json is damaged" in journal.notes[0]


def test_a_folder_that_cannot_be_created_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written") as caught:
        Journal(tmp_path / "file" / "j").open()
    assert str(tmp_path / "file") in str(caught.value)


def test_a_key_changes_with_id_text_and_fields():
    keys = {
        query_key(query)
        for query in (
            Query("q1", "a"),
            Query("q2", "a"),
            Query("q1", "b"),
            Query("q1", "a", {"tenant": 1}),
            Query("q1", "a", {"tenant": 2}),
            Query("q1a", ""),
            Query("", "q1a"),
        )
    }
    assert len(keys) == 7
    assert all(len(key) == 32 for key in keys)


def flipped(path):
    """Yield the file with each bit flipped in turn; restore it at the end."""
    whole = path.read_bytes()
    for place in range(len(whole) * 8):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        yield
    path.write_bytes(whole)


def test_no_flipped_bit_changes_an_answer(tmp_path):
    kept = [
        response("q1", Hits(["d1", "d2"], [1.0, 0.5], scored=True, beyond=3), seconds=0.25),
        response("q2", None, error="no", kind="error", attempts=2),
        response("q3", Hits(["d3"], [1.0], repeated=1)),
    ]
    with Journal(tmp_path) as journal:
        journal.open()
        for one in kept:
            journal.append(one)
    for _ in flipped(tmp_path / "responses.jsonl"):
        found = everything(Journal(tmp_path))
        assert [one for one in kept if one in found] == found
        assert 1 <= len(found) <= 2, "a damaged newline costs two responses"


def test_no_flipped_bit_of_the_header_changes_its_content(tmp_path):
    with Journal(tmp_path) as journal:
        journal.open()
        journal.note(asked=3)
        stamp = journal.stamp()
    for _ in flipped(tmp_path / "run.json"):
        with Journal(tmp_path) as journal:
            journal.open()
            said = (journal.stamp(), journal.head.get("asked"))
            assert said == (stamp, 3) or ("asked" not in journal.head and journal.notes)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_a_forked_child_does_not_inherit_the_lock_of_a_killed_process(tmp_path):
    code = """
    import os, sys, time
    from pathlib import Path
    from rankgauge.benchmark.journal import Journal
    journal = Journal(Path(sys.argv[1]))
    journal.open()
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
    print(child, flush=True)
    time.sleep(60)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    child = int(process.stdout.readline())
    try:
        with pytest.raises(InputError, match="another process is running"):
            Journal(tmp_path).open()
        time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        os.kill(child, 0)
        with Journal(tmp_path) as journal:
            journal.open()
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()
