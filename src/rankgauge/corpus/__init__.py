"""Collections: documents and queries, loaded, chunked, and described."""
