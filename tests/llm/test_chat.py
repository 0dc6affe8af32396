"""A language model with a correct or faulty server."""

import json
import pickle
import subprocess
import sys
import threading
import time

import pytest
from loopback import completion, serving

from rankgauge.core.progress import showing
from rankgauge.errors import InputError
from rankgauge.llm import ChatModel, ChatRequest, ModelError, Reply

SCHEMA = {
    "type": "object",
    "properties": {"grade": {"type": "integer", "minimum": 0, "maximum": 3}},
    "required": ["grade"],
    "additionalProperties": False,
}
PRICES = {"input_price": 2.0, "output_price": 10.0}
SOON = {"Retry-After-Ms": "1"}


def in_order(*answers):
    """Return a server function that gives the replies in order, and then repeats the last one."""
    return lambda _body, before: answers[min(before, len(answers) - 1)]


def refusal(message, status=400, param=None):
    return status, {}, {"error": {"message": message, "param": param, "code": None}}


def ask(answer, *, schema=None, **options):
    """Return the reply or error of one request, and the server."""
    with serving(answer) as server:
        model = ChatModel(server.url + "/v1", "small", **options)
        try:
            result = model.complete("How relevant?", schema=schema)
        except ModelError as error:
            result = error
        model.close()
    return result, server, model


# ---- one request


def test_a_reply_has_its_text_its_tokens_and_its_cost(monkeypatch):
    monkeypatch.setenv("CHAT_KEY", "secret-key")
    reply, server, model = ask(
        in_order(completion(" Yes. ")), key_env="CHAT_KEY", seed=7, max_tokens=50, parameters={"top_p": 0.5}, **PRICES
    )
    assert (reply.text, reply.model, reply.data, reply.cached) == ("Yes.", "m-1", None, False)
    # 100 input tokens at 2 and 20 output tokens at 10 per million.
    assert reply.usage.cost == pytest.approx(0.0004, rel=1e-12)
    assert (reply.usage.calls, reply.usage.input_tokens, reply.usage.output_tokens) == (1, 100, 20)
    assert model.usage() == reply.usage
    assert server.paths == ["/v1/chat/completions"]
    assert server.bodies == [
        {
            "model": "small",
            "messages": [{"role": "user", "content": "How relevant?"}],
            "temperature": 0,
            "seed": 7,
            "max_tokens": 50,
            "top_p": 0.5,
        }
    ]
    assert server.headers[0]["authorization"] == "Bearer secret-key"
    assert "secret-key" not in json.dumps(model.settings) + repr(model)


def test_a_sample_has_a_seed_of_its_own():
    with serving(in_order(completion("x"))) as server:
        model = ChatModel(server.url, "small", seed=5, temperature=None)
        model.complete("a", sample=2)
        model.close()
    assert server.bodies[0]["seed"] == 7
    assert "temperature" not in server.bodies[0]


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (completion('{"grade": 2', finish="length"), "truncated", "cut off by its length"),
        (completion(""), "empty", "the reply is empty"),
        (completion(None), "empty", "the reply is empty"),
        (completion("<think>It is"), "empty", "empty except for reasoning"),
        (completion(None, refusal="I cannot help"), "refused", "refused: I cannot help"),
        (completion("", finish="content_filter"), "refused", "by a content filter"),
        ((200, {}, {"choices": []}), "protocol", "has no message"),
        ((200, {}, {"choices": [{"message": "x"}]}), "protocol", "has no message"),
        ((200, {}, []), "protocol", "has no message"),
        ((200, {}, b"garbage"), "server", "not valid JSON"),
        ((200, {}, b'{"x": "' + b"y" * 9_000_000 + b'"}'), "server", "more than 8,388,608 bytes"),
        ((200, {}, {"error": {"message": "no credits", "code": 402}}), "server", "no credits"),
        (refusal("no such model", 404), "server", "answered 404"),
    ],
    ids=[
        "cut off",
        "empty",
        "null",
        "only reasoning",
        "refusal",
        "filter",
        "no choices",
        "no message",
        "a list",
        "no JSON",
        "huge",
        "error with status 200",
        "404",
    ],
)
def test_a_missing_reply_says_why_and_is_not_asked_for_again(answer, code, message):
    error, server, model = ask(in_order(answer), schema=SCHEMA)
    assert isinstance(error, ModelError)
    assert (error.code, len(server.bodies)) == (code, 1)
    assert message in error.what
    assert error.where
    assert error.fix
    assert (model.usage().failed, error.usage.failed) == (1, 1)


def test_a_reply_that_is_missing_still_costs():
    error, _, model = ask(in_order(completion("x", finish="length")), max_tokens=20, **PRICES)
    assert "cut off by max_tokens=20" in error.what
    assert error.usage == model.usage()
    assert error.usage.cost == pytest.approx(0.0004, rel=1e-12)
    assert error.text == "x"


def test_reasoning_is_no_part_of_a_reply_and_parts_are_joined():
    parts = [{"type": "text", "text": "<think>Is it {1}?</think>\n"}, {"type": "text", "text": "a"}]
    assert ask(in_order(completion(parts)))[0].text == "a"


@pytest.mark.parametrize(
    "first",
    [(500, SOON, {"error": "no"}), (200, {}, {"error": {"message": "busy", "code": 503}}), (200, {}, None)],
    ids=["500", "error with status 200", "connection cut"],
)
def test_a_busy_server_is_asked_again(first):
    reply, server, _ = ask(in_order(first, (500, SOON, {"error": "no"}), completion("x")))
    assert reply.text == "x"
    assert len(server.bodies) == 3


def test_no_call_begins_before_the_time_that_a_busy_server_wants():
    times = []

    def server(_body, before):
        times.append(time.monotonic())
        if before == 0:
            return 429, {"Retry-After-Ms": "300"}, {"error": "busy"}
        time.sleep(0.1)
        return completion("x")

    with serving(server) as said:
        model = ChatModel(said.url, "small", concurrency=2)
        results = model.complete_all(["a", "b", "c"])
        model.close()
    assert [reply.text for reply in results] == ["x", "x", "x"]
    # The second call was running; the third, of the other thread, waits with the retry.
    assert len(times) == 4
    assert min(times[2:]) - times[0] >= 0.3


def test_a_server_that_stays_busy_is_given_up():
    error, server, _ = ask(in_order((503, SOON, {"error": "no"})), retries=2)
    assert (error.code, error.status, len(server.bodies)) == ("server", 503, 3)


def test_an_empty_account_is_not_asked_again():
    said = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}
    error, server, _ = ask(in_order((429, {}, said)))
    assert (error.status, len(server.bodies)) == (429, 1)


def test_a_slow_server_times_out():
    def slow(_body, _before):
        time.sleep(0.6)
        return completion("x")

    error, _, _ = ask(slow, timeout=0.2, retries=0)
    assert "no complete response within 0.2 seconds" in error.what


def test_a_secret_in_an_error_is_not_shown(monkeypatch):
    monkeypatch.setenv("CHAT_KEY", "secret-key-123")
    for answer in (
        refusal("bad key secret-key-123", 401),
        (200, {}, {"error": {"message": "bad key secret-key-123"}}),
        (200, {}, {"choices": "secret-key-123"}),
        completion("", refusal="not with secret-key-123"),
    ):
        error, _, _ = ask(in_order(answer), key_env="CHAT_KEY")
        assert "***" in str(error)
        assert "secret-key-123" not in f"{error}{error.__dict__}"


# ---- parameters that a server rejects


@pytest.mark.parametrize(
    ("answer", "parameter", "not_applied"),
    [
        (
            refusal("Unsupported value: 'temperature' does not support 0", param="temperature"),
            "temperature",
            ("temperature",),
        ),
        ((422, {}, {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs not permitted"}]}), "seed", ("seed",)),
        (
            refusal("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", param="max_tokens"),
            "max_tokens",
            (),
        ),
    ],
    ids=["temperature", "seed", "max_tokens"],
)
def test_a_parameter_that_is_refused_is_left_out_and_reported(answer, parameter, not_applied):
    def server(body, _before):
        return answer if parameter in body else completion("x")

    with serving(server) as said:
        model = ChatModel(said.url, "small", seed=1, max_tokens=9)
        first, second = model.complete("a"), model.complete("b")
        model.close()
    assert first.not_applied == second.not_applied == not_applied
    assert len(said.bodies) == 3  # rejected once, and remembered
    assert (said.bodies[1].get("max_completion_tokens") == 9) == (parameter == "max_tokens")


def test_an_error_about_something_else_refuses_no_parameter():
    """A server may quote the request; without the parameter, the request fails in the same way."""
    message = "temperature is not supported by this oven; the context is too long"
    error, server, model = ask(in_order(refusal(message)))
    assert error.status == 400
    assert len(server.bodies) == 2
    with serving(in_order(completion("x"))) as fine:
        model = ChatModel(fine.url, "small")
        model.complete("a")
        model.close()
    assert fine.bodies[0]["temperature"] == 0


def test_the_format_of_replies_falls_back_and_is_remembered():
    def server(body, _before):
        kind = body.get("response_format", {}).get("type")
        if kind is not None:
            return refusal(f"This model does not support response format `{kind}`")
        return completion('{"grade": 2}')

    with serving(server) as said:
        model = ChatModel(said.url, "small")
        first = model.complete("a", schema=SCHEMA)
        second = model.complete("b", schema=SCHEMA)
        third = model.complete("c")
        model.close()
    assert first.data == second.data == {"grade": 2}
    assert first.not_applied == second.not_applied == ("json_object", "json_schema")
    assert third.not_applied == ()
    kinds = [body.get("response_format", {}).get("type") for body in said.bodies]
    assert kinds == ["json_schema", "json_object", None, None, None]
    # A server without schema support gets the schema in the message.
    told = [json.dumps(SCHEMA) in body["messages"][-1]["content"] for body in said.bodies]
    assert told == [False, True, True, True, False]


# ---- replies with a schema


def test_an_invalid_reply_is_repaired_and_the_repair_is_counted():
    reply, server, model = ask(
        in_order(completion('{"grade": "high"}'), completion('{"grade": 3}')), schema=SCHEMA, **PRICES
    )
    assert (reply.data, reply.repairs) == ({"grade": 3}, 1)
    assert (reply.usage.calls, reply.usage.input_tokens) == (2, 200)
    assert reply.usage.cost == model.usage().cost == pytest.approx(0.0008, rel=1e-12)
    question, wrong, repair = server.bodies[1]["messages"]
    assert question["content"] == "How relevant?"
    assert wrong == {"role": "assistant", "content": '{"grade": "high"}'}
    assert "$.grade: 'high' is not of type 'integer'" in repair["content"]


def test_a_reply_that_stays_invalid_is_missing():
    error, server, _ = ask(in_order(completion("no idea")), schema=SCHEMA, repairs=2)
    assert (error.code, error.text, len(server.bodies)) == ("invalid", "no idea", 3)
    assert "not valid after 2 repairs: it has no JSON object" in error.what
    assert error.usage.calls == 3


# ---- several requests


def test_results_keep_the_order_of_requests_and_failures_lose_nothing():
    def server(body, _before):
        text = body["messages"][0]["content"]
        time.sleep(0.02 * (int(text) % 3))
        return refusal("bad", 400) if text == "4" else completion(text)

    seen = []
    with serving(server) as said, showing(lambda share, done: seen.append(f"{share:.0%} {done}")):
        model = ChatModel(said.url, "small", concurrency=5)
        results = model.complete_all([str(n) for n in range(9)])
        model.close()
    assert [r.text if isinstance(r, Reply) else r.code for r in results] == [
        "0",
        "1",
        "2",
        "3",
        "server",
        "5",
        "6",
        "7",
        "8",
    ]
    assert seen == [f"{n / 9:.0%} answered" for n in range(1, 10)]
    assert (model.usage().calls, model.usage().failed) == (8, 1)


def test_equal_requests_are_sent_once():
    with serving(in_order(completion("x"))) as server:
        model = ChatModel(server.url, "small", **PRICES)
        one = ChatRequest("a", sample=1)
        results = model.complete_all(["a", "a", one, [{"role": "user", "content": "a"}], one])
        model.close()
    assert len(server.bodies) == 2
    assert [result.cached for result in results] == [False, True, False, True, True]
    assert sum(result.usage.cost for result in results) == pytest.approx(model.usage().cost)
    assert model.usage().cached == 3


def test_equal_requests_that_fail_count_each():
    with serving(in_order(completion("x", finish="length"))) as server:
        model = ChatModel(server.url, "small", **PRICES)
        results = model.complete_all(["a", "a"])
        model.close()
    assert len(server.bodies) == 1
    assert model.usage().failed == 2
    assert [result.usage.calls for result in results] == [1, 0]
    again = pickle.loads(pickle.dumps(results[0]))
    assert (again.code, again.usage, str(again)) == ("truncated", results[0].usage, str(results[0]))


@pytest.mark.parametrize("limit", [{"requests_per_minute": 1}, {"tokens_per_minute": 140}], ids=str)
def test_a_call_waits_for_the_next_minute(limit, monkeypatch):
    """The first call uses 120 tokens; the second is estimated at 11 plus the longest response."""
    monkeypatch.setattr("rankgauge.llm.limits._MINUTE", 0.7)
    times = []

    def server(_body, _before):
        times.append(time.monotonic())
        return completion("x")

    with serving(server) as said:
        model = ChatModel(said.url, "small", **limit)
        model.complete("a")
        model.complete("bcd")
        model.close()
    assert times[1] - times[0] > 0.6


def test_no_more_calls_are_under_way_than_allowed():
    lock, now, most = threading.Lock(), 0, 0
    three = threading.Barrier(3, timeout=20)

    def server(_body, _before):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        three.wait()
        with lock:
            now -= 1
        return completion("x")

    with serving(server) as said:
        model = ChatModel(said.url, "small", concurrency=3)
        model.complete_all(map(str, range(9)))
        model.close()
    assert most == 3


@pytest.mark.parametrize(("status", "sent"), [(401, 2), (503, 12)])
def test_a_server_that_refuses_everything_is_not_asked_for_all(status, sent):
    with serving(in_order(refusal("no", status))) as server:
        model = ChatModel(server.url, "small", concurrency=2, retries=0)
        results = model.complete_all(map(str, range(200)))
        model.close()
    assert len(server.bodies) <= sent
    assert [result.status for result in results].count(status) == len(server.bodies)
    rest = [result for result in results if result.code == "skipped"]
    assert len(rest) == 200 - len(server.bodies)
    assert rest[0].what.startswith(f"not sent: the server answered {status}")


def test_errors_about_single_requests_do_not_stop_the_rest():
    """Many long texts in a row, also in the next run, must not prevent other requests."""

    def server(body, _before):
        long = len(body["messages"][0]["content"]) > 9
        return refusal("the context is too long") if long else completion("x")

    with serving(server) as said:
        model = ChatModel(said.url, "small", concurrency=2)
        results = model.complete_all(["x" * n for n in range(30, 0, -1)])
        model.close()
    assert [isinstance(result, Reply) for result in results] == [False] * 21 + [True] * 9


def test_the_cost_stops_before_the_call_that_could_exceed_it():
    # A call costs 10 * 2 + 20 * 10 = 220 millionths, and its estimate is 226: 13 input tokens (10
    # bytes / 3, plus 10 for the message) and 20 output tokens. After 5 calls, 100 millionths are
    # left.
    answer = completion("x", usage=(10, 20))
    with serving(in_order(answer)) as server:
        model = ChatModel(server.url, "m", max_tokens=20, max_cost=0.0012, concurrency=4, **PRICES)
        results = model.complete_all(f"question {n}" for n in range(9))
        with pytest.raises(ModelError, match=r"0\.0011 of max_cost=0\.0012 is spent in 5 calls"):
            model.complete("another")
        model.close()
    done = [result for result in results if isinstance(result, Reply)]
    assert len(done) == len(server.bodies) == 5
    assert model.usage().cost == pytest.approx(0.0011, rel=1e-12)
    missing = [result for result in results if isinstance(result, ModelError)]
    assert {error.code for error in missing} == {"budget"}
    assert "raise max_cost" in missing[0].fix


@pytest.mark.parametrize(
    ("usage", "options"),
    [((10, 1000), {}), ((5000, 20), {"max_tokens": 20}), ((5000, 1000), {})],
    ids=["no limit of the length", "more input than estimated", "both"],
)
def test_calls_in_flight_reserve_what_responses_have_taught(usage, options):
    """A call costs more than can be known before the first response: they are not sent at once."""
    cost = (usage[0] * 2 + usage[1] * 10) / 1e6

    def server(_body, _before):
        time.sleep(0.02)
        return completion("x", usage=usage)

    with serving(server) as said:
        model = ChatModel(said.url, "m", max_cost=3.5 * cost, concurrency=8, **options, **PRICES)
        results = model.complete_all(f"question {n}" for n in range(20))
        model.close()
    assert len(said.bodies) == 3
    assert model.usage().cost == pytest.approx(3 * cost, rel=1e-12)
    assert {one.code for one in results if isinstance(one, ModelError)} == {"budget"}


@pytest.mark.parametrize(
    "count", ["1" + "0" * 400, "-5", '"100"', "NaN", "true", "1.5", "1e999", "[]", "null", "1" * 12]
)
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens"])
def test_tokens_that_cannot_be_are_estimated(name, count):
    told = {"prompt_tokens": 100, "completion_tokens": 20} | {name: "COUNT"}
    content = completion("x")[2] | {"usage": told}
    raw = json.dumps(content).replace('"COUNT"', count).encode()
    with serving(in_order((200, {}, raw), completion("x"))) as server:
        model = ChatModel(server.url, "m", max_tokens=20, max_cost=0.1, **PRICES)
        results = model.complete_all(["a", "b", "c"])
        model.close()
    assert [reply.text for reply in results] == ["x", "x", "x"]
    usage = model.usage()
    assert (usage.calls, usage.estimated) == (3, 1)
    assert 200 < usage.input_tokens < 300
    assert 40 < usage.output_tokens < 300
    expected = (usage.input_tokens * 2 + usage.output_tokens * 10) / 1e6
    assert usage.cost == pytest.approx(expected, rel=1e-12)


def test_unreported_tokens_are_estimated_with_a_note():
    reply, _, model = ask(in_order(completion("x" * 300, usage=None)), **PRICES)
    assert reply.usage.estimated == 1
    assert reply.usage.output_tokens >= 100
    assert "estimated for 1 of the calls" in str(model.usage())


def test_an_error_of_the_progress_ends_the_run():
    def progress(_share, _done):
        raise RuntimeError("enough")

    with serving(in_order(completion("x"))) as server:
        model = ChatModel(server.url, "small", concurrency=1)
        with pytest.raises(RuntimeError, match="enough"), showing(progress):
            model.complete_all(map(str, range(50)))
        model.close()
    assert len(server.bodies) < 50


# ---- invalid settings


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1},
        {"max_tokens": 0},
        {"seed": 1.5},
        {"concurrency": 0},
        {"requests_per_minute": 0},
        {"tokens_per_minute": 0},
        {"max_cost": 1.0},
        {"max_cost": 0, **PRICES},
        {"input_price": 1.0},
        {"output_price": -1, "input_price": 1},
        {"parameters": {"stream": True}},
        {"parameters": {"x": {1}}},
        {"repairs": -1},
    ],
    ids=str,
)
def test_invalid_options_are_named(options):
    with pytest.raises(InputError) as caught:
        ChatModel("http://localhost", "small", **options)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("messages", "schema"),
    [
        ([], None),
        ([{"role": "user"}], None),
        ([{"role": "tool", "content": "x"}], None),
        (7, None),
        ("x", {"type": "array"}),
        ("x", "y"),
        ("x", {"type": "object", "required": 7}),
        ("x", {"type": "object", "properties": {"a": {"$ref": "https://example.org"}}}),
    ],
    ids=str,
)
def test_invalid_requests_are_named_before_any_call(messages, schema):
    with serving(in_order(completion("x"))) as server:
        model = ChatModel(server.url, "small")
        with pytest.raises(InputError):
            model.complete(messages, schema=schema)
        model.close()
    assert server.bodies == []


def test_settings_contain_all_options_that_change_a_reply():
    def settings(**options):
        model = ChatModel(**{"url": "http://localhost", "model": "small", **options})
        model.close()
        return json.loads(json.dumps(model.settings))

    others = [
        {"url": "http://localhost/v2"},
        {"model": "large"},
        {"temperature": 1},
        {"seed": 1},
        {"max_tokens": 9},
        {"parameters": {"top_p": 1}},
        {"headers": {"x-team": "a"}},
        {"repairs": 2},
    ]
    assert settings() == settings(concurrency=9, timeout=1, retries=0, max_cost=1, **PRICES)
    assert all(settings() != settings(**other) for other in others)


def test_importing_it_opens_no_connection_and_loads_no_library():
    code = (
        "import os, sys\n"
        "sys.addaudithook(lambda event, _: event == 'socket.connect' and os._exit(3))\n"
        "import rankgauge.llm as llm; llm.ChatModel\n"
        "print(*{'httpx', 'jsonschema', 'numpy', 'sqlalchemy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
