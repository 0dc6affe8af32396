"""``convert()``: judgments, runs, and texts from one format into another."""
