"""Secrets in every part of every client must not appear in any output."""

import base64
import contextlib
import json
import os
import re
import subprocess
import sys
import traceback
from urllib.parse import quote, quote_plus

import pytest
from restserver import serving

from rankgauge import Benchmark, Document, Limits, Query, RankgaugeError, sample_path
from rankgauge.llm import ChatModel
from rankgauge.retrievers import (
    Dense,
    Elasticsearch,
    EmbeddingEndpoint,
    HTTPRetriever,
    OpenSearch,
    Rerank,
    RerankEndpoint,
)
from rankgauge.store import History

KEY = 'key/0123+456\\789="x'
PASSWORD = "pa@ss/w#rd?42%"
TOKEN = "token 0123/456&789"
HEADER = "header\\0123;456789"
BODY = "body-ö/0123\n456789"
PATH = "Path0123a456789bcd"
SHORT = "s7p"
LOGIN = f"me:{quote(PASSWORD, safe='')}@"
SECRETS = {"key": KEY, "password": PASSWORD, "token": TOKEN, "header": HEADER, "body": BODY, "path": PATH}
FORMS = {
    "raw": str,
    "percent": lambda value: quote(value, safe=""),
    "query": quote_plus,
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "login": lambda value: base64.b64encode(f"me:{value}".encode()).decode(),
    "JSON": json.dumps,
    "repr": repr,
    "upper": str.upper,
    "lower": str.lower,
    "hex": lambda value: value.encode().hex(),
    "bytes": lambda value: repr(value.encode()),
    "broken": lambda value: f"{value[:6]}\n  {value[6:]}",
}
DOCUMENTS = [Document("d1", text="late fees"), Document("d2", text="opening hours")]
QUERIES = [Query("q1", "fees"), Query("q2", "hours")]


def forms(value):
    return {form(value) for name, form in FORMS.items() if name != "login" or value == PASSWORD}


def assert_clean(text, *, short=True):
    """Check that no secret occurs in any form, not even half of it."""
    found = {
        part
        for value in SECRETS.values()
        for form in forms(value)
        for part in (form, form[:9], form[-9:])
        if part in text
    }
    assert not found, text
    assert not short or SHORT not in text, text


def with_login(url):
    return url.replace("//", f"//{LOGIN}")


def first(texts):
    return [[1.0, 0.5]] * len(texts)


def embeddings(url):
    return Dense(
        EmbeddingEndpoint(
            f"{with_login(url)}/v1?token={quote_plus(TOKEN)}",
            "small",
            headers={"x-one": HEADER, "x-two": SHORT},
            key_env="A_KEY",
            key_header="api-key",
        )
    )


def reranker(url):
    return Rerank(
        lambda _text: ["d1", "d2"],
        RerankEndpoint(
            f"{url}/{PATH}/v1?sig={quote_plus(TOKEN)}",
            "small",
            headers={"x-one": HEADER, "x-two": SHORT},
            key_env="A_KEY",
        ),
    )


def http(url):
    return HTTPRetriever(
        f"{with_login(url)}/find?token={quote_plus(TOKEN)}",
        headers={"x-one": HEADER, "x-two": SHORT},
        key_env="A_KEY",
        key_header="api-key",
        body={"q": "{query}", "auth": {"pin": BODY, "more": [SHORT]}},
        version="1",
    )


def http_get(url):
    return HTTPRetriever(
        f"{url}/find?q={{query}}",
        method="GET",
        params={"token": TOKEN, "key": SHORT},
        headers={"Authorization": f"Bearer {HEADER}"},
        version="1",
    )


def elasticsearch(url):
    return Elasticsearch(
        f"{url}?token={quote_plus(TOKEN)}&key={SHORT}",
        "pages",
        key_env="A_KEY",
        body={"query": {"match": {"text": "{query}"}}, "ext": {"token": BODY}},
        create=False,
        version="1",
    )


def opensearch(url):
    return OpenSearch(with_login(url), "pages", create=False, version="1")


def basic(url):
    return OpenSearch(url, "pages", key_env="A_LOGIN", create=False, version="1")


def chat(url):
    return ChatModel(
        f"{url}/{PATH}/v1?sig={quote_plus(TOKEN)}",
        "small",
        retries=0,
        headers={"x-one": HEADER, "x-two": SHORT},
        key_env="A_KEY",
    )


# Each with its own secrets, since it does not know others.
CLIENTS = {
    embeddings: ("key", "password", "token", "header"),
    reranker: ("key", "token", "header", "path"),
    chat: ("key", "token", "header", "path"),
    http: ("key", "password", "token", "header", "body"),
    http_get: ("token", "header"),
    elasticsearch: ("key", "token", "body"),
    opensearch: ("password",),
    basic: ("password",),
}


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    monkeypatch.setenv("A_KEY", KEY)
    monkeypatch.setenv("A_LOGIN", f"me:{PASSWORD}")


def echo(asked):
    """Return the whole request, like a server that logs too much."""
    given = {"headers": asked.headers, "params": asked.params, "body": asked.content.decode("utf-8", "replace")}
    return json.dumps(given)


def talking(form, status, names=tuple(SECRETS)):
    """Return a server that repeats the secrets in turn, in errors or in place of hits."""
    said = [FORMS[form](SECRETS[name]) for name in names] if form in FORMS else []
    count = iter(range(10**6))

    def answer(asked):
        place = next(count) % (len(said) + 1)
        text = f"bad {said[place]}" if place < len(said) else echo(asked)
        if status == 200:
            wrong = {"error": {"type": text, "reason": text}, "status": 400}
            if asked.path.endswith("_msearch"):
                return 200, {}, {"responses": [wrong] * (asked.content.count(b"\n") // 2)}
            return 200, {}, {"error": text, "results": text, "data": text, "hits": text, text: 1}
        return status, {}, text.encode()

    return answer


def _ask(retriever):
    if isinstance(retriever, ChatModel):
        retriever.complete("fees")
    retriever.index(DOCUMENTS)
    retriever.search(QUERIES, 2)


# Every form is repeated by several clients; the status changes from one form to the next.
@pytest.mark.parametrize(
    ("client", "form", "status"),
    [
        (client, form, (200, 400, 503)[(place + shift) // 3 % 3])
        for shift, client in enumerate(CLIENTS)
        for place, form in enumerate([*FORMS, "echo"])
        if (place + shift) % 3 == 0 or form == "echo"
    ],
)
def test_no_message_contains_a_secret(client, form, status, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    with serving(talking(form, status, CLIENTS[client])) as url:
        retriever = client(url)
        for _ in range(len(CLIENTS[client]) + 1):
            with pytest.raises(RankgaugeError) as caught:
                _ask(retriever)
            text = "".join(traceback.format_exception(caught.value))
            # Lines of this file are in the traceback, and they contain names of the secrets.
            text = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
            assert_clean(text + str(caught.value) + repr(caught.value) + caught.value.what)
        retriever.close()
    assert_clean(json.dumps(retriever.settings) + repr(retriever))


PLAN = """
collection = {sample}
timed = 0
measures = ["nDCG@10"]
limits = {{ stop_after = 1000, retries = 0 }}
[retrievers.bm25]
type = "bm25"
[retrievers.http]
type = "python"
call = "secret_retrievers:http"
arguments = {{}}
[retrievers.elasticsearch]
type = "elasticsearch"
url = {elasticsearch}
index = "pages"
create = false
key_env = "A_LOGIN"
key_scheme = "Basic"
version = "1"
[retrievers.hybrid]
type = "hybrid"
of = ["bm25", "embedded"]
[retrievers.embedded]
type = "dense"
part = true
encoder = {{ type = "python", call = "secret_retrievers:embeddings", arguments = {{}} }}
"""
MODULE = """
from rankgauge.llm import EmbeddingEndpoint
from rankgauge.retrievers import HTTPRetriever

def http():
    return HTTPRetriever(
        {http},
        params={{"code": "AZUREFUNCSECRET1", "size": 5}},
        key_env="A_KEY",
        key_header="api-key",
        headers={{"x-one": {header}, "x-two": "{short}"}},
        body={{"q": "{{query}}", "auth": {{"pin": {body}}}, "x-functions-key": "FUNCSECRET1"}},
        score=None,
        version="1",
    )

def embeddings():
    return EmbeddingEndpoint({embeddings}, "small")
"""


@pytest.mark.slow
def test_nothing_that_a_benchmark_writes_holds_a_secret(tmp_path, tmp_path_factory):
    """Console, report, JSON, journal, runs, and history of a run with failing queries."""
    code = tmp_path_factory.mktemp("code")
    talk = talking("raw", 400)
    count = iter(range(10**6))

    def answer(asked):
        if asked.path == "/find" and next(count) % 2:
            return 200, {}, {"hits": [{"id": "fees"}]}
        return talk(asked)

    with serving(answer) as url:
        (tmp_path / "rankgauge.toml").write_text(
            PLAN.format(
                sample=json.dumps(str(sample_path("rankgauge.toml").parent)),
                elasticsearch=json.dumps(url),
            ),
            encoding="utf-8",
        )
        (code / "secret_retrievers.py").write_text(
            MODULE.format(
                http=repr(f"{with_login(url)}/find?token={quote_plus(TOKEN)}"),
                embeddings=repr(f"{with_login(url)}/{PATH}?token={quote_plus(TOKEN)}"),
                header=repr(HEADER),
                body=repr(BODY),
                short=SHORT,
            ),
            encoding="utf-8",
        )
        words = "--errors empty --report report.html --as json --save --store h.db --runs runs"
        done = subprocess.run(
            [sys.executable, "-m", "rankgauge", "bench", *words.split()],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(code), *sys.path])},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
    assert "hybrid was not run" in done.stderr
    assert "answered 400" in done.stderr
    assert "elasticsearch was not run" in done.stderr
    assert "saved as http#2" in done.stderr
    assert_clean(done.stdout + done.stderr)
    assert "SECRET1" not in done.stdout + done.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"responses.jsonl", "run.json", "report.html", "h.db", "http.run"} <= {path.name for path in written}
    assert any("answered 400" in path.read_text("utf-8", "replace") for path in written)
    for path in written:
        # A database may contain three letters by chance.
        text = path.read_text("utf-8", "replace")
        assert_clean(text, short=path.suffix != ".db")
        assert "SECRET1" not in text


def test_an_error_of_the_users_own_code_is_kept_without_secrets(tmp_path):
    """Lines are joined before the first one is selected, since a key may be broken across lines."""

    def broken(_text):
        raise ValueError(f"no access to https://me:word@example.org?token=abc with {KEY[:8]}\n{KEY[8:]}")

    client = http("http://localhost:9")
    bench = Benchmark(k=2, store=tmp_path, progress=False)
    for query in QUERIES:
        bench.add_query(query.id, query.text, {"d1"})
    run = bench.run("broken", broken, limits=Limits(retries=0), timed=0)
    assert {failure.error for failure in run.failures} == {
        "ValueError: no access to https://me:***@example.org?token=*** with ***"
    }
    client.close()


def test_keys_that_nobody_registered_are_not_stored_with_errors(tmp_path):
    def broken(_text):
        raise RuntimeError(
            "401 for {'Authorization': 'Bearer sk-LEAKED123456', 'api-key': 'sk-LEAKED99'} "
            "api_key=sk-LEAKED77 AWS_SECRET_ACCESS_KEY=LEAKED78 password='LEAKED a b' LEAK-k=3"
        )

    bench = Benchmark(k=2, store=tmp_path, progress=False)
    bench.add_query("q1", "fees", {"d1"})
    run = bench.run("broken", broken, limits=Limits(retries=0), timed=0)
    (failure,) = run.failures
    assert failure.error == (
        "RuntimeError: 401 for {'Authorization': '***', 'api-key': '***'} "
        "api_key=*** AWS_SECRET_ACCESS_KEY=*** password='***' LEAK-k=3"
    )
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or "LEAKED" not in path.read_text("utf-8", "replace")


@pytest.mark.parametrize(
    "password", ["qx@vexilla", "qx/vexilla", "qx#vexilla", "qx?vexilla", "qx@vex@illa", "qx@vex:illa"]
)
@pytest.mark.parametrize("name", ["me", "me@corp"])
def test_no_part_of_a_database_password_is_shown(name, password):
    pytest.importorskip("psycopg")
    url = f"postgresql://{name}:{password}@127.0.0.1:1/db?connect_timeout=2"
    with pytest.raises(RankgaugeError) as caught:
        History(url).entries()
    said = traceback.format_exception_only(caught.value)
    assert "cannot be reached" in said[0] or "cannot be parsed" in said[0]
    with contextlib.suppress(RankgaugeError):
        said += [History(url).where, repr(History(url))]
    assert not {part for part in re.split("[@/#?:]", password) if part[2:] and part in str(said)}
