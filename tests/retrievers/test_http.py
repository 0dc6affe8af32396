"""HTTP endpoints described by a template and paths, with a local server."""

import json
import time

import pytest
from restserver import serving

from rankgauge import Benchmark, Collection, Document, InputError, Query
from rankgauge.core.http_client import EndpointError
from rankgauge.core.redaction import redact
from rankgauge.retrievers import HTTPRetriever
from rankgauge.retrievers.http import filled, follow, steps
from rankgauge.sample import sample_path
from rankgauge.testing import check_retriever

SAMPLE = Collection.read(sample_path("qrels.txt").parent)
DOCUMENTS = list(SAMPLE.documents.values())
QUERIES = list(SAMPLE.queries.values())
ASKED = [Query("q7", "opening hours")]


def ranked(text, k):
    """Return documents by common words, then by id."""
    words = set(text.lower().split())
    rows = [(-len(words & set(one.full_text.lower().split())), one.id) for one in DOCUMENTS]
    return [(name, -worse) for worse, name in sorted(row for row in rows if row[0])[:k]]


def engine(asked):
    """A generic search engine."""
    if asked.method == "GET":
        text, k = asked.params["q"][0], int(asked.params["n"][0])
    else:
        body = json.loads(asked.content)
        text, k = body["query"], body["k"]
    hits = [{"id": name, "score": score} for name, score in ranked(text, k)]
    return 200, {}, {"hits": hits, "found": len(hits)}


def answering(said, **options):
    """Return the ranking that a response is parsed to."""
    with serving(lambda _asked: (200, {}, said)) as url:
        retriever = HTTPRetriever(url, **options)
        found = retriever.search(ASKED, 10)[0]
        retriever.close()
    return found


def sent(**options):
    """Return the requests sent for one query with k=3."""
    seen = []

    def note(asked):
        seen.append(asked)
        return 200, {}, {"hits": []}

    with serving(note) as url:
        retriever = HTTPRetriever(url + options.pop("path", ""), **options)
        retriever.search(ASKED, 3)
        retriever.close()
    return seen[0]


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/find", {}),
        ("/find?q={query}&n={k}", {"method": "GET"}),
        ("/find", {"method": "get", "params": {"q": "{query}", "n": "{k}"}}),
        ("", {"body": {"query": "{query}", "k": "{k}"}}),
    ],
    ids=["as it is", "in the url", "params", "body"],
)
def test_an_engine_is_asked_as_described(path, options):
    with serving(engine) as url:
        retriever = HTTPRetriever(url + path, **options)
        assert retriever.search(QUERIES[:2], 5) == [ranked(one.text, 5) for one in QUERIES[:2]]
        retriever.close()


@pytest.mark.parametrize("options", [{}, {"version": "1"}])
def test_an_engine_satisfies_the_retriever_contract(options):
    with serving(engine) as url:
        retriever = HTTPRetriever(f"{url}/find", **options)
        checks = check_retriever(retriever, DOCUMENTS, QUERIES, indexing=False)
        retriever.close()
    assert len([one for one in checks if not one.passed]) == 4 - ("version" in options)


def test_a_template_is_filled_at_any_depth_with_its_types():
    template = {"a": ["{query}", {"b": "{k}"}], "c": "top {k}: {query}", "d": 0.5, "e": "{other}"}
    values = {"query": "a {k}", "k": 3, "id": "q7"}
    assert filled(template, values) == {"a": ["a {k}", {"b": 3}], "c": "top 3: a {k}", "d": 0.5, "e": "{other}"}


def test_what_is_sent():
    asked = sent(body={"q": "{query}", "n": "{k}", "trace": "{id}"}, params={"deep": True, "v": 2})
    assert (asked.method, asked.path) == ("POST", "/")
    assert json.loads(asked.content) == {"q": "opening hours", "n": 3, "trace": "q7"}
    assert asked.params == {"deep": ["true"], "v": ["2"]}
    assert asked.headers["content-type"] == "application/json"
    asked = sent(path="/s?lang=en&q={query}", method="GET", headers={"x-team": "search"})
    assert (asked.method, asked.path, asked.content) == ("GET", "/s", b"")
    assert asked.params == {"lang": ["en"], "q": ["opening hours"]}
    assert asked.headers["x-team"] == "search"


def test_repeated_parameters_of_the_url_are_all_sent():
    asked = sent(path="/s?fq=a&q={query}&fq=lang:{k}&sig=x7&sig=y8", method="GET", version="1")
    assert asked.params == {"fq": ["a", "lang:3"], "q": ["opening hours"], "sig": ["x7", "y8"]}
    told = HTTPRetriever("http://localhost:9/s?q={query}&sig=x7&sig=y8", version="1").settings
    assert told["params"] == {"q": "{query}", "sig": ["...", "..."]}


def test_a_key_is_sent_and_neither_shown_nor_in_settings(monkeypatch):
    monkeypatch.setenv("ENGINE_KEY", "s3cr3t-word")
    options = {
        "key_env": "ENGINE_KEY",
        "version": "1",
        "headers": {"x-api-key": "other-s3cr3t"},
        "params": {"api_key": "third-s3cr3t", "key": "fourth-s3cr3t", "lang": "en"},
        "body": {"query": "{query}", "filter": {"keywords": "books", "token": "fifth-s3cr3t"}},
    }
    asked = sent(**options)
    assert asked.headers["authorization"] == "Bearer s3cr3t-word"
    assert asked.headers["x-api-key"] == "other-s3cr3t"
    assert asked.params["api_key"] == ["third-s3cr3t"]
    del options["key_env"]
    told = HTTPRetriever("http://me:s3cr3t@localhost:9/x?sig=1", **options).settings
    assert "s3cr3t" not in json.dumps(told)
    assert told["params"] == {"sig": "...", "api_key": "...", "key": "...", "lang": "en"}
    assert told["body"] == {"query": "{query}", "filter": {"keywords": "...", "token": "..."}}
    assert told["url"] == "http://localhost:9/x"


NAMES = [
    "code",
    "x-functions-key",
    "app_key",
    "userkey",
    "jwt",
    "bearer",
    "pat",
    "sas",
    "hmac",
    "license",
    "sid",
    "session",
    "cred",
    "k",
    "appid",
    "webhook",
    "pin",
    "nonce",
    "whatever",
]


@pytest.mark.parametrize("name", NAMES)
def test_settings_show_only_text_that_is_known_to_be_harmless(name):
    told = HTTPRetriever(
        f"http://localhost:9/x?{name}=URLSECRET1",
        version="1",
        params={f"x-{name}": "PARAMSECRET1"},
        body={"q": "{query}", "size": "{k}", name: "BODYSECRET1", "in": {name: ["MORESECRET1"]}},
    ).settings
    assert "SECRET1" not in json.dumps(told)
    assert told["body"] == {"q": "{query}", "size": "{k}", name: "...", "in": {name: ["..."]}}


def test_settings_show_what_makes_a_query():
    body = {
        "query": {"multi_match": {"query": "{query}", "fields": ["title^2", "text"], "boost": 1.5}},
        "size": "{k}",
        "explain": False,
        "lang": "en",
        "text": "passage: {query}",
    }
    url = "http://localhost:9/x?n=10&index=pages"
    told = HTTPRetriever(url, version="1", body=body).settings
    assert told["body"] == body
    assert told["params"] == {"n": "10", "index": "pages"}
    body |= {"pin": 1234, "model": "sk-live-0123456789", "text": "api_key=abc {query}"}
    told = HTTPRetriever(url, version="1", body=body).settings
    assert told["body"] == body | {"pin": "...", "model": "...", "text": "..."}
    check_retriever_settings(HTTPRetriever(url, version="1", body=body | {"token": "abc"}))


def test_words_of_a_body_stay_in_messages():
    body = {
        "q": "{query}",
        "filter": {"status": "published"},
        "token": "vexillum",
        "prompt": "Find passages: what answers this question?",
    }
    engine = HTTPRetriever("http://localhost:9", body=body)
    message = "was not published, and no passages answer the question"
    assert redact(f"vexillum {message}") == f"*** {message}"
    engine.close()


def test_settings_are_those_of_a_version_or_none():
    assert HTTPRetriever("http://localhost:9").settings is None
    one = HTTPRetriever("http://localhost:9?c=a", version="1").settings
    other = HTTPRetriever("http://localhost:9?c=b", version="1").settings
    assert one != other


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"headers": {"x-index": "a"}}, {"headers": {"x-index": "b"}}),
        ({"url": "http://localhost:9?token=a"}, {"url": "http://localhost:9?token=b"}),
        ({"params": {"key": "a"}}, {"params": {"key": "b"}}),
        ({"body": {"q": "{query}", "token": "a"}}, {"body": {"q": "{query}", "token": "b"}}),
        ({"body": {"q": "{query}", "auth": {"a": 1}}}, {"body": {"q": "{query}", "auth": 1}}),
        ({"url": "http://me:a@localhost:9"}, {"url": "http://me:b@localhost:9"}),
    ],
    ids=str,
)
def test_secrets_that_change_answers_distinguish_settings(one, other):
    def settings(options):
        return HTTPRetriever(**{"url": "http://localhost:9", "version": "1", **options}).settings

    assert settings(one) == settings(one)
    assert settings(one) != settings(other)
    secret = HTTPRetriever("http://localhost:9", headers={"x-key": "a"}, version="1")
    check_retriever_settings(secret)


def check_retriever_settings(retriever):
    """Settings pass the check that all retrievers must pass."""
    retriever.search = lambda queries, k: [[] for _ in queries]
    checks = check_retriever(retriever, DOCUMENTS[:2], QUERIES[:2], indexing=False)
    assert "settings are plain, without secrets" in {one.name for one in checks if one.passed}


@pytest.mark.parametrize(
    ("said", "options", "wanted"),
    [
        (["d2", "d1"], {"hits": "", "id": "", "score": None}, ["d2", "d1"]),
        ([["d2", 0.5]], {"hits": "", "id": "[0]", "score": "[1]"}, [("d2", 0.5)]),
        ({"a": [{"b": [{"m": {"n": 7}, "s": 2}]}]}, {"hits": "a[0].b", "id": "m.n", "score": "s"}, [("7", 2.0)]),
        (
            {"hits": [{"id": "a", "d": 0.1}, {"id": "b", "d": 0.4}]},
            {"score": "d", "score_order": "ascending"},
            [("a", -0.1), ("b", -0.4)],
        ),
        (
            {"hits": [{"id": "a", "score": 2}, {"id": "b", "score": 3}, {"id": "c", "score": 1}]},
            {},
            [("b", 3.0), ("a", 2.0), ("c", 1.0)],
        ),
        ({"hits": [{"id": "a", "score": 2}, {"id": "a", "score": 1}]}, {}, [("a", 2.0)]),
        ({"hits": []}, {}, []),
        ({"hits": None}, {}, []),
    ],
    ids=["ids", "pairs", "deep", "distances", "unsorted", "twice", "nothing", "null"],
)
def test_paths_lead_to_hits(said, options, wanted):
    assert answering(said, **options) == wanted


@pytest.mark.parametrize(
    ("said", "options", "message"),
    [
        ({"results": [], "n": 0}, {}, r"there is no 'hits' in the response, which is dict with results, n"),
        (
            {"result": {"docs": []}},
            {"hits": "result.hits"},
            r"hits='result.hits' does not exist: there is no 'hits' in 'result'",
        ),
        ({"a": []}, {"hits": "a[0].b"}, r"there is no 0 in 'a', which is list of 0"),
        ({"a": [1]}, {"hits": "a[1].b"}, r"there is no 1 in 'a', which is list of 1"),
        ({"hits": {"d1": 1}}, {}, r"hits is the path of dict with d1, expected a list"),
        ({"hits": [{"_id": "d1"}]}, {}, r"id='id' does not exist.*dict with _id"),
        ({"hits": ["d1"]}, {}, r"there is no 'id' in the hit, which is str 'd1'"),
        ({"hits": [{"id": None, "score": 1}]}, {}, r"the id of a hit is NoneType"),
        ({"hits": [{"id": True, "score": 1}]}, {}, r"the id of a hit is bool"),
        ({"hits": [{"id": "", "score": 1}]}, {}, r"the id of a hit is str"),
        ({"hits": [{"id": "a", "score": "1"}]}, {}, r"the score of a hit is str '1'"),
        ({"hits": [{"id": "a", "score": float("nan")}]}, {}, r"the score of a hit is float nan"),
        ({"hits": [{"id": "a"}]}, {}, r"score='score' does not exist"),
        (
            {"hits": [{"id": "a", "score": 0.1}, {"id": "b", "score": 0.4}]},
            {},
            r'(?s)scores get better.*score_order="ascending"',
        ),
        (
            {"hits": [{"id": "a", "score": 0.4}, {"id": "b", "score": 0.1}]},
            {"score_order": "ascending"},
            r'(?s)scores get better.*score_order="descending"',
        ),
    ],
)
def test_an_answer_of_another_shape_is_named(said, options, message):
    with pytest.raises(InputError, match=message) as caught:
        answering(said, **options)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("reply", "status", "retryable", "wait"),
    [
        ((429, {"Retry-After": "7"}, b"slow down"), 429, True, 7.0),
        ((500, {}, b"oh no"), 500, True, None),
        ((404, {}, b"nothing here"), 404, False, None),
        ((200, {}, b"<html>"), 200, False, None),
    ],
    ids=["busy", "broken", "not there", "garbage"],
)
def test_a_server_that_fails_is_an_error_that_says_whether_to_wait(reply, status, retryable, wait):
    with serving(lambda _asked: reply) as url:
        retriever = HTTPRetriever(url)
        with pytest.raises(EndpointError) as caught:
            retriever.search(ASKED, 3)
        retriever.close()
    error = caught.value
    assert (error.status, error.retryable, error.retry_after) == (status, retryable, wait)


def test_a_hanging_server_times_out():
    def hang(_asked):
        time.sleep(0.6)
        return 200, {}, {"hits": []}

    with serving(hang) as url:
        retriever = HTTPRetriever(url, timeout=0.1)
        with pytest.raises(EndpointError, match=r"within 0\.1 seconds") as caught:
            retriever.search(ASKED, 3)
        retriever.close()
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "PUT"}, "unknown method 'PUT'"),
        ({"method": "GET", "body": {"q": "{query}"}}, "GET sends no body"),
        ({"body": {"q": "{text}"}}, "the request does not contain the query"),
        ({"method": "GET", "params": {"k": "{k}"}}, "the request does not contain the query"),
        ({"params": ["q"]}, "got list for params"),
        ({"params": {"q": "{query}", "token": ["s3cr3t"]}}, r"got list for params\['token'\]"),
        ({"hits": "a..b"}, "hits='a..b' is not a path"),
        ({"id": "a[x]"}, r"id='a\[x\]' is not a path"),
        ({"score": 7}, "score=7 is not a path"),
        ({"score_order": "up"}, "unknown score_order 'up'"),
        ({"timeout": 0}, "timeout=0 is not valid"),
        ({"url": "http://localhost/{query}"}, "the path of the URL contains a placeholder"),
        ({"url": 7}, "URL"),
    ],
)
def test_an_invalid_description_is_named(options, message):
    with pytest.raises(ValueError, match=message) as caught:
        HTTPRetriever(**{"url": "http://localhost:9", **options})
    assert caught.value.fix


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("", ()),
        ("a", ("a",)),
        ("a.b", ("a", "b")),
        ("[0]", (0,)),
        ("a[0][12].b-c", ("a", 0, 12, "b-c")),
        ("@id.$oid", ("@id", "$oid")),
    ],
)
def test_steps_of_a_path(path, wanted):
    assert steps(path, "hits") == wanted


@pytest.mark.parametrize("score", ["score", None, ""])
def test_a_server_that_returns_more_than_k_is_cut(score):
    hits = [{"id": f"d{number}", "score": 99 - number} for number in range(40)]
    found = answering({"hits": hits}, score=score)
    assert len(found) == 10
    assert found[9] == (("d9", 90.0) if score else "d9")


def test_the_advice_for_ids_of_a_url_is_an_option_of_the_table():
    known = [f"{n}.md" for n in range(4)]
    said = {"hits": [{"id": f"https://wiki.example/a/{name}"} for name in known]}
    collection = Collection({name: Document(name, "", "x") for name in known}, {"q": Query("q", "x")})
    with serving(lambda _asked: (200, {}, said)) as url:
        advice = Benchmark(collection, {"q": {"0.md": 1}}, k=4).run("a", HTTPRetriever(url, score=None), timed=0).notes
    assert any('set base="https://wiki.example/a": it would match 4 of 4 documents' in note for note in advice)


def test_following_nothing_is_the_whole():
    assert follow([1], (), "hits") == [1]
