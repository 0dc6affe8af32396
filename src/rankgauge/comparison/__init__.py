"""``compare()`` and ``diff()``: which run is better, and which queries changed."""
