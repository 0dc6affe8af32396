"""Responses of servers that answer, answer badly, or do not answer."""

import gzip
import hashlib
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import unquote

import pytest
from loopback import serving

from rankgauge.core.http_client import call_with_retries
from rankgauge.core.libraries import library
from rankgauge.errors import InputError, MissingExtra
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


def test_the_query_of_the_url_follows_the_path():
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


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ("/v1/sk-abc123def456/search", "sk-abc123def456"),
        ("/services/T0X9Q2A7B1C3D5E8F/find", "T0X9Q2A7B1C3D5E8F"),
        ("/hook/3fa85f64-5717-4562-b3fc-2c963f66afa6", "3fa85f64-5717-4562-b3fc-2c963f66afa6"),
        ("/token/abc123%2Bxyz/v1", "abc123%2Bxyz"),
    ],
)
def test_a_secret_in_the_path_is_sent_and_never_shown(path, secret):
    plain = unquote(secret)
    with serving(lambda *_: (403, {}, f"no access for {plain}".encode())) as server:
        endpoint = Endpoint(server.url + path)
        with pytest.raises(EndpointError) as caught:
            endpoint.post("embeddings", {})
        endpoint.close()
    assert server.paths == [f"{path}/embeddings"]
    settings = endpoint.settings()
    said = str(caught.value) + repr(endpoint) + repr(settings)
    assert secret not in said
    assert plain not in said
    assert endpoint.shown == server.url + path.replace(secret, "...")
    other = Endpoint(server.url + path.replace(secret, secret[:-1] + "9"))
    assert other.settings()["hidden"] != settings["hidden"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/openai/deployments/gpt-4o-mini-2024-07-18",
        "/msmarco-v2.1-passages/_search",
        "/api/v2/collections/webhook/search",
        "/session/v1/keys/all",
    ],
)
def test_a_path_without_a_secret_is_shown(path):
    endpoint = Endpoint(f"http://localhost:9{path}")
    assert endpoint.settings() == {"url": f"http://localhost:9{path}"}


def test_the_key_is_sent_and_never_shown(monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", "sk-very-secret")
    with serving(lambda *_: (401, {}, b"bad key sk-very-secret")) as server:
        endpoint = Endpoint(server.url, key_env="SEARCH_KEY")
        with pytest.raises(EndpointError) as caught:
            endpoint.post("rerank", {})
        endpoint.close()
    assert server.headers[0]["authorization"] == "Bearer sk-very-secret"
    message = str(caught.value) + repr(endpoint) + endpoint.shown + repr(vars(endpoint))
    assert "very-secret" not in message


def test_a_short_key_is_not_shown_if_the_server_repeats_it_in_a_sentence(monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", "pin7")
    error = error_of(401, content=b"you sent pin7 to pin77", key_env="SEARCH_KEY")
    assert error.what == "the server answered 401: you sent *** to pin77"


def test_name_and_word_in_the_url_are_sent_and_never_shown():
    with serving(lambda *_: (403, {}, {})) as server:
        endpoint = Endpoint(server.url.replace("//", "//me:word@"))
        with pytest.raises(EndpointError) as caught:
            endpoint.post("", {})
        endpoint.close()
    assert server.headers[0]["authorization"].startswith("Basic ")
    assert "word" not in str(caught.value) + repr(endpoint) + endpoint.shown


def test_a_url_with_a_user_name_accepts_no_key(monkeypatch):
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


def test_a_missing_key_is_named_at_once(monkeypatch):
    monkeypatch.delenv("SEARCH_KEY", raising=False)
    with pytest.raises(InputError, match="SEARCH_KEY is not set"):
        Endpoint("http://localhost", key_env="SEARCH_KEY")


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        (400, False),
        (401, False),
        (404, False),
        (408, True),
        (429, True),
        (500, True),
        (501, False),
        (503, True),
        (301, False),
    ],
)
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
def test_the_retry_time_of_the_server_is_reported(headers, wanted):
    assert error_of(429, headers).retry_after == wanted


def test_a_future_date_is_a_waiting_time():
    then = datetime.now(UTC) + timedelta(seconds=100)
    told = error_of(503, {"Retry-After": format_datetime(then, usegmt=True)}).retry_after
    assert told is not None
    assert 90 < told <= 100


def test_an_answer_that_is_not_json_is_not_retried():
    error = error_of(200, content=b"<html>Welcome</html>")
    assert not error.retryable
    assert "<html>Welcome</html>" in error.what


def test_a_hanging_server_times_out():
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


@contextmanager
def dripping(first, drop=b"x"):
    """Serve `first`, then a byte sequence `drop` every hundredth of a second; yield the URL.

    The server gives up after a while, so that a client without a deadline reports another error.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    gone = threading.Event()

    def drip():
        peer, _ = listening.accept()
        with peer, suppress(OSError):
            peer.sendall(first)
            for _ in range(1000):
                if gone.wait(0.01):
                    break
                peer.sendall(drop)

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        gone.set()
        thread.join()
        listening.close()


@pytest.mark.parametrize(
    ("first", "drop"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 100000\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"a"),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["body", "chunks", "body of an error", "a header", "headers", "interim answers"],
)
def test_a_slowly_sending_server_times_out(first, drop):
    with dripping(first, drop) as url:
        endpoint = Endpoint(url, timeout=0.3)
        with pytest.raises(EndpointError, match=r"within 0\.3 seconds") as caught:
            endpoint.post("", {})
        assert caught.value.retryable
        endpoint.close()


def test_a_server_that_reads_slowly_times_out():
    listening = socket.create_server(("127.0.0.1", 0))
    gone = threading.Event()

    def read():
        peer, _ = listening.accept()
        with peer, suppress(OSError):
            while not gone.wait(0.002) and not peer.recv(2**14).endswith(b"."):
                pass
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    thread = threading.Thread(target=read)
    thread.start()
    endpoint = Endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=0.3)
    with pytest.raises(EndpointError, match=r"within 0\.3 seconds"):
        endpoint.ask("POST", content=b" " * 20_000_000 + b".")
    gone.set()
    thread.join()
    endpoint.close()
    listening.close()


def test_late_responses_leave_no_thread_behind():
    before = set(threading.enumerate())
    first = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with dripping(first, b"1\r\n \r\n") as url:
        endpoint = Endpoint(url, timeout=0.1)
        server = set(threading.enumerate()) - before
        with pytest.raises(EndpointError, match="within"):
            endpoint.post("", {})
        for thread in set(threading.enumerate()) - before - server:
            thread.join(5)
            assert not thread.is_alive()
        endpoint.close()


def test_the_time_limit_begins_anew_with_each_request():
    def answer(_body, _before):
        time.sleep(0.15)
        return 200, {}, {}

    with serving(answer) as server:
        endpoint = Endpoint(server.url, timeout=0.4)
        for _ in range(4):
            endpoint.post("", {})
        endpoint.close()


def packed(content):
    return {"Content-Encoding": "gzip"}, gzip.compress(content)


def test_an_answer_that_is_compressed_is_read():
    for encoding, raw in (
        ("gzip", gzip.compress(b'{"a": 1}')),
        ("x-gzip", gzip.compress(b'{"a": 1}')),
        ("deflate", zlib.compress(b'{"a": 1}')),
        ("identity", b'{"a": 1}'),
    ):
        with serving(lambda *_, e=encoding, r=raw: (200, {"Content-Encoding": e}, r)) as server:
            endpoint = Endpoint(server.url)
            assert endpoint.post("", {}) == {"a": 1}
            endpoint.close()
        assert server.headers[0]["accept-encoding"] == "gzip"


@pytest.mark.parametrize(("encoding", "content"), [("br", b"{}"), ("gzip, gzip", b"{}"), ("gzip", b"no gzip at all")])
def test_an_answer_in_another_compression_is_refused(encoding, content):
    error = error_of(200, {"Content-Encoding": encoding}, content)
    assert "not valid gzip" in error.what
    assert not error.retryable


@pytest.mark.parametrize("headers_and_content", [packed(b" " * 60_000_000), ({}, b" " * 2_000_000)])
def test_an_answer_that_is_too_large_is_not_read(headers_and_content):
    tracemalloc.start()
    error = error_of(200, *headers_and_content, max_bytes=1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "more than 1,000,000 bytes" in error.what
    assert "raise max_bytes" in error.fix
    assert not error.retryable
    assert peak < 20_000_000


def test_an_answer_may_be_as_large_as_the_limit():
    content = b"[" + b" " * 998 + b"]"
    for headers, raw in (({}, content), packed(content)):
        with serving(lambda *_, h=headers, r=raw: (200, h, r)) as server:
            endpoint = Endpoint(server.url, max_bytes=1000)
            assert endpoint.post("", {}) == []
            endpoint.close()
        assert "more than 999 bytes" in error_of(200, headers, raw, max_bytes=999).what


def test_an_error_that_is_too_large_is_reported_by_its_status():
    error = error_of(503, *packed(b"busy " * 200_000), max_bytes=1000)
    assert error.status == 503
    assert error.retryable
    assert "busy busy" in error.what
    assert len(error.what) < 400


def test_an_answer_nested_too_deep_is_not_valid_json():
    assert "not valid JSON" in error_of(200, content=b"[" * 200_000).what


def test_connections_are_kept():
    listening = socket.create_server(("127.0.0.1", 0))
    peers = []

    def answer():
        with suppress(OSError):
            while True:
                peer, _ = listening.accept()
                peers.append(peer)
                peer.settimeout(1)
                while peer.recv(65536):
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    endpoint = Endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}")
    for _ in range(30):
        assert endpoint.ask("GET") == {}
    endpoint.close()
    assert len(peers) == 1
    peers[0].close()
    listening.close()


def test_calls_at_once_have_a_connection_each():
    together = threading.Barrier(8)

    def answer(body, _before):
        together.wait(30)
        return 200, {}, body

    with serving(answer) as server:
        endpoint = Endpoint(server.url)
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(lambda n: endpoint.post("", n), range(32))) == list(range(32))
        endpoint.close()


def test_responses_change_no_later_request():
    def answer(_body, before):
        if before == 0:
            return 200, {"Set-Cookie": "session=abc; Path=/"}, {}
        return 307, {"Location": "/elsewhere"}, {}

    with serving(answer) as server:
        endpoint = Endpoint(server.url + "/v1")
        endpoint.post("", {})
        with pytest.raises(EndpointError, match="answered 307"):
            endpoint.post("", {})
        endpoint.close()
    assert server.paths == ["/v1", "/v1"]
    assert "cookie" not in server.headers[1]


def test_no_log_has_a_secret(caplog, monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", "key-of-mine")
    caplog.set_level("DEBUG")
    with serving(lambda *_: (200, {}, {})) as server:
        url = server.url.replace("//", "//me:word-of-mine@")
        endpoint = Endpoint(f"{url}/token/path-of-mine?sig=query-of-mine")
        endpoint.post("", {})
        endpoint.close()
        endpoint = Endpoint(server.url, key_env="SEARCH_KEY")
        endpoint.post("", {})
        endpoint.close()
    assert caplog.text
    assert "of-mine" not in caplog.text


@pytest.fixture
def certificate(tmp_path):
    """Return the path of a certificate for localhost; its key is beside it."""
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    subprocess.run([*words.split(), *names, *files], check=True, capture_output=True)
    return tmp_path / "cert.pem"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_certificates_of_the_environment_are_used(certificate, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    with serving(lambda *_: (200, {}, {"a": 1}), context) as server:
        url = server.url.replace("http://127.0.0.1", "https://localhost")
        stranger = Endpoint(url)
        with pytest.raises(EndpointError, match=r"cannot be reached: .*certificate"):
            stranger.post("", {})
        stranger.close()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        known = Endpoint(url)
        assert known.post("", {}) == {"a": 1}
        known.close()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("http_proxy", "ftp://me:word-of-mine@localhost", "Unknown scheme"),
        ("http_proxy", "http://me:word-of-mine/localhost:80", "Invalid port"),
        ("http_proxy", "socks5://me:word-of-mine@localhost:80", "socksio"),
        ("SSL_CERT_FILE", __file__, ""),
    ],
)
def test_a_wrong_environment_is_named(name, value, reason, monkeypatch):
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv(name, value)
    url = "https://search.invalid" if name == "SSL_CERT_FILE" else "http://search.invalid"
    with pytest.raises(InputError, match=f"cannot be used: .*{reason}") as caught:
        Endpoint(url)
    assert name in caught.value.fix
    assert "word-of-mine" not in str(caught.value)


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    monkeypatch.setenv("no_proxy", "")
    with serving(lambda *_: (407, {}, b"bad login bWU6d29yZC1vZi1taW5l")) as server:
        monkeypatch.setenv("http_proxy", server.url.replace("//", "//me:word-of-mine@"))
        endpoint = Endpoint("http://search.invalid/v1")
        with pytest.raises(EndpointError, match=r"answered 407: bad login \*\*\*\n"):
            endpoint.post("", {})
        endpoint.close()
        assert server.paths == ["http://search.invalid/v1"]
        assert server.headers[0]["proxy-authorization"] == "Basic bWU6d29yZC1vZi1taW5l"
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        direct = Endpoint(server.url)
        with pytest.raises(EndpointError):
            direct.post("", {})
        direct.close()
    assert server.paths[1] == "/"


@pytest.mark.parametrize("key", ["first\nsecond", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_named(key, monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", key)
    with pytest.raises(InputError, match="SEARCH_KEY holds a line break or") as caught:
        Endpoint("http://localhost", key_env="SEARCH_KEY")
    assert key[:5] not in str(caught.value)


def settings(url="http://localhost:9/v1", **options):
    endpoint = Endpoint(url, **options)
    endpoint.close()
    return endpoint.settings()


def test_settings_of_a_plain_endpoint_are_its_url():
    assert settings(timeout=3, max_bytes=5) == {"url": "http://localhost:9/v1"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"url": "http://localhost:9/a"}, {"url": "http://localhost:9/b"}),
        ({"url": "http://localhost:9?api-version=1"}, {"url": "http://localhost:9?api-version=2"}),
        ({"url": "http://localhost:9?deployment=a"}, {"url": "http://localhost:9?deployment=b"}),
        ({"url": "http://me:a@localhost:9"}, {"url": "http://me:b@localhost:9"}),
        ({"url": "http://me:a@localhost:9"}, {"url": "http://you:a@localhost:9"}),
        ({"headers": {"x-tenant": "a"}}, {"headers": {"x-tenant": "b"}}),
        ({"headers": {"x-tenant": "a"}}, {"headers": {"x-other": "a"}}),
        ({"headers": {"x-tenant": "a"}}, {}),
        ({"key_env": "ONE_KEY"}, {"key_env": "OTHER_KEY"}),
    ],
)
def test_options_that_change_the_answers_are_in_the_settings(one, other, monkeypatch):
    monkeypatch.setenv("ONE_KEY", "first-secret")
    monkeypatch.setenv("OTHER_KEY", "first-secret")
    assert settings(**one) == settings(**one)
    assert settings(**one) != settings(**other)


def test_settings_hold_no_secret_and_no_plain_hash_of_one():
    found = settings("http://me:pin1@localhost:9?sig=pin2", headers={"x-tenant": "pin3"})
    assert set(found) == {"url", "headers", "hidden"}
    assert found["headers"] == ["x-tenant"]
    text = json.dumps(found)
    for secret in ("pin1", "pin2", "pin3"):
        assert secret not in text
        assert hashlib.sha256(secret.encode()).hexdigest()[:16] not in text


def test_a_key_that_is_renewed_changes_no_settings(monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", "valid-for-an-hour")
    first = settings(key_env="SEARCH_KEY")
    monkeypatch.setenv("SEARCH_KEY", "valid-for-the-next")
    assert settings(key_env="SEARCH_KEY") == first


def test_an_unreachable_server_is_a_retryable_error():
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
        ({"url": "http://a", "max_bytes": 0}, "max_bytes=0"),
        ({"url": "http://a", "max_bytes": 1.5}, "max_bytes=1.5"),
        ({"url": "http://a", "headers": {"x": 1}}, "headers"),
        ({"url": "http://a", "headers": {"x": "a\r\nb"}}, "headers"),
    ],
    ids=str,
)
def test_impossible_options_are_refused_by_the_constructor(options, match):
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

    assert call_with_retries(call, attempts=5) == "done"
    assert waits == [0.5, 7.0, 60.0, 4.0]


def test_waiting_ends(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    asked = []

    def call():
        asked.append(1)
        raise EndpointError("busy", retryable=len(asked) != 3)

    with pytest.raises(EndpointError):
        call_with_retries(call, attempts=2)
    assert len(asked) == 2
    with pytest.raises(EndpointError):
        call_with_retries(call, attempts=9)
    assert len(asked) == 3


def test_a_missing_library_names_its_extra():
    with pytest.raises(MissingExtra, match="needs nosuch, which is not installed") as caught:
        library("nosuch.part", extra="http", of="an endpoint")
    assert caught.value.fix == "pip install 'rankgauge[http]'"


def test_the_search_for_the_address_of_a_host_is_within_the_time_limit(monkeypatch):
    released = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: released.wait(5) and [])
    with pytest.raises(EndpointError, match=r"within 0\.2 seconds"):
        Endpoint("http://host.invalid", timeout=0.2).post("", {})
    released.set()


def test_a_host_without_an_address_cannot_be_reached():
    with pytest.raises(EndpointError, match="cannot be reached"):
        Endpoint(f"http://{'a' * 70}.invalid").post("", {})
