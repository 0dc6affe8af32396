"""Rows of CSV with faults: every line belongs to one row, and reading takes linear time."""

import csv
import io
import random

import pytest

from rankgauge.formats.delimited import recovered_rows

HEADER = "id,time,text"


def read(text):
    lines = [*enumerate(io.BytesIO(text.encode()), 1)]
    return [*recovered_rows(lines, "log.csv", ",")][1:]


@pytest.mark.parametrize("seed", range(60))
def test_every_line_is_in_one_row_and_valid_tables_are_read_as_by_the_csv_module(seed):
    draw = random.Random(seed)
    pieces = ["a", ",", '"', '""', "\n", " ", "b c", "\n\n", "2026-05-01T12:00"]
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    rows = [
        [str(i), f"2026-05-01 {i % 24:02}", "".join(draw.choices(pieces[:-1], k=draw.randrange(9)))] for i in range(30)
    ]
    for row in rows:
        if any(line.count(",") > 1 for line in row[2].split("\n")[1:]):  # as wide as the header
            row[2] = row[2].replace(",", ";")
    writer.writerows([HEADER.split(","), *rows])
    assert [row.cells for row in read(made.getvalue())] == rows
    text = [*made.getvalue()]
    for _ in range(draw.randrange(1, 6)):
        text[draw.randrange(len(HEADER) + 1, len(text))] = draw.choice(pieces)
    broken = "".join(text)
    found = read(broken)
    lines = [number for row in found for number, _ in row.lines]
    assert lines == sorted(set(lines))
    filled = [i for i, line in enumerate(broken.split("\n"), 1) if line.strip()]
    assert set(filled[1:]) <= set(lines)
    for row in found:
        assert (row.fault is None) == (len(row.cells) > 0)
        if row.fault is None:
            text = "".join(line.decode() for _, line in row.lines)
            assert [row.cells] == [*csv.reader(io.StringIO(text, newline=""), strict=True)]


@pytest.mark.parametrize("day", ["2026/01/01 00:00:0", "May 1 2026 0:0", ""])
@pytest.mark.parametrize("end", ["", ","])
def test_a_quote_closed_in_a_later_row_loses_no_row(day, end):
    lines = [f'{day}0Z,s1,"open', f"{day}1Z,s2,lost{end}", f'{day}2Z,s3,close"']
    assert [row.text.decode() for row in read("\n".join([HEADER, *lines]))] == [
        f"{lines[0]}\n",
        f"{lines[1]}\n",
        lines[2],
    ]


@pytest.mark.parametrize("line", ['b","c', 'a,"', '"', ',"""', '""",', 'x,2026-05-01 12,"', '"a""b'])
def test_lines_are_read_a_bounded_number_of_times(line):
    count, read_times = 1_000, 0

    class Line(bytes):
        def decode(self, *words):
            nonlocal read_times
            read_times += 1
            return super().decode(*words)

    lines = ((number, Line(f"{line}\n".encode())) for number in range(2, count))
    rows = [*recovered_rows([(1, f"{HEADER}\n".encode()), *lines], "log.csv", ",")]
    assert sum(len(row.lines) for row in rows) == count - 1
    assert read_times <= 4 * count
