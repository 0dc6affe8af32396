"""Malformed responses of rerankers and search engines: an error, or the scores that they have."""

import json

import pytest
from loopback import serving
from malformed import malformed

from rankgauge import InputError
from rankgauge.corpus.collection import Query
from rankgauge.retrievers import Elasticsearch, EndpointError, HTTPRetriever, RerankEndpoint

CASES = 150
QUERIES = [Query("q1", "fees")]


def is_score(value):
    return type(value) in {int, float} and abs(value) < 1e308


def outcomes(act, response, seed):
    """Yield the parsed response and the result of each call that raised no documented error."""
    sent = [malformed(response, f"{seed} {n}") for n in range(CASES)]
    found = 0
    with serving(lambda _, before: (200, {}, sent[before])) as server:
        for raw in sent:
            try:
                result = act(server.url)
            except (EndpointError, InputError) as error:
                if not error.fix or len(str(error)) > 3000:
                    pytest.fail(f"{error} for {raw[:500]}")
                continue
            found += 1
            yield json.loads(raw), result
    assert CASES / 10 < found < CASES


@pytest.mark.parametrize("seed", range(2))
def test_malformed_scores_of_a_reranker(seed):
    def act(url):
        model = RerankEndpoint(url, "m")
        try:
            return model.rerank("fees", ["a", "b"]), model.usage()
        finally:
            model.close()

    rows = [{"index": 1, "relevance_score": 0.25}, {"index": 0, "relevance_score": -3.0}]
    units = {"billed_units": {"search_units": 1, "total_tokens": 7}}
    for content, (scores, usage) in outcomes(act, {"results": rows, "meta": units}, seed):
        rows = content if isinstance(content, list) else content.get("results", content.get("data"))
        right = {row["index"]: row.get("relevance_score", row.get("score")) for row in rows}
        assert all(type(index) is int and is_score(score) for index, score in right.items())
        assert scores == [right.get(index) for index in (0, 1)]
        assert any(score is not None for score in scores)
        assert 0 <= usage["tokens"] <= 1e8
        assert 0 <= usage["search_units"] <= 1e8


@pytest.mark.parametrize("seed", range(2))
def test_malformed_hits_of_elasticsearch(seed):
    def act(url):
        engine = Elasticsearch(url, "pages", create=False)
        try:
            return engine.search(QUERIES, 5)
        finally:
            engine.close()

    hits = [{"_id": "d1", "_score": 2.5}, {"_id": "d2", "_score": 1}]
    answer = {"took": 1, "timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": hits}}
    for content, found in outcomes(act, {"responses": [answer]}, seed):
        hits = content["responses"][0]["hits"]["hits"]
        assert all(type(hit["_id"]) is str and is_score(hit["_score"]) for hit in hits)
        assert found == [[(hit["_id"], hit["_score"]) for hit in hits]]


@pytest.mark.parametrize("seed", range(2))
def test_malformed_hits_of_an_http_server(seed):
    def act(url):
        engine = HTTPRetriever(url, hits="result.hits", id="doc.id", score="score")
        try:
            return engine.search(QUERIES, 5)
        finally:
            engine.close()

    hits = [{"doc": {"id": name}, "score": score} for name, score in (("d1", 3.0), ("d2", 1.5))]
    for content, (found,) in outcomes(act, {"result": {"hits": hits}}, seed):
        hits = content["result"]["hits"] or []
        assert all(type(hit["doc"]["id"]) in {str, int} for hit in hits)
        assert all(is_score(hit["score"]) for hit in hits)
        right = {}
        for hit in sorted(hits, key=lambda hit: -hit["score"]):
            right.setdefault(str(hit["doc"]["id"]), hit["score"])
        assert dict(found) == right
