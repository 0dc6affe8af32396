"""Embeddings from a correct or faulty server."""

import json

import numpy as np
import pytest
from loopback import serving

from rankgauge import Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers import Dense, EmbeddingEndpoint, EndpointError, RerankEndpoint


def vectors(body, _before=0):
    """Return the length and first letter of each text as its vector, in reverse order."""
    rows = [
        {"object": "embedding", "index": n, "embedding": [float(len(text)), float(ord(text[0]))]}
        for n, text in enumerate(body["input"])
    ]
    used = {"prompt_tokens": 3 * len(rows), "total_tokens": 3 * len(rows)}
    return 200, {}, {"object": "list", "data": rows[::-1], "model": body["model"], "usage": used}


def failing(times, status, headers=None):
    return lambda body, n: (status, headers or {}, {"error": "no"}) if n < times else vectors(body)


def test_vectors_come_in_the_order_of_the_texts(monkeypatch):
    monkeypatch.setenv("EMBEDDING_KEY", "secret-key")
    with serving(vectors) as server:
        encoder = EmbeddingEndpoint(
            server.url + "/v1", "small", key_env="EMBEDDING_KEY", batch=2, dimensions=2, query_prompt="query: "
        )
        rows = encoder.encode_documents(["a", "bb", "", "ccc", " "])
        assert rows.tolist() == [[1, 97], [2, 98], [0, 0], [3, 99], [0, 0]]
        assert encoder.encode_queries(["a"]).tolist() == [[8, 113]]
        assert encoder.usage() == {"calls": 3, "texts": 4, "tokens": 12}
        encoder.close()
    assert set(server.paths) == {"/v1/embeddings"}
    assert [body["input"] for body in server.bodies] == [["a", "bb"], ["ccc"], ["query: a"]]
    assert server.bodies[0]["model"] == "small"
    assert server.bodies[0]["dimensions"] == 2
    assert server.headers[0]["authorization"] == "Bearer secret-key"
    assert "secret-key" not in json.dumps(dict(encoder.settings))


def test_dense_retrieval_with_an_endpoint_reports_its_usage():
    with serving(vectors) as server:
        dense = Dense(EmbeddingEndpoint(server.url, "small"))
        dense.index([Document("d1", text="a" * 50), Document("d2", text="b"), Document("d3")])
        found = dense.search([Query("q1", "b"), Query("q2", "")], 10)
        assert [name for name, _ in found[0]] == ["d2", "d1", "d3"]
        assert [score for _, score in found[1]] == [0, 0, 0]
        assert dense.usage()["tokens"] == 9
        assert dense.settings["encoder"]["model"] == "small"
        dense.close()


def test_a_collection_of_empty_texts_asks_once_how_long_vectors_are():
    with serving(vectors) as server:
        encoder = EmbeddingEndpoint(server.url, "small")
        assert encoder.encode_documents(["", ""]).tolist() == [[0, 0], [0, 0]]
        assert encoder.encode_documents([""]).tolist() == [[0, 0]]
        encoder.close()
    assert len(server.bodies) == 1


def test_vectors_in_the_cache_are_not_requested_again(tmp_path):
    def rows(model="small", prompt="", **more):
        encoder = EmbeddingEndpoint(
            server.url, model, cache=tmp_path / "replies.db", document_prompt=prompt, batch=2, **more
        )
        try:
            return encoder.encode_documents(["a", "bb", "", "a", "ccc"]).tolist(), encoder.usage()
        finally:
            encoder.close()

    with serving(vectors) as server:
        first, used = rows()
        assert first == [[1, 97], [2, 98], [0, 0], [1, 97], [3, 99]]
        assert (used["calls"], used["texts"]) == (2, 3)  # the second "a" is cached by then
        again, used = rows()
        assert (again, used["calls"]) == (first, 0)
        assert [body["input"] for body in server.bodies] == [["a", "bb"], ["ccc"]]
        for number, change in enumerate(({"model": "other"}, {"prompt": "x"}, {"dimensions": 2})):
            rows(**change)
            assert len(server.bodies) == 4 + 2 * number
    with serving(vectors) as other:  # another server counts as another model
        encoder = EmbeddingEndpoint(other.url, "small", cache=tmp_path / "replies.db")
        encoder.encode_documents(["a"])
        encoder.close()
    assert len(other.bodies) == 1


def test_vectors_of_another_length_than_those_in_the_cache_are_refused(tmp_path):
    length = [2]

    def answer(body, before):
        status, headers, content = vectors(body)
        content["data"] = [row | {"embedding": [1.0] * length[0]} for row in content["data"]]
        return status, headers, content

    with serving(answer) as server:
        encoder = EmbeddingEndpoint(server.url, "small", cache=tmp_path / "replies.db")
        encoder.encode_documents(["a"])
        length[0] = 3
        with pytest.raises(EndpointError, match="a vector of 3 numbers, expected 2"):
            encoder.encode_documents(["a", "b"])
        encoder.close()


@pytest.mark.parametrize("texts", ["encode_documents", "encode_queries"])
@pytest.mark.parametrize("status", [429, 500, 503])
def test_texts_are_sent_again_to_a_server_that_is_busy(status, texts, monkeypatch):
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    with serving(failing(2, status, {"Retry-After": "3"})) as server:
        encoder = EmbeddingEndpoint(server.url, "small")
        assert getattr(encoder, texts)(["a", "b"]).tolist() == [[1, 97], [1, 98]]
        encoder.close()
    assert waits == [3.0, 3.0]
    assert encoder.usage()["calls"] == 1


def test_a_server_that_stays_busy_is_given_up(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    with serving(failing(99, 500)) as server:
        encoder = EmbeddingEndpoint(server.url, "small")
        with pytest.raises(EndpointError, match="answered 500") as caught:
            encoder.encode_documents(["a"])
        encoder.close()
    assert len(server.bodies) == 5
    assert caught.value.retryable


def test_a_single_query_is_sent_once_and_its_retry_time_reported():
    with serving(failing(1, 429, {"Retry-After": "3"})) as server:
        encoder = EmbeddingEndpoint(server.url, "small")
        with pytest.raises(EndpointError) as caught:
            encoder.encode_queries(["a"])
        encoder.close()
    assert (caught.value.status, caught.value.retryable, caught.value.retry_after) == (429, True, 3)


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage",
        [],
        {"data": None},
        {"data": []},
        {"data": [{"index": 0, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}] * 2},
        {"data": [{"index": n, "embedding": [1.0]} for n in (0, 2)]},
        {"data": [{"index": [n], "embedding": [1.0]} for n in (0, 1)]},
        {"data": [{"index": n, "embedding": [1.0] * (n + 1)} for n in (0, 1)]},
        {"data": [{"index": n, "embedding": []} for n in (0, 1)]},
        {"data": [{"index": n, "embedding": ["x"]} for n in (0, 1)]},
        {"data": [{"index": n, "embedding": "AACAPw=="} for n in (0, 1)]},
        b'{"data": [{"index": 0, "embedding": [NaN]}, {"index": 1, "embedding": [1]}]}',
        b'{"data": [{"index": 0, "embedding": [1e999]}, {"index": 1, "embedding": [1]}]}',
        {"data": ["x", "y"]},
    ],
    ids=lambda answer: str(answer)[:60],
)
def test_an_invalid_answer_is_named(answer):
    with serving(lambda *_: (200, {}, answer)) as server:
        encoder = EmbeddingEndpoint(server.url, "small")
        with pytest.raises(EndpointError) as caught:
            encoder.encode_documents(["a", "b"])
        encoder.close()
    assert not caught.value.retryable
    assert "POST http" in str(caught.value)
    assert len(server.bodies) == 1


def test_vectors_that_change_their_length_are_refused():
    def answer(_body, before):
        return 200, {}, {"data": [{"index": 0, "embedding": [1.0] * (before + 1)}]}

    with serving(answer) as server:
        encoder = EmbeddingEndpoint(server.url, "small", batch=1)
        with pytest.raises(EndpointError, match="a vector of 2 numbers, expected 1"):
            encoder.encode_documents(["a", "b"])
        encoder.close()


def test_numbers_without_an_index_are_in_order():
    with serving(lambda *_: (200, {}, {"data": [{"embedding": [1]}, {"embedding": [2]}]})) as server:
        encoder = EmbeddingEndpoint(server.url, "small")
        rows = encoder.encode_documents(["a", "b"])
        encoder.close()
    assert np.array_equal(rows, [[1], [2]])


@pytest.mark.parametrize("kind", [EmbeddingEndpoint, RerankEndpoint])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"url": "http://localhost/v1?deployment=a"}, {"url": "http://localhost/v1?deployment=b"}),
        ({"url": "http://localhost/v1?api-version=1"}, {"url": "http://localhost/v1"}),
        ({"url": "http://localhost/a"}, {"url": "http://localhost/b"}),
        ({"headers": {"x-deployment": "a"}}, {"headers": {"x-deployment": "b"}}),
        ({"model": "small"}, {"model": "large"}),
    ],
    ids=str,
)
def test_another_deployment_has_other_settings(kind, one, other):
    def settings(options):
        made = kind(**{"url": "http://localhost", "model": "small", **options})
        made.close()
        return json.loads(json.dumps(made.settings))

    assert settings(one) == settings(one)
    assert settings(one) != settings(other)


@pytest.mark.parametrize("options", [{"batch": 0}, {"dimensions": 0}, {"timeout": -1}], ids=str)
def test_invalid_options_are_named(options):
    with pytest.raises(InputError):
        EmbeddingEndpoint("http://localhost", "small", **options)
