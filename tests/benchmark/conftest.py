"""Fixtures of the benchmark tests."""

import sys

import pytest
from counting import DOCUMENTS, QRELS, QUERIES

from rankgauge import Collection


@pytest.fixture
def main_script(monkeypatch):
    """Have a main script; workers of pytest-xdist have none."""
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)


@pytest.fixture
def collection():
    return Collection.load(None, documents=DOCUMENTS, queries=QUERIES, qrels=QRELS)
