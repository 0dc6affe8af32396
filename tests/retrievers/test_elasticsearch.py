"""Elasticsearch and OpenSearch, with a local server for their protocol."""

import base64
import json
import time

import pytest
from restserver import Engine, fault, serving

from rankgauge import Collection, Document, InputError, Query
from rankgauge.core.http_client import EndpointError
from rankgauge.retrievers import Elasticsearch, OpenSearch, elasticsearch as module
from rankgauge.sample import sample_path
from rankgauge.testing import check_retriever

SAMPLE = Collection.read(sample_path("qrels.txt").parent)
DOCUMENTS = list(SAMPLE.documents.values())
QUERIES = list(SAMPLE.queries.values())
ASKED = [Query("q", "opening hours")]
# The server needs no pauses between attempts.
BUSY = (429, {"Retry-After": "0"}, fault("es_rejected_execution_exception", "queue is full", 429))


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def url(engine):
    with serving(engine) as where:
        yield where


@pytest.fixture
def make(url):
    """Return a factory of retrievers that are closed at the end."""
    made = []

    def one(kind=Elasticsearch, **options):
        made.append(kind(url, options.pop("index", "pages"), **options))
        return made[-1]

    yield one
    for retriever in made:
        retriever.close()


def calls(engine):
    return [f"{asked.method} {asked.path}" for asked in engine.asked]


@pytest.mark.parametrize("kind", [Elasticsearch, OpenSearch])
def test_it_satisfies_the_retriever_contract(make, kind):
    checks = check_retriever(make(kind))
    assert [one.name for one in checks if not one.passed] == []


def test_an_index_is_made_filled_and_refreshed(engine, make):
    retriever = make(fields="title")
    retriever.index(DOCUMENTS)
    assert calls(engine) == [
        "GET /pages",
        "PUT /pages",
        "POST /pages/_bulk",
        "POST /pages/_refresh",
        "GET /pages/_stats/store",
    ]
    found = engine.indexes["pages"]["found"]
    assert list(found) == [one.id for one in DOCUMENTS]
    assert found[DOCUMENTS[0].id] == {"id": DOCUMENTS[0].id, "title": DOCUMENTS[0].title, "text": DOCUMENTS[0].text}
    assert retriever.size == sum(len(json.dumps(one)) for one in found.values())
    created = engine.indexes["pages"]["created"]
    assert created["settings"]["index"]["number_of_shards"] == 1
    assert created["mappings"]["properties"]["id"] == {"type": "keyword"}


def test_hits_are_scored_ordered_and_cut(make):
    retriever = make(fields=["title^3", "text"])
    retriever.index(
        [
            Document("d3", text="opening"),
            Document("d1", text="opening"),
            Document("d2", title="opening hours"),
            Document("d4", text="books"),
        ]
    )
    assert retriever.search(ASKED, 10) == [[("d2", 6.0), ("d1", 1.0), ("d3", 1.0)]]
    assert retriever.search(ASKED, 2) == [[("d2", 6.0), ("d1", 1.0)]]
    assert retriever.search([], 2) == []


def test_many_queries_are_few_requests_and_keep_their_order(engine, make, monkeypatch):
    monkeypatch.setattr(module, "_BATCH_QUERIES", 7)
    retriever = make()
    retriever.index(DOCUMENTS)
    engine.asked.clear()
    together = retriever.search(QUERIES, 5)
    assert calls(engine) == ["POST /pages/_msearch"] * 5
    assert together == [retriever.search([query], 5)[0] for query in QUERIES]


def test_documents_go_out_in_requests_of_limited_size(engine, make, monkeypatch):
    monkeypatch.setattr(module, "_BATCH_BYTES", 5000)
    make().index(DOCUMENTS)
    sizes = [len(asked.content) for asked in engine.asked if asked.path.endswith("_bulk")]
    assert len(sizes) > 5
    assert max(sizes) <= 5000
    assert list(engine.indexes["pages"]["found"]) == [one.id for one in DOCUMENTS]


def test_one_large_document_goes_alone(engine, make, monkeypatch):
    monkeypatch.setattr(module, "_BATCH_BYTES", 100)
    make().index([Document("a", text="x"), Document("b", text="y " * 400), Document("c", text="z")])
    assert list(engine.indexes["pages"]["found"]) == ["a", "b", "c"]


# ---- existing indexes


def test_an_index_that_is_there_is_not_touched(engine, make):
    engine.indexes["pages"] = theirs = {"created": {}, "found": {"x": {}}, "waiting": {}}
    with pytest.raises(InputError, match="index 'pages' already exists") as caught:
        make().index(DOCUMENTS)
    assert "replace=True" in caught.value.fix
    assert engine.indexes["pages"] is theirs
    assert calls(engine) == ["GET /pages"]


def test_an_index_that_is_there_is_replaced_if_it_may(engine, make):
    engine.indexes["pages"] = {"created": {}, "found": {"x": {}}, "waiting": {}}
    make(replace=True).index(DOCUMENTS[:2])
    assert list(engine.indexes["pages"]["found"]) == [one.id for one in DOCUMENTS[:2]]


def test_what_it_made_itself_it_may_replace(engine, make):
    retriever = make()
    retriever.index(DOCUMENTS)
    retriever.index(DOCUMENTS[:2])
    assert list(engine.indexes["pages"]["found"]) == [one.id for one in DOCUMENTS[:2]]
    with pytest.raises(InputError, match="already exists"):
        make().index(DOCUMENTS)


def test_an_index_of_your_own_is_searched_as_it_is(engine, make):
    make().index(DOCUMENTS)
    engine.asked.clear()
    retriever = make(create=False, version="2026-11")
    checks = check_retriever(retriever, DOCUMENTS, QUERIES, indexing=False)
    assert len([one for one in checks if not one.passed]) == 3
    assert set(calls(engine)) == {"POST /pages/_msearch"}
    assert "sort" not in json.loads(engine.asked[0].content.splitlines()[1])


@pytest.mark.parametrize(
    "name", ["*", "_all", "a,b", "-a", "A", "..", "a/b", "%2a", "a b", "", "x" * 300, "<a-{now}>", 7]
)
def test_a_name_that_could_be_many_indexes_is_refused(name):
    with pytest.raises(InputError, match="is not a valid index name"):
        Elasticsearch("http://localhost:9", name)


# ---- requests


def test_a_body_of_your_own(engine, make):
    body = {"query": {"match": {"title": "{query}"}}, "timeout": "2s"}
    retriever = make(body=body)
    retriever.index([Document("a", title="opening hours"), Document("b", text="opening")])
    assert retriever.search(ASKED, 5) == [[("a", 2.0)]]
    sent = json.loads(engine.asked[-1].content.splitlines()[1])
    assert sent == {"size": 2, "_source": False, **body, "query": {"match": {"title": "opening hours"}}}


def test_one_is_the_fewest_that_is_asked_for(engine, make):
    """A `k` of 0 is an error in vector searches."""
    retriever = make()
    retriever.index([])
    assert retriever.search(ASKED, 5) == [[]]
    assert json.loads(engine.asked[-1].content.splitlines()[1])["size"] == 1


def test_settings_describe_the_ranking_and_not_the_name(make):
    told = make().settings
    assert told == make(index="other").settings
    assert told["type"] == "elasticsearch"
    assert told != make(fields=["text"]).settings
    assert told != make(body={"query": {"match": {"text": "{query}"}}}).settings
    assert told != make(definition={"settings": {"index": {"number_of_shards": 2}}}).settings
    assert make(OpenSearch).settings == {**told, "type": "opensearch"}
    assert make(create=False).settings is None
    assert make(create=False, version="1").settings["index"] == "pages"


def test_a_definition_is_added_to_ours(engine, make):
    make(
        definition={"settings": {"analysis": {"x": 1}}, "mappings": {"properties": {"text": {"analyzer": "x"}}}}
    ).index([])
    created = engine.indexes["pages"]["created"]
    assert created["settings"] == {"index": {"number_of_shards": 1, "number_of_replicas": 0}, "analysis": {"x": 1}}
    assert created["mappings"]["properties"]["text"] == {"type": "text", "analyzer": "x"}
    assert created["mappings"]["properties"]["id"] == {"type": "keyword"}


@pytest.mark.parametrize(
    ("kind", "scheme", "wanted"),
    [
        (Elasticsearch, None, "ApiKey me:s3cr3t"),
        (Elasticsearch, "Bearer", "Bearer me:s3cr3t"),
        (OpenSearch, None, "Basic " + base64.b64encode(b"me:s3cr3t").decode()),
    ],
    ids=["api key", "bearer", "basic"],
)
def test_keys_are_sent_as_the_server_wants_them(engine, make, monkeypatch, kind, scheme, wanted):
    monkeypatch.setenv("ENGINE_KEY", "me:s3cr3t")
    retriever = make(kind, key_env="ENGINE_KEY", key_scheme=scheme)
    retriever.index([])
    assert {asked.headers["authorization"] for asked in engine.asked} == {wanted}
    assert "s3cr3t" not in json.dumps(retriever.settings)


# ---- errors


def test_a_document_that_is_refused_is_named(make):
    documents = [Document("a"), Document("x" * 600), Document("y" * 600)]
    with pytest.raises(EndpointError, match="2 of 3 documents were rejected") as caught:
        make().index(documents)
    assert "'xxx" in caught.value.what
    assert "id is too long" in caught.value.what
    assert not caught.value.retryable


def test_documents_that_the_server_was_too_busy_for_are_sent_again(engine, make, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    written, busy = engine.written, {"d3", "d5"}

    def sometimes(index, action, source):
        name = action["index"]["_id"]
        if name in busy:
            busy.discard(name)
            return {"index": {"_id": name, **fault("es_rejected_execution_exception", "full", 429)}}
        return written(index, action, source)

    engine.written = sometimes
    make().index([Document(f"d{number}") for number in range(7)])
    bulks = [asked for asked in engine.asked if asked.path.endswith("_bulk")]
    again = [json.loads(line)["index"]["_id"] for line in bulks[1].content.splitlines()[::2]]
    assert (len(bulks), again) == (2, ["d3", "d5"])
    assert len(engine.indexes["pages"]["found"]) == 7


def test_a_server_that_is_always_busy_is_given_up(engine, make, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    engine.spoil = lambda asked: BUSY if asked.path.endswith("_bulk") else None
    with pytest.raises(EndpointError, match="answered 429") as caught:
        make().index(DOCUMENTS)
    assert caught.value.retryable


def test_a_busy_search_says_so_at_once(engine, make):
    retriever = make()
    retriever.index(DOCUMENTS)
    engine.spoil = lambda _asked: (429, {"Retry-After": "3"}, b"")
    engine.asked.clear()
    with pytest.raises(EndpointError) as caught:
        retriever.search(ASKED, 3)
    assert (caught.value.retryable, caught.value.retry_after) == (True, 3.0)
    assert len(engine.asked) == 1


def test_a_query_that_fails_is_named(make):
    retriever = make(body={"query": {"knn": "{query}"}})
    retriever.index(DOCUMENTS)
    with pytest.raises(EndpointError, match=r"failed on query 'q': parsing_exception: unknown query"):
        retriever.search(ASKED, 3)


def part(key, value):
    """Return search responses with one damaged part."""

    def found(index, body):
        return {**Engine.found(None, index, body), key: value}

    return found


@pytest.mark.parametrize(
    ("found", "error", "message"),
    [
        (part("timed_out", True), EndpointError, "only part of the index was searched"),  # noqa: FBT003
        (part("_shards", {"failed": 1}), EndpointError, "only part of the index was searched"),
        (part("hits", None), EndpointError, "not a response of elasticsearch"),
        (part("hits", {"hits": [{"_id": "a"}]}), EndpointError, "not a response"),
        (part("hits", {"hits": [{"_id": "a", "_score": None}]}), InputError, "have no score"),
        (lambda *_: "what", EndpointError, "not a response of elasticsearch: 'what'"),
        (lambda *_: None, EndpointError, "not a response"),
    ],
    ids=["timed out", "failed shard", "no hits", "no _score", "null score", "text", "null"],
)
def test_an_invalid_answer_is_named(engine, make, found, error, message):
    retriever = make()
    retriever.index(DOCUMENTS)
    engine.found = found
    with pytest.raises(error, match=message):
        retriever.search(ASKED, 3)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"responses": []}, "0 responses for 1 query"),
        ({}, "0 responses for 1 query"),
        ([], "0 responses for 1 query"),
        (b"<html>", "the response is not valid JSON"),
    ],
)
def test_another_server_is_noticed(engine, make, said, message):
    retriever = make()
    retriever.index(DOCUMENTS)
    engine.spoil = lambda _asked: (200, {}, said)
    with pytest.raises(EndpointError, match=message):
        retriever.search(ASKED, 3)


@pytest.mark.parametrize("said", [{}, {"items": []}, {"items": [7, 7, 7]}, []])
def test_a_strange_answer_to_documents_is_noticed(engine, make, said):
    engine.spoil = lambda asked: (200, {}, said) if asked.path.endswith("_bulk") else None
    with pytest.raises(EndpointError, match=r"items for 3 documents|an item is 7"):
        make().index(DOCUMENTS[:3])


def test_a_hanging_server_times_out(engine, make):
    retriever = make(timeout=0.2)
    retriever.index(DOCUMENTS)
    engine.spoil = lambda _asked: time.sleep(0.6)
    with pytest.raises(EndpointError, match=r"within 0\.2 seconds"):
        retriever.search(ASKED, 3)


def test_a_server_that_does_not_weigh_its_indexes_has_no_size(engine, make):
    engine.spoil = lambda asked: (410, {}, b"gone") if "_stats" in asked.path else None
    retriever = make()
    retriever.index(DOCUMENTS)
    assert retriever.size is None


def test_searching_before_indexing_is_named(make):
    with pytest.raises(InputError, match="no documents yet"):
        make().search(ASKED, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fields": []}, "for the fields"),
        ({"fields": 7}, "for the fields"),
        ({"body": {"query": {"match_all": {}}}}, "the body does not contain the query"),
        ({"body": "{query}"}, "the body does not contain the query"),
        ({"key_scheme": "Digest"}, "unknown key_scheme 'Digest'"),
        ({"create": False, "replace": True}, "require create=True"),
    ],
)
def test_invalid_options_are_named(options, message):
    with pytest.raises(ValueError, match=message) as caught:
        Elasticsearch("http://localhost:9", "pages", **options)
    assert caught.value.fix
