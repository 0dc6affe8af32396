"""Malformed replies of model servers: an error of the call with a message, or the right values."""

import json
import math
import os
from contextlib import suppress

import numpy as np
import pytest
from loopback import completion, serving
from malformed import malformed

from rankgauge.llm import ChatModel, ChatRequest, EmbeddingEndpoint, ModelError
from rankgauge.retrievers import EndpointError

SCHEMA = {
    "type": "object",
    "properties": {"grade": {"type": "integer"}, "why": {"type": "string"}},
    "required": ["grade"],
    "additionalProperties": False,
}
# "make fuzz" sets both.
CASES = int(os.environ.get("RANKGAUGE_FUZZ", "600")) // 10
SEED = int(os.environ.get("SEED", "0"))


def parsed(raw):
    """Return the value of JSON bytes, None if they have none."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def is_natural(value):
    return type(value) is int and value >= 0


def of(value, *path):
    """Return the part at a path, None if it does not exist."""
    for key in path:
        try:
            value = value[key]
        except (LookupError, TypeError):
            return None
    return value


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["text", "object"])
@pytest.mark.parametrize("seed", [2 * SEED, 2 * SEED + 1])
def test_a_malformed_chat_completion_is_an_error_of_its_call(schema, seed):
    text = '{"grade": 2, "why": "it says so"}'
    sent = [malformed(completion(text)[2], f"{seed} {n}") for n in range(CASES)]
    with serving(lambda _, before: (200, {}, sent[before])) as server:
        model = ChatModel(
            server.url,
            "m",
            retries=0,
            repairs=0,
            max_tokens=50,
            concurrency=1,
            max_cost=1e12,
            input_price=1.0,
            output_price=1.0,
        )
        replies = 0
        for raw in sent:
            before = model.usage()
            (reply,) = model.complete_all([ChatRequest("How relevant?", schema)])
            if isinstance(reply, ModelError):
                assert reply.code in {"server", "protocol", "refused", "truncated", "empty", "invalid"}
                assert reply.what
                assert reply.fix
                assert len(str(reply)) < 6000
            else:
                replies += 1
                content = parsed(raw)
                written = of(content, "choices", 0, "message", "content")
                assert reply.text == written.strip()
                assert schema is None or reply.data == json.loads(written)
            used = model.usage() - before
            assert math.isfinite(used.cost)
            told = of(parsed(raw), "usage") or {}
            counts = [of(told, "prompt_tokens"), of(told, "completion_tokens")]
            if used.calls and not used.estimated:
                assert [used.input_tokens, used.output_tokens] == counts
            elif used.calls:
                assert not all(map(is_natural, counts)) or max(counts) > 10**8
                assert used.output_tokens <= len(raw)
        model.close()
    assert CASES / 10 < replies < CASES


@pytest.mark.parametrize("seed", [2 * SEED, 2 * SEED + 1])
def test_malformed_embeddings_are_an_error_of_their_call(seed):
    rows = [{"index": n, "embedding": [n + 0.5, -1.0]} for n in (1, 0)]
    response = {"object": "list", "data": rows, "model": "m", "usage": {"total_tokens": 9}}
    sent = [malformed(response, f"{seed} {n}") for n in range(CASES)]
    with serving(lambda _, before: (200, {}, sent[before])) as server:
        found = 0
        for raw in sent:
            model = EmbeddingEndpoint(server.url, "m")
            content = parsed(raw)
            vectors = None
            with suppress(EndpointError):  # its message is required by its class
                vectors = model.encode_queries(["a", "b"])
            if vectors is not None:
                found += 1
                data = content["data"]
                order = [row.get("index", place) for place, row in enumerate(data)]
                assert [type(n) for n in order] == [int, int]
                right = [data[order.index(n)]["embedding"] for n in (0, 1)]
                assert all(type(x) in {int, float} for row in right for x in row)
                np.testing.assert_array_equal(vectors, np.array(right, dtype=np.float32))
                assert np.isfinite(vectors).all()
            tokens = of(content, "usage", "total_tokens")
            reported = type(tokens) in {int, float} and 0 <= tokens < 1e9
            assert model.usage()["tokens"] in {0, tokens if reported else 0}
            model.close()
    assert CASES / 10 < found < CASES
