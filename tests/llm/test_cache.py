"""Cached replies: no call is paid twice, whatever happens to the process."""

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from loopback import completion, serving

from rankgauge.errors import InputError
from rankgauge.llm import ChatModel, ChatRequest, ModelError

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
PRICES = {"input_price": 2.0, "output_price": 10.0}


def counting(_body, before):
    return completion(json.dumps({"n": before}))


@pytest.fixture
def make(tmp_path):
    made = []

    def model(server, **options):
        options = {"cache": tmp_path / "replies.db", "model": "small", **options}
        made.append(ChatModel(options.pop("url", server.url), **options))
        return made[-1]

    yield model
    for one in made:
        one.close()


def test_a_reply_is_paid_once(make):
    with serving(counting) as server:
        first = make(server, **PRICES).complete("a", schema=SCHEMA)
        model = make(server, **PRICES)
        second = model.complete("a", schema=SCHEMA)
        (third,) = model.complete_all([ChatRequest("a", SCHEMA)])
    assert len(server.bodies) == 1
    assert (second.data, second.text, second.model) == (first.data, first.text, "m-1")
    assert (first.cached, second.cached, third.cached) == (False, True, True)
    assert (second.usage.cost, second.usage.calls, second.usage.cached) == (0, 0, 1)
    assert str(model.usage()).startswith("0 calls, 2 cached, 0 failed; 0 input")


@pytest.mark.parametrize(
    "change",
    [
        {"model": "large"},
        {"temperature": 1},
        {"temperature": None},
        {"seed": 1},
        {"max_tokens": 5},
        {"parameters": {"top_p": 1}},
        {"headers": {"x-tenant": "b"}},
        {"url": "/v2"},
        {"messages": "b"},
        {"sample": 1},
        {"schema": SCHEMA | {"title": "x"}},
        {"schema": None},
        {"messages": [{"role": "system", "content": "a"}]},
    ],
    ids=str,
)
def test_options_that_change_a_reply_send_a_new_request(make, change):
    """A key without the model or its parameters would mix up the replies of models."""
    with serving(counting) as server:
        make(server).complete("a", schema=SCHEMA)
        options = {k: v for k, v in change.items() if k not in {"messages", "sample", "schema"}}
        if "url" in options:
            options["url"] = server.url + options["url"]
        asked = {"messages": "a", "schema": SCHEMA} | {
            k: v for k, v in change.items() if k in {"messages", "sample", "schema"}
        }
        assert not make(server, **options).complete(**asked).cached
        assert make(server).complete("a", schema=SCHEMA).data == {"n": 0}


def test_options_that_change_no_reply_reuse_the_cache(make):
    with serving(counting) as server:
        make(server).complete("a", schema=SCHEMA)
        others = {"concurrency": 1, "timeout": 5, "retries": 0, "repairs": 3, "max_cost": 1}
        assert make(server, **others, **PRICES).complete("a", schema=SCHEMA).cached


def test_refresh_asks_again_and_replaces_the_reply(make):
    with serving(counting) as server:
        model = make(server)
        replies = [model.complete("a", schema=SCHEMA, refresh=refresh) for refresh in (False, True, False)]
        (last,) = model.complete_all([ChatRequest("a", SCHEMA)], refresh=True)
    assert [reply.data["n"] for reply in replies] == [0, 1, 1]
    assert [reply.cached for reply in replies] == [False, False, True]
    assert last.data == {"n": 2}


def test_failures_are_not_kept(make):
    def server(_body, before):
        if before == 0:
            return completion("{", finish="length")
        return completion("never valid") if before < 3 else counting(None, before)

    with serving(server) as said:
        codes = []
        for _ in range(2):
            with pytest.raises(ModelError) as caught:
                make(said).complete("a", schema=SCHEMA)
            codes.append(caught.value.code)
        assert codes == ["truncated", "invalid"]
        assert make(said).complete("a", schema=SCHEMA).data == {"n": 3}


def test_a_key_does_not_depend_on_what_the_server_turned_out_to_refuse(make):
    def server(body, before):
        if "temperature" in body or "response_format" in body:
            param = "response_format" if "response_format" in body else "temperature"
            return 400, {}, {"error": {"message": "not supported", "param": param}}
        return counting(body, before)

    with serving(server) as said:
        first = make(said).complete("a", schema=SCHEMA)
        second = make(said).complete("a", schema=SCHEMA)
    assert second.cached
    assert first.not_applied == second.not_applied == ("json_object", "json_schema", "temperature")


def test_a_kept_reply_that_is_not_valid_is_asked_for_again(make, tmp_path):
    with serving(counting) as server:
        make(server).complete("a", schema=SCHEMA)
        with sqlite3.connect(tmp_path / "replies.db") as file:
            file.execute("UPDATE rankgauge_replies_1 SET reply = replace(reply, '0', 'null')")
        file.close()
        assert make(server).complete("a", schema=SCHEMA).data == {"n": 1}


def test_the_file_is_for_its_owner_only_and_holds_no_request(make, tmp_path):
    path = tmp_path / "replies.db"
    before = os.umask(0)
    try:
        with serving(lambda *_: completion("half a pair \ud800, private reply")) as server:
            make(server).complete("private question")
            assert make(server).complete("private question").cached
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"private reply" in path.read_bytes()
    assert b"private question" not in path.read_bytes()
    assert [one.name for one in tmp_path.iterdir()] == ["replies.db"]


def _another(path):
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE invoices (n)")
    file.close()


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda path: path.mkdir(), "unable to open"),
        (lambda path: path.write_text("text " * 999), "not an SQLite database"),
        (_another, "this is another kind of database: it contains 'invoices'"),
    ],
    ids=["folder", "text", "another"],
)
def test_a_file_that_is_no_cache_is_refused_before_any_call(make, tmp_path, prepare, message):
    path = tmp_path / "replies.db"
    prepare(path)
    with serving(counting) as server:
        with pytest.raises(InputError, match=message) as caught:
            make(server).complete_all(["a"])
        with pytest.raises(InputError, match=message):
            make(server).complete("a")
        with pytest.raises(InputError, match="No such file"):
            make(server, cache=tmp_path / "missing" / "x.db").complete("a")
    assert server.bodies == []
    assert str(path) in str(caught.value)


def test_a_cache_that_fails_later_loses_no_result(make, tmp_path):
    def server(_body, before):
        if before == 1:
            (tmp_path / "replies.db").unlink()
            (tmp_path / "replies.db").mkdir()
        return completion("x")

    with serving(server) as said:
        results = make(said, concurrency=1).complete_all(["a", "b", "c", "d"])
    assert [getattr(one, "text", None) or one.code for one in results[:2]] == ["x", "x"]
    assert [one.code for one in results[2:]] == ["skipped", "skipped"]
    assert "not sent: cannot be written" in results[2].what


WORK = """
import sys
from rankgauge.llm import ChatModel
model = ChatModel(sys.argv[1], "small", cache=sys.argv[2], concurrency=4)
results = model.complete_all(f"question {n}" for n in range(int(sys.argv[3])))
print([result.text or str(result) for result in results])
"""


def process(*words, program=WORK):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def echo(body, _before):
    time.sleep(0.02)
    return completion(body["messages"][0]["content"].upper())


def test_several_processes_share_one_cache(make, tmp_path):
    with serving(echo) as server:
        workers = [process(server.url, tmp_path / "replies.db", 20) for _ in range(2)]
        for worker in workers:
            out, err = worker.communicate(timeout=60)
            assert (err, out) == ("", f"{[f'QUESTION {n}' for n in range(20)]}\n")
        assert len(server.bodies) == 20
        replies = make(server).complete_all(f"question {n}" for n in range(20))
        assert all(reply.cached for reply in replies)
        assert len(server.bodies) == 20


@pytest.mark.slow
def test_the_claim_of_a_killed_process_is_taken_over(tmp_path):
    """Another process waits for the reply when the process that requested it is killed."""
    asked, waiting = threading.Event(), threading.Event()

    def server(body, before):
        asked.set()
        if before == 0:
            waiting.wait(30)
            return 200, {}, None
        return echo(body, before)

    with serving(server) as said:
        first = process(said.url, tmp_path / "replies.db", 1)
        assert asked.wait(30)
        second = process(said.url, tmp_path / "replies.db", 1)
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(3)  # the claim is renewed: the call may take longer
        first.kill()
        first.communicate()
        out, err = second.communicate(timeout=60)
        waiting.set()
    assert (err, out) == ("", "['QUESTION 0']\n")
    assert len(said.bodies) == 2


def test_a_claim_is_renewed_while_its_call_takes_longer_than_it_is_valid(make, monkeypatch):
    monkeypatch.setattr("rankgauge.llm.cache._RENEWAL", 0.05)
    monkeypatch.setattr("rankgauge.llm.cache._LEASE", 0.5)

    def server(body, before):
        time.sleep(1.5)
        return counting(body, before)

    with serving(server) as said:
        models = [make(said) for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            replies = list(pool.map(lambda model: model.complete("a", schema=SCHEMA), models))
    assert len(said.bodies) == 1
    assert sorted(reply.cached for reply in replies) == [False, True, True]
    assert sum(model.usage().calls for model in models) == 1


def test_a_call_that_fails_leaves_its_request_to_those_who_wait(make):
    started, waiting = threading.Event(), threading.Event()

    def server(body, before):
        if before == 0:
            started.set()
            waiting.wait(30)
            return 400, {}, {"error": "no"}
        return counting(body, before)

    with serving(server) as said, ThreadPoolExecutor(2) as pool:
        first = pool.submit(make(said).complete, "a", schema=SCHEMA)
        assert started.wait(30)
        second = pool.submit(make(said).complete, "a", schema=SCHEMA)
        waiting.set()
        assert second.result().data == {"n": 1}
        with pytest.raises(ModelError, match="answered 400"):
            first.result()


def test_a_claim_from_the_future_is_void(make, tmp_path):
    """The clock was set back, or the file is from another computer."""
    with serving(counting) as said:
        make(said).complete("a")
        with sqlite3.connect(tmp_path / "replies.db") as file:
            keys = [key for (key,) in file.execute("SELECT key FROM rankgauge_replies_1")]
            file.execute("DELETE FROM rankgauge_replies_1")
            later = time.time() + 1e6
            row = [keys[0], "other", later]
            file.execute("INSERT INTO rankgauge_replies_claims_1 VALUES (?, ?, ?)", row)
        file.close()
        make(said).complete("a")
    assert len(said.bodies) == 2


EMBED = """
import sys
from rankgauge.llm import EmbeddingEndpoint
model = EmbeddingEndpoint(sys.argv[1], "small", cache=sys.argv[2], batch=3)
texts = [f"text {n}" for n in range(20)][:: int(sys.argv[3])]
print([row[0] for row in model.encode_documents(texts)] == [float(text[5:]) for text in texts])
"""


@pytest.mark.slow
def test_processes_that_embed_the_same_texts_in_another_order_pay_once(tmp_path):
    def vectors(body, _before):
        time.sleep(0.05)
        rows = [{"index": n, "embedding": [int(t[5:]), 1]} for n, t in enumerate(body["input"])]
        return 200, {}, {"data": rows}

    with serving(vectors) as server:
        workers = [process(server.url, tmp_path / "replies.db", step, program=EMBED) for step in (1, -1, 2)]
        for worker in workers:
            assert worker.communicate(timeout=60) == ("True\n", "")
    sent = [text for body in server.bodies for text in body["input"]]
    assert sorted(sent) == sorted(f"text {n}" for n in range(20))


@pytest.mark.parametrize(
    "how",
    [pytest.param(signal.SIGKILL, id="kill -9", marks=pytest.mark.slow), pytest.param(signal.SIGINT, id="Ctrl-C")],
)
def test_a_process_that_is_killed_has_paid_only_calls_under_way_in_vain(make, tmp_path, how):
    half = threading.Event()

    def server(body, before):
        if before == 8:
            half.set()
        return echo(body, before)

    with serving(server) as said:
        worker = process(said.url, tmp_path / "replies.db", 24)
        assert half.wait(30)
        worker.send_signal(how)
        _, err = worker.communicate(timeout=30)
        assert worker.returncode != 0
        assert ("KeyboardInterrupt" in err) == (how == signal.SIGINT)
        time.sleep(0.1)  # its last output may still be in the pipe
        before = len(said.bodies)
        assert before < 24
        results = make(said).complete_all(f"question {n}" for n in range(24))
    assert [one.text for one in results] == [f"QUESTION {n}" for n in range(24)]
    kept = sum(one.cached for one in results)
    # Ctrl-C lets running calls end and keeps their replies.
    assert before - 4 * (how == signal.SIGKILL) <= kept <= before
    assert len(said.bodies) == before + 24 - kept
