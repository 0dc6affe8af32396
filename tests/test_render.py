"""A plain table and its forms."""

import csv
import io
import json
import math

import pytest

from rankgauge.render import Table, render, to_csv, to_html, to_markdown, to_terminal

TABLE = Table(
    columns=("run", "nDCG@10", "NumRet"),
    rows=(("a|b", 0.5, 10), ("<i>", math.nan, 7)),
    title="two runs",
    notes=("first note",),
    best=frozenset({(0, 1)}),
)


def test_a_terminal_table_is_aligned_and_never_cut():
    wide = Table(columns=tuple(f"measure number {n}" for n in range(40)), rows=((0.123456,) * 40,))
    head, _, row = to_terminal(wide).splitlines()
    assert len(head) > 400
    assert row.count("0.1235") == 40
    assert "…" not in head + row


def test_a_terminal_table_has_no_colour_unless_asked():
    assert "\x1b" not in to_terminal(TABLE)
    assert "\x1b[1m 0.5000\x1b[0m" in to_terminal(TABLE, color=True)


def test_markdown_escapes_what_would_break_it():
    text = to_markdown(TABLE)
    assert "a\\|b" in text
    assert "\\<i>" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(line) for line in rows}) == 1


def test_csv_keeps_every_digit_and_defuses_formulas():
    table = Table(columns=("=cmd", "x"), rows=(("+1", 0.1 + 0.2), ("ok", None)))
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert rows == [["'=cmd", "x"], ["'+1", "0.30000000000000004"], ["ok", ""]]


def test_json_has_no_nan():
    rows = json.loads(render(TABLE, "json"), parse_constant=pytest.fail)
    assert rows[1] == {"run": "<i>", "nDCG@10": None, "NumRet": 7}


def test_html_escapes_text_and_marks_the_best():
    page = to_html(TABLE)
    assert "&lt;i&gt;" in page
    assert "<i>" not in page
    assert "<strong>0.5000</strong>" in page
    assert "<li>first note</li>" in page
