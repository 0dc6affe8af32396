"""What comes of a server that answers, answers badly, or not at all."""

import socket
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from loopback import serving

from rankgauge.errors import InputError, MissingExtra
from rankgauge.http_client import patiently
from rankgauge.libraries import library
from rankgauge.retrievers import Endpoint, EndpointError


def error_of(status, headers=None, content=b"", **options):
    with serving(lambda _b, _n: (status, headers or {}, content)) as server:
        endpoint = Endpoint(server.url, **options)
        with pytest.raises(EndpointError) as caught:
            endpoint.post("embeddings", {})
        endpoint.close()
    return caught.value


def test_json_goes_out_and_comes_back():
    with serving(lambda body, _: (200, {}, {"got": body})) as server:
        endpoint = Endpoint(server.url + "/v1/", headers={"x-team": "search"})
        assert endpoint.post("/embeddings", {"a": ["ä"]}) == {"got": {"a": ["ä"]}}
        endpoint.close()
    assert server.paths == ["/v1/embeddings"]
    assert server.headers[0]["x-team"] == "search"


def test_the_query_of_the_url_stands_behind_the_path():
    with serving(lambda *_: (200, {}, {})) as server:
        endpoint = Endpoint(server.url + "/openai?api-version=2024-02-01&sig=a%2Bb")
        endpoint.post("embeddings", {})
        assert endpoint.shown.endswith("/openai?api-version=2024-02-01&sig=...")
        endpoint.post("", {})
        endpoint.close()
    assert server.paths == [
        "/openai/embeddings?api-version=2024-02-01&sig=a%2Bb",
        "/openai?api-version=2024-02-01&sig=a%2Bb",
    ]


def test_the_key_is_sent_and_never_shown(monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", "sk-very-secret")
    with serving(lambda *_: (401, {}, b"bad key sk-very-secret")) as server:
        endpoint = Endpoint(server.url, key_env="SEARCH_KEY")
        with pytest.raises(EndpointError) as caught:
            endpoint.post("rerank", {})
        endpoint.close()
    assert server.headers[0]["authorization"] == "Bearer sk-very-secret"
    said = str(caught.value) + repr(endpoint) + endpoint.shown + repr(vars(endpoint))
    assert "very-secret" not in said


def test_name_and_word_in_the_url_are_sent_and_never_shown():
    with serving(lambda *_: (403, {}, {})) as server:
        endpoint = Endpoint(server.url.replace("//", "//me:word@"))
        with pytest.raises(EndpointError) as caught:
            endpoint.post("", {})
        endpoint.close()
    assert server.headers[0]["authorization"].startswith("Basic ")
    assert "word" not in str(caught.value) + repr(endpoint) + endpoint.shown


def test_a_url_with_a_name_takes_no_key_besides(monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", "abc")
    with pytest.raises(InputError, match="both"):
        Endpoint("http://me:word@localhost", key_env="SEARCH_KEY")


def test_another_header_takes_the_bare_key(monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", "abc")
    with serving(lambda *_: (200, {}, {})) as server:
        endpoint = Endpoint(server.url, key_env="SEARCH_KEY", key_header="api-key")
        endpoint.post("", {})
        endpoint.close()
    assert server.headers[0]["api-key"] == "abc"


def test_a_key_that_is_not_there_is_named_at_once(monkeypatch):
    monkeypatch.delenv("SEARCH_KEY", raising=False)
    with pytest.raises(InputError, match="SEARCH_KEY is not set"):
        Endpoint("http://localhost", key_env="SEARCH_KEY")


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (401, False), (404, False), (408, True), (429, True), (500, True),
     (501, False), (503, True), (301, False)],
)  # fmt: skip
def test_a_status_says_whether_to_ask_again(status, retryable):
    error = error_of(status, content=b"no  such\nmodel")
    assert error.status == status
    assert error.retryable is retryable
    assert "no such model" in str(error)
    assert error.fix


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After-Ms": "250", "Retry-After": "7"}, 0.25),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_the_time_that_the_server_wants_is_told(headers, wanted):
    assert error_of(429, headers).retry_after == wanted


def test_a_date_to_come_is_a_time_to_wait():
    then = datetime.now(UTC) + timedelta(seconds=100)
    told = error_of(503, {"Retry-After": format_datetime(then, usegmt=True)}).retry_after
    assert told is not None
    assert 90 < told <= 100


def test_an_answer_that_is_no_json_is_not_asked_for_again():
    error = error_of(200, content=b"<html>Welcome</html>")
    assert not error.retryable
    assert "<html>Welcome</html>" in error.what


def test_a_server_that_hangs_is_left():
    rest = threading.Event()

    def answer(_body, _before):
        rest.wait(10)
        return 200, {}, {}

    with serving(answer) as server:
        endpoint = Endpoint(server.url, timeout=0.05)
        with pytest.raises(EndpointError, match=r"within 0\.05 seconds") as caught:
            endpoint.post("", {})
        rest.set()
        endpoint.close()
    assert caught.value.retryable
    assert caught.value.status is None


def test_a_server_that_drips_is_left():
    listening = socket.create_server(("127.0.0.1", 0))
    gone = threading.Event()

    def drip():
        peer, _ = listening.accept()
        with peer:
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            for _ in range(200):
                if gone.wait(0.01):
                    return
                try:
                    peer.sendall(b" ")
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    endpoint = Endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=0.2)
    with pytest.raises(EndpointError, match=r"within 0\.2 seconds"):
        endpoint.post("", {})
    gone.set()
    thread.join()
    listening.close()
    endpoint.close()


def test_a_server_that_is_not_there_may_come():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    endpoint = Endpoint(f"http://127.0.0.1:{port}")
    with pytest.raises(EndpointError, match="cannot be reached") as caught:
        endpoint.post("", {})
    endpoint.close()
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"url": "localhost:8000"}, "for a URL"),
        ({"url": "ftp://example.org"}, "for a URL"),
        ({"url": "http://"}, "for a URL"),
        ({"url": "http://a:port"}, "for a URL"),
        ({"url": None}, "NoneType for a URL"),
        ({"url": "http://a", "timeout": 0}, "timeout=0"),
        ({"url": "http://a", "timeout": float("nan")}, "timeout=nan"),
        ({"url": "http://a", "headers": {"x": 1}}, "headers"),
        ({"url": "http://a", "headers": {"x": "a\r\nb"}}, "headers"),
    ],
    ids=str,
)
def test_what_is_not_possible_is_said_when_it_is_made(options, match):
    with pytest.raises(InputError, match=match):
        Endpoint(**options)


def test_waiting_helps_where_the_server_says_so(monkeypatch):
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    errors = [
        EndpointError("busy", retryable=True),
        EndpointError("busy", retryable=True, retry_after=7.0),
        EndpointError("busy", retryable=True, retry_after=1000.0),
        EndpointError("busy", retryable=True),
    ]

    def call():
        if errors:
            raise errors.pop(0)
        return "done"

    assert patiently(call, attempts=5) == "done"
    assert waits == [0.5, 7.0, 60.0, 4.0]


def test_waiting_ends(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    asked = []

    def call():
        asked.append(1)
        raise EndpointError("busy", retryable=len(asked) != 3)

    with pytest.raises(EndpointError):
        patiently(call, attempts=2)
    assert len(asked) == 2
    with pytest.raises(EndpointError):
        patiently(call, attempts=9)
    assert len(asked) == 3


def test_a_missing_library_names_its_extra():
    with pytest.raises(MissingExtra, match="needs nosuch, which is not installed") as caught:
        library("nosuch.part", extra="http", of="an endpoint")
    assert caught.value.fix == "pip install 'rankgauge[http]'"
