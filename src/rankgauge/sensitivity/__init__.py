"""How far numbers depend on ties, unjudged documents, and the pool."""
