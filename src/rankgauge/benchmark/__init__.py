"""Retrievers run over a collection: journal, limits, latency, and what comes of it side by side."""
