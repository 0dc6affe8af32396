"""Array readers give the same as the line reader: values, notes, errors, and line numbers."""

import gzip
import io
import os
import random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankgauge import RankgaugeError
from rankgauge.formats import fast_trec, readers
from rankgauge.formats.columns import JUDGMENTS, RUN
from rankgauge.formats.pieces import whole_queries
from rankgauge.formats.rows import PairInput

FILES = int(os.environ.get("RANKGAUGE_FUZZ", "1500"))


def outcome(text, layout, name="a.run"):
    """Return the table with its notes, or the full error."""
    try:
        table = readers.read_stream(io.BufferedReader(io.BytesIO(text)), PairInput(layout, name))
    except RankgaugeError as error:
        return str(error)
    return (
        table.queries.tolist(),
        table.offsets.tolist(),
        table.docs.tolist(),
        [value.hex() for value in table.values.tolist()],
        None if table.lines is None else table.lines.tolist(),  # JSON has no lines
        table.notes,
        table.source,
    )


def watch(monkeypatch):
    """Record the tables of the array reader, None where it declined."""
    seen = []

    def watched(read):
        def call(*args, **rest):
            seen.append(read(*args, **rest))
            return seen[-1]

        return call

    monkeypatch.setattr(readers, "quick_table", watched(fast_trec.quick_table))
    return seen


def decline(monkeypatch):
    """Disable the array reader."""
    monkeypatch.setattr(readers, "_read_quickly", lambda *_, **__: None)


@pytest.fixture
def line_by_line(monkeypatch):
    """Return a function that reads with the line reader alone."""

    def run(text, layout, name="a.run"):
        with monkeypatch.context() as patched:
            decline(patched)
            return outcome(text, layout, name)

    return run


IDS = ["q1", "1", "q2", "doc-17", "d\xe9", "a.b", "x" * 9, "y" * 17, "z" * 40, "0", "#d", "-", "1_0"]
NUMBERS = [
    "1",
    "0.5",
    "-0.25",
    "+3",
    "12.345678",
    "29.599124163736157",
    "1e5",
    "-1E-7",
    "1.",
    ".5",
    "-0",
    "0.1",
    "340282366920938463463374607431768211456",
    "1e-320",
    "1234567890123456768",
    "9007199254740994",
    "0.000000000000000000000000001",
    "1700000000.123456",
]
ODD = [
    "nan",
    "inf",
    "-inf",
    "1e999",
    "1_0",
    "x",
    "",
    "--1",
    "1..2",
    "0x10",
    "1,5",
    "+-1",
    "\u0663",
    "9007199254740993",
    "-1234567890123456789",
    "179769313486231570000000000000000000000",
]


def made(rng, layout, odd):
    """Return a file of a few lines, sometimes with an anomaly."""
    lines = []
    apart = rng.choice([" ", "\t", " ", "\t", "  ", "\t "])
    before, end = rng.choice(["", "", "", " "]), rng.choice(["\n", "\n", "\n", "\r\n", " \t\n"])
    width = rng.choice([6, 6, 6, 5, 3])
    for n in range(rng.randint(1, 12)):
        number = rng.choice(ODD) if rng.random() < odd else rng.choice(NUMBERS)
        query = rng.choice(IDS[:4])
        doc = rng.choice(IDS) + (str(n) if rng.random() < 0.8 else "")
        fields = [query, "Q0", doc, str(n + 1), number, "tag"][:width]
        if width == 3:
            fields = ["q1", doc, str(n + 1)] if rng.random() < 0.8 else [query, doc, number]
        if layout is JUDGMENTS:
            fields = [query, "0", doc, rng.choice(NUMBERS[:4]) if rng.random() > odd else number]
        if rng.random() < odd:
            fields = rng.choice([fields[:-1], [*fields, "more"], ["#", *fields], [""], fields[:3]])
        gaps = [rng.choice([" ", "\t", "  ", " \t"]) if rng.random() < odd else apart for _ in fields]
        line = "".join(f + g for f, g in zip(fields, gaps, strict=True))
        line = line if rng.random() < odd else line.rstrip()
        ends = ["\r\n", "\r", " \n", "\n\n", "\x0c\n", "\x00\n", "\x1f\n"]
        lines.append(before + line + (rng.choice(ends) if rng.random() < odd else end))
    text = "".join(lines).encode("latin-1", "replace" if rng.random() < 0.5 else "ignore")
    if rng.random() < odd:
        text = rng.choice([b"\xef\xbb\xbf" + text, b"\n# c\n" + text, text.rstrip(), text + b"\n \n"])
    return text


@pytest.mark.slow
@pytest.mark.parametrize("layout", [RUN, JUDGMENTS], ids=["run", "judgments"])
@pytest.mark.parametrize("piece", [1 << 20, 96], ids=["whole", "in pieces"])
def test_generated_files_are_read_alike(monkeypatch, line_by_line, layout, piece):
    monkeypatch.setattr(fast_trec, "_PIECE", piece)
    quickly = watch(monkeypatch)
    rng = random.Random(f"{layout.name} {piece}")
    taken = 0
    for number in range(FILES):
        text = made(rng, layout, odd=(number % 4) / 20)
        expected = line_by_line(text, layout)
        assert outcome(text, layout) == expected, text
        taken += isinstance(expected, tuple)
    assert taken > FILES / 3, "too few of the files could be read at all"
    quick = [table for table in quickly if table is not None]
    assert len(quick) > FILES / 10, "too few of the files were taken as whole arrays"


@pytest.mark.slow
def test_generated_cells_are_read_alike(monkeypatch, line_by_line):
    whole, quickly = fast_trec.quick_table, []
    monkeypatch.setattr(readers, "quick_table", lambda *a, **r: quickly.append(1) or whole(*a, **r))
    rng = random.Random("cells")
    taken = 0
    for number in range(FILES):
        layout = (RUN, JUDGMENTS)[number % 2]
        text = made(rng, layout, odd=(number % 4) / 20)
        text = text.replace(b" ", b"\t") if number % 3 else text
        expected = line_by_line(text, layout, "a.tsv")
        assert outcome(text, layout, "a.tsv") == expected, text
        taken += isinstance(expected, tuple)
    assert taken > FILES / 10, "too few of the files could be read at all"
    assert quickly


def grouped(rng):
    """Return a run sorted by query in one of many layouts, sometimes corrupted."""
    apart, end = rng.choice([" ", "\t", "  "]), rng.choice(["\n", "\r\n", " \n"])
    lines = []
    for query in range(rng.randint(1, 40)):
        name = rng.choice(["q%d", "%d", "a-long-name-of-a-query-%d"]) % query
        for place in range(rng.randint(1, 12)):
            fields = [name, "Q0", f"{rng.choice(IDS)}{place}", "1", rng.choice(NUMBERS[:11]), "t"]
            lines.append(apart.join(fields) + end)
    spoilt = rng.randrange(len(lines))
    if rng.random() < 0.2:
        lines[spoilt] = rng.choice(["x\n", "", lines[0], "\n", "# c\n", "q Q0 d 1 nan t\n"])
    return "".join(lines).encode("latin-1") + b"\n" * rng.choice([0, 0, 3])


@pytest.mark.slow
@pytest.mark.parametrize("block", [700, 1 << 13], ids=["small blocks", "large blocks"])
def test_blocks_of_generated_files_hold_the_rows_of_the_whole(monkeypatch, line_by_line, block):
    monkeypatch.setattr(fast_trec, "_PIECE", 200)
    monkeypatch.setattr(fast_trec, "_BLOCK", block)
    rng = random.Random(f"blocks {block}")
    read = 0
    for _ in range(FILES // 5):
        text = grouped(rng)
        whole = line_by_line(text, RUN)
        start, rest = text[: text.find(b"\n") + 1], text[text.find(b"\n") + 1 :]
        stream = io.BufferedReader(io.BytesIO(rest))
        queries, sizes, rows = [], [], []
        pieces = fast_trec.quick_pieces(
            fast_trec.FieldLines(stream, start, 1, fast_trec.Shape(6, 0, 2, 4)), PairInput(RUN, "a.run")
        )
        try:
            for number, table in enumerate(whole_queries(pieces)):
                read += number > 0
                queries += table.queries.tolist()
                sizes += np.diff(table.offsets).tolist()
                values = [value.hex() for value in table.values.tolist()]
                rows += zip(table.docs.tolist(), values, strict=True)
        except fast_trec.NotInBlocksError:
            continue
        assert isinstance(whole, tuple), text
        assert (queries, np.cumsum([0, *sizes]).tolist()) == whole[:2]
        assert rows == list(zip(whole[2], whole[3], strict=True))
    assert read > FILES / 100


@given(st.binary(max_size=300))
def test_any_bytes_are_read_alike(text):
    found = outcome(text, RUN)
    with pytest.MonkeyPatch.context() as patched:
        decline(patched)
        assert outcome(text, RUN) == found


def test_a_plain_file_is_taken_and_not_declined(monkeypatch):
    seen = watch(monkeypatch)
    for text in (b"q1 Q0 d1 1 0.5 t\nq2 Q0 d1 1 0.5 t\n", b"q1\tQ0\td1\t1\t0.5\tt", b"# c\nq Q0 d 1 2 t"):
        outcome(text, RUN)
    for text in (
        b"q1 Q0 d1 1 0.5 t\r\nq2 Q0 d1 1 0.5 t\r\n",
        b"q1  Q0 d1\t 1 0.5 t\nq2 Q0  d1 1 0.5 t\n",
        b" q1 Q0 d1 1 0.5 t \n\tq2 Q0 d1 1 0.5 t\t\n",
    ):
        outcome(text, RUN)
    outcome(b"q1 0 d1 1\nq1 0 d2 0\n\n", JUDGMENTS)
    assert sum(table is not None for table in seen) == 7


@pytest.mark.parametrize("cut", [0, 1, 7, 30, 200, 20_000])
def test_packed_files_are_read_alike_also_where_they_end_early(tmp_path, monkeypatch, cut):
    rows = "".join(f"q{n // 100} Q0 d{n * 7919 % 100_003} {n} {100 - n / 977:.6f} t\n" for n in range(9000))
    path = tmp_path / "a.run.gz"
    packed = gzip.compress(rows.encode())
    path.write_bytes(packed[: len(packed) - cut])

    def read():
        try:
            return readers.read_table(path, RUN)
        except RankgaugeError as error:
            return str(error)

    found = read()
    decline(monkeypatch)
    monkeypatch.setattr(readers, "KeptStream", lambda stream: stream)
    assert read() == found


LINE = b"q1 Q0 d%d 1 0.5 t\n"
AWRY = {
    "a carriage return before the last sign": b"q1 Q0 a 1 0.5 t\rx",
    "two records on a line": b"q1 Q0 a 1 0.5 t q1 Q0 b 2 0.4 t\n",
    "a field moved to the next line": b"q1 Q0 a 1 0.5\nt q1 Q0 b 2 0.4 t\n",
    "no query": b" Q0 a 1 0.5 t\n",
    "a comment of six words": b"#q1 Q0 a 1 0.5 t\n",
    "a control character for a blank": b"q1\x01Q0 a 1 0.5 t\n",
    "a form feed for a blank": b"q1 Q0 a 1\x0c0.5 t\n",
    "a vertical tab at the end": b"q1 Q0 a 1 0.5 t\x0b\n",
    "a colon among digits": b"q1 Q0 a 1 1:5 t\n",
    "a question mark for a digit": b"q1 Q0 a 1 12345678? t\n",
    "a point in the field before": b"q1 Q0 a 1. 77 t\nq1 Q0 b 1. 7 t\n",
    "long queries alike at first": b"query-of-2024-a Q0 a 1 1 t\nquery-of-2024-b Q0 a 1 1 t\n",
    "a carriage return between two records": b"q1 Q0 a 1 0.5 t\rq1 Q0 b 1 0.5 t\n",
    "two blanks, and a field less": b"q1  Q0 a 1 0.5\n",
    "two blanks, and a line within a line": b"q1  Q0 a 1\n0.5 t q1 Q0 b 1 0.5 t\n",
    "two blanks, and an empty line": b"q1  Q0 a 1 0.5 t\n\n",
    "two blanks, and a form feed": b"q1  Q0 a 1 0.5\x0ct\n",
    "two blanks, and a carriage return between fields": b"q1  Q0 a 1 0.5\rt\n",
    "two blanks, and a control character": b"q1  Q0 a\x011 0.5 t\n",
    "queries that are a part of the next": b"q Q0 a 1 1 t\nq11 Q0 b 1 1 t\nq1 Q0 a 1 1 t\n",
}


@pytest.mark.parametrize("awry", AWRY)
@pytest.mark.parametrize("score", [b"0.125", b"7"], ids=bytes.decode)
def test_a_malformed_line_is_read_alike_at_any_position(monkeypatch, line_by_line, awry, score):
    rows = [(LINE % n).replace(b"0.5", score) for n in range(9)]
    for piece in (1 << 20, 60):
        monkeypatch.setattr(fast_trec, "_PIECE", piece)
        for place in range(len(rows)):
            text = b"".join([*rows[:place], AWRY[awry], *rows[place:]])
            assert outcome(text, RUN) == line_by_line(text, RUN), (piece, place)


def test_a_packed_file_with_a_damaged_middle_is_read_alike(tmp_path, monkeypatch):
    rng = random.Random(5)
    rows = "".join(f"q{n} Q0 d{rng.randrange(10**9)} 1 {rng.random()} t\n" for n in range(9000))
    packed = bytearray(gzip.compress(rows.encode()))
    path = tmp_path / "a.run.gz"

    def read():
        try:
            return readers.read_table(path, RUN)
        except RankgaugeError as error:
            return str(error)

    for place in range(len(packed) // 3, len(packed) - 9, len(packed) // 7):
        damaged = packed.copy()
        damaged[place : place + 40] = bytes(40)
        path.write_bytes(damaged)
        found = read()
        with monkeypatch.context() as patched:
            patched.setattr(readers, "KeptStream", lambda stream: stream)
            decline(patched)
            assert read() == found


def test_interleaved_queries_are_grouped(line_by_line):
    text = b"".join(b"q%d Q0 d%d 1 %d t\n" % (n % 7, n, n) for n in range(100))
    assert outcome(text, RUN) == line_by_line(text, RUN)


# ---- numbers


@pytest.mark.parametrize("last", [b"q", b"q" * 31, b"q" * 9001, b"q" * 8999 + b"r"], ids=["1", "31", "9001", "another"])
def test_a_query_of_any_length_is_read_alike_at_any_position(line_by_line, last):
    long = [b"q" * 9000, b"q" * 8999 + b"r", b"q" * 9000, last]
    text = b"".join(b"%s Q0 d%d 1 2.5 t\n" % (query, n) for n, query in enumerate(long))
    assert outcome(text, RUN) == line_by_line(text, RUN)
