"""Call retrievers in every supported way."""

import threading

from rankgauge import Limits, Query
from rankgauge.benchmark.calls import send_queries

QUERIES = [Query(f"q{n}", f"text {n}") for n in range(12)]
QUICK = Limits(backoff=0.0)


def asked(asked_of, limits=QUICK, queries=QUERIES, k=3):
    """Return the responses by query, and whether all queries were sent."""
    responses = []
    whole = send_queries(asked_of, queries, k, limits=limits, record=responses.append)
    assert len({response.query for response in responses}) == len(responses), "a query was answered twice"
    return {response.query: response for response in responses}, whole


WAYS = {
    "in order": Limits(backoff=0.0),
    "in threads": Limits(backoff=0.0, concurrency=4),
    "in a thread with a time limit": Limits(backoff=0.0, timeout=20.0),
    "batched by the callable": Limits(backoff=0.0, batch=5),
}


def of_kind(limits, function):
    """Return the function in the form these limits need: for one text, or for a list of texts."""
    if limits.batch is None:
        return function
    return lambda texts: [function(text) for text in texts]


def finished_in(seconds, retrieve, limits):
    """Return the responses of a retriever that is called in a thread with a time limit."""
    found = []
    thread = threading.Thread(target=lambda: found.append(asked(retrieve, limits)), daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it did not come to an end"
    return found[0]
