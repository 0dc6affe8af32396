"""Reranking by a function and by a server."""

import itertools
import json

import pytest
from loopback import serving

from rankgauge import Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers import BM25, EndpointError, Filtered, Random, Rerank, RerankEndpoint
from rankgauge.retrievers.protocol import Retriever

TEXTS = {"d1": "one", "d2": "three", "d3": "seven", "d4": "eleven", "d5": "twelve"}
DOCUMENTS = [Document(name, text=text) for name, text in TEXTS.items()]
QUERY = [Query("q1", "numbers")]


def listed(_text, k):
    return list(TEXTS)[:k]


def reranked(reranker, k=10, retriever=listed, **options):
    rerank = Rerank(retriever, reranker, **options)
    rerank.index(DOCUMENTS)
    ranking = rerank.search(QUERY, k)[0]
    scores = [score for _, score in ranking]
    assert all(late <= early for early, late in itertools.pairwise(scores))
    return ranking


def names(ranking):
    return [name for name, _ in ranking]


def lengths(query, texts):
    assert query == "numbers"
    return [len(text) for text in texts]


def test_the_order_is_that_of_the_reranker_and_ties_keep_the_old_one():
    ranking = reranked(lengths)
    assert ranking == [("d4", 6.0), ("d5", 6.0), ("d2", 5.0), ("d3", 5.0), ("d1", 3.0)]
    assert names(reranked(lengths, k=2)) == ["d4", "d5"]


def test_documents_below_the_depth_stay_there():
    ranking = reranked(lengths, depth=2)
    assert ranking == [("d2", 5.0), ("d1", 3.0), ("d3", 2.0), ("d4", 1.0), ("d5", 0.0)]
    assert names(reranked(lengths, k=1, depth=2)) == ["d2"]
    assert names(reranked(lengths, k=3, depth=4)) == ["d4", "d2", "d3"]


def test_documents_without_a_score_stay_below_in_the_old_order():
    def some(_query, texts):
        return [None if len(text) == 5 else -1e20 * len(text) for text in texts]

    assert names(reranked(some)) == ["d1", "d4", "d5", "d2", "d3"]
    scores = [score for _, score in reranked(some)]
    assert len(set(scores)) == 4  # two documents with six letters are tied
    assert names(reranked(lambda _, texts: [None] * len(texts))) == list(TEXTS)


def test_documents_without_a_text_stay_below():
    ranking = reranked(lengths, retriever=lambda _: ["gone", "d1", "d4"])
    assert names(ranking) == ["d4", "d1", "gone"]
    assert reranked(lengths, retriever=lambda _: []) == []


def test_it_is_a_retriever_like_any_other():
    rerank = Rerank(Random(), lambda _, texts: [1.0] * len(texts))
    assert isinstance(rerank, Retriever)
    with pytest.raises(InputError, match="no documents yet"):
        rerank.search(QUERY, 1)
    rerank.index([])
    assert rerank.search(QUERY, 5) == [[]]
    rerank.index(DOCUMENTS)
    assert len(rerank.search(QUERY, 50)[0]) == 5
    rerank.index([Document("new", text="x")])
    assert names(rerank.search(QUERY, 50)[0]) == ["new"]
    assert rerank.size == 1
    assert rerank.settings is None


def test_a_retriever_that_does_not_say_how_large_it_is_counts_as_nothing():
    rerank = Rerank(Filtered(Random(), field="id", value="new"), lambda _, texts: [1.0])
    rerank.index([Document("new", text="xyz")])
    assert rerank.size == 3


def test_fields_choose_what_the_reranker_reads():
    seen = []

    def note(_query, texts):
        seen.extend(texts)
        return [0.0] * len(texts)

    document = Document("d1", title="Fees", text="Ten cents.")
    for fields in (None, ["title"]):
        rerank = Rerank(listed, note, fields=fields)
        rerank.index([document])
        rerank.search(QUERY, 1)
    assert seen == ["Fees. Ten cents.", "Fees"]


@pytest.mark.parametrize(
    "given", [[1.0], None, [float("nan")] * 5, ["x"] * 5, [float("inf")] * 5, 7, [[1.0]] * 5], ids=str
)
def test_scores_that_are_none_are_named(given):
    with pytest.raises(InputError, match="for 5 texts"):
        reranked(lambda *_: given)


@pytest.mark.parametrize("reranker", ["cross-encoder", None, 3])
def test_an_invalid_reranker_is_refused(reranker):
    with pytest.raises(InputError, match="expected a reranker"):
        Rerank(listed, reranker)
    with pytest.raises(InputError, match="depth=0"):
        Rerank(listed, lengths, depth=0)


# ---- a server


def scores(body, key="results", score="relevance_score"):
    """Respond like such servers, with the longest text first."""
    rows = [{"index": n, score: len(text) / 10} for n, text in enumerate(body["documents"])]
    rows.sort(key=lambda row: -row[score])
    return {key: rows} if key else rows


@pytest.mark.parametrize(
    ("key", "score", "extra", "used"),
    [
        ("results", "relevance_score", {"meta": {"billed_units": {"search_units": 1}}}, (0, 1)),
        ("results", "relevance_score", {"usage": {"total_tokens": 12}}, (12, 0)),
        ("data", "relevance_score", {"object": "list", "usage": {"total_tokens": 7}}, (7, 0)),
        (None, "score", None, (0, 0)),
    ],
    ids=["cohere", "jina", "voyage", "list"],
)
def test_servers_of_all_kinds_are_understood(key, score, extra, used, monkeypatch):
    monkeypatch.setenv("RERANK_KEY", "secret-key")

    def answer(body, _before):
        rows = scores(body, key, score)
        return 200, {}, rows | extra if extra else rows

    with serving(answer) as server:
        reranker = RerankEndpoint(server.url + "/v2", "large", key_env="RERANK_KEY")
        assert names(reranked(reranker)) == ["d4", "d5", "d2", "d3", "d1"]
        usage = reranker.usage()
        assert (usage["tokens"], usage["search_units"]) == used
        assert (usage["calls"], usage["texts"]) == (1, 5)
        reranker.close()
    assert server.paths == ["/v2/rerank"]
    assert server.bodies[0] == {"model": "large", "query": "numbers", "documents": list(TEXTS.values())}
    assert server.headers[0]["authorization"] == "Bearer secret-key"


def test_a_server_that_scores_some_leaves_the_others_below():
    rows = [{"index": 3, "relevance_score": 0.5}, {"index": 1, "relevance_score": 0.9}]
    with serving(lambda *_: (200, {}, {"results": rows})) as server:
        reranker = RerankEndpoint(server.url, "large")
        assert names(reranked(reranker)) == ["d2", "d4", "d1", "d3", "d5"]
        reranker.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage",
        {},
        {"results": 3},
        {"results": [{"index": 5, "relevance_score": 1}]},
        {"results": [{"index": -1, "relevance_score": 1}]},
        {"results": [{"index": True, "relevance_score": 1}]},
        {"results": [{"relevance_score": 1}]},
        {"results": [{"index": 0}]},
        {"results": [{"index": 0, "relevance_score": "high"}]},
        {"results": [{"index": 0, "relevance_score": 1}] * 2},
        {"results": ["x"]},
        {"results": []},
        b'{"results": [{"index": 0, "relevance_score": NaN}]}',
    ],
    ids=lambda answer: str(answer)[:60],
)
def test_an_invalid_answer_is_named(answer):
    with serving(lambda *_: (200, {}, answer)) as server:
        reranker = RerankEndpoint(server.url, "large")
        with pytest.raises(EndpointError) as caught:
            reranked(reranker)
        reranker.close()
    assert not caught.value.retryable


def test_a_busy_server_is_reported_to_the_caller():
    with serving(lambda *_: (429, {"Retry-After": "2"}, {})) as server:
        reranker = RerankEndpoint(server.url, "large")
        with pytest.raises(EndpointError) as caught:
            reranked(reranker)
        reranker.close()
    assert (caught.value.retryable, caught.value.retry_after) == (True, 2.0)
    assert len(server.bodies) == 1


def test_settings_are_those_of_both_and_hold_no_secret(monkeypatch):
    monkeypatch.setenv("RERANK_KEY", "secret-key")
    reranker = RerankEndpoint("http://localhost/v1?sig=of-the-address", "large", key_env="RERANK_KEY")
    settings = Rerank(BM25(), reranker, depth=7).settings
    reranker.close()
    message = json.dumps(settings)
    assert settings["depth"] == 7
    assert settings["reranker"]["model"] == "large"
    assert "secret-key" not in message
    assert "of-the-address" not in message
