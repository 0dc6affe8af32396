"""Fixtures of the benchmark tests."""

import pytest
from counting import DOCUMENTS, QRELS, QUERIES

from rankgauge import Collection


@pytest.fixture
def collection():
    return Collection.load(None, documents=DOCUMENTS, queries=QUERIES, qrels=QRELS)
