"""Odd ids and exact numbers for the tests of conversions."""

from __future__ import annotations

import struct

from hypothesis import strategies as st

from rankgauge import Qrels, Run

IDS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=5)
ODD = st.sampled_from(["q 1", 'a"b', "a,b", "a\tb", "a\nb", "é", "1", "01", " d", "#c", "{", "<top"])


def numbers(held: Qrels | Run) -> dict[bytes, dict[bytes, bytes]]:
    """Return the bits of every number."""
    table = held.table
    docs, bits = table.docs.tolist(), [struct.pack("<d", value) for value in table.values]
    ends = table.offsets.tolist()
    return {
        query: dict(zip(docs[a:b], bits[a:b], strict=True))
        for query, a, b in zip(table.queries.tolist(), ends, ends[1:], strict=False)
    }
